"""The examples and the notebook run as they are, on a model that talks nonsense."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "examples/python"


def run(script, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / script, *map(str, arguments)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_chat_streams_an_answer(model_file, model):
    assert run("chat.py", model_file, "Hello").decode() == model.chat("Hello", max_new_tokens=200).text + "\n"


def test_colours_show_the_answer(model_file, model):
    out = run("colours.py", model_file, "def f(x):")
    shown = out[:out.rindex(b"\n", 0, -1)]
    for code in (b"\033[0m", b"\033[32m"):
        shown = shown.replace(code, b"")
    answer = model.generate("def f(x):", max_new_tokens=200)
    assert shown.decode(errors="replace") == model.tokenizer.decode(answer.tokens)
    assert b"a pass" in out


def test_the_custom_drafter_leaves_the_text_as_it_is(model_file):
    assert b"same text: True" in run("custom_drafter.py", model_file)


def test_the_notebook_runs(model_file, monkeypatch):
    notebook = json.loads((EXAMPLES / "coppice.ipynb").read_text())
    assert notebook["nbformat"] == 4
    monkeypatch.setenv("COPPICE_MODEL", os.fspath(model_file))
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "what a run printed does not belong into the repository"
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    assert names["guessed"].tokens == names["plain"].tokens
    assert names["logits"].shape[1] == 320


@pytest.mark.parametrize("line", ["import coppice", 'model = coppice.Model("model.gguf")'])
def test_the_readme_begins_as_the_docs_do(line):
    for document in ("README.md", "docs/python.md"):
        assert line in (ROOT / document).read_text(), document
