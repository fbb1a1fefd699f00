"""Accumulation against Accelerate: its loop over the same batches gives the same rates, norms and weights, over epochs that
num_steps does not divide and batches that do not divide the rows."""

import unittest

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import GradientAccumulationPlugin
from rows import Mlp, Rows

ADAMW = {"name": "adamw", "lr": 0.01, "weight_decay": 0.1}


class Epochs:
    """The batches of one epoch after another, as rows of the data, for a DataLoader of PyTorch."""

    def __init__(self, rows):
        self.rows, self.epoch, self.batch_size = rows, -1, rows.batch
        self.drop_last = rows.job["data"].get("drop_last", True)
        self.count = rows.order.taken // rows.batch

    def __len__(self):
        return self.count

    def __iter__(self):
        self.epoch += 1
        for i in range(self.count):
            yield self.rows.indices(self.epoch * self.count + i)


def prepared(rows, plugin, schedule_of):
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    accelerator = Accelerator(cpu=True, gradient_accumulation_plugin=GradientAccumulationPlugin(**plugin))
    model = Mlp(rows.weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
    data = torch.utils.data.TensorDataset(torch.tensor(rows.features), torch.tensor(rows.labels))
    loader = torch.utils.data.DataLoader(data, batch_sampler=Epochs(rows))
    return accelerator, *accelerator.prepare(model, optimizer, loader, schedule_of(optimizer))


def steps_of(rows, plugin, schedule_of, count, epochs=1 << 30):
    """What Accelerate's loop has at each of its first optimizer steps: (rate, norm, mean loss)."""
    accelerator, model, optimizer, loader, schedule = prepared(rows, plugin, schedule_of)
    steps, losses = [], []
    while len(steps) < count and (epochs := epochs - 1) >= 0:
        for x, y in loader:
            with accelerator.accumulate(model):
                rate = schedule.get_last_lr()[0]
                loss = F.cross_entropy(model(x), y)
                losses.append(loss.item())
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    norm = accelerator.clip_grad_norm_(model.parameters(), 0.5).item()
                    steps.append((rate, norm, sum(losses) / len(losses)))
                    losses = []
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            if len(steps) == count:
                break
    return steps, model


class Accumulation(unittest.TestCase):
    def check(self, rows_count, micro, steps, schedule, schedule_of, **plugin):
        rows = Rows(rows_count, 4, steps=steps, accumulation={"num_steps": micro, **plugin}, schedule=schedule,
                    optimizer={**ADAMW, "clip_grad_norm": 0.5})
        metrics = rows.run()
        wanted, model = steps_of(rows, {"num_steps": micro, **plugin}, schedule_of, steps)
        for step, (row, (rate, norm, loss)) in enumerate(zip(metrics, wanted, strict=True)):
            self.assertLess(abs(row["lr"] / rate - 1), 1e-7, f"rate of step {step + 1}")
            self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-5, f"norm of step {step + 1}")
            self.assertLess(abs(row["loss"] / loss - 1), 1e-5, f"loss of step {step + 1}")
        self.assertLess(rows.distance(model), 1e-5)

    EXPONENTIAL = ({"name": "exponential", "gamma": 0.9}, lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9))
    LINEAR = ({"name": "linear"},
              lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1 - n / 20))

    def test_short_last_step(self):
        """Seven micro-batches of an epoch by threes, and two rows left out of each."""
        self.check(30, 3, 20, *self.LINEAR)

    def test_epochs_shorter_than_a_step(self):
        self.check(9, 3, 20, *self.LINEAR)

    def test_without_sync_with_dataloader(self):
        self.check(30, 3, 20, *self.EXPONENTIAL, sync_with_dataloader=False)

    def test_sync_each_batch(self):
        """On one rank there is nobody to synchronise with."""
        self.check(30, 4, 16, *self.EXPONENTIAL, adjust_scheduler=False, sync_each_batch=True)

    def test_keys_of_several_ranks_leave_no_trace(self):
        """On one rank a program is the same with either value, but for the list of its keys."""
        texts = set()
        for keys in ({}, {"sync_each_batch": True}, {"adjust_scheduler": False}):
            rows = Rows(30, 4, steps=1, accumulation={"num_steps": 3, **keys})
            lines = rows.trainer.generate().replace(str(rows.trainer.folder), "").splitlines()
            texts.add("\n".join(line for line in lines if "accumulation." not in line and "job" not in line))
        self.assertEqual(len(texts), 1)

    def test_one_cycle(self):
        """The one schedule that Accelerate keeps from continuing after its end: there too, rates follow the optimizer."""
        for adjust in (False, True):
            self.check(32, 2, 20, {"name": "one_cycle"},
                       lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.01, 20, cycle_momentum=False),
                       adjust_scheduler=adjust)


if __name__ == "__main__":
    unittest.main()
