"""Training across three hosts: links that delay and lose, a host that dies and one that is cut off end the run within
devices.timeout, with one message, and nothing is left anywhere; it resumes to the same bits."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from hosts import NETWORK, Hosts, missing
from ranks import GENERATOR, PATIENCE, Ranks, job_of, main_unless, wait_for

STEPS, EVERY, TIMEOUT = 200, 40, 20


# On one host: sends back what comes; on another: sends so many datagrams, a millisecond apart, and prints how many came
# back, the last one after so many seconds at most, and the fewest seconds that one took. What waits for a
# processor is kept: 33 is SO_RCVBUFFORCE.
ECHO = """import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)
server.bind(("0.0.0.0", 9))
print("ready", flush=True)
while True:
    server.sendto(*server.recvfrom(64))
"""
ASK = """import socket, sys, time
client, least = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 1e9
client.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)
client.settimeout(0.001)
def hear():
    global least
    try:
        sent = float(client.recv(64))
        least = min(least, time.monotonic() - sent)
        return 1
    except TimeoutError:
        return 0
back = 0
for _ in range(int(sys.argv[2])):
    client.sendto(repr(time.monotonic()).encode(), (sys.argv[1], 9))
    back += hear()
client.settimeout(float(sys.argv[3]))
while back < int(sys.argv[2]) and hear():
    back += 1
print(back, least)
"""


REPORTS = ("metrics.jsonl", "run.json", "README.md")  # the main process writes them alone


class Links(unittest.TestCase):
    """What the switch does to links, so that the other tests are about what they say."""

    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(2)
        cls.addClassCleanup(cls.hosts.close)
        cls.echo = subprocess.Popen(cls.hosts.on(1, sys.executable, "-c", ECHO), stdout=subprocess.PIPE, text=True)
        cls.echo.stdout.readline()

    @classmethod
    def tearDownClass(cls):
        cls.echo.kill()
        cls.echo.communicate()

    def send_and_count(self, count, patience=PATIENCE, **shape):
        self.hosts.shape(1, **shape)
        text = subprocess.check_output(self.hosts.on(0, sys.executable, "-c", ASK, f"{NETWORK}.2", count, patience), text=True)
        return int(text.split()[0]), float(text.split()[1])

    def test_delay(self):
        back, least = self.send_and_count(50)
        self.assertEqual(back, 50)
        self.assertLess(least, 0.02)
        back, least = self.send_and_count(50, delay=0.1)
        self.assertEqual(back, 50)
        self.assertGreaterEqual(least, 0.1)

    def test_loss(self):
        """A third of 600, within five standard deviations; and all."""
        back, _ = self.send_and_count(600, patience=10, loss=1 / 3)
        self.assertLess(abs(back - 400), 5 * (600 * 2 / 9) ** 0.5)
        self.assertEqual(self.send_and_count(20, patience=2, loss=1)[0], 0)


class Across(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(3)
        cls.addClassCleanup(cls.hosts.close)
        job = job_of(3, 2, STEPS, devices={"timeout": TIMEOUT, "nodes": 3, "per_node": 1},
                     checkpoint={"every": EVERY, "resume": "auto"})
        job["tracking"] = {"every": 1}
        cls.trainer = Ranks(3, job)
        cls.trainer.build()
        cls.folder = cls.trainer.folder
        cls.wanted = cls.finish(cls.launch())

    def setUp(self):
        subprocess.run(["rm", "-rf", self.folder / "run"], check=True)
        for host in range(3):
            self.hosts.shape(host)

    @classmethod
    def launch(cls):
        command = [GENERATOR, "launch", "--hosts", cls.hosts.names(), cls.folder / "job.yaml", "trainer"]
        return subprocess.Popen(cls.hosts.on(0, *command), cwd=cls.folder, env=cls.hosts.environment(),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @classmethod
    def finish(cls, launched):
        """The losses and the weights of a run that ends well."""
        out, err = launched.communicate(timeout=PATIENCE)
        if launched.returncode != 0:
            raise AssertionError(f"ended with {launched.returncode}:\n{out}{err}")
        lines = [json.loads(line) for line in (cls.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines], (cls.folder / "run" / "model.safetensors").read_bytes()

    def begin(self):
        """A run that has saved and is on its way to the next checkpoint, on links that are slow enough to fail in."""
        self.hosts.shape(1, delay=0.003)
        launched = self.launch()
        lines = self.folder / "run" / "metrics.jsonl"
        wait_for(lambda: launched.poll() is not None or lines.exists() and lines.read_text().count("\n") > EVERY + 10, "steps")
        if launched.poll() is not None:
            self.fail("no steps: " + "".join(launched.communicate()))
        return launched

    def end(self, launched):
        """Waits for the end of a run that failed, which takes some seconds: what it printed to stderr."""
        try:
            _, err = launched.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            left = [self.hosts.processes(host) for host in range(3)]
            self.hosts.end_all()
            self.fail(f"continues, with {left}:\n" + "".join(launched.communicate()))
        self.assertNotEqual(launched.returncode, 0)
        return err

    def check_gone(self):
        def left():
            return [self.hosts.processes(host) for host in range(3)]

        wait_for(lambda: not any(left()), "the end of all processes", lambda: str(left()))

    def check_resumes(self):
        for host in range(3):
            self.hosts.shape(host)
        self.assertEqual(self.finish(self.launch()), self.wanted)

    def test_delays_and_losses(self):
        self.hosts.shape(1, delay=0.002, loss=0.002)
        self.hosts.shape(2, loss=0.005, rate=50e6)
        self.assertEqual(self.finish(self.launch()), self.wanted)

    def test_host_dies(self):
        launched = self.begin()
        for process in self.hosts.processes(2):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        err = self.end(launched)
        self.assertNotIn("did not come within", err)
        self.check_gone()
        self.check_resumes()

    def test_link_is_cut(self):
        launched = self.begin()
        self.hosts.cut(2)
        err = self.end(launched)
        # mpirun and the rank that waits have the same patience, so each may be the one that reports, or both.
        self.assertRegex(err, "rank .: error|lost communication")
        self.assertLessEqual(len(re.findall("rank .: error", err)), 1, err)
        self.check_gone()
        self.check_resumes()

    def test_convention(self):
        """Started once a host with RANK and WORLD_SIZE, as a PyTorchJob of Kubernetes does; no host reaches another by ssh."""
        self.start_by(lambda rank: {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": f"{NETWORK}.1", "MASTER_PORT": "29500"})

    def test_sagemaker(self):
        """Started once a host with the variables of SageMaker."""
        addresses = [f"{NETWORK}.{1 + rank}" for rank in range(3)]
        self.start_by(lambda rank: {"SM_HOSTS": json.dumps(addresses), "SM_CURRENT_HOST": addresses[rank], "SM_NUM_GPUS": "0"})

    def start_by(self, variables):
        began = [subprocess.Popen(self.hosts.on(rank, GENERATOR, "launch", self.folder / "job.yaml", "trainer"),
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**self.hosts.environment(), **variables(rank)}) for rank in (2, 1, 0)]
        for other in began[:2]:
            _, err = other.communicate(timeout=PATIENCE)
            self.assertEqual((other.returncode, err), (0, ""))
        self.assertEqual(self.finish(began[2]), self.wanted)


class EachNode(unittest.TestCase):
    """checkpoint.save_on_each_node: two nodes of two ranks, each in a folder of its own."""

    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(2)
        cls.addClassCleanup(cls.hosts.close)
        job = job_of(4, 2, 8, devices={"nodes": 2, "per_node": 2, "timeout": TIMEOUT},
                     checkpoint={"every": 2, "resume": "auto", "save_on_each_node": True})
        cls.trainer = Ranks(4, job)
        cls.folder = cls.trainer.folder
        job["data"]["train"]["path"] = str(cls.folder / "corpus.txt")
        cls.trainer.write()
        cls.trainer.build()
        program = cls.folder / "apart.sh"
        program.write_text(f'#!/bin/sh\nmkdir -p {cls.folder}/$(hostname)\ncd {cls.folder}/$(hostname) && exec {cls.folder}/trainer "$@"\n')
        program.chmod(0o755)

    def run_ranks(self, program="apart.sh"):
        command = [GENERATOR, "launch", "--hosts", self.hosts.names(), self.folder / "job.yaml", self.folder / program,
                   "--project-dir", "run"]
        return subprocess.run(self.hosts.on(0, *command), cwd=self.folder, env=self.hosts.environment(), capture_output=True, text=True,
                              timeout=PATIENCE)

    def files(self, host):
        run = self.folder / f"host{host}" / "run"
        return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file() and path.name not in REPORTS}

    def refused(self, message, program="apart.sh"):
        result = self.run_ranks(program)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(message, result.stderr)

    def test_saves_and_resumes(self):
        result = self.run_ranks()
        self.assertEqual(result.returncode, 0, result.stderr)
        saved, checkpoints = self.files(0), self.folder / "host1" / "run" / "checkpoints"
        self.assertIn("model.safetensors", saved)
        self.assertIn("checkpoints/checkpoint_3/optimizer.safetensors", saved)
        self.assertEqual(saved, self.files(1))
        for name in REPORTS:
            self.assertEqual([(self.folder / f"host{host}" / "run" / name).exists() for host in (0, 1)], [True, False])
        # The newest that both have is the third one; what follows gets a number of its own.
        shutil.rmtree(checkpoints / "checkpoint_3")
        shutil.rmtree(self.folder / "host0" / "run" / "checkpoints" / "checkpoint_1")
        os.remove(checkpoints.parent / "model.safetensors")
        result = self.run_ranks()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("resumes from run/checkpoints/checkpoint_2, step 6", result.stdout)
        again = [self.files(host) for host in (0, 1)]
        self.assertEqual([files["model.safetensors"] for files in again], 2 * [saved["model.safetensors"]])
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual([files[f"checkpoints/checkpoint_4/{name}"] for files in again], 2 * [saved[f"checkpoints/checkpoint_3/{name}"]])
        shutil.rmtree(checkpoints / "checkpoint_4")
        shutil.copytree(checkpoints / "checkpoint_0", checkpoints / "checkpoint_4")
        self.refused("run/checkpoints/checkpoint_4: is another checkpoint than that of rank 0")
        shutil.rmtree(checkpoints)
        self.refused("run/checkpoints: has no whole checkpoint that other nodes have, too")

    def test_folder_of_all(self):
        self.refused("each node saves in a folder of its own", "trainer")


if __name__ == "__main__":
    main_unless(missing())
