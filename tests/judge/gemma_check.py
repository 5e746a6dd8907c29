"""Gemma 3 270M (scripts/fetch_gemma.sh): every matmul of a pass as `layers_judge.py` has it, and our logits along a text
beside the numpy reference's with float activations: the mean KL, and where the likeliest token is another. Not a part
of CI, for the model is large. Needs what scripts/python-requirements.txt lists.

    python tests/judge/gemma_check.py --coppice build/dev/coppice
"""

import sys
import tempfile

import numpy as np

import command
import kl_judge
import layers_judge
import reference

WORDS = ["<bos>", "▁The", "▁capital", "▁of", "▁France", "▁is", "▁Paris", ",", "▁and", "▁the", "▁capital", "▁of", "▁Italy", "▁is", "▁Rome",
         ".", "▁The", "▁two", "▁cities", "▁are", "▁about", "▁one", "▁hundred", "▁kilometers", "▁apart", "."]
MOST_KL = 5e-3


def main():
    coppice = command.options(__doc__)
    path = command.fetch("fetch_gemma.sh")
    model = reference.Reference(path)
    vocabulary = model.file.key("tokenizer.ggml.tokens")
    tokens = [vocabulary.index(word) for word in WORDS]
    with tempfile.TemporaryDirectory() as folder:
        count, names, worst, problems = layers_judge.judge(model.file, command.layers(coppice, path, tokens[:12], folder))
        missing = layers_judge.matrices(model.file) - names
        print(f"layers: {count} matmuls, {len(missing)} matrices missing, worst output error {worst:.1e}", *problems[:20], sep="\n  ")
        ours = command.logits(coppice, path, tokens, folder, cache="f32").astype(np.float64)
    expected = model.forward(tokens).astype(np.float64)
    kl = kl_judge.mean_kl(expected, ours)
    agree = (ours.argmax(-1) == expected.argmax(-1)).mean()
    print(f"logits: mean KL {kl:.2e} (at most {MOST_KL:.0e}), the same likeliest token at {agree:.0%} of {len(tokens)} places")
    print("after the text:", [vocabulary[i] for i in np.argsort(-ours[5])[:5]], "follow", " ".join(WORDS[:6]))
    return 1 if problems or missing or not kl <= MOST_KL else 0


if __name__ == "__main__":
    sys.exit(main())
