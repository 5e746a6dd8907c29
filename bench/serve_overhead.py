"""serve_overhead.py --coppice COMMAND --model FILE.gguf: what `coppice serve` costs over the engine alone, without speculation.

One pair is one measurement through the server and one of the engine alone, one right after the other, in processes of their own; who
begins alternates. (At 1 request a measurement is short: a pair has three of each, in turn, and their medians.) Shares are made within a
pair; the table shows their median over the pairs and the quartiles.

  1 request     tokens/s of a stream by the client's clock, from the first token to the last, over `coppice generate` of the same
                prompt; and over the engine's own clock for that very request (the answer's statistics)
  16 requests   goodput of a closed loop by the clients' clock, from the first byte sent, over plain batching's in `coppice bench
                requests` under the same loop; and which share of its busy time the engine's thread spent outside the engine (/metrics)
  first byte    when the first text of a stream was read, from when its request was sent, less the server's own time to its first token,
                which begins later, when the request has come in: never less than what it took from the token to the client

The clients are one thread with raw sockets. Behind the first byte of an answer they are woken when it is over (SO_RCVLOWAT), for people sit
at other machines: a client that woke for every token would take from the engine's cores what the server does not cost. What the server's
own transport takes from them does count. With --threads as many as there are cores that is the most it can be."""

import argparse
import bisect
import json
import pathlib
import re
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

PROMPT = "The old harbour lay quiet that morning. A fisherman walked along the pier and"
SUBJECTS = ["harbour", "mountain", "library", "market", "railway", "garden", "island", "theatre"]
MOODS = ["quiet", "crowded", "dark", "bright"]
BARS = {"slower": 0.02, "first_byte_seconds": 0.005}
START = 60  # seconds until a server must answer
STOP = 20
ROUNDS = 3  # measurements of one request in a pair
ALL_OF_IT = 1 << 20  # bytes that no answer has


def prompts(count):
    return [f"{number}. The {SUBJECTS[number % len(SUBJECTS)]} was {MOODS[number // len(SUBJECTS) % len(MOODS)]} when we came. We"
            for number in range(count)]


class Server:
    """`coppice serve` of one model, plain, until the block ends."""

    def __init__(self, options):
        self.process = subprocess.Popen(
            [options.coppice, "serve", "--port", "0", "-m", f"m={options.model}", "-t", str(options.threads), "-c", str(options.context), "-d",
             "none", "--parallel", str(options.at_once)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said, self.port = [], None
        self.listening = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"listening on http://[^ ]+:(\d+)", line):
                self.port = int(found.group(1))
                self.listening.set()

    def __enter__(self):
        self.listening.wait(START)
        end = time.monotonic() + START
        while self.port and time.monotonic() < end:
            try:
                self.get("/health")
                return self
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        sys.exit("serve_overhead.py: coppice serve did not start: " + "".join(self.said))

    def __exit__(self, *problem):
        self.process.terminate()
        try:
            self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=START) as answer:
            return answer.read().decode()

    def metric(self, name, label=""):
        """-> the sum of a metric's samples that have this label; None where there is no such metric."""
        found = re.findall(rf"^{re.escape(name)}(?:\{{([^}}]*)\}})? (\S+)$", self.get("/metrics"), re.MULTILINE)
        return sum(float(value) for labels, value in found if label in labels) if found else None


class Stream:
    """One streamed completion. Bytes are kept with the time at which they came, and read when all is over."""

    def __init__(self, server, prompt, tokens):
        body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                           "speculation": {"stats": True}}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=START)
        self.parts = []  # (time, bytes)
        self.begun = False
        self.sent = time.perf_counter()
        self.socket.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)

    def take(self):
        """Reads what is there. -> False where the answer is over."""
        data = self.socket.recv(1 << 16)
        if data:
            self.parts.append((time.perf_counter(), data))
        if not self.begun and b"data: " in data:
            self.begun = True
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, ALL_OF_IT)
        return bool(data)

    def leave(self):
        """Before its end, with what has come until now."""
        self.socket.setblocking(False)
        try:
            while self.take():
                pass
        except BlockingIOError:
            pass
        self.socket.close()

    def run(self):
        while self.take():
            pass
        self.socket.close()
        return self

    def read(self):
        """Sorts what came: `times` of the events with text, `statistics` of the answer where it is whole."""
        data = b"".join(part for _, part in self.parts)
        if data and not data.startswith(b"HTTP/1.1 200"):
            sys.exit(f"serve_overhead.py: the server said {data[:300]!r}")
        ends, at = [], 0
        for _, part in self.parts:
            at += len(part)
            ends.append(at)
        self.times, self.statistics = [], None
        for event, end in events(data):
            if event.get("speculation"):
                self.statistics = event["speculation"]
            if event.get("error"):
                sys.exit(f"serve_overhead.py: the server said {event['error']}")
            if any(choice.get("text") for choice in event.get("choices", [])):
                self.times.append(self.parts[bisect.bisect_left(ends, end)][0])
        return self


def events(data):
    """-> the JSON objects of a chunked stream, each with where it ends in what came."""
    text, where, at = b"", [], data.find(b"\r\n\r\n") + 4
    while at >= 4 and (line := data.find(b"\r\n", at)) >= 0:
        size = int(data[at:line] or b"0", 16)
        if size == 0 or line + 2 + size > len(data):
            break
        text += data[line + 2:line + 2 + size]
        where.append((len(text), line + 2 + size))
        at = line + 4 + size
    bounds = [bound for bound, _ in where]
    for found in re.finditer(rb"data: (\{.*\})\n\n", text):
        yield json.loads(found.group(1)), where[bisect.bisect_left(bounds, found.end())][1]


# ---- through the server

def first_token_seconds(server):
    name = "vllm:time_to_first_token_seconds"
    return server.metric(f"{name}_sum") or 0, server.metric(f"{name}_count") or 0


def served_one(server, options):
    before = first_token_seconds(server)
    stream = Stream(server, PROMPT, options.tokens).run().read()
    after = first_token_seconds(server)
    tokens = stream.statistics["tokens"]
    return {"tokens": tokens, "events": len(stream.times), "tokens_per_second": (tokens - 1) / (stream.times[-1] - stream.times[0]),
            "engine_tokens_per_second": stream.statistics["tokens_per_second"],
            "first_byte_seconds": stream.times[0] - stream.sent - (after[0] - before[0])}


def closed_loop(server, options):
    """The loop of `coppice bench requests`: the next prompt joins where an answer ends, from the first again, until each has been
    answered once. -> (streams, seconds)"""
    asked = prompts(options.requests)
    chosen = selectors.DefaultSelector()
    streams = []

    def join():
        number = len(streams)
        streams.append(Stream(server, asked[number % len(asked)], options.tokens))
        chosen.register(streams[-1].socket, selectors.EVENT_READ, number)

    start = time.perf_counter()
    for _ in range(options.at_once):
        join()
    left = set(range(len(asked)))
    while left:
        for key, _ in chosen.select():
            if streams[key.data].take():
                continue
            chosen.unregister(key.fileobj)
            key.fileobj.close()
            left.discard(key.data)
            if left:
                join()
    seconds = time.perf_counter() - start
    for key in list(chosen.get_map().values()):
        streams[key.data].leave()
    return [stream.read() for stream in streams], seconds


def served_many(options):
    with Server(options) as server:
        Stream(server, PROMPT, 8).run()
        first = first_token_seconds(server)
        names = ("coppice_engine_seconds_total", "coppice_engine_thread_seconds_total")
        before = [server.metric(name) for name in names]
        streams, seconds = closed_loop(server, options)
        after = [server.metric(name) for name in names]
        first = [now - then for now, then in zip(first_token_seconds(server), first)]
    whole = [stream for stream in streams if stream.statistics]
    # Of those cut off with the loop the server has first tokens that no client read.
    waits = [stream.times[0] - stream.sent for stream in streams if stream.times]
    tokens = sum(s.statistics["tokens"] if s.statistics else len(s.times) for s in streams)
    out = {"answers": len(whole), "tokens": tokens, "seconds": seconds, "tokens_per_second": tokens / seconds}
    if first[1] == len(waits):
        out["first_byte_seconds"] = statistics.fmean(waits) - first[0] / first[1]
    if None not in before + after:
        engine, thread = (now - then for now, then in zip(after, before))
        out["outside_engine"] = 1 - engine / thread
    return out


# ---- the engine alone

def command(options, *arguments):
    run = subprocess.run([options.coppice, *map(str, arguments), "-m", str(options.model), "-t", str(options.threads), "-c", str(options.context),
                          "--max-tokens", str(options.tokens), "--temperature", "0", "--ignore-eos"], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"serve_overhead.py: coppice {arguments[0]}: {run.stderr.strip()}")
    return run.stdout


def alone_one(options):
    stats = json.loads(command(options, "generate", "--plain", "--json", "-p", PROMPT))["stats"]
    return {"tokens": stats["tokens"], "tokens_per_second": stats["tokens_per_second"]}


def alone_many(options):
    with tempfile.TemporaryDirectory() as folder:
        file, report = pathlib.Path(folder, "prompts.jsonl"), pathlib.Path(folder, "report.json")
        file.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts(options.requests)))
        command(options, "bench", "requests", "--prompts", file, "--at-once", options.at_once, "--rounds", 1, "-d", "none", "--nodes", 1,
                "--json", report)
        sides = json.loads(report.read_text())["loads"][0]["sides"]
    # Plain decoding twice, in turns of a few passes.
    return {"tokens_per_second": statistics.fmean(side["goodput"]["median"] for side in sides)}


# ---- pairs, and what they say

def pair_of_one(number, options):
    served, alone = [], []
    with Server(options) as server:
        Stream(server, PROMPT, 8).run()  # a process's first answer touches memory for the first time
        for turn in range(number, number + ROUNDS):
            if turn % 2:
                alone.append(alone_one(options))
            served.append(served_one(server, options))
            if turn % 2 == 0:
                alone.append(alone_one(options))
    middle = lambda rounds: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    return {"served": middle(served), "alone": middle(alone)}


def pair_of_many(number, options):
    if number % 2:
        alone = alone_many(options)
        return {"served": served_many(options), "alone": alone}
    return {"served": served_many(options), "alone": alone_many(options)}


def spread(values):
    values = sorted(value for value in values if value is not None)
    if not values:
        return None
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": statistics.median(values), "low": low, "high": high}


def summary(pairs):
    one, many = pairs["one"], pairs["many"]
    slower = lambda p, key="tokens_per_second": p["alone"]["tokens_per_second"] / p["served"][key] - 1 if key in p["served"] else None
    return {"slower than generate, 1 request": spread(slower(p) for p in one),
            "slower than its engine's clock, 1 request":
                spread(p["served"]["engine_tokens_per_second"] / p["served"]["tokens_per_second"] - 1 for p in one),
            "slower than bench requests, at once": spread(slower(p) for p in many),
            "engine's thread outside the engine, at once": spread(p["served"].get("outside_engine") for p in many),
            "first byte behind the first token, 1 request": spread(p["served"]["first_byte_seconds"] for p in one),
            "first byte behind the first token, at once": spread(p["served"].get("first_byte_seconds") for p in many)}


def table(found, options):
    lines = [f"{options.model.name}, {options.threads} threads, {options.pairs} pairs, {options.tokens} tokens an answer, {options.at_once} at once",
             f"{'':<48}{'median':>10}{'quartiles':>20}{'bar':>8}"]
    for name, value in found.items():
        if value is None:
            continue
        seconds = name.startswith("first byte")
        shown = (lambda v: f"{1000 * v:.2f} ms") if seconds else (lambda v: f"{100 * v:.2f}%")
        bar = BARS["first_byte_seconds" if seconds else "slower"]
        verdict = "met" if value["median"] <= bar else "missed"
        lines.append(f"{name:<48}{shown(value['median']):>10}{shown(value['low']) + ' - ' + shown(value['high']):>20}{verdict:>8}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coppice", required=True, help="the command; of a release build")
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--tokens", type=int, default=200, help="of each answer")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--requests", type=int, default=16, help="prompts of the closed loop")
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--json", type=pathlib.Path, help="a file for every pair and the table")
    options = parser.parse_args()
    if options.pairs < 1 or options.tokens < 2 or options.requests < options.at_once or options.at_once < 1:
        parser.error("at least 1 pair, 2 tokens, and as many --requests as are --at-once are wanted")
    pairs = {"one": [], "many": []}
    for number in range(options.pairs):
        pairs["one"].append(pair_of_one(number, options))
        pairs["many"].append(pair_of_many(number, options))
        print(f"pair {number + 1} of {options.pairs}", file=sys.stderr)
    found = summary(pairs)
    print(table(found, options))
    if options.json:
        settings = {**vars(options), "model": options.model.name, "coppice": None, "json": None}
        settings = {key: value for key, value in settings.items() if value is not None}
        options.json.write_text(json.dumps({"settings": settings, "bars": BARS, "summary": found, "pairs": pairs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
