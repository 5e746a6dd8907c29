"""Answers that come piece by piece."""

import asyncio
import pickle

import coppice
import pytest
from conftest import PROMPT, SAMPLED, stop_string

LONG = {"max_new_tokens": 40, "ignore_eos": True, **SAMPLED}


def test_the_pieces_are_the_answer(model):
    whole = model.generate(PROMPT, **LONG)
    stream = model.stream(PROMPT, **LONG)
    pieces = list(stream)
    assert "".join(pieces) == whole.text
    assert [token for piece in pieces for token in piece.tokens] == whole.tokens
    assert [source for piece in pieces for source in piece.sources] == stream.generation.sources
    assert stream.generation.tokens == whole.tokens
    assert len(pieces) > 5
    assert pickle.loads(pickle.dumps(pieces[0])).tokens == pieces[0].tokens
    assert list(stream) == [], "it has ended"


def test_who_guessed_is_said_of_each_token(model):
    answer = model.generate("abc abc abc abc abc", max_new_tokens=64, ignore_eos=True)
    assert set(answer.sources) <= {None, "lookup"}
    assert answer.sources.count("lookup") == answer.stats.accepted


def test_the_whole_answer_is_not_there_before_its_end(model):
    stream = model.stream(PROMPT, **LONG)
    next(stream)
    with pytest.raises(coppice.Error, match="read the stream to its end first"):
        stream.generation


def test_a_stream_that_is_left_ends_with_what_has_come(model):
    with model.stream(PROMPT, **LONG) as stream:
        first = next(stream)
    rest = list(stream)
    assert stream.generation.stop_reason == "cancelled"
    assert stream.generation.text == first + "".join(rest)
    assert len(stream.generation.tokens) < 40
    assert model.generate(PROMPT, **LONG).stop_reason == "max_tokens"


def test_streams_that_nobody_reads_any_more_leave_room_for_others(load):
    with load(n_parallel=2) as model:
        for _ in range(5):
            next(model.stream(PROMPT, **LONG))
        assert model.generate(PROMPT, **LONG).stop_reason == "max_tokens"


def test_stop_strings_never_show(model):
    whole = model.generate(PROMPT, **LONG).text
    stop = stop_string(whole)
    assert "".join(model.stream(PROMPT, stop=stop, **LONG)) == whole[:whole.index(stop)]


def test_asynchronous_streams_run_together(model):
    prompts = [PROMPT, "hello", "1 2 3 4", "the end", "so it goes", "again and again"]

    async def read(prompt):
        return "".join([piece async for piece in model.astream(prompt, **LONG)])

    async def read_all():
        return await asyncio.gather(*(read(prompt) for prompt in prompts))

    assert asyncio.run(read_all()) == [answer.text for answer in model.generate(prompts, **LONG)]


def test_a_cancelled_task_cancels_its_answer(load):
    with load(n_parallel=1) as model:
        stream = model.astream(PROMPT, max_new_tokens=400, ignore_eos=True)

        async def read():
            async for _ in stream:
                pass

        async def cancel():
            task = asyncio.create_task(read())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        assert model.generate(PROMPT, **LONG).stop_reason == "max_tokens"


def test_a_chat_streams_too(model):
    assert "".join(model.chat_stream("Hello", **LONG)) == model.chat("Hello", **LONG).text

    async def read():
        return "".join([piece async for piece in model.achat_stream("Hello", **LONG)])

    assert asyncio.run(read()) == model.chat("Hello", **LONG).text
