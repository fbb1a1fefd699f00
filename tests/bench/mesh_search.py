"""The search of a mesh (parallelism: auto) against published runs: what it would choose, what they chose, and the MFU that it predicts
of both compared with theirs. And how long searches take.

usage: mesh_search.py [--time | --measure] [NAME...]   prints the tables of docs/mesh-search.md; --time: how long searches take;
                                                      --measure: two ranks of a small GPT-2 on this machine, next to one

MFU counts FLOPs as each publication does, without those of a forward that runs again, so that it says how long a step takes. Twice it is
predicted: with the efficiency of devices.hardware, and with the one at which the first run of its source is predicted as published."""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
sys.path.insert(0, str(TREE / "tests" / "search"))

import cost  # noqa: E402

# DGX A100: 8 HDR links of 200 Gb/s a machine (Narayanan et al., section 5); 8 of 400 Gb/s (torchtitan's benchmarks).
LINK = {"latency": 5, "bandwidth": 300000}
SELENE = {"hardware": "a100-sxm-80gb", "memory": "80GB", "link": LINK, "network": {"latency": 5, "bandwidth": 200000}}
GRAND_TETON = {"hardware": "h100-sxm-80gb", "memory": "96GB", "memory_bandwidth": 2.4e12, "link": {"latency": 5, "bandwidth": 450000},
               "network": {"latency": 5, "bandwidth": 400000}}


def gpt(layers, hidden, heads):
    return "gpt2", {"n_layer": layers, "n_head": heads, "n_embd": hidden, "vocab_size": 51200, "block_size": 2048}


def llama(layers, hidden, heads, kv, inner, vocabulary):
    return "llama", {"num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": hidden // heads,
                     "hidden_size": hidden, "intermediate_size": inner, "vocab_size": vocabulary}


LLAMA3_8B, LLAMA3_70B = llama(32, 4096, 32, 8, 14336, 128256), llama(80, 8192, 64, 8, 28672, 128256)
LLAMA2_13B, LLAMA2_70B = llama(40, 5120, 40, 40, 13824, 32000), llama(80, 8192, 64, 8, 28672, 32000)


def narayanan(layers, hidden, samples, again=False, length=2048, vocabulary=51200):
    """FLOPs of a step: Korthikanti et al. 2022; with the forward that runs again, equation (3) of Narayanan et al. 2021."""
    return ((96 if again else 72) * samples * length * layers * hidden**2
            * (1 + length / (6 * hidden) + vocabulary / ((16 if again else 12) * layers * hidden)))


def table1(layers, hidden, samples, speed):
    """FLOPs of a step, and FLOP/s of a GPU, without those of the forward that runs again: `speed` counts them."""
    flops = narayanan(layers, hidden, samples)
    return flops, speed * flops / narayanan(layers, hidden, samples, again=True)


def titan(model, samples, length):
    """FLOPs of a step: 6 N + 12 l h q t a token, N without the embedding, as torchtitan counts."""
    _, c = model
    h, layers, kv = c["hidden_size"], c["num_hidden_layers"], c["num_key_value_heads"] * c["head_dim"]
    weights = layers * (2 * h * h + 2 * h * kv + 3 * h * c["intermediate_size"] + 2 * h) + h + c["vocab_size"] * h
    return samples * length * (6 * weights + 12 * layers * h * length)


def mesh(tp=1, pp=1, dp_replicate=1, dp_shard=1, zero_stage=0, sequence=False, order="", chunks=1, batch=1, steps=1, recomputes=False):
    return {"axes": {"dp_replicate": dp_replicate, "dp_shard": dp_shard, "pp": pp, "cp": 1, "sp": 1, "tp": tp, "ep": 1},
            "zero_stage": zero_stage, "sequence_parallelism": sequence, "order": order, "chunks": chunks, "batch_size": batch,
            "num_steps": steps, "recomputes": recomputes}


TABLE1 = "Narayanan 2021, table 1"
TABLE2 = "Narayanan 2021, table 2"
TABLE5 = "Korthikanti 2022, table 5"
A100 = "torchtitan, docs/performance.md"
H100 = "torchtitan, benchmarks/llama3_h100_202412"
# name: model, length, ranks, samples of a step, hardware, their mesh, FLOPs of a step, their FLOP/s of a GPU, source
RUNS = {
    "GPT 18.4B": (gpt(40, 6144, 48), 2048, 256, 1024, SELENE, mesh(tp=8, dp_replicate=32, batch=8, steps=4, recomputes=True),
                  *table1(40, 6144, 1024, 135e12), TABLE1),
    "GPT 1.7B": (gpt(24, 2304, 24), 2048, 32, 512, SELENE, mesh(dp_replicate=32, batch=16, recomputes=True),
                 *table1(24, 2304, 512, 137e12), TABLE1),
    "GPT 39.1B": (gpt(48, 8192, 64), 2048, 512, 1536, SELENE,
                  mesh(tp=8, pp=2, dp_replicate=32, order="1f1b", batch=4, steps=12, recomputes=True), *table1(48, 8192, 1536, 138e12), TABLE1),
    "GPT 145.6B": (gpt(80, 12288, 96), 2048, 1536, 2304, SELENE,
                   mesh(tp=8, pp=8, dp_replicate=24, order="interleaved", chunks=2, batch=2, steps=48, recomputes=True),
                   *table1(80, 12288, 2304, 148e12), TABLE1),
    "GPT 1008B": (gpt(128, 25600, 160), 2048, 3072, 3072, SELENE,
                  mesh(tp=8, pp=64, dp_replicate=6, order="1f1b", batch=1, steps=512, recomputes=True), *table1(128, 25600, 3072, 163e12), TABLE1),
    "GPT 174.6B ZeRO-3": (gpt(96, 12288, 96), 2048, 384, 1536, SELENE, mesh(dp_shard=384, zero_stage=3, batch=4, recomputes=True),
                          *table1(96, 12288, 1536, 144e12), TABLE2),
    "GPT 530B": (gpt(105, 20480, 128), 2048, 2240, 2240, SELENE,
                 mesh(tp=8, pp=35, dp_replicate=8, sequence=True, order="interleaved", chunks=3, batch=1, steps=280),
                 narayanan(105, 20480, 2240), 0.542 * 312e12, TABLE5),
    "Llama 3 8B": (LLAMA3_8B, 8192, 64, 64, SELENE, mesh(dp_shard=64, zero_stage=3, batch=1, recomputes=True), titan(LLAMA3_8B, 64, 8192),
                   0.568 * 312e12, A100),
    "Llama 3 70B": (LLAMA3_70B, 8192, 64, 64, SELENE, mesh(dp_shard=64, zero_stage=3, batch=1, recomputes=True), titan(LLAMA3_70B, 64, 8192),
                    0.517 * 312e12, A100),
    "Llama 2 13B": (LLAMA2_13B, 4096, 64, 128, SELENE, mesh(dp_shard=64, zero_stage=3, batch=2), titan(LLAMA2_13B, 128, 4096),
                    0.611 * 312e12, A100),
    "Llama 2 70B": (LLAMA2_70B, 4096, 64, 128, SELENE, mesh(dp_shard=64, zero_stage=3, batch=2, recomputes=True), titan(LLAMA2_70B, 128, 4096),
                    0.505 * 312e12, A100),
    "Llama 3.1 8B H100": (LLAMA3_8B, 8192, 128, 256, GRAND_TETON, mesh(dp_shard=128, zero_stage=3, batch=2, recomputes=True),
                          titan(LLAMA3_8B, 256, 8192), 6514 * titan(LLAMA3_8B, 1, 8192) / 8192, H100),
}


def job_of(model, length, ranks, samples, hardware, **devices):
    return {"model": {"source": str(TREE / "examples" / "models" / f"{model[0]}.c"), "config": model[1]},
            "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": "auto", "sequence_length": length},
            "precision": {"mixed_precision": "bf16"}, "optimizer": {"name": "adamw", "lr": 1e-4}, "training": {"steps": 100},
            "accumulation": {"num_steps": "auto", "train_batch_size": samples, "sync_with_dataloader": False},
            "memory": {"activation_checkpointing": "auto"}, "parallelism": "auto",
            "devices": {"kind": "cuda", "nodes": max(1, ranks // 8), "per_node": min(8, ranks), **hardware, **devices}}


def search_of(job):
    """The search, the seconds of the clock and of the processor that it took."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.yaml"
        path.write_text(json.dumps(job))
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run([GENERATOR, "plan", path, "--json"], capture_output=True, text=True)
        after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
        if not done.stdout:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout)["search"], seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def words(found):
    axes = found["axes"]
    parts = [f"{axis} {axes[axis]}" for axis in ("tp", "sp", "cp", "ep") if axes[axis] > 1]
    if found["sequence_parallelism"]:
        parts[0] += " + sequence"
    if axes["pp"] > 1:
        parts.append(f"pp {axes['pp']} {found['order']}" + (f" ({found['chunks']})" if found["chunks"] > 1 else ""))
    if axes["dp_shard"] > 1:
        parts.append(f"ZeRO-{found['zero_stage']} {axes['dp_shard']}")
    if axes["dp_replicate"] > 1:
        parts.append(f"dp {axes['dp_replicate']}")
    return ", ".join(parts) + f"; {found['num_steps']} x {found['batch_size']}" + (", recomputes" if found["recomputes"] else "")


def fitted(cluster, theirs, seconds):
    """The efficiency at which their mesh takes these seconds, by halving."""
    low, high = 0.01, 1.0
    for _ in range(40):
        cluster.search["efficiency"] = (low + high) / 2
        low, high = ((low + high) / 2, high) if cost.step_seconds(cluster, theirs) > seconds else (low, (low + high) / 2)
    return low


def compare(names):
    print("| run | ranks | they chose | published | predicted | off by | fitted | off by | we would choose | predicted | fitted |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    efficiencies = {}
    for name in names:
        model, length, ranks, samples, hardware, theirs, flops, published, source = RUNS[name]
        search, *_ = search_of(job_of(model, length, ranks, samples, hardware))
        cluster = cost.Cluster(ranks, 8, 0, samples, search)
        whole = ranks * search["peak"]
        mine = search["best"][0] if search["best"] else None

        def mfu(mesh):
            return 100 * flops / (cost.step_seconds(cluster, mesh) * whole)

        wanted, predicted = 100 * published / search["peak"], mfu(theirs)
        cells = [f"{name} ({source})", ranks, f"{words(theirs)}; {cost.step_bytes(cluster, theirs) / 2**30:.0f} GiB", f"{wanted:.1f} %",
                 f"{predicted:.1f} %", f"{100 * (predicted / wanted - 1):+.0f} %"]
        ours = mfu(mine) if mine else 0
        first = source not in efficiencies
        if first:
            efficiencies[source] = fitted(cluster, theirs, flops / (published * ranks))
        cluster.search["efficiency"] = efficiencies[source]
        cells += [f"{mfu(theirs):.1f} %", f"at {efficiencies[source]:.3f}" if first else f"{100 * (mfu(theirs) / wanted - 1):+.0f} %"]
        cells += [words(mine), f"{ours:.1f} %", f"{mfu(mine):.1f} %"] if mine else ["nothing fits", "", ""]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def times():
    small = ("gpt2", {"n_layer": 12, "n_head": 12, "n_embd": 768, "vocab_size": 50257, "block_size": 1024})
    print("| search | ranks | meshes | clock, s | processor, s |\n|---|---|---|---|---|")
    for name, model, length in (("GPT-2 124M", small, 1024), ("Llama 3 70B", LLAMA3_70B, 8192)):
        for ranks in (8, 64, 1024, 4096):
            search, clock, processor = search_of(job_of(model, length, ranks, max(ranks, 512), GRAND_TETON))
            print(f"| {name} | {ranks:,} | {search['meshes']:,} | {clock:.1f} | {processor:.1f} |", flush=True)


SMALL = {"n_layer": 4, "n_head": 4, "n_embd": 256, "vocab_size": 256, "block_size": 128}
SAMPLES, STEPS, ROUNDS = 8, 12, 7
# A name, its keys, and its mesh.
MEASURED = {
    "dp 2": ({}, mesh(dp_replicate=2, batch=4)),
    "ZeRO-3": ({"zero_stage": 3}, mesh(dp_shard=2, zero_stage=3, batch=4)),
    "tp 2": ({"tp": 2}, mesh(tp=2, batch=8)),
    "tp 2 + sequence": ({"tp": 2, "megatron": {"sequence_parallelism": True}}, mesh(tp=2, sequence=True, batch=8)),
    "pp 2, 1f1b": ({"pp": 2}, mesh(pp=2, order="1f1b", batch=2, steps=4)),
}


def speeds():
    """FLOP/s of a matmul of float32 and bytes a second of a copy, of one thread: the best of five."""
    import numpy
    a, flops, copy = numpy.ones((768, 768), "f"), [], []
    source = numpy.ones(16 << 20, "f")
    target = numpy.empty_like(source)
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        middle = time.perf_counter()
        target[:] = source
        flops.append(2 * 768**3 / (middle - start))
        copy.append(2 * source.nbytes / (time.perf_counter() - middle))
    return max(flops), max(copy)


def measure():
    """Steps of two ranks over those of one, each round's programs one after the other; the medians of the rounds' ratios."""
    sys.path.insert(0, str(TREE / "tests" / "parallel"))
    import ranks
    flops, copy = speeds()
    job = job_of(("gpt2", SMALL), 128, 2, SAMPLES, {"memory": "1GiB", "peak_flops": flops, "memory_bandwidth": copy,
                                                   "link": {"latency": 2, "bandwidth": copy / 2 / 1e6}}, kind="cpu", nodes=1)
    job["data"]["train"], job["precision"], job["memory"] = {"path": "corpus.txt", "format": "bytes"}, {}, {"activation_checkpointing": "none"}
    search, *_ = search_of(job)
    cluster = cost.Cluster(2, 2, 2**30, SAMPLES, search)
    one = cost.step_seconds(cluster, mesh(batch=SAMPLES))
    programs = {}
    for name, (keys, found) in {"one": ({}, mesh(batch=SAMPLES)), **MEASURED}.items():
        groups = {"accumulation": {"num_steps": found["num_steps"], "sync_with_dataloader": False}}
        programs[name] = ranks.Ranks(1 if name == "one" else 2, ranks.job_of(
            1 if name == "one" else 2, found["batch_size"], STEPS, config=SMALL, **groups, **({"parallelism": keys} if keys else {})))
        programs[name].build()
    ratios = {name: [] for name in MEASURED}
    for _ in range(ROUNDS):
        taken = {name: statistics.median(line["step_ms"] for line in program.run()[2:]) for name, program in programs.items()}
        for name in MEASURED:
            ratios[name].append(taken[name] / taken["one"])
    print(f"{flops / 1e9:.0f} GFLOP/s, {copy / 1e9:.1f} GB/s\n\n| two ranks | predicted | measured | rounds | off by |\n|---|---|---|---|---|")
    for name, (_, found) in MEASURED.items():
        predicted, median = cost.step_seconds(cluster, found) / one, statistics.median(ratios[name])
        print(f"| {name} | {predicted:.2f} | {median:.2f} | {min(ratios[name]):.2f} to {max(ratios[name]):.2f} | {100 * (predicted / median - 1):+.0f} % |")


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if not name.startswith("--")]
    if "--time" in sys.argv:
        times()
    elif "--measure" in sys.argv:
        measure()
    else:
        compare(names or list(RUNS))
