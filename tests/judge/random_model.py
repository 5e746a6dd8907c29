"""Small random models for the judge, written by the gguf package (not by our writer): any architecture, with a valid
byte-level BPE vocabulary, every weight drawn from a fixed seed.

    random_model.py OUT.gguf [--arch llama] [--types F32,F16,...] [--seed N] [--tied] [--layers N] [--hidden N]
                    [--feed-forward N]
"""

import argparse
import collections

import gguf
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

import architectures

TEXT = """The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst of times, it was the age
of wisdom, it was the age of foolishness. def add(left, right): return left + right; for index in range(10): print(index)
Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, I thought I
would sail about a little and see the watery part of the world."""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_alphabet():
    """GPT-2's: printable bytes stand for themselves, the others for code points from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    extra = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(extra)) for byte in range(256)]


def byte_pair_encoding(merges_wanted):
    """-> tokens, merges: the most frequent pairs of TEXT's words, ties by text."""
    alphabet = byte_alphabet()
    words = collections.Counter((" " + word) for word in TEXT.split())
    words = {tuple(alphabet[byte] for byte in word.encode()): count for word, count in words.items()}
    tokens, merges = list(alphabet), []
    while len(merges) < merges_wanted:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        if not pairs:
            break
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(f"{left} {right}")
        if left + right not in tokens:
            tokens.append(left + right)
        merged = {}
        for word, count in words.items():
            out, i = [], 0
            while i < len(word):
                if word[i:i + 2] == (left, right):
                    out.append(left + right)
                    i += 2
                else:
                    out.append(word[i])
                    i += 1
            merged[tuple(out)] = merged.get(tuple(out), 0) + count
        words = merged
    return tokens, merges


# Formats that the gguf package reads but does not write: where in a block the f16 scale lies, and the one of the mins.
SCALES_AT = {"Q2_K": (80, 82), "Q3_K": (108, None), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208, None), "IQ4_NL": (0, None),
             "IQ4_XS": (0, None)}


def random_blocks(kind, values, spread, random):
    """Blocks of random bytes for an array of `values`' shape, their scales such that mean and spread are nearly 0 and `spread`."""
    block_values, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (values.size // block_values, size), dtype=np.uint8)
    d_at, m_at = SCALES_AT[kind.name]

    def put(at, value):
        blocks[:, at:at + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)

    def unpacked(d, m):
        put(d_at, d)
        if m_at is not None:
            put(m_at, m)
        return dequantize(blocks.reshape(-1), kind).astype(np.float64)

    ratio = 0.0 if m_at is None else unpacked(1, 0).mean() / -unpacked(0, 1).mean()
    d = spread / unpacked(1, ratio).std()
    unpacked(d, d * ratio)
    return blocks.reshape(*values.shape[:-1], -1)


class Maker:
    """Adds tensors; each matrix takes the next of the given types in turn."""

    def __init__(self, path, arch, types, seed):
        self.writer = gguf.GGUFWriter(path, arch)
        self.types = [GGMLQuantizationType[name] for name in types]
        self.random = np.random.default_rng(seed)
        self.matrices = 0

    def vector(self, name, size, centre):
        self.writer.add_tensor(name, self.random.normal(centre, 0.2, size).astype(np.float32))

    def matrix(self, name, outputs, inputs, spread=None, experts=0):
        """[outputs, inputs], or so many of them."""
        spread = 1.5 / np.sqrt(inputs) if spread is None else spread
        kind = self.types[self.matrices % len(self.types)]
        self.matrices += 1
        shape = (experts, outputs, inputs) if experts else (outputs, inputs)
        values = self.random.normal(0, spread, shape).astype(np.float32)
        if kind == GGMLQuantizationType.F32:
            self.writer.add_tensor(name, values)
        elif kind == GGMLQuantizationType.F16:
            self.writer.add_tensor(name, values.astype(np.float16))
        elif kind.name in SCALES_AT:
            self.writer.add_tensor(name, random_blocks(kind, values, spread, self.random), raw_dtype=kind)
        else:
            self.writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)


ARCHITECTURES = sorted(architectures.TABLE)


def write(path, arch="llama", types=("F32",), seed=1, layers=3, tied=False, hidden=96, heads=6, kv_heads=2,
          feed_forward=160, context=512, merges=120, rope_base=10000.0, chat_template=None, head_dim=None,
          keys=None, factors=None, biases=False, experts=0, used=2, second_norm=False):
    """Writes the model and returns its vocabulary's size. `keys`: more of them, by name behind the architecture's, as
    numbers, texts or lists. `factors`: names of tensors of RoPE factors. `biases`: where they are optional.
    `second_norm`: Falcon with a norm for attention alone."""
    make, facts = Maker(path, arch, types, seed), architectures.facts(arch)
    out = make.writer
    tokens, pairs = byte_pair_encoding(merges)
    tokens = SPECIAL + tokens
    if facts["qkv"] == "fused" and facts["biases"] == "all":  # GPT-2 and GPT-NeoX; their files do not say it
        kv_heads = heads
    rms = facts["norm"] == "rms"
    own_head_dim, head_dim = head_dim, head_dim or hidden // heads
    q, kv = heads * head_dim, kv_heads * head_dim
    out.add_name(f"random {arch} {seed}")
    out.add_context_length(context)
    out.add_embedding_length(hidden)
    out.add_block_count(layers)
    out.add_feed_forward_length(feed_forward)
    out.add_head_count(heads)
    out.add_vocab_size(len(tokens))
    if facts["turns"]:
        out.add_head_count_kv(kv_heads)
        if "rope.dimension_count" not in (keys or {}):
            out.add_rope_dimension_count(head_dim)
        out.add_rope_freq_base(rope_base)
    if own_head_dim:
        out.add_key_length(head_dim)
        out.add_value_length(head_dim)
    (out.add_layer_norm_rms_eps if rms else out.add_layer_norm_eps)(1e-5)
    if experts:
        out.add_expert_count(experts)
        out.add_expert_used_count(used)
    for name, value in (keys or {}).items():
        add = {int: out.add_uint32, float: out.add_float32, str: out.add_string, bool: out.add_bool, list: out.add_array}
        add[type(value)](f"{arch}.{name}", value)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("smollm" if arch == "llama" else "gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    out.add_token_merges(pairs)
    out.add_bos_token_id(0)
    out.add_eos_token_id(2)
    out.add_add_bos_token(False)
    if chat_template:
        out.add_chat_template(chat_template)

    def norm(name, size=hidden, bias=not rms):
        make.vector(name + ".weight", size, 1)
        if bias:
            make.vector(name + ".bias", size, 0)

    def linear(name, outputs, inputs, bias):
        make.matrix(name + ".weight", outputs, inputs)
        if bias:
            make.vector(name + ".bias", outputs, 0)

    make.matrix("token_embd.weight", len(tokens), hidden, spread=1.0)
    if not facts["turns"]:
        out.add_tensor("position_embd.weight", make.random.normal(0, 0.5, (context, hidden)).astype(np.float32))
    for name in factors or ():
        rope_dims = (keys or {}).get("rope.dimension_count", head_dim)
        out.add_tensor(name, make.random.uniform(1, 8, rope_dims // 2).astype(np.float32))
    every = facts["biases"] == "all" or biases
    for layer in range(layers):
        block = f"blk.{layer}."
        if "attn_norm" not in facts["without"]:
            norm(block + "attn_norm")
        if second_norm:
            norm(block + "attn_norm_2")
        if "ffn_norm" not in facts["without"]:
            norm(block + "ffn_norm")
        if facts["qkv"] == "fused":
            linear(block + "attn_qkv", q + 2 * kv, hidden, every)
        else:
            for part, width in (("q", q), ("k", kv), ("v", kv)):
                linear(f"{block}attn_{part}", width, hidden, every or facts["biases"] == "qkv")
        if facts["query_norms"] != "none":
            norm(block + "attn_q_norm", q if facts["query_norms"] == "all heads" else head_dim)
            norm(block + "attn_k_norm", kv if facts["query_norms"] == "all heads" else head_dim)
        gated = facts["activation"].endswith("gated")
        if gated and facts["gate"] == "apart" and not experts:
            linear(block + "ffn_gate", feed_forward, hidden, every)
        linear(block + "attn_output", hidden, q, every)
        if experts:
            make.matrix(block + "ffn_gate_inp.weight", experts, hidden)
            for part, shape in (("gate", (feed_forward, hidden)), ("up", (feed_forward, hidden)), ("down", (hidden, feed_forward))):
                make.matrix(f"{block}ffn_{part}_exps.weight", *shape, experts=experts)
        else:
            linear(block + "ffn_up", feed_forward * (2 if facts["gate"] == "in ffn_up" else 1), hidden, every)
            linear(block + "ffn_down", hidden, feed_forward, every)
        if facts["post_norms"]:
            norm(block + "post_attention_norm")
            norm(block + "post_ffw_norm")
    norm("output_norm")
    if not tied:
        make.matrix("output.weight", len(tokens), hidden)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return len(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--arch", choices=ARCHITECTURES, default="llama")
    parser.add_argument("--types", default="F32", help="one or more formats, with commas; Q2_K to Q6_K and IQ4_XS need --hidden 256")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tied", action="store_true", help="no output.weight: the embedding is the head")
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--feed-forward", type=int, default=160)
    options = parser.parse_args()
    write(options.out, options.arch, options.types.split(","), options.seed, options.layers, options.tied, hidden=options.hidden,
          heads=options.hidden // 16, feed_forward=options.feed_forward)


if __name__ == "__main__":
    main()
