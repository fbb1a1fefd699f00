"""examples/models/unet.c against its PyTorch, vae.c and dit.c against diffusers' classes: what they draw is worked out here, from the words of its stream. Half of
the tests a run (rotation.py)."""

import io
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import torch
from diffusers import AutoencoderKL, DiTTransformer2DModel
from peer import GENERATOR, Images, MODELS, Order, TRAIN, Trainer, drawn
from rotation import rotating
from process import Process
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


def whole(count, site, position, below):
    """random_int of a step, of the model's function number `site` that draws."""
    return torch.tensor(((words_of(count, site, stream_of(1, position)) * np.uint64(below)) >> np.uint64(32)).astype(np.int64))


def uniform(count, site, position):
    """random_uniform."""
    return (words_of(count, site, stream_of(1, position)) >> np.uint64(8)) / 2**24


def normal(shape, site, position):
    """random_normal."""
    count = int(np.prod(shape))
    upper = uniform(count + count % 2, site, position)
    far, angle = np.sqrt(-2 * np.log(upper[::2] + 2.0**-24)), 2 * np.pi * upper[1::2]
    noise = np.stack((far * np.cos(angle), far * np.sin(angle)), -1).ravel()[:count]
    return torch.tensor(noise.reshape(shape), dtype=torch.float32)


class Denoiser(Saved, UNet):
    def __init__(self, **config):
        UNet.__init__(self, **config)
        self.made = config


class Diffusion(Images):
    def pictures(self, shape):
        """Pictures without labels: the data of a job, and batch n."""
        rows = np.random.default_rng(self.random.randrange(2**32)).standard_normal((60, *shape)).astype(np.float32)
        file, order = io.BytesIO(), Order(1, TRAIN, True, 0, 60)
        np.save(file, rows)
        data = {"train": {"path": "rows.npy", "format": "npy"}, "batch_size": self.BATCH, "eval_fraction": 0,
                "inputs": {"picture": {"shape": list(shape)}}, "files": {"rows.npy": file.getvalue()}}
        return data, lambda n: torch.tensor(rows[[order.start(n * self.BATCH + i) for i in range(self.BATCH)]])

    def vae(self, blocks, shape, **more):
        same = {"in_channels": shape[0], "latent_channels": self.random.randint(1, 4), "layers_per_block": self.random.randint(1, 2),
                "norm_num_groups": self.random.choice([2, 4]), **more}
        widths, weight = [self.random.choice([4, 8, 12]) for _ in range(blocks)], self.random.choice([1.0, 1e-3])
        theirs = AutoencoderKL(**same, out_channels=shape[0], block_out_channels=widths, down_block_types=["DownEncoderBlock2D"] * blocks,
                               up_block_types=["UpDecoderBlock2D"] * blocks)
        ours = {**same, "blocks": blocks, "kl_weight": weight, **{f"block_out_channels.{i}": width for i, width in enumerate(widths)}}
        latent = (self.BATCH, same["latent_channels"], *(side >> blocks - 1 for side in shape[1:]))
        data, batch = self.pictures(shape)

        def loss(model, x, noise):
            latent = model.encode(x).latent_dist
            again = model.decode(latent.mean + latent.std * noise).sample
            return torch.nn.functional.mse_loss(again, x) / 2 + weight * latent.kl().sum() / x.numel()

        self.check("vae.c", theirs, ours, data, lambda n: (batch(n), normal(latent, 0, n)), loss)

    def dit(self, count, last, dropped=0.3, variances=True, **more):
        """Of `count` steps, the last of which adds the part `last` of noise."""
        heads, patch, channels = self.random.randint(1, 3), self.random.randint(1, 2), self.random.randint(1, 3)
        size = patch * self.random.randint(1, 3)
        same = {"sample_size": size, "patch_size": patch, "in_channels": channels, "out_channels": channels * (1 + variances),
                "attention_head_dim": 4 * self.random.randint(2, 4), "num_layers": 2, "num_attention_heads": heads, "num_embeds_ada_norm": 4,
                "attention_bias": self.random.choice([True, False]), "norm_elementwise_affine": self.random.choice([True, False]), **more}
        activation = self.random.choice(["gelu", "gelu-approximate"])
        data, batches = self.images(channels, same["sample_size"], 4)
        process = Process(count, 1e-4, last)

        def drawn(n):
            x, labels = batches(n)
            if dropped > 0:
                labels = torch.where(torch.tensor(uniform(len(x), 2, n)) < dropped, same["num_embeds_ada_norm"], labels)
            return x, labels, whole(len(x), 0, n, count), normal(x.shape, 1, n)

        def loss(model, x, labels, steps, noise):
            noisy = process.noised(x, noise, steps)
            seen, *variance = model(noisy, steps, labels).sample.chunk(2 if variances else 1, 1)
            error = torch.nn.functional.mse_loss(seen, noise)
            return error + process.bound(x, noisy, seen.detach(), *variance, steps) if variance else error

        ours = {**same, "approximate_gelu": activation != "gelu", "class_dropout_prob": dropped, "num_train_timesteps": count,
                "beta_start": 1e-4, "beta_end": last}
        self.check("dit.c", DiTTransformer2DModel(**same, activation_fn=activation), ours, data, drawn, loss)

    @drawn
    def test_dit(self):
        self.dit(1000, 0.02)

    def test_dit_of_few_steps(self):
        """Most batches have an image at the first step."""
        self.first = False
        self.dit(3, 0.3)

    def test_dit_of_the_noise_alone(self):
        self.first = False
        self.dit(20, 0.2, 0.0, False, sample_size=4, patch_size=2, num_layers=1)

    @drawn
    def test_vae(self):
        """A group of one number is nothing but rounding: the latents are larger."""
        blocks, (across, down) = self.random.choice([2, 3]), self.random.choice([(2, 2), (3, 2), (2, 3)])
        self.vae(blocks, (self.random.randint(1, 3), across << blocks - 1, down << blocks - 1))

    def test_vae_of_one_block(self):
        self.first = False
        self.vae(1, (2, 3, 5))

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
            return x, labels, whole(len(x), 0, n, 1000), normal(x.shape, 1, n)

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


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
