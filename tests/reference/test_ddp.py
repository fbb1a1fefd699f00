"""Gradients that are sent in 16 bits against the hooks of PyTorch's DistributedDataParallel over gloo, with as many processes,
from the same weights and batches: losses, norms and weights of 50 steps."""

import unittest

import torch
from peers import CLIP, arrays, compare, group, peers, rows_of, take_steps, trained
from rows import Mlp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

STEPS, LR = 50, 0.01


def train(rows, micro, hook, rank, ranks, port, out):
    """One of PyTorch's ranks: (loss, norm) of each step by its own batches, the weights at the end."""
    with group(rank, ranks, port):
        model = torch.nn.parallel.DistributedDataParallel(Mlp(rows.weights), bucket_cap_mb=0.0001)
        model.register_comm_hook(None, getattr(default_hooks, f"{hook}_compress_hook"))
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.1)
        lines = take_steps(rows, STEPS, micro, model, optimizer, quiet=model.no_sync)
        if rank == 0:
            out.put((lines, arrays(model.module)))


class Ddp(unittest.TestCase):
    def check(self, ranks, batch, micro, hook):
        rows = rows_of(ranks, batch, STEPS, micro, parallelism={"ddp": {"bucket_cap_mb": 0.0001, "comm_hook": hook}},
                       optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": CLIP})
        lines = trained(rows, ranks)
        # A gradient's last bit of 16 may fall to either side.
        compare(self, rows, lines, *peers(train, ranks, rows, micro, hook), 3e-5, 3e-4, 3e-4)

    def test_in_bf16(self):
        self.check(2, 4, 1, "bf16")

    def test_in_fp16(self):
        self.check(2, 2, 2, "fp16")


if __name__ == "__main__":
    unittest.main()
