"""A model of examples/models beside its class of transformers: a random start that theirs makes loads into ours, the
loss and every gradient agree, AdamW over the same batches gives the same losses and weights, and what ours saves loads
into theirs."""

import pathlib
import random
import sys
import unittest

import numpy as np
import torch
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save_file as save_tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import MODELS, Trainer, windows  # noqa: E402

torch.set_num_threads(2)
STEPS, LR, DECAY = 20, 1e-3, 0.1
SEED = random.randrange(1_000_000)


def far(ours, theirs):
    """The distance over the norm of theirs."""
    return float((ours.double() - theirs.double()).norm() / max(theirs.double().norm(), 1e-30))


class Peer(unittest.TestCase):
    """One model at a time; a test calls check()."""

    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", flush=True)

    def setUp(self):
        self.random = random.Random(SEED)
        torch.manual_seed(SEED)

    def check(self, source, theirs, config, data, batches, loss_of, skip=(), gradient_tolerance=1e-4):
        """theirs: a class of transformers in float32; batches(n) gives the tensors of batch n, of which
        loss_of(theirs, *tensors) makes the loss. skip: tensors of theirs that ours has not."""
        theirs.eval()  # without dropout
        start = {n: t.clone() for n, t in theirs.state_dict().items() if not n.endswith(tuple(skip) or "\0")}
        names = self.gradients(source, theirs, config, data, batches, loss_of, start, gradient_tolerance)
        self.adamw(source, theirs, config, data, batches, loss_of, start, names)

    def trainer(self, source, config, data, start, optimizer, steps):
        trainer = Trainer({
            "model": {"source": str(MODELS / source), "weights": "start.safetensors", "config": config},
            "data": {key: value for key, value in data.items() if key != "files"},
            "optimizer": optimizer,
            "training": {"steps": steps, "seed": 1},
        })
        for name, content in data["files"].items():
            (trainer.folder / name).write_bytes(content)
        save_tensors({n: t.contiguous().clone() for n, t in start.items()}, str(trainer.folder / "start.safetensors"))
        trainer.build()
        return trainer, trainer.run(), load_tensors(str(trainer.folder / "run" / "model.safetensors"))

    def gradients(self, source, theirs, config, data, batches, loss_of, start, tolerance):
        """One step of plain descent: what the weights moved by is the gradient. Gives the names of the parameters."""
        rate = 10.0
        _, metrics, after = self.trainer(source, config, data, start, {"name": "sgd", "lr": rate, "weight_decay": 0}, 1)
        loss = loss_of(theirs, *batches(0))
        loss.backward()
        self.assertLess(abs(metrics[0]["loss"] / loss.item() - 1), 1e-5, "loss")
        parameters = dict(theirs.named_parameters())
        for name, parameter in parameters.items():
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            # What rounding of the weights hides of a small gradient.
            floor = 1.2e-7 * start[name].norm().item() / rate / max(gradient.norm().item(), 1e-30)
            moved = (start[name].double() - after[name].double()) / rate
            if gradient.norm() > 1e-12:
                self.assertLess(far(moved, gradient), tolerance + floor, f"gradient of {name}")
        return list(parameters)

    def adamw(self, source, theirs, config, data, batches, loss_of, start, names):
        ours = {"name": "adamw", "lr": LR, "weight_decay": DECAY, "eps": 1e-4}
        trainer, metrics, after = self.trainer(source, config, data, start, ours, STEPS)
        peer = torch.optim.AdamW(theirs.parameters(), lr=LR, weight_decay=DECAY, eps=1e-4)
        for step in range(STEPS):
            peer.zero_grad()
            loss = loss_of(theirs, *batches(step))
            loss.backward()
            peer.step()
            self.assertLess(abs(metrics[step]["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
        for name in names:
            self.assertLess(far(after[name], theirs.state_dict()[name]), 1e-3, f"{name} after {STEPS} steps")
        found = theirs.load_state_dict(after, strict=False)
        self.assertEqual(found.unexpected_keys, [])
        tied = set(theirs.state_dict()) - set(names)
        self.assertLessEqual(set(found.missing_keys), tied)
        torch.testing.assert_close(theirs.state_dict()[names[0]], after[names[0]], rtol=0, atol=0)


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
