"""Edits by an author who means harm: the audit notices each one, by a claim that names it. TAP."""

import functools
import json
import pathlib
import random
import subprocess
import sys

from hostile import KINDS
from noticing import run
from test_matrix import CASES, GENERATOR


def mutate(kind, text, seed):
    return KINDS[kind][1](text, random.Random(f"{kind} {seed}"))


def programs_in(folder):
    job = next(case.job for case in CASES if case.name == "gpt2")
    (folder / "job.yaml").write_text(json.dumps(job))
    subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
    return [(folder / "program.c").read_text()]


if __name__ == "__main__":
    kinds = {kind: (claims, functools.partial(mutate, kind)) for kind, (claims, _) in KINDS.items()}
    sys.exit(run(kinds, programs_in, lambda path, text: path.write_bytes(text.encode()), each=1, least=100))
