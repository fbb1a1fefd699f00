"""Builds and runs emitted programs for tests: a job as a Python dict, a trainer in a temporary folder, its metrics and
weights back as arrays."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
MODELS = TREE / "examples" / "models"
# What of a line of metrics.jsonl follows from the clock.
TIMES = ("tokens_per_s", "step_ms", "input_wait_ms", "start_to_first_step_s", "weights_s", "save_stall_ms", "left_s", "peak_memory_mib")
# CFLAGS of what is to compile soon, not to run soon: gcc takes half as long as with -O1, and gold half as long as ld.
FAST = "-std=c17 -Og -march=native" + (" -fuse-ld=gold" if shutil.which("ld.gold") else "")
STEADY = "-std=c17 -O1 -march=native"  # of what runs for seconds
QUICK = {**os.environ, "CFLAGS": FAST}  # the environment of a build by the command itself
# What runs a program whose peak of memory is measured: MEASURED, the file for that, the program, its flags. A process inherits the peak of
# the one that it was before exec, so a small one starts the program, not this one. The program's streams are its own.
MEASURED = [sys.executable, "-S", "-E", "-c", """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss * 1024))
sys.exit(os.waitstatus_to_exitcode(status))
"""]
sys.path.insert(0, str(TREE / "tests" / "runtime"))

from order import TRAIN, Order, splits  # noqa: E402


def need_part(name):
    """Ends a test of a part of the command (gen/`name`) that the build at hand leaves out."""
    if name in (TREE / "build" / "config" / "without").read_text().split():
        print(f"this build is without gen/{name} (tools/configure.sh)")
        sys.exit(77)


class Trainer:
    """One job in its own folder."""

    def __init__(self, job, folder=None):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="accel-test-"))
        self.job = job
        job.setdefault("checkpoint", {})["project_dir"] = str(self.folder / "run")
        job.setdefault("tracking", {})["every"] = 1
        self.path = self.folder / "job.yaml"
        self.write()

    def write(self):
        self.path.write_text(json.dumps(self.job))  # JSON is YAML

    def generate(self, *flags):
        """The text of the program."""
        out = self.folder / "trainer.c"
        subprocess.run([GENERATOR, self.path, "-o", out, *flags], check=True)
        return out.read_text()

    def generate_from(self, *flags):
        """The same without the name of the job's file, which a program has where no flag changes the job."""
        return "".join(line for line in self.generate(*flags).splitlines(True) if not line.startswith("    .job_file = "))

    def build(self, *flags, cflags=FAST, **environment):
        """cflags: None for those that a trainer is built with, where bits or the whole of what users get counts: the compiler
        takes twice as long for them."""
        if cflags is not None:
            environment.setdefault("CFLAGS", cflags)
        program = self.folder / "trainer"
        subprocess.run([GENERATOR, "build", self.path, "-o", program, *flags], check=True,
                       env={**os.environ, **environment})
        return program

    def command(self, *words, status=0, **environment):
        """What the generator says in the folder; it must end with the status."""
        ended = subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True,
                               env={**os.environ, **environment})
        if ended.returncode != status:
            raise AssertionError(f"{words}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended.stdout + ended.stderr

    def run(self, *flags, **environment):
        """The metrics: a list of dicts, one a step."""
        result = subprocess.run([self.folder / "trainer", *flags], cwd=self.folder, capture_output=True, text=True,
                                env={**os.environ, "OMP_NUM_THREADS": "2", **environment})
        self.output = result.stdout
        if result.returncode != 0:
            raise AssertionError(f"the trainer failed with {result.returncode}:\n{result.stdout}{result.stderr}")
        lines = (self.folder / "run" / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def weights(self, folder="."):
        return load_file(self.folder / "run" / folder / "model.safetensors")

    def plan(self):
        return json.loads(subprocess.check_output([GENERATOR, "plan", self.path, "--json"]))


def windows(corpus, length, batch, seed, shuffle, fraction):
    """A function from a micro-batch's number to (tokens, targets), as the runtime cuts them."""
    (first, count), _ = splits(len(corpus), fraction)
    order = Order(seed, TRAIN, shuffle, first, count, length, batch)
    data = np.frombuffer(corpus, dtype=np.uint8).astype(np.int64)

    def batch_at(number):
        starts = [order.start(number * batch + i) for i in range(batch)]
        cut = np.stack([data[s:s + length + 1] for s in starts])
        return cut[:, :-1], cut[:, 1:]

    return batch_at


def relative(a, b):
    """The distance of a from b, over the norm of b."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30))


__all__ = ["FAST", "MEASURED", "QUICK", "STEADY", "TIMES", "Trainer", "windows", "relative", "save_file", "load_file", "MODELS", "TREE", "GENERATOR", "Order",
           "splits", "TRAIN"]
