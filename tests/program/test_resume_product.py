"""A run that is stopped three times is the unstopped one: every optimizer with every precision, accumulation, schedule and
order of samples, from random steps; compared are all files of the last checkpoint and all lines. Some of the product are drawn (RESUMES=n of
them, SEED=n for the same ones again); RESUMES=all takes all, which is for `ninja soak`."""

import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

import keys
from harness import TIMES
from matrix import library_flags

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
RESUMES = os.environ.get("RESUMES", "12")
STEPS = 14
BASE = {**keys.BASES["mlp_table"], "training.steps": STEPS, "checkpoint.every": 1000, "checkpoint.resume": "auto",
        "model.config": {"n_layer": 1, "width": 7, "n_classes": 3}}
OPTIMIZERS = [{"optimizer.name": name} for name in keys.all_values()["optimizer.name"]] + [
    {"optimizer.name": "sgd", "optimizer.momentum": 0.9, "optimizer.nesterov": True},
    {"optimizer.name": "rmsprop", "optimizer.momentum": 0.5, "optimizer.centered": True},
    {"optimizer.name": "adamw", "optimizer.state_dtype": "bf16_stochastic"}, {"optimizer.name": "adamw", "optimizer.state_dtype": "8bit"},
    {"optimizer.name": "lion", "optimizer.state_dtype": "8bit"},
]
PRECISIONS = [{}, {"precision.mixed_precision": "bf16"}, {"precision.mixed_precision": "fp16"},
              {"precision.grad_scaler.enabled": True, "precision.grad_scaler.growth_interval": 3},
              {"precision.param_dtype": "bf16"}]
ACCUMULATIONS = [{}, {"accumulation.num_steps": 3}, {"accumulation.num_steps": 4, "accumulation.sync_with_dataloader": False},
                 {"accumulation.num_steps": 2, "accumulation.normalize": "tokens", "training.on_nonfinite": "skip"}]
SCHEDULES = [{"schedule.name": name, **keys.companions("schedule.name", name)} for name in keys.all_values()["schedule.name"]]
SAMPLERS = [{}, {"data.shuffle": False}, {"data.drop_last": False}, {"training.ema": {"decay": 0.9, "every": 2}}]


def compiled(text, folder):
    (folder / "trainer.c").write_text(text)
    command = ["cc", "-std=c17", "-O0", "-fopenmp", "-w", "trainer.c", "-o", "trainer", *library_flags("--cflags"),
               *library_flags("--libs")]
    subprocess.run(command, check=True, cwd=folder)


def run(folder, *flags):
    done = subprocess.run(["./trainer", *flags], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "2"})
    if done.returncode != 0:
        raise AssertionError(f"{flags}: status {done.returncode}\n{done.stdout}{done.stderr}")


def digest(folder):
    """Of all that a run leaves, but for the times."""
    whole = hashlib.sha256()
    last = max((folder / "run" / "checkpoints").iterdir(), key=lambda path: int(path.name.rsplit("_")[1]))
    for path in [*sorted(last.iterdir()), *sorted((folder / "run").glob("*.safetensors"))]:
        whole.update(path.name.encode() + path.read_bytes())
    for line in (folder / "run" / "metrics.jsonl").read_text().splitlines():
        record = {key: value for key, value in json.loads(line).items() if key not in TIMES}
        whole.update(json.dumps(record).encode())
    return whole.hexdigest()


class Product(unittest.TestCase):
    def test_chains(self):
        product = list(itertools.product(OPTIMIZERS, PRECISIONS, ACCUMULATIONS, SCHEDULES, SAMPLERS))
        pick = random.Random(SEED)
        pick.shuffle(product)
        wanted = len(product) if RESUMES == "all" else int(RESUMES)
        done = refused = 0
        with tempfile.TemporaryDirectory(prefix="accel-product-") as name:
            folder = pathlib.Path(name)
            keys.write_data(folder)
            rows = (folder / "rows.csv").read_text().splitlines()
            (folder / "rows.csv").write_text("\n".join(rows[:50]) + "\n")
            for parts in product:
                if done == wanted:
                    break
                job = {**BASE, **{key: value for part in parts for key, value in part.items()}}
                text = keys.generate(job, folder)
                if isinstance(text, str):
                    self.check(job, text, folder, pick)
                    done += 1
                refused += not isinstance(text, str)
        print(f"SEED={SEED}: {done} chains, {refused} combinations are refused", flush=True)

    def check(self, job, text, folder, pick):
        compiled(text, folder)
        run(folder)
        wanted = digest(folder)
        shutil.rmtree(folder / "run")
        stops = sorted(pick.sample(range(1, STEPS), 3))
        for steps in (*stops, STEPS):
            run(folder, "--steps", str(steps))
        self.assertEqual(digest(folder), wanted, f"SEED={SEED}, stopped after {stops}: {json.dumps(job)}")
        shutil.rmtree(folder / "run")


if __name__ == "__main__":
    unittest.main()
