"""Who guessed each token, in colours: python colours.py MODEL.gguf "def fibonacci(n):" [DRAFTERS]

White tokens the model drew by itself; a coloured one was guessed by a drafter before, and cost no pass of its own.
"""

import sys

import coppice

COLOURS = ["\033[32m", "\033[36m", "\033[35m", "\033[33m"]
PLAIN = "\033[0m"


def main(path, prompt, drafters="lookup"):
    model = coppice.Model(path, drafters=drafters)
    colour = {}
    stream = model.stream(prompt, max_new_tokens=200)
    for piece in stream:
        for token, source in zip(piece.tokens, piece.sources):
            if source is not None:
                colour.setdefault(source, COLOURS[len(colour) % len(COLOURS)])
            # Bytes, for a character may be split over two tokens.
            text = b"" if model.tokenizer.ends_text(token) else model.tokenizer.token_bytes(token)
            sys.stdout.buffer.write(colour.get(source, "").encode() + text + PLAIN.encode())
        sys.stdout.flush()
    print()
    stats = stream.generation.stats
    for name, code in colour.items():
        print(f"{code}{name}{PLAIN} ", end="")
    print(f"{stats.tokens} tokens in {stats.cycles} passes: {stats.tokens_per_pass:.2f} a pass, {stats.tokens_per_second:.0f} tokens/s")


if __name__ == "__main__":
    main(*sys.argv[1:])
