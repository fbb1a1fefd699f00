"""Precision against Accelerate: Accelerator(mixed_precision=...) on the CPU over the same rows, from the same weights. Two
programs that round to 16 bits in other positions part by as much as either parts from float32, and no further."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import AutocastKwargs
from rows import Mlp, Rows

ADAMW = {"name": "adamw", "lr": 0.01, "weight_decay": 0.1}
STEPS = 30


def accelerated(rows, mode, **autocast):
    """Losses of Accelerate's loop, and its model."""
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    accelerator = Accelerator(mixed_precision=mode, cpu=True, kwargs_handlers=[AutocastKwargs(**autocast)] if autocast else [])
    model = Mlp(rows.weights)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1))
    losses = []
    for step in range(STEPS):
        x, y = rows.micro_batch(step)
        with accelerator.autocast():
            loss = F.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return np.array(losses), accelerator.unwrap_model(model)


def distance(a, b):
    return float(np.abs(a / b - 1).max())


class Precision(unittest.TestCase):
    def run_job(self, **precision):
        rows = Rows(96, 8, STEPS, optimizer=ADAMW, schedule={"name": "constant"}, precision=precision)
        return rows, np.array([row["loss"] for row in rows.run()])

    def test_bf16(self):
        rows, own = self.run_job(mixed_precision="bf16")
        half, peer = accelerated(rows, "bf16")
        full, _ = accelerated(rows, "no")
        print(f"bf16: {distance(own, half):.2e} from Accelerate, which is {distance(half, full):.2e} from float32")
        self.assertGreater(distance(half, full), 1e-5)
        self.assertLess(distance(own, half), 1.5 * distance(half, full))
        self.assertLess(distance(own, full), 1.5 * distance(half, full))
        self.assertLess(rows.distance(peer), 0.02)

    def test_autocast_switched_off(self):
        """AutocastKwargs(enabled=False) is float32, though mixed_precision says bf16."""
        rows, own = self.run_job(mixed_precision="bf16", autocast={"enabled": False})
        peer_losses, peer = accelerated(rows, "bf16", enabled=False)
        self.assertLess(distance(own, peer_losses), 1e-5)
        self.assertLess(rows.distance(peer), 1e-4)

    def test_fp16_without_a_scaler(self):
        """Accelerate has no fp16 on the CPU: its loop is PyTorch's here, by the same autocast."""
        rows, own = self.run_job(mixed_precision="fp16", grad_scaler={"enabled": False})
        model = Mlp(rows.weights)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        losses = []
        for step in range(STEPS):
            x, y = rows.micro_batch(step)
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        full, _ = accelerated(rows, "no")
        print(f"fp16: {distance(own, losses):.2e} from PyTorch, which is {distance(np.array(losses), full):.2e} from float32")
        self.assertLess(distance(own, losses), 1.5 * distance(np.array(losses), full) + 1e-5)

    def test_param_dtype(self):
        """FSDP's param_dtype: a step in which parameters and inputs are bfloat16, over weights that stay in float32."""
        rows, own = self.run_job(param_dtype="bf16")
        weights = {name: torch.tensor(value, requires_grad=True) for name, value in rows.weights.items()}
        optimizer = torch.optim.AdamW(weights.values(), lr=0.01, weight_decay=0.1)
        model, losses = Mlp(rows.weights), []
        for step in range(STEPS):
            x, y = rows.micro_batch(step)
            half = {name: w.bfloat16() for name, w in weights.items()}
            loss = F.cross_entropy(torch.func.functional_call(model, half, (x.bfloat16(),)).float(), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        full, _ = accelerated(rows, "no")
        print(f"param_dtype: {distance(own, losses):.2e} from PyTorch, which is {distance(np.array(losses), full):.2e} from float32")
        self.assertLess(distance(own, losses), 1.5 * distance(np.array(losses), full))

    def test_everything_kept(self):
        """With all parameters kept in float32, nothing is left to cast."""
        rows, own = self.run_job(mixed_precision="bf16", keep_in_fp32=["*"])
        full, peer = accelerated(rows, "no")
        self.assertLess(distance(own, full), 1e-5)
        self.assertLess(rows.distance(peer), 1e-4)

    def test_some_kept(self):
        """A layer that is kept in float32 leaves the other one's rounding."""
        rows, own = self.run_job(mixed_precision="bf16", keep_in_fp32=["output.*"])
        _, all_half = self.run_job(mixed_precision="bf16")
        full, _ = accelerated(rows, "no")
        self.assertGreater(distance(own, full), 1e-5)
        self.assertGreater(distance(own, all_half), 1e-5)

    def test_patterns_that_cannot_be_kept(self):
        """A name that matches nothing is refused at its line, and so is one of several layers that one piece of code is for."""
        config = {"n_layer": 3, "width": 9, "n_classes": 3}
        for names, said in ((["nothing.*"], "no parameter's name matches 'nothing.*'"),
                            (["hidden.1.*"], "one function of the program computes with both")):
            rows = Rows(24, 8, 1, config=config, precision={"mixed_precision": "bf16", "keep_in_fp32": names})
            with self.assertRaisesRegex(AssertionError, said.replace("*", r"\*")):
                rows.run()


if __name__ == "__main__":
    unittest.main()
