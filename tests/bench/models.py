"""Each model of examples/jobs beside the same one in PyTorch, eager and compiled: a step's time and the largest memory, in
interleaved rounds. Every run is a process of its own, of which the first steps are left out.

usage: models.py [--rounds 3] [--steps 20] [--threads 2] [--peers ours,eager,compile] [--precision no|bf16] [--json FILE] [NAME ...]"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

import numpy as np
import yaml
from peers import ROOT, WORK, Run, ratios, summary

SKIPPED = 4
# Those that model_peer.py knows, which is not read here: a process that starts others counts what it had itself.
NAMES = ["gpt_neox", "llama", "qwen3", "mistral", "gemma", "mixtral", "qwen_moe", "bert", "t5", "mamba", "lstm", "gru", "vit", "resnet",
         "unet", "table", "gcn"]
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
    """The trainer of a job, with the optimizer that its peers have."""
    folder = pathlib.Path(WORK, "models", name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job = yaml.safe_load(pathlib.Path(ROOT, "examples/jobs", f"{name}.yaml").read_text())
    job["model"]["source"] = str(pathlib.Path(ROOT, "examples/jobs", job["model"]["source"]).resolve())
    job["model"]["config"] |= CONFIG.get(name, {})
    job["data"] |= {"train": data_of(job, folder), "eval_fraction": 0}
    job |= {"optimizer": {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 1.0}, "schedule": {"name": "constant"},
            "training": {"steps": options.steps, "seed": 1}, "checkpoint": {"project_dir": "run"}, "tracking": {"every": 1},
            "precision": {"mixed_precision": options.precision}, "devices": {"threads": options.threads}}
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([os.path.join(ROOT, "build/accel-gen"), "build", "job.yaml", "-o", "trainer"], cwd=folder, check=True)
    return folder


def ours(folder, options):
    def parse(line):  # a log line starts with the step's number; the exact time stands in metrics.jsonl
        return 0.0 if line.split()[:1] and line.split()[0].isdigit() else None

    shutil.rmtree(folder / "run", ignore_errors=True)
    run = Run(["./trainer"], parse, folder=folder, environment={"OMP_NUM_THREADS": str(options.threads)})
    run.steps = [json.loads(line)["step_ms"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return run


def theirs(name, mode, options):
    command = [sys.executable, os.path.join(ROOT, "tests/bench/model_peer.py"), name, mode, str(options.steps), str(options.threads),
               options.precision]
    return Run(command, lambda line: json.loads(line)["step_ms"] if line.startswith("{") else None,
               environment={"OMP_NUM_THREADS": str(options.threads)})


def measure(name, options):
    folder, runs = build(name, options), {peer: [] for peer in options.peers}
    for _ in range(options.rounds):
        for peer in options.peers:
            runs[peer].append(ours(folder, options) if peer == "ours" else theirs(name, peer, options))
    results = {peer: summary(types.SimpleNamespace(skipped=SKIPPED), done) for peer, done in runs.items()}
    ratio = ratios(results)
    return results | ({"ratio": ratio} if ratio else {})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="ours,eager,compile", type=lambda text: text.split(","))
    parser.add_argument("--precision", choices=("no", "bf16"), default="no")
    parser.add_argument("--json")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    options = parser.parse_args()
    head = "".join(f"{peer + ' ms':>14}{'range':>16}{'MiB':>7}" for peer in options.peers)
    print(f"{'':10}{head}{'ours / best':>13}")
    everything = {}
    for name in options.names or NAMES:
        results = everything[name] = measure(name, options)
        cells = ""
        for peer in options.peers:
            medians = results[peer]["round_medians_ms"]
            spread = f"{min(medians):.1f} - {max(medians):.1f}"
            cells += f"{results[peer]['median_ms']:>14.1f}{spread:>16}{results[peer]['peak_mib']:>7.0f}"
        print(f"{name:10}{cells}" + (f"{results['ratio']['median']:>13.2f}" if "ratio" in results else ""), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
