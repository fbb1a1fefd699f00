"""Text from a trained model against transformers.generate on the same processor: tokens a second after the first one,
and the time from the start of the process to the first token. Best and median of some runs, short and long texts in turn.

usage: generation.py   RUNS=5, TOKENS=200, THREADS=all; weights are random, so a text has its full length, which is eight times
that for the small model: 200 of its tokens take less than a start differs from the next one"""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
RUNS, TOKENS = int(os.environ.get("RUNS", 5)), int(os.environ.get("TOKENS", 200))
THREADS = int(os.environ.get("THREADS", os.cpu_count()))
PROMPT = list(range(10, 42))
MODELS = {"small, 0.9 M": {"n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 257},
          "medium, 11 M": {"n_layer": 6, "n_head": 6, "n_embd": 384, "vocab_size": 512},
          "GPT-2, 124 M": {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257}}


EIGHTFOLD = {"small, 0.9 M"}


def timed(run):
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measured(write, count):
    """Seconds of RUNS texts of one token, and of as many of `count`."""
    pairs = [(timed(lambda: write(1)), timed(lambda: write(count))) for _ in range(RUNS)]
    return [first for first, _ in pairs], [text for _, text in pairs]


def line(name, count, first, text):
    best, median = ((count - 1) / (of(text) - of(first)) for of in (min, statistics.median))
    print(f"{name:32} {best:9.0f} tok/s (median {median:.0f})   first {1e3 * min(first):8.1f} ms "
          f"(median {1e3 * statistics.median(first):.1f})", flush=True)


def ours(folder, config, count, length):
    job = {"model": {"source": str(TREE / "examples" / "models" / "gpt2.c"), "config": {**config, "block_size": length},
                     "weights": "theirs/model.safetensors"},
           "data": {"train": {"path": "none", "format": "nanogpt"}, "batch_size": 1}, "devices": {"threads": THREADS},
           "training": {"steps": 1}, "checkpoint": {"project_dir": "run"}}
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "write"], cwd=folder, check=True)

    def write(count):
        subprocess.run(["./write", "--temperature", "0", "--prompt", " ".join(map(str, PROMPT)), "--tokens", str(count)],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)

    return measured(write, count)


def theirs(model, count):
    prompt = torch.tensor([PROMPT])

    def write(count):
        with torch.no_grad():
            model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=False,
                           pad_token_id=0, eos_token_id=None)

    write(2)
    return measured(write, count)


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(THREADS)
    for name, config in MODELS.items():
        count = TOKENS * (8 if name in EIGHTFOLD else 1)
        length = len(PROMPT) + count
        with tempfile.TemporaryDirectory() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            model = GPT2LMHeadModel(GPT2Config(**config, n_positions=length)).eval()
            (folder / "theirs").mkdir()
            model.save_pretrained(folder / "theirs")
            line(f"{name}: the program", count, *ours(folder, config, count, length))
            line(f"{name}: transformers, loaded", count, *theirs(model, count))


if __name__ == "__main__":
    main()
