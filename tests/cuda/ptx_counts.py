"""What the kernels of a program for GPUs cost, counted from the instructions of nvcc's PTX as the interpreter executes them
(tests/cuda/standin/ptx): a table of kernels, the instructions that ask most of memory in vain, and the kernels of all these programs
that do so most.

usage: ptx_counts.py [--sm=90a] [--worst=10] [NAME...]   gpt2, llama, experts (bf16, 128 columns, 64 positions), resnet (images of 16 x 16,
                                                         convolutions of its own), or a case of test_ptx.py that trains

  flops       of single and double precision, of all lanes; those of tensor cores
  bytes       that lanes ask of the device's memory; the sectors of 32 bytes, relative to those that would do
  banks       turns that shared memory takes, relative to those that would do
  diverge     branches at which lanes of a warp go both ways, of all
  lanes       that are active, of 32
  in vain     bytes: 32 of each sector and 128 of each turn that would not be needed, and the bytes that lanes ask for times the
              part of branches at which lanes go both ways"""

import collections
import json
import pathlib
import re
import sys

import ptx

import test_ptx  # isort: skip
from test_training import case, write_data  # isort: skip

BF16 = {"precision": {"mixed_precision": "bf16"}, "devices": {"attention": "own"}, "training": {"steps": 1, "seed": 3}}
DATA = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2, "sequence_length": 64}
JOBS = {"gpt2": case("gpt2", {"n_layer": 2, "n_head": 2, "n_embd": 128, "vocab_size": 512, "block_size": 64}, DATA, **BF16),
        "llama": case("llama", {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "hidden_size": 128,
                                "intermediate_size": 256, "vocab_size": 512}, DATA, **BF16),
        "experts": case("qwen_moe", {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "hidden_size": 128,
                                     "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "capacity_factor": 0, "vocab_size": 512}, DATA, **BF16),
        "resnet": case("resnet", {"layer_type": "BASIC", "image_size": 16, "num_channels": 3, "num_labels": 10, "embedding_size": 16, "stages": 2,
                                  "hidden_sizes.0": 16, "hidden_sizes.1": 32, "depths.0": 1, "depths.1": 1},
                       {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 4, "features": 768}, devices={"convolution": "own"},
                       training={"steps": 1, "seed": 3})}
COLUMNS = ("warps", "lanes", "diverged", "requests", "bytes", "pieces", "least")
FLOPS = {"add": 1, "sub": 1, "mul": 1, "div": 1, "rcp": 1, "sqrt": 1, "rsqrt": 1, "ex2": 1, "lg2": 1, "tanh": 1, "sin": 1, "cos": 1, "fma": 2, "mad": 2, "max": 1, "min": 1}


def flops(name, row):
    """Of all lanes of an instruction; a warp's of tensor cores."""
    words = name.split(".")
    if words[0] == "wmma" and words[1] == "mma":
        depth = 8 if "m16n16k8" in words else 16
        return 2 * 16 * 16 * depth * row["warps"]
    return FLOPS.get(words[0], 0) * row["lanes"] if words[-1] in ("f32", "f64") else 0


def demangled(name):
    """The last part of a mangled name, without arguments: layer_norm_bf16_128x128 of _ZN6device23layer_norm_bf16_128x128E...."""
    at, parts = re.match(r"_ZN?", name), []
    at = at.end() if at else len(name)
    while found := re.match(r"\d+", name[at:]):
        begin = at + found.end()
        at = begin + int(found[0])
        parts.append(name[begin:at])
    return parts[-1] if parts else name


def read(path):
    """The kernels' launches, and rows of their instructions."""
    launches, rows = {}, []
    for line in path.read_text().splitlines():
        kind, kernel, *rest = line.split("\t")
        if kind == "kernel":
            launches[kernel] = launches.get(kernel, 0) + int(rest[0])
            continue
        name, space, number, where, outer, *counts = rest
        rows.append({"kernel": kernel, "name": name, "space": space, "line": number, "where": where, "outer": outer,
                     **dict(zip(COLUMNS, map(int, counts), strict=True))})
    return launches, rows


def total(rows, key, space=None):
    return sum(row[key] for row in rows if space is None or row["space"] == space)


def ratio(pieces, least):
    return f"{pieces / least:5.2f}" if least else "    -"


def counted(own, space):
    """The sectors or turns of a kernel, and the fewest."""
    return [total(own, key, space) for key in ("pieces", "least")]


def diverged(own):
    """Branches at which lanes of a warp go both ways, and all."""
    branches = [row for row in own if row["name"].startswith("bra")]
    return total(branches, "diverged"), total(branches, "warps")


def in_vain(own):
    """Bytes by sectors, by turns and by branches."""
    (sectors, fewest), (turns, least), (both, branches) = counted(own, "global"), counted(own, "shared"), diverged(own)
    return 32 * (sectors - fewest), 128 * (turns - least), total(own, "bytes", "global") * both // max(1, branches)


def kernels(rows):
    by_kernel = collections.defaultdict(list)
    for row in rows:
        by_kernel[row["kernel"]].append(row)
    return by_kernel


def say(launches, rows, worst):
    print(f"{'kernel':52} {'launches':>8} {'warps':>9} {'lanes':>5} {'flops':>10} {'bytes':>10} {'sectors':>16} {'banks':>13} {'diverge':>11}")
    for kernel, own in sorted(kernels(rows).items(), key=lambda item: -total(item[1], "pieces", "global")):
        sectors, shared, branches = counted(own, "global"), counted(own, "shared"), diverged(own)
        print(f"{demangled(kernel)[:52]:52} {launches[kernel]:8} {total(own, 'warps'):9} {total(own, 'lanes') / max(1, total(own, 'warps')):5.1f}"
              f" {sum(flops(row['name'], row) for row in own):10} {total(own, 'bytes', 'global'):10} {sectors[0]:10} {ratio(*sectors)}"
              f" {shared[0]:7} {ratio(*shared)} {branches[0]:5}/{branches[1]:5}")
    places = collections.defaultdict(lambda: [0, 0, 0])
    for row in rows:
        if row["space"] in ("global", "shared"):
            key = (demangled(row["kernel"]), row["space"], row["name"], row["where"] if row["where"] == row["outer"] else f"{row['where']} in {row['outer']}")
            for i, name in enumerate(("requests", "pieces", "least")):
                places[key][i] += row[name]
    print("\nwhat would not be needed, of each instruction of the source:")
    for (kernel, space, name, where), (requests, pieces, least) in sorted(places.items(), key=lambda item: item[1][2] - item[1][1])[:worst]:
        if pieces > least:
            print(f"  {kernel}: {name} at {where}: {pieces - least} of {pieces} {'sectors' if space == 'global' else 'turns'}, {pieces / requests:.1f} a request instead of {least / requests:.1f}")


def main():
    named = [word for word in sys.argv[1:] if not word.startswith("-")] or ["gpt2"]
    ptx.PtxTrainer.architecture, worst = test_ptx.option("sm", "90a"), int(test_ptx.option("worst", 10))
    seen = []
    for name in named:
        job = JOBS[name] if name in JOBS else test_ptx.runs()[name][2][1]
        trainer = ptx.PtxTrainer(json.loads(json.dumps(job)))
        write_data(trainer.folder, job["data"].get("features", 1))
        trainer.build()
        counts = pathlib.Path(trainer.folder) / "counts"
        trainer.run("--steps", "1", STANDIN_COUNTS=str(counts))
        launches, rows = read(counts)
        say(launches, rows, worst)
        seen += [(name, kernel, *in_vain(own)) for kernel, own in kernels(rows).items()]
    print(f"\n{'in vain, bytes':14} {'sectors':>10} {'turns':>10} {'branches':>10}")
    for name, kernel, *bytes_of in sorted(seen, key=lambda row: -sum(row[2:]))[:worst]:
        print(f"{sum(bytes_of):14} {bytes_of[0]:10} {bytes_of[1]:10} {bytes_of[2]:10}  {name}: {demangled(kernel)}")


if __name__ == "__main__":
    main()
