"""A trainer of adapters whose frozen layers stream from the file of the weights (memory.device_map), compared with the same one that has them
in memory, in pairs of runs: the median of a step's times and the peak of memory. Warm: the file is in the page cache. Cold: it is dropped
from there before each run, and at each step. Prints a table of medians over pairs, with the range of the ratios.

usage: streamed_lora.py   RUNS=3, LAYERS=16, WIDTH=512, BATCH=4 (samples of 64 tokens), STEPS=8, THREADS=1, FOLDER=build/bench"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import MEASURED, MODELS, Trainer  # noqa: E402

RUNS, LAYERS, WIDTH, BATCH, STEPS, THREADS = (int(os.environ.get(name, value)) for name, value in (
    ("RUNS", 3), ("LAYERS", 16), ("WIDTH", 512), ("BATCH", 4), ("STEPS", 8), ("THREADS", 1)))
FOLDER = pathlib.Path(os.environ.get("FOLDER") or TREE / "build" / "bench").resolve()
SKIPPED = 2


def build(folder, weights=None, places=None):
    job = {"model": {"source": str(MODELS / "nanogpt.c"),
                     "config": {"n_layer": LAYERS, "n_head": 8, "n_embd": WIDTH, "vocab_size": 256, "block_size": 64}},
           "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": BATCH, "eval_fraction": 0},
           "optimizer": {"name": "adamw", "lr": 1e-4}, "training": {"steps": SKIPPED + STEPS if weights else 1},
           "devices": {"threads": THREADS}, "memory": {"activation_checkpointing": "all"}}
    if weights:
        job["model"].update(weights=str(weights), lora={"rank": 8, "alpha": 16, "targets": ["c_attn", "c_fc"], "merge": False})
        job["memory"]["device_map"] = places
    trainer = Trainer(job, tempfile.mkdtemp(dir=folder))
    (trainer.folder / "corpus.txt").write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 1000)
    trainer.build(cflags=None)
    return trainer


def drop(file):
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(trainer, file, cold):
    """Milliseconds of a step, and MiB of the peak."""
    shutil.rmtree(trainer.folder / "run", ignore_errors=True)
    if cold:
        drop(file)
    else:
        file.read_bytes()
    process = subprocess.Popen([*MEASURED, "peak", trainer.folder / "trainer", "--quiet"], cwd=trainer.folder)
    while process.poll() is None:
        if cold:
            drop(file)
        time.sleep(0.05)
    lines = [json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [line["step_ms"] for line in lines if line.get("step", 0) > SKIPPED]
    return statistics.median(steps), int((trainer.folder / "peak").read_text()) / 2**20


def main(folder):
    first = build(folder)
    first.run("--quiet")
    file = first.folder / "run" / "model.safetensors"
    memory, disk = build(folder, file, {"*": "cpu"}), build(folder, file, {"*.h.*": "disk", "*": "cpu"})
    print(f"{file.stat().st_size / 1e6:.0f} MB of weights, {BATCH * 64} tokens a step\n\n| | in memory | streamed | times as long |\n|---|---|---|---|")
    for cold in (False, True):
        rows = [(*measure(memory, file, False), *measure(disk, file, cold)) for _ in range(RUNS)]
        step, peak, disk_step, disk_peak = (statistics.median(column) for column in zip(*rows, strict=True))
        ratios = sorted(row[2] / row[0] for row in rows)
        print(f"| a step, the file {'on the disk' if cold else 'in the page cache'} | {step:.0f} ms | {disk_step:.0f} ms "
              f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |", flush=True)
        print(f"| peak of memory | {peak:.0f} MiB | {disk_peak:.0f} MiB | |", flush=True)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        main(pathlib.Path(name))
