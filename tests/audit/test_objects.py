"""Edits of objects and of linked programs by one who means harm: the audit notices each one, by the claim that names it. Every third one is
tried, by SEED; all of them with --all. TAP."""

import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

from objects import KINDS, LINKED, TWINS, link, make_edit, make_linked, make_plain
from test_machine import GENERATOR, library_flags  # before those of tests
from rotation import in_turn  # isort: skip


def judge(folder, object_file, program="program.c"):
    """The claims about the object, by their names."""
    command = [GENERATOR, "audit", program, "--object", object_file, "--march", "x86-64", "--format", "json"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode in (0, 1), f"status {result.returncode}: {result.stderr}"
    return {claim["id"]: claim for claim in json.loads(result.stdout)["claims"]}


def unnoticed(folder, kind, flags, libraries):
    claims = make_linked(kind, folder, libraries) if kind in LINKED else make_edit(kind, folder, flags)
    judged = judge(folder, "linked/program" if kind in LINKED else "program.o")
    found = {name for name, claim in judged.items() if claim["verdict"] != "holds"}
    return None if found & set(claims.split()) else f"{kind}: {claims} wanted, {sorted(found)} found"


def main():
    if platform.machine() != "x86_64":
        print("machine code is audited for x86-64 alone")
        return 77
    failed, flags, libraries = 0, library_flags("--cflags"), library_flags("--cflags", "--libs")
    with tempfile.TemporaryDirectory(prefix="accel-test-") as work:
        folder = pathlib.Path(work)
        make_plain(folder, flags)
        link(folder, libraries)
        (folder / "twins.c").write_text(TWINS)
        subprocess.run(["gcc", "-std=c17", "-O3", "-g", "-w", "-c", "twins.c", "-o", "twins.o", *flags], cwd=folder, check=True)
        for name, program in ("plain.o", "program.c"), ("program", "program.c"), ("twins.o", "twins.c"):
            wrong = {n: c["findings"] for n, c in judge(folder, name, program).items() if c["verdict"] != "holds"}
            print(f"{'not ok' if wrong else 'ok'} {name} as it is {wrong or ''}")
            failed += bool(wrong)
        for kind in in_turn(KINDS, 3):
            try:
                why = unnoticed(folder, kind, flags, libraries)
            except (AssertionError, subprocess.CalledProcessError) as error:
                why = str(error)[:1500]
            print(f"not ok {kind}\n  {why}" if why else f"ok {kind}", flush=True)
            failed += why is not None
    print(f"# {len(KINDS)} kinds")
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
