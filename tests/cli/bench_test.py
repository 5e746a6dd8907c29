"""coppice bench kernels, cost, load: what they report has the right shape and adds up. No test here looks at a clock."""

import json
import signal

import program

SPREAD = {"median", "low", "high"}

KINDS = ("q4", "q4_offset", "q8", "q5", "q5_offset", "q4_table", "q4_power", "q2_super", "q3_super", "q4_super", "q5_super", "q6_super",
         "q4_table_super", "f16", "bf16", "f32")


class Bench(program.Case):
    def report(self, bench, *arguments):
        """-> (the JSON, the page for people)"""
        out, said = self.run_well("bench", bench, *arguments, "--repeats", 2, "--json", "report.json")
        self.assertEqual(said, "")  # progress is for terminals
        report = json.loads((self.work / "report.json").read_text())
        self.assertEqual(report["bench"], bench)
        self.assertGreaterEqual(report["machine"]["cores"], 1)
        return report, out

    def spread(self, value):
        self.assertEqual(set(value), SPREAD)
        self.assertLessEqual(0, value["low"])
        self.assertLessEqual(value["low"], value["median"])
        self.assertLessEqual(value["median"], value["high"])

    def limits(self, limits, isa, threads):
        self.assertEqual((limits["isa"], limits["threads"]), (isa, threads))
        for name in ("int8_multiply_adds_per_second", "f32_multiply_adds_per_second"):
            self.spread(limits[name])
            self.assertGreater(limits[name]["low"], 0)

    def test_cost_has_every_number_of_rows_at_every_context(self):
        report, out = self.report("cost", "-m", self.model, "--rows", "8,3", "-c", "40,7", "--prefill", 50, "--chunk", 16, "-t", 2,
                                  "--isa", "scalar", "--cache", "f32", "--stages")
        self.limits(report["limits"], "scalar", 2)
        passes = report["passes"]
        self.assertEqual([(p["context"], p["rows"]) for p in passes], [(c, n) for c in (7, 40) for n in (1, 3, 8)])
        for one in passes:
            for name in ("seconds", "ratio", "of_read", "of_peak"):
                self.spread(one[name])
            self.assertGreater(one["seconds"]["low"], 0)
            for stage in ("attention", "down", "head"):
                self.assertGreater(one["stages"][stage], 0)
            if one["rows"] == 1:
                self.assertEqual(one["ratio"], {"median": 1, "low": 1, "high": 1})
        self.assertGreater(passes[3]["kv_bytes"], passes[0]["kv_bytes"])
        self.assertEqual(report["model"]["weight_bytes"], report["weight_bytes"])
        self.spread(report["read_seconds"])
        self.assertEqual((report["prefill"]["tokens"], report["prefill"]["chunk"]), (50, 16))
        self.assertEqual(report["settings"], {"repeats": 2, "cache": "f32"})
        for part in ("context 7\n", "context 40\n", "C(n)/C(1)", "of peak", "prefill of 50 in passes of 16", "where the time goes"):
            self.assertIn(part, out)

    def test_cost_counts_the_multiply_adds_of_the_matrices(self):
        self.run_well("random-model", "-o", "plain.gguf", "--hidden", 64, "--layers", 2, "--heads", 2, "--kv-heads", 1, "--feed-forward", 96,
                      "--vocab", 300)
        report, _ = self.report("cost", "-m", "plain.gguf", "--rows", 1, "-c", 4, "--prefill", 0)
        self.assertEqual(report["multiply_adds_per_row"], 2 * (64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 96) + 64 * 300)
        self.assertNotIn("prefill", report)

    def test_kernels_has_every_kernel(self):
        report, out = self.report("kernels", "--hidden", 64, "--feed-forward", 96, "--heads", 2, "--kv-heads", 1, "--head-dim", 32, "--layers", 2,
                                  "--vocab", 500, "--rows", "1,5", "--positions", "20", "-t", 1, "--isa", "scalar")
        self.limits(report["limits"], "scalar", 1)
        timings = report["timings"]
        for timing in timings:
            for name in ("seconds", "of_read", "of_peak"):
                self.spread(timing[name])
        matmuls = [(t["variant"], t["rows"]) for t in timings if t["kernel"] == "matmul"]
        self.assertEqual(matmuls, [(kind, rows) for kind in KINDS for rows in (1, 5)])
        for timing in timings:
            if timing["kernel"] == "matmul":
                unit = 256 if "super" in timing["variant"] else 32
                width, wide = -(-64 // unit) * unit, -(-96 // unit) * unit  # of inputs
                products = 2 * (width * (64 + 2 * 32 + 64) + width * 2 * 96 + wide * 64)
                self.assertEqual(timing["multiply_adds"], products * timing["rows"])
                if timing["variant"] == "f32":
                    self.assertEqual(timing["bytes"], products * 4)
        self.assertEqual([(t["variant"], t["rows"], t["count"]) for t in timings if t["kernel"] == "attention"],
                         [(cache, rows, 20) for cache in ("f32", "f16", "q8_0") for rows in (1, 8)])
        others = [t["kernel"] for t in timings if t["kernel"] not in ("matmul", "attention")]
        self.assertEqual(others, ["rms_norm", "layer_norm", "quantize_row", "add", "silu_mul", "gelu", "rope", "exp2", "argmax", "gumbel",
                                  "gumbel_bound"])
        for part in ("matmul q4 ", "attention q8_0, 20", "gumbel_bound, 500", "of reading"):
            self.assertIn(part, out)

    def test_kernels_measures_the_kinds_asked_for(self):
        report, _ = self.report("kernels", "--kinds", "q8", "--rows", 2, "--layers", 1, "--hidden", 64, "--feed-forward", 64, "--heads", 2,
                                "--kv-heads", 2, "--head-dim", 32, "--vocab", 64, "--positions", 16)
        self.assertEqual([t["variant"] for t in report["timings"] if t["kernel"] == "matmul"], ["q8"])

    def test_load_says_phases_and_memory(self):
        report, out = self.report("load", "-m", self.model, "-c", 64)
        self.assertEqual(list(report["seconds"]), ["open", "tokenizer", "weights", "load", "engine", "first_token", "total"])
        for phase in report["seconds"].values():
            self.spread(phase)
            self.assertGreater(phase["low"], 0)
        self.assertEqual(report["file_bytes"], self.model.stat().st_size)
        self.assertEqual(report["allowed_bytes"], report["file_bytes"] + report["kv_bytes"] + (64 << 20))
        self.assertGreater(report["peak_bytes"], report["weight_bytes"])
        self.assertRegex(out, r"2 loads \(0 from the packed cache\), the file in the page cache\n(.*\n){7}memory at most [\d.]+ MB; file")

    def test_load_from_the_packed_cache(self):
        report, _ = self.report("load", "-m", self.model, "--packed-cache")
        self.assertEqual((report["rounds"], report["from_packed_cache"]), (2, 1))

    def test_bad_options_are_named(self):
        model = ["-m", self.model]
        for arguments, says in ((["cost", *model, "--rows", "0"], "--rows = 0: it must be from 1 to 512"), (["cost", *model, "--rows", "4,513"], "--rows = 513"),
                                (["cost", *model, "-c", "0"], "--contexts = 0"), (["cost", *model, "--chunk", 0], "--chunk = 0"),
                                (["cost", *model, "--prefill", -1], "--prefill = -1"), (["cost", *model, "--repeats", 0], "--repeats = 0"),
                                (["cost", *model, "--cache", "f8"], 'no cache type "f8"'), (["cost", *model, "--isa", "mmx"], '"mmx" .* scalar'),
                                (["cost", "-m", "nofile"], "no file nofile"),
                                (["kernels", "--hidden", 40], "--hidden = 40: it must be a multiple of 32"), (["kernels", "--kinds", "q3"], "--kinds = q3: .* q4_offset"),
                                (["kernels", "--heads", 9, "--kv-heads", 2], "--kv-heads = 2"), (["kernels", "--head-dim", 3], "--head-dim = 3"),
                                (["kernels", "--rows", "-1"], "--rows = -1"), (["kernels", "--positions", 0], "--positions = 0"),
                                (["kernels", "--isa", "mmx"], '"mmx"'), (["kernels", "--layers", 0], "--layers = 0"),
                                (["load", *model, "--repeats", 0], "--repeats = 0"), (["load", *model, "--cache", "f8"], '"f8"'),
                                (["load", "-m", "nofile"], "no file nofile")):
            with self.subTest(arguments):
                self.assertRegex(self.refused("bench", *arguments), says)

    def test_reports_that_cannot_be_written_are_refused_first(self):
        for arguments in (["cost", "-m", self.model], ["kernels"], ["load", "-m", self.model]):
            self.assertRegex(self.refused("bench", *arguments, "--json", "nofolder/r.json"), "nofolder/r.json")
        for bench in ("cost", "load"):
            self.assertRegex(self.refused("bench", bench, "-m", "target.gguf", "--json", "target.gguf"), "would replace")

    def test_learned_positions_end(self):
        self.run_well("random-model", "-o", "learned.gguf", "--architecture", "gpt2", "--context-length", 64)
        self.assertRegex(self.refused("bench", "cost", "-m", "learned.gguf", "-c", 60, "--prefill", 10), "learned positions up to 64")

    def test_control_c_stops_at_once(self):
        for arguments in (["cost", "-m", self.model, "-c", 1000], ["kernels"], ["load", "-m", self.model]):
            run = self.start("bench", *arguments, "--repeats", 1000, "--json", "stopped.json")
            try:
                run.wait(timeout=1)
            except program.subprocess.TimeoutExpired:
                pass
            run.send_signal(signal.SIGINT)
            _, said = run.communicate(timeout=6)  # this machine's speed alone is measured for 10 seconds
            self.assertEqual((run.returncode, said), (130, b"[stopped; nothing was measured to the end]\n"), arguments)
            self.assertFalse((self.work / "stopped.json").exists())


if __name__ == "__main__":
    program.main()
