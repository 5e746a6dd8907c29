"""peers.py --coppice COMMAND --model FILE.gguf --json RESULTS.json: the same file through llama.cpp and through Coppice.

One pair is one measurement of each, one right after the other, and who begins alternates: what this machine does in the
meantime hits both. Every pair is appended to RESULTS.json as it is made, so a run that is stopped goes on where it was
(`--pairs` is how many are wanted in all, `--seconds` ends a piece early). Settings or programs that differ from those in
the file are refused.

What is compared, in both by the clock around the pass alone (no drawing, no tokenizer):
  decode     a pass over one token with logits, over `--context` tokens
  rows n     a pass over n tokens, logits of all, over the same context (llama.cpp: one sequence; Coppice: a tree)
  prefill    a prompt of `--prefill` tokens, logits of the last, in passes of the size each prefers
Ratios are llama.cpp's time over Coppice's, pair by pair; the table shows their median and a bootstrap interval (95%)."""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

SEED = 1
RESAMPLES = 10000


# ---- llama.cpp

class Llama:
    """One context of a model file, used through the C interface."""

    def __init__(self, model, options):
        import llama_cpp
        self.c = c = llama_cpp
        quiet = c.llama_log_callback(lambda level, text, data: None)
        self.quiet = quiet  # must live
        c.llama_log_set(quiet, ctypes.c_void_p(0))
        c.llama_backend_init()
        self.model = c.llama_model_load_from_file(str(model).encode(), c.llama_model_default_params())
        if not self.model:
            sys.exit(f"peers.py: llama.cpp cannot load {model}")
        params = c.llama_context_default_params()
        params.n_ctx = max(options.context + max(options.rows), options.prefill) + 8
        params.n_batch = params.n_ubatch = max(options.prefill, max(options.rows))
        params.n_threads = params.n_threads_batch = options.threads
        self.context = c.llama_init_from_model(self.model, params)
        if not self.context:
            sys.exit("peers.py: llama.cpp cannot make a context")
        self.vocab = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self.model))
        self.batch = c.llama_batch_init(params.n_batch, 0, 1)
        self.options = options

    def forget(self, length):
        self.c.llama_memory_seq_rm(self.c.llama_get_memory(self.context), 0, length, -1)

    def seconds(self, begin, count, all_logits):
        """Of one pass over tokens at begin .. begin + count."""
        batch = self.batch
        batch.n_tokens = count
        for i in range(count):
            batch.token[i] = ((begin + i) * 7919 + 13) % self.vocab
            batch.pos[i] = begin + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = all_logits or i + 1 == count
        start = time.perf_counter()
        if self.c.llama_decode(self.context, batch) != 0:
            sys.exit("peers.py: llama_decode failed")
        self.c.llama_synchronize(self.context)
        return time.perf_counter() - start

    def measure(self):
        options = self.options
        self.forget(0)
        prefill = self.seconds(0, options.prefill, False)
        if options.prefill < options.context:
            self.seconds(options.prefill, options.context - options.prefill, False)
        found = {}
        # Passes of one size one after the other, as when it decodes: llama.cpp then keeps its graph. The first two warm up.
        for n in options.rows:
            taken = []
            for _ in range(options.repeats + 2):
                self.forget(options.context)
                taken.append(self.seconds(options.context, n, True))
            found[f"rows {n}"] = float(np.median(taken[2:]))
        found["prefill"] = prefill
        return found


# ---- Coppice

class Coppice:
    def __init__(self, model, options):
        self.options = options
        self.report = pathlib.Path(f"{options.json}.{os.getpid()}.tmp")
        self.command = [options.coppice, "bench", "cost", "-m", str(model), "-t", str(options.threads), "-c", str(options.context), "--rows",
                        ",".join(map(str, options.rows)), "--prefill", str(options.prefill), "--repeats", str(options.repeats), "--json",
                        str(self.report)]

    def measure(self):
        run = subprocess.run(self.command, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"peers.py: {' '.join(self.command)}: {run.stderr.strip()}")
        report = json.loads(self.report.read_text())
        self.report.unlink()
        found = {f"rows {p['rows']}": p["seconds"]["median"] for p in report["passes"]}
        found["prefill"] = report["prefill"]["seconds"]["median"]
        found["of_read"] = report["passes"][0]["of_read"]["median"]
        found["isa"] = report["limits"]["isa"]
        return found


# ---- pairs, and what they say

def interval(ratios):
    """The median, and the middle 95% of the medians of samples drawn from these with replacement."""
    ratios = np.array(ratios)
    draws = np.random.default_rng(SEED).choice(ratios, (RESAMPLES, len(ratios)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def names(results):
    return [f"rows {n}" for n in results["settings"]["rows"]] + ["prefill"]


def summary(results):
    out = {}
    for name in names(results):
        pairs = results["pairs"]
        ratio, low, high = interval([p["llama.cpp"][name] / p["coppice"][name] for p in pairs])
        out[name] = {"llama.cpp_seconds": float(np.median([p["llama.cpp"][name] for p in pairs])),
                     "coppice_seconds": float(np.median([p["coppice"][name] for p in pairs])),
                     "ratio": ratio, "low": low, "high": high}
        if name != "prefill":
            for who in ("llama.cpp", "coppice"):
                out[name][f"{who}_over_one_row"] = float(np.median([p[who][name] / p[who]["rows 1"] for p in pairs]))
    return out


def table(results):
    settings = results["settings"]
    lines = [f"{settings['model']}, {settings['threads']} threads, context {settings['context']}: {len(results['pairs'])} pairs, "
             f"Coppice {results['pairs'][0]['coppice']['isa']}, {settings['llama.cpp']}",
             f"{'':<12}{'llama.cpp':>12}{'Coppice':>12}{'times faster':>14}{'95%':>16}{'C(n)/C(1) there':>18}{'here':>8}"]
    for name, row in summary(results).items():
        tokens = settings["prefill"] if name == "prefill" else int(name.split()[1])
        unit = "tok/s" if name in ("prefill", "rows 1") else "ms"
        values = [tokens / row[f"{who}_seconds"] if unit == "tok/s" else 1e3 * row[f"{who}_seconds"] for who in ("llama.cpp", "coppice")]
        costs = "" if name == "prefill" else f"{row['llama.cpp_over_one_row']:>18.2f}{row['coppice_over_one_row']:>8.2f}"
        label = "decode" if name == "rows 1" else name
        lines.append(f"{label:<12}" + "".join(f"{v:>6.0f} {unit:<5}" if v >= 100 else f"{v:>6.2f} {unit:<5}" for v in values) +
                     f"{row['ratio']:>13.2f}x" + f"{row['low']:.2f} to {row['high']:.2f}".rjust(16) + costs)
    return "\n".join(lines)


def settings_of(options):
    import llama_cpp
    version = subprocess.run([options.coppice, "--version"], capture_output=True, text=True).stdout.strip()
    return {"model": options.model.name, "model_bytes": options.model.stat().st_size, "threads": options.threads, "context": options.context,
            "rows": options.rows, "prefill": options.prefill, "repeats": options.repeats, "coppice": version,
            "coppice_bytes": os.stat(options.coppice).st_size, "llama.cpp": f"llama-cpp-python {llama_cpp.__version__}",
            "llama.cpp_system": llama_cpp.llama_print_system_info().decode().strip()}


def save(path, results):
    aside = f"{path}.{os.getpid()}.new"
    pathlib.Path(aside).write_text(json.dumps(results, indent=1) + "\n")
    os.replace(aside, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coppice", required=True, help="the command, built for release")
    parser.add_argument("--model", required=True, type=pathlib.Path)
    parser.add_argument("--json", required=True, type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=9, help="wanted in all; at least 7 for a figure to be quoted")
    parser.add_argument("--seconds", type=float, default=0, help="begin no further pair after this long; 0: go on")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--context", type=int, default=192, help="tokens before the rows; llama.cpp rounds up to multiples of 256")
    parser.add_argument("--rows", type=lambda text: sorted({1, *map(int, text.split(","))}), default=[1, 4, 8, 16])
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=5, help="passes of each kind in a pair; their median counts")
    options = parser.parse_args()
    start = time.monotonic()
    settings = settings_of(options)
    results = {"settings": settings, "pairs": []}
    if options.json.exists():
        results = json.loads(options.json.read_text())
        other = [key for key in settings if results["settings"].get(key) != settings[key]]
        if other:
            sys.exit(f"peers.py: {options.json} was made with another {other[0]}; name another file")
    sides = {"llama.cpp": Llama(options.model, options), "coppice": Coppice(options.model, options)}
    while len(results["pairs"]) < options.pairs:
        if options.seconds and time.monotonic() - start > options.seconds:
            break
        number = len(results["pairs"])
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        pair = {"first": order[0]}
        for who in order:
            pair[who] = sides[who].measure()
        results["pairs"].append(pair)
        results["summary"] = summary(results)
        save(options.json, results)
    if results["pairs"]:
        print(table(results))
    if len(results["pairs"]) < options.pairs:
        print(f"{len(results['pairs'])} of {options.pairs} pairs; the same command goes on")


if __name__ == "__main__":
    main()
