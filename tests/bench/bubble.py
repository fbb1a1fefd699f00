"""How long the stages of a pipeline wait for each other, compared with what the schedule's formula says: (N - 1) / (V M + N - 1) of a
step for N ranks, V stages on each and M micro-batches, and (N - 1) / (3 M + N - 1) with zero_bubble.

usage: bubble.py [--each MS] [--steps N] [--width N] [SCHEDULE...]

The program is the one that accel-gen writes. A library that is loaded before oneDNN (timed_matmul.c) makes each matmul of a layer last
--each milliseconds, by waiting, so that stages take equally long and ranks need no core each: what is measured is the order of work
and messages, not the speed of kernels. A step is from the first matmul of any rank to the last one, over the number of steps; what a
rank does not spend in matmuls of layers counts as waiting, with all messages, other kernels, the norm and the update in it."""

import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import FAST, Ranks, job_of, start  # noqa: E402

CHUNKS = {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}
ZERO_BUBBLE = {"pp_schedule": "zero_bubble"}
VOCABULARY = 256
CASES = [("1f1b", 2, 4, 4, {}), ("1f1b", 2, 4, 8, {}), ("gpipe", 2, 4, 4, {"pp_schedule": "gpipe"}), ("interleaved", 2, 4, 4, CHUNKS),
         ("interleaved", 2, 4, 8, CHUNKS), ("1f1b", 4, 8, 8, {}), ("gpipe", 4, 8, 8, {"pp_schedule": "gpipe"}),
         ("interleaved", 4, 8, 8, CHUNKS), ("zero_bubble", 2, 4, 4, ZERO_BUBBLE), ("zero_bubble", 2, 4, 8, ZERO_BUBBLE),
         ("zero_bubble", 4, 8, 8, ZERO_BUBBLE)]


def measured(trainer, library, options):
    """The fraction of a step in which ranks do not multiply matrices of layers."""
    for path in trainer.folder.glob("busy.*"):
        path.unlink()
    result = start(trainer.folder / "trainer", trainer.ranks, cwd=trainer.folder, LD_PRELOAD=str(library), BUBBLE_OUT="busy",
                   MATMUL_SECONDS=str(options.each / 1000), BUBBLE_VOCABULARY=str(VOCABULARY))
    assert result.returncode == 0, result.stderr
    ranks = [[float(word) for word in path.read_text().split()] for path in trainer.folder.glob("busy.*")]
    assert len(ranks) == trainer.ranks, ranks
    duration = max(last for _, last, _ in ranks) - min(first for first, _, _ in ranks)
    return 1 - sum(busy for *_, busy in ranks) / len(ranks) / duration


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=float, default=20.0)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("schedules", nargs="*", default=sorted({name for name, *_ in CASES}), metavar="SCHEDULE")
    options = parser.parse_args()
    library = None
    print("| schedule | ranks | stages a rank | micro-batches | formula | measured | measured / formula |\n|---|---|---|---|---|---|---|")
    for name, ranks, layers, micro_batches, mesh in [case for case in CASES if case[0] in options.schedules]:
        config = {"n_layer": layers, "n_head": 2, "n_embd": options.width, "vocab_size": VOCABULARY, "block_size": 12}
        trainer = Ranks(ranks, job_of(ranks, 2, options.steps, config=config, parallelism={"pp": ranks, **mesh},
                                      accumulation={"num_steps": micro_batches, "sync_with_dataloader": False}))
        trainer.build(CFLAGS=FAST)
        if library is None:
            library = trainer.folder / "timed_matmul.so"
            source = pathlib.Path(__file__).with_name("timed_matmul.c")
            subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-O2", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
        pipeline = trainer.plan()["pipeline"]
        bubble = measured(trainer, library, options)
        print(f"| {name} | {ranks} | {len(pipeline['stages'][0]['chunks'])} | {micro_batches} | {100 * pipeline['bubble']:.1f} % | "
              f"{100 * bubble:.1f} % | {bubble / pipeline['bubble']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
