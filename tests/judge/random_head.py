"""Small random draft heads for the judge, written by the gguf package in the tensor names and keys of llama.cpp's EAGLE-3
conversion (read there, not copied), for a target that random_model.py made."""

import gguf
import numpy as np

from random_model import Maker
from reference import File


def write(path, target, types=("F32",), seed=1, layers=(0, 2, 3), rows=0, own_embedding=False, own_output=True,
          standardised=False, norm_before_residual=False, old_names=False, hidden=None, feed_forward=96, heads=4, kv_heads=2):
    """Writes the head. `old_names`: as the converter wrote them before, offsets in d2t among them."""
    shape = File(target)
    target_hidden, vocab = shape.key("llama.embedding_length"), len(shape.key("tokenizer.ggml.tokens"))
    hidden = hidden or target_hidden
    head_dim = hidden // heads
    make = Maker(path, "eagle3", types, seed)
    out = make.writer
    out.add_context_length(512)
    out.add_embedding_length(hidden)
    out.add_block_count(1)
    out.add_feed_forward_length(feed_forward)
    out.add_head_count(heads)
    out.add_head_count_kv(kv_heads)
    out.add_key_length(head_dim)
    out.add_value_length(head_dim)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(head_dim)
    out.add_rope_freq_base(5000.0)
    out.add_vocab_size(vocab)
    out.add_array("eagle3.extract_layers" if old_names else "eagle3.target_layers", [int(layer) for layer in layers])
    out.add_uint32("eagle3.target_hidden_size", target_hidden)
    out.add_bool("eagle3.norm_before_residual", norm_before_residual)

    features = len(layers) * target_hidden
    make.matrix("fc.weight", hidden, features)
    if standardised:
        make.vector("feature_mean.weight", features, 0.1)
        make.vector("feature_scale.weight", features, 0.8)
    if own_embedding:
        make.matrix("token_embd.weight", vocab, hidden, spread=1.0)
    make.vector("blk.0.attn_norm.weight", hidden, 1)
    make.vector("blk.0.hidden_norm.weight" if old_names else "blk.0.attn_norm_2.weight", hidden, 1)
    make.matrix("blk.0.attn_q.weight", heads * head_dim, 2 * hidden)
    make.matrix("blk.0.attn_k.weight", kv_heads * head_dim, 2 * hidden)
    make.matrix("blk.0.attn_v.weight", kv_heads * head_dim, 2 * hidden)
    make.matrix("blk.0.attn_output.weight", hidden, heads * head_dim)
    make.vector("blk.0.ffn_norm.weight", hidden, 1)
    make.matrix("blk.0.ffn_gate.weight", feed_forward, hidden)
    make.matrix("blk.0.ffn_up.weight", feed_forward, hidden)
    make.matrix("blk.0.ffn_down.weight", hidden, feed_forward)
    make.vector("output_norm.weight", hidden, 1)
    if own_output:
        make.matrix("output.weight", rows or vocab, hidden)
    if rows:
        ids = np.sort(make.random.permutation(vocab)[:rows]).astype(np.int64)
        out.add_tensor("d2t", ids - np.arange(rows) if old_names else ids, raw_dtype=gguf.GGMLQuantizationType.I64)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
