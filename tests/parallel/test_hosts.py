"""Training across three hosts: links that delay and lose, a host that dies and one that is cut off end the run within
devices.timeout, with one message, and nothing is left behind anywhere; it goes on to the same bits."""

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import unittest

from hosts import NETWORK, Hosts, missing
from ranks import GENERATOR, Ranks, job_of, main_unless

STEPS, EVERY, TIMEOUT = 200, 40, 8


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
        out, err = launched.communicate(timeout=60)
        if launched.returncode != 0:
            raise AssertionError(f"ended with {launched.returncode}:\n{out}{err}")
        lines = [json.loads(line) for line in (cls.folder / "run" / "metrics.jsonl").read_text().splitlines()]
        return [line["loss"] for line in lines], (cls.folder / "run" / "model.safetensors").read_bytes()

    def begin(self):
        """A run that has saved and is on its way to the next checkpoint, on links that are slow enough to fail in."""
        self.hosts.shape(1, delay=0.003)
        launched = self.launch()
        lines, limit = self.folder / "run" / "metrics.jsonl", time.monotonic() + 30
        while time.monotonic() < limit and launched.poll() is None:
            if lines.exists() and lines.read_text().count("\n") > EVERY + 10:
                return launched
            time.sleep(0.02)
        self.fail("no steps: " + "".join(launched.communicate()))

    def end(self, launched):
        """Waits for the end of a run that failed: (what it printed to stderr, seconds that it took)."""
        begin = time.monotonic()
        try:
            _, err = launched.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            left = [self.hosts.processes(host) for host in range(3)]
            self.hosts.end_all()
            self.fail(f"goes on, with {left}:\n" + "".join(launched.communicate()))
        self.assertNotEqual(launched.returncode, 0)
        return err, time.monotonic() - begin

    def check_gone(self):
        limit = time.monotonic() + 10
        while any(self.hosts.processes(host) for host in range(3)):
            self.assertLess(time.monotonic(), limit, [self.hosts.processes(host) for host in range(3)])
            time.sleep(0.1)

    def check_goes_on(self):
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
        _, seconds = self.end(launched)
        self.assertLess(seconds, TIMEOUT)
        self.check_gone()
        self.check_goes_on()

    def test_link_is_cut(self):
        launched = self.begin()
        self.hosts.cut(2)
        err, seconds = self.end(launched)
        self.assertLess(seconds, TIMEOUT + 2)
        # mpirun and the rank that waits have the same patience, so each may be the one that tells, or both.
        self.assertRegex(err, "rank .: error|lost communication")
        self.assertLessEqual(len(re.findall("rank .: error", err)), 1, err)
        self.check_gone()
        self.check_goes_on()

    def test_convention(self):
        """Started once a host with RANK and WORLD_SIZE, as a PyTorchJob of Kubernetes does; no host reaches another by ssh."""
        began = [subprocess.Popen(self.hosts.on(rank, GENERATOR, "launch", self.folder / "job.yaml", "trainer"),
                                  cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**self.hosts.environment(), "RANK": str(rank), "WORLD_SIZE": "3",
                                       "MASTER_ADDR": f"{NETWORK}.1", "MASTER_PORT": "29500"}) for rank in (2, 1, 0)]
        for other in began[:2]:
            _, err = other.communicate(timeout=60)
            self.assertEqual((other.returncode, err), (0, ""))
        self.assertEqual(self.finish(began[2]), self.wanted)


if __name__ == "__main__":
    main_unless(missing())
