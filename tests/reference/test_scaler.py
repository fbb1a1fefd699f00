"""The gradient scaler beside torch.amp.GradScaler in the hands of Accelerate: scale, skipped steps, learning rate and
weights, step by step, under overflows. In float32 a scale near the largest number makes gradients overflow."""

import unittest

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from rows import Mlp, Rows


def accelerator_with(scaler, micro):
    """Accelerate makes a scaler for fp16 on a GPU alone; its optimizer and scheduler take one wherever it is."""
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=micro)
    accelerator.scaler = scaler
    return accelerator


class Scaler(unittest.TestCase):
    def check(self, steps, optimizer, peer, micro=1, clip=0.0, norm_type="2", spoiled=(), spread=1, training=None,
              **scaler):
        keys = {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, **scaler}
        clipping = {"clip_grad_norm": clip, **({"norm_type": "inf"} if norm_type == "inf" else {})} if clip else {}
        rows = Rows(3 * micro * steps, 3, steps=steps, spoiled=spoiled, spread=spread, data={"shuffle": False},
                    accumulation={"num_steps": micro}, optimizer={**optimizer, **clipping},
                    schedule={"name": "exponential", "gamma": 0.9}, precision={"grad_scaler": {"enabled": True, **keys}},
                    training=training or {})
        metrics = rows.run()
        accelerator = accelerator_with(torch.amp.GradScaler("cpu", **keys), micro)
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

    def test_accumulation(self):
        """Found by the largest element; gradients clipped."""
        skipped, _ = self.check(20, {"name": "sgd", "lr": 0.001, "momentum": 0.9, "dampening": 0.5, "weight_decay": 0},
                                lambda w: torch.optim.SGD(w, lr=0.001, momentum=0.9, dampening=0.5), micro=3, clip=0.3,
                                norm_type="inf", init_scale=3e38, growth_factor=9.0, growth_interval=2, spread=20)
        self.assertGreater(skipped, 1)

    def test_no_overflow(self):
        """Gradients of a tiny part of themselves come through."""
        skipped, scales = self.check(12, {"name": "adam", "lr": 0.01, "weight_decay": 0}, lambda w: torch.optim.Adam(w, lr=0.01), clip=0.5,
                                     init_scale=1e-8, growth_factor=10.0, growth_interval=1)
        self.assertEqual(skipped, 0)
        self.assertAlmostEqual(scales[-1] / 1e3, 1, 5)

    def test_losses_that_are_not_finite(self):
        skipped, scales = self.check(12, {"name": "sgd", "lr": 0.01, "weight_decay": 0}, lambda w: torch.optim.SGD(w, lr=0.01),
                                     spoiled=[13, 14], training={"on_nonfinite": "skip"})
        self.assertEqual((skipped, scales[-1]), (1, 32768))


if __name__ == "__main__":
    unittest.main()
