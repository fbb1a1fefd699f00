"""The accuracy that examples/jobs/resnet.yaml reaches on digits beside transformers' class trained alike in PyTorch: the
same split, optimizer and schedule, other starts and orders. `digits.py [SEEDS]`."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import yaml
from transformers import ResNetConfig, ResNetForImageClassification

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, BATCH, LR, WARMUP, DECAY = 400, 64, 3e-3, 20, 0.05


def ours(folder, seed):
    job = yaml.safe_load((ROOT / "examples/jobs/resnet.yaml").read_text())
    job["model"]["source"] = str(ROOT / "examples/models/resnet.c")
    job["training"] |= {"seed": seed, "eval_interval": STEPS, "eval_iters": "all"}
    job["optimizer"]["lr"] = LR  # PyYAML takes 3e-3 for text
    job["checkpoint"] = {"project_dir": "run"}
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([ROOT / "build/accel-gen", "build", "job.yaml", "-o", "trainer"], cwd=folder, check=True)
    subprocess.run(["./trainer"], cwd=folder, check=True, capture_output=True)
    lines = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    return next(line["eval_accuracy"] for line in reversed(lines) if "eval_accuracy" in line)


def theirs(rows, labels, count, seed):
    torch.manual_seed(seed)
    model = ResNetForImageClassification(ResNetConfig(num_channels=1, embedding_size=32, hidden_sizes=[32, 64], depths=[2, 2],
                                                      layer_type="basic", num_labels=10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / WARMUP if step < WARMUP else (
        1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2)
    order = iter(())
    for _ in range(STEPS):
        at = [next(order, None) for _ in range(BATCH)]
        if at[-1] is None:
            order = iter(torch.randperm(count).tolist())
            at = [next(order) for _ in range(BATCH)]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(rows[at]).logits, labels[at]).backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        return (model.eval()(rows[count:]).logits.argmax(-1) == labels[count:]).float().mean().item()


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    torch.set_num_threads(2)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-digits-"))
    table = subprocess.run([sys.executable, ROOT / "examples/jobs/digits.py"], check=True, capture_output=True, text=True).stdout
    (folder / "digits.csv").write_text(table)
    data = np.loadtxt(folder / "digits.csv", delimiter=",", dtype=np.float32)
    rows, labels = torch.tensor(data[:, :-1]).reshape(-1, 1, 8, 8), torch.tensor(data[:, -1]).long()
    count = len(rows) - int(math.ceil(len(rows) * 0.2))
    pairs = [(ours(folder, seed), theirs(rows, labels, count, seed)) for seed in range(1, seeds + 1)]
    for seed, (mine, other) in enumerate(pairs, 1):
        print(f"seed {seed}: {100 * mine:.2f} % beside {100 * other:.2f} %")
    means = [100 * sum(side) / seeds for side in zip(*pairs)]
    print(f"mean: {means[0]:.2f} % beside {means[1]:.2f} %")
    return 0 if means[0] >= means[1] - 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
