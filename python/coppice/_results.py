"""What comes of a request. Plain data: it can be printed, compared and pickled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Source:
    """What one drafter of the mix did."""

    name: str
    proposed: int  #: guesses it made or shared
    accepted: int  #: of those, taken by the model
    failures: int = 0  #: calls of a custom drafter that failed: no guess
    problem: str = ""  #: the first of them, as a sentence


@dataclass(frozen=True)
class Stats:
    """What happened, counted; include/coppice/stats.h says what each number means."""

    requests: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0  #: of the prompt, found in the cache
    tokens: int = 0  #: generated, the end-of-text token included
    cycles: int = 0  #: passes of the model that drew tokens
    target_passes: int = 0
    guesses: int = 0
    accepted: int = 0
    wanted: int = 0
    plain_cycles: int = 0
    costly_cycles: int = 0
    probes: int = 0
    draft_passes: int = 0
    target_bytes: int = 0
    draft_bytes: int = 0
    prefill_seconds: float = 0.0
    draft_seconds: float = 0.0
    verify_seconds: float = 0.0
    sample_seconds: float = 0.0
    policy_seconds: float = 0.0
    decode_seconds: float = 0.0
    reached_at_depth: list[int] = field(default_factory=list)  #: up to the last that is not 0
    accepted_at_depth: list[int] = field(default_factory=list)
    decisions: dict[str, int] = field(default_factory=dict)  #: of an adaptive policy, by rule
    sources: list[Source] = field(default_factory=list)

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.decode_seconds if self.decode_seconds > 0 else 0.0

    @property
    def tokens_per_pass(self) -> float:
        return self.tokens / self.cycles if self.cycles else 0.0

    @property
    def mean_accepted(self) -> float:
        """Guesses taken a pass."""
        return self.accepted / self.cycles if self.cycles else 0.0

    @property
    def bytes_per_token(self) -> float:
        return (self.target_bytes + self.draft_bytes) / self.tokens if self.tokens else 0.0

    @property
    def problems(self) -> list[str]:
        """What went wrong in custom drafters, a sentence each."""
        return [source.problem for source in self.sources if source.problem]


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model calls."""

    id: str  #: nine letters and digits, as the strictest templates want them; the same call has the same
    name: str
    arguments: str  #: JSON, as the model wrote it


@dataclass(frozen=True)
class Generation:
    """One answer."""

    text: str  #: without the stop string or the end-of-text token
    tokens: list[int]  #: every token drawn, the end-of-text token included
    #: end_of_text, stop_string, max_tokens, context_full, cancelled or timed_out
    stop_reason: str
    stats: Stats
    sources: list[str | None]  #: the drafter that guessed each token; None: nobody did
    logprobs: list[float] | None = None  #: of each token, if asked for
    top_logprobs: list[list[tuple[int, float]]] | None = None  #: the best tokens at each place, if asked for
    tool_calls: list[ToolCall] = field(default_factory=list)  #: of chat() with tools
    content: str | None = None  #: of chat() with tools: the text without its calls

    @property
    def message(self) -> dict[str, Any]:
        """The answer as a message of the conversation, to be appended to it."""
        said: dict[str, Any] = {"role": "assistant", "content": self.text if self.content is None else self.content}
        if self.tool_calls:
            said["tool_calls"] = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                                  for call in self.tool_calls]
        return said

    def __str__(self) -> str:
        return self.text


class Piece(str):
    """What one pass brought: text that can be printed as it is, and the tokens behind it.

    The text has complete characters only and nothing that might become a stop string, so that it may lag behind the tokens.
    """

    tokens: list[int]
    sources: list[str | None]

    def __new__(cls, text: str, tokens: list[int], sources: list[str | None]) -> Piece:
        piece = super().__new__(cls, text)
        piece.tokens = tokens
        piece.sources = sources
        return piece

    def __reduce__(self) -> tuple[Any, ...]:
        return Piece, (str(self), self.tokens, self.sources)


def names_of(sources: list[int], names: list[str]) -> list[str | None]:
    return [None if source < 0 else names[source] for source in sources]


def generation_of(raw: dict[str, Any], names: list[str]) -> Generation:
    stats = dict(raw["stats"])
    stats["sources"] = [Source(**source) for source in stats["sources"]]
    return Generation(raw["text"], raw["tokens"], raw["stop_reason"], Stats(**stats), names_of(raw["sources"], names), raw["logprobs"],
                      raw["top_logprobs"])
