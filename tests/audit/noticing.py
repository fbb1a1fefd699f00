"""Edits of programs, and whether the audit notices each one by a claim that names it: what the tests of mutations share."""

import pathlib
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from test_matrix import CLAIM, GENERATOR  # before those of tests/program
from rotation import in_turn  # isort: skip


def edits_of(kinds, programs, each):
    """(kind, number, edited program): `each` of every kind, over the programs in turn; a program with nothing to edit
    is passed over."""
    for kind, (_, edit) in kinds.items():
        found, seen, seed = 0, set(programs), 0
        while found < each and seed < 20 * len(programs):
            edited = edit(programs[seed % len(programs)], seed)
            seed += 1
            if edited is None or edited in seen:
                continue
            seen.add(edited)
            found += 1
            yield kind, found, edited


def tried(kinds, programs, each):
    """The edits that a run tries: one of each kind, which SEED chooses; with --all, every one."""
    by_kind = {}
    for edit in edits_of(kinds, programs, each):
        by_kind.setdefault(edit[0], []).append(edit)
    return [edit for edits in by_kind.values() for edit in in_turn(edits, each)]


def why_unnoticed(path, claims):
    """None when the audit of the program at `path` breaks one of these claims."""
    result = subprocess.run([GENERATOR, "audit", path], capture_output=True, text=True)
    wrong = {claim for verdict, claim in CLAIM.findall(result.stdout) if verdict != "holds"}
    if result.returncode == 1 and wrong & set(claims.split()):
        return None
    return f"{path.name}: status {result.returncode}, noticed by {sorted(wrong)}\n{result.stderr}"


def tell(kinds, all_edits, results, least):
    """Prints what was noticed, an edit a line, and a table of kinds. The exit status."""
    table = {kind: [0, 0] for kind in kinds}
    for (kind, number, _), why in zip(all_edits, results):
        table[kind][0] += why is None
        table[kind][1] += 1
        print(f"{'not ok' if why else 'ok'} {kind} {number}")
        for line in (why or "").splitlines():
            print(f"  {line}")
    enough = len(all_edits) >= least and all(total > 0 for _, total in table.values())
    print(f"{'ok' if enough else 'not ok'} at least {least} edits, some of each kind")
    for kind, (noticed, total) in table.items():
        print(f"# {noticed:3d} of {total:3d}  {kind}: {kinds[kind][0]}")
    print(f"# {sum(n for n, _ in table.values())} of {len(all_edits)} edits of {len(table)} kinds noticed")
    return 0 if enough and not any(results) else 1


def run(kinds, programs_in, write, each, least):
    """kinds: to each its claims, and what edits a program by a seed (None: it has nothing to edit). programs_in: the
    programs, made in a folder; write: puts one at a path. The exit status."""
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        all_edits = tried(kinds, programs_in(folder), each)

        def check(edit):
            kind, number, program = edit
            path = folder / f"{kind.replace(' ', '_').replace(':', '')}_{number}.c"
            write(path, program)
            return why_unnoticed(path, kinds[kind][0])

        with ThreadPoolExecutor(max_workers=2) as pool:
            results = list(pool.map(check, all_edits))
    return tell(kinds, all_edits, results, least)
