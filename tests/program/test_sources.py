"""The same samples from other files: arrays as from a table, shards as from one file; and what a job cannot name."""

import subprocess
import unittest

import numpy as np
from harness import GENERATOR, MODELS, QUICK, Trainer


def table(data, **training):
    return Trainer({"model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 1, "width": 5, "n_classes": 3}},
                    "data": {"batch_size": 4, "features": 6, **data}, "training": {"seed": 3, **training}})


def build(trainer):
    subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True,
                   env=QUICK)


class Sources(unittest.TestCase):
    def test_arrays(self):
        """Bit by bit what the same numbers give from a table; and in several files, for whole epochs."""
        rng = np.random.default_rng(1)
        images, labels = rng.integers(256, size=(30, 2, 3)).astype(np.uint8), rng.integers(3, size=30)
        runs = {}
        for name, train in (("table", {"path": "rows.csv", "format": "csv"}),
                            ("array", {"path": "x.npy", "labels": "y.npy", "format": "npy"}),
                            ("pattern", {"path": "x-*.npy", "labels": "y-*.npy", "format": "npy"}),
                            ("list", {"path": ["x-0.npy", "x-1.npy"], "labels": ["y-0.npy", "y-1.npy"], "format": "npy"})):
            trainer = table({"train": train, "eval_fraction": 0}, epochs=2)
            rows = [",".join(map(str, row.ravel())) + f",{label}" for row, label in zip(images, labels)]
            (trainer.folder / "rows.csv").write_text("\n".join(rows))
            np.save(trainer.folder / "x.npy", images)
            np.save(trainer.folder / "y.npy", labels)
            for i, part in enumerate((slice(0, 12), slice(12, 30))):
                np.save(trainer.folder / f"x-{i}.npy", images[part])
                np.save(trainer.folder / f"y-{i}.npy", labels[part].astype(np.int32))
            build(trainer)
            runs[name] = [(row["loss"], row["grad_norm"]) for row in trainer.run()]
        self.assertEqual(len(runs["table"]), 14)
        for name, metrics in runs.items():
            self.assertEqual(metrics, runs["table"], name)

    def test_read_ahead(self):
        """Changes nothing but the time that batches take, which is measured."""
        losses = {}
        for prefetch in (0, 1, 3):
            trainer = Trainer({
                "model": {"source": str(MODELS / "gru_bytes.c"),
                          "config": {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 3}},
                "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 4, "prefetch": prefetch},
                "training": {"steps": 40, "seed": 3}})
            (trainer.folder / "corpus.txt").write_bytes(np.random.default_rng(2).bytes(5000))
            build(trainer)
            metrics = trainer.run()
            self.assertTrue(all(0 < row["input_wait_ms"] <= row["step_ms"] for row in metrics))
            losses[prefetch] = [row["loss"] for row in metrics]
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[3])

    def test_no_other_file_of_rows(self):
        trainer = table({"train": {"path": "x.npy", "labels": "y.npy", "format": "npy"}}, steps=1)
        build(trainer)
        with self.assertRaises(AssertionError) as raised:
            trainer.run("--data", "z.npy")
        self.assertIn("'labels' is in a file of its own, which a flag cannot name", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
