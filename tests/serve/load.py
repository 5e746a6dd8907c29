"""A mixed load on one coppice serve: people who join, leave, cancel, send nonsense, send too much, read slowly or send
slowly. For minutes under a sanitizer:

    tests/serve/load.py --coppice build/asan/apps/coppice --minutes 30 [-- options for coppice serve]

Ends with 1 if the server dies or hangs, answers 5xx where it must not, says another text than before, or its memory grows.
Under ASAN_OPTIONS or TSAN_OPTIONS of the caller's; a report ends the server, and is printed.
"""

import argparse
import collections
import json
import pathlib
import random
import re
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server  # noqa: E402

PROMPTS = ["the quick brown", "Call me Ishmael. Some", "def add(left, right):", "it was the best of", "a", "x" * 300]
ALLOWED = {200, 429}  # of requests that are right; a full queue is no failure
JUDGED = [{"prompt": prompt, "max_tokens": 60, "temperature": 0.9, "seed": seed, "ignore_eos": True}
          for seed, prompt in enumerate(PROMPTS)]
WARM_UP = 0.25  # of the time, before memory is looked at
GROWTH = 1.15  # of memory from there to the end, and 8 MB more
MORE_BYTES = 8 << 20


def body(chance, **more):
    asked = {"prompt": chance.choice(PROMPTS), "max_tokens": chance.choice([1, 5, 20, 100, 400]), "temperature": chance.choice([0, 0.7, 1.3]),
             "seed": chance.randrange(1000), **more}
    if chance.random() < 0.3:
        asked["speculation"] = {"drafters": chance.choice(["none", "lookup"]), "policy": chance.choice(["auto", "fixed"]),
                                "nodes": chance.randrange(17), "trace": chance.random() < 0.5}
    if chance.random() < 0.2:
        asked["n"] = chance.randrange(1, 4)
    if chance.random() < 0.2:
        asked["stop"] = ["the", "zz"]
    if chance.random() < 0.2:
        asked["logprobs"] = chance.randrange(4)
    return asked


class Load:
    def __init__(self, running, seed):
        self.server = running
        self.seed = seed
        self.counts = collections.Counter()
        self.problems = []
        self.over = threading.Event()
        self.lock = threading.Lock()

    def note(self, kind, status):
        with self.lock:
            self.counts[f"{kind} {status}"] += 1

    def problem(self, text):
        with self.lock:
            self.problems.append(text)
        self.over.set()

    def expect(self, kind, status, allowed, answer=b""):
        self.note(kind, status)
        if status not in allowed:
            self.problem(f"{kind}: {status} {answer[:300]!r}")

    # What people do, each once.

    def whole(self, chance):
        asked = body(chance)
        status, _, data = self.server.request("POST", "/v1/completions", asked)
        self.expect("whole", status, ALLOWED, data)

    def chat(self, chance):
        asked = {"messages": [{"role": "user", "content": chance.choice(PROMPTS)}], "max_tokens": 30, "stream": chance.random() < 0.5}
        path = chance.choice(["/v1/chat/completions", "/api/chat"])
        if path == "/api/chat":
            asked = {"model": "tiny", "messages": asked["messages"], "stream": asked["stream"], "options": {"num_predict": 30}}
        status, _, data = self.server.request("POST", path, asked)
        self.expect(path, status, ALLOWED, data)

    def stream(self, chance):
        status, data = server.rest_of(self.server.open("/v1/completions", body(chance, stream=True), ["Connection: close"]))
        self.expect("stream", status, ALLOWED, data)
        if status == 200 and b"data: [DONE]" not in data:
            self.problem(f"a stream without its end: {data[-300:]!r}")

    def leave(self, chance):
        with self.server.open("/v1/completions", body(chance, stream=chance.random() < 0.7, max_tokens=400, ignore_eos=True)) as connection:
            if chance.random() < 0.6:
                connection.settimeout(30)
                connection.recv(chance.randrange(1, 3000))
            time.sleep(chance.random() * 0.3)
        self.note("leave", "left")

    def nonsense(self, chance):
        kind = chance.randrange(5)
        if kind == 0:
            status, data = server.rest_of(self.server.raw(bytes(chance.randrange(256) for _ in range(chance.randrange(1, 2000))) + b"\r\n\r\n"))
            self.expect("noise", status, {400, 408, 431, 501, 505, None}, data)
        elif kind == 1:
            status, _, data = self.server.request("POST", "/v1/completions", json.dumps(body(chance)).encode()[:chance.randrange(1, 60)])
            self.expect("broken JSON", status, {400}, data)
        elif kind == 2:
            status, _, data = self.server.request("POST", "/v1/completions", {**body(chance), "max_tokens": -1})
            self.expect("wrong number", status, {400}, data)
        elif kind == 3:
            status, _, data = self.server.request("POST", "/v1/completions", {**body(chance), "colour": "blue"})
            self.expect("unknown field", status, {400}, data)
        else:
            status, _, data = self.server.request(chance.choice(["PUT", "DELETE", "GET"]), "/v1/completions")
            self.expect("wrong method", status, {405}, data)

    def huge(self, chance):
        if chance.random() < 0.5:
            head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
            status, data = server.rest_of(self.server.raw(head))
            self.expect("huge body", status, {413}, data)
        else:
            status, _, data = self.server.request("POST", "/v1/completions", {"prompt": "word " * 20000})
            self.expect("huge prompt", status, {400, 429}, data)

    def slow_reader(self, chance):
        asked = body(chance, stream=True, max_tokens=400, ignore_eos=True)
        with self.server.open("/v1/completions", asked, ["Connection: close"]) as connection:
            connection.settimeout(30)
            for _ in range(20):
                if not connection.recv(64):
                    break
                time.sleep(0.02)
        self.note("slow reader", "left")

    def slow_sender(self, chance):
        connection = self.server.raw(b"POST /v1/comple")
        for byte in b"tions HTTP/1.1\r\nHost: localhost\r\n":
            time.sleep(0.1)
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                break
        status, data = server.rest_of(connection)
        self.expect("slow sender", status, {408, None}, data)

    def look(self, chance):
        path = chance.choice(["/", "/metrics", "/health", "/v1/models", "/openapi.json", "/api/tags"])
        status, _, data = self.server.get(path)
        self.expect("look", status, {200}, data)
        if chance.random() < 0.5:
            status, _, data = self.server.request("POST", "/v1/tokenize", {"text": chance.choice(PROMPTS)})
            self.expect("tokenize", status, {200}, data)

    KINDS = [(whole, 6), (chat, 4), (stream, 8), (leave, 6), (nonsense, 4), (huge, 1), (slow_reader, 1), (slow_sender, 1), (look, 3)]

    def person(self, number):
        chance = random.Random(self.seed * 1000 + number)
        kinds, weights = zip(*self.KINDS)
        while not self.over.is_set():
            act = chance.choices(kinds, weights)[0]
            try:
                act(self, chance)
            except Exception as error:  # noqa: BLE001 - a server that died or hangs looks like many things
                if not self.over.is_set():
                    self.problem(f"{act.__name__}: {type(error).__name__}: {error}")

    def judged(self):
        """-> the texts of the requests that are judged."""
        texts = []
        for asked in JUDGED:
            status, answer = self.server.post("/v1/completions", asked)
            texts.append(answer["choices"][0]["text"] if status == 200 else f"{status}: {answer}")
        return texts

    def resident(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()).group(1)) << 10

    def run(self, people, seconds):
        wanted = self.judged()
        threads = [threading.Thread(target=self.person, args=(number,), daemon=True) for number in range(people)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        warm, next_line = None, 30.0
        while not self.over.wait(1.0):
            passed = time.monotonic() - begun
            if self.server.process.poll() is not None:
                self.problem(f"the server ended with {self.server.process.returncode}")
            elif warm is None and passed > seconds * WARM_UP:
                warm = self.resident()
            if passed > next_line:
                next_line += 30
                print(f"{passed:6.0f} s  {self.resident() / 1e6:7.1f} MB  {sum(self.counts.values())} acts", flush=True)
            if passed > seconds:
                break
        self.over.set()
        for thread in threads:
            thread.join(60)
        if not self.problems:
            self.check_afterwards(wanted, warm or self.resident())

    def check_afterwards(self, wanted, warm):
        names = ("vllm:num_requests_running", "vllm:num_requests_waiting", "coppice_kv_positions_used")
        if not server.soon(lambda: sum(map(self.server.metric, names)) == 0, 60):
            self.problem(f"requests are left: {[self.server.metric(name) for name in names]}")
        if self.judged() != wanted:
            self.problem("the texts afterwards are not those of before")
        now = self.resident()
        print(f"memory {warm / 1e6:.1f} MB after the first {WARM_UP:.0%} of the time, {now / 1e6:.1f} MB at the end")
        if now > warm * GROWTH + MORE_BYTES:
            self.problem(f"memory grew from {warm} to {now} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coppice", required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("options", nargs="*", help="for coppice serve, behind --")
    given = parser.parse_args()
    server.coppice = str(pathlib.Path(given.coppice).resolve())
    running = server.Server("--parallel", 4, "--queue", 40, "-c", 1024, "--head-seconds", 2, "--engine-idle-seconds", 5, "--engines", 4, *given.options).ready()
    load = Load(running, given.seed)
    load.run(given.people, given.minutes * 60)
    for name, count in sorted(load.counts.items()):
        print(f"{count:8} {name}")
    try:
        status = running.stop()
    except AssertionError as error:
        status, _ = None, load.problem(str(error))
    if status != 0:
        load.problem(f"the server ended with {status}")
    if load.problems:
        print("".join(running.said)[-20000:])
    for problem in load.problems:
        print("PROBLEM", problem)
    return 1 if load.problems else 0


if __name__ == "__main__":
    sys.exit(main())
