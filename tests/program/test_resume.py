"""A stopped run and an unstopped one are the same run, bit for bit: weights, checkpoints and metrics of emitted programs, for
optimizers, accumulation, dropout and tables, from steps in the middle of an epoch, several times in a row. And what a
changed job does."""

import json
import random
import shutil
import unittest

from harness import MODELS, TIMES, Trainer, load_file
from rotation import rotating

GPT = {"source": str(MODELS / "nanogpt.c"),
       "config": {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "bias": True}}
DROPPING = {"source": str(MODELS / "gpt2.c"),
            "config": {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "dropout": 0.2}}
TABLE = {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 1, "width": 8, "n_classes": 3}}
STEPS = 24


def make_job(model=GPT, optimizer=None, **groups):
    job = {
        "model": model,
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3},
        "optimizer": optimizer or {"name": "adamw", "lr": 1e-2},
        "training": {"steps": STEPS, "eval_interval": 6, "eval_iters": 2},
        "checkpoint": {"every": 4, "resume": "auto"},
    }
    if model is TABLE:
        job["data"] = {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 3, "features": 5}
    for name, group in groups.items():
        job[name] = {**job.get(name, {}), **group}
    return job


HOOKS = """#include <accel/hooks.h>
static int64_t sum;
void on_start(struct accel_run *run, const struct accel_progress *at) {
  (void)at;
  accel_register_for_checkpointing(run, &sum, sizeof sum);
}
void on_step(struct accel_run *run, const struct accel_progress *at) {
  sum += at->step;
  accel_log(run, "sum", (double)sum);
}
"""
CASES = {
    "adamw, accumulation": make_job(accumulation={"num_steps": 3}, schedule={"name": "cosine", "warmup_steps": 3}),
    "adamw, accumulation, clipping, dropout": make_job(DROPPING, {"name": "adamw", "lr": 1e-2, "clip_grad_norm": 0.5},
                                                       accumulation={"num_steps": 2}),
    "sgd with momentum, a table": make_job(TABLE, {"name": "sgd", "lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    "nadam": make_job(optimizer={"name": "nadam", "lr": 1e-2}),
    "rmsprop, centered, momentum": make_job(
        optimizer={"name": "rmsprop", "lr": 1e-3, "centered": True, "momentum": 0.5}),
    "lion, groups, skipping": make_job(
        optimizer={"name": "lion", "lr": 1e-3, "param_groups": [{"match": "*bias", "weight_decay": 0.0, "lr_scale": 0.5}]},
        training={"on_nonfinite": "skip"}),
    "adafactor, ema": make_job(optimizer={"name": "adafactor", "lr": 1e-2}, training={"ema": {"decay": 0.9}}),
    "adalomo, groups, clipping, ema, bf16": make_job(
        optimizer={"name": "adalomo", "lr": 1e-2, "clip_grad_norm": 0.5, "param_groups": [{"match": "*bias", "lr_scale": 2}]},
        precision={"mixed_precision": "bf16"}, training={"ema": {"decay": 0.9}}),
    "muon, scaler": make_job(optimizer={"name": "muon", "lr": 1e-2, "param_groups": [{"match": "*wte*", "adamw": True}]},
                             precision={"grad_scaler": {"enabled": True, "growth_interval": 5}}),
    "averages, early stopping, noise scale": make_job(
        TABLE, accumulation={"num_steps": 2}, tracking={"noise_scale": True},
        training={"ema": {"decay": 0.9, "every": 2, "warmup": True, "evaluate": True}, "eval_interval": 3,
                  "early_stopping": {"patience": 9, "restore_best": True}}),
    "radam, in order": make_job(optimizer={"name": "radam", "lr": 1e-2}, data={"shuffle": False}),
}


def prepare(job, hooks=""):
    trainer = Trainer(json.loads(json.dumps(job)))
    (trainer.folder / "hooks.c").write_text(hooks)
    pick = random.Random(5)
    (trainer.folder / "corpus.txt").write_bytes(bytes(pick.choices(range(97, 110), k=700)))
    rows = (",".join(f"{pick.random():.3f}" for _ in range(5)) + f",{pick.randrange(3)}" for _ in range(60))
    (trainer.folder / "rows.csv").write_text("\n".join(rows))
    trainer.build()
    return trainer


def history(trainer):
    """All that a run leaves, times aside, with its last checkpoint."""
    run = trainer.folder / "run"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.rsplit("_")[-1]))
    arrays = {path.name: path.read_bytes() for path in last.glob("*.safetensors")}
    return ([{key: value for key, value in line.items() if key not in TIMES} for line in lines], arrays,
            (run / "model.safetensors").read_bytes())


class Resume(unittest.TestCase):
    maxDiff = 2000

    def test_bitwise(self):
        for name, job in CASES.items():
            with self.subTest(name):
                trainer = prepare(job)
                trainer.run()
                wanted = history(trainer)
                run = trainer.folder / "run"
                for number in (4, 2, 0):  # from steps 20, 12 and 4, each after the others
                    trainer.run("--resume", f"run/checkpoints/checkpoint_{number}")
                    self.assertEqual(history(trainer), wanted)
                shutil.rmtree(run)

    def test_objects_of_hooks(self):
        """What hooks have registered is restored, too; another number of bytes is refused."""
        trainer = prepare(make_job(TABLE, hooks={"source": "hooks.c", "on_start": "on_start", "on_step": "on_step"},
                                   checkpoint={"background": True}), HOOKS)
        trainer.run()
        wanted = history(trainer)
        self.assertEqual(wanted[0][-1]["sum"], sum(range(1, STEPS + 1)))
        trainer.run("--resume", "run/checkpoints/checkpoint_1")
        self.assertEqual(history(trainer), wanted)
        (trainer.folder / "hooks.c").write_text(HOOKS.replace("sizeof sum", "1"))
        trainer.build()
        with self.assertRaisesRegex(AssertionError, r"custom_checkpoint_0.bin: 8 bytes, but the object has 1"):
            trainer.run()

    def test_chain(self):
        """Three stops in a row, at the ends of shorter runs, which are no steps of the cadence."""
        trainer = prepare(make_job(accumulation={"num_steps": 2}, training={"eval_interval": 0}))
        trainer.run()
        wanted = history(trainer)
        shutil.rmtree(trainer.folder / "run")
        for steps in (5, 11, 18, STEPS):
            trainer.run("--steps", str(steps))
        self.assertEqual(history(trainer), wanted)

    def test_batches_of_another_size(self):
        """The samples continue where they were: six batches of two instead of four of three."""
        trainer = prepare(make_job(optimizer={"name": "sgd", "lr": 1e-30}, training={"steps": 8}))
        trainer.run()
        shutil.rmtree(trainer.folder / "run" / "checkpoints" / "checkpoint_1")
        trainer.job["data"]["batch_size"] = 1
        trainer.job["training"]["steps"] = 16
        trainer.write()
        trainer.build()
        losses = {line["step"]: line["loss"] for line in trainer.run()}
        sampler = trainer.folder / "run" / "checkpoints" / "checkpoint_3" / "sampler.json"
        self.assertEqual(json.loads(sampler.read_text())["index"], 4 * 3 + 12)
        trainer.job["data"]["batch_size"] = 3
        trainer.job["training"]["steps"] = 8
        trainer.write()
        trainer.build()
        shutil.rmtree(trainer.folder / "run")
        wanted = {line["step"]: line["loss"] for line in trainer.run()}
        for step in range(5, 9):  # each of these saw what three of the others saw
            first = 4 + 3 * (step - 5) + 1
            self.assertAlmostEqual(sum(losses[first + i] for i in range(3)) / 3, wanted[step], places=5)

    def test_changed_job(self):
        trainer = prepare(make_job())
        trainer.run()

        def change(group, **keys):
            trainer.job[group] = {**trainer.job.get(group, {}), **keys}
            trainer.write()
            trainer.build()

        change("optimizer", lr=5e-3)
        change("training", steps=STEPS + 4)
        change("schedule", name="linear", min_lr=1e-4)
        self.assertEqual(trainer.run()[-1]["step"], STEPS + 4)
        for group, keys, message in (
            ("training", {"seed": 7}, "training.seed: (default) -> 7"),
            ("optimizer", {"betas": [0.8, 0.9]}, "optimizer.betas: (default) -> [0.8, 0.9]"),
            ("model", {"config": {**GPT["config"], "n_embd": 32}}, "model.config.n_embd: 16 -> 32"),
        ):
            before = json.loads(json.dumps(trainer.job))
            change(group, **keys)
            with self.assertRaisesRegex(AssertionError, "the run cannot resume with these changes of the job") as caught:
                trainer.run()
            self.assertIn(message, str(caught.exception))
            self.assertNotIn("optimizer.lr", str(caught.exception).split("these changes of the job")[1])
            trainer.job.clear()
            trainer.job.update(before)

    def test_changed_model(self):
        """Another text of the same tokens is the same model; another arithmetic is reported; other tensors are refused."""
        trainer = prepare(make_job(TABLE))
        source = (MODELS / "mlp_table.c").read_text()
        trainer.job["model"]["source"] = "mlp.c"

        def change(text):
            (trainer.folder / "mlp.c").write_text(text)
            trainer.write()
            trainer.build()

        change(source)
        trainer.run()
        one = ("--resume", "run/checkpoints/checkpoint_1")
        change("/* The same. */\n" + source.replace(") {", ")\n{"))
        trainer.run(*one)
        self.assertIn("checkpoint_1, step 8\n", trainer.output)
        self.assertIn("relu(", source)
        change(source.replace("relu(", "gelu("))
        trainer.run(*one)
        self.assertRegex(trainer.output, r"step 8, with changes: the model's C: [0-9a-f]{16} -> [0-9a-f]{16}\n")
        self.assertIn('"output"', source)
        change(source.replace('"output"', '"head"'))
        with self.assertRaisesRegex(AssertionError, r"checkpoint_1/model: no tensor 'head\.(weight|bias)'"):
            trainer.run(*one)

    def test_shards_are_the_same_tensors(self):
        trainer = prepare(make_job(checkpoint={"max_shard_size": "3KB"}))
        trainer.run()
        run = trainer.folder / "run"
        index = json.loads((run / "model.safetensors.index.json").read_text())
        self.assertGreater(len(set(index["weight_map"].values())), 3)
        tensors = {}
        for name in set(index["weight_map"].values()):
            tensors.update(load_file(run / name))
        self.assertEqual(index["metadata"]["total_size"], sum(value.nbytes for value in tensors.values()))
        trainer.job["model"]["weights"] = str(run)
        trainer.job["checkpoint"] = {"project_dir": str(trainer.folder / "other"), "every": 0}
        trainer.job["optimizer"] = {"name": "sgd", "lr": 1e-30}
        trainer.write()
        trainer.build()
        with self.assertRaises(FileNotFoundError):
            shutil.rmtree(run / "checkpoints")
            (run / "metrics.jsonl").unlink()
            trainer.run()
        for name, value in load_file(trainer.folder / "other" / "model.safetensors").items():
            self.assertEqual(value.tobytes(), tensors[name].tobytes())


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
