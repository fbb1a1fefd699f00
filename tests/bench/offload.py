"""A trainer with its optimizer's states on a disk, compared with the same one that has them in memory, in interleaved rounds: a step, the
update within it by the program's profile, and the transfers by themselves (offload_transfers.c). What is hidden of the transfers is what the
program does not wait for, and what a step is not longer by. Prints a table of medians over rounds.

PARAM=1: with the trained layers on the disk, too (offload.param); the transfers by themselves are then those of as many arrays, times the
bytes that a step moves over theirs, as layers are read twice.
FOLDER=DIR: where the states are, build/bench by default. ROUNDS=N: 5 by default. LAYERS=N: of a model of width 512, 16 by default (50 M parameters).
BATCH=N: samples of 64 tokens, 2 by default. CLIP=1: with the gradient's norm clipped, so that no update is within the backward. THREADS=N."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import MODELS, Trainer  # noqa: E402

ROUNDS, LAYERS, BATCH = (int(os.environ.get(name, value)) for name, value in (("ROUNDS", 5), ("LAYERS", 16), ("BATCH", 2)))
FOLDER = pathlib.Path(os.environ.get("FOLDER") or TREE / "build" / "bench").resolve()
SKIPPED, STEPS = 2, 8
PARAM = os.environ.get("PARAM", "0") != "0"


def job(offload, folder):
    job = {"model": {"source": str(MODELS / "nanogpt.c"), "config": {"n_layer": LAYERS, "n_head": 8, "n_embd": 512, "vocab_size": 256, "block_size": 64}},
           "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": BATCH, "eval_fraction": 0},
           "optimizer": {"name": "adamw", "lr": 1e-4}, "training": {"steps": SKIPPED + STEPS},
           "profile": {"schedule": {"skip_first": SKIPPED, "active": STEPS}, "output_trace_dir": "trace"}}
    if "CLIP" in os.environ:
        job["optimizer"]["clip_grad_norm"] = 1.0
    if "THREADS" in os.environ:
        job["devices"] = {"threads": int(os.environ["THREADS"])}
    if offload:
        job["parallelism"] = {"offload": {"optimizer": "nvme", "optimizer_nvme_path": str(folder)}}
    if offload and PARAM:
        job["parallelism"]["offload"].update(param="nvme", param_nvme_path=str(folder))
    return job


def build(offload, folder):
    trainer = Trainer(job(offload, folder), tempfile.mkdtemp(dir=folder))
    (trainer.folder / "corpus.txt").write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 1000)
    trainer.build(cflags=None)
    return trainer


def measure(trainer):
    """Milliseconds of a step, the median over the steps; of its updates and of its waits for the disk, means."""
    shutil.rmtree(trainer.folder / "run", ignore_errors=True)
    steps = [line["step_ms"] for line in trainer.run("--quiet") if line.get("step", 0) > SKIPPED]
    events = json.loads(next(trainer.folder.rglob("profile_0.json")).read_text())["traceEvents"]
    parts = {name: sum(event["dur"] / 1e3 for event in events if event.get("name") == name) / STEPS for name in ("update", "wait_disk")}
    return statistics.median(steps), *parts.values()


def moved(disk):
    """Bytes that a step reads and writes."""
    return disk["read_bytes_per_step"] + disk["written_bytes_per_step"]


def transfers(program, disk, folder):
    bucket, arrays = (disk["bytes"] - disk["layers_bytes"]) // disk["buckets"] // 2, 3 if PARAM else 2
    lines = subprocess.check_output([program, folder, str(arrays), str(disk["buckets"]), str(bucket), str(disk["slots"]), str(STEPS)], text=True)
    return statistics.median(float(line) for line in lines.split()) * moved(disk) / (2 * arrays * bucket * disk["buckets"])


def main(folder):
    program = folder / "offload_transfers"
    libraries = (TREE / "build" / "config" / "runtime.libs").read_text().split()
    subprocess.run(["cc", "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O2", f"-I{TREE}", "-fopenmp", "-o", program, TREE / "tests" / "bench" / "offload_transfers.c",
                    TREE / "build" / "libaccel-runtime.a", *libraries, "-ljansson", "-lm"], check=True)
    memory, disk = build(False, folder), build(True, folder)
    figures = disk.plan()["disk"]
    rows = []
    for _ in range(ROUNDS):
        (step, update, _), (disk_step, disk_update, waits), alone = measure(memory), measure(disk), transfers(program, figures, folder)
        rows.append((step, disk_step, update, disk_update, waits, alone, 1 - waits / alone, 1 - (disk_step - step) / alone))
        print(*(f"{value:.3f}" for value in rows[-1]), file=sys.stderr, flush=True)
    step, disk_step, update, disk_update, waits, alone, hidden, saved = (statistics.median(column) for column in zip(*rows, strict=True))
    ratios = sorted(row[1] / row[0] for row in rows)
    print(f"""| | {"layers and states" if PARAM else "states"} in memory | on a disk |
|---|---|---|
| step | {step:.0f} ms | {disk_step:.0f} ms, {statistics.median(ratios):.2f} times ({ratios[0]:.2f} to {ratios[-1]:.2f}) |
| update | {update:.0f} ms | {disk_update:.0f} ms |
| transfers alone: {moved(figures) / 1e6:.0f} MB | | {alone:.0f} ms, {moved(figures) / 1e6 / alone:.2f} GB/s |
| waits for the disk | | {waits:.0f} ms |
| hidden of the transfers, by waits | | {100 * hidden:.0f} % |
| the same, by steps | | {100 * saved:.0f} % |""")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        main(pathlib.Path(name))
