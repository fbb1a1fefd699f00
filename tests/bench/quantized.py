"""Text from a Llama of random weights at 32, 8 and 4 bits: tokens a second after the first one, in pairs with 32 bits that take turns,
as medians with the least and the greatest; the weights that a token reads, in GB/s, beside copying memory; and the peak of resident
memory beside the plan's, of generators and of trainers of adapters.

usage: quantized.py   RUNS=7, TOKENS=64, THREADS=all; WIDTH=768, LAYERS=12"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from safetensors.torch import save_file

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
RUNS, TOKENS = int(os.environ.get("RUNS", 7)), int(os.environ.get("TOKENS", 64))
THREADS = int(os.environ.get("THREADS", os.cpu_count()))
WIDTH, LAYERS, LENGTH = int(os.environ.get("WIDTH", 768)), int(os.environ.get("LAYERS", 12)), 256
CONFIG = {"num_hidden_layers": LAYERS, "num_attention_heads": WIDTH // 64, "num_key_value_heads": WIDTH // 64, "head_dim": 64,
          "hidden_size": WIDTH, "intermediate_size": WIDTH * 8 // 3 // 64 * 64, "vocab_size": 32000}
NESTED = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
KINDS = {"32 bits": None, "8 bits": {"load_in_8bit": True}, "4 bits": NESTED}
MIB = 1 << 20


def weights():
    """A matrix at a time, as a folder of files would have them."""
    d, inner, vocab = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    shapes = {"model.embed_tokens.weight": (vocab, d), "lm_head.weight": (vocab, d), "model.norm.weight": (d,)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        shapes |= {f"{layer}self_attn.{name}_proj.weight": (d, d) for name in "qkvo"}
        shapes |= {f"{layer}mlp.{name}_proj.weight": (inner, d) for name in ("gate", "up")}
        shapes |= {f"{layer}mlp.down_proj.weight": (d, inner), f"{layer}input_layernorm.weight": (d,), f"{layer}post_attention_layernorm.weight": (d,)}
    return {name: torch.randn(shape) * 0.02 for name, shape in shapes.items()}


def job_of(quantize, lora=None):
    model = {"source": str(TREE / "examples" / "models" / "llama.c"), "config": CONFIG, "weights": "weights.safetensors"}
    model |= {"quantize": quantize} if quantize else {}
    model |= {"lora": lora} if lora else {}
    return {"model": model, "data": {"train": {"path": "corpus.bin", "format": "nanogpt"}, "batch_size": 1, "sequence_length": LENGTH},
            "devices": {"threads": THREADS}, "optimizer": {"name": "adamw", "lr": 1e-4}, "training": {"steps": 3}, "checkpoint": {"project_dir": "run"}}


def peak_of(command, folder):
    """MiB of one process, which a small one starts: a process begins with the peak of what starts it."""
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); " \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    return int(subprocess.check_output([sys.executable, "-S", "-c", script, *command], cwd=folder)) / 1024


def planned(folder, *words):
    plan = json.loads(subprocess.run([GENERATOR, "plan", "--json", *words, "job.yaml"], cwd=folder, check=True, capture_output=True).stdout)
    return plan["arena_bytes"]["total"] / MIB


def texted(folder, count):
    begin = time.perf_counter()
    subprocess.run(["./write", "--temperature", "0", "--prompt", "1 2 3 4", "--tokens", str(count)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def rate(folder):
    """Tokens a second after the first one."""
    return (TOKENS - 1) / (texted(folder, TOKENS) - texted(folder, 1))


def read_by_token(quantize):
    """Bytes of the weights that are read for a token: all but the embedding."""
    d, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    linear = LAYERS * (4 * d * d + 3 * d * inner)
    bits = 32 if not quantize else 8 + 32 / d if "load_in_8bit" in quantize else 4 + 8 / 64 + 32 / 64 / 256
    return linear * bits / 8 + 4 * CONFIG["vocab_size"] * d


def copied():
    """GB/s that a copy of memory reads and writes, by all threads; best of five."""
    source, target = torch.ones(1 << 26), torch.empty(1 << 26)
    torch.set_num_threads(THREADS)
    best = min(timed_copy(source, target) for _ in range(5))
    return 2 * source.numel() * 4 / best / 1e9


def timed_copy(source, target):
    begin = time.perf_counter()
    target.copy_(source)
    return time.perf_counter() - begin


def spread(values, form):
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main(root):
    save_file(weights(), root / "weights.safetensors")
    np.random.default_rng(1).integers(0, CONFIG["vocab_size"], 4000).astype(np.uint16).tofile(root / "corpus.bin")
    folders = {}
    for kind, quantize in KINDS.items():
        folder = folders[kind] = root / kind.replace(" ", "")
        folder.mkdir()
        for name in ("weights.safetensors", "corpus.bin"):
            (folder / name).symlink_to(root / name)
        (folder / "job.yaml").write_text(json.dumps(job_of(quantize)))
        subprocess.run([GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "write"], cwd=folder, check=True, capture_output=True)
        peak, plan = peak_of(["./write", "--prompt", "1 2 3 4", "--tokens", "2"], folder), planned(folder, "--program", "generate")
        print(f"{kind}: a generator's peak {peak:.0f} MiB, planned {plan:.0f}: {100 * (peak / plan - 1):+.1f} %", flush=True)
        if quantize:
            (folder / "job.yaml").write_text(json.dumps(job_of(quantize, {"targets": ["q_proj", "v_proj"], "rank": 8, "alpha": 16, "merge": False})))
            subprocess.run([GENERATOR, "build", "job.yaml", "-o", "trainer"], cwd=folder, check=True, capture_output=True)
            peak, plan = peak_of(["./trainer"], folder), planned(folder)
            print(f"{kind}: a trainer's peak {peak:.0f} MiB, planned {plan:.0f}: {100 * (peak / plan - 1):+.1f} %", flush=True)
    rates = {kind: [] for kind in KINDS}
    for _ in range(RUNS):
        for kind, folder in folders.items():
            rates[kind].append(rate(folder))
    print(f"a copy: {copied():.1f} GB/s read and written")
    for kind, quantize in KINDS.items():
        ratios = [own / wide for own, wide in zip(rates[kind], rates["32 bits"], strict=True)]
        read = read_by_token(quantize)
        print(f"{kind}: {spread(rates[kind], '.1f')} tok/s, {spread(ratios, '.2f')} times that of 32 bits; reads {read / 1e6:.0f} MB a token, "
              f"{statistics.median(rates[kind]) * read / 1e9:.1f} GB/s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(pathlib.Path(name))
