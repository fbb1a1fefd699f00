"""A classifier of rows, twice: the emitted trainer of a job and the same model in PyTorch, from the same weights over the
same rows. For tests of what happens at the end of a step."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import torch
import torch.nn.functional as F

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import GENERATOR, MODELS, QUICK, TRAIN, Order, Trainer, relative, save_file, windows  # noqa: E402

SEED, FEATURES, WIDTH, CLASSES = 1337, 6, 9, 3
torch.set_num_threads(1)


class Mlp(torch.nn.Module):
    """examples/models/mlp_table.c, as deep and wide as its weights."""

    def __init__(self, weights):
        super().__init__()
        layers = [torch.nn.Linear(*weights[name].shape[::-1]) for name in sorted(weights) if name.endswith(".weight")]
        self.hidden, self.output = torch.nn.ModuleList(layers[:-1]), layers[-1]
        self.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.output(x)


def shapes_of(layers, width):
    """The weights of an Mlp, its output's last."""
    shapes, before = {}, FEATURES
    for i in range(layers):
        shapes |= {f"hidden.{i}.weight": (width, before), f"hidden.{i}.bias": (width,)}
        before = width
    return {**shapes, "output.weight": (CLASSES, before), "output.bias": (CLASSES,)}


SHAPES = shapes_of(1, WIDTH)


def random_weights(seed=3, shapes=SHAPES, deviation=0.5):
    generator = torch.Generator().manual_seed(seed)
    return {name: (torch.randn(shape, generator=generator) * deviation).numpy() for name, shape in shapes.items()}


class Rows:
    """`count` random rows, a job over all of them, its trainer, and the model's weights at the start."""

    def __init__(self, count, batch, steps=None, spoiled=(), spread=1, model=None, config=None, weights=None,
                 **groups):
        """spread: the deviation of features. spoiled: rows with features so large that the loss is not finite."""
        rng = np.random.default_rng(11)
        self.features = rng.normal(0, spread, (count, FEATURES)).astype(np.float32)
        self.features[list(spoiled)] = 3e38
        self.labels = rng.integers(CLASSES, size=count)
        self.batch, self.weights = batch, weights or random_weights()
        job = {
            "model": {"source": str(model or MODELS / "mlp_table.c"), "weights": "start.safetensors",
                      "config": {"n_layer": 1, "width": WIDTH, "n_classes": CLASSES} if config is None else config},
            "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": FEATURES, "batch_size": batch,
                     "eval_fraction": 0},
            "training": {"seed": SEED, **({"steps": steps} if steps else {})},
        }
        for group, keys in groups.items():
            job.setdefault(group, {}).update(keys)
        self.job, self.trainer = job, Trainer(job)
        self.write_data()
        save_file(self.weights, self.trainer.folder / "start.safetensors")
        shuffle = job["data"].get("shuffle", True)
        keeps = not job["data"].get("drop_last", True)
        self.order = Order(SEED, TRAIN, shuffle, 0, count, batch=batch, keeps_last=keeps)

    def write_data(self):
        lines = [",".join(f"{x:.9g}" for x in row) + f",{label}" for row, label in zip(self.features, self.labels)]
        (self.trainer.folder / "rows.csv").write_text("\n".join(lines) + "\n")

    def run(self, *flags):
        """The metrics, a dict a step."""
        generator = subprocess.run([GENERATOR, "build", self.trainer.path, "-o", "trainer"], cwd=self.trainer.folder,
                                   capture_output=True, text=True, env=QUICK)
        if generator.returncode != 0:
            raise AssertionError(generator.stderr)
        return self.trainer.run(*flags)

    def indices(self, number):
        """The rows of a micro-batch."""
        positions = range(number * self.batch, (number + 1) * self.batch)
        return [self.order.start(i) for i in positions if self.order.counts(i)]

    def micro_batch(self, number):
        rows = self.indices(number)
        return torch.tensor(self.features[rows]), torch.tensor(self.labels[rows])

    def distance(self, model, folder="."):
        """How far the trainer's weights, in a folder of its project, are from a model's, relative to these."""
        after, peer = self.trainer.weights(folder), model.state_dict()
        return max(relative(after[name], peer[name].numpy()) for name in SHAPES)


__all__ = ["GENERATOR", "QUICK", "SEED", "Mlp", "Rows", "Trainer", "relative", "save_file", "windows"]
