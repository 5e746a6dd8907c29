"""Requests made up from the shipped document: whatever they ask, the server answers as the document says, and never with 5xx."""

import sys

import hypothesis
import schemathesis
import server
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

EXAMPLES = 30  # of each route, right ones and as many wrong ones; all of them take about half a minute
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SHORT = 12  # tokens: what is asked for is not of interest here


def shortened(case):
    """The same request, of the model there is, with a short answer, where it asks for a right length or none."""
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("model"), str):
        body["model"] = "tiny"
    path = case.operation.path
    if path in ("/v1/completions", "/v1/chat/completions"):
        if body.get("max_tokens") is None or isinstance(body["max_tokens"], int) and body["max_tokens"] > SHORT:
            body["max_tokens"] = SHORT
        if isinstance(body.get("max_completion_tokens"), int) and body["max_completion_tokens"] > SHORT:
            body["max_completion_tokens"] = SHORT
    elif path in ("/api/chat", "/api/generate") and isinstance(body.get("options") or {}, dict):
        body["options"] = {**(body.get("options") or {}), "num_predict": SHORT}


class Document(server.Case):
    OPTIONS = ("-c", "256", "--max-body", "1MB")

    def test_every_route_keeps_to_the_document(self):
        schema = schemathesis.openapi.from_url(self.server.url + "/openapi.json")
        settings = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
                                       suppress_health_check=list(hypothesis.HealthCheck), phases=[hypothesis.Phase.generate])
        routes = 0
        for result in schema.get_all_operations():
            operation = result.ok()
            routes += 1
            modes = [GenerationMode.POSITIVE] + ([GenerationMode.NEGATIVE] if operation.body else [])
            for mode in modes:
                with self.subTest(route=operation.label, mode=mode.value):
                    @settings
                    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
                    def ask(case):
                        shortened(case)
                        case.call_and_validate(checks=CHECKS, timeout=60)

                    ask()
        self.assertGreaterEqual(routes, 11)  # all but the document's own

    def test_mutilated_requests_are_refused_and_nothing_worse(self):
        right = b'{"model": "tiny", "prompt": "x", "max_tokens": 2, "stop": ["a"], "logit_bias": {"1": 2}, "speculation": {"nodes": 4}}'
        for at in range(0, len(right), 3):
            for body in (right[:at], right[:at] + b"\xff" + right[at:], right[:at] + b"[" + right[at:], right[:at] + b'"' + right[at + 1:]):
                status, _, _ = self.server.request("POST", "/v1/completions", body)
                self.assertIn(status, (200, 400, 404), body)
        self.assertEqual(self.server.post("/v1/completions", {"prompt": "x", "max_tokens": 2})[0], 200)


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    server.main()
