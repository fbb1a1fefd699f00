"""Two ranks that divide matrices, sequences or layers against PyTorch's that do, from the same weights and batches: the losses of 20
steps. PyTorch's side is that of tests/bench/peer_axes.py: parallelize_module, its all-to-all and all-gather with DDP, and
torch.distributed.pipelining, over gloo. test_axes_bf16.py has the same in bfloat16."""

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


def of_axes(axes, cast, rank, ranks, port, out):
    """One of PyTorch's ranks: the losses by each axis."""
    with group(rank, ranks, port):
        for axis in axes:
            losses = train(AXES[axis](start_model(), SHAPE, adamw), cast)
            if rank == 0:
                out.put(losses)


def losses_of(axes, cast=contextlib.nullcontext):
    """PyTorch's, by axis."""
    return dict(zip(axes, answers(len(axes), of_axes, RANKS, axes, cast)))


def weights_of(model):
    return {of_nanogpt(name): value.detach().numpy() for name, value in model.named_parameters()}


def start(weights, batch=BATCH, ranks=RANKS, model="nanogpt", config=None, **groups):
    """Our trainer that begins with these weights and takes the same samples."""
    job = job_of(ranks, batch, STEPS, model=model, config=config or {**CONFIG, "bias": True},
                 optimizer={"name": "adamw", "lr": SHAPE.lr, "betas": list(SHAPE.betas), "weight_decay": DECAY, "clip_grad_norm": 1.0,
                            "eps": 1e-8}, **groups)
    job["model"]["weights"] = "start.safetensors"
    job["data"] |= {"shuffle": False, "eval_fraction": 0}
    trainer = Ranks(ranks, job)
    save_file(weights, trainer.folder / "start.safetensors")
    trainer.build(CFLAGS=FAST)
    return trainer


class Axes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.wanted = losses_of(("tp", "sp", "cp", "pp-1f1b"))

    def ours(self, batch=BATCH, **groups):
        return [line["loss"] for line in start(weights_of(start_model()), batch, **groups).run()]

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


if __name__ == "__main__":
    unittest.main()
