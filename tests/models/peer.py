"""A model of examples/models against its class of transformers: a random start that theirs makes loads into ours, the
loss and every gradient agree, AdamW over the same batches gives the same losses and weights, and what ours saves loads
into theirs."""

import copy
import functools
import os
import pathlib
import random
import shutil
import sys
import tempfile
import unittest
import zlib

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, MODELS, QUICK, TRAIN, Order, Trainer, windows  # noqa: E402
from order import masked  # noqa: E402
from rotation import is_in_turn  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers.utils import logging  # noqa: E402

torch.set_num_threads(2)
logging.disable_progress_bar()
STEPS, LR, DECAY = 20, 1e-3, 0.1
SEED = int(os.environ.get("SEED", random.randrange(1_000_000)))
DRAWS = int(os.environ.get("DRAWS", 1))


def drawn(test):
    """DRAWS random configurations of a model a run; bits and the steps of AdamW of the first."""

    @functools.wraps(test)
    def run(self):
        for i in range(DRAWS):
            with self.subTest(seed=SEED + i):
                self.draw(SEED + i)
                self.first = i == 0
                test(self)

    return run


class Peer(unittest.TestCase):
    """One model at a time; a test calls check()."""

    @classmethod
    def setUpClass(cls):
        print(f"seed {SEED}", flush=True)

    def setUp(self):
        self.first = self.smooth = True  # smooth: a model in which rounding changes no choice within the steps of AdamW
        self.draw(SEED)

    def draw(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)

    def check(self, source, theirs, config, data, batches, loss_of, gradient_tolerance=1e-4, training=False):
        """theirs: a class of transformers in float32; batches(n) gives the tensors of batch n, of which
        loss_of(theirs, *tensors) makes the loss. Parameters that have no gradient in theirs must stay in ours."""
        self.theirs = theirs.train(training)  # without dropout, which a model with batch norm must not have
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-peer-"))
        theirs.save_pretrained(self.folder)
        self.weights = next(self.folder.glob("*model.safetensors")).name  # diffusers calls it otherwise than transformers
        start = {name: p.detach().clone() for name, p in theirs.named_parameters()}
        buffers = {name: b.detach().clone() for name, b in theirs.named_buffers()}
        self.gradients(source, config, data, batches, loss_of, start, gradient_tolerance)
        theirs.load_state_dict(buffers, strict=False)
        if not self.first:
            return
        if is_in_turn(zlib.crc32(self.id().encode()), 3):
            self.bits(source, config, data, set(buffers))
        if self.smooth:
            self.adamw(source, config, data, batches, loss_of)

    def trained(self, source, config, data, optimizer, steps, **environment):
        """The metrics of a trainer that starts from their weights, and its weights as their class reads them."""
        trainer = Trainer({
            "model": {"source": str(MODELS / source), "weights": "start.safetensors", "config": config},
            "data": {key: value for key, value in data.items() if key != "files"},
            "optimizer": optimizer,
            "training": {"steps": steps, "seed": 1},
        })
        for name, content in data["files"].items():
            (trainer.folder / name).write_bytes(content)
        shutil.copy(self.folder / self.weights, trainer.folder / "start.safetensors")
        shutil.copy(self.folder / "config.json", trainer.folder)  # which the generator compares with ours
        trainer.build(**environment)
        metrics = trainer.run()
        self.saved = trainer.folder / "run" / self.weights
        shutil.copy(self.folder / "config.json", trainer.folder / "run")
        after, info = type(self.theirs).from_pretrained(trainer.folder / "run", output_loading_info=True)
        self.assertEqual((info["missing_keys"], info["unexpected_keys"]), (type(info["missing_keys"])(), type(info["unexpected_keys"])()))
        self.buffers = dict(after.named_buffers())
        return metrics, dict(after.named_parameters())

    def bits(self, source, config, data, buffers):
        """What is loaded comes back bit for bit, in a third of the tests, which SEED says: a rate that moves nothing leaves the file that theirs saved."""
        self.trained(source, config, data, {"name": "sgd", "weight_decay": 0, "param_groups": [{"match": "*", "lr_scale": 0}]}, 1)
        ours = load_file(self.saved)
        for name, tensor in load_file(self.folder / self.weights).items():
            if name not in buffers:
                self.assertTrue(torch.equal(ours[name], tensor), f"{name} comes back as it was")

    def gradients(self, source, config, data, batches, loss_of, start, tolerance):
        """One step of plain descent: what the weights moved by is the gradient."""
        rate = 10.0
        metrics, after = self.trained(source, config, data, {"name": "sgd", "lr": rate, "weight_decay": 0}, 1)
        fresh = copy.deepcopy(self.theirs)
        loss = loss_of(self.theirs, *batches(0))
        loss.backward()
        self.assertLess(abs(metrics[0]["loss"] / loss.item() - 1), 1e-5, "loss")
        exact = functools.cache(lambda: exact_gradients(fresh, batches(0), loss_of))
        # A gradient that is zero but for rounding, as of a key's bias, is compared with all of them.
        whole = sum(p.grad.norm().item() ** 2 for p in self.theirs.parameters() if p.grad is not None) ** 0.5
        for name, parameter in self.theirs.named_parameters():
            gradient = parameter.grad if parameter.grad is not None else torch.zeros_like(parameter)
            moved = (start[name].double() - after[name].double()) / rate
            # What the rounding of the weights hides of a small gradient.
            floor = 1.2e-7 * start[name].norm().item() / rate
            within = tolerance * gradient.norm().item() + floor + 1e-7 * whole
            if (moved - gradient).norm().item() < within:
                continue
            # What is small by cancellation: ours is as near to the gradient in float64 as theirs in float32 is.
            theirs = (gradient - exact()[name]).norm().item()
            self.assertLess((moved - exact()[name]).norm().item(), max(within, floor + 3 * theirs),
                            f"gradient of {name}; theirs in float32 is {theirs:.1e} away from float64")

    def adamw(self, source, config, data, batches, loss_of):
        # With a large eps, a gradient that is all rounding error moves nothing.
        shipped = {"cflags": None} if DRAWS > 2 else {}  # ninja soak takes the compiler's time
        metrics, after = self.trained(source, config, data, {"name": "adamw", "lr": LR, "weight_decay": DECAY, "eps": 1e-4}, STEPS,
                                      **shipped)
        start = copy.deepcopy(self.theirs)
        losses = adamw_losses(self.theirs, batches, loss_of)
        if any(abs(ours["loss"] / theirs - 1) > 5e-4 for ours, theirs in zip(metrics, losses)):
            self.rounding([ours["loss"] for ours in metrics], losses, adamw_losses(start.double(), batches, loss_of))
            return
        for name, parameter in self.theirs.named_parameters():
            ours, own = after[name].detach().double(), parameter.detach().double()
            way = LR * STEPS * own.numel() ** 0.5  # the farthest that AdamW goes
            self.assertLess((ours - own).norm().item(), 1e-3 * (own.norm().item() + way), f"{name} after {STEPS} steps")
        for name, own in self.theirs.named_buffers():
            self.assertLess((self.buffers[name] - own).double().norm().item(), 1e-2 * own.double().norm().item() + 1e-3, name)


    def rounding(self, ours, theirs, exact):
        """Where losses part by more than a part in 2,000, as where a relu turns by a rounding: ours are as near to those in float64 as
        theirs in float32 are."""
        for step, (loss, peer, true) in enumerate(zip(ours, theirs, exact)):
            worst = max(abs(peer / true - 1) for peer, true in zip(theirs[:step + 1], exact))
            self.assertLess(abs(loss / true - 1), max(5e-4, 3 * worst), f"loss of step {step + 1}; theirs in float32 is {worst:.1e} away")


def exact_gradients(model, batch, loss_of):
    """Of each parameter, in float64."""
    model = model.double()
    loss_of(model, *(x.double() if x.is_floating_point() else x for x in batch)).backward()
    return {name: p.grad if p.grad is not None else torch.zeros_like(p) for name, p in model.named_parameters()}


def adamw_losses(model, batches, loss_of):
    """The losses of the steps that `model`, of float32 or float64, takes."""
    kind = next(model.parameters()).dtype
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY, eps=1e-4)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, *(x.to(kind) if x.is_floating_point() else x for x in batches(step)))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Text(Peer):
    """Causal models over bytes."""

    BATCH = 3

    def text(self, length, padding=None):
        """With padding: many bytes are that one, and whole samples."""
        corpus = np.random.default_rng(SEED).integers(0, 256, 4000).astype(np.uint8)
        if padding is not None:
            corpus[(corpus < 80) | (np.arange(4000) // 100 % 2 > 0)] = padding
        corpus = corpus.tobytes()
        cut = windows(corpus, length, self.BATCH, 1, True, 0.1)
        data = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": self.BATCH, "sequence_length": length,
                "files": {"corpus.txt": corpus}}
        return data, lambda n: [torch.tensor(x) for x in cut(n)]

    def causal(self, source, theirs, config, length, **how):
        data, batches = self.text(length)
        self.check(source, theirs, config, data, batches, lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens).logits.flatten(0, 1), targets.flatten()), **how)


class Images(Peer):
    """Classifiers of rows of a table, such as images."""

    BATCH = 5

    def images(self, channels, size, classes):
        rng = np.random.default_rng(SEED)
        rows, labels = rng.standard_normal((60, channels * size * size)).astype(np.float32), rng.integers(0, classes, 60)
        data, at = self.table(rows, labels)
        return data, lambda n: (torch.tensor(rows[at(n)]).reshape(-1, channels, size, size), torch.tensor(labels[at(n)]))

    def table(self, rows, labels):
        """The data of a job, and which rows make batch n."""
        text = "".join(",".join(f"{x:.9g}" for x in row) + f",{label}\n" for row, label in zip(rows, labels))
        order = Order(1, TRAIN, True, 0, len(rows))
        data = {"train": {"path": "rows.csv", "format": "csv"}, "features": rows.shape[1], "batch_size": self.BATCH,
                "eval_fraction": 0, "files": {"rows.csv": text.encode()}}
        return data, lambda n: [order.start(n * self.BATCH + i) for i in range(self.BATCH)]

    def classifier(self, source, theirs, config, channels, size, classes, **how):
        data, batches = self.images(channels, size, classes)
        self.check(source, theirs, config, data, batches,
                   lambda model, x, labels: torch.nn.functional.cross_entropy(model(x).logits, labels), **how)


def texts(path, ids):
    """Writes texts without padding, of one segment, whose labels are 0 and 1 in turn, for bert_classifier.c; the data of their job."""
    np.savez(path, input_ids=ids.astype("int32"), attention_mask=np.ones(ids.shape, "uint8"), token_type_ids=np.zeros(ids.shape, "uint8"),
             labels=(np.arange(len(ids)) % 2).astype("int32"))
    shape = {"shape": [ids.shape[1]]}
    return {"train": {"path": path.name, "format": "npz"}, "inputs": {
        "input_ids": {**shape, "dtype": "int32"}, "attention_mask": shape, "token_type_ids": {**shape, "dtype": "int32"},
        "labels": {"dtype": "int32"}}}


__all__ = ["texts", "GENERATOR", "Images", "MODELS", "Order", "Peer", "QUICK", "TRAIN", "Text", "Trainer", "masked", "SEED", "drawn"]
