"""A model of examples/models beside its class of transformers: a random start that theirs makes loads into ours, the
loss and every gradient agree, AdamW over the same batches gives the same losses and weights, and what ours saves loads
into theirs."""

import pathlib
import random
import shutil
import sys
import tempfile
import unittest

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import MODELS, Trainer, windows  # noqa: E402
from transformers.utils import logging  # noqa: E402

torch.set_num_threads(2)
logging.disable_progress_bar()
STEPS, LR, DECAY = 20, 1e-3, 0.1
SEED = random.randrange(1_000_000)


def far(ours, theirs):
    """The distance over the norm of theirs."""
    ours, theirs = ours.detach().double(), theirs.detach().double()
    return float((ours - theirs).norm() / max(theirs.norm(), 1e-30))


class Peer(unittest.TestCase):
    """One model at a time; a test calls check()."""

    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", flush=True)

    def setUp(self):
        self.random = random.Random(SEED)
        torch.manual_seed(SEED)

    def check(self, source, theirs, config, data, batches, loss_of, gradient_tolerance=1e-4):
        """theirs: a class of transformers in float32; batches(n) gives the tensors of batch n, of which
        loss_of(theirs, *tensors) makes the loss. Parameters that have no gradient in theirs must stay in ours."""
        self.theirs = theirs.eval()  # without dropout
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-peer-"))
        theirs.save_pretrained(self.folder)
        start = {name: p.detach().clone() for name, p in theirs.named_parameters()}
        self.gradients(source, config, data, batches, loss_of, start, gradient_tolerance)
        self.adamw(source, config, data, batches, loss_of)

    def trained(self, source, config, data, optimizer, steps):
        """The metrics of a trainer that starts from their weights, and its weights as their class reads them."""
        trainer = Trainer({
            "model": {"source": str(MODELS / source), "weights": "start.safetensors", "config": config},
            "data": {key: value for key, value in data.items() if key != "files"},
            "optimizer": optimizer,
            "training": {"steps": steps, "seed": 1},
        })
        for name, content in data["files"].items():
            (trainer.folder / name).write_bytes(content)
        shutil.copy(self.folder / "model.safetensors", trainer.folder / "start.safetensors")
        trainer.build()
        metrics = trainer.run()
        shutil.copy(self.folder / "config.json", trainer.folder / "run")
        after, info = type(self.theirs).from_pretrained(trainer.folder / "run", output_loading_info=True)
        self.assertEqual((info["missing_keys"], info["unexpected_keys"]), (type(info["missing_keys"])(), type(info["unexpected_keys"])()))
        return metrics, dict(after.named_parameters())

    def gradients(self, source, config, data, batches, loss_of, start, tolerance):
        """One step of plain descent: what the weights moved by is the gradient."""
        rate = 10.0
        metrics, after = self.trained(source, config, data, {"name": "sgd", "lr": rate, "weight_decay": 0}, 1)
        loss = loss_of(self.theirs, *batches(0))
        loss.backward()
        self.assertLess(abs(metrics[0]["loss"] / loss.item() - 1), 1e-5, "loss")
        for name, parameter in self.theirs.named_parameters():
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            moved = (start[name].double() - after[name].double()) / rate
            # What the rounding of the weights hides of a small gradient.
            floor = 1.2e-7 * start[name].norm().item() / rate
            error = (moved - gradient).norm().item()
            self.assertLess(error, tolerance * gradient.norm().item() + floor + 1e-9, f"gradient of {name}")

    def adamw(self, source, config, data, batches, loss_of):
        # With a large eps, a gradient that is all rounding error moves nothing.
        metrics, after = self.trained(source, config, data, {"name": "adamw", "lr": LR, "weight_decay": DECAY, "eps": 1e-4}, STEPS)
        peer = torch.optim.AdamW(self.theirs.parameters(), lr=LR, weight_decay=DECAY, eps=1e-4)
        for step in range(STEPS):
            peer.zero_grad()
            loss = loss_of(self.theirs, *batches(step))
            loss.backward()
            peer.step()
            self.assertLess(abs(metrics[step]["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
        for name, parameter in self.theirs.named_parameters():
            self.assertLess(far(after[name], parameter), 1e-3, f"{name} after {STEPS} steps")


class Text(Peer):
    """Causal models over bytes."""

    BATCH = 3

    def text(self, length):
        corpus = np.random.default_rng(SEED).integers(0, 256, 4000).astype(np.uint8).tobytes()
        cut = windows(corpus, length, self.BATCH, 1, True, 0.1)
        data = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": self.BATCH, "sequence_length": length,
                "files": {"corpus.txt": corpus}}
        return data, lambda n: [torch.tensor(x) for x in cut(n)]

    def causal(self, source, theirs, config, length, **how):
        data, batches = self.text(length)
        self.check(source, theirs, config, data, batches, lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens).logits.flatten(0, 1), targets.flatten()), **how)


__all__ = ["Peer", "Text", "SEED"]
