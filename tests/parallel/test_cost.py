"""What the plan predicts of collectives on a network, against what they take between hosts on links of that latency and
rate: within ERROR, by each method."""
# long

import json
import os
import subprocess
import unittest

from hosts import Hosts, missing
from ranks import CORPUS, GENERATOR, PATIENCE, TREE, Ranks, job_of, main_unless
from rotation import rotating  # tests/program; isort: skip

LATENCY, BANDWIDTH, ERROR = 0.04, 1.2e6, 0.25
SWITCH = 0.01  # seconds until a process that is due has a processor
ROUNDS = 6  # at most: what else a machine does only adds to what is measured, so the fewest seconds of more rounds are better
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

    def plan(self, nodes, *flags):
        words = ["--latency", str(1e6 * LATENCY), "--bandwidth", str(1e-6 * BANDWIDTH), *flags]
        return json.loads(subprocess.check_output([GENERATOR, "plan", "job.yaml", "--json", "--nodes", str(nodes), *words],
                                                  cwd=self.trainer.folder, text=True))

    def predicted(self, nodes, *flags):
        """By "KIND:BYTES"; and all that is predicted."""
        plan = self.plan(nodes, *flags)
        pairs = zip(plan["collectives"], plan["predicted"]["collectives"], strict=True)
        return {f"{c['kind']}:{c['bytes']}": (p["method"], p["seconds"]) for c, p in pairs}, plan["predicted"]

    def measured(self, nodes, what):
        names = ",".join(f"host{i}:1" for i in range(nodes))
        result = subprocess.run(self.hosts.on(0, "mpirun", "-n", nodes, "--host", names, self.timing, 4, *what),
                                env=self.hosts.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        return {line.split()[0]: float(line.split()[1]) for line in result.stdout.splitlines()}

    def check(self, nodes, *flags):
        """The methods that were held to what they take."""
        predicted, _ = self.predicted(nodes, *flags)
        measured = self.measured(nodes, predicted)
        for what, (method, seconds) in predicted.items():
            for _ in range(1, ROUNDS):
                if measured[what] < (1 + ERROR) * seconds + SWITCH:
                    break
                measured[what] = min(measured[what], self.measured(nodes, [what])[what])
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

    def test_prefetch(self):
        """Weights of a layer that come while the layer before runs cost what that one does not cover."""
        flags = ("--set", "parallelism.dp_shard=4", "--set", "parallelism.zero_stage=3", "--set", "model.config.n_layer=5")
        gathers = [self.exposures(flags, "weights for a layer", step) for step in (100000, 1)]
        self.assertEqual(len(gathers[0]), 5 + 3)
        for exposed, seconds in gathers[0][1:]:
            self.assertEqual(exposed, 0)
            self.assertGreater(seconds, 0)
        for exposed, seconds in gathers[1][1:]:
            self.assertGreater(exposed, 0.9 * seconds)

    def test_replicated(self):
        """Sums of parts between machines are covered by the backward as far as it continues."""
        flags = ("--set", "parallelism.dp_shard=2", "--set", "parallelism.zero_stage=1", "--set", "devices.per_node=1")
        sums = self.exposures(flags, "each rank's part", 100000)
        self.assertGreater(len(sums), 1)
        for exposed, _ in sums[:-1]:
            self.assertEqual(exposed, 0)
        self.assertGreater(sums[-1][0], 0)

    def test_micro_batches(self):
        """Weights of a layer come in each micro-batch and are waited for in each; gradients that all ranks hold are sent
        in a step's last one, and by its backward alone."""
        for what, flags, waits in [
                ("weights for a layer", ("--set", "parallelism.dp_shard=4", "--set", "parallelism.zero_stage=3"), 3),
                ("gradients", (), 1)]:
            one = self.exposures(flags, what, 2000)
            three = self.exposures((*flags, "--set", "accumulation.num_steps=3"), what, 6000)
            self.assertTrue(any(0 < exposed < seconds for exposed, seconds in one), one)
            for (exposed, _), (of_three, _) in zip(one, three, strict=True):  # gradients that add up take a little longer
                self.assertAlmostEqual(of_three, waits * exposed, delta=0.05 * exposed)

    def exposures(self, flags, what, step):
        """(seconds that a step waits, seconds) of what is so called, in its order."""
        plan = self.plan(4, *flags, "--step", str(step))
        pairs = zip(plan["collectives"], plan["predicted"]["collectives"], strict=True)
        return [(p["exposed"], p["seconds"]) for c, p in pairs if c["what"].startswith(what)]

    def test_run(self):
        """Steps of two hosts that gather layers while layers run, on links that cover some of it: as long as predicted from
        steps on links that cost nothing, and shorter than if all were waited for."""
        try:
            os.sched_setscheduler(self.hosts.switch.pid, os.SCHED_FIFO, os.sched_param(2))
        except PermissionError:
            self.skipTest("no process may be put before others here, so other work would be measured")
        trainer = Ranks(2, job_of(1, 384, 6, config={**CONFIG, "n_layer": 4, "n_embd": 32, "block_size": 64},
                                  parallelism={"zero_stage": 3}, devices={"nodes": 2, "per_node": 1}, tracking={"every": 1}))
        (trainer.folder / "corpus.txt").write_bytes(CORPUS * 20)
        trainer.build(CFLAGS="-std=c17 -O3 -march=native")
        latency, bandwidth = 0.001, 8e6
        links = [{}, {"delay": latency, "rate": bandwidth}]
        self.addCleanup(lambda: [self.hosts.shape(host, delay=LATENCY, rate=BANDWIDTH) for host in range(2)])
        words = ["plan", "job.yaml", "--json", "--nodes", "2", "--latency", str(1e6 * latency), "--bandwidth", str(1e-6 * bandwidth)]
        rounds = []
        for number in range(1, ROUNDS + 1):
            rounds.append([self.fastest(trainer, link) for link in links])
            free, taken = (min(times) for times in zip(*rounds))
            plan = json.loads(trainer.command(*words, "--step", str(1e3 * free)))
            predicted, whole = free + plan["predicted"]["exposed"], free + plan["predicted"]["communication"]
            said = (f"a step of {free:.3f} s took {taken:.3f} s between hosts, predicted {predicted:.3f} s; "
                    f"{whole:.3f} s if all were waited for")
            print(said)
            holds = abs(taken - predicted) < ERROR * predicted and taken < 0.9 * whole
            if number > 1 and holds:
                break
        self.assertTrue(holds, said)

    def fastest(self, trainer, link):
        """Seconds of the fastest step of a run on two hosts, after the first two, whatever else this machine does."""
        for host in range(2):
            self.hosts.shape(host, **link)
        words = ["mpirun", "-n", 2, "--host", "host0:1,host1:1", "-wdir", trainer.folder, "chrt", "-f", 1, trainer.folder / "trainer"]
        result = subprocess.run(self.hosts.on(0, *words),
                                env=self.hosts.environment(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()
        return min(json.loads(line)["step_ms"] for line in lines[2:]) / 1000

    def test_step(self):
        """A long step hides what it can; a short one waits."""
        _, long = self.predicted(4, "--step", "100000")
        _, short = self.predicted(4, "--step", "1")
        last = long["collectives"][-1]["seconds"]
        bucket = long["collectives"][-2]["seconds"]
        self.assertAlmostEqual(long["exposed"], last + bucket)
        self.assertGreater(short["exposed"], 0.99 * short["communication"])


load_tests = rotating(2)


if __name__ == "__main__":
    main_unless(missing())
