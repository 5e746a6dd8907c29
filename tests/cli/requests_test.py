"""coppice bench requests: many at once, on random models. No test here looks at a clock."""

import json
import signal

import program


class Requests(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        prompts = ["the quick brown fox", "one two one two one two", "a b c", "the end of the end of the end", "quick quick"]
        (cls.work / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in prompts))

    def bench(self, *arguments, prompts="prompts.jsonl"):
        return ["bench", "requests", "-m", self.model, "-t", 1, "--prompts", prompts, "-n", 12, *arguments]

    def report(self, *arguments):
        out, said = self.run_well(*self.bench(*arguments, "--json", "requests.json"))
        self.assertEqual(said, "")
        report = json.loads((self.work / "requests.json").read_text())
        self.assertEqual(report["bench"], "requests")
        return report, out

    def test_every_load_has_every_way_of_decoding_with_the_same_texts(self):
        report, out = self.report("--at-once", "1,3", "--rounds", 2, "-d", "lookup", "--policies", "auto,fixed:4")
        self.assertEqual([load["at_once"] for load in report["loads"]], [1, 3])
        for load in report["loads"]:
            self.assertEqual([side["name"] for side in load["sides"]], ["plain", "lookup auto", "lookup fixed:4"])
            for side in load["sides"]:
                self.assertEqual(side["same_text"], 5 * 2)
                self.assertEqual(len(side["rounds"]), 2)
                self.assertLessEqual(side["stats"]["tokens"], 5 * 2 * 12)
                self.assertGreater(side["goodput"]["low"], 0)
                self.assertGreaterEqual(side["tokens"], side["stats"]["tokens"])
                self.assertLessEqual(side["first_token_seconds"]["p5"], side["first_token_seconds"]["p95"])
            plain = load["sides"][0]
            self.assertEqual(plain["goodput_over_plain"], {"median": 1, "low": 1, "high": 1})
            self.assertEqual(plain["guesses_per_request_and_pass"], 0)
        for part in ("5 prompts, up to 12 tokens each, 2 rounds", "1 at once", "3 at once", "10/10"):
            self.assertIn(part, out)

    def test_the_load_is_whole_to_the_end(self):
        report, _ = self.report("--at-once", "4", "--rounds", 1, "--ignore-eos", "-d", "lookup")
        plain = report["loads"][0]["sides"][0]
        # Answers of one length and 4 at once: passes with fewer rows are those that read a prompt for somebody.
        self.assertGreater(plain["rows_per_pass"], 3)
        self.assertLessEqual(plain["rows_per_pass"], 4)

    def test_one_at_once_is_plain_decoding_one_row_a_pass(self):
        report, _ = self.report("--at-once", "1", "--rounds", 1, "-d", "lookup", "--policies", "fixed:4")
        plain, guessing = report["loads"][0]["sides"]
        self.assertEqual(plain["rows_per_pass"], 1)
        self.assertEqual(plain["passes"], plain["tokens"])
        self.assertLessEqual(guessing["passes"], plain["passes"])
        self.assertGreater(guessing["guesses_per_request_and_pass"], 0)

    def test_texts_are_the_same_when_sampled_too(self):
        report, _ = self.report("--at-once", "1,2", "--rounds", 1, "--temp", 1, "--top-k", 20, "-d", "lookup")
        self.assertEqual({side["same_text"] for load in report["loads"] for side in load["sides"]}, {5})

    def test_bad_options_are_named(self):
        (self.work / "none.jsonl").write_text("{}\n")
        for arguments, says in ((["--at-once", "0"], "--at-once"), (["--at-once", "1,257"], "--at-once"), (["--rounds", 0], "--rounds"),
                                (["-d", "nobody"], "nobody"), (["--policies", "never"], "--policies never"), (["--temp", -1], "--temperature"),
                                (["--json", "nofolder/r.json"], "nofolder/r.json"), (["--json", "prompts.jsonl"], "would replace")):
            with self.subTest(arguments):
                self.assertRegex(self.refused(*self.bench(*arguments)), says)
        self.assertRegex(self.refused(*self.bench(prompts="none.jsonl")), "none.jsonl line 1")
        self.assertRegex(self.refused(*self.bench("-c", 3)), "prompt 1 has")

    def test_control_c_stops_at_once(self):
        run = self.start(*self.bench("--rounds", 1000, "--json", "stopped.json"))
        try:
            run.wait(timeout=2)
        except program.subprocess.TimeoutExpired:
            pass
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 130)
        self.assertRegex(said.decode(), r"\A\[stopped; [^\n]+\]\n\Z")
        self.assertFalse((self.work / "stopped.json").exists())


if __name__ == "__main__":
    program.main()
