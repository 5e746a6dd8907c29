"""Prints what ctest runs came to: test_report.py REPORT.xml... (ctest --output-junit). A report that is not there is one
failed test: its run never came to an end.

A test may cover less on a machine that lacks something (an instruction set, say). It then prints a line with the words
`not on this machine`, which is shown here, so that nothing is left out silently. The last line is the count.
"""

import sys
import xml.etree.ElementTree as ElementTree

MARK = "not on this machine"


def summarise(root):
    """-> (passed, failed, skipped, lines to show)"""
    passed, failed, skipped, lines = 0, [], [], []
    partly = 0
    for case in root.iter("testcase"):
        name = case.get("name")
        output = case.findtext("system-out") or ""
        marked = [line.strip() for line in output.splitlines() if MARK in line]
        partly += bool(marked)
        lines += [f"  {name}: {line}" for line in marked]
        left_out = case.find("skipped")
        why = left_out.get("message", "") if left_out is not None else ""
        if case.get("status") == "fail" or any(case.find(kind) is not None for kind in ("failure", "error")):
            failed.append(name)
        elif case.get("status") == "notrun" and not why.startswith("SKIP_"):  # ctest fails then: it could not start it
            failed.append(f"{name}: {why or 'did not run'}")
        elif left_out is not None or case.get("status") in ("notrun", "disabled"):
            skipped.append(name)
        else:
            passed += 1
    if partly:
        lines.insert(0, f"{partly} tests left something out that is {MARK}:")
    lines += [f"skipped: {name}" for name in skipped] + [f"FAILED: {name}" for name in failed]
    return passed, len(failed), len(skipped), lines


def report(path):
    """-> as summarise()"""
    try:
        return summarise(ElementTree.parse(path).getroot())
    except (OSError, ElementTree.ParseError) as error:
        return 0, 1, 0, [f"FAILED: no readable report of a test run at {path}: {error}"]


def main():
    totals = [0, 0, 0]
    for path in sys.argv[1:]:
        *counts, lines = report(path)
        if len(sys.argv) > 2:
            print(f"{path}: {count_line(counts)}")
        if lines:
            print("\n".join(lines))
        totals = [total + count for total, count in zip(totals, counts)]
    print(count_line(totals))
    return 1 if totals[1] or not totals[0] else 0


def count_line(counts):
    return "{} passed, {} failed, {} skipped".format(*counts)


if __name__ == "__main__":
    sys.exit(main())
