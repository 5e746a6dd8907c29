"""Quantised weights, layer by layer: from the input rows that our pass had at each matmul, the int8 codes are those of
docs/numerics.md, 20 (a value within 1e-5 of a tie may go either way) and the outputs are the reference's to 1e-4."""

import pathlib
import re
import sys
import tempfile

import numpy as np

import command
import formats
import random_model
import reference

TIE = 1e-5    # distance to a half, in steps
LIMIT = 1e-4  # of the larger of an output and its row's root mean square


def code_problem(x, codes, scales):
    """None, or what is wrong with the codes and scales of rows x [rows, inputs]."""
    groups = x.astype(np.float64).reshape(*scales.shape, reference.GROUP)
    codes = codes.astype(np.float64).reshape(groups.shape)
    amax = np.abs(groups).max(axis=-1)
    off = np.abs(scales - amax / 127) > 1e-6 * amax / 127
    if off.any():
        return f"{off.sum()} of {off.size} scales are not amax / 127"
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(amax[..., None] > 0, groups * (127 / amax[..., None]), 0)
    # A right code is at most half a step from the value, and a hair more at a tie.
    distance = np.abs(codes - steps)
    wrong = (distance > 0.5 + TIE) | (np.abs(codes) > 127)
    if wrong.any():
        return f"{wrong.sum()} of {wrong.size} codes are wrong, by up to {distance.max():.3f} steps"
    # Exactly at a tie, the even one.
    ties = (np.abs(steps - np.trunc(steps)) == 0.5) & (codes != np.rint(steps))
    if ties.sum() > max(3, 1e-6 * ties.size):
        return f"{ties.sum()} ties do not go to the even code"
    return None


def of_blocks(values):
    """Every format with blocks of so many values."""
    return tuple(name for name in formats.names() if formats.block(name)[0] == values)


def output_error(x, weights, out):
    expected = x.astype(np.float64) @ weights.astype(np.float64).T
    size = np.maximum(np.abs(expected), np.sqrt(np.mean(expected ** 2, axis=-1, keepdims=True)))
    return float((np.abs(out - expected) / np.maximum(size, 1e-30)).max())


def judge(file, folder):
    """-> (matmuls seen, names of tensors seen, worst error, list of problems)"""
    problems, worst, names, count = [], 0.0, set(), 0
    for path in sorted(pathlib.Path(folder).glob("*.in.npy")):
        stem = path.name.removesuffix(".in.npy")
        tensor = re.sub(r"^\d+_", "", stem)
        load = lambda part: np.load(path.with_name(f"{stem}.{part}.npy"))
        x, out = np.load(path), load("out")
        tensor, expert = (tensor, None) if tensor.endswith(".weight") else tensor.rsplit(".", 1)
        weights = file.weight(tensor) if expert is None else file.weight(tensor)[int(expert)]
        out = out[:, :weights.shape[0]]  # padding outputs are no part of the answer
        if x.shape[1] != weights.shape[1] or out.shape != (x.shape[0], weights.shape[0]):
            problems.append(f"{stem}: in {x.shape} and out {out.shape} do not fit weights {weights.shape}")
            continue
        if file.quantised(tensor):
            codes, scales = load("codes"), load("scales")
            if codes.dtype != np.int8 or codes.shape != x.shape or scales.shape != (x.shape[0], x.shape[1] // 32):
                problems.append(f"{stem}: codes {codes.dtype} {codes.shape}, scales {scales.shape}, in {x.shape}")
                continue
            wrong = code_problem(x, codes, scales)
            if wrong:
                problems.append(f"{stem}: {wrong}")
            x = codes.astype(np.float64) * np.repeat(scales.astype(np.float64), 32, axis=1)
        error = output_error(x, weights, out)
        worst = max(worst, error) if error == error else error
        if not error <= LIMIT:
            problems.append(f"{stem}: output error {error:.2e}, at most {LIMIT:.0e}")
        names.add(tensor)
        count += 1
    return count, names, worst, problems


def matrices(file):
    """The tensors that a pass multiplies by, those of experts among them."""
    names = {name for name, tensor in file.tensors.items() if len(tensor.shape) >= 2}
    names -= {"position_embd.weight"}
    if "output.weight" in names:
        names.discard("token_embd.weight")
    return names


def main():
    coppice = command.options(__doc__)
    real = command.real_model()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        cases = [("SmolLM2", real, 12)]
        for number, wanted in enumerate([
                dict(arch="llama", types=("Q4_0", "Q4_1", "Q8_0"), seed=11),
                dict(arch="llama", types=("Q8_0", "F16", "Q4_1", "BF16", "Q4_0"), seed=12, tied=True, merges=200),
                dict(arch="gpt2", types=("Q4_1", "Q4_0", "Q8_0", "F32"), seed=13),
                dict(arch="qwen3moe", types=("Q8_0", "Q4_0", "F32"), seed=14, experts=4, feed_forward=64),
                dict(arch="gemma2", types=("Q8_0", "Q4_1"), seed=15, tied=True, keys={
                    "attention.sliding_window": 20, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0}),
                dict(arch="phi3", types=("Q4_0", "Q8_0"), seed=16),
                dict(arch="falcon", types=("Q8_0",), seed=17, kv_heads=1),
                dict(arch="llama", types=of_blocks(32), seed=18),
                dict(arch="llama", types=of_blocks(256), seed=19, hidden=256, heads=4, feed_forward=512)]):
            path = f"{scratch}/{number}.gguf"
            random_model.write(path, **wanted)
            cases.append((str(wanted), path, 60))
        for number, (name, path, rows) in enumerate(cases):
            folder = pathlib.Path(scratch) / f"case{number}"
            folder.mkdir()
            file = reference.File(path)
            if path == real:
                tokens = reference.tokenizer(path).encode("Alice was beginning to get very tired of sitting by her sister").ids
            else:
                tokens = np.random.default_rng(number).integers(0, 256, rows)
            count, names, worst, problems = judge(file, command.layers(coppice, path, tokens, folder))
            missing = matrices(file) - names
            if missing:
                problems.append(f"nothing was written for {len(missing)} matrices, among them {sorted(missing)[0]}")
            print(f"{'FAILED' if problems else 'ok'} {name}: {count} matmuls, worst output error {worst:.1e}")
            for problem in problems[:20]:
                print(f"  {problem}")
            failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
