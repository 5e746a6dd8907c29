"""What an answer may look like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from coppice import _coppice


class Grammar:
    """Rules in GBNF style (docs/grammar.md). Made once, it serves any number of requests: generate(..., grammar=...)."""

    def __init__(self, rules: str) -> None:
        self._core = _coppice.Grammar.parse(rules)

    @classmethod
    def json_schema(cls, schema: str | Mapping[str, Any] | type) -> Grammar:
        """The JSON texts that are valid under a schema: a dict, its JSON, or a pydantic model."""
        if hasattr(schema, "model_json_schema"):
            schema = schema.model_json_schema()
        return cls._of(_coppice.Grammar.json_schema(schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)))

    @classmethod
    def json(cls) -> Grammar:
        """Any JSON object."""
        return cls._of(_coppice.Grammar.json_object())

    def accepts(self, text: str) -> bool:
        """Whether the whole text is one of the grammar."""
        return self._core.accepts(text)

    @classmethod
    def _of(cls, core: _coppice.Grammar) -> Grammar:
        made = cls.__new__(cls)
        made._core = core
        return made


def grammar_of(options: dict[str, Any]) -> _coppice.Grammar | None:
    """Takes the three options that say it out of `options`."""
    given = {name: value for name in ("grammar", "json_schema", "json") if (value := options.pop(name, None)) not in (None, False)}
    if len(given) > 1:
        raise _coppice.Error(f"{' and '.join(given)} contradict one another; give one of them")
    if "grammar" in given:
        return (given["grammar"] if isinstance(given["grammar"], Grammar) else Grammar(given["grammar"]))._core
    if "json_schema" in given:
        return Grammar.json_schema(given["json_schema"])._core
    return Grammar.json()._core if given else None
