"""The coppice command as the tests here see it: started as a person's shell would, in a folder of its own, with no
model anywhere but those that a test makes. They are small and random: what they say is nonsense, and always the same."""

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "judge"))

import formats  # noqa: E402
import gguf  # noqa: E402
import random_model  # noqa: E402

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
          "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
SLIM = ["--hidden", 192, "--layers", 2, "--heads", 4, "--slim", "0.5,0.75,1,1.5", "--exit-layer", 1]  # of random-model
TIMEOUT = 120  # seconds; no test here needs more than a few on an idle machine
coppice = None  # path of the command


def main():
    global coppice
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--coppice", required=True)
    options, rest = parser.parse_known_args()
    coppice = str(pathlib.Path(options.coppice).resolve())
    sys.modules["program"] = sys.modules[__name__]
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


class Case(unittest.TestCase):
    """A folder for the class, with target.gguf (llama, can chat), and the command run inside it."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        for name in ("work", "home", "cache"):
            (cls.folder / name).mkdir()
        cls.work = cls.folder / "work"
        cls.model = cls.work / "target.gguf"
        random_model.write(cls.model, chat_template=CHATML)

    @classmethod
    def make_slimmable_pair(cls):
        """small.gguf, and slim.gguf, a slimmable draft for it."""
        for name, arguments in (("small.gguf", ["--seed", 1]), ("slim.gguf", ["--seed", 2, *SLIM])):
            run = cls.run_bytes("random-model", "-o", name, *arguments)
            assert run.returncode == 0, run.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def environment(cls, **more):
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
        return {**kept, "HOME": str(cls.folder / "home"), "COPPICE_CACHE": str(cls.folder / "cache"), "TERM": "xterm", **more}

    @classmethod
    def start(cls, *arguments, **options):
        options.setdefault("env", cls.environment())
        return subprocess.Popen([coppice, *map(str, arguments)], cwd=cls.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    @classmethod
    def run_bytes(cls, *arguments, input=b"", env=None, stdout=subprocess.PIPE, limits=()):
        def limit():
            for kind, value in limits:
                resource.setrlimit(kind, (value, value))

        return subprocess.run([coppice, *map(str, arguments)], cwd=cls.work, input=input, stdout=stdout, stderr=subprocess.PIPE,
                              env=env or cls.environment(), timeout=TIMEOUT, preexec_fn=limit if limits else None)

    def run_well(self, *arguments, **options):
        """-> (stdout, stderr) as text, of a run that must end with 0."""
        run = self.run_bytes(*arguments, **options)
        self.assertEqual(run.returncode, 0, run.stderr.decode(errors="replace"))
        return (run.stdout or b"").decode(errors="replace"), run.stderr.decode(errors="replace")

    def generate(self, *arguments, prompt="the quick brown", model=None, tokens=24, threads=1, **options):
        """-> what generate --json says; `arguments` go last."""
        given = [] if prompt is None else ["-p", prompt]
        out, _ = self.run_well("generate", "-m", model or self.model, "-t", threads, *given, "-n", tokens, "--json", *arguments, **options)
        return json.loads(out)

    def refused(self, *arguments, **options):
        """-> the one sentence of a run that must end with 2, say why on stderr, and nothing on stdout."""
        run = self.run_bytes(*arguments, **options)
        said = run.stderr.decode()
        self.assertEqual(run.returncode, 2, f"{run.returncode}: {said}")
        self.assertIn(run.stdout, (b"", None))
        self.assertRegex(said, r"\Acoppice: [^\n]+\n\Z")
        return said


def write_vocabulary_only(source, target):
    """A GGUF with the keys of `source` and no tensors, as converters make them for tokenizer tests."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
