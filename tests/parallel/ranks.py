"""Trainers of several ranks for tests: started by mpirun on this machine, more of them than it has processors."""

import json
import math
import os
import pathlib
import socket
import subprocess
import sys
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import FAST, GENERATOR, QUICK, MODELS, STEADY, Trainer, load_file, relative, save_file  # noqa: E402

# As root in a container, on few processors, without a network or a driver of OpenCL that would take mpirun's signals.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_hwloc_base_binding_policy": "none",
       "HWLOC_COMPONENTS": "-opencl", "OMP_NUM_THREADS": "1"}
CORPUS = bytes(range(97, 123)) * 60 + (TREE / "tests" / "parallel" / "corpus.txt").read_bytes()  # of no file that changes
HELD = []  # ports
PATIENCE = 300  # seconds for what always comes, on a machine with much other work
CONFIG = {"n_layer": 2, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12}


def start(program, ranks, *flags, cwd=None, **environment):
    """What mpirun leaves when all have ended."""
    return subprocess.run(["mpirun", "-n", str(ranks), program, *flags], cwd=cwd, capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, **MPI, **environment})


def errors(result):
    """What ranks have said of why they end."""
    return [line for line in result.stderr.splitlines() if line.startswith("rank ") and "error" in line]


def wait_for(is_so, what, detail=str):
    """Fails with what detail() adds when it is not so in the end."""
    limit = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > limit:
            raise AssertionError(f"{what} did not come within {PATIENCE} s {detail()}")
        time.sleep(0.1)


def hold(port):
    """Binds a port, 0: any, for as long as this process runs; fails where another has it. Bound at all addresses, as launchers listen at
    all: a connection of any of them may have taken the port. Who listens with SO_REUSEADDR, as servers do, can do so at it."""
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    holder = socket.socket(family)
    if family == socket.AF_INET6:
        holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", port))
    HELD.append(holder)
    return holder.getsockname()[1]


def free_ports(count):
    """Ports at which nothing listens, and which the system gives to nobody by itself while this process runs."""
    return [hold(0) for _ in range(count)]


def free_port(followed=False):
    """Such a port; `followed`: the next one is free, too, which launch takes under torchrun."""
    while True:
        port = hold(0)
        try:
            if followed:
                hold(port + 1)
            return port
        except (OSError, OverflowError):
            pass


def job_of(ranks, batch, steps, model="gpt2", config=None, model_keys=None, **groups):
    job = {
        "model": {"source": str(MODELS / f"{model}.c"), "config": dict(config or CONFIG), **(model_keys or {})},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": batch},
        "optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "eps": 1e-5, "clip_grad_norm": 1.0},
        "training": {"steps": steps, "seed": 1337},
        "devices": {"per_node": ranks},
    }
    for group, keys in groups.items():
        job.setdefault(group, {}).update(keys)
    return job


def table(count, features):
    """Rows of a CSV file, of three classes."""
    lines = [[f"{i % (3 + 2 * j) / (3 + 2 * j):.4f}" for j in range(features)] + [str(i % 3)] for i in range(count)]
    return "".join(",".join(line) + "\n" for line in lines)


def json_lines(folder):
    """The metrics of a run's folder."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def library_flags(*words, package="accel-runtime-mpi"):
    environment = {**os.environ, "PKG_CONFIG_PATH": str(TREE / "build")}
    return subprocess.check_output(["pkg-config", *words, package], env=environment, text=True).split()


class Ranks(Trainer):
    """The trainer of a job in a folder of its own, with the corpus next to it."""

    def __init__(self, ranks, job, folder=None):
        super().__init__(job, folder)
        self.ranks = ranks
        (self.folder / "corpus.txt").write_bytes(CORPUS)

    def build(self, *flags, **environment):
        return super().build(*flags, **{"CFLAGS": FAST, **environment})

    def launch(self, *flags, **more):
        return start(self.folder / "trainer", self.ranks, *flags, cwd=self.folder, **more)

    def run(self, *flags, **environment):
        if self.ranks == 1:
            return super().run(*flags, OMP_NUM_THREADS="1", **environment)
        result = self.launch(*flags, **environment)
        if result.returncode != 0:
            raise AssertionError(f"the ranks failed with {result.returncode}:\n{result.stdout}{result.stderr}")
        return json_lines(self.folder / "run")


class Running:
    """Ranks that run; their process numbers by rank."""

    def __init__(self, trainer, *flags):
        environment = {**os.environ, **MPI}
        self.mpirun = subprocess.Popen(["mpirun", "-n", str(trainer.ranks), trainer.folder / "trainer", *flags],
                                       cwd=trainer.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       env=environment)
        lines = trainer.folder / "run" / "metrics.jsonl"
        wait_for(lambda: lines.exists() and lines.read_text().count("\n") > 2, "steps")
        self.ranks = self.find()

    @classmethod
    def of(cls, mpirun):
        """Those of an mpirun that was started before."""
        running = cls.__new__(cls)
        running.mpirun = mpirun
        return running

    def find(self):
        return sorted((self.rank_of(process), process) for process in self.children())

    def children(self, parent=None):
        return [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()
                and self.parent_of(path) == (parent or self.mpirun.pid)]

    @staticmethod
    def parent_of(path):
        try:
            return int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            return None

    @staticmethod
    def rank_of(process):
        words = pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        return int(next(word for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK=")).split(b"=")[1])

    def end(self):
        out, err = self.mpirun.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess([], self.mpirun.returncode, out, err)


def main_unless(missing):
    """Runs a script's tests, or says what is missing here."""
    if missing is not None:
        print(f"SKIPPED: {missing}")
        sys.exit(77)
    unittest.main()


def trained(ranks, job, *flags, **environment):
    """A trainer that has run, and its metrics."""
    trainer = Ranks(ranks, job)
    trainer.build()
    return trainer, trainer.run(*flags, **environment)


class ComparedWithOne(unittest.TestCase):
    """Ranks against one process that takes their batches as one; those that divide tensors or sequences have one batch."""

    ROUNDING = ()  # endings of weights that only rounding changes: softmax ignores a bias of all keys

    @classmethod
    def setUpClass(cls):
        cls.known = {}

    def one(self, batch, steps, **groups):
        groups = {name: keys for name, keys in groups.items() if name != "parallelism"}
        key = repr((batch, steps, groups))
        if key not in self.known:
            self.known[key] = trained(1, job_of(1, batch, steps, **groups))
        return self.known[key]

    def check(self, ranks, batch, steps=50, tolerance=1e-6, **groups):
        several, lines = trained(ranks, job_of(ranks, batch, steps, **groups))
        mesh = groups.get("parallelism", {})
        same = math.prod(mesh.get(axis, 1) for axis in ("tp", "cp", "sp", "pp"))  # ranks that take the same batches
        one, wanted = self.one(ranks // same * batch, steps, **groups)
        self.assertTrue(lines)  # as many as one process has: fewer than steps where early stopping ends both
        self.compare(several, lines, one, wanted, tolerance)
        return several, lines

    def compare(self, several, lines, one, wanted, tolerance=1e-6):
        """A trainer that has run and its metrics, against another one and what it has."""
        for line, want in zip(lines, wanted, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss", "eval_accuracy", "eval_f1_macro")]:
                self.assertLess(abs(line[name] / want[name] - 1), tolerance, f"{name} of step {line['step']}")
            self.assertEqual(line.get("loss_scale"), want.get("loss_scale"))
            if want["grad_norm"] is None:
                self.assertIsNone(line["grad_norm"])
            else:
                self.assertLess(abs(line["grad_norm"] / want["grad_norm"] - 1), 100 * tolerance, f"norm of step {line['step']}")
        after = one.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            if not name.endswith(self.ROUNDING):
                self.assertLess(relative(value, after[name]), 1000 * tolerance, name)


__all__ = ["ComparedWithOne", "CONFIG", "CORPUS", "FAST", "GENERATOR", "MODELS", "MPI", "PATIENCE", "QUICK", "Ranks", "Running", "TREE", "errors", "free_port",
           "free_ports", "job_of", "json_lines", "library_flags", "load_file", "main_unless", "relative", "save_file", "start", "table", "trained", "wait_for"]
