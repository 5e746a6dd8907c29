"""Drafts made by the command (ngram build, slice) and used by it: every drafter expression gives the same tokens."""

import json
import signal
import time

import gguf
import numpy as np

import program
import random_model

PROMPT = "it was the best of times, it was the age of wisdom, it was the"


class Drafts(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        (cls.work / "text.txt").write_text(random_model.TEXT)
        (cls.work / "more.jsonl").write_text('{"text": "it was the epoch"}\n\n{"ids": [10, 11, 12, 13], "start": 2}\n')
        np.array([20, 21, -1, 22, 23, 24], dtype=np.int32).tofile(cls.work / "ids.bin")

    def build(self, *arguments):
        return self.run_well("ngram", "build", "-m", self.model, *arguments)

    def slice(self, *arguments, source="target.gguf"):
        return self.run_well("slice", source, *arguments)[0]

    def head(self, *arguments):
        return self.run_well("random-model", "--head-for", self.model, *arguments)

    def test_ngram_build_counts_texts_and_token_files(self):
        out, said = self.build("-o", "counts.ngram", "--order", 3, "text.txt", "more.jsonl", "ids.bin")
        tokens = len(self.run_well("tokenize", "-m", self.model, "--ids", "-f", "text.txt")[0].split())
        tokens += len(self.run_well("tokenize", "-m", self.model, "--ids", "it was the epoch")[0].split())
        self.assertRegex(out, rf"\Acounts\.ngram: {tokens + 2 + 5} tokens of 5 texts, [0-9.]+ MB\n\Z")
        self.assertEqual(said, "")

    def test_slice_keeps_the_first_layers(self):
        self.assertIn("first.gguf: 2 layers (0 1), head of 379 tokens", self.slice("-o", "first.gguf", "--layers", 2))
        reader = gguf.GGUFReader(self.work / "first.gguf")
        self.assertEqual(reader.fields["llama.block_count"].contents(), 2)
        self.assertEqual({t.name.split(".")[1] for t in reader.tensors if t.name.startswith("blk.")}, {"0", "1"})

    def test_slice_keeps_named_layers_under_new_numbers(self):
        self.assertIn("2 layers (0 2)", self.slice("-o", "named.gguf", "--keep", "2,0"))
        source = {t.name: t.data for t in gguf.GGUFReader(self.model).tensors}
        cut = {t.name: t.data for t in gguf.GGUFReader(self.work / "named.gguf").tensors}
        np.testing.assert_array_equal(cut["blk.1.attn_q.weight"], source["blk.2.attn_q.weight"])

    def test_slice_drops_the_layers_that_matter_least_on_a_text(self):
        out = self.slice("-o", "dropped.gguf", "--drop", 1, "--text", "text.txt")
        importance = [float(line.split()[-1]) for line in out.splitlines()[1:]]
        self.assertEqual(len(importance), 3)
        kept = sorted(set(range(3)) - {int(np.argmin(importance))})
        self.assertIn(f"2 layers ({' '.join(map(str, kept))})", out)

    def test_slice_trims_the_vocabulary_of_the_head(self):
        self.assertIn("3 layers (0 1 2), head of 40 tokens", self.slice("-o", "trimmed.gguf", "--vocabulary", 40, "--text", "text.txt"))
        head = next(t for t in gguf.GGUFReader(self.work / "trimmed.gguf").tensors if t.name == "output.weight")
        self.assertEqual(list(head.shape), [96, 40])

    def test_every_drafter_expression_gives_the_same_tokens(self):
        self.build("-o", "code.ngram", "text.txt")
        self.slice("-o", "half.gguf", "--layers", 2)
        self.slice("-o", "thin.gguf", "--layers", 1, "--vocabulary", 60, "--text", "text.txt")
        self.head("-o", "head.gguf", "--head-vocabulary", 200)
        sampled = ["--temp", 0.8, "--top-k", 20, "--repetition-penalty", 1.1, "--seed", 3]
        for options in ([], sampled):
            plain = self.generate("--plain", "--ignore-eos", *options, prompt=PROMPT, tokens=40)
            self.assertEqual(plain["stats"]["guesses"], 0)
            for drafters in ("none", "lookup", "ngram(code.ngram)", "model(half.gguf)", "ngram(code.ngram) | lookup",
                             "stage(half.gguf, ngram(code.ngram) | lookup) | lookup", "stage(half.gguf, stage(thin.gguf, lookup))",
                             "model(thin.gguf)", "head(head.gguf)", "head(head.gguf) | stage(thin.gguf, lookup) | lookup"):
                with self.subTest(drafters=drafters, options=options):
                    answer = self.generate("-d", drafters, "--policy", "fixed", "--ignore-eos", *options, prompt=PROMPT, tokens=40)
                    self.assertEqual(answer["ids"], plain["ids"])
                    auto = self.generate("-d", drafters, "--ignore-eos", *options, prompt=PROMPT, tokens=40)
                    self.assertEqual(auto["ids"], plain["ids"])
                    self.assertGreaterEqual(auto["stats"]["wanted"], auto["stats"]["guesses"])
                    self.assertEqual(answer["drafters"], drafters)
                    self.assertEqual(answer["stats"]["guesses"] > 0, drafters != "none")
                    self.assertEqual(answer["stats"]["draft_passes"] > 0, ".gguf" in drafters)

    def test_a_draft_head_of_another_model_or_in_the_wrong_place_is_refused(self):
        self.head("-o", "head.gguf")
        random_model.write(self.work / "wide.gguf", hidden=128, heads=4)
        self.assertIn("made for another model", self.refused("generate", "-m", "wide.gguf", "-d", "head(head.gguf)", "-p", "hello"))
        self.assertIn("inside a stage", self.refused("generate", "-m", self.model, "-d", "stage(target.gguf, head(head.gguf))", "-p", "hello"))
        self.assertIn("substitute", self.refused("generate", "-m", self.model, "-d", "stage(head.gguf, lookup)", "-p", "hello"))
        self.assertIn("drafter head(head.gguf)", self.refused("generate", "-m", "head.gguf", "-p", "hello"))
        tensors = {tensor["name"]: tensor for tensor in json.loads(self.run_well("inspect", "head.gguf", "--json")[0])["tensors"]}
        self.assertEqual(tensors["fc.weight"]["shape"], [3 * 96, 96])

    def test_shapes_of_trees_change_no_token(self):
        plain = self.generate("--plain", "--ignore-eos", prompt=PROMPT)["ids"]
        for shape in (["--nodes", 1], ["--nodes", 64, "--price", 0], ["--depth", 1], ["--nodes", 0]):
            self.assertEqual(self.generate(*shape, "--ignore-eos", prompt=PROMPT)["ids"], plain, shape)

    def test_a_model_that_drafts_for_itself_needs_half_the_passes(self):
        answer = self.generate("-d", "model(target.gguf)", "--policy", "fixed", "--ignore-eos", prompt=PROMPT, tokens=40)
        self.assertEqual(answer["ids"], self.generate("--plain", "--ignore-eos", prompt=PROMPT, tokens=40)["ids"])
        self.assertLessEqual(answer["stats"]["cycles"], 20)

    def test_a_draft_stops_where_its_learned_positions_end_and_the_target_goes_on(self):
        random_model.write(self.work / "short.gguf", "gpt2", context=48)
        options = ["--ignore-eos", "-c", 200, "--policy", "fixed", "--nodes", 5]
        answer = self.generate("-d", "model(short.gguf)", *options, prompt=PROMPT, tokens=60)
        self.assertEqual(answer["ids"], self.generate("--plain", *options, prompt=PROMPT, tokens=60)["ids"])
        self.assertLess(answer["stats"]["guesses"], 8 * 48)

    def test_a_draft_with_another_vocabulary_is_refused_with_the_reason(self):
        random_model.write(self.work / "other.gguf", merges=100)
        said = self.refused("generate", "-m", self.model, "-p", "it", "-d", "model(other.gguf)")
        self.assertIn("other.gguf", said)
        self.assertRegex(said, "359.*379|379.*359")

    def test_ngrams_of_another_vocabulary_are_refused_with_the_reason(self):
        random_model.write(self.work / "another.gguf", merges=100)
        self.run_well("ngram", "build", "-m", "another.gguf", "-o", "another.ngram", "text.txt")
        said = self.refused("generate", "-m", self.model, "-p", "it", "-d", "ngram(another.ngram)")
        self.assertRegex(said, "another.ngram.*vocabulary")

    def test_a_rejection_sampled_answer_is_one_too(self):
        answer = self.generate("--acceptance", "rejection", "--temp", 1, "--ignore-eos", prompt=PROMPT)
        self.assertEqual(len(answer["ids"]), 24)


class Bench(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lines = [{"prompt": PROMPT}, {"turns": ["Call me Ishmael. Call me", "x"]}]
        (cls.work / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def test_decode_compares_the_texts_of_two_prompts(self):
        out, said = self.run_well("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", "-n", 12, "--ignore-eos", "-t", 1,
                                  "--modes", "greedy,top-k,asked", "--temp", 0.5, "--json", "figures.json", "-d", "lookup",
                                  "-d", "itself: model(target.gguf)", "--policies", "fixed:8,auto")
        self.assertEqual([line.split()[-1] for line in out.splitlines()[4:]], ["2/2"] * 15)
        self.assertEqual(said, "")
        figures = json.loads((self.work / "figures.json").read_text())
        self.assertEqual([mode["mode"] for mode in figures["modes"]], ["greedy", "top-k 50, T=1", "as asked"])
        for mode in figures["modes"]:
            self.assertEqual([side["name"] for side in mode["sides"]], ["plain", "lookup fixed:8", "lookup auto", "itself fixed:8", "itself auto"])
            for side in mode["sides"]:
                self.assertEqual((side["same_text"], side["stats"]["tokens"]), (2, 24))
        self.assertLess(figures["modes"][0]["sides"][3]["stats"]["cycles"], 24)
        for policy, problem in (("fast", 'there is no policy "fast"'), ("fixed:x", "a whole number"), ("fixed:300", "speculation.nodes = 300")):
            self.assertIn(problem, self.refused("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", "--policies", policy))

    def test_ctrl_c_ends_it_with_130_and_writes_no_figures(self):
        run = self.start("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", "-t", 1, "-c", 100000, "-n", 100000, "--ignore-eos",
                         "--json", "stopped.json")
        while not run.stdout.readline().rstrip().endswith(b"same text"):
            pass
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=program.TIMEOUT)
        self.assertEqual((run.returncode, said), (130, b"[stopped; a mode that was not finished is not shown]\n"))
        self.assertFalse((self.work / "stopped.json").exists())

    def test_limit_and_chat_and_instruction_shape_the_prompts(self):
        def prompt_tokens(*arguments):
            self.run_well("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", "-n", 1, "-t", 1, "--json", "f.json", *arguments)
            mode = json.loads((self.work / "f.json").read_text())["modes"][0]
            return mode["prompts"], mode["sides"][0]["stats"]["prompt_tokens"]
        count, tokens = prompt_tokens("--limit", 1)
        self.assertEqual((count, tokens), (1, len(self.generate(prompt=PROMPT, tokens=1)["prompt_ids"])))
        self.assertEqual(prompt_tokens("--limit", 1, "--chat")[1], len(self.generate("--chat", prompt=PROMPT, tokens=1)["prompt_ids"]))
        self.assertEqual(prompt_tokens("--limit", 1, "--instruction", "Say {} now")[1],
                         len(self.generate(prompt=f"Say {PROMPT} now", tokens=1)["prompt_ids"]))


if __name__ == "__main__":
    program.main()
