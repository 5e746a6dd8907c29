"""A small random model for all tests: what it says is nonsense, and always the same."""

import pathlib
import re

import coppice
import pytest
from coppice import _coppice

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMPT = "def f(x): return x\ndef f(x): return x\ndef f(x):"
SAMPLED = {"temperature": 0.9, "top_k": 40, "seed": 7}


def stop_string(text):
    """A piece of the text that can be given as it is: what is no whole character became U+FFFD in it."""
    return re.compile(r"[!-~]{2}").search(text, 8).group()


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "random.gguf"
    _coppice.write_random_model(str(path))
    return path


@pytest.fixture(scope="session")
def load(model_file):
    """Model(...) of the random model, with a policy that looks at no clock."""

    def make(**options):
        return coppice.Model(model_file, **{"n_threads": 1, "n_ctx": 512, "policy": "fixed", **options})

    return make


@pytest.fixture(scope="session")
def model(load):
    return load()


@pytest.fixture(scope="session")
def plain(load):
    return load(drafters="none")
