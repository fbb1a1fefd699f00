"""accumulation.normalize: tokens. Micro-batches that count by unequal numbers of targets give the loss and the gradient of
one big batch of them all, in float64."""

import math
import pathlib
import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from rows import GENERATOR, SEED, Mlp, Rows, Trainer, relative, save_file, windows

MODELS = pathlib.Path(__file__).resolve().parent / "models"
LENGTH, WIDTH, IGNORED, BATCH = 5, 7, 97, 2
RATE = 64.0


def corpus():
    """Bytes of which about half are ignored, and after them windows of nothing else."""
    rng = np.random.default_rng(4)
    ragged = np.where(rng.random(8 * BATCH * LENGTH) < 0.5, IGNORED, rng.integers(98, 123, 8 * BATCH * LENGTH))
    return np.concatenate([ragged, np.full(4 * BATCH * LENGTH + 1, IGNORED)]).astype(np.uint8).tobytes()


class Bytes(unittest.TestCase):
    def prepare(self, steps=1, z=False, **groups):
        weights = {"embedding.weight": (256, WIDTH), "hidden.weight": (WIDTH, WIDTH), "hidden.bias": (WIDTH,),
                   "head.weight": (256, WIDTH), "head.bias": (256,)}
        generator = torch.Generator().manual_seed(3)
        weights = {k: (torch.randn(shape, generator=generator) * 0.5).numpy() for k, shape in weights.items()}
        job = {
            "model": {"source": str(MODELS / "ignoring.c"), "weights": "start.safetensors",
                      "config": {"width": WIDTH, "ignored": IGNORED, "block_size": LENGTH, "z": z, "smoothing": 0.0}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": BATCH, "eval_fraction": 0,
                     "shuffle": False},
            "optimizer": {"name": "sgd", "lr": RATE, "weight_decay": 0.0},
            "training": {"steps": steps, "seed": SEED},
            "accumulation": {"num_steps": 9, "normalize": "tokens"},
        }
        for group, keys in groups.items():
            job.setdefault(group, {}).update(keys)
        trainer = Trainer(job)
        (trainer.folder / "corpus.txt").write_bytes(corpus())
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build()
        return trainer, weights

    def one_big_batch(self, weights, first, count, z=False):
        """The loss, in float64, and the weights with their gradients."""
        w = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in weights.items()}
        batches = windows(corpus(), LENGTH, BATCH, SEED, False, 0)
        tokens, targets = (torch.tensor(np.concatenate(x)) for x in zip(*(batches(first + i) for i in range(count))))
        x = torch.tanh(w["embedding.weight"][tokens] @ w["hidden.weight"].T + w["hidden.bias"])
        logits = (x @ w["head.weight"].T + w["head.bias"]).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED)
        if z:
            loss = loss + 0.01 * (logits.logsumexp(1)[targets.flatten() != IGNORED] ** 2).mean()
        loss.backward()
        return loss.item(), w

    def check(self, count=9, z=False, **groups):
        """The first step, of `count` micro-batches, the ninth of which counts nothing."""
        trainer, weights = self.prepare(z=z, **groups)
        row = trainer.run()[0]
        loss, w = self.one_big_batch(weights, 0, count, z)
        self.assertLess(abs(row["loss"] / loss - 1), 1e-6)
        norm = math.sqrt(sum((x.grad**2).sum().item() for x in w.values()))
        self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-6)
        after = trainer.weights()
        for name, x in w.items():
            gradient = (weights[name].astype(np.float64) - after[name]) / RATE
            self.assertLess(relative(gradient, x.grad.numpy()), 1e-6, name)

    def test_ragged(self):
        self.check()

    def test_other_forms_of_the_loss(self):
        self.check(z=True)

    def test_one_micro_batch(self):
        self.check(count=1, accumulation={"num_steps": 1})

    def test_short_step(self):
        """Twelve micro-batches are all there are of an epoch."""
        self.check(count=12, accumulation={"num_steps": 20})

    def test_with_a_scaler(self):
        self.check(precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0}})

    def test_a_step_that_counts_nothing(self):
        """Its loss and gradient are 0, and plain descent stays where it is."""
        for micro in (1, 3):
            with self.subTest(micro=micro):
                trainer, _ = self.prepare(steps=12 // micro, accumulation={"num_steps": micro})
                metrics = trainer.run()
                self.assertEqual([metrics[-1]["loss"], metrics[-1]["grad_norm"]], [0, 0])
                after = trainer.weights()
                trainer.run("--steps", str(12 // micro - 1))
                for name, value in trainer.weights().items():
                    np.testing.assert_array_equal(value, after[name])

    def test_batches_are_something_else(self):
        with self.assertRaises(AssertionError):
            self.check(count=8, accumulation={"num_steps": 8, "normalize": "batches"})


class Table(unittest.TestCase):
    def prepare(self, form, count, **accumulation):
        return Rows(count, 4, steps=1, model=MODELS / "weighted.c", config={"width": 9, "form": form},
                    data={"label": "value", "shuffle": False}, optimizer={"name": "sgd", "lr": RATE, "weight_decay": 0.0},
                    accumulation={"normalize": "tokens", **accumulation})

    def check(self, form, count, micro):
        rows = self.prepare(form, count, num_steps=micro)
        if form == 0:
            rows.features[4:8, 0] = -1  # a micro-batch that counts nothing
            rows.write_data()
        row = rows.run()[0]
        model = Mlp(rows.weights).double()
        x = torch.tensor(rows.features[:count], dtype=torch.float64)
        squares = (model(x) ** 2).sum(1)
        (squares[x[:, 0] > 0] if form == 0 else squares).mean().backward()
        norm = math.sqrt(sum((p.grad**2).sum().item() for p in model.parameters()))
        self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-6)
        after = rows.trainer.weights()
        for name, p in model.named_parameters():
            gradient = (rows.weights[name].astype(np.float64) - after[name]) / RATE
            self.assertLess(relative(gradient, p.grad.numpy()), 1e-6, name)

    def test_mean_over_chosen_rows(self):
        self.check(0, 24, 6)

    def test_mean_over_all_rows(self):
        """Every micro-batch weighs the same, so that only a short step is another than by batches."""
        self.check(1, 12, 5)

    def test_refused(self):
        for form, what in ((2, "this one is a sum"), (3, "add changes it to something else")):
            rows = self.prepare(form, 24, num_steps=2)
            done = subprocess.run([GENERATOR, rows.trainer.path, "-o", "-"], capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"a loss must be one mean over samples for micro-batches to count by tokens; {what}",
                          done.stderr)
            self.assertIn("weighted.c:", done.stderr)
            self.assertIn("accumulation.normalize: batches", done.stderr)


if __name__ == "__main__":
    unittest.main()
