"""Conversations, as OpenAI and transformers write them: a list of dicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from coppice._coppice import ChatMessage, ChatTemplateOptions, Error, ToolCall

Message = Mapping[str, Any]
Conversation = str | Message | Sequence[Message]


def messages_of(conversation: Conversation) -> list[ChatMessage]:
    """As the library takes it. A string is what the user says."""
    if isinstance(conversation, str):
        conversation = {"role": "user", "content": conversation}
    if isinstance(conversation, Mapping):
        conversation = [conversation]
    messages: list[ChatMessage] = []
    for place, given in enumerate(conversation, 1):
        messages.append(_message(given, f"message {place}", messages))
    return messages


def template_options(tools: Any = None, documents: Any = None, variables: Mapping[str, Any] | None = None, program: str = "") -> ChatTemplateOptions:
    """What a template may look at beside the messages. Tools and documents are lists, or their JSON."""
    options = ChatTemplateOptions()
    options.program = program
    options.tools, options.documents, options.variables = _json(tools, "tools"), _json(documents, "documents"), _json(variables, "variables")
    return options


def _message(given: Any, where: str, before: list[ChatMessage]) -> ChatMessage:
    calls = given.get("tool_calls") or [] if isinstance(given, Mapping) else []
    text = _text(given.get("content"), bool(calls)) if isinstance(given, Mapping) else None
    if text is None or not isinstance(given.get("role"), str):
        raise Error(f'{where} should be a dict with the texts "role" and "content", and is {given!r:.80}')
    message = ChatMessage()
    message.role, message.content = given["role"], text
    message.tool_calls = [_call(call, f"{where}, tool call {place}") for place, call in enumerate(calls, 1)]
    message.name = given.get("name") or ""
    message.tool_call_id = given.get("tool_call_id") or ""
    if message.role == "tool" and not message.name:
        named = [call.name for earlier in before for call in earlier.tool_calls if call.id == message.tool_call_id]
        message.name = named[-1] if named else ""
    return message


def _text(content: Any, may_lack: bool) -> str | None:
    """Of a text, or of a list of parts that are texts; None: it is neither."""
    if content is None:
        return "" if may_lack else None
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or not all(isinstance(part, Mapping) and isinstance(part.get("text"), str) for part in content):
        return None
    return "\n".join(part["text"] for part in content)


def _call(given: Any, where: str) -> ToolCall:
    """{"id": ..., "function": {"name": ..., "arguments": {...} or its JSON}}, with or without the word function around it."""
    function = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise Error(f'{where} should be {{"function": {{"name": ..., "arguments": ...}}}}, and is {given!r:.80}')
    call = ToolCall()
    call.name = function["name"]
    call.id = given.get("id") or ""
    call.arguments = _json(function.get("arguments"), f"{where}: arguments")
    return call


def _json(value: Any, what: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise Error(f"{what} cannot be JSON: {error}") from None
