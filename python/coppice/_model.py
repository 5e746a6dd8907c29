"""coppice.Model: a model file, ready to answer."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from coppice import _coppice
from coppice._drafters import expression
from coppice._files import model_path
from coppice._messages import Conversation, messages_of, template_options
from coppice._options import ChatOptions, GenerateOptions, check_names, request_for
from coppice._results import Generation
from coppice._streams import AsyncStream, Stream, finisher
from coppice._tokenizer import Tokenizer
from coppice._tools import Reader, call_reader

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

DEFAULT_CONTEXT = 4096


class Model:
    """A model, its tokenizer and an engine for `n_parallel` answers at once. All methods may be called from many threads: their requests
    share the model's passes.

    path            a GGUF file, or the name of a model on this machine (coppice.find_models())
    n_threads       0: what this process may use
    n_ctx           tokens of prompt and answer together; 0: what the model was trained for, up to 4096
    n_parallel      answers at once; more wait
    n_cache         tokens the cache holds for all of them together; 0: n_ctx
    cache_type      of keys and values: f16, f32 or q8_0
    drafters        what guesses, as an expression (docs/drafters.md); "none": plain decoding
    custom_drafters drafters of yours by the name they have in the expression; left out of `drafters`, they stand beside lookup
    policy          how much to guess: "auto", "fixed", ... (docs/policies.md)
    nodes, depth, width  guesses a pass, tokens ahead, guesses at one place, at most
    prior           a mixer prior file made for this mix
    chat_template   a Jinja template instead of the file's
    """

    def __init__(self, path: str | os.PathLike[str], *, n_threads: int = 0, n_ctx: int = 0, n_parallel: int = 4, n_cache: int = 0,
                 cache_type: str = "f16", drafters: str | None = None, custom_drafters: Mapping[str, Any] | None = None,
                 policy: str = "auto", nodes: int = 16, depth: int = 16, width: int = 16, prior: str | os.PathLike[str] = "",
                 chat_template: str = "") -> None:
        self._core = _coppice.Model.load(model_path(path), n_threads, chat_template)
        self.info: dict[str, Any] = self._core.info()  #: what the file says of itself
        options = _coppice.EngineOptions()
        options.context = n_ctx or min(self.info["context_length"], DEFAULT_CONTEXT)
        options.max_requests = n_parallel
        options.positions = n_cache or options.context
        options.cache = cache_type
        for name, drafter in (custom_drafters or {}).items():
            options.add_drafter(name, drafter)
        speculation = options.speculation
        speculation.drafters = expression(drafters, custom_drafters or {})
        speculation.policy = policy
        speculation.nodes, speculation.depth, speculation.width = nodes, depth, width
        speculation.prior = os.fspath(prior)
        self._engine: _coppice.Engine | None = _coppice.Engine.make(self._core, options)
        self._names = self._engine.sources()
        self._warned: set[str] = set()
        self.tokenizer = Tokenizer(self._core)

    @classmethod
    def from_pretrained(cls, path: str | os.PathLike[str], **options: Any) -> Model:
        """The same as Model(path, ...)."""
        return cls(path, **options)

    @property
    def n_ctx(self) -> int:
        return self._working().context()

    @property
    def drafters(self) -> str:
        return self._working().drafters()

    @overload
    def generate(self, prompt: str | Sequence[int], *, n: Literal[1] = ..., **options: Unpack[GenerateOptions]) -> Generation: ...
    @overload
    def generate(self, prompt: list[str] | Sequence[Sequence[int]], *, n: Literal[1] = ...,
                 **options: Unpack[GenerateOptions]) -> list[Generation]: ...
    @overload
    def generate(self, prompt: str | Sequence[int], *, n: int, **options: Unpack[GenerateOptions]) -> list[Generation]: ...
    def generate(self, prompt: Any, *, n: int = 1, **options: Unpack[GenerateOptions]) -> Any:
        """The answer to a prompt: text, or token ids. To a list of prompts, a list of answers, made together. With n > 1, a list of n
        answers to each."""
        if n < 1:
            raise _coppice.Error(f"n = {n}: at least 1 answer is needed")
        many = not isinstance(prompt, str) and len(prompt) > 0 and not _is_token(prompt[0])
        prompts = [self._ids(one) for one in (prompt if many else [prompt])]
        requests = [request_for(ids, options, self.tokenizer.vocab_size, choice) for ids in prompts for choice in range(n)]
        answers = self._answer(requests)
        groups = answers if n == 1 else [answers[at:at + n] for at in range(0, len(answers), n)]
        return groups if many else groups[0]

    @overload
    def chat(self, messages: Conversation, *, n: Literal[1] = ..., **options: Unpack[ChatOptions]) -> Generation: ...
    @overload
    def chat(self, messages: Conversation, *, n: int, **options: Unpack[ChatOptions]) -> list[Generation]: ...
    def chat(self, messages: Conversation, *, n: int = 1, **options: Unpack[ChatOptions]) -> Any:
        """The assistant's answer to a conversation: [{"role": "user", "content": "Hello"}], or what the user says, as a string. Tools are
        shown to the model; what it calls stands in the answer's `tool_calls`, what else it says in its `content`."""
        ids, rest, read = self._conversation(messages, options)
        answers = self.generate(ids, n=n, **rest)
        return [read(answer) for answer in answers] if isinstance(answers, list) else read(answers)

    def stream(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> Stream:
        """The answer piece by piece, as passes bring it. Nothing is computed while nobody reads."""
        return Stream(*self._open(self._ids(prompt), options))

    def chat_stream(self, messages: Conversation, **options: Unpack[ChatOptions]) -> Stream:
        return Stream(*self._open(*self._conversation(messages, options)))

    def astream(self, prompt: str | Iterable[int], **options: Unpack[GenerateOptions]) -> AsyncStream:
        return AsyncStream(*self._open(self._ids(prompt), options))

    def achat_stream(self, messages: Conversation, **options: Unpack[ChatOptions]) -> AsyncStream:
        return AsyncStream(*self._open(*self._conversation(messages, options)))

    def logits(self, tokens: str | Iterable[int], cache_type: str = "f32") -> numpy.typing.NDArray[numpy.float32]:
        """[tokens, vocab]: what the model says of the token behind each of these, before any filter."""
        return self._working().logits(self._ids(tokens), cache_type)

    def close(self) -> None:
        """Gives the memory back; answers under way end as they are read."""
        self._engine = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"coppice.Model({self.info['path']!r}, drafters={self.drafters!r})" if self._engine else "coppice.Model(closed)"

    def _working(self) -> _coppice.Engine:
        if self._engine is None:
            raise _coppice.Error("the model is closed")
        return self._engine

    def _ids(self, prompt: str | Iterable[int]) -> list[int]:
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        return [int(token) for token in prompt]

    def _conversation(self, messages: Conversation, options: Mapping[str, Any]) -> tuple[list[int], dict[str, Any], Reader]:
        """Its tokens, the options that are not the template's, and what finds calls of tools in the answer."""
        rest = dict(options)
        tools = rest.pop("tools", None)
        shown = template_options(tools, rest.pop("documents", None), rest.pop("chat_template_kwargs", None))
        check_names(rest)
        if tools:
            rest.setdefault("show_special", True)  # many models open a call with a control token
        read = call_reader(self._core, tools, shown) if tools else _as_it_is
        return _coppice.chat_tokens(self._core, messages_of(messages), True, shown), rest, read

    def _open(self, ids: list[int], options: Mapping[str, Any], read: Reader | None = None) -> tuple[Any, ...]:
        request = request_for(ids, options, self.tokenizer.vocab_size)
        return self._working().submit(request, True), self._names, finisher(self._names, self._watch, read or _as_it_is)

    def _answer(self, requests: list[_coppice.Request]) -> list[Generation]:
        """All at once; if one is refused or interrupted, nobody waits for the others."""
        engine, finish = self._working(), finisher(self._names, self._watch, _as_it_is)
        under_way = [engine.submit(request, False) for request in requests]
        try:
            return [finish(answer.result()) for answer in under_way]
        finally:
            for answer in under_way:
                answer.cancel()

    def _watch(self, generation: Generation) -> None:
        """Says once what went wrong in a custom drafter."""
        for problem in generation.stats.problems:
            if problem not in self._warned:
                self._warned.add(problem)
                warnings.warn(problem, RuntimeWarning, stacklevel=4)


def _as_it_is(generation: Generation) -> Generation:
    return generation


def _is_token(entry: Any) -> bool:
    """Also numpy's integers, but not its arrays."""
    return hasattr(entry, "__index__") and not hasattr(entry, "__len__")
