"""Random combinations of keys: each one generates a program, or is refused with a place. Taking away what a refusal
points at must lead to a job that works; some of those are compiled and run for ten steps.

SEED=N repeats a run, COUNT=N walks through so many combinations, RUNS=N of them are run."""
# long

import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import unittest

import walk
from matrix import library_flags

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = int(os.environ.get("COUNT", 1000))
RUNS = int(os.environ.get("RUNS", 60))
WORKERS = 2
TIMES = ("tokens_per_s", "step_ms", "input_wait_ms", "start_to_first_step_s", "weights_s", "save_stall_ms", "left_s")


class Walker:
    """One worker: draws jobs, mends those that are refused, keeps those that work."""

    def __init__(self, number, folder):
        self.random = random.Random(f"{SEED} {number}")
        self.folder, self.number = folder, number
        self.values = walk.all_values()
        self.tried, self.refused, self.works, self.seen = 0, 0, [], set()

    def draw(self):
        base = self.random.choice(sorted(walk.BASES))
        job = dict(walk.BASES[base])
        for key in self.random.sample(sorted(self.values), self.random.randint(1, 9)):
            value = self.random.choice(self.values[key])
            job |= walk.companions(key, value) | {key: value}
        return base, job

    def walk(self, count):
        while self.tried < count:
            base, job = self.draw()
            self.mend(walk.BASES[base], job)
        return self

    def mend(self, base, job):
        """Tries a job, and tries again without what the refusal points at, until it works."""
        while True:
            self.tried += 1
            self.seen |= set(job)
            outcome = walk.generate(job, self.folder, f"job{self.number}")
            if isinstance(outcome, str):
                self.works.append((job, outcome))
                return
            self.refused += 1
            drawn = [key for key in job if key not in base or job[key] != base[key]]
            named = [key for key in drawn if key in outcome.keys]
            if not drawn:
                raise AssertionError(f"a base job is refused:\n{json.dumps(job)}\n{outcome.text}")
            for key in named or [self.random.choice(drawn)]:
                job.pop(key)
                if key in base:
                    job[key] = base[key]


def run(item):
    """Compiles a program without optimization and runs it, mostly ten steps; what went wrong, or nothing."""
    number, (job, text), folder = item
    place = folder / f"run{number}"
    place.mkdir()
    walk.write_data(place)
    walk.write(job, place / "job.yaml")
    (place / "trainer.c").write_text(text)
    command = ["cc", "-std=c17", "-O0", "-fopenmp", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "trainer.c"]
    command += ["-o", "trainer", *library_flags("--cflags"), *library_flags("--libs")]
    result = subprocess.run(command, capture_output=True, text=True, cwd=place)
    if result.returncode == 0:
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        result = subprocess.run(["./trainer"], capture_output=True, text=True, cwd=place, timeout=300, env=environment)
    if result.returncode != 0:
        return f"status {result.returncode}:\n{(place / 'job.yaml').read_text()}{result.stdout}{result.stderr}"
    lines = (place / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [record["step"] for record in map(json.loads, lines) if "loss" in record]
    wanted = int(re.search(r"\.steps = (\d+),", text).group(1))
    early = "training.early_stopping" in job and result.stdout.rstrip().split("\n")[-1].count("stopped early")
    if not steps or (steps[-1] != wanted and not early):
        return f"ended at step {steps[-1:]} of {wanted}:\n{(place / 'job.yaml').read_text()}{result.stdout}{result.stderr}"
    return go_on(place, environment)


def left(place):
    """What a run leaves behind, but for the times."""
    lines = (place / "run" / "metrics.jsonl").read_text().splitlines()
    lines = [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
    return lines, {path.name: path.read_bytes() for path in (place / "run").glob("*.safetensors")}


def go_on(place, environment):
    """From its first checkpoint, where it has any, the run ends with the same bytes."""
    folders = [path.parent for path in (place / "run").rglob("manifest.json")]
    if not folders:
        return None
    first = min(folders, key=lambda folder: int(folder.name.rsplit("_")[1]))
    wanted = left(place)
    result = subprocess.run(["./trainer", "--resume", first], capture_output=True, text=True, cwd=place, timeout=300,
                            env=environment)
    if result.returncode == 0 and left(place) == wanted:
        return None
    return f"goes on from {first.name}, status {result.returncode}, to another end:\n" \
        f"{(place / 'job.yaml').read_text()}{result.stdout}{result.stderr}"


class Walk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"SEED={SEED}", flush=True)
        cls.holder = tempfile.TemporaryDirectory(prefix="accel-walk-")
        cls.folder = pathlib.Path(cls.holder.name)
        walk.write_data(cls.folder)
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            walkers = [Walker(n, cls.folder) for n in range(WORKERS)]
            cls.walkers = list(pool.map(lambda walker: walker.walk(COUNT // WORKERS), walkers))
        cls.works = [work for walker in cls.walkers for work in walker.works]

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def test_enough_of_both_kinds(self):
        refused, tried = sum(w.refused for w in self.walkers), sum(w.tried for w in self.walkers)
        print(f"{tried} combinations: {tried - refused} work, {refused} refused", flush=True)
        self.assertGreaterEqual(tried, COUNT)
        self.assertGreater(tried - refused, tried // 10)
        self.assertGreater(refused, tried // 10)

    def test_every_key_was_drawn(self):
        if COUNT >= 1000:
            missed = set(walk.all_values()) - set().union(*(w.seen for w in self.walkers))
            self.assertEqual(missed, set())

    def test_what_works_runs(self):
        """The jobs with most keys first: they combine most."""
        chosen = sorted(self.works, key=lambda work: -len(work[0]))[:RUNS]
        items = [(number, work, self.folder) for number, work in enumerate(chosen)]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            wrong = [message for message in pool.map(run, items) if message]
        self.assertEqual(len(wrong), 0, "\n\n".join(wrong[:5]))
        self.assertEqual(len(chosen), min(RUNS, len(self.works)))


if __name__ == "__main__":
    unittest.main()
