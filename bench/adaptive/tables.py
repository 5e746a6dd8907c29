"""Latency, speed, acceptance and draft compute: by task, by category of Spec-Bench, by length; ablations."""

import statistics

import answers
from answers import PLAIN

import figures
import intervals
from intervals import bootstrap, percentile
from page import header, row

LENGTHS = (16, 32, 64, 128, 256, 512)


def milliseconds(interval):
    return f"{1000 * interval.value:.0f} ({1000 * interval.low:.0f} to {1000 * interval.high:.0f})"


def write(page):
    for number, (key, table) in enumerate(page.tasks.items()):
        task(page, number, key, table)
    significance(page)
    categories(page)


def write_more(page):
    lengths(page)
    ablations(page)


def task(page, number, key, table):
    page.say("", f"## {key[0]}, {key[1]}", "", f"{len(table[PLAIN])} answers, {len(answers.whole(table[PLAIN]))} of them of {answers.LONG} tokens. Latency is from the prompt to the last token; "
             "taken: of the guesses that were submitted; draft compute: bytes that drafts read a token, of what "
             f"{page.full or 'the full draft'} reads.", "",
             *header("method", "latency ms, median (95%)", "90th / 99th percentile", f"of {answers.LONG} tokens", "first token ms", "tok/s", "speed-up (95%)", "taken", "tokens a pass", "draft compute",
                     "verify / draft time", "same ids"))
    full = answers.draft_bytes(table[page.full]) if page.full in table else 0
    speeds = []
    for method, rows in table.items():
        ratio, late = bootstrap(rows, answers.speedup), bootstrap(rows, answers.latency)
        times = [a.seconds("latency") for a in rows]
        long, share = answers.whole(rows), answers.verify_to_draft(rows)
        guessed = sum(a.total("guesses") for a in rows) > 0
        speeds.append((method, ratio))
        page.say(row(method, milliseconds(late), f"{1000 * percentile(times, 0.9):.0f} / {1000 * percentile(times, 0.99):.0f}", f"{1000 * answers.latency(long):.0f}" if long else "",
                     f"{1000 * statistics.median(a.seconds('first') for a in rows):.0f}", f"{answers.tokens_per_second(rows):.1f}", ratio.text(), f"{100 * answers.acceptance(rows):.0f}%" if guessed else "",
                     f"{answers.accepted_length(rows):.2f}", f"{100 * answers.draft_bytes(rows) / full:.0f}%" if full else "", f"{share:.2f}" if share is not None else "",
                     f"{sum(a.same for a in rows)}/{len(rows)}"))
    page.figure(f"task-{number}.svg", figures.bars(f"Speed-up: {key[0]}, {key[1]}", [("", speeds)], "times plain decoding", 2), f"speed-up, {key[0]}, {key[1]}")
    page.figure(f"prompts-{number}.svg", figures.strips(f"Latency prompt by prompt: {key[0]}, {key[1]}", [(m, [(1000 * a.seconds("latency"), f"{a.prompt}: {1000 * a.seconds('latency'):.0f}") for a in rows])
                                                        for m, rows in table.items()], "milliseconds; the line is the median", mark=None), f"latency prompt by prompt, {key[0]}, {key[1]}")


def significance(page):
    """Latency against AR and MTV, prompt by prompt."""
    lines = []
    for (task, sampling), table in page.tasks.items():
        for method in table:
            for other in (PLAIN, "MTV"):
                if other not in table or method in (PLAIN, other):
                    continue
                pairs = answers.paired(table[method], table[other], lambda a: a.seconds("latency"))
                saved = [b - a for a, b in pairs]
                t, p, n = intervals.paired_t(saved)
                lines.append(row(f"{task}, {sampling}", method, "AR" if other == PLAIN else other, milliseconds(bootstrap(saved, statistics.fmean)), f"{t:.2f}", f"{p:.1e}" if p < 0.001 else f"{p:.3f}", n))
    if lines:
        page.say("", "## Is it faster? Paired t-tests", "", "Milliseconds of latency saved, mean over prompts with its bootstrap interval, and Student's paired t-test, two-sided (theirs: p < 0.001 against AR, < 0.05 "
                 "against MTV).", "", *header("", "method", "against", "saved ms, mean (95%)", "t", "p", "prompts"), *lines)


def categories(page):
    for sampling in dict.fromkeys(key[1] for key in page.categories):
        found = {key[0]: table for key, table in page.categories.items() if key[1] == sampling}
        methods = [m for m in dict.fromkeys(m for table in found.values() for m in table) if m != PLAIN]
        whole = {m: rows for (_, s), table in page.spec_bench.items() if s == sampling for m, rows in table.items()}
        page.say("", f"## Spec-Bench, {sampling}", "", f"Speed-up over plain decoding in each of its {len(found)} categories, median over prompts (95%):", "", *header("category", "prompts", *methods))
        for name, table in [*found.items(), ("all", whole)]:
            page.say(row(name, len(table[PLAIN]), *(bootstrap(table[m], answers.speedup).text() if m in table else "" for m in methods)))
        page.say("", "Tokens a pass of the target (mean accepted length):", "", *header("category", "tokens an answer", *methods))
        for name, table in [*found.items(), ("all", whole)]:
            page.say(row(name, f"{statistics.fmean(a.tokens for a in table[PLAIN]):.0f}", *(f"{answers.accepted_length(table[m]):.2f}" if m in table else "" for m in methods)))
        shown = [m for m in methods if m in page.config.get("methods", {})]
        page.figure(f"categories-{sampling}.svg", figures.bars(f"Speed-up by category of Spec-Bench, {sampling}", [(name, [(m, bootstrap(table[m], answers.speedup)) for m in shown if m in table])
                                                               for name, table in found.items()], "times plain decoding", 2), f"speed-up by category, {sampling}")


def lengths(page):
    for (_, sampling), table in page.lengths.items():
        series = []
        for method, rows in table.items():
            if method == PLAIN:
                continue
            line = []
            for length in LENGTHS:
                pairs = answers.paired(rows, table[PLAIN], lambda a, length=length: a.seconds_to(length))
                ratios = [plain / max(own, 1e-9) for own, plain in pairs if own is not None and plain is not None]
                if ratios:
                    line.append((length, bootstrap(ratios, statistics.median), len(ratios)))
            series.append((method, line))
        page.say("", f"## Speed-up by length, {sampling}", "", f"Seconds to so many tokens of the same answers of up to {page.results['settings']['length_tokens']} tokens, prompts not in it; "
                 "answers that are shorter drop out.", "", *header("method", *(f"{length} tokens" for length in LENGTHS)))
        for method, line in series:
            by_length = {length: f"{interval.text()}, {n}" for length, interval, n in line}
            page.say(row(method, *(by_length.get(length, "") for length in LENGTHS)))
        page.figure(f"lengths-{sampling}.svg", figures.curves(f"Speed-up by length of the answer, {sampling}", [(m, [(x, i) for x, i, _ in line]) for m, line in series], "tokens", "times plain", log_x=True),
                    f"speed-up by length, {sampling}")


def ablations(page):
    if not page.ablations:
        return
    page.say("", "## Ablations", "", "Each beside the method that it is of, on the same prompts: seconds of latency that the whole method saves, mean (95%). Theirs: 0.3 to 0.4 s against fixed capacity, 0.1 to 0.2 s "
             "by batched verification.", "", *header("task", "without", "of", "saved s, mean (95%)", "p", "times faster, median (95%)", "draft compute of it", "tokens a pass: whole / without", "prompts"))
    for (task, sampling), table in page.ablations.items():
        for name, ablation in page.config.get("ablations", {}).items():
            of = ablation["of"]
            if name not in table or of not in table:
                continue
            pairs = answers.paired(table[of], table[name], lambda a: a.seconds("latency"))
            saved = [without - whole for whole, without in pairs]
            _, p, n = intervals.paired_t(saved)
            read = answers.draft_bytes(table[name])
            page.say(row(f"{task}, {sampling}", name, of, bootstrap(saved, statistics.fmean).text(3), f"{p:.3f}", bootstrap([b / max(a, 1e-9) for a, b in pairs], statistics.median).text(),
                         f"{100 * answers.draft_bytes(table[of]) / read:.0f}%" if read else "", f"{answers.accepted_length(table[of]):.2f} / {answers.accepted_length(table[name]):.2f}", n))
