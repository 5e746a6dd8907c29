"""clang-format and clang-tidy over the C++ files, several at once. What passed is remembered by content in
build/tidy-cache, so that a second run looks only at what changed."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

JOBS = int(os.environ.get("COPPICE_JOBS", os.cpu_count() or 2))
LOCAL_INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def tool(name):
    """Version 14 by name where there are several: another version formats differently."""
    return shutil.which(f"{name}-14") or shutil.which(name)


def linter():
    """clang-tidy of the Python that runs this (scripts/python-requirements.txt): it passes over the headers of others, which are
    most of what a file includes, and takes a third of the time that Debian 12's takes."""
    own = pathlib.Path(sys.executable).with_name("clang-tidy")
    return str(own) if own.exists() else shutil.which("clang-tidy")


def cpp(files):
    return [path for path in files if path.endswith((".cc", ".h"))]


def formatting(root, files, fix=False):
    program = tool("clang-format")
    if not program:
        yield "clang-format is missing; run ./dev setup"
        return
    names = cpp(files)
    for begin in range(0, len(names), 50):
        part = names[begin:begin + 50]
        if fix:
            subprocess.run([program, "-i", *part], cwd=root, check=True)
            continue
        run = subprocess.run([program, "--dry-run", *part], cwd=root, capture_output=True, text=True)
        seen = set()
        for match in re.finditer(r"^(\S+?):(\d+):\d+: (?:warning|error): code should be clang-formatted", run.stderr,
                                 re.MULTILINE):
            if match.group(1) not in seen:
                seen.add(match.group(1))
                yield f"{match.group(1)}:{match.group(2)} is not formatted; ./dev check --fix does it"
        if run.returncode and not seen:
            yield "clang-format failed: " + run.stderr.strip()[:500]


def closure(root, path, seen):
    """The file and the project's own headers that it includes, directly or not."""
    if path in seen or not (root / path).is_file():
        return
    data = (root / path).read_bytes()
    seen[path] = data
    for match in LOCAL_INCLUDE.finditer(data):
        name = match.group(1).decode()
        for folder in ("src", "include", "tests", os.path.dirname(path)):
            closure(root, os.path.normpath(os.path.join(folder, name)), seen)


def fingerprint(root, path, command, config):
    seen = {}
    closure(root, path, seen)
    digest = hashlib.sha256(config + command.encode())
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.hexdigest()[:32]


def tidy(root, files, build):
    program = linter()
    if not program:
        yield "clang-tidy is missing; run ./dev setup"
        return
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        commands[path] = entry.get("command") or " ".join(entry["arguments"])
    cache = root / "build" / "tidy-cache"
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([program, "--version"], capture_output=True).stdout
    config = (root / ".clang-tidy").read_bytes() + version
    work = []
    for path in files:
        if path.endswith(".cc") and path in commands:
            stamp = cache / fingerprint(root, path, commands[path], config)
            if not stamp.exists():
                work.append((path, stamp))

    def look(item):
        path, stamp = item
        run = subprocess.run([program, "--quiet", "-p", str(build), path], cwd=root, capture_output=True, text=True)
        found = re.findall(r"^.*?: (?:warning|error): .*$", run.stdout, re.MULTILINE)
        if not found and run.returncode:
            found = [f"{path}: clang-tidy failed: {(run.stdout + run.stderr).strip()[:500]}"]
        if not found:
            stamp.touch()
        return found

    reported = set()
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for found in pool.map(look, work):
            for line in found:
                line = line.replace(f"{root}/", "")
                if line not in reported:  # a header's finding comes once for each file that includes it
                    reported.add(line)
                    yield line
