"""Replicas of a model behind one endpoint: serve run serving:app

COPPICE_MODEL names the file, COPPICE_REPLICAS how many, COPPICE_THREADS the threads of each.
"""

import json
import os

import coppice
from ray import serve
from ray.serve.config import RequestRouterConfig
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

THREADS = int(os.environ.get("COPPICE_THREADS", "1"))


@serve.deployment(num_replicas=int(os.environ.get("COPPICE_REPLICAS", "2")), max_ongoing_requests=16,
                  ray_actor_options={"num_cpus": THREADS},
                  request_router_config=RequestRouterConfig(request_router_class="prefix_router:PrefixRouter"))
class Replica:
    """One model. Its requests share passes; the next turn of a conversation finds the last one's tokens in its cache."""

    def __init__(self, path, **options):
        self.model = coppice.Model(path, n_threads=THREADS, n_parallel=16, **options)
        self.name = str(serve.get_replica_context().replica_id.unique_id)

    async def answer(self, asked):
        """A dict for each pass, and one for the whole; {"error": ...} where the request is wrong."""
        options = {name: value for name, value in asked.items() if name not in ("messages", "prompt")}
        try:
            stream = (self.model.astream(asked["prompt"], **options) if "prompt" in asked
                      else self.model.achat_stream(asked.get("messages", []), **options))
            async for piece in stream:
                if piece:
                    yield {"text": str(piece)}
        except (coppice.Error, TypeError) as error:
            yield {"error": str(error)}
            return
        stats = stream.generation.stats
        yield {"stop_reason": stream.generation.stop_reason, "replica": self.name, "prompt_tokens": stats.prompt_tokens,
               "reused_tokens": stats.reused_tokens, "tokens": stats.tokens, "passes": stats.cycles}


@serve.deployment(ray_actor_options={"num_cpus": 0})
class Endpoint:
    """HTTP in, lines of JSON out."""

    def __init__(self, replicas):
        self.replicas = replicas.options(stream=True)

    async def __call__(self, request: Request):
        try:
            asked = json.loads(await request.body())
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return JSONResponse({"error": "the body should be a JSON object with \"messages\" or \"prompt\""}, status_code=400)
        return StreamingResponse(self.lines(asked), media_type="application/x-ndjson")

    async def lines(self, asked):
        async for part in self.replicas.answer.remote(asked):
            yield json.dumps(part) + "\n"


def application(path, **options):
    return Endpoint.bind(Replica.bind(path, **options))


if "COPPICE_MODEL" in os.environ:
    app = application(os.environ["COPPICE_MODEL"])
