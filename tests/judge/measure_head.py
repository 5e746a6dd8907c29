"""How many outputs of the head a draw would still have to compute exactly, had it read a smaller copy of it
first: the table in docs/decisions/head.md. The copy has `bits` a weight, with an f16 scale and an f16 offset
a block of 32. Its error e . x, e the difference of a weight row and its copy, is bounded by Cauchy-Schwarz,
block by block, once the part of x in `directions` (the leading singular vectors of the head's inputs, from
other text) is taken out and its e . x added exactly. An output is a candidate if its upper bound reaches the
best lower bound. Float rounding is left out: it is far below these bounds. About a minute on two cores.

    measure_head.py --coppice build/release/apps/coppice
"""

import pathlib
import tempfile

import gguf
import numpy as np

import command
import reference

WINDOWS, WINDOW, SKIPPED = 24, 64, 4  # windows of tokens, spread over the text; the first few are left out
GROUP, BLOCK, TOGETHER = 32, 32, 8  # outputs computed together; weights a block; rows of one pass


def head_inputs(coppice, model, ids):
    """The head's rounded inputs for a window of tokens: [tokens, hidden]"""
    with tempfile.TemporaryDirectory() as folder:
        codes = max(command.layers(coppice, model, ids, folder).glob("*_token_embd.weight.codes.npy"))
        scales = np.load(str(codes).replace(".codes.", ".scales."))
        x = np.load(codes).reshape(len(ids), -1, BLOCK) * scales.reshape(len(ids), -1, 1).astype(np.float32)
    return x.reshape(len(ids), -1)[SKIPPED:]


def copied(weights, bits):
    """The smaller copy's values."""
    blocks, steps = weights.reshape(len(weights), -1, BLOCK), 2**bits - 1
    low, high = blocks.min(axis=2, keepdims=True), blocks.max(axis=2, keepdims=True)
    scale, low = (part.astype(np.float16).astype(np.float32) for part in ((high - low) / steps, low))
    scale[scale == 0] = 1
    return (np.clip(np.rint((blocks - low) / scale), 0, steps) * scale + low).reshape(weights.shape)


def block_norms(x):
    return np.linalg.norm(x.reshape(len(x), -1, BLOCK), axis=2)


def report(x, bits, directions, noise, exact, weights, copy):
    error, inside = weights - copy, x @ directions.T
    outside = x - inside @ directions
    estimate = x @ copy.T + inside @ (error @ directions.T).T
    bound = block_norms(outside) @ block_norms(error).T
    assert (np.abs(exact - estimate) <= bound + 1e-3).all()
    vocab, group_bytes = len(weights), GROUP * weights.shape[1] * 34 / 32
    size = weights.size * (bits / 8 + 4 / BLOCK) + vocab * (2 * len(directions) + 2 * weights.shape[1] / BLOCK)
    for name, plus in (("greedy", 0), ("T = 1", noise)):
        score = estimate + plus
        candidate = score + bound >= (score - bound).max(axis=1, keepdims=True)
        groups = np.pad(candidate, ((0, 0), (0, -vocab % GROUP))).reshape(len(x), -1, GROUP).any(axis=2)
        together = groups[:len(x) // TOGETHER * TOGETHER].reshape(-1, TOGETHER, groups.shape[1]).any(axis=1)
        one, eight = groups.sum(axis=1), together.sum(axis=1)
        megabytes = [(size + count.mean() * group_bytes) / 1e6 for count in (one, eight)]
        cells = [bits, len(directions), f"{np.median(bound):.1f}", name, f"{np.median(candidate.sum(axis=1)):.0f}",
                 f"{np.median(one):.0f}", f"{one.mean():.0f}", f"{eight.mean():.0f}", *(f"{m:.1f}" for m in megabytes)]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


def main():
    coppice, path = command.options(__doc__), command.real_model()
    ids = reference.tokenizer(path).encode(pathlib.Path(command.fetch("fetch_text.sh")).read_text()).ids
    starts = np.linspace(0, len(ids) - WINDOW, WINDOWS).astype(int)
    inputs = [head_inputs(coppice, path, ids[start:start + WINDOW]) for start in starts]
    learned, x = np.concatenate(inputs[::2]), np.concatenate(inputs[1::4])
    tensor = next(t for t in gguf.GGUFReader(path).tensors if t.name == "token_embd.weight")
    weights = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    directions = np.linalg.svd(learned, full_matrices=False)[2]
    exact, noise = x @ weights.T, np.random.default_rng(1).gumbel(size=(len(x), len(weights))).astype(np.float32)
    print(f"{len(x)} draws; the head itself: {weights.size * 34 / 32 / 1e6:.1f} MB, {len(weights) // GROUP} groups\n")
    print("| bits | directions | median bound | draw | candidates, median | groups, median | groups, mean | "
          f"groups of {TOGETHER} rows, mean | MB read, one row | MB read, {TOGETHER} rows |\n" + "|---" * 10 + "|")
    for bits in (4, 5, 6):
        copy = copied(weights, bits)
        for count in (0, 8, 32):
            report(x, bits, directions[:count], noise, exact, weights, copy)


if __name__ == "__main__":
    main()
