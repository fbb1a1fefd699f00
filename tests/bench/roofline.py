"""Where a step's time goes, and how near each kind of kernel is to what the machine can do (Williams, Waterman, Patterson, "Roofline",
CACM 52, 2009).

usage: roofline.py [--jobs tiny,small,gpt2] [--steps N] [--threads 2] [--kernels] [--json FILE] [--resume]

Our trainer with a profile in it, by the table of measurements where there is one; means over the middle half of the steps by their length. A kernel's
least time is that of its operations at the rate of the step's linear layers, back to back, by the library that we use, or of its operands' bytes at the
rate of a copy of memory, whichever is longer; "of limit" is that over what it took. More than 100 % says that its operands were in a cache. --kernels:
a line a kernel, not a line a kind.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess

import machine
import peers
import tables

SKIPPED = 3


def kind_of(kernel):
    """Without the shape and the transposes: "layer_norm_backward_12x64x128" and "layer_norm_backward_12x64x128_2" are
    layer_norm_backward, "matmul_nt_12x64x128" is matmul."""
    return re.sub(r"_(nt|tn|tt)(?=_|$)", "", re.sub(r"_\d+(x\d+)*(_\d+)?$", "", kernel))


def trace_of(job, options):
    """The events of a run with a profile."""
    program = os.path.join(peers.WORK, f"roofline-{job.name}")
    folder, steps = program + "-run", options.steps or max(9, job.steps // 2)
    profile = f"{{schedule: {{skip_first: {SKIPPED}, active: {steps}}}, with_flops: true, output_trace_dir: {folder}}}"
    subprocess.run([tables.GENERATOR, "build", *peers.our_words(job, options.threads), *tables.words(tables.path(job.name)),
                    "--set", f"profile={profile}", "--set", f"checkpoint.project_dir={folder}", "-o", program], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, "--steps", str(SKIPPED + steps)], cwd=peers.WORK, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
    with open(os.path.join(folder, "profile_0.json"), encoding="utf-8") as trace:
        events = json.load(trace)["traceEvents"]
    shutil.rmtree(folder)
    return events


def steps_of(events):
    """[(seconds, its parts' events)]: the parts of a step come before the step itself."""
    steps, parts = [], []
    for event in events:
        if event.get("cat") == "part":
            parts.append(event)
        elif event.get("cat") == "step":
            steps.append((1e-6 * event["dur"], parts))
            parts = []
    return steps


def rows_of(steps, name_of):
    """{name: {calls, ms, flops, bytes}} of a step, and the step's ms, over the middle half of the steps."""
    middle = sorted(steps, key=lambda step: step[0])[len(steps) // 4:len(steps) - len(steps) // 4]
    rows = {}
    for _, parts in middle:
        for event in parts:
            row = rows.setdefault(name_of(event["name"]), {"calls": 0, "ms": 0, "flops": 0, "bytes": 0})
            row["calls"] += 1 / len(middle)
            row["ms"] += 1e-3 * event["dur"] / len(middle)
            for ours, theirs in (("flops", "flop"), ("bytes", "bytes")):
                row[ours] += event.get("args", {}).get(theirs, 0) / len(middle)
    return rows, 1e3 * statistics.mean(seconds for seconds, _ in middle)


def measure(job, options):
    rate = machine.matmul_rate(job.shape, options.threads, job.precision)
    flops = rate and rate.fastest
    limits = {"flops": flops, "bytes": machine.copy_rate().median}
    rows, step = rows_of(steps_of(trace_of(job, options)), str if options.kernels else kind_of)
    for row in rows.values():
        needs = [1e3 * row[what] / rate for what, rate in limits.items() if rate and row[what] > 0]
        known = row["flops"] == 0 or flops
        row["least_ms"] = max(needs) if needs and known else None
    return {"step_ms": step, "rates": limits, "rows": rows}


def print_job(job, result):
    rates, step = result["rates"], result["step_ms"]
    matmuls = f"matmuls {rates['flops'] / 1e9:.0f} GFLOP/s, " if rates["flops"] else ""
    print(f"\nroofline of {job.title()}: {step:.4g} ms a step; {matmuls}copies {rates['bytes'] / 1e9:.1f} GB/s\n"
          f"{'calls':>8}{'ms':>10}{'%':>7}{'GFLOP/s':>10}{'GB/s':>8}{'of limit':>10}   part")

    def line(name, calls, row):
        flops, moved = (f"{row[what] / row['ms'] / 1e6:.1f}" if row[what] > 0 else "" for what in ("flops", "bytes"))
        fraction = f"{100 * row['least_ms'] / row['ms']:.0f} %" if row["least_ms"] else ""
        print(f"{calls:>8}{row['ms']:>10.3f}{100 * row['ms'] / step:>7.1f}{flops:>10}{moved:>8}{fraction:>10}   {name}")

    rows = sorted(result["rows"].items(), key=lambda item: -item[1]["ms"])
    for name, row in rows:
        line(name, f"{row['calls']:.0f}", row)
    whole = {what: sum(row[what] or 0 for _, row in rows) for what in ("ms", "flops", "bytes", "least_ms")}
    if any(row["least_ms"] is None and row["flops"] > 0 for _, row in rows):
        whole["least_ms"] = None
    line("the step", "", whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", default="tiny,small,gpt2")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--json", default=os.path.join(peers.WORK, "roofline.json"))
    parser.add_argument("--resume", action="store_true", help="keep the rows that the JSON has")
    options = parser.parse_args()
    os.makedirs(peers.WORK, exist_ok=True)
    options.rounds = 1
    report = peers.report_of(options, steps=options.steps, kernels=options.kernels)
    for job in [peers.Job(name) for name in options.jobs.split(",")]:
        if job.name not in report["jobs"]:
            report["jobs"][job.name] = measure(job, options)
        print_job(job, report["jobs"][job.name])
        peers.write_report(options.json, report)


if __name__ == "__main__":
    main()
