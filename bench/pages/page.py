"""Pages of long benches in Markdown: what `staged` and `adaptive` have in common."""

import gzip
import json
import pathlib


def load(path, bench):
    """What `coppice bench BENCH --json` wrote, packed or not."""
    data = pathlib.Path(path).read_bytes()
    results = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    if results.get("bench") != bench or "records" not in results:
        raise ValueError(f"{path} is no result of `coppice bench {bench} --json`")
    return results


def row(*cells):
    return "| " + " | ".join(str(c) for c in cells) + " |"


def header(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def verdict(value, floor, aim, better="most"):
    reached = (lambda bar: value >= bar) if better == "most" else (lambda bar: value <= bar)
    return "aim reached" if reached(aim) else "floor reached" if reached(floor) else "floor missed"


class Page:
    """Lines of Markdown, and figures in a folder beside them."""

    def __init__(self, results, folder, name):
        self.results, self.folder, self.name, self.lines = results, folder, name, []

    def say(self, *lines):
        self.lines += lines

    def figure(self, file, svg, caption):
        if not svg:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / file).write_text(svg)
        self.say("", f"![{caption}]({self.name}/{file})")

    def text(self):
        return "\n".join(self.lines) + "\n"

    # ---- what every page says

    def machine(self):
        r, s, state = self.results, self.results["settings"], self.results["state"]
        return [f"- model: {r['model']['name']}, {r['model']['parameters'] / 1e6:.0f} million parameters, file hash `{s['model_hash']}`",
                f"- machine: {s['cpu']}, {threads_of(s, r)} threads, instruction set {isa_of(s)}; load before {short(state['load_before'])}, "
                f"after {short(state['load_after'])}; {state['begun']} to {state['ended']}"]

    def files(self):
        lines = [f"- {part}: `{file['path']}`" + (f", hash `{file['hash']}`" if file["hash"] else ", not there")
                 for part, file in self.results["settings"]["files"].items()]
        return lines + [f"- left out: {mode} ({why})" for mode, why in self.results["left_out"].items()]

    def replays(self, replays):
        if not replays:
            return
        self.say("", "## The paper's own shapes (acceptance replayed)", "",
                 "Models with random weights in the shapes named; the passes are real, how many guesses are taken is not: it follows the cycles recorded above "
                 "with SmolLM2-135M. Cheap drafters, the mixer and drawing are not in the times.", "",
                 *header("shapes", "recorded from", "tokens a pass", "plain tok/s", "tok/s", "speed-up (quartiles)", "drafting"))
        for replay in replays:
            for mode in replay["modes"]:
                ratio = mode["speed_up"]
                self.say(row(f"{replay['target']['parameters'] / 1e6:.0f}M / {replay['draft']['parameters'] / 1e6:.0f}M", f"{mode['name']}, {mode['sampling']}", f"{mode['tokens_per_pass']:.2f}",
                             f"{mode['plain_tokens_per_second']:.1f}", f"{mode['tokens_per_second']:.1f}", f"{ratio['median']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})",
                             f"{100 * mode['draft_share']:.0f}%"))


def short(loads):
    return " ".join(f"{load:.2f}" for load in loads or []) or "not known"


def isa_of(settings):
    isa = settings["isa"]
    chosen = [i["name"] for i in isa if i.get("chosen")] if isinstance(isa, list) else [isa]
    return ", ".join(map(str, chosen)) or "unknown"


def threads_of(settings, results):
    return settings["threads"] or results["machine"]["cores"]
