"""Answers: one, many, n of them, and what is known about them."""

import os
import subprocess

import coppice
import numpy
import pytest
from conftest import PROMPT, SAMPLED, stop_string

LONG = {"max_new_tokens": 48, "ignore_eos": True}


def test_the_text_is_the_same_with_guesses_and_without(model, plain):
    for options in (LONG, {**LONG, **SAMPLED}, {**LONG, "repetition_penalty": 1.3}):
        guessed, alone = model.generate(PROMPT, **options), plain.generate(PROMPT, **options)
        assert guessed.tokens == alone.tokens
        assert guessed.text == alone.text
        assert guessed.stop_reason == "max_tokens"
        assert alone.stats.guesses == 0 and set(alone.sources) == {None}
    assert guessed.stats.guesses > 0


def test_text_and_token_ids_are_the_same_prompt(model):
    ids = model.tokenizer.encode(PROMPT)
    answer = model.generate(PROMPT, **LONG)
    assert model.generate(ids, **LONG).tokens == answer.tokens
    assert model.generate(numpy.array(ids), **LONG).tokens == answer.tokens
    assert model.tokenizer.decode(answer.tokens) == answer.text == str(answer)


def test_a_list_of_prompts_gives_the_answers_that_each_gets_alone(model):
    prompts = [PROMPT, "once upon a time", "1 2 3", "x" * 40, "the end", "and so on"]  # more than n_parallel
    together = model.generate(prompts, **LONG, **SAMPLED)
    assert [answer.tokens for answer in together] == [model.generate(prompt, **LONG, **SAMPLED).tokens for prompt in prompts]


def test_n_answers_differ_and_the_first_is_the_only_one(model):
    answers = model.generate(PROMPT, n=3, **LONG, **SAMPLED)
    assert len({tuple(answer.tokens) for answer in answers}) == 3
    assert answers[0].tokens == model.generate(PROMPT, **LONG, **SAMPLED).tokens
    pairs = model.generate([PROMPT, "hello"], n=2, **LONG, **SAMPLED)
    assert [len(pair) for pair in pairs] == [2, 2]
    assert pairs[0][1].tokens == answers[1].tokens


def test_an_answer_ends_before_a_stop_string(model):
    whole = model.generate(PROMPT, **LONG).text
    stop = stop_string(whole)
    answer = model.generate(PROMPT, stop=stop, **LONG)
    assert answer.stop_reason == "stop_string"
    assert answer.text == whole[:whole.index(stop)]
    assert model.generate(PROMPT, stop=["never there", stop], **LONG).text == answer.text


def test_log_probabilities_are_those_of_the_logits(model):
    answer = model.generate(PROMPT, logprobs=3, **LONG)
    ids = model.tokenizer.encode(PROMPT)
    logits = model.logits(ids + answer.tokens[:-1], cache_type="f16")[len(ids) - 1:].astype(numpy.float64)
    logits[:, [token for token in range(len(model.tokenizer)) if model.tokenizer.ends_text(token)]] = -numpy.inf  # ignore_eos
    logits -= logits.max(1, keepdims=True)
    expected = logits - numpy.log(numpy.exp(logits).sum(1, keepdims=True))
    assert logits.argmax(1).tolist() == answer.tokens
    assert numpy.allclose(answer.logprobs, expected.max(1), atol=1e-4)
    for row, best in zip(expected, answer.top_logprobs):
        assert [token for token, _ in best] == numpy.argsort(-row, kind="stable")[:3].tolist()
    assert model.generate(PROMPT, logprobs=True, max_new_tokens=2).top_logprobs == [[], []]
    assert model.generate(PROMPT, max_new_tokens=2).logprobs is None


def test_logits_are_an_array_of_tokens_by_vocabulary(model):
    logits = model.logits([5, 6, 7])
    assert logits.shape == (3, model.tokenizer.vocab_size) and logits.dtype == numpy.float32
    assert numpy.array_equal(model.logits([5, 6])[1], logits[1])
    with pytest.raises(coppice.Error, match="token id 100000 is not in the vocabulary"):
        model.logits([100000])


def test_statistics_count_what_happened(model):
    stats = model.generate(PROMPT, **LONG).stats
    assert stats.tokens == 48 and stats.requests == 1
    assert stats.cycles == 48 - stats.accepted
    assert stats.tokens_per_pass == 48 / stats.cycles
    assert [source.name for source in stats.sources] == ["lookup"]
    assert stats.sources[0].proposed == stats.guesses and stats.sources[0].accepted == stats.accepted
    assert stats.tokens_per_second > 0 and stats.bytes_per_token > 0
    assert sum(stats.accepted_at_depth) == stats.accepted
    assert model.generate(PROMPT, **LONG).stats.reused_tokens > 0, "the prompt is in the cache now"


def test_a_request_may_guess_less_than_the_model(model):
    assert model.generate(PROMPT, nodes=0, **LONG).stats.guesses == 0
    assert max(model.generate(PROMPT, depth=1, **LONG).stats.accepted_at_depth[1:], default=0) == 0


def test_chat_is_the_template_and_generate(model):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    ids = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True)
    assert model.chat(messages, **LONG).tokens == model.generate(ids, **LONG).tokens
    assert model.chat("Hello", **LONG).tokens == model.chat([messages[1]], **LONG).tokens
    assert len(model.chat("Hello", n=2, **LONG)) == 2


@pytest.mark.skipif(not os.environ.get("COPPICE"), reason="COPPICE names no coppice command to compare with")
def test_answers_are_those_of_the_command(model, model_file):
    run = subprocess.run([os.environ["COPPICE"], "generate", "-m", model_file, "-p", PROMPT, "-n", "40", "--temperature", "0.9", "--top-k",
                          "40", "--seed", "7", "--quiet"], capture_output=True, check=True)
    assert run.stdout.decode(errors="replace").rstrip("\n") == model.generate(PROMPT, max_new_tokens=40, **SAMPLED).text.rstrip("\n")
