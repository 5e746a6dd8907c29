"""The models on this machine, for the llm tool: each file that `coppice models` lists is coppice/NAME."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

import coppice
import llm
from pydantic import Field


class Options(llm.Options):
    max_new_tokens: int | None = Field(default=None, description="Tokens of the answer, at most")
    temperature: float | None = Field(default=None, description="0 is greedy")
    top_k: int | None = Field(default=None, description="Only the k likeliest tokens; 0 is off")
    top_p: float | None = Field(default=None, description="Only the likeliest tokens with this much of the chance together")
    min_p: float | None = Field(default=None, description="Only tokens at least this likely, as a part of the likeliest")
    repetition_penalty: float | None = Field(default=None, description="Above 1, tokens that were there are less likely")
    seed: int | None = Field(default=None, description="The same seed gives the same answer")
    stop: str | None = Field(default=None, description="The answer ends before this text")
    drafters: str | None = Field(default=None, description="What guesses, as in docs/drafters.md; none is plain decoding")
    policy: str | None = Field(default=None, description="How much to guess: auto, fixed, ...")
    n_ctx: int | None = Field(default=None, description="Tokens of conversation and answer together")
    n_threads: int | None = Field(default=None, description="Threads; 0 is what there is")


OF_THE_MODEL = ("drafters", "policy", "n_ctx", "n_threads")


class Coppice(llm.Model):
    can_stream = True
    Options = Options

    def __init__(self, model_id: str, path: str) -> None:
        self.model_id = model_id
        self.path = path
        self._loaded: coppice.Model | None = None
        self._loaded_with: dict[str, Any] = {}

    def execute(self, prompt: llm.Prompt, stream: bool, response: llm.Response,
                conversation: llm.Conversation | None = None) -> Iterator[str]:
        given = {name: value for name, value in prompt.options if value is not None}
        model = self._load({name: given.pop(name) for name in OF_THE_MODEL if name in given})
        pieces = model.chat_stream(messages(prompt), **given)
        if stream:
            yield from map(str, pieces)
        else:
            yield "".join(pieces)
        answer = pieces.generation
        stats = answer.stats
        response.set_usage(input=stats.prompt_tokens, output=stats.tokens)
        response.response_json = {"stop_reason": answer.stop_reason, "passes": stats.cycles, "tokens_per_pass": stats.tokens_per_pass,
                                  "tokens_per_second": stats.tokens_per_second, "guesses": stats.guesses, "accepted": stats.accepted}

    def _load(self, options: dict[str, Any]) -> coppice.Model:
        """The model stays loaded, for a chat goes on; other options load it anew."""
        if self._loaded is None or self._loaded_with != options:
            self._loaded = coppice.Model(self.path, n_parallel=1, **options)
            self._loaded_with = options
        return self._loaded


def messages(prompt: llm.Prompt) -> list[dict[str, str]]:
    """All that was said so far and what is asked now."""
    return [{"role": message.role, "content": "".join(part.text for part in message.parts if hasattr(part, "text"))}
            for message in prompt.messages]


def name_of(path: str) -> str:
    """SmolLM2-135M-Instruct.Q4_1.gguf is smollm2-135m-instruct.q4_1."""
    return re.sub(r"[^a-z0-9._-]+", "-", os.path.basename(path).removesuffix(".gguf").lower())


def named_models() -> dict[str, str]:
    """name -> path; what COPPICE_MODELS names comes first."""
    paths = [path for path in os.environ.get("COPPICE_MODELS", "").split(os.pathsep) if path]
    paths += [found.path for found in coppice.find_models()]
    models: dict[str, str] = {}
    for path in paths:
        models.setdefault(name_of(path), path)
    return models


@llm.hookimpl
def register_models(register: Any) -> None:
    for name, path in named_models().items():
        register(Coppice(f"coppice/{name}", path), aliases=(name,))
