"""A checkpoint of GPT-2 124M with AdamW's states (1.49 GB): a trainer beside accelerator.save_state and load_state and beside
safetensors, against what the disk writes and reads, all in one run and one folder. Prints a table.

FOLDER=DIR: where to work and what is measured; its trainer is built once. ROUNDS=N: saves and resumes of each kind, 2 by default.
The table's seconds are medians. Their files are synced after each save, as ours are; saves without a sync stand apart."""

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

import numpy as np  # noqa: E402
import torch  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from harness import MODELS, Trainer  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import GPT2Config, GPT2LMHeadModel  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", 2))
FOLDER = pathlib.Path(os.environ.get("FOLDER") or tempfile.mkdtemp(prefix="accel-bench-", dir="."))
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
    place = FOLDER.resolve() / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "corpus.txt").write_bytes(b"the quick brown fox jumps over the lazy dog\n" * 1000)
    trainer = Trainer(job(**checkpoint), place)
    if not (place / "trainer").exists():
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
    return time.perf_counter() - start


def write_plain(size):
    """What `dd bs=16M conv=fsync` does, from memory that is there."""
    block = np.random.default_rng(0).integers(0, 256, 16 << 20, dtype=np.uint8).tobytes()

    def work():
        with open(FOLDER / "plain", "wb", buffering=0) as file:
            for _ in range(size // len(block)):
                file.write(block)
            os.fsync(file.fileno())

    taken = seconds(work)
    return taken * size / (size // len(block) * len(block))


def read_plain(folder):
    def work():
        for path in files(folder):
            with open(path, "rb", buffering=0) as file:
                while file.read(16 << 20):
                    pass

    return seconds(work)


def ours(background):
    """Seconds that saves kept the steps waiting, the first one apart; without the copy in the background that is the save."""
    trainer = build(background)
    shutil.rmtree(trainer.folder / "run", ignore_errors=True)
    steps = trainer.job["checkpoint"]["every"] * (ROUNDS + 1) + 1
    stalls = [line["save_stall_ms"] / 1e3 for line in trainer.run("--steps", str(steps)) if "save_stall_ms" in line]
    return trainer, stalls


def resume(trainer, cold):
    """Seconds from the start of the process to its first step's end, and of the second step."""
    last = next((trainer.folder / "run" / "checkpoints").iterdir())
    metrics = trainer.folder / "run" / "metrics.jsonl"
    if cold:
        forget(last)
    step = json.loads((last / "random_states_0.json").read_text())["step"]
    with subprocess.Popen([trainer.folder / "trainer", "--resume", last, "--steps", str(step + 50)], cwd=trainer.folder,
                          stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            lines = [json.loads(line) for line in metrics.read_text().splitlines(True) if line.endswith("\n")]
            told = {line["step"]: line for line in lines}
            if step + 2 in told:
                break
            time.sleep(0.05)
        process.kill()
    return told[step + 1]["start_to_first_step_s"], told[step + 2]["step_ms"] / 1e3


def peers():
    model = GPT2LMHeadModel(GPT2Config(**SHAPE, n_positions=1024))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    accelerator = Accelerator(cpu=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    place = FOLDER / "theirs"
    rows = {"save, no sync": [], "save": [], "load, cold": [], "load": []}
    for _ in range(ROUNDS):
        shutil.rmtree(place, ignore_errors=True)
        unsynced = seconds(lambda: accelerator.save_state(place))
        rows["save, no sync"].append(unsynced)
        rows["save"].append(unsynced + seconds(lambda: sync(place)))
        rows["load"].append(seconds(lambda: accelerator.load_state(place)))
        forget(place)
        rows["load, cold"].append(seconds(lambda: accelerator.load_state(place)))
    shutil.rmtree(place)
    state = {name: value.clone() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    for at, moments in enumerate(optimizer.state_dict()["state"].values()):
        state.update({f"{at}.{name}": value for name, value in moments.items()})
    single = {"save, no sync": [], "save": [], "load": []}
    for _ in range(ROUNDS):
        place.mkdir()
        unsynced = seconds(lambda: save_file(state, place / "all.safetensors"))
        single["save, no sync"].append(unsynced)
        single["save"].append(unsynced + seconds(lambda: sync(place)))
        single["load"].append(seconds(lambda: [value.clone() for value in load_file(place / "all.safetensors").values()]))
        shutil.rmtree(place)
    return rows, single


def row(what, values, size=None):
    middle = statistics.median(values)
    rate = f"{size / middle / 1e9:6.2f} GB/s" if size else ""
    print(f"{what:52} {middle:8.3f} s  {rate:12} {min(values):8.3f} to {max(values):.3f}", flush=True)
    return middle


def main():
    build(True), build(False)
    if "--build" in sys.argv:
        return
    write_plain(1 << 28)
    plain = [write_plain(1490 << 20)]
    waiting, saves = ours(False)
    one = next((waiting.folder / "run" / "checkpoints").iterdir())
    size = size_of(one)
    forget(one)
    read = [read_plain(one)]
    plain.append(write_plain(size))
    cold = [resume(waiting, True) for _ in range(ROUNDS)]
    warm = [resume(waiting, False) for _ in range(ROUNDS)]
    shutil.rmtree(waiting.folder / "run")
    background, stalls = ours(True)
    shutil.rmtree(background.folder / "run")
    shutil.rmtree(background.folder / "run", ignore_errors=True)
    rows, single = peers()
    plain.append(write_plain(size))
    print(f"{size / 1e9:.2f} GB, {torch.get_num_threads()} threads, {ROUNDS} rounds: median, range\n")
    best = row("the disk: write and sync", plain, size)
    row("the disk: read, cold", read, size)
    middle = row("ours: save, waiting for it", saves[1:], size)
    print(f"  of the disk's speed: {100 * best / middle:.0f} %")
    row("ours: the first save's stall, in the background", stalls[:1])
    stall = row("ours: stall of a later one", stalls[1:])
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
    (FOLDER / "plain").unlink()


if __name__ == "__main__":
    main()
