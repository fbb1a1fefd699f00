"""Which tokens' gradients a row of an embedding's gradient adds up, and in which order: the kernel of a program alone, over
tokens of which one is everywhere and most are rare, against NumPy. The kernel runs as C++ on the processor (tests/cuda/host),
its threads from the first to the last and from the last to the first."""

import ctypes
import os
import re
import unittest

import numpy as np
from host import CXX, HostTrainer, alone, compile_all, headers
from test_training import TEXT, case, write_data

VOCABULARY, WIDTH = 2900, 300  # several rows of a block, columns that do not fill one
CONFIG = {"n_layer": 1, "n_head": 3, "n_embd": WIDTH, "vocab_size": VOCABULARY, "block_size": 100}
TOKENS = 1300  # that one look of the kernel at 1024 does not cover


class Embedding(unittest.TestCase):
    def built(self):
        """The library of the program's kernels, each of which is done when its launcher returns."""
        trainer = HostTrainer(case("gpt2", CONFIG, {**TEXT, "batch_size": 13, "sequence_length": 100}), [])
        write_data(trainer.folder, 1)
        trainer.generate()
        compile_all(["g++", *CXX, "-shared", "-fPIC", headers(), "-x", "c++", trainer.folder / "trainer.cu", "-x", "none", *alone(),
                     "-o", trainer.folder / "kernels.so"])
        return trainer.folder, (trainer.folder / "trainer.cu").read_text()

    def test_order(self):
        folder, text = self.built()
        name = re.search(r'extern "C" void (embedding_backward_add_\w+)\(', text).group(1)
        rng = np.random.default_rng(1)
        tokens = rng.integers(0, VOCABULARY, TOKENS).astype(np.int32)
        tokens[rng.random(TOKENS) < 0.4] = 7
        tokens[[0, 1023, 1024, TOKENS - 1]] = VOCABULARY - 1
        dy = rng.normal(size=(TOKENS, WIDTH)).astype(np.float32)
        before = rng.normal(size=(VOCABULARY, WIDTH)).astype(np.float32)
        sums = np.zeros_like(before)
        np.add.at(sums, tokens, dy)  # one after the other
        exact = np.where(np.isin(np.arange(VOCABULARY), tokens)[:, None], before + sums, before)
        for order in ("", "reversed"):
            os.environ["HOST_ORDER"] = order
            copy = folder / f"kernels_{order}.so"  # with an order of its own
            copy.write_bytes((folder / "kernels.so").read_bytes())
            found = before.copy()
            getattr(ctypes.CDLL(str(copy)), name)(*(ctypes.c_void_p(x.ctypes.data) for x in (found, dy, tokens)))
            np.testing.assert_array_equal(found, exact, order)


if __name__ == "__main__":
    unittest.main()
