"""Gradients of parts of parameters, which micro-batches add to the gradients of the whole: PyTorch's, and the audit proves every
claim. (A kernel that adds to a part of an array must not declare the whole.)"""

import unittest

import numpy as np
import torch
from harness import FAST, Trainer, relative, save_file

MODEL = """#include <accel/model.h>
struct config { int n_classes; };
tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor rows = slice(parameter(s, "rows", 5, 6), 0, 1, 3);
  tensor first = slice(parameter(s, "first", 4, 6), 0, 0, 2);
  tensor columns = slice(parameter(s, "columns", 6, 7), 1, 2, 4);
  tensor h = linear(at(s, "a"), matmul_transposed(features, rows), c.n_classes);
  h = add(h, linear(at(s, "b"), matmul(features, columns), c.n_classes));
  return cross_entropy(add(h, linear(at(s, "c"), matmul_transposed(features, first), c.n_classes)), labels);
}
"""
SHAPES = {"rows": (5, 6), "first": (4, 6), "columns": (6, 7), "a.weight": (3, 3), "a.bias": (3,), "b.weight": (3, 4), "b.bias": (3,),
          "c.weight": (3, 2), "c.bias": (3,)}
ROWS = 8


def loss_of(w, x, labels):
    h = (x @ w["rows"][1:4].T) @ w["a.weight"].T + w["a.bias"] + (x @ w["columns"][:, 2:6]) @ w["b.weight"].T + w["b.bias"]
    return torch.nn.functional.cross_entropy(h + (x @ w["first"][:2].T) @ w["c.weight"].T + w["c.bias"], labels)


class Slices(unittest.TestCase):
    def test_gradients(self):
        """A step of descent at the rate 1 over all rows, in two micro-batches, gives the gradient back."""
        rng = np.random.default_rng(5)
        weights = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
        x, labels = rng.normal(size=(ROWS, 6)).astype(np.float32).round(3), rng.integers(3, size=ROWS)
        trainer = Trainer({"model": {"source": "parts.c", "config": {"n_classes": 3}, "weights": "start.safetensors"},
                           "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 6, "batch_size": ROWS // 2, "eval_fraction": 0},
                           "optimizer": {"name": "sgd", "lr": 1.0, "weight_decay": 0.0}, "accumulation": {"num_steps": 2}, "training": {"steps": 1}})
        (trainer.folder / "parts.c").write_text(MODEL)
        (trainer.folder / "rows.csv").write_text("".join(",".join(map(str, [*row.tolist(), label])) + "\n" for row, label in zip(x, labels.tolist())))
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build(cflags=FAST)
        trainer.run()
        w = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in weights.items()}
        loss_of(w, torch.tensor(x, dtype=torch.float64), torch.tensor(labels)).backward()
        for name, after in trainer.weights().items():
            self.assertLess(relative(weights[name] - after, w[name].grad.numpy()), 1e-5, name)
        trainer.generate()
        self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")


if __name__ == "__main__":
    unittest.main()
