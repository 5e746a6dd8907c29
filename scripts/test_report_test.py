"""The report counts what ctest did and hides nothing."""

import unittest
import xml.etree.ElementTree as ElementTree

import test_report

REPORT = """<testsuite>
<testcase name="a" status="run"><system-out>fine</system-out></testcase>
<testcase name="b" status="run"><system-out>avx512vnni: not on this machine
more</system-out></testcase>
<testcase name="c" status="fail"><failure message=""/></testcase>
<testcase name="d" status="notrun"><skipped message="why"/></testcase>
</testsuite>"""


class TestReport(unittest.TestCase):
    def test_counts_passed_failed_and_skipped(self):
        self.assertEqual(test_report.summarise(ElementTree.fromstring(REPORT))[:3], (2, 1, 1))

    def test_shows_what_was_left_out(self):
        lines = test_report.summarise(ElementTree.fromstring(REPORT))[3]
        self.assertIn("  b: avx512vnni: not on this machine", lines)
        self.assertIn("skipped: d", lines)
        self.assertIn("FAILED: c", lines)

    def test_an_empty_run_has_no_passes(self):
        self.assertEqual(test_report.summarise(ElementTree.fromstring("<testsuite/>"))[0], 0)


if __name__ == "__main__":
    unittest.main()
