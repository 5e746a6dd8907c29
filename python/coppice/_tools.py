"""Tools that a conversation offers, and the calls of them that stand in an answer."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from coppice import _coppice
from coppice._results import Generation, ToolCall

ID_LENGTH = 9
Reader = Callable[[Generation], Generation]


def call_reader(core: _coppice.Model, tools: Any, options: _coppice.ChatTemplateOptions) -> Reader:
    """What finds the calls of these tools in an answer, in the way of the model's template."""
    names = names_of(tools)

    def read(generation: Generation) -> Generation:
        content, calls = _coppice.tool_calls(core, options, names, generation.text)
        found = [ToolCall(_id(place, *call), *call) for place, call in enumerate(calls)]
        return dataclasses.replace(generation, content=content, tool_calls=found)

    return read


def names_of(tools: Any) -> list[str]:
    """Of a list, or its JSON; what is no tool has no name."""
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except (ValueError, RecursionError):
            return []  # the template says what is wrong
    listed = tools if isinstance(tools, (list, tuple)) else []  # so it does of what is no list
    functions = [tool.get("function", tool) for tool in listed if isinstance(tool, Mapping)]
    return [function["name"] for function in functions if isinstance(function, Mapping) and isinstance(function.get("name"), str)]


def _id(place: int, name: str, arguments: str) -> str:
    return hashlib.sha256(f"{place} {name} {arguments}".encode()).hexdigest()[:ID_LENGTH]
