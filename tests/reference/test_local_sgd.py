"""parallelism.local_sgd_steps against Accelerate's own LocalSGD over gloo, with as many processes, from the same weights and
batches: the losses of rank 0 and the weights at the end, which are averaged there too."""

import unittest

import torch
from accelerate.local_sgd import LocalSGD
from peers import accelerated, add_gradients, own_rows, peers, relative, rows_of, trained
from rows import Mlp

STEPS, LR = 50, 0.01


def train(rows, micro, local, rank, ranks, port, out):
    """One of Accelerate's processes: the losses of rank 0, and its weights at the end."""
    accelerator = accelerated(rank, ranks, port)
    model = Mlp(rows.weights)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.1))
    losses = []
    with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=local) as sgd:
        for step in range(STEPS):
            optimizer.zero_grad()
            batches = [own_rows(rows, step * micro + i, rank, ranks) for i in range(micro)]
            losses.append(add_gradients(rows, batches, model, backward=accelerator.backward))
            accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            sgd.step()
    if rank == 0:
        out.put((losses, {name: value.numpy() for name, value in model.module.state_dict().items()}))
    torch.distributed.destroy_process_group()


class Local(unittest.TestCase):
    def check(self, ranks, batch, micro, local):
        rows = rows_of(ranks, batch, STEPS, micro, parallelism={"local_sgd_steps": local},
                       optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": 0.5})
        lines = trained(rows, ranks)
        wanted, weights = peers(train, ranks, rows, micro, local)
        self.assertEqual(len(lines), STEPS)
        for line, loss in zip(lines, wanted, strict=True):
            self.assertLess(abs(line["loss"] / loss - 1), 1e-6, f"loss of step {line['step']}")
        after = rows.trainer.weights()
        for name, value in weights.items():
            self.assertLess(relative(after[name], value), 1e-5, name)

    def test_two_ranks(self):
        """The last steps are fewer than those between two means."""
        self.check(2, 4, 1, 6)

    def test_three_ranks_accumulating(self):
        self.check(3, 2, 2, 4)


if __name__ == "__main__":
    unittest.main()
