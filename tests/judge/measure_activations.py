"""What rounding activations to int8 costs on the real model, by group size and kind of scale: the table in
docs/decisions/activations.md. Uses the numpy reference alone. Takes about two minutes on two cores.

    measure_activations.py [--windows N]
"""

import argparse
import pathlib

import numpy as np

import command
import reference
from kl_judge import WINDOW
from reference import Reference, log_softmax

VARIANTS = [(16, "a / 127"), (32, "a / 127"), (64, "a / 127"), (32, "power of two"), (None, "a / 127")]


def rounded(x, group, kind):
    """x with each group of values rounded to 127 steps; group None: the whole row is one."""
    groups = x.reshape(*x.shape[:-1], -1, group or x.shape[-1])
    scale = np.abs(groups).max(axis=-1, keepdims=True) / np.float32(127)
    if kind == "power of two":
        scale = np.exp2(np.ceil(np.log2(np.maximum(scale, np.float32(1e-30)))))
    scale = np.where(scale > 0, scale, 1).astype(np.float32)
    return (np.rint(groups / scale) * scale).reshape(x.shape)


class Rounding(Reference):
    """The reference with this rounding at the inputs of quantised weights."""

    def __init__(self, path, group, kind):
        super().__init__(path)
        self.group, self.kind = group, kind

    def matmul(self, x, name, bias=None):
        if self.file.quantised(name):
            x = rounded(x, self.group, self.kind)
        return super().matmul(x, name, bias)


def mean_loss(scores, tokens):
    return float(-np.take_along_axis(scores[:-1], tokens[1:, None], axis=-1).mean(dtype=np.float64))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=4)
    count = parser.parse_args().windows
    path = command.real_model()
    text = pathlib.Path(command.fetch("fetch_text.sh")).read_text()
    ids = np.array(reference.tokenizer(path).encode(text).ids[:count * WINDOW]).reshape(count, WINDOW)
    exact = Reference(path)
    base = [log_softmax(exact.forward(window)) for window in ids]
    plain = np.mean([mean_loss(scores, window) for scores, window in zip(base, ids)])
    print(f"{ids.size} tokens; f32 activations: perplexity {np.exp(plain):.3f}\n")
    print("| group | scale | mean KL | perplexity |\n|---|---|---|---|")
    for group, kind in VARIANTS:
        model, divergence, loss = Rounding(path, group, kind), [], []
        for window, p in zip(ids, base):
            q = log_softmax(model.forward(window))
            divergence.append((np.exp(p) * (p - q)).sum(axis=-1).mean(dtype=np.float64))
            loss.append(mean_loss(q, window))
        change = 100 * (np.exp(np.mean(loss) - plain) - 1)
        print(f"| {group or 'row'} | {kind} | {np.mean(divergence):.2e} | {change:+.2f}% |", flush=True)


if __name__ == "__main__":
    main()
