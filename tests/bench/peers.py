"""Our trainer against PyTorch under Accelerate and llm.c: the same model, the same batch, interleaved rounds.

usage: peers.py [--jobs tiny,small,gpt2,...] [--rounds 3] [--threads 2] [--tune-rounds 3] [--json FILE] [--resume]
                [--peers ours,eager,compile,llmc]

A job may be followed by -accumulate, four micro-batches a step, and by -bf16, mixed precision: tiny-accumulate-bf16. The peer
`tuned` is torch.compile with mode="max-autotune". llm.c takes part when LLMC_DIR names its source; its CPU trainer knows
one job, gpt2.
A round runs every program once, in turn. Of each run the first steps are left out (a compiler's work, cold memory);
the table gives the fastest step of all rounds, the median of each round (the middle one, and their range), the time
from start to the end of the first step, and the largest resident memory. Ratios are against the fastest peer, round by
round for the medians.

Ours is tuned first (`accel-gen tune`, --tune-rounds; 0: by the table that there is, or by the rules where there is none),
and is given next to what `accel-gen plan` predicts of its step with that table.

--resume keeps the rows that the JSON has already, when machine, versions and rounds are the same.

The machine's limit: the time of the step's matmuls at the rate at which its linear layers' go, back to back, by the
library that we use, called once with all threads or once by each, whichever is faster, and of the optimizer's bytes at
the rate of a copy of memory; measured in each round, in the fastest of some repetitions and in the median one. Our
fastest step is divided by the limit's fastest, our median over its median of the same round, and also over its fastest.
"""

import argparse
import dataclasses
import importlib.metadata
import importlib.util
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

sys.path.insert(0, HERE)

import machine  # noqa: E402
import plot  # noqa: E402
import tables  # noqa: E402

SHAPES = {"tiny": "4 layers, 4 heads, 128 wide, T 64, B 12, V 65", "small": "6 layers, 6 heads, 384 wide, T 256, B 8, V 65",
          "gpt2": "GPT-2 124M, T 64, B 4"}


@dataclasses.dataclass
class Job:
    name: str

    def __post_init__(self):
        words = self.name.split("-")
        self.shape = words[0]  # of examples/jobs
        self.micro_batches = 4 if "accumulate" in words else 1
        self.precision = "bf16" if "bf16" in words else "no"
        steps, self.skipped = {"tiny": (300, 30), "small": (30, 4), "gpt2": (14, 3)}[self.shape]
        self.steps = max(self.skipped + 6, steps // self.micro_batches)  # of a run; the first ones are left out
        self.vocabulary = 50257 if self.shape == "gpt2" else 65
        if set(words[1:]) - {"accumulate", "bf16"}:
            raise SystemExit(f"peers.py: there is no job {self.name}")

    def title(self):
        return (f"{self.name}: {SHAPES[self.shape]}" + (", 4 micro-batches" if self.micro_batches > 1 else "") +
                (", bfloat16" if self.precision == "bf16" else ", float32"))


class Ahead:
    """Where this process and those that it starts run at real-time priority (chrt), runs above them: they spin on all processors, and who
    waits for their first line would not see it when it comes."""

    def __init__(self):
        self.policy, self.before = os.sched_getscheduler(0), os.sched_getparam(0)

    def raise_own(self):
        if self.policy in (os.SCHED_FIFO, os.SCHED_RR):
            os.sched_setscheduler(0, self.policy, os.sched_param(self.before.sched_priority + 1))

    def lower_own(self):
        os.sched_setscheduler(0, self.policy, self.before)


class Run:
    """One process: its steps in ms, seconds to the first one, peak memory in MiB."""

    def __init__(self, command, parse, folder=WORK, enough=None, environment=None):
        self.steps, self.first, self.lines = [], None, []
        ahead = Ahead()
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
                                   env={**os.environ, **(environment or {})})
        ahead.raise_own()
        for line in process.stdout:
            self.lines.append(line)
            ms = parse(line)
            if ms is None:
                continue
            if self.first is None:
                self.first = time.perf_counter() - started
                ahead.lower_own()
            self.steps.append(ms)
            if enough is not None and len(self.steps) >= enough:
                process.terminate()
                enough = None
        ahead.lower_own()
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

        command = [sys.executable, os.path.join(HERE, "peer_torch.py"), job.shape, tokens(job), str(job.steps), mode,
                   str(threads), str(job.micro_batches), job.precision]
        return Run(command, parse, environment={"OMP_NUM_THREADS": str(threads)})

    return prepare, run


def number_of_line(line):
    """Of our trainer's lines, those of steps start with their number; the exact time is in metrics.jsonl."""
    return 0.0 if line.split()[:1] and line.split()[0].isdigit() else None


def our_job(job):
    return [os.path.join(ROOT, "examples", "jobs", job.shape + ".yaml"),
            "--set", f"accumulation.num_steps={job.micro_batches}", "--set", f"precision.mixed_precision={job.precision}"]


def our_words(job, threads):
    """The job on the command line, with its data and a line a step."""
    return [*our_job(job), "--set", f"data.train.path={tokens(job)}", "--set", f"devices.threads={threads}",
            "--set", "tracking.every=1"]


def our_runner(tune_rounds):
    def prepare(job, threads):
        words, table = our_words(job, threads), tables.path(job.name)
        tables.tune(words, table, tune_rounds)
        subprocess.run([tables.GENERATOR, "build", *words, *tables.words(table), "-o", os.path.join(WORK, job.name),
                        "--set", f"checkpoint.project_dir={WORK}/run-{job.name}"], check=True)

    def run(job, threads):
        folder = os.path.join(WORK, "run-" + job.name)
        shutil.rmtree(folder, ignore_errors=True)

        result = Run([os.path.join(WORK, job.name), "--steps", str(job.steps)], number_of_line,
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
        if job.name != "gpt2":
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
        if job.name != "gpt2":
            return None

        def parse(line):  # "step 3: train loss 4.1 (took 4870.1 ms)"
            if not line.startswith("step ") or "(took " not in line:
                return None
            return float(line.split("(took ")[1].split()[0])

        return Run(["stdbuf", "-oL", "./train_gpt2"], parse, folder=folder, enough=job.skipped + 3,
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
    path = os.path.join(WORK, job.shape + ".bin")
    if not os.path.exists(path):
        with open(path, "wb") as out:
            out.write(random_tokens(1000000, job.vocabulary))
    return path


def summary(job, runs):
    measured = [run.steps[job.skipped:] for run in runs]
    medians = [statistics.median(steps) for steps in measured]
    return {"min_ms": min(min(steps) for steps in measured), "median_ms": statistics.median(medians),
            "round_medians_ms": medians, "round_mins_ms": [min(steps) for steps in measured],
            "first_step_s": [run.first for run in runs], "peak_mib": max(run.peak for run in runs)}


def limit_of(job, threads):
    """The machine's own time for a step, in ms, in the fastest repetition and in the median one; None where it is not known."""
    matmuls, copies = machine.matmul_rate(job.shape, threads, job.precision), machine.copy_rate()
    if matmuls is None:
        return None
    plan = tables.plan(our_job(job))
    return {which: 1e3 * (plan["matmul_flops_per_step"] / getattr(matmuls, which)
                          + machine.STEP_BYTES * plan["parameters"] / getattr(copies, which)) for which in ("fastest", "median")}


def against_limit(ours, limits):
    """The limits of all rounds, and our steps over them."""
    fastest = min(limit["fastest"] for limit in limits)
    by_round = [mine / limit["median"] for mine, limit in zip(ours["round_medians_ms"], limits)]
    return {"fastest_ms": [limit["fastest"] for limit in limits], "median_ms": [limit["median"] for limit in limits],
            "min": ours["min_ms"] / fastest, "median": statistics.median(by_round), "median_by_round": by_round,
            "median_over_fastest": ours["median_ms"] / fastest}


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


def predict(results, words, table, folder=None):
    """Adds what the plan predicts of our step."""
    if "ours" in results:
        results["ours"]["prediction"] = tables.prediction(words, table, results["ours"], folder)


def print_job(job, results):
    print(f"\n{job.title()}\n  {'':10}{'min ms':>10}{'median ms':>12}{'range of medians':>22}{'first step s':>16}"
          f"{'peak MiB':>10}")
    for name, result in results.items():
        if name in plot.COMPARISONS:
            continue
        spread = f"{min(result['round_medians_ms']):.1f} - {max(result['round_medians_ms']):.1f}"
        first = f"{min(result['first_step_s']):.2f} - {max(result['first_step_s']):.2f}"
        print(f"  {name:10}{result['min_ms']:>10.1f}{result['median_ms']:>12.1f}{spread:>22}{first:>16}"
              f"{result['peak_mib']:>10.0f}")
    predicted = results.get("ours", {}).get("prediction")
    if predicted:
        print("  " + tables.prediction_text(predicted, results["ours"]))
    ratio = results.get("ratio")
    if ratio:
        print(f"  ours / best peer: minimum {ratio['min']:.2f}, median {ratio['median']:.2f}"
              f" (by round {', '.join(f'{r:.2f}' for r in ratio['median_by_round'])})")
    limit = results.get("limit")
    if limit:
        print(f"  the machine's limit: fastest {min(limit['fastest_ms']):.1f} ms, medians {min(limit['median_ms']):.1f} - "
              f"{max(limit['median_ms']):.1f}; ours / limit: minimum / fastest {limit['min']:.2f}, median / median {limit['median']:.2f}, "
              f"median / fastest {limit['median_over_fastest']:.2f}")
    sys.stdout.flush()


def measure(job, runners, rounds, threads):
    runs, limits = {name: [] for name in runners}, []
    for prepare, _ in runners.values():
        prepare(job, threads)
    for at in range(rounds):
        for name, (_, run) in runners.items():
            print(f"\r{job.name}: round {at + 1} of {rounds}, {name}   ", end="", file=sys.stderr, flush=True)
            result = run(job, threads)
            if result is not None:
                runs[name].append(result)
        limits.append(limit_of(job, threads))
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    results = {name: summary(job, done) for name, done in runs.items() if done}
    predict(results, our_words(job, threads), tables.path(job.name))
    ratio = ratios(results)
    if ratio:
        results["ratio"] = ratio
    if None not in limits and "ours" in results:
        results["limit"] = against_limit(results["ours"], limits)
    return results


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} CPUs"


def versions():
    """Of all that the figures depend on."""
    def said(*command):
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\n")[0]

    found = {"accel-gen": said("git", "-C", ROOT, "describe", "--always", "--dirty"), "cc": said("cc", "-dumpfullversion")}
    header = subprocess.run(["cc", "-E", "-P", "-x", "c", "-"], capture_output=True, text=True, check=False,
                            input="#include <oneapi/dnnl/dnnl_version.h>\nDNNL_VERSION_MAJOR DNNL_VERSION_MINOR DNNL_VERSION_PATCH\n")
    found["oneDNN"] = ".".join(header.stdout.split())
    for package in ("torch", "accelerate"):
        if importlib.util.find_spec(package) is not None:
            found[package] = importlib.metadata.version(package)
    return found


def report_of(options, **more):
    """A report without rows; with --resume, with those of the JSON file, where its head is the same."""
    report = {"machine": processor(), "threads": options.threads, "rounds": options.rounds, "versions": versions(), **more, "jobs": {}}
    if options.resume and os.path.exists(options.json):
        with open(options.json, encoding="utf-8") as before:
            earlier = json.load(before)
        if {**earlier, "jobs": {}} == report:
            return earlier
    return report


def write_report(path, report):
    """Whole or not at all: who stops a bench between two rows resumes from the rows."""
    with open(path + ".partial", "w", encoding="utf-8") as out:
        json.dump(report, out, indent=1)
    os.replace(path + ".partial", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", default=",".join(shape + more for more in ("", "-accumulate", "-bf16") for shape in SHAPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="ours,eager,compile,llmc")
    parser.add_argument("--tune-rounds", type=int, default=3)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--json", default=os.path.join(WORK, "peers.json"))
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    known = {"ours": our_runner(options.tune_rounds), **{mode: torch_runner(mode) for mode in ("eager", "compile", "tuned")}}
    if os.environ.get("LLMC_DIR"):
        known["llmc"] = llmc_runner(os.environ["LLMC_DIR"])
    runners = {name: known[name] for name in options.peers.split(",") if name in known}
    report = report_of(options, peers=options.peers)
    print("; ".join(plot.header(report)) + "; AdamW, clip 1.0")
    for job in [Job(name) for name in options.jobs.split(",")]:
        if job.name not in report["jobs"]:
            report["jobs"][job.name] = measure(job, runners, options.rounds, options.threads)
        print_job(job, report["jobs"][job.name])
        write_report(options.json, report)
    picture = os.path.splitext(options.json)[0] + ".svg"
    with open(picture, "w", encoding="utf-8") as out:
        out.write(plot.picture(report))
    print(f"\nwritten: {os.path.relpath(options.json, os.getcwd())}, {os.path.relpath(picture, os.getcwd())}")


if __name__ == "__main__":
    main()
