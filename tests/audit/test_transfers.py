"""Programs with collectives in flight: all claims hold for them, and the claim no-race-with-transfers notices each of single
edits of them. The last lines are a table of kinds. TAP."""

import functools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from noticing import run
from test_matrix import GENERATOR, check, job_of
from transfers import KINDS

CONFIG = {"n_layer": 4, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12}
EXPERTS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
           "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
MICRO_BATCHES = {"num_steps": 4, "sync_with_dataloader": False}
CHUNKS = {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}
BUCKETS = {"ddp": {"bucket_cap_mb": 0.01}}


def mesh(**parallelism):
    return {"parallelism": parallelism}


# Programs of so many ranks.
RANKS = [(4, mesh(**BUCKETS)),
         (4, {**mesh(ddp={"bucket_cap_mb": 0.01, "comm_hook": "bf16"}), "accumulation": {"num_steps": 2}}),
         (4, mesh(dp_shard=4, zero_stage=1)),
         (4, {**mesh(dp_shard=4, zero_stage=2), "accumulation": {"num_steps": 2}}),
         (4, {**mesh(dp_shard=4, zero_stage=3), "accumulation": {"num_steps": 2}, "training": {"eval_interval": 2}}),
         (4, {**mesh(dp_replicate=2, dp_shard=2, zero_stage=2), "accumulation": {"num_steps": 2}}),
         (4, mesh(dp_replicate=2, dp_shard=2, zero_stage=3)),
         (4, {**mesh(pp=2, dp_shard=2, zero_stage=1, **CHUNKS), "accumulation": MICRO_BATCHES}),
         (4, {**mesh(pp=2, dp_shard=2, zero_stage=3), "accumulation": MICRO_BATCHES}),
         (4, {**mesh(pp=4, pp_schedule="zero_bubble"), "accumulation": MICRO_BATCHES}),
         (4, {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}, **mesh(ep=2, dp_shard=2, zero_stage=3)}),
         (4, mesh(cp=2, cp_comm="ring", dp_shard=2, zero_stage=3)),
         (4, {**mesh(dp_shard=4, zero_stage=2), "devices": {"kind": "cuda"}}),
         (4, {**mesh(dp_shard=4, zero_stage=3), "devices": {"kind": "cuda"}}),
         (4, {**mesh(**BUCKETS), "devices": {"kind": "cuda"}})]


def programs_in(folder):
    """Both halves of each; without a device's half it is empty."""
    programs = []
    for ranks, groups in RANKS:
        (folder / "job.yaml").write_text(json.dumps(job_of(ranks, 3, 4, **{"config": CONFIG, **groups})))
        (folder / "program.cu").write_text("")
        subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
        programs.append(((folder / "program.c").read_text(), (folder / "program.cu").read_text()))
    return programs


def edit(kind, halves, seed):
    text = KINDS[kind](halves[0], random.Random(f"{kind} {seed}"))
    return None if text is None else (text, halves[1])


def write(path, halves):
    path.write_text(halves[0])
    if halves[1]:
        path.with_suffix(".cu").write_text(halves[1])


def check_unedited():
    """Every claim holds for each program without an edit; how many have another verdict."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        for number, halves in enumerate(programs_in(pathlib.Path(name))):
            path = pathlib.Path(name) / f"unedited_{number}.c"
            write(path, halves)
            failed += check(f"unedited {number}", audit_of(path))
    return failed


def audit_of(path):
    result = subprocess.run([GENERATOR, "audit", path], capture_output=True, text=True)
    return None if result.returncode == 0 else result.stdout + result.stderr


if __name__ == "__main__":
    kinds = {kind: ("no-race-with-transfers", functools.partial(edit, kind)) for kind in KINDS}
    failed = check_unedited()
    sys.exit(run(kinds, programs_in, write, each=len(RANKS), least=30) or int(failed > 0))
