"""What the plan predicts of collectives on a network, beside what they take between hosts on links of that latency and
rate: within ERROR, for all-reduces by each method."""

import json
import subprocess
import sys
import unittest

from hosts import Hosts, missing
from ranks import GENERATOR, TREE, Ranks, job_of

LATENCY, BANDWIDTH, ERROR = 0.04, 1.2e6, 0.25
CONFIG = {"n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 256, "block_size": 12}


class Cost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = Hosts(4)
        cls.addClassCleanup(cls.hosts.close)
        for host in range(4):
            cls.hosts.shape(host, delay=LATENCY, rate=BANDWIDTH)
        cls.timing = cls.hosts.folder / "timing"
        flags = subprocess.check_output(["sh", "tools/mpi.sh", "--cflags"], cwd=TREE, text=True).split()
        subprocess.run(["mpicc", "-O2", *flags, "-I", TREE, "-o", cls.timing, TREE / "tests" / "parallel" / "timing.c",
                        TREE / "build" / "libaccel-mpi.a"], check=True)
        cls.trainer = Ranks(1, job_of(1, 2, 4, config=CONFIG, parallelism={"ddp": {"bucket_cap_mb": 0.25}}))

    def predicted(self, nodes, *flags):
        words = ["--latency", str(1e6 * LATENCY), "--bandwidth", str(1e-6 * BANDWIDTH), *flags]
        plan = json.loads(subprocess.check_output([GENERATOR, "plan", "job.yaml", "--json", "--nodes", str(nodes), *words],
                                                  cwd=self.trainer.folder, text=True))
        pairs = zip(plan["collectives"], plan["predicted"]["collectives"], strict=True)
        return {c["bytes"]: (p["method"], p["seconds"]) for c, p in pairs}, plan["predicted"]

    def measured(self, nodes, sizes):
        names = ",".join(f"host{i}:1" for i in range(nodes))
        result = subprocess.run(self.hosts.on(0, "mpirun", "-n", nodes, "--host", names, self.timing, 3, *sizes),
                                env=self.hosts.environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {int(line.split()[0]): float(line.split()[1]) for line in result.stdout.splitlines()}

    def test_all_reduce(self):
        seen = set()
        for nodes in (2, 3, 4):
            predicted, _ = self.predicted(nodes)
            measured = self.measured(nodes, predicted)
            for bytes, (method, seconds) in predicted.items():
                seen.add(method)
                said = f"{nodes} hosts, {bytes} bytes by {method}: {measured[bytes]:.4f} s, predicted {seconds:.4f} s"
                print(said)
                self.assertLess(abs(measured[bytes] / seconds - 1), ERROR, said)
        self.assertEqual(seen, {"recursive doubling", "halving and doubling", "ring"})

    def test_step(self):
        """A long step hides what it can; a short one waits."""
        _, long = self.predicted(4, "--step", "100000")
        _, short = self.predicted(4, "--step", "1")
        last = long["collectives"][-1]["seconds"]
        bucket = long["collectives"][-2]["seconds"]
        self.assertAlmostEqual(long["exposed"], last + bucket)
        self.assertGreater(short["exposed"], 0.99 * short["communication"])


if __name__ == "__main__":
    why = missing()
    if why is not None:
        print(f"SKIPPED: {why}")
        sys.exit(77)
    unittest.main()
