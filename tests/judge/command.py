"""How the judge calls the coppice command: the only file here that knows its options."""

import argparse
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


def options(description):
    """-> the path of the coppice command under judgement."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--coppice", required=True, help="the coppice command to judge")
    return parser.parse_args().coppice


def real_model():
    """SmolLM2-135M-Instruct, fetched as the demo fetches it."""
    if os.environ.get("COPPICE_MODEL"):
        return os.environ["COPPICE_MODEL"]
    return fetch("fetch_model.sh")


def fetch(script):
    return subprocess.run([ROOT / "scripts" / script], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def call(*arguments):
    run = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}\nended with {run.returncode}:\n{run.stderr[-2000:]}")
    return run.stdout


def listed(tokens):
    return ",".join(str(int(token)) for token in tokens)


def logits(coppice, model, tokens, folder, cache="f32"):
    """[tokens, vocab] float32"""
    out = pathlib.Path(folder) / "logits.npy"
    call(coppice, "eval", "logits", "--model", model, "--ids", listed(tokens), "--cache", cache, "--output", out)
    result = np.load(out)
    out.unlink()
    return result


def head_logits(coppice, model, head, tokens, steps, folder):
    """[(tokens - steps) * steps, vocab] float32"""
    out = pathlib.Path(folder) / "head.npy"
    call(coppice, "eval", "head", "--model", model, "--head", head, "--ids", listed(tokens), "--steps", steps, "--output", out)
    result = np.load(out)
    out.unlink()
    return result


def layers(coppice, model, tokens, folder):
    """Writes NNN_<tensor>.{in,codes,scales,out}.npy to a new folder and returns it."""
    out = pathlib.Path(folder) / "layers"
    call(coppice, "eval", "layers", "--model", model, "--ids", listed(tokens), "--output", out)
    return out


def perplexity(coppice, model, text_file, context):
    """-> (perplexity, tokens scored), over text cut into windows as llama.cpp's perplexity tool does"""
    out = call(coppice, "eval", "ppl", "--model", model, "--file", text_file, "--context", context)
    answer = re.search(r"perplexity ([0-9.]+) \+/- [0-9.]+ over (\d+) tokens", out)
    if not answer:
        sys.exit(f"`coppice eval ppl` printed no perplexity: {out[-500:]}")
    return float(answer.group(1)), int(answer.group(2))
