"""Unquantised weights, f32 cache: our logits are the reference's to 1e-4 relative, end to end, on the small random models of
tests/architectures.json. (Quantised weights are judged layer by layer: end to end, one flipped rounding avalanches.)"""

import sys
import tempfile

import numpy as np

import architectures
import command
import random_model
from reference import Reference

LIMIT = 1e-4  # of the larger of a logit and its row's root mean square


def relative_error(ours, reference):
    size = np.maximum(np.abs(reference), np.sqrt(np.mean(reference ** 2, axis=-1, keepdims=True)))
    return float((np.abs(ours - reference) / size).max())


def main():
    coppice = command.options(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, options in architectures.models():
            path, wanted = f"{folder}/model.gguf", dict(arch=name, **options)
            vocab = random_model.write(path, **wanted)
            tokens = np.random.default_rng(wanted["seed"]).integers(0, vocab, 150)
            expected = Reference(path, dtype=np.float64, length=len(tokens)).forward(tokens)
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
