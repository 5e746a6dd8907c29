#!/usr/bin/env python3
"""The judge of the jinja room: the jinja2 package with the settings transformers uses, against Coppice's interpreter
(through the filter tests/judge/render_template.cc).

    jinja_judge.py --render-template build/dev/tests/render_template [--conversations 60] [--templates FOLDER]

Where jinja2 renders, the text is equal byte for byte; where it raises, Coppice refuses. Three parts: small expressions
and statements (jinja_cases.py), every template of tests/judge/templates on generated conversations, and where the
bytes of the result come from. --templates adds a folder of other templates (*.jinja), for example of model files.
"""
import argparse
import datetime
import glob
import json
import os
import random
import subprocess
import sys
import time

import jinja2
import jinja2.ext
import jinja2.sandbox

import jinja_cases

HERE = os.path.dirname(os.path.abspath(__file__))
NOW = 1_760_000_000


def stop(message):
    sys.exit(f"jinja_judge: {message}")


# ---- the reference ---------------------------------------------------------------------------------------------------


class Generation(jinja2.ext.Extension):
    """transformers' tag around what an assistant said."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_say"), [], [], body).set_lineno(line)

    def _say(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(format):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def reference(environment, template, variables):
    """The text, or None where jinja2 raises."""
    try:
        return environment.from_string(template).render(**variables)
    except Exception:  # noqa: BLE001 - templates raise everything that Python raises
        return None


class Filter:
    def __init__(self, path):
        self.path = path

    def run(self, lines):
        """-> an answer for each {"template": ..., "variables": ...}."""
        text = "".join(json.dumps({**line, "now": NOW}) + "\n" for line in lines)
        run = subprocess.run([self.path], input=text.encode(), stdout=subprocess.PIPE)
        answers = [json.loads(line) for line in run.stdout.splitlines()]
        if run.returncode != 0 or len(answers) != len(lines):
            at = lines[min(len(answers), len(lines) - 1)]
            stop(f"the filter ended with {run.returncode} at {at.get('template', '')[:300]!r} {json.dumps(at['variables'])[:500]}")
        return answers


def compare(what, want, answer):
    """Why the two differ, or None."""
    got = answer.get("text")
    if want == got:
        return None
    if want is None:
        return f"{what}: jinja2 raises, Coppice gives {got!r}"
    if got is None:
        return f"{what}: jinja2 gives {want!r}, Coppice refuses: {answer['error']}"
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    return f"{what}: they part at character {at}: jinja2 {want[max(0, at - 40):at + 60]!r}, Coppice {got[max(0, at - 40):at + 60]!r}"


# ---- conversations ---------------------------------------------------------------------------------------------------

WORDS = ("Hello there, what is 12 times 7? Über naïve façade. Привет мир 你好 🙂 <b>bold</b> \"quoted\" 'single' back\\slash "
         "a\nb \t tab {{ not }} {% a %} tag # ## [INST] x [/INST] <|im_end|> <|im_start|>system\n <|eot_id|> </s> <s> <end_of_turn> "
         "<think> reasoning </think> </think>\n\nfoo <tool_call> {\"name\": 1} </tool_call> &amp; [TOOL_CALLS] ```python\nprint(1)\n``` "
         "\u00a0 \u2028 Σίσυφος straße %s %d {} {0} /think /no_think").split(" ")
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather of a place — today",
     "parameters": {"type": "object", "properties": {
         "city": {"type": "string", "description": "A city's \"name\""},
         "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
         "days": {"type": "integer", "minimum": 1, "maximum": 10}}, "required": ["city"]}, "return": {"type": "string"}}},
    {"type": "function", "function": {"name": "search", "description": "Finds <things> & more",
     "parameters": {"type": "object", "properties": {
         "query": {"type": "string", "description": "What"}, "limit": {"type": ["integer", "null"], "description": "How many"},
         "tags": {"type": "array", "items": {"type": "string"}, "description": "Über"},
         "deep": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "An object"},
         "flag": {"type": "boolean", "description": "Whether"}}, "required": ["query", "tags"]}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}, "required": []}}},
]
DOCUMENTS = [{"title": "Tall trees", "text": "Trees are tall."}, {"title": "Über", "text": "A \"quoted\" text\nof two lines 🙂", "doc_id": 7}]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class Conversations:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def text(self):
        r = self.random
        if r.random() < 0.08:
            return r.choice(["", " ", "\n", "  x  ", "\n\nhi\n"])
        words = " ".join(r.choice(WORDS) for _ in range(r.randrange(1, 14)))
        return r.choice(["", "", "", " ", "\n"]) + words + r.choice(["", "", "", " ", "\n"])

    def content(self):
        r = self.random
        if r.random() < 0.85:
            return self.text()
        parts = [{"type": "text", "text": self.text()} for _ in range(r.randrange(0, 3))]
        if r.random() < 0.3:
            parts.append({"type": "image", "image": "x.png"})
        return parts

    def call(self, number):
        r = self.random
        arguments = r.choice([{"city": "Zürich", "days": 3}, {"query": self.text(), "tags": ["a", "b"], "deep": {"x": 1.5}, "flag": True}, {}])
        if r.random() < 0.2:
            arguments = json.dumps(arguments)
        call = {"type": "function", "function": {"name": r.choice(["get_weather", "search", "now"]), "arguments": arguments}}
        if r.random() < 0.7:
            call["id"] = f"call{number:05}"[:9]
        return call if r.random() < 0.9 else call["function"]

    def messages(self):
        r = self.random
        messages = []
        if r.random() < 0.5:
            messages.append({"role": r.choice(["system", "system", "system", "developer"]), "content": self.content()})
        turns = r.choice([0, 1, 1, 1, 2, 2, 3, 4])
        for turn in range(turns):
            messages.append({"role": "user", "content": self.content()})
            if turn + 1 == turns and r.random() < 0.6:
                break
            if r.random() < 0.35:
                calls = [self.call(turn * 10 + i) for i in range(r.choice([1, 1, 1, 2]))]
                message = {"role": "assistant", "content": r.choice([None, "", self.text()]), "tool_calls": calls}
                if r.random() < 0.15:
                    del message["content"]
                messages.append(message)
                for call in calls:
                    result = {"role": "tool", "content": r.choice([self.text(), '{"temp": 20}', {"temp": 20.5}])}
                    if r.random() < 0.8:
                        result["tool_call_id"] = call.get("id", "call00000")
                        result["name"] = call.get("function", call)["name"]
                    messages.append(result)
            if r.random() < 0.85:
                message = {"role": "assistant", "content": self.content() if r.random() < 0.3 else self.text()}
                if r.random() < 0.3:
                    message["content"] = f"<think>\n{self.text()}\n</think>\n\n{self.text()}"
                if r.random() < 0.15:
                    message["reasoning_content"] = self.text()
                if r.random() < 0.05:
                    message["prefix"] = True
                messages.append(message)
        if r.random() < 0.1:
            r.shuffle(messages)
        return messages

    def variables(self):
        r = self.random
        variables = {"messages": self.messages(), "add_generation_prompt": r.random() < 0.6, "tools": None, "documents": None}
        for name, value in TOKENS.items():
            if name in ("bos_token", "eos_token") or r.random() < 0.5:
                variables[name] = value
        if r.random() < 0.4:
            tools = r.sample(TOOLS, r.randrange(1, len(TOOLS) + 1))
            variables["tools"] = tools if r.random() < 0.9 else [tool["function"] for tool in tools]
        if r.random() < 0.15:
            variables["documents"] = DOCUMENTS
        for name, values in (("enable_thinking", [True, False]), ("thinking", [True, False]), ("date_string", ["26 Jul 2024"]),
                             ("reasoning_effort", ["low", "high"]), ("tools_in_user_message", [True, False]),
                             ("builtin_tools", [["brave_search", "code_interpreter"]]), ("safety_mode", ["STRICT", "NONE"]),
                             ("citation_mode", ["accurate", "fast"]), ("keep_past_thinking", [True]), ("controls", [{"length": "short"}])):
            if r.random() < 0.15:
                variables[name] = r.choice(values)
        return variables


# ---- the three parts -------------------------------------------------------------------------------------------------


def check_cases(environment, tool):
    cases = [(case, jinja_cases.VARIABLES) for case in jinja_cases.cases()]
    answers = tool.run([{"template": template, "variables": variables} for template, variables in cases])
    problems, raised = [], 0
    for (template, variables), answer in zip(cases, answers):
        want = reference(environment, template, variables)
        raised += want is None
        problem = compare(repr(template), want, answer)
        if problem:
            problems.append(problem)
        if want is None and answer.get("error") is not None and not answer["error"].startswith("line "):
            problems.append(f"{template!r}: the error names no line: {answer['error']}")
    return len(cases), raised, problems


def check_template(environment, tool, path, count, seed):
    with open(path) as file:
        source = file.read()
    conversations = Conversations(seed)
    lines = [{"variables": conversations.variables()} for _ in range(count)]
    answers = tool.run([{**line, **({"template": source} if i == 0 else {})} for i, line in enumerate(lines)])
    try:
        template = environment.from_string(source)
    except jinja2.exceptions.TemplateError as error:
        stop(f"{path}: jinja2 cannot read it: {error}")
    rendered, problems = 0, []
    for line, answer in zip(lines, answers):
        try:
            want = template.render(**line["variables"])
        except Exception:  # noqa: BLE001
            want = None
        rendered += want is not None
        problem = compare(os.path.basename(path), want, answer)
        if problem:
            problems.append(problem + f"\n    {json.dumps(line['variables'], ensure_ascii=False)[:600]}")
    return rendered, problems


def check_origin(environment, tool, path, seed):
    """Contents of private-use characters: just their bytes are data, and what stands between is the template's own."""
    with open(path) as file:
        source = file.read()
    r = random.Random(seed)
    lines = []
    for _ in range(12):
        def secret():
            return "".join(chr(r.randrange(0xE000, 0xF000)) for _ in range(r.randrange(1, 9)))
        messages = [{"role": "system", "content": secret()}] if r.random() < 0.4 else []
        for _ in range(r.randrange(1, 3)):
            messages += [{"role": "user", "content": secret()}, {"role": "assistant", "content": secret()}]
        messages.append({"role": "user", "content": secret()})
        lines.append({"variables": {"messages": messages, "add_generation_prompt": True, "tools": None, "documents": None, **TOKENS}})
    problems, seen = [], 0
    for i, answer in enumerate(tool.run([{**line, **({"template": source} if i == 0 else {})} for i, line in enumerate(lines)])):
        if "text" not in answer:
            continue
        seen += 1
        data = answer["text"].encode()
        marked = bytearray(len(data))
        for begin, end in answer["data"]:
            marked[begin:end] = b"\1" * (end - begin)
        at = 0
        for character in answer["text"]:
            size = len(character.encode())
            secret = 0xE000 <= ord(character) < 0xF000
            if secret and not all(marked[at : at + size]):
                problems.append(f"{os.path.basename(path)}: what a user said counts as the template's own, conversation {i}")
                break
            at += size
    return seen, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--render-template", required=True)
    parser.add_argument("--conversations", type=int, default=60)
    parser.add_argument("--templates", help="a folder of more templates")
    parser.add_argument("--keep-going", action="store_true", help="show every difference, not the first ten")
    options = parser.parse_args()
    environment, tool, started = make_environment(), Filter(options.render_template), time.time()
    count, raised, problems = check_cases(environment, tool)
    print(f"{count} expressions and statements, {raised} of them refused by both")
    paths = sorted(glob.glob(os.path.join(HERE, "templates", "*.jinja")))
    if options.templates:
        paths += sorted(glob.glob(os.path.join(options.templates, "*.jinja")))
    for seed, path in enumerate(paths):
        rendered, wrong = check_template(environment, tool, path, options.conversations, seed)
        seen, unmarked = check_origin(environment, tool, path, seed)
        problems += wrong + unmarked
        if options.keep_going or not wrong:
            print(f"{os.path.basename(path)}: {options.conversations} conversations equal but for {len(wrong)}, "
                  f"{options.conversations - rendered} of them refused by jinja2; origin right in {seen}")
    if problems:
        shown = problems if options.keep_going else problems[:10]
        stop("\n".join([f"{len(problems)} differences", *shown]))
    print(f"jinja judge: agreed in {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
