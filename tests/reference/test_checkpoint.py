"""Checkpoints against Accelerate's: the same names for the same things, tensors under the names that PyTorch gives them, and
weights that load into Transformers and from there."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from safetensors.numpy import load_file
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict
from transformers import GPT2Config, GPT2LMHeadModel

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import MODELS, Trainer, windows  # noqa: E402
from rows import Mlp, Rows  # noqa: E402

CONFIG = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}


def stems(folder):
    """The names of files without their endings, which say how Python wrote them."""
    return {path.name.split(".")[0] for path in folder.iterdir()}


class Layout(unittest.TestCase):
    def test_names(self):
        """What Accelerate writes is there under its name. We have three more: sampler.json, since every order can be
        continued, job.json and the manifest."""
        rows = Rows(40, 2, steps=20, optimizer={"name": "adamw", "lr": 0.01}, checkpoint={"every": 5, "total_limit": 3})
        rows.run()
        ours = rows.trainer.folder / "run" / "checkpoints"
        with tempfile.TemporaryDirectory() as folder:
            project = ProjectConfiguration(project_dir=folder, automatic_checkpoint_naming=True, total_limit=3)
            accelerator = Accelerator(cpu=True, project_config=project)
            model = Mlp(rows.weights)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
            data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(40)), 2, shuffle=True)
            accelerator.prepare(model, optimizer, schedule, data)
            for _ in range(4):
                accelerator.save_state()
            theirs = pathlib.Path(folder) / "checkpoints"
            self.assertEqual(sorted(path.name for path in ours.iterdir()), sorted(path.name for path in theirs.iterdir()))
            self.assertEqual(stems(ours / "checkpoint_3") - stems(theirs / "checkpoint_3"), {"job", "manifest", "sampler"})
            self.assertEqual(stems(theirs / "checkpoint_3") - stems(ours / "checkpoint_3"), set())
            weights = load_file(theirs / "checkpoint_3" / "model.safetensors")
            saved = load_file(ours / "checkpoint_3" / "model.safetensors")
            self.assertEqual({name: value.shape for name, value in saved.items()},
                             {name: value.shape for name, value in weights.items()})

    def test_scaler(self):
        rows = Rows(40, 2, steps=4, optimizer={"name": "sgd", "lr": 0.01}, checkpoint={"every": 4},
                    precision={"grad_scaler": {"enabled": True}})
        rows.run()
        scaler = load_file(rows.trainer.folder / "run" / "checkpoints" / "checkpoint_0" / "scaler.safetensors")
        theirs = torch.amp.GradScaler("cpu").state_dict()
        self.assertLessEqual(set(scaler), set(theirs))
        self.assertEqual(scaler["scale"].item(), theirs["scale"])
        self.assertEqual(scaler["_growth_tracker"].item(), 4)

    def test_optimizer_names(self):
        """As torch.distributed.checkpoint flattens an optimizer's state; the step aside, which is the checkpoint's own."""
        for name, make in (("adamw", torch.optim.AdamW), ("rmsprop", torch.optim.RMSprop)):
            rows = Rows(40, 2, steps=4, optimizer={"name": name, "lr": 0.01}, checkpoint={"every": 4})
            rows.run()
            saved = load_file(rows.trainer.folder / "run" / "checkpoints" / "checkpoint_0" / "optimizer.safetensors")
            model = Mlp(rows.weights)
            optimizer = make(model.parameters(), lr=0.01)
            model(torch.ones(1, 6)).sum().backward()
            optimizer.step()
            flat = get_optimizer_state_dict(model, optimizer, options=StateDictOptions(flatten_optimizer_state_dict=True))
            wanted = {key: tuple(value.shape) for key, value in flat.items()
                      if key.startswith("state.") and not key.endswith(".step")}
            self.assertEqual({key: value.shape for key, value in saved.items()}, wanted)

    def test_state_into_pytorch(self):
        """PyTorch's optimizer, given the state of a checkpoint, takes the next step as the trainer does."""
        rows = Rows(40, 2, steps=9, optimizer={"name": "adamw", "lr": 0.01, "weight_decay": 0.1},
                    checkpoint={"every": 8}, data={"shuffle": False})
        rows.run()
        folder = rows.trainer.folder / "run" / "checkpoints" / "checkpoint_0"
        model = Mlp(load_file(folder / "model.safetensors"))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.1)
        saved = load_file(folder / "optimizer.safetensors")
        for name, parameter in model.named_parameters():
            optimizer.state[parameter] = {
                "step": torch.tensor(8.0),
                **{key: torch.tensor(saved[f"state.{name}.{key}"]) for key in ("exp_avg", "exp_avg_sq")},
            }
        x, y = rows.micro_batch(8)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        self.assertLess(rows.distance(model), 1e-6)


class Transformers(unittest.TestCase):
    def make(self, **model):
        trainer = Trainer({
            "model": {"source": str(MODELS / "gpt2.c"), "config": CONFIG, **model},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2, "eval_fraction": 0},
            "optimizer": {"name": "sgd", "lr": 1e-30},
            "training": {"steps": 2},
        })
        self.corpus = bytes(np.random.default_rng(1).integers(97, 123, 400, dtype=np.uint8))
        (trainer.folder / "corpus.txt").write_bytes(self.corpus)
        trainer.build()
        return trainer

    def into_transformers(self, trainer):
        run = trainer.folder / "run"
        config = GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=256, n_positions=8)
        (run / "config.json").write_text(json.dumps({**config.to_dict(), "architectures": ["GPT2LMHeadModel"]}))
        return GPT2LMHeadModel.from_pretrained(run).eval()

    def check_losses(self, trainer, model):
        """The losses of the trainer's steps are those of the model over the same windows."""
        batch_at = windows(self.corpus, 8, 2, 1337, True, 0)
        for step, line in enumerate(trainer.run()):
            tokens, targets = (torch.tensor(part) for part in batch_at(step))
            with torch.no_grad():
                loss = torch.nn.functional.cross_entropy(model(tokens).logits.flatten(0, 1), targets.flatten())
            self.assertLess(abs(line["loss"] / loss.item() - 1), 1e-5)

    def test_ours_there(self):
        trainer = self.make()
        trainer.run()
        self.check_losses(trainer, self.into_transformers(trainer))

    def test_logits(self):
        """Those of the program that writes text, taken where it chooses a token, over the weights that a trainer saved."""
        trainer = self.make()
        trainer.job["optimizer"] = {"name": "adamw", "lr": 1e-2}
        trainer.job["training"]["steps"] = 20
        trainer.write()
        trainer.build()
        trainer.run()
        model = self.into_transformers(trainer)
        trainer.build("--program", "generate")
        for prompt in (b"a", b"xyzzy", b"longer than the block"):
            subprocess.run(["./trainer", "--prompt", prompt, "--tokens", "1", "--logits", "logits"], check=True,
                           cwd=trainer.folder, stdout=subprocess.DEVNULL)
            ours = torch.from_numpy(np.fromfile(trainer.folder / "logits", np.float32))
            with torch.no_grad():
                theirs = model(torch.tensor([list(prompt[-8:])])).logits[0, -1]
            self.assertGreater(theirs.std().item(), 0.1)
            self.assertLess((ours - theirs).abs().max().item() / theirs.abs().max().item(), 1e-5, prompt)

    def test_theirs_here(self):
        torch.manual_seed(4)
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=16, vocab_size=256, n_positions=8)).eval()
        for size in ("1GB", "10KB"):
            with tempfile.TemporaryDirectory() as folder:
                model.save_pretrained(folder, max_shard_size=size)
                sharded = (pathlib.Path(folder) / "model.safetensors.index.json").exists()
                self.assertEqual(sharded, size == "10KB")
                self.check_losses(self.make(weights=folder), model)


if __name__ == "__main__":
    unittest.main()
