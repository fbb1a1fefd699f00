"""Each model of examples/jobs against the same one in PyTorch, eager and compiled: a step's time and the largest memory, in
interleaved rounds. Every run is a process of its own, of which the first steps are left out.

usage: models.py [--rounds 3] [--steps 20] [--seconds 1] [--threads 2] [--tune-rounds 3] [--peers ours,eager,compile] [--precision no|bf16]
                 [--json FILE] [--resume] [NAME ...]

A run has as many steps as take so many seconds, at least --steps: a machine may be slower for a second. `mlp`, `gru512` and `resnet18` are the
models of `table`, `gru` and `resnet` at sizes at which people train.

Ours is tuned first and is given next to what the plan predicts of its step, as in peers.py; --resume is that of peers.py, too. "Limit" is the
machine's own time for a step: its matmuls and convolutions, each as fast as the table has it by any way, and the optimizer's bytes at the rate
of a copy. What a recurrent layer computes between its matmuls counts as these."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import types

import machine
import numpy as np
import sizes
import tables
from peers import ROOT, WORK, Run, number_of_line, predict, ratios, report_of, summary, write_report

SKIPPED, MOST = 4, 2000  # steps
# Those that model_peer.py knows, which is not read here: a process that starts others counts what it had itself.
NAMES = ["gpt_neox", "llama", "qwen3", "mistral", "gemma", "mixtral", "qwen_moe", "bert", "t5", "mamba", "lstm", "gru", "vit", "resnet",
         "unet", "table", "gcn", *sizes.SIZES]
CONFIG = {"qwen_moe": {"qk_norm": False}}  # where transformers has no class of all that a job of ours has


def data_of(job, folder):
    """Random data of the job's shape in its folder; what the job says of it."""
    data, rng = job["data"], np.random.default_rng(1)
    if "features" in data:
        rows, labels = rng.standard_normal((600, data["features"])), rng.integers(0, 10, 600)
        labels %= job["model"]["config"].get("n_classes", job["model"]["config"].get("out_channels", 10))
        text = "".join(",".join(f"{x:.5f}" for x in row) + f",{label}\n" for row, label in zip(rows, labels))
        (folder / "data.csv").write_text(text)
        return {"path": "data.csv", "format": "csv"}
    (folder / "data.txt").write_bytes(rng.integers(0, 256, 300_000).astype(np.uint8).tobytes())
    return {"path": "data.txt", "format": "bytes"}


def build(name, options):
    """The trainer of a job, with the optimizer that its peers have; its folder and its table."""
    folder = pathlib.Path(WORK, "models", name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job = sizes.job_of(name)
    job["model"]["source"] = str(pathlib.Path(ROOT, "examples/jobs", job["model"]["source"]).resolve())
    job["model"]["config"] |= CONFIG.get(name, {})
    job["data"] |= {"train": data_of(job, folder), "eval_fraction": 0}
    job |= {"optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 1.0}, "schedule": {"name": "constant"},
            "training": {"steps": options.steps, "seed": 1}, "checkpoint": {"project_dir": "run"}, "tracking": {"every": 1},
            "precision": {"mixed_precision": options.precision}, "devices": {"threads": options.threads}}
    (folder / "job.yaml").write_text(json.dumps(job))
    table = tables.path(f"{name}-model-{options.precision}")
    tables.tune(["job.yaml"], table, options.tune_rounds, folder)
    subprocess.run([tables.GENERATOR, "build", "job.yaml", "-o", "trainer", *tables.words(table)], cwd=folder, check=True)
    return folder, table


def limit_of(folder, table):
    """The machine's own time for a step, in ms; None without a table."""
    plan = tables.plan(["job.yaml"], table, folder)
    step = plan.get("predicted_step")
    return step and 1e3 * (step["matmuls"] + machine.STEP_BYTES * plan["parameters"] / machine.copy_rate().median)


def our_run(folder, options, steps):
    shutil.rmtree(folder / "run", ignore_errors=True)
    run = Run(["./trainer", "--steps", str(steps)], number_of_line, folder=folder, environment={"OMP_NUM_THREADS": str(options.threads)})
    run.steps = [json.loads(line)["step_ms"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return run


def ours(folder, options):
    trial = our_run(folder, options, options.steps)
    steps = min(MOST, int(1e3 * options.seconds / statistics.median(trial.steps[SKIPPED:])))
    return our_run(folder, options, steps) if steps > options.steps else trial


def theirs(name, mode, options):
    command = [sys.executable, os.path.join(ROOT, "tests/bench/model_peer.py"), name, mode, str(options.steps), str(options.seconds),
               str(options.threads), options.precision]
    return Run(command, lambda line: json.loads(line)["step_ms"] if line.startswith("{") else None,
               environment={"OMP_NUM_THREADS": str(options.threads)})


def measure(name, options):
    (folder, table), runs = build(name, options), {peer: [] for peer in options.peers}
    for _ in range(options.rounds):
        for peer in options.peers:
            runs[peer].append(ours(folder, options) if peer == "ours" else theirs(name, peer, options))
    results = {peer: summary(types.SimpleNamespace(skipped=SKIPPED), done) for peer, done in runs.items()}
    predict(results, ["job.yaml"], table, folder)
    ratio, limit = ratios(results), limit_of(folder, table)
    return results | ({"ratio": ratio} if ratio else {}) | ({"limit_ms": [limit]} if limit else {})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="ours,eager,compile", type=lambda text: text.split(","))
    parser.add_argument("--precision", choices=("no", "bf16"), default="no")
    parser.add_argument("--tune-rounds", type=int, default=3)
    parser.add_argument("--json", default=os.path.join(WORK, "models.json"))
    parser.add_argument("--resume", action="store_true", help="keep the rows that the JSON has")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    head = "".join(f"{peer + ' ms':>14}{'range':>18}{'MiB':>7}" for peer in options.peers)
    print(f"{'':10}{head}{'ours / best':>13}{'predicted':>11}{'off %':>8}{'of fastest':>11}{'limit ms':>10}{'ours / limit':>14}")
    report = report_of(options, steps=options.steps, seconds=options.seconds, precision=options.precision, peers=",".join(options.peers))
    for name in options.names or NAMES:
        if name not in report["jobs"]:
            report["jobs"][name] = measure(name, options)
        results = report["jobs"][name]
        cells = ""
        for peer in options.peers:
            medians = results[peer]["round_medians_ms"]
            spread = f"{min(medians):.4g} - {max(medians):.4g}"
            cells += f"{results[peer]['median_ms']:>14.4g}{spread:>18}{results[peer]['peak_mib']:>7.0f}"
        cells += f"{results['ratio']['median']:>13.2f}" if "ratio" in results else f"{'':13}"
        predicted = results.get("ours", {}).get("prediction")
        cells += f"{predicted['predicted_ms']:>11.4g}{100 * predicted['off']:>+8.1f}{100 * predicted['off_fastest']:>+11.1f}" if predicted else ""
        for limit in results.get("limit_ms", []):
            cells += f"{limit:>10.4g}{results['ours']['min_ms'] / limit:>7.2f}{results['ours']['median_ms'] / limit:>7.2f}"
        print(f"{name:10}{cells}", flush=True)
        write_report(options.json, report)


if __name__ == "__main__":
    main()
