#!/usr/bin/env python3
"""What SentencePiece's BPE costs in instructions, counted by valgrind: a text of twice the length takes twice as many, a run of
spaces too, and ordinary text a quarter more than it did when these numbers were taken, at most. Time would say the same on a
quiet machine: tokenizer_judge.py prints MB/s.

    tokenizer_cost.py --tokenize-lines build/dev/tests/tokenize_lines
"""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import tokenizer_pieces as pieces
from tokenizer_texts import documents, make_texts

SKIPPED = 77  # ctest's SKIP_RETURN_CODE
INSIDE = "coppice::core::Tokenizer::encode(std::span<*"  # what all others call
RUNS = {"spaces": " ", "letters": "a"}
SHORT = 20_000  # bytes of a run
MOST_GROWTH = 2.2  # twice the text: twice the instructions; n log n would be 2.14 here, and n * n 4
A_BYTE = {"llama": 291, "gemma": 316, "squeezed": 494, "no-bytes": 298}  # of ordinary text, every word for the first time
MOST_GROWN = 1.25  # of those: the text is this project's own, and changes


def count(program, path, text, folder):
    """Instructions inside Tokenizer::encode()."""
    out, data = os.path.join(folder, "callgrind.out"), text.encode()
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={INSIDE}", program, path],
                          input=struct.pack("<I", len(data)) + data, capture_output=True)
    if done.returncode:
        sys.exit(f"tokenizer_cost: valgrind failed: {done.stderr.decode()[-2000:]}")
    with open(out, encoding="utf-8") as file:
        instructions = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE).group(1))
    if instructions < len(data):
        sys.exit(f"tokenizer_cost: {instructions} instructions for {len(data)} bytes: {INSIDE} is not what encodes any more")
    return instructions


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenize-lines", required=True)
    program = parser.parse_args().tokenize_lines
    if not shutil.which("valgrind"):
        print("no valgrind: not on this machine")
        return SKIPPED
    text, failed = documents(200_000), 0
    training = "\n".join([text, *make_texts(1000, 5)]).splitlines()
    with tempfile.TemporaryDirectory() as folder:
        for kind, options in pieces.KINDS.items():
            if options["model_type"] != "bpe":
                continue
            path = pieces.train(folder, kind, training).path
            ordinary = text[:SHORT]
            each = count(program, path, ordinary, folder) / len(ordinary.encode())
            said = [f"{each:.0f} a byte, at most {MOST_GROWN * A_BYTE[kind]:.0f}"]
            failed += each > MOST_GROWN * A_BYTE[kind]
            for name, part in RUNS.items():
                short, long = (count(program, path, (part * size)[:size], folder) for size in (SHORT, 2 * SHORT))
                said.append(f"{name} {short / SHORT:.0f} a byte, twice as many {long / short:.2f} times")
                failed += long > MOST_GROWTH * short
            print(f"{kind}: {'; '.join(said)}", flush=True)
    if failed:
        print(f"{failed} are too dear; twice the text may take {MOST_GROWTH} times the instructions")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
