"""Drafters written in Python: what they may say, and that the text stays the same whatever they say."""

import random

import coppice
import pytest
from conftest import PROMPT, SAMPLED

LONG = {"max_new_tokens": 40, "ignore_eos": True}


class Oracle(coppice.Drafter):
    """Knows the answer."""

    def __init__(self, text):
        self.text = text
        self.asked = 0
        self.heard = []

    def propose(self, tokens):
        self.asked += 1
        if tokens == self.text[:len(tokens)] and len(tokens) < len(self.text):
            return [(self.text[len(tokens)], 0.95)]
        return None  # behind a guess of another drafter's that is wrong

    def accepted(self, tokens):
        self.heard += tokens


class Tree(Oracle):
    """Says all it knows at once."""

    def propose(self, tokens):
        self.asked += 1
        return coppice.chain(self.text[len(tokens):len(tokens) + 8], 0.95)


class Garbage:
    def __init__(self):
        self.random = random.Random(1)

    def propose(self, tokens):
        return [(self.random.randrange(320), self.random.uniform(0.01, 1), []) for _ in range(5)]


def text_of(plain, options):
    return plain.tokenizer.encode(PROMPT) + plain.generate(PROMPT, **options).tokens


@pytest.mark.parametrize("options", [LONG, {**LONG, **SAMPLED}], ids=["greedy", "sampled"])
@pytest.mark.parametrize("kind", [Oracle, Tree])
def test_good_guesses_are_taken_and_the_text_is_the_same(load, plain, kind, options):
    text = text_of(plain, options)
    mine = kind(text)
    with load(custom_drafters={"mine": mine}) as model:
        answer = model.generate(PROMPT, **options)
        assert model.drafters == "mine | lookup"
    prompt = len(text) - len(answer.tokens)
    assert answer.tokens == text[prompt:]
    assert answer.sources.count("mine") > 20
    assert answer.stats.problems == []
    assert mine.heard == text[prompt:prompt + len(mine.heard)] and len(mine.heard) > 20
    if kind is Tree:
        assert mine.asked <= 3 * answer.stats.cycles


def test_garbage_changes_nothing(load, plain):
    for options in (LONG, {**LONG, **SAMPLED}):
        with load(drafters="garbage", custom_drafters={"garbage": Garbage()}) as model:
            answer = model.generate(PROMPT, **options)
        assert answer.tokens == plain.generate(PROMPT, **options).tokens
        assert answer.stats.guesses > 0


class Failing:
    def __init__(self, answer):
        self.answer = answer

    def propose(self, tokens):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer, sentence", [
    (RuntimeError("no idea"), r"drafter `mine`: RuntimeError: no idea \(line \d+ of test_drafters.py\)"),
    ([(10**6, 0.5)], "guess 1 is token 1000000; the vocabulary has 0 to 319"),
    ([(-5, 0.5)], "guess 1 is token -1; the vocabulary"),
    ([(5, 0)], "has a chance of 0; it should be above 0"),
    ([(5, float("nan"))], "has a chance of nan"),
    ([5, 6], r"should give \(token, chance\) or .* entry 1 is 5"),
    ([("a", 0.5)], "TypeError"),
    (42, "TypeError: 'int' object is not iterable"),
])
def test_a_drafter_that_fails_is_reported_once_and_decoding_goes_on(load, plain, answer, sentence):
    with load(custom_drafters={"mine": Failing(answer)}) as model:
        with pytest.warns(RuntimeWarning, match=sentence):
            failed = model.generate(PROMPT, **LONG)
        assert failed.tokens == plain.generate(PROMPT, **LONG).tokens
        assert failed.stats.sources[0].failures > 1
        assert len(failed.stats.problems) == 1
        again = model.generate(PROMPT, **LONG)  # a second warning would be an error here (pyproject.toml)
        assert again.stats.problems == failed.stats.problems


def test_a_drafter_may_not_ask_the_model_that_waits_for_it(load, plain):
    class Asking:
        def propose(self, tokens):
            return self.model.generate(tokens, max_new_tokens=1).tokens

    mine = Asking()
    with load(custom_drafters={"mine": mine}) as model:
        mine.model = model
        with pytest.warns(RuntimeWarning, match="may not ask the model that waits for its guesses"):
            answer = model.generate(PROMPT, **LONG)
    assert answer.tokens == plain.generate(PROMPT, **LONG).tokens


def test_many_texts_at_once_keep_apart(load, plain):
    class Repeats:
        """The token that followed the last one before; looks at nothing but its argument."""

        def propose(self, tokens):
            for at in range(len(tokens) - 2, -1, -1):
                if tokens[at] == tokens[-1]:
                    return [(tokens[at + 1], 0.4)]
            return []

    prompts = [f"{word} {word} {word} {word}" for word in ("one", "two", "three", "four", "five", "six")]
    with load(drafters="mine", custom_drafters={"mine": Repeats()}) as model:
        answers = model.generate(prompts, **LONG)
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain.generate(prompts, **LONG)]
    assert all(answer.stats.guesses > 0 and not answer.stats.problems for answer in answers)


def test_names_and_objects_that_cannot_be_drafters_are_refused(load):
    with pytest.raises(coppice.Error, match="`lookup` has the name of a built-in one"):
        load(custom_drafters={"lookup": Garbage()})
    with pytest.raises(coppice.Error, match="should be one word"):
        load(custom_drafters={"My Own": Garbage()})
    with pytest.raises(coppice.Error, match=r"needs a method propose\(tokens\); int has none"):
        load(custom_drafters={"mine": 5})
    with pytest.raises(coppice.Error, match="no drafter `theirs` .* or mine"):
        load(drafters="mine | theirs", custom_drafters={"mine": Garbage()})


def test_a_chain_is_a_run_of_guesses_with_nothing_behind_it():
    assert coppice.chain([1, 2], 0.5) == [(1, 0.5, [(2, 0.5, [])])]
    assert coppice.chain([]) == []
