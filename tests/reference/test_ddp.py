"""Ranks beside PyTorch's DistributedDataParallel over gloo, with as many processes, from the same weights and batches:
losses, norms and weights of 50 steps."""

import contextlib
import json
import multiprocessing
import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F
from rows import SEED, TRAIN, Mlp, Order, Rows, relative

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import free_port, start  # noqa: E402

STEPS, LR = 50, 0.01


def train(rows, ranks, batch, micro, hook, rank, port, out):
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
            round = (step * micro + i) * ranks * batch
            own = [rows.order.start(round + rank * batch + k) for k in range(batch)]
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
    def peers(self, *arguments):
        context, port = multiprocessing.get_context("fork"), free_port()
        out = context.Queue()
        ranks = arguments[1]
        processes = [context.Process(target=train, args=(*arguments, rank, port, out)) for rank in range(ranks)]
        for process in processes:
            process.start()
        answer = out.get(timeout=120)
        for process in processes:
            process.join()
        return answer

    def check(self, ranks, batch, micro, hook="no"):
        rows = Rows(ranks * batch * 7 * micro, batch, steps=STEPS, devices={"per_node": ranks},
                    optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": 0.5},
                    accumulation={"num_steps": micro}, parallelism={"ddp": {"bucket_cap_mb": 0.0001, "comm_hook": hook}})
        rows.order = Order(SEED, TRAIN, True, 0, len(rows.labels), batch=ranks * batch)
        rows.trainer.build()
        result = start(rows.trainer.folder / "trainer", ranks, cwd=rows.trainer.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [json.loads(x) for x in (rows.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        wanted, weights = self.peers(rows, ranks, batch, micro, hook)
        self.assertEqual(len(lines), STEPS)
        near = 1e-6 if hook == "no" else 3e-5  # a gradient's last bit of 16 may fall to either side
        for line, (loss, norm) in zip(lines, wanted, strict=True):
            self.assertLess(abs(line["loss"] / loss - 1), near, f"loss of step {line['step']}")
            self.assertLess(abs(line["grad_norm"] / norm - 1), 10 * near, f"norm of step {line['step']}")
        after = rows.trainer.weights()
        for name, value in weights.items():
            self.assertLess(relative(after[name], value), 10 * near, name)

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
