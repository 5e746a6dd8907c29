"""What adaptive policies decided: how often each rule fires, the paper's failure mode, and the spikes after an upgrade."""

import statistics

import answers

from intervals import percentile
from page import header, row

FAILURE = "failure"
UPGRADES = ("upgrade_width", "upgrade_draft")


def deciding(table):
    """Methods that decided anything by a rule."""
    return {m: rows for m, rows in table.items() if any(r.get("rules") for a in rows for r in a.rounds)}


def write(page):
    for (_, sampling), table in page.all.items():
        for method, rows in deciding(table).items():
            fired(page, sampling, method, rows)
    failures(page)
    spikes(page)


def fired(page, sampling, method, rows):
    rules = list(dict.fromkeys(rule for a in rows for r in a.rounds for rule in r.get("rules", {})))
    page.say("", f"## How often each rule fires: {method}, {sampling}", "", "Times an answer, by category (docs/policies.md says what each rule is):", "", *header("category", "answers", *rules))
    by_category = {}
    for a in rows:
        by_category.setdefault(a.category, []).append(a)
    for name, some in [*by_category.items(), ("all", rows)]:
        count = sum(len(a.rounds) for a in some)
        page.say(row(name, count, *(f"{sum(a.decided(rule) for a in some) / count:.2f}" for rule in rules)))


def failures(page):
    """The share of answers in which the draft's perplexity was too far above the target's."""
    lines = []
    for (_, sampling), table in page.all.items():
        for method, rows in deciding(table).items():
            drafted = [a for a in rows if any(r["guesses"] for r in a.rounds)]
            by_category = {}
            for a in drafted:
                by_category.setdefault(a.category, []).append(a)
            for name, some in [*by_category.items(), ("all", drafted)]:
                if some:
                    failed = sum(a.decided(FAILURE) > 0 for a in some)
                    stopped = sum(a.decided("stop") > 0 for a in some)
                    lines.append(row(method, sampling, name, len(some), f"{100 * failed / len(some):.1f}%", f"{100 * stopped / len(some):.1f}%"))
    if lines:
        page.say("", "## Failure modes", "", "Of the answers that were drafted for, those in which the draft's perplexity exceeded the target's by more than the option `failure` (the paper's 35%: theirs 8.2%, mostly mathematics), "
                 "and those in which speculative cycles ended.", "", *header("method", "", "category", "answers", "failure mode", "cycles ended"), *lines)


def spikes(page):
    lines = []
    for (_, sampling), table in page.all.items():
        for method, rows in deciding(table).items():
            seen = [(rule, 1000 * (cycle - usual)) for a in rows for r in a.rounds for rule, cycle, usual in r.get("upgrades", [])]
            for rule in UPGRADES:
                sizes = [size for name, size in seen if name == rule]
                if sizes:
                    lines.append(row(method, sampling, rule, len(sizes), f"{statistics.median(sizes):.1f}", f"{percentile(sizes, 0.9):.1f}", f"{max(sizes):.1f}"))
    if lines:
        page.say("", "## Spikes when the draft is made larger", "", "By how many milliseconds the cycle after an upgrade was longer than the answer's median cycle (theirs: 200 to 300).", "",
                 *header("method", "", "rule", "upgrades", "median ms", "90th percentile", "most"), *lines)
