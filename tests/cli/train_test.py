"""coppice train: priors of mixers and n-grams, made of text that a model wrote."""

import json
import re
import signal
import time

import program

EVERYTHING = "lookup | ngram(own.ngram)"


def ids(answer):
    return [token["id"] for token in answer["tokens"]]


class Train(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # What a model wrote: greedy texts, and sampled ones whose noise is known.
        cls.write_texts("greedy.jsonl", 24, {"temperature": 0})
        cls.write_texts("sampled.jsonl", 24, {"temperature": 0.7, "top_k": 40, "seed": 5})
        cls.run_bytes("ngram", "build", "-m", cls.model, "-o", "own.ngram", "greedy.jsonl", "sampled.jsonl")

    @classmethod
    def write_texts(cls, name, count, drawing):
        """Periodic texts: each repeats five tokens with a break now and then, so that lookup has something to say."""
        lines = []
        for i in range(count):
            ids = [260 + (j % 5) + 7 * (i % 3) if (i + j) % 11 else 300 + i % 7 for j in range(70)]
            lines.append(json.dumps({"ids": ids, "start": 6, "stream": i, **drawing}))
        (cls.work / name).write_text("\n".join(lines))

    def mixer(self, *arguments, drafters=EVERYTHING, texts=("greedy.jsonl", "sampled.jsonl"), out="own.mixer"):
        return self.run_well("train", "mixer", "-m", self.model, "-t", 1, "--texts", *texts, "--drafters", drafters, "-o", out,
                             *arguments)[0]

    def says(self, *arguments):
        run = self.run_bytes("train", *arguments)
        self.assertEqual(run.returncode, 2)
        return run.stderr.decode()

    def test_a_prior_for_any_mix_is_fitted_judged_and_used(self):
        out = self.mixer()
        self.assertIn(f"own.mixer: `{EVERYTHING}`, fitted on", out)
        for mode in ("greedy", "sampled"):
            before, fitted = re.search(rf"^{mode}, .*\n  before   log-loss ([0-9.]+) .*\n  fitted   log-loss ([0-9.]+) ", out, re.M).groups()
            self.assertLess(float(fitted), float(before))
        plain = self.generate("--plain", tokens=30)
        fitted = self.generate("-d", EVERYTHING, "--prior", "own.mixer", tokens=30)
        self.assertEqual(ids(plain), ids(fitted))

    def test_a_file_keeps_its_other_mixes(self):
        self.mixer(drafters="lookup", out="two.mixer")
        self.mixer(drafters="ngram(own.ngram)", out="two.mixer")
        first = (self.work / "two.mixer").read_text()
        self.assertEqual(first.count("\nmix "), 2)
        self.mixer("--seed", 9, drafters="lookup", out="two.mixer")
        again = (self.work / "two.mixer").read_text()
        self.assertEqual(again.count("\nmix "), 2)
        self.assertNotEqual(again, first)
        self.assertEqual(again[again.index("mix ngram"):], first[first.index("mix ngram"):])

    def test_the_same_texts_and_seed_give_the_same_file(self):
        self.mixer(out="a.mixer")
        self.mixer(out="b.mixer")
        self.assertEqual((self.work / "a.mixer").read_bytes(), (self.work / "b.mixer").read_bytes())

    def test_models_in_the_mix_run_along_the_text(self):
        self.run_well("slice", "target.gguf", "-o", "half.gguf", "--layers", 1)
        out = self.mixer("--tokens", 300, "--judged", 200, drafters="model(half.gguf) | lookup", out="model.mixer")
        self.assertIn("model.mixer: `model(half.gguf) | lookup`", out)
        mixed = self.generate("-d", "model(half.gguf) | lookup", "--prior", "model.mixer", tokens=20)
        self.assertEqual(ids(mixed), ids(self.generate("--plain", tokens=20)))

    def test_a_head_is_shown_the_targets_states_along_the_text(self):
        self.run_well("random-model", "--head-for", "target.gguf", "-o", "head.gguf")
        self.mixer("--tokens", 300, "--judged", 100, drafters="head(head.gguf) | lookup", out="head.mixer")
        lines = (self.work / "head.mixer").read_text().splitlines()
        head, lookup = lines[1].split()[1:]
        self.assertTrue(head.startswith("head:") and lookup.startswith("lookup:"), lines[1])
        own, features = int(lines[3].split()[1]), int(head.split(":")[1])
        for mode in ("greedy", "sampled"):
            said = [line.split()[2 + own:2 + own + features] for line in lines if line.startswith(f"{mode} ")]
            self.assertTrue(any(float(weight) for row in said for weight in row), "nothing was learned about the head")
        plain = self.generate("--plain", tokens=20)
        for mix in ("head(head.gguf) | lookup", "lookup | head(head.gguf)"):
            self.assertEqual(ids(self.generate("-d", mix, "--prior", "head.mixer", tokens=20)), ids(plain))

    def test_ngrams_can_be_counted_anew_on_half_of_the_texts(self):
        self.assertIn("recount.mixer", self.mixer("--recount", out="recount.mixer"))

    def test_what_is_wrong_is_said(self):
        self.assertIn("nowhere.jsonl", self.says("mixer", "-m", self.model, "--texts", "nowhere.jsonl", "--drafters", "lookup", "-o", "x.mixer"))
        self.assertIn("say what to learn from", self.says("mixer", "-m", self.model, "--drafters", "lookup", "-o", "x.mixer"))
        self.assertIn("has no drafters", self.says("mixer", "-m", self.model, "--texts", "greedy.jsonl", "--drafters", "none", "-o", "x.mixer"))
        self.assertIn("held_out", self.says("mixer", "-m", self.model, "--texts", "greedy.jsonl", "--drafters", "lookup", "-o", "x.mixer", "--held-out", 0.9))
        (self.work / "letter.txt").write_text("hello\n")
        self.assertIn("not a mixer prior", self.says("mixer", "-m", self.model, "--texts", "greedy.jsonl", "--drafters", "lookup", "-o", "letter.txt"))
        (self.work / "bad.jsonl").write_text('{"ids": [1, 2, 3], "temperature": "hot"}')
        self.assertIn('bad.jsonl, line 1: "temperature" should be a number',
                      self.says("mixer", "-m", self.model, "--texts", "bad.jsonl", "--drafters", "lookup", "-o", "x.mixer"))
        self.assertFalse((self.work / "x.mixer").exists())

    def test_ngrams_of_the_size_that_pays(self):
        out = self.run_well("train", "ngram", "-m", self.model, "-o", "pays.ngram", "greedy.jsonl", "sampled.jsonl", "--orders", "2,3",
                            "--least-counts", "1,2", "--plot", "growth.svg", "--held-out", 0.2)[0]
        rows = re.findall(r"^ +([23]) +[0-9,]+ +[0-9]+ +([0-9.]+) +([0-9.]+) +[0-9.]+ +[0-9.]+  (chosen)?$", out, re.M)
        self.assertEqual(len(rows), 4 + 5)
        trials = rows[:4]
        best = max(float(row[2]) for row in trials)
        chosen = [row for row in trials if row[3]]
        self.assertEqual(len(chosen), 1)
        self.assertGreaterEqual(float(chosen[0][2]), best * 0.994)
        self.assertIn("<svg", (self.work / "growth.svg").read_text())
        mixed = self.generate("-d", "ngram(pays.ngram)", tokens=20)
        self.assertEqual(ids(mixed), ids(self.generate("--plain", tokens=20)))

    def sampled(self, out, tokens, *arguments):
        return ["train", "ngram", "--from-model", "half.gguf", "--sample", tokens, "-t", 1, "-o", out, "--orders", "2,3", "--least-counts", "1",
                "--max-tokens", 40, "--slots", 4, "--nodes", 4, *arguments]

    def test_ngrams_of_what_a_draft_writes(self):
        (self.work / "asked.jsonl").write_text("".join(json.dumps({"user": f"say {i}"}) + "\n" for i in range(7)))
        self.run_well("slice", "target.gguf", "-o", "half.gguf", "--layers", 1)
        for name, more in (("asked", ["--prompts", "asked.jsonl"]), ("free", [])):
            out, said = self.run_well(*self.sampled(f"{name}.ngram", 4000, *more))
            self.assertIn(f"{name}.ngram.texts: ", said)
            counted = int(re.search(rf"^{name}\.ngram: ([0-9]+) tokens of", out, re.M).group(1))
            self.assertGreaterEqual(counted, 4000)
            self.assertLess(counted, 4000 + 4 * 40 + 4 * 160)
            header, *rows = [line.split(",") for line in (self.work / f"{name}.ngram.csv").read_text().split()]
            self.assertEqual(header[:3], ["tokens", "bytes", "tokens_per_pass"])
            tokens = [int(row[0]) for row in rows]
            self.assertEqual(len(tokens), 5)
            for part, seen in zip((16, 8, 4, 2, 1), tokens):
                self.assertAlmostEqual(seen / tokens[-1], 1 / part, delta=0.6 / part)
            self.assertTrue(all(float(row[2]) >= 1 for row in rows))
            self.assertIn("<svg", (self.work / f"{name}.ngram.svg").read_text())
            drafts = f"stage(half.gguf, ngram({name}.ngram))"
            self.assertEqual(ids(self.generate("-d", drafts, tokens=20)), ids(self.generate("--plain", tokens=20)))
        # What is there is not written again, and more of it is.
        _, said = self.run_well(*self.sampled("free.ngram", 4000))
        self.assertIn("this run 0 tokens", said)
        out, _ = self.run_well(*self.sampled("free.ngram", 6000))
        self.assertGreaterEqual(int(re.search(r"^free\.ngram: ([0-9]+) tokens of", out, re.M).group(1)), 6000)

    def test_sampling_stops_and_goes_on(self):
        self.run_well("slice", "target.gguf", "-o", "half.gguf", "--layers", 1)
        run = self.start(*self.sampled("long.ngram", 10**8))
        folder = self.work / "long.ngram.texts"
        for _ in range(600):
            if (folder / "corpus.json").exists():
                break
            time.sleep(0.05)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 130, said)
        self.assertIn(b"the same command goes on", said)
        self.assertFalse((self.work / "long.ngram").exists())
        there = int(re.search(r"texts, ([0-9]+) tokens; this run", said.decode()).group(1))
        self.assertGreater(there, 0)
        _, said = self.run_well(*self.sampled("long.ngram", 1))
        self.assertIn(f" {there} tokens; this run 0 tokens", said)

    def test_sampling_says_what_is_wrong(self):
        self.assertIn("--from-model", self.says("ngram", "-m", self.model, "-o", "x.ngram"))
        self.assertIn("--from-model", self.says("ngram", "--from-model", self.model, "-o", "x.ngram", "greedy.jsonl"))
        self.assertIn("nowhere.gguf", self.says("ngram", "--from-model", "nowhere.gguf", "-o", "x.ngram"))
        self.assertIn("tokens = 0", self.says("ngram", "--from-model", self.model, "-o", "x.ngram", "--sample", 0))
        self.assertIn("--temperatures hot", self.says("ngram", "--from-model", self.model, "-o", "x.ngram", "--temperatures", "hot"))
        self.assertFalse((self.work / "x.ngram").exists())

    def test_ctrl_c_leaves_no_file(self):
        run = self.start("train", "mixer", "-m", self.model, "--texts", *["greedy.jsonl"] * 60, "--drafters", EVERYTHING, "-o", "stopped.mixer",
                         "--tokens", 10**9, "--judged", 10**9)
        try:
            run.wait(0.4)
        except program.subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), 130)
        run.stdout.close()
        run.stderr.close()
        self.assertFalse((self.work / "stopped.mixer").exists())


if __name__ == "__main__":
    program.main()
