"""The gradient scaler against torch.amp.GradScaler in the hands of Accelerate: scale, skipped steps, learning rate and
weights, step by step, under overflows. In float32 a scale near the largest number makes gradients overflow."""

import copy
import re
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from rows import Mlp, Rows


def accelerator_with(scaler, micro, follows):
    """Accelerate makes a scaler for fp16 on a GPU alone; its optimizer and scheduler take one wherever it is."""
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=micro, step_scheduler_with_optimizer=follows)
    accelerator.scaler = scaler
    return accelerator


class LateScaler(torch.amp.GradScaler):
    """DeepSpeed's DynamicLossScaler.update_scale, restated: its counters, by iterations, and its end."""

    def __init__(self, device, hysteresis, consecutive_hysteresis, min_loss_scale, **keys):
        super().__init__(device, **keys)
        self.top = self.left = hysteresis
        self.refills, self.least = consecutive_hysteresis, min_loss_scale
        self.iteration, self.last_overflow = 0, -1
        self.ended = False

    def update(self):
        found = [f.item() for s in self._per_optimizer_states.values() for f in s["found_inf_per_device"].values()]
        scale = self.get_scale()
        if any(found) and self.left == 1:
            self.ended = scale == self.least
            scale = max(scale * self.get_backoff_factor(), self.least)
        elif any(found):
            self.left -= 1
        if any(found):
            self.last_overflow = self.iteration
        else:
            grows = (self.iteration - self.last_overflow) % self.get_growth_interval() == 0
            if grows or self.refills:
                self.left = self.top
            scale *= self.get_growth_factor() if grows else 1
        self.iteration += 1
        super().update(scale)


class FixedScaler(torch.amp.GradScaler):
    """DeepSpeed's LossScaler: update_scale leaves it as it is."""

    def __init__(self, device, dynamic, **keys):
        super().__init__(device, **keys)

    def update(self):
        super().update(self.get_scale())


class Scaler(unittest.TestCase):
    def check(self, steps, optimizer, peer, micro=1, clip=0.0, norm_type="2", spoiled=(), spread=1, training=None,
              follows=True, **scaler):
        keys = scaler if "dynamic" in scaler else {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, **scaler}
        clipping = {"clip_grad_norm": clip, **({"norm_type": "inf"} if norm_type == "inf" else {})} if clip else {}
        rows = Rows(3 * micro * steps, 3, steps=steps, spoiled=spoiled, spread=spread, data={"shuffle": False},
                    accumulation={"num_steps": micro}, optimizer={**optimizer, **clipping},
                    schedule={"name": "exponential", "gamma": 0.9, "step_with_optimizer": follows}, precision={"grad_scaler": {"enabled": True, **keys}},
                    training=training or {})
        metrics = rows.run()
        kind = LateScaler if "hysteresis" in keys else FixedScaler if "dynamic" in keys else torch.amp.GradScaler
        accelerator = accelerator_with(kind("cpu", **keys), micro, follows)
        model = Mlp(rows.weights)
        optimizer = peer(model.parameters())
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
        accelerator.scaler.scale(torch.zeros(()))  # which makes its scale
        skipped = 0
        for step, row in enumerate(metrics):
            self.assertEqual(row["loss_scale"], float(f"{accelerator.scaler.get_scale():.9g}"), f"scale of step {step + 1}")
            self.assertLess(abs(row["lr"] / schedule.get_last_lr()[0] - 1), 1e-8, f"rate of step {step + 1}")
            for i in range(micro):
                x, y = rows.micro_batch(step * micro + i)
                with accelerator.accumulate(model):
                    accelerator.backward(F.cross_entropy(model(x), y))
                    if clip and accelerator.sync_gradients:
                        accelerator.scaler.unscale_(optimizer.optimizer)  # as Accelerate does for fp16
                        torch.nn.utils.clip_grad_norm_(model.parameters(), clip, float(norm_type))
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
            skipped += optimizer.step_was_skipped
            self.assertEqual(row.get("skipped", 0), skipped, f"step {step + 1}")
        self.assertLess(rows.distance(model), 1e-6)
        return skipped, [row["loss_scale"] for row in metrics]

    def test_overflow_from_the_start(self):
        """Down until gradients fit, and up again every third step, by factors that round."""
        skipped, scales = self.check(40, {"name": "adamw", "lr": 0.01, "weight_decay": 0.1},
                                     lambda w: torch.optim.AdamW(w, lr=0.01, weight_decay=0.1), init_scale=3e38,
                                     growth_factor=1.7, backoff_factor=0.3, growth_interval=3)
        self.assertGreater(skipped, 3)
        self.assertTrue(any(b > a for a, b in zip(scales, scales[1:])))

    def test_hysteresis(self):
        """As DeepSpeed's: the scale falls after several overflows alone, and not below the least."""
        for consecutive in (False, True):
            skipped, scales = self.check(40, {"name": "sgd", "lr": 0.001, "weight_decay": 0},
                                         lambda w: torch.optim.SGD(w, lr=0.001), spread=20, init_scale=2.0**127,
                                         growth_interval=4, hysteresis=3, consecutive_hysteresis=consecutive,
                                         min_loss_scale=2.0**100)
            self.assertGreater(skipped, 6)
            self.assertTrue(any(b > a for a, b in zip(scales, scales[1:])))
            self.assertTrue(any(b < a for a, b in zip(scales, scales[1:])))

    def test_least_scale(self):
        """An overflow at the least scale that hysteresis does not wait for ends the run, after the same steps as there."""
        keys = {"init_scale": 2.0**121, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 9, "hysteresis": 2,
                "consecutive_hysteresis": False, "min_loss_scale": 1.5 * 2.0**119}
        rows = Rows(144, 12, steps=12, spread=1e8, data={"shuffle": False}, optimizer={"name": "sgd", "lr": 0.001},
                    precision={"grad_scaler": {"enabled": True, **keys}})
        with self.assertRaisesRegex(AssertionError, "gradients overflow at a loss scale of 9.9.*e.35, the least one") as caught:
            rows.run()
        peer, steps = LateScaler("cpu", **keys), 0
        weight = torch.ones((), requires_grad=True)
        while not peer.ended:
            peer.scale(weight * torch.inf).backward()
            peer.step(torch.optim.SGD([weight], lr=0))
            peer.update()
            steps += 1
        self.assertEqual(steps, int(re.search(r"step (\d+): gradients", str(caught.exception))[1]))

    def test_accumulation(self):
        """Found by the largest element; gradients clipped."""
        skipped, _ = self.check(20, {"name": "sgd", "lr": 0.001, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0},
                                lambda w: torch.optim.SGD(w, lr=0.001, momentum=0.9, dampening=0.5), micro=3, clip=0.3,
                                norm_type="inf", init_scale=3e38, growth_factor=9.0, growth_interval=2, spread=20)
        self.assertGreater(skipped, 1)

    def test_float16(self):
        """Where overflows are everyday: a scaler without a word, from a scale that is far too large. PyTorch comes down to
        a scale that fits within two steps of ours, whose gradients of weights are float32 and overflow later."""
        scaler = {"init_scale": 2.0**24, "growth_interval": 1000}
        rows = Rows(90, 3, steps=30, data={"shuffle": False}, precision={"mixed_precision": "fp16", "grad_scaler": scaler},
                    optimizer={"name": "sgd", "lr": 0.05, "weight_decay": 0})
        last = rows.run()[-1]
        model = Mlp(rows.weights)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        peer = torch.amp.GradScaler("cpu", **scaler)
        for step in range(30):
            x, y = rows.micro_batch(step)
            with torch.autocast("cpu", torch.float16):
                loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            peer.scale(loss).backward()
            peer.step(optimizer)
            peer.update()
        self.assertGreaterEqual(last["skipped"], 5)
        self.assertIn(last["loss_scale"] / peer.get_scale(), (1, 2, 4))
        self.assertEqual(last["loss_scale"], 2.0 ** (24 - last["skipped"]))

    def test_resumes(self):
        """A run that is resumed has the scale, its tracker and the count of skipped steps, and ends bit by bit the same."""
        groups = {"optimizer": {"name": "nadam", "lr": 0.01}, "schedule": {"name": "linear"}, "checkpoint": {"every": 5},
                  "accumulation": {"num_steps": 3, "normalize": "tokens"},
                  "precision": {"grad_scaler": {"enabled": True, "init_scale": 3e38, "growth_factor": 1.7,
                                                "backoff_factor": 0.3, "growth_interval": 2, "hysteresis": 2}}}
        whole, parts = (Rows(60, 3, steps=12, spread=20, **copy.deepcopy(groups)) for _ in range(2))
        wanted = whole.run()
        self.assertGreater(wanted[-1]["skipped"], wanted[4]["skipped"])
        parts.run("--steps", "5")
        metrics = parts.trainer.run("--resume", "auto")
        for key in ("loss", "loss_scale", "skipped", "lr"):
            self.assertEqual([row[key] for row in metrics[-7:]], [row[key] for row in wanted[-7:]], key)
        after = parts.trainer.weights()
        for name, value in whole.trainer.weights().items():
            np.testing.assert_array_equal(after[name], value)

    def test_no_overflow(self):
        """Gradients of a tiny part of themselves come through."""
        skipped, scales = self.check(12, {"name": "adam", "lr": 0.01, "weight_decay": 0}, lambda w: torch.optim.Adam(w, lr=0.01), clip=0.5,
                                     init_scale=1e-8, growth_factor=10.0, growth_interval=1)
        self.assertEqual(skipped, 0)
        self.assertAlmostEqual(scales[-1] / 1e3, 1, 5)

    def test_fixed(self):
        """A scale that never moves, next to a rate that moves at skipped steps, too."""
        skipped, scales = self.check(12, {"name": "sgd", "lr": 0.01, "weight_decay": 0}, lambda w: torch.optim.SGD(w, lr=0.01), spread=20,
                                     follows=False, init_scale=2.0**126, dynamic=False)
        self.assertTrue(1 < skipped < 12)
        self.assertEqual(set(scales), {float(f"{2.0**126:.9g}")})

    def test_losses_that_are_not_finite(self):
        skipped, scales = self.check(12, {"name": "sgd", "lr": 0.01, "weight_decay": 0}, lambda w: torch.optim.SGD(w, lr=0.01),
                                     spoiled=[13, 14], training={"on_nonfinite": "skip"})
        self.assertEqual((skipped, scales[-1]), (1, 32768))


if __name__ == "__main__":
    unittest.main()
