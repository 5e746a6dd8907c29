"""What counts as overlap between training data and what is measured on."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("check_overlap.py")
LONG = "one two three four five six seven eight nine ten eleven twelve"


class CheckOverlap(unittest.TestCase):
    def run_on(self, held_out, training, *options):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "held.jsonl").write_text("".join(json.dumps(item) + "\n" for item in held_out))
            (folder / "train.jsonl").write_text("".join(json.dumps(item) + "\n" for item in training))
            command = [sys.executable, str(SCRIPT), "--held-out", str(folder / "held.jsonl"), "--training", str(folder / "train.jsonl"), *options]
            clean = folder / "clean.jsonl"
            if "--write" in options:
                command[-1] = str(clean)
            done = subprocess.run(command, capture_output=True, text=True)
            return done.returncode, done.stdout, clean.read_text() if clean.exists() else None

    def test_ten_words_in_a_row_are_found_whatever_stands_between(self):
        code, out, _ = self.run_on([{"turns": ["zero " + LONG]}], [{"user": LONG.replace(" ", ", ").upper()}])
        self.assertEqual(code, 1)
        self.assertIn("held.jsonl:1", out)

    def test_nine_words_are_not(self):
        nine = " ".join(LONG.split()[:9])
        self.assertEqual(self.run_on([{"q": LONG}], [{"prompt": nine + " something else"}])[0], 0)

    def test_a_phrase_of_the_benchmark_itself_does_not_count(self):
        held = [{"q": f"{LONG} item{i}"} for i in range(5)]
        self.assertEqual(self.run_on(held, [{"text": LONG}])[0], 0)

    def test_write_keeps_the_clean_lines(self):
        code, _, clean = self.run_on([{"q": LONG}], [{"user": LONG}, {"messages": [{"role": "user", "content": "short"}]}], "--write", "-")
        self.assertEqual(code, 0)
        self.assertEqual(clean.count("\n"), 1)
        self.assertIn("short", clean)


if __name__ == "__main__":
    unittest.main()
