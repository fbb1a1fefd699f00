"""Emitted trainers against PyTorch, from the same weights and the same batches: loss and gradients of the first step
against float64, loss curves of 100 AdamW steps against float32."""

import math
import subprocess
import unittest

import numpy as np
import torch
from harness import FAST, GENERATOR, MODELS, Trainer, relative, save_file, windows
from rotation import rotating
from torch_gpt import Gpt, random_weights

torch.set_num_threads(2)
SEED = 1337
# 90 batches of five windows an epoch, so that two micro-batches are of one epoch.
CORPUS = (bytes(np.random.default_rng(7).integers(97, 123, 9000).astype(np.uint8)) + open(MODELS / "gpt2.c", "rb").read())[:12100]
CONFIG = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}


def make_job(kind, weights_path, optimizer, steps, **more):
    job = {
        "model": {"source": str(MODELS / f"{kind}.c"), "config": dict(CONFIG), "weights": str(weights_path)},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 5},
        "optimizer": optimizer,
        "training": {"steps": steps, "seed": SEED},
    }
    for group, keys in more.items():
        job.setdefault(group, {}).update(keys)
    return job


def prepare(kind, optimizer, steps, cflags=None, **more):
    """A built trainer with random weights and the corpus next to it; the weights; the batches."""
    weights = random_weights(CONFIG, kind, seed=3)
    trainer = Trainer(make_job(kind, "start.safetensors", optimizer, steps, **more))
    (trainer.folder / "corpus.txt").write_bytes(CORPUS)
    save_file(weights, trainer.folder / "start.safetensors")
    trainer.build(cflags=cflags)
    data = more.get("data", {})
    batches = windows(CORPUS, CONFIG["block_size"], data.get("batch_size", 5), SEED, data.get("shuffle", True), 0.1)
    return trainer, weights, batches


def tensors(batch):
    return [torch.tensor(x) for x in batch]


class FirstStep(unittest.TestCase):
    """A step of plain descent with a large rate gives the gradient back: (before - after) / rate."""

    def check(self, model, **more):
        rate = 1024.0
        trainer, weights, batches = prepare(model, {"name": "sgd", "lr": rate, "weight_decay": 0.0}, 1, FAST, **more)
        metrics = trainer.run()
        truth = Gpt(weights, CONFIG, model, torch.float64)
        micro = more.get("accumulation", {}).get("num_steps", 1)
        loss = sum(truth.loss(*tensors(batches(i))) for i in range(micro)) / micro
        loss.backward()
        self.assertLess(abs(metrics[0]["loss"] / loss.item() - 1), 1e-6, "loss")
        norm = math.sqrt(sum((w.grad**2).sum().item() for w in truth.w.values()))
        self.assertLess(abs(metrics[0]["grad_norm"] / norm - 1), 1e-5, "gradient norm")
        after = trainer.weights()
        self.assertEqual(set(after), set(weights))
        for name, before in weights.items():
            gradient = (before.astype(np.float64) - after[name]) / rate
            self.assertLess(relative(gradient, truth.w[name].grad.numpy()), 1e-5, f"gradient of {name}")

    def test_gpt2(self):
        self.check("gpt2")

    def test_nanogpt(self):
        self.check("nanogpt")

    def test_in_file_order(self):
        self.check("gpt2", data={"shuffle": False})

    def test_four_micro_batches(self):
        self.check("gpt2", accumulation={"num_steps": 4})


class Curve(unittest.TestCase):
    def check(self, model, **more):
        optimizer = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 1.0, "betas": [0.9, 0.95]}
        schedule = {"name": "cosine", "warmup_steps": 20, "min_lr": 1e-4}
        trainer, weights, batches = prepare(model, optimizer, 100, schedule=schedule, **more)
        metrics = trainer.run()
        self.assertEqual(len(metrics), 100)
        peer = Gpt(weights, CONFIG, model)
        adam = torch.optim.AdamW(peer.w.values(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
        micro = more.get("accumulation", {}).get("num_steps", 1)
        for step, row in enumerate(metrics):
            done = min(max((step - 20) / 80, 0), 1)
            rate = (1e-4 + 0.5 * 9e-4 * (1 + math.cos(math.pi * done))) * min((step + 1) / 20, 1)
            self.assertLess(abs(row["lr"] / rate - 1), 1e-6, f"rate of step {step + 1}")
            adam.param_groups[0]["lr"] = rate
            adam.zero_grad()
            total = 0.0
            for i in range(micro):
                loss = peer.loss(*tensors(batches(step * micro + i))) / micro
                loss.backward()
                total += loss.item()
            norm = torch.nn.utils.clip_grad_norm_(peer.w.values(), 1.0).item()
            adam.step()
            self.assertLess(abs(row["loss"] / total - 1), 1e-4, f"loss of step {step + 1}")
            self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-3, f"gradient norm of step {step + 1}")
        after = trainer.weights()
        for name, value in peer.w.items():
            self.assertLess(relative(after[name], value.detach().numpy()), 1e-3, f"{name} after 100 steps")

    def test_gpt2(self):
        self.check("gpt2")

    def test_nanogpt(self):
        self.check("nanogpt")

    def test_two_micro_batches(self):
        self.check("gpt2", accumulation={"num_steps": 2})


class PackedWeights(unittest.TestCase):
    """Matmuls that keep weights packed for a step's micro-batches take those that the update before left, in evaluations too."""

    MICRO, STEPS = 18, 3

    def trainer(self, **more):
        return prepare("nanogpt", {"name": "adamw", "lr": 1e-2, "weight_decay": 0.0}, self.STEPS,
                       accumulation={"num_steps": self.MICRO}, **more)

    def test_steps(self):
        trainer, weights, batches = self.trainer()
        self.assertIn("accel_forget_packed", trainer.generate())
        subprocess.run([GENERATOR, "audit", trainer.folder / "trainer.c"], check=True, stdout=subprocess.DEVNULL)
        peer = Gpt(weights, CONFIG, "nanogpt")
        adam = torch.optim.AdamW(peer.w.values(), lr=1e-2, weight_decay=0.0)
        for step, row in enumerate(trainer.run()):
            adam.zero_grad()
            losses = [peer.loss(*tensors(batches(step * self.MICRO + i))) / self.MICRO for i in range(self.MICRO)]
            for loss in losses:
                loss.backward()
            adam.step()
            self.assertLess(abs(row["loss"] / sum(loss.item() for loss in losses) - 1), 1e-5, f"loss of step {step + 1}")

    def test_evaluations(self):
        training = {"eval_interval": 1, "eval_iters": 2, "ema": {"decay": 0.5, "evaluate": True}}
        packed, plain = (self.trainer(training={**training, "deterministic": plain})[0].run() for plain in (False, True))
        for ours, other in zip(packed, plain):
            self.assertLess(abs(ours["eval_loss"] / other["eval_loss"] - 1), 1e-5)


class Dropout(unittest.TestCase):
    """A step number fixes the masks, so the loss is a function of the weights whose slope along any direction the
    gradient must give: masks of forward and backward, and of every call and layer, agree."""

    def test_slope(self):
        rate = 1024.0
        config = dict(CONFIG, dropout=0.3)
        trainer, weights, _ = prepare("gpt2", {"name": "sgd", "lr": rate, "weight_decay": 0.0}, 1, FAST,
                                      model={"config": config})

        def loss_at(values):
            save_file(values, trainer.folder / "start.safetensors")
            return trainer.run()[0]["loss"]

        plain = loss_at(weights)
        after = trainer.weights()
        gradient = {k: (weights[k].astype(np.float64) - after[k]) / rate for k in weights}
        norm = math.sqrt(sum((g**2).sum() for g in gradient.values()))
        step = 0.002 / norm
        ends = [loss_at({k: (w + sign * step * gradient[k] / norm).astype(np.float32) for k, w in weights.items()})
                for sign in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        self.assertLess(abs(slope / norm - 1), 5e-3, "the slope along the gradient")
        self.assertNotEqual(plain, ends[0])

    def test_evaluation_has_none(self):
        """Evaluated where nothing was learned, the loss is that of the model without dropout."""
        config = dict(CONFIG, dropout=0.5)
        losses = []
        for chosen in (config, CONFIG):
            trainer, _, _ = prepare("gpt2", {"name": "sgd", "lr": 1e-12, "weight_decay": 0.0}, 1, FAST,
                                    model={"config": dict(chosen)}, training={"eval_interval": 1, "eval_iters": 3})
            losses.append(trainer.run()[0]["eval_loss"])
        self.assertAlmostEqual(losses[0], losses[1], places=5)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
