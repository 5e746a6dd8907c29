"""The llm tool answers with Coppice, streamed or not, and remembers a conversation."""

import json
import os
import subprocess
import sys

import pytest

llm = pytest.importorskip("llm", reason="llm is not installed")
llm_coppice = pytest.importorskip("llm_coppice", reason="llm-coppice is not installed")


@pytest.fixture
def run(model_file, tmp_path):
    """llm in a folder of its own, where COPPICE_MODELS names the random model."""
    environment = {**os.environ, "LLM_USER_PATH": str(tmp_path), "HOME": str(tmp_path), "COPPICE_CACHE": str(tmp_path),
                   "COPPICE_MODELS": str(model_file)}

    def call(*arguments):
        done = subprocess.run([sys.executable, "-m", "llm", *arguments], env=environment, capture_output=True, text=True,
                              errors="replace", timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_models_are_listed_by_name(run):
    assert "coppice/random" in run("models")


def test_an_answer_is_that_of_the_package(run, model):
    expected = model.chat("Hello", max_new_tokens=20, temperature=0.8, seed=3).text
    options = ["-m", "coppice/random", "Hello", "-o", "max_new_tokens", "20", "-o", "temperature", "0.8", "-o", "seed", "3", "-o", "n_ctx", "512"]
    for way in ([], ["--no-stream"], ["-o", "drafters", "none"]):
        assert run(*options, *way).rstrip("\n") == expected.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    logged = json.loads(run("logs", "list", "--json"))
    assert len(logged) == 3
    assert json.loads(logged[-1]["response_json"])["passes"] > 0 if isinstance(logged[-1]["response_json"], str) \
        else logged[-1]["response_json"]["passes"] > 0


def test_a_conversation_goes_on_with_what_was_said(model_file):
    model = llm_coppice.Coppice("coppice/random", str(model_file))
    conversation = model.conversation()
    options = {"max_new_tokens": 10, "n_ctx": 512}
    first = conversation.prompt("Hello", system="Be brief.", **options)
    text = first.text()
    second = conversation.prompt("And then?", **options)
    assert second.text()
    expected = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}, {"role": "assistant", "content": text},
                {"role": "user", "content": "And then?"}]
    assert second.usage().input == len(model._loaded.tokenizer.apply_chat_template(expected, True))


def test_options_that_are_wrong_are_said(model_file):
    model = llm_coppice.Coppice("coppice/random", str(model_file))
    with pytest.raises(Exception, match="temperature"):
        model.prompt("Hello", temperature=-1).text()
