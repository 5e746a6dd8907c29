"""coppice bench adaptive: on a small random model, with a slice of it as the draft. No test here looks at a clock."""

import json
import signal
import subprocess
import sys

import program

CONFIG = {
    "files": {"draft": "draft.gguf", "gone": "nodraft.gguf"},
    "methods": {
        "DSD": {"drafters": "model(\"{draft}\")", "nodes": 4, "depth": 4, "width": 1, "price": 0, "pass_price": 0},
        "auto": {"drafters": "lookup", "policy": "auto"},
        "lost file": {"drafters": "model(\"{gone}\")"},
        "lost policy": {"drafters": "lookup", "policy": "fixd"},
    },
    "full": "DSD", "fixed": {"lookup, 2 nodes": {"drafters": "lookup", "nodes": 2}},
    "ablations": {"one guess": {"of": "DSD", "drafters": "model(\"{draft}\")", "nodes": 1, "price": 0, "pass_price": 0}},
}
SPEC = [("writing", "it was"), ("qa", "the old"), ("summarization", "and then the slow"), ("writing", "so he"), ("rag", "who was")]


class Adaptive(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.write("adaptive.json", json.dumps(CONFIG))
        cls.lines("HumanEval.jsonl", [{"task_id": f"HumanEval/{i}", "prompt": f"the {word} brown\n"} for i, word in enumerate(("quick", "slow", "old"))])
        (cls.work / "data").mkdir()
        cls.lines("data/gsm8k_train.jsonl", [{"question": f"q{i}", "answer": f"#### {i}"} for i in range(6)])
        cls.lines("data/gsm8k_test_dev.jsonl", [{"question": f"how many {i}", "answer": "#### 7"} for i in range(4)])
        cls.lines("data/spec_bench_dev.jsonl", [{"question_id": i, "category": c, "turns": [text, "and"]} for i, (c, text) in enumerate(SPEC)])
        run = cls.run_bytes("slice", "target.gguf", "-o", "draft.gguf", "--layers", 1)
        assert run.returncode == 0, run.stderr

    @classmethod
    def write(cls, name, text):
        (cls.work / name).write_text(text)

    @classmethod
    def lines(cls, name, objects):
        cls.write(name, "".join(json.dumps(o) + "\n" for o in objects))

    def arguments(self, *more, config="adaptive.json", humaneval="HumanEval.jsonl"):
        return ["bench", "adaptive", "-m", self.model, "-t", 1, "--data", "data", "--humaneval", humaneval, "--config", config, "--tokens", 20, "--length-tokens", 40, *more]

    def results(self, *more, name="out.json", config="adaptive.json"):
        for old in (name, name + ".journal"):
            (self.work / old).unlink(missing_ok=True)
        out, said = self.run_well(*self.arguments("--json", name, *more, config=config))
        return json.loads((self.work / name).read_text()), out, said

    def test_every_method_answers_every_task_in_every_round(self):
        report, out, said = self.results("--parts", "tasks,categories", "--prompts", 2, "--rounds", 2)
        self.assertIn("[lost file is left out: there is no file nodraft.gguf]", said)
        self.assertRegex(said, r"\[lost policy is left out: .*there is no policy")
        self.assertEqual(sorted(report["left_out"]), ["lost file", "lost policy"])
        work = [(r["set"], r["category"], r["round"]) for r in report["records"]]
        self.assertEqual(work[:len(work) // 2], [(s, c, 0) for s, c, _ in work[:len(work) // 2]])  # a round after the other
        for (set_, category), count in {("gsm8k", ""): 2, ("humaneval", ""): 2, ("spec-bench", "writing"): 2, ("spec-bench", "qa"): 1, ("spec-bench", "summarization"): 1, ("spec-bench", "rag"): 1}.items():
            self.assertEqual(work.count((set_, category, 1)), count, category)
        measured = [r for r in report["records"] if "modes" in r]
        self.assertGreater(len(measured), 8)
        for record in measured:
            self.assertEqual(list(record["modes"]), ["plain", "DSD", "auto"] + (["lookup, 2 nodes"] if record["set"] == "spec-bench" else []))
            for mode in record["modes"].values():
                self.assertTrue(mode["same"])
                self.assertEqual(mode["tokens"], record["tokens"])
                decode, draft, verify, sample, policy, prefill, latency, first = mode["seconds"][0]
                self.assertLess(first, latency)
                self.assertLessEqual(decode + prefill, latency)
                self.assertEqual([n for n, _ in mode["marks"]], [16] if record["tokens"] >= 16 else [])
            self.assertEqual(record["modes"]["plain"]["cycles"], record["tokens"])
            self.assertGreater(record["modes"]["DSD"]["draft_bytes"], 0)
        for part in ("main: gsm8k, greedy", "main: spec-bench, writing, greedy", "tokens/pass", "100%"):
            self.assertIn(part, out)

    def test_gsm8k_has_five_shots_and_conversations_their_template(self):
        report, *_ = self.results("--parts", "tasks", "--prompts", 1)
        prompts = {r["set"]: r["prompt_tokens"] for r in report["records"]}
        shots = "".join(f"Question: q{i}\nAnswer: #### {i}\n\n" for i in range(5)) + "Question: how many 0\nAnswer:"
        ids, _ = self.run_well("tokenize", "-m", self.model, "--ids", shots)
        self.assertEqual(prompts["gsm8k"], len(ids.split()))
        self.assertEqual({r["category"] for r in report["records"]}, {"", "writing", "summarization"})

    def test_what_a_policy_decided_is_kept(self):
        self.write("rules.json", json.dumps({"files": CONFIG["files"], "methods": {"adaptive": {"drafters": "model(\"{draft}\")", "policy": "adaptive-paper(tau=0.1)"}}}))
        report, *_ = self.results("--parts", "tasks", "--prompts", 1, config="rules.json")
        measured = [r["modes"] for r in report["records"] if "modes" in r]
        self.assertGreater(len(measured), 1)
        for modes in measured:
            analyser = modes["adaptive"]["analyser"]
            self.assertEqual(analyser["tau"], 0.1)
            self.assertEqual(analyser["led"], analyser["confidence"] >= 0.1)
            self.assertEqual(modes["adaptive"]["rules"]["draft_led" if analyser["led"] else "target_only"], 1)
            self.assertNotIn("rules", modes["plain"])

    def test_long_answers_and_ablations(self):
        report, *_ = self.results("--parts", "lengths,ablations", "--ablation-prompts", 1)
        groups = {}
        for record in report["records"]:
            groups.setdefault(record["group"], []).append(record)
        self.assertEqual([r["category"] for r in groups["lengths"]], ["writing"])
        self.assertGreater(max(r["tokens"] for r in groups["lengths"]), 20)
        self.assertEqual([list(r["modes"]) for r in groups["ablations"] if "modes" in r][0], ["plain", "DSD", "one guess"])
        self.assertEqual(len(groups["ablations"]), 4)  # one of each task

    def test_methods_can_be_chosen(self):
        report, *_ = self.results("--parts", "tasks", "--prompts", 1, "--methods", "auto", "--samplings", "greedy,top-k")
        self.assertEqual({tuple(r["modes"]) for r in report["records"] if "modes" in r}, {("plain", "auto")})
        self.assertEqual({r["sampling"] for r in report["records"]}, {"greedy", "top-k"})

    def test_what_is_finished_is_not_measured_again_and_more_rounds_go_on(self):
        arguments = ("--parts", "tasks", "--prompts", 1)
        first, *_ = self.results(*arguments)
        journal = self.work / "out.json.journal"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:2]) + lines[2][:40])  # killed while it wrote
        _, said = self.run_well(*self.arguments("--json", "out.json", *arguments, "--rounds", 2))
        self.assertIn("[1 of 8 are there already]", said)
        again = json.loads((self.work / "out.json").read_text())
        self.assertEqual(again["records"][0], first["records"][0])  # its seconds too
        self.assertRegex(self.refused(*self.arguments("--json", "out.json", *arguments, "--seed", 7)), "out.json.journal was begun with another seed")

    def test_control_c_keeps_what_is_finished(self):
        run = self.start(*self.arguments("--json", "stopped.json", "--rounds", 1000))
        try:
            run.wait(timeout=1)
        except subprocess.TimeoutExpired:
            pass
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 130, said)
        self.assertIn(b"[stopped; the same command goes on]\n", said)
        self.assertFalse((self.work / "stopped.json").exists())

    def test_recorded_cycles_are_replayed_with_models_of_other_shapes(self):
        self.results("--prompts", 1, "--parts", "tasks", name="recorded.json")
        for name, layers in (("large.gguf", 3), ("small.gguf", 1)):
            self.run_well("random-model", "-o", name, "--hidden", 96, "--layers", layers, "--heads", 3, "--feed-forward", 128)
        self.run_well("bench", "adaptive", "--replay", "recorded.json", "-m", "large.gguf", "--draft", "small.gguf", "-t", 1, "-c", 40, "--json", "replayed.json")
        replayed = json.loads((self.work / "replayed.json").read_text())
        self.assertEqual((replayed["bench"], [m["name"] for m in replayed["modes"]]), ("adaptive-replay", ["DSD"]))
        self.page("recorded.json", "--replay", "replayed.json")

    def page(self, *arguments):
        report = program.ROOT / "bench" / "adaptive" / "report.py"
        run = subprocess.run([sys.executable, str(report), *arguments, "-o", "docs/adaptive.md"], cwd=self.work, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return (self.work / "docs" / "adaptive.md").read_text()

    def test_a_page_is_made_of_the_results(self):
        self.results("--prompts", 2, name="page.json")
        page = self.page("page.json")
        for part in ("## Spec-Bench, greedy", "left out: lost file", "| lookup, 2 nodes | `lookup` |", "## Ablations", "## Speed-up by length", "| auto: not under plain | writing, greedy"):
            self.assertIn(part, page)

    def test_a_missing_file_is_named_with_where_it_comes_from(self):
        for name, says in (("gsm8k_train.jsonl", "train.jsonl of github.com/openai/grade-school-math, SHA-256 17f347dc"), ("gsm8k_test_dev.jsonl", "first 500 lines .*, SHA-256 903eb73d"),
                           ("spec_bench_dev.jsonl", "hemingkx/Spec-Bench, SHA-256 e4a34dc3")):
            path = self.work / "data" / name
            path.rename(self.work / "away")
            try:
                self.assertRegex(self.refused(*self.arguments()), f"there is no file data/{name}; .*{says}")
            finally:
                (self.work / "away").rename(path)
        self.assertRegex(self.refused(*self.arguments(humaneval="no.jsonl")), "there is no file no.jsonl; .*openai/human-eval.*SHA-256 1d49078b")

    def test_what_a_person_can_get_wrong(self):
        for name, text, says in (("a", "no json", "a.json is no JSON"), ("b", "{}", 'b.json: an object with "methods" is wanted'), ("c", '{"methods": {"x": {}}}', 'c.json: mode "x": "drafters" must be'),
                                 ("d", '{"methods": {"x": {"drafters": "lookup", "policy": 7}}}', 'mode "x": "policy" must be a text'), ("e", '{"methods": {"x": {"drafters": "lookup"}}, "full": "y"}', '"full" names no method: "y"'),
                                 ("f", '{"methods": {"x": {"drafters": "lookup"}}, "ablations": {"z": {"drafters": "lookup", "of": "y"}}}', 'ablation "z": "of" names no method: "y"'),
                                 ("g", '{"methods": {"x": {"drafters": "lookup"}}, "fixed": {"x": {"drafters": "lookup"}}}', '"fixed": there is a method "x" already'),
                                 ("h", '{"methods": {"x": {"drafters": "lokup"}}}', 'mode "x": there is no drafter `lokup`'), ("i", '{"methods": {"plain": {"drafters": "lookup"}}}', '"plain" is always measured')):
            self.write(f"{name}.json", text)
            self.assertRegex(self.refused(*self.arguments(config=f"{name}.json")), says)
        for more, says in ((["--methods", "nothing"], "--methods nothing: adaptive.json has none"), (["--methods", "lost file"], "--methods lost file: there is no file nodraft.gguf"),
                           (["--parts", "all"], "--parts all: there is tasks"), (["--samplings", "hot"], "--samplings hot"), (["--rounds", 0], "--rounds"), (["--replay", "adaptive.json"], "--replay needs --draft FILE"),
                           (["--json", "HumanEval.jsonl"], "would replace"), (["-c", 30], "gsm8k line 1: prompt 1 has \\d+ tokens; the context of 30 cannot hold it")):
            self.assertRegex(self.refused(*self.arguments(*more)), says)
        self.assertRegex(self.refused("bench", "adaptive", "-m", self.model), "--data DIR .* and --humaneval FILE")


if __name__ == "__main__":
    program.main()
