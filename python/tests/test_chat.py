"""Conversations as people write them, and what a template shows of them."""

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
