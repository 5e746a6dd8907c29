"""The extension module: include/coppice/ as the package needs it. People call what is in coppice/__init__.py."""

from typing import Any

import numpy
import numpy.typing

class Error(ValueError):
    """What was wrong, where, and what would be right, in one sentence."""

class Grammar:
    @staticmethod
    def parse(text: str) -> Grammar: ...
    @staticmethod
    def json_schema(text: str) -> Grammar: ...
    @staticmethod
    def json_object() -> Grammar: ...
    def accepts(self, text: str) -> bool: ...

class Sampling:
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: list[tuple[int, float]]
    banned: list[int]
    ignore_eos: bool
    stop: list[str]
    seed: int
    stream: int
    choice: int
    max_tokens: int
    logprobs: int
    grammar: Grammar | None
    acceptance: str
    def __init__(self) -> None: ...
    def validate(self, vocab: int) -> None: ...

class Request:
    prompt: list[int]
    sampling: Sampling
    nodes: int | None
    depth: int | None
    width: int | None
    price: float | None
    timeout_seconds: float
    show_special: bool
    def __init__(self) -> None: ...

class Speculation:
    drafters: str
    prior: str
    nodes: int
    depth: int
    width: int
    price: float
    pass_price: float
    policy: str

class EngineOptions:
    context: int
    max_requests: int
    chunk: int
    positions: int
    cache: str
    speculation: Speculation
    def __init__(self) -> None: ...
    def add_drafter(self, name: str, drafter: Any) -> None: ...

class Model:
    @staticmethod
    def load(path: str, threads: int, chat_template: str) -> Model: ...
    def info(self) -> dict[str, Any]: ...
    def encode(self, text: str, parse_special: bool, begin: bool) -> list[int]: ...
    def decode(self, ids: list[int], show_special: bool) -> bytes: ...
    def piece(self, id: int) -> bytes: ...
    def ends_text(self, id: int) -> bool: ...
    def bos(self) -> int: ...
    def eos(self) -> int: ...

class ToolCall:
    id: str
    name: str
    arguments: str
    def __init__(self) -> None: ...

class ChatMessage:
    role: str
    content: str
    tool_calls: list[ToolCall]
    tool_call_id: str
    name: str
    def __init__(self) -> None: ...

class ChatTemplateOptions:
    program: str
    tools: str
    documents: str
    variables: str
    def __init__(self) -> None: ...

class Answer:
    def next(self) -> tuple[str, list[int], list[int]] | None: ...
    def result(self) -> dict[str, Any]: ...
    def cancel(self) -> None: ...

class Engine:
    @staticmethod
    def make(model: Model, options: EngineOptions) -> Engine: ...
    def submit(self, request: Request, streams: bool) -> Answer: ...
    def logits(self, ids: list[int], cache: str) -> numpy.typing.NDArray[numpy.float32]: ...
    def sources(self) -> list[str]: ...
    def bytes(self) -> int: ...
    def context(self) -> int: ...
    def drafters(self) -> str: ...

def chat_tokens(model: Model, messages: list[ChatMessage], open_answer: bool, options: ChatTemplateOptions) -> list[int]: ...
def tool_calls(model: Model, options: ChatTemplateOptions, names: list[str], answer: str) -> tuple[str, list[tuple[str, str]]]: ...
def chat_text(model: Model, messages: list[ChatMessage], open_answer: bool, options: ChatTemplateOptions) -> str: ...
def find_models() -> list[tuple[str, str, str, int]]: ...
def drafter_help() -> list[tuple[str, str, str]]: ...
def system_info() -> str: ...
def write_random_model(path: str, seed: int = 1, hidden: int = 64, layers: int = 2) -> None: ...
