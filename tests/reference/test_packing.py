"""data.packing: documents. A window's loss and gradient are those of its documents, each computed alone."""

import math
import pathlib
import subprocess
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from rows import GENERATOR, QUICK, Order, SEED, TRAIN, Trainer, relative, save_file
from token_files import token_file

MODELS = pathlib.Path(__file__).resolve().parent / "models"
WIDTH, LENGTH, BATCH, RATE = 12, 40, 3, 32.0
SHAPES = {"tokens.weight": (40, WIDTH), "positions.weight": (LENGTH, WIDTH), "head.weight": (40, WIDTH), "head.bias": (40,)}


class Packing(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(5)
        lengths = [1, 3, 60, 2, 17, 5, 90, 40, 1, 1, 30, 70, 12, 8, 25]
        self.documents = [rng.integers(40, size=n) for n in lengths]
        self.weights = {name: (rng.normal(size=shape) * 0.5).astype(np.float32) for name, shape in SHAPES.items()}

    def trainer(self, steps=2, length=LENGTH, **groups):
        job = {"model": {"source": str(MODELS / "packed.c"), "config": {"width": WIDTH, "block_size": LENGTH},
                         "weights": "start.safetensors"},
               "data": {"train": {"path": "all.tok", "format": "tokens"}, "batch_size": BATCH, "eval_fraction": 0,
                        "packing": "documents", "sequence_length": length},
               "optimizer": {"name": "sgd", "lr": RATE, "weight_decay": 0.0}, "training": {"steps": steps, "seed": SEED}}
        for group, keys in groups.items():
            job.setdefault(group, {}).update(keys)
        trainer = Trainer(job)
        save_file(self.weights, trainer.folder / "start.safetensors")
        return trainer

    def write(self, trainer):
        names = []
        for i, tokens in enumerate(self.documents):
            names.append(f"{i}.bin")
            (trainer.folder / names[-1]).write_bytes(tokens.astype("<u2").tobytes())
        subprocess.run([GENERATOR, "data", *names, "-o", "all.tok", "--format", "nanogpt"], cwd=trainer.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def alone(self, w, starts, length=LENGTH, marks=None):
        """The mean loss of the windows that begin at these tokens, document by document. marks: which tokens are trained on."""
        total, counted = 0.0, 0
        trained = np.concatenate(marks) if marks else np.ones(sum(map(len, self.documents)), bool)
        edges = np.cumsum([0, *map(len, self.documents)])
        text = np.concatenate(self.documents)
        for start in starts:
            cuts = sorted({start, start + length, *(int(e) for e in edges if start < e < start + length)})
            for first, last in zip(cuts, cuts[1:]):
                piece = torch.tensor(text[first:last])
                x = w["tokens.weight"][piece] + w["positions.weight"][:last - first]
                h = x.reshape(last - first, 2, WIDTH // 2).transpose(0, 1)
                y = F.scaled_dot_product_attention(h, h, h, is_causal=True).transpose(0, 1).reshape(last - first, WIDTH)
                logits = (x + y) @ w["head.weight"].T + w["head.bias"]
                inside = last - first - (last in edges)  # the last one's next token is of another document
                targets = np.where(trained, text, -100)[first + 1:first + 1 + inside]
                if inside:
                    total = total + F.cross_entropy(logits[:inside], torch.tensor(targets), reduction="sum")
                counted += (targets >= 0).sum()
        return total / counted

    def test_each_document_alone(self):
        for normalize in ("batches", "tokens"):
            with self.subTest(normalize=normalize):
                trainer = self.trainer(accumulation={"num_steps": 1, "normalize": normalize})
                self.write(trainer)
                subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True, env=QUICK)
                row = trainer.run()[0]
                order = Order(SEED, TRAIN, True, 0, sum(map(len, self.documents)), LENGTH, BATCH)
                w = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in self.weights.items()}
                loss = self.alone(w, [order.start(i) for i in range(BATCH)])
                loss.backward()
                self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-6)
                norm = math.sqrt(sum((x.grad**2).sum().item() for x in w.values()))
                self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-6)
                trainer.run("--steps", "1")
                after = trainer.weights()
                for name, x in w.items():
                    gradient = (self.weights[name].astype(np.float64) - after[name]) / RATE
                    self.assertLess(relative(gradient, x.grad.numpy()), 1e-5, name)

    def test_trained_tokens(self):
        """Where the file says which tokens are trained on, these are the targets."""
        rng = np.random.default_rng(8)
        marks = [rng.random(len(document)) < 0.4 * (i % 3) for i, document in enumerate(self.documents)]
        trainer = self.trainer(steps=6, accumulation={"num_steps": 1, "normalize": "tokens"}, optimizer={"lr": 1e-30})
        (trainer.folder / "all.tok").write_bytes(token_file(self.documents, marks, 40))
        subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True, env=QUICK)
        order = Order(SEED, TRAIN, True, 0, sum(map(len, self.documents)), LENGTH, BATCH)
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in self.weights.items()}
        for step, row in enumerate(trainer.run()):
            loss = self.alone(w, [order.start(step * BATCH + i) for i in range(BATCH)], marks=marks)
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-6)

    def test_padded(self):
        """Every document in a sample of its own, in the order that rows have; the longer ones are cut."""
        trainer = self.trainer(data={"packing": "pad", "drop_last": False}, training={"steps": 5, "seed": SEED},
                               optimizer={"lr": 1e-30})
        self.write(trainer)
        subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True, env=QUICK)
        metrics = trainer.run()
        edges = np.cumsum([0, *map(len, self.documents)])
        order = Order(SEED, TRAIN, True, 0, len(self.documents), batch=BATCH)
        w = {k: torch.tensor(v, dtype=torch.float64) for k, v in self.weights.items()}
        for step, row in enumerate(metrics):
            total, counted = 0.0, 0
            for i in range(BATCH):
                which = order.start(step * BATCH + i)
                inside = min(LENGTH, len(self.documents[which]) - 1)
                counted += inside
                if inside:
                    total += inside * self.alone(w, [edges[which]], inside + 1 if inside < LENGTH else LENGTH).item()
            self.assertLess(abs(row["loss"] / (total / counted) - 1), 1e-6)

    def test_audited(self):
        """What a program reads by the data's positions is in bounds."""
        trainer = self.trainer()
        trainer.generate()
        subprocess.run([GENERATOR, "audit", trainer.folder / "trainer.c"], check=True, stdout=subprocess.DEVNULL)

    def test_refused(self):
        trainer = self.trainer(length=LENGTH + 1)
        done = subprocess.run([GENERATOR, trainer.path, "-o", "-"], capture_output=True, text=True)
        self.assertIn("the model looks up only 40 positions, but a sequence has 41 positions", done.stderr)
        trainer = self.trainer()
        self.documents = self.documents[:1]
        subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True, env=QUICK)
        (trainer.folder / "plain.bin").write_bytes(bytes(4000))
        with self.assertRaises(AssertionError) as raised:
            trainer.run("--data", "plain.bin")
        self.assertIn("plain.bin: ", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
