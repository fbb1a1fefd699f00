"""How far `accel-gen plan` is off when it predicts a step from what `accel-gen tune` has measured, for the jobs of `ninja bench`.

usage: predict.py [--jobs tiny,small,gpt2] [--threads 2] [--tune-rounds 3] [--rounds 3] [--built] [--json FILE]

For each job: tune it into its table (--tune-rounds 0: the table is as it is; --rounds 0: no more than that and building; --built: the
trainers are as they are, so that a quiet minute goes into measuring alone), let the plan predict its step by the table, build the trainer with the
choices of the table and the one with the choices of the rules, and run them in turns. The measured step is the median over
rounds of each round's median; next to it is the fastest step. A prediction that is more than 15 % off, or a table that makes a trainer slower than the rules by more than 5 %, makes
the exit status 1.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

import peers
import tables

MOST_OFF, MOST_SLOWER = 0.15, 1.05


def build(job, threads, how, words, built):
    """The trainer and the folder that it writes into."""
    program = os.path.join(peers.WORK, f"predict-{job.name}-{how}")
    folder = program + "-run"
    if built:
        return program, folder
    subprocess.run([tables.GENERATOR, "build", *peers.our_words(job, threads), *words, "-o", program,
                    "--set", f"checkpoint.project_dir={folder}"], check=True)
    return program, folder


def steps_of(job, threads, program, folder):
    """A run's steps, in ms."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([program, "--steps", str(job.steps)], cwd=peers.WORK, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as metrics:
        steps = [json.loads(line)["step_ms"] for line in metrics]
    shutil.rmtree(folder)
    return steps[job.skipped:]


def measure(job, options):
    words, table = peers.our_words(job, options.threads), tables.path(job.name)
    tables.tune(words, table, options.tune_rounds)
    plan = tables.plan(words, table)
    predicted = plan["predicted_step"]
    made = {"tuned": build(job, options.threads, "tuned", tables.words(table), options.built),
            "rules": build(job, options.threads, "rules", [], options.built)}
    if options.rounds == 0:
        return None
    runs = {how: [] for how in made}
    for _ in range(options.rounds):
        for how, (program, folder) in made.items():
            runs[how].append(steps_of(job, options.threads, program, folder))
    round_medians = {how: [statistics.median(steps) for steps in rounds] for how, rounds in runs.items()}
    medians = {how: statistics.median(values) for how, values in round_medians.items()}
    fastest = min(min(steps) for steps in runs["tuned"])
    return {"predicted_ms": 1e3 * predicted["seconds"], "estimated_ms": 1e3 * predicted["estimated"], "measured_ms": medians["tuned"],
            "by_rules_ms": medians["rules"], "round_medians_ms": round_medians, "off": 1e3 * predicted["seconds"] / medians["tuned"] - 1,
            "fastest_ms": fastest, "off_fastest": 1e3 * predicted["seconds"] / fastest - 1,
            "tuned_over_rules": medians["tuned"] / medians["rules"],
            "choices": {choice["of"]: choice["variant"] for choice in plan["choices"] if choice["variant"] != choice["variants"][0]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", default="tiny,small,gpt2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tune-rounds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--built", action="store_true")
    parser.add_argument("--json", default=os.path.join(peers.WORK, "predict.json"))
    options = parser.parse_args()
    os.makedirs(peers.WORK, exist_ok=True)
    report = {"machine": peers.processor(), "threads": options.threads, "jobs": {}}
    print(f"{report['machine']}, {options.threads} threads\n{'':24}{'predicted ms':>14}{'measured ms':>26}{'off':>8}{'fastest':>10}{'off':>8}{'rules ms':>11}"
          f"{'tuned / rules':>15}")
    for job in [peers.Job(name) for name in options.jobs.split(",")]:
        row = measure(job, options)
        if row is None:
            continue
        report["jobs"][job.name] = row
        rounds = row["round_medians_ms"]["tuned"]
        measured = f"{row['measured_ms']:.1f} ({min(rounds):.1f} - {max(rounds):.1f})"
        print(f"{job.name:24}{row['predicted_ms']:>14.1f}{measured:>26}{100 * row['off']:>+7.1f}%{row['fastest_ms']:>10.1f}"
              f"{100 * row['off_fastest']:>+7.1f}%{row['by_rules_ms']:>11.1f}"
              f"{row['tuned_over_rules']:>15.3f}", flush=True)
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)
    rows = report["jobs"].values()
    return int(any(abs(row["off"]) > MOST_OFF or row["tuned_over_rules"] > MOST_SLOWER for row in rows))


if __name__ == "__main__":
    sys.exit(main())
