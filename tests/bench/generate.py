"""How long it takes to make and to audit a program, as processes: the least and the median of some runs of each.

usage: generate.py [JOB]   examples/jobs/gpt2.yaml without one; RUNS=15"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
RUNS = int(os.environ.get("RUNS", 15))


def spent(*command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return 1e3 * (time.perf_counter() - begin)


def main():
    job = sys.argv[1] if len(sys.argv) > 1 else TREE / "examples" / "jobs" / "gpt2.yaml"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "trainer.c"
        commands = {"generate": (GENERATOR, job, "-o", out), "audit": (GENERATOR, "audit", out)}
        for name, command in commands.items():
            times = [spent(*command) for _ in range(RUNS)]
            print(f"{name:10} least {min(times):7.1f} ms  median {statistics.median(times):7.1f} ms of {RUNS} runs")


if __name__ == "__main__":
    main()
