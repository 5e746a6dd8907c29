"""What a person can get wrong is said in a sentence, by the kind of exception that Python people expect."""

import coppice
import pytest
from conftest import PROMPT


def test_an_error_is_a_value_error_with_the_library_sentence(load, tmp_path):
    assert issubclass(coppice.Error, ValueError) and coppice.Error.__module__ == "coppice"
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF but no more")
    with pytest.raises(coppice.Error, match="broken.gguf"):
        coppice.Model(broken)
    with pytest.raises(coppice.Error, match="missing.gguf: .*No such file"):
        coppice.Model(tmp_path / "missing.gguf")
    with pytest.raises(coppice.Error, match="none of the .* models on this machine has it"):
        coppice.Model.from_pretrained("no-such-model-anywhere")
    with pytest.raises(coppice.Error, match="lockup"):
        load(drafters="lockup")
    with pytest.raises(coppice.Error, match="there is f32, f16 and q8_0"):
        load(cache_type="q4")
    with pytest.raises(coppice.Error, match="policy"):
        load(policy="sometimes")


@pytest.mark.parametrize("options, sentence", [
    ({"temperature": -1}, "temperature"), ({"top_p": 0}, "top_p"), ({"max_new_tokens": 0}, "max_tokens"),
    ({"acceptance": "maybe"}, "acceptance"), ({"nodes": 200}, "200 nodes"), ({"banned": [10**6]}, "1000000"), ({"n": 0}, "n = 0")])
def test_a_value_out_of_range_is_refused(model, options, sentence):
    with pytest.raises(coppice.Error, match=sentence):
        model.generate(PROMPT, **options)


def test_a_value_of_the_wrong_kind_or_an_unknown_name_is_a_type_error(model):
    with pytest.raises(TypeError, match="temperature='hot' should be float"):
        model.generate(PROMPT, temperature="hot")
    with pytest.raises(TypeError, match="seed=-1 should be int"):
        model.generate(PROMPT, seed=-1)
    with pytest.raises(TypeError, match="no option 'max_tokens'; did you mean 'max_new_tokens'"):
        model.generate(PROMPT, max_tokens=5)
    with pytest.raises(TypeError, match="did you mean 'temperature'"):
        model.stream(PROMPT, temprature=1)


def test_a_prompt_that_is_empty_or_too_long_is_refused(model):
    for prompt in ([], "x" * 2000):
        with pytest.raises(coppice.Error):
            model.generate(prompt)
        with pytest.raises(coppice.Error):
            list(model.stream(prompt))
    with pytest.raises(coppice.Error):
        model.generate([5, 10**6])
    assert model.generate(PROMPT, max_new_tokens=3).tokens, "and the next is answered"


def test_messages_that_are_none_are_refused(model):
    for messages in ([{"role": "user"}], ["hello"], [{"role": "user", "content": 5}]):
        with pytest.raises(coppice.Error, match="message 1 should be a dict"):
            model.chat(messages)


def test_a_closed_model_says_so(load):
    model = load()
    model.close()
    with pytest.raises(coppice.Error, match="the model is closed"):
        model.generate(PROMPT)
    assert repr(model) == "coppice.Model(closed)"
