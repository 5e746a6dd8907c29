"""coppice bench reaction, on a random model. No test here looks at a clock."""

import json

import program


class Reaction(program.Case):
    def bench(self, *arguments):
        return ["bench", "reaction", "-m", self.model, "-t", 1, "--half", 64, *arguments]

    def test_both_turns_are_written_as_given_by_everybody(self):
        out, said = self.run_well(*self.bench("--rounds", 2, "-d", "lookup", "--policies", "auto,fixed:4", "--json", "reaction.json"))
        self.assertEqual(said, "")
        report = json.loads((self.work / "reaction.json").read_text())
        self.assertEqual(report["bench"], "reaction")
        self.assertEqual([turn["turn"] for turn in report["turns"]], ["from order to none", "from none to order"])
        for turn in report["turns"]:
            self.assertIn(turn["turn"], out)
            self.assertEqual([side["name"] for side in turn["sides"]], ["plain", "lookup auto", "lookup fixed:4"])
            for side in turn["sides"]:
                self.assertEqual(side["same_text"], 2)
                self.assertEqual(side["stats"]["tokens"], 2 * 128)
                self.assertEqual(len(side["over_plain"]), 128 // 16)
                self.assertEqual(len(side["back"]), 2)
            plain, _, fixed = turn["sides"]
            self.assertEqual({window["median"] for window in plain["over_plain"]}, {1})
            # The line that repeats is guessed, whoever the model is.
            self.assertLess(fixed["stats"]["target_passes"], plain["stats"]["target_passes"] * 0.8)

    def test_bad_options_are_named(self):
        for arguments, says in ((["--half", 63], "--half"), (["--rounds", 0], "--rounds"), (["-d", "nobody"], "nobody"),
                                (["-c", 16], "--context 16: the answer of 128 tokens"), (["--json", "nofolder/r.json"], "nofolder/r.json")):
            with self.subTest(arguments):
                self.assertRegex(self.refused(*self.bench(*arguments)), says)


if __name__ == "__main__":
    program.main()
