"""Every loss of accel/model.h in one emitted program against PyTorch's own functions: the same weights and rows, 20 steps."""

import unittest

import numpy as np
import torch
import torch.nn.functional as F
from harness import TRAIN, TREE, Order, Trainer, save_file, splits
from test_models import Curve, random_weights, write_table

torch.set_num_threads(2)
SEED, STEPS, BATCH, COLUMNS, WIDTH = 7, 20, 9, 6, 11
OUTPUTS = {"x": 4, "y": 4, "z": 4, "a": 5, "b": 5, "other": 5, "classes": 3}


def total(w, features, labels):
    """tests/program/models/losses.c, in PyTorch."""
    h = torch.tanh(F.linear(features, w["hidden.weight"], w["hidden.bias"]))
    x, y, z, a, b, other, logits = (F.linear(h, w[f"{name}.weight"], w[f"{name}.bias"]) for name in OUTPUTS)
    goal = features[:, :4]
    similarity = w["warmth"].exp() * F.normalize(a) @ F.normalize(b).T
    own = torch.arange(len(features))
    counted = labels != 2
    return sum([
        F.cross_entropy(logits, labels, ignore_index=2, label_smoothing=0.1),
        1e-3 * torch.logsumexp(logits, -1)[counted].square().mean(),
        F.binary_cross_entropy_with_logits(x, torch.sigmoid(goal)),
        F.binary_cross_entropy_with_logits(x, torch.sigmoid(goal), pos_weight=torch.full((4,), 2.5)),
        F.mse_loss(x, goal),
        F.l1_loss(y, goal),
        F.huber_loss(y, goal, delta=0.4),
        F.smooth_l1_loss(y, goal, beta=0.7),
        F.kl_div(torch.log_softmax(z, -1), torch.softmax(goal, -1), reduction="batchmean") / 4,
        F.kl_div(torch.log_softmax(z, -1), torch.log_softmax(goal, -1), reduction="batchmean", log_target=True) / 4,
        F.cross_entropy(similarity, own),
        (F.cross_entropy(similarity, own) + F.cross_entropy(similarity.T, own)) / 2,
        F.triplet_margin_loss(a, b, other, margin=0.5),
        F.cosine_similarity(a, other).mean(),
    ])


class Losses(Curve):
    def test_all(self):
        rng = np.random.default_rng(5)
        features, labels = rng.standard_normal((90, COLUMNS)).astype(np.float32), rng.integers(0, 3, 90)
        trainer = Trainer({
            "model": {"source": str(TREE / "tests/program/models/losses.c"), "weights": "start.safetensors",
                      "config": {"width": WIDTH}},
            "data": {"train": {"path": "table.csv", "format": "csv"}, "features": COLUMNS, "batch_size": BATCH,
                     "eval_fraction": 0},
            "optimizer": {"name": "adamw", "lr": 3e-3, "weight_decay": 0.01},
            "training": {"steps": STEPS, "seed": SEED},
        })
        shapes = [("hidden.weight", (WIDTH, COLUMNS), 0.4), ("hidden.bias", (WIDTH,), 0.1)]
        for name, n in OUTPUTS.items():
            shapes += [(f"{name}.weight", (n, WIDTH), 0.4), (f"{name}.bias", (n,), 0.1)]
        weights = random_weights(shapes)
        weights["warmth"] = np.array(np.log(10), np.float32)
        write_table(trainer.folder / "table.csv", features, labels)
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build()
        (first, count), _ = splits(len(labels), 0)
        order = Order(SEED, TRAIN, True, first, count, batch=BATCH)

        def batches(step):
            rows = [order.start(step * BATCH + i) for i in range(BATCH)]
            return torch.tensor(features[rows]), torch.tensor(labels[rows])

        metrics = trainer.run()
        self.assertEqual(len(metrics), STEPS)
        self.compare(metrics, batches, total, weights,
                     lambda w: torch.optim.AdamW(w, lr=3e-3, weight_decay=0.01), trainer, 1e-5)


if __name__ == "__main__":
    unittest.main()
