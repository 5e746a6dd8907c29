"""Numbers, pages and the sandbox of bench/staged, on records made up here."""

import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import records  # first: it shows where bench/pages is

import figures
import intervals
import judge
import pass_at_1  # noqa: F401  (that it can be imported)
import report
import sandbox


def record(prompt, group="main", sampling="greedy", form="raw", tokens=40, seconds=0.2, faster=2.0, same=True, entropy=1.0):
    def mode(cycles, took, draft):
        return {"tokens": tokens, "cycles": cycles, "guesses": 3 * cycles, "accepted": tokens - cycles, "draft_passes": cycles if draft else 0,
                "target_bytes": 1000 * cycles, "draft_bytes": 100 * cycles if draft else 0, "reached_at_depth": [cycles, cycles // 2],
                "accepted_at_depth": [cycles // 2, cycles // 4], "sources": [["stage", 20, 10], ["lookup", 10, 2]] if draft else [],
                "seconds": [[took, took / 4 if draft else 0, took / 2, 0.001], [2 * took, took, took, 0.002]], "same": same}

    return {"key": f"{group}|{prompt}|{form}|{sampling}", "group": group, "set": "humaneval", "form": form, "sampling": sampling, "prompt": prompt,
            "tokens": tokens, "drawn": tokens, "cut": "limit", "surprisal": 0.5, "entropy": entropy, "text": "    return 1\n",
            "modes": {"plain": mode(tokens, seconds, False), "draft tree": mode(tokens // 2, seconds / faster, True),
                      "staged tree": mode(tokens // 2, seconds / faster / 1.2, True)}}


def results(made):
    settings = {"model_hash": "00ff", "cpu": "a CPU", "isa": [{"name": "avx2", "chosen": True}], "threads": 2, "tokens": 256, "rounds": 2, "seed": 0, "cache": "f16",
                "files": {"draft": {"path": "models/d.gguf", "hash": "11"}},
                "config": {"modes": {"draft tree": {"drafters": "x"}, "staged tree": {"drafters": "y", "greedy": {"nodes": 5}}}, "mixed": "staged tree",
                           "unstaged": {"staged tree": "draft tree"}}}
    return {"bench": "staged", "machine": {"cores": 2}, "model": {"name": "tiny", "parameters": 1e6}, "settings": settings, "left_out": {"head tree": "there is no file h.gguf"},
            "state": {"begun": "then", "ended": "later", "load_before": [0.1, 0, 0], "load_after": [2, 1, 0]}, "records": made}


def recorded():
    made = [record(f"HumanEval/{i}", faster=2 + i / 10, entropy=2 - i / 10) for i in range(9)]
    made.append({**record("HumanEval/9"), "modes": {}})  # too short to measure
    made[0]["painted"] = {"staged tree": {"sources": ["stage", "lookup"], "pieces": [["    ", -1], ["ret<urn", 0], ["\n", 1]], "cycles": [[2, 3, 1, 4], [1, 3, 1, 4]]}}
    for n in ("4 nodes", "8 nodes", "staged tree, agreement"):
        tree = record("HumanEval/0", group="trees", form="chat")
        tree["modes"] = {"plain": tree["modes"]["plain"], n: tree["modes"]["draft tree"]}
        made.append(tree)
    sweep = record("HumanEval/0", group="sweep nodes", form="chat")
    sweep["modes"] = {"plain": sweep["modes"]["plain"], "1": sweep["modes"]["draft tree"], "8": sweep["modes"]["staged tree"]}
    return results(made + [sweep])


class Numbers(unittest.TestCase):
    def test_a_pair_is_made_within_a_round(self):
        row = records.tables(recorded(), "main")["humaneval", "raw", "greedy"]["draft tree"][3]
        self.assertAlmostEqual(row.speedup, 2.3)  # both rounds, though the second was twice as slow
        self.assertAlmostEqual(records.bandwidth([row]), 0.55)
        self.assertAlmostEqual(records.tokens_per_pass([row]), 2)

    def test_answers_too_short_to_measure_are_not_in_the_tables(self):
        table = records.tables(recorded(), "main")["humaneval", "raw", "greedy"]
        self.assertEqual([len(rows) for rows in table.values()], [9, 9, 9])

    def test_the_interval_holds_the_value_and_shrinks_with_the_square_root(self):
        generator = random.Random(1)
        values = [generator.gauss(10, 2) for _ in range(400)]
        mean = lambda v: sum(v) / len(v)
        few, many = intervals.bootstrap(values[:25], mean), intervals.bootstrap(values, mean)
        for interval in (few, many):
            self.assertLess(interval.low, interval.value)
            self.assertLess(interval.value, interval.high)
        self.assertAlmostEqual(many.high - many.low, 2 * 1.96 * 2 / 20, delta=0.05)  # 1.96 standard errors to each side
        self.assertGreater((few.high - few.low) / (many.high - many.low), 2.5)
        self.assertEqual(vars(intervals.bootstrap(values, mean)), vars(many))  # the same every time
        one = intervals.bootstrap([3.0], mean)
        self.assertEqual((one.value, one.low, one.high), (3.0, 3.0, 3.0))

    def test_agreement_is_what_was_taken_of_what_was_reached(self):
        rows = records.tables(recorded(), "main")["humaneval", "raw", "greedy"]["draft tree"]
        self.assertAlmostEqual(records.agreement(rows), (10 + 5) / (20 + 10))
        self.assertEqual(records.by_depth(rows), [(180, 90), (90, 45)])
        self.assertEqual(records.by_source(rows), {"stage": (180, 90), "lookup": (90, 18)})

    def test_rank_correlation(self):
        self.assertAlmostEqual(intervals.rank_correlation([1, 2, 3, 4], [10, 20, 30, 1000]), 1)
        self.assertAlmostEqual(intervals.rank_correlation([1, 2, 3], [3, 2, 1]), -1)
        self.assertEqual(intervals.rank_correlation([1, 1, 1], [1, 2, 3]), 0)


class Pages(unittest.TestCase):
    def write(self, made, **more):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "staged.md"
            report.write(made, output, **more)
            return output.read_text(), {p.name: p.read_text() for p in (pathlib.Path(folder) / "staged").iterdir()}

    def test_the_page_says_what_was_measured(self):
        passes = {"table": {"raw, greedy": {"answers": 9, "passed": 2, "modes": {"plain": {"answers": 9, "same_ids": 9}, "draft tree": {"answers": 9, "same_ids": 8}}}}}
        page, files = self.write(recorded(), passes=passes)
        for part in ("| draft tree | 8 nodes, price 0.01 |", "| staged tree | 5 nodes, price 0.01 |", "2.40 (", "| relative bandwidth | HumanEval, raw form, greedy | 0.32 / 0.23 | 0.55 (0.55 to 0.55)",
                     "floor missed", "file hash `00ff`", "left out: head tree (there is no file h.gguf)", "avx2", "| staged tree | draft tree | HumanEval, raw form, greedy | 1.20 (1.20 to 1.20)",
                     "stage 0.50 of 180", "nodes, HumanEval, chat form, greedy, 1 answers: 1: 2.00x", "| raw, greedy | 2 | 9 | 0.222 | 1 of 2 |", "not calibrated"):
            self.assertIn(part, page)
        made = recorded()
        made["settings"]["config"]["modes"]["draft tree"].update(policy="auto", nodes=16)
        self.assertIn("| draft tree | auto, at most 16 nodes |", self.write(made)[0])
        for figure in ("speed-0.svg", "bandwidth-0.svg", "prompts-0.svg", "entropy-0.svg", "sweep-nodes.svg", "text.svg", "texts.html"):
            self.assertIn(figure, files)
            self.assertIn(f"staged/{figure}", page)
        for name, text in files.items():
            if name.endswith(".svg"):
                xml.etree.ElementTree.fromstring(text)
        self.assertIn("ret&lt;urn", files["texts.html"])
        self.assertEqual((page, files), self.write(recorded(), passes=passes))

    def test_a_text_that_differs_is_counted(self):
        made = recorded()
        made["records"][1]["modes"]["draft tree"]["same"] = False
        page, _ = self.write(made)
        self.assertRegex(page, r"Token ids equal to plain decoding's: 2[0-9] of 2[0-9] answers")
        self.assertIn("8/9", page)

    def test_results_of_nothing_make_a_page_too(self):
        page, _ = self.write({**results([record("HumanEval/0")])})
        self.assertIn("Staged speculation", page)

    def test_the_command_refuses_what_is_no_result(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a.json", "{}"), ("b.json", "no json")):
                path = pathlib.Path(folder) / name
                path.write_text(text)
                run = subprocess.run([sys.executable, report.__file__, str(path), "-o", f"{folder}/page.md"], capture_output=True, text=True)
                self.assertEqual(run.returncode, 1)
                self.assertRegex(run.stderr, r"\Areport.py: [^\n]+\n\Z")
                self.assertFalse((pathlib.Path(folder) / "page.md").exists())

    def test_a_painted_text_in_a_terminal(self):
        painted = recorded()["records"][0]["painted"]["staged tree"]
        self.assertEqual(figures.painted_terminal(painted), "    \x1b[48;5;25mret<urn\x1b[0m\x1b[48;5;167m\n\x1b[0m")


class Sandbox(unittest.TestCase):
    def setUp(self):
        try:
            sandbox.run("")
        except OSError as error:
            self.skipTest(str(error))

    def run_inside(self, source, **limits):
        return sandbox.run(source, sandbox.Limits(**limits))

    def test_it_runs_and_may_write_in_its_own_folder(self):
        done = self.run_inside("open('x', 'w').write('7'); print(open('x').read())")
        self.assertEqual((done.returncode, done.stdout), (0, "7\n"))

    def test_nothing_else_can_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "file"
            path.write_text("kept")
            for source in (f"open({str(path)!r}, 'w')", f"import os; os.remove({str(path)!r})", f"import os; os.mkdir({folder + '/new'!r})"):
                self.assertIn("PermissionError", self.run_inside(source).stderr)
            self.assertEqual(path.read_text(), "kept")

    def test_there_is_no_network(self):
        done = self.run_inside("import socket; socket.create_connection(('127.0.0.1', 9), 2)")
        self.assertIn("OSError", done.stderr)
        self.assertIn("unreachable", done.stderr)

    def test_memory_and_time_are_limited(self):
        self.assertIn("MemoryError", self.run_inside("x = 'a' * (2 << 30)").stderr)
        self.assertIn(self.run_inside("while True: pass", seconds=1).returncode, (-9, -24))

    def test_what_it_leaves_behind_ends_with_it(self):
        done = self.run_inside("import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], stdout=2); print(p.pid)")
        self.assertEqual(done.returncode, 0)
        state = pathlib.Path(f"/proc/{done.stdout.strip()}/stat")
        for _ in range(100):  # it was killed; a busy machine takes a moment to let it die
            if not state.exists() or " Z " in state.read_text():
                return
            time.sleep(0.1)
        self.fail("it is still there")


class Completions(unittest.TestCase):
    def test_raw_answers_stand_as_they_are(self):
        self.assertEqual(judge.completion_of("    return 1\n", "raw", "f"), "    return 1\n")

    def test_of_a_chat_answer_the_block_with_the_function_counts(self):
        answer = "Use it:\n```\nf(1)\n```\nHere:\n```python\ndef f(x):\n    return x\n```\nDone."
        self.assertEqual(judge.completion_of(answer, "chat", "f"), "    pass\n\ndef f(x):\n    return x\n\n")
        self.assertEqual(judge.completion_of("```python\n    return x", "chat", "f"), "    return x")  # cut in the middle

    def test_the_checker_is_asked_in_the_sandbox(self):
        Sandbox.setUp(self)
        with tempfile.TemporaryDirectory() as folder:  # a checker of our own: what is tested is the way there and back
            package = pathlib.Path(folder) / "human_eval"
            package.mkdir()
            (package / "__init__.py").write_text("")
            (package / "execution.py").write_text("def check_correctness(problem, completion, timeout):\n    exec(problem['prompt'] + completion)\n"
                                                  "    return {'result': 'passed' if problem['task_id'] == 'a' else 'failed'}\n")
            problem = {"task_id": "a", "prompt": "def f():\n"}
            self.assertEqual(judge.judge(problem, "    return '\\n'\n", 1, [folder]), "passed")
            self.assertEqual(judge.judge({**problem, "task_id": "b"}, "    return 1\n", 1, [folder]), "failed")
            self.assertIn("failed: the process ended with 3", judge.judge(problem, "    pass\nimport os; os._exit(3)\n", 1, [folder]))


if __name__ == "__main__":
    unittest.main()
