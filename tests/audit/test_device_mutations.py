"""Single edits of programs for GPUs: the audit notices each one, by the claim that names it. The last lines are a table of kinds.
TAP."""

import pathlib
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from device_mutations import DEVICE, HOST
from test_device import CASES, generate
from test_mutations import CLAIM, GENERATOR, tell

PROGRAMS = ["gpt2", "mlp", "gpt2_dropout_accumulation", "nanogpt_no_bias", "llama"]
EACH = 3


def write_programs(folder):
    cases = {case.name: case for case in CASES}
    programs = []
    for name in PROGRAMS:
        assert generate(cases[name].job, folder), name
        programs.append(((folder / "program.c").read_text(), (folder / "program.cu").read_text()))
    return programs


def edits(programs):
    """(kind, number, (claims, halves)): EACH of every kind, over the programs in turn."""
    for kinds, half in ((HOST, 0), (DEVICE, 1)):
        for kind, (claims, edit) in kinds.items():
            found, seen, seed = 0, set(), 0
            while found < EACH and seed < 20 * len(programs):
                halves = list(programs[seed % len(programs)])
                halves[half] = edit(halves[half], random.Random(f"{kind} {seed}"))
                seed += 1
                if halves[half] is None or halves[half] in programs[(seed - 1) % len(programs)] or halves[half] in seen:
                    continue
                seen.add(halves[half])
                found += 1
                yield kind, found, (claims, halves)


def check(folder, kind, number, edit):
    """Why the edit was not noticed as it should be; None when it was."""
    claims, (host, device) = edit
    path = folder / f"{kind.replace(' ', '_').replace(':', '')}_{number}.c"
    path.write_text(host)
    path.with_suffix(".cu").write_text(device)
    result = subprocess.run([GENERATOR, "audit", path], capture_output=True, text=True)
    wrong = {claim for verdict, claim in CLAIM.findall(result.stdout) if verdict != "holds"}
    if result.returncode == 1 and wrong & set(claims.split()):
        return None
    return f"{path.name}: status {result.returncode}, noticed by {sorted(wrong)}\n{result.stderr}"


def main():
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        all_edits = list(edits(write_programs(folder)))
        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(lambda edit: check(folder, *edit), all_edits))
    return tell({kind: claims for kinds in (HOST, DEVICE) for kind, (claims, _) in kinds.items()}, all_edits, results, 80)


if __name__ == "__main__":
    sys.exit(main())
