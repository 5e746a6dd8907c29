"""coppice generate: what comes out, and that nothing but the answer is on stdout."""

import json
import math
import os
import pathlib
import re
import resource
import signal
import time

import program


class Prompts(program.Case):
    def test_prompt_file_and_stdin_are_the_same_prompt(self):
        (self.work / "prompt.txt").write_text("the age of wisdom")
        option = self.generate(prompt="the age of wisdom")
        self.assertEqual(len(option["ids"]), 24)
        for other in (self.generate("-f", "prompt.txt", prompt=None),
                      self.generate("-f", "-", prompt=None, input=b"the age of wisdom"),
                      self.generate(prompt=None, input=b"the age of wisdom")):
            self.assertEqual((other["prompt_ids"], other["ids"]), (option["prompt_ids"], option["ids"]))

    def test_stdout_is_the_answer_and_the_summary_is_on_stderr(self):
        out, said = self.run_well("generate", "-m", self.model, "-p", "it was", "-n", 8)
        self.assertEqual(out, self.generate(prompt="it was", tokens=8)["text"] + "\n")
        self.assertRegex(said, r"\A\[8 tokens, [0-9.]+ tok/s, \d+ passes, [0-9.]+ tokens a pass, .*\]\n\Z")

    def test_quiet_says_nothing_beside_the_answer(self):
        self.assertEqual(self.run_well("generate", "-m", self.model, "-p", "it was", "-n", 4, "-q")[1], "")

    def test_chat_wraps_the_prompt_in_the_template_and_system_implies_it(self):
        def ids(text):
            return [int(i) for i in self.run_well("tokenize", "-m", self.model, "--ids", "--parse-special", text)[0].split()]
        self.assertEqual(self.generate("--chat", prompt="Hi", tokens=1)["prompt_ids"],
                         ids("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"))
        self.assertEqual(self.generate("--system", "Be brief", prompt="Hi", tokens=1)["prompt_ids"],
                         ids("<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"))

    def test_another_template_sees_tools_and_variables(self):
        (self.work / "mine.jinja").write_text("{{ tools[0].name ~ thinking }}<|im_start|>{{ messages[0].content }}{{ '!' if add_generation_prompt }}")
        (self.work / "tools.json").write_text('[{"name": "f"}]')
        ids = [int(i) for i in self.run_well("tokenize", "-m", self.model, "--ids", "--parse-special", "fFalse<|im_start|>Hi!")[0].split()]
        self.assertEqual(self.generate("--chat", "--chat-template-file", "mine.jinja", "--tools", "tools.json", "--chat-template-kwargs",
                                       '{"thinking": false}', prompt="Hi", tokens=1)["prompt_ids"], ids)

    def test_control_tokens_that_a_prompt_spells_stay_text_unless_asked(self):
        self.assertNotIn(1, self.generate(prompt="<|im_start|>", tokens=1)["prompt_ids"])
        chat = self.generate("--chat", prompt="<|im_start|>", tokens=1)["prompt_ids"]
        self.assertEqual(chat.count(1), 2)  # the user's turn and the assistant's: the template's own
        self.assertEqual(self.generate("--parse-special", prompt="<|im_start|>", tokens=1)["prompt_ids"], [1])

    def test_a_name_or_a_part_of_it_finds_the_model_and_says_which(self):
        _, said = self.run_well("generate", "-m", "targ", "-p", "it", "-n", 1)
        self.assertTrue(said.startswith("using target.gguf\n"), said)
        _, said = self.run_well("generate", "-m", "Random LLAMA 1", "-p", "it", "-n", 1)
        self.assertTrue(said.startswith("using target.gguf\n"), said)
        _, said = self.run_well("generate", "-p", "it", "-n", 1)
        self.assertTrue(said.startswith("using target.gguf\n"), said)

    def test_the_environment_names_the_model(self):
        env = self.environment(COPPICE_MODEL=str(self.model))
        self.assertNotIn("using", self.run_well("generate", "-p", "it", "-n", 1, env=env)[1])


class PackedCache(program.Case):
    def test_the_text_is_the_same_out_of_the_cache_and_a_damaged_file_is_said(self):
        plain = self.generate()["ids"]
        self.assertEqual(list((self.folder / "cache").iterdir()), [])
        for _ in range(2):
            self.assertEqual(self.generate("--packed-cache")["ids"], plain)
        packed, = (self.folder / "cache" / "packed").iterdir()
        first = packed.stat().st_mtime_ns
        with packed.open("r+b") as file:
            file.seek(5000)
            file.write(b"damage")
        out, said = self.run_well("generate", "-m", self.model, "-p", "it", "-n", 1, "-q", "--packed-cache")
        self.assertRegex(said, r"\Apacked cache: [^\n]+ is damaged: [^\n]+; packed anew\n\Z")
        self.assertNotEqual(packed.stat().st_mtime_ns, first)
        self.assertEqual(self.run_well("generate", "-m", self.model, "-p", "it", "-n", 1, "-q", "--packed-cache"), (out, ""))


class Json(program.Case):
    def test_fields(self):
        answer = self.generate("--logprobs", 3, tokens=6)
        self.assertEqual([token["id"] for token in answer["tokens"]], answer["ids"])
        self.assertEqual((answer["stop"], answer["seed"], answer["drafters"]), ("max_tokens", 0, "lookup"))
        for token in answer["tokens"]:
            self.assertIn(token["source"], ("target", "lookup"))
            self.assertEqual(len(token["top"]), 3)
            self.assertEqual(token["top"][0]["id"], token["id"])  # greedy
            self.assertEqual(token["top"][0]["logprob"], token["logprob"])
            self.assertLessEqual(token["logprob"], 0)
        stats = answer["stats"]
        self.assertEqual((stats["tokens"], stats["prompt_tokens"]), (6, len(answer["prompt_ids"])))
        self.assertEqual(stats["cycles"] + stats["accepted"], 6)
        self.assertEqual(sum(stats["accepted_at_depth"]), stats["accepted"])

    def test_log_probabilities_are_off_unless_asked(self):
        self.assertNotIn("logprob", self.generate(tokens=2)["tokens"][0])
        self.assertTrue(math.isfinite(self.generate("--logprobs", 0, tokens=2)["tokens"][0]["logprob"]))

    def test_json_is_all_there_is_on_stdout(self):
        out, said = self.run_well("generate", "-m", self.model, "-p", "it", "-n", 4, "--json", "--show-tree", "-q")
        self.assertEqual(len(json.loads(out)["ids"]), 4)
        self.assertIn("=>", said)


class Policies(program.Case):
    def test_a_policy_is_named_with_its_options_and_what_is_wrong_is_said(self):
        plain = self.generate("--plain")["ids"]
        for policy in ("auto", "fixed", "adaptive-paper", "adaptive-fitted(batch=8, reject=off)"):
            self.assertEqual(self.generate("--policy", policy)["ids"], plain)
        said = self.refused("generate", "-m", self.model, "-p", "it", "--policy", "adaptive-paper(batch=7.5)")
        self.assertIn("batch=7.5 should be a whole number from 1 to 255, or off", said)
        said = self.refused("generate", "-m", self.model, "-p", "it", "--policy", "slow")
        self.assertIn('there is no policy "slow"; there is "auto", "fixed", "adaptive"', said)
        said = self.refused("generate", "-m", self.model, "-p", "it", "--policy", "adaptive(gate=none.gate)")
        self.assertIn("none.gate", said)

    def test_the_trace_has_every_decision_that_the_statistics_count(self):
        answer = self.generate("--policy", "adaptive(reject=off, stop=0.5, monitor=4, rest=3, probe=2)", "--policy-trace",
                               "trace.jsonl", tokens=80)
        counts = {}
        for line in (self.work / "trace.jsonl").read_text().splitlines():
            decision = json.loads(line)
            self.assertEqual(list(decision), ["request", "cycle", "rule", "number", "threshold", "decided", "times"])
            counts[decision["rule"]] = counts.get(decision["rule"], 0) + decision["times"]
        self.assertEqual(counts, answer["stats"]["decisions"])
        self.assertIn("batch", counts)
        self.assertEqual(counts["analyser_silent"], 1)


class Sampling(program.Case):
    def test_a_seed_is_a_text_and_another_seed_is_another(self):
        texts = [self.generate("--temp", 1, "--seed", seed)["ids"] for seed in (7, 7, 8)]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_a_banned_token_never_comes_and_a_biased_one_always(self):
        free = self.generate()["ids"]
        self.assertNotIn(free[0], self.generate("--ban", free[0])["ids"])
        self.assertEqual(self.generate("--logit-bias", "77=100", tokens=5)["ids"], [77] * 5)
        self.assertNotEqual(self.generate("--logit-bias", f"{free[0]}=-100", tokens=1)["ids"], free[:1])

    def test_the_answer_ends_before_a_stop_string_wherever_token_borders_are(self):
        biased = ["--logit-bias", "77=100", "-d", "none"]
        text = self.generate(*biased, tokens=6)["text"]
        stopped = self.generate(*biased, "--stop", text[1] + text[2:4], tokens=6)
        self.assertEqual((stopped["text"], stopped["stop"]), (text[:text.index(text[1:4])], "stop_string"))

    def test_ignore_eos_goes_on(self):
        ended = self.generate("--logit-bias", "2=100", tokens=5)
        self.assertEqual((ended["ids"], ended["stop"], ended["text"]), ([2], "end_of_text", ""))
        self.assertEqual(len(self.generate("--logit-bias", "2=100", "--ignore-eos", tokens=5)["ids"]), 5)

    def test_n_bounds_the_answer_and_a_huge_one_is_bounded_by_the_context(self):
        self.assertEqual(len(self.generate(tokens=3)["ids"]), 3)
        full = self.generate("-c", 32, "--ignore-eos", tokens=2000000000)
        self.assertEqual(full["stop"], "context_full")
        self.assertEqual(len(full["prompt_ids"]) + len(full["ids"]), 32)

    def test_a_full_context_says_so_and_what_helps(self):
        run = self.run_bytes("generate", "-m", self.model, "-p", "it was", "-c", 16, "--ignore-eos")
        self.assertEqual(run.returncode, 0)
        self.assertIn("[stopped: the context of 16 tokens is full; -c makes it larger]", run.stderr.decode())

    def test_a_text_longer_than_the_model_was_trained_on_is_given_with_a_warning(self):
        arguments = ("generate", "-m", self.model, "-p", "it was", "-c", 600, "--ignore-eos", "-q", "-n")
        prompt = len(self.generate(prompt="it was", tokens=1)["prompt_ids"])
        for tokens, warned in ((512 - prompt, ""), (513 - prompt, "[longer than the 512 tokens the model was trained on: it may be nonsense]\n")):
            self.assertEqual(self.run_well(*arguments, tokens)[1], warned)

    def test_threads_that_the_system_does_not_give_change_nothing(self):
        if any(name in pathlib.Path(program.coppice).read_bytes() for name in (b"__asan_init", b"__tsan_init")):
            self.skipTest("sanitizers reserve more address space than the limit")
        # Address space for some of 900 stacks of 8 MB; RLIMIT_NPROC does not bind root.
        alone = self.generate(threads=1)
        few = self.generate(threads=900, limits=[(resource.RLIMIT_AS, 1 << 30), (resource.RLIMIT_STACK, 8 << 20)])
        self.assertEqual(few["ids"], alone["ids"])

    def test_more_threads_than_cores_change_nothing(self):
        many = self.generate(threads=2 * (os.cpu_count() or 1) + 1, tokens=4)
        self.assertEqual(many["ids"], self.generate(tokens=4)["ids"])


class Showing(program.Case):
    def test_the_tree_of_each_pass_is_shown_with_what_was_taken(self):
        out, said = self.run_well("generate", "-m", self.model, "-p", "it was the best it was the", "-n", 16, "--ignore-eos", "--show-tree",
                                  "--policy", "fixed")
        self.assertNotIn("=>", out)
        self.assertRegex(said, r"(?m)^  +[*-] .+  [01]\.\d\d lookup$")
        passes = int(re.search(r"(\d+) passes", said).group(1))
        self.assertEqual(len(re.findall(r"(?m)^=> ", said)), passes)
        self.assertNotIn("\x1b", said)  # stderr is no terminal

    def test_colours_show_who_guessed_and_change_no_text(self):
        arguments = ("generate", "-m", self.model, "-p", "it was the best it was the", "-n", 40, "--ignore-eos", "--policy", "fixed")
        plain, _ = self.run_well(*arguments)
        painted, said = self.run_well(*arguments, "--colour-by-source")
        self.assertIn("\x1b[32m", painted)
        self.assertEqual(re.sub(r"\x1b\[\d+m", "", painted), plain)
        self.assertIn("guessed by:", said)

    def test_no_color_paints_nothing(self):
        arguments = ("generate", "-m", self.model, "-p", "it was the best it was the", "-n", 40, "--ignore-eos", "--color-by-source")
        out, said = self.run_well(*arguments, env=self.environment(NO_COLOR="1"))
        self.assertNotIn("\x1b", out + said)


class Ending(program.Case):
    def test_an_answer_whose_time_is_up_ends_where_it_is(self):
        out, said = self.run_well("generate", "-m", self.model, "-t", 1, "-p", "it", "-c", 100000, "-n", 100000, "--ignore-eos",
                                  "--timeout", 0.2, "--json")
        answer = json.loads(out)
        self.assertEqual(answer["stop"], "timed_out")
        self.assertLess(len(answer["ids"]), 100000)
        self.assertIn("[stopped: 0.2 seconds are over]", said)
        self.assertIn("--timeout", self.refused("generate", "-m", self.model, "-p", "it", "--timeout", -1))

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        run = self.start("generate", "-m", self.model, "-t", 1, "-p", "it", "-c", 100000, "-n", 100000, "--ignore-eos")
        run.stdout.read(1)
        run.stdout.close()
        with run.stderr:
            self.assertEqual(run.stderr.read(), b"")
        self.assertEqual(run.wait(program.TIMEOUT), -signal.SIGPIPE)

    def test_ctrl_c_ends_it_with_130_and_the_summary(self):
        for shape in ([], ["--json"]):
            run = self.start("generate", "-m", self.model, "-t", 1, "-p", "it", "-c", 100000, "-n", 100000, "--ignore-eos",
                             "--show-tree", *shape)
            run.stderr.read(1)  # it is decoding
            time.sleep(0.1)
            run.send_signal(signal.SIGINT)
            out, said = run.communicate(timeout=program.TIMEOUT)
            self.assertEqual(run.returncode, 130)
            self.assertRegex(said.decode(), r"\[stopped\]\n\[\d+ tokens, .*\]\n\Z")
            if shape:
                self.assertEqual(json.loads(out)["stop"], "cancelled")


if __name__ == "__main__":
    program.main()
