#!/usr/bin/env python3
"""Proves that training data shares no long word sequence with what is measured on, or removes what does.

    scripts/check_overlap.py --held-out HumanEval.jsonl gsm8k_test.jsonl spec_bench.jsonl --training prompts.jsonl [--ngram 10] [--write clean.jsonl]

Files are JSON lines (or plain text). Of a held-out line every string counts, of a training line the fields "user", "prompt", "text" and the
contents of "messages" (a corpus as text: coppice corpus --export DIR). Words are runs of letters and digits in lower case, and single other
signs do not count. A training line overlaps when it has the same --ngram words in a row as any held-out line, except sequences that stand in
more than --common held-out items (phrases of a benchmark's own frame). Exit status 1 when something overlaps and --write is not given.
"""
import argparse
import collections
import json
import os
import re
import sys

WORD = re.compile(r"[^\W_]+")


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from strings(child)
    elif isinstance(value, list):
        for child in value:
            yield from strings(child)


def lines_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    yield number, json.loads(line), line
                except ValueError:
                    yield number, {"text": line}, line
    except OSError as error:
        sys.exit(f"check_overlap.py: {path}: {error.strerror}")


def grams(text, n):
    words = WORD.findall(text.lower())
    return {" ".join(words[i:i + n]) for i in range(len(words) - n + 1)}


def training_text(item):
    if not isinstance(item, dict):
        return " ".join(strings(item))
    return "\n".join(s for key in ("user", "prompt", "text", "messages") for s in strings(item.get(key, "")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", nargs="+", required=True)
    parser.add_argument("--training", nargs="+", required=True)
    parser.add_argument("--ngram", type=int, default=10)
    parser.add_argument("--common", type=int, default=3)
    parser.add_argument("--write", help="the training lines that do not overlap")
    arguments = parser.parse_args()
    if arguments.ngram < 1:
        sys.exit("check_overlap.py: --ngram must be at least 1")
    counts, home = collections.Counter(), {}
    for path in arguments.held_out:
        items = 0
        for number, item, _ in lines_of(path):
            items += 1
            for gram in set().union(*(grams(s, arguments.ngram) for s in strings(item)), set()):
                counts[gram] += 1
                home.setdefault(gram, f"{os.path.basename(path)}:{number}")
        print(f"held out: {items} items of {os.path.basename(path)}")
    wanted = {gram for gram, count in counts.items() if count <= arguments.common}
    print(f"{len(wanted)} sequences of {arguments.ngram} words; {len(counts) - len(wanted)} stand in more than {arguments.common} items and do not count")
    bad = total = 0
    partial = f"{arguments.write}.partial" if arguments.write else None
    out = open(partial, "w", encoding="utf-8") if partial else None
    for path in arguments.training:
        for number, item, line in lines_of(path):
            total += 1
            shared = grams(training_text(item), arguments.ngram) & wanted
            if shared:
                bad += 1
                if bad <= 20:
                    gram = min(shared)
                    print(f"overlap: {os.path.basename(path)}:{number} and {home[gram]}: \"{gram}\"")
            elif out:
                out.write(line if line.endswith("\n") else line + "\n")
    if out:
        out.close()
        os.replace(partial, arguments.write)
    print(f"{bad} of {total} training lines overlap" + ("; the others are in " + arguments.write if arguments.write else ""))
    sys.exit(1 if bad and not arguments.write else 0)


if __name__ == "__main__":
    main()
