"""In a terminal, as a person has it: coppice chat (and with its input piped in), and progress."""

import json
import time

import pexpect

import program

PROMPT = "\r\n> "
SUMMARY = r"\[(\d+) tokens, [^\]]*\]\r\n"


class Chat(program.Case):
    def talk(self, *arguments, env=None):
        arguments = ["chat", "-m", str(self.model), "-t", "1", "--ignore-eos", *map(str, arguments)]
        child = pexpect.spawn(program.coppice, arguments, cwd=str(self.work), env=env or self.environment(),
                              timeout=program.TIMEOUT, encoding="utf-8", codec_errors="replace", echo=False, dimensions=(50, 200))
        self.addCleanup(child.close, force=True)
        child.expect_exact(PROMPT)
        return child

    def ask(self, child, line):
        """-> all that was shown until the next prompt"""
        child.sendline(line)
        child.expect_exact(PROMPT)
        return child.before

    def leave(self, child):
        child.sendline("/quit")
        child.expect(pexpect.EOF)
        child.close()
        self.assertEqual((child.exitstatus, child.signalstatus), (0, None))

    def messages(self, child, name="seen.json"):
        self.assertIn("[saved ", self.ask(child, f"/save {name}"))
        return json.loads((self.work / name).read_text())["messages"]

    def test_a_conversation_has_a_history(self):
        child = self.talk("-n", 8, "--system", "Be brief")
        self.assertRegex(self.ask(child, "Hello"), SUMMARY)
        self.assertRegex(self.ask(child, "And now?"), SUMMARY)
        messages = self.messages(child)
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual([m["content"] for m in messages if m["role"] != "assistant"], ["Be brief", "Hello", "And now?"])
        self.assertRegex(self.ask(child, "/stats"), r"16 tokens, ")
        self.leave(child)

    def test_the_answer_is_the_one_that_generate_gives(self):
        child = self.talk("-n", 8)
        self.ask(child, "Hello")
        expected = self.generate("--chat", "--ignore-eos", prompt="Hello", tokens=8)["text"]
        self.assertEqual(self.messages(child)[1]["content"], expected)
        self.leave(child)

    def test_commands(self):
        child = self.talk("-n", 4)
        self.assertIn("/undo", self.ask(child, "/help"))
        self.assertIn("there is no command /what", self.ask(child, "/what"))
        self.assertIn("nothing to take back", self.ask(child, "/undo"))
        self.assertIn("no question", self.ask(child, "/again"))
        self.ask(child, "One")
        self.ask(child, "Two")
        self.ask(child, "/undo")
        self.assertEqual([m["content"] for m in self.messages(child) if m["role"] == "user"], ["One"])
        self.ask(child, "/new")
        self.assertEqual(self.messages(child), [])
        self.ask(child, "/system Rhyme")
        self.assertEqual(self.messages(child), [{"role": "system", "content": "Rhyme"}])
        self.leave(child)

    def test_again_answers_the_last_question_with_another_seed(self):
        child = self.talk("-n", 8, "--temp", 1)
        self.ask(child, "One")
        first = self.messages(child)
        self.ask(child, "/again")
        second = self.messages(child)
        self.assertEqual((len(second), second[0]), (2, first[0]))
        self.assertNotEqual(second[1], first[1])
        self.assertEqual(second[1]["content"], self.generate("--chat", "--ignore-eos", "--temp", 1, "--seed", 1, prompt="One", tokens=8)["text"])
        self.leave(child)

    def test_set_changes_what_may_be_changed_and_names_what_is_wrong(self):
        child = self.talk("-n", 8)
        self.ask(child, "/set max-tokens 3")
        self.assertRegex(self.ask(child, "One"), r"\[3 tokens, ")
        self.ask(child, "/set seed 18446744073709551615")
        self.assertIn("temperature = -1", self.ask(child, "/set temperature -1"))
        for wrong in ("/set", "/set temperature", "/set temperature hot", "/set colour 3", "/set top-k 1e30", "/set top-k nan",
                      "/set top-k 2.5", "/set seed -1", "/set max-tokens 99999999999"):
            self.assertIn("coppice: /set", self.ask(child, wrong))
        self.leave(child)

    def test_a_saved_session_goes_on_where_it_was(self):
        child = self.talk("-n", 8)
        self.ask(child, "Hello")
        saved = self.messages(child, "session.json")
        self.ask(child, "More")
        whole = self.messages(child)
        self.leave(child)
        child = self.talk("-n", 8, "--load", "session.json")
        self.assertEqual(self.messages(child), saved)
        self.ask(child, "More")
        self.assertEqual(self.messages(child), whole)
        self.ask(child, "/load session.json")
        self.assertEqual(self.messages(child), saved)
        self.leave(child)

    def test_a_session_that_cannot_be_loaded_leaves_the_conversation_as_it_was(self):
        child = self.talk("-n", 4)
        self.ask(child, "Hello")
        (self.work / "bad.json").write_text('{"coppice_chat": 1, "messages": [{"role": "user", "content": "x"}, {"role": "cat"}]}')
        self.assertRegex(self.ask(child, "/load bad.json"), r"coppice: bad\.json: message 2 has no \"role\"")
        self.assertIn("nofile.json", self.ask(child, "/load nofile.json"))
        self.assertIn("cannot write", self.ask(child, "/save nofolder/session.json"))
        self.assertEqual(len(self.messages(child)), 2)
        self.leave(child)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        child = self.talk("-c", 100000, "-n", 100000)
        child.sendline("Hello")
        time.sleep(0.5)
        child.sendintr()
        child.expect_exact("[stopped]")
        child.expect_exact(PROMPT)
        messages = self.messages(child)
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"])
        self.assertGreater(len(messages[1]["content"]), 0)  # what had come stays
        self.ask(child, "/set max-tokens 4")
        self.assertRegex(self.ask(child, "/again"), SUMMARY)
        self.leave(child)

    def test_ctrl_c_at_the_prompt_says_how_to_leave(self):
        child = self.talk("-n", 4)
        for _ in range(3):
            child.sendintr()
            child.expect_exact("Ctrl-D leaves")
            child.expect_exact(PROMPT)
        self.assertRegex(self.ask(child, "Hello"), SUMMARY)
        self.leave(child)

    def test_ctrl_d_leaves(self):
        child = self.talk()
        child.sendeof()
        child.expect(pexpect.EOF)
        child.close()
        self.assertEqual(child.exitstatus, 0)

    def test_a_conversation_that_outgrows_the_context_says_how_to_go_on(self):
        child = self.talk("-c", 64, "-n", 100)
        self.assertIn("[stopped: the context of 64 tokens is full; /new starts anew, -c makes it larger]", self.ask(child, "Hello"))
        said = self.ask(child, "And now?")
        self.assertRegex(said, r"the conversation has \d+ tokens and the context holds 64, so this was not asked: /new starts anew")
        self.assertEqual(len(self.messages(child)), 2)
        self.ask(child, "/new")
        self.assertRegex(self.ask(child, "Hi"), SUMMARY)
        self.leave(child)

    def test_progress_and_colours_are_for_the_terminal(self):
        child = self.talk("-n", 40, "--colour-by-source")
        self.assertIn("\x1b[32m", self.ask(child, "it was the best it was the it was the"))
        self.leave(child)
        child = self.talk("-n", 40, "--colour-by-source", env=self.environment(NO_COLOR="1"))
        self.assertNotRegex(self.ask(child, "it was the best it was the it was the"), r"\x1b\[\d+m")
        self.leave(child)


class Piped(program.Case):
    def test_stdout_has_the_answers_alone(self):
        out, said = self.run_well("chat", "-m", self.model, "-t", 1, "-n", 6, "--ignore-eos", input=b"Hello\n\n/stats\n/what\n")
        self.assertEqual(out, self.generate("--chat", "--ignore-eos", prompt="Hello", tokens=6)["text"] + "\n")
        self.assertRegex(said, r"\A\[stopped after 6 tokens; .*\]\n\[6 tokens, .*\]\n6 tokens, .*\ncoppice: there is no command /what.*\n\Z")

    def test_a_conversation_beyond_the_trained_context_is_said_to_be(self):
        _, said = self.run_well("chat", "-m", self.model, "-t", 1, "-c", 700, "-n", 6, "--ignore-eos",
                                input=b"Hello\n/set max-tokens 500\nHello\n")
        self.assertRegex(said, r"\A\[stopped after 6 tokens; .*\]\n\[6 tokens, .*\]\n\[stopped after 500 tokens; .*\]\n"
                               r"\[longer than the 512 tokens the model was trained on: it may be nonsense\]\n\[500 tokens, .*\]\n\Z")

    def test_no_input_is_no_conversation(self):
        chat = self.start("chat", "-m", self.model, "-t", 1)
        self.assertEqual((*chat.communicate(timeout=program.TIMEOUT), chat.returncode), (b"", b"", 0))


class Progress(program.Case):
    def watch(self, *arguments):
        """-> all that a terminal saw"""
        child = pexpect.spawn(program.coppice, list(map(str, arguments)), cwd=str(self.work), env=self.environment(),
                              timeout=program.TIMEOUT, encoding="utf-8", codec_errors="replace", dimensions=(50, 200))
        self.addCleanup(child.close, force=True)
        child.expect(pexpect.EOF)
        child.close()
        self.assertEqual(child.exitstatus, 0, child.before)
        return child.before

    def test_a_bar_shows_loading_and_is_taken_away(self):
        seen = self.watch("generate", "-m", self.model, "-p", "it was", "-n", 2, "-q")
        self.assertRegex(seen, r"loading \[=* *\] +\d+% ")
        self.assertRegex(seen, r"\r\x1b\[K[^%]*\Z")

    def test_counting_shows_a_count_and_no_share_of_a_whole_that_nobody_knows(self):
        (self.work / "text.jsonl").write_text('{"ids": [5, 6, 7]}\n')
        seen = self.watch("ngram", "build", "-m", self.model, "text.jsonl", "-o", "n.ngram")
        self.assertRegex(seen, r"counting . 3 tokens\x1b\[K\r\x1b\[Kn\.ngram: 3 tokens of 1 texts")
        self.assertNotIn("%", seen)


if __name__ == "__main__":
    program.main()
