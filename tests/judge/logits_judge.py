"""Unquantised weights, f32 cache: our logits are the reference's to 1e-4 relative, end to end, on small random models of
both architectures. (Quantised weights are judged layer by layer: end to end, one flipped rounding avalanches.)"""

import sys
import tempfile

import numpy as np

import command
import random_model
from reference import Reference

LIMIT = 1e-4  # of the larger of a logit and its row's root mean square
MODELS = [
    dict(arch="llama", types=("F32",), seed=1),
    dict(arch="llama", types=("F16", "F32", "BF16"), seed=2, tied=True, rope_base=1e5, merges=200),
    dict(arch="llama", types=("BF16",), seed=3, heads=4, kv_heads=4, hidden=128, feed_forward=96, layers=2),
    dict(arch="llama", types=("F16",), seed=4, heads=8, kv_heads=1, hidden=256, layers=1, merges=1),
    dict(arch="gpt2", types=("F32",), seed=5),
    dict(arch="gpt2", types=("F16", "BF16", "F32"), seed=6, tied=True, merges=200),
]


def relative_error(ours, reference):
    size = np.maximum(np.abs(reference), np.sqrt(np.mean(reference ** 2, axis=-1, keepdims=True)))
    return float((np.abs(ours - reference) / size).max())


def main():
    coppice = command.options(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for wanted in MODELS:
            path = f"{folder}/model.gguf"
            vocab = random_model.write(path, **wanted)
            tokens = np.random.default_rng(wanted["seed"]).integers(0, vocab, 150)
            expected = Reference(path, dtype=np.float64).forward(tokens)
            ours = command.logits(coppice, path, tokens, folder)
            if ours.shape != expected.shape or ours.dtype != np.float32:
                print(f"FAILED {wanted}: shape {ours.shape} of {ours.dtype}, should be {expected.shape} of float32")
                failed += 1
                continue
            error = relative_error(ours.astype(np.float64), expected)
            good = error <= LIMIT  # false for NaN too
            failed += not good
            print(f"{'ok' if good else 'FAILED'} {wanted}: relative error {error:.2e}, at most {LIMIT:.0e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
