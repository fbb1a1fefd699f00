"""Loss curves of a GPT on a real text in float32, bf16 and each recipe of 8 bits (docs/precision.md): the same start, the same
batches, the same optimizer; and bf16 of two other seeds, for how far runs are apart anyway. The text is that of texts.py. A run
that is in the folder is continued, or taken as it is; `accel-gen report FOLDER/*/run -o curves.html` draws all of them.

usage: fp8_curves.py [--steps 2000] [--folder build/bench/fp8] [run ...]"""

import argparse
import json
import pathlib
import subprocess
import sys

from texts import write_texts

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVERY = 250  # steps between evaluations, and between checkpoints
MODEL = {"n_layer": 4, "n_head": 4, "n_embd": 64, "vocab_size": 256, "block_size": 64, "bias": False}


def fp8(**how):
    return {"mixed_precision": "fp8", "fp8": how}


RUNS = {
    "fp32": {"mixed_precision": "no"},
    "bf16": {"mixed_precision": "bf16"},
    "bf16 seed 2": {"mixed_precision": "bf16"},
    "bf16 seed 3": {"mixed_precision": "bf16"},
    "ao tensorwise": fp8(backend="ao"),
    "ao rowwise": fp8(backend="ao", recipe="rowwise"),
    "ao rowwise_with_gw_hp": fp8(backend="ao", recipe="rowwise_with_gw_hp"),
    "ao mxfp8": fp8(backend="ao", recipe="mxfp8"),
    "te HYBRID": fp8(backend="te", amax_history_len=16, amax_compute_algo="max"),
    "te HYBRID wgrad": fp8(backend="te", amax_history_len=16, amax_compute_algo="max", override_linear_precision="wgrad"),
    "te E4M3": fp8(backend="te", amax_history_len=16, amax_compute_algo="max", fp8_format="E4M3"),
}


def job_of(name, steps):
    seed = int(name.partition(" seed ")[2] or 1)
    return {
        "model": {"source": str(ROOT / "examples/models/nanogpt.c"), "config": MODEL},
        "data": {"train": {"path": "../text", "format": "bytes"}, "sequence_length": 64, "batch_size": 8, "eval_fraction": 0.1},
        "optimizer": {"name": "adamw", "lr": 2e-3, "weight_decay": 0.1, "clip_grad_norm": 1.0},
        "schedule": {"name": "cosine", "warmup_steps": steps // 20},
        "training": {"steps": steps, "seed": seed, "eval_interval": EVERY, "eval_iters": 50},
        "checkpoint": {"every": EVERY, "project_dir": "run", "resume": "auto"},
        "precision": RUNS[name],
    }


def run(name, steps, folder):
    """The metrics of a run, by step."""
    place = folder / name.replace(" ", "_")
    place.mkdir(parents=True, exist_ok=True)
    metrics = place / "run/metrics.jsonl"
    if not (place / "done").exists():
        (place / "job.yaml").write_text(json.dumps(job_of(name, steps)))
        subprocess.run([ROOT / "build/accel-gen", "build", "job.yaml", "-o", "trainer"], cwd=place, check=True)
        subprocess.run(["./trainer"], cwd=place, check=True, capture_output=True)
        (place / "done").touch()
    rows = {}
    for line in metrics.read_text().splitlines():
        row = json.loads(line)
        rows.setdefault(row.get("step"), {}).update(row)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/bench/fp8")
    parser.add_argument("names", nargs="*", metavar="run", default=list(RUNS))
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "text").exists():
        write_texts(folder)
    for name in options.names:
        rows = run(name, options.steps, folder)
        losses = [f"{step} {row['eval_loss']:.4f}" for step, row in sorted(rows.items()) if "eval_loss" in row]
        print(f"{name}: {', '.join(losses)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
