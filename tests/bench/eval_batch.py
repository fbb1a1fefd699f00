"""How long an evaluation takes with batches of other sizes than those of training (data.eval_batch_size): processor time of
a sample of one thread, as ratios to batches of the training's size in rounds that take turns, and the memory that the plan adds.

usage: eval_batch.py [--rounds 5] [--sizes 1,4,16]   sizes: times the batch of training

A run evaluates twice. The time of a sample is what runs with three times as many batches take in addition."""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile

import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
TEXT = {"train": {"path": "text.bin", "format": "bytes"}, "sequence_length": 64, "eval_fraction": 0.9}
ROWS = {"train": {"path": "rows.csv", "format": "csv"}, "features": 64, "eval_fraction": 0.9}
# Model, config, data, the batch of training, and how many samples the shorter evaluation has.
CASES = {
    "nanogpt 4 x 128": ("nanogpt", {"n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 256, "block_size": 64, "bias": False}, TEXT, 4, 256),
    "mlp_table 2 x 64": ("mlp_table", {"n_layer": 2, "width": 64, "n_classes": 3}, ROWS, 8, 16384),
    "resnet 8 x 8": ("resnet", {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 3, "embedding_size": 16, "stages": 2,
                                "hidden_sizes.0": 16, "hidden_sizes.1": 32, "depths.0": 1, "depths.1": 1}, ROWS, 8, 2048),
}
EVALUATIONS = 2


def write_data(folder):
    rng = np.random.default_rng(1)
    (folder / "text.bin").write_bytes(bytes(rng.integers(97, 123, 200_000).astype(np.uint8)))
    rows = rng.normal(size=(4000, 64)).round(3)
    (folder / "rows.csv").write_text("".join(",".join(map(str, row)) + f",{i % 3}\n" for i, row in enumerate(rows)))


def write_job(folder, name, times):
    model, config, data, batch, samples = CASES[name]
    size = times * batch
    job = {"model": {"source": str(TREE / "examples" / "models" / f"{model}.c"), "config": config},
           "data": {**data, "batch_size": batch, **({"eval_batch_size": size} if times > 1 else {})},
           "optimizer": {"name": "adamw", "lr": 1e-3}, "devices": {"threads": 1}, "checkpoint": {"project_dir": "run"},
           "training": {"steps": EVALUATIONS, "eval_interval": 1, "eval_iters": max(samples // size, 1)}}
    path = folder / "job.yaml"
    path.write_text(json.dumps(job))
    return path, job["training"]["eval_iters"]


def built(folder, name, times):
    """Programs of few batches and of three times as many, samples between them, bytes of the arena."""
    path, iters = write_job(folder, name, times)
    programs = []
    for factor in (1, 3):
        programs.append(folder / f"{name.split()[0]}-{times}-{factor}")
        subprocess.run([GENERATOR, "build", path, "-o", programs[-1], "--set", f"training.eval_iters={factor * iters}"], check=True)
    plan = json.loads(subprocess.check_output([GENERATOR, "plan", path, "--json"]))
    return programs, 2 * EVALUATIONS * iters * times * CASES[name][3], plan["arena_bytes"]["total"]


def seconds(folder, program):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, "--resume", "never"], cwd=folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="1,4,16")
    arguments = parser.parse_args()
    sizes = [int(word) for word in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="accel-eval-batch-") as name:
        folder = pathlib.Path(name)
        write_data(folder)
        print("| model | batch | us a sample | ratio, and its range | arena, MiB |\n|---|---|---|---|---|")
        for case in CASES:
            there = {times: built(folder, case, times) for times in sizes}
            rounds = [{times: (seconds(folder, programs[1]) - seconds(folder, programs[0])) / samples
                       for times, (programs, samples, _) in there.items()} for _ in range(arguments.rounds)]
            for times in sizes:
                ratios = [row[times] / row[sizes[0]] for row in rounds]
                print(f"| {case} | {times * CASES[case][3]} | {statistics.median(row[times] for row in rounds) * 1e6:.1f} "
                      f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {there[times][2] / 2**20:.1f} |", flush=True)


if __name__ == "__main__":
    main()
