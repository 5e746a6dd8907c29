"""Texts to hold tokenizers against each other: generated ones, and documents that lie on any machine with this project."""
import glob
import os
import random
import re
import sys

TABLES = os.path.join(os.path.dirname(__file__), "../../src/text/unicode_tables.cc")
CLASSES = ["other", "upper", "lower", "uncased", "mark", "number", "punctuation", "symbol", "space", "unassigned"]

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
<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_end <repo_name><filename> |im_end|> <|im_start| <tool call><tool cal
HTTPServer camelCaseWord XMLHttpRequest's ǅungla ªº ﬁﬂ ſ'ſ Ǆ'LL ΑΒΓ'd дОМ've a\u0308A\u030a \u1100\u1161\u11a8 각 \u212b \ufb1d \u2126
""".strip().replace("\\n", "\n").replace("\\t", "\t")


def table_classes():
    """The committed class of every code point."""
    with open(TABLES, encoding="utf-8") as file:
        source = file.read()
    index, blocks = ([int(n, 16) for n in re.findall(r"\b0x([0-9a-f]{2})\b", part)]
                     for part in source.split("kUnicodeBlocks"))
    return [blocks[index[c >> 8] * 128 + (c & 255) // 2] >> 4 * (c & 1) & 15 for c in range(0x110000)]


CLASS_OF = table_classes()
UNASSIGNED = CLASSES.index("unassigned")


def known(code):
    return not 0xD800 <= code <= 0xDFFF and CLASS_OF[code] != UNASSIGNED


def make_texts(count, seed):
    random_ = random.Random(seed)
    words = [w for line in SENTENCES.splitlines() for w in line.split(" ")]
    pieces = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'M", "'RE", "'ſ", "'LL", "I", "'", "''", "_", "-", "--", "...", "!",
              " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000", "\x85", "\x00", "\x01", "\x1c", "\x7f",
              "0", "7", "42", "000", "½", "٣", "a", "Z", "é", "e\u0301", "中", "ا", "🙂", "👩‍👩‍👧", "\u0300", "\ufeff", "/", "ǅ",
              "ª", "ʰ", "\u0327", "\u0344", "\u1161", "\u11a8", "\u1100", "각", "²", "£", "。", "'", "’s", "▁", "\u0660"]

    def character():
        while True:
            code = random_.randrange(random_.choice([0x80, 0x100, 0x3000, 0x10000, 0x20000, 0x110000]))
            if known(code):
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
        return "".join(random_.choice("etaoinshrdlu E'AT") for _ in range(random_.randrange(1, 80)))

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


def documents(least):
    """Text of at least so many bytes: this project's own, then Python's library."""
    root = os.path.join(os.path.dirname(__file__), "../..")
    names = sorted(glob.glob(f"{root}/docs/**/*.md", recursive=True)) + sorted(glob.glob(f"{root}/src/*/*.cc"))
    names += sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))
    text, size = [], 0
    for name in names:
        if "_tables" in name:
            continue
        with open(name, encoding="utf-8", errors="replace") as file:
            text.append(file.read())
        size += len(text[-1].encode())
        if size >= least:
            return "\n".join(text)
    sys.exit(f"tokenizer_judge: only {size} bytes of documents on this machine; {least} are needed")
