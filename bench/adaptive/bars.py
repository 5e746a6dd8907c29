"""The bars that were set before anything was measured, and the paper's own figures beside ours."""

import answers
from answers import PLAIN

import analyser
from intervals import bootstrap
from page import header, row, verdict

NEVER_SLOWER, WITHIN, SUB_SECOND = 0.98, 0.95, 0.85
OVERALL = {"vnni": (1.6, 2.0), "amx": (1.8, 2.4)}
COMPUTE, LENGTH = 0.60, 0.97
AUTO, FITTED, ALONE = "auto", "adaptive-fitted", "adaptive-fitted, draft alone"


def overall_bar(page):
    isa = page.results["settings"]["isa"]
    chosen = [str(i.get("name", "")) for i in isa if i.get("chosen")] if isinstance(isa, list) else [str(isa)]
    return next((bar for name, bar in OVERALL.items() if any(name in c for c in chosen)), OVERALL["vnni"])


def write(page, replays):
    lines = never_slower(page) + overall(page) + hindsight(page) + compute(page) + choice(page) + sub_second(replays)
    if lines:
        page.say("", "## Bars", "", *header("bar", "where", "floor / aim", "measured (95%)", ""), *lines)
    beside_the_paper(page)


def never_slower(page):
    lines = []
    for (category, sampling), table in page.categories.items():
        if AUTO in table:
            value = bootstrap(table[AUTO], answers.speedup)
            lines.append((value.high >= NEVER_SLOWER, row(f"{AUTO}: not under plain", f"{category}, {sampling}", NEVER_SLOWER, value.text(), "held" if value.high >= NEVER_SLOWER else "missed")))
    return [line for _, line in lines]


def overall(page):
    floor, aim = overall_bar(page)
    lines = []
    for (_, sampling), table in page.spec_bench.items():
        if AUTO in table and sampling == "greedy":
            value = bootstrap(table[AUTO], answers.speedup)
            lines.append(row(f"{AUTO}: speed-up", f"all of Spec-Bench, {sampling}", f"{floor} / {aim}", value.text(), verdict(value.value, floor, aim)))
    return lines


def fixed_of(page, table):
    return [m for m in page.config.get("fixed", {}) if m in table]


def hindsight(page):
    """auto against fixed configurations: the best of each category, and the best of all."""
    lines = []
    for (category, sampling), table in [*page.categories.items(), *page.spec_bench.items()]:
        fixed = fixed_of(page, table)
        if AUTO not in table or not fixed:
            continue
        whole = category == "spec-bench"
        best = max(fixed, key=lambda m: answers.speedup(table[m]))
        ratios = answers.paired(table[AUTO], table[best], lambda a: a.seconds("decode"))
        value = bootstrap(ratios, lambda pairs: sorted(b / max(a, 1e-9) for a, b in pairs)[len(pairs) // 2])
        bar = 1.0 if whole else WITHIN
        lines.append(row(f"{AUTO} against the best fixed ({best})", "all of Spec-Bench" if whole else f"{category}, {sampling}", bar, value.text(), "held" if value.value >= bar else "missed"))
    return lines


def compute(page):
    """The fitted policy's draft compute and length against the fixed full draft, and against its own draft at full capacity. Where the analyser
    chose the target alone there is neither, so the answers that were drafted for stand beside all of them."""
    lines = []
    capacity = page.config.get("capacity", "")
    beside = [(FITTED, key[1], table, page.full) for key, table in page.all.items()] + [(FITTED, key[1], table, capacity) for key, table in page.all_ablations.items()]
    for own, sampling, table, full in beside + [(ALONE, key[1], table, page.full) for key, table in page.all.items()]:
        if own not in table or full not in table or not answers.draft_bytes(table[full]):
            continue
        drafted = [a for a in table[own] if not a.analyser or a.analyser["led"]]
        lines += shares(own, table[own], full, table[full], f"all, {sampling}")
        if 0 < len(drafted) < len(table[own]):
            lines += shares(own, drafted, full, table[full], f"the {len(drafted)} of {len(table[own])} that were drafted for, {sampling}")
    return lines


def shares(method, rows, full, others, where):
    pairs = answers.paired(rows, others, lambda a: a)
    rows, others = [a for a, _ in pairs], [b for _, b in pairs]
    share = answers.draft_bytes(rows) / answers.draft_bytes(others)
    length = answers.accepted_length(rows) / answers.accepted_length(others)
    return [row(f"{method}: draft compute of {full}'s", where, f"at most {COMPUTE}", f"{share:.2f}", "reached" if share <= COMPUTE else "missed"),
            row(f"{method}: tokens a pass of {full}'s", where, f"at least {LENGTH}", f"{length:.2f}", "reached" if length >= LENGTH else "missed")]


def choice(page):
    """The analyser against choosing the same each time. tau = off is the choice to draft each time."""
    tau = analyser.taus(page).get(FITTED)
    some_of = analyser.choices(page, FITTED) if tau is not None else {sampling: [analyser.Choice(1, own.seconds("decode"), plain.seconds("decode"), task) for own, plain, task in pairs]
                                                                      for sampling, pairs in analyser.led_and_plain(page).items() if FITTED in page.config.get("methods", {})}
    lines = []
    for sampling, some in some_of.items():
        own, constant = analyser.right(some, tau or 0), max(analyser.right(some, 0), analyser.right(some, 2))
        if some:
            lines.append(row(f"{FITTED}: the analyser's choice is the faster one", f"{len(some)} prompts of the tasks, {sampling}{'' if tau is not None else ', tau = off'}",
                             f"over {100 * constant:.0f}%, the best constant choice", f"{100 * own:.0f}%", "reached" if own > constant else "missed"))
    return lines


def sub_second(replays):
    lines = []
    for replay in replays:
        for mode in replay["modes"]:
            seconds = answers.LONG / mode["tokens_per_second"]
            lines.append(row(f"{answers.LONG} tokens, acceptance replayed", f"{replay['target']['parameters'] / 1e6:.0f}M, {mode['name']}, {mode['sampling']}", f"under {SUB_SECOND} s", f"{seconds:.2f} s",
                             "reached" if seconds < SUB_SECOND else "missed"))
    return lines


def beside_the_paper(page):
    for (_, sampling), table in page.all.items():
        page.say("", f"## Beside the paper's figures, {sampling}", "", "All tasks and categories together.", "",
                 *header("method", "speed-up (theirs 3.2x)", f"{answers.LONG} tokens (theirs 0.85 s)", "taken of submitted (theirs 92%)", f"draft compute of {page.full or 'the full draft'} (theirs 60%)",
                         "same text (theirs: quality 99.1%)"))
        full = answers.draft_bytes(table[page.full]) if page.full in table else 0
        for method, rows in table.items():
            long = answers.whole(rows)
            drafted = method != PLAIN and any(a.total("guesses") for a in rows)
            page.say(row(method, f"{answers.speedup(rows):.2f}x", f"{answers.latency(long):.2f} s" if long else "", f"{100 * answers.acceptance(rows):.0f}%" if drafted else "",
                         f"{100 * answers.draft_bytes(rows) / full:.0f}%" if full and drafted else "", f"{100 * sum(a.same for a in rows) / len(rows):.1f}%"))
