"""coppice train gate, tau: what the policy `adaptive` decides by, fitted on text that a model wrote and on a person's prompts."""

import json
import re
import signal

import gguf

import program


class FitPolicy(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_slimmable_pair()
        lines = [json.dumps({"ids": [(7 * i + j * j) % 200 + 3 for j in range(60)], "start": 6}) for i in range(30)]
        (cls.work / "texts.jsonl").write_text("\n".join(lines))
        (cls.work / "prompts.jsonl").write_text("".join(json.dumps({"user": text}) + "\n" for text in ("to be or not", "what is a tree", "0 1 0 1 0 1", "it was the age of wisdom")))

    def gate(self, *arguments, out="own.gate", texts="texts.jsonl", model="small.gguf", draft="slim.gguf", epochs=2):
        return ["train", "gate", "-m", model, "--draft", draft, "--texts", texts, "-o", out, "-t", 1, "--epochs", epochs, "--reject", 0, *arguments]

    def tau(self, *arguments, drafters="model(slim.gguf) | lookup", prompts="prompts.jsonl", rounds=1):
        return ["train", "tau", "-m", "small.gguf", "-d", drafters, "--prompts", prompts, "-o", "own.tau", "-t", 1, "-n", 8, "--rounds", rounds,
                "-c", 256, *arguments]

    def test_a_gate_is_judged_against_constants_and_becomes_one_where_it_beats_none(self):
        report = json.loads(self.run_well(*self.gate("--json"))[0])
        names = [one["name"] for one in report["constants"]]
        self.assertEqual(names, ["0.5", "0.75", "1", "1.5", "exit"])
        passes = {one["name"]: one["pass"] for one in report["constants"]}
        self.assertEqual(passes["1.5"], 1)
        self.assertLess(passes["0.5"], passes["0.75"])
        self.assertLess(passes["exit"], passes["0.75"])
        self.assertEqual(report["whole"]["compute"], 1)
        shares = {one["name"]: one["share"] for one in report["constants"]}
        self.assertAlmostEqual(sum(shares.values()), 1)
        self.assertEqual(shares["0.5"], 0, "under 0.7 it is the exit")
        low, high = report["judgement"]["gain_95"]
        self.assertLessEqual(low, high)
        self.assertEqual(report["judgement"]["beats_constants"], low > 0)
        # Nothing that is random foresees a random draft.
        self.assertFalse(report["judgement"]["beats_constants"])
        reader = gguf.GGUFReader(self.work / "own.gate")
        keys = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        self.assertEqual(keys["general.architecture"], "coppice-gate")
        self.assertEqual((keys["coppice.gate.units"], keys["coppice.gate.target"], keys["coppice.gate.draft"]), (1, "small.gguf", "slim.gguf"))
        self.assertIn("coppice train gate -m small.gguf --draft slim.gguf --texts texts.jsonl", keys["coppice.gate.command"])
        self.assertRegex(keys["coppice.gate.target_hash"], r"\A[0-9a-f]{32}\Z")
        said = self.run_well(*self.gate())[0]
        self.assertRegex(said, r"own\.gate: NOT a learned gate but the constant alpha [0-9.]+: the learned one does not beat constants")

    def test_the_same_texts_and_seed_give_the_same_file(self):
        for name in ("a.gate", "b.gate"):
            self.run_well(*self.gate(out=name))
        a, b = ((self.work / name).read_bytes() for name in ("a.gate", "b.gate"))
        self.assertEqual(a.replace(b"a.gate", b"b.gate"), b)

    def test_what_is_wrong_with_a_gates_training_is_said(self):
        self.assertIn("has one width only", self.refused(*self.gate(draft="small.gguf")))
        self.assertIn("compute = 2", self.refused(*self.gate("--compute", 2)))
        self.assertIn("depth = 0", self.refused(*self.gate("--depth", 0)))
        self.assertIn("layer = 99", self.refused(*self.gate("--layer", 99)))
        self.assertIn("nowhere.jsonl", self.refused(*self.gate(texts="nowhere.jsonl", out="x.gate")))
        self.assertIn("cannot guess for this model", self.refused(*self.gate(model="target.gguf", out="x.gate")))
        (self.work / "one.jsonl").write_text(json.dumps({"ids": list(range(3, 40))}))
        self.assertIn("too few", self.refused(*self.gate(texts="one.jsonl", out="x.gate")))
        self.assertIn("slim.gguf", self.refused(*self.gate(out="slim.gguf")))
        self.assertIn("say what to learn from", self.refused("train", "gate", "-m", "small.gguf", "--draft", "slim.gguf", "-o", "x.gate"))
        self.assertFalse((self.work / "x.gate").exists())

    def test_ctrl_c_leaves_no_gate(self):
        run = self.start(*self.gate(epochs=10**7, out="stopped.gate"))
        try:
            run.wait(1)
        except program.subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(60), 130)
        run.stdout.close()
        run.stderr.close()
        self.assertFalse((self.work / "stopped.gate").exists())

    def test_tau_is_fitted_to_what_was_truly_faster(self):
        report = json.loads(self.run_well(*self.tau("--json"))[0])
        self.assertEqual(len(report["prompts"]), 4)
        self.assertEqual(sum(count for row in report["confusion"].values() for count in row.values()), 4)
        seconds = report["seconds"]
        self.assertLessEqual(seconds["by_tau"], min(seconds["always_plain"], seconds["always_drafting"]) + 1e-9)
        self.assertGreaterEqual(seconds["by_tau"], seconds["best"] - 1e-9)
        self.assertEqual(report["constant"], seconds["by_tau_of_the_others"] >= min(seconds["always_plain"], seconds["always_drafting"]))
        read = 0 if report["constant"] else 1
        by_tau = sum(prompt["drafting_seconds"] if prompt["confidence"] >= report["tau"] else prompt["plain_seconds"] + read * prompt["reading_seconds"] for prompt in report["prompts"])
        self.assertAlmostEqual(by_tau, seconds["by_tau"])
        for prompt in report["prompts"]:
            self.assertGreaterEqual(prompt["confidence"], 0)
            self.assertLess(prompt["confidence"], 1)
        text = (self.work / "own.tau").read_text()
        self.assertIn("# coppice train tau -m small.gguf --prompts prompts.jsonl; drafters: model(slim.gguf) | lookup, policy fixed", text)
        written = re.search(r"^tau = ([0-9.]+|off)$", text, re.M).group(1)
        self.assertAlmostEqual(0 if written == "off" else float(written), report["tau"], places=4)
        said = self.run_well(*self.tau())[0]
        for row in ("by tau", "always plain", "always drafting", "to be expected"):
            self.assertIn(row, said)

    def test_a_constant_is_written_where_no_threshold_is_better(self):
        # One prompt tells apart, the other way round for each: left out, every threshold is wrong.
        (self.work / "same.jsonl").write_text(json.dumps({"prompt": "to be or not to be"}) + "\n" + json.dumps({"prompt": "to be or not to be"}))
        report = json.loads(self.run_well(*self.tau("--json", "--analyse", "2,64", prompts="same.jsonl"))[0])
        self.assertTrue(report["constant"])
        self.assertIn(report["tau"], (0, 1))
        self.assertIn(report["analyse"], (2, 64))
        self.assertRegex((self.work / "own.tau").read_text(), r"No threshold was better[^#]*\ntau = (off|1\.0000)\nanalyse = ")

    def test_what_is_wrong_with_taus_training_is_said(self):
        self.assertIn("nobody there can say", self.refused(*self.tau(drafters="lookup")))
        self.assertIn("rounds = 0", self.refused(*self.tau(rounds=0)))
        self.assertIn("analyse = 0", self.refused(*self.tau("--analyse", "8,0")))
        self.assertIn("analyse = 5000: should be 1 to 4096", self.refused(*self.tau("--analyse", "8,5000")))
        (self.work / "one.jsonl").write_text(json.dumps({"prompt": "to be"}))
        self.assertIn("1 prompts", self.refused(*self.tau(prompts="one.jsonl")))
        (self.work / "bad.jsonl").write_text('{"question": 3}')
        self.assertIn("bad.jsonl line 1", self.refused(*self.tau(prompts="bad.jsonl")))


if __name__ == "__main__":
    program.main()
