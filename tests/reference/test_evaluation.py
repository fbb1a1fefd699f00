"""Accelerate itself against eval_iters: all, metrics and seeds: three of its processes, whose last batches are padded with
samples from the beginning, and gather_for_metrics, which takes those out again; set_seed."""

import pathlib
import tempfile
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator, debug_launcher
from accelerate.utils import set_seed
from peers import trained
from rows import Mlp, Rows
from sklearn.metrics import accuracy_score, f1_score

HELD, BATCH = 25, 4
METRICS = ["accuracy", "f1_macro", "perplexity"]


def gathered(features, labels, weights, out):
    """One of the processes: the losses, predictions and labels of all samples, as gather_for_metrics gives them."""
    accelerator = Accelerator(cpu=True)
    data = torch.utils.data.TensorDataset(torch.tensor(features), torch.tensor(labels))
    model, loader = accelerator.prepare(Mlp(weights).eval(), torch.utils.data.DataLoader(data, batch_size=BATCH))
    found, seen = [], 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            seen += len(y)
            losses = F.cross_entropy(logits, y, reduction="none")
            found.append([t.numpy() for t in accelerator.gather_for_metrics((losses, logits.argmax(1), y))])
    if accelerator.is_main_process:
        columns = [np.concatenate(column) for column in zip(*found)]
        np.savez(out, loss=columns[0], guess=columns[1], label=columns[2], seen=seen)


class Exact(unittest.TestCase):
    def test_gather_for_metrics(self):
        for ranks in (1, 3):
            with self.subTest(ranks=ranks):
                rows = Rows(60, BATCH, 3, training={"eval_interval": 3, "eval_iters": "all", "metrics": METRICS},
                            data={"eval_fraction": 1 - 35.5 / 60, "batch_size": 7}, optimizer={"name": "sgd", "lr": 0.3},
                            devices={"per_node": ranks})
                self.check(rows, trained(rows, ranks)[-1])

    def check(self, rows, row):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "reference.npz"
            arguments = (rows.features[-HELD:], rows.labels[-HELD:], rows.trainer.weights(), str(out))
            debug_launcher(gathered, arguments, num_processes=3)
            found = dict(np.load(out))
        self.assertGreater(3 * found["seen"], HELD, "the reference pads")
        self.assertEqual(len(found["label"]), HELD)
        self.assertLess(abs(row["eval_loss"] / found["loss"].mean() - 1), 1e-6)
        self.assertLess(abs(row["eval_perplexity"] / np.exp(found["loss"].mean()) - 1), 1e-6)
        self.assertAlmostEqual(row["eval_accuracy"], accuracy_score(found["label"], found["guess"]), places=8)
        self.assertAlmostEqual(row["eval_f1_macro"], f1_score(found["label"], found["guess"], average="macro"), places=8)


class Seeds(unittest.TestCase):
    def test_device_specific(self):
        """On one process, whose index is 0, both seeds are the same, there and here."""
        Accelerator(cpu=True)
        set_seed(77, device_specific=True)
        specific = torch.initial_seed()
        set_seed(77)
        self.assertEqual(specific, torch.initial_seed())
        losses = []
        for key in ({}, {"device_specific_seed": True}):
            rows = Rows(30, 3, 4, training={"seed": 77, **key})
            losses.append([row["loss"] for row in rows.run()])
        self.assertEqual(*losses)


if __name__ == "__main__":
    unittest.main()
