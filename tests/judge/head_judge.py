"""Draft heads (EAGLE-3): our logits are numpy's to 1e-4 relative, from the target's states and from the head's own, over
unquantised weights of both models, in every spelling and variant of the file that is read."""

import sys
import tempfile

import numpy as np

import architectures
import command
import random_head
import random_model
from logits_judge import LIMIT, relative_error
from reference import Cache, Reference

STEPS = 3
HEADS = [
    dict(),
    dict(types=("F16", "F32", "BF16"), rows=60, standardised=True),
    dict(rows=200, old_names=True, layers=(1, 2)),
    dict(own_embedding=True, hidden=128, norm_before_residual=True, layers=(3,)),
    dict(own_output=False, heads=6, kv_heads=1),
]


class Head(Reference):
    """The same parts as the target's reference, in the head's order."""

    def __init__(self, path, target):
        self.arch, self.activations = "llama", "float"
        self.facts = architectures.facts(self.arch)
        self.target, self.dtype = target, target.dtype
        self.file = file = type(target.file)(path)
        key = lambda name, otherwise=None: file.key(f"eagle3.{name}", otherwise)
        self.heads, self.kv_heads = key("attention.head_count"), key("attention.head_count_kv")
        self.head_dim, self.rope_dims = key("attention.key_length"), key("rope.dimension_count")
        self.rope_base, self.eps = float(key("rope.freq_base")), float(key("attention.layer_norm_rms_epsilon"))
        self.frequencies = self.window_frequencies = self.rope_base ** (-2.0 * np.arange(self.rope_dims // 2) / self.rope_dims)
        self.magnitude, self.attention_scale, self.score_cap, self.window = 1.0, 1 / np.sqrt(self.head_dim), 0.0, 0
        self.layers = key("target_layers", 0) or key("extract_layers")
        self.norm_before_residual = key("norm_before_residual", False)
        self.weights = {name: file.weight(name).astype(self.dtype) for name in file.tensors if name != "d2t"}
        for shared in ("token_embd.weight", "output.weight"):
            if shared not in self.weights:
                self.weights[shared] = target.weights[shared if shared in target.weights else target.head]
        self.hidden_norm = next(name for name in ("blk.0.attn_norm_2", "blk.0.hidden_norm") if name + ".weight" in self.weights)
        self.ids = np.asarray(file.tensors["d2t"].data) if "d2t" in file.tensors else None
        if self.ids is not None and self.hidden_norm == "blk.0.hidden_norm":  # offsets, in files of that time
            self.ids = self.ids + np.arange(len(self.ids))

    def fuse(self, features):
        if "feature_mean.weight" in self.weights:
            features = (features - self.weights["feature_mean.weight"]) * self.weights["feature_scale.weight"]
        return self.matmul(features, "fc.weight")

    def step(self, g, tokens, positions, cache, first):
        """g [rows, hidden]: fused features or the output of the row before -> (logits by full id, output) of these rows"""
        normed = self.norm(g, self.hidden_norm)
        x = np.concatenate([self.norm(self.weights["token_embd.weight"][tokens], "blk.0.attn_norm"), normed], axis=-1)
        q, k, v = self.project(x, "blk.0.")
        q, k = self.rope(q, positions), self.rope(k, positions)
        k, v = cache.extend(0, k, v)
        seen = np.swapaxes(self.attention(q, k, v, first), -2, -3)
        h = normed if self.norm_before_residual else g
        h = h + self.matmul(seen.reshape(len(g), -1), "blk.0.attn_output.weight")
        h = h + self.feed_forward(self.norm(h, "blk.0.ffn_norm"), "blk.0.")
        logits = self.matmul(self.norm(h, "output_norm"), "output.weight")
        if self.ids is not None:
            full = np.full((len(g), len(self.weights["token_embd.weight"])), -np.inf, self.dtype)
            full[:, self.ids] = logits
            logits = full
        return logits, h

    def along(self, tokens, steps):
        """[tokens - steps, steps, vocab]"""
        g = self.fuse(np.concatenate([self.target.residual(tokens[:-1], layer) for layer in self.layers], axis=-1))
        answer = []
        for p in range(len(tokens) - steps):
            cache = Cache()  # of all positions up to this one, from the target's states
            logits, h = self.step(g[:p + 1], tokens[1:p + 2], np.arange(p + 1), cache, 0)
            said, h = [logits[-1]], h[-1:]
            for step in range(1, steps):
                logits, h = self.step(h, tokens[p + step + 1:p + step + 2], np.array([p + step]), cache, p + step)
                said.append(logits[-1])
            answer.append(said)
        return np.array(answer)


def head_error(ours, expected):
    """The largest relative error where the head speaks; infinite where they do not agree on where that is."""
    spoken = np.isfinite(expected)
    if not np.array_equal(spoken, np.isfinite(ours)):
        return np.inf
    vocab = expected.shape[-1]
    width = spoken.reshape(-1, vocab)[0].sum()
    pick = lambda x: x.reshape(-1, vocab)[spoken.reshape(-1, vocab)].reshape(-1, width)
    return relative_error(pick(ours.astype(np.float64)), pick(expected))


def main():
    coppice = command.options(__doc__)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        target, head = f"{folder}/target.gguf", f"{folder}/head.gguf"
        vocab = random_model.write(target, "llama", ("F32",), seed=9, layers=3)
        reference = Reference(target, dtype=np.float64)
        for number, wanted in enumerate(HEADS):
            random_head.write(head, target, seed=number, **wanted)
            tokens = np.random.default_rng(number).integers(0, vocab, 40)
            expected = Head(head, reference).along(tokens, STEPS)
            ours = command.head_logits(coppice, target, head, tokens, STEPS, folder).reshape(expected.shape)
            error = head_error(ours, expected)
            good = error <= LIMIT  # false for NaN too
            failed += not good
            print(f"{'ok' if good else 'FAILED'} {wanted}: relative error {error:.2e}, at most {LIMIT:.0e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
