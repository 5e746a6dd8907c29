"""The model's tokenizer, with the names that transformers gave these things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, overload

from coppice._coppice import Error
from coppice._coppice import Model as CoreModel

Message = Mapping[str, Any]


def role_and_content(messages: str | Message | Sequence[Message]) -> list[tuple[str, str]]:
    """A conversation as the library takes it. A string is what the user says."""
    if isinstance(messages, str):
        return [("user", messages)]
    if isinstance(messages, Mapping):
        messages = [messages]
    pairs = []
    for place, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise Error(f"message {place} should be a dict with the texts \"role\" and \"content\", and is {message!r:.80}")
        pairs.append((message["role"], message["content"]))
    return pairs


class Tokenizer:
    """Text to tokens and back. Model.tokenizer has one."""

    def __init__(self, core: CoreModel) -> None:
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
    def apply_chat_template(self, conversation: str | Sequence[Message], add_generation_prompt: bool = ..., *,
                            tokenize: Literal[True] = ...) -> list[int]: ...
    @overload
    def apply_chat_template(self, conversation: str | Sequence[Message], add_generation_prompt: bool = ..., *,
                            tokenize: Literal[False]) -> str: ...
    def apply_chat_template(self, conversation: str | Sequence[Message], add_generation_prompt: bool = False, *,
                            tokenize: bool = True) -> list[int] | str:
        """The conversation as the model was trained to see it. In tokens, what a user typed stays text: the spelling of a control token in
        it never becomes one, so that tokens are what to give to generate()."""
        messages = role_and_content(conversation)
        if tokenize:
            return self._core.chat_tokens(messages, add_generation_prompt)
        return self._core.chat_text(messages, add_generation_prompt)
