"""coppice serve from outside: what it answers is what `coppice generate` says, and what clients get wrong is refused with
the status that says so."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import openai  # noqa: E402
import server  # noqa: E402
from server import Server, events, rest_of, soon  # noqa: E402

import random_model  # noqa: E402

CONTEXT = 16384  # tokens, so that a long answer takes long enough to be left
PROMPT = "the quick brown"
LONG = {"prompt": PROMPT, "max_tokens": 16000, "ignore_eos": True, "stream": True, "temperature": 0}
PARALLEL, QUEUE = 4, 12
AT_ONCE = PARALLEL + QUEUE


def asked(seed, tokens=40, **more):
    return {"prompt": PROMPT, "temperature": 0.8, "top_p": 0.9, "seed": seed, "max_tokens": tokens, "ignore_eos": True, **more}


class Case(unittest.TestCase):
    """A folder for the class, for what a server is told to read and write."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.model = cls.folder / "target.gguf"
        random_model.write(cls.model, chat_template=server.CHATML)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def run_command(self, *arguments, **environment):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COPPICE")}
        return subprocess.run([server.coppice, *map(str, arguments)], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, env={**kept, "COPPICE_CACHE": str(self.folder / "cache"), **environment}, timeout=120)


class Serving(Case):
    """One server for all of these. With so little memory it has only one of its models loaded at a time."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        random_model.write(cls.folder / "other.gguf", chat_template=server.CHATML, seed=2)
        cls.log = cls.folder / "access.jsonl"
        cls.server = Server("-m", f"target={cls.model}", "-m", cls.folder / "other.gguf", "-c", CONTEXT, "--parallel", PARALLEL, "--queue",
                            QUEUE, "--positions", PARALLEL * CONTEXT, "--head-seconds", 1, "--max-body", "64KB", "--memory-limit", cls.model.stat().st_size * 6 // 5, "--log", cls.log, "--policy", "fixed",
                            "--cors", "https://friend.example").ready()

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        super().tearDownClass()
        if status != 0:
            raise AssertionError(f"the server ended with {status}: " + "".join(cls.server.said))

    def idle(self):
        names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
        self.assertTrue(soon(lambda: sum(map(self.server.metric, names)) == 0))

    def in_work(self, requests):
        self.assertTrue(soon(lambda: self.server.metric("vllm:num_requests_running") == requests))

    def ask(self, body, path="/v1/completions", **headers):
        """-> status, header fields, JSON"""
        status, fields, data = self.server.request("POST", path, body, headers=headers)
        self.assertNotIn(str(self.folder), data.decode(), "no path of this machine in an answer")
        return status, fields, json.loads(data)

    def refused(self, wanted, body, path="/v1/completions", **headers):
        """-> the error"""
        status, _, answer = self.ask(body, path, **headers)
        self.assertEqual(status, wanted, answer)
        return answer["error"]

    # What it answers.

    def generated(self, seed, tokens=40):
        run = self.run_command("generate", "-m", self.model, "-t", 1, "-p", PROMPT, "-n", tokens, "--temperature", 0.8, "--top-p", 0.9, "--seed",
                               seed, "--ignore-eos", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["text"]

    def test_an_answer_is_what_generate_says(self):
        wanted = self.generated(7)
        status, _, whole = self.ask(asked(7))
        self.assertEqual((status, whole["choices"][0]["text"]), (200, wanted))
        status, fields, data = self.server.request("POST", "/v1/completions", asked(7, stream=True))
        self.assertTrue(fields["Content-Type"].startswith("text/event-stream"))
        self.assertEqual("".join(event["choices"][0]["text"] for event in events(data) if event["choices"]), wanted)
        for drafters in ("none", "lookup"):
            _, _, guessed = self.ask(asked(7, speculation={"drafters": drafters, "policy": "auto"}))
            self.assertEqual(guessed["choices"][0]["text"], wanted)
            self.assertEqual(guessed["speculation"]["drafters"], drafters)

    def test_many_at_once_say_what_each_says_alone(self):
        wanted = [self.generated(seed) for seed in range(AT_ONCE)]
        client = openai.OpenAI(base_url=f"{self.server.url}/v1", api_key="any", max_retries=0)

        def ask(seed):
            body = asked(seed, model="target")
            options = {**{name: body[name] for name in body if name != "ignore_eos"}, "extra_body": {"ignore_eos": True}}
            if seed % 2 == 0:
                return client.completions.create(**options).choices[0].text
            return "".join(chunk.choices[0].text for chunk in client.completions.create(stream=True, **options) if chunk.choices)

        self.idle()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            self.assertEqual(list(pool.map(ask, range(AT_ONCE))), wanted)

    def test_six_lines_of_openai(self):
        client = openai.OpenAI(base_url=f"{self.server.url}/v1", api_key="any")
        self.assertEqual([model.id for model in client.models.list()], ["target", "other"])
        self.assertEqual(client.models.retrieve("target").id, "target")
        question = {"model": "target", "messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 20, "temperature": 0}
        whole = client.chat.completions.create(**question)
        text, usage = "", None
        for chunk in client.chat.completions.create(**question, stream=True, stream_options={"include_usage": True}):
            usage = chunk.usage or usage
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(usage.completion_tokens, whole.usage.completion_tokens)
        with self.assertRaises(openai.NotFoundError):
            client.completions.create(model="nobody", prompt="a")

    # What clients get wrong.

    def test_what_is_asked_wrongly_is_refused_by_name(self):
        self.refused(400, b"{")
        self.assertEqual(self.refused(400, {"prompt": "a", "colour": 1})["param"], "colour")
        self.assertEqual(self.refused(404, {"prompt": "a", "model": "nobody"})["code"], "model_not_found")
        reads = {"prompt": "a", "speculation": {"drafters": "ngram(/etc/passwd)"}}
        self.assertEqual(self.refused(400, reads)["param"], "speculation.drafters")
        long = self.refused(400, {"prompt": "x" * 60000})
        self.assertEqual((long["code"], long["param"]), ("context_length_exceeded", "prompt"))
        self.refused(413, {"prompt": "x" * 70000})
        self.refused(415, b"prompt=a", **{"Content-Type": "application/x-www-form-urlencoded"})
        self.assertIsInstance(self.refused(404, {"model": "nobody", "messages": [{"role": "user", "content": "a"}]}, "/api/chat"), str)
        self.assertEqual(self.server.get("/v1/nothing")[0], 404)
        self.assertEqual(self.server.get("/v1/models/nobody")[0], 404)
        status, fields, _ = self.server.get("/v1/completions")
        self.assertEqual((status, fields["Allow"]), (405, "POST, OPTIONS"))

    def test_what_is_no_http_is_refused(self):
        host = b" HTTP/1.1\r\nHost: localhost\r\n"
        cases = {b"hello\r\n\r\n": 400, b"GET / HTTP/1.1\r\n\r\n": 400, b"GET /" + host + b"X: " + b"x" * 20000: 431,
                 b"POST /v1/completions" + host + b"Content-Length: 99999999\r\n\r\n": 413, b"GET / HTT": 408,
                 b"POST /v1/completions" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n": 501}
        for data, wanted in cases.items():
            self.assertEqual(rest_of(self.server.raw(data))[0], wanted, data[:60])

    def test_pages_of_strangers_may_not_ask(self):
        body = {"prompt": "a", "max_tokens": 1}
        stranger, friend = {"Origin": "https://stranger.example"}, {"Origin": "https://friend.example"}
        self.refused(403, body, **stranger)
        status, fields, _ = self.ask(body, **friend)
        self.assertEqual((status, fields["Access-Control-Allow-Origin"]), (200, "https://friend.example"))
        self.assertIsNone(self.server.get("/health", headers=stranger)[1]["Access-Control-Allow-Origin"])
        status, fields, _ = self.server.request("OPTIONS", "/v1/completions", headers=friend)
        self.assertEqual((status, fields["Access-Control-Allow-Methods"]), (204, "POST, OPTIONS"))
        self.assertIsNone(self.server.request("OPTIONS", "/v1/completions", headers=stranger)[1]["Access-Control-Allow-Methods"])
        for target, host in ((b"/v1/models", b"rebound.example"), (b"http://rebound.example/v1/models", b"localhost")):
            rebound = self.server.raw(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
            self.assertEqual(rest_of(rebound)[0], 421, target)

    # What it does with its time.

    def test_a_dropped_connection_frees_its_request(self):
        self.idle()
        aborted = self.server.metric("vllm:request_success_total", finished_reason="abort")
        for stream in (True, False):
            connection = self.server.open("/v1/completions", {**LONG, "stream": stream})
            self.in_work(1)
            connection.close()
            begun = time.monotonic()
            self.idle()
            self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(self.server.metric("vllm:request_success_total", finished_reason="abort"), aborted + 2)
        self.assertEqual(self.server.metric("coppice_kv_positions_used"), 0)

    def test_one_more_than_may_wait_hears_429(self):
        self.idle()
        connections = [self.server.open("/v1/completions", LONG) for _ in range(AT_ONCE)]
        self.assertTrue(soon(lambda: self.server.metric("vllm:num_requests_waiting") == QUEUE))
        status, fields, answer = self.ask({"prompt": "a"})
        self.assertEqual(status, 429, answer)
        self.assertGreater(int(fields["Retry-After"]), 0)
        for connection in connections:
            connection.close()
        self.idle()

    def test_a_model_is_loaded_when_asked_for_and_makes_room_for_another(self):
        self.idle()
        one = {"prompt": "a", "max_tokens": 1}
        self.assertEqual(self.ask({**one, "model": "target"})[0], 200)
        unloads = self.server.metric("coppice_model_unloads_total", model_name="target")
        self.assertEqual(self.ask({**one, "model": "other"})[0], 200)
        self.assertEqual(self.server.metric("coppice_model_unloads_total", model_name="target"), unloads + 1)
        connection = self.server.open("/v1/completions", {**LONG, "model": "other"})
        self.in_work(1)
        status, fields, answer = self.ask({**one, "model": "target"})
        self.assertEqual((status, answer["error"]["code"]), (503, "no_memory"))
        self.assertIsNotNone(fields["Retry-After"])
        connection.close()
        self.idle()
        self.assertEqual(self.ask(one)[0], 200)

    def test_the_page_and_what_belongs_to_it(self):
        status, fields, page = self.server.get("/")
        self.assertEqual(status, 200)
        self.assertIn("default-src 'self'", fields["Content-Security-Policy"])
        self.assertEqual(page, (server.ROOT / "apps" / "serve" / "page" / "index.html").read_bytes())
        self.assertEqual(self.server.get("/", headers={"If-None-Match": fields["ETag"]})[0], 304)
        self.assertEqual(self.server.get("/", headers={"Accept-Encoding": "gzip"})[1]["Content-Encoding"], "gzip")
        self.assertEqual(self.server.request("HEAD", "/")[2], b"")
        for path in ("/page/index.html", "/../CMakeLists.txt", "/%2e%2e/CMakeLists.txt"):
            self.assertEqual(self.server.get(path)[0], 404, path)
        self.assertEqual(json.loads(self.server.get("/health")[2]), {"status": "ok"})
        self.assertIn("/v1/chat/completions", json.loads(self.server.get("/openapi.json")[2])["paths"])

    def test_requests_are_counted_and_logged_without_what_they_say(self):
        before = self.server.metric("vllm:generation_tokens_total")
        _, fields, _ = self.ask(asked(1, 10), "/v1/completions?secret=1", **{"X-Request-Id": "mine-1"})
        self.assertEqual(fields["X-Request-Id"], "mine-1")
        self.assertTrue(soon(lambda: self.server.metric("vllm:generation_tokens_total") == before + 10))
        self.assertGreater(self.server.metric("coppice_http_requests_total", route="/v1/completions", code="200"), 0)
        self.assertGreater(self.server.metric("vllm:time_to_first_token_seconds_count"), 0)
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        mine = [(line["method"], line["path"], line["status"]) for line in lines if line["id"] == "mine-1"]
        self.assertEqual(mine, [("POST", "/v1/completions", 200)])
        for hidden in ("quick", "secret"):
            self.assertNotIn(hidden, self.log.read_text())


class Life(Case):
    """Servers that are started and ended for one test each, and those that do not start."""

    def start(self, *arguments, **environment):
        running = Server("-m", self.model, "-c", CONTEXT, "--policy", "fixed", *arguments, **environment)
        self.addCleanup(running.stop)
        return running.ready()

    def test_keys_and_draining(self):
        (self.folder / "keys.txt").write_text("# ours\nfirst\nsecond\n")
        (self.folder / "serve.json").write_text(json.dumps({"api-key-file": str(self.folder / "keys.txt"), "parallel": 1}))
        running = self.start("--config", self.folder / "serve.json", COPPICE_SERVE_QUEUE="3")
        for key in (None, "third", "firs", "firsx"):
            status, fields, data = running.get("/v1/models", headers={"Authorization": f"Bearer {key}"} if key else None)
            self.assertEqual((status, json.loads(data)["error"]["code"]), (401, "invalid_api_key"))
            self.assertEqual(fields["WWW-Authenticate"], "Bearer")
        self.assertEqual(running.get("/v1/models", headers={"Authorization": "Bearer second"})[0], 200)
        self.assertEqual([running.get(path)[0] for path in ("/health", "/", "/metrics")], [200, 200, 401])

        waiting = running.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"200 OK", waiting.recv(1000))
        connection = running.open("/v1/completions", {**LONG, "max_tokens": 3000}, ["Authorization: Bearer first"])
        self.assertIn(b"200 OK", connection.recv(15))
        running.process.send_signal(signal.SIGTERM)
        self.assertTrue(soon(lambda: any("in work may end" in line for line in running.said)))
        with self.assertRaises(OSError):
            running.raw()
        with waiting:
            self.assertEqual(waiting.recv(1000), b"", "who has asked nothing is let go")
        self.assertIn(b"data: [DONE]", rest_of(connection)[1], "what was in work came to its end")
        self.assertEqual(running.process.wait(server.START), 0)

    def test_a_second_signal_ends_at_once(self):
        running = self.start()
        with running.open("/v1/completions", LONG) as connection:
            connection.recv(15)
            running.process.send_signal(signal.SIGINT)
            self.assertTrue(soon(lambda: any("in work may end" in line for line in running.said)))
            running.process.send_signal(signal.SIGINT)
            self.assertEqual(running.process.wait(server.START), 130)

    def test_options_come_from_file_environment_and_command_line(self):
        (self.folder / "all.json").write_text(json.dumps({"port": 1, "parallel": 2, "queue": 3, "drafters": ["a=lookup", "b=none"]}))
        run = self.run_command("serve", "--config", "all.json", "--queue", 7, "--api-key", "hidden", "--print-config",
                               COPPICE_SERVE_PARALLEL="5", COPPICE_SERVE_QUEUE="6")
        config = json.loads(run.stdout)
        self.assertEqual([config[name] for name in ("port", "parallel", "queue")], [1, 5, 7])
        self.assertEqual(config["drafters"], ["a=lookup", "b=none"])
        self.assertNotIn("hidden", run.stdout)
        (self.folder / "printed.json").write_text(run.stdout)
        self.assertEqual(self.run_command("serve", "--config", "printed.json", "--print-config").stdout, run.stdout)

    def refused(self, wanted, *arguments, **environment):
        run = self.run_command("serve", "-t", 1, "--port", 0, *arguments, **environment)
        self.assertEqual((run.returncode, run.stdout), (2, ""), run.stderr)
        self.assertRegex(run.stderr, r"\Acoppice: [^\n]+\n\Z")
        self.assertIn(wanted, run.stderr)

    def test_what_a_person_gets_wrong_is_one_sentence(self):
        (self.folder / "wrong.json").write_text('{"prot": 1}')
        (self.folder / "no.gguf").write_bytes(b"nothing")
        self.refused('"prot"', "--config", "wrong.json")
        (self.folder / "twice.json").write_text('{"port": 1, "port": 2}')
        self.refused('"port" is there twice', "--config", "twice.json")
        (self.folder / "chain.json").write_text('{"config": "twice.json"}')
        self.refused('"config" would name another file', "--config", "chain.json")
        self.refused("--max-body: a size is not negative", "-m", self.model, "--max-body=-5")
        self.refused("--timeout: nan is no number of seconds", "-m", self.model, "--timeout", "nan")
        self.refused("--memory-limit allows 1", "-m", self.model, "--memory-limit", 1)
        self.refused("--cors evil", "-m", self.model, "--cors", "evil", "--print-config")
        self.refused("COPPICE_SERVE_PROT", "-m", self.model, COPPICE_SERVE_PROT="1")
        self.refused("no.gguf", "-m", "no.gguf")
        self.refused("two models", "-m", f"a={self.model}", "-m", f"a={self.model}")
        self.refused("--host", "-m", self.model, "--host", "example.org")
        self.refused("two mixes", "-m", self.model, "-d", "a=lookup", "-d", "a=none")

    def test_what_can_be_said_without_a_model_is_said_before_it_listens(self):
        # refused() wants one line on stderr, so none of these came as far as "listening".
        self.refused("drafters, column 5", "-m", self.model, "-d", "nix(")
        self.refused("there is no drafter `nix`", "-m", self.model, "-d", "a=lookup", "-d", "b=nix")
        self.refused("max=1 should be a whole number", "-m", self.model, "-d", "lookup(max=1)", "--print-config")
        self.refused("nowhere.ngram", "-m", self.model, "-d", "x=lookup | ngram(nowhere.ngram)")
        self.refused('instruction set "zz"', "-m", self.model, "--isa", "zz")
        self.refused('there is no policy "zz"', "-m", self.model, "--policy", "zz")
        self.refused("nowhere.gate", "-m", self.model, "--policy", "adaptive-paper(gate=nowhere.gate)")
        (self.folder / "fitted.gguf").write_bytes(self.model.read_bytes())
        (self.folder / "fitted.adaptive").write_text("tau = 9\n")
        draft = f'x=model("{self.folder / "fitted.gguf"}")'
        self.refused("fitted.adaptive, line 1: tau=9", "-m", self.model, "-d", "lookup", "-d", draft, "--policy", "adaptive-fitted")

    def test_a_model_whose_file_went_away_is_named_and_answers_when_it_is_back(self):
        other, away = self.folder / "other.gguf", self.folder / "away.gguf"
        random_model.write(other, chat_template=server.CHATML, seed=2)
        running = self.start("-m", f"other={other}")
        asked_of_other = {**asked(1, 5), "model": "other"}
        other.rename(away)
        for _ in range(2):
            status, answer = running.post("/v1/completions", asked_of_other)
            self.assertEqual((status, answer["error"]["code"], answer["error"]["param"]), (503, "model_file_missing", "model"))
            self.assertIn("the model other cannot be loaded: its file is not where it was", answer["error"]["message"])
            self.assertNotIn(str(self.folder), answer["error"]["message"])
        self.assertEqual(running.post("/v1/completions", asked(1, 5))[0], 200, "the others go on")
        self.assertEqual(running.count_said("other cannot be loaded"), 1)
        away.rename(other)
        self.assertEqual(running.post("/v1/completions", asked_of_other)[0], 200)

    def test_a_full_cache_lets_the_next_wait_and_says_so(self):
        running = self.start("--parallel", 4, "--queue", 1, "--cache-memory", 1)
        self.assertEqual(running.metric("coppice_kv_positions"), CONTEXT, "one context, though four times that were asked for")
        connections = [running.open("/v1/completions", LONG) for _ in range(5)]
        self.assertTrue(soon(lambda: running.metric("coppice_requests_waiting_for_cache") == 4))
        self.assertEqual(running.metric("vllm:num_requests_running"), 1)
        status, answer = running.post("/v1/completions", asked(1, 5))
        self.assertEqual((status, answer["error"]["code"]), (429, "server_busy"))
        self.assertIn("for room in the cache", answer["error"]["message"])
        self.assertEqual(running.count_said(f"the cache is full: its {CONTEXT} tokens"), 1)
        for connection in connections:
            connection.close()
        self.assertTrue(soon(lambda: running.metric("coppice_requests_waiting_for_cache") == 0))
        self.assertEqual(running.post("/v1/completions", asked(1, 5))[0], 200)

    def test_a_first_model_that_cannot_be_had_ends_the_server(self):
        run = self.run_command("serve", "-t", 1, "--port", 0, "-m", self.model, "-d", "x=ngram(nowhere.ngram)")
        self.assertEqual(run.returncode, 2)
        self.assertIn("nowhere.ngram", run.stderr)


if __name__ == "__main__":
    server.main()
