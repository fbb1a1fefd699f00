"""Columns of rows that a model looks something up by: a trainer refuses data that holds other numbers there before it
trains, with the position of the first one, and takes what a loss leaves out; what it trains on gives PyTorch's losses."""

import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from harness import FAST, TRAIN, TREE, Order, Trainer, save_file
from test_models import Curve, random_weights

SEED, STEPS, BATCH, ROWS = 7, 10, 6, 60
VOCABULARY, PLACES, WIDTH, CLASSES = 30, 7, 8, 3
SHAPES = [("tokens.weight", (VOCABULARY, WIDTH), 0.4), ("positions.weight", (PLACES, WIDTH), 0.4),
          ("output.weight", (CLASSES, WIDTH), 0.4), ("output.bias", (CLASSES,), 0.1),
          ("extra.weight", (CLASSES, WIDTH), 0.4), ("extra.bias", (CLASSES,), 0.1)]


def total(w, features, labels):
    """tests/program/models/columns.c, in PyTorch."""
    index = features.long()
    x = w["tokens.weight"][index[:, :4]].sum(1) + w["positions.weight"][index[:, 4:6]].sum(1) + features[:, 7:8]
    return (F.cross_entropy(F.linear(x, w["output.weight"], w["output.bias"]), labels)
            + F.cross_entropy(F.linear(x, w["extra.weight"], w["extra.bias"]), index[:, 6]))


class Indices(Curve):
    def setUp(self):
        rng = np.random.default_rng(5)
        self.rows = np.concatenate([
            rng.integers(0, VOCABULARY, (ROWS, 4)), rng.integers(0, PLACES, (ROWS, 2)),
            rng.choice([0, 1, 2, -100], (ROWS, 1)), rng.integers(-3, 3, (ROWS, 1)),
            rng.choice([0, 1, 2, -100], (ROWS, 1))], axis=1)

    def write_table(self, trainer, name, changed=None):
        rows = [[str(x) for x in row] for row in self.rows]
        for (row, column), text in (changed or {}).items():
            rows[row][column] = text
        (trainer.folder / name).write_text("".join(",".join(row) + "\n" for row in rows))
        return name

    def trainer(self, model, train, features, **config):
        return Trainer({
            "model": {"source": str(model), "config": config},
            "data": {"train": train, "features": features, "batch_size": BATCH, "eval_fraction": 0},
            "optimizer": {"name": "adamw", "lr": 3e-3, "weight_decay": 0.01},
            "training": {"steps": STEPS, "seed": SEED},
        })

    def columns(self, **train):
        trainer = self.trainer(TREE / "tests/program/models/columns.c", train, 8, vocab_size=VOCABULARY, positions=PLACES,
                               width=WIDTH, classes=CLASSES)
        self.write_table(trainer, "rows.csv")
        return trainer

    def refusal(self, trainer, *flags):
        ended = subprocess.run([trainer.folder / "trainer", *flags], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertFalse((trainer.folder / "run/metrics.jsonl").exists())
        return ended.stderr

    def test_text(self):
        trainer = self.columns(path="rows.csv", format="csv")
        weights = random_weights(SHAPES)
        trainer.job["model"]["weights"] = "start.safetensors"
        trainer.write()
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build(cflags=FAST)
        for (row, column), text, message in (
                ((7, 2), "30", "line 8, column 3: 30 is not a whole number below 30 from 0 on\n"),
                ((0, 0), "-1", "line 1, column 1: -1 is not a whole number below 30 from 0 on\n"),
                ((1, 3), "0.5", "line 2, column 4: 0.5 is not a whole number below 30 from 0 on\n"),
                ((1, 3), "-100", "line 2, column 4: -100 is not a whole number below 30 from 0 on\n"),
                ((1, 4), "7", "line 2, column 5: 7 is not a whole number below 7 from 0 on\n"),
                ((1, 5), "16777217", "line 2, column 6: 16777217 is not a whole number below 7 from 0 on\n"),
                ((9, 6), "-1", "line 10, column 7: -1 is not a whole number below 3 from 0 on, nor -100, which the loss "
                               "leaves out\n"),
                ((9, 8), "3", "line 10: label 3 is not a class number below 3, nor -100, which the loss leaves out\n")):
            name = self.write_table(trainer, "wrong.csv", {(row, column): text})
            self.assertIn(f"wrong.csv: {message}", self.refusal(trainer, "--data", name))
        metrics = trainer.run()
        order = Order(SEED, TRAIN, True, 0, ROWS, batch=BATCH)

        def batches(step):
            rows = self.rows[[order.start(step * BATCH + i) for i in range(BATCH)]]
            return torch.tensor(rows[:, :8], dtype=torch.float32), torch.tensor(rows[:, 8])

        self.compare(metrics, batches, total, weights,
                     lambda w: torch.optim.AdamW(w, lr=3e-3, weight_decay=0.01), trainer, 1e-5)

    def test_arrays(self):
        trainer = self.columns(path="x.npy", labels="y.npy", format="npy")
        trainer.build(cflags=FAST)
        for column, number, message in ((1, 1 << 40, "x.npy: row 5, column 2: 1099511627776 is not a whole number below 30"),
                                     (8, -1, "y.npy: row 5: label -1 is not a class number below 3, nor -100")):
            rows = self.rows.copy()
            rows[4, column] = number
            np.save(trainer.folder / "x.npy", rows[:, :8])
            np.save(trainer.folder / "y.npy", rows[:, 8])
            self.assertIn(message, self.refusal(trainer))
        np.save(trainer.folder / "x.npy", self.rows[:, :8])
        np.save(trainer.folder / "y.npy", self.rows[:, 8])
        self.assertEqual(len(trainer.run()), STEPS)

    def test_arguments(self):
        """What is known of an argument of a call is held against what the called function asks of it."""
        trainer = self.columns(path="rows.csv", format="csv")
        source = (TREE / "tests/program/models/columns.c").read_text()
        changed = source.replace("cast_index(columns(features, 0, 4), c.vocab_size)", "cast_index(columns(features, 0, 4), 31)")
        (trainer.folder / "columns.c").write_text(changed)
        trainer.job["model"]["source"] = "columns.c"
        trainer.write()
        output = trainer.command("job.yaml", "-o", "trainer.c", status=2)
        self.assertIn("'look_up' takes this as an index within 0 and 29, and it is 30 at one position", output)


if __name__ == "__main__":
    unittest.main()
