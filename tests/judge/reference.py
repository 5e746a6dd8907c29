"""The independent judge's forward pass: `llama` and `gpt2` GGUF files in numpy, written from the architectures'
definitions and not from the C++ code. Weights come from the gguf package's `dequantize`, arithmetic is plain numpy.

    model = Reference("model.gguf")                  # float32 throughout
    logits = model.forward(tokens)                   # [tokens, vocab]
    logits = model.forward(batch)                    # [batch, tokens, vocab], for several texts of one length
    Reference(path, dtype=numpy.float64)             # for comparisons to many digits
    Reference(path, activations="int8")              # inputs of quantised weights rounded as docs/numerics.md, 20, says

A Cache makes it incremental: forward(first, cache); forward(next, cache).
"""

import gguf
import numpy as np
from gguf.quants import dequantize

FLOAT_TYPES = {gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16}
GROUP = 32


def quantize_groups(x):
    """x [..., inputs] -> (codes int8 [..., inputs], scales float32 [..., inputs / 32]): rule 20."""
    groups = np.asarray(x, np.float32).reshape(*x.shape[:-1], x.shape[-1] // GROUP, GROUP)
    amax = np.abs(groups).max(-1)
    scales = (amax / np.float32(127)).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = np.where(amax > 0, np.float32(127) / amax, np.float32(0)).astype(np.float32)
    codes = np.clip(np.rint(groups * inverse[..., None]), -127, 127).astype(np.int8)
    return codes.reshape(x.shape), scales


def dequantize_groups(codes, scales):
    groups = codes.reshape(*scales.shape, GROUP).astype(np.float32) * scales[..., None]
    return groups.reshape(codes.shape)


class File:
    """Keys and tensors of a GGUF file. Tensors are [outputs, inputs], dequantised when asked for."""

    def __init__(self, path):
        self.reader = gguf.GGUFReader(path)
        self.tensors = {tensor.name: tensor for tensor in self.reader.tensors}

    def key(self, name, otherwise=None):
        field = self.reader.fields.get(name)
        if field is None:
            if otherwise is None:
                raise KeyError(f"the file has no key {name}")
            return otherwise
        return field.contents()

    def weight(self, name):
        tensor = self.tensors[name]
        return np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)

    def quantised(self, name):
        return self.tensors[name].tensor_type not in FLOAT_TYPES


class Cache:
    def __init__(self):
        self.keys, self.values, self.length = {}, {}, 0

    def extend(self, layer, k, v):
        """Appends along the positions' axis and returns everything so far."""
        if layer in self.keys:
            k = np.concatenate([self.keys[layer], k], axis=-2)
            v = np.concatenate([self.values[layer], v], axis=-2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class Reference:
    def __init__(self, path, dtype=np.float32, activations="float"):
        if activations not in ("float", "int8"):
            raise ValueError("activations are `float` or `int8`")
        self.file, self.dtype, self.activations = File(path), dtype, activations
        arch = self.arch = self.file.key("general.architecture")
        if arch not in ("llama", "gpt2"):
            raise ValueError(f"the judge knows llama and gpt2, not {arch}")
        key = lambda name, otherwise=None: self.file.key(f"{arch}.{name}", otherwise)
        self.layers = key("block_count")
        self.hidden = key("embedding_length")
        self.heads = key("attention.head_count")
        self.kv_heads = key("attention.head_count_kv", self.heads)
        self.head_dim = key("attention.key_length", self.hidden // self.heads)
        self.rope_dims = key("rope.dimension_count", self.head_dim)
        self.rope_base = float(key("rope.freq_base", 10000.0))
        self.eps = float(key("attention.layer_norm_rms_epsilon" if arch == "llama" else "attention.layer_norm_epsilon"))
        self.weights = {}
        for name in self.file.tensors:
            self.weights[name] = self.file.weight(name).astype(dtype)
        self.head = "output.weight" if "output.weight" in self.weights else "token_embd.weight"

    # ---- parts ---------------------------------------------------------------------------------------------------

    def matmul(self, x, name, bias=None):
        """x [..., inputs] times weights [outputs, inputs] -> [..., outputs]"""
        if self.activations == "int8" and self.file.quantised(name):
            x = dequantize_groups(*quantize_groups(x)).astype(self.dtype)
        y = x @ self.weights[name].T
        return y if bias is None or bias not in self.weights else y + self.weights[bias]

    def norm(self, x, name):
        weight = self.weights[name + ".weight"]
        if self.arch == "llama":
            return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.dtype(self.eps)) * weight
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + self.dtype(self.eps)) * weight + self.weights[name + ".bias"]

    def rope(self, x, positions):
        """x [..., positions, head_dim]; pair i is dimensions 2i and 2i + 1, turned by position * base^(-2i / dims)."""
        pairs = np.arange(self.rope_dims // 2)
        angle = positions[:, None] * self.rope_base ** (-2.0 * pairs / self.rope_dims)  # float64 [positions, pairs]
        cos, sin = np.cos(angle).astype(self.dtype), np.sin(angle).astype(self.dtype)
        out = x.copy()
        even, odd = x[..., 0:self.rope_dims:2], x[..., 1:self.rope_dims:2]
        out[..., 0:self.rope_dims:2] = even * cos - odd * sin
        out[..., 1:self.rope_dims:2] = even * sin + odd * cos
        return out

    def attention(self, q, k, v, first):
        """q [..., heads, rows, head_dim], k and v [..., kv_heads, positions, head_dim]; row r has position first + r."""
        rows, positions = q.shape[-2], k.shape[-2]
        group = self.heads // self.kv_heads
        q = q.reshape(*q.shape[:-3], self.kv_heads, group * rows, self.head_dim)
        scores = q @ np.swapaxes(k, -1, -2) / self.dtype(np.sqrt(self.head_dim))
        scores = scores.reshape(*scores.shape[:-2], group, rows, positions)
        later = np.arange(positions)[None, :] > first + np.arange(rows)[:, None]
        scores[..., later] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        out = scores.reshape(*scores.shape[:-3], group * rows, positions) @ v
        return out.reshape(*out.shape[:-3], self.heads, rows, self.head_dim)

    def feed_forward(self, x, block):
        if self.arch == "llama":
            gate = self.matmul(x, block + "ffn_gate.weight")
            up = self.matmul(x, block + "ffn_up.weight")
            return self.matmul(gate / (1 + np.exp(-gate)) * up, block + "ffn_down.weight")
        up = self.matmul(x, block + "ffn_up.weight", block + "ffn_up.bias")
        inner = self.dtype(np.sqrt(2 / np.pi)) * (up + self.dtype(0.044715) * up ** 3)
        return self.matmul(self.dtype(0.5) * up * (1 + np.tanh(inner)), block + "ffn_down.weight", block + "ffn_down.bias")

    def project(self, x, block):
        """-> q, k, v, each [..., heads, rows, head_dim]"""
        if block + "attn_qkv.weight" in self.weights:
            fused = self.matmul(x, block + "attn_qkv.weight", block + "attn_qkv.bias")
            width = self.kv_heads * self.head_dim
            parts = np.split(fused, [fused.shape[-1] - 2 * width, fused.shape[-1] - width], axis=-1)
        else:
            parts = [self.matmul(x, f"{block}attn_{part}.weight", f"{block}attn_{part}.bias") for part in "qkv"]
        return [np.swapaxes(part.reshape(*part.shape[:-1], -1, self.head_dim), -2, -3) for part in parts]

    # ---- the pass ------------------------------------------------------------------------------------------------

    def residual(self, tokens, layer):
        """The residual stream where block `layer` begins; layer = layers: behind the last. [tokens, hidden]"""
        seen = {}
        self.hidden_rows(tokens, seen=seen)
        return seen[layer]

    def hidden_rows(self, tokens, cache=None, seen=None):
        """The rows that the head multiplies, [..., tokens, hidden]. `seen`: a dict for the residual stream of each layer."""
        tokens = np.asarray(tokens)
        seen = {} if seen is None else seen
        cache = cache if cache is not None else Cache()
        positions = cache.length + np.arange(tokens.shape[-1])
        x = self.weights["token_embd.weight"][tokens]
        if self.arch == "gpt2":
            x = x + self.weights["position_embd.weight"][positions]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            seen[layer] = x
            q, k, v = self.project(self.norm(x, block + "attn_norm"), block)
            if self.arch == "llama":
                q, k = self.rope(q, positions), self.rope(k, positions)
            k, v = cache.extend(layer, k, v)
            mixed = np.swapaxes(self.attention(q, k, v, cache.length), -2, -3)
            x = x + self.matmul(mixed.reshape(*mixed.shape[:-2], -1), block + "attn_output.weight", block + "attn_output.bias")
            x = x + self.feed_forward(self.norm(x, block + "ffn_norm"), block)
        seen[self.layers] = x
        cache.length += tokens.shape[-1]
        return self.norm(x, "output_norm")

    def forward(self, tokens, cache=None):
        return self.matmul(self.hidden_rows(tokens, cache), self.head)

    def generate(self, tokens, count):
        """Greedy continuation."""
        cache, tokens, answer = Cache(), list(tokens), []
        while len(answer) < count:
            best = int(np.argmax(self.forward(tokens, cache)[-1]))
            answer.append(best)
            tokens = [best]
        return answer


def log_softmax(logits):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def tokenizer(path):
    """The file's byte-level BPE by the `tokenizers` package; `smollm` splits digits off one by one, `gpt-2` does not."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    file = File(path)
    tokens, kinds = file.key("tokenizer.ggml.tokens"), file.key("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in file.key("tokenizer.ggml.merges")]
    result = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if file.key("tokenizer.ggml.pre") == "smollm":
        split = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split])
    result.pre_tokenizer = split
    result.decoder = decoders.ByteLevel()
    result.add_special_tokens([AddedToken(token, special=True, normalized=False)
                               for token, kind in zip(tokens, kinds) if kind == 3])
    return result
