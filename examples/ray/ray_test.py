"""Two replicas of a random model behind one endpoint, and two workers that write a corpus: ./dev test --ray"""

import concurrent.futures
import json
import os
import pathlib
import urllib.request

import pytest

HERE = pathlib.Path(__file__).resolve().parent
# Workers find the modules beside this file as `serve run` in this folder does.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# How long Serve waits for a replica's word before it passes it over, and for its proxy to start: on a machine that is busy with other tests
# its own 0.1 and 5 seconds are over at once.
os.environ.setdefault("RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S", "5")
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")

import coppice  # noqa: E402
import corpus  # noqa: E402
import prefix_router  # noqa: E402
import ray  # noqa: E402
import serving  # noqa: E402
from coppice import _coppice  # noqa: E402
from ray import serve  # noqa: E402

PORT = 18731
OPTIONS = {"n_ctx": 512, "policy": "fixed"}
LONG = {"max_new_tokens": 24, "ignore_eos": True}


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "random.gguf"
    _coppice.write_random_model(str(path))
    return str(path)


@pytest.fixture(scope="session")
def cluster():
    # Two replicas, two workers and what reads for them hold a CPU each, by Ray's account.
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def endpoint(cluster, model_file):
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    serve.run(serving.application(model_file, **OPTIONS))
    yield f"http://127.0.0.1:{PORT}/"
    serve.shutdown()


def ask(endpoint, **asked):
    """(text, the last line)"""
    request = urllib.request.Request(endpoint, json.dumps({**LONG, **asked}).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = [json.loads(line) for line in answer]
    return "".join(line.get("text", "") for line in lines), lines[-1], len(lines)


def test_answers_are_those_of_the_package_and_come_in_pieces(endpoint, model_file):
    text, whole, lines = ask(endpoint, prompt="Hello", seed=3, temperature=0.8)
    with coppice.Model(model_file, n_threads=1, **OPTIONS) as model:
        assert text == model.generate("Hello", seed=3, temperature=0.8, **LONG).text
    assert whole["tokens"] == 24 and whole["stop_reason"] == "max_tokens"
    assert lines > 3


def test_what_begins_alike_goes_to_the_same_replica_which_has_it_in_its_cache(endpoint):
    replicas = set()
    for number in range(8):
        messages = [{"role": "user", "content": f"{number} is the number of this conversation"}]
        text, first, _ = ask(endpoint, messages=messages)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "And then?"}]
        _, second, _ = ask(endpoint, messages=messages)
        assert second["replica"] == first["replica"]
        assert second["reused_tokens"] > 10
        replicas.add(first["replica"])
    assert len(replicas) == 2


def test_many_at_once_are_answered_by_both(endpoint):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda seed: ask(endpoint, prompt="the same for all", seed=seed, temperature=1), range(24)))
    assert all(whole["tokens"] == 24 for _, whole, _ in answers)
    assert len({text for text, _, _ in answers}) > 20


def test_a_wrong_request_is_answered_with_the_sentence(endpoint):
    _, whole, _ = ask(endpoint, prompt="Hello", temperature=-1)
    assert "temperature" in whole["error"]
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(endpoint, b"[]"), timeout=60)


def test_a_corpus_by_two_workers_is_that_of_one(cluster, model_file, tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": f"Say {number}"}) + "\n" for number in range(20)))
    written = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        corpus.write(model_file, str(prompts), str(folder), workers, tokens=16, batch=4)
        lines = [json.loads(line) for path in folder.glob("*.json*") for line in path.read_text().splitlines()]
        written[workers] = {line["prompt"]: (line["text"], line["ids"], line["start"]) for line in lines}
        assert len(lines) == 20
    assert written[1] == written[2]
    text, ids, start = written[1]["Say 3"]
    with coppice.Model(model_file, n_threads=1) as model:
        assert model.tokenizer.decode(ids[start:]) == text


def test_the_preferred_replica_is_left_only_when_it_is_much_busier():
    names = ["a", "b", "c"]
    best = {start: prefix_router.ranked(start, dict.fromkeys(names, 0))[0] for start in map(str, range(300))}
    assert {name: 70 < list(best.values()).count(name) < 130 for name in names} == dict.fromkeys(names, True)
    for start, name in best.items():
        busy = {**dict.fromkeys(names, 0), name: prefix_router.SLACK}
        assert prefix_router.ranked(start, busy)[0] == name
        assert prefix_router.ranked(start, {**busy, name: prefix_router.SLACK + 1})[0] != name
        assert prefix_router.ranked(start, dict.fromkeys(names, None))[0] == name
        # One goes: what was another's stays there.
        left = [other for other in names if other != "c"]
        assert name == "c" or prefix_router.ranked(start, dict.fromkeys(left, 0))[0] == name
