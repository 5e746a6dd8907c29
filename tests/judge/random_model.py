"""Small random models for the judge, written by the gguf package (not by our writer): a llama or a gpt2 with a valid
byte-level BPE vocabulary, every weight drawn from a fixed seed.

    random_model.py OUT.gguf [--arch llama|gpt2] [--types F32,F16,...] [--seed N] [--tied] [--layers N]
"""

import argparse
import collections

import gguf
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

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


class Maker:
    """Adds tensors; each matrix takes the next of the given types in turn."""

    def __init__(self, path, arch, types, seed):
        self.writer = gguf.GGUFWriter(path, arch)
        self.types = [GGMLQuantizationType[name] for name in types]
        self.random = np.random.default_rng(seed)
        self.matrices = 0

    def vector(self, name, size, centre):
        self.writer.add_tensor(name, self.random.normal(centre, 0.2, size).astype(np.float32))

    def matrix(self, name, outputs, inputs, spread=None):
        spread = 1.5 / np.sqrt(inputs) if spread is None else spread
        kind = self.types[self.matrices % len(self.types)]
        self.matrices += 1
        values = self.random.normal(0, spread, (outputs, inputs)).astype(np.float32)
        if kind == GGMLQuantizationType.F32:
            self.writer.add_tensor(name, values)
        elif kind == GGMLQuantizationType.F16:
            self.writer.add_tensor(name, values.astype(np.float16))
        else:
            data = quantize(values, kind)
            self.writer.add_tensor(name, data, raw_dtype=kind)


def write(path, arch="llama", types=("F32",), seed=1, layers=3, tied=False, hidden=96, heads=6, kv_heads=2,
          feed_forward=160, context=512, merges=120, rope_base=10000.0, chat_template=None):
    """Writes the model and returns its vocabulary's size."""
    make = Maker(path, arch, types, seed)
    out = make.writer
    tokens, pairs = byte_pair_encoding(merges)
    tokens = SPECIAL + tokens
    if arch == "gpt2":
        kv_heads = heads
    out.add_name(f"random {arch} {seed}")
    out.add_context_length(context)
    out.add_embedding_length(hidden)
    out.add_block_count(layers)
    out.add_feed_forward_length(feed_forward)
    out.add_head_count(heads)
    out.add_vocab_size(len(tokens))
    if arch == "llama":
        out.add_head_count_kv(kv_heads)
        out.add_layer_norm_rms_eps(1e-5)
        out.add_rope_dimension_count(hidden // heads)
        out.add_rope_freq_base(rope_base)
    else:
        out.add_layer_norm_eps(1e-5)
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

    make.matrix("token_embd.weight", len(tokens), hidden, spread=1.0)
    if arch == "gpt2":
        out.add_tensor("position_embd.weight", make.random.normal(0, 0.5, (context, hidden)).astype(np.float32))
    head_dim = hidden // heads
    for layer in range(layers):
        block = f"blk.{layer}."
        make.vector(block + "attn_norm.weight", hidden, 1)
        make.vector(block + "ffn_norm.weight", hidden, 1)
        if arch == "llama":
            make.matrix(block + "attn_q.weight", heads * head_dim, hidden)
            make.matrix(block + "attn_k.weight", kv_heads * head_dim, hidden)
            make.matrix(block + "attn_v.weight", kv_heads * head_dim, hidden)
            make.matrix(block + "ffn_gate.weight", feed_forward, hidden)
        else:
            make.vector(block + "attn_norm.bias", hidden, 0)
            make.vector(block + "ffn_norm.bias", hidden, 0)
            make.matrix(block + "attn_qkv.weight", 3 * hidden, hidden)
            for name, size in (("attn_qkv", 3 * hidden), ("attn_output", hidden), ("ffn_up", feed_forward), ("ffn_down", hidden)):
                make.vector(f"{block}{name}.bias", size, 0)
        make.matrix(block + "attn_output.weight", hidden, heads * head_dim)
        make.matrix(block + "ffn_up.weight", feed_forward, hidden)
        make.matrix(block + "ffn_down.weight", hidden, feed_forward)
    make.vector("output_norm.weight", hidden, 1)
    if arch == "gpt2":
        make.vector("output_norm.bias", hidden, 0)
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
    parser.add_argument("--arch", choices=("llama", "gpt2"), default="llama")
    parser.add_argument("--types", default="F32", help="one or more of F32, F16, BF16, Q4_0, Q4_1, Q8_0, with commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--tied", action="store_true", help="no output.weight: the embedding is the head")
    options = parser.parse_args()
    write(options.out, options.arch, options.types.split(","), options.seed, options.layers, options.tied)


if __name__ == "__main__":
    main()
