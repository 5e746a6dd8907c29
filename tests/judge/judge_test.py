"""The judge can say no: it accepts right answers and rejects ones that are wrong in a way that has happened."""

import math
import os
import pathlib
import tempfile
import unittest

import numpy as np

import kl_judge
import layers_judge
import logits_judge
import random_model
import reference


class Logits(unittest.TestCase):
    def test_float32_roundings_pass_and_a_different_norm_epsilon_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.gguf")
            random_model.write(path, "llama", ("F32",), seed=5)
            tokens = np.arange(100)
            exact = reference.Reference(path, dtype=np.float64).forward(tokens)
            single = reference.Reference(path, dtype=np.float32)
            self.assertLess(logits_judge.relative_error(single.forward(tokens), exact), logits_judge.LIMIT)
            single.eps *= 100
            self.assertGreater(logits_judge.relative_error(single.forward(tokens), exact), logits_judge.LIMIT)

    def test_nan_is_never_good(self):
        error = logits_judge.relative_error(np.array([[np.nan, 1]]), np.array([[1.0, 1]]))
        self.assertFalse(error <= logits_judge.LIMIT)


class Layers(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(2).normal(size=(50, 96)).astype(np.float32)
        self.x[3, 32:64] = 0
        self.codes, self.scales = reference.quantize_groups(self.x)

    def test_right_codes_pass(self):
        self.assertIsNone(layers_judge.code_problem(self.x, self.codes, self.scales))

    def test_one_code_off_by_one_is_found(self):
        self.codes[7, 11] += 1 if self.codes[7, 11] < 0 else -1
        self.assertIn("1 of", layers_judge.code_problem(self.x, self.codes, self.scales))

    def test_truncation_instead_of_rounding_is_found(self):
        steps = self.x.reshape(50, 3, 32) / np.where(self.scales, self.scales, 1)[..., None]
        codes = np.trunc(steps).astype(np.int8).reshape(50, 96)
        self.assertIn("codes are wrong", layers_judge.code_problem(self.x, codes, self.scales))

    def test_a_power_of_two_scale_is_found(self):
        scales = 2.0 ** np.ceil(np.log2(np.maximum(self.scales, 1e-9)))
        self.assertIn("scales", layers_judge.code_problem(self.x, self.codes, scales.astype(np.float32)))

    def test_matmuls_are_matched_to_their_tensors_and_missing_outputs_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.gguf")
            random_model.write(path, "llama", ("Q8_0", "F32"), seed=5, layers=1)
            file = reference.File(path)
            for number, name in enumerate(sorted(layers_judge.matrices(file))):
                weights = file.weight(name).astype(np.float64)
                x = np.random.default_rng(number).normal(size=(5, weights.shape[1])).astype(np.float32)
                stem = pathlib.Path(folder) / f"{number:03}_{name}"
                np.save(f"{stem}.in.npy", x)
                if file.quantised(name):
                    codes, scales = reference.quantize_groups(x)
                    np.save(f"{stem}.codes.npy", codes)
                    np.save(f"{stem}.scales.npy", scales)
                    x = reference.dequantize_groups(codes, scales)
                np.save(f"{stem}.out.npy", (x @ weights.T).astype(np.float32))
            count, names, worst, problems = layers_judge.judge(file, folder)
            self.assertEqual((problems, names), ([], layers_judge.matrices(file)))
            self.assertLess(worst, 1e-5)
            np.save(f"{stem}.out.npy", (x @ weights.T * 1.001).astype(np.float32))
            self.assertEqual(len(layers_judge.judge(file, folder)[3]), 1)


class Divergence(unittest.TestCase):
    def test_kl_is_zero_for_equal_logits_and_known_for_a_shifted_coin(self):
        logits = np.log(np.array([[0.5, 0.5]]))
        self.assertEqual(kl_judge.mean_kl(logits, logits), 0)
        other = np.log(np.array([[0.25, 0.75]]))
        expected = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
        self.assertAlmostEqual(kl_judge.mean_kl(logits, other + 3), expected)

    def test_perplexity_scores_the_second_half_of_each_window(self):
        class Uniform:
            head = None
            hidden_rows = staticmethod(lambda batch: np.zeros((*batch.shape, 10)))
            matmul = staticmethod(lambda rows, head: rows)
        windows = np.zeros((5, kl_judge.WINDOW), int)
        perplexity, count = kl_judge.reference_perplexity(Uniform(), windows)
        self.assertAlmostEqual(perplexity, 10)
        self.assertEqual(count, 5 * 255)


if __name__ == "__main__":
    unittest.main()
