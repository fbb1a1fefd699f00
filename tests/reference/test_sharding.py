"""Ranks that divide states, gradients and weights beside PyTorch over gloo, from the same weights and batches: stage 1
beside ZeroRedundancyOptimizer under DistributedDataParallel, stages 2 and 3 beside fully_shard (FSDP2), in groups beside
a mesh of two axes (HSDP). Losses, norms and weights of 30 steps."""

import contextlib
import unittest

import torch
import torch.nn.functional as F
from peers import compare, own_rows, peers, rows_of, trained
from rows import CLASSES, FEATURES, save_file
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor

STEPS, LR, LAYERS = 30, 0.01, 4


class Deep(torch.nn.Module):
    """examples/models/mlp_table.c with layers as wide as a row."""

    def __init__(self, weights):
        super().__init__()
        self.hidden = torch.nn.ModuleList(torch.nn.Linear(FEATURES, FEATURES) for _ in range(LAYERS))
        self.output = torch.nn.Linear(FEATURES, CLASSES)
        self.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.output(x)


def deep_weights():
    generator = torch.Generator().manual_seed(5)
    shapes = {f"hidden.{i}.weight": (FEATURES, FEATURES) for i in range(LAYERS)}
    shapes |= {f"hidden.{i}.bias": (FEATURES,) for i in range(LAYERS)}
    shapes |= {"output.weight": (CLASSES, FEATURES), "output.bias": (CLASSES,)}
    return {name: (torch.randn(shape, generator=generator) * 0.4).numpy() for name, shape in shapes.items()}


def divided(model, stage, shards, ranks):
    """The model as PyTorch divides it, and its optimizer."""
    if stage == 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=LR, weight_decay=0.1)
    axes = (ranks,) if shards == ranks else (ranks // shards, shards)
    mesh = init_device_mesh("cpu", axes, mesh_dim_names=("replicate", "shard")[-len(axes):])
    for layer in model.hidden:
        fully_shard(layer, mesh=mesh, reshard_after_forward=stage == 3)
    fully_shard(model, mesh=mesh, reshard_after_forward=stage == 3)
    return model, torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.1)


def train(rows, micro, stage, shards, rank, ranks, port, out):
    """One of PyTorch's ranks: (loss, norm) of each step by its own batches, the weights at the end."""
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    model, optimizer = divided(Deep(rows.weights), stage, shards, ranks)
    lines = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for i in range(micro):
            own = own_rows(rows, step * micro + i, rank, ranks)
            with model.no_sync() if stage == 1 and i + 1 < micro else contextlib.nullcontext():
                loss = F.cross_entropy(model(torch.tensor(rows.features[own])), torch.tensor(rows.labels[own])) / micro
                loss.backward()
            total += loss.item()
        mean = torch.tensor(total, dtype=torch.float64)
        torch.distributed.all_reduce(mean)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        optimizer.step()
        lines.append((mean.item() / ranks, norm.item()))
    state = (model.module if stage == 1 else model).state_dict()
    whole = {name: (value.full_tensor() if isinstance(value, DTensor) else value).numpy() for name, value in state.items()}
    if rank == 0:
        out.put((lines, whole))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


class Sharding(unittest.TestCase):
    def check(self, ranks, batch, micro, stage, shards):
        divides = {"zero_stage": 1} if stage == 1 else {"fsdp": {"reshard_after_forward": stage == 3}}
        rows = rows_of(ranks, batch, STEPS, micro, parallelism={**divides, "dp_shard": shards},
                       config={"n_layer": LAYERS, "width": FEATURES, "n_classes": CLASSES},
                       optimizer={"name": "adamw", "lr": LR, "weight_decay": 0.1, "clip_grad_norm": 0.5})
        rows.weights = deep_weights()
        save_file(rows.weights, rows.trainer.folder / "start.safetensors")
        lines = trained(rows, ranks)
        wanted, weights = peers(train, ranks, rows, micro, stage, shards)
        compare(self, rows, lines, wanted, weights, 1e-6, 1e-5, 1e-5)

    def test_states(self):
        self.check(2, 4, 2, 1, 2)

    def test_gradients(self):
        self.check(2, 4, 1, 2, 2)

    def test_weights_in_groups(self):
        self.check(4, 2, 2, 3, 2)


if __name__ == "__main__":
    unittest.main()
