"""The optimizer's step over 17 million parameters: an emitted program's update against the machine's copy bandwidth and
PyTorch's AdamW, fused and foreach, in turns within one process. Prints a table of GB/s: bytes that the arithmetic must
move (AdamW in float32: weight, gradient and two moments read, weight and moments written, 28 a parameter) over time.

ROUNDS=N: rounds, 15 by default. THREADS=N: threads for all, by default the cores."""

import ctypes
import os
import pathlib
import statistics
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
THREADS = int(os.environ.get("THREADS", len(os.sched_getaffinity(0))))
os.environ["OMP_NUM_THREADS"] = str(THREADS)
sys.path[:0] = [str(TREE / "tests" / "bench"), str(TREE / "tests" / "optimizer"), str(TREE / "tests" / "program")]

import torch  # noqa: E402
from machine import copier  # noqa: E402
from parts import make_job  # noqa: E402
from test_against_torch import Rule  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", 15))
# What a step moves for a parameter, in bytes: weights and gradients 12, states read and written.
OURS = {
    "adamw": ({"name": "adamw"}, 28),
    "adamw, bf16 states": ({"name": "adamw", "state_dtype": "bf16"}, 20),
    "adamw, 8-bit states": ({"name": "adamw", "state_dtype": "8bit"}, 16 + 16 / 256),
    "sgd with momentum": ({"name": "sgd", "momentum": 0.9}, 20),
    "lion": ({"name": "lion"}, 20),
}


def ours(keys):
    """The update alone: PyTorch's step does not ask for a norm either."""
    job = make_job(optimizer=keys)
    job["model"]["config"].update(width=4096, n_layer=2)
    rule = Rule(job)
    rule.code.begin()
    rule.gradients[:] = torch.randn(len(rule.gradients)).numpy()
    at = iter(range(1 << 30))
    return lambda: rule.code.update_alone(ctypes.c_int64(next(at)), ctypes.c_double(1e-3)), len(rule.weights)


def theirs(elements, **how):
    weight = torch.nn.Parameter(torch.randn(elements))
    weight.grad = torch.randn(elements)
    return torch.optim.AdamW([weight], lr=1e-3, **how).step


def main():
    torch.set_num_threads(THREADS)
    rows, elements = {}, 0
    for name, (keys, size) in OURS.items():
        run, elements = ours(keys)
        rows[name] = (run, size * elements)
    rows = {"copy": (copier(elements), 8 * elements), **rows}
    rows["PyTorch's AdamW, fused"] = (theirs(elements, fused=True), 28 * elements)
    rows["PyTorch's AdamW, foreach"] = (theirs(elements, foreach=True), 28 * elements)
    times = {name: [] for name in rows}
    for round in range(ROUNDS + 2):
        for name, (run, _) in rows.items():
            begin = time.perf_counter()
            run()
            if round >= 2:
                times[name].append(time.perf_counter() - begin)
    print(f"{elements:,} parameters, {THREADS} threads, {ROUNDS} rounds: the median, and the quartiles\n")
    print("| | GB/s | from | to | ms |\n|---|---|---|---|---|")
    for name, (_, size) in rows.items():
        low, middle, high = statistics.quantiles(times[name], n=4)
        print(f"| {name} | {size / middle / 1e9:.1f} | {size / high / 1e9:.1f} | {size / low / 1e9:.1f} "
              f"| {middle * 1e3:.1f} |")


if __name__ == "__main__":
    main()
