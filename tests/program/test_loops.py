"""A loop over layers stays a loop, whether its body is one call or is written out."""

import unittest

import numpy as np
from harness import MODELS, TREE, Trainer, save_file
from torch_gpt import random_weights

CONFIG = {"n_layer": 5, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 16}
FLAT = TREE / "tests" / "program" / "models" / "flat_gpt2.c"


def run(source):
    trainer = Trainer({
        "model": {"source": str(source), "config": dict(CONFIG), "weights": "start.safetensors"},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3},
        "training": {"steps": 5},
    })
    (trainer.folder / "corpus.txt").write_bytes(bytes(np.random.default_rng(1).integers(32, 127, 4000).astype(np.uint8)))
    save_file(random_weights(CONFIG, "gpt2", seed=5), trainer.folder / "start.safetensors")
    text = trainer.generate()
    trainer.build()
    return text, [row["loss"] for row in trainer.run()]


class Loops(unittest.TestCase):
    def test_body_written_out(self):
        called, expected = run(MODELS / "gpt2.c")
        written, losses = run(FLAT)
        self.assertEqual(losses, expected, "the same model, the same numbers")
        for text in (called, written):
            self.assertIn("for (int i = 0; i < 5; i++)", text, "forward over layers")
            self.assertIn("for (int i = 4; i >= 0; i--)", text, "backward over layers")
        self.assertLess(len(written.splitlines()), 1.1 * len(called.splitlines()))


if __name__ == "__main__":
    unittest.main()
