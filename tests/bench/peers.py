"""Our trainer beside PyTorch under Accelerate and llm.c: the same model, the same batch, interleaved rounds.

usage: peers.py [--jobs tiny,small,gpt2] [--rounds 3] [--threads 2] [--json FILE] [--peers ours,eager,compile,llmc]

llm.c takes part when LLMC_DIR names its source; its CPU trainer knows one job, gpt2.
A round runs every program once, in turn. Of each run the first steps are left out (a compiler's work, cold memory);
the table gives the fastest step of all rounds, the median of each round (the middle one, and their range), the time
from start to the end of the first step, and the largest resident memory. Ratios are against the fastest peer, round by
round for the medians.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORK = os.path.join(ROOT, "build", "bench")

# steps of a run, steps of it that are left out, vocabulary
JOBS = {"tiny": (300, 30, 65), "small": (30, 4, 65), "gpt2": (14, 3, 50257)}
TITLES = {"tiny": "tiny: 4 layers, 4 heads, 128 wide, T 64, B 12, V 65",
          "small": "small: 6 layers, 6 heads, 384 wide, T 256, B 8, V 65",
          "gpt2": "GPT-2 124M: T 64, B 4"}


class Run:
    """One process: its steps in ms, seconds to the first one, peak memory in MiB."""

    def __init__(self, command, parse, folder=WORK, enough=None, environment=None):
        self.steps, self.first, self.lines = [], None, []
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
                                   env={**os.environ, **(environment or {})})
        for line in process.stdout:
            self.lines.append(line)
            ms = parse(line)
            if ms is None:
                continue
            if self.first is None:
                self.first = time.perf_counter() - started
            self.steps.append(ms)
            if enough is not None and len(self.steps) >= enough:
                process.terminate()
                enough = None
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.peak = usage.ru_maxrss / 1024
        if not self.steps or process.returncode not in (0, -15):
            raise RuntimeError(f"{command[0]} failed:\n" + "".join(self.lines[-20:]))


def torch_runner(mode):
    def prepare(job, threads):
        del job, threads

    def run(job, threads):
        def parse(line):
            return json.loads(line)["step_ms"] if line.startswith("{") else None

        command = [sys.executable, os.path.join(HERE, "peer_torch.py"), job, tokens(job), str(JOBS[job][0]), mode,
                   str(threads)]
        return Run(command, parse, environment={"OMP_NUM_THREADS": str(threads)})

    return prepare, run


def our_runner():
    def prepare(job, threads):
        subprocess.run([os.path.join(ROOT, "build", "accel-gen"), "build",
                        os.path.join(ROOT, "examples", "jobs", job + ".yaml"), "-o", os.path.join(WORK, job),
                        "--set", f"data.train.path={tokens(job)}", "--set", f"devices.threads={threads}",
                        "--set", "tracking.every=1", "--set", f"checkpoint.project_dir={WORK}/run-{job}"], check=True)

    def run(job, threads):
        folder = os.path.join(WORK, "run-" + job)
        shutil.rmtree(folder, ignore_errors=True)

        def parse(line):  # a log line starts with the step's number; the exact time stands in metrics.jsonl
            return 0.0 if line.split()[:1] and line.split()[0].isdigit() else None

        result = Run([os.path.join(WORK, job), "--steps", str(JOBS[job][0])], parse,
                     environment={"OMP_NUM_THREADS": str(threads)})
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as metrics:
            result.steps = [json.loads(line)["step_ms"] for line in metrics]
        shutil.rmtree(folder, ignore_errors=True)
        return result

    return prepare, run


def llmc_runner(source):
    folder = os.path.join(WORK, "llmc")

    def prepare(job, threads):
        del threads
        if job != "gpt2":
            return
        data = os.path.join(folder, "dev", "data", "tinyshakespeare")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        os.makedirs(data, exist_ok=True)
        subprocess.run(["make", "train_gpt2"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        header = struct.pack("<256i", 20240520, 1, 100000, *[0] * 253)
        for split in ("train", "val"):
            with open(os.path.join(data, f"tiny_shakespeare_{split}.bin"), "wb") as out:
                out.write(header + random_tokens(100000, 50257))
        write_llmc_checkpoint(os.path.join(folder, "gpt2_124M.bin"))
        shutil.copy(os.path.join(folder, "gpt2_124M.bin"), os.path.join(folder, "gpt2_124M_debug.bin"))

    def run(job, threads):
        if job != "gpt2":
            return None

        def parse(line):  # "step 3: train loss 4.1 (took 4870.1 ms)"
            if not line.startswith("step ") or "(took " not in line:
                return None
            return float(line.split("(took ")[1].split()[0])

        return Run(["stdbuf", "-oL", "./train_gpt2"], parse, folder=folder, enough=JOBS[job][1] + 3,
                   environment={"OMP_NUM_THREADS": str(threads)})

    return prepare, run


def write_llmc_checkpoint(path):
    """Random weights in the file format of llm.c, version 3."""
    import numpy as np

    length, vocabulary, layers, heads, width, padded = 1024, 50257, 12, 12, 768, 50304
    count = (padded + length) * width + 2 * width
    count += layers * (4 * width + 12 * width * width + 3 * width + width + 4 * width + width)
    header = np.zeros(256, dtype=np.int32)
    header[:8] = (20240326, 3, length, vocabulary, layers, heads, width, padded)
    with open(path, "wb") as out:
        header.tofile(out)
        np.random.default_rng(1).normal(0, 0.02, count).astype(np.float32).tofile(out)


def random_tokens(count, vocabulary):
    import numpy as np

    return np.random.default_rng(1).integers(0, vocabulary, count).astype(np.uint16).tobytes()


def tokens(job):
    """The token file of a job, made when it is not there: uint16 without a header."""
    path = os.path.join(WORK, job + ".bin")
    if not os.path.exists(path):
        with open(path, "wb") as out:
            out.write(random_tokens(1000000, JOBS[job][2]))
    return path


def summary(job, runs):
    kept = [run.steps[JOBS[job][1]:] for run in runs]
    medians = [statistics.median(steps) for steps in kept]
    return {"min_ms": min(min(steps) for steps in kept), "median_ms": statistics.median(medians),
            "round_medians_ms": medians, "round_mins_ms": [min(steps) for steps in kept],
            "first_step_s": [run.first for run in runs], "peak_mib": max(run.peak for run in runs)}


def ratios(results):
    """Ours against the fastest peer: of all minima, and of the medians round by round."""
    peers = [name for name in results if name != "ours"]
    if "ours" not in results or not peers:
        return None
    ours = results["ours"]
    by_round = [mine / min(results[peer]["round_medians_ms"][i] for peer in peers)
                for i, mine in enumerate(ours["round_medians_ms"])]
    return {"min": ours["min_ms"] / min(results[peer]["min_ms"] for peer in peers),
            "median": ours["median_ms"] / min(results[peer]["median_ms"] for peer in peers),
            "median_by_round": by_round}


def print_job(job, results):
    print(f"\n{TITLES[job]}\n  {'':10}{'min ms':>10}{'median ms':>12}{'range of medians':>22}{'first step s':>16}"
          f"{'peak MiB':>10}")
    for name, result in results.items():
        if name == "ratio":
            continue
        spread = f"{min(result['round_medians_ms']):.1f} - {max(result['round_medians_ms']):.1f}"
        first = f"{min(result['first_step_s']):.2f} - {max(result['first_step_s']):.2f}"
        print(f"  {name:10}{result['min_ms']:>10.1f}{result['median_ms']:>12.1f}{spread:>22}{first:>16}"
              f"{result['peak_mib']:>10.0f}")
    ratio = results.get("ratio")
    if ratio:
        print(f"  ours / best peer: minimum {ratio['min']:.2f}, median {ratio['median']:.2f}"
              f" (by round {', '.join(f'{r:.2f}' for r in ratio['median_by_round'])})")
    sys.stdout.flush()


def measure(job, runners, rounds, threads):
    runs = {name: [] for name in runners}
    for prepare, _ in runners.values():
        prepare(job, threads)
    for at in range(rounds):
        for name, (_, run) in runners.items():
            print(f"\r{job}: round {at + 1} of {rounds}, {name}   ", end="", file=sys.stderr, flush=True)
            result = run(job, threads)
            if result is not None:
                runs[name].append(result)
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    results = {name: summary(job, done) for name, done in runs.items() if done}
    ratio = ratios(results)
    if ratio:
        results["ratio"] = ratio
    return results


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} CPUs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", default="tiny,small,gpt2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="ours,eager,compile,llmc")
    parser.add_argument("--json", default=os.path.join(WORK, "peers.json"))
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    known = {"ours": our_runner(), "eager": torch_runner("eager"), "compile": torch_runner("compile")}
    if os.environ.get("LLMC_DIR"):
        known["llmc"] = llmc_runner(os.environ["LLMC_DIR"])
    runners = {name: known[name] for name in options.peers.split(",") if name in known}
    report = {"machine": processor(), "threads": options.threads, "rounds": options.rounds, "jobs": {}}
    print(f"{report['machine']}, {options.threads} threads, {options.rounds} interleaved rounds; float32, AdamW, clip 1.0")
    for job in options.jobs.split(","):
        report["jobs"][job] = measure(job, runners, options.rounds, options.threads)
        print_job(job, report["jobs"][job])
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)
    print(f"\nwritten: {os.path.relpath(options.json, os.getcwd())}")


if __name__ == "__main__":
    main()
