"""The optimizer's states on a disk (parallelism.offload): the bits of the run that has them in memory, for rules, groups and all that
changes a step; killed at random and continued, from the disk to memory and back; in the memory that the plan says; and disks that are
full, that fail, or that may not be written to."""

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

from harness import GENERATOR, MODELS, Trainer
from rotation import ALL, SEED, in_turn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import start  # noqa: E402

STEPS = 12
RATE = {"lr": 1e-2}
CASES = {
    "adamw, clipped, accumulation": {"optimizer": {"name": "adamw", "clip_grad_norm": 0.5, **RATE}, "accumulation": {"num_steps": 3}},
    "adam, groups": {"optimizer": {"name": "adam", "param_groups": [{"match": "*ln*", "lr_scale": 0.5}, {"match": "*wte*", "weight_decay": 0.1}], **RATE}},
    "lion, LoRA": {"optimizer": {"name": "lion", **RATE}, "model": {"lora": {"rank": 2, "alpha": 4, "targets": ["c_attn", "c_fc"]}}},
    "adamw, frozen, ema, bf16": {"optimizer": {"name": "adamw", **RATE}, "model": {"freeze": ["*wpe*", "*h.0.*"]},
                                 "training": {"ema": {"decay": 0.9}}, "precision": {"mixed_precision": "bf16"}},
    "rmsprop, a scaler that skips": {"optimizer": {"name": "rmsprop", "momentum": 0.5, "centered": True, **RATE},
                                     "precision": {"grad_scaler": {"enabled": True, "init_scale": 1e38, "backoff_factor": 0.001}}},
    "nadam, groups, a scaler that skips": {"optimizer": {"name": "nadam", "param_groups": [{"match": "*ln*", "lr_scale": 0.5}], **RATE},
                                           "precision": {"grad_scaler": {"enabled": True, "init_scale": 1e38, "backoff_factor": 0.001}}},
    "radam, evaluations": {"optimizer": {"name": "radam", **RATE}, "training": {"eval_interval": 4, "eval_iters": 1}},
    "sgd, by a tree": {"optimizer": {"name": "sgd", "momentum": 0.9, **RATE}, "parallelism": {"reproducible": "topology"}},
    "adamax, accumulation": {"optimizer": {"name": "adamax", **RATE}, "accumulation": {"num_steps": 3}},
    "adagrad": {"optimizer": {"name": "adagrad", **RATE}},
    "adadelta": {"optimizer": {"name": "adadelta", **RATE}},
}
REFUSED = {"lamb": "it steps parameters as a whole", "muon": "it steps parameters as a whole", "adafactor": "it steps parameters as a whole",
           "schedule_free_adamw": "the model is made of a state", "lomo": "weights are updated within the backward",
           "sgd": "it stores nothing for each weight"}
DISK = {"optimizer": "nvme", "optimizer_nvme_path": "scratch"}


def job_of(groups, offload=None, width=32, layers=2, steps=STEPS, every=4):
    job = {
        "model": {"source": str(MODELS / "nanogpt.c"),
                  "config": {"n_layer": layers, "n_head": 2, "n_embd": width, "vocab_size": 256, "block_size": 8, "bias": True}},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3},
        "training": {"steps": steps},
        "devices": {"threads": 1},
        "checkpoint": {"every": every},
    }
    for name, group in groups.items():
        job[name] = {**job.get(name, {}), **group}
    if offload is not None:
        job["parallelism"] = {**job.get("parallelism", {}), "offload": offload}
    return job


def prepare(*arguments, built=True, **keys):
    trainer = Trainer(json.loads(json.dumps(job_of(*arguments, **keys))))
    (trainer.folder / "corpus.txt").write_bytes(bytes(random.Random(5).choices(range(97, 110), k=700)))
    if built:
        trainer.build()
    return trainer


def left(trainer):
    """The weights that a run leaves, and all arrays of its checkpoints."""
    run = trainer.folder / "run"
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*.safetensors"))}


def losses(trainer):
    lines = [json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"], line.get("grad_norm")) for line in lines if "loss" in line]


ADAMW = {"optimizer": {"name": "adamw", **RATE}}


RANKS = {
    "micro-batches, clipped": {"accumulation": {"num_steps": 2}, "optimizer": {**ADAMW["optimizer"], "clip_grad_norm": 0.5}},
    "sums of 16 bits": {"precision": {"mixed_precision": "bf16"}, "parallelism": {"ddp": {"comm_hook": "bf16"}}},
    "a tree": {"accumulation": {"num_steps": 2}, "parallelism": {"reproducible": "topology"}},
    "a scaler that skips": {"precision": {"grad_scaler": {"enabled": True, "init_scale": 1e38, "backoff_factor": 0.001}}},
    "LoRA, ema": {"training": {"ema": {"decay": 0.9}}, "model": {"lora": {"rank": 2, "alpha": 4, "targets": ["c_attn", "c_fc"]}}}}


class Offload(unittest.TestCase):
    def test_bits(self):
        """Weights, states and losses, and that the program does what its audit says."""
        for name, groups in in_turn(CASES.items(), 6):
            with self.subTest(name):
                memory, disk = prepare(groups), prepare(groups, DISK)
                memory.run()
                disk.run()
                self.assertEqual(left(disk), left(memory))
                self.assertEqual(losses(disk), losses(memory))
                self.assertEqual(os.listdir(disk.folder / "scratch"), [])
                disk.generate()
                claims = disk.command("audit", "trainer.c")
                self.assertIn(", 0 broken", claims)
                self.assertNotIn("cannot", claims)
                self.assertIn("no-race-with-transfers", claims)

    def test_ranks(self):
        """Ranks that each have all states on a disk, also after a resume: the bits of ranks that have them in memory."""
        for name, groups in in_turn(RANKS.items(), 5):
            with self.subTest(name):
                self.check_ranks({**ADAMW, **groups, "devices": {"per_node": 2, "threads": 1}})

    def check_ranks(self, groups):
        wanted = None
        for offload in (None, DISK):
            trainer = prepare(groups, offload, built=False)
            trainer.command("build", "job.yaml", "-o", "trainer", "-q")
            for flags in ((), ("--resume", "auto")):
                ended = start(trainer.folder / "trainer", 2, "--quiet", *flags, cwd=trainer.folder)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                wanted = wanted or left(trainer)
                self.assertEqual(left(trainer), wanted)
                shutil.rmtree(trainer.folder / "run" / "checkpoints" / "checkpoint_2")
                (trainer.folder / "run" / "model.safetensors").unlink()
            trainer.generate()
            self.assertIn(", 0 broken", trainer.command("audit", "trainer.c"))

    def test_killed(self):
        """At random, and continued each time with the states on the other side."""
        pick = random.Random(SEED)
        memory, disk = prepare(ADAMW, steps=300, every=10), prepare(ADAMW, DISK, steps=300, every=10)
        began = time.monotonic()
        memory.run()
        length = time.monotonic() - began
        wanted = (memory.folder / "run" / "model.safetensors").read_bytes()
        for round in range(17 if ALL else 1):
            shutil.rmtree(disk.folder / "run", ignore_errors=True)
            for kill in range(3):
                program = (memory if (round + kill) % 3 == 2 else disk).folder / "trainer"
                process = subprocess.Popen([program, "--resume", "auto", "--quiet", "--project-dir", "run"], cwd=disk.folder)
                time.sleep(pick.uniform(0.05, 0.6 * length + 0.1))
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.assertEqual(os.listdir(disk.folder / "scratch"), [])
            disk.run("--resume", "auto")
            self.assertEqual((disk.folder / "run" / "model.safetensors").read_bytes(), wanted)

    def test_memory(self):
        """A run's peak is its plan and what each process takes; within a limit that a run with states in memory exceeds it gives the
        same bits."""
        keys = {"width": 256, "steps": 3, "every": 2}
        memory, disk = prepare(ADAMW, layers=10, **keys), prepare(ADAMW, DISK, layers=10, **keys)
        small = prepare(ADAMW, DISK, layers=3, **keys)
        plans = [json.loads(one.command("plan", "job.yaml", "--json")) for one in (memory, disk, small)]
        states = plans[0]["arena_bytes"]["optimizer"]
        self.assertAlmostEqual(plans[1]["disk"]["bytes"] / states, 1, delta=0.01)
        self.assertEqual(plans[1]["disk"]["read_bytes_per_step"], plans[1]["disk"]["bytes"])
        self.assertTrue(plans[1]["disk"]["updates_in_backward"])
        self.assertGreater(plans[1]["disk"]["slots_in_gradients"], 0)
        self.assertIn(", 0 broken", disk.command("audit", disk.generate() and "trainer.c"))
        self.assertGreater(plans[0]["arena_bytes"]["total"] - plans[1]["arena_bytes"]["total"], 0.7 * states)
        memory.run()
        more = plans[1]["arena_bytes"]["total"] - plans[2]["arena_bytes"]["total"]
        self.assertLess(abs(self.peak(disk) - self.peak(small) - more), 0.02 * plans[1]["arena_bytes"]["total"])
        self.assertEqual(left(disk), left(memory))
        limit = plans[1]["arena_bytes"]["total"] + (32 << 20)
        self.assertLess(limit, plans[0]["arena_bytes"]["total"])
        wanted = left(memory)
        for one, status in ((memory, 1), (disk, 0)):
            shutil.rmtree(one.folder / "run")
            ended = subprocess.run([one.folder / "trainer", "--quiet"], cwd=one.folder, capture_output=True, text=True,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
            self.assertEqual(ended.returncode, status, ended.stderr)
        self.assertEqual(left(disk), wanted)

    def peak(self, trainer):
        process = subprocess.Popen([trainer.folder / "trainer", "--quiet"], cwd=trainer.folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        return usage.ru_maxrss * 1024

    def test_disks(self):
        """Two runs in one folder; no folder, no space; a disk that fails in the middle, after which the run continues to the same bits."""
        trainer = prepare(ADAMW, DISK, steps=400, every=10)
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
        self.assertEqual((folder / "scratch").read_text(), "a file")

    def refuse(self, folder, message, limit=None):
        lower = None if limit is None else lambda: resource.setrlimit(limit, (1 << 16, 1 << 16))
        ended = subprocess.run([folder / "trainer", "--project-dir", "run_3"], cwd=folder, capture_output=True, text=True, preexec_fn=lower)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertRegex(ended.stderr, message)
        self.assertFalse((folder / "run_3" / "checkpoints").exists())

    def test_refusals(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        jobs = [({"optimizer": {"name": name, "lr": 0.1}}, text) for name, text in REFUSED.items()]
        jobs += [({**ADAMW, "devices": {"per_node": 2}, "parallelism": {"tp": 2}}, "ranks that divide the model keep their states in memory"),
                 ({**ADAMW, "devices": {"per_node": 2}, "parallelism": {"zero_stage": 1}}, "ranks that divide states keep them in memory"),
                 ({**ADAMW, "devices": {"per_node": 2}, "parallelism": {"local_sgd_steps": 2}}, "ranks that step alone keep their states in memory"),
                 ({"optimizer": {**ADAMW["optimizer"], "state_dtype": "bf16"}}, "states on a disk are stored in float32")]
        for groups, text in jobs:
            (folder / "job.yaml").write_text(json.dumps(job_of(groups, DISK)))
            ended = subprocess.run([GENERATOR, "plan", folder / "job.yaml"], capture_output=True, text=True)
            with self.subTest(groups=groups):
                self.assertEqual(ended.returncode, 2, ended.stderr)
                self.assertIn(text, ended.stderr)
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word != "--all"]
    unittest.main()
