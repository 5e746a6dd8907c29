"""The page's modules that need no browser, by their own tests (tests/serve/page/*.test.js) under node."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODE = shutil.which("node")
OLDEST = 20  # findLastIndex, structured test output


def version():
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True).stdout
    return int(re.match(r"v(\d+)", said).group(1))


class PageModules(unittest.TestCase):
    def test_the_modules_pass_their_own_tests(self):
        if not NODE or version() < OLDEST:
            self.skipTest(f"not on this machine: no node of version {OLDEST} or later")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "package.json").write_text('{"type": "module"}')  # node takes .js for something older without it
            shutil.copytree(ROOT / "apps" / "serve" / "page", folder / "page")
            shutil.copytree(ROOT / "tests" / "serve" / "page", folder / "tests")
            run = subprocess.run([NODE, "--test", *sorted(map(str, (folder / "tests").glob("*.test.js")))], cwd=folder,
                                 capture_output=True, text=True, timeout=120)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertGreater(int(re.search(r"^(?:#|ℹ) pass (\d+)", run.stdout, re.MULTILINE).group(1)), 20)


if __name__ == "__main__":
    unittest.main()
