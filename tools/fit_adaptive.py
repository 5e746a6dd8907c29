#!/usr/bin/env python3
"""Fits the policy `adaptive` to models at hand, on training prompts: what `adaptive-fitted` begins with.

    tools/fit_adaptive.py -m MODEL.gguf --draft DRAFT.gguf --prompts prompts.jsonl --work FOLDER [--cheap 'lookup | ngram("N.ngram")']

Prompts are JSON lines of tools/make_prompts.py. They are dealt out once: most for the gate, others for thresholds, others again to judge by.
  1  the model answers the first part                              coppice corpus       FOLDER/corpus
  2  a gate learns from the answers                                coppice train gate   FOLDER/gate.gate, gate.json
  3  settings are tried on the second part, one after the other    coppice bench decode FOLDER/try-*.json
  4  tau is fitted on it, with what was chosen                     coppice train tau    FOLDER/tau, tau.json
  5  DRAFT.adaptive and DRAFT.gate are written beside the draft, and judged on the third part: FOLDER/judged.json
A step whose file is there is not done again, so the same command goes on where it stopped. A change of the command wants another folder.

What is chosen in 3: of the settings that take at least --length (0.97) of the guesses a pass of the target that the fixed full draft brings,
at most --compute (0.6) of whose bytes they read, the one whose tokens cost least. A cycle's cost is counted, not timed (a busy machine moves
no count): one pass of the target, --row for each guess that it verifies, --pass times the share of the target's bytes that the drafts read.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys

DEFAULT_ROW, DEFAULT_PASS = 0.2, 1.45  # on two cores with VNNI
SPLIT = {"learn": 0.75, "fit": 0.15, "held": 0.10}
# In turn: each name with the values that are tried beside the best of those before it.
STAGES = [
    ("reject", ["0.2", "0.3", "0.4", "0.5"]),
    ("first", ["2", "4", "8"]),
    ("window", ["static", "dynamic"]),
    ("sure", ["0.5", "0.7"]),
    ("stop", ["off", "0.35", "0.5"]),
    ("alpha", ["gate", "0.6", "0.75", "1"]),
]
BEGIN = {"alpha": "gate", "upgrade": "2", "failure": "4", "stop": "off", "window": "static", "first": "4", "reject": "0.4", "sure": "0.5"}
FIXED = ["--policy", "fixed", "--nodes", "5", "--depth", "5", "--width", "1", "--price", "0", "--pass-price", "0"]


class Fit:
    def __init__(self, options):
        self.o, self.work = options, pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        draft = f'model("{options.draft}")'
        self.mix = f"{draft} | {options.cheap}" if options.cheap else draft
        self.full_draft = f'model("{options.draft}", width={options.widest})'

    def run(self, output, *arguments):
        """Runs coppice unless what it makes is there."""
        if (self.work / output).exists():
            return
        print(f"fit_adaptive: {output}", file=sys.stderr)
        command = [self.o.coppice, *map(str, arguments), "-t", str(self.o.threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"fit_adaptive.py: {' '.join(command)} ended with {done.returncode}")
        if not (self.work / output).exists():
            (self.work / output).write_text(done.stdout)

    # --- prompts ---

    def deal(self):
        """-> FOLDER/{learn,fit,held}.jsonl, and of the last two {..}.chat.jsonl and {..}.raw.jsonl: a bench takes one form at a time."""
        if (self.work / "held.jsonl").exists():
            return
        lines = [json.loads(line) for line in pathlib.Path(self.o.prompts).read_text().splitlines() if line.strip()]
        random.Random(self.o.seed).shuffle(lines)
        begin = 0
        for part, share in SPLIT.items():
            some = lines[begin:begin + round(share * len(lines))]
            begin += len(some)
            if part != "learn":
                short = [line for line in some if len(line.get("user", line.get("prompt", ""))) < self.o.longest]
                self.write(f"{part}.chat.jsonl", [line for line in short if "user" in line])
                self.write(f"{part}.raw.jsonl", [line for line in short if "prompt" in line])
            self.write(f"{part}.jsonl", some)

    def forms(self, part):
        """Those of which there are prompts: a model without a chat template has raw ones only."""
        return [form for form in ("chat", "raw") if (self.work / f"{part}.{form}.jsonl").stat().st_size]

    def write(self, name, lines):
        (self.work / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    # --- what is decoded ---

    def bench(self, name, part, drafters, policies, *more):
        """-> {policy: counts}; "plain" among them. Answers to chat prompts and raw ones together."""
        sides = {}
        for form in self.forms(part):
            prompts = self.o.tries if form == "chat" else max(1, self.o.tries // 2)
            file = f"{name}.{form}.json"
            self.run(file, "bench", "decode", "-m", self.o.model, "-c", 2048, "--prompts", self.work / f"{part}.{form}.jsonl", "--limit", prompts, *(["--chat"] if form == "chat" else []),
                     "-n", self.o.tokens, "--modes", "greedy", "-d", f"d: {drafters}", *(["--policies", ",".join(policies)] if policies else []), "--json", self.work / file, *more)
            for side in json.loads((self.work / file).read_text())["modes"][0]["sides"]:
                counts = sides.setdefault(side["name"].removeprefix("d ") if policies else side["name"], {})
                for key, value in side["stats"].items():
                    if isinstance(value, (int, float)):
                        counts[key] = counts.get(key, 0) + value
                counts.setdefault("speedups", []).extend(side["speedups"])
        return sides

    def policy(self, settings, tau="off"):
        """Alpha is the gate's, or a constant."""
        gate = f'gate="{self.work / "gate.gate"}"'
        return "adaptive-fitted(" + ", ".join([f"from=off, tau={tau}"] + [gate if (k, v) == ("alpha", "gate") else f"{k}={v}" for k, v in settings.items()]) + ")"

    def judge(self, counts, full, plain):
        cycles, tokens = counts["cycles"], counts["tokens"]
        of_pass = counts["draft_bytes"] / cycles / (plain["target_bytes"] / plain["cycles"])
        cost = (1 + self.o.row * counts["guesses"] / cycles + self.o.pass_ * of_pass) * cycles / tokens
        return {"cost": cost, "length": tokens / cycles / (full["tokens"] / full["cycles"]),
                "compute": counts["draft_bytes"] / tokens / (full["draft_bytes"] / full["tokens"]), "tokens_a_pass": tokens / cycles,
                "guesses_a_pass": counts["guesses"] / cycles, "taken": counts["accepted"] / max(1, counts["guesses"])}

    def search(self):
        full = self.bench("try-full", "fit", self.full_draft, [], *FIXED)
        plain, full = full["plain"], full["d"]
        best, trials = dict(BEGIN), []
        for name, values in STAGES:
            if name == "sure" and best["window"] == "static":
                continue
            tried = [dict(best, **{name: value}) for value in values]
            sides = self.bench(f"try-{name}", "fit", self.mix, [self.policy(one) for one in tried], "--nodes", 16)
            judged = [(one, self.judge(sides[self.policy(one)], full, plain)) for one in tried]
            trials += [{"settings": one, **what} for one, what in judged]
            fit = [pair for pair in judged if pair[1]["length"] >= self.o.length and pair[1]["compute"] <= self.o.compute]
            best = min(fit, key=lambda pair: pair[1]["cost"])[0] if fit else max(judged, key=lambda pair: pair[1]["length"])[0]
        return best, trials

    def held_out(self, best, tau):
        """The settings beside full capacity, constant widths and the fixed full draft, on prompts that nothing was fitted on."""
        full = self.bench("held-full", "held", self.full_draft, [], *FIXED)
        plain, full = full["plain"], full["d"]
        at = {"fitted": self.policy(best), "with tau": self.policy(best, tau)}
        for alpha in ("1.5", "1.25", "1", "0.75", "0.6"):
            at[f"alpha {alpha}"] = self.policy(dict(best, upgrade="off", alpha=alpha))
        sides = self.bench("held", "held", self.mix, list(at.values()), "--nodes", 16)
        rows = {name: self.judge(sides[policy], full, plain) for name, policy in at.items()}
        whole = rows["alpha 1.5"]
        for row in rows.values():
            row["compute_of_full_capacity"] = row["compute"] / whole["compute"]
            row["length_of_full_capacity"] = row["tokens_a_pass"] / whole["tokens_a_pass"]
        return rows

    # --- the whole ---

    def write_settings(self, best, tau):
        draft = pathlib.Path(self.o.draft)
        gate = draft.with_suffix(".gate")
        shutil.copyfile(self.work / "gate.gate", gate)
        settings = {("gate" if v == "gate" else k): (gate.name if v == "gate" else v) for k, v in best.items()}
        settings |= {"tau": tau, "analyse": json.loads((self.work / "tau.json").read_text())["analyse"]}
        lines = [f"# What the policy `adaptive-fitted` begins with where {draft.name} drafts; written by tools/fit_adaptive.py.", f"# {self.mix_named()}",
                 *(f"{name} = {value}" for name, value in settings.items()), ""]
        draft.with_suffix(".adaptive").write_text("\n".join(lines))

    def mix_named(self):
        """Without the folders of this machine."""
        return "fitted with " + re.sub(r'"([^"]*/)?([^"/]*)"', r"\2", self.mix)

    def all(self):
        self.deal()
        self.run("corpus.txt", "corpus", "-m", self.o.model, "-o", self.work / "corpus", "--prompts", self.work / "learn.jsonl", "--tokens", self.o.corpus_tokens, "--temperatures", "0:0.7,1:0.3",
                 "-n", 160, "--top-k", 0, "--slots", 32)
        self.run("gate.json", "train", "gate", "-m", self.o.model, "--draft", self.o.draft, "--corpus", self.work / "corpus", "--compute", self.o.gate_compute, "--depth", 4, "--reject", 0.2, "--epochs", self.o.epochs, "-o",
                 self.work / "gate.gate", "--json")
        best, trials = self.search()
        form = self.forms("fit")[0]
        self.run("tau.json", "train", "tau", "-m", self.o.model, "-d", self.mix, "--policy", self.policy(best), "--nodes", 16, "--prompts", self.work / f"fit.{form}.jsonl",
                 *(["--chat"] if form == "chat" else []), "--limit", self.o.tau_prompts, "-n", self.o.tokens, "--rounds", 3, "--analyse", "16,64,256", "-o", self.work / "tau", "--json")
        tau = re.search(r"(?m)^tau = (\S+)$", (self.work / "tau").read_text()).group(1)
        self.write_settings(best, tau)
        rows = self.held_out(best, tau)
        (self.work / "judged.json").write_text(json.dumps({"settings": best, "tau": tau, "trials": trials, "held_out": rows}, indent=1))
        for name, row in rows.items():
            print(f"{name:12} cost {row['cost']:.3f}  compute {row['compute']:.2f} of the full draft's, {row['compute_of_full_capacity']:.2f} of full capacity's  tokens a pass {row['tokens_a_pass']:.2f}, "
                  f"{row['length']:.2f} and {row['length_of_full_capacity']:.2f} of theirs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--draft", required=True)
    parser.add_argument("--prompts", required=True, help="of tools/make_prompts.py; nothing that is measured on (scripts/check_overlap.py)")
    parser.add_argument("--work", required=True, help="the folder of what is between")
    parser.add_argument("--cheap", default="", help="drafters beside the draft, such as lookup")
    parser.add_argument("--coppice", default="build/release/apps/coppice")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--widest", default="1.5", help="width of the fixed full draft")
    parser.add_argument("--length", type=float, default=0.97)
    parser.add_argument("--compute", type=float, default=0.6)
    parser.add_argument("--gate-compute", type=float, default=0.55, help="the widest draft's work that the gate may spend")
    parser.add_argument("--row", type=float, default=DEFAULT_ROW, help="what a guess costs, in passes of the target")
    parser.add_argument("--pass", dest="pass_", type=float, default=DEFAULT_PASS, help="what a byte a draft reads costs, in bytes the target reads")
    parser.add_argument("--epochs", type=int, default=24, help="of the gate")
    parser.add_argument("--corpus-tokens", type=int, default=110_000)
    parser.add_argument("--tries", type=int, default=12, help="chat prompts a trial, and half as many raw ones")
    parser.add_argument("--tau-prompts", type=int, default=80)
    parser.add_argument("--tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--longest", type=int, default=2500, help="characters of a prompt in a trial")
    parser.add_argument("--seed", type=int, default=6)
    Fit(parser.parse_args()).all()


if __name__ == "__main__":
    main()
