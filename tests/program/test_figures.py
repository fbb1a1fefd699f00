"""What the plan says of memory is what a process takes: the arena, a constant for the process and its libraries with the
buffers into which oneDNN packs what it multiplies, and nothing that grows. That the arena's types have the sizes that
the plan gives them, the programs assert themselves when they are compiled."""

import json
import os
import pathlib
import re
import subprocess
import time
import unittest

import numpy as np
from harness import MEASURED, MODELS, STEADY, Trainer
from rotation import rotating

MIB = 1 << 20


def make(n_layer, n_embd, batch, steps, build=True, **groups):
    job = {
        "model": {"source": str(MODELS / "nanogpt.c"),
                  "config": {"n_layer": n_layer, "n_head": 4, "n_embd": n_embd, "vocab_size": 256, "block_size": 64}},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": batch},
        "training": {"steps": steps},
        **groups,
    }
    trainer = Trainer(job)
    (trainer.folder / "corpus.txt").write_bytes(np.random.default_rng(7).bytes(20000))
    if build:
        trainer.build(cflags=STEADY)
    return trainer


MEASURES = [
    {"activation_checkpointing": "all"},
    {"activation_checkpointing": "every", "checkpoint_every": 4},
    {"activation_checkpointing": "functions", "checkpoint_functions": ["mlp"]},
    {"activation_checkpointing": "auto"},
    {"cross_entropy_chunk": 256},
]


def peak(trainer):
    """The peak resident size of a run, in bytes: the least of four, as threads that wait for a busy machine add pages."""
    return min(one_peak(trainer) for _ in range(4))


def one_peak(trainer):
    """Large allocations outside of the arena go back to the system when they are freed. oneDNN's products of bfloat16
    allocate what they pack for each product (some 350 KB a thread), and glibc keeps what was freed in its heaps: 2 to
    3 MB that do not grow, but whose size depends on the order of all small allocations and so differs between two
    programs by more than 1 % of a small plan."""
    result = subprocess.run([*MEASURED, "peak", trainer.folder / "trainer"], cwd=trainer.folder,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": "2", "MALLOC_MMAP_THRESHOLD_": "65536"})
    if result.returncode != 0:
        raise AssertionError(f"the trainer ended with {result.returncode}: {result.stderr}")
    found = int((trainer.folder / "peak").read_text())
    reported = json.loads((trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])["peak_memory_mib"]
    if not 0 <= found - reported * MIB + MIB / 8 < 8 * MIB:  # the last line is before the last save
        raise AssertionError(f"metrics.jsonl has a peak of {reported} MiB, the system {found / MIB}")
    return found


class Figures(unittest.TestCase):
    def check(self, trainer, constant, layers, what):
        """The trainer's peak is its plan and the constant of a program with so many layers less. The kernel counts
        resident pages in lots of 64 a thread, and heaps end at whole pages: half a MiB. A save has the names of all
        tensors and what its files say of them, some 2 KB each, in addition to the arena. A layer has twelve."""
        total = trainer.plan()["arena_bytes"]["total"]
        found = peak(trainer) - constant
        print(f"{total / MIB:.2f} MiB planned, {found / MIB:.2f} taken, {constant / MIB:.2f} for the process: {what}")
        self.assertLess(abs(found - total), max(0.01 * total, MIB / 2) + 2048 * 12 * layers, what)

    def test_peak(self):
        """Peak = plan + a constant, within 1 %. The constant is that of one layer: more of them multiply nothing else.
        The width is small, as the size of oneDNN's buffers for wide matmuls differs by some MiB from run to run."""
        for n_embd, batch in [(64, 4), (64, 16)]:
            one = make(1, n_embd, batch, 2)
            constant = peak(one) - one.plan()["arena_bytes"]["total"]
            for n_layer in [4, 16]:
                self.check(make(n_layer, n_embd, batch, 2), constant, n_layer - 1, f"{n_layer} layers of {n_embd}")

    def test_measures(self):
        """The same with what memory saves: the constant is that of the program without it."""
        plain = make(16, 64, 16, 2)
        constant = peak(plain) - plain.plan()["arena_bytes"]["total"]
        for memory in MEASURES:
            limit = {"devices": {"memory": "40MiB"}} if "auto" in memory.values() else {}
            trainer = make(16, 64, 16, 2, memory=memory, **limit)
            plan = trainer.plan()
            saved = sum(saving["bytes"] for saving in plan["savings"])
            self.assertEqual(plain.plan()["arena_bytes"]["total"] - plan["arena_bytes"]["total"], saved)
            self.check(trainer, constant, 0, f"{saved / MIB:.2f} MiB saved with {memory}")

    def test_peak_in_bf16(self):
        """The same of bfloat16: half of most activations, and the copies of the weights."""
        half = {"precision": {"mixed_precision": "bf16"}}
        one, many, full = make(1, 64, 16, 2, **half), make(16, 64, 16, 2, **half), make(16, 64, 16, 2, build=False)
        constant = peak(one) - one.plan()["arena_bytes"]["total"]
        total = many.plan()["arena_bytes"]["total"]
        self.check(many, constant, 15, "bfloat16")
        self.assertLess(total, 0.65 * full.plan()["arena_bytes"]["total"])

    def test_constant(self):
        """What a process takes in addition to its plan, whatever the model's size: libraries, and packing for two threads."""
        for n_embd, batch in [(16, 1), (768, 8)]:
            trainer = make(1, n_embd, batch, 3)
            constant = peak(trainer) - trainer.plan()["arena_bytes"]["total"]
            self.assertLess(constant, 64 * MIB, f"width {n_embd}")

    def test_classes_add_up(self):
        figures = make(1, 16, 1, 3, build=False).plan()["arena_bytes"]
        total = figures.pop("total")
        self.assertEqual(sum(figures.values()), total)

    def test_nothing_grows(self):
        """The resident size at step 200 and at step 2,000, read from outside while the trainer waits for nobody; without pages of
        files, as the program reads its text when it first comes to it."""
        trainer = make(2, 32, 4, 20000)
        process = subprocess.Popen([trainer.folder / "trainer"], cwd=trainer.folder, stdout=subprocess.DEVNULL,
                                   env={**os.environ, "OMP_NUM_THREADS": "2"})
        try:
            first = self.at_step(trainer, process, 200)
            last = self.at_step(trainer, process, 2000)
        finally:
            process.kill()
            process.wait()
        self.assertLessEqual(last - first, 2 * 4096, f"{first} bytes, then {last}")

    def at_step(self, trainer, process, step):
        metrics = trainer.folder / "run" / "metrics.jsonl"
        end = time.monotonic() + 300
        while time.monotonic() < end:
            self.assertIsNone(process.poll(), "the trainer ended")
            lines = metrics.read_text().splitlines()[:-1] if metrics.exists() else []
            if lines and json.loads(lines[-1])["step"] >= step:
                status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                return int(re.search(r"RssAnon:\s*(\d+) kB", status).group(1)) * 1024
            time.sleep(0.01)
        raise AssertionError(f"step {step} did not come")


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
