#!/usr/bin/env python3
"""Writes docs/models.md: every format, architecture, splitting rule and chat template that is read, with the test that holds
it. `--check` writes nothing and says what is wrong instead; ./dev check calls it.

The rows are read out of the sources, so the page cannot list what is not there; and a row without its test, a test without
its row, or a judge that no longer takes every row, is an error. What is in the column of results is what those tests fail
without. Speeds come from bench/kernels.json, which `coppice bench kernels --json` wrote."""

import argparse
import ast
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = "docs/models.md"


class Sources:
    """Files of a tree, and what was found wrong in them."""

    def __init__(self, root):
        self.root, self.problems = pathlib.Path(root), []

    def text(self, path):
        file = self.root / path
        if not file.is_file():
            self.problems.append(f"{path} is not there, and {PAGE} names it as a judge or a table")
            return ""
        return file.read_text()

    def need(self, path, part, why):
        """A test must have these words: what ties it to the table's rows."""
        if part not in self.text(path):
            self.problems.append(f"{path} has no `{part}` any more: {why}")

    def same(self, what, rows, judged):
        for name in sorted(set(rows) - set(judged)):
            self.problems.append(f"{what} {name} has a row and no judge")
        for name in sorted(set(judged) - set(rows)):
            self.problems.append(f"{what} {name} has a judge and no row")


def table(head, rows):
    line = lambda cells: "| " + " | ".join(cells) + " |"
    return "\n".join([line(head), "|" + "---|" * len(head), *(line(row) for row in rows)])


def dict_keys(text, name):
    """Keys of the dict that a Python file assigns to `name`, with the source of each value."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return {key.value: ast.get_source_segment(text, value) for key, value in zip(node.value.keys, node.value.values)}
    return {}


# ---- formats -----------------------------------------------------------------------------------------------------


def format_rows(sources):
    """-> [(number, name, values, bytes, kind)]"""
    found = re.findall(r"^COPPICE_FORMAT\(\s*(\d+),\s*(\w+),\s*\w+,\s*(\d+),\s*(\d+),\s*(\w+),", sources.text("src/quant/format_rows.inc"), re.MULTILINE)
    return [(int(number), name, int(values), int(size), kind) for number, name, values, size, kind in found]


def speeds(sources):
    """-> {kind: {rows: (GB/s, ms)}}, and a line about the machine; nothing where nothing is committed."""
    path = sources.root / "bench/kernels.json"
    if not path.is_file():
        return {}, ""
    report = json.loads(path.read_text())
    kinds = {}
    for timing in report["timings"]:
        if timing["kernel"] == "matmul" and timing["rows"] in (1, 8):
            seconds = timing["seconds"]["median"]
            kinds.setdefault(timing["variant"], {})[timing["rows"]] = (timing["bytes"] / seconds / 1e9, 1e3 * seconds)
    settings = report["settings"]
    shape = f"{settings['layers']} blocks of width {settings['hidden']} and {settings['feed_forward']}"
    return kinds, f"{report['machine']['cpu']}, {report['limits']['threads']} threads, {report['limits']['isa']}; all matrices of {shape}"


def formats_section(sources):
    rows = format_rows(sources)
    sources.need("tests/judge/formats_against_gguf.py", "for each in formats.names():", "it must take every format")
    sources.need("tests/judge/layers_judge.py", "types=of_blocks(256)", "it must take every format")
    sources.need("tests/cli/quantize_test.py", "FORMATS = formats.names()", "it must take every format")
    sources.need("src/quant/formats_test.cc", "for (const Format& format : formats()) names", "it must take every format")
    kinds, machine = speeds(sources)
    speed = lambda kind, count: "{:.1f} GB/s, {:.2f} ms".format(*kinds[kind][count]) if count in kinds.get(kind, {}) else ""
    lines = table(["format", "number", "a block", "bits a weight", "in memory as", "1 row", "8 rows"],
                  [[f"`{name}`", str(number), f"{values} in {size} bytes" if values > 1 else f"{size} bytes", f"{8 * size / values:g}", kind,
                    speed(kind, 1), speed(kind, 8)] for number, name, values, size, kind in rows])
    measured = (f"The last two columns are `coppice bench kernels` ({machine}): bytes of weights a second, and the time of them all.\n\n"
                if machine else "")
    return f"""## Formats

`src/quant/format_rows.inc`; how each is written, [quantizing](quantizing.md). {measured}Of every row, in every test run: what it unpacks to is the `gguf` package's `dequantize` bit
for bit, before and after packing, and so are the bytes it quantises to where the package has a quantiser (`tests/judge/formats_against_gguf.py`); products are the numpy reference's to
1e-4 (`tests/judge/layers_judge.py`); packing loses nothing and a scale that is no number is found (`src/quant/formats_test.cc`); a model quantised to it answers
(`tests/cli/quantize_test.py`).

{lines}

GGUF versions 2 and 3, little endian, whole or split into parts (`src/gguf/file_test.cc`, `src/gguf/split_test.cc`)."""


# ---- architectures -----------------------------------------------------------------------------------------------


def architectures_section(sources):
    names = re.findall(r'^    \{\.name = "([\w.-]+)"', sources.text("src/model/architectures.cc"), re.MULTILINE)
    judged = json.loads(sources.text("tests/architectures.json") or "{}")
    sources.same("architecture", names, judged)
    sources.need("tests/judge/logits_judge.py", "in architectures.models():", "it must take every architecture")
    sources.need("tests/laws/harness.cc", "for (const Architecture& row : architectures())", "the laws must take every architecture")
    others = dict()
    for arch, kind in re.findall(r'^    \("(\w+)", "(\w+)Config"', sources.text("tests/judge/transformers_check.py"), re.MULTILINE):
        others.setdefault(arch, []).append(kind)
    rows = []
    for name in names:
        entry = judged.get(name, {"models": [], "laws": {}})
        if not entry["models"]:
            sources.problems.append(f"tests/architectures.json compares no model of {name}")
        if name not in entry["laws"]:
            sources.problems.append(f"tests/architectures.json has no hash of {name} for the laws")
        classes = [*others.get(name, []), *(kind.removesuffix("Config") for kind, _, _ in entry.get("transformers", []))]
        rows.append([f"`{name}`", entry.get("for", ""), f"{len(entry['models'])} to 1e-4", ", ".join(f"`{h[2:10]}`" for h in entry["laws"].values()),
                     ", ".join(dict.fromkeys(classes))])
    lines = table(["architecture", "models", "logits", "laws", "transformers"], rows)
    return f"""## Architectures

`src/model/architectures.cc`, by `general.architecture`. *logits*: so many random models whose logits are those of the numpy reference to 1e-4, in every test run (`tests/judge/logits_judge.py`).
*laws*: the same text with every kind of drafter, rows that do not know their neighbours, and the committed hash (its beginning) on every instruction set (`tests/laws/architectures_test.cc`).
*transformers*: classes of that package whose random models have the same logits to 1e-4; run by hand (`tests/judge/transformers_check.py`). Any other architecture, any key and any tensor
that nobody reads is refused by name.

{lines}"""


# ---- tokenizers --------------------------------------------------------------------------------------------------


def rule_rows(text):
    """-> [(name, origin, cuts, flags)] of the table of splitting rules."""
    cuts = {name: [cut.split("::")[-1].strip() for cut in body.split(",") if cut.strip()]
            for name, body in re.findall(r"^constexpr Cut (\w+)\[\] = \{([^}]*)\};", text, re.MULTILINE)}
    rows = re.findall(r'^    \{"([^"]+)",\s+"([^"]+)",\s+(\w+)((?:, (?:true|false))*)\},', text, re.MULTILINE)
    flags = lambda said: [said.split(", ")[1:][i] == "true" if i < said.count(",") else False for i in range(3)]
    return [(name, origin, cuts.get(array, []), flags(said)) for name, origin, array, said in rows]


# Rows whose rule no tokenizer.json of their own says, for none was at hand: whose it is instead.
READ_ELSEWHERE = {"smaug-bpe": "Llama 3's, which theirs were made from; their own `tokenizer.json` was not at hand"}


def tokenizers_section(sources):
    rows = rule_rows(sources.text("src/text/split_rules.cc"))
    alias = "the same as "
    own = [row for row in rows if not row[1].startswith(alias)]
    judged = dict_keys(sources.text("tests/judge/tokenizer_rules.py"), "TABLE")
    sources.same("splitting rule", [row[0] for row in own], judged)
    sources.need("tests/judge/tokenizer_judge.py", "for rule in rules.RULES:", "it must take every rule")
    sources.need("tests/judge/tokenizer_judge.py", "for kind in pieces.KINDS:", "it must take every kind of pieces")
    sources.need("src/text/split_rules_test.cc", "for (const SplitRule& rule : split_rules())", "it must take every rule")
    runs = json.loads(sources.text("tests/judge/long_runs.json") or "{}")
    kinds = dict_keys(sources.text("tests/judge/tokenizer_pieces.py"), "KINDS")
    for name in runs:
        if name not in judged and name not in kinds:
            sources.problems.append(f"tests/judge/long_runs.json has a run of {name}, which is no rule")
    for name in READ_ELSEWHERE.keys() - set(judged):
        sources.problems.append(f"scripts/make_models_doc.py says where the rule of {name} was read, which is no rule")
    run = lambda name: f"{runs[name]['lines']:,} on {runs[name]['on']}" if name in runs else ""
    yes = lambda flag: "yes" if flag else ""
    lines = []
    for name, origin, cuts, (nfc, whole, begin) in own:
        also = [other for other, said, _, _ in rows if said == alias + name]
        label = f"`{name}`" + (" (also " + ", ".join(f"`{a}`" for a in also) + ")" if also else "")
        elsewhere = f" ({READ_ELSEWHERE[name]})" if name in READ_ELSEWHERE else ""
        lines.append([label, origin + elsewhere, ", then ".join(cuts), yes(nfc), yes(whole), yes(begin), run(name)])
    rules = table(["`tokenizer.ggml.pre`", "models", "cuts", "form C", "whole words", "begin", "lines, longest run"], lines)
    options = lambda source: dict(re.findall(r'"(\w+)": "?([^",}]+)"?', source))
    pieces = table(["kind", "`tokenizer.ggml.model`", "text is changed by", "lines, longest run"],
                   [[name, "`llama`" if options(source)["model_type"] == "bpe" else "`t5`", options(source)["normalization_rule_name"], run(name)]
                    for name, source in kinds.items()])
    return f"""## Tokenizers

[Tokenizers](tokenizers.md) tells what they do. Of every row, in every test run, over 2,000 generated lines: the ids are those of the `tokenizers` or `sentencepiece` package, and every byte string comes back
(`tests/judge/tokenizer_judge.py`); the last column is the longest run that agreed (`--lines N --record tests/judge/long_runs.json`).

Byte-level BPE (`gpt2`): the rows of `src/text/split_rules.cc`. A cut's regular expression stands above it in `src/text/split_cuts.cc` or beside its row. *form C*: the text is brought into
Unicode's form C first. *whole words*: a word that is spelled like a token is that token. *begin*: a begin-of-text token is added where the file does not say.

{rules}

SentencePiece: vocabularies as these families have them, trained in the test.

{pieces}"""


# ---- chat templates ----------------------------------------------------------------------------------------------


def templates_section(sources):
    sources.need("tests/judge/jinja_judge.py", 'os.path.join(HERE, "templates", "*.jinja")', "it must take every template")
    rows = []
    for path in sorted((sources.root / "tests/judge/templates").glob("*.jinja")):
        said = re.match(r"\{#-? (.+?) -?#\}", path.read_text())
        if not said:
            sources.problems.append(f"tests/judge/templates/{path.name} does not say in its first line whose constructs it has")
            continue
        rows.append([f"`{path.name}`", said.group(1)])
    return f"""## Chat templates

Any template in a file runs ([chat templates](chat-templates.md)); these have the constructs of the families that people use. In every test run each is rendered over 60 generated conversations, byte for
byte what `jinja2` gives with the settings of `transformers`, refused where it raises, and nothing a user said counts as the template's own (`tests/judge/jinja_judge.py`). `--templates FOLDER` does
the same with those of your models.

{table(["template", "constructs"], rows)}"""


# ---- files and texts from elsewhere ------------------------------------------------------------------------------


def opening(text):
    """The first sentence of the comment that a file begins with."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("// "):
            break
        lines.append(line.removeprefix("// "))
    return " ".join(lines).split(". ")[0].rstrip(".") + "."


def fuzz_section(sources):
    names = re.findall(r"^coppice_fuzz\((\w+) DEPS", sources.text("fuzz/CMakeLists.txt"), re.MULTILINE)
    runs = json.loads(sources.text("fuzz/runs.json") or "{}")
    for name in sorted(runs.keys() - set(names)):
        sources.problems.append(f"fuzz/runs.json has a run of {name}, which is no target")
    rows = []
    for name in names:
        sources.text(f"fuzz/{name}_seeds.cc")
        run = runs.get(name)
        rows.append([f"`{name}`", opening(sources.text(f"fuzz/{name}_fuzz.cc")),
                     f"{run['executions']:,} in {run['seconds']} s on {run['on']}" if run else "", f"{run['edges']:,}" if run else ""])
    return f"""## What comes from elsewhere

A file, a template, a schema or a request may say anything. Each parser has a target of libFuzzer with AddressSanitizer and UBSan (`./dev fuzz SECONDS`, or `fuzz/CMakeLists.txt` for one), whose seeds are right
files and ones that lie. The cases after the published faults of other readers of GGUF - counts and offsets that overflow, strings past the end, negative sizes, other types, nesting, names that occur twice, huge
arrays - stand in `src/gguf/bad_files_testing.h`; a test asks for the sentence of each. The last columns are the last run, which found nothing: executions, and edges of the program that they reached.

{table(["target", "what it holds", "executions", "edges"], rows)}"""


# ---- the page ----------------------------------------------------------------------------------------------------

REAL = [
    ("SmolLM2-135M-Instruct", "`llama`, `Q4_1`, `smollm`, ChatML", "divergence from the float reference, every product, 10,000 lines and 300 conversations; every test run",
     ["tests/judge/kl_judge.py", "tests/judge/layers_judge.py", "tests/judge/tokenizer_judge.py"]),
    ("Gemma 3 270M", "`gemma3`, `Q4_K` with `Q6_K`, SentencePiece BPE", "every product, divergence along a text; by hand (`scripts/fetch_gemma.sh`)", ["tests/judge/gemma_check.py"]),
]

STEPS = """## To add one

Each is three files, this page among them: `scripts/make_models_doc.py` writes it, and `./dev check` fails until row, judge and page agree.

**A format** (`TQ2_0` was added so):

1. `src/quant/format_rows.inc`: the row.
2. `src/quant/NAME.cc`: how a block's bits are read (`block_format.h` makes the rest of that), and its quantiser; which bytes mean what stands at the top.
3. This page. Tests and judges take the row by themselves; a format that no packed kind fits needs one more kind in `packed_shape.h`, and then a kernel.

**An architecture** (`gemma` was added so):

1. `src/model/architectures.cc`: the row - what its files call it, flags (`BlockFlags` in `config.h`), tensors that are called otherwise or are not there, the period of its windows -
   and, beside the table, a function for keys that only it states. Every key under its prefix and every tensor must be read, or the file is refused.
2. `tests/architectures.json`: what the published model does that its files do not say, from its definition and not from here (fields: `tests/judge/architectures.py`); random models to compare; the hash
   (`COPPICE_PRINT_HASHES=1`, `laws_tests --gtest_filter=Architectures.EveryInstructionSet*`); a configuration of `transformers` if it has one.
3. This page. A computation that no flag says yet is a flag, its line in `forward.cc` and in `reference.py`, and first its order in [numerics](numerics.md).

**A splitting rule** (`bloom` was added so):

1. `src/text/split_rules.cc`: the row, with the name that files have in `tokenizer.ggml.pre`, and above it its cut if that is new, put together from `cut_parts.h` under the regular expression it stands for. It looks
   at each character a bounded number of times: a million of any character must not be quadratic, which `split_rules_test.cc` tries with every row.
2. `tests/judge/tokenizer_rules.py`: the normalizer, pre-tokenizer and `ignore_merges` of the model's own `tokenizer.json`.
3. This page. What a real `tokenizer.json` says decides, not another runtime.

**A template family** (`plain.jinja` was added so):

1. `tests/judge/templates/NAME.jinja`: its constructs, with words of your own; the first line says whose they are.
2. What `jinja2` does and `src/jinja/` does not, if the judge finds something, with a case in `tests/judge/jinja_expressions.txt`.
3. This page.
"""


def page(sources):
    real = []
    for name, parts, result, judges in REAL:
        for judge in judges:
            sources.text(judge)
        real.append([name, parts, result, ", ".join(f"`{judge}`" for judge in judges)])
    return f"""# Models

<!-- Generated by `scripts/make_models_doc.py`; do not edit. -->

What is read, and who says that it is right. Formats, architectures, tokenizers and templates know nothing of each other, so that any row of one goes with any row of the others; each is
held by the tests named above its table, and `./dev check` fails where a row has none. Files of real models are judged too:

{table(["file", "rows", "result", "judges"], real)}

{formats_section(sources)}

{architectures_section(sources)}

{tokenizers_section(sources)}

{templates_section(sources)}

{fuzz_section(sources)}

{STEPS}"""


def check(root, files=None):
    """What is wrong, line by line; nothing where row, judge and page agree."""
    sources = Sources(root)
    wanted = page(sources)
    yield from sources.problems
    there = pathlib.Path(root) / PAGE
    if not there.is_file() or there.read_text() != wanted:
        yield f"{PAGE} is not what the sources say: run scripts/make_models_doc.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        found = list(check(ROOT))
    else:
        sources = Sources(ROOT)
        (ROOT / PAGE).write_text(page(sources))
        found = sources.problems
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
