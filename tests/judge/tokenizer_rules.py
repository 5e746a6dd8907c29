"""What each splitting rule is for the `tokenizers` package: the normalizer, pre-tokenizer and ignore_merges of the
tokenizer.json of the models that a file names by it. Aliases ("the same as ..." in src/text/split_rules.cc) are left out:
src/text/split_rules_test.cc says that they are the same rows."""
from tokenizers import Regex, normalizers, pre_tokenizers

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = CL100K.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")
# With escapes, because an editor that normalizes text would reverse three of the ranges.
CASED = (r"\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"
         r"\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f"
         r"\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
         r"\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d"
         r"\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
         r"\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
         r"\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d"
         r"\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a"
         r"\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
         r"\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+").encode("ascii").replace(b"\\s", b"\\\\s")
CASED = CASED.decode("unicode_escape")
WIDE = "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"
EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"


def split(expression):
    return pre_tokenizers.Split(Regex(expression), "isolated")


def byte_level(with_words):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=with_words)


def digits(alone=True):
    return pre_tokenizers.Digits(individual_digits=alone)


def rule(*steps, nfc=False, whole_words_first=False):
    """`steps`: the pre-tokenizer; `nfc`: the normalizer is form C; `whole_words_first`: ignore_merges."""
    return {"steps": list(steps), "nfc": nfc, "whole_words_first": whole_words_first}


WORDS, BYTES = byte_level(True), byte_level(False)
TABLE = {
    "gpt-2": rule(WORDS),
    "gpt-neox": rule(WORDS, nfc=True),
    "mpt": rule(WORDS, nfc=True),
    "olmo": rule(WORDS, nfc=True),
    "smollm": rule(digits(), WORDS),
    "starcoder": rule(digits(), WORDS),
    "refact": rule(digits(), WORDS),
    "command-r": rule(digits(), WORDS, nfc=True),
    "llama-bpe": rule(split(CL100K), BYTES, whole_words_first=True),
    "dbrx": rule(split(CL100K), BYTES, whole_words_first=True),
    "smaug-bpe": rule(split(CL100K), BYTES, whole_words_first=True),
    "qwen2": rule(split(QWEN2), BYTES, nfc=True),
    "stablelm2": rule(split(QWEN2), BYTES, nfc=True),
    "qwen35": rule(split(QWEN35), BYTES, nfc=True),
    "gpt-4o": rule(split(O200K), BYTES, whole_words_first=True),
    "tekken": rule(split(TEKKEN), BYTES, whole_words_first=True),
    "deepseek-llm": rule(split("[\r\n]"), split(CASED), split(WIDE), split(r"\s+$"), split(EAST_ASIAN), digits(), BYTES),
    "deepseek-coder": rule(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(EAST_ASIAN), digits(), BYTES),
    "falcon": rule(pre_tokenizers.Punctuation("contiguous"), WORDS, digits(alone=False), split("[0-9][0-9][0-9]")),
    "bloom": rule(split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), BYTES),
}
RULES = list(TABLE)


def normalizer(name):
    return normalizers.NFC() if TABLE[name]["nfc"] else None


def splitter(name):
    return pre_tokenizers.Sequence(TABLE[name]["steps"])


def whole_words_first(name):
    return TABLE[name]["whole_words_first"]
