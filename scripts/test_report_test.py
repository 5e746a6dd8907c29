"""The report counts what ctest did and hides nothing."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import test_report

REPORT = """<testsuite>
<testcase name="a" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" status="run"><system-out>avx512vnni: not on this machine
more</system-out></testcase>
<testcase name="c" status="fail"><failure message=""/></testcase>
<testcase name="d" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/></testcase>
</testsuite>"""


class TestReport(unittest.TestCase):
    def test_counts_passed_failed_and_skipped(self):
        self.assertEqual(test_report.summarise(ElementTree.fromstring(REPORT))[:3], (2, 1, 1))

    def test_shows_what_was_left_out(self):
        lines = test_report.summarise(ElementTree.fromstring(REPORT))[3]
        self.assertIn("  b: avx512vnni: not on this machine", lines)
        self.assertIn("skipped: d", lines)
        self.assertIn("FAILED: c", lines)

    def test_what_ctest_could_not_start_has_failed(self):
        report = '<testsuite><testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase></testsuite>'
        passed, failed, skipped, lines = test_report.summarise(ElementTree.fromstring(report))
        self.assertEqual((passed, failed, skipped), (0, 1, 0))
        self.assertEqual(lines, ["FAILED: e: Unable to find executable"])

    def test_what_pytest_calls_an_error_has_failed(self):
        report = '<testsuites><testsuite><testcase name="f"><error message="no fixture"/></testcase></testsuite></testsuites>'
        self.assertEqual(test_report.summarise(ElementTree.fromstring(report))[:3], (0, 1, 0))

    def test_an_empty_run_has_no_passes(self):
        self.assertEqual(test_report.summarise(ElementTree.fromstring("<testsuite/>"))[0], 0)

    def test_several_reports_are_added_up_and_a_missing_one_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            there = pathlib.Path(folder, "there.xml")
            there.write_text(REPORT)
            script = pathlib.Path(__file__).with_name("test_report.py")
            run = subprocess.run([sys.executable, script, there, there, pathlib.Path(folder, "missing.xml")],
                                 capture_output=True, text=True)
        self.assertEqual(run.stdout.splitlines()[-1], "4 passed, 3 failed, 2 skipped")
        self.assertEqual(run.returncode, 1)


if __name__ == "__main__":
    unittest.main()
