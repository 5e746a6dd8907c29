"""What the judges know of each architecture: tests/architectures.json, one entry each, in which these fields may stand.

"for": models that people have, for docs/models.md.
"is": what the published models do that their files do not say; what is not there has the first of these values.
    norm                "rms", "layer" (with biases)
    turns               null (positions are learned), "neighbours", "halves": which two dimensions RoPE turns together
    activation          "silu gated", "gelu gated" (of gate, times up), "gelu tanh", "gelu erf" (of up)
    qkv                 "apart", "fused"
    gate                "apart", "in ffn_up": gate and up in one tensor, gate first
    biases              "none", "qkv", "all"
    query_norms         "none", "heads" (each head of queries and keys has it), "all heads" (one over all of them)
    post_norms          false, true: what attention and the feed-forward part add is normed
    without             [], norms of a block that are not there
    parallel            "never", "always", "by key": attention and feed-forward part read the same residual stream
    window              0, n: of layers but each n-th there is a sliding window, where the file states one; 1: of all
    unturned            0, n: each n-th layer has no RoPE
    default_window      0, positions where the file states none
    window_base         "none", a number, "as the others": RoPE's base in layers with a window, which nothing scales
    scaled_embeddings   false, true: by the root of their width
    score_cap, logit_cap  0, what the file need not state
    largest             0, layers of the one whose scores are divided by the root of hidden / heads
    experts             0, how many a model must have in tests
"models": random models whose logits are compared (logits_judge.py), as options of random_model.write().
"laws": committed hashes of tests/laws/architectures_test.cc, by model; COPPICE_PRINT_HASHES=1 prints them.
"transformers": configurations of that package for transformers_check.py: class, options, keys of the file.
"""
import json
import pathlib

TABLE = json.loads(pathlib.Path(__file__).parents[1].joinpath("architectures.json").read_text())
FIRST = {"norm": "rms", "turns": None, "activation": "silu gated", "qkv": "apart", "gate": "apart", "biases": "none", "query_norms": "none",
         "post_norms": False, "without": [], "parallel": "never", "window": 0, "unturned": 0, "default_window": 0, "window_base": "none",
         "scaled_embeddings": False, "score_cap": 0.0, "logit_cap": 0.0, "largest": 0, "experts": 0}


def facts(name):
    """Every field of "is"; ValueError for an architecture or a field that nobody knows."""
    if name not in TABLE:
        raise ValueError(f"the judge knows {sorted(TABLE)}, not {name}")
    stated = TABLE[name]["is"]
    unknown = stated.keys() - FIRST.keys()
    if unknown:
        raise ValueError(f"tests/architectures.json says of {name} {sorted(unknown)}; there are {sorted(FIRST)}")
    return {**FIRST, **stated}


def models():
    """-> (architecture, options of random_model.write()) for every model that logits are compared of."""
    return [(name, dict(options)) for name, entry in TABLE.items() for options in entry["models"]]
