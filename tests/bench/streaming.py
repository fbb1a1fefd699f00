"""A model whose layers stream from the disk, compared with Accelerate's load_checkpoint_and_dispatch with the same layers on "disk": tokens
a second of generated text and of an evaluation, peak memory, and the bytes a second that the layers come with, as a part of what the
machine can do: of a disk, reads past the page cache of 4 MiB, four at a time; of the page cache, a copy by all threads.
Runs alternate; a ratio is the median of those of pairs, with its range. Warm: the file is in the page cache. Cold: it is dropped from there
before each run and, where a text is written, at each token. A token's time is the median of a run.
First an evaluation has a third of the file's size as its limit of memory, and its loss is printed next to that of a program with all in memory.

usage: streaming.py   RUNS=3, TOKENS=8, LAYERS=16, WIDTH=1024, THREADS=all, DTYPE=float32 or bfloat16, PEER=1 (0: without Accelerate)"""

import contextlib
import io
import json
import mmap
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
RUNS, TOKENS = int(os.environ.get("RUNS", 3)), int(os.environ.get("TOKENS", 8))
LAYERS, WIDTH = int(os.environ.get("LAYERS", 16)), int(os.environ.get("WIDTH", 1024))
THREADS = int(os.environ.get("THREADS", os.cpu_count()))
DTYPE, PEER = os.environ.get("DTYPE", "float32"), os.environ.get("PEER", "1") != "0"
BLOCK, AT_ONCE = 4 << 20, 4
LENGTH, VOCABULARY, BATCH, BATCHES = 128, 1000, 4, 2
PROMPT = list(range(10, 26))


def files(folder):
    return sorted((folder / "model").glob("*.safetensors"))


def drop(folder):
    """Of the published files, and of the copies that Accelerate makes of the weights that it offloads."""
    for path in [*files(folder), *(folder / "offload").glob("*.dat")]:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Dropper(threading.Thread):
    """Drops the files each time that it is told to, beside what is measured."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.wanted = folder, threading.Event()
        self.start()

    def run(self):
        while True:
            self.wanted.wait()
            self.wanted.clear()
            drop(self.folder)


def read(folder):
    """The bytes of the files, by one thread and through one MiB: a program inherits the peak of the process that starts it."""
    buffer, size = memoryview(bytearray(1 << 20)), 0
    for path in files(folder):
        with open(path, "rb", buffering=0) as file:
            while count := file.readinto(buffer):
                size += count
    return size


def prepare(folder, cold):
    drop(folder) if cold else read(folder)


# ---- Accelerate, in a process of its own ----


def theirs(folder, what, cold):
    """Prints seconds for each token after the first, or for each token of an evaluation; and the peak of memory."""
    import torch
    from accelerate import init_empty_weights, load_checkpoint_and_dispatch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.set_num_threads(THREADS)
    with contextlib.redirect_stderr(io.StringIO()), init_empty_weights():
        model = GPT2LMHeadModel(GPT2Config.from_pretrained(folder / "model"))
    model.tie_weights()
    places = {"transformer.wte": "cpu", "transformer.wpe": "cpu", "transformer.ln_f": "cpu", "lm_head": "cpu"}
    places |= {f"transformer.h.{i}": "disk" if i > 0 else "cpu" for i in range(LAYERS)}
    model = load_checkpoint_and_dispatch(model, folder / "model", device_map=places, offload_folder=folder / "offload", dtype=torch.float32)
    model.eval()
    times, dropper = [], Dropper(folder)

    def mark(*_):
        times.append(time.perf_counter())
        if cold:
            dropper.wanted.set()
        return _[1] if _ else None

    with torch.no_grad():
        if what == "text":
            ids = torch.tensor([PROMPT])
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False, pad_token_id=0,
                           logits_processor=[mark])
            seconds = statistics.median(b - a for a, b in zip(times, times[1:]))
        else:
            ids = torch.randint(VOCABULARY, (BATCH, LENGTH))
            model(ids, labels=ids)
            begin = time.perf_counter()
            for _ in range(BATCHES):
                model(ids, labels=ids)
            seconds = (time.perf_counter() - begin) / (BATCHES * BATCH * LENGTH)
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def run_theirs(folder, what, cold):
    prepare(folder, cold)
    done = subprocess.run([sys.executable, __file__, "--theirs", folder, what, str(int(cold))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


# ---- Ours ----


def build(folder):
    job = {"model": {"source": str(TREE / "examples" / "models" / "gpt2.c"), "weights": "model",
                     "config": {"n_layer": LAYERS, "n_head": WIDTH // 64, "n_embd": WIDTH, "vocab_size": VOCABULARY, "block_size": LENGTH}},
           "data": {"train": {"path": "tokens.bin", "format": "nanogpt"}, "batch_size": BATCH}, "devices": {"threads": THREADS},
           "training": {"steps": 1, "eval_iters": BATCHES}, "memory": {"device_map": {"h.0": "cpu", "h.*": "disk", "*": "cpu"}}}
    (folder / "job.yaml").write_text(json.dumps(job))
    (folder / "tokens.bin").write_bytes(b"\1\0" * (40 * BATCH * LENGTH))
    subprocess.run([GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "text", "-q"], cwd=folder, check=True)
    subprocess.run([GENERATOR, "build", "job.yaml", "--program", "evaluate", "-o", "whole", "-q", "--set", 'memory.device_map={"*": cpu}'], cwd=folder, check=True)
    for name, batches in (("two", BATCHES), ("few", 1), ("many", 1 + BATCHES)):
        subprocess.run([GENERATOR, "build", "job.yaml", "--program", "evaluate", "-o", name, "-q", "--set", f"training.eval_iters={batches}"], cwd=folder, check=True)
    return json.loads(subprocess.check_output([GENERATOR, "plan", "job.yaml", "--program", "generate", "--json"], cwd=folder))["arena_bytes"]["total"]


def follow(folder, words, cold):
    """When each token came, the seconds of the whole, and the peak of memory."""
    times, begin, dropper = [], time.perf_counter(), Dropper(folder)
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, bufsize=0)
    while byte := process.stdout.read(1):
        if byte == b" ":
            times.append(time.perf_counter())
            if cold:
                dropper.wanted.set()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    if status != 0:
        raise SystemExit(f"{words[0]} failed")
    return times, time.perf_counter() - begin, usage.ru_maxrss / 1024


def run_ours(folder, what, cold):
    prepare(folder, cold)
    if what == "text":
        times, _, peak = follow(folder, ["./text", "--temperature", "0", "--prompt", " ".join(map(str, PROMPT)), "--tokens", str(TOKENS)], cold)
        times = times[-TOKENS:]
        return statistics.median(b - a for a, b in zip(times, times[1:])), peak
    few, many = (follow(folder, [f"./{name}"], False) for name in ("few", "many"))
    return (many[1] - few[1]) / (BATCHES * BATCH * LENGTH), many[2]


def in_threads(work, count):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def read_blocks(folder, flags, threads, memory):
    """Bytes a second of reads in blocks, thread by thread to memory that goes around."""
    blocks = [(path, at) for path in files(folder) for at in range(0, path.stat().st_size // BLOCK * BLOCK, BLOCK)]
    opened = {path: os.open(path, os.O_RDONLY | flags) for path in files(folder)}
    with mmap.mmap(-1, memory * BLOCK) as buffer, memoryview(buffer) as view:

        def work(number):
            for i in range(number, len(blocks), threads):
                path, at = blocks[i]
                to = i % memory * BLOCK
                os.preadv(opened[path], [view[to:to + BLOCK]], at)

        seconds = in_threads(work, threads)
    for file in opened.values():
        os.close(file)
    return len(blocks) * BLOCK / seconds


def limited(folder):
    """An evaluation in a third of the file's size: what it prints compared with that of a program that has all in memory."""
    limit = sum(path.stat().st_size for path in files(folder)) // 3
    lower = lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # noqa: E731
    process = subprocess.Popen(["./two"], cwd=folder, stdout=subprocess.PIPE, preexec_fn=lower)
    found = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.stdout.close()
    losses = [line for out in (found, subprocess.check_output(["./whole"], cwd=folder)) for line in out.decode().splitlines() if line.startswith("loss")]
    print(f"an evaluation with a limit of {limit / 2**20:.0f} MiB (RLIMIT_DATA): "
          f"{'failed' if status != 0 else losses[0]}, in memory {losses[-1]}, peak {usage.ru_maxrss / 1024:.0f} MiB", flush=True)


def reading(folder, cold):
    """What the machine can do."""
    prepare(folder, cold)
    return read_blocks(folder, os.O_DIRECT, AT_ONCE, AT_ONCE) if cold else read_blocks(folder, 0, THREADS, 24)


# ---- The table ----


def publish(folder):
    """Prints the bytes of the layers that stream."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    with contextlib.redirect_stderr(io.StringIO()):
        model = GPT2LMHeadModel(GPT2Config(n_layer=LAYERS, n_head=WIDTH // 64, n_embd=WIDTH, vocab_size=VOCABULARY, n_positions=LENGTH, bos_token_id=0, eos_token_id=0))
        model.to(getattr(torch, DTYPE)).save_pretrained(folder / "model", max_shard_size="500MB")
    layer = sum(parameter.numel() for parameter in model.transformer.h[1].parameters()) * model.transformer.wte.weight.element_size()
    print(layer * (LAYERS - 1))


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        streamed = int(subprocess.check_output([sys.executable, __file__, "--publish", folder], stderr=subprocess.DEVNULL).split()[-1])
        planned = build(folder)
        print(f"{LAYERS} layers of width {WIDTH} in {DTYPE}, {streamed / 2**20:.0f} MiB of them on the disk, plan {planned / 2**20:.0f} MiB, {THREADS} threads; "
              f"{os.getloadavg()[0]:.1f} other threads run", flush=True)
        limited(folder)
        for what, cold in (("text", False), ("text", True), ("evaluation", False)):
            ours, other, speeds = [], [], []
            for _ in range(RUNS):
                speeds.append(reading(folder, cold))
                ours.append(run_ours(folder, what, cold))
                if PEER:
                    other.append(run_theirs(folder, what, cold))
            named = f"{what}, {'cold' if cold else 'warm'}"
            print(f"{named}: {spread([1 / t for t, _ in ours], '.2f')} tokens/s, peak {max(p for _, p in ours):.0f} MiB", flush=True)
            if PEER:
                print(f"  Accelerate {spread([1 / t for t, _ in other], '.2f')}, peak {max(p for _, p in other):.0f} MiB; "
                      f"times as fast {spread([b[0] / a[0] for a, b in zip(ours, other)], '.2f')}", flush=True)
            if what == "text":
                parts = [streamed / t / speed for (t, _), speed in zip(ours, speeds)]
                print(f"  layers come with {spread([streamed / t / 1e9 for t, _ in ours], '.2f')} GB/s; {'reads past the cache' if cold else 'a copy'} "
                      f"{spread([s / 1e9 for s in speeds], '.2f')}: "
                      f"{spread([100 * part for part in parts], '.0f')} %", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--publish"]:
        publish(pathlib.Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--theirs"]:
        theirs(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4] == "1")
    else:
        main()
