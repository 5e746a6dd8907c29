"""Finding model files."""

from __future__ import annotations

import os
from dataclasses import dataclass

from coppice import _coppice


@dataclass(frozen=True)
class FoundModel:
    path: str
    name: str
    architecture: str
    bytes: int


def find_models() -> list[FoundModel]:
    """GGUF files in the usual caches and folders: what `coppice models` lists."""
    return [FoundModel(*found) for found in _coppice.find_models()]


def model_path(path_or_name: str | os.PathLike[str]) -> str:
    """A file as it is; else the one model on this machine that has all words of the name in its own."""
    name = os.fspath(path_or_name)
    if os.path.exists(name) or "/" in name:
        return name
    words = name.lower().replace("-", " ").replace("_", " ").split()
    found = find_models()
    alike = [model for model in found if all(word in f"{model.name} {os.path.basename(model.path)}".lower() for word in words)]
    exact = [model for model in alike if name in (model.name, os.path.basename(model.path))]
    alike = exact or alike
    if len(alike) == 1:
        return alike[0].path
    if not alike:
        raise _coppice.Error(f"there is no file {name}, and none of the {len(found)} models on this machine has it in its name "
                             "(coppice.find_models() lists them)")
    raise _coppice.Error(f"{name} may be any of {len(alike)} models, say more of the name: " + ", ".join(model.path for model in alike[:5]))
