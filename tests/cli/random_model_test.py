"""coppice random-model: models of any shape that the program and others can read, the same bytes every time."""

import os
import resource
import signal

import gguf

import program


class RandomModel(program.Case):
    def make(self, name, *options):
        self.run_well("random-model", "-o", name, *options)
        return gguf.GGUFReader(self.work / name)

    def value(self, reader, key):
        return reader.fields[key].contents()

    def test_the_shape_is_the_one_asked_for(self):
        reader = self.make("shape.gguf", "--hidden", 96, "--layers", 3, "--heads", 6, "--kv-heads", 2, "--feed-forward", 160, "--vocab", 300,
                           "--context-length", 77, "--formats", "Q4_1,Q8_0", "--embedding-format", "F16", "--untied")
        self.assertEqual([self.value(reader, "llama." + key) for key in ("embedding_length", "block_count", "feed_forward_length",
                          "attention.head_count", "attention.head_count_kv", "context_length")], [96, 3, 160, 6, 2, 77])
        tensors = {t.name: (t.tensor_type.name, [int(n) for n in t.shape]) for t in reader.tensors}
        self.assertEqual(tensors["token_embd.weight"], ("F16", [96, 300]))
        self.assertEqual(tensors["output.weight"], ("F16", [96, 300]))
        self.assertEqual(tensors["blk.2.attn_k.weight"][1], [96, 32])
        self.assertEqual({tensors[f"blk.{i}.{role}.weight"][0] for i in range(3) for role in ("attn_q", "ffn_up", "ffn_down")}, {"Q4_1", "Q8_0"})

    def test_generate_runs_on_every_architecture_and_format(self):
        for number, arguments in enumerate((["--formats", "Q4_0"], ["--formats", "Q4_1", "--untied"], ["--formats", "Q8_0,F16,BF16,F32"],
                                            ["--architecture", "gpt2"], ["--architecture", "gpt2", "--head-dim", 32, "--embedding-format", "F32"])):
            with self.subTest(arguments):
                self.make(f"{number}.gguf", *arguments)
                answer = self.generate("--ignore-eos", model=f"{number}.gguf", tokens=8)
                self.assertEqual(len(answer["ids"]), 8)

    def test_the_same_options_give_the_same_bytes(self):
        said, _ = self.run_well("random-model", "-o", "a.gguf", "--seed", 7, "-t", 1)
        self.run_well("random-model", "-o", "b.gguf", "--seed", 7, "-t", 2)
        self.run_well("random-model", "-o", "c.gguf", "--seed", 8)
        a, b, c = ((self.work / name).read_bytes() for name in ("a.gguf", "b.gguf", "c.gguf"))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)
        self.assertRegex(said, r"\Aa.gguf: 0\.\d million parameters, 0\.\d MB\n\Z")

    def test_shapes_that_cannot_be_are_refused_by_name(self):
        for options, says in ((["--hidden", 40], r"--hidden = 40: it must be a multiple of 32"), (["--hidden", -32], "--hidden = -32"),
                              (["--vocab", 259], "--vocab = 259: it must be from 260"), (["--layers", 0], "--layers = 0"),
                              (["--heads", 7], "--head-dim = 9: it must be even"), (["--kv-heads", 3], "--kv-heads = 3: it must be a divisor of the 4"),
                              (["--head-dim", 6], "--head-dim = 6: .* 4 heads are a multiple of 32"), (["--feed-forward", 33], "--feed-forward = 33"),
                              (["--context-length", 0], "--context-length = 0"), (["--formats", "Q9_9"], "--formats = Q9_9: .* there is .*Q4_0"),
                              (["--embedding-format", "Q9"], "--embedding-format = Q9"), (["--architecture", "mamba"], "--architecture = mamba: .* llama, gpt2"),
                              (["--heads", 1 << 30], "--heads = 1073741824"), (["--seed", -1], "--seed"), (["--threads", 5000], "--threads")):
            with self.subTest(options):
                self.assertRegex(self.refused("random-model", "-o", "no.gguf", *options), says)
                self.assertFalse((self.work / "no.gguf").exists())

    def test_what_cannot_be_written_leaves_nothing(self):
        self.assertRegex(self.refused("random-model", "-o", "nofolder/a.gguf"), "nofolder/a.gguf")
        self.assertRegex(self.refused("random-model"), "--output is required")
        before = set(os.listdir(self.work))
        self.assertRegex(self.refused("random-model", "-o", "big.gguf", limits=[(resource.RLIMIT_FSIZE, 4096)]), "big.gguf: .*File too large")
        self.assertEqual(set(os.listdir(self.work)), before)

    def test_control_c_leaves_nothing(self):
        before = set(os.listdir(self.work))
        run = self.start("random-model", "-o", "large.gguf", "--hidden", 8192, "--layers", 200)
        while run.poll() is None and not set(os.listdir(self.work)) - before:
            pass
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=program.TIMEOUT)
        self.assertEqual((run.returncode, said), (130, b"[stopped; nothing was written]\n"))
        self.assertEqual(set(os.listdir(self.work)), before)


if __name__ == "__main__":
    program.main()
