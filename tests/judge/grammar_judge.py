#!/usr/bin/env python3
"""The judge of the grammar room: the jsonschema package against Coppice's grammars of schemas (through the filter
tests/judge/walk_grammar.cc), on the schemas of schemas.jsonl.

    grammar_judge.py --walk-grammar build/dev/tests/walk_grammar [--draws 12] [--seed 1]

What is drawn through the mask is JSON and valid. What is listed as valid is accepted as programs write it (compact,
with spaces, indented), what is listed as invalid is refused, and so is whatever a random change makes invalid.
"""
import argparse
import copy
import datetime
import json
import os
import random
import re
import subprocess
import sys
import urllib.parse

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
CHANGES = 12  # of each valid instance

formats = jsonschema.FormatChecker(formats=["email", "ipv4", "ipv6", "uuid", "date"])


@formats.checks("date-time", raises=ValueError)
def date_time(value):
    return not isinstance(value, str) or ("T" in value and datetime.datetime.fromisoformat(value).tzinfo is not None)


@formats.checks("time", raises=ValueError)
def time(value):
    return not isinstance(value, str) or datetime.time.fromisoformat(value) is not None


@formats.checks("uri", raises=ValueError)
def uri(value):
    parts = urllib.parse.urlsplit(value) if isinstance(value, str) else None
    return parts is None or (parts.scheme != "" and parts.netloc != "" and parts.port != 0)


@formats.checks("duration")
def duration(value):
    return not isinstance(value, str) or re.fullmatch(
        r"P(?!$)(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?!$)(\d+H)?(\d+M)?(\d+S)?)?)", value) is not None


def validator_of(schema):
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    return kind(schema, format_checker=formats)


def spellings(value):
    return [json.dumps(value, ensure_ascii=False, separators=(",", ":")), json.dumps(value, ensure_ascii=False),
            json.dumps(value, ensure_ascii=False, indent=2)]


def places(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def changed(value, rng):
    """The value with one thing in it other than it was."""
    others = [None, True, 0, -1, 3.5, 10**6, "", "x", "A long text with spaces, and \"quotes\"", [], [1, "a"], {}, {"a": 1}]
    path = rng.choice(list(places(value)))
    if not path:
        return rng.choice(others)
    out = copy.deepcopy(value)
    holder = out
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.3:
        del holder[path[-1]]
    else:
        holder[path[-1]] = rng.choice(others)
    return out


def question_of(case, arguments, rng):
    validator = validator_of(case["schema"])
    expected = []  # (text, must be accepted)
    for value in case["valid"]:
        assert validator.is_valid(value), (case["name"], value)
        expected += [(text, True) for text in spellings(value)]
    invalid = list(case["invalid"])
    assert not any(validator.is_valid(value) for value in invalid), case["name"]
    for value in case["valid"]:
        invalid += [other for other in (changed(value, rng) for _ in range(CHANGES)) if not validator.is_valid(other)]
    expected += [(text, False) for value in invalid for text in spellings(value)]
    question = {"schema": json.dumps(case["schema"]), "draws": arguments.draws, "seed": arguments.seed,
                "texts": [text for text, _ in expected]}
    return validator, expected, question


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--walk-grammar", required=True)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with open(os.path.join(HERE, "schemas.jsonl"), encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    asked = [question_of(case, arguments, rng) for case in cases]
    run = subprocess.run([arguments.walk_grammar], input="".join(json.dumps(q) + "\n" for _, _, q in asked), text=True,
                         encoding="utf-8", stdout=subprocess.PIPE, check=True)
    wrong, drawn, judged = [], 0, 0
    for case, (validator, expected, _), line in zip(cases, asked, run.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        if "error" in answer:
            wrong.append(f"{case['name']}: refused: {answer['error']}")
            continue
        for text in answer["drawn"]:
            drawn += 1
            try:
                problem = jsonschema.exceptions.best_match(validator.iter_errors(json.loads(text)))
            except ValueError as error:
                problem = error
            if problem is not None:
                wrong.append(f"{case['name']}: drew {text!r}: {str(problem).splitlines()[0]}")
        for (text, wanted), accepted in zip(expected, answer["accepted"], strict=True):
            judged += 1
            if accepted != wanted:
                wrong.append(f"{case['name']}: {'accepted' if accepted else 'refused'} {text!r}")
    print(f"{len(cases)} schemas, {drawn} texts drawn, {judged} judged, {len(wrong)} wrong")
    for line in wrong[:20]:
        print("  " + line)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
