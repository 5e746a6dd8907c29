"""What a person can get wrong: one sentence on stderr that says what, where and what would be right, nothing on stdout,
exit code 2, and no file that is half written."""

import json
import os
import resource
import struct
import unittest

import program
import random_model


class Case(program.Case):
    def check(self, *arguments, says, **options):
        before = sorted(self.work.rglob("*"))
        said = self.refused(*arguments, **options)
        self.assertRegex(said, says)
        self.assertEqual(sorted(self.work.rglob("*")), before)  # nothing was left behind


class Files(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        whole = cls.model.read_bytes()
        (cls.work / "empty.gguf").write_bytes(b"")
        (cls.work / "header.gguf").write_bytes(whole[:20])
        (cls.work / "keys.gguf").write_bytes(whole[:5000])
        (cls.work / "data.gguf").write_bytes(whole[:-4])
        (cls.work / "text.gguf").write_text("This is no model.\n" * 100)
        (cls.work / "version.gguf").write_bytes(whole[:4] + struct.pack("<I", 99) + whole[8:])
        (cls.work / "counts.gguf").write_bytes(whole[:8] + struct.pack("<QQ", 1 << 60, 1 << 60) + whole[24:])
        (cls.work / "folder").mkdir()
        random_model.write(cls.work / "mute.gguf")
        random_model.write(cls.work / "learned.gguf", arch="gpt2", context=32)
        # The same length, so that every offset stays right.
        key = b"llama.block_count" + struct.pack("<I", 4)  # u32
        many = whole.replace(key + struct.pack("<I", 3), key + struct.pack("<I", 0xfffffff0))
        name = struct.pack("<Q", 12) + b"general.name" + struct.pack("<IQ", 8, 14) + b"random llama 1"
        nameless = whole.replace(name, name[:20] + struct.pack("<IIQ", 9, 0, 10) + bytes(10))  # ten u8
        assert len(whole) == len(many) == len(nameless) and whole not in (many, nameless)
        (cls.work / "layers.gguf").write_bytes(many)
        (cls.work / "nameless.gguf").write_bytes(nameless)
        (cls.work / "text.txt").write_text(random_model.TEXT)

    def test_model_files(self):
        for name, says in (("empty.gguf", "the file ends inside the header"), ("header.gguf", "truncated"), ("keys.gguf", "4\\d\\d\\d"),
                           ("data.gguf", "truncated: its tensors end at byte .* 4 bytes are missing"), ("text.gguf", "GGUF"),
                           ("version.gguf", "version 99"), ("counts.gguf", "1152921504606846976"), ("folder", "is a directory"),
                           ("./nofile.gguf", "no such file")):
            with self.subTest(name):
                for command in (["generate", "-p", "it", "-m", name], ["tokenize", "it", "-m", name], ["inspect", name],
                                ["slice", name, "-o", "cut.gguf", "--layers", 1], ["eval", "ppl", "-f", "text.txt", "-m", name]):
                    self.check(*command, says=f"{name}: .*{says}")

    def test_a_name_that_no_model_has(self):
        self.check("generate", "-m", "nothing", "-p", "it", says="there is no file nothing, and none of the .* models on this machine has nothing in its name .coppice models")

    def test_no_model_at_all(self):
        run = program.subprocess.run([program.coppice, "generate", "-p", "it"], cwd=self.work / "folder", capture_output=True, text=True,
                                     env=self.environment())
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertRegex(run.stderr, r"\Acoppice: no model given: name a GGUF file with -m .*\n\Z")

    def test_a_model_that_cannot_chat(self):
        self.check("generate", "-m", "mute.gguf", "--chat", "-p", "it", says="no chat template .* use generate instead.*--chat-template-file")
        self.check("chat", "-m", "mute.gguf", says="no chat template")

    def test_texts(self):
        for path, says in (("nofile.txt", "cannot read nofile.txt: No such file"), ("folder", "cannot read folder: Is a directory")):
            self.check("generate", "-m", self.model, "-f", path, says=says)
            self.check("tokenize", "-m", self.model, "-f", path, says=says)
            self.check("eval", "ppl", "-m", self.model, "-f", path, says=says)
            self.check("bench", "decode", "-m", self.model, "--prompts", path, says=says)
        self.check("eval", "ppl", "-m", self.model, "-p", "it was", says="the text has \\d+ tokens; one chunk needs 512")
        self.check("eval", "ppl", "-m", self.model, says="say one of -f FILE, -p TEXT and --ids")
        self.check("eval", "logits", "-m", self.model, "-o", "l.npy", "-p", "", says="empty; at least one token")

    def test_texts_longer_than_the_positions_a_model_learned(self):
        says = "learned.gguf: .*learned positions up to 32; .* is too long for it"
        self.check("eval", "ppl", "-m", "learned.gguf", "-f", "text.txt", "-c", 33, says=says)
        self.check("eval", "logits", "-m", "learned.gguf", "--ids", ",".join(["5"] * 33), "-o", "l.npy", says=says)
        self.check("eval", "layers", "-m", "learned.gguf", "--ids", ",".join(["5"] * 33), "-o", "layers", says=says)
        self.check("generate", "-m", "learned.gguf", "-p", "it", "-c", 33, says="learned positions up to 32")

    def test_models_whose_header_lies_cannot_be_sliced(self):
        self.check("slice", "layers.gguf", "--layers", 1, "-o", "cut.gguf", says="layers.gguf: llama.block_count is 4294967280")
        self.check("slice", "nameless.gguf", "--layers", 1, "-o", "cut.gguf", says="nameless.gguf: key 'general.name' is of type array")

    def test_prompts_name_the_bad_line(self):
        for line in ('{"prompt": 3}', "no json", '{"promt": "x"}', '["prompt"]', '{"prompt": ""}'):
            (self.work / "prompts.jsonl").write_text('{"prompt": "it"}\n\n' + line + "\n")
            self.check("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", says="prompts.jsonl line 3: .* is wanted")
        (self.work / "prompts.jsonl").write_text("\n")
        self.check("bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", says="prompts.jsonl has no prompts")

    def test_texts_to_count_name_the_bad_line(self):
        (self.work / "bad.jsonl").write_text('{"text": "it"}\n{"ids": [1, 379]}\n')
        self.check("ngram", "build", "-m", self.model, "bad.jsonl", "-o", "n.ngram", says="bad.jsonl, line 2: .*379.* 0 to 378")
        (self.work / "bad.bin").write_bytes(b"12345")
        self.check("ngram", "build", "-m", self.model, "bad.bin", "-o", "n.ngram", says="bad.bin: 5 bytes")

    def test_sessions(self):
        for text, says in (("no json", "is no saved conversation"), ("[]", "is no saved conversation"), ("{}", "is no saved conversation"),
                           ('{"coppice_chat": 2, "messages": []}', '"coppice_chat": 1'),
                           ('{"coppice_chat": 1, "messages": [{"role": "user"}]}', 'message 1 has no "content"'),
                           ('{"coppice_chat": 1, "messages": [{"role": "user", "content": "x"}, 5]}', 'message 2 has no "role"')):
            (self.work / "session.json").write_text(text)
            self.check("chat", "-m", self.model, "--load", "session.json", says="session.json.*" + says)
        self.check("chat", "-m", self.model, "--load", "nofile.json", says="cannot read nofile.json: No such file")

    def test_outputs_that_cannot_be_written(self):
        (self.work / "prompts.jsonl").write_text('{"prompt": "it"}\n')
        for path, says in (("nofolder/out", "nofolder/out: .*"), ("folder", "folder: .*(folder|directory)")):
            for command in (["ngram", "build", "-m", self.model, "text.txt", "-o", path], ["slice", "target.gguf", "--layers", 1, "-o", path],
                            ["eval", "logits", "-m", self.model, "-p", "it", "-o", path],
                            ["bench", "decode", "-m", self.model, "--prompts", "prompts.jsonl", "--json", path]):
                self.check(*command, says=says)

    def test_outputs_that_would_replace_an_input(self):
        (self.work / "prompts.jsonl").write_text('{"prompt": "it"}\n')
        os.link(self.model, self.work / "link.gguf")
        files = [self.model, self.work / "text.txt", self.work / "prompts.jsonl"]
        before = [file.read_bytes() for file in files]
        for command in (["slice", "target.gguf", "--layers", 1, "-o", "target.gguf"], ["slice", "target.gguf", "--layers", 1, "-o", "link.gguf"],
                        ["slice", "target.gguf", "--drop", 1, "--text", "text.txt", "-o", "text.txt"],
                        ["ngram", "build", "-m", "target.gguf", "text.txt", "-o", "text.txt"],
                        ["ngram", "build", "-m", "target.gguf", "text.txt", "-o", "./target.gguf"],
                        ["eval", "logits", "-m", "target.gguf", "-p", "it", "-o", "target.gguf"],
                        ["eval", "logits", "-m", "target.gguf", "-f", "text.txt", "-o", "text.txt"],
                        ["bench", "decode", "-m", "target.gguf", "--prompts", "prompts.jsonl", "--json", "prompts.jsonl"],
                        ["bench", "decode", "-m", "target.gguf", "--prompts", "prompts.jsonl", "--json", "target.gguf"]):
            with self.subTest(command):
                self.check(*command, says="the output would replace .*, which is read; name another output")
        self.assertEqual([file.read_bytes() for file in files], before)

    def test_files_that_have_no_end(self):
        os.mkfifo(self.work / "pipe.gguf")
        for command in (["generate", "-p", "it", "-m", "pipe.gguf"], ["inspect", "pipe.gguf"],
                        ["generate", "-p", "it", "-m", self.model, "-d", "ngram(pipe.gguf)"]):
            self.check(*command, says="pipe.gguf: is not a regular file")
        self.check("generate", "-m", self.model, "-f", "/dev/zero", says="/dev/zero: it is longer than 256 MB")
        self.check("generate", "-m", self.model, "-p", "it", "--prior", "/dev/zero", says="/dev/zero: is longer than 256 MB")

    def test_a_file_that_may_not_grow(self):
        for command in (["ngram", "build", "-m", self.model, "text.txt", "-o", "big"], ["slice", "target.gguf", "--layers", 1, "-o", "big"],
                        ["eval", "logits", "-m", self.model, "-p", "it was the best of times", "-o", "big"]):
            self.check(*command, says="big: .*File too large", limits=[(resource.RLIMIT_FSIZE, 512)])

    def test_a_vocabulary_that_makes_no_tokenizer_names_the_file(self):
        whole = self.model.read_bytes()
        for name, change, says in (("rule.gguf", (b"smollm", b"smillm"), '"smillm"'), ("kind.gguf", (struct.pack("<Q", 4) + b"gpt2", struct.pack("<Q", 4) + b"gptX"), '"gptX"')):
            self.assertIn(change[0], whole)
            (self.work / name).write_bytes(whole.replace(*change))
            self.check("tokenize", "-m", name, "it", says=f"{name}: tokenizer.ggml.* {says}")
        random_model.write(self.work / "talk.gguf", chat_template="a\n{{ messages")
        self.check("chat", "-m", "talk.gguf", says="talk.gguf: tokenizer.chat_template, line 2, column 1: this {{ has no }}")

    def test_chat_templates(self):
        chat = ["generate", "-m", self.model, "-p", "Hi", "--chat"]
        for name, text, says in (("open.jinja", "{% for m in messages %}", "open.jinja, line 1, column 24: this for block has no endfor"),
                                 ("refuses.jinja", "{{ raise_exception('not today') }}", "refuses.jinja, line 1, column 4: .*not today"),
                                 ("endless.jinja", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "endless.jinja, line 1, column .*limit"),
                                 ("empty.jinja", "", "empty.jinja is empty; a chat template was wanted")):
            (self.work / name).write_text(text)
            self.check(*chat, "--chat-template-file", name, says=says)
        self.check(*chat, "--chat-template-file", "nowhere.jinja", says="nowhere.jinja: ")
        self.check(*chat, "--chat-template-kwargs", "[1]", says="--chat-template-kwargs: a JSON object is wanted")
        (self.work / "tools.json").write_text("{}")
        self.check(*chat, "--tools", "tools.json", says="--tools tools.json: a JSON array of tools is wanted")
        self.check(*chat[:-1], "--chat-template-kwargs", "{}", says="--chat is missing")

    @unittest.skipUnless(os.path.exists("/dev/full"), "there is no /dev/full")
    def test_a_full_disk(self):
        for command in (["ngram", "build", "-m", self.model, "text.txt", "-o", "/dev/full"],
                        ["slice", "target.gguf", "--layers", 1, "-o", "/dev/full"],
                        ["eval", "logits", "-m", self.model, "-p", "it", "-o", "/dev/full"]):
            self.check(*command, says="/dev/full: .*No space left")
        with open("/dev/full", "wb") as full:
            for command in (["generate", "-m", self.model, "-p", "it", "-q"], ["generate", "-m", self.model, "-p", "it", "--json"],
                            ["tokenize", "-m", self.model, "it"], ["inspect", "target.gguf", "--json"], ["info"], ["models"]):
                self.check(*command, stdout=full, says="cannot write the output: No space left")


class Options(Case):
    def generate_says(self, says, *options):
        with self.subTest(options):
            self.check("generate", "-m", self.model, "-p", "it was the best of times", *options, says=says)

    def test_values_out_of_range_name_the_option(self):
        for option, value in (("--temperature", -1), ("--temperature", "nan"), ("--temperature", 101), ("--top-k", -1), ("--top-p", 0),
                              ("--top-p", 1.5), ("--min-p", 2), ("--typical-p", 0), ("--repetition-penalty", 0), ("--presence-penalty", "inf"),
                              ("--frequency-penalty", "nan"), ("--penalty-window", -2), ("--logit-bias", "5"), ("--logit-bias", "x=1"),
                              ("--logit-bias", "5=x"), ("--logit-bias", "379=1"), ("--logit-bias", "5=inf"), ("--logit-bias", "99999999999=1"),
                              ("--ban", 379), ("--ban", -1), ("--seed", -1), ("--stream", 1 << 24), ("--max-tokens", 0), ("--max-tokens", -5),
                              ("--max-tokens", 10**12), ("--max-tokens", "many"), ("--logprobs", -2), ("--logprobs", 1001),
                              ("--acceptance", "both"), ("--nodes", -1), ("--nodes", 256), ("--depth", 0), ("--depth", 65), ("--price", 1.5), ("--pass-price", -1),
                              ("--policy", "wild"), ("--context", -1), ("--context", 1 << 40), ("--cache", "f8"), ("--chunk", 0),
                              ("--threads", -1), ("--threads", 5000)):
            self.generate_says(f"\\Acoppice: {option}\\b", option, value)
        self.generate_says("0 to 378", "--ban", 379)
        self.generate_says("token 379 .* 0 to 378", "--ban", "5,379")
        for option in ("--temperature", "--top-k", "--seed", "--ban", "--max-tokens", "--nodes", "--price"):
            self.generate_says(f"\\Acoppice: {option}: the value is empty; a number is wanted", option, "")
        for beyond in (1 << 64, 10**30):
            self.generate_says(f"\\Acoppice: --seed: {beyond} is beyond what 64 bits hold", "--seed", beyond)
        self.generate_says('instruction set "mmx" .* scalar', "--isa", "mmx")
        self.generate_says("context of 1 tokens is too small; at least 2", "-c", 1)

    def test_unknown_things_say_what_there_is(self):
        self.generate_says('"--tempature" is unknown here \\(coppice generate --help', "--tempature", 1)
        self.check("genrate", says='there is no command "genrate"; there is generate, chat, ')
        self.check(says="say a command: generate, chat, ")
        self.check("bench", says="say a command: decode")
        self.check("eval", "perplexity", says='there is no command "perplexity"; there is ppl, logits, head, layers, blocks')
        self.check("slice", "target.gguf", says="--output is required")

    def test_prompts(self):
        self.check("generate", "-m", self.model, "-p", "", says="the prompt is empty")
        self.check("generate", "-m", self.model, says="the prompt from stdin is empty")
        self.check("generate", "-m", self.model, "-p", "a", "-f", "b", says="-p or -f, not both")
        self.generate_says("the prompt has \\d+ tokens and the context holds 4; shorten it, or -c", "-c", 4)

    def test_drafter_expressions_show_the_column(self):
        for expression, says in (("guess", "no drafter `guess` \\(column 1\\); it can be lookup, ngram, model, stage, self or head"),
                                 ("lookup | guess", "column 10"), ("lookup |", "column 9"), ("", "column 1"), ("lookup lookup", "column 8"),
                                 ("ngram(", "column 7"), ("lookup(max=0)", "column 1\\): max=0 should be a whole number"), ("lookup(min=3)", "knows max"),
                                 ("model()", "column 1.* takes 1 file"), ("stage(target.gguf)", "needs a mix"), ("ngram(nofile.ngram)", "nofile.ngram: "),
                                 ("ngram(target.gguf)", "target.gguf: not an n-gram file"), ("model(nofile.gguf)", "nofile.gguf: "),
                                 ("none | lookup", "column ")):
            self.generate_says(says, "-d", expression)
        self.generate_says("nofile.prior", "--prior", "nofile.prior")

    def test_token_ids_out_of_range(self):
        self.check("tokenize", "-m", self.model, "--detokenise", "5,379", says="--detokenise: token id 379 .* 0 to 378")
        self.check("tokenize", "-m", self.model, "--detokenise=-1", says="token id -1")
        self.check("eval", "logits", "-m", self.model, "--ids", "5,379", "-o", "l.npy", says="token id 379")
        self.check("eval", "ppl", "-m", self.model, "--ids", "five", says="--ids")

    def test_slices_that_make_no_sense(self):
        for options, says in ((["--layers", 4], "has 3 layers"), (["--layers", 0], "--layers"), (["--keep", "0,3"], "0 to 2"), (["--keep", "1,1"], "twice"),
                              (["--drop", 1], "need a text"), (["--layers", 1, "--keep", 1], "say one of"), (["--vocabulary", 10], "need a text"),
                              (["--vocabulary", -1], "--vocabulary: -1 is too few; at least 1 is wanted"), (["--keep", ""], "--keep: the value is empty")):
            with self.subTest(options):
                self.check("slice", "target.gguf", "-o", "cut.gguf", *options, says=says)


if __name__ == "__main__":
    program.main()
