"""What the records of `coppice bench staged` say: sums and medians over prompts, each with a bootstrap interval."""

import collections
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "pages"))

import page  # noqa: E402


def load(path):
    return page.load(path, "staged")


class Row:
    """One mode's answer to one prompt, beside plain decoding in the same rounds."""

    def __init__(self, record, mode):
        counts, plain = record["modes"][mode], record["modes"]["plain"]
        self.record, self.counts = record, counts
        self.prompt, self.same = record["prompt"], counts["same"]
        self.tokens, self.cycles = counts["tokens"], counts["cycles"]
        self.bytes = counts["target_bytes"] + counts["draft_bytes"]
        self.plain_bytes = plain["target_bytes"] + plain["draft_bytes"]
        self.rounds = [s[0] for s in counts["seconds"]]
        self.seconds = statistics.median(self.rounds)
        self.drafting = statistics.median(s[1] for s in counts["seconds"])
        self.speedup = statistics.median(p[0] / max(s, 1e-9) for p, s in zip(plain["seconds"], self.rounds))
        self.entropy, self.surprisal = record["entropy"], record["surprisal"]


def tables(results, group):
    """-> {(set, form, sampling): {mode: [Row of each prompt]}}, in the order of the records; answers too short to measure left out."""
    found = {}
    for record in results["records"]:
        if record["group"] != group or not record.get("modes"):
            continue
        table = found.setdefault((record["set"], record["form"], record["sampling"]), {})
        for mode in record["modes"]:
            table.setdefault(mode, []).append(Row(record, mode))
    return found


# Of a list of rows.

def speedup(rows):
    return statistics.median(r.speedup for r in rows)


def tokens_per_second(rows):
    return sum(r.tokens for r in rows) / max(sum(r.seconds for r in rows), 1e-9)


def bandwidth(rows):
    return sum(r.bytes for r in rows) / max(sum(r.plain_bytes for r in rows), 1)


def tokens_per_pass(rows):
    return sum(r.tokens for r in rows) / max(sum(r.cycles for r in rows), 1)


def draft_share(rows):
    return sum(r.drafting for r in rows) / max(sum(r.seconds for r in rows), 1e-9)


def agreement(rows):
    """Of the places that chains of guesses reached, those where the guess was what the target drew."""
    return sum(sum(r.counts["accepted_at_depth"]) for r in rows) / max(sum(sum(r.counts["reached_at_depth"]) for r in rows), 1)


def same(rows):
    return sum(r.same for r in rows)


def paired(rows, others):
    """Rows of one mode over another's on the same prompts: how many times faster, prompt by prompt."""
    by_prompt = {r.prompt: r for r in others}
    return [statistics.median(o / max(s, 1e-9) for o, s in zip(by_prompt[r.prompt].rounds, r.rounds)) for r in rows if r.prompt in by_prompt]


def by_depth(rows):
    """-> [(reached, taken) of each depth]"""
    depths = collections.defaultdict(lambda: [0, 0])
    for r in rows:
        for depth, (reached, taken) in enumerate(zip(r.counts["reached_at_depth"], r.counts["accepted_at_depth"])):
            depths[depth][0] += reached
            depths[depth][1] += taken
    return [tuple(depths[d]) for d in sorted(depths)]


def by_source(rows):
    """-> {drafter: (proposed, taken)}; drafters of one name have their numbers behind it."""
    sources = {}
    for r in rows:
        seen = collections.Counter()
        for name, proposed, taken in r.counts["sources"]:
            seen[name] += 1
            key = name if seen[name] == 1 else f"{name} {seen[name]}"
            before = sources.get(key, (0, 0))
            sources[key] = (before[0] + proposed, before[1] + taken)
    return sources
