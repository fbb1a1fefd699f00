"""accel-gen launch within jobs of a real Slurm on two nodes: its ranks are those of the job, and a job that is requeued
saves, and resumes to the same bits when it is started again."""

import subprocess
import unittest

from ranks import GENERATOR, Ranks, job_of, main_unless
from rotation import rotating
from slurm import Cluster, missing

STEPS = 1500


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.close)
        job = job_of(4, 2, STEPS, devices={"timeout": 20, "nodes": 2, "per_node": 2}, checkpoint={"resume": "auto"})
        job["tracking"] = {"every": 10}
        cls.trainer = Ranks(4, job)
        cls.trainer.build()
        cls.folder = cls.trainer.folder

    def setUp(self):
        subprocess.run(["rm", "-rf", self.folder / "run"], check=True)

    def weights(self):
        return (self.folder / "run" / "model.safetensors").read_bytes()

    def test_allocation(self):
        """Two nodes, two ranks on each; with one node too few srun says so."""
        command = [GENERATOR, "launch", self.folder / "job.yaml", "trainer", "--steps", "3"]
        for words in (command, [GENERATOR, "launch", "trainer", "--steps", "3"]):  # the program has its ranks, Slurm the nodes
            result = self.cluster.run("salloc", "--nodes=2", "--ntasks-per-node=2", *words, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("srun --nodes=2 --ntasks-per-node=2 --kill-on-bad-exit=1 --mpi=pmix ./trainer --steps 3\n", result.stdout)
            self.assertIn(", 4 ranks x ", result.stdout)
        result = self.cluster.run("salloc", "--nodes=1", "--ntasks-per-node=2", *command, cwd=self.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("Only allocated 1 nodes asked for 2", result.stderr)

    def test_requeue(self):
        """By the script of --write, as it is."""
        self.trainer.command("launch", "--write", "slurm", "-o", "job.sh", "job.yaml", "trainer")
        lines, log = self.folder / "run" / "metrics.jsonl", self.folder / "log"
        batch = ["env", f"PATH={GENERATOR.parent}:{self.cluster.environment['PATH']}", "sbatch", "--parsable", f"--output={log}", "job.sh"]
        number = self.cluster.read(*batch, cwd=self.folder)
        self.cluster.wait_for(lambda: lines.exists() and lines.read_text().count("\n") > 2, "the first steps")
        self.assertEqual(self.cluster.run("scontrol", "requeue", number).returncode, 0)
        self.cluster.wait_for(lambda: self.state(number) == "PENDING", "the job that was requeued")
        self.assertRegex(log.read_text(), r"SIGTERM after step \d+: saved")
        self.cluster.run("scontrol", "update", f"JobId={number}", "StartTime=now")  # not after two minutes, its default
        self.cluster.wait_for(lambda: self.state(number) in ("COMPLETED", "FAILED"), "the end of the job")
        self.assertEqual(self.state(number), "COMPLETED", log.read_text()[-3000:])
        self.assertRegex(log.read_text(), r"resumes from .*, step \d+")
        after = self.weights()
        self.setUp()
        self.trainer.run()
        self.assertEqual(after, self.weights())

    def state(self, number):
        return self.cluster.read("squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={number}")


load_tests = rotating(2)


if __name__ == "__main__":
    main_unless(missing())
