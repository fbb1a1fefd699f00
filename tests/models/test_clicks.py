"""examples/models/dlrm.c against a program of PyTorch after the paper's figure: rows of tables and a perceptron of numbers, the
products of every two of them, and a perceptron of these."""

import io
import unittest

import numpy as np
import torch
from peer import TRAIN, Images, Order, drawn
from test_recurrent import Saved


def perceptron(widths, last):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers if last else layers[:-1])


class Clicks(Saved, torch.nn.Module):
    def __init__(self, numbers, rows, bottom, top):
        torch.nn.Module.__init__(self)
        self.made = {"numbers": numbers, "rows": rows, "bottom": bottom, "top": top}
        width, fields = bottom[-1], len(rows) + 1
        self.bot_l = perceptron([numbers, *bottom], True)
        self.emb_l = torch.nn.ModuleList(torch.nn.Embedding(count, width) for count in rows)
        self.top_l = perceptron([width + fields * (fields - 1) // 2, *top], False)

    def forward(self, numbers, categories):
        x = self.bot_l(numbers)
        rows = torch.stack([x, *(table(categories[:, i]) for i, table in enumerate(self.emb_l))], 1)
        i, k = torch.tril_indices(rows.shape[1], rows.shape[1], -1)
        return self.top_l(torch.cat([x, (rows @ rows.mT)[:, i, k]], 1)).flatten()


class Dlrm(Images):
    @drawn
    def test_dlrm(self):
        fields, numbers, count = self.random.randint(1, 6), self.random.randint(1, 13), 40
        rows = [self.random.randint(2, 30) for _ in range(fields)]
        bottom, top = ([self.random.randint(3, 16) for _ in range(self.random.randint(0, 2))] for _ in range(2))
        bottom, top = [*bottom, self.random.randint(2, 9)], [*top, 1]
        rng = np.random.default_rng(self.random.randrange(2**32))
        arrays = {"numbers": rng.standard_normal((count, numbers)).astype("float32"),
                  "categories": np.stack([rng.integers(0, below, count) for below in rows], 1).astype("int32"),
                  "clicked": rng.integers(0, 2, count).astype("float32")}
        file = io.BytesIO()
        np.savez(file, **arrays)
        order = Order(1, TRAIN, True, 0, count)
        data = {"train": {"path": "rows.npz", "format": "npz"}, "batch_size": self.BATCH, "eval_fraction": 0,
                "inputs": {"numbers": {"shape": [numbers]}, "categories": {"shape": [fields]}, "clicked": {}},
                "files": {"rows.npz": file.getvalue()}}
        ours = {"categories": fields, **{f"{name}.{i}": value for name, values in (("rows", rows), ("bottom", bottom), ("top", top))
                                         for i, value in enumerate(values)}}

        def batch(n):
            chosen = [order.start(n * self.BATCH + i) for i in range(self.BATCH)]
            return [torch.tensor(array[chosen]) for array in arrays.values()]

        self.check("dlrm.c", Clicks(numbers, rows, bottom, top), ours, data, batch,
                   lambda model, numbers, categories, clicked: torch.nn.functional.binary_cross_entropy_with_logits(
                       model(numbers, categories), clicked))


if __name__ == "__main__":
    unittest.main()
