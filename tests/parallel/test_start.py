"""How ranks start: by the convention of torchrun; the processors that each takes of its machine, of topologies that hwloc
makes up and of this one."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from ranks import GENERATOR, MPI, PATIENCE, Ranks, Running, free_port, job_of, wait_for

# Topologies, and for three ranks the processors of each.
SHARES = {
    "pack:2 numa:1 core:6 pu:2": (["0-7", "8-15", "16-23"], 4),
    "numa:2 core:3 pu:1": (["0-1", "2-3", "4-5"], 2),
    "core:4 pu:1": (["0", "1", "2-3"], 1),
    "core:2 pu:2": (["0", "1", "2-3"], 1),
    "core:1 pu:2": (["0", "0", "1"], 1),
}


def taken(text):
    return re.findall(r"rank \d to processors ([0-9,-]+) \(memory node", text)


class Processors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bound = Ranks(3, job_of(3, 2, 2, devices={"numa_affinity": True}))
        cls.bound.build()

    def setUp(self):
        shutil.rmtree(self.bound.folder / "run", ignore_errors=True)

    def launch(self, *flags, **environment):
        """By mpirun, with nothing of OpenMP set."""
        known = {name: value for name, value in {**os.environ, **MPI}.items() if not name.startswith("OMP_NUM")}
        result = subprocess.run(["mpirun", *flags, "-n", "3", self.bound.folder / "trainer"], cwd=self.bound.folder,
                                capture_output=True, text=True, timeout=PATIENCE, env={**known, **environment})
        return result

    def test_shares(self):
        for topology, (processors, threads) in SHARES.items():
            with self.subTest(topology):
                result = self.launch(HWLOC_SYNTHETIC=topology)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(taken(result.stdout), processors)
                self.assertIn(f"3 ranks x {threads} threads", result.stdout)

    def test_of_this_machine(self):
        """The kernel keeps each rank where it says that it is."""
        running = Running(self.bound, "--steps", "100000")
        kept = [pathlib.Path(f"/proc/{process}/status").read_text() for _, process in running.ranks]
        running.mpirun.terminate()
        self.assertEqual([re.search(r"Cpus_allowed_list:\t(.*)", text)[1] for text in kept], taken(running.end().stdout))

    def test_threads_that_are_bound_already(self):
        result = self.launch(OMP_PROC_BIND="true")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("devices.numa_affinity: OMP_PROC_BIND binds threads, too", result.stderr)


class Convention(unittest.TestCase):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT."""

    @classmethod
    def setUpClass(cls):
        cls.trainer = Ranks(3, job_of(3, 2, 8))
        cls.trainer.build()
        cls.command = [GENERATOR, "launch", cls.trainer.folder / "job.yaml", "trainer"]

    def setUp(self):
        shutil.rmtree(self.trainer.folder / "run", ignore_errors=True)

    def begin(self, rank, port, *flags, command=None, **environment):
        return subprocess.Popen([*(command or self.command), *flags], cwd=self.trainer.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **MPI, "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank),
                                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **environment})

    def end(self, began):
        return [(*process.communicate(timeout=PATIENCE), process.returncode) for process in began]

    def test_torchrun(self):
        result = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=3", "--no-python",
                                 f"--master-port={free_port()}", *self.command], cwd=self.trainer.folder,
                                capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **MPI})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(len((self.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()), 8)
        self.assertEqual(result.stdout.count("3 ranks x 1 threads"), 1)

    def test_signal(self):
        """All are asked to end, as on a preemption: the ranks save, and all end with the status that says so."""
        port = free_port()
        began = [self.begin(rank, port, "--steps", "1000000") for rank in range(3)]
        lines = self.trainer.folder / "run" / "metrics.jsonl"
        wait_for(lambda: lines.exists() and lines.read_text().count("\n") > 2, "steps")
        for process in began:
            process.send_signal(signal.SIGTERM)
        ends = self.end(began)
        self.assertEqual([status for _, _, status in ends], [128 + signal.SIGTERM] * 3, ends)
        self.assertEqual(len(list((self.trainer.folder / "run").rglob("manifest.json"))), 1)

    def test_one_does_not_come(self):
        job, port = self.trainer.folder / "impatient.yaml", free_port()
        job.write_text(json.dumps(job_of(3, 2, 8, devices={"timeout": 15})))
        command = [GENERATOR, "launch", job, "trainer"]
        ends = self.end([self.begin(rank, port, command=command) for rank in (0, 1)])
        self.assertEqual([status for _, _, status in ends], [1, 1])
        self.assertEqual(ends[0][1], "accel-gen launch: the process of RANK 2 did not come within devices.timeout\n")

    def test_other_number(self):
        (_, err, status), = self.end([self.begin(0, free_port(), WORLD_SIZE="4")])
        self.assertNotEqual(status, 0)
        self.assertIn("WORLD_SIZE is 4, but the job has 3 ranks: devices.nodes times devices.per_node", err)

    def test_program_itself(self):
        """The program has no mpirun and says who has."""
        (_, err, status), = self.end([self.begin(0, free_port(), command=[self.trainer.folder / "trainer"])])
        self.assertNotEqual(status, 0)
        self.assertIn("RANK and WORLD_SIZE are set: let what set them start accel-gen launch JOB PROGRAM", err)


if __name__ == "__main__":
    unittest.main()
