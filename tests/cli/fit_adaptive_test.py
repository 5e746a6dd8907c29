"""tools/fit_adaptive.py: from prompts to DRAFT.adaptive, with which `adaptive-fitted` begins, on random models."""

import json
import subprocess
import sys

import program


class FitAdaptive(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.make_slimmable_pair()
        lines = [json.dumps({"prompt": f"{i} to be or not to be {i * i}"}) for i in range(40)]
        (cls.work / "prompts.jsonl").write_text("\n".join(lines))

    def fit(self):
        return subprocess.run([sys.executable, program.ROOT / "tools/fit_adaptive.py", "-m", "small.gguf", "--draft", "slim.gguf", "--prompts", "prompts.jsonl", "--work", "fit", "--cheap", "lookup", "--coppice",
                               program.coppice, "--threads", "1", "--corpus-tokens", "600", "--tries", "2", "--tau-prompts", "3", "--tokens", "6", "--epochs", "1"], cwd=self.work, env=self.environment(),
                              capture_output=True, text=True, timeout=program.TIMEOUT, check=False)

    def test_the_whole_fit_goes_on_where_it_stopped_and_its_file_is_what_the_policy_begins_with(self):
        run = self.fit()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"(?m)^fitted +cost [0-9.]+  compute [0-9.]+ of the full draft's, [0-9.]+ of full capacity's")
        text = (self.work / "slim.adaptive").read_text()
        for name in ("reject", "first", "window", "stop", "tau", "analyse"):
            self.assertRegex(text, rf"(?m)^{name} = \S+$")
        self.assertTrue((self.work / "slim.gate").exists())
        judged = json.loads((self.work / "fit" / "judged.json").read_text())
        self.assertEqual(set(judged["held_out"]), {"fitted", "with tau", "alpha 1.5", "alpha 1.25", "alpha 1", "alpha 0.75", "alpha 0.6"})
        self.assertEqual(judged["held_out"]["alpha 1.5"]["compute_of_full_capacity"], 1)
        # What is there is not made again, but for the files at the end.
        (self.work / "fit" / "judged.json").unlink()
        again = self.fit()
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(json.loads((self.work / "fit" / "judged.json").read_text()), judged)
        # The engine reads it by itself: a wrong line is heard of, and not where another file is named.
        (self.work / "slim.adaptive").write_text("stop = 7\n")
        ask = ["generate", "-m", "small.gguf", "-p", "to be", "-n", 4, "-t", 1, "-d", "model(slim.gguf)", "--policy"]
        self.assertIn("slim.adaptive, line 1: stop=7 should be a number from 0 to 1", self.refused(*ask, "adaptive-fitted"))
        self.run_well(*ask, "adaptive-fitted(from=off)")


if __name__ == "__main__":
    program.main()
