"""How ranks start: the processors that each takes of its machine, of topologies that hwloc makes up and of this one."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from ranks import MPI, Ranks, Running, job_of

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
                                capture_output=True, text=True, timeout=60, env={**known, **environment})
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


if __name__ == "__main__":
    unittest.main()
