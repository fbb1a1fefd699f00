"""What examples/jobs/resnet.yaml and vit.yaml reach on digits, in accuracy, and unet.yaml in the loss of its evaluation,
against the same models trained alike in PyTorch: the same split, optimizer and schedule, other starts and orders.

usage: digits.py [--seeds 3] [resnet|vit|unet ...]"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import yaml
from model_peer import made

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = 0.2  # of the rows to evaluate


def job_of(name):
    job = yaml.safe_load((ROOT / f"examples/jobs/{name}.yaml").read_text())
    job["model"]["source"] = str(ROOT / "examples/models" / f"{name}.c")
    job["optimizer"]["lr"] = float(job["optimizer"]["lr"])  # PyYAML takes 3e-3 for text
    return job


def ours(name, folder, seed):
    job = job_of(name)
    steps = job["training"]["steps"]
    job["training"] |= {"seed": seed, "eval_interval": steps, "eval_iters": 20 if name == "unet" else "all"}
    if name != "unet":
        job["training"]["metrics"] = ["accuracy"]
    job["checkpoint"] = {"project_dir": "run"}
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([ROOT / "build/accel-gen", "build", "job.yaml", "-o", "trainer"], cwd=folder, check=True)
    subprocess.run(["./trainer"], cwd=folder, check=True, capture_output=True)
    lines = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    key = "eval_loss" if name == "unet" else "eval_accuracy"
    return next(line[key] for line in reversed(lines) if key in line)


def theirs(name, rows, labels, count, seed):
    job = job_of(name)
    steps, batch, warmup = job["training"]["steps"], job["data"]["batch_size"], job["schedule"]["warmup_steps"]
    torch.manual_seed(seed)
    model, _, loss_of = made(name)
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=job["optimizer"]["lr"], weight_decay=job["optimizer"]["weight_decay"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup if step < warmup else (
        1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2)
    order = iter(())
    for _ in range(steps):
        at = [next(order, None) for _ in range(batch)]
        if at[-1] is None:
            order = iter(torch.randperm(count).tolist())
            at = [next(order) for _ in range(batch)]
        optimizer.zero_grad()
        loss_of(rows[at], labels[at]).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        model.eval()
        if name == "unet":
            return sum(loss_of(rows[count:], labels[count:]).item() for _ in range(20)) / 20
        return (model(rows[count:]).logits.argmax(-1) == labels[count:]).float().mean().item()


def compare(name, seeds, folder, rows, labels, count):
    """Prints each seed's pair; whether ours are no worse in the mean than half a point, or 5 % of the loss."""
    pairs = [(ours(name, folder, seed), theirs(name, rows, labels, count, seed)) for seed in range(1, seeds + 1)]
    for seed, (mine, other) in enumerate(pairs, 1):
        print(f"{name} seed {seed}: {mine:.4f} against {other:.4f}", flush=True)
    mine, other = (sum(side) / seeds for side in zip(*pairs))
    print(f"{name} mean: {mine:.4f} against {other:.4f}", flush=True)
    return mine <= 1.05 * other if name == "unet" else mine >= other - 0.005


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("names", nargs="*", default=["resnet", "vit", "unet"])
    options = parser.parse_args()
    torch.set_num_threads(2)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-digits-"))
    table = subprocess.run([sys.executable, ROOT / "examples/jobs/digits.py"], check=True, capture_output=True, text=True).stdout
    (folder / "digits.csv").write_text(table)
    data = np.loadtxt(folder / "digits.csv", delimiter=",", dtype=np.float32)
    rows, labels = torch.tensor(data[:, :-1]).reshape(-1, 1, 8, 8), torch.tensor(data[:, -1]).long()
    count = len(rows) - int(math.ceil(len(rows) * SHARE))
    return 0 if all([compare(name, options.seeds, folder, rows, labels, count) for name in options.names]) else 1


if __name__ == "__main__":
    sys.exit(main())
