"""Folders of transformers whose models take images, images with texts, or texts with masks become jobs, train three steps, and leave
folders that transformers' auto classes open: each number that the class computes with a folder, before and after, is the one that the
program of examples/models computes. The same job without the folder leaves a folder, too. A run tries some of the configurations
(rotation.py)."""

import json
import math
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, MODELS, QUICK  # noqa: E402
from job_text import load  # noqa: E402
from rotation import SEED, in_turn  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers.utils import logging  # noqa: E402

logging.disable_progress_bar()
logging.set_verbosity_error()
ROWS, LENGTH, WORDS = 12, 7, 50
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12, "initializer_range": 0.3}
VISION = {**SIZES, "image_size": 6, "patch_size": 3, "num_channels": 2}
SWIN = {"embed_dim": 6, "depths": [2, 1], "num_heads": [1, 2], "image_size": 8, "patch_size": 2, "window_size": 2, "drop_path_rate": 0.0,
        "initializer_range": 0.3, "num_channels": 2}
NEXT = {"hidden_sizes": [4, 6, 8, 8], "depths": [1, 2, 1, 1], "image_size": 32, "num_channels": 1, "layer_scale_init_value": 0.5}
RESNET = {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 2], "layer_type": "basic", "num_channels": 2}
TEXT = {**SIZES, "vocab_size": WORDS, "max_position_embeddings": LENGTH + 2}
CLIP = {"text_config": TEXT, "vision_config": VISION, "projection_dim": 4}
DEBERTA = {**SIZES, "vocab_size": WORDS, "max_position_embeddings": 16, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
           "norm_rel_ebd": "layer_norm", "position_buckets": 4, "share_att_key": True, "position_biased_input": False, "pad_token_id": 0}
IMAGE = "AutoModelForImageClassification"
# The auto class, the model's C, and the configurations.
CASES = {
    "ViTForImageClassification": (IMAGE, "vit", [VISION, {**VISION, "num_labels": 5, "layer_norm_eps": 1e-5}, {**VISION, "num_attention_heads": 4}]),
    "SwinForImageClassification": (IMAGE, "swin", [SWIN, {**SWIN, "num_labels": 3, "depths": [1, 2, 1], "num_heads": [1, 2, 3], "image_size": 14},
                                                   {**SWIN, "window_size": 4, "image_size": 16, "mlp_ratio": 2.0}]),
    "ConvNextForImageClassification": (IMAGE, "convnext", [NEXT, {**NEXT, "num_labels": 5, "layer_norm_eps": 1e-6},
                                                           {**NEXT, "patch_size": 2, "hidden_sizes": [4, 4, 4, 4]}]),
    "ResNetForImageClassification": (IMAGE, "resnet", [RESNET, {**RESNET, "num_labels": 5, "layer_type": "bottleneck", "hidden_sizes": [8, 16, 16],
                                                                "depths": [1, 1, 2]}, {**RESNET, "layer_type": "bottleneck", "downsample_in_bottleneck": True}]),
    "CLIPModel": ("AutoModel", "clip", [CLIP, {**CLIP, "text_config": {**TEXT, "hidden_act": "gelu"}, "vision_config": {**VISION, "num_hidden_layers": 1}},
                                        {**CLIP, "projection_dim": 7, "text_config": {**TEXT, "eos_token_id": 2, "num_hidden_layers": 1}}]),
    "DebertaV2ForSequenceClassification": ("AutoModelForSequenceClassification", "deberta_v2",
                                           [DEBERTA, {**DEBERTA, "num_labels": 3, "share_att_key": False, "position_biased_input": True},
                                            {**DEBERTA, "conv_kernel_size": 3, "conv_act": "gelu", "norm_rel_ebd": "none"}]),
}
# A model that computes one number of what `predict` of a family returns.
SOURCE = """#include <accel/model.h>

#define model training_of
#include "{}"
#undef model

tensor model(scope s, struct config c, {}, tensor probe) {{
  return mean_all(mul(predict(s, c, {}), probe));
}}
"""


def save(kind, config, number, folder):
    """Of one file in float32, of shards in bfloat16, of a pickle in float16; with statistics that are not those of a start."""
    torch.manual_seed(SEED)
    model = kind(kind.config_class(**config))
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                tensor.add_(0.1 * (torch.rand_like(tensor) if name.endswith("running_var") else torch.randn_like(tensor)))
    model = model.to((torch.float32, torch.bfloat16, torch.float16)[number])
    model.save_pretrained(folder, max_shard_size=("5GB", "20KB", "5GB")[number])
    if number == 2:
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()


class RoundTrip(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(SEED)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={**QUICK, "OMP_NUM_THREADS": "2"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    # ---- A folder and its data ----

    def make_data(self, name, config):
        """The arrays that the model takes, in the order of its arguments."""
        rng = np.random.default_rng(SEED)
        vision = config.get("vision_config", config)
        size, channels = vision.get("image_size", 32), vision.get("num_channels", 3)
        images = rng.standard_normal((ROWS, channels, size, size)).astype(np.float32)
        words = rng.integers(3, WORDS - 1, (ROWS, LENGTH)).astype(np.int32)
        labels = np.arange(ROWS, dtype=np.int32) % 2
        if name == "CLIPModel":
            words[np.arange(ROWS), rng.integers(1, LENGTH, ROWS)] = config["text_config"].get("eos_token_id", WORDS - 1)
            self.arrays = {"pixel_values": images, "input_ids": words}
        elif name.startswith("Deberta"):
            self.arrays = {"input_ids": words, "attention_mask": (np.arange(LENGTH) < rng.integers(2, LENGTH + 1, (ROWS, 1))).astype(np.uint8)}
        else:
            self.arrays = {"features": images}
            text = "".join(",".join(f"{x:.9g}" for x in row.ravel()) + f",{label}\n" for row, label in zip(images, labels))
            (self.folder / "data.csv").write_text(text)
            return "data.csv"
        np.savez(self.folder / "data.npz", **self.arrays, **({"labels": labels} if name.startswith("Deberta") else {}))
        return "data.npz"

    def init(self, folder, *flags):
        sizes = ("--set", "model.config.image_size=32") if self.name.startswith("ResNet") and folder == "base" else ()
        return ("init", folder, "--data", self.data, "--set", "training.steps=3", "--set", "data.batch_size=4", "--set", "optimizer.lr=0.001",
                "--set", "checkpoint.project_dir=run", *sizes, *flags)

    # ---- Every number ----

    def theirs(self, folder):
        kind = getattr(transformers, CASES[self.name][0])
        model, info = kind.from_pretrained(self.folder / folder, dtype=torch.float32, output_loading_info=True)
        self.assertFalse(info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"], info)
        self.assertEqual(type(model).__name__, self.name)
        given = {"pixel_values" if name == "features" else name: torch.tensor(a[:1]) for name, a in self.arrays.items()}
        with torch.no_grad():
            found = model.eval()(**{name: a.long() if a.dtype == torch.int32 else a for name, a in given.items()})
        return found.logits_per_text if self.name == "CLIPModel" else found.logits

    def ours(self, folder, model, shape):
        """By a program that evaluates, once for each number."""
        names = list(self.arrays)
        work = Path(tempfile.mkdtemp(dir=self.folder))
        (work / "outputs.c").write_text(SOURCE.format(MODELS / f"{CASES[self.name][1]}.c", ", ".join(f"tensor {name}" for name in names),
                                                      ", ".join(names)))
        first = {name: a[:1].reshape(1, -1) if name == "features" else a[:1] for name, a in self.arrays.items()}
        inputs = {name: {"shape": list(a.shape[1:]), **({"dtype": "int32", "below": WORDS} if a.dtype == np.int32 else {})}
                  for name, a in first.items()}
        files = {"path": "x.npz", "format": "npz"}
        (work / "job.yaml").write_text(json.dumps({
            "model": {**model, "source": "outputs.c", "weights": str(self.folder / folder)},
            "data": {"train": files, "eval": files, "inputs": {**inputs, "probe": {"shape": list(shape[1:])}}, "batch_size": 1},
            "optimizer": {"name": "sgd", "lr": 0.1}, "training": {"steps": 1}}))
        count = math.prod(shape)
        self.command(GENERATOR, "build", work / "job.yaml", "-o", work / "evaluator", "--program", "evaluate")
        found = []
        for probe in np.eye(count, dtype=np.float32):
            np.savez(work / "x.npz", **first, probe=probe.reshape(shape))
            done = subprocess.run([work / "evaluator", "--format", "json"], cwd=work, capture_output=True, text=True, check=True)
            found.append(json.loads(done.stdout)["loss"] * count)
        return torch.tensor(found).reshape(shape)

    def compare(self, folder, model):
        wanted = self.theirs(folder)
        found = self.ours(folder, {key: value for key, value in model.items() if key != "ignore"}, wanted.shape)
        self.assertLess(((found - wanted).norm() / wanted.norm()).item(), 1e-5, folder)
        return wanted

    # ---- In and out ----

    def train(self):
        self.command(GENERATOR, "build", "job.yaml", "-o", "trainer")
        self.command("./trainer")

    def check_folder(self):
        self.command(GENERATOR, *self.init("base"))
        self.command(GENERATOR, "plan", "job.yaml")
        job = load((self.folder / "job.yaml").read_text())
        before = self.compare("base", job["model"])
        self.train()
        after = self.compare("run", job["model"])
        self.assertGreater((after - before).norm().item(), 1e-4 * before.norm().item(), "three steps change what is computed")
        return job

    def check_no_folder(self, job):
        job["model"] = {key: job["model"][key] for key in ("source", "config")}
        del job["checkpoint"]["folder_of"]
        shutil.rmtree(self.folder / "run")
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.train()
        self.compare("run", job["model"])
        said = self.command(GENERATOR, *self.init("run", "-o", "-"))
        self.assertLessEqual(job["model"]["config"].items(), load(said)["model"]["config"].items())
        self.assertIn("library_name: transformers", (self.folder / "run/README.md").read_text())

    def test_families(self):
        for self.name, number in in_turn([(name, number) for number in range(3) for name in CASES], 5):
            config = CASES[self.name][2][number]
            for made in self.folder.iterdir():
                shutil.rmtree(made) if made.is_dir() else made.unlink()
            with self.subTest(family=self.name, **config):
                save(getattr(transformers, self.name), config, number, self.folder / "base")
                self.data = self.make_data(self.name, config)
                self.check_no_folder(self.check_folder())
                print(self.name, number, "round trip", flush=True)


if __name__ == "__main__":
    unittest.main()
