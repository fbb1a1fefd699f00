"""The Python module: what it builds, runs and reads is what the commands do; errors are theirs; an interrupt saves the run."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "python"))

from accel_gen import AccelGenError, Job  # noqa: E402

JOB = {
    "model": {"source": str(TREE / "examples" / "models" / "nanogpt.c"),
              "config": {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "bias": False}},
    "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2},
    "optimizer": {"name": "adamw", "lr": 1e-3},
    "training": {"steps": 6},
    "tracking": {"every": 2},
    "checkpoint": {"project_dir": "a run"},
}


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "corpus.txt").write_bytes(bytes(range(256)) * 20)
        os.environ.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"})
        cls.job = Job(JOB, path=cls.folder / "job.json")
        cls.trainer = cls.job.build()

    def run_quietly(self, program, *flags, **more):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            run = program.run(*flags, **more)
        return run, shown.getvalue()

    def test_run(self):
        run, shown = self.run_quietly(self.trainer)
        self.assertEqual(run.folder, self.folder / "a run")
        self.assertIn("saved a run/model.safetensors", shown)
        lines = [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(run.metrics(), lines)
        self.assertEqual(run.column("step"), [2, 4, 6])
        self.assertTrue(run.weights.exists())
        other, _ = self.run_quietly(self.trainer, "--steps", 2, project_dir="other")
        self.assertEqual((other.folder, other.column("loss")), (self.folder / "other", run.column("loss")[:1]))

    def test_ranks(self):
        """Changes are those of --set; ranks are started as by launch."""
        job = Job(self.job.path, {"devices.per_node": 2, "checkpoint.project_dir": "pair", "data.batch_size": 1})
        run, shown = self.run_quietly(job.build(self.folder / "pair_trainer"))
        self.assertIn("mpirun", shown)
        one, _ = self.run_quietly(self.trainer, project_dir="one")
        for a, b in zip(run.column("loss"), one.column("loss"), strict=True):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_reads(self):
        command = [TREE / "build" / "accel-gen"]
        plan = subprocess.check_output([*command, "plan", "--json", "job.json"], cwd=self.folder)
        self.assertEqual(self.job.plan(), json.loads(plan))
        source = subprocess.check_output([*command, "job.json", "-o", "-"], cwd=self.folder, text=True)
        self.assertEqual(self.job.source(), source)
        self.run_quietly(self.trainer)
        text = self.job.build(program="generate").read("--prompt", "a", "--tokens", 3, "--seed", 1)
        self.assertTrue(text.startswith("a"))

    def test_errors(self):
        with self.assertRaisesRegex(AccelGenError, "unknown key 'rate' in optimizer"):
            Job(self.job.path, {"optimizer.rate": 1}).check()
        with self.assertRaisesRegex(AccelGenError, "nosuch.txt") as caught:
            self.run_quietly(self.trainer, "--data", "nosuch.txt", project_dir="fails")
        self.assertEqual(caught.exception.status, 1)

    def test_interrupt(self):
        """As a notebook's button does; the run is saved and read."""
        metrics = self.folder / "long" / "metrics.jsonl"

        def interrupt():
            while not metrics.exists() or not metrics.read_text():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        threading.Thread(target=interrupt).start()
        run, shown = self.run_quietly(self.trainer, "--steps", 100000000, project_dir="long")
        self.assertIn("SIGINT after step", shown)
        self.assertGreater(len(run.metrics()), 0)


if __name__ == "__main__":
    unittest.main()
