"""Single edits of programs for GPUs: the audit notices each one, by the claim that names it. The last lines are a table of kinds.
TAP."""

import random
import sys

import device_races
from device_mutations import DEVICE, HOST
from noticing import run
from test_device import CASES, generate
from ranks import job_of  # isort: skip

PROGRAMS = ["gpt2", "gpt2_adafactor", "mlp", "gpt2_dropout_accumulation", "nanogpt_no_bias", "llama"]
# Scores with a learnt bias, of keys that go round.
BIASED = {"model": "t5", "config": {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 16, "vocab_size": 256},
          "data": {"sequence_length": 32}, "parallelism": {"cp": 2, "cp_comm": "ring"}}


def programs_in(folder):
    cases = {case.name: case for case in CASES}
    programs = []
    for job in [*(cases[name].job for name in PROGRAMS), job_of(2, 4, 4, **BIASED)]:
        assert generate(job, folder, "train"), job
        programs.append(((folder / "program.c").read_text(), (folder / "program.cu").read_text()))
    return programs


def edit_half(kind, edit, half):
    """An edit of a program's host or device part."""
    def edited(halves, seed):
        changed = edit(halves[half], random.Random(f"{kind} {seed}"))
        return None if changed is None else (*halves[:half], changed, *halves[half + 1:])
    return edited


def write(path, halves):
    path.write_text(halves[0])
    path.with_suffix(".cu").write_text(halves[1])


if __name__ == "__main__":
    kinds = {kind: (claims, edit_half(kind, edit, half))
             for kinds, half in ((HOST, 0), (DEVICE, 1)) for kind, (claims, edit) in kinds.items()}
    kinds |= {kind: ("no-race", edit_half(kind, edit, 1)) for kind, edit in device_races.KINDS.items()}
    sys.exit(run(kinds, programs_in, write, each=3, least=50))
