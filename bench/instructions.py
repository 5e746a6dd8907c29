"""How many instructions fixed passes over small random models take: a guard against passes that grow dearer unseen.

Counted by valgrind's callgrind inside Context::forward, in our own code alone (the C library picks its functions by CPU),
with the AVX2 kernels and one thread, so that every machine and every run gives the same number. A count that is more than
3% above or below the committed one (bench/instructions.json) fails: what grew needs a reason, what shrank a new number.

    instructions.py --coppice build/dev/apps/coppice            compares
    instructions.py --coppice build/dev/apps/coppice --renew    writes the new numbers"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

EXPECTED = pathlib.Path(__file__).with_suffix(".json")
SLACK = 0.03
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
SHAPE = ["--hidden", "128", "--layers", "3", "--heads", "4", "--feed-forward", "256", "--vocab", "600", "--context-length", "256"]
CASES = {"llama": [*SHAPE, "--kv-heads", "2", "--formats", "Q4_0,Q4_1,Q8_0"], "gpt2": [*SHAPE, "--architecture", "gpt2", "--formats", "Q4_1,F16"]}
PASSES = ["--rows", "1,4,8,16", "--contexts", "70", "--prefill", "64", "--chunk", "48", "--repeats", "1", "--threads", "1", "--isa", "avx2"]
INSIDE = "coppice::core::Context::forward(*"


def has_avx2(coppice):
    info = json.loads(subprocess.run([coppice, "info", "--json"], capture_output=True, text=True, check=True).stdout)
    return any(isa["name"] == "avx2" and isa["usable"] for isa in info["isa"])


def by_function(text, ours):
    """-> instructions of each function of the object `ours`, from callgrind's file with uncompressed names. A cost line is
    a line number and a count; the one behind `calls=` is what the called function took, and is counted there."""
    counts, here, function, called = collections.Counter(), False, "", False
    for line in text.splitlines():
        if line.startswith("ob="):
            here = pathlib.Path(line[3:]).name == ours
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            called = True
        elif line and (line[0].isdigit() or line[0] in "+-*"):
            if here and not called:
                counts[function] += int(line.split()[1])
            called = False
    return counts


def count(coppice, arguments, folder):
    model, out = folder / "model.gguf", folder / "callgrind.out"
    subprocess.run([coppice, "random-model", "-o", model, "--threads", "1", *arguments], check=True, stdout=subprocess.DEVNULL)
    run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={INSIDE}", "--compress-strings=no",
                          "--compress-pos=no", coppice, "bench", "cost", "-m", model, *PASSES], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"instructions.py: valgrind failed: {run.stderr[-2000:]}")
    return by_function(out.read_text(), pathlib.Path(coppice).resolve().name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coppice", required=True)
    parser.add_argument("--renew", action="store_true", help="write bench/instructions.json")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("instructions.py: valgrind is missing; run ./dev setup")
    if not has_avx2(options.coppice):
        print("no AVX2: not on this machine")
        return SKIPPED
    counted, expected = {}, json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in CASES.items():
            functions = count(options.coppice, arguments, pathlib.Path(folder))
            counted[name] = sum(functions.values())
            before = expected.get(name, 0)
            change = counted[name] / before - 1 if before else float("inf")
            differs = abs(change) > SLACK
            wrong |= differs
            print(f"{name}: {counted[name]} instructions, committed {before} ({change:+.2%})")
            if differs or options.renew:
                for function, instructions in functions.most_common(8):
                    print(f"    {instructions / counted[name]:6.1%}  {function[:150]}")
    if options.renew:
        EXPECTED.write_text(json.dumps(counted, indent=1) + "\n")
        return 0
    if wrong:
        print(f"differs by more than {SLACK:.0%}. If that is right: python3 bench/instructions.py --coppice {options.coppice} --renew")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
