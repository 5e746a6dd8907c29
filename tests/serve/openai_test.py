"""`coppice serve` behind OpenAI's own package: every call that a client makes, streaming and not, on a small random model whose
text is nonsense and always the same."""

import asyncio
import json
import subprocess

import openai
import server

MODEL = "tiny"
HI = [{"role": "user", "content": "the quick brown fox"}]
WEATHER = {"type": "function", "function": {"name": "weather", "description": "of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"], "additionalProperties": False}}}
TIME = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
PLAIN = {"speculation": {"drafters": "none"}}


class OpenAi(server.Case):
    OPTIONS = ("-c", "1024")  # tools take some of it: a token is hardly more than a byte here

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.client = openai.OpenAI(base_url=cls.server.url + "/v1", api_key="none", max_retries=0, timeout=60)

    def chat(self, messages=HI, **options):
        return self.client.chat.completions.create(model=MODEL, messages=messages, **{"max_tokens": 16, "seed": 7, **options})

    def complete(self, prompt="the quick brown", **options):
        return self.client.completions.create(model=MODEL, prompt=prompt, **{"max_tokens": 16, "seed": 7, **options})

    def generate(self, *arguments):
        run = subprocess.run([server.coppice, "generate", "-m", str(self.server.model), "-t", "1", "-c", "1024", "--json", *arguments],
                             capture_output=True, env=self.server.environment(), check=True)
        return json.loads(run.stdout)

    def refused(self, param, call, kind=openai.BadRequestError, **options):
        with self.assertRaises(kind) as caught:
            call(**options)
        self.assertEqual(caught.exception.param, param, caught.exception.message)
        self.assertIn(param or "", caught.exception.message)

    # Models

    def test_models_are_listed_and_shown(self):
        self.assertEqual([model.id for model in self.client.models.list()], [MODEL])
        self.assertEqual(self.client.models.retrieve(MODEL).id, MODEL)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("nobody")
        with self.assertRaises(openai.NotFoundError):
            self.client.completions.create(model="nobody", prompt="x")

    # Completions

    def test_a_completion_is_what_the_command_generates(self):
        for temperature in (0, 1):
            wanted = self.generate("-p", "the quick brown", "-n", "16", "--seed", "7", "--temp", str(temperature))
            for extra in (PLAIN, {}):
                got = self.complete(temperature=temperature, extra_body=extra)
                self.assertEqual(got.choices[0].text, wanted["text"])
                self.assertEqual(got.usage.completion_tokens, len(wanted["ids"]))
                self.assertEqual(got.usage.prompt_tokens, len(wanted["prompt_ids"]))

    def test_a_conversation_is_what_the_command_generates(self):
        wanted = self.generate("--chat", "-p", HI[0]["content"], "-n", "16", "--seed", "7", "--temp", "1")
        self.assertEqual(self.chat().choices[0].message.content, wanted["text"])

    def test_a_streamed_completion_is_the_same_text(self):
        whole = self.complete()
        chunks = list(self.complete(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(chunk.choices[0].text for chunk in chunks if chunk.choices), whole.choices[0].text)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual(chunks[-2].choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})

    def test_prompts_come_as_texts_and_tokens_alone_and_in_lists(self):
        one, two = self.complete("one").choices[0].text, self.complete("two").choices[0].text
        both = self.complete(["one", "two"])
        self.assertEqual([choice.text for choice in both.choices], [one, two])
        tokens = self.server.post("/v1/tokenize", {"content": "one"})[1]["tokens"]
        self.assertEqual(self.complete(tokens).choices[0].text, one)
        self.assertEqual([choice.text for choice in self.complete([tokens, tokens]).choices], [one, one])

    def test_choices_differ_and_the_first_is_the_one_of_a_single(self):
        several = self.complete(n=3, temperature=1)
        self.assertEqual([choice.index for choice in several.choices], [0, 1, 2])
        self.assertEqual(several.choices[0].text, self.complete(temperature=1).choices[0].text)
        self.assertEqual(len({choice.text for choice in several.choices}), 3)
        self.assertEqual(several.usage.prompt_tokens, self.complete().usage.prompt_tokens)
        self.refused("best_of", self.complete, n=1, best_of=2)

    def test_echo_puts_the_prompt_before_the_answer(self):
        self.assertEqual(self.complete(echo=True).choices[0].text, "the quick brown" + self.complete().choices[0].text)

    def test_a_prompt_is_scored_with_echo_and_logprobs(self):
        whole = self.complete("the quick brown fox", echo=True, logprobs=1, max_tokens=4, temperature=0)
        logprobs = whole.choices[0].logprobs
        self.assertEqual(whole.choices[0].text, self.complete("the quick brown fox", echo=True, max_tokens=4, temperature=0).choices[0].text)
        self.assertEqual("".join(logprobs.tokens[:-4]), "the quick brown fox")
        self.assertEqual(len(logprobs.token_logprobs), whole.usage.total_tokens)
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertTrue(all(value <= 0 for value in logprobs.token_logprobs[1:]))
        self.assertEqual(whole.usage.completion_tokens, 4)
        scored = self.complete("the quick brown fox", echo=True, logprobs=1, max_tokens=0, temperature=0)
        self.assertEqual(scored.choices[0].text, "the quick brown fox")
        self.assertEqual(scored.choices[0].logprobs.token_logprobs, logprobs.token_logprobs[:-4])

    def test_a_stop_string_ends_the_answer_before_it(self):
        text = self.complete(temperature=0, max_tokens=30).choices[0].text
        stop = text[6:8]
        for options in ({"stop": stop}, {"stop": ["\x00never", stop]}):
            cut = self.complete(temperature=0, max_tokens=30, **options).choices[0]
            self.assertEqual(cut.text, text[:text.index(stop)])
            self.assertEqual(cut.finish_reason, "stop")
            streamed = "".join(chunk.choices[0].text for chunk in self.complete(temperature=0, max_tokens=30, stream=True, **options))
            self.assertEqual(streamed, cut.text)

    def test_logprobs_of_a_completion_have_offsets_into_the_text(self):
        choice = self.complete(logprobs=3, temperature=0).choices[0]
        logprobs = choice.logprobs
        self.assertEqual(len(logprobs.tokens), len(logprobs.token_logprobs))
        self.assertEqual(len(logprobs.tokens), len(logprobs.text_offset))
        for token, logprob, top, offset in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, logprobs.text_offset):
            self.assertLessEqual(logprob, 0)
            self.assertAlmostEqual(max(top.values()), logprob, places=4)  # greedy
            if "\ufffd" not in token:
                self.assertEqual(choice.text[offset:offset + len(token)], token)

    def test_a_bias_forces_a_token_and_penalties_change_the_text(self):
        token = self.server.post("/v1/tokenize", {"content": "x", "add_special": False})[1]["tokens"][0]
        self.assertEqual(self.complete(logit_bias={str(token): 100}, max_tokens=5).choices[0].text, "xxxxx")
        forced = {"logit_bias": {str(token): 100}, "max_tokens": 40, "temperature": 0}
        self.assertEqual(self.complete(**forced).choices[0].text, "x" * 40)
        self.assertNotEqual(self.complete(presence_penalty=2, frequency_penalty=2, temperature=0, max_tokens=40).choices[0].text,
                            self.complete(temperature=0, max_tokens=40).choices[0].text)

    def test_the_seed_decides(self):
        self.assertEqual(self.complete(temperature=1).choices[0].text, self.complete(temperature=1).choices[0].text)
        texts = {self.client.completions.create(model=MODEL, prompt="a", max_tokens=16).choices[0].text for _ in range(3)}
        self.assertEqual(len(texts), 3)

    def test_a_gap_is_filled_only_by_models_that_can(self):
        self.refused("suffix", self.complete, suffix=" dog")

    # Chat

    def test_a_streamed_conversation_is_the_same_text(self):
        whole = self.chat()
        chunks = list(self.chat(stream=True))
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), whole.choices[0].message.content)
        self.assertEqual([chunk.choices[0].finish_reason for chunk in chunks][:-1], [None] * (len(chunks) - 1))
        self.assertEqual(chunks[-1].choices[0].finish_reason, whole.choices[0].finish_reason)

    def test_logprobs_of_a_conversation_have_the_bytes_of_the_text(self):
        whole = self.chat(logprobs=True, top_logprobs=4)
        content = whole.choices[0].logprobs.content
        text = b"".join(bytes(token.bytes) for token in content).decode(errors="replace")
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual({len(token.top_logprobs) for token in content}, {4})
        streamed = [token for chunk in self.chat(logprobs=True, top_logprobs=4, stream=True) if chunk.choices[0].logprobs
                    for token in chunk.choices[0].logprobs.content]
        self.assertEqual([token.logprob for token in streamed], [token.logprob for token in content])

    def test_turns_go_on_and_reuse_what_was_read(self):
        messages = [{"role": "system", "content": "Be brief."}, *HI]
        first = self.chat(messages, max_tokens=8)
        messages += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And then?"}]
        self.assertGreater(self.chat(messages, max_tokens=8).usage.prompt_tokens_details.cached_tokens, 0)

    def test_lengths_have_two_names(self):
        self.assertEqual(self.chat(max_tokens=4).usage.completion_tokens, 4)
        completion = self.client.chat.completions.create(model=MODEL, messages=HI, max_completion_tokens=4, seed=7)
        self.assertEqual(completion.usage.completion_tokens, 4)
        self.assertEqual(completion.choices[0].finish_reason, "length")

    def test_an_answer_may_have_to_be_json(self):
        for options in ({}, {"extra_body": PLAIN}):
            text = self.chat(response_format={"type": "json_object"}, max_tokens=400, **options).choices[0]
            if text.finish_reason == "stop":
                self.assertIsInstance(json.loads(text.message.content), dict)
        schema = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": WEATHER["function"]["parameters"]}}
        choice = self.chat(response_format=schema, max_tokens=200).choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.check_weather(choice.message.content)
        self.assertEqual(self.chat(response_format=schema, max_tokens=200, extra_body=PLAIN).choices[0].message.content, choice.message.content)

    def check_weather(self, text):
        answer = json.loads(text)
        self.assertEqual(set(answer), {"city", "days"})
        self.assertIsInstance(answer["city"], str)
        self.assertIn(answer["days"], range(1, 10))

    def test_a_grammar_holds(self):
        text = self.chat(extra_body={"grammar": 'root ::= ("yes" | "no") "!"'}).choices[0].message.content
        self.assertIn(text, ("yes!", "no!"))

    # Tools

    def test_a_required_call_is_one_of_a_tool_with_arguments_that_fit(self):
        for options in ({}, {"stream": True}):
            call, reason = self.call_of(tool_choice="required", tools=[WEATHER, TIME], max_tokens=200, **options)
            self.assertEqual(reason, "tool_calls")
            self.assertIn(call["name"], ("weather", "time"))
            named, reason = self.call_of(tool_choice={"type": "function", "function": {"name": "weather"}}, tools=[WEATHER, TIME],
                                         max_tokens=200, **options)
            self.assertEqual(reason, "stop")
            self.assertEqual(named["name"], "weather")
            self.check_weather(named["arguments"])

    def call_of(self, **options):
        answer = self.chat(**options)
        if not options.get("stream"):
            message = answer.choices[0].message
            self.assertIsNone(message.content)
            [call] = message.tool_calls
            self.assertEqual(call.type, "function")
            return {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}, answer.choices[0].finish_reason
        call, reason = {"arguments": ""}, None
        for chunk in answer:
            choice = chunk.choices[0]
            self.assertFalse(choice.delta.content)
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or []:
                self.assertEqual(part.index, 0)
                if part.id:
                    call.update(id=part.id, name=part.function.name)
                call["arguments"] += part.function.arguments or ""
        return call, reason

    def test_an_answer_of_a_tool_goes_back(self):
        call, _ = self.call_of(tool_choice={"type": "function", "function": {"name": "weather"}}, tools=[WEATHER], max_tokens=200)
        messages = [*HI, {"role": "assistant", "content": None, "tool_calls": [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}]},
            {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
        self.assertEqual(self.chat(messages, tools=[WEATHER]).choices[0].message.role, "assistant")

    def test_tools_that_may_not_be_called_are_not(self):
        self.assertIsNone(self.chat(tools=[WEATHER], tool_choice="none").choices[0].message.tool_calls)

    # What is refused

    def test_what_is_not_possible_is_refused_by_name(self):
        self.refused("reasoning_effort", self.chat, reasoning_effort="low")
        self.refused("colour", self.chat, extra_body={"colour": 1})
        self.refused("temperature", self.chat, temperature=-1)
        self.refused("messages[0].content[0]", self.chat, messages=[{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}])
        self.refused("logit_bias", self.complete, logit_bias={"99999999": 1})
        with self.assertRaises(openai.BadRequestError):
            self.complete("a " * 4000)

    # Coppice's own

    def test_speculation_is_told_and_changes_no_text(self):
        told = self.complete(max_tokens=64, extra_body={"speculation": {"nodes": 8, "trace": True}})
        self.assertEqual(told.choices[0].text, self.complete(max_tokens=64, extra_body=PLAIN).choices[0].text)
        stats = told.speculation
        self.assertEqual(stats["tokens"], told.usage.completion_tokens)
        self.assertGreaterEqual(stats["tokens"], stats["passes"])
        self.assertEqual("".join(token["text"] for event in told.coppice for token in event["tokens"]), told.choices[0].text)
        *_, last = self.complete(max_tokens=8, stream=True, extra_body={"speculation": {"stats": True}})
        self.assertEqual(last.speculation["tokens"], 8)

    def test_sixteen_at_once_say_what_each_says_alone(self):
        wanted = [self.complete(f"number {i}", seed=i, temperature=1).choices[0].text for i in range(16)]

        async def ask():
            async with openai.AsyncOpenAI(base_url=self.server.url + "/v1", api_key="none", max_retries=0, timeout=60) as client:
                async def one(i):
                    stream = await client.completions.create(model=MODEL, prompt=f"number {i}", seed=i, temperature=1, max_tokens=16, stream=True)
                    return "".join([chunk.choices[0].text async for chunk in stream])
                return await asyncio.gather(*(one(i) for i in range(16)))

        self.assertEqual(asyncio.run(ask()), wanted)

    # Ollama's routes, as its clients ask them

    def test_ollamas_routes_answer_in_its_shapes(self):
        status, answer = self.server.post("/api/chat", {"model": MODEL, "messages": HI, "stream": False, "options": {"seed": 7, "num_predict": 8}})
        self.assertEqual((status, answer["done"], answer["done_reason"], answer["eval_count"]), (200, True, "length", 8))
        _, _, data = self.server.request("POST", "/api/generate", {"model": MODEL, "prompt": "one", "raw": True,
                                                                  "options": {"seed": 7, "num_predict": 8, "temperature": 0, "repeat_penalty": 1}})
        lines = [json.loads(line) for line in data.splitlines()]
        self.assertEqual("".join(line["response"] for line in lines), self.complete("one", temperature=0, max_tokens=8).choices[0].text)
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertEqual(json.loads(self.server.get("/api/tags")[2])["models"][0]["name"], MODEL)
        status, answer = self.server.post("/api/chat", {"messages": HI, "options": {"mirostat": 2}})
        self.assertEqual(status, 400)
        self.assertIn("options.mirostat", answer["error"])


if __name__ == "__main__":
    server.main()
