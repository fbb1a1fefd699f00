"""examples/models/unet.c against its PyTorch: the noise that it draws is worked out here, from the words of its stream."""

import pathlib
import subprocess
import sys
import unittest

import numpy as np
import torch
from peer import GENERATOR, Images, MODELS, Trainer
from test_recurrent import Saved
from unet import UNet, noised

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops/kernels"))
from sequence_cases import words_of  # noqa: E402

MASK = 2**64 - 1


def stream_of(seed, position):
    """The key of a training step's draws (accel_stream)."""
    z = (seed + 0x9E3779B97F4A7C15 * (position * 65536 + 1)) & MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ z >> shift) * factor & MASK
    return z ^ z >> 31


def draws(shape, position):
    """What examples/models/unet.c draws in a step: steps below 1000, then the noise."""
    stream, count = stream_of(1, position), int(np.prod(shape))
    steps = (words_of(shape[0], 0, stream) * np.uint64(1000)) >> np.uint64(32)
    upper = (words_of(count + count % 2, 1, stream) >> np.uint64(8)) / 2**24
    far, angle = np.sqrt(-2 * np.log(upper[::2] + 2.0**-24)), 2 * np.pi * upper[1::2]
    noise = np.stack((far * np.cos(angle), far * np.sin(angle)), -1).ravel()[:count]
    return torch.tensor(steps.astype(np.int64)), torch.tensor(noise.reshape(shape), dtype=torch.float32)


class Denoiser(Saved, UNet):
    def __init__(self, **config):
        UNet.__init__(self, **config)
        self.made = config


class Diffusion(Images):
    def test_unet(self):
        same = {"in_channels": self.random.randint(1, 3), "layers_per_block": self.random.randint(1, 2), "norm_num_groups": 4,
                "attention_head_dim": self.random.choice([4, 8]), "num_class_embeds": self.random.choice([0, 4])}
        widths, attend = [8, 16], [self.random.choice([True, False]), True]
        size = self.random.choice([4, 8])
        ours = {**same, "sample_size": size, "blocks": 2}
        for i in range(2):
            ours |= {f"block_out_channels.{i}": widths[i], f"attend.{i}": attend[i]}
        data, batches = self.images(same["in_channels"], size, 4)

        def loss(model, x, labels, steps, noise):
            return torch.nn.functional.mse_loss(model(noised(x, noise, steps), steps, labels), noise)

        def drawn(n):
            x, labels = batches(n)
            return x, labels, *draws(x.shape, n)

        theirs = Denoiser(**same, block_out_channels=widths, attend=attend)
        self.check("unet.c", theirs, ours, data, drawn, loss)

    def test_evaluation_draws_the_same_each_time(self):
        """With a rate that moves nothing, every evaluation is the first; one over all samples is refused."""
        job = {"model": {"source": str(MODELS / "unet.c"), "config": {
                   "sample_size": 4, "in_channels": 1, "blocks": 1, "block_out_channels.0": 8, "attend.0": False, "layers_per_block": 1,
                   "norm_num_groups": 4}},
               "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 16, "batch_size": 5, "eval_fraction": 0.5},
               "optimizer": {"name": "sgd", "lr": 1e-30}, "training": {"steps": 3, "seed": 1, "eval_interval": 1, "eval_iters": 2}}
        trainer = Trainer(job)
        data, _ = self.images(1, 4, 4)
        (trainer.folder / "rows.csv").write_bytes(data["files"]["rows.csv"])
        trainer.build()
        evaluations = [line["eval_loss"] for line in trainer.run() if "eval_loss" in line]
        self.assertGreater(len(evaluations), 2)
        self.assertEqual(len(set(evaluations)), 1)
        for more, reason in (([], "so an evaluation cannot take each sample once"),
                             (["--program", "evaluate"], "which only a program that trains gives a model")):
            output = subprocess.run([GENERATOR, "plan", "job.yaml", *more, "--set", "training.eval_iters=all"], cwd=trainer.folder,
                                  capture_output=True, text=True)
            self.assertNotEqual(output.returncode, 0)
            self.assertIn(reason, output.stderr)


if __name__ == "__main__":
    unittest.main()
