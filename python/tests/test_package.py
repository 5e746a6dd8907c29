"""The package as it is installed: stubs, what pickles, the version."""

import ast
import importlib.metadata
import pathlib
import pickle
import re

import coppice
from conftest import PROMPT, ROOT
from coppice import _coppice

PACKAGE = pathlib.Path(coppice.__file__).parent


def test_the_stub_says_what_the_extension_has():
    stub = ast.parse((PACKAGE / "_coppice.pyi").read_text())
    for name, node in {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}.items():
        assert hasattr(_coppice, name), name
        for member in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
            known = member.name if isinstance(member, ast.FunctionDef) else member.target.id if isinstance(member, ast.AnnAssign) else None
            assert known is None or hasattr(getattr(_coppice, name), known), f"{name}.{known}"
    named = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert named == {name for name in dir(_coppice) if not name.startswith("_")}


def test_it_is_typed_and_of_the_version_that_cmake_has():
    assert (PACKAGE / "py.typed").exists()
    version = re.search(r"project\(coppice VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    assert importlib.metadata.version("coppice") == version


def test_answers_pickle(model):
    answer = model.generate(PROMPT, max_new_tokens=5, logprobs=2)
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_statistics_have_every_field_of_the_header():
    header = (ROOT / "include/coppice/stats.h").read_text()
    struct = header[header.index("struct Stats {"):]
    fields = set()
    for line in re.findall(r"^  (?:std::uint64_t|double|std::array<[^>]*>|std::vector<[^>]*>) ([^;(]*);", struct, re.MULTILINE):
        fields |= {part.split("=")[0].split("{")[0].strip() for part in line.split(", ")}
    assert fields == set(coppice.Stats.__dataclass_fields__)


def test_what_there_is_to_guess_with_is_listed():
    assert {"lookup", "ngram", "model", "stage"} <= {name for name, _, _ in coppice.drafter_help()}
