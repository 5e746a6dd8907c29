"""Numbers and pages of bench/adaptive, on records made up here."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import answers  # first: it shows where bench/pages is

import analyser
import intervals
import quality
import report

CONFIG = {"methods": {"DSD": {"drafters": "model(a) | lookup", "nodes": 5, "depth": 5, "width": 1}, "MTV": {"drafters": "model(a)", "nodes": 15}, "adaptive-fitted": {"drafters": "model(a)", "policy": "adaptive-fitted"},
                      "auto": {"drafters": "lookup", "policy": "auto"}, "gone": {"drafters": "model(b)"}},
          "full": "DSD", "capacity": "fixed capacity", "analyser": {"led": "DSD"}, "fixed": {"mixed, 2 nodes": {"drafters": "lookup"}},
          "ablations": {"fixed capacity": {"of": "adaptive-fitted", "drafters": "model(a)", "policy": "adaptive-fitted(gate=off)"}}}


def method(took, cycles=64, tokens=128, guesses=0, read=0, prefill=0.1, same=True, **more):
    return {"tokens": tokens, "cycles": cycles, "guesses": guesses, "accepted": tokens - cycles, "draft_passes": 0, "target_bytes": 1000 * cycles, "draft_bytes": read, "reached_at_depth": [], "accepted_at_depth": [],
            "sources": [], "seconds": [[took, took / 4 if guesses else 0, took / 2, 0.001, 0.0001, prefill, took + prefill, prefill + 0.02]],
            "marks": [[n, prefill + took * n / tokens] for n in (16, 32, 64, 128) if n <= tokens], "reused": 0, "same": same, **more}


def record(prompt, set_="spec-bench", category="qa", group="main", round_=0, speed=2.0, sure=0.75, text="It is 7.\n#### 7"):
    slow, prefill = (1, 0.1) if round_ == 0 else (2, 0.0)  # a machine that drifts; a prompt that is found read
    decided = {"rules": {"draft_led": 1, "window_up": 3, "failure": 1 if category == "math" else 0, "upgrade_width": 1}, "analyser": {"confidence": sure, "tau": 0.7, "led": sure >= 0.7}, "upgrades": [["upgrade_width", 0.030, 0.010]]}
    modes = {"plain": method(1.28 * slow, 128, prefill=prefill), "DSD": method(1.28 * slow / speed, guesses=100, read=1000, prefill=prefill), "MTV": method(1.0 * slow, guesses=200, read=1000, prefill=prefill),
             "adaptive-fitted": method(0.7 * slow, guesses=80, read=500, prefill=prefill, **decided), "auto": method(0.5 * slow, guesses=80, prefill=prefill), "mixed, 2 nodes": method(0.5 * slow, guesses=80, prefill=prefill)}
    if group == "ablations":
        modes = {"plain": modes["plain"], "adaptive-fitted": modes["adaptive-fitted"], "fixed capacity": method(1.0 * slow, guesses=80, read=1000, prefill=prefill)}
    return {"key": f"{group}|{set_}|{prompt}|{round_}", "group": group, "set": set_, "category": "" if set_ != "spec-bench" else category, "form": "chat", "sampling": "greedy", "prompt": prompt, "round": round_, "prompt_tokens": 30,
            "tokens": 128, "drawn": 128, "cut": "limit", "surprisal": 0.5, "entropy": 1.0, "text": text, "modes": modes}


def recorded():
    made = []
    for round_ in (0, 1):
        made += [record(f"line {i}", "gsm8k", round_=round_, speed=0.5 if i < 2 else 2, sure=0.5 if i < 3 else 0.8) for i in range(1, 9)]
        made += [record(f"HumanEval/{i}", "humaneval", round_=round_) for i in range(3)]
        made += [record(f"{category} {i}", category=category, round_=round_) for category in ("qa", "summarization", "math", "writing") for i in range(3)]
    made += [record("writing 0", category="writing", group="lengths"), record("writing 1", category="writing", group="ablations"), record("writing 2", category="writing", group="ablations")]
    made.append({k: v for k, v in record("short").items() if k != "modes"})
    return results(made)


def results(made):
    settings = {"model_hash": "00ff", "cpu": "a CPU", "isa": [{"name": "avx512vnni", "chosen": True}], "threads": 2, "tokens": 128, "length_tokens": 512, "seed": 0, "cache": "f16", "files": {"draft": {"path": "d.gguf", "hash": "11"}},
                "config": CONFIG}
    return {"bench": "adaptive", "machine": {"cores": 2}, "model": {"name": "tiny", "parameters": 1e6}, "settings": settings, "left_out": {"gone": "there is no file b.gguf"},
            "state": {"begun": "then", "ended": "later", "load_before": [0.1, 0, 0], "load_after": [2, 1, 0]}, "records": made}


class Numbers(unittest.TestCase):
    def table(self, place=answers.task_of):
        return answers.collect(recorded(), "main", place)

    def test_rounds_of_a_prompt_are_one_answer_and_pairs_are_made_within_a_round(self):
        rows = self.table()["HumanEval, 0-shot", "greedy"]["DSD"]
        self.assertEqual([len(a.rounds) for a in rows], [2, 2, 2])
        self.assertAlmostEqual(rows[0].speedup, 2)  # though the second round was twice as slow
        self.assertAlmostEqual(rows[0].seconds("decode"), (0.64 + 1.28) / 2)

    def test_latency_of_later_rounds_has_the_prompt_in_it(self):
        rows = self.table()["HumanEval, 0-shot", "greedy"]["plain"]
        self.assertEqual([round(t, 6) for t in rows[0].times("latency")], [1.38, 2.66])
        self.assertAlmostEqual(rows[0].times("first")[1], 0.12)

    def test_tasks_and_categories(self):
        self.assertEqual({k[0]: len(t["plain"]) for k, t in self.table().items()}, {"GSM8K, 5-shot": 8, "HumanEval, 0-shot": 3, "summaries": 3, "conversations": 6})
        by_category = self.table(lambda r: r["category"] or None)
        self.assertEqual({k[0] for k in by_category}, {"qa", "summarization", "math", "writing"})  # the short one was not measured

    def test_acceptance_length_compute(self):
        rows = self.table()["summaries", "greedy"]["DSD"]
        self.assertAlmostEqual(answers.acceptance(rows), 0.64)
        self.assertAlmostEqual(answers.accepted_length(rows), 2)
        self.assertAlmostEqual(answers.draft_bytes(rows), 1000 / 128)
        self.assertAlmostEqual(answers.verify_to_draft(rows), 2)
        self.assertIsNone(answers.verify_to_draft(self.table()["summaries", "greedy"]["plain"]))

    def test_seconds_to_a_length_leave_the_prompt_out(self):
        a = self.table()["summaries", "greedy"]["plain"][0]
        self.assertAlmostEqual(a.seconds_to(64), 0.64)
        self.assertIsNone(a.seconds_to(256))

    def test_student(self):
        t, p, n = intervals.paired_t([1, 2, 3, 0, 0])
        self.assertEqual(n, 5)
        self.assertAlmostEqual(t, 1.2 / (1.3038404810405297 / 5 ** 0.5))
        # The table's 97.5% point of 10 degrees.
        self.assertAlmostEqual(intervals.incomplete_beta(5, 0.5, 10 / (10 + 2.228138852 ** 2)), 0.05, places=7)
        self.assertAlmostEqual(intervals.incomplete_beta(0.5, 0.5, 1 / (1 + 1.0)), 0.5, places=9)  # one degree: Cauchy, P(|t| > 1) = 1/2
        self.assertEqual(intervals.paired_t([0, 0])[1], 1.0)
        self.assertEqual(intervals.paired_t([1, 1])[1], 0.0)
        self.assertEqual(intervals.paired_t([1])[1], 1.0)
        self.assertTrue(0 < p < 1)

    def test_percentile(self):
        self.assertEqual(intervals.percentile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(intervals.percentile([1], 0.99), 1)


class Analyser(unittest.TestCase):
    some = [analyser.Choice(0.5, 2.0, 1.0, "a"), analyser.Choice(0.65, 0.5, 1.0, "a"), analyser.Choice(0.8, 0.5, 1.0, "a"), analyser.Choice(0.9, 2.0, 1.0, "a")]

    def test_the_confusion_of_choice_and_truth(self):
        self.assertEqual(analyser.confusion(self.some, 0.7), [[1, 1], [1, 1]])
        self.assertEqual(analyser.confusion(self.some, 0.6), [[2, 1], [0, 1]])
        self.assertEqual((analyser.right(self.some, 0.6), analyser.right(self.some, 0), analyser.right(self.some, 2)), (0.75, 0.5, 0.5))

    def test_the_sweep_needs_no_further_runs(self):
        self.assertAlmostEqual(analyser.speedup(self.some, 0), 4 / 5)
        self.assertAlmostEqual(analyser.speedup(self.some, 0.6), 4 / 4)
        self.assertAlmostEqual(analyser.speedup(self.some, 2), 1)
        self.assertEqual(analyser.best_tau(self.some[:3]), 0.55)  # the lowest of the best


class Quality(unittest.TestCase):
    def test_the_final_number(self):
        for text, number in (("so 3 * 4 = <<3*4=12>>12.\n#### 1,012", 1012), ("The answer is 18.", 18), ("-2.50", -2.5), ("none", None), ("#### 5\n\nQuestion: 9", 5), ("about 3, or 7,", 7)):
            self.assertEqual(quality.final_number(text), number, text)
        self.assertTrue(quality.exact_match("it is 18.0", "... #### 18"))
        self.assertFalse(quality.exact_match("I do not know", "#### 18"))

    def test_answers_are_judged_once_and_sameness_is_counted(self):
        made = recorded()
        made["records"][0]["modes"]["auto"]["same"] = False
        with tempfile.TemporaryDirectory() as folder:
            data = pathlib.Path(folder)
            (data / "gsm8k_test_dev.jsonl").write_text("".join(json.dumps({"question": "q", "answer": f"#### {7 if i % 2 else 8}"}) + "\n" for i in range(8)))
            judges = quality.Judges(data, None, 1)
            judges.humaneval_pass = lambda record: 1.0
            judges.summary = lambda record: 0.25
            tasks = quality.judged(made, judges)
        self.assertEqual((tasks["GSM8K, 5-shot"]["score"], tasks["GSM8K, 5-shot"]["answers"]), (0.5, 8))
        self.assertEqual(tasks["GSM8K, 5-shot"]["methods"]["auto"], {"answers": 8, "same_ids": 7})
        self.assertEqual((tasks["summaries"]["score"], tasks["summaries"]["measure"]), (0.25, "ROUGE-L"))


class Pages(unittest.TestCase):
    def write(self, made, **more):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "adaptive.md"
            report.write(made, output, **more)
            figures = pathlib.Path(folder) / "adaptive"
            return output.read_text(), {p.name: p.read_text() for p in figures.iterdir()} if figures.exists() else {}

    def test_the_page_says_what_was_measured(self):
        judged = {"tasks": {"GSM8K, 5-shot": {"measure": "exact match", "score": 0.25, "answers": 8, "methods": {"auto": {"answers": 8, "same_ids": 8}}}}}
        replay = {"target": {"parameters": 772e6}, "draft": {"parameters": 40e6}, "modes": [{"name": "adaptive-fitted", "sampling": "greedy", "tokens_per_pass": 3.0, "plain_tokens_per_second": 64.0, "tokens_per_second": 160.0,
                                                                                          "draft_share": 0.1, "speed_up": {"median": 2.5, "low": 2.4, "high": 2.6}}]}
        page, files = self.write(recorded(), quality=judged, replays=[replay])
        for part in ("left out: gone (there is no file b.gguf)", "| DSD | `model(a) \\| lookup` | `fixed` | 5 nodes, 5 depth, 1 width |",
                     "| auto: not under plain | qa, greedy | 0.98 | 2.56 (2.56 to 2.56) | held |", "| auto: speed-up | all of Spec-Bench, greedy | 1.6 / 2.0 | 2.56 (2.56 to 2.56) | aim reached |",
                     "| auto against the best fixed (mixed, 2 nodes) | qa, greedy | 0.95 | 1.00 (1.00 to 1.00) | held |", "| adaptive-fitted: draft compute of DSD's | all, greedy | at most 0.6 | 0.50 | reached |",
                     "| adaptive-fitted: draft compute of DSD's | the 21 of 23 that were drafted for, greedy | at most 0.6 | 0.50 | reached |",
                     "| 128 tokens, acceptance replayed | 772M, adaptive-fitted, greedy | under 0.85 s | 0.80 s | reached |", "2.00 s | 0.80 s | under 0.85 s |",
                     "| GSM8K, 5-shot | exact match | 0.250 | 8 | 1 of 1 |", "Token ids equal to plain decoding's: ", "## Spec-Bench, greedy", "| math | 3 | 2.00 (2.00 to 2.00) |",
                     "| adaptive-fitted: 0.7 | draft-led | 18 | 0 | 95% | 95% | 5% |", "|  | target-only | 1 | 1 |", "| adaptive-fitted: draft compute of fixed capacity's | all, greedy | at most 0.6 | 0.50 | reached |",
                     "the analyser's choice is the faster one | 20 prompts of the tasks, greedy | over 95%, the best constant choice | 95% | missed |", "| adaptive-fitted | greedy | math | 3 | 100.0% | 0.0% |", "| adaptive-fitted | greedy | qa | 3 | 0.0% | 0.0% |",
                     "| adaptive-fitted | greedy | upgrade_width | 46 | 20.0 | 20.0 | 20.0 |", "| conversations, greedy | fixed capacity | adaptive-fitted | 0.300 (0.300 to 0.300) |", "| DSD | 2.00 (2.00 to 2.00), 1 |", "50 epochs of OpenWebText",
                     "| GSM8K, 5-shot, greedy | auto | AR |"):
            self.assertIn(part, page)
        for figure in ("task-0.svg", "prompts-0.svg", "categories-greedy.svg", "tau-greedy.svg", "lengths-greedy.svg"):
            self.assertIn(figure, files)
            self.assertIn(f"adaptive/{figure}", page)
            xml.etree.ElementTree.fromstring(files[figure])
        self.assertEqual((page, files), self.write(recorded(), quality=judged, replays=[replay]))

    def test_a_text_that_differs_is_counted(self):
        made = recorded()
        made["records"][0]["modes"]["auto"]["same"] = False
        page, _ = self.write(made)
        same, whole = map(int, page.split("Token ids equal to plain decoding's: ")[1].split(" answers")[0].split(" of "))
        self.assertEqual(whole - same, 1)
        self.assertIn("7/8", page)

    def test_a_category_where_auto_is_slower_misses_its_bar(self):
        made = recorded()
        for r in made["records"]:
            if r["category"] == "qa" and "modes" in r:
                r["modes"]["auto"] = method(2.0, guesses=80)
        self.assertRegex(self.write(made)[0], r"\| auto: not under plain \| qa, greedy \| 0.98 \| 0.96 [^|]*\| missed \|")

    def test_without_a_tau_the_choice_is_to_draft_each_time(self):
        made = recorded()
        for r in made["records"]:
            for mode in r.get("modes", {}).values():
                mode.pop("analyser", None)
        page = self.write(made)[0]
        self.assertIn("the analyser's choice is the faster one | 20 prompts of the tasks, greedy, tau = off | over 95%, the best constant choice | 95% | missed |", page)
        self.assertNotIn("## The perplexity analyser", page)

    def test_results_of_nothing_make_a_page_too(self):
        page, _ = self.write(results([]))
        self.assertIn("Deciding how much to draft", page)
        self.assertIn("It was not judged", page)

    def test_the_command_refuses_what_is_no_result(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a.json", '{"bench": "staged", "records": []}'), ("b.json", "no json")):
                path = pathlib.Path(folder) / name
                path.write_text(text)
                run = subprocess.run([sys.executable, report.__file__, str(path), "-o", f"{folder}/page.md"], capture_output=True, text=True)
                self.assertEqual(run.returncode, 1)
                self.assertRegex(run.stderr, r"\Areport.py: [^\n]+\n\Z")
                self.assertFalse((pathlib.Path(folder) / "page.md").exists())


if __name__ == "__main__":
    unittest.main()
