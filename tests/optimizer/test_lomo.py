"""lomo, whose step is a part of the backward: without clipping it is PyTorch's SGD, and what it saves is what the plan
says and what a process does not take."""

import math
import unittest

import torch
from parts import generate, make_job, plan

import numpy as np
from harness import relative  # tests/program
from test_figures import MIB, make, peak
from test_parity import prepare, tensors
from torch_gpt import Gpt

STEPS = 50
RATE = 0.1
CONFIG = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}
torch.set_num_threads(1)


def lomo(**more):
    return {"name": "lomo", "lr": RATE, **more}


class Parity(unittest.TestCase):
    def check(self, kind="gpt2", clip=None, frozen=(), **more):
        keys = lomo(**({"clip_grad_value": clip} if clip else {}))
        trainer, weights, batches = prepare(kind, keys, STEPS, **more)
        metrics = trainer.run()
        peer = Gpt(weights, CONFIG, kind, torch.float64)
        trained = [w for key, w in peer.w.items() if key not in frozen]
        for key in frozen:
            peer.w[key].requires_grad_(False)
        optimizer = torch.optim.SGD(trained, lr=RATE)
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            loss = peer.loss(*tensors(batches(step)))
            loss.backward()
            norm = math.sqrt(sum((w.grad**2).sum().item() for w in trained))
            self.assertLess(abs(row["grad_norm"] / norm - 1), 2e-5, f"norm of step {step + 1}")
            if clip:
                torch.nn.utils.clip_grad_value_(trained, clip)
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-6, f"loss of step {step + 1}")
        after = trainer.weights()
        for key, weight in peer.w.items():
            moved = relative(after[key], weight.detach().numpy())
            self.assertLess(moved, 5e-6, f"{key} after {STEPS} steps")
            self.assertEqual(np.array_equal(after[key], weights[key]), key in frozen, key)

    def test_gpt2(self):
        """Its embedding is tied to its last layer, so that its gradient is stored."""
        self.check()

    def test_nanogpt_clipped(self):
        self.check("nanogpt", clip=1e-3)

    def test_checkpointing(self):
        self.check(memory={"activation_checkpointing": "all"})

    def test_frozen(self):
        names = [f"h.{i}.ln_1.{kind}" for i in range(3) for kind in ("weight", "bias")]
        self.check(frozen=names, model={"freeze": ["*.ln_1.*"]})

    def test_equals_sgd(self):
        """Bit by bit, where nothing is clipped."""
        after = []
        for name in ("sgd", "lomo"):
            trainer, _, _ = prepare("gpt2", {"name": name, "lr": RATE}, 5)
            trainer.run()
            after.append(trainer.weights())
        for key, weight in after[0].items():
            np.testing.assert_array_equal(weight, after[1][key], key)


class Memory(unittest.TestCase):
    def test_nothing_is_left(self):
        job = make_job(optimizer=lomo())
        job["model"]["config"].update(width=67, n_layer=3)
        self.assertEqual(plan(job)["arena_bytes"]["gradients"], 0)
        self.assertNotIn("all_gradients", generate(job))

    def test_what_is_shared_is_left(self):
        trainer, weights, _ = prepare("gpt2", lomo(), 1)
        self.assertEqual(trainer.plan()["arena_bytes"]["gradients"], weights["wte.weight"].nbytes)

    def test_peak(self):
        """Peak = plan + the constant of a process, as tests/program/test_figures.py has it; less than sgd's by about the
        gradients of all layers."""
        one = make(1, 64, 8, 3, optimizer=lomo())
        constant = peak(one) - one.plan()["arena_bytes"]["total"]
        found, figures = {}, {}
        for name in ("sgd", "lomo"):
            trainer = make(48, 64, 8, 3, optimizer={"name": name, "lr": 1e-3})
            figures[name] = trainer.plan()["arena_bytes"]
            found[name] = peak(trainer) - constant
            self.assertLess(abs(found[name] - figures[name]["total"]), max(0.01 * figures[name]["total"], MIB / 2), name)
        gradients = figures["sgd"]["gradients"]
        print(f"{gradients / MIB:.2f} MiB of gradients, {(found['sgd'] - found['lomo']) / MIB:.2f} MiB less taken")
        self.assertGreater(found["sgd"] - found["lomo"], 0.9 * gradients)


if __name__ == "__main__":
    unittest.main()
