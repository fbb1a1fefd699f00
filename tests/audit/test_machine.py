"""Claims about machine code: they hold for what gcc and clang make of emitted programs, and notice an object that is not
the source's. Instructions are counted by binutils' objdump too. SEED chooses half of the compilers' flags and one of the
examples; with --all, all examples are compiled by both compilers. TAP."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests")]

from harness import GENERATOR  # noqa: E402
from matrix import CASES, library_flags, tool  # noqa: E402
from mutations import insert, kernels  # noqa: E402
from rotation import ALL, SEED, in_turn  # noqa: E402

PROGRAMS = ["gpt2_groups"]
COMPILERS = [["gcc", "-O2"], ["gcc", "-O3", "-march=native", "-mprefer-vector-width=512"], [tool("clang"), "-O2"],
             [tool("clang"), "-O3", "-march=native"]]
LEVELS = [["-O0"], ["-O1"], ["-O2"], ["-O3", "-march=native"]]
# Examples that compile in seconds.
QUICK = ["tiny", "table", "quickstart", "autoencoder", "gcn", "small", "lstm", "gru"]


def compile_object(compiler, source, target):
    """With all that the audit asks for: lines, and the flags, which clang does not write into an object by itself."""
    subprocess.run([*compiler, "-std=c17", "-g", "-grecord-gcc-switches", "-w", "-c", source, "-o", target,
                    *library_flags("--cflags")], check=True)


def audit(folder, source="program.c", march="x86-64"):
    command = [GENERATOR, "audit", source, "--object", "program.o", "--march", march, "--format", "json"]
    result = subprocess.run(command, cwd=folder,
                            capture_output=True, text=True)
    assert result.returncode in (0, 1), result.stderr
    claims = {claim["id"]: claim for claim in json.loads(result.stdout)["claims"] if claim["id"].startswith("machine-")}
    assert len(claims) == 11
    return claims


def wrong(claims):
    return {name: [f["message"] for f in claim["findings"]] for name, claim in claims.items() if claim["verdict"] != "holds"}


def disassemble(folder):
    """The instructions of all functions, as objdump sees them; without the padding between functions."""
    symbols = subprocess.check_output(["objdump", "-t", "program.o"], cwd=folder, text=True)
    sizes = {(m[2], int(m[1], 16)): int(m[3], 16)
             for m in re.finditer(r"^(\w+) .* F (\S+)\t(\w+)", symbols, re.M)}
    text = subprocess.check_output(["objdump", "-d", "--no-show-raw-insn", "program.o"], cwd=folder, text=True)
    found, section = [], None
    for line in text.splitlines():
        header = re.match(r"Disassembly of section (\S+):", line)
        section = header[1] if header else section
        match = re.match(r" +([0-9a-f]+):\t(\S+)", line)
        if match and any(s == section and at <= int(match[1], 16) < at + size for (s, at), size in sizes.items()):
            found.append(match[2])
    return found


def march_of(compiler):
    return "native" if "-march=native" in compiler else "x86-64"


def check_object(folder, compiler):
    compile_object(compiler, folder / "program.c", folder / "program.o")
    claims = audit(folder, march=march_of(compiler))
    assert not wrong(claims), wrong(claims)
    instructions, evidence = disassemble(folder), claims["machine-functions"]["evidence"]
    assert evidence.endswith(f"{len(instructions)} instructions"), f"{evidence}, objdump has {len(instructions)}"


def check_other(folder, text, change, claim):
    """The object of an edited program is not the source's: `claim` says so."""
    (folder / "edited.c").write_text(change)
    compile_object(["gcc", "-O1"], folder / "edited.c", folder / "program.o")
    (folder / "edited.c").unlink()
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "edited.c").write_text(text)  # the name that the line table has
    found = wrong(audit(folder, "other/edited.c"))
    assert claim in found, found


def edits(text):
    at = text.index("\n", text.index("static void step(")) + 1
    yield "a call that the source has not", insert(text, at, "  extern int spy(void); spy();"), "machine-externals"
    yield "a function that the source has not", text.replace(
        "/* ---- Kernels ---- */", "__attribute__((noinline, used)) static void more(void) {\n}\n", 1), "machine-functions"
    start = text.index("\n", text.index("\nstatic void step(") + 1) + 1
    yield "a call through a pointer", text[:start] + "  extern void (*hook)(void); hook();" + text[start:], "machine-no-indirect"
    line = re.search(r"^  report\.lr = ", text, re.M).start()
    yield "a branch in the step", text[:line] + "  extern int mode; if (mode) return;" + text[line:], "machine-branches"
    kernel = kernels(text)[0]
    yield "a stack of any size", text[:kernel] + "  extern int mode; char t[mode]; extern void use(char *); use(t);" + text[
        kernel:], "machine-stack"


def run(name, check, *arguments):
    try:
        check(*arguments)
        print(f"ok {name}", flush=True)
        return 0
    except (AssertionError, subprocess.CalledProcessError) as error:
        print(f"not ok {name}\n  {str(error)[:1500]}", flush=True)
        return 1


def examples():
    """Jobs, and the compilers with flags that each is tried with. Nothing is known of what hooks do, in the text neither."""
    everything = sorted({path.stem for path in (TREE / "examples" / "jobs").glob("*.yaml")} - {"hooks"})
    names = everything if ALL else in_turn(QUICK, len(QUICK))
    for i, name in enumerate(names):
        for compiler in ["gcc", tool("clang")] if ALL else in_turn(["gcc", tool("clang")], 2, SEED // len(QUICK)):
            yield name, [compiler, *LEVELS[(i + SEED) % len(LEVELS)]]


def is_here(compiler):
    return compiler[0] is not None and shutil.which(compiler[0]) is not None


def main():
    if platform.machine() != "x86_64":
        print("machine code is audited for x86-64 alone")
        return 77
    cases, failed = {case.name: case for case in CASES}, 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as work:
        folder = pathlib.Path(work)
        for name in PROGRAMS:
            (folder / "job.yaml").write_text(json.dumps(cases[name].job))
            subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
            for compiler in filter(is_here, in_turn(COMPILERS, 2)):
                failed += run(f"{name} {' '.join(compiler)}", check_object, folder, compiler)
        text = (folder / "program.c").read_text()
        for what, change, claim in edits(text):
            failed += run(what, check_other, folder, text, change, claim)
        for name, compiler in examples():
            if not is_here(compiler):
                continue
            subprocess.run([GENERATOR, TREE / "examples" / "jobs" / f"{name}.yaml", "-o", "program.c"], cwd=folder, check=True,
                           stderr=subprocess.DEVNULL)
            failed += run(f"{name} {' '.join(compiler)}", check_object, folder, compiler)
    return 1 if failed else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    sys.exit(main())
