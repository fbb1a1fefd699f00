"""parallelism.reproducible: topology: losses, norms, evaluations, weights and states have the same bits for every division
of eight micro-batches into ranks and accumulation, divided among ranks or not, and a run resumes from any of them as any
other. DIVISIONS=all: all of these in each precision, from each to each."""

import itertools
import os
import subprocess
import unittest

import numpy as np
from ranks import CONFIG, GENERATOR, MODELS, Ranks, job_of, library_flags, load_file
from rotation import rotating  # tests/program; isort: skip

# Ranks, and what they divide of the states, gradients and weights.
DIVISIONS = {"1": (1, {}), "2": (2, {}), "4": (4, {}), "8": (8, {}), "2 of stage 3": (2, {"zero_stage": 3}),
             "4 of stage 1": (4, {"zero_stage": 1, "dp_shard": 2}), "4 of stage 3": (4, {"zero_stage": 3, "dp_shard": 2}),
             "8 of stage 1": (8, {"zero_stage": 1, "dp_shard": 4}), "8 of stage 2": (8, {"zero_stage": 2}),
             "8 of stage 3": (8, {"zero_stage": 3, "dp_shard": 4})}
ALL = os.environ.get("DIVISIONS") == "all"
SOME = DIVISIONS if ALL else ("1", "2 of stage 3", "8 of stage 2")
STEPS, SAVED = 8, 4
CASES = {
    "adamw_bf16": {"precision": {"mixed_precision": "bf16"}, "accumulation": {"normalize": "tokens"},
                   "schedule": {"name": "cosine", "warmup_steps": 2},
                   "training": {"eval_interval": 4, "eval_iters": "all"}, "data": {"eval_batch_size": 5}},
    "sgd": {"optimizer": {"name": "sgd", "lr": 0.5, "momentum": 0.9, "eps": None, "weight_decay": 0.01},
            "training": {"eval_interval": 4, "eval_iters": 3, "metrics": ["perplexity"]}},
    "adamw_fp16": {"precision": {"mixed_precision": "fp16", "grad_scaler": {"init_scale": 1024.0, "growth_interval": 3}}},
}


def job(ranks, micro, name, divided=None):
    parallelism = {"reproducible": "topology", "ddp": {"bucket_cap_mb": 0.01}, **(divided or {})}
    job = job_of(ranks, 2, STEPS, config={**CONFIG, "n_layer": 3, "dropout": 0.2}, parallelism=parallelism,
                 checkpoint={"every": SAVED}, **CASES[name])
    job.setdefault("accumulation", {})["num_steps"] = micro
    job["optimizer"] = {key: value for key, value in job["optimizer"].items() if value is not None}
    job["data"]["train"]["path"] = "short.txt"
    return job


def built(ranks, job):
    """An epoch of 5 steps and a part, so that the run goes through its end."""
    trainer = Ranks(ranks, job)
    (trainer.folder / "short.txt").write_bytes((trainer.folder / "corpus.txt").read_bytes()[:1150])
    trainer.build()
    return trainer


def numbers(lines):
    """What must not depend on the division."""
    names = ("step", "loss", "lr", "grad_norm", "eval_loss", "eval_perplexity")
    return [{name: line[name] for name in names if name in line} for line in lines]


def checkpoint(trainer, number):
    return trainer.folder / "run" / "checkpoints" / f"checkpoint_{number}"


def states(trainer):
    return {f"{name}/{key}": value for name in ("model", "optimizer")
            for key, value in load_file(checkpoint(trainer, 1) / f"{name}.safetensors").items()}


class Divisions(unittest.TestCase):
    def same(self, a, b):
        self.assertEqual(a.keys(), b.keys())
        for name, value in a.items():
            self.assertTrue(np.array_equal(value.view(np.uint8), b[name].view(np.uint8)), name)

    def check(self, name, divisions):
        made = {division: DIVISIONS[division] for division in divisions}
        trainers = {division: built(ranks, job(ranks, 8 // ranks, name, divided)) for division, (ranks, divided) in made.items()}
        lines = {division: numbers(trainer.run()) for division, trainer in trainers.items()}
        self.assertEqual(len(lines["1"]), STEPS)
        for division, trainer in trainers.items():
            with self.subTest(name, division=division):
                self.assertEqual(lines[division], lines["1"])
                self.same(trainer.weights(), trainers["1"].weights())
                self.same(states(trainer), states(trainers["1"]))
        return trainers

    def test_adamw_bf16(self):
        """Targets counted, and a run that resumes as another division."""
        trainers = self.check("adamw_bf16", DIVISIONS)
        whole = trainers["1"].weights()
        some = (("1", "8"), ("8", "2 of stage 3"), ("2 of stage 3", "4 of stage 1"), ("4 of stage 1", "1"), ("8 of stage 2", "4 of stage 3"),
                ("4 of stage 3", "8 of stage 3"))
        for before, after in itertools.permutations(DIVISIONS, 2) if ALL else some:
            with self.subTest(before=before, after=after):
                trainer = trainers[after]
                rest = trainer.launch("--resume", checkpoint(trainers[before], 0), "--project-dir", "other")
                self.assertEqual(rest.returncode, 0, rest.stderr)
                self.same(load_file(trainer.folder / "other" / "model.safetensors"), whole)

    def test_others(self):
        for name in ("sgd", "adamw_fp16") if ALL else ("sgd",):
            self.check(name, SOME)

    def test_broken_order(self):
        """The comparison sees it when four micro-batches of a rank add up in another order."""
        trainer, other = built(2, job(2, 4, "sgd")), Ranks(2, job(2, 4, "sgd"))
        text = trainer.generate()
        (other.folder / "short.txt").write_bytes((trainer.folder / "short.txt").read_bytes())
        for before, after in (("micro_step(run, position + 2)", "micro_step(run, position + 1)"),
                              ("micro_steps_2(run, position + 1)", "micro_steps_2(run, position + 2)")):
            self.assertEqual(text.count(before), 1)
            text = text.replace(before, after)
        source = other.folder / "trainer.c"
        source.write_text(text.replace(str(trainer.folder), str(other.folder)))
        subprocess.run(["gcc", "-std=c17", "-O1", "-march=native", "-fopenmp", source, "-o", other.folder / "trainer",
                        *library_flags("--cflags", "--libs")], check=True)
        lines = numbers(trainer.run())
        self.assertNotEqual(numbers(other.run()), lines)
        with self.assertRaises(AssertionError):
            self.same(other.weights(), trainer.weights())

    def test_refusals(self):
        for ranks, micro, model, words in ((3, 2, "gpt2", "are no power of two"),
                                           (1, 3, "gpt2", "are no power of two"),
                                           (2, 2, "resnet", "moves with each micro-batch of a rank")):
            wanted = job(ranks, micro, "sgd")
            if model == "resnet":
                wanted["model"] = {"source": str(MODELS / "resnet.c"), "config": {"num_channels": 1, "image_size": 8, "num_labels": 10}}
                wanted["data"] = {"train": {"path": "rows.csv", "format": "csv"}, "features": 64, "batch_size": 2}
            path = Ranks(ranks, wanted).path
            result = subprocess.run([GENERATOR, path, "-o", path.parent / "trainer.c"], capture_output=True, text=True)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, result.stderr)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
