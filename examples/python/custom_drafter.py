"""A drafter of your own: python custom_drafter.py MODEL.gguf

Asked to copy a list, the model will mostly write what stands in the prompt. The drafter here knows no more than that: it finds where the
answer has got to and guesses the next few tokens from there. The text is the same without it; the passes are fewer.
"""

import sys

import coppice

LIST = "\n".join(f"{number}. {word}" for number, word in enumerate("oak ash elm yew fir birch hazel alder rowan willow maple lime".split(), 1))


class Copy(coppice.Drafter):
    """Guesses that what followed the last two tokens before follows them again."""

    def propose(self, tokens):
        for at in range(len(tokens) - 3, 0, -1):
            if tokens[at - 1:at + 1] == tokens[-2:]:
                return coppice.chain(tokens[at + 1:at + 9], chance=0.7)
        return None


def main(path):
    options = {"max_new_tokens": 100}
    question = f"Copy this list:\n{LIST}"
    with coppice.Model(path, drafters="none") as model:
        plain = model.chat(question, **options)
    with coppice.Model(path, drafters="copy", custom_drafters={"copy": Copy()}) as model:
        guessed = model.chat(question, **options)
    print(guessed.text)
    print(f"\nplain {plain.stats.cycles} passes, with the drafter {guessed.stats.cycles}; same text: {plain.tokens == guessed.tokens}")


if __name__ == "__main__":
    main(sys.argv[1])
