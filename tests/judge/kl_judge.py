"""What int8 activations cost on the real model. Against the reference with f32 activations, on "Alice's Adventures in
Wonderland": mean KL divergence of our next-token distribution at most 5e-3 over 2,000 tokens, and perplexity within
0.5% over 20,000 tokens (windows of 512, the second half of each scored, as llama.cpp does)."""

import math
import pathlib
import sys
import tempfile

import numpy as np

import command
import reference

WINDOW = 512
KL_WINDOWS = 4    # 2,048 tokens
PPL_WINDOWS = 40  # 20,480 tokens
KL_LIMIT = 5e-3
PPL_LIMIT = 0.005


def mean_kl(logits_p, logits_q):
    p, q = (reference.log_softmax(logits.astype(np.float64)) for logits in (logits_p, logits_q))
    return float((np.exp(p) * (p - q)).sum(axis=-1).mean())


def reference_perplexity(model, windows):
    """-> (perplexity, tokens scored). Token i + 1 is predicted from tokens 0 .. i of its window, i from the middle on."""
    total, count = 0.0, 0
    for begin in range(0, len(windows), 4):
        batch = windows[begin:begin + 4]
        rows = model.hidden_rows(batch)[:, WINDOW // 2:-1]
        scores = reference.log_softmax(model.matmul(rows, model.head))
        answers = batch[:, WINDOW // 2 + 1:, None]
        total -= float(np.take_along_axis(scores, answers, axis=-1).astype(np.float64).sum())
        count += answers.size
    return math.exp(total / count), count


def text_of_windows(tokenizer, text, windows):
    """The longest beginning of the text, at a line's end, whose tokens are at most `windows` windows, and its tokens."""
    lines = text.splitlines(keepends=True)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if len(tokenizer.encode("".join(lines[:middle])).ids) <= windows * WINDOW + 40:
            low = middle
        else:
            high = middle - 1
    part = "".join(lines[:low])
    return part, np.array(tokenizer.encode(part).ids)


def main():
    coppice = command.options(__doc__)
    path = command.real_model()
    text = pathlib.Path(command.fetch("fetch_text.sh")).read_text()
    model, tokenizer = reference.Reference(path), reference.tokenizer(path)
    part, ids = text_of_windows(tokenizer, text, PPL_WINDOWS)
    windows = ids[:len(ids) // WINDOW * WINDOW].reshape(-1, WINDOW)
    if len(windows) < PPL_WINDOWS:
        sys.exit(f"kl_judge: the text gives {len(windows)} windows, {PPL_WINDOWS} are needed")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        divergences = [mean_kl(model.forward(window), command.logits(coppice, path, window, folder, cache="f16"))
                       for window in windows[:KL_WINDOWS]]
        kl = float(np.mean(divergences))
        # Zero would mean that f32 activations were compared with themselves.
        good = 1e-5 < kl <= KL_LIMIT
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: mean KL {kl:.2e} over {KL_WINDOWS * WINDOW} tokens, at most {KL_LIMIT:.0e}")

        text_file = pathlib.Path(folder) / "text.txt"
        text_file.write_text(part)
        ours, scored = command.perplexity(coppice, path, text_file, WINDOW)
        expected, count = reference_perplexity(model, windows)
        change = ours / expected - 1
        good = abs(change) <= PPL_LIMIT and scored == count
        failed += not good
        print(f"{'ok' if good else 'FAILED'}: perplexity {ours:.4f} over {scored} scored tokens of {windows.size}, "
              f"reference {expected:.4f} over {count}: {100 * change:+.2f}%, at most {100 * PPL_LIMIT:.1f}%")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
