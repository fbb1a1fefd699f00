"""From the start of our trainer to the end of its first step, and what of it is what.

usage: first_step.py [--jobs tiny,small,gpt2,gpt2-read] [--rounds 3] [--threads 2] [--idle 10] [--json FILE] [--resume]

`gpt2-read` starts from a file of weights, which the system has in memory; the others draw theirs. Each is started twice a round. First with
memory at hand, twice as much as a program has just touched and given back; then, marked *, when the machine has been idle for --idle seconds, in which the host of
a virtual machine may have taken free memory back (0: not at all). The whole is the time from before the process is made to when its first line of steps
is read. Of that
  weights    is what the trainer says that drawing or reading them took, with the first touch of their memory,
  touching   what another program takes to touch the rest of the arena for the first time, in the same way and by as many threads,
  a step     the median of those after the first two,
  the rest   all else: loading libraries, opening data and files, starting threads, making oneDNN's kernels, the first line.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import time

import peers
import tables

STEPS, SKIPPED, GOAL = 8, 2, 0.3
ORDER = ["whole", "weights", "touching", "step", "rest"]
TOUCH = os.path.join(peers.WORK, "touch")


def names_of(name):
    """The job of peers.py, and whether it reads its weights."""
    words = name.split("-")
    return peers.Job("-".join(word for word in words if word != "read")), "read" in words


def folder_of(name):
    return os.path.join(peers.WORK, f"first-{name}-run")


def build(name, threads):
    """The program, the bytes of its arena, and those that are not weights."""
    job, reads = names_of(name)
    program = os.path.join(peers.WORK, f"first-{name}")
    words = [*peers.our_words(job, threads), "--set", f"checkpoint.project_dir={folder_of(name)}"]
    if reads:
        words += ["--set", f"model.weights={weights_of(job, threads)}"]
    subprocess.run([tables.GENERATOR, "build", *words, *tables.words(tables.path(job.name)), "-o", program], check=True)
    memory = tables.plan(words)["arena_bytes"]
    arena = memory["total"] - memory["checkpoint"]
    return program, arena, arena - memory["weights"]


def weights_of(job, threads):
    """A file of weights, which a run of the same job leaves."""
    path = os.path.join(peers.WORK, f"first-{job.name}.safetensors")
    if not os.path.exists(path):
        program = build(job.name, threads)[0]
        start(job.name, program, threads)
        shutil.move(os.path.join(folder_of(job.name), "model.safetensors"), path)
    return path


def start(name, program, threads):
    shutil.rmtree(folder_of(name), ignore_errors=True)
    return peers.Run([program, "--steps", str(STEPS)], peers.number_of_line, environment={"OMP_NUM_THREADS": str(threads)})


def touch(amount, threads):
    """Seconds to touch so many bytes."""
    return float(subprocess.run([TOUCH, str(amount), str(threads)], check=True, capture_output=True, text=True).stdout)


def one_start(name, program, others, threads, prepare):
    """Seconds, by ORDER; the machine is prepared alike before memory is touched and before the trainer starts."""
    prepare()
    touching = touch(others, threads)
    prepare()
    whole = start(name, program, threads).first
    with open(os.path.join(folder_of(name), "metrics.jsonl"), encoding="utf-8") as lines:
        lines = [json.loads(line) for line in lines]
    step = 1e-3 * statistics.median(line["step_ms"] for line in lines[SKIPPED:])
    weights = lines[0]["weights_s"]
    return {"whole": whole, "weights": weights, "touching": touching, "step": step, "rest": whole - weights - touching - step}


def measure(name, options):
    """{state: {part: its seconds}}."""
    program, arena, others = build(name, options.threads)
    states = {"": lambda: touch(2 * arena, options.threads)}
    if options.idle > 0:
        states["*"] = lambda: time.sleep(options.idle)
    runs = {state: [] for state in states}
    for _ in range(options.rounds):
        for state, prepare in states.items():
            runs[state].append(one_start(name, program, others, options.threads, prepare))
    shutil.rmtree(folder_of(name), ignore_errors=True)
    return {state: {part: {"median": statistics.median(run[part] for run in done), "rounds": [run[part] for run in done]}
                    for part in ORDER} for state, done in runs.items()}


def row_text(name, row):
    cells = "".join(f"{row[part]['median']:>10.3f}" for part in ORDER)
    rest = row["rest"]["rounds"]
    return f"{name:12}{cells}   {min(rest):.3f} - {max(rest):.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", default="tiny,small,gpt2,gpt2-read")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--idle", type=float, default=10)
    parser.add_argument("--json", default=os.path.join(peers.WORK, "first_step.json"))
    parser.add_argument("--resume", action="store_true", help="keep the rows that the JSON has")
    options = parser.parse_args()
    os.makedirs(peers.WORK, exist_ok=True)
    subprocess.run(["cc", "-std=c17", "-O2", "-fopenmp", "-o", TOUCH, os.path.join(peers.HERE, "touch.c")], check=True)
    report = peers.report_of(options, idle=options.idle)
    print(f"\nstart to the end of the first step, seconds, medians of {options.rounds} (goal: the rest below {GOAL})\n"
          f"{'':12}{'whole':>10}{'weights':>10}{'touching':>10}{'a step':>10}{'the rest':>10}   its range")
    for name in options.jobs.split(","):
        if name not in report["jobs"]:
            report["jobs"][name] = measure(name, options)
        for state, row in report["jobs"][name].items():
            print(row_text(name + state, row), flush=True)
        peers.write_report(options.json, report)


if __name__ == "__main__":
    main()
