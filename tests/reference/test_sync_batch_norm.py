"""sync_batch_norm: ranks against one process of PyTorch that takes the batches of all of them as one, which is what its
SyncBatchNorm, for GPUs alone, gives: losses, norms, weights and running statistics of 50 steps."""

import pathlib
import subprocess
import unittest

import torch
import torch.nn.functional as F
from peers import add_gradients, own_rows, rows_of, trained
from rows import FEATURES, GENERATOR, WIDTH, Mlp, random_weights, relative, shapes_of

MODEL = pathlib.Path(__file__).resolve().parent / "models" / "normed.c"
STEPS, LR = 50, 0.05


class Normed(Mlp):
    """models/normed.c, as deep and wide as its weights."""

    def __init__(self, weights):
        super().__init__(weights)
        for layer in self.hidden:
            layer.norm = torch.nn.BatchNorm1d(layer.out_features)

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer.norm(layer(x)))
        return self.output(x)


def alone(rows, ranks, micro):
    """(loss, norm) of each step, and the model at the end."""
    model = Normed(rows.weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    lines = []
    for step in range(STEPS):
        optimizer.zero_grad()
        batches = [[row for rank in range(ranks) for row in own_rows(rows, step * micro + i, rank, ranks)] for i in range(micro)]
        total = add_gradients(rows, batches, model)
        lines.append((total, torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()))
        optimizer.step()
    return lines, model


class SyncBatchNorm(unittest.TestCase):
    def check(self, ranks, batch, micro=1, near=1e-6, layers=1, width=WIDTH, **groups):
        parallelism = {"sync_batch_norm": True, **groups.pop("parallelism", {})}
        rows = rows_of(ranks, batch, STEPS, micro, model=MODEL, config={"n_layer": layers, "width": width, "n_classes": 3},
                       weights=random_weights(shapes=shapes_of(layers, width)), parallelism=parallelism, optimizer={"name": "sgd", "lr": LR, "momentum": 0.9, "clip_grad_norm": 0.5},
                       **groups)
        rows.trainer.job["model"]["fresh"] = ["*norm*"]
        rows.trainer.write()
        lines = trained(rows, ranks)
        wanted, model = alone(rows, ranks, micro)
        self.assertEqual(len(lines), STEPS)
        for line, (loss, norm) in zip(lines, wanted, strict=True):
            self.assertLess(abs(line["loss"] / loss - 1), near, f"loss of step {line['step']}")
            self.assertLess(abs(line["grad_norm"] / norm - 1), 100 * near, f"norm of step {line['step']}")
        after = rows.trainer.weights()
        for name, value in model.state_dict().items():
            self.assertLess(relative(after[name], value.numpy()), 1000 * near, name)
        return rows

    def test_two_ranks(self):
        self.check(2, 4)

    def test_three_ranks_accumulating(self):
        rows = self.check(3, 2, 2)
        sums = [c for c in rows.trainer.plan()["collectives"] if c["what"].startswith("statistics")]
        self.assertEqual([(c["bytes"], c["times"]) for c in sums], [(2 * WIDTH * 8, 2)] * 2)

    def test_refused(self):
        rows = rows_of(2, 4, STEPS, parallelism={"sync_batch_norm": True})
        done = subprocess.run([GENERATOR, rows.trainer.path, "-o", "-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"job.yaml:\d+:\d+: error: the model has no batch normalisation that ranks could have")

    def test_states_divided(self):
        self.check(4, 2, parallelism={"sync_batch_norm": True, "zero_stage": 1, "dp_shard": 2})

    def test_gradients_divided(self):
        """Gradients of layers that take each other's memory, next to statistics that are whole on every rank."""
        rows = self.check(2, 12, layers=3, width=FEATURES, parallelism={"sync_batch_norm": True, "zero_stage": 2})
        sums = [c["what"] for c in rows.trainer.plan()["collectives"] if c["what"].startswith("gradients of hidden")]
        self.assertEqual(sums, [f"gradients of hidden.{i}.norm.bias and 3 more" for i in (2, 1, 0)])


if __name__ == "__main__":
    unittest.main()
