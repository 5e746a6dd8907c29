"""What the records of `coppice bench adaptive` say: one method's answer to one prompt, all rounds of it, beside plain decoding's."""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import page  # noqa: E402

PLAIN = "plain"
SECONDS = ("decode", "draft", "verify", "sample", "policy", "prefill", "latency", "first")
CHAT = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
TASKS = ("GSM8K, 5-shot", "HumanEval, 0-shot", "summaries", "conversations")
LONG = 128  # tokens of the answers whose latency the paper gives


def load(path):
    return page.load(path, "adaptive")


def task_of(record):
    """One of TASKS, or None: Spec-Bench alone."""
    if record["set"] == "gsm8k":
        return TASKS[0]
    if record["set"] == "humaneval":
        return TASKS[1]
    return TASKS[2] if record["category"] == "summarization" else TASKS[3] if record["category"] in CHAT else None


class Answer:
    """All rounds of a method's answer to a prompt. Seconds are medians over the rounds, ratios are made within a round."""

    def __init__(self, record, method):
        self.record, self.method, self.rounds, self.plain = record, method, [], []
        self.prompt, self.category, self.tokens = record["prompt"], record["category"] or record["set"], record["tokens"]

    def add(self, record):
        self.rounds.append(record["modes"][self.method])
        self.plain.append(record["modes"][PLAIN])

    def total(self, name):
        return sum(r[name] for r in self.rounds)

    def mean(self, name):
        return self.total(name) / len(self.rounds)

    def times(self, name, of=None):
        """In each round. The latency of a later round has the first one's prompt in it: by then the target finds it read."""
        of = self.rounds if of is None else of
        at = SECONDS.index(name)
        values = [r["seconds"][0][at] for r in of]
        if name in ("latency", "first"):
            read = SECONDS.index("prefill")
            first = of[0]["seconds"][0][read]
            values = [value - r["seconds"][0][read] + first for value, r in zip(values, of)]
        return values

    def seconds(self, name):
        return statistics.median(self.times(name))

    def ratio(self, name):
        """How many times faster than plain decoding."""
        return statistics.median(p / max(own, 1e-9) for p, own in zip(self.times(name, self.plain), self.times(name)))

    @property
    def speedup(self):
        return self.ratio("decode")

    @property
    def same(self):
        return all(r["same"] for r in self.rounds)

    def decided(self, rule):
        return sum(r.get("rules", {}).get(rule, 0) for r in self.rounds)

    @property
    def analyser(self):
        """{"confidence", "tau", "led"}: what the analyser saw in the prompt and chose; None where there was none."""
        return next((r["analyser"] for r in self.rounds if r.get("analyser")), None)

    def seconds_to(self, tokens):
        """Since the prompt was read, to so many tokens; None where the answer is shorter."""
        marks = dict(map(tuple, self.rounds[0]["marks"]))
        read = self.rounds[0]["seconds"][0][SECONDS.index("prefill")]
        return marks[tokens] - read if tokens in marks else None


def collect(results, group, place):
    """-> {(place(record), sampling): {method: [Answer of each prompt]}}, in the order of the records; answers that are too short to measure,
    and those without a place, left out."""
    tables, known = {}, {}
    for record in results["records"]:
        where = place(record) if record["group"] == group and record.get("modes") else None
        if where is None:
            continue
        table = tables.setdefault((where, record["sampling"]), {})
        for method in record["modes"]:
            key = (where, record["sampling"], record["set"], record["prompt"], method)
            if key not in known:
                known[key] = Answer(record, method)
                table.setdefault(method, []).append(known[key])
            known[key].add(record)
    return tables


# Of a list of answers.

def speedup(answers):
    return statistics.median(a.speedup for a in answers)


def latency(answers):
    return statistics.median(a.seconds("latency") for a in answers)


def tokens_per_second(answers):
    return sum(a.tokens for a in answers) / max(sum(a.seconds("decode") for a in answers), 1e-9)


def acceptance(answers):
    """Of the guesses that were submitted, those taken."""
    return sum(a.total("accepted") for a in answers) / max(sum(a.total("guesses") for a in answers), 1)


def accepted_length(answers):
    """Tokens a pass of the target: those taken, and the one it drew."""
    return sum(a.total("tokens") for a in answers) / max(sum(a.total("cycles") for a in answers), 1)


def draft_bytes(answers):
    """That drafts read, a token."""
    return sum(a.total("draft_bytes") for a in answers) / max(sum(a.total("tokens") for a in answers), 1)


def verify_to_draft(answers):
    """Seconds of the target's passes over those of drafting; None where nothing was drafted."""
    drafting = sum(a.seconds("draft") for a in answers)
    return sum(a.seconds("verify") for a in answers) / drafting if any(a.total("guesses") for a in answers) and drafting > 0 else None


def paired(answers, others, value):
    """-> [(value of one, of the other)] on the prompts that both answered."""
    by_prompt = {(a.record["set"], a.prompt): a for a in others}
    pairs = ((a, by_prompt.get((a.record["set"], a.prompt))) for a in answers)
    return [(value(a), value(b)) for a, b in pairs if b is not None]


def whole(answers):
    """Those of LONG tokens."""
    return [a for a in answers if a.tokens >= LONG]
