"""What the plan predicts of collectives on a network, beside what they take between hosts on links of that latency and
rate: within ERROR, by each method."""

import json
import subprocess
import unittest

from hosts import Hosts, missing
from ranks import GENERATOR, TREE, Ranks, job_of, main_unless

LATENCY, BANDWIDTH, ERROR = 0.04, 1.2e6, 0.25
SWITCH = 0.01  # seconds until a process that is due has a processor
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
        """By "KIND:BYTES"; and all that is predicted."""
        words = ["--latency", str(1e6 * LATENCY), "--bandwidth", str(1e-6 * BANDWIDTH), *flags]
        plan = json.loads(subprocess.check_output([GENERATOR, "plan", "job.yaml", "--json", "--nodes", str(nodes), *words],
                                                  cwd=self.trainer.folder, text=True))
        pairs = zip(plan["collectives"], plan["predicted"]["collectives"], strict=True)
        return {f"{c['kind']}:{c['bytes']}": (p["method"], p["seconds"]) for c, p in pairs}, plan["predicted"]

    def measured(self, nodes, what):
        names = ",".join(f"host{i}:1" for i in range(nodes))
        result = subprocess.run(self.hosts.on(0, "mpirun", "-n", nodes, "--host", names, self.timing, 4, *what),
                                env=self.hosts.environment(), capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {line.split()[0]: float(line.split()[1]) for line in result.stdout.splitlines()}

    def check(self, nodes, *flags):
        """The methods that were held to what they take."""
        predicted, _ = self.predicted(nodes, *flags)
        measured = self.measured(nodes, predicted)
        for what, (method, seconds) in predicted.items():
            said = f"{nodes} hosts, {what} by {method}: {measured[what]:.4f} s, predicted {seconds:.4f} s"
            print(said)
            self.assertLess(abs(measured[what] - seconds), ERROR * seconds + SWITCH, said)
        return {method for method, _ in predicted.values()}

    def test_all_reduce(self):
        methods = self.check(2) | self.check(3) | self.check(4)
        self.assertEqual(methods, {"recursive doubling", "halving and doubling", "ring"})

    def test_divided(self):
        methods = self.check(4, "--set", "parallelism.dp_shard=4", "--set", "parallelism.zero_stage=1")
        self.assertEqual(methods, {"recursive doubling", "tree, then linear", "linear"})

    def test_step(self):
        """A long step hides what it can; a short one waits."""
        _, long = self.predicted(4, "--step", "100000")
        _, short = self.predicted(4, "--step", "1")
        last = long["collectives"][-1]["seconds"]
        bucket = long["collectives"][-2]["seconds"]
        self.assertAlmostEqual(long["exposed"], last + bucket)
        self.assertGreater(short["exposed"], 0.99 * short["communication"])


if __name__ == "__main__":
    main_unless(missing())
