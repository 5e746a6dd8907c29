"""coppice tokenize, inspect, info, models, eval: what they say is what other means find."""

import json
import re
import shutil

import gguf
import numpy as np

import program
import random_model

TEXT = "It was the worst of times: def add(left, right)\n\tπ = 3.14159 – naïve?  \n\n end"


class Tokenize(program.Case):
    def ids(self, *arguments, model=None, **options):
        return [int(i) for i in self.run_well("tokenize", "-m", model or self.model, "--ids", *arguments, **options)[0].split()]

    def decode(self, ids, model=None):
        run = self.run_bytes("tokenize", "-m", model or self.model, "--detokenise", ",".join(map(str, ids)))
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        return run.stdout

    def test_detokenise_gives_the_text_back_byte_for_byte(self):
        self.assertEqual(self.decode(self.ids(TEXT)), TEXT.encode())
        data = bytes(range(256))
        self.assertEqual(self.decode(self.ids(input=data)), data)

    def test_argument_option_file_and_stdin_are_one_text(self):
        (self.work / "text.txt").write_text(TEXT)
        expected = self.ids(TEXT)
        self.assertEqual(self.ids("-p", TEXT), expected)
        self.assertEqual(self.ids("-f", "text.txt"), expected)
        self.assertEqual(self.ids(input=TEXT.encode()), expected)

    def test_an_empty_text_has_no_tokens(self):
        self.assertEqual(self.ids("", input=b"not this"), [])

    def test_control_tokens_are_parsed_only_if_asked(self):
        self.assertNotIn(1, self.ids("<|im_start|>"))
        self.assertEqual(self.ids("<|im_start|>", "--parse-special"), [1])
        self.assertEqual(self.decode([1]), b"<|im_start|>")

    def test_pieces_are_shown_one_a_line_and_printable(self):
        out, _ = self.run_well("tokenize", "-m", self.model, " the\n\xff")
        self.assertEqual([int(line.split()[0]) for line in out.splitlines()], self.ids(" the\n\xff"))
        self.assertRegex(out, r"\A +\d+  _the\n +\d+  \\n\n +\d+  \\xc3\n +\d+  \\xbf\n\Z")

    def test_a_file_with_a_vocabulary_and_no_tensors_is_enough(self):
        program.write_vocabulary_only(self.model, self.work / "vocabulary.gguf")
        self.assertEqual(self.ids(TEXT, model="vocabulary.gguf"), self.ids(TEXT))
        self.assertEqual(self.decode(self.ids(TEXT), model="vocabulary.gguf"), TEXT.encode())
        self.assertEqual(json.loads(self.run_well("inspect", "vocabulary.gguf", "--json")[0])["tensors"], [])
        self.assertIn("vocabulary.gguf", self.refused("generate", "-m", "vocabulary.gguf", "-p", "it"))


class Inspect(program.Case):
    def test_json_says_what_the_gguf_package_reads(self):
        report = json.loads(self.run_well("inspect", self.model, "--json")[0])
        reader = gguf.GGUFReader(self.model)
        self.assertEqual((report["version"], report["bytes"]), (3, self.model.stat().st_size))
        self.assertEqual(report["keys"]["llama.block_count"], 3)
        self.assertEqual(report["keys"]["tokenizer.ggml.tokens"]["count"], 379)
        self.assertEqual([(t["name"], t["format"], t["shape"]) for t in report["tensors"]],
                         [(t.name, t.tensor_type.name, [int(n) for n in t.shape]) for t in reader.tensors])
        self.assertEqual(report["parameters"], sum(int(t.n_elements) for t in reader.tensors))

    def test_the_page_names_keys_and_tensors(self):
        out, _ = self.run_well("inspect", "target")
        for part in ("GGUF v3", "llama.block_count", "blk.2.ffn_down.weight"):
            self.assertIn(part, out)


class Machine(program.Case):
    def test_info_says_cpu_memory_and_one_chosen_instruction_set(self):
        info = json.loads(self.run_well("info", "--json")[0])
        self.assertGreaterEqual(info["cores"], 1)
        self.assertGreaterEqual(info["memory_bytes"], info["memory_available_bytes"])
        self.assertEqual(len([isa for isa in info["isa"] if isa["chosen"]]), 1)
        self.assertTrue(all(isa["usable"] for isa in info["isa"] if isa["chosen"]))
        self.assertIn(info["cpu"], self.run_well("info")[0])

    def test_an_instruction_set_that_is_absent_is_said_on_stderr_and_stdout_stays_json(self):
        out, said = self.run_well("info", "--json", env=self.environment(COPPICE_ISA="nonsense"))
        self.assertEqual(len([isa for isa in json.loads(out)["isa"] if isa["chosen"]]), 1)
        self.assertIn("COPPICE_ISA is 'nonsense', which this machine does not have", said)

    def test_models_finds_what_lies_in_the_cache_and_here_once_each(self):
        cached = self.folder / "cache" / "deeper" / "cached.gguf"
        cached.parent.mkdir()
        shutil.copy(self.model, cached)
        (self.work / "again.gguf").symlink_to(cached)
        (self.work / "broken.gguf").write_bytes(b"GGUF and nothing else")
        found = json.loads(self.run_well("models", "--json")[0])
        self.assertEqual([model["path"] for model in found], [str(cached), "target.gguf"])
        self.assertEqual({(m["name"], m["architecture"], m["bytes"]) for m in found},
                         {("random llama 1", "llama", cached.stat().st_size)})
        self.assertIn(str(cached), self.run_well("models")[0])
        said = self.refused("generate", "-m", "random", "-p", "it")
        self.assertIn("may be any of 2 models", said)
        self.assertIn(str(cached), said)
        self.assertIn(f"using {cached}", self.run_well("generate", "-m", "CACHED", "-p", "it", "-n", 1)[1])

    def test_version(self):
        self.assertRegex(self.run_well("--version")[0], r"\Acoppice \d+\.\d+\.\d+\n\Z")

    def test_help_of_every_command_is_on_stdout(self):
        for command in (["generate"], ["chat"], ["bench", "decode"], ["bench", "kernels"], ["bench", "cost"], ["bench", "load"], ["eval", "ppl"], ["eval", "logits"], ["eval", "layers"],
                        ["tokenize"], ["inspect"], ["info"], ["models"], ["ngram", "build"], ["slice"], ["random-model"]):
            out, said = self.run_well(*command, "--help")
            self.assertEqual(said, "")
            self.assertIn("--help", out)
            self.assertIn(command[0], self.run_well("--help")[0])


class Eval(program.Case):
    def logits(self, *arguments):
        self.run_well("eval", "logits", "-m", self.model, "-o", "logits.npy", *arguments)
        return np.load(self.work / "logits.npy")

    def test_perplexity_is_that_of_the_logits(self):
        context = 32
        text = random_model.TEXT
        (self.work / "text.txt").write_text(text)
        ids = [int(i) for i in self.run_well("tokenize", "-m", self.model, "--ids", text)[0].split()]
        surprises = []
        for begin in range(0, len(ids) - context + 1, context):
            chunk = ids[begin:begin + context]
            logits = self.logits("--ids", ",".join(map(str, chunk)), "--cache", "f16").astype(np.float64)
            logits -= logits.max(axis=1, keepdims=True)
            log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            surprises += [-log_p[i, chunk[i + 1]] for i in range(context // 2, context - 1)]
        out, said = self.run_well("eval", "ppl", "-m", self.model, "-f", "text.txt", "-c", context)
        value, tokens, chunks = re.fullmatch(r"perplexity ([0-9.]+) \+/- [0-9.]+ over (\d+) tokens in (\d+) chunks of 32\n", out).groups()
        self.assertEqual((int(tokens), int(chunks)), (len(surprises), len(ids) // context))
        self.assertAlmostEqual(float(value) / np.exp(np.mean(surprises)), 1, delta=1e-5)
        self.assertEqual(said, "")  # progress is for terminals

    def test_logits_are_an_array_of_tokens_by_vocabulary(self):
        logits = self.logits("-p", "it was the")
        count = len(self.run_well("tokenize", "-m", self.model, "--ids", "it was the")[0].split())
        self.assertEqual((logits.dtype, logits.shape), (np.float32, (count, 379)))

    def test_the_greedy_answer_is_the_largest_logit(self):
        logits = self.logits("-p", "it was the", "--cache", "f16")
        self.assertEqual(self.generate(prompt="it was the", tokens=1)["ids"], [int(logits[-1].argmax())])

    def test_layers_writes_every_matmul(self):
        self.run_well("eval", "layers", "-m", self.model, "--ids", "5,6,7", "-o", "layers")
        names = {path.name.split("_", 1)[1] for path in (self.work / "layers").iterdir()}
        for name in ("blk.0.attn_q.weight", "blk.2.ffn_down.weight", "output.weight"):
            self.assertLessEqual({name + ".in.npy", name + ".out.npy"}, names)


if __name__ == "__main__":
    program.main()
