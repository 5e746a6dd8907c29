"""Every architecture against the `transformers` package: small models of theirs with random weights, written to GGUF by
name, and their logits beside ours and beside the numpy reference's, to 1e-4 (of the larger of a logit and its row's root
mean square). Not a part of CI, for torch is large:

    python -m venv V && V/bin/pip install -r scripts/python-requirements.txt torch transformers
    V/bin/python tests/judge/transformers_check.py --coppice build/dev/coppice
"""

import re
import sys
import tempfile

import gguf
import numpy as np
import torch
import transformers

import architectures
import command
import reference
from logits_judge import LIMIT, relative_error
from random_model import SPECIAL, byte_pair_encoding

TOKENS = 150

SHAPE = dict(hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
             max_position_embeddings=512, tie_word_embeddings=False)


def rope(**parameters):
    return dict(rope_scaling=parameters)


# arch, the configuration's class, its options; keys of the file that do not follow from them by name (KEYS below).
CASES = [
    ("llama", "LlamaConfig", dict(SHAPE), {}),
    ("llama", "LlamaConfig", dict(SHAPE, attention_bias=True, mlp_bias=True, head_dim=32), {}),
    ("llama", "LlamaConfig", dict(SHAPE, **rope(rope_type="linear", factor=4.0)),
     {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    ("llama", "LlamaConfig", dict(SHAPE, head_dim=64, **rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=128)),
     {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 128}),
    ("llama", "LlamaConfig", dict(SHAPE, head_dim=64, **rope(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                            high_freq_factor=4.0, original_max_position_embeddings=64)),
     {"factors": "rope_freqs.weight"}),
    ("llama", "MistralConfig", dict(SHAPE, sliding_window=20), {"attention.sliding_window": 20}),
    ("llama", "MixtralConfig", dict(SHAPE, num_local_experts=5, num_experts_per_tok=2, sliding_window=None),
     {"expert_count": 5, "expert_used_count": 2}),
    ("qwen2", "Qwen2Config", dict(SHAPE), {}),
    ("qwen3", "Qwen3Config", dict(SHAPE, head_dim=32), {}),
    ("qwen3moe", "Qwen3MoeConfig", dict(SHAPE, head_dim=32, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=64,
                                        norm_topk_prob=True),
     {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 64}),
    ("olmo2", "Olmo2Config", dict(SHAPE), {}),
    ("granite", "GraniteConfig", dict(SHAPE, embedding_multiplier=3.0, residual_multiplier=0.4, attention_multiplier=0.1,
                                      logits_scaling=2.0),
     {"embedding_scale": 3.0, "residual_scale": 0.4, "attention.scale": 0.1, "logit_scale": 2.0}),
    ("gemma2", "Gemma2Config", dict(SHAPE, head_dim=32, query_pre_attn_scalar=32, sliding_window=25, attn_logit_softcapping=5.0,
                                    final_logit_softcapping=8.0, tie_word_embeddings=True),
     {"attention.sliding_window": 25, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0}),
    ("gemma3", "Gemma3TextConfig", dict(SHAPE, head_dim=32, query_pre_attn_scalar=32, sliding_window=25, num_hidden_layers=7,
                                        tie_word_embeddings=True),
     {"attention.sliding_window": 25, "rope.freq_base": 1e6}),
    ("phi3", "Phi3Config", dict(SHAPE, sliding_window=60, pad_token_id=0), {"attention.sliding_window": 60}),
    ("phi3", "Phi3Config", dict(SHAPE, head_dim=32, num_attention_heads=3, num_key_value_heads=1, pad_token_id=0, sliding_window=None,
                                max_position_embeddings=4096, original_max_position_embeddings=100,
                                **rope(rope_type="longrope", long_factor=list(np.linspace(1, 6, 16)),
                                       short_factor=list(np.linspace(1, 2, 16)))),
     {"rope.scaling.original_context_length": 100, "long": np.linspace(1, 6, 16), "short": np.linspace(1, 2, 16),
      "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(4096 / 100) / np.log(100)))}),
    ("gptneox", "GPTNeoXConfig", dict(SHAPE, num_attention_heads=3, num_key_value_heads=3, rotary_pct=0.25, use_parallel_residual=True),
     {"use_parallel_residual": True, "rope.dimension_count": 8}),
    ("gptneox", "GPTNeoXConfig", dict(SHAPE, num_attention_heads=3, num_key_value_heads=3, rotary_pct=1.0, use_parallel_residual=False),
     {"use_parallel_residual": False}),
    ("starcoder2", "Starcoder2Config", dict(SHAPE, sliding_window=50), {"attention.sliding_window": 50}),
    ("falcon", "FalconConfig", dict(SHAPE, num_kv_heads=1, multi_query=True, new_decoder_architecture=False, parallel_attn=True,
                                    bias=False, ffn_hidden_size=160), {"attention.head_count_kv": 1}),
    ("falcon", "FalconConfig", dict(SHAPE, num_kv_heads=2, new_decoder_architecture=True, bias=False, ffn_hidden_size=160), {}),
    ("gpt2", "GPT2Config", dict(n_embd=96, n_inner=160, n_layer=3, n_head=6, n_positions=512), {}),
]

CASES += [(name, kind, {**SHAPE, **options}, keys) for name, entry in architectures.TABLE.items()
          for kind, options, keys in entry.get("transformers", ())]

ENDS = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "gpt_neox.embed_in": "token_embd",
        "gpt_neox.final_layer_norm": "output_norm", "embed_out": "output", "transformer.word_embeddings": "token_embd",
        "transformer.ln_f": "output_norm", "transformer.wte": "token_embd", "transformer.wpe": "position_embd"}
BLOCKS = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "block_sparse_moe.gate": "ffn_gate_inp", "block_sparse_moe.router": "ffn_gate_inp", "mlp.gate": "ffn_gate_inp",
    "attention.query_key_value": "attn_qkv", "attention.dense": "attn_output", "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    "self_attention.query_key_value": "attn_qkv", "self_attention.dense": "attn_output", "ln_attn": "attn_norm_2",
    "ln_mlp": "attn_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"}


def interleaved(rows, heads):
    """Rows of heads whose halves turn together -> rows whose neighbours do, as files of Llama have them."""
    dim = rows.shape[0] // heads
    return rows.reshape(heads, 2, dim // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def parts_of_qkv(arch, rows, config):
    """Fused rows in the order all queries, all keys, all values."""
    heads = config.num_attention_heads
    dim = config.hidden_size // heads
    if arch == "gptneox":
        rows = rows.reshape(heads, 3, dim, *rows.shape[1:])
        return np.concatenate([rows[:, part].reshape(heads * dim, *rows.shape[3:]) for part in range(3)])
    kv = config.num_kv_heads if config.new_decoder_architecture else 1
    rows = rows.reshape(kv, heads // kv + 2, dim, *rows.shape[1:])
    flat = lambda part: part.reshape(-1, *rows.shape[3:])
    return np.concatenate([flat(rows[:, :-2]), flat(rows[:, -2]), flat(rows[:, -1])])


def tensors_of(arch, config, state):
    """-> {GGUF name: float32 array}"""
    out = {}
    for name, tensor in state.items():
        value = tensor.detach().to(torch.float32).numpy()
        found = re.match(r"(?:model|gpt_neox|transformer)\.(?:layers|h)\.(\d+)\.(.+?)(?:\.(weight|bias))?$", name)
        if not found:
            base, kind = name.rsplit(".", 1)
            if base not in ENDS:
                continue  # buffers
            value = value + 1 if arch.startswith("gemma") and base == "model.norm" else value
            out[f"{ENDS[base]}.{kind}"] = value
            continue
        layer, role, kind = found.groups()
        block = f"blk.{layer}."
        expert = re.match(r"(?:mlp|block_sparse_moe)\.experts\.(?:(\d+)\.)?(\w+)$", role)
        if expert:
            place_expert(out, block, expert, value)
            continue
        if role not in BLOCKS or kind is None:
            continue
        target = BLOCKS[role]
        if role == "post_attention_layernorm" and architectures.facts(arch)["post_norms"]:  # it stands behind attention
            target = "post_attention_norm"
        if arch == "gpt2" and value.ndim == 2:
            value = value.T
        if arch.startswith("gemma") and "norm" in role:
            value = value + 1
        if architectures.facts(arch)["turns"] == "neighbours" and target in ("attn_q", "attn_k"):
            value = interleaved(value, config.num_attention_heads if target == "attn_q" else config.num_key_value_heads)
        if target == "attn_qkv" and arch in ("gptneox", "falcon"):
            value = parts_of_qkv(arch, value, config)
        out[f"{block}{target}.{kind}"] = value
    return {name: np.stack(value) if isinstance(value, list) else np.ascontiguousarray(value) for name, value in out.items()}


def place_expert(out, block, found, value):
    """One matrix of one expert, or one tensor of all of them, gate and up in one."""
    number, part = found.groups()
    if number is not None:
        role = {"w1": "gate", "w3": "up", "w2": "down"}.get(part, part.removesuffix("_proj"))
        out.setdefault(f"{block}ffn_{role}_exps.weight", []).append(value)
    elif part == "gate_up_proj":
        gate, up = np.split(value, 2, axis=1)
        out[block + "ffn_gate_exps.weight"], out[block + "ffn_up_exps.weight"] = gate, up
    else:
        out[block + "ffn_down_exps.weight"] = value


def llama3_factors(config):
    """What a pair's frequency is divided by, in Llama 3.1's own words: wave lengths against two thresholds."""
    scaling = getattr(config, "rope_parameters", None) or config.rope_scaling
    base = scaling.get("rope_theta", getattr(config, "rope_theta", None) or 10000.0)
    length = 2 * np.pi * base ** (2 * np.arange(config.head_dim // 2) / config.head_dim)
    original, low, high = scaling["original_max_position_embeddings"], scaling["low_freq_factor"], scaling["high_freq_factor"]
    smooth = np.clip((original / length - low) / (high - low), 0, 1)
    return 1 / ((1 - smooth) / scaling["factor"] + smooth)


def write(path, arch, config, state, keys):
    out = gguf.GGUFWriter(path, arch)
    get = lambda *names: next(getattr(config, name) for name in names if getattr(config, name, None) is not None)
    heads, hidden = get("num_attention_heads", "n_head"), get("hidden_size", "n_embd")
    head_dim = getattr(config, "head_dim", None) or hidden // heads
    out.add_context_length(get("max_position_embeddings", "n_positions"))
    out.add_embedding_length(hidden)
    out.add_block_count(get("num_hidden_layers", "n_layer"))
    out.add_feed_forward_length(get("ffn_hidden_size", "intermediate_size", "n_inner"))
    out.add_head_count(heads)
    if "attention.head_count_kv" not in keys:
        out.add_head_count_kv(getattr(config, "num_kv_heads", None) or getattr(config, "num_key_value_heads", None) or heads)
    out.add_key_length(head_dim)
    out.add_value_length(head_dim)
    eps = get("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "layer_norm_epsilon") if arch != "falcon" else config.layer_norm_epsilon
    (out.add_layer_norm_eps if architectures.facts(arch)["norm"] == "layer" else out.add_layer_norm_rms_eps)(eps)
    if architectures.facts(arch)["turns"] and "rope.freq_base" not in keys:
        scaling = getattr(config, "rope_parameters", None) or {}
        out.add_rope_freq_base(float(scaling.get("rope_theta") or getattr(config, "rope_theta", None) or 10000.0))
    for name, value in keys.items():
        if name == "factors":
            out.add_tensor(value, llama3_factors(config).astype(np.float32))
        elif name in ("long", "short"):
            out.add_tensor(f"rope_factors_{name}.weight", np.asarray(value, np.float32))
        else:
            add = {bool: out.add_bool, int: out.add_uint32, float: out.add_float32, str: out.add_string}
            add[type(value)](f"{arch}.{name}", value)
    tokens, pairs = byte_pair_encoding(100)
    tokens = SPECIAL + tokens
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(tokens)
    out.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    out.add_token_merges(pairs)
    out.add_eos_token_id(2)
    tied = getattr(config, "tie_word_embeddings", False)
    for name, value in tensors_of(arch, config, state).items():
        if not (tied and name == "output.weight"):
            out.add_tensor(name, value)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def randomise(model, seed):
    """Weights large enough that attention and norms matter; norms near one."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            noise = torch.randn(weight.shape, generator=generator)
            if weight.ndim == 1:
                centre = 1.0 if "norm" in name.lower() or "ln_" in name else 0.0
                centre = 0.0 if name.endswith("bias") or type(model).__name__.startswith("Gemma") else centre
                weight.copy_(centre + 0.2 * noise)
            else:
                weight.copy_(noise * (0.5 if "embed" in name or "wte" in name or "wpe" in name else 1.5 / weight.shape[-1] ** 0.5))


def main():
    coppice = command.options(__doc__)
    vocab = len(SPECIAL) + len(byte_pair_encoding(100)[0])
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (arch, name, options, keys) in enumerate(CASES):
            config = getattr(transformers, name)(vocab_size=vocab, **options)
            config._experts_implementation = "eager"  # the others know no doubles
            torch.manual_seed(number)
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").double().eval()
            randomise(model, number)
            path = f"{folder}/model.gguf"
            write(path, arch, config, model.state_dict(), keys)
            tokens = np.random.default_rng(number).integers(0, vocab, TOKENS)
            with torch.no_grad():
                expected = model(torch.tensor(tokens)[None], use_cache=False).logits[0].double().numpy()
            ours = command.logits(coppice, path, tokens, folder).astype(np.float64)
            numpys = reference.Reference(path, dtype=np.float64, length=TOKENS).forward(tokens)
            errors = [relative_error(logits, expected) for logits in (ours, numpys)]
            good = all(error <= LIMIT for error in errors)
            failed += not good
            print(f"{'ok' if good else 'FAILED'} {arch} {name} {keys or ''}: ours {errors[0]:.2e}, the numpy reference "
                  f"{errors[1]:.2e}, at most {LIMIT:.0e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
