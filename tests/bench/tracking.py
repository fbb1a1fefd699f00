"""What trackers cost: the time of a step with all of them and a line each step, and with metrics.jsonl alone, in pairs of
runs that take turns; the median of the pairs' ratios.

usage: tests/bench/tracking.py [PAIRS]"""

import json
import pathlib
import statistics
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / name) for name in ("program", "runtime", ".")]

import subprocess  # noqa: E402

from harness import MODELS, Trainer  # noqa: E402

STEPS = 300


def trainer_of(tracking):
    job = {"model": {"source": str(MODELS / "nanogpt.c"),
                     "config": {"n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 256, "block_size": 64, "bias": False}},
           "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 12},
           "optimizer": {"name": "adamw", "lr": 1e-3}, "training": {"steps": STEPS}, "tracking": {"every": 1, **tracking}}
    trainer = Trainer(job)
    (trainer.folder / "corpus.txt").write_bytes(bytes(range(256)) * 200)
    trainer.build(cflags=None)
    return trainer


def seconds(trainer):
    """Of the whole process, and the mean and the median of steps but the first."""
    began = time.perf_counter()
    subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, check=True, stdout=subprocess.DEVNULL)
    whole = time.perf_counter() - began
    rows = [json.loads(line) for line in (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]
    times = [row["step_ms"] / 1e3 for row in rows[1:]]
    return whole, statistics.fmean(times), statistics.median(times)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    without, of_all = trainer_of({}), trainer_of({"log_with": ["all"]})
    ratios = []
    for _ in range(pairs):
        a, b = seconds(without), seconds(of_all)
        ratios.append([y / x for x, y in zip(a, b)])
    for i, what in enumerate(("whole run", "mean step", "median step")):
        print(f"{what}: all trackers / none, median of {pairs} pairs {statistics.median(r[i] for r in ratios):.4f}, "
              f"from {min(r[i] for r in ratios):.4f} to {max(r[i] for r in ratios):.4f}")


if __name__ == "__main__":
    main()
