#!/usr/bin/env python3
"""The independent judge of the text room: the `tokenizers` package on the model file's own tokens and merges, and
`jinja2` on its own chat template, against Coppice's tokenizer (through the filter tests/judge/tokenize_lines.cc).

    tokenizer_judge.py --tokenize-lines build/dev/tests/tokenize_lines [--lines 24000] [--model FILE]

Ids must be equal on every line, and every byte string must come back. One rule of the judge's own is set aside:
its digit splitter knows Unicode 17, its regular expressions 16; the 13 numbers that came between are left out.
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

import gguf
import jinja2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

NEW_NUMBERS = {*range(0x11DE0, 0x11DEA), *range(0x16FF4, 0x16FF7)}
CONTROL = 3


def fail(message):
    sys.exit(f"tokenizer_judge: {message}")


def splitter(rule):
    split = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if rule == "smollm":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), split])
    return split


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

    def reference(self, with_control):
        result = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(self.tokens)}, merges=self.merges))
        result.pre_tokenizer = splitter(self.rule)
        result.decoder = decoders.ByteLevel()
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


# ---- texts -----------------------------------------------------------------------------------------------------------

SENTENCES = """
The quick brown fox jumps over the lazy dog; they'll say it's done, won't they? I'm, I've, you're, he'd, I'M, WE'LL.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Où est passé l'été ? Ça va, c'était l'œuvre d'Éloïse.
Съешь же ещё этих мягких французских булок, да выпей чаю. Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Příliš žluťoučký kůň.
敏捷的棕色狐狸跳过了懒狗。いろはにほへと ちりぬるを、カタカナ。키스의 고유조건은 입술끼리 만나야 하고.
نص حكيم له سر قاطع وذو شأن عظيم ٠١٢٣٤٥٦٧٨٩ דג סקרן שט בים מאוכזב ऋषियों को सताने वाले दुष्ट १२३ เป็นมนุษย์สุดประเสริฐ ๑๒๓
for (int i = 0; i < 10; ++i) { x[i] += 0x1F & ~mask; } // done\n\tdef f(self, *args, **kwargs):\n        return self._x['key']
SELECT * FROM users WHERE id=42 AND name LIKE '%o''brien%'; <div class="a-b_c">&nbsp;</div> https://example.org/?q=1&r=%20
1234567890 3.14159 1,000,000 ½ ² Ⅷ ① 10^-3 $99.99 50% #1 2024-02-30T25:61:61Z 0b1010 １２３
👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 👍🏽 e\u0301 n\u0303 Z͑ͫ̓ͪ̂ͫ̽͏̴̙ \u200b\u200d\ufeff \u00a0\u2003\u3000 \u2028\u2029 \x85 \x1c\x1d
<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_end <repo_name><filename> |im_end|> <|im_start|
""".strip().replace("\\n", "\n").replace("\\t", "\t").replace("\\u200b", "\u200b")


def make_texts(count, seed):
    random_ = random.Random(seed)
    words = [w for line in SENTENCES.splitlines() for w in line.split(" ")]
    pieces = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'M", "'RE", "I", "'", "''", "_", "-", "--", "...", "!",
              " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "\x85", "\x00", "\x01", "\x1c", "\x7f",
              "0", "7", "42", "000", "½", "٣", "a", "Z", "é", "e\u0301", "中", "ا", "🙂", "👩‍👩‍👧", "\u0300", "\ufeff"]

    def character():
        while True:
            code = random_.randrange(random_.choice([0x80, 0x100, 0x3000, 0x10000, 0x20000, 0x110000]))
            if not 0xD800 <= code <= 0xDFFF and code not in NEW_NUMBERS:
                return chr(code)

    def of_words():
        return "".join(random_.choice(words) + random_.choice([" ", " ", " ", " ", "", "  ", "\n"])
                       for _ in range(random_.randrange(1, 30)))

    def of_pieces():
        return "".join(random_.choice(pieces) * random_.choice([1, 1, 1, 2, 5])
                       for _ in range(random_.randrange(1, 25)))

    def of_characters():
        return "".join(character() for _ in range(random_.randrange(1, 40)))

    def of_runs():
        return "".join(random_.choice([" ", "\n", "a", "ab", "0", "-", "=", "é", "\t", "l ", "\n "]) *
                       random_.randrange(1, 80) for _ in range(random_.randrange(1, 6)))

    def of_letters():
        return "".join(random_.choice("etaoinshrdlu E'") for _ in range(random_.randrange(1, 80)))

    makers = [of_words, of_words, of_pieces, of_characters, of_runs, of_letters]
    return ["", *SENTENCES.splitlines(), SENTENCES] + [random_.choice(makers)() for _ in range(count)]


def make_bytes(count, seed):
    """Mostly not UTF-8."""
    random_ = random.Random(seed)
    texts = []
    for text in make_texts(count, seed):
        data = bytearray(text.encode())
        for _ in range(random_.randrange(1, 6)):
            at = random_.randrange(len(data) + 1)
            data[at : at + random_.randrange(2)] = bytes(random_.randrange(256) for _ in range(random_.randrange(1, 4)))
        texts.append(bytes(data))
    return texts


# ---- comparisons -----------------------------------------------------------------------------------------------------


def check_classes():
    """Every code point, through the regular expressions themselves, against the committed table."""
    path = os.path.join(os.path.dirname(__file__), "../../src/text/unicode_tables.cc")
    with open(path) as file:
        source = file.read()
    index, blocks = ([int(n, 16) for n in re.findall(r"\b0x([0-9a-f]{2})\b", part)]
                     for part in source.split("kUnicodeBlocks"))
    for number, expression in ((1, r"\p{L}"), (2, r"\p{N}"), (3, r"\s")):
        split = pre_tokenizers.Split(Regex(expression), "isolated")
        ours = {c for c in range(0x110000) if (blocks[index[c >> 8] * 64 + (c & 255) // 4] >> 2 * (c & 3)) & 3 == number}
        theirs, codes = set(), [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
        for i in range(0, len(codes), 4096):
            text = "\0".join(map(chr, codes[i : i + 4096]))
            theirs |= {ord(word) for word, _ in split.pre_tokenize_str(text) if len(word) == 1 and word != "\0"}
        if ours != theirs:
            fail(f"{expression}: {len(ours ^ theirs)} code points differ, the first is U+{min(ours ^ theirs):04X}")


def check_ids(tool, file, texts, with_control):
    reference = file.reference(with_control)
    expected = [encoding.ids for encoding in reference.encode_batch(texts, add_special_tokens=False)]
    results = tool.run(file.path, [t.encode() for t in texts], *(["--parse-special"] if with_control else []))
    missing = file.missing_bytes()
    for text, want, (ids, decoded) in zip(texts, expected, results):
        if ids != want:
            fail(f"{file.rule}: {text!r} is {want} for the tokenizers package and {ids} for Coppice")
        if decoded != text.encode().translate(None, missing):
            fail(f"{file.rule}: {text!r} comes back as {decoded!r}")
        if not with_control and any(file.kinds[i] == CONTROL for i in ids):
            fail(f"{file.rule}: {text!r} became a control token")


def check_bytes(tool, file, records):
    missing = file.missing_bytes()
    for record, (_, decoded) in zip(records, tool.run(file.path, records)):
        if decoded != record.translate(None, missing):
            fail(f"{file.rule}: {record!r} comes back as {decoded!r}")


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


def train_small(folder, rule):
    """A small vocabulary, trained here, with all 256 bytes, as a vocabulary-only GGUF file."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter(rule)
    trainer = trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(make_texts(3000, 5), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    path = os.path.join(folder, f"{rule}.gguf")
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(rule)
    writer.add_token_list(tokens)
    writer.add_token_types([CONTROL if t == "<|endoftext|>" else 1 for t in tokens])
    writer.add_token_merges(merges)
    writer.add_eos_token_id(tokens.index("<|endoftext|>"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return File(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenize-lines", required=True)
    parser.add_argument("--model", default=os.environ.get("COPPICE_MODEL"), required="COPPICE_MODEL" not in os.environ)
    parser.add_argument("--lines", type=int, default=24000)
    options = parser.parse_args()
    tool, started = Filter(options.tokenize_lines), time.time()
    check_classes()
    texts, records = make_texts(options.lines, 1), make_bytes(options.lines // 4, 2)
    with tempfile.TemporaryDirectory() as folder:
        for file in (File(options.model), train_small(folder, "gpt-2"), train_small(folder, "smollm")):
            check_ids(tool, file, texts, with_control=False)
            check_ids(tool, file, texts, with_control=True)
            check_bytes(tool, file, records)
            chats = check_chat(tool, file, 3) if file.template else 0
            print(f"{os.path.basename(file.path)} ({file.rule}): {len(texts)} lines, twice, equal ids; "
                  f"{len(records)} byte strings come back; {chats} conversations equal")
    print(f"tokenizer judge: agreed in {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
