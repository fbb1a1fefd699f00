"""Steps whose loss or gradient is not finite: the run stops before the weights change, or continues without them, as a
PyTorch loop does that leaves optimizer and schedule alone in such a step."""

import math
import unittest

import torch
import torch.nn.functional as F
from rows import Mlp, Rows

ADAMW = {"name": "adamw", "lr": 0.01, "weight_decay": 0.1}
IN_ORDER = {"shuffle": False}


class Skip(unittest.TestCase):
    def check(self, micro, **groups):
        """Micro-batches 3 and 4 hold a row that overflows."""
        rows = Rows(40, 2, steps=20 // micro, spoiled=[7, 8], data=IN_ORDER, accumulation={"num_steps": micro},
                    training={"on_nonfinite": "skip"}, schedule={"name": "linear", "warmup_steps": 3},
                    optimizer={**ADAMW, "clip_grad_norm": 0.5}, **groups)
        metrics = rows.run()
        model = Mlp(rows.weights)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        skipped = 0
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            total = 0.0
            for i in range(micro):
                x, y = rows.micro_batch(step * micro + i)
                loss = F.cross_entropy(model(x), y) / micro
                loss.backward()
                total += loss.item()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
            taken = step - skipped
            rate = 0.01 * min((taken + 1) / 3, 1) * (1 - max(taken - 3, 0) / (len(metrics) - 3))
            self.assertLess(abs(row["lr"] - rate), 1e-8, f"step {step + 1}")
            if math.isfinite(norm) and math.isfinite(total):
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.step()
                self.assertLess(abs(row["loss"] / total - 1), 1e-5, f"step {step + 1}")
            else:
                skipped += 1
                self.assertIsNone(row["grad_norm"])
            self.assertEqual(row.get("skipped", 0), skipped)
        self.assertGreater(skipped, 0)
        self.assertLess(rows.distance(model), 1e-5)

    def test_each_step(self):
        self.check(1)

    def test_two_micro_batches(self):
        self.check(2)


class Stop(unittest.TestCase):
    def test_stops_at_that_step(self):
        """Lines are far apart, and so are saves; the message comes from the step itself."""
        rows = Rows(40, 2, steps=20, spoiled=[6, 7], data=IN_ORDER, optimizer=ADAMW, checkpoint={"every": 3})
        rows.trainer.job["tracking"]["every"] = 1000
        rows.trainer.write()
        with self.assertRaises(AssertionError) as raised:
            rows.run()
        self.assertIn("step 4: the loss is ", str(raised.exception))
        self.assertIn("nothing of this step is saved", str(raised.exception))
        model = Mlp(rows.weights)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        for step in range(3):
            optimizer.zero_grad()
            x, y = rows.micro_batch(step)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        self.assertLess(rows.distance(model, "checkpoints/checkpoint_0"), 1e-5, "the weights of step 3 are what was saved")


if __name__ == "__main__":
    unittest.main()
