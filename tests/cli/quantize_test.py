"""coppice quantize and imatrix: what a model written again in another format holds, judged by the gguf package."""

import os
import re
import resource
import struct
import unittest

import program
from program import formats, gguf

import numpy as np

FORMATS = formats.names()
# Error of a weight beside its spread, at most, on the bell-shaped weights of a random model; of all others that of zeros.
ERROR = {"F32": 0, "F16": 1e-3, "BF16": 4e-3, "Q8_0": 0.01, "Q6_K": 0.02, "Q5_K": 0.04, "Q5_0": 0.06, "Q5_1": 0.05, "Q4_K": 0.08, "Q4_0": 0.12,
         "Q4_1": 0.1, "IQ4_NL": 0.09, "IQ4_XS": 0.09, "MXFP4": 0.13, "Q3_K": 0.16, "Q2_K": 0.32}


def read(path):
    """-> {name: (format, float values)}, {key: value}"""
    reader = gguf.GGUFReader(path)
    tensors = {t.name: (t.tensor_type.name, gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float64)) for t in reader.tensors}
    return tensors, {field.name: field.contents() for field in reader.fields.values() if not field.name.startswith("GGUF.")}


def split(source, prefix, count):
    """The tensors of `source` in `count` files, as splitters name them."""
    reader = gguf.GGUFReader(source)
    for part in range(count):
        writer = gguf.GGUFWriter(f"{prefix}-{part + 1:05}-of-{count:05}.gguf", "llama")
        if part == 0:
            for field in reader.fields.values():
                if field.name.startswith("GGUF.") or field.name == "general.architecture":
                    continue
                kind = field.types[0]
                writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None)
        writer.add_uint16("split.no", part)
        writer.add_uint16("split.count", count)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for i, tensor in enumerate(reader.tensors):
            if i % count == part:
                writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


class Quantize(program.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wide = cls.work / "wide.gguf"
        made = cls.run_bytes("random-model", "-o", cls.wide, "--hidden", 256, "--layers", 4, "--feed-forward", 512, "--formats", "F32",
                             "--embedding-format", "F32")
        assert made.returncode == 0, made.stderr
        cls.values, cls.keys = read(cls.wide)

    def quantize(self, source, target, *arguments):
        out, _ = self.run_well("quantize", source, target, *arguments)
        return out

    def error(self, name, tensors):
        expected, got = self.values[name][1], tensors[name][1]
        return float(np.sqrt(np.mean((got - expected) ** 2)) / np.std(expected))

    def test_every_format_holds_the_weights_and_keeps_the_keys(self):
        for name in FORMATS:
            with self.subTest(name):
                self.quantize("wide.gguf", f"{name}.gguf", name)
                tensors, keys = read(self.work / f"{name}.gguf")
                self.assertEqual(list(tensors), list(self.values))
                for tensor, (kind, _) in tensors.items():
                    vector = tensor.endswith("norm.weight")
                    self.assertEqual(kind, "F32" if vector else name, tensor)
                    self.assertLessEqual(self.error(tensor, tensors), 0 if vector else ERROR.get(name, 1.0), tensor)
                for key, value in self.keys.items():
                    self.assertEqual(keys[key], value, key)
                self.assertEqual(keys["general.quantization_version"], 2)
                self.assertEqual(keys["general.file_type"], gguf.LlamaFileType[
                    {"F32": "ALL_F32", "Q3_K": "MOSTLY_Q3_K_S", "Q4_K": "MOSTLY_Q4_K_S", "Q5_K": "MOSTLY_Q5_K_S",
                     "MXFP4": "MOSTLY_MXFP4_MOE"}.get(name, "MOSTLY_" + name)])
                answer = self.generate("--ignore-eos", model=f"{name}.gguf", tokens=4)
                self.assertEqual(len(answer["ids"]), 4)

    def test_what_is_in_the_format_already_is_copied(self):
        for name in ("Q4_0", "Q4_K", "Q6_K"):
            self.quantize("wide.gguf", "once.gguf", name)
            self.quantize("once.gguf", "again.gguf", name, "-t", 1)
            self.assertEqual((self.work / "once.gguf").read_bytes(), (self.work / "again.gguf").read_bytes())

    def test_threads_change_nothing(self):
        for name in ("Q4_K_M", "IQ4_XS"):
            self.quantize("wide.gguf", "one.gguf", name, "-t", 1)
            self.quantize("wide.gguf", "three.gguf", name, "-t", 3)
            self.assertEqual((self.work / "one.gguf").read_bytes(), (self.work / "three.gguf").read_bytes())

    def test_any_format_is_read(self):
        self.quantize("wide.gguf", "eight.gguf", "Q8_0")
        self.quantize("eight.gguf", "four.gguf", "q4_k")
        self.quantize("four.gguf", "wide_again.gguf", "F16")
        four, _ = read(self.work / "four.gguf")
        again, _ = read(self.work / "wide_again.gguf")
        for name, (_, values) in four.items():
            np.testing.assert_allclose(again[name][1], values, atol=1e-6, rtol=1e-3)

    def test_a_mix_gives_more_bits_where_its_table_says(self):
        said = self.quantize("wide.gguf", "mix.gguf", "Q4_K_M")
        tensors, keys = read(self.work / "mix.gguf")
        self.assertEqual(keys["general.file_type"], gguf.LlamaFileType.MOSTLY_Q4_K_M)
        self.assertEqual(tensors["token_embd.weight"][0], "Q6_K")  # it is the head
        self.assertEqual(tensors["blk.1.attn_q.weight"][0], "Q4_K")
        for block in range(4):  # four blocks have no eighths: every third
            better = "Q6_K" if block == 2 else "Q4_K"
            self.assertEqual(tensors[f"blk.{block}.attn_v.weight"][0], better)
            self.assertEqual(tensors[f"blk.{block}.ffn_down.weight"][0], better)
        self.assertRegex(said, r"token_embd.weight .* F32 -> Q6_K +\(the embedding is the head\)\n")
        self.assertRegex(said, r"output_norm.weight .* F32 +\(a vector\)\n")
        self.assertRegex(said, r"mix.gguf: \d+\.\d MB, was \d+\.\d MB\n\Z")

    def test_widths_that_are_no_whole_blocks_fall_back_and_say_so(self):
        self.run_well("random-model", "-o", "narrow.gguf", "--hidden", 64, "--feed-forward", 256, "--formats", "F16")
        for name, instead in (("Q4_K", "Q5_0"), ("Q5_K", "Q5_1"), ("Q6_K", "Q8_0"), ("Q2_K", "IQ4_NL"), ("Q3_K", "IQ4_NL"), ("IQ4_XS", "IQ4_NL")):
            said = self.quantize("narrow.gguf", "fallen.gguf", name)
            tensors, _ = read(self.work / "fallen.gguf")
            self.assertEqual(tensors["blk.0.attn_q.weight"][0], instead)
            self.assertEqual(tensors["blk.0.ffn_down.weight"][0], name)
            self.assertRegex(said, rf"blk.0.attn_q.weight .* F16 -> {instead} +\({name} needs rows of a multiple of 256, these have 64\)\n")

    def test_named_tensors_keep_the_format_they_are_given(self):
        self.quantize("wide.gguf", "kept.gguf", "Q4_0", "--keep", "blk.*.attn_v.weight=Q8_0", "--keep", "token_embd.weight=F16")
        tensors, _ = read(self.work / "kept.gguf")
        self.assertEqual(tensors["blk.3.attn_v.weight"][0], "Q8_0")
        self.assertEqual(tensors["token_embd.weight"][0], "F16")
        self.assertEqual(tensors["blk.3.attn_q.weight"][0], "Q4_0")

    def test_a_split_model_becomes_one_file(self):
        split(self.wide, self.work / "parts", 3)
        whole = self.generate("--ignore-eos", model="wide.gguf", tokens=8)
        self.assertEqual(self.generate("--ignore-eos", model="parts-00002-of-00003.gguf", tokens=8)["ids"], whole["ids"])
        self.quantize("parts-00003-of-00003.gguf", "joined.gguf", "Q8_0")
        self.quantize("wide.gguf", "direct.gguf", "Q8_0")
        joined, keys = read(self.work / "joined.gguf")
        direct, _ = read(self.work / "direct.gguf")
        self.assertEqual(set(joined), set(direct))
        for name in direct:
            np.testing.assert_array_equal(joined[name][1], direct[name][1])
        self.assertNotIn("split.count", keys)
        self.assertRegex(self.refused("quantize", "parts-00001-of-00003.gguf", "parts-00002-of-00003.gguf", "Q8_0"), "would replace")
        (self.work / "parts-00002-of-00003.gguf").unlink()
        self.assertRegex(self.refused("quantize", "parts-00001-of-00003.gguf", "joined.gguf", "Q8_0"), "parts-00002-of-00003.gguf: cannot open")

    def older_matrix(self, path, entries):
        with open(path, "wb") as out:
            out.write(struct.pack("<i", len(entries)))
            for name, calls, means in entries:
                out.write(struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, len(means)))
                out.write((np.asarray(means, np.float32) * calls).tobytes())
            out.write(struct.pack("<ii", 1, 4) + b"text")

    def test_an_importance_matrix_moves_the_error_to_what_matters_less(self):
        name = "blk.0.ffn_up.weight"
        means = np.exp(np.random.default_rng(1).normal(size=256) * 2).astype(np.float32)
        self.older_matrix(self.work / "old.dat", [(name, 5, means)])
        writer = gguf.GGUFWriter(self.work / "new.gguf", "imatrix")
        writer.add_tensor(name + ".in_sum2", (means * 7).reshape(1, 256))
        writer.add_tensor(name + ".counts", np.full((1, 1), 7, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        expected = self.values[name][1]
        for format in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"):
            errors = {}
            for matrix in (None, "old.dat", "new.gguf"):
                said = self.quantize("wide.gguf", "m.gguf", format, *(["--imatrix", matrix] if matrix else []))
                tensors, keys = read(self.work / "m.gguf")
                errors[matrix] = float((((tensors[name][1] - expected) ** 2) * means).sum())
                if matrix:
                    self.assertRegex(said, rf"{matrix}: importances of 1 of the \d+ tensors that change\n")
                    self.assertEqual(keys["quantize.imatrix.file"], matrix)
            self.assertLess(errors["old.dat"], 0.98 * errors[None], format)
            self.assertAlmostEqual(errors["new.gguf"] / errors["old.dat"], 1, delta=0.01)

    def test_an_importance_matrix_is_measured_on_a_text(self):
        (self.work / "text.txt").write_text("the quick brown fox jumps over the lazy dog " * 30)
        said, _ = self.run_well("imatrix", "-m", "wide.gguf", "-f", "text.txt", "-o", "measured.gguf", "-c", 64, "--chunks", 3, "-t", 1)
        self.assertRegex(said, r"\Ameasured.gguf: importances of 29 tensors, from 192 tokens in 3 chunks\n\Z")
        tensors, keys = read(self.work / "measured.gguf")
        self.assertEqual(keys["general.type"], "imatrix")
        self.assertEqual(keys["imatrix.chunk_count"], 3)
        self.assertEqual(tensors["blk.0.attn_q.weight.counts"][1].item(), 192)
        self.assertEqual(tensors["blk.0.ffn_down.weight.in_sum2"][1].shape, (1, 512))
        for name in ("attn_q", "attn_k", "attn_v"):  # of one input
            np.testing.assert_array_equal(tensors[f"blk.1.{name}.weight.in_sum2"][1], tensors["blk.1.attn_q.weight.in_sum2"][1])
        said = self.quantize("wide.gguf", "m.gguf", "Q4_K", "--imatrix", "measured.gguf")
        self.assertRegex(said, r"measured.gguf: importances of 29 of the 29 tensors that change\n")

    def test_experts_have_importances_of_their_own(self):
        self.run_well("random-model", "-o", "experts.gguf", "--experts", 4, "--hidden", 64, "--feed-forward", 64, "--formats", "F16")
        (self.work / "text.txt").write_text("the quick brown fox jumps over the lazy dog " * 5)
        self.run_well("imatrix", "-m", "experts.gguf", "-f", "text.txt", "-o", "experts.imatrix", "-c", 32, "-t", 1)
        measured, _ = read(self.work / "experts.imatrix")
        name = "blk.0.ffn_up_exps.weight"
        counts = measured[name + ".counts"][1].reshape(-1)
        self.assertEqual(measured[name + ".in_sum2"][1].shape, (4, 64))
        self.assertEqual(counts.sum(), 2 * measured["blk.0.attn_q.weight.counts"][1].item())  # two experts a token
        np.testing.assert_allclose(measured[name + ".in_sum2"][1].sum(), 2 * measured["blk.0.ffn_gate_inp.weight.in_sum2"][1].sum(), rtol=1e-5)
        plain = self.quantize("experts.gguf", "plain.gguf", "Q4_0")
        said = self.quantize("experts.gguf", "known.gguf", "Q4_0", "--imatrix", "experts.imatrix")
        self.assertRegex(plain, r"blk.0.ffn_gate_inp.weight .*\(chooses experts\)\n")
        self.assertRegex(said, r"experts.imatrix: importances of (\d+) of the \1 tensors that change\n")
        before, known = (read(self.work / f"{part}.gguf")[0][name][1] for part in ("plain", "known"))
        expected = read(self.work / "experts.gguf")[0][name][1]
        means = (measured[name + ".in_sum2"][1] / np.maximum(counts, 1)[:, None])[:, None, :]
        self.assertLess((means * (known - expected) ** 2).sum(), (means * (before - expected) ** 2).sum())
        self.assertEqual(len(self.generate("--ignore-eos", model="known.gguf", tokens=4)["ids"]), 4)

    def test_what_cannot_be_is_refused_by_name(self):
        (self.work / "cut.dat").write_bytes(struct.pack("<ii", 1, 3) + b"abc")
        self.older_matrix(self.work / "other.dat", [("blk.0.attn_q.weight", 1, [1.0, 2.0])])
        self.older_matrix(self.work / "negative.dat", [("blk.0.attn_q.weight", 1, [-1.0] * 256)])
        for arguments, says in ((["Q9_9"], r"format = Q9_9: there is no such format; there is F32, .*MXFP4.*and the mixes Q3_K_S, .*Q5_K_M"),
                                (["Q4_0", "--keep", "nothing=Q8_0"], "--keep = nothing=Q8_0: .*wide.gguf has no tensor with this name"),
                                (["Q4_0", "--keep", "output.weight"], "--keep = output.weight: NAME=FORMAT would be right"),
                                (["Q4_0", "--keep", "*attn_q.weight=Q1"], "--keep = Q1: there is no such format"),
                                (["Q4_0", "--imatrix", "nofile"], "nofile: cannot open"), (["Q4_0", "--imatrix", "cut.dat"], "cut.dat: has 1 for the number of entries at byte 0, and 7 bytes follow"),
                                (["Q4_0", "--imatrix", "wide.gguf"], "wide.gguf: holds no importance of any tensor"),
                                (["Q4_0", "--imatrix", "other.dat"], "other.dat: blk.0.attn_q.weight has 2 importances, .* measured on another model"),
                                (["Q4_0", "--imatrix", "negative.dat"], "negative.dat: blk.0.attn_q.weight: an importance is -1"),
                                (["Q4_0", "-t", 2000], "--threads")):
            with self.subTest(arguments):
                self.assertRegex(self.refused("quantize", "wide.gguf", "no.gguf", *arguments), says)
                self.assertFalse((self.work / "no.gguf").exists())
        self.assertRegex(self.refused("quantize", "wide.gguf", "wide.gguf", "Q4_0"), "would replace")
        self.assertRegex(self.refused("quantize", "wide.gguf"), "say what to read, what to write and the format")

    def test_values_that_are_not_finite_are_named(self):
        bytes = bytearray(self.wide.read_bytes())
        reader = gguf.GGUFReader(self.wide)
        tensor = next(t for t in reader.tensors if t.name == "blk.2.attn_k.weight")
        at = tensor.data_offset + 4 * 256 * 3
        bytes[at:at + 4] = struct.pack("<f", np.inf)
        (self.work / "infinite.gguf").write_bytes(bytes)
        self.assertRegex(self.refused("quantize", "infinite.gguf", "no.gguf", "Q4_K"), "tensor blk.2.attn_k.weight has a value in row 3 that is not finite")

    def test_what_cannot_be_written_leaves_nothing(self):
        before = set(os.listdir(self.work))
        self.assertRegex(self.refused("quantize", "wide.gguf", "nofolder/a.gguf", "Q4_0"), "nofolder")
        self.assertRegex(self.refused("quantize", "wide.gguf", "big.gguf", "Q8_0", limits=[(resource.RLIMIT_FSIZE, 4096)]), "big.gguf: .*File too large")
        self.assertEqual(set(os.listdir(self.work)), before)

    def test_the_list_has_every_format(self):
        said, _ = self.run_well("quantize", "--list")
        rows = re.findall(r"^(\S+) +(\d+\.\d\d)", said, re.MULTILINE)
        self.assertEqual({name for name, _ in rows} - {"Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M"}, set(FORMATS))
        for name, bits in rows:
            if name in FORMATS:
                values, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
                self.assertAlmostEqual(float(bits), 8 * size / values, delta=0.006)


if __name__ == "__main__":
    program.main()
