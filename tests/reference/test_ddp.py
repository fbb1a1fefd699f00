"""Ranks beside PyTorch's DistributedDataParallel over gloo, with as many processes, from the same weights and batches:
losses, norms and weights of 50 steps."""

import contextlib
import unittest

import torch
import torch.nn.functional as F
from peers import compare, own_rows, peers, rows_of, trained
from rows import Mlp

STEPS, LR = 50, 0.01


def train(rows, micro, hook, rank, ranks, port, out):
    """One of PyTorch's ranks: (loss, norm) of each step by its own batches, the weights at the end."""
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    model = torch.nn.parallel.DistributedDataParallel(Mlp(rows.weights), bucket_cap_mb=0.0001)
    if hook != "no":
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        model.register_comm_hook(None, getattr(default_hooks, f"{hook}_compress_hook"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.1)
    lines = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for i in range(micro):
            own = own_rows(rows, step * micro + i, rank, ranks)
            with model.no_sync() if i + 1 < micro else contextlib.nullcontext():
                loss = F.cross_entropy(model(torch.tensor(rows.features[own])), torch.tensor(rows.labels[own])) / micro
                loss.backward()
            total += loss.item()
        mean = torch.tensor(total, dtype=torch.float64)
        torch.distributed.all_reduce(mean)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5).item()
        optimizer.step()
        lines.append((mean.item() / ranks, norm))
    if rank == 0:
        out.put((lines, {name: value.numpy() for name, value in model.module.state_dict().items()}))
    torch.distributed.destroy_process_group()


class Ddp(unittest.TestCase):
    def check(self, ranks, batch, micro, hook="no"):
        rows = rows_of(ranks, batch, STEPS, micro, parallelism={"ddp": {"bucket_cap_mb": 0.0001, "comm_hook": hook}},
                       optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": 0.5})
        lines = trained(rows, ranks)
        wanted, weights = peers(train, ranks, rows, micro, hook)
        near = 1e-6 if hook == "no" else 3e-5  # a gradient's last bit of 16 may fall to either side
        compare(self, rows, lines, wanted, weights, near, 10 * near, 10 * near)

    def test_two_ranks(self):
        self.check(2, 4, 1)

    def test_three_ranks_accumulating(self):
        self.check(3, 2, 2)

    def test_in_bf16(self):
        self.check(2, 4, 1, "bf16")

    def test_in_fp16(self):
        self.check(2, 4, 1, "fp16")


if __name__ == "__main__":
    unittest.main()
