#!/usr/bin/env python3
"""The independent judge of the text room: the `tokenizers` package, with the normalizer and pre-tokenizer of each family's
tokenizer.json, the `sentencepiece` package, and `jinja2` on the model's own chat template, against Coppice's tokenizer
(through the filter tests/judge/tokenize_lines.cc).

    tokenizer_judge.py --tokenize-lines build/dev/tests/tokenize_lines [--lines 2000] [--only RULE,...] [--model FILE]
                       [--sentencepiece-model FILE] [--record FILE]

For every rule and kind of pieces a vocabulary of 2,000 is trained here. Ids must be equal on every line, and every byte
string must come back (in Unicode's form C where the rule has that). Only code points that Unicode 15 has are compared; the
package's splitter of punctuation and its form C know older ones, so what differs there is left out for the rules that have them.
"""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import unicodedata

import gguf
import jinja2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import tokenizer_pieces as pieces
import tokenizer_rules as rules
from tokenizer_texts import CLASSES, CLASS_OF, documents, known, make_bytes, make_texts

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4


def fail(message):
    sys.exit(f"tokenizer_judge: {message}")


class File:
    def __init__(self, path):
        fields = gguf.GGUFReader(path).fields

        def key(name, otherwise=None):
            return fields[name].contents() if name in fields else otherwise

        self.path = path
        self.tokens = key("tokenizer.ggml.tokens")
        self.kinds = key("tokenizer.ggml.token_type")
        self.merges = [tuple(merge.split(" ")) for merge in key("tokenizer.ggml.merges")]
        self.rule = key("tokenizer.ggml.pre")
        self.template = key("tokenizer.chat_template")
        self.controls = [t for t, kind in zip(self.tokens, self.kinds) if kind == CONTROL]
        self.user_defined = [t for t, kind in zip(self.tokens, self.kinds) if kind == USER_DEFINED]

    def reference(self, with_control):
        result = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(self.tokens)}, merges=self.merges,
                                      ignore_merges=rules.whole_words_first(self.rule)))
        if rules.normalizer(self.rule):
            result.normalizer = rules.normalizer(self.rule)
        result.pre_tokenizer = rules.splitter(self.rule)
        result.decoder = decoders.ByteLevel()
        result.add_tokens([AddedToken(t, special=False, normalized=False) for t in self.user_defined])
        if with_control:
            result.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in self.controls])
        return result

    def missing_bytes(self):
        """Bytes without a token: the reference drops them, and so do we."""
        have = set(self.tokens)
        letters = {b: pre_tokenizers.ByteLevel(use_regex=False, add_prefix_space=False).pre_tokenize_str(chr(b))[0][0]
                   for b in range(128)}
        printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
        others = [b for b in range(256) if b not in printable]
        spelling = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
        assert all(spelling[b] == letter for b, letter in letters.items())
        return bytes(b for b in range(256) if spelling[b] not in have)


class Filter:
    def __init__(self, program):
        self.program = program

    def run(self, path, records, *options):
        payload = b"".join(struct.pack("<I", len(r)) + r for r in records)
        done = subprocess.run([self.program, path, *options], input=payload, capture_output=True)
        if done.returncode:
            fail(f"{self.program} {path}: {done.stderr.decode()}")
        out, at, results = memoryview(done.stdout), 0, []
        while at < len(out):
            (count,) = struct.unpack_from("<I", out, at)
            ids = list(struct.unpack_from(f"<{count}i", out, at + 4))
            at += 4 + 4 * count
            (length,) = struct.unpack_from("<I", out, at)
            results.append((ids, bytes(out[at + 4 : at + 4 + length])))
            at += 4 + length
        if len(results) != len(records):
            fail(f"{len(records)} records in, {len(results)} out")
        return results


# ---- comparisons -----------------------------------------------------------------------------------------------------


def check_classes():
    """Every code point we know, through the regular expressions themselves, against the committed table."""
    expressions = {"upper": r"[\p{Lu}\p{Lt}]", "lower": r"\p{Ll}", "uncased": r"[\p{Lm}\p{Lo}]", "mark": r"\p{M}",
                   "number": r"\p{N}", "punctuation": r"\p{P}", "symbol": r"\p{S}", "space": r"\s"}
    codes = [c for c in range(1, 0x110000) if known(c)]
    for name, expression in expressions.items():
        split = pre_tokenizers.Split(Regex(expression), "isolated")
        ours, theirs = {c for c in codes if CLASSES[CLASS_OF[c]] == name}, set()
        for i in range(0, len(codes), 4096):
            text = "\0".join(map(chr, codes[i : i + 4096]))
            theirs |= {ord(word) for word, _ in split.pre_tokenize_str(text) if len(word) == 1 and word != "\0"}
        if ours != theirs:
            fail(f"{expression}: {len(ours ^ theirs)} code points differ, the first is U+{min(ours ^ theirs):04X}")


def check_rules():
    """Every rule there is has a judge, or is another name of one that has."""
    with open(os.path.join(os.path.dirname(__file__), "../../src/text/split_rules.cc"), encoding="utf-8") as file:
        rows = re.findall(r'^    \{"([^"]+)",\s+"([^"]+)",', file.read(), re.MULTILINE)
    names = {name for name, origin in rows if not origin.startswith("the same as ")}
    if names != set(rules.RULES):
        fail(f"rules without a judge, or judges without a rule: {sorted(names ^ set(rules.RULES))}")


def other_punctuation():
    """What the package's splitter of punctuation says of a character, where its regular expressions disagree."""
    ascii_symbols = set("$+<=>^`|~")
    split = pre_tokenizers.Punctuation("isolated")
    codes = [c for c in range(1, 0x110000) if known(c) and CLASSES[CLASS_OF[c]] != "space"]
    ours = {c for c in codes if CLASSES[CLASS_OF[c]] == "punctuation" or chr(c) in ascii_symbols}
    theirs = set()
    for i in range(0, len(codes), 4096):
        text = "a" + "a".join(map(chr, codes[i : i + 4096])) + "a"
        theirs |= {ord(word) for word, _ in split.pre_tokenize_str(text) if len(word) == 1}
    return (ours ^ theirs) - {ord("a")}


def other_marks():
    """Marks that the package's form C, of an older Unicode, does not sort or compose."""
    normalizer = rules.normalizer("qwen2")
    marks = [chr(c) for c in range(0x300, 0x110000) if known(c) and CLASSES[CLASS_OF[c]] == "mark"]
    probes = lambda c: ("a" + c + "\u0334", "a\u0345" + c, unicodedata.normalize("NFD", c))
    return {ord(c) for c in marks if unicodedata.category(c) == "Cn" or
            any(normalizer.normalize_str(t) != unicodedata.normalize("NFC", t) for t in probes(c))}


def form(rule, text):
    return unicodedata.normalize("NFC", text) if rules.normalizer(rule) else text


def form_of_bytes(rule, data):
    return form(rule, data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def check_ids(tool, file, texts, with_control):
    reference = file.reference(with_control)
    expected = [encoding.ids for encoding in reference.encode_batch(texts, add_special_tokens=False)]
    results = tool.run(file.path, [t.encode() for t in texts], *(["--parse-special"] if with_control else []))
    missing = file.missing_bytes()
    for text, want, (ids, decoded) in zip(texts, expected, results):
        if ids != want:
            fail(f"{file.rule}: {text!r} is {want} for the tokenizers package and {ids} for Coppice")
        if decoded != form(file.rule, text).encode().translate(None, missing):
            fail(f"{file.rule}: {text!r} comes back as {decoded!r}")
        if not with_control and any(file.kinds[i] == CONTROL for i in ids):
            fail(f"{file.rule}: {text!r} became a control token")


def check_bytes(tool, file, records):
    missing = file.missing_bytes()
    for record, (_, decoded) in zip(records, tool.run(file.path, records)):
        if decoded != form_of_bytes(file.rule, record).translate(None, missing):
            fail(f"{file.rule}: {record!r} comes back as {decoded!r}")


def speed(tool, file, text):
    """How fast a text is encoded, and the longest run that people paste."""
    (_, figure), (_, spaces) = tool.run(file.path, [text.encode(), b" " * 1_000_000], "--time")
    return f"{float(figure) / 1e6:.0f} MB/s, a million spaces in {1e9 / float(spaces):.0f} ms"


def check_chat(tool, file, seed):
    """The model's own template, run by jinja2, with and without a system message; ids through the reference."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    template, reference = environment.from_string(file.template), file.reference(with_control=True)
    random_ = random.Random(seed)
    texts = [t for t in make_texts(400, seed) if not any(c in t for c in file.controls)]
    conversations = []
    for _ in range(300):
        roles = random_.choice([["user"], ["system", "user"], ["user", "assistant", "user"], ["assistant"],
                                ["system", "user", "assistant", "user"], ["user", "system"]])
        conversations.append([{"role": role, "content": random_.choice(texts)} for role in roles])
    results = tool.run(file.path, [json.dumps(c).encode() for c in conversations], "--chat")
    for conversation, (ids, text) in zip(conversations, results):
        want = template.render(messages=conversation, add_generation_prompt=True)
        if text.decode() != want:
            fail(f"chat template: jinja2 gives {want!r}, Coppice {text.decode()!r}")
        if ids != reference.encode(want, add_special_tokens=False).ids:
            fail(f"chat template: other ids for {want!r}")
    attack = [{"role": "user", "content": "".join(file.controls)}]
    ((ids, _),) = tool.run(file.path, [json.dumps(attack).encode()], "--chat")
    controls = sum(file.kinds[i] == CONTROL for i in ids)
    if controls != 5:  # the system turn's two, the user turn's two, the open answer's one
        fail(f"control tokens typed by a user became control tokens: {controls} of them instead of 5")
    return len(conversations)


def write_vocabulary(path, rule, tokens, kinds, merges):
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(rule)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index("<|endoftext|>"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def train_small(folder, rule, texts):
    """A vocabulary of 2,000, trained here, with all 256 bytes, as a vocabulary-only GGUF file."""
    tokenizer = Tokenizer(models.BPE())
    if rules.normalizer(rule):
        tokenizer.normalizer = rules.normalizer(rule)
    tokenizer.pre_tokenizer = rules.splitter(rule)
    extra = {"<|endoftext|>": CONTROL, "<tool": USER_DEFINED, "<tool call>": USER_DEFINED}
    trainer = trainers.BpeTrainer(vocab_size=2000 - len(extra), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    tokens += [t for t in extra if t not in model["vocab"]]
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    if rules.whole_words_first(rule):  # some tokens that only whole words become
        needed = {part for merge in merges for part in merge}
        merges = [m for i, m in enumerate(merges) if i % 9 or "".join(m) in needed]
    path = os.path.join(folder, f"{rule}.gguf")
    write_vocabulary(path, rule, tokens, [extra.get(t, NORMAL) for t in tokens], [" ".join(m) for m in merges])
    return File(path)


def judge(tool, file, lines, speed_text):
    texts, records = make_texts(lines, 1), make_bytes(lines // 4, 2)
    left_out = other_punctuation() if file.rule == "falcon" else other_marks() if rules.normalizer(file.rule) else set()
    texts = [t for t in texts if left_out.isdisjoint(map(ord, t))]
    check_ids(tool, file, texts, with_control=False)
    check_ids(tool, file, texts, with_control=True)
    check_bytes(tool, file, records)
    chats = f"; {check_chat(tool, file, 3)} conversations equal" if file.template else ""
    print(f"{os.path.basename(file.path)} ({file.rule}): {len(texts)} lines, twice, equal ids; {len(records)} byte strings "
          f"come back; {speed(tool, file, speed_text)}{chats}", flush=True)


def pieces_of(file, text, with_control):
    """The package's ids; it knows no control tokens in a text, so that a text is cut at them here."""
    ids, at = [], 0
    for match in re.finditer("|".join(map(re.escape, sorted(file.controls, key=len, reverse=True))), text) if with_control else ():
        ids += file.reference.encode(text[at : match.start()]) + [file.tokens.index(match.group())]
        at = match.end()
    return ids + file.reference.encode(text[at:])


def judge_pieces(tool, file, lines, speed_text):
    texts, records = make_texts(lines, 1), make_bytes(lines // 4, 2)
    texts += [f"<s>{a}</s>{b}" for a, b in zip(texts[:200], texts[200:400])]
    for with_control in (False, True):
        results = tool.run(file.path, [t.encode() for t in texts], *(["--parse-special"] if with_control else []))
        for text, (ids, decoded) in zip(texts, results):
            want = pieces_of(file, text, with_control)
            if ids != want:
                fail(f"{file.path}: {text!r} is {want} for the sentencepiece package and {ids} for Coppice")
            if file.gives_back() and decoded != text.replace(pieces.SPACE, " ").encode():
                fail(f"{file.path}: {text!r} comes back as {decoded!r}")
    for record, (_, decoded) in zip(records, tool.run(file.path, records)):
        if file.gives_back() and decoded != record.replace(pieces.SPACE.encode(), b" "):
            fail(f"{file.path}: {record!r} comes back as {decoded!r}")
    back = f"{len(records)} byte strings come back; " if file.gives_back() else ""
    print(f"{os.path.basename(file.path)} ({file.rule}): {len(texts)} lines, twice, equal ids; {back}"
          f"{speed(tool, file, speed_text)}", flush=True)


def record(options, name):
    """Notes down that `name` agreed, if no longer run is noted."""
    if not options.record:
        return
    with open(options.record, encoding="utf-8") as file:
        runs = json.load(file)
    if runs.get(name, {"lines": 0})["lines"] <= options.lines:
        runs[name] = {"lines": options.lines, "on": time.strftime("%Y-%m-%d", time.gmtime())}
    rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(runs.items()))
    with open(options.record, "w", encoding="utf-8") as file:
        file.write("{\n" + rows + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenize-lines", required=True)
    parser.add_argument("--model", default=os.environ.get("COPPICE_MODEL"), required="COPPICE_MODEL" not in os.environ)
    parser.add_argument("--lines", type=int, default=2000, help="for each rule; five times as many for the model")
    parser.add_argument("--sentencepiece-model", help="a real model with a vocabulary of SentencePiece's, besides")
    parser.add_argument("--only", help="these rules and kinds of pieces, with commas, and no model")
    parser.add_argument("--record", help="a JSON file to note down in how many lines of each rule agreed (docs/models.md)")
    options = parser.parse_args()
    tool, started = Filter(options.tokenize_lines), time.time()
    chosen = options.only.split(",") if options.only else [*rules.RULES, *pieces.KINDS]
    unknown = set(chosen) - {*rules.RULES, *pieces.KINDS}
    if unknown:
        fail(f"--only {sorted(unknown)}: there is {', '.join([*rules.RULES, *pieces.KINDS])}")
    check_rules()
    check_classes()
    text = documents(1_000_000)
    training = [text[:400_000], *make_texts(1500, 5)]
    with tempfile.TemporaryDirectory() as folder:
        if not options.only:
            judge(tool, File(options.model), 5 * options.lines, text)
        for rule in rules.RULES:
            if rule in chosen:
                judge(tool, train_small(folder, rule, training), options.lines, text)
                record(options, rule)
        for kind in pieces.KINDS:
            if kind in chosen:
                judge_pieces(tool, pieces.train(folder, kind, "\n".join(training).splitlines()), options.lines, text)
                record(options, kind)
    if options.sentencepiece_model:
        judge_pieces(tool, pieces.Pieces(options.sentencepiece_model), 5 * options.lines, text)
    print(f"tokenizer judge: agreed in {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
