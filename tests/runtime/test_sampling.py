"""The choice of a token: what is left to choose from against the processors of transformers, and how often each is
chosen against the softmax in float64."""

import ctypes
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from transformers import (RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

TREE = pathlib.Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SEED", random.randrange(1_000_000)))
VOCABULARY = 211


class Sampler(ctypes.Structure):
    _fields_ = [("temperature", ctypes.c_double), ("top_k", ctypes.c_int64), ("top_p", ctypes.c_double),
                ("penalty", ctypes.c_double), ("seed", ctypes.c_uint64)]


def floats(array):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


class Sampling(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", flush=True)
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            library = pathlib.Path(folder) / "sampler.so"
            sources = [TREE / "runtime" / name for name in ("generation/sampler.c", "random/philox.c")]
            subprocess.run(["cc", "-std=c17", "-O2", "-shared", "-fPIC", "-I", TREE, *sources, "-o", library, "-lm"], check=True)
            cls.library = ctypes.CDLL(library)
        cls.library.rt_least_logit.restype = ctypes.c_float
        cls.library.rt_sample.restype = ctypes.c_int64

    def setUp(self):
        self.rng = np.random.default_rng(SEED)

    def penalized(self, sampler, logits, text):
        out = logits.copy()
        tokens = np.array(text, np.int32)
        self.library.rt_penalize(ctypes.byref(sampler), tokens.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
                                 ctypes.c_int64(len(tokens)), floats(logits), floats(out))
        return out

    def least(self, sampler, logits):
        return self.library.rt_least_logit(ctypes.byref(sampler), floats(logits), ctypes.c_int64(len(logits)),
                                           floats(np.empty_like(logits)))

    def draw(self, sampler, logits, index):
        return self.library.rt_sample(ctypes.byref(sampler), floats(logits), ctypes.c_int64(len(logits)),
                                      ctypes.c_uint64(index), floats(self.scratch))

    def sampler(self):
        rng = self.rng
        return Sampler(rng.uniform(0.3, 2), rng.choice([0, rng.integers(1, VOCABULARY + 5)]),
                       rng.choice([1, rng.uniform(0.05, 0.99)]), rng.choice([1, rng.uniform(0.5, 2)]), 7)

    def test_what_is_left(self):
        """The same tokens, but where rounding decides whether one more belongs to the nucleus."""
        for _ in range(300):
            sampler, logits = self.sampler(), self.rng.normal(0, 3, VOCABULARY).astype(np.float32)
            text = self.rng.integers(0, VOCABULARY, self.rng.integers(1, 40))
            scores, ids = torch.tensor(logits)[None], torch.tensor(text)[None]
            scores = RepetitionPenaltyLogitsProcessor(sampler.penalty)(ids, scores)
            ours = self.penalized(sampler, logits, text)
            np.testing.assert_array_equal(ours, scores[0].numpy())
            scores = TemperatureLogitsWarper(sampler.temperature)(ids, scores)
            if sampler.top_k > 0:
                scores = TopKLogitsWarper(int(sampler.top_k))(ids, scores)
            before = scores.double()
            if sampler.top_p < 1:
                scores = TopPLogitsWarper(sampler.top_p)(ids, scores)
                cumulative = before.softmax(1)[0].sort(descending=True).values.cumsum(0)
                if (cumulative - sampler.top_p).abs().min() < 1e-5:
                    continue
            np.testing.assert_array_equal(ours >= self.least(sampler, ours), torch.isfinite(scores[0]).numpy())

    def test_how_often(self):
        """Pearson's statistic of 20,000 draws is within 5 deviations of its mean."""
        draws = 20000
        self.scratch = np.empty(VOCABULARY, np.float32)
        for top_k, top_p in ((0, 1), (12, 1), (0, 0.8), (30, 0.9)):
            sampler = Sampler(1.3, top_k, top_p, 1, SEED)
            logits = self.rng.normal(0, 2, VOCABULARY).astype(np.float32)
            kept = logits >= self.least(sampler, logits)
            probabilities = np.where(kept, np.exp((logits.astype(np.float64) - logits.max()) / 1.3), 0)
            expected = draws * probabilities / probabilities.sum()
            seen = np.bincount([self.draw(sampler, logits, i) for i in range(draws)], minlength=VOCABULARY)
            self.assertEqual(seen[~kept].sum(), 0)
            often = expected >= 5
            rest = draws - expected[often].sum()
            statistic = ((seen - expected)[often] ** 2 / expected[often]).sum()
            if rest > 5:
                statistic += (seen[~often].sum() - rest) ** 2 / rest
            freedom = often.sum()
            self.assertLess(abs(statistic - freedom), 5 * (2 * freedom) ** 0.5 + 5)


if __name__ == "__main__":
    unittest.main()
