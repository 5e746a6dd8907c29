"""GGUF language models on your own machine, several tokens a pass, and the same text as one by one.

    import coppice
    model = coppice.Model("model.gguf")
    for piece in model.chat_stream("Tell me a story."):
        print(piece, end="", flush=True)

docs/python.md tells the rest.
"""

from coppice._coppice import Error, drafter_help, system_info
from coppice._drafters import Drafter, chain
from coppice._files import FoundModel, find_models
from coppice._grammar import Grammar
from coppice._model import Model
from coppice._results import Generation, Piece, Source, Stats, ToolCall
from coppice._streams import AsyncStream, Stream
from coppice._tokenizer import Tokenizer

__all__ = ["AsyncStream", "Drafter", "Error", "FoundModel", "Generation", "Grammar", "Model", "Piece", "Source", "Stats", "Stream", "Tokenizer",
           "ToolCall", "chain", "drafter_help", "find_models", "system_info"]
