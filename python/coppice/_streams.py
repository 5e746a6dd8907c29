"""Answers that come piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any

from coppice._coppice import Answer, Error
from coppice._results import Generation, Piece, generation_of, names_of


class _Pieces:
    """What Stream and AsyncStream share: one answer under way."""

    def __init__(self, answer: Answer, names: list[str], finish: Callable[[dict[str, Any]], Generation]) -> None:
        self._answer = answer
        self._names = names
        self._finish = finish
        self._generation: Generation | None = None

    def _next(self) -> Piece | None:
        """None at the end."""
        if self._generation is not None:
            return None
        piece = self._answer.next()
        if piece is None:
            self._generation = self._finish(self._answer.result())
            return None
        text, tokens, sources = piece
        return Piece(text, tokens, names_of(sources, self._names))

    @property
    def generation(self) -> Generation:
        """The whole answer with its statistics, once the stream has ended."""
        if self._generation is None:
            raise Error("the answer is not whole yet: read the stream to its end first")
        return self._generation

    def cancel(self) -> None:
        """Ends the answer with what has come; may be called from any thread."""
        self._answer.cancel()


class Stream(_Pieces, Iterator[Piece]):
    """for piece in model.stream(...): print(piece, end="")"""

    def __next__(self) -> Piece:
        piece = self._next()
        if piece is None:
            raise StopIteration
        return piece

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cancel()


class AsyncStream(_Pieces, AsyncIterator[Piece]):
    """async for piece in model.astream(...): print(piece, end="")

    The engine works in the event loop's threads, so that the loop is never held up. A task that is cancelled cancels its answer.
    """

    async def __anext__(self) -> Piece:
        try:
            piece = await asyncio.get_running_loop().run_in_executor(None, self._next)
        except asyncio.CancelledError:
            self.cancel()
            raise
        if piece is None:
            raise StopAsyncIteration
        return piece


def finisher(names: list[str], watch: Callable[[Generation], None],
             read: Callable[[Generation], Generation]) -> Callable[[dict[str, Any]], Generation]:
    """What makes a Generation of the library's answer, which `read` may take apart. One that failed on the way is an Error."""

    def finish(raw: dict[str, Any]) -> Generation:
        if raw["stop_reason"] == "failed":
            raise Error(raw["error"])
        generation = generation_of(raw, names)
        watch(generation)
        return read(generation)

    return finish
