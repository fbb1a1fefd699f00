"""What examples/jobs/llama.yaml, bert.yaml and others reach on a real text in the loss of its evaluation, against the same
models trained alike in PyTorch: the same split, optimizer and schedule, other starts and orders. The text is the C library's
headers and this project's pages; `--lora` continues with the first model's weights on other text, by adapters.

usage: texts.py [--steps 300] [--lora] [llama|bert|... ...]"""

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
SHARE, ROUNDS = 0.1, 20


def job_of(name, steps, folder):
    job = yaml.safe_load((ROOT / f"examples/jobs/{name}.yaml").read_text())
    job["model"]["source"] = str(ROOT / "examples/models" / f"{name}.c")
    job["optimizer"] = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 1.0}
    job["schedule"] = {"name": "cosine", "warmup_steps": steps // 10}
    job["data"] |= {"train": {"path": str(folder / "text"), "format": "bytes"}, "eval_fraction": SHARE}
    job["training"] = {"steps": steps, "seed": 1, "eval_interval": steps, "eval_iters": ROUNDS}
    return job


def ours(job, folder, run):
    job["checkpoint"] = {"project_dir": str(folder / run)}
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([ROOT / "build/accel-gen", "build", "job.yaml", "-o", "trainer"], cwd=folder, check=True)
    subprocess.run(["./trainer"], cwd=folder, check=True, capture_output=True)
    lines = [json.loads(line) for line in (folder / run / "metrics.jsonl").read_text().splitlines()]
    return [line["eval_loss"] for line in lines if "eval_loss" in line]


def windows(data, job, rng):
    length = job["data"]["sequence_length"]
    starts = rng.integers(0, len(data) - length - 1, job["data"]["batch_size"])
    rows = torch.from_numpy(np.stack([data[at : at + length + 1] for at in starts]).astype(np.int64))
    tokens, targets = rows[:, :-1], rows[:, 1:]
    masking = job["data"].get("masking")
    if masking is None:
        return tokens, targets
    draw, what = torch.rand(tokens.shape), torch.rand(tokens.shape)  # 15 %: of them 80 % hidden, 10 % random, 10 % kept
    hidden = torch.where(what < 0.8, masking["mask_token"], torch.where(what < 0.9, torch.randint(256, tokens.shape), tokens))
    return torch.where(draw < 0.15, hidden, tokens), torch.where(draw < 0.15, tokens, -100)


def theirs(name, job):
    torch.manual_seed(1)
    rng, steps, warmup = np.random.default_rng(1), job["training"]["steps"], job["schedule"]["warmup_steps"]
    data = np.fromfile(job["data"]["train"]["path"], np.uint8)
    count = int(len(data) * (1 - SHARE))
    model, _, loss_of = made(name)
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (step + 1) / warmup if step < warmup else (
        1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(*windows(data[:count], job, rng)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        model.eval()
        return sum(loss_of(*windows(data[count:], job, rng)).item() for _ in range(ROUNDS)) / ROUNDS


def adapted(name, steps, folder):
    """The loss on other text of the weights that were trained, and after as many steps of adapters of rank 8."""
    job = job_of(name, steps, folder)
    job["data"]["train"]["path"] = str(folder / "other")
    job["model"] |= {"weights": str(folder / "run/model.safetensors"), "lora": {"rank": 8, "alpha": 16, "targets": ["q_proj", "v_proj"]}}
    job["training"]["eval_interval"] = steps // 2
    return ours(job, folder, "adapted")


def write_texts(folder):
    """Headers of the C library and pages of this project, in an order of chance; and other text: Python's own."""
    files = sorted([*pathlib.Path("/usr/include").glob("*.h"), *(ROOT / "docs").glob("*.md"), *(ROOT / "include").rglob("*.h")])
    np.random.default_rng(1).shuffle(files)
    (folder / "text").write_bytes(b"".join(path.read_bytes() for path in files if path.is_file())[:2_000_000])
    other = sorted(pathlib.Path(json.__file__).parents[1].glob("*.py"))
    (folder / "other").write_bytes(b"".join(path.read_bytes() for path in other)[:2_000_000])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("names", nargs="*", default=["llama", "bert"])
    options = parser.parse_args()
    torch.set_num_threads(2)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-texts-"))
    write_texts(folder)
    good = True
    for i, name in enumerate(options.names):
        job = job_of(name, options.steps, folder)
        mine = ours(job, folder, "run" if i == 0 else name)[-1]
        other = theirs(name, job)
        print(f"{name}: {mine:.4f} against {other:.4f}", flush=True)
        good &= mine <= 1.05 * other
    if options.lora:
        losses = adapted(options.names[0], options.steps, folder)
        print(f"{options.names[0]} on other text, by adapters: {' to '.join(f'{loss:.4f}' for loss in losses)}", flush=True)
        good &= losses[-1] < losses[0]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
