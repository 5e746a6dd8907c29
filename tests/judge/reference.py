"""The independent judge's forward pass: GGUF files of every architecture in numpy, written from the published models'
definitions and not from the C++ code. Weights come from the gguf package's `dequantize`, arithmetic is plain numpy.

    model = Reference("model.gguf")                  # float32 throughout
    logits = model.forward(tokens)                   # [tokens, vocab]
    logits = model.forward(batch)                    # [batch, tokens, vocab], for several texts of one length
    Reference(path, dtype=numpy.float64)             # for comparisons to many digits
    Reference(path, activations="int8")              # inputs of quantised weights rounded as docs/numerics.md, 20, says

A Cache makes it incremental: forward(first, cache); forward(next, cache).
"""

import math

import gguf
import numpy as np
from gguf.quants import dequantize

import architectures

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


def gelu(x, form):
    if form == "tanh":
        inner = x.dtype.type(math.sqrt(2 / math.pi)) * (x + x.dtype.type(0.044715) * x ** 3)
        return x.dtype.type(0.5) * x * (1 + np.tanh(inner))
    return (x * (0.5 * (1 + np.vectorize(math.erf)(x.astype(np.float64) / math.sqrt(2))))).astype(x.dtype)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Reference:
    def __init__(self, path, dtype=np.float32, activations="float", length=None):
        """`length`: the longest text there will be, where RoPE depends on it; else that of the file."""
        if activations not in ("float", "int8"):
            raise ValueError("activations are `float` or `int8`")
        self.file, self.dtype, self.activations = File(path), dtype, activations
        arch = self.arch = self.file.key("general.architecture")
        self.facts = architectures.facts(arch)  # what the file does not say
        key = self.key
        self.layers = key("block_count")
        self.hidden = key("embedding_length")
        self.heads = key("attention.head_count")
        self.kv_heads = key("attention.head_count_kv", self.heads)
        self.head_dim = key("attention.key_length", self.hidden // self.heads)
        self.eps = float(key("attention.layer_norm_epsilon" if self.facts["norm"] == "layer" else "attention.layer_norm_rms_epsilon"))
        self.weights = {}
        for name in self.file.tensors:
            self.weights[name] = self.file.weight(name).astype(dtype)
        self.head = "output.weight" if "output.weight" in self.weights else "token_embd.weight"
        self.read_scales()
        self.read_window()
        if self.facts["turns"]:
            self.read_rope(length or key("context_length"))

    def key(self, name, otherwise=None):
        return self.file.key(f"{self.arch}.{name}", otherwise)

    def read_scales(self):
        key, facts = self.key, self.facts
        self.embedding_scale = math.sqrt(self.hidden) if facts["scaled_embeddings"] else float(key("embedding_scale", 1.0))
        self.residual_scale = float(key("residual_scale", 1.0))
        self.logit_divisor = float(key("logit_scale", 1.0))
        self.score_cap = float(key("attn_logit_softcapping", facts["score_cap"]))
        self.logit_cap = float(key("final_logit_softcapping", facts["logit_cap"]))
        largest = self.layers == facts["largest"]
        self.attention_scale = float(key("attention.scale", 0.0)) or 1 / math.sqrt(self.hidden // self.heads if largest else self.head_dim)
        self.parallel = facts["parallel"] == "always" or facts["parallel"] == "by key" and bool(key("use_parallel_residual", True))

    def read_window(self):
        self.window = self.key("attention.sliding_window", self.facts["default_window"])
        period = self.key("attention.sliding_window_pattern", self.facts["window"])
        if isinstance(period, list):
            self.windowed = period
        else:
            self.windowed = [self.window > 0 and period > 0 and (period == 1 or layer % period != period - 1) for layer in range(self.layers)]

    def read_rope(self, length):
        key = self.key
        self.rope_dims = key("rope.dimension_count", self.head_dim)
        self.rope_base = float(key("rope.freq_base", 10000.0))
        self.magnitude = 1.0
        pairs = np.arange(self.rope_dims // 2)
        plain = self.rope_base ** (-2.0 * pairs / self.rope_dims)
        self.frequencies = plain
        original = key("rope.scaling.original_context_length", key("context_length"))
        for name in ("rope_freqs.weight", "rope_factors_long.weight" if length > original else "rope_factors_short.weight"):
            if name in self.weights:
                self.frequencies = self.frequencies / self.file.weight(name).astype(np.float64)
        factor = float(key("rope.scaling.factor", float(key("rope.scale_linear", 1.0))))
        kind = key("rope.scaling.type", "linear")
        if "rope_factors_long.weight" in self.weights:
            self.magnitude = float(key("rope.scaling.attn_factor", 1.0))
        elif kind == "linear":
            self.frequencies = self.frequencies / factor
        elif kind == "yarn":
            # arXiv:2309.00071: a pair that turns more than beta_fast times in the original context is kept, one that
            # turns less than beta_slow times is interpolated, and between them the weight is linear in the pair's number.
            at = lambda turns: self.rope_dims * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(self.rope_base))
            low = max(math.floor(at(float(key("rope.scaling.yarn_beta_fast", 32.0)))), 0)
            high = min(math.ceil(at(float(key("rope.scaling.yarn_beta_slow", 1.0)))), self.rope_dims - 1)
            interpolated = np.clip((pairs - low) / max(high - low, 0.001), 0, 1)
            self.frequencies = self.frequencies * (1 - interpolated) + self.frequencies / factor * interpolated
            self.magnitude = 0.1 * math.log(factor) + 1
        # Layers with a window that turn by a base of their own, which nothing scales.
        self.window_frequencies = self.frequencies
        otherwise = self.facts["window_base"]
        if otherwise != "none":
            base = float(key("rope.freq_base_swa", self.rope_base if otherwise == "as the others" else otherwise))
            self.window_frequencies = base ** (-2.0 * pairs / self.rope_dims)

    # ---- parts ---------------------------------------------------------------------------------------------------

    def matmul(self, x, name, bias=None):
        """x [..., inputs] times weights [outputs, inputs] -> [..., outputs]"""
        if self.activations == "int8" and self.file.quantised(name):
            x = dequantize_groups(*quantize_groups(x)).astype(self.dtype)
        y = x @ self.weights[name].T
        return y if bias is None or bias not in self.weights else y + self.weights[bias]

    def linear(self, x, name):
        return self.matmul(x, name + ".weight", name + ".bias")

    def norm(self, x, name):
        weight = self.weights[name + ".weight"]
        if self.facts["norm"] == "rms":
            return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.dtype(self.eps)) * weight
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.mean(centred * centred, axis=-1, keepdims=True)
        return centred / np.sqrt(variance + self.dtype(self.eps)) * weight + self.weights[name + ".bias"]

    def norm_if_any(self, x, *names):
        """By the first of these norms that the model has; x itself if it has none."""
        for name in names:
            if name + ".weight" in self.weights:
                return self.norm(x, name)
        return x

    def rope(self, x, positions, windowed=False):
        """x [..., positions, head_dim]; turns pairs of the first rope_dims dimensions."""
        angle = positions[:, None] * (self.window_frequencies if windowed else self.frequencies)  # float64 [positions, pairs]
        magnitude = 1.0 if windowed and self.window_frequencies is not self.frequencies else self.magnitude
        cos, sin = (np.cos(angle) * magnitude).astype(self.dtype), (np.sin(angle) * magnitude).astype(self.dtype)
        half = self.rope_dims // 2
        if self.facts["turns"] == "halves":
            first, second = slice(0, half), slice(half, self.rope_dims)
        else:
            first, second = slice(0, self.rope_dims, 2), slice(1, self.rope_dims, 2)
        out = x.copy()
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    def attention(self, q, k, v, first, windowed=False):
        """q [..., heads, rows, head_dim], k and v [..., kv_heads, positions, head_dim]; row r has position first + r."""
        rows, positions = q.shape[-2], k.shape[-2]
        group = self.heads // self.kv_heads
        q = q.reshape(*q.shape[:-3], self.kv_heads, group * rows, self.head_dim)
        scores = q @ np.swapaxes(k, -1, -2) * self.dtype(self.attention_scale)
        if self.score_cap:
            scores = self.dtype(self.score_cap) * np.tanh(scores / self.dtype(self.score_cap))
        scores = scores.reshape(*scores.shape[:-2], group, rows, positions)
        distance = first + np.arange(rows)[:, None] - np.arange(positions)[None, :]
        unseen = distance < 0
        if windowed:
            unseen |= distance >= self.window
        scores[..., unseen] = -np.inf
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        out = scores.reshape(*scores.shape[:-3], group * rows, positions) @ v
        return out.reshape(*out.shape[:-3], self.heads, rows, self.head_dim)

    def activate(self, gate, up):
        return (gelu(gate, "tanh") if self.facts["activation"] == "gelu gated" else gate / (1 + np.exp(-gate))) * up

    def feed_forward(self, x, block):
        if block + "ffn_gate_inp.weight" in self.weights:
            return self.experts(x, block)
        up = self.linear(x, block + "ffn_up")
        if not self.facts["activation"].endswith("gated"):
            return self.linear(gelu(up, self.facts["activation"].split()[1]), block + "ffn_down")
        gate, up = np.split(up, 2, axis=-1) if self.facts["gate"] == "in ffn_up" else (self.linear(x, block + "ffn_gate"), up)
        return self.linear(self.activate(gate, up), block + "ffn_down")

    def experts(self, x, block):
        """Each row by the experts whose router logits are its largest, weighted by a softmax over those."""
        router = self.matmul(x, block + "ffn_gate_inp.weight")
        used = self.key("expert_used_count")
        chosen = np.argsort(-router, axis=-1, kind="stable")[..., :used]
        shares = softmax(np.take_along_axis(router, chosen, axis=-1))
        out = np.zeros_like(x)
        gates, ups, downs = (self.weights[f"{block}ffn_{part}_exps.weight"] for part in ("gate", "up", "down"))
        for expert in range(router.shape[-1]):
            share = (shares * (chosen == expert)).sum(axis=-1, keepdims=True)
            out += share * (self.activate(x @ gates[expert].T, x @ ups[expert].T) @ downs[expert].T)
        return out

    def project(self, x, block):
        """-> q, k, v, each [..., heads, rows, head_dim]"""
        if block + "attn_qkv.weight" in self.weights:
            fused = self.linear(x, block + "attn_qkv")
            width = self.kv_heads * self.head_dim
            parts = np.split(fused, [fused.shape[-1] - 2 * width, fused.shape[-1] - width], axis=-1)
        else:
            parts = [self.linear(x, f"{block}attn_{part}") for part in "qkv"]
        heads = lambda part: np.swapaxes(part.reshape(*part.shape[:-1], -1, self.head_dim), -2, -3)
        if self.facts["query_norms"] == "all heads":
            parts[:2] = self.norm(parts[0], block + "attn_q_norm"), self.norm(parts[1], block + "attn_k_norm")
            return [heads(part) for part in parts]
        q, k, v = [heads(part) for part in parts]
        return self.norm_if_any(q, block + "attn_q_norm"), self.norm_if_any(k, block + "attn_k_norm"), v

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
        x = self.weights["token_embd.weight"][tokens] * self.dtype(self.embedding_scale)
        if not self.facts["turns"]:
            x = x + self.weights["position_embd.weight"][positions]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            seen[layer] = x
            q, k, v = self.project(self.norm_if_any(x, block + "attn_norm_2", block + "attn_norm"), block)
            windowed = bool(self.windowed[layer])
            unturned = self.facts["unturned"]
            if self.facts["turns"] and not (unturned and layer % unturned == unturned - 1):
                q, k = self.rope(q, positions, windowed), self.rope(k, positions, windowed)
            k, v = cache.extend(layer, k, v)
            mixed = np.swapaxes(self.attention(q, k, v, cache.length, windowed), -2, -3)
            mixed = self.linear(mixed.reshape(*mixed.shape[:-2], -1), block + "attn_output")
            mixed = self.norm_if_any(mixed, block + "post_attention_norm") * self.dtype(self.residual_scale)
            # What the feed-forward part reads: with parallel residuals the stream as attention found it, and then
            # it may have no norm of its own.
            norms = [block + "ffn_norm"] + [block + "attn_norm"] * self.parallel
            added = self.feed_forward(self.norm_if_any(x if self.parallel else x + mixed, *norms), block)
            x = x + mixed + self.norm_if_any(added, block + "post_ffw_norm") * self.dtype(self.residual_scale)
        seen[self.layers] = x
        cache.length += tokens.shape[-1]
        return self.norm(x, "output_norm")

    def forward(self, tokens, cache=None):
        logits = self.matmul(self.hidden_rows(tokens, cache), self.head) / self.dtype(self.logit_divisor)
        return self.dtype(self.logit_cap) * np.tanh(logits / self.dtype(self.logit_cap)) if self.logit_cap else logits

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
