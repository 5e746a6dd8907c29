"""Drafters of your own, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

#: (token, chance) or (token, chance, [what follows it])
Guess: TypeAlias = "tuple[int, float] | tuple[int, float, Sequence[Guess]]"


class Drafter:
    """Guesses what comes next. Deriving from this is not needed; having propose() is.

    Whatever it says, the text stays the same: good guesses make it come sooner. An exception counts as no guess; it is reported as a
    RuntimeWarning and in Stats.problems, and decoding goes on.
    """

    def propose(self, tokens: list[int]) -> Iterable[Guess] | None:
        """Tokens that may follow `tokens`, each with the chance (above 0, at most 1) that it does; None or nothing: no idea.

        Is asked again behind each of its own guesses, with the guess at the end of `tokens`. A guess with a third part says itself what
        follows it, and is not asked about: (token, chance, [(token, chance), ...]); with an empty list, nothing does. chain() makes a run
        of tokens of it. The list is the drafter's own.
        """
        raise NotImplementedError

    def accepted(self, tokens: list[int]) -> None:
        """What the model drew in one pass, guessed or not."""


def chain(tokens: Iterable[int], chance: float = 0.5) -> list[Guess]:
    """A run of tokens as an answer of propose(): one after the other, each as likely, nothing behind them."""
    answer: list[Guess] = []
    for token in reversed(list(tokens)):
        answer = [(token, chance, answer)]
    return answer


def expression(drafters: str | None, custom: Mapping[str, Any]) -> str:
    """What guesses, as the library reads it: with nothing said, one's own drafters and lookup."""
    if drafters is not None:
        return drafters
    return " | ".join([*custom, "lookup"])
