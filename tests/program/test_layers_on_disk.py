"""Trained layers on a disk (parallelism.offload.param: nvme): the bits of the run that has all in memory, for rules, groups and all that
changes a step; models whose weights take three times the memory that a run may have; killed at random and continued, from the disk to
memory and back; and disks that are full, that fail, or that may not be written to."""

import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import test_offload as states
from harness import GENERATOR, MEASURED
from rotation import ALL, SEED, in_turn, rotating

RATE, MIB = states.RATE, 1 << 20
DISK = {**states.DISK, "param": "nvme", "param_nvme_path": "scratch"}
CONFIG = {"n_layer": 5, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 8, "bias": True}
CASES = {
    "adamw, groups, evaluations": {"optimizer": {"name": "adamw", "clip_grad_value": 0.5, **RATE,
                                                 "param_groups": [{"match": "*ln*", "lr_scale": 0.5}, {"match": "*h.1.*", "weight_decay": 0.3}]},
                                   "training": {"eval_interval": 4, "eval_iters": 1}},
    "sgd, 16 bits, checkpointing": {"optimizer": {"name": "sgd", "momentum": 0.9, **RATE}, "precision": {"mixed_precision": "bf16"},
                                    "memory": {"activation_checkpointing": "all"}},
    "rmsprop, dropout, threads, a model of 16 bits": {"optimizer": {"name": "rmsprop", "momentum": 0.5, **RATE}, "devices": {"threads": 2},
                                                      "model": {"config": {**CONFIG, "dropout": 0.1}}, "checkpoint": {"dtype": "bf16"}},
    "adam, chunks, one layer": {"optimizer": {"name": "adam", **RATE}, "memory": {"cross_entropy_chunk": 8}, "model": {"config": {**CONFIG, "n_layer": 1}}},
    "lion, some layers again": {"optimizer": {"name": "lion", **RATE}, "memory": {"activation_checkpointing": "layers", "checkpoint_layers": 2}},
}
ADAMW = {"optimizer": {"name": "adamw", **RATE}}
REFUSED = [
    ({"optimizer": {**ADAMW["optimizer"], "clip_grad_norm": 1.0}}, {}, "the whole gradient must be known before a weight moves"),
    ({"accumulation": {"num_steps": 2}}, {}, "gradients of micro-batches add up in memory"),
    ({"precision": {"grad_scaler": {"enabled": True}}}, {}, "the whole gradient must be known before a weight moves"),
    ({"training": {"on_nonfinite": "skip"}}, {}, "the whole gradient must be known before a weight moves"),
    ({"tracking": {"grad_norms": "per_layer"}}, {}, "gradients of layers are gone after their update"),
    ({"training": {"ema": {"decay": 0.9}}}, {}, "averages of the weights are in memory"),
    ({"devices": {"per_node": 2}}, {}, "layers come to a trainer of one process alone"),
    ({"model": {"lora": {"rank": 2, "alpha": 4, "targets": ["c_attn"]}}}, {}, "layers that adapters are of are not trained"),
    ({"model": {"freeze": ["*wpe*"]}}, {}, "is of models that are trained whole, and 'transformer.wpe.weight' is not"),
    ({"memory": {"activation_checkpointing": "every", "checkpoint_every": 2}}, {}, "every runs several layers again together"),
    ({"optimizer": {"name": "lamb", **RATE}}, {}, "it steps parameters as a whole"),
    ({}, {"param": "nvme", "param_nvme_path": "scratch"}, "states of layers are updated with them"),
    ({}, {**states.DISK, "param": "nvme"}, "missing key 'param_nvme_path' in parallelism.offload"),
]


def prepare(*arguments, layers=5, **keys):
    return states.prepare(*arguments, layers=layers, **keys)


class Layers(unittest.TestCase):
    def compare(self, disk, memory):
        self.assertEqual(states.left(disk), states.left(memory))
        for own, wanted in zip(states.losses(disk), states.losses(memory), strict=True):
            self.assertEqual(own[:2], wanted[:2])
            self.assertAlmostEqual(own[2] / wanted[2], 1, delta=1e-6)  # the squares add up in another order

    def test_bits(self):
        """Weights, states and losses, and that the program does what its audit says."""
        for name, groups in in_turn(CASES.items(), 4):
            with self.subTest(name):
                memory, disk = prepare(groups), prepare(groups, DISK)
                memory.run()
                disk.run()
                self.compare(disk, memory)
                self.assertEqual(os.listdir(disk.folder / "scratch"), [])
                disk.generate()
                claims = disk.command("audit", "trainer.c")
                self.assertIn(", 0 broken", claims)
                self.assertIn("no-race-with-transfers", claims)

    def test_killed(self):
        """At random, and continued each time with the layers on the other side, or on the same one."""
        pick = random.Random(SEED)
        memory, disk = (prepare(ADAMW, offload, steps=200, every=7) for offload in (None, DISK))
        began = time.monotonic()
        disk.run()
        length = time.monotonic() - began
        wanted = (disk.folder / "run" / "model.safetensors").read_bytes()
        for round in range(10 if ALL else 1):
            shutil.rmtree(disk.folder / "run", ignore_errors=True)
            for kill in range(2):
                program = (memory if (round + kill) % 3 == 2 else disk).folder / "trainer"
                process = subprocess.Popen([program, "--resume", "auto", "--quiet", "--project-dir", "run"], cwd=disk.folder)
                time.sleep(pick.uniform(0.02, 0.6 * length))
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.assertEqual(os.listdir(disk.folder / "scratch"), [])
            disk.run("--resume", "auto")
            self.assertEqual((disk.folder / "run" / "model.safetensors").read_bytes(), wanted)

    def limited(self, trainer, limit=None, *flags):
        """The most memory that a run had, in a limit of so much."""
        ended = subprocess.run([*MEASURED, "peak", trainer.folder / "trainer", "--quiet", *flags], cwd=trainer.folder, capture_output=True, text=True,
                               preexec_fn=lambda: limit and resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
        return ended.returncode, ended.stderr, int((trainer.folder / "peak").read_text())

    def test_larger_than_memory(self):
        """All weights of a model that is three times as large as the memory are trained; the peak is that of the plan; killed and resumed
        there; and such a model read from a file."""
        many, keys = 60, {"width": 256, "steps": 2, "every": 1}
        groups = {**ADAMW, "memory": {"activation_checkpointing": "all"}, "data": {"batch_size": 1}}
        memory, disk, small = (prepare(groups, offload, layers=layers, built=layers == many or ALL, **keys) for offload, layers in ((None, many), (DISK, many), (DISK, 3)))
        plans = [json.loads(one.command("plan", "job.yaml", "--json")) for one in (memory, disk, small)]
        total, least = (plan["arena_bytes"]["total"] for plan in plans[1:])
        weights = plans[0]["arena_bytes"]["weights"]
        limit = weights // 3
        self.assertLess(total, limit)
        self.assertGreater(plans[1]["disk"]["bytes"], 2.9 * weights)
        if ALL:
            peak, smallest = (self.limited(one)[2] for one in (disk, small))
            self.assertLess(abs(peak - smallest - (total - least)), 0.02 * total)
            shutil.rmtree(disk.folder / "run")
        status, error, _ = self.limited(disk, limit)
        self.assertEqual(status, 0, error)
        memory.run("--quiet")
        self.compare(disk, memory)
        shutil.rmtree(disk.folder / "run" / "checkpoints" / "checkpoint_1")
        (disk.folder / "run" / "model.safetensors").unlink()
        status, error, _ = self.limited(disk, limit, "--resume", "auto")
        self.assertEqual(status, 0, error)
        self.assertEqual(states.left(disk), states.left(memory))
        self.assertEqual(self.limited(memory, limit)[0], 1)

    def test_files(self):
        """Layers that start from a published file, and one that is another folder's."""
        trainers = [prepare(ADAMW, offload, built=False, steps=3, every=2) for offload in (None, {**DISK, "param_nvme_path": "other"})]
        first = prepare(ADAMW, steps=1, every=0)
        first.run()
        for one in trainers:
            one.job["model"]["weights"] = str(first.folder / "run" / "model.safetensors")
            one.write()
            one.build()
            one.run()
        self.compare(trainers[1], trainers[0])
        self.assertEqual([os.listdir(trainers[1].folder / name) for name in ("scratch", "other")], [[], []])

    def test_disks(self):
        """Two runs in one folder; no folder, no space; a disk that fails in the middle, after which the run continues to the same bits."""
        trainer = prepare(ADAMW, DISK, steps=300, every=10)
        folder = trainer.folder
        trainer.run()
        wanted = (folder / "run" / "model.safetensors").read_bytes()
        both = [subprocess.Popen([folder / "trainer", "--quiet", "--project-dir", f"run_{i}"], cwd=folder) for i in range(2)]
        self.assertEqual([one.wait() for one in both], [0, 0])
        for i in range(2):
            self.assertEqual((folder / f"run_{i}" / "model.safetensors").read_bytes(), wanted)
        process = subprocess.Popen([folder / "trainer", "--quiet", "--project-dir", "run_2"], cwd=folder, stderr=subprocess.PIPE, text=True)
        while not (folder / "run_2" / "checkpoints" / "checkpoint_0" / "manifest.json").exists():
            time.sleep(0.002)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        error = process.communicate()[1]
        self.assertEqual(process.returncode, 1)
        self.assertRegex(error, "error: .*File too large\n    help: ")
        trainer.run("--project-dir", "run_2", "--resume", "auto")
        self.assertEqual((folder / "run_2" / "model.safetensors").read_bytes(), wanted)
        self.refuse(folder, "scratch: a file of .* MiB|scratch: no file can be made: File too large", resource.RLIMIT_FSIZE)
        shutil.rmtree(folder / "scratch")
        (folder / "scratch").write_text("a file")
        self.refuse(folder, "error: scratch: .*\n    help: ")

    def refuse(self, folder, message, limit=None):
        lower = None if limit is None else lambda: resource.setrlimit(limit, (1 << 16, 1 << 16))
        ended = subprocess.run([folder / "trainer", "--project-dir", "run_3"], cwd=folder, capture_output=True, text=True, preexec_fn=lower)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stderr, message)
        self.assertFalse((folder / "run_3" / "checkpoints").exists())


class Refusals(unittest.TestCase):
    def test_refusals(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        for groups, offload, text in REFUSED:
            (folder / "job.yaml").write_text(json.dumps(states.job_of({**ADAMW, **groups}, offload or DISK)))
            ended = subprocess.run([GENERATOR, "plan", folder / "job.yaml"], capture_output=True, text=True)
            with self.subTest(groups=groups):
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(text, ended.stderr)
        shutil.rmtree(folder)


load_tests = rotating(3, always=("Refusals",))


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--all"]
    unittest.main()
