"""Every emitted program of the matrix: no warning under gcc and clang, no finding of the sanitizers, and as
clang-format would have written it. TAP."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from harness import GENERATOR, TREE
from matrix import CASES, library_flags, tool

WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Werror"]
# Clang says of each loop that a sanitizer keeps from being vectorized that it is not.
SANITIZERS = ["-std=c17", "-O1", "-g", "-Wno-pass-failed", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
# libgomp and the OpenMP runtime of LLVM keep their thread pools at exit, which is not our leak.
ENVIRONMENT = {"OMP_NUM_THREADS": "2", "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
# Compiling with sanitizers is what takes the time; clang's see the same programs as gcc's.
WITH_CLANG = {"gpt2", "gpt2_generate", "nanogpt_dropout", "mlp_eval", "gru"}
CLANG = tool("clang")
CLANG_FORMAT = tool("clang-format")


def run(command, folder, **environment):
    return subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=300,
                          errors="replace", env={**os.environ, **environment})


def check(case, folder):
    """Yields (what, None or why it failed)."""
    case.write_data(folder)
    (folder / "job.yaml").write_text(json.dumps(case.job))
    result = run([GENERATOR, "job.yaml", "-o", "program.c", "--program", case.program], folder)
    yield "generates", None if result.returncode == 0 else result.stderr
    if result.returncode != 0:
        return
    for compiler in ["gcc", CLANG]:
        yield f"compiles with {compiler or 'clang # SKIP not installed'}", compiler and compile_with(compiler, folder)
        if compiler == "gcc" or case.name in WITH_CLANG:
            yield f"is clean under {compiler or 'clang'}'s sanitizers", compiler and sanitize(compiler, case, folder)
    if CLANG_FORMAT is None:
        yield "is formatted # SKIP clang-format is not installed", None
    else:
        yield "is formatted", difference(folder)


def compile_with(compiler, folder):
    result = run([compiler, *WARNINGS, "-O2", "-c", "program.c", "-o", "program.o",
                  *library_flags("--cflags")], folder)
    return result.stderr if result.returncode != 0 or result.stderr else None


def sanitize(compiler, case, folder):
    library = library_flags("--cflags", "--libs")
    result = run([compiler, *SANITIZERS, "program.c", "-o", "program", *library], folder)
    if result.returncode != 0:
        return result.stderr
    if case.program == "generate":
        trainer = {**case.job, "training": {"steps": 1}}
        (folder / "train.yaml").write_text(json.dumps(trainer))
        built = run([GENERATOR, "build", "train.yaml", "-o", "trainer"], folder, CFLAGS="-std=c17 -O1")
        built = built if built.returncode != 0 else run(["./trainer"], folder)
        if built.returncode != 0:
            return built.stdout + built.stderr
        result = run(["./program", "--tokens", "9", "--prompt", "ab"], folder, **ENVIRONMENT)
    else:
        result = run(["./program"], folder, **ENVIRONMENT)
    return result.stdout + result.stderr if result.returncode != 0 or "runtime error" in result.stderr else None


def difference(folder):
    text = (folder / "program.c").read_text()
    result = subprocess.run([CLANG_FORMAT, f"--style=file:{TREE / '.clang-format'}"], input=text, capture_output=True,
                            text=True, check=True)
    if result.stdout == text:
        return None
    (folder / "formatted.c").write_text(result.stdout)
    return "\n".join(run(["diff", "program.c", "formatted.c"], folder).stdout.splitlines()[:20])


def all_checks(case):
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        return [(case.name, what, why) for what, why in check(case, pathlib.Path(folder))]


def main():
    wanted = [case for case in CASES if len(sys.argv) < 2 or case.name in sys.argv[1:]]
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for results in pool.map(all_checks, wanted):
            for name, what, why in results:
                print(f"{'not ok' if why else 'ok'} {name} {what}", flush=True)
                for line in (why or "").splitlines()[:25]:
                    print(f"  {line}")
                failed += why is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
