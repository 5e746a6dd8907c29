"""Conversations as people write them, and what a template shows of them."""

import json

import coppice
import pytest

TEMPLATE = ("{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for d in documents or [] %}<{{ d.title }}>{% endfor %}"
            "{% for m in messages %}{{ m.role }}:{{ m.content or '' }}{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments | tojson }})"
            "{% endfor %}{{ '=' ~ m.name if m.name else '' }};{% endfor %}{{ mood or '' }}{{ '>' if add_generation_prompt else '' }}")
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "How it is outside", "parameters": {"type": "object", "properties": {
    "place": {"type": "string"}}}}}]
CALLED = [{"role": "user", "content": "Is it wet in Ghent?"},
          {"role": "assistant", "content": None, "tool_calls": [
              {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Ghent"}'}}]},
          {"role": "tool", "tool_call_id": "1", "content": "rain"}]
SHORT = {"max_new_tokens": 6, "ignore_eos": True}


@pytest.fixture(scope="module")
def own(load):
    return load(chat_template=TEMPLATE)


def text(model, messages, **options):
    return model.tokenizer.apply_chat_template(messages, tokenize=False, **options)


def test_tools_documents_and_variables_reach_the_template(own):
    assert text(own, "Hi", tools=TOOLS, documents=[{"title": "Trees", "text": "..."}], mood="mild") == "[weather]<Trees>user:Hi;mild"
    assert text(own, "Hi") == "user:Hi;"


def test_calls_of_tools_and_what_they_answered_reach_the_template(own):
    said = 'user:Is it wet in Ghent?;assistant:weather({"place": "Ghent"});tool:rain=weather;'
    assert text(own, CALLED) == said
    function = {"name": "weather", "arguments": {"place": "Ghent"}}
    for call in ({"id": "1", "function": function}, {"id": "1", **function}):
        assert text(own, [CALLED[0], {"role": "assistant", "content": "", "tool_calls": [call]}, CALLED[2]]) == said


def test_a_chat_is_what_the_template_makes_of_it(own):
    prompt = own.tokenizer.apply_chat_template(CALLED, True, tools=TOOLS, mood="mild")
    options = {"tools": TOOLS, "chat_template_kwargs": {"mood": "mild"}, **SHORT}
    expected = own.generate(prompt, **SHORT)
    assert own.chat(CALLED, **options).tokens == expected.tokens
    assert "".join(own.chat_stream(CALLED, **options)) == expected.text


HERMES = TEMPLATE + "{# <tool_call> #}"
CALL = '<tool_call>{"name": "weather", "arguments": {"place": "Ghent"}}</tool_call>'


def says(sentence):
    """A grammar of this sentence and no other: so even a model that talks nonsense calls a tool."""
    return 'root ::= "' + sentence.replace('"', '\\"') + '"'


@pytest.mark.parametrize("tools", [TOOLS, json.dumps(TOOLS)])
def test_calls_of_tools_are_read_out_of_the_answer(load, tools):
    model = load(chat_template=HERMES)
    options = {"tools": tools, "grammar": says("Let me see. " + CALL + CALL), "max_new_tokens": 400}
    answer = model.chat("Is it wet in Ghent?", **options)
    assert answer.text == "Let me see. " + CALL + CALL
    assert answer.content == "Let me see."
    assert [(call.name, json.loads(call.arguments)) for call in answer.tool_calls] == [("weather", {"place": "Ghent"})] * 2
    assert len({call.id for call in answer.tool_calls}) == 2
    assert all(len(call.id) == 9 and call.id.isalnum() for call in answer.tool_calls)
    with model.chat_stream("Is it wet in Ghent?", **options) as stream:
        assert "".join(stream) == answer.text
        assert stream.generation.tool_calls == answer.tool_calls
    assert [one.tool_calls for one in model.chat("Is it wet in Ghent?", n=2, **options)] == [answer.tool_calls] * 2


def test_the_answer_goes_on_as_a_message_of_the_conversation(load):
    model = load(chat_template=HERMES)
    said = model.chat("Is it wet in Ghent?", tools=TOOLS, grammar=says(CALL), max_new_tokens=400)
    result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "rain"}
    assert text(model, [CALLED[0], said.message, result]) == text(model, CALLED)


def test_without_tools_a_text_is_no_call(load):
    said = load(chat_template=HERMES).chat("Hi", grammar=says(CALL), max_new_tokens=400)
    assert (said.content, said.tool_calls, said.message) == (None, [], {"role": "assistant", "content": CALL})


def test_parts_of_a_content_are_its_lines(own):
    assert text(own, [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]) == "user:one\ntwo;"


def test_another_template_can_be_given_for_once(model):
    assert text(model, "Hi", chat_template="{{ messages[0].content }}!") == "Hi!"


@pytest.mark.parametrize("messages, sentence", [
    ([{"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}], "message 1, tool call 1 should be"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "message 1 should be a dict"),
    ([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]}], "arguments"),
    ([{"role": "king", "content": "Hi"}], "king")])
def test_a_message_that_is_none_is_refused(own, messages, sentence):
    with pytest.raises(coppice.Error, match=sentence):
        text(own, messages)


def test_options_of_the_template_are_not_those_of_an_answer(own):
    with pytest.raises(TypeError, match="no option 'tools'"):
        own.generate("Hi", tools=TOOLS)
    with pytest.raises(coppice.Error, match="tools cannot be JSON"):
        own.chat("Hi", tools=[object()])


@pytest.mark.parametrize("tools", ["5", "no JSON", "[" * 100_000])
def test_tools_that_are_no_list_are_the_templates_to_refuse(own, tools):
    with pytest.raises(coppice.Error, match="tools"):
        own.chat("Hi", tools=tools)
