"""Keeps the rooms' table honest: a file includes only rooms above its own. docs/architecture.md says what each knows."""

import re

# Top to bottom: a room may include itself and every room before it.
ROOMS = ["base", "quant", "gguf", "jinja", "text", "corpus", "grammar", "kernels", "tree", "sample", "model", "draft", "policy", "engine",
         "api", "train"]
# Plain data of the public interface: structs that rooms hand on as they are.
PLAIN = {"decision", "drafter", "error", "grammar", "token", "sampling", "speculation", "stats", "request", "tool_calls"}
# Folders that see the public interface alone, and those that may look into any room.
OUTSIDE = {"apps", "python", "examples", "bench"}
ANYWHERE = {"tests", "fuzz", "tools"}
TESTS = ("_test.cc", "testing.h")  # may look into rooms wherever they stand outside of src/

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def problem(path, include):
    """Why the file at `path` (relative to the root) may not include `include`, or None."""
    parts = path.split("/")
    target = include.split("/")
    inner = target[0] if len(target) > 1 and target[0] in ROOMS else None
    if parts[0] in ANYWHERE:
        return None
    if parts[0] in OUTSIDE:
        if inner and not path.endswith(TESTS):
            return f"includes {include}, but {parts[0]}/ may see only include/coppice/"
        return None
    if parts[0] == "include":
        if inner:
            return f"includes {include}, but a public header may include only public headers"
        return None
    if parts[0] != "src" or len(parts) < 3:
        return None
    room = parts[1]
    if room not in ROOMS:
        return f"lies in src/{room}/, which is no room of the table in scripts/check_layers.py"
    if target[0] == "coppice" and len(target) == 2:
        name = target[1].removesuffix(".h")
        if name not in PLAIN and room not in ("api", "train"):
            return (f"includes <{include}>; a room may include only the plain data of the public interface: "
                    + ", ".join(sorted(PLAIN)))
    if inner and ROOMS.index(inner) > ROOMS.index(room):
        return f"includes {include}, but {inner} comes after {room} in the table of rooms"
    return None


def check(root, files):
    for path in files:
        if not path.endswith((".cc", ".h")):
            continue
        text = (root / path).read_text(errors="replace")
        for match in INCLUDE.finditer(text):
            why = problem(path, match.group(2))
            if why:
                line = text.count("\n", 0, match.start(2)) + 1
                yield f"{path}:{line} {why}"
