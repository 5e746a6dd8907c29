"""The tokenizer, and the names transformers has for these things."""

import coppice
import pytest


@pytest.fixture(scope="module")
def tokenizer(model):
    return model.tokenizer


def test_text_comes_back(tokenizer):
    for text in ("Hello, world", "größer ∑ 漢字 🙂", ""):
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(ids) == text
        assert b"".join(tokenizer.token_bytes(token) for token in ids).decode() == text


def test_half_a_character_is_the_replacement_character(tokenizer):
    ids = tokenizer.encode("漢", add_special_tokens=False)
    assert len(ids) > 1
    assert tokenizer.decode(ids[:1]) == "\ufffd"


def test_a_tokenizer_can_be_called(tokenizer):
    assert tokenizer("ab")["input_ids"] == tokenizer.encode("ab")
    assert tokenizer(["ab", "c"])["input_ids"] == [tokenizer.encode("ab"), tokenizer.encode("c")]
    assert tokenizer.batch_decode([tokenizer.encode("ab"), tokenizer.encode("c")]) == ["ab", "c"]
    assert len(tokenizer) == tokenizer.vocab_size == 320


def test_typed_control_tokens_stay_text_unless_asked_for(tokenizer):
    end = tokenizer.eos_token_id
    spelled = tokenizer.token_bytes(end).decode()
    assert end not in tokenizer.encode(spelled)
    assert end in tokenizer.encode(spelled, parse_special=True)
    assert tokenizer.ends_text(end)
    assert tokenizer.decode([end]) == "" and tokenizer.decode([end], skip_special_tokens=False) == spelled


def test_the_chat_template_gives_text_or_tokens(tokenizer):
    messages = [{"role": "user", "content": "Hello"}]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    opened = tokenizer.apply_chat_template(messages, True, tokenize=False)
    assert "Hello" in text and opened.startswith(text) and len(opened) > len(text)
    assert tokenizer.decode(tokenizer.apply_chat_template(messages), skip_special_tokens=False) == text


def test_tokens_outside_the_vocabulary_are_refused(tokenizer):
    for token in (-1, 320):
        with pytest.raises(coppice.Error, match="the vocabulary; it has 0 to 319"):
            tokenizer.decode([token])
        with pytest.raises(coppice.Error):
            tokenizer.token_bytes(token)
