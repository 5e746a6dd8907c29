"""The judge itself is sound: checked against what must hold of any such model, and on the real one."""

import os
import tempfile
import unittest

import numpy as np

import architectures
import command
import random_model
import reference
from reference import Cache, Reference


class RandomModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.models = {}
        for arch in random_model.ARCHITECTURES:
            path = os.path.join(cls.folder.name, f"{arch}.gguf")
            random_model.write(path, arch, ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"), seed=7, experts=architectures.facts(arch)["experts"],
                               keys={"attention.sliding_window": 15} if architectures.facts(arch)["window"] else None)
            cls.models[arch] = path
        cls.tokens = np.random.default_rng(3).integers(0, 256, 40)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def each(self, **options):
        for arch, path in self.models.items():
            with self.subTest(arch):
                yield Reference(path, dtype=np.float64, **options)

    def test_a_pass_in_pieces_gives_the_logits_of_one_pass(self):
        for model in self.each():
            whole, cache = model.forward(self.tokens), Cache()
            pieces = [model.forward(part, cache) for part in np.split(self.tokens, [1, 17, 18])]
            np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=0, atol=1e-10)

    def test_a_batch_gives_the_logits_of_each_text(self):
        for model in self.each():
            both = model.forward(np.stack([self.tokens, self.tokens[::-1]]))
            np.testing.assert_allclose(both[1], model.forward(self.tokens[::-1]), rtol=0, atol=1e-10)

    def test_logits_depend_on_the_past_and_not_on_the_future(self):
        for model in self.each():
            changed = self.tokens.copy()
            changed[20] = (changed[20] + 1) % 256
            before, after = model.forward(self.tokens), model.forward(changed)
            np.testing.assert_array_equal(before[:20], after[:20])
            self.assertTrue((np.abs(before[20:] - after[20:]).max(axis=-1) > 1e-3).all())

    def test_scores_depend_on_distance_alone_under_rope(self):
        model = Reference(self.models["llama"], dtype=np.float64)
        q, k = np.random.default_rng(1).normal(size=(2, 1, model.head_dim))
        score = lambda i, j: model.rope(q, np.array([i])) @ model.rope(k, np.array([j])).T
        np.testing.assert_allclose(score(9, 4), score(105, 100), rtol=1e-10)
        self.assertGreater(abs(score(9, 4) - score(9, 5)), 1e-4)

    def test_int8_activations_change_logits_a_little(self):
        for arch, path in self.models.items():
            exact = Reference(path, dtype=np.float64).forward(self.tokens)
            rounded = Reference(path, dtype=np.float64, activations="int8").forward(self.tokens)
            error = np.abs(exact - rounded).mean() / np.abs(exact).mean()
            self.assertTrue(1e-4 < error < 0.1, f"{arch}: {error}")

    def test_models_of_one_seed_are_the_same_file(self):
        again = os.path.join(self.folder.name, "again.gguf")
        random_model.write(again, "qwen2", ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"), seed=7)
        with open(again, "rb") as left, open(self.models["qwen2"], "rb") as right:
            self.assertEqual(left.read(), right.read())

    def test_the_vocabulary_encodes_any_text(self):
        tokenizer = reference.tokenizer(self.models["llama"])
        for text in ("the fox", " naïve 12 tokens\n", "日本"):
            self.assertEqual(tokenizer.decode(tokenizer.encode(text).ids), text)
        self.assertLess(len(tokenizer.encode(" the times").ids), 8)


class Groups(unittest.TestCase):
    def test_codes_are_within_half_a_step_and_ties_go_to_even(self):
        x = np.zeros(64, np.float32)
        x[:4] = 127, 2.5, 3.5, -2.5
        codes, scales = reference.quantize_groups(x)
        self.assertEqual(codes[:4].tolist(), [127, 2, 4, -2])
        self.assertEqual(scales.tolist(), [1, 0])
        self.assertFalse(codes[32:].any())


class SmolLM2(unittest.TestCase):
    def test_completes_text_sensibly(self):
        path = command.real_model()
        model, tokenizer = Reference(path), reference.tokenizer(path)
        answer = tokenizer.decode(model.generate(tokenizer.encode("The capital of France is").ids, 3))
        self.assertIn("Paris", answer)
        answer = tokenizer.decode(model.generate(tokenizer.encode("def fibonacci(n):\n").ids, 40))
        self.assertIn("fibonacci(n - 1) + fibonacci(n - 2)", answer)


if __name__ == "__main__":
    unittest.main()
