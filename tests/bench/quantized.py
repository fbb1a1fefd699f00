"""Text from a Llama of random weights at 32, 8 and 4 bits: tokens a second after the first one, in pairs with 32 bits that take turns,
as medians with the least and the greatest; the weights that a token reads, in GB/s, next to copying memory; and the peak of resident
memory next to the plan's, of generators and of trainers of adapters. With --llama-cpp, in the same turns, llama.cpp's tokens a second
with the same shapes, of the same bits: its llama-bench reads a file of GGUF that is made here, whose table and head are floats as here,
so that both read the same bytes for a token. "by q8_0" multiplies activations in Q8_0, as llama.cpp does.

usage: quantized.py [--llama-cpp FOLDER]   RUNS=7, TOKENS=64, THREADS=all; WIDTH=768, LAYERS=12
  FOLDER   of a build of llama.cpp, which has bin/llama-bench"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import gguf
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
KINDS = {"32 bits": None, "8 bits": {"load_in_8bit": True}, "4 bits": NESTED, "q8_0": {"quant_type": "q8_0"}, "q4_0": {"quant_type": "q4_0"},
         "q8_0 by q8_0": {"quant_type": "q8_0", "activations": "q8_0"}, "q4_0 by q8_0": {"quant_type": "q4_0", "activations": "q8_0"}}
PEERS = {"q8_0": ("8 bits", "q8_0", "q8_0 by q8_0"), "q4_0": ("4 bits", "q4_0", "q4_0 by q8_0")}  # llama.cpp's, and what is compared with it
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
    given = {"q8_0": 8.5, "q4_0": 4.5}.get((quantize or {}).get("quant_type"))
    bits = given if given else 32 if not quantize else 8 + 32 / d if "load_in_8bit" in quantize else 4 + 8 / 64 + 32 / 64 / 256
    return linear * bits / 8 + 4 * CONFIG["vocab_size"] * d


def write_gguf(path, tensors, kind):
    """The same shapes as llama.cpp reads them; matrices of layers in blocks of `kind`."""
    d, inner, heads = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["num_attention_heads"]
    names = {"model.embed_tokens": "token_embd", "lm_head": "output", "model.norm": "output_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    writer = gguf.GGUFWriter(path, "llama")
    for add, value in ((writer.add_context_length, LENGTH), (writer.add_embedding_length, d), (writer.add_block_count, LAYERS),
                       (writer.add_feed_forward_length, inner), (writer.add_head_count, heads), (writer.add_head_count_kv, heads),
                       (writer.add_layer_norm_rms_eps, 1e-5), (writer.add_rope_dimension_count, 64), (writer.add_vocab_size, CONFIG["vocab_size"]),
                       (writer.add_tokenizer_model, "none")):
        add(value)
    for name, tensor in tensors.items():
        layer, rest = "", name.removesuffix(".weight")
        if rest.startswith("model.layers."):
            number, rest = rest.removeprefix("model.layers.").split(".", 1)
            layer = f"blk.{number}."
        own = gguf.GGMLQuantizationType[kind.upper() if "_proj" in name else "F32"]
        writer.add_tensor(f"{layer}{names[rest]}.weight", gguf.quants.quantize(tensor.numpy(), own), raw_dtype=own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def peer_rate(build, path):
    """llama.cpp's tokens a second, after a token to warm up."""
    command = [build / "bin" / "llama-bench", "-m", path, "-p", "0", "-n", str(TOKENS - 1), "-t", str(THREADS), "-r", "1", "-o", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]["avg_ts"]


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


def main(root, llama_cpp):
    tensors = weights()
    save_file(tensors, root / "weights.safetensors")
    for kind in PEERS if llama_cpp else ():
        write_gguf(root / f"{kind}.gguf", tensors, kind)
    del tensors
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
    rates, peers = {kind: [] for kind in KINDS}, {kind: [] for kind in PEERS}
    for run in range(RUNS):
        for kind, folder in folders.items():
            rates[kind].append(rate(folder))
        for kind in PEERS if llama_cpp else ():
            peers[kind].append(peer_rate(llama_cpp, root / f"{kind}.gguf"))
        print(f"run {run + 1} of {RUNS}:", ", ".join(f"{kind} {those[-1]:.1f}" for kind, those in (rates | {f"llama.cpp {kind}": those for kind, those in peers.items()}).items() if those), "tok/s", flush=True)
    print(f"a copy: {copied():.1f} GB/s read and written")
    for kind, quantize in KINDS.items():
        ratios = [own / wide for own, wide in zip(rates[kind], rates["32 bits"], strict=True)]
        read = read_by_token(quantize)
        print(f"{kind}: {spread(rates[kind], '.1f')} tok/s, {spread(ratios, '.2f')} times that of 32 bits; reads {read / 1e6:.0f} MB a token, "
              f"{statistics.median(rates[kind]) * read / 1e9:.1f} GB/s", flush=True)
    for peer, kinds in PEERS.items() if llama_cpp else ():
        print(f"llama.cpp, {peer}: {spread(peers[peer], '.1f')} tok/s")
        for kind in kinds:
            ratios = [own / theirs for own, theirs in zip(rates[kind], peers[peer], strict=True)]
            print(f"{kind}: {spread(ratios, '.2f')} times llama.cpp's {peer}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--llama-cpp", type=lambda path: pathlib.Path(path).resolve())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        main(pathlib.Path(name), options.llama_cpp)
