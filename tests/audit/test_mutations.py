"""Single edits of emitted trainers: the audit notices each one, by the claim that names it. The last lines are a table of
kinds. TAP."""

import functools
import json
import pathlib
import subprocess
import sys

from mutations import KINDS, mutate
from noticing import run
from test_matrix import CASES, GENERATOR, job_of

PROGRAMS = ["gpt2", "nanogpt_no_bias", "gpt2_wide", "gru", "mlp_accumulation", "gpt2_dropout_accumulation", "mlp"]
DROPPED = {"n_layer": 3, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12, "dropout": 0.1}
MIXTURE = {"model": "qwen_moe", "data": {"sequence_length": 16},
           "config": {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
                      "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}}
# Programs of so many ranks; the last ones divide tensors, sequences, or layers.
RANKS = [(4, {"config": DROPPED}),
         (4, {"training": {"on_nonfinite": "skip", "eval_interval": 5},
              "parallelism": {"ddp": {"bucket_cap_mb": 0.01, "comm_hook": "bf16"}}}),
         (2, {"config": DROPPED, "parallelism": {"tp": 2}}),
         (2, {"parallelism": {"tp": 2}, "precision": {"mixed_precision": "bf16"}}),
         (4, {"parallelism": {"tp": 2, "dp_replicate": 2}}),
         (2, {"parallelism": {"sp": 2}}),
         (3, {"parallelism": {"cp": 3, "cp_comm": "ring"}}),
         (2, {"parallelism": {"pp": 2}, "training": {"eval_interval": 2}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}}),
         (4, {"config": {**DROPPED, "n_layer": 4}, "parallelism": {"pp": 4},
              "accumulation": {"num_steps": 4, "sync_with_dataloader": False}}),
         (2, {"config": DROPPED, "parallelism": {"tp": 2, "megatron": {"sequence_parallelism": True}}}),
         (1, MIXTURE), (2, {**MIXTURE, "parallelism": {"ep": 2}})]


def programs_in(folder):
    cases = {case.name: case for case in CASES}
    texts = []
    for job in [cases[name].job for name in PROGRAMS] + [job_of(ranks, 3, 4, **groups) for ranks, groups in RANKS]:
        (folder / "job.yaml").write_text(json.dumps(job))
        subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
        texts.append((folder / "program.c").read_text())
    return texts



if __name__ == "__main__":
    kinds = {kind: (claims, functools.partial(mutate, kind)) for kind, (claims, _) in KINDS.items()}
    sys.exit(run(kinds, programs_in, pathlib.Path.write_text, each=6, least=100))
