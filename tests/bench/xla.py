"""A step of programs for XLA, compared with the same job's program for the processor and, with --jax, with the same model written in
JAX, whose step the same plugin compiles: all in turns, from the same weights on the same samples. Prints the medians of each pair's
ratio, with their range, and the largest difference of a loss.

usage: xla.py [--pairs N] [--jax PYTHON] [NAME...]: an interpreter with jax, numpy and safetensors"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "runtime")]

LINE, LINES = 5, 6  # steps between the lines of a log, and lines: the first is not counted
MODELS = {
    "tiny": {"n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 256, "block_size": 64, "batch_size": 12},
    "gpt-256": {"n_layer": 4, "n_head": 8, "n_embd": 256, "vocab_size": 256, "block_size": 128, "batch_size": 8},
}
RATE, BETAS, DECAY, CLIP, HELD_OUT = 1e-3, (0.9, 0.99), 0.1, 1.0, 0.1


def shapes(c):
    width = c["n_embd"]
    yield "transformer.wte.weight", (c["vocab_size"], width)
    yield "transformer.wpe.weight", (c["block_size"], width)
    for i in range(c["n_layer"]):
        for name, shape in (("ln_1", (width,)), ("attn.c_attn", (3 * width, width)), ("attn.c_proj", (width, width)), ("ln_2", (width,)),
                            ("mlp.c_fc", (4 * width, width)), ("mlp.c_proj", (width, 4 * width))):
            yield f"transformer.h.{i}.{name}.weight", shape
    yield "transformer.ln_f.weight", (width,)


# ---- JAX, in a process of its own ----


def jax_step(c):
    import jax
    import jax.numpy as jnp

    def norm(x, weight):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight

    def block(w, at, x):
        batch, length, width = x.shape
        parts = jnp.split(norm(x, w[f"{at}.ln_1.weight"]) @ w[f"{at}.attn.c_attn.weight"].T, 3, -1)
        q, k, v = (p.reshape(batch, length, c["n_head"], -1).transpose(0, 2, 1, 3) for p in parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width / c["n_head"]).astype(np.float32)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + y @ w[f"{at}.attn.c_proj.weight"].T
        y = jax.nn.gelu(norm(x, w[f"{at}.ln_2.weight"]) @ w[f"{at}.mlp.c_fc.weight"].T, approximate=False)
        return x + y @ w[f"{at}.mlp.c_proj.weight"].T

    def loss_of(w, tokens, targets):
        x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"]
        for i in range(c["n_layer"]):
            x = block(w, f"transformer.h.{i}", x)
        logits = norm(x, w["transformer.ln_f.weight"]) @ w["transformer.wte.weight"].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()

    def step(w, first, second, number, tokens, targets):
        loss, gradient = jax.value_and_grad(loss_of)(w, tokens, targets)
        length = jnp.sqrt(sum((g * g).sum() for g in gradient.values()))
        scale = jnp.minimum(1, CLIP / (length + 1e-6))
        one, two = 1 - BETAS[0] ** number, 1 - BETAS[1] ** number
        for name, g in gradient.items():
            g = g * scale
            first[name] = BETAS[0] * first[name] + (1 - BETAS[0]) * g
            second[name] = BETAS[1] * second[name] + (1 - BETAS[1]) * g * g
            kept = w[name] * (1 - RATE * DECAY)
            w[name] = kept - RATE * (first[name] / one) / (jnp.sqrt(second[name] / two) + 1e-8)
        return loss, w, first, second

    return jax.jit(step, donate_argnums=(0, 1, 2))


def run_jax(name, folder):
    """One line of JSON: milliseconds of a step, between lines, and the losses at their ends."""
    from safetensors.numpy import load_file

    folder = pathlib.Path(folder)
    w, batches = load_file(folder / "start.safetensors"), np.load(folder / "batches.npy")
    first, second = ({key: np.zeros_like(value) for key, value in w.items()} for _ in range(2))
    step, times, losses, begin = jax_step(MODELS[name]), [], [], time.perf_counter()
    for i, (tokens, targets) in enumerate(batches, 1):
        loss, w, first, second = step(w, first, second, np.float32(i), tokens, targets)
        if i % LINE == 0:
            losses.append(float(loss))
            times.append(1e3 * (time.perf_counter() - begin) / LINE)
            begin = time.perf_counter()
    print(json.dumps({"ms": times, "losses": losses}))


# ---- Programs ----


def prepare(name):
    """A trainer for each device, and the function that gives a turn of each peer: milliseconds of a step, and losses."""
    from harness import Trainer, save_file, windows

    c, rng, steps = MODELS[name], np.random.default_rng(1), LINE * LINES
    text = bytes(rng.integers(97, 123, 200000).astype(np.uint8))
    weights = {key: (np.ones(s) if len(s) == 1 else 0.02 * rng.normal(size=s)).astype(np.float32) for key, s in shapes(c)}
    trainers = {}
    for device in ("cpu", "xla"):
        trainer = trainers[device] = Trainer({
            "model": {"source": str(TREE / "examples" / "models" / "nanogpt.c"), "weights": "start.safetensors",
                      "config": {**{key: value for key, value in c.items() if key != "batch_size"}, "bias": False}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": c["batch_size"], "eval_fraction": HELD_OUT},
            "optimizer": {"name": "adamw", "lr": RATE, "betas": list(BETAS), "weight_decay": DECAY, "clip_grad_norm": CLIP},
            "training": {"steps": steps, "seed": 3}, "devices": {"kind": device}})
        trainer.job["tracking"]["every"] = LINE
        trainer.write()
        (trainer.folder / "corpus.txt").write_bytes(text)
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.build(cflags=None)
    batch_at = windows(text, c["block_size"], c["batch_size"], 3, True, HELD_OUT)
    np.save(trainers["xla"].folder / "batches.npy", [np.stack(batch_at(i)).astype(np.int32) for i in range(steps)])
    return trainers


def ours(trainer):
    rows = [row for row in trainer.run(OMP_NUM_THREADS=str(len(os.sched_getaffinity(0)))) if row["step"] % LINE == 0]
    return {"ms": [row["step_ms"] for row in rows], "losses": [row["loss"] for row in rows]}


def theirs(python, name, folder):
    plugin = os.environ.get("PJRT_PLUGIN_LIBRARY_PATH") or next(
        str(path) for path in pathlib.Path(python).parents[1].glob("lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/*.so"))
    said = subprocess.run([python, __file__, "--run", name, folder], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PJRT_NAMES_AND_LIBRARY_PATHS": f"plugin:{plugin}", "JAX_PLATFORMS": "plugin"}).stdout
    return json.loads(said.splitlines()[-1])


def compare(name, pairs, python):
    trainers = prepare(name)
    peers = {"cpu": lambda: ours(trainers["cpu"])}
    if python:
        peers["jax"] = lambda: theirs(python, name, trainers["xla"].folder)
    ratios, far = {peer: [] for peer in peers}, dict.fromkeys(peers, 0.0)
    for _ in range(pairs):
        for peer, run in peers.items():
            one, other = run(), ours(trainers["xla"])
            ratios[peer].append(statistics.median(other["ms"][1:]) / statistics.median(one["ms"][1:]))
            far[peer] = max(far[peer], max(abs(b / a - 1) for a, b in zip(one["losses"], other["losses"], strict=True)))
    for peer, values in ratios.items():
        print(f"{name}: a step of xla takes {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f}) of one of {peer}, "
              f"{pairs} pairs; losses differ by {far[peer]:.1e}; load {os.getloadavg()[0]:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--jax")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", default=list(MODELS))
    words = parser.parse_args()
    if words.run:
        run_jax(*words.run)
        return
    for name in words.names:
        compare(name, words.pairs, words.jax)


if __name__ == "__main__":
    main()
