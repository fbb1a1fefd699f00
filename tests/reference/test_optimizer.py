"""Optimizer, schedule and clipping under Accelerate itself: the reference prepares optimizer and scheduler and trains the
same model from the same weights on the same batches, and losses, rates, norms and weights are compared."""

import pathlib
import sys
import unittest
import warnings

import torch
from accelerate import Accelerator

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "optimizer")]

import numpy as np  # noqa: E402
from harness import FAST, relative  # noqa: E402
from test_against_torch import without_keys  # noqa: E402
from test_parity import prepare, tensors  # noqa: E402
from torch_gpt import Gpt  # noqa: E402

STEPS = 30
CONFIG = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}
torch.set_num_threads(1)


class Optimizer(unittest.TestCase):
    def check(self, keys, schedule, make, scheduler, clip):
        trainer, weights, batches = prepare("gpt2", keys, STEPS, FAST, schedule=schedule)
        metrics = trainer.run()
        accelerator = Accelerator(cpu=True)
        peer = Gpt(weights, CONFIG, "gpt2")
        plain = make(list(peer.w.values()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer, rates = accelerator.prepare(plain, scheduler(plain))
            for step, row in enumerate(metrics):
                rate = rates.get_last_lr()[0]
                loss = peer.loss(*tensors(batches(step)))
                accelerator.backward(loss)
                norm = clip(accelerator, peer.w.values())
                optimizer.step()
                rates.step()
                optimizer.zero_grad()
                self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
                self.assertLess(abs(row["lr"] - rate), 1e-6 * keys["lr"], f"rate of step {step + 1}")
                if norm is not None:
                    self.assertLess(abs(row["grad_norm"] / norm.item() - 1), 1e-3, f"norm of step {step + 1}")
        after = trainer.weights()
        whole = [np.concatenate([without_keys(key, w[key]) for key in weights])
                 for w in (after, {key: w.detach().numpy() for key, w in peer.w.items()})]
        self.assertLess(relative(*whole), 1e-4, "the weights")

    def test_adamw_cosine_norm(self):
        self.check({"name": "adamw", "lr": 1e-3, "clip_grad_norm": 0.5}, {"name": "cosine"},
                   lambda params: torch.optim.AdamW(params, lr=1e-3),
                   lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS),
                   lambda accelerator, params: accelerator.clip_grad_norm_(params, 0.5))

    def test_sgd_step_value(self):
        self.check({"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "clip_grad_value": 0.01},
                   {"name": "step", "gamma": 0.5, "step_size": 7},
                   lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True),
                   lambda o: torch.optim.lr_scheduler.StepLR(o, 7, 0.5),
                   lambda accelerator, params: accelerator.clip_grad_value_(params, 0.01))


if __name__ == "__main__":
    unittest.main()
