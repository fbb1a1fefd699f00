"""Models that share nothing with a transformer, against PyTorch from the same weights and the same rows: a classifier of
scikit-learn's breast cancer table, which must also learn, and a gated recurrent unit over bytes."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F
from harness import MODELS, TRAIN, Order, Trainer, relative, save_file, splits, windows
from sklearn.datasets import load_breast_cancer

torch.set_num_threads(2)
SEED = 1337


def table():
    """Standardised columns and the class of each row, in a fixed shuffled order."""
    features, labels = load_breast_cancer(return_X_y=True)
    features = (features - features.mean(0)) / features.std(0)
    order = np.random.default_rng(1).permutation(len(labels))
    return features[order].astype(np.float32), labels[order]


def write_table(path, features, labels):
    lines = [",".join(f"{x:.9g}" for x in row) + f",{label}" for row, label in zip(features, labels)]
    path.write_text("\n".join(lines) + "\n")


def random_weights(shapes):
    generator = torch.Generator().manual_seed(3)
    return {name: (torch.randn(shape, generator=generator) * scale).numpy() for name, shape, scale in shapes}


def parameters(weights):
    return {name: torch.tensor(value, requires_grad=True) for name, value in weights.items()}


class Curve(unittest.TestCase):
    def compare(self, metrics, batches, loss_of, weights, optimizer, trainer, tolerance):
        """The same optimizer over the same batches gives the same losses, and the same weights at the end."""
        own = parameters(weights)
        peer = optimizer(own.values())
        for step, row in enumerate(metrics):
            peer.zero_grad()
            loss = loss_of(own, *batches(step))
            loss.backward()
            peer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), tolerance, f"loss of step {step + 1}")
        after = trainer.weights()
        for name, value in own.items():
            self.assertLess(relative(after[name], value.detach().numpy()), 1e-3, f"{name} at the end")
        return own


class Table(Curve):
    BATCH, STEPS, FRACTION = 32, 100, 0.25
    SHAPES = [("hidden.0.weight", (24, 30), 0.2), ("hidden.0.bias", (24,), 0.1), ("hidden.1.weight", (24, 24), 0.2),
              ("hidden.1.bias", (24,), 0.1), ("output.weight", (2, 24), 0.2), ("output.bias", (2,), 0.1)]

    def prepare(self, optimizer):
        features, labels = table()
        trainer = Trainer({
            "model": {"source": str(MODELS / "mlp_table.c"), "weights": "start.safetensors",
                      "config": {"n_layer": 2, "width": 24, "n_classes": 2}},
            "data": {"train": {"path": "table.csv", "format": "csv"}, "features": 30, "batch_size": self.BATCH,
                     "eval_fraction": self.FRACTION},
            "optimizer": optimizer,
            "training": {"steps": self.STEPS, "seed": SEED, "eval_interval": 10, "eval_iters": 20},
        })
        weights = random_weights(self.SHAPES)
        write_table(trainer.folder / "table.csv", features, labels)
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build()
        (first, count), held_out = splits(len(labels), self.FRACTION)
        order = Order(SEED, TRAIN, True, first, count, batch=self.BATCH)

        def batches(step):
            rows = [order.start(step * self.BATCH + i) for i in range(self.BATCH)]
            return torch.tensor(features[rows]), torch.tensor(labels[rows])

        return trainer, weights, batches, (features, labels, held_out)

    @staticmethod
    def logits(w, x):
        for layer in range(2):
            x = F.relu(x @ w[f"hidden.{layer}.weight"].T + w[f"hidden.{layer}.bias"])
        return x @ w["output.weight"].T + w["output.bias"]

    def check(self, optimizer, peer):
        trainer, weights, batches, (features, labels, (first, count)) = self.prepare(optimizer)
        metrics = trainer.run()
        self.assertEqual(len(metrics), self.STEPS)
        self.compare(metrics, batches, lambda w, x, y: F.cross_entropy(self.logits(w, x), y), weights, peer, trainer, 1e-4)
        after = {name: torch.tensor(value) for name, value in trainer.weights().items()}
        held = slice(first, first + count)
        logits = self.logits(after, torch.tensor(features[held]))
        accuracy = (logits.argmax(1).numpy() == labels[held]).mean()
        print(f"{optimizer['name']}: loss {metrics[0]['loss']:.3f} to {metrics[-1]['loss']:.3f}, "
              f"{100 * accuracy:.1f} % of {count} rows held out")
        self.assertGreater(accuracy, 0.94)
        self.assertLess(metrics[-1]["eval_loss"], 0.2)

    def test_sgd(self):
        self.check({"name": "sgd", "lr": 0.03, "momentum": 0.9, "weight_decay": 1e-3},
                   lambda w: torch.optim.SGD(w, lr=0.03, momentum=0.9, weight_decay=1e-3))

    def test_adamw(self):
        self.check({"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.99], "weight_decay": 0.01},
                   lambda w: torch.optim.AdamW(w, lr=3e-3, betas=(0.9, 0.99), weight_decay=0.01))


class Recurrent(Curve):
    STEPS, BATCH, LENGTH, EMBED, WIDTH = 20, 4, 9, 11, 13

    def loss(self, w, tokens, targets):
        """torch.nn.GRUCell over the tokens, from a state that is learnt."""
        x = w["embedding.weight"][tokens]
        h = w["start"].expand(len(tokens), -1)
        total = 0
        for t in range(self.LENGTH):
            h = torch.gru_cell(x[:, t], h, w["cell.weight_ih"], w["cell.weight_hh"], w["cell.bias_ih"], w["cell.bias_hh"])
            total = total + F.cross_entropy(h @ w["output.weight"].T + w["output.bias"], targets[:, t])
        return total / self.LENGTH

    def test_gru(self):
        corpus = np.random.default_rng(7).integers(97, 123, 3000).astype(np.uint8).tobytes()
        trainer = Trainer({
            "model": {"source": str(MODELS / "gru_bytes.c"), "weights": "start.safetensors",
                      "config": {"n_embd": self.EMBED, "width": self.WIDTH, "block_size": self.LENGTH}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": self.BATCH},
            "optimizer": {"name": "adamw", "lr": 1e-2, "weight_decay": 0.1},
            "training": {"steps": self.STEPS, "seed": SEED},
        })
        H = self.WIDTH
        weights = random_weights([
            ("embedding.weight", (256, self.EMBED), 0.5), ("start", (H,), 0.3), ("cell.weight_ih", (3 * H, self.EMBED), 0.3),
            ("cell.weight_hh", (3 * H, H), 0.3), ("cell.bias_ih", (3 * H,), 0.3), ("cell.bias_hh", (3 * H,), 0.3),
            ("output.weight", (256, H), 0.3), ("output.bias", (256,), 0.3)])
        (trainer.folder / "corpus.txt").write_bytes(corpus)
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build()
        cut = windows(corpus, self.LENGTH, self.BATCH, SEED, True, 0.1)
        metrics = trainer.run()
        self.assertEqual(len(metrics), self.STEPS)
        self.compare(metrics, lambda step: [torch.tensor(x) for x in cut(step)], self.loss, weights,
                     lambda w: torch.optim.AdamW(w, lr=1e-2, weight_decay=0.1), trainer, 1e-4)
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])


if __name__ == "__main__":
    unittest.main()
