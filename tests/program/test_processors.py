"""Programs for the processors that devices.arch names: those of this machine's kind are compiled and run here, those for 64-bit
Arm under qemu, and each trains as the one that is made for this machine does; where instructions are missing, it does not start."""

import os
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import MODELS, TREE, Trainer
from rotation import rotating

STEPS = 4
FLAGS = {"x86-64-v3": "avx2", "avx512": "avx512dq", "avx512-bf16": "avx512_bf16", "amx": "amx_tile"}
ON_X86 = platform.machine() == "x86_64"
WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Werror", "-O2", "-c", "-o", os.devnull]
# The runtime is not what is measured here.
CHEAP = {"RUNTIME_CFLAGS": "-O0"}


def job(arch, **more):
    return {"model": {"source": str(MODELS / "nanogpt.c"),
                      "config": {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 24}},
            "data": {"train": {"path": str(TREE / "README.md"), "format": "bytes"}, "batch_size": 2},
            "optimizer": {"name": "adamw", "lr": 1e-2, "clip_grad_norm": 1.0}, "training": {"steps": STEPS, "seed": 3, "deterministic": True},
            "devices": {"arch": arch}, **more}


class Processors(unittest.TestCase):
    def losses(self, arch, run=(), settings=None, **more):
        trainer = Trainer(job(arch, **more), self.enterContext(tempfile.TemporaryDirectory()))
        trainer.build(cflags=None, **(settings or {}))  # those of the arch
        if run:
            subprocess.run([*run, trainer.folder / "trainer"], check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "2"})
            trainer.folder.joinpath("trainer").write_text("#!/bin/sh\n")
        self.trainer = trainer
        return [line["loss"] for line in trainer.run()]

    def same(self, ours, native, tolerance=2e-6):
        self.assertEqual(len(ours), STEPS)
        for a, b in zip(ours, native):
            self.assertLessEqual(abs(a - b), tolerance * b)

    @unittest.skipUnless(ON_X86, "this machine has another processor")
    def test_own(self):
        with open("/proc/cpuinfo") as file:
            known = set(re.search(r"flags\s*:(.*)", file.read()).group(1).split())
        native = self.losses("native")
        for arch, flag in FLAGS.items():
            with self.subTest(arch):
                if flag not in known:
                    self.skipTest(f"this processor has no {flag}")
                self.same(self.losses(arch), native)
                self.assertNotIn("#if", self.trainer.generate())

    @unittest.skipUnless(ON_X86 and shutil.which("qemu-x86_64"), "no qemu-x86_64 (qemu-user)")
    def test_start(self):
        trainer = Trainer(job("x86-64-v3"), self.enterContext(tempfile.TemporaryDirectory()))
        old = ["qemu-x86_64", "-cpu", "Nehalem", trainer.build(cflags=None)]
        result = subprocess.run(old, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("compiled for processors with AVX2, which this machine's lacks", result.stderr)
        self.assertIn("devices.arch", result.stderr)
        self.assertEqual(subprocess.run([*old, "--help"], capture_output=True).returncode, 0)

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64"), "no gcc-aarch64-linux-gnu or no qemu-user")
    def test_arm(self):
        made = subprocess.run(["sh", TREE / "tools/cross.sh"], capture_output=True, text=True)
        if made.returncode != 0:
            self.skipTest(made.stderr.strip())
        settings = CHEAP | dict(re.findall(r"^export (\w+)='(.*)'$", made.stdout, re.MULTILINE))
        run = settings.pop("RUN_AARCH64").split()
        for arch, more in {"neon": {}, "sve": {"precision": {"mixed_precision": "bf16"}}}.items():
            with self.subTest(arch):
                self.same(self.losses(arch, run, settings, **more), self.losses("native", **more), 1e-4 if more else 2e-6)

    @unittest.skipUnless(shutil.which("aarch64-linux-gnu-gcc"), "no gcc-aarch64-linux-gnu")
    def test_warnings(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        trainer = Trainer(job("sve"), folder)
        trainer.generate()
        result = subprocess.run(["aarch64-linux-gnu-gcc", *WARNINGS, "-march=armv8.2-a+sve", "-fopenmp", f"-I{TREE / 'include'}", trainer.folder / "trainer.c"],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
