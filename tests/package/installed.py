"""What the tests of installed trees share: the build folder under test, and a small model to run what was installed."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "judge"))

import random_model  # noqa: E402

PROMPT = "the quick brown"
SHIPPED = sorted(path.name for path in (ROOT / "models").iterdir())
build = cmake = None


def main():
    global build, cmake
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", required=True)
    options, rest = parser.parse_known_args()
    build, cmake = pathlib.Path(options.build).resolve(), options.cmake
    sys.modules["installed"] = sys.modules[__name__]
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


def call(*arguments, cwd=None, **variables):
    """-> stdout of a program that must end with 0."""
    run = subprocess.run([str(argument) for argument in arguments], cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"{' '.join(map(str, arguments))}\nended with {run.returncode}:\n{(run.stdout + run.stderr)[-4000:]}")
    return run.stdout


class Case(unittest.TestCase):
    """A folder for the class, with model.gguf in it."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.model = cls.folder / "model.gguf"
        random_model.write(cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def answer(self, command):
        """What this coppice says to PROMPT."""
        return call(command, "generate", "-m", self.model, "-p", PROMPT, "-n", 24, "--quiet", COPPICE_CACHE=str(self.folder / "cache"))

    def check_command(self, prefix):
        """The command below this folder runs, and what belongs to it is there."""
        self.assertRegex(call(prefix / "bin" / "coppice", "--version"), r"\Acoppice \d+\.\d+\.\d+\n\Z")
        self.assertTrue(self.answer(prefix / "bin" / "coppice").strip())
        share = prefix / "share"
        self.assertEqual(sorted(path.name for path in (share / "coppice" / "models").iterdir()), SHIPPED)
        for name in ("bash-completion/completions/coppice", "zsh/site-functions/_coppice", "fish/vendor_completions.d/coppice.fish",
                     "doc/coppice/README.md", "doc/coppice/copyright", "doc/coppice/docs/architecture.md"):
            self.assertTrue((share / name).is_file(), name)
        for name in ("coppice", "coppice-generate", "coppice-bench"):
            self.assertEqual(len(list((share / "man" / "man1").glob(f"{name}.1*"))), 1, name)
