"""Unquantised weights, f32 cache: our logits are the reference's to 1e-4 relative, end to end, on small random models of
every architecture. (Quantised weights are judged layer by layer: end to end, one flipped rounding avalanches.)"""

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
    dict(arch="llama", types=("F32",), seed=7, biases=True, head_dim=32, keys={"attention.sliding_window": 20}),
    dict(arch="llama", types=("F32",), seed=8, keys={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    dict(arch="llama", types=("F32",), seed=9, factors=["rope_freqs.weight"]),
    dict(arch="llama", types=("F32",), seed=10, head_dim=64, keys={
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 128}),
    dict(arch="qwen2", types=("F32",), seed=11),
    dict(arch="qwen3", types=("F32", "F16"), seed=12, head_dim=32, tied=True),
    dict(arch="olmo2", types=("F32",), seed=13),
    dict(arch="olmo2", types=("F32",), seed=14, layers=4, context=1024, head_dim=32, heads=4, kv_heads=4, hidden=128, keys={
        "attention.sliding_window": 30, "rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
        "rope.scaling.original_context_length": 128}),
    dict(arch="granite", types=("F32",), seed=15, tied=True, keys={
        "embedding_scale": 3.0, "residual_scale": 0.4, "attention.scale": 0.1, "logit_scale": 2.0}),
    dict(arch="gemma2", types=("F32",), seed=16, layers=4, tied=True, head_dim=32, keys={
        "attention.sliding_window": 25, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0}),
    dict(arch="gemma3", types=("F32",), seed=17, layers=7, tied=True, head_dim=32, kv_heads=1, rope_base=1e6, keys={
        "attention.sliding_window": 25, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}),
    dict(arch="phi3", types=("F32",), seed=18, keys={"attention.sliding_window": 60}),
    dict(arch="phi3", types=("F32",), seed=19, head_dim=32, heads=4, kv_heads=1, hidden=128, context=4096, keys={
        "rope.dimension_count": 24, "rope.scaling.original_context_length": 1024, "rope.scaling.attn_factor": 1.19},
        factors=["rope_factors_long.weight", "rope_factors_short.weight"]),
    dict(arch="phi3", types=("F32",), seed=27, context=4096, keys={
        "rope.scaling.original_context_length": 100, "rope.scaling.attn_factor": 1.19},
        factors=["rope_factors_long.weight", "rope_factors_short.weight"]),
    dict(arch="gptneox", types=("F32",), seed=20, head_dim=32, heads=3, keys={
        "rope.dimension_count": 8, "use_parallel_residual": True}),
    dict(arch="gptneox", types=("F32",), seed=21, keys={"use_parallel_residual": False}),
    dict(arch="starcoder2", types=("F32",), seed=22, tied=True, keys={"attention.sliding_window": 50}),
    dict(arch="falcon", types=("F32",), seed=23, kv_heads=1),
    dict(arch="falcon", types=("F32",), seed=24, tied=True, second_norm=True),
    dict(arch="llama", types=("F32",), seed=25, experts=5),
    dict(arch="qwen3moe", types=("F32", "F16"), seed=26, experts=8, used=3, feed_forward=64),
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
