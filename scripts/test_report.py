"""Prints what a ctest run came to: test_report.py REPORT.xml (ctest --output-junit).

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
        if case.get("status") == "fail" or case.find("failure") is not None:
            failed.append(name)
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped.append(name)
        else:
            passed += 1
    if partly:
        lines.insert(0, f"{partly} tests left something out that is {MARK}:")
    lines += [f"skipped: {name}" for name in skipped] + [f"FAILED: {name}" for name in failed]
    return passed, len(failed), len(skipped), lines


def main():
    try:
        root = ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"test_report: no readable report of the test run at {sys.argv[1]}: {error}")
    passed, failed, skipped, lines = summarise(root)
    print("\n".join(lines))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
