"""How ranks start and are asked to end: by accel-gen launch with mpirun, by the convention of torchrun; the processors that
each takes of its machine, of topologies that hwloc makes up and of this one."""

import functools
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from ranks import TREE, GENERATOR, MPI, PATIENCE, Ranks, Running, free_port, job_of, wait_for

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
        known = {name: value for name, value in {**os.environ, **MPI}.items() if name not in ("OMP_NUM_THREADS", "HWLOC_COMPONENTS")}
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


class Started(unittest.TestCase):
    """The command that starts three ranks."""

    @classmethod
    def setUpClass(cls):
        cls.trainer = trainer_of_three()
        cls.command = [GENERATOR, "launch", cls.trainer.folder / "job.yaml", "trainer"]

    def setUp(self):
        shutil.rmtree(self.trainer.folder / "run", ignore_errors=True)

    def wait_for_steps(self):
        lines = self.trainer.folder / "run" / "metrics.jsonl"
        wait_for(lambda: lines.exists() and lines.read_text().count("\n") > 2, "steps")

    def checkpoints(self):
        return len(list((self.trainer.folder / "run").glob("checkpoints/*/manifest.json")))


@functools.cache
def trainer_of_three():
    trainer = Ranks(3, job_of(3, 2, 8))
    trainer.build()
    return trainer


def no_hangup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


class Launch(Started):
    """By mpirun."""

    def begin(self, *starter, stdin=subprocess.DEVNULL, preexec_fn=None, **environment):
        """Ranks that step."""
        self.said = self.trainer.folder / "said"
        with self.said.open("w") as said:
            launched = subprocess.Popen([*starter, *self.command, "--steps", "1000000"], cwd=self.trainer.folder, stdin=stdin,
                                        stdout=said, stderr=said, env={**os.environ, **MPI, **environment}, preexec_fn=preexec_fn)
        self.wait_for_steps()
        return launched

    def saves(self, launched, number=signal.SIGTERM):
        status = launched.wait(timeout=PATIENCE)
        self.assertEqual((status, self.checkpoints()), (128 + number, 1), self.said.read_text())
        return self.said.read_text()

    def test_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            with self.subTest(number.name):
                self.setUp()
                launched = self.begin()
                launched.send_signal(number)
                self.assertNotIn("accel-gen launch:", self.saves(launched, number))

    def on_terminal(self):
        mine, its = pty.openpty()
        launched = self.begin("setsid", "--ctty", "--wait", stdin=its)
        os.close(its)
        return mine, launched

    def test_terminal(self):
        """What it sends goes to a whole group, and mpirun would end its ranks on it."""
        mine, launched = self.on_terminal()
        os.write(mine, b"\x03")
        self.saves(launched, signal.SIGINT)
        os.close(mine)

    def test_terminal_that_is_gone(self):
        mine, launched = self.on_terminal()
        os.close(mine)
        self.saves(launched, signal.SIGHUP)

    def test_nohup(self):
        launched = self.begin(preexec_fn=no_hangup)
        launched.send_signal(signal.SIGHUP)
        time.sleep(1)
        self.assertIsNone(launched.poll())
        launched.terminate()
        self.saves(launched)

    def test_killed(self):
        """Nothing runs on without it."""
        launched = self.begin()
        running = Running.of(launched)
        ranks = [rank for mpirun in running.children() for rank in running.children(mpirun)]
        self.assertEqual(len(ranks), 3)
        launched.kill()
        launched.wait()
        wait_for(lambda: not any(pathlib.Path(f"/proc/{rank}").exists() for rank in ranks), "the end of the ranks")

    def driver(self):
        """The environment in which hwloc finds a driver of OpenCL, and the file that this leaves where it is loaded."""
        folder = self.trainer.folder
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "opencl.so", TREE / "tests/parallel/opencl.c"], check=True)
        (folder / "drivers").mkdir(exist_ok=True)
        (folder / "drivers" / "test.icd").write_text(f"{folder}/opencl.so\n")
        loaded = folder / "loaded"
        loaded.unlink(missing_ok=True)
        return {"OCL_ICD_VENDORS": str(folder / "drivers"), "LOADED": str(loaded)}, loaded

    def test_driver_of_opencl(self):
        """It takes the signal that mpirun is to pass on, so it is kept out, in addition to what else is said of hwloc."""
        environment, loaded = self.driver()
        launched = self.begin(HWLOC_COMPONENTS="-gl", **environment)
        self.assertFalse(loaded.exists())
        launched.terminate()
        self.assertIn("HWLOC_COMPONENTS=-gl,-opencl mpirun", self.saves(launched))
        topology = self.trainer.command("launch", "--print", "job.yaml", "trainer", HWLOC_SYNTHETIC="core:4 pu:1", HWLOC_COMPONENTS="")
        self.assertRegex(topology, "^mpirun ")  # with components named, hwloc would not read it

    def test_deaf_mpirun(self):
        """Ranks get the signal without it. Whoever names the component gets it, and with it the driver that takes the signal."""
        environment, loaded = self.driver()
        launched = self.begin(HWLOC_COMPONENTS="opencl", **environment)
        if not loaded.exists():
            launched.terminate()
            self.saves(launched)
            self.skipTest("hwloc looks for no OpenCL here: libhwloc-plugins")
        launched.terminate()
        self.assertRegex(self.saves(launched), r"launch: the ranks run 5 s after .*; sent it to [3-9] processes of this machine\n")

    def refused(self, *flags, **environment):
        known = {name: value for name, value in {**os.environ, **MPI}.items() if not name.startswith("OMPI_")}
        result = subprocess.run([*self.command, *flags], cwd=self.trainer.folder, capture_output=True, text=True, timeout=PATIENCE,
                                env={**known, **environment})
        self.assertNotEqual(result.returncode, 0)
        return result.stderr.rpartition("    help: ")[2]

    def test_program_alone(self):
        """Without a job a program has its ranks by itself, on the machines of --hosts."""
        for words, status, said in [
                (("--hosts", "a,b,c", "trainer", "--steps", "1"), 0, "-n 3 --host a:1,b:1,c:1 ./trainer --steps 1\n"),
                (("--hosts", "a,b", "trainer"), 1, "3 ranks do not go evenly on 2 machines"),
                (("--set", "devices.per_node=1", "trainer"), 2, "--set needs the job's file before the program"),
                ((shutil.which("true"),), 1, "--version does not print what a program of accel-gen prints"),
                (("job.yaml",), 2, "a program is missing")]:
            with self.subTest(said):
                result = subprocess.run([GENERATOR, "launch", "--print", *words], cwd=self.trainer.folder, capture_output=True,
                                        text=True, timeout=60)
                self.assertEqual(result.returncode, status, result.stderr)
                self.assertIn(said, result.stdout if status == 0 else result.stderr)

    def test_refusals(self):
        """Each names what lets the command through."""
        asroot = {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")}
        if os.geteuid() == 0:
            self.assertIn("OMPI_ALLOW_RUN_AS_ROOT=1 and", self.refused())
            self.assertIn("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", self.refused(OMPI_ALLOW_RUN_AS_ROOT="1"))
        many = "--set", f"devices.per_node={os.cpu_count() + 1}"
        command, self.command = self.command, [*self.command[:3], *many, self.command[3]]
        said = self.refused(**asroot)
        self.command = command
        self.assertIn(f"and the job has {os.cpu_count() + 1}", said)
        self.assertIn("OMPI_MCA_rmaps_base_oversubscribe=1", said)
        tools = self.trainer.folder / "tools"
        tools.mkdir(exist_ok=True)
        (tools / "env").unlink(missing_ok=True)
        (tools / "env").symlink_to(shutil.which("env"))
        self.assertIn("openmpi-bin", self.refused(PATH=str(tools)))


class Convention(Started):
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT."""

    def begin(self, rank, port, *flags, command=None, **environment):
        return subprocess.Popen([*(command or self.command), *flags], cwd=self.trainer.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **MPI, "RANK": str(rank), "WORLD_SIZE": "3", "LOCAL_RANK": str(rank),
                                     "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **environment})

    def end(self, began):
        return [(*process.communicate(timeout=PATIENCE), process.returncode) for process in began]

    def test_torchrun(self):
        result = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=3", "--no-python",
                                 f"--master-port={free_port(followed=True)}", *self.command], cwd=self.trainer.folder,
                                capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **MPI})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(len((self.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()), 8)
        self.assertEqual(result.stdout.count("3 ranks x 1 threads"), 1)

    def test_signal(self):
        """All are asked to end, as on a preemption: the ranks save, and all end with the status that says so."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                self.setUp()
                port = free_port()
                began = [self.begin(rank, port, "--steps", "1000000") for rank in range(3)]
                self.wait_for_steps()
                for process in began:
                    process.send_signal(number)
                ends = self.end(began)
                self.assertEqual([status for _, _, status in ends], [128 + number] * 3, ends)
                self.assertEqual(self.checkpoints(), 1)

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
