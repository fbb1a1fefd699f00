"""Two ranks with a thread each: our trainer against PyTorch's DDP, FSDP2 and its ways to divide a model, interleaved rounds.

usage: ranks.py [--jobs tiny,small] [--rounds 3] [--steps N] [--json FILE] [--peers ours,...,ddp,fsdp2,ours-tp,...,tp,...]

As in peers.py; the batch is a rank's. `ours-1` is one rank alone on the machine, `ours-zero1`
and -zero3 divide states, and weights too, as FSDP2 does.

In the other rows both ranks take one batch: a step has half the samples of a step of `ours`, `ddp` or `fsdp2`, as many as one of
`ours-1`. PyTorch's losses are those of its model in one process. Each of ours compares with the row without "ours-":

  tp  Matrices and heads of attention are divided: parallelize_module with ColwiseParallel and RowwiseParallel, eager; `tp-compile` is the
      same under torch.compile. What is divided in all of them: attention's fused product of queries, keys and values by heads (PyTorch's
      has its rows reordered for that), its output, both matrices of the MLP. Norms are whole on each rank, and in PyTorch's rows so are
      embeddings, logits and the loss, which ours divide, too. In `ours-residual` what is between the divided matrices is split over
      positions, too.
  sp  Sequences are divided, and around attention ranks exchange positions for heads (DeepSpeed-Ulysses). PyTorch has no module for it;
      the peer calls all_to_all_single_autograd and DDP.
  cp  Sequences are divided, in two chunks for each rank, and keys and values gathered. PyTorch's own context_parallel has no kernel for
      CPUs; the peer calls all_gather_tensor_autograd, scaled_dot_product_attention and DDP.
  pp  Layers are divided into two stages, with four micro-batches of a quarter of the batch: torch.distributed.pipelining with
      ScheduleGPipe, and with Schedule1F1B.

"above" is what the median step takes beyond the same step without any exchange, two processes at a time, in the first rows: for
ours two programs of one rank, for DDP its own steps within no_sync, for FSDP2 the same ones. "exchange" is what a step of our rank 0
spends in collectives, as the program's own profile has it: beginning them, adding up, and waiting, the other rank's lateness included;
pipelines have no profile. Peak memory is the larger of two ranks.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

from peers import HERE, ROOT, WORK, Job, Run, number_of_line, our_job, processor, tokens

RANKS = 2
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1", "HWLOC_COMPONENTS": "-opencl"}

# Our rows: the keys of each.
SHARDED = {"parallelism.dp_shard": RANKS}
OURS = {"ours": {}, "ours-zero1": {**SHARDED, "parallelism.zero_stage": 1}, "ours-zero3": {**SHARDED, "parallelism.zero_stage": 3}}
TOGETHER = {f"ours-{axis}": {f"parallelism.{axis}": RANKS} for axis in ("tp", "sp", "cp")}  # ranks take the same batches
TOGETHER["ours-residual"] = {**TOGETHER["ours-tp"], "parallelism.megatron.sequence_parallelism": "true"}
MICRO_BATCHES = 4  # of a pipeline, as in peer_axes.py
for schedule in ("gpipe", "1f1b"):
    TOGETHER[f"ours-pp-{schedule}"] = {"parallelism.pp": RANKS, "parallelism.pp_schedule": schedule,
                                       "accumulation.num_steps": MICRO_BATCHES, "accumulation.sync_with_dataloader": "false"}
APART = ("tp", "tp-compile", "sp", "cp", "pp-gpipe", "pp-1f1b")  # PyTorch's, which compare with those

# The lines of a profile that have calls, ms and % of collectives: of gradients and weights, and of tensors that ranks divide.
EXCHANGE = re.compile(r"^ +[0-9.]+ +([0-9.]+) +[0-9.]+   (?:exchange|all_(?:reduce|gather|to_all)_\w+|reduce_scatter_\w+)$", re.MULTILINE)


def batch_size(job):
    """Of the job's example."""
    with open(our_job(job)[0], encoding="utf-8") as file:
        return int(re.search(r"^  batch_size: (\d+)$", file.read(), re.MULTILINE).group(1))


class Ours:
    """Programs of our own: of two ranks, of one."""

    def __init__(self, ranks, keys):
        self.ranks, self.keys = ranks, keys
        self.mark = "-".join(["ranks", str(ranks), *(f"{key.rpartition('.')[2]}-{value}" for key, value in keys.items())])

    def program(self, job):
        return os.path.join(WORK, f"{job.name}-{self.mark}")

    @staticmethod
    def words(keys):
        return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]

    def prepare(self, job):
        keys = {"data.train.path": tokens(job), "devices.threads": 1, "devices.per_node": self.ranks, "tracking.every": 1,
                **self.keys}
        if "parallelism.pp" in self.keys:
            keys["data.batch_size"] = batch_size(job) // MICRO_BATCHES
        else:
            keys["profile"] = f"{{schedule: {{wait: {job.skipped}, active: {job.steps - job.skipped}}}}}"
        subprocess.run([os.path.join(ROOT, "build", "accel-gen"), "build", *our_job(job), "-o", self.program(job),
                        *self.words(keys)], check=True)

    def folder(self, job, copy=0):
        folder = f"{self.program(job)}-run{copy}"
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def steps(self, folder):
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as lines:
            return [json.loads(line)["step_ms"] for line in lines]

    def run(self, job):
        folder = self.folder(job)
        words = [self.program(job), "--steps", str(job.steps), "--project-dir", folder]
        launch = ["mpirun", "--bind-to", "none", "-n", str(self.ranks)] if self.ranks > 1 else []
        run = Run([*launch, *words], number_of_line, environment=MPI)
        run.steps = self.steps(folder)
        run.exchange = sum(float(ms) for ms in EXCHANGE.findall("".join(run.lines)))
        return run

    def quiet(self, job):
        """The steps of two programs of one rank at a time."""
        folders = [self.folder(job, copy) for copy in range(RANKS)]
        running = [subprocess.Popen([self.program(job), "--steps", str(job.steps), "--project-dir", folder], cwd=WORK,
                                    env={**os.environ, **MPI}, stdout=subprocess.DEVNULL) for folder in folders]
        if any(process.wait() for process in running):
            raise RuntimeError(f"{self.program(job)} failed")
        return self.steps(folders[0])[job.skipped:]


class Torch:
    def __init__(self, mode):
        self.mode = mode

    def prepare(self, job):
        del job

    def run(self, job):
        def parse(line):
            return json.loads(line).get("step_ms") if line.startswith("{") else None

        run = Run([sys.executable, os.path.join(HERE, "peer_ranks.py"), job.shape, tokens(job), str(job.steps), self.mode], parse)
        ends = [json.loads(line) for line in run.lines if line.startswith('{"rank"')]
        run.peak = max(end["peak_mib"] for end in ends)
        run.quiet = ends[0]["quiet_ms"]
        return run


def measure(job, rows, rounds):
    runs, quiet = {name: [] for name in rows}, {"ours": [], "torch": []}
    for row in rows.values():
        row.prepare(job)
    alone = rows.get("ours-1")
    for at in range(rounds):
        for name, row in rows.items():
            print(f"\r{job.name}: round {at + 1} of {rounds}, {name}   ", end="", file=sys.stderr, flush=True)
            runs[name].append(row.run(job))
        if alone is not None:
            quiet["ours"] += alone.quiet(job)
        quiet["torch"] += [ms for run in runs.get("ddp", [])[-1:] for ms in run.quiet]
    print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return {name: summary(job, done, quiet["ours" if name.startswith("ours") else "torch"], name) for name, done in runs.items()}


def summary(job, runs, quiet, name):
    medians = [statistics.median(run.steps[job.skipped:]) for run in runs]
    least = statistics.median(quiet) if quiet and name != "ours-1" and name not in TOGETHER and name not in APART else None
    exchange = [run.exchange for run in runs if getattr(run, "exchange", 0) > 0]
    return {"min_ms": min(min(run.steps[job.skipped:]) for run in runs), "median_ms": statistics.median(medians),
            "round_medians_ms": medians, "above_ms": None if least is None else statistics.median(medians) - least,
            "exchange_ms": statistics.median(exchange) if exchange else None, "first_step_s": [run.first for run in runs],
            "peak_mib": max(run.peak for run in runs)}


def print_job(job, results):
    print(f"\n{job.title()}, of each rank\n  {'':12}{'min ms':>9}{'median ms':>11}{'range of medians':>20}{'above ms':>10}{'exchange ms':>13}"
          f"{'first step s':>15}{'peak MiB':>10}")
    for name, result in results.items():
        spread = f"{min(result['round_medians_ms']):.1f} - {max(result['round_medians_ms']):.1f}"
        first = f"{min(result['first_step_s']):.2f} - {max(result['first_step_s']):.2f}"
        above, exchange = (f"{result[key]:.1f}" if result[key] is not None else "" for key in ("above_ms", "exchange_ms"))
        print(f"  {name:12}{result['min_ms']:>9.1f}{result['median_ms']:>11.1f}{spread:>20}{above:>10}{exchange:>13}{first:>15}"
              f"{result['peak_mib']:>10.0f}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    rows = {"ours-1": Ours(1, {}), **{name: Ours(RANKS, keys) for name, keys in OURS.items()}, "ddp": Torch("ddp"),
            "fsdp2": Torch("fsdp2"), **{name: Ours(RANKS, keys) for name, keys in TOGETHER.items()},
            **{name: Torch(name) for name in APART}}
    parser.add_argument("--jobs", default="tiny,small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of a run, where fewer than a job's will do")
    parser.add_argument("--peers", default=",".join(rows))
    parser.add_argument("--json", default=os.path.join(WORK, "ranks.json"))
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    report = {"machine": processor(), "ranks": RANKS, "rounds": options.rounds, "jobs": {}}
    print(f"{report['machine']}, {RANKS} ranks of a thread, {options.rounds} interleaved rounds; AdamW, clip 1.0; "
          f"load when it began {os.getloadavg()[0]:.1f}")
    for job in [Job(name) for name in options.jobs.split(",")]:
        job.steps = options.steps or job.steps
        job.skipped = min(job.skipped, job.steps // 2)
        report["jobs"][job.name] = measure(job, {name: rows[name] for name in options.peers.split(",")}, options.rounds)
        print_job(job, report["jobs"][job.name])
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(report, out, indent=1)


if __name__ == "__main__":
    main()
