"""comm_hook: power_sgd and batched_power_sgd, and what comm_wrapper puts around them, against PyTorch's own hooks over gloo,
with as many processes, from the same weights, batches and random factors: losses, norms and weights of 20 steps."""

import json
import math
import sys
import unittest

import numpy as np
import torch
from peers import arrays, compare, group, peers, rows_of, start, take_steps, trained
from rows import SHAPES, TREE, Mlp
from safetensors.numpy import load_file
from accelerate.utils import DDPCommunicationHookType, DistributedDataParallelKwargs
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hooks

sys.path.insert(0, str(TREE / "tests" / "runtime"))

from order import random_word  # noqa: E402

STEPS, LR, DRAW = 20, 0.01, 7 << 56
MEMORY = ["output.weight", "output.bias", "hidden.0.weight", "hidden.0.bias"]  # of the trainer, in order


def normals(seed, number, count):
    """runtime/random/draw.c in float64."""
    values = np.empty(-(-count // 64) * 64)
    for block in range(len(values) // 4):
        words = [random_word(seed, DRAW | number, 4 * block + i) for i in range(4)]
        for pair in (0, 2):
            radius = math.sqrt(-2 * math.log(((words[pair] >> 1) + 0.5) / 2**31))
            angle = 2 * math.pi * words[pair + 1] / 2**32
            at = block // 16 * 64 + pair * 16 + block % 16
            values[at], values[at + 16] = radius * math.cos(angle), radius * math.sin(angle)
    return values[:count].astype(np.float32)


def padded(count):
    return -(-count // 16) * 16


class Factors:
    """torch.randn that gives a matrix's right factor what the trainer draws for it: by its columns, at its position."""

    def __init__(self, option, batched):
        self.seed, self.positions, self.count, self.step = option.get("random_seed", 0), {}, 0, 0
        rank = option.get("matrix_approximation_rank", 1)
        sides = [side_of_all()] if batched else [SHAPES[name][1] for name in MEMORY[::2]]
        for side in sides:
            self.positions[side] = self.count
            self.count += padded(side * rank)

    def __call__(self, *shape, dtype=torch.float32, **_):
        first, count = self.positions[shape[-2]], math.prod(shape)
        return torch.tensor(normals(self.seed, self.step, self.count)[first:first + count]).reshape(shape).to(dtype)


def side_of_all():
    return math.ceil(math.sqrt(sum(padded(math.prod(shape)) for shape in SHAPES.values())))


class Bucket:
    """All gradients as they are in the trainer's memory."""

    def __init__(self, model):
        self.model, self.positions, at = model, {}, 0
        for name in MEMORY:
            self.positions[name] = at
            at += padded(math.prod(SHAPES[name]))
        self.memory = torch.zeros(at)
        for name, parameter in model.named_parameters():
            self.view(self.memory, name).copy_(parameter.grad)

    def view(self, memory, name):
        first = self.positions[name]
        return memory[first:first + math.prod(SHAPES[name])].view(SHAPES[name])

    def buffer(self):
        return self.memory

    def set_buffer(self, memory):
        self.memory = memory

    def index(self):
        return 0

    def is_last(self):
        return True

    def give_back(self, memory):
        for name, parameter in self.model.named_parameters():
            parameter.grad.copy_(self.view(memory, name))


def orthogonalize(matrices, epsilon=0, original=hooks._orthogonalize):
    """PyTorch 2.15's batched hook calls it with one matrix, and it takes several alone."""
    original(matrices if matrices.dim() == 3 else matrices.unsqueeze(0), epsilon)


def optimizer_of(parameters, wrapper):
    """Adam makes much of small gradients, and with a wrapper PyTorch has 16 bits of them in all that it computes."""
    if wrapper == "no":
        return torch.optim.AdamW(parameters, lr=LR, weight_decay=0.1)
    return torch.optim.SGD(parameters, lr=10 * LR)


def train(rows, micro, name, wrapper, option, rank, ranks, port, out):
    """One of PyTorch's ranks: (loss, norm) of each step by its own batches, the weights at the end."""
    with group(rank, ranks, port):
        plain, batched = Mlp(rows.weights), name == "batched_power_sgd"
        state, hook = hooks.PowerSGDState(None, **option), hooks.batched_powerSGD_hook
        if wrapper != "no":
            hook = getattr(default_hooks, f"{wrapper}_compress_wrapper")(hook)
        torch.randn, hooks._orthogonalize = Factors(option, batched), orthogonalize
        model = plain if batched else torch.nn.parallel.DistributedDataParallel(plain)
        if not batched:
            DistributedDataParallelKwargs(comm_hook=DDPCommunicationHookType(name), comm_state_option=option,
                                          comm_wrapper=DDPCommunicationHookType(wrapper)).register_comm_hook(model)

        def draw(step):
            torch.randn.step = 0 if option.get("warm_start", True) else step

        def exchange():
            bucket = Bucket(plain)
            bucket.give_back(hook(state, bucket).wait())

        how = {"exchange": exchange} if batched else {"quiet": model.no_sync}
        lines = take_steps(rows, STEPS, micro, model, optimizer_of(model.parameters(), wrapper), before=draw, **how)
        if rank == 0:
            out.put((lines, arrays(plain)))


class PowerSgd(unittest.TestCase):
    def check(self, ranks, batch, micro, name, wrapper="no", near=1e-5, norms=1e-3, normalize="batches", **option):
        moves = {"name": "sgd", "lr": 10 * LR} if wrapper != "no" else {"name": "adamw", "lr": LR, "weight_decay": 0.1}
        ddp = {"comm_hook": name, "comm_wrapper": wrapper, "comm_state_option": option}
        rows = rows_of(ranks, batch, STEPS, micro, parallelism={"ddp": ddp}, optimizer={**moves, "clip_grad_norm": 0.5},
                       accumulation={"normalize": normalize})
        lines = trained(rows, ranks)
        plan = rows.trainer.plan()
        factors = [c["bytes"] for c in plan["collectives"] if "right factors" in c["what"]]
        width, count = 4 if wrapper == "no" else 2, Factors(option, name == "batched_power_sgd").count
        self.assertEqual(factors, [width * count], json.dumps(plan))
        wanted, weights = peers(train, ranks, rows, micro, name, wrapper, option)
        compare(self, rows, lines, wanted, weights, near, norms, 10 * near)

    def test_one_column(self):
        """Each batch has as many targets, so that their mean is that of batches."""
        self.check(2, 4, 1, "power_sgd", normalize="tokens", start_powerSGD_iter=3)

    def test_two_columns_drawn_anew(self):
        self.check(3, 2, 2, "power_sgd", matrix_approximation_rank=2, start_powerSGD_iter=0, min_compression_rate=1,
                   use_error_feedback=False, warm_start=False, random_seed=5)

    def test_in_bf16(self):
        self.check(3, 2, 2, "power_sgd", "bf16", 5e-3, 0.2, matrix_approximation_rank=2, start_powerSGD_iter=2,
                   min_compression_rate=1)

    def test_one_square_in_fp16(self):
        """The norm of what one column says of all gradients leaps with their last bits, from step to step."""
        self.check(3, 4, 1, "batched_power_sgd", "fp16", 5e-3, 1, start_powerSGD_iter=2)

    def test_resumes(self):
        """What factors have missed is a part of a checkpoint, so a run resumes from one bit for bit."""
        rows = rows_of(3, 2, STEPS, parallelism={"ddp": {"comm_hook": "power_sgd",
                                                         "comm_state_option": {"start_powerSGD_iter": 2}}},
                       optimizer={"name": "adamw", "lr": LR}, checkpoint={"every": 8})
        trained(rows, 3)
        folder = rows.trainer.folder
        result = start(folder / "trainer", 3, "--resume", folder / "run" / "checkpoints" / "checkpoint_0",
                       "--project-dir", "other", cwd=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        again = load_file(folder / "other" / "model.safetensors")
        for name, value in rows.trainer.weights().items():
            self.assertTrue(np.array_equal(again[name], value), name)

    def test_all_as_one_square(self):
        self.check(2, 4, 1, "batched_power_sgd", start_powerSGD_iter=2)


if __name__ == "__main__":
    unittest.main()
