"""coppice bench staged: on a small random model, with a slice of it as the draft. No test here looks at a clock."""

import json
import signal
import subprocess
import sys

import program

CONFIG = {
    "files": {"draft": "draft.gguf", "ngram": "text.ngram", "head": "nohead.gguf"},
    "modes": {
        "lookup": {"drafters": "lookup", "greedy": {"nodes": 3}},
        "n-gram": {"drafters": "ngram(\"{ngram}\")"},
        "draft chain": {"drafters": "model(\"{draft}\")", "width": 1, "price": 0, "nodes": 4},
        "draft tree": {"drafters": "model(\"{draft}\")", "price": 0},
        "staged tree": {"drafters": "stage(\"{draft}\", lookup)", "price": 0},
        "head tree": {"drafters": "model(\"{head}\")"},
        "all mixed": {"drafters": "model(\"{draft}\") | lookup | ngram(\"{ngram}\")"},
    },
    "mixed": "all mixed", "alone": ["draft tree"], "unstaged": {"staged tree": "draft tree"},
    "draft_sizes": {"1": "model(\"{draft}\")"},
}
THERE = ["plain", "lookup", "n-gram", "draft chain", "draft tree", "staged tree", "all mixed"]


class Staged(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.write("staged.json", json.dumps(CONFIG))
        prompts = [{"task_id": f"HumanEval/{i}", "prompt": f"the {word} brown\n"} for i, word in enumerate(("quick", "slow", "old"))]
        cls.write("prompts.jsonl", "".join(json.dumps(p) + "\n" for p in prompts))
        cls.write("spec_bench_dev.jsonl", '{"question_id": 7, "turns": ["it was", "and then"]}\n')
        cls.write("text.txt", program.random_model.TEXT)
        for command in (["slice", "target.gguf", "-o", "draft.gguf", "--layers", 1], ["ngram", "build", "-m", "target.gguf", "text.txt", "-o", "text.ngram"]):
            run = cls.run_bytes(*command)
            assert run.returncode == 0, run.stderr

    @classmethod
    def write(cls, name, text):
        (cls.work / name).write_text(text)

    def arguments(self, *more, config="staged.json"):
        return ["bench", "staged", "-m", self.model, "-t", 1, "--humaneval", "prompts.jsonl", "--config", config, "--tokens", 20, *more]

    def results(self, *more, name="out.json", config="staged.json"):
        for old in (name, name + ".journal"):
            (self.work / old).unlink(missing_ok=True)
        out, said = self.run_well(*self.arguments("--json", name, *more, config=config))
        return json.loads((self.work / name).read_text()), out, said

    def test_everybody_writes_what_plain_decoding_writes(self):
        report, out, said = self.results("--prompts", 2, "--parts", "main", "--rounds", 2, "--texts", 1)
        self.assertIn("[head tree is left out: there is no file nohead.gguf]", said)
        self.assertEqual(report["left_out"], {"head tree": "there is no file nohead.gguf"})
        records = report["records"]
        self.assertEqual(sorted((r["prompt"], r["form"], r["sampling"]) for r in records),
                         sorted((f"HumanEval/{i}", f, s) for i in (0, 1) for f in ("chat", "raw") for s in ("greedy", "top-k")))
        measured = [r for r in records if "modes" in r]
        self.assertGreater(len(measured), 4)
        for record in measured:
            self.assertEqual(list(record["modes"]), THERE)
            self.assertLessEqual(8, record["tokens"])
            self.assertLessEqual(record["tokens"], record["drawn"])
            for counts in record["modes"].values():
                self.assertTrue(counts["same"])
                self.assertEqual(counts["tokens"], record["tokens"])
                self.assertEqual(len(counts["seconds"]), 2)
            self.assertEqual(record["modes"]["plain"]["cycles"], record["tokens"])
            self.assertGreater(record["modes"]["draft tree"]["draft_bytes"], 0)
            self.assertEqual("painted" in record, record["prompt"] == "HumanEval/0")
            for painted in record.get("painted", {}).values():
                self.assertEqual(len(painted["pieces"]), record["tokens"])
                self.assertEqual(sum(c[0] for c in painted["cycles"]), record["tokens"])
        for part in ("main: humaneval, chat, greedy", "all mixed", "bandwidth", "drafting"):
            self.assertIn(part, out)

    def test_a_chain_is_a_chain_and_budgets_are_those_of_the_config(self):
        report, *_ = self.results("--prompts", 1, "--parts", "main", "--forms", "chat", "--texts", 1, "--samplings", "greedy")
        record = report["records"][0]
        for mode, most in (("lookup", 3), ("draft chain", 4), ("draft tree", 8)):
            guesses = [c[1] for c in record["painted"][mode]["cycles"]]
            self.assertLessEqual(max(guesses), most, mode)
        chain = record["modes"]["draft chain"]
        self.assertEqual(chain["guesses"], sum(c[1] for c in record["painted"]["draft chain"]["cycles"]))

    def test_trees_of_fixed_size_and_sweeps(self):
        report, out, _ = self.results("--prompts", 1, "--parts", "trees,sweeps", "--data", ".", "--samplings", "greedy", "--sweep-prompts", 1)
        groups = {(r["group"], r["set"]): list(r["modes"]) for r in report["records"] if "modes" in r}
        trees = ["plain", "4 nodes", "8 nodes", "16 nodes", "64 nodes", "all mixed, agreement", "draft tree, agreement"]
        self.assertEqual(groups["trees", "humaneval"], trees)
        self.assertEqual(groups["trees", "spec-bench"], trees)
        self.assertEqual(groups["sweep width", "humaneval"], ["plain", "1", "2", "3", "4", "8", "16"])
        self.assertEqual(groups["sweep draft size", "humaneval"], ["plain", "1"])
        self.assertIn("trees: spec-bench, chat, greedy", out)

    def test_what_is_finished_is_not_measured_again(self):
        arguments = ("--prompts", 1, "--parts", "main", "--forms", "chat")
        first, *_ = self.results(*arguments)
        journal = self.work / "out.json.journal"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text(lines[0] + lines[1] + lines[2][:40])  # killed while it wrote
        _, said = self.run_well(*self.arguments("--json", "out.json", *arguments))
        self.assertIn("[1 of 2 are there already]", said)
        again = json.loads((self.work / "out.json").read_text())
        self.assertEqual(again["records"][0], first["records"][0])  # its seconds too
        self.assertEqual([r["text"] for r in again["records"]], [r["text"] for r in first["records"]])
        said = self.refused(*self.arguments("--json", "out.json", *arguments, "--seed", 7))
        self.assertRegex(said, "out.json.journal was begun with another seed; name another --json, or remove it")

    def test_control_c_keeps_what_is_finished(self):
        run = self.start(*self.arguments("--json", "stopped.json", "--rounds", 1000, "--parts", "main"))
        try:
            run.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 130, said)
        self.assertIn(b"[stopped; the same command goes on]\n", said)
        self.assertFalse((self.work / "stopped.json").exists())
        self.assertTrue((self.work / "stopped.json.journal").exists())

    def test_calibration_chooses_on_other_prompts_and_writes_the_config(self):
        self.write("mine.json", json.dumps({**CONFIG, "note": "kept"}))
        self.write("training.jsonl", '{"question": "it was the best of times"}\n')
        out, _ = self.run_well("bench", "staged", "-m", self.model, "-t", 1, "--calibrate", "training.jsonl", "--config", "mine.json", "--tokens", 16,
                               "--samplings", "greedy", "--modes", "lookup,draft chain")
        config = json.loads((self.work / "mine.json").read_text())
        self.assertEqual((config["note"], config["calibrated"]["prompts"], config["calibrated"]["answers"]), ("kept", "training.jsonl", 1))
        for mode in ("lookup", "draft chain"):
            tried = config["calibrated"]["tried"][mode]["greedy"]
            chosen = config["modes"][mode]["greedy"]
            self.assertIn(chosen, [{k: v for k, v in t.items() if k != "speed_up"} for t in tried])
            self.assertIn(mode, out)
        self.assertEqual(config["modes"]["draft chain"]["greedy"]["width"], 1)
        self.assertNotIn("greedy", config["modes"]["n-gram"])
        self.results("--prompts", 1, "--forms", "chat", "--parts", "main", config="mine.json")

    def test_recorded_cycles_are_replayed_with_models_of_other_shapes(self):
        report, *_ = self.results("--prompts", 1, "--texts", 1, "--parts", "main", "--samplings", "greedy", "--forms", "chat", name="recorded.json")
        for name, layers in (("large.gguf", 3), ("small.gguf", 1)):
            self.run_well("random-model", "-o", name, "--hidden", 96, "--layers", layers, "--heads", 3, "--feed-forward", 128)
        replay = ["bench", "staged", "--replay", "recorded.json", "-m", "large.gguf", "--draft", "small.gguf", "-t", 1, "-c", 40]
        out, _ = self.run_well(*replay, "--json", "replayed.json")
        replayed = json.loads((self.work / "replayed.json").read_text())
        self.assertEqual((replayed["bench"], replayed["context"], replayed["draft"]["path"]), ("staged-replay", 40, "small.gguf"))
        self.assertLess(replayed["draft"]["parameters"], replayed["target"]["parameters"])
        self.assertEqual([m["name"] for m in replayed["modes"]], ["draft chain", "draft tree", "staged tree", "all mixed"])  # those with a draft
        for mode in replayed["modes"]:
            counts = report["records"][0]["modes"][mode["name"]]
            self.assertAlmostEqual(mode["tokens_per_pass"], counts["tokens"] / counts["cycles"])
            self.assertIn(mode["name"], out)
        self.assertRegex(self.refused(*replay[:6], "-t", 1), "--replay needs --draft FILE")
        self.write("bad.json", '{"records": [{"painted": {"x": {"cycles": [[1, 2]]}}}]}')
        for name, says in (("bad.json", "bad.json: the recording of x has no cycles"), ("staged.json", "staged.json is nothing that")):
            self.assertRegex(self.refused("bench", "staged", "--replay", name, "-m", "large.gguf", "--draft", "small.gguf"), says)

    def test_a_page_is_made_of_the_results(self):
        self.results("--prompts", 2, "--texts", 1, "--parts", "main,trees,sweeps", "--sweep-prompts", 1, name="page.json")
        report = program.ROOT / "bench" / "staged" / "report.py"
        run = subprocess.run([sys.executable, str(report), "page.json", "-o", "docs/staged.md"], cwd=self.work, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        page = (self.work / "docs" / "staged.md").read_text()
        for part in ("## Bars", "| staged tree | 8 nodes, price 0 |", "left out: head tree", "(exploratory", "as in the config; not calibrated"):
            self.assertIn(part, page)
        self.assertTrue((self.work / "docs" / "staged" / "texts.html").exists())

    def test_what_a_person_can_get_wrong(self):
        for name, text, says in (("a", "no json", "a.json is no JSON"), ("b", "{}", "b.json: an object with \"modes\" is wanted"),
                                 ("c", '{"modes": {"x": {}}}', 'c.json: mode "x": "drafters" must be'),
                                 ("d", '{"modes": {"x": {"drafters": "ngram(\\"{no}\\")"}}}', '"files" says nothing of {no}'),
                                 ("e", '{"modes": {"x": {"drafters": "lookup", "greedy": {"nodes": 65}}}}', 'mode "x": nodes = 65; 1 to 64'),
                                 ("f", '{"modes": {"x": {"drafters": "lookup", "width": 0}}}', 'mode "x": speculation.width = 0'),
                                 ("g", '{"modes": {"x": {"drafters": "lookup", "price": "low"}}}', 'mode "x": price = "low" must be a number'),
                                 ("n", '{"modes": {"x": {"drafters": "lookup", "nodes": 4.5}}}', 'mode "x": nodes = 4.5 must be a whole number'),
                                 ("o", '{"modes": {"x": {"drafters": "lookup", "nodes": 1e30}}}', 'mode "x": nodes = 1e\\+30 must be a whole number'),
                                 ("p", '{"modes": {"x": {"drafters": "lookup", "policy": "fast"}}}', 'mode "x": .*fast'),
                                 ("q", '{"modes": {"x": {"drafters": "lookup", "policy": 3}}}', 'mode "x": "policy" must be a text'),
                                 ("h", '{"modes": {"x": {"drafters": "lookup"}}, "mixed": "y"}', '"mixed" names no mode: "y"'),
                                 ("i", '{"modes": {"x": {"drafters": "lokup"}}}', 'mode "x": there is no drafter `lokup`'),
                                 ("j", '{"modes": {"plain": {"drafters": "lookup"}}}', '"plain" is always measured')):
            self.write(f"{name}.json", text)
            self.assertRegex(self.refused(*self.arguments(config=f"{name}.json")), says)
        for more, says in ((["--modes", "lookup,nothing"], "--modes nothing: there is lookup, n-gram"), (["--modes", "head tree"], "--modes head tree: there is no file nohead.gguf"),
                           (["--forms", "prose"], "--forms prose: there is chat, raw"), (["--samplings", "hot"], "--samplings hot"),
                           (["--parts", "all"], "--parts all"), (["--data", "nofolder"], "cannot read nofolder/spec_bench_dev.jsonl"),
                           (["--calibrate", "prompts.jsonl"], "say one of --humaneval FILE"), (["--json", "prompts.jsonl"], "would replace"),
                           (["-c", 8], "HumanEval/0: prompt 1 has \\d+ tokens; the context of 8 cannot hold it")):
            self.assertRegex(self.refused(*self.arguments(*more)), says)


if __name__ == "__main__":
    program.main()
