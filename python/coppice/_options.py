"""Keyword arguments of generate(), stream() and chat(), and how they become a request of the library's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict

from coppice._coppice import Request
from coppice._grammar import Grammar, grammar_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    __all__ = ["GenerateOptions", "Unpack"]


class GenerateOptions(TypedDict, total=False):
    """All may be left out. include/coppice/sampling.h and request.h say what each does, and in which order."""

    max_new_tokens: int  # 256
    temperature: float  # 0: greedy
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: Mapping[int, float]
    banned: Sequence[int]
    ignore_eos: bool
    stop: str | Sequence[str]
    seed: int
    logprobs: bool | int  # True: of the tokens drawn; n: and the n best at each place
    acceptance: str  # "keyed" or "rejection"
    json: bool  # the answer is a JSON object
    json_schema: str | Mapping[str, Any] | type  # or JSON that is valid under this: a dict, its JSON, or a pydantic model
    grammar: str | Grammar  # or a text of these rules
    nodes: int  # guesses a pass, at most the model's; 0: plain decoding
    depth: int
    width: int
    price: float
    timeout: float  # seconds; what has come until then is the answer
    show_special: bool  # spell control tokens out in the text


class ChatOptions(GenerateOptions, total=False):
    """Of chat(): what the template may look at beside the messages."""

    tools: str | Sequence[Mapping[str, Any]]  # a list, or its JSON, as transformers and OpenAI have them
    documents: str | Sequence[Mapping[str, Any]]
    chat_template_kwargs: Mapping[str, Any]  # {"enable_thinking": False}


# Where the library calls it otherwise, or the option is the request's and not the sampling's.
SAMPLING_NAMES = {"max_new_tokens": "max_tokens"}
REQUEST_NAMES = {"nodes": "nodes", "depth": "depth", "width": "width", "price": "price", "timeout": "timeout_seconds",
                 "show_special": "show_special"}
# What other libraries call it.
ELSEWHERE = {"max_tokens": "max_new_tokens", "max_length": "max_new_tokens", "repeat_penalty": "repetition_penalty",
             "response_format": "json_schema", "schema": "json_schema", "do_sample": "temperature", "num_return_sequences": "n", "stop_strings": "stop", "bad_words_ids": "banned"}


def check_names(options: Mapping[str, Any]) -> None:
    known = list(GenerateOptions.__annotations__)
    for name in options:
        if name in known:
            continue
        near = ELSEWHERE.get(name) or next(iter(get_close_matches(name, known, 1)), None)
        raise TypeError(f"there is no option {name!r}" + (f"; did you mean {near!r}?" if near else f"; there are {', '.join(known)}"))


def request_for(ids: list[int], options: Mapping[str, Any], vocab: int, choice: int = 0) -> Request:
    """Raises Error for a value that is out of range, TypeError for one of the wrong kind."""
    check_names(options)
    request = Request()
    request.prompt = ids
    sampling = request.sampling
    sampling.choice = choice
    options = dict(options)
    sampling.grammar = grammar_of(options)
    for name, value in options.items():
        if value is None:
            continue
        if name in REQUEST_NAMES:
            put(request, REQUEST_NAMES[name], value, name)
        else:
            put(sampling, SAMPLING_NAMES.get(name, name), plain(name, value), name)
    sampling.validate(vocab)
    return request


def put(target: Any, attribute: str, value: Any, name: str) -> None:
    try:
        setattr(target, attribute, value)
    except TypeError:
        kind = GenerateOptions.__annotations__[name]
        raise TypeError(f"{name}={value!r} should be {getattr(kind, '__forward_arg__', kind)}") from None


def plain(name: str, value: Any) -> Any:
    """As the library's field takes it."""
    if name == "stop":
        return [value] if isinstance(value, str) else list(value)
    if name == "logit_bias":
        return [(int(token), float(bias)) for token, bias in dict(value).items()]
    if name == "banned":
        return [int(token) for token in value]
    if name == "logprobs":
        return (0 if value else -1) if isinstance(value, bool) else value
    return value
