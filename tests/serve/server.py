"""coppice serve as the tests here see it: started on a free port with small random models, asked over sockets."""

import http.client
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import program  # noqa: E402

WAIT = 60  # seconds; what is waited for here takes one or two on an idle machine


def soon(happened, seconds=WAIT):
    """-> what `happened` returns, once it is true."""
    end = time.monotonic() + seconds
    while True:
        value = happened()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


class Server:
    """A running `coppice serve`. Its lines of stderr are in `said`."""

    def __init__(self, command, *arguments, cwd=None, env=None):
        self.process = subprocess.Popen([str(command), "serve", *map(str, arguments)], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.said = []
        self.port = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not soon(lambda: self.port or self.process.poll() is not None) or self.port is None:
            raise RuntimeError(f"coppice serve does not listen: {self.said}")
        soon(lambda: self.process.poll() is not None or self.get("/health").status == 200)

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            found = re.search(r"listening on http://\S+:(\d+)$", self.said[-1])
            if found:
                self.port = int(found.group(1))

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(WAIT)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self._reader.join(WAIT)
        self.process.stderr.close()
        return self.process.returncode

    def request(self, method, path, body=None, headers=None):
        """-> the answer, with `text` read whole and `json` where it is JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT)
        fields = dict(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            fields.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            answer.text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        answer.json = json.loads(answer.text) if "application/json" in (answer.getheader("Content-Type") or "") and answer.text else None
        return answer

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        return self.request("POST", path, body, **options)

    def raw(self, data=b""):
        """-> a socket on which `data` was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=WAIT)
        connection.sendall(data)
        return connection

    def open(self, path, body):
        """-> a socket on which a request was sent whose answer nobody has read yet."""
        data = json.dumps(body).encode()
        return self.raw(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        f"Content-Length: {len(data)}\r\n\r\n".encode() + data)

    def metric(self, name, **labels):
        """-> the sum of a metric's samples that have these labels."""
        total = 0.0
        for line in self.get("/metrics").text.splitlines():
            found = re.fullmatch(re.escape(name) + r"(?:\{(.*)\})? (\S+)", line)
            if found and all(f'{key}="{value}"' in (found.group(1) or "") for key, value in labels.items()):
                total += float(found.group(2))
        return total


def status_of(connection):
    """-> the status of the answer that comes on a socket, and all that comes until it ends."""
    data = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionError:
            break
        if not part:
            break
        data += part
    connection.close()
    return int(data[9:12]) if data[:5] == b"HTTP/" else None, data


def events(text):
    """The JSON objects of a stream; its end must be there."""
    lines = [line for line in text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]", lines[-1:]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
