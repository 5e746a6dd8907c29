"""The perplexity analyser: was its choice between draft-led and target-only the faster one, and at which tau would it be? Computed from the
confidence and both times recorded for each prompt."""

import answers
from answers import PLAIN

import figures
from intervals import Interval
from page import header, row

TAUS = [round(0.05 * i, 2) for i in range(21)]


class Choice:
    """A prompt: how confident the draft was, and seconds of the answer draft-led and target-only."""

    def __init__(self, confidence, led, plain, task):
        self.confidence, self.led, self.plain, self.task = confidence, led, plain, task

    def seconds(self, tau):
        return self.led if self.confidence >= tau else self.plain


def led_and_plain(page):
    """-> {sampling: [(draft-led answer, target-only one, task)]} of the prompts of the tasks; draft-led is the method which config "analyser" names
    "led"."""
    found = {}
    for (task, sampling), table in page.tasks.items():
        led = table.get(page.config.get("analyser", {}).get("led", ""), [])
        found.setdefault(sampling, []).extend((own, plain, task) for own, plain in answers.paired(led, table[PLAIN], lambda a: a))
    return found


def choices(page, method):
    """-> {sampling: [Choice]}: of the prompts of the tasks that this method's analyser looked at (another's may look at more or fewer tokens)."""
    seen = {(a.record["set"], a.prompt): a.analyser["confidence"] for table in page.tasks.values() for a in table.get(method, []) if a.analyser}
    found = {}
    for sampling, pairs in led_and_plain(page).items():
        for own, plain, task in pairs:
            confidence = seen.get((own.record["set"], own.prompt))
            if confidence is not None:
                found.setdefault(sampling, []).append(Choice(confidence, own.seconds("decode"), plain.seconds("decode"), task))
    return found


def taus(page):
    """-> {method: its tau}"""
    return {m: a.analyser["tau"] for table in page.all.values() for m, rows in table.items() for a in rows if a.analyser}


def confusion(some, tau):
    """-> [[right led, wrong led], [wrong plain, right plain]]: rows are what the analyser chose, columns what was faster."""
    cells = [[0, 0], [0, 0]]
    for c in some:
        cells[0 if c.confidence >= tau else 1][0 if c.led <= c.plain else 1] += 1
    return cells


def right(some, tau):
    cells = confusion(some, tau)
    return (cells[0][0] + cells[1][1]) / max(1, len(some))


def speedup(some, tau):
    return sum(c.plain for c in some) / max(sum(c.seconds(tau) for c in some), 1e-9)


def best_tau(some):
    return max(TAUS, key=lambda tau: (speedup(some, tau), -tau))


def write(page):
    fitted = taus(page)
    some_of = {method: choices(page, method) for method in fitted}
    for sampling in dict.fromkeys(sampling for some in some_of.values() for sampling in some):
        here = {method: some[sampling] for method, some in some_of.items() if sampling in some}
        last = list(here)[-1]
        page.say("", f"## The perplexity analyser, {sampling}", "", f"Draft-led is `{page.config['analyser']['led']}`, target-only plain decoding; both were measured on all {len(here[last])} prompts, so each tau is judged by what it would "
                 "have chosen. Rows are what the analyser chose, columns what was faster:", "", *header("tau of", "chose", "draft-led was faster", "target-only was faster", "right", "always draft-led", "never"))
        for method, some in here.items():
            cells = confusion(some, fitted[method])
            page.say(row(f"{method}: {fitted[method]:g}", "draft-led", *cells[0], *(f"{100 * right(some, tau):.0f}%" for tau in (fitted[method], 0, 2))), row("", "target-only", *cells[1], "", "", ""))
        sweep(page, sampling, here[last], last)


def sweep(page, sampling, some, method):
    page.say("", f"Speed-up over plain decoding by tau, by the confidences of `{method}`, all answers of a task together (theirs: 0.7, mathematics 0.6, creative writing 0.8):", "",
             *header("task", "prompts", "confidence, lowest to highest", "always (0)", "0.6", "0.7", "0.8", "best", "at tau", "the faster one each time"))
    series = []
    for task in [*dict.fromkeys(c.task for c in some), "all"]:
        of = [c for c in some if task in (c.task, "all")]
        tau = best_tau(of)
        oracle = sum(c.plain for c in of) / max(sum(min(c.plain, c.led) for c in of), 1e-9)
        page.say(row(task, len(of), f"{min(c.confidence for c in of):.2f} to {max(c.confidence for c in of):.2f}", *(f"{speedup(of, t):.2f}x" for t in (0, 0.6, 0.7, 0.8)), f"{speedup(of, tau):.2f}x", f"{tau:g}",
                     f"{oracle:.2f}x"))
        series.append((task, [(t, Interval(*[speedup(of, t)] * 3)) for t in TAUS]))
    page.say("", "\"Best\" was chosen with hindsight.")
    page.figure(f"tau-{sampling}.svg", figures.curves(f"Speed-up by tau, {sampling}", series, "tau", "times plain"), f"speed-up by tau, {sampling}")
