"""Two ranks with a thread each that divide one model: our tp, sp, cp and pp against PyTorch's over gloo, in pairs of runs.

usage: axes.py [--axes one,tp,tp-compile,sp,cp,pp] [--pairs 5] [--steps 20] [--json FILE]

Both sides start from the same weights, take the same samples in the same order and keep float32; AdamW, clip 1.0. The script fails when the
losses of any step differ by more than 1e-5 of the loss. `one` is one process with one thread, which shows what kernels are worth without any
exchange. PyTorch's side is that of ranks.py (peer_axes.py): DTensor with ColwiseParallel and RowwiseParallel, eager and compiled (tp,
tp-compile); all_to_all_single around scaled_dot_product_attention (sp); keys and values gathered around it (cp: context_parallel of
torch.distributed.tensor.experimental has no kernel for CPUs); Schedule1F1B with four micro-batches (pp), as ours has.

A pair is a run of each, one after the other, ours first in every other pair. A figure of a run is its median step; the first SKIPPED and
the last one do not count. The ratio is the median over pairs, with the least and the greatest. Memory is the peak of resident memory (VmHWM)
of the rank that has more; of PyTorch's, the part that importing it takes is given next to it. "exchange" is what a step of our rank 0 spends
in collectives by the program's own profile, waiting for the other rank included; pipelines have no profile.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import numpy as np
from peers import HERE, ROOT, WORK, Run, number_of_line, processor
from ranks import EXCHANGE, MICRO_BATCHES, MPI, RANKS, TOGETHER
from safetensors.numpy import save_file

LAYERS, HEADS, WIDTH, VOCABULARY, LENGTH, BATCH = 4, 4, 256, 1024, 256, 8  # "axes" of peer_torch.py
SKIPPED = 6
TOLERANCE = 1e-5
TOKENS, WEIGHTS = os.path.join(WORK, "axes.bin"), os.path.join(WORK, "axes.safetensors")

# The keys of ours, and PyTorch's mode of peer_ranks.py.
AXES = {"one": ({}, "one"), "tp": (TOGETHER["ours-tp"], "tp"), "tp-compile": (TOGETHER["ours-tp"], "tp-compile"),
        "sp": (TOGETHER["ours-sp"], "sp"), "cp": (TOGETHER["ours-cp"], "cp"), "pp": (TOGETHER["ours-pp-1f1b"], "pp-1f1b")}


def write_inputs(steps):
    draws = np.random.default_rng(1)
    draws.integers(0, VOCABULARY, steps * BATCH * LENGTH + 1).astype(np.uint16).tofile(TOKENS)
    shapes = {"wte": (VOCABULARY, WIDTH), "wpe": (LENGTH, WIDTH), "ln_f": (WIDTH,)}
    for layer in range(LAYERS):
        shapes |= {f"h.{layer}.{name}": shape for name, shape in {
            "ln_1": (WIDTH,), "attn.c_attn": (3 * WIDTH, WIDTH), "attn.c_proj": (WIDTH, WIDTH), "ln_2": (WIDTH,),
            "mlp.c_fc": (4 * WIDTH, WIDTH), "mlp.c_proj": (WIDTH, 4 * WIDTH)}.items()}
    # Norms around one, all else around zero.
    save_file({f"transformer.{name}.weight": draws.normal(2 - len(shape), 0.02, shape).astype(np.float32) for name, shape in shapes.items()},
              WEIGHTS)


class Ours:
    def __init__(self, name, keys, steps):
        self.ranks, self.steps = 1 if name == "one" else RANKS, steps
        self.program = os.path.join(WORK, "axes-" + name)
        self.job = {
            "model": {"source": os.path.join(ROOT, "examples", "models", "nanogpt.c"), "weights": WEIGHTS, "config": {
                "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "vocab_size": VOCABULARY, "block_size": LENGTH, "bias": False}},
            "data": {"train": {"path": TOKENS, "format": "nanogpt"}, "shuffle": False, "eval_fraction": 0,
                     "batch_size": BATCH // MICRO_BATCHES if name == "pp" else BATCH},
            "optimizer": {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.99], "weight_decay": 0.1, "clip_grad_norm": 1.0},
            "training": {"steps": steps}, "devices": {"threads": 1, "per_node": self.ranks}, "tracking": {"every": 1},
            "checkpoint": {"project_dir": self.program + "-run"}}
        if name != "pp":
            self.job["profile"] = {"schedule": {"wait": SKIPPED, "active": steps - SKIPPED}}
        self.words = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]

    def build(self):
        job = self.program + ".yaml"
        pathlib.Path(job).write_text(json.dumps(self.job), encoding="utf-8")  # JSON is YAML
        subprocess.run([os.path.join(ROOT, "build", "accel-gen"), "build", job, "-o", self.program, *self.words], check=True)

    def peaks(self):
        """VmHWM of the processes that run the program now, in MiB."""
        of_ranks = [process.parent for process in pathlib.Path("/proc").glob("[0-9]*/exe") if self.runs(process)]
        lines = [line for rank in of_ranks for line in (rank / "status").read_text(encoding="utf-8").splitlines()]
        return [int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")]

    def runs(self, process):
        try:
            return os.readlink(process) == self.program
        except OSError:  # of another user, or ended meanwhile
            return False

    def run(self):
        """The peak is read when all steps have been but the last, which does not count, so that the ranks are still there."""
        folder, peaks, lines = self.program + "-run", [], []
        shutil.rmtree(folder, ignore_errors=True)

        def parse(line):
            ms = number_of_line(line)
            lines.extend([] if ms is None else [line])
            if ms is not None and len(lines) == self.steps - 1:
                peaks.extend(self.peaks())
            return ms

        launch = ["mpirun", "--bind-to", "none", "-n", str(self.ranks)] if self.ranks > 1 else []
        run = Run([*launch, self.program], parse, environment=MPI)
        if len(peaks) != self.ranks:
            raise RuntimeError(f"{self.program}: {len(peaks)} processes of {self.ranks} in the last step but one")
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
            metrics = [json.loads(line) for line in file]
        exchange = sum(float(ms) for ms in EXCHANGE.findall("".join(run.lines)))
        return {"ms": statistics.median(line["step_ms"] for line in metrics[SKIPPED:-1]), "losses": [line["loss"] for line in metrics],
                "mib": max(peaks), "exchange_ms": exchange}


class Torch:
    def __init__(self, mode, steps):
        self.command = [sys.executable, os.path.join(HERE, "peer_ranks.py"), "axes", TOKENS, str(steps), mode, WEIGHTS]

    def run(self):
        run = Run(self.command, lambda line: json.loads(line).get("step_ms") if line.startswith("{") else None)
        lines = [json.loads(line) for line in run.lines if line.startswith("{")]
        ranks = [line for line in lines if "rank" in line]
        return {"ms": statistics.median(run.steps[SKIPPED:-1]), "losses": [line["loss"] for line in lines if "loss" in line],
                "mib": max(rank["peak_mib"] for rank in ranks), "imported_mib": max(rank["imported_mib"] for rank in ranks)}


def measure(name, pairs, steps):
    keys, mode = AXES[name]
    sides = {"ours": Ours(name, keys, steps), "torch": Torch(mode, steps)}
    sides["ours"].build()
    runs = {side: [] for side in sides}
    for at in range(pairs):
        for side in sorted(sides, reverse=at % 2):
            print(f"\r{name}: pair {at + 1} of {pairs}, {side}   ", end="", file=sys.stderr, flush=True)
            runs[side].append(sides[side].run())
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return summary(runs)


def summary(runs):
    result = {side: {key: statistics.median(run[key] for run in of_side) for key in of_side[0] if key != "losses"}
              | {"medians_ms": [run["ms"] for run in of_side]} for side, of_side in runs.items()}
    pairs = list(zip(runs["ours"], runs["torch"]))
    return result | {"ratios": [ours["ms"] / torch["ms"] for ours, torch in pairs],
                     "difference": max(abs(a / b - 1) for ours, torch in pairs for a, b in zip(ours["losses"], torch["losses"], strict=True))}


def print_axis(name, result):
    ours, torch, ratios = result["ours"], result["torch"], result["ratios"]
    spread = {side: f"{result[side]['ms']:.1f} ({min(result[side]['medians_ms']):.1f} - {max(result[side]['medians_ms']):.1f})"
              for side in ("ours", "torch")}
    exchange = f"{ours['exchange_ms']:.1f}" if ours["exchange_ms"] > 0 else ""
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"
    memory = f"{torch['mib']:.0f} ({torch['imported_mib']:.0f})"
    print(f"{name:12}{spread['ours']:>24}{spread['torch']:>24}{ratio:>22}{exchange:>10}{ours['mib']:>10.0f}{memory:>14}"
          f"{result['difference']:>12.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--axes", default=",".join(AXES))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", default=os.path.join(WORK, "axes.json"))
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    write_inputs(options.steps)
    report = {"machine": processor(), "pairs": options.pairs, "steps": options.steps, "axes": {}}
    print(f"{report['machine']}, {RANKS} ranks of a thread, {options.pairs} pairs of {options.steps} steps; {LAYERS} layers, {HEADS} heads, "
          f"{WIDTH} wide, T {LENGTH}, B {BATCH}, V {VOCABULARY}; load when it began {os.getloadavg()[0]:.1f}")
    print(f"{'':12}{'ours ms':>24}{'PyTorch ms':>24}{'ours / PyTorch':>22}{'exchange':>10}{'ours MiB':>10}{'PyTorch MiB':>14}"
          f"{'losses':>12}")
    for name in options.axes.split(","):
        report["axes"][name] = measure(name, options.pairs, options.steps)
        print_axis(name, report["axes"][name])
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)
    off = [name for name, result in report["axes"].items() if not result["difference"] <= TOLERANCE]
    if off:
        raise SystemExit(f"losses differ by more than {TOLERANCE}: {', '.join(off)}")


if __name__ == "__main__":
    main()
