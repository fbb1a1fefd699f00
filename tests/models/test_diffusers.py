"""Folders of diffusers become jobs, train three steps, and leave folders that diffusers opens: each number that AutoencoderKL and
DiTTransformer2DModel compute with a folder, before and after, is the one that the program of examples/models computes. The same job
without the folder leaves a folder, too. Each value of a config.json, changed alone, is refused by its key or honoured. A run tries one of
the configurations of each class (rotation.py)."""

import copy
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
from diffusers import AutoencoderKL, DiTTransformer2DModel
from diffusers.utils import logging
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, QUICK, TRAIN, Order, Trainer  # noqa: E402
from job_text import load  # noqa: E402
from rotation import SEED, in_turn  # noqa: E402

logging.set_verbosity_error()
logging.disable_progress_bar()
ROWS = 12
SOURCES = Path(__file__).resolve().parent / "sources"


def autoencoder(widths, **more):
    blocks = len(widths)
    return {"block_out_channels": widths, "down_block_types": ["DownEncoderBlock2D"] * blocks, "up_block_types": ["UpDecoderBlock2D"] * blocks,
            "norm_num_groups": 4, "sample_size": 8, **more}


DIT = {"num_attention_heads": 2, "attention_head_dim": 6, "in_channels": 2, "out_channels": 4, "num_layers": 2, "sample_size": 4,
       "patch_size": 2, "num_embeds_ada_norm": 5}
CASES = [(AutoencoderKL, [autoencoder([8, 12]),
                          autoencoder([4, 8, 8], layers_per_block=2, latent_channels=3, use_quant_conv=False, use_post_quant_conv=False,
                                      shift_factor=0.1, latents_mean=[0.0, 0.1, 0.2], in_channels=1, out_channels=1),
                          autoencoder([6], norm_num_groups=3, latent_channels=1, mid_block_add_attention=False, act_fn="swish", sample_size=5)]),
         (DiTTransformer2DModel, [DIT,
                                  {**DIT, "attention_bias": False, "norm_elementwise_affine": True, "patch_size": 1, "sample_size": 3},
                                  {**DIT, "out_channels": None, "activation_fn": "gelu", "num_layers": 1, "num_attention_heads": 3,
                                   "attention_head_dim": 4}])]
# What the config.json of DiT's publication has besides.
OLDER = {"_class_name": "Transformer2DModel", "cross_attention_dim": None, "num_vector_embeds": None, "only_cross_attention": False,
         "use_linear_projection": False, "double_self_attention": False}


def leaves(value, path=()):
    if not isinstance(value, (dict, list)):
        yield path, value
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(inner, (*path, key))


class Diffusers(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(SEED)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words):
        done = self.tried(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def tried(self, *words):
        return subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**QUICK, "OMP_NUM_THREADS": "2"})

    def save(self, kind, config, number):
        """A published folder: of one file in float32, of shards in bfloat16, of a pickle in float16."""
        model = kind(**config)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.to((torch.float32, torch.bfloat16, torch.float16)[number]).save_pretrained(
            self.folder / "base", max_shard_size=("5GB", "20KB", "5GB")[number], safe_serialization=number < 2)
        self.write_data(config)

    def write_data(self, config):
        channels, size = config.get("in_channels", 3), config["sample_size"]
        pictures = np.random.default_rng(SEED).standard_normal((ROWS, channels, size, size)).astype(np.float32)
        np.savez(self.folder / "pictures.npz", picture=pictures)
        (self.folder / "pictures.csv").write_text("".join(",".join(f"{x:.9g}" for x in row.ravel()) + f",{i % 5}\n"
                                                          for i, row in enumerate(pictures)))

    def init(self, folder, kind, *flags):
        data = "pictures.npz" if kind is AutoencoderKL else "pictures.csv"
        return ("init", folder, "--data", data, "--set", "training.steps=3", "--set", "data.batch_size=2", "--set", "optimizer.lr=0.001",
                "--set", "checkpoint.project_dir=run", *flags)

    def train(self):
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        self.command("./trainer")

    # ---- Every number of an output ----

    def theirs(self, kind, folder):
        model, info = kind.from_pretrained(self.folder / folder, output_loading_info=True, torch_dtype=torch.float32)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"], info)
        x = torch.tensor(np.load(self.folder / "pictures.npz")["picture"][:1])
        with torch.no_grad():
            return x, (model(x) if kind is AutoencoderKL else model(x, torch.tensor([37]), torch.tensor([3]))).sample

    def ours(self, kind, folder, model, x, shape):
        """A batch for each number, which is then the loss."""
        count = math.prod(shape[1:])
        arrays = {"probe": np.eye(count, dtype=np.float32).reshape(count, *shape[1:])}
        arrays["picture" if kind is AutoencoderKL else "image_of"] = np.repeat(x.numpy(), count, 0)
        if kind is DiTTransformer2DModel:
            arrays |= {"steps": np.full(count, 37, np.int32), "classes": np.full(count, 3, np.int32)}
        inputs = {name: {"shape": list(a.shape[1:])} if a.dtype == np.float32 else {"dtype": "int32", "below": 5 if name == "classes" else 1000}
                  for name, a in arrays.items()}
        trainer = Trainer({
            "model": {**model, "source": str(SOURCES / ("vae_outputs.c" if kind is AutoencoderKL else "dit_outputs.c")),
                      "weights": str(self.folder / folder)},
            "data": {"train": {"path": "x.npz", "format": "npz"}, "inputs": inputs, "batch_size": 1, "eval_fraction": 0},
            "optimizer": {"name": "sgd", "lr": 1e-30}, "training": {"steps": count, "seed": 1}}, tempfile.mkdtemp(dir=self.folder))
        np.savez(trainer.folder / "x.npz", **arrays)
        trainer.build()
        order, found = Order(1, TRAIN, True, 0, count), np.empty(count, np.float32)
        for i, line in enumerate(trainer.run()):
            found[order.start(i)] = line["loss"]
        return torch.tensor(found).reshape(shape)

    def compare(self, kind, folder, model):
        x, wanted = self.theirs(kind, folder)
        found = self.ours(kind, folder, model, x, wanted.shape)
        self.assertLess(((found - wanted).norm() / wanted.norm()).item(), 1e-5, folder)
        return wanted

    # ---- Folders in and out ----

    def check_folder(self, kind):
        self.command(GENERATOR, *self.init("base", kind))
        self.command(GENERATOR, "plan", "job.yaml")
        job = load((self.folder / "job.yaml").read_text())
        before = self.compare(kind, "base", job["model"])
        self.train()
        after = self.compare(kind, "run", job["model"])
        self.assertGreater((after - before).norm().item(), 1e-4 * before.norm().item(), "three steps change what is computed")
        return job

    def check_no_folder(self, kind, job):
        """An older file of the name by which transformers would read it goes."""
        job["model"] = {key: job["model"][key] for key in ("source", "config")}
        del job["checkpoint"]["folder_of"]
        shutil.rmtree(self.folder / "run")
        (self.folder / "run").mkdir()
        save_file({"x": torch.zeros(1)}, self.folder / "run/model.safetensors")
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        self.assertEqual({path.name for path in (self.folder / "run").iterdir()},
                         {"config.json", "diffusion_pytorch_model.safetensors", "metrics.jsonl", "run.json", "README.md"})
        self.compare(kind, "run", job["model"])
        written = json.loads((self.folder / "run/config.json").read_text())
        self.assertEqual(written.pop("_class_name"), kind.__name__)
        self.assertLessEqual(set(written), set(kind.load_config(self.folder / "run")) & set(kind().config))
        said = self.command(GENERATOR, *self.init("run", kind, "-o", "-"))
        self.assertLessEqual(job["model"]["config"].items(), load(said)["model"]["config"].items())
        self.assertIn("library_name: diffusers", (self.folder / "run/README.md").read_text())

    def make_older(self, kind):
        """The config.json of DiT's publication; the names that attention had in a VAE of that time."""
        path, weights = self.folder / "base/config.json", self.folder / "base/diffusion_pytorch_model.safetensors"
        if kind is DiTTransformer2DModel:
            path.write_text(json.dumps({**json.loads(path.read_text()), **OLDER}))
            return
        names = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}
        save_file({re.sub("|".join(map(re.escape, names)), lambda found: names[found[0]], name): tensor
                   for name, tensor in load_file(weights).items()}, weights, {"format": "pt"})

    def test_round_trips(self):
        for kind, configs in CASES:
            for number, config in in_turn(list(enumerate(configs)), len(configs)):
                for made in self.folder.iterdir():
                    shutil.rmtree(made) if made.is_dir() else made.unlink()
                with self.subTest(kind=kind.__name__, **config):
                    self.save(kind, config, number)
                    if (kind, number) in ((AutoencoderKL, 0), (DiTTransformer2DModel, 2)):
                        self.make_older(kind)
                    self.check_no_folder(kind, self.check_folder(kind))

    # ---- Values ----

    def changed(self, config, path, value):
        config, words = copy.deepcopy(config), {"silu": "relu", "gelu-approximate": "gelu"}
        group = config
        for key in path[:-1]:
            group = group[key]
        group[path[-1]] = (1.5 if value is None else not value if isinstance(value, bool) else words.get(value, "other") if isinstance(value, str)
                           else value * 2 if value else 1)
        return config

    def same_outputs(self, kind, base, config):
        """Whether diffusers computes the same with the value as without it, with the same weights."""
        (self.folder / "other").mkdir(exist_ok=True)
        shutil.copy(self.folder / "base/diffusion_pytorch_model.safetensors", self.folder / "other")
        (self.folder / "other/config.json").write_text(json.dumps(config))
        try:
            return torch.equal(self.theirs(kind, "other")[1], base)
        except (AssertionError, RuntimeError, ValueError):
            return False

    def test_values(self):
        for kind, configs in CASES:
            config = {key: value for key, value in configs[0].items()}
            self.save(kind, config, 0)
            config = json.loads((self.folder / "base/config.json").read_text())
            base = self.theirs(kind, "base")[1]
            usual = load(self.command(GENERATOR, *self.init("base", kind, "-o", "-")))["model"]["config"]
            for path, value in leaves(config):
                if path[0] in ("_class_name", "_diffusers_version"):
                    continue
                other = self.changed(config, path, value)
                with self.subTest(kind=kind.__name__, key=path, value=value):
                    self.check_value(kind, path, other, base, usual)

    def check_value(self, kind, path, config, base, usual):
        """Without weights, whose shapes would decide much."""
        (self.folder / "alone").mkdir(exist_ok=True)
        (self.folder / "alone/config.json").write_text(json.dumps(config))
        done = self.tried(GENERATOR, *self.init("alone", kind, "-o", "-"))
        if done.returncode != 0:
            self.assertTrue(str(path[0]) in done.stderr or (path[0] == "in_channels" and "out_channels" in done.stderr)
                            or "numbers before the label" in done.stderr or "groups" in done.stderr, done.stderr)
        elif load(done.stdout)["model"]["config"] == usual:
            self.assertTrue(self.same_outputs(kind, base, config), f"{path} has no meaning")


if __name__ == "__main__":
    unittest.main()
