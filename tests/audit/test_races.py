"""Programs in which threads race: the claim no-race notices each of single edits, and has the right verdict on small kernels.
The last lines are a table of kinds. TAP."""

import functools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from claims import Case
from noticing import run
from races import KERNELS, KINDS
from test_matrix import CASES, CLAIM, GENERATOR, TREE

# Of tests/program/matrix.py: chunks, blocks and ranges of every kind.
NAMES = ["gpt2_wide", "gpt2_groups", "mistral", "llama", "gpt2_8bit_states", "mlp", "gpt2_chunks"]


def programs_in(folder):
    subprocess.run([GENERATOR, TREE / "examples" / "jobs" / "tiny.yaml", "-o", "program.c"], cwd=folder, check=True)
    programs = [(folder / "program.c").read_text()]
    for case in CASES:
        if case.name not in NAMES:
            continue
        (folder / "job.yaml").write_text(json.dumps(case.job))
        subprocess.run([GENERATOR, "job.yaml", "-o", "program.c", "--program", case.program], cwd=folder, check=True)
        programs.append((folder / "program.c").read_text())
    return programs


def edit(kind, text, seed):
    return KINDS[kind](text, random.Random(f"{kind} {seed}"))


def write(path, text):
    path.write_text(text)


def check_kernels():
    """How many small kernels have another verdict than they should."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        path = pathlib.Path(folder) / "program.c"
        for number, (verdict, kernel) in enumerate(KERNELS):
            path.write_text(Case("", kernel=kernel, includes="#include <omp.h>").text)
            result = subprocess.run([GENERATOR, "audit", path], capture_output=True, text=True)
            found = {claim: word for word, claim in CLAIM.findall(result.stdout)}.get("no-race")
            print(f"{'ok' if found == verdict else 'not ok'} kernel {number} {verdict}")
            if found != verdict:
                failed += 1
                print("\n".join(f"  {line}" for line in (kernel + "\n" + result.stdout + result.stderr).splitlines()))
    return failed


if __name__ == "__main__":
    kinds = {kind: ("no-race", functools.partial(edit, kind)) for kind in KINDS}
    failed = check_kernels()
    sys.exit(run(kinds, programs_in, write, each=4, least=15) or int(failed > 0))
