"""What a run leaves in its project folder: the last weights or the best ones, averages, adapters, merged or not, from a
published file with a prefix or fresh, in one file or several, straight on, resumed, and started again at its end. The
evaluator says of it what the trainer said of that evaluation, and NumPy what merging and prefixes make of names and numbers."""

import json
import shutil
import subprocess
import unittest

import numpy as np
import torch
from harness import FAST, GENERATOR, Trainer
from matrix import mlp
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as of_torch

STEPS, PREFIX, FEATURES, WIDTH = 16, "backbone.", 5, 23
LORA = {"targets": ["hidden.*"], "rank": 2, "alpha": 3}
BEST = {"patience": STEPS, "restore_best": True}
AVERAGE = {"decay": 0.5, "evaluate": True}
FREE = {"name": "schedule_free_adamw", "lr": 0.3}

JOBS = {
    "plain": {"stopping": BEST, "published": True},
    "merged": {"stopping": BEST, "lora": {**LORA, "merge": True}, "shards": "1KB"},
    "merged_prefix": {"stopping": BEST, "lora": {**LORA, "merge": True, "modules_to_save": ["output"]}, "published": True},
    "apart_prefix": {"stopping": BEST, "lora": {**LORA, "merge": False}, "published": True},
    "merged_averages": {"stopping": BEST, "lora": {**LORA, "merge": True}, "ema": AVERAGE, "published": True},
    "merged_last": {"lora": {**LORA, "merge": True}, "ema": {"decay": 0.5}, "published": True},
    "apart_bf16": {"stopping": BEST, "lora": {**LORA, "merge": False, "dropout": 0.25}, "precision": {"mixed_precision": "bf16"}},
    "free": {"stopping": BEST, "optimizer": FREE, "published": True, "shards": "1KB"},
}


def published():
    """The names and shapes of mlp_table's parameters, all under the prefix."""
    rng = np.random.default_rng(8)
    shapes = {"hidden.0": (WIDTH, FEATURES), "hidden.1": (WIDTH, WIDTH), "output": (3, WIDTH)}
    tensors = {}
    for name, shape in shapes.items():
        tensors[f"{PREFIX}{name}.weight"] = rng.normal(scale=0.5, size=shape).astype(np.float32)
        tensors[f"{PREFIX}{name}.bias"] = np.zeros(shape[0], np.float32)
    return tensors


def read(folder, stem="model", load=load_file):
    """The tensors of one file or of an index, as arrays or what else `load` gives."""
    index = folder / f"{stem}.safetensors.index.json"
    names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {f"{stem}.safetensors"}
    return {key: value for name in names for key, value in load(folder / name).items()}


def merged(tensors):
    """PEFT's sum of a model whose adapters are next to its weights."""
    whole = {name: value for name, value in tensors.items() if ".lora_" not in name}
    scale = LORA["alpha"] / LORA["rank"]
    for name, a in tensors.items():
        if not name.endswith(".lora_A.weight"):
            continue
        module = name.removesuffix(".lora_A.weight")
        b = tensors[f"{module}.lora_B.weight"].astype(np.float64)
        whole[f"{module}.weight"] = whole[f"{module}.weight"] + scale * (b @ a.astype(np.float64))
    return whole


class Left(unittest.TestCase):
    def prepare(self, what):
        model = {"lora": what["lora"]} if "lora" in what else {}
        if what.get("published"):
            model.update(weights="start.safetensors", weights_prefix=PREFIX)
        training = {"steps": STEPS, "seed": 3, "eval_interval": 1, "eval_iters": "all",
                    **({"early_stopping": what["stopping"]} if "stopping" in what else {}),
                    **({"ema": what["ema"]} if "ema" in what else {})}
        checkpoint = {"every": 5, **({"max_shard_size": what["shards"]} if "shards" in what else {})}
        case = mlp("left", model_keys=model, precision=what.get("precision", {}), training=training, checkpoint=checkpoint,
                   data={"batch_size": 4, "eval_fraction": 0.26},
                   optimizer=what.get("optimizer", {"name": "sgd", "lr": 0.7, "momentum": 0.9, "clip_grad_norm": 1.0}))
        case.job["model"]["config"]["width"] = WIDTH
        self.trainer = Trainer(case.job)
        self.addCleanup(shutil.rmtree, self.trainer.folder)
        case.write_data(self.trainer.folder)
        save_file(published(), self.trainer.folder / "start.safetensors")
        self.trainer.build(cflags=FAST)
        self.what, self.run_folder = what, self.trainer.folder / "run"
        self.averages = what.get("ema", {}).get("evaluate", False)

    def evaluate(self, *flags):
        program = self.trainer.folder / "evaluate"
        if not program.exists():
            self.trainer.command("build", self.trainer.path, "-o", program, "--program", "evaluate", CFLAGS=FAST)
        return json.loads(subprocess.check_output([program, "--format", "json", *flags], cwd=self.trainer.folder))["loss"]

    def left(self, folder):
        """Every file that the run leaves, by its bytes; what checkpoints have is another matter."""
        files = [path for path in folder.rglob("*") if path.is_file() and "checkpoints" not in path.parts]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files
                if path.name not in ("metrics.jsonl", "run.json") and not path.name.startswith("best")}

    def check_adapter(self):
        """What is merged is the base and the adapters that are saved next to it."""
        if "lora" not in self.what:
            return
        adapter = load_file(self.run_folder / "adapter" / "adapter_model.safetensors")
        prefix = "base_model.model." + (PREFIX if self.what.get("published") else "")
        self.assertTrue(all(name.startswith(prefix) for name in adapter), adapter.keys())
        adapter = {name.removeprefix(prefix): value for name, value in adapter.items()}
        self.assertTrue(any(np.abs(value).max() > 0 for name, value in adapter.items() if "lora_B" in name))
        base = read(self.run_folder / "checkpoints" / "checkpoint_0")
        base = {name: value for name, value in base.items() if ".lora_" not in name}
        model = read(self.run_folder)
        if self.what["lora"]["merge"]:
            self.assertEqual(model.keys(), base.keys())
        for name, value in merged({**base, **adapter}).items():
            np.testing.assert_allclose(merged(model)[name], value, rtol=1e-6, atol=1e-7, err_msg=name)

    def check(self, rows, wanted):
        """The evaluation of step `wanted` is that of what is left, which is what a run of so many steps leaves."""
        found = self.evaluate()
        self.assertAlmostEqual(found / rows[wanted - 1]["eval_loss"], 1, delta=2e-6, msg=f"step {wanted}")
        self.check_adapter()
        self.trainer.run("--steps", str(wanted), "--project-dir", "short")
        short = self.left(self.trainer.folder / "short")
        files = {"ema.safetensors"} if self.averages else short.keys()  # the model next to them is that of the last step
        for name in files:
            self.assertTrue(self.left(self.run_folder)[name] == short[name], f"{name} of step {wanted}")

    def check_ways(self):
        """Resumed in the middle, and started again where nothing is left to do."""
        wanted = self.left(self.run_folder)
        self.trainer.run("--resume", "auto")
        self.assertEqual(self.left(self.run_folder), wanted, "started again at its end")
        for name in wanted:
            (self.run_folder / name).unlink()
        self.trainer.run("--resume", "auto")
        self.assertEqual(self.left(self.run_folder), wanted, "written again")
        self.trainer.run("--resume", "run/checkpoints/checkpoint_1")
        self.assertEqual(self.left(self.run_folder), wanted, "resumed")

    def case(self, name):
        self.prepare(JOBS[name])
        rows = self.trainer.run()
        losses = [row["eval_loss"] for row in rows]
        best = losses.index(min(losses)) + 1 if "stopping" in self.what else STEPS
        if "stopping" in self.what:
            self.assertLess(best, STEPS, f"the best is not the last: {losses}")
        self.check(rows, best)
        self.check_ways()

    def check_rounded(self, whole, dtype):
        """The files at the end are PyTorch's rounding of what a float32 run leaves, and checkpoints keep float32."""
        self.trainer.job["checkpoint"]["dtype"] = {torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
        self.trainer.write()
        self.trainer.build(cflags=FAST)
        for flags in (("--resume", "auto"), ("--resume", "run/checkpoints/checkpoint_1")):
            self.trainer.run(*flags)
            for stem, tensors in whole.items():
                found = read(self.run_folder, stem, load=of_torch)
                self.assertEqual(found.keys(), tensors.keys())
                for name, tensor in tensors.items():
                    self.assertEqual(found[name].dtype, dtype, name)
                    self.assertTrue(torch.equal(found[name], torch.from_numpy(tensor).to(dtype)), f"{stem} {name} {flags}")
        kept = read(self.run_folder / "checkpoints" / "checkpoint_3")
        self.assertEqual({value.dtype for value in kept.values()}, {np.dtype(np.float32)})
        (self.trainer.folder / "evaluate").unlink(missing_ok=True)

    def test_16_bits(self):
        """Merged adapters and averages in shards, by both types; an evaluator reads them."""
        self.prepare({"lora": {**LORA, "merge": True}, "ema": {"decay": 0.5}, "shards": "1KB"})
        self.trainer.run()
        loss, whole = self.evaluate(), {stem: read(self.run_folder, stem) for stem in ("model", "ema")}
        for dtype, off in ((torch.bfloat16, 2e-2), (torch.float16, 2e-3)):
            self.check_rounded(whole, dtype)
            self.assertNotEqual(self.evaluate(), loss)
            self.assertAlmostEqual(self.evaluate() / loss, 1, delta=off)

    def test_another_best(self):
        """A best file of another run ends with status 1, and the last weights are left."""
        self.prepare(JOBS["plain"])
        self.trainer.run()
        best = self.run_folder / "best.safetensors"
        tensors = load_file(best)
        tensors["output.bias"] += 1
        save_file(tensors, best)
        (self.run_folder / "model.safetensors").unlink()
        again = subprocess.run([self.trainer.folder / "trainer", "--resume", "auto"], cwd=self.trainer.folder,
                               capture_output=True, text=True)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("best.safetensors: these are not the weights of the run's best evaluation", again.stderr)
        last = load_file(self.run_folder / "checkpoints" / "checkpoint_3" / "model.safetensors")
        for name, value in read(self.run_folder).items():
            self.assertTrue(np.array_equal(value, last[name]), name)


for job in JOBS:
    setattr(Left, f"test_{job}", lambda self, job=job: self.case(job))

if __name__ == "__main__":
    unittest.main()
