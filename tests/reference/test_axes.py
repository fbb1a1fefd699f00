"""Two ranks that divide matrices, sequences or layers against PyTorch's that do, from the same weights and batches: the losses of 20
steps. PyTorch's side is that of tests/bench/peer_axes.py: parallelize_module, its all-to-all and all-gather with DDP, and
torch.distributed.pipelining, over gloo. In bfloat16 ours may be twice as far from PyTorch's losses in float32 as PyTorch's own are."""

import contextlib
import pathlib
import sys
import unittest

import numpy as np
import torch
from peers import FAST, answers, group
from rows import SEED, save_file, windows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

from peer_axes import AXES  # noqa: E402
from peer_torch import GPT, Config  # noqa: E402
from ranks import CORPUS, Ranks, job_of  # noqa: E402

RANKS, STEPS, BATCH = 2, 20, 4
SHAPE = Config(layers=4, heads=4, width=32, length=16, positions=16, batch=BATCH, vocabulary=256, bias=True, gelu="none", lr=1e-3, betas=(0.9, 0.95))
CONFIG = {"n_layer": 4, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 16}
NAMES = {"blocks.": "transformer.h.", ".c_fc": ".mlp.c_fc", "wte": "transformer.wte", "wpe": "transformer.wpe", "ln_f": "transformer.ln_f"}
DECAY = 0.1


def of_nanogpt(name):
    """The name that a parameter of GPT has in examples/models/nanogpt.c."""
    for word, there in NAMES.items():
        name = name.replace(word, there)
    return name if ".attn." in name else name.replace(".c_proj", ".mlp.c_proj")


def start_model():
    torch.manual_seed(3)
    return GPT(SHAPE)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=SHAPE.lr, betas=SHAPE.betas, weight_decay=DECAY)


def train(divided, cast=contextlib.nullcontext):
    batches, losses = windows(CORPUS, SHAPE.length, BATCH, SEED, False, 0), []
    for step in range(STEPS):
        tokens, targets = (torch.tensor(np.asarray(part), dtype=torch.int64) for part in batches(step))
        with cast():
            losses.append(divided.step(tokens, targets))
        divided.clip()
        divided.optimizer.step()
        divided.optimizer.zero_grad()
    return losses


def in_bf16():
    return torch.autocast("cpu", torch.bfloat16)


def of_axes(axes, rank, ranks, port, out):
    """One of PyTorch's ranks: the losses by each axis, and by matrices in bfloat16."""
    with group(rank, ranks, port):
        for axis in axes:
            losses = train(AXES[axis](start_model(), SHAPE, adamw))
            if rank == 0:
                out.put(losses)
        losses = train(AXES["tp"](start_model(), SHAPE, adamw), in_bf16)
        if rank == 0:
            out.put(losses)


class Axes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.axes = ("tp", "sp", "cp", "pp-1f1b")
        *found, cls.half = answers(len(cls.axes) + 1, of_axes, RANKS, cls.axes)
        cls.wanted = dict(zip(cls.axes, found))

    def ours(self, batch=BATCH, ranks=RANKS, **groups):
        job = job_of(ranks, batch, STEPS, model="nanogpt", config={**CONFIG, "bias": True},
                     optimizer={"name": "adamw", "lr": SHAPE.lr, "betas": list(SHAPE.betas), "weight_decay": DECAY, "clip_grad_norm": 1.0,
                                "eps": 1e-8}, **groups)
        job["model"]["weights"] = "start.safetensors"
        job["data"] |= {"shuffle": False, "eval_fraction": 0}
        trainer = Ranks(ranks, job)
        weights = {of_nanogpt(name): value.detach().numpy() for name, value in start_model().named_parameters()}
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build(CFLAGS=FAST)
        return [line["loss"] for line in trainer.run()]

    def check(self, losses, wanted):
        for step, (loss, want) in enumerate(zip(losses, wanted, strict=True), 1):
            self.assertLess(abs(loss / want - 1), 1e-6, f"loss of step {step}")

    def test_matrices(self):
        self.check(self.ours(parallelism={"tp": 2}), self.wanted["tp"])

    def test_residual(self):
        self.check(self.ours(parallelism={"tp": 2, "megatron": {"sequence_parallelism": True}}), self.wanted["tp"])

    def test_heads_for_positions(self):
        self.check(self.ours(parallelism={"sp": 2}), self.wanted["sp"])

    def test_context(self):
        self.check(self.ours(parallelism={"cp": 2}), self.wanted["cp"])

    def test_layers(self):
        self.check(self.ours(batch=1, parallelism={"pp": 2}, accumulation={"num_steps": 4, "sync_with_dataloader": False}), self.wanted["pp-1f1b"])

    def test_matrices_in_bf16(self):
        exact, half = (np.array(losses) for losses in (self.wanted["tp"], self.half))
        ours = np.array(self.ours(parallelism={"tp": 2}, precision={"mixed_precision": "bf16"}))
        self.assertLess(np.abs(ours - exact).max(), 2 * np.abs(half - exact).max())


if __name__ == "__main__":
    unittest.main()
