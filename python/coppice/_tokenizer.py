"""The model's tokenizer, with the names that transformers gave these things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from coppice import _coppice
from coppice._messages import Conversation, messages_of, template_options

class Tokenizer:
    """Text to tokens and back. Model.tokenizer has one."""

    def __init__(self, core: _coppice.Model) -> None:
        self._core = core
        self.vocab_size: int = core.info()["vocab"]

    def encode(self, text: str, add_special_tokens: bool = True, parse_special: bool = False) -> list[int]:
        """`add_special_tokens`: the begin-of-text token, where the model's file asks for it. `parse_special`: spellings of control tokens in
        the text become those tokens; else they stay text."""
        return self._core.encode(text, parse_special, add_special_tokens)

    @overload
    def __call__(self, text: str, add_special_tokens: bool = ...) -> dict[str, list[int]]: ...
    @overload
    def __call__(self, text: Sequence[str], add_special_tokens: bool = ...) -> dict[str, list[list[int]]]: ...
    def __call__(self, text: str | Sequence[str], add_special_tokens: bool = True) -> dict[str, Any]:
        if isinstance(text, str):
            return {"input_ids": self.encode(text, add_special_tokens)}
        return {"input_ids": [self.encode(one, add_special_tokens) for one in text]}

    def decode(self, token_ids: int | Iterable[int], skip_special_tokens: bool = True) -> str:
        """Bytes that are no UTF-8, as half a character is, become U+FFFD."""
        ids = [token_ids] if isinstance(token_ids, int) else [int(token) for token in token_ids]
        return self._core.decode(ids, not skip_special_tokens).decode("utf-8", "replace")

    def batch_decode(self, sequences: Iterable[Iterable[int]], skip_special_tokens: bool = True) -> list[str]:
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    def token_bytes(self, token: int) -> bytes:
        """Of a control token: its name."""
        return self._core.piece(token)

    def ends_text(self, token: int) -> bool:
        """Whether an answer ends with it: end of text, end of turn."""
        return self._core.ends_text(token)

    @property
    def bos_token_id(self) -> int | None:
        return self._or_none(self._core.bos())

    @property
    def eos_token_id(self) -> int | None:
        return self._or_none(self._core.eos())

    @staticmethod
    def _or_none(token: int) -> int | None:
        return None if token < 0 else token

    def __len__(self) -> int:
        return self.vocab_size

    @overload
    def apply_chat_template(self, conversation: Conversation, add_generation_prompt: bool = ..., *, tokenize: Literal[True] = ...,
                            **options: Any) -> list[int]: ...
    @overload
    def apply_chat_template(self, conversation: Conversation, add_generation_prompt: bool = ..., *, tokenize: Literal[False],
                            **options: Any) -> str: ...
    def apply_chat_template(self, conversation: Conversation, add_generation_prompt: bool = False, *, tokenize: bool = True, tools: Any = None,
                            documents: Any = None, chat_template: str | None = None, **variables: Any) -> list[int] | str:
        """The conversation as the model was trained to see it, with tools and documents where the template shows them; any other keyword is
        a variable of the template. In tokens, what a user typed stays text: the spelling of a control token in it never becomes one, so
        that tokens are what to give to generate()."""
        messages = messages_of(conversation)
        options = template_options(tools, documents, variables or None, chat_template or "")
        if tokenize:
            return _coppice.chat_tokens(self._core, messages, add_generation_prompt, options)
        return _coppice.chat_text(self._core, messages, add_generation_prompt, options)
