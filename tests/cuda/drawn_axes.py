"""CUDA programs of meshes of three axes, drawn: the claims of accel-gen audit are proved, and some run over the stand-ins, with the losses
and norms of one process on the processor. The models are those of docs/meshes.md with four layers (T5: three of each kind, to have a
loop in either).

usage: drawn_axes.py COUNT [RUNS]    draws so many by SEED, and runs the first RUNS (0) of those that are taken; JOBS=N at a time (1)"""

import collections
import concurrent.futures
import os
import random
import subprocess
import sys

import host  # finds tests/parallel; isort: skip
import meshes
from ranks import GENERATOR, Ranks

STEPS = 3
LAYERS = {"n_layer": 4, "num_hidden_layers": 4, "num_layers": 3, "num_decoder_layers": 3}
SAMPLES = 4  # of a micro-batch


def job(model, mesh):
    _, config, groups = meshes.MODELS[model]
    config = {name: LAYERS.get(name, value) for name, value in config.items()}
    ranks = meshes.ranks_of(mesh) if mesh else 1
    replicas = meshes.replicas_of(mesh) if mesh else 1
    return meshes.job_of(ranks, SAMPLES // replicas, STEPS, model=model, config=config, accumulation=dict(meshes.MICRO_BATCHES),
                         parallelism=meshes.parallelism(mesh), **{name: dict(keys) for name, keys in groups.items()})


def unproved(model, mesh):
    """Why the generator refuses the mesh, and what the audit cannot prove of its program; None: nothing."""
    groups = job(model, mesh)
    groups["devices"]["kind"] = "cuda"
    trainer = Ranks(meshes.ranks_of(mesh), groups)
    result = subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "trainer.c"], capture_output=True, text=True)
    if result.returncode != 0:
        return result.stderr.split("error: ")[1].splitlines()[0], None
    result = subprocess.run([GENERATOR, "audit", "trainer.c"], cwd=trainer.folder, capture_output=True, text=True)
    lines = [line.strip() for line in result.stdout.splitlines() if not line.startswith("  holds")]
    return None, None if result.returncode == 0 else "\n".join([*lines, result.stderr])


def ran(trainer):
    (trainer.folder / "corpus.txt").write_bytes(meshes.CORPUS)
    trainer.build()
    return trainer.run()


def differs(model, mesh, parts):
    """What is not as in one process; None where all is."""
    wanted = ran(host.Trainer(job(model, ())))
    for line, want in zip(ran(host.HostTrainer(job(model, mesh), parts)), wanted, strict=True):
        if not abs(line["loss"] / want["loss"] - 1) < 1e-6:
            return f"loss of step {line['step']}: {line['loss']}, {want['loss']} of one process"
        if not abs(line["grad_norm"] / want["grad_norm"] - 1) < 1e-4:
            return f"norm of step {line['step']}: {line['grad_norm']}, {want['grad_norm']} of one process"
    return None


def main():
    count, runs = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seed = os.environ.get("SEED", "0")
    triples = [(model, mesh) for model in meshes.MODELS for mesh in meshes.meshes() if len(mesh) == 3
               and (model == "qwen_moe" or all(kind != "ep" for kind, _ in mesh))]
    drawn = random.Random(f"{seed} axes").sample(triples, count)
    counts, failed = collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for (model, mesh), (refused, why) in zip(drawn, pool.map(lambda each: unproved(*each), drawn)):
            said = "refused" if refused else "FAIL" if why else "holds"
            if said == "holds" and counts["run"] < runs:
                counts["run"] += 1
                why = differs(model, mesh, host.objects())
                said = "FAIL" if why else "holds, runs as one process"
            counts[said.split(",")[0]] += 1
            failed += said == "FAIL"
            print(f"{said} {meshes.text_of(model, mesh)}{': ' + (refused or why) if refused or why else ''}", flush=True)
    print(dict(counts), f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
