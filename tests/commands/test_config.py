"""accel-gen config: what it writes against what Python reads of this machine, the questions in a terminal, update; and that jobs
extend what it writes."""

import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

TREE = Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
JOB = f"""extends: machine.yaml
model: {{source: {TREE}/examples/models/gpt2.c, config: {{n_layer: 1, n_head: 2, n_embd: 8, vocab_size: 256, block_size: 8}}}}
data: {{train: {{path: a.txt, format: bytes}}, batch_size: 2}}
training: {{steps: 3, eval_interval: 0}}
"""


class Config(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "a.txt").write_text("some text " * 30)
        (self.folder / "job.yaml").write_text(JOB)

    def command(self, *words, status=0, **more):
        done = subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def machine(self, name="machine.yaml"):
        return yaml.safe_load((self.folder / name).read_text().replace("mixed_precision: no", "mixed_precision: 'no'"))

    def check(self, *words):
        """The job that extends the file is one; its keys from there."""
        text = self.command("check", "--resolved", "job.yaml", *words)
        return dict(re.findall(r"^ +(\w+): (.*?) +# machine\.yaml:\d+$", text, re.M))

    def answered(self, answers, *words):
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execv(GENERATOR, ["accel-gen", "config", *words])
        os.write(terminal, "".join(f"{answer}\n" for answer in answers).encode())
        shown = b""
        try:
            while piece := os.read(terminal, 4096):
                shown += piece
        except OSError:
            pass  # its other end is closed
        os.close(terminal)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode().replace("\r\n", "\n")

    def test_this_machine(self):
        path = {**os.environ, "PATH": str(self.folder)}  # no nvidia-smi
        self.command("config", "--default", "-o", "machine.yaml", env=path)
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        flags = set(Path("/proc/cpuinfo").read_text().split())
        bf16 = bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})
        self.assertEqual(self.machine(), {
            "devices": {"kind": "cpu", "nodes": 1, "per_node": 1, "threads": len(os.sched_getaffinity(0)), "memory": f"{total // 10 * 9 >> 30}GiB"},
            "precision": {"mixed_precision": "bf16" if bf16 else "no"}})
        self.assertEqual(self.check()["threads"], str(len(os.sched_getaffinity(0))))
        first = min(os.sched_getaffinity(0))
        few = subprocess.run(["taskset", "-c", str(first), GENERATOR, "config", "--default"], capture_output=True, text=True)
        self.assertIn("threads: 1\n", few.stdout)

    def test_gpus(self):
        tool = self.folder / "nvidia-smi"
        tool.write_text("#!/bin/sh\necho 'NVIDIA A100-SXM4-80GB, 81920, 8.0'\necho 'Tesla V100-SXM2-32GB, 32768, 7.0'\n")
        tool.chmod(0o755)
        path = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        self.command("config", "--default", "--set", "devices.nodes=2", "-o", "machine.yaml", env=path)
        devices = self.machine()["devices"]
        self.assertEqual({key: devices[key] for key in ("kind", "nodes", "per_node", "memory", "hardware")},
                         {"kind": "cuda", "nodes": 2, "per_node": 2, "memory": "28GiB", "hardware": "a100-sxm-80gb"})
        self.assertGreater(devices["network"]["bandwidth"], 0)
        self.assertEqual(self.machine()["precision"], {"mixed_precision": "no"})  # not on all of them
        self.assertEqual(self.check("--set", "devices.kind=cpu", "--set", "devices.hardware=h100-sxm-80gb")["memory"], "28GiB")

    def test_questions(self):
        status, shown = self.answered(["gpu", "?", "cpu", "0", "2", "2", "3", "8GiB", "x", "100", "", "100", "bf16"], "-o", "machine.yaml")
        self.assertEqual(status, 0, shown)
        for text in ("'kind' must be one of cpu, cuda, hip, xla, tpu, neuron, rocm, xpu, not 'gpu'", "The kind of device.", "'nodes' must be at least 1, not 0",
                     "'latency' must be a number, not 'x'"):
            self.assertIn(text, shown)
        self.assertEqual(self.machine()["devices"], {"kind": "cpu", "nodes": 2, "per_node": 2, "threads": 3, "memory": "8GiB",
                                                     "network": {"latency": 20, "bandwidth": 100}})
        self.assertEqual(self.machine()["precision"], {"mixed_precision": "bf16"})
        self.assertEqual(self.check()["threads"], "3")
        status, shown = self.answered(["cpu", "\x04"], "-o", "other.yaml")
        self.assertEqual(status, 1)
        self.assertIn("the answers end; nothing is written", shown)
        self.assertFalse((self.folder / "other.yaml").exists())

    def test_update(self):
        (self.folder / "machine.yaml").write_text("extends: low.yaml\ndevices: {per_node: 2}\ncheckpoint: {every: 7}\n")
        (self.folder / "low.yaml").write_text("devices: {kind: cpu, timeout: 9}\n")
        self.command("config", "update", "machine.yaml")
        once = (self.folder / "machine.yaml").read_text()
        made = self.machine()
        self.assertEqual((made["extends"], made["checkpoint"], made["devices"]["per_node"], made["devices"]["nodes"]), ("low.yaml", {"every": 7}, 2, 1))
        self.assertNotIn("kind", made["devices"])  # of the file below
        self.assertEqual(made["devices"]["threads"], max(1, len(os.sched_getaffinity(0)) // 2))
        self.command("config", "update", "machine.yaml")
        self.assertEqual((self.folder / "machine.yaml").read_text(), once)
        self.check()

    def test_refused(self):
        self.assertIn("there is no terminal in which to ask: --default", self.command("config", status=2))
        self.assertIn("the file to update is missing", self.command("config", "update", status=2))
        (self.folder / "machine.yaml").write_text("devices: {thread: 2}\n")
        self.assertIn("machine.yaml:1:11: error: unknown key 'thread' in devices", self.command("config", "update", "machine.yaml", status=2))
        self.assertIn("'nodes' must be at least 1", self.command("config", "--default", "--set", "devices.nodes=0", status=2))


if __name__ == "__main__":
    unittest.main()
