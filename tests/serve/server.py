"""`coppice serve` as the tests here see it: one server for all tests of a script, on a port of its own, with a small random
model called tiny (what it says is nonsense, and always the same) that can chat."""

import argparse
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "judge"))

import random_model  # noqa: E402

CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>' + "
          "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
START = 60  # seconds until a server must answer
STOP = 20
coppice = None  # path of the command


def main():
    """Of a test script: --coppice COMMAND, then unittest's own arguments."""
    global coppice
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--coppice", required=True)
    options, rest = parser.parse_known_args()
    coppice = str(pathlib.Path(options.coppice).resolve())
    sys.modules["server"] = sys.modules[__name__]
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


def soon(happened, seconds=START):
    """-> what `happened` returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while True:
        value = happened()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


def rest_of(connection):
    """-> the status of the answer that comes on a socket, and all that comes until it ends."""
    data = b""
    with connection:
        while True:
            try:
                part = connection.recv(65536)
            except ConnectionError:
                break
            if not part:
                break
            data += part
    return int(data[9:12]) if data[:5] == b"HTTP/" else None, data


def events(data):
    """-> the JSON objects of a stream, whose end must be there."""
    blocks = [block for block in data.decode().split("\n\n") if block]
    assert blocks[-1] == "data: [DONE]", blocks[-1:]
    return [json.loads(block.removeprefix("data: ")) for block in blocks[:-1]]


class Server:
    """A running server. `arguments` go to `coppice serve`; without a model among them it has tiny."""

    def __init__(self, *arguments, **environment):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.model = self.folder / "tiny.gguf"
        random_model.write(self.model, chat_template=CHATML)
        arguments = [str(argument) for argument in arguments]
        if "-m" not in arguments:
            arguments = ["-m", f"tiny={self.model}", *arguments]
        self.said = []
        self.process = subprocess.Popen(
            [coppice, "serve", "--port", "0", "-t", "1", *arguments], cwd=self.folder, env=self.environment(**environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.listening = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.listening.wait(START):
            self.stop()
            raise AssertionError("coppice serve did not start: " + "".join(self.said))

    def environment(self, **more):
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "TSAN_OPTIONS") if name in os.environ}
        return {**kept, "HOME": str(self.folder), "COPPICE_CACHE": str(self.folder / "cache"), **more}

    def read(self):
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"listening on http://([^ ]+):(\d+)", line)
            if found:
                self.port = int(found.group(2))
                self.url = f"http://127.0.0.1:{self.port}"
                self.listening.set()

    def ready(self):
        """Waits until the model is loaded."""
        end = time.monotonic() + START
        while time.monotonic() < end:
            if self.get("/health")[0] == 200:
                return self
            time.sleep(0.05)
        raise AssertionError("the server is not ready: " + "".join(self.said))

    def request(self, method, path, body=None, headers=None, timeout=60):
        """-> (status, headers, bytes)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            fields = {"Content-Type": "application/json"} if body is not None else {}
            data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, {**fields, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        """-> (status, the JSON of the answer)"""
        status, _, data = self.request("POST", path, body, **options)
        return status, json.loads(data)

    def raw(self, data=b""):
        """-> a socket on which `data` was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=START)
        connection.sendall(data)
        return connection

    def open(self, path, body, headers=()):
        """-> a socket on which a request was sent whose answer nobody has read yet."""
        data = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(data)}", *headers]
        return self.raw("\r\n".join([*lines, "", ""]).encode() + data)

    def metric(self, name, **labels):
        """-> the sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self.get("/metrics")[2].decode().splitlines():
            found = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
            if found and all(f'{key}="{value}"' in (found.group(1) or "") for key, value in labels.items()):
                total += float(found.group(2))
        return total

    def count_said(self, text):
        """-> how many lines of its log have this text, as soon as one has."""
        soon(lambda: any(text in line for line in self.said))
        return sum(text in line for line in self.said)

    def stop(self, kind=signal.SIGTERM):
        """-> the exit status"""
        if self.process.poll() is None:
            self.process.send_signal(kind)
        try:
            status = self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end: " + "".join(self.said)) from None
        finally:
            self.process.stdout.close()
            self.reader.join(STOP)
            self.process.stderr.close()
            self.temporary.cleanup()
        return status


class Case(unittest.TestCase):
    """Tests with one server for the class; OPTIONS are its arguments."""

    OPTIONS = ("-c", "512")

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS).ready()

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: " + "".join(cls.server.said))
