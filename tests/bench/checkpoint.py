"""A checkpoint of GPT-2 124M with AdamW's states (1.49 GB): a trainer against accelerator.save_state and load_state and against
safetensors, against what the disk writes and reads, all in one run and one folder. Prints a table.

FOLDER=DIR: where to work and what is measured; its trainer is built once, and stays. Without it a folder is made here and
removed. ROUNDS=N: saves and resumes of each kind, 2 by default.
Seconds are medians. Their files are synced after each save, as ours are; saves without a sync are listed separately.

Nothing is deleted before the end, and every write goes where nothing was: on a disk that is notified of deletions, blocks that were
just freed are several times as fast as fresh ones, and whoever came second would win. So it takes 20 GB of disk for a while."""

import atexit
import json
import mmap
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from harness import MODELS, Trainer  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", 2))
FOLDER = pathlib.Path(os.environ.get("FOLDER") or tempfile.mkdtemp(prefix="accel-bench-", dir="."))
if not os.environ.get("FOLDER"):
    atexit.register(shutil.rmtree, FOLDER.resolve(), ignore_errors=True)
SCRATCH = FOLDER.resolve() / "scratch"
SHAPE = {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257}


def job(**checkpoint):
    return {"model": {"source": str(MODELS / "gpt2.c"), "config": {**SHAPE, "block_size": 64}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 1, "eval_fraction": 0},
            "optimizer": {"name": "adamw", "lr": 1e-4}, "training": {"steps": 100000},
            "checkpoint": {"total_limit": 1, **checkpoint}}


def build(background):
    """Saves in the background are so far apart that none waits for the one before, as in a run of any length."""
    name, checkpoint = ("background", {"every": 8}) if background else ("waiting", {"every": 2})
    checkpoint["background"] = background
    folder = FOLDER.resolve() / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.txt").write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 1000)
    trainer = Trainer(job(**checkpoint), folder)
    if not (folder / "trainer").exists():
        trainer.build()
    return trainer


def files(folder):
    return [path for path in pathlib.Path(folder).rglob("*") if path.is_file()]


def size_of(folder):
    return sum(path.stat().st_size for path in files(folder))


def sync(folder):
    for path in files(folder):
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def forget(folder):
    """The next read comes from the disk."""
    for path in files(folder):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def seconds(work):
    start = time.perf_counter()
    work()
    return note(time.perf_counter() - start)


def note(taken):
    """Progress, on standard error."""
    print(f"{sys._getframe(1).f_code.co_name}: {taken:.3f} s", file=sys.stderr, flush=True)
    return taken


def write_plain(size, name, flags=0):
    """What `dd bs=16M conv=fsync` does, from memory that is there; with O_DIRECT, `oflag=direct`."""
    block = mmap.mmap(-1, 16 << 20)
    block[:] = np.random.default_rng(0).integers(0, 256, len(block), dtype=np.uint8).tobytes()

    def work():
        file = os.open(SCRATCH / name, os.O_WRONLY | os.O_CREAT | flags)
        for at in range(0, size, len(block)):
            os.write(file, memoryview(block)[:size - at])
        os.fsync(file)
        os.close(file)

    return seconds(work)


def read_plain(folder):
    def work():
        for path in files(folder):
            with open(path, "rb", buffering=0) as file:
                while file.read(16 << 20):
                    pass

    return seconds(work)


def until(trainer, project, wanted, *flags):
    """Runs a trainer until a line of its metrics is `wanted`, and ends it there. Its lines by step."""
    metrics = project / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    lines = {}
    process = subprocess.Popen([trainer.folder / "trainer", "--project-dir", project, *flags], cwd=trainer.folder,
                               stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None and not any(map(wanted, lines.values())):
            time.sleep(0.02)
            text = metrics.read_text() if metrics.exists() else ""
            lines = {line["step"]: line for line in map(json.loads, text[:text.rfind("\n") + 1].splitlines())}
    finally:
        process.kill()
        process.wait()
    return lines


def save(project):
    """The seconds for which a save that steps wait for keeps them waiting: those of the save."""
    lines = until(build(False), project, lambda line: "save_stall_ms" in line)
    return note(max(lines.values(), key=lambda line: line["step"])["save_stall_ms"] / 1e3)


def stalls():
    """Seconds for which saves in the background stalled the steps."""
    trainer = build(True)
    steps = trainer.job["checkpoint"]["every"] * (ROUNDS + 1) + 1
    lines = until(trainer, SCRATCH / "stalls", lambda line: line["step"] == steps)
    return [note(line["save_stall_ms"] / 1e3) for line in lines.values() if "save_stall_ms" in line]


def resume(project, cold):
    """Seconds from the start of the process to its first step's end, and of the second step."""
    last = project / "checkpoints" / "checkpoint_0"
    if cold:
        forget(last)
    step = json.loads((last / "random_states_0.json").read_text())["step"]
    lines = until(build(True), project, lambda line: line["step"] == step + 2, "--resume", last)
    return note(lines[step + 1]["start_to_first_step_s"]), lines[step + 2]["step_ms"] / 1e3


def peers():
    model = GPT2LMHeadModel(GPT2Config(**SHAPE, n_positions=1024))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    rows = {"save, no sync": [], "save": [], "load, cold": [], "load": []}
    for number in range(ROUNDS):
        folder = SCRATCH / f"theirs_{number}"
        unsynced = seconds(lambda folder=folder: accelerator.save_state(folder))
        rows["save, no sync"].append(unsynced)
        rows["save"].append(unsynced + seconds(lambda folder=folder: sync(folder)))
        rows["load"].append(seconds(lambda folder=folder: accelerator.load_state(folder)))
        forget(folder)
        rows["load, cold"].append(seconds(lambda folder=folder: accelerator.load_state(folder)))
    state = {name: value.clone() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    for at, moments in enumerate(optimizer.state_dict()["state"].values()):
        state.update({f"{at}.{name}": value for name, value in moments.items()})
    single = {"save, no sync": [], "save": [], "load": []}
    for number in range(ROUNDS):
        folder = SCRATCH / f"single_{number}"
        folder.mkdir()
        unsynced = seconds(lambda folder=folder: save_file(state, folder / "all.safetensors"))
        single["save, no sync"].append(unsynced)
        single["save"].append(unsynced + seconds(lambda folder=folder: sync(folder)))
        single["load"].append(seconds(lambda folder=folder: [x.clone() for x in load_file(folder / "all.safetensors").values()]))
    return rows, single


def row(what, values, size=None):
    middle = statistics.median(values)
    rate = f"{size / middle / 1e9:6.2f} GB/s" if size else ""
    print(f"{what:52} {middle:8.3f} s  {rate:12} {min(values):8.3f} to {max(values):.3f}", flush=True)
    return middle


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    build(True), build(False)
    if "--build" in sys.argv:
        return
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir()
    try:
        measure()
    finally:
        shutil.rmtree(SCRATCH)


def measure():
    plain, direct, saves = [], [], []
    for number in range(ROUNDS + 1):
        plain.append(write_plain(1484 << 20, f"plain_{number}"))
        direct.append(write_plain(1484 << 20, f"direct_{number}", os.O_DIRECT))
        saves.append(save(SCRATCH / f"ours_{number}"))
    project = SCRATCH / "ours_0"
    one = project / "checkpoints" / "checkpoint_0"
    size = size_of(one)
    forget(one)
    read = [read_plain(one)]
    cold = [resume(project, True) for _ in range(ROUNDS + 1)]
    warm = [resume(project, False) for _ in range(ROUNDS)]
    stalled = stalls()
    rows, single = peers()
    print(f"{size / 1e9:.2f} GB, {torch.get_num_threads()} threads, {ROUNDS} rounds: median, range\n")
    row("the disk: write and sync", plain, 1484 << 20)
    best = row("the disk: write past the page cache", direct, 1484 << 20)
    row("the disk: read, cold", read, size)
    middle = row("ours: save, waiting for it", saves, size)
    print(f"  of the disk's speed: {100 * best / middle:.0f} %")
    row("ours: the first save's stall, in the background", stalled[:1])
    stall = row("ours: stall of a later one", stalled[1:])
    print(f"  of a minute: {100 * stall / 60:.2f} %")
    row("ours: start to the end of the first step, resumed, cold", [one[0] for one in cold])
    row("ours: the same, warm", [one[0] for one in warm])
    row("ours: a step", [one[1] for one in cold + warm])
    row("accelerate: save_state, no sync", rows["save, no sync"], size)
    row("accelerate: save_state, files synced after", rows["save"], size)
    row("accelerate: load_state, cold", rows["load, cold"], size)
    row("accelerate: load_state, warm", rows["load"], size)
    row("safetensors: save_file, no sync", single["save, no sync"], size)
    row("safetensors: save_file, synced after", single["save"], size)
    row("safetensors: load_file and copy, warm", single["load"], size)


if __name__ == "__main__":
    main()
