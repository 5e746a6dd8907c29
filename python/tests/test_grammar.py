"""Answers that must be JSON, or a text of a grammar."""

import json

import coppice
import pytest
from conftest import PROMPT, SAMPLED

SCHEMA = {"type": "object", "properties": {"tree": {"enum": ["oak", "ash", "yew"]}, "age": {"type": "integer", "minimum": 0, "maximum": 999},
                                           "alive": {"type": "boolean"}}, "required": ["tree", "age", "alive"]}
RULES = 'root ::= move (" " move){0,3} "."\nmove ::= [a-h] [1-8]'


@pytest.mark.parametrize("options", [{}, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("schema", [SCHEMA, json.dumps(SCHEMA), coppice.Grammar.json_schema(SCHEMA)], ids=["dict", "text", "made"])
def test_an_answer_is_valid_under_a_schema(model, plain, schema, options):
    asked = {"grammar" if isinstance(schema, coppice.Grammar) else "json_schema": schema, **options}
    answer = model.generate(PROMPT, **asked)
    assert answer.stop_reason == "end_of_text"
    found = json.loads(answer.text)
    assert list(found) == ["tree", "age", "alive"]
    assert found["tree"] in ("oak", "ash", "yew") and 0 <= found["age"] <= 999 and isinstance(found["alive"], bool)
    assert coppice.Grammar.json_schema(SCHEMA).accepts(answer.text)
    assert plain.generate(PROMPT, **asked).tokens == answer.tokens


def test_a_pydantic_model_is_a_schema(model):
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Tree(pydantic.BaseModel):
        name: str = pydantic.Field(pattern="^[a-z]{1,6}$")
        age: int = pydantic.Field(ge=0, le=99)

    tree = Tree.model_validate_json(model.chat("A tree, please.", json_schema=Tree, **SAMPLED).text)
    assert 0 <= tree.age <= 99


def test_an_answer_is_a_text_of_the_rules(model):
    grammar = coppice.Grammar(RULES)
    for rules in (RULES, grammar):
        text = model.generate(PROMPT, grammar=rules, **SAMPLED).text
        assert grammar.accepts(text), text
    assert not grammar.accepts(text + ".") and not grammar.accepts("")


def test_json_is_the_beginning_of_an_object_at_least(model):
    answer = model.chat("Hello", json=True, max_new_tokens=200, **SAMPLED)
    assert answer.text.lstrip().startswith("{")
    if answer.stop_reason == "end_of_text":
        assert isinstance(json.loads(answer.text), dict)
    off = model.generate(PROMPT, json=False, grammar=None, max_new_tokens=9)
    assert off.tokens == model.generate(PROMPT, max_new_tokens=9).tokens


def test_pieces_of_a_stream_are_the_json(model):
    stream = model.stream(PROMPT, json_schema=SCHEMA, **SAMPLED)
    assert json.loads("".join(stream)) == json.loads(stream.generation.text)


def test_what_contradicts_or_is_no_grammar_is_refused(model):
    for options, sentence in (({"json": True, "grammar": RULES}, "grammar and json contradict"), ({"grammar": 'root ::= "a'}, "line 1"),
                              ({"json_schema": {"type": "tree"}}, "#/type"), ({"json_schema": "{"}, "JSON"),
                              ({"json": True, "ignore_eos": True}, "ignore_eos")):
        with pytest.raises(coppice.Error, match=sentence):
            model.generate(PROMPT, **options)
    with pytest.raises(TypeError, match="did you mean 'json_schema'"):
        model.generate(PROMPT, response_format=SCHEMA)
