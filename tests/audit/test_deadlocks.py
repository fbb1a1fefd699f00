"""Single edits of programs whose ranks send to each other: the claim deadlock-free notices each of them, under every
schedule of a pipeline and of ring attention. The last lines are a table of kinds. TAP."""

import functools
import json
import random
import subprocess
import sys

from deadlocks import KINDS
from noticing import run
from test_matrix import GENERATOR, job_of

CONFIG = {"n_layer": 4, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 12}
MICRO_BATCHES = {"num_steps": 4, "sync_with_dataloader": False}
CHUNKS = {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}
# Programs of so many ranks.
RANKS = [(2, {"parallelism": {"pp": 2}, "training": {"eval_interval": 2}}),
         (4, {"parallelism": {"pp": 4, "pp_schedule": "zero_bubble"}}),
         (2, {"parallelism": {"pp": 2, "pp_schedule": "gpipe"}}),
         (2, {"parallelism": {"pp": 2, **CHUNKS}, "training": {"eval_interval": 2}}),
         (4, {"config": {**CONFIG, "n_layer": 8}, "parallelism": {"pp": 4, **CHUNKS}, "accumulation": {**MICRO_BATCHES, "num_steps": 8}}),
         (3, {"parallelism": {"cp": 3, "cp_comm": "ring"}, "accumulation": {}})]


def programs_in(folder):
    texts = []
    for ranks, groups in RANKS:
        job = job_of(ranks, 3, 4, **{"config": CONFIG, "accumulation": MICRO_BATCHES, **groups})
        (folder / "job.yaml").write_text(json.dumps(job))
        subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
        texts.append((folder / "program.c").read_text())
    return texts


def edit(kind, text, seed):
    return KINDS[kind](text, random.Random(f"{kind} {seed}"))


if __name__ == "__main__":
    kinds = {kind: ("deadlock-free", functools.partial(edit, kind)) for kind in KINDS}
    sys.exit(run(kinds, programs_in, lambda path, text: path.write_text(text), each=len(RANKS), least=12))
