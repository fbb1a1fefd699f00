"""Every emitted program of the matrix: no warning under gcc and clang, no function that nothing calls, no finding of the
sanitizers, and as clang-format would have written it. All are generated. Of the cases in addition to BOTH, every second one
is looked at by one compiler and by clang-format; of these, every eighth one goes through the sanitizers and every sixteenth
through each optimizer. Of those of BOTH every fourth one goes through all: which, SEED says, so that all of them do in some runs (rotation.py). TAP. `test_compile.py [--all]
[CASE...]`; --all, as `ninja soak` has it: every case as those of BOTH."""
# long

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from compilers import COMPILERS, compiles, formatted, report, unused
from harness import GENERATOR
from matrix import CASES, library_flags
from rotation import ALL, SEED, is_in_turn

# Without optimization: the compiler takes away nothing that a sanitizer would see, and clang takes a tenth of the time.
# It says of each loop that it does not vectorize that it does not.
SANITIZERS = ["-std=c17", "-O0", "-g1", "-Wno-pass-failed", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# libgomp and the OpenMP runtime of LLVM keep their thread pools at exit, which is not our leak.
ENVIRONMENT = {"OMP_NUM_THREADS": "2", "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
# Of each model and each family of kernels and of steps one: these go through both optimizers and both compilers' sanitizers.
BOTH = {"gpt2", "gpt2_generate", "nanogpt_dropout", "mlp_eval", "gru", "gpt2_bf16", "gpt2_fp16", "gpt2_muon", "gpt2_lomo",
        "gpt2_scaler", "mlp_8bit_states"}


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
    text = (folder / "program.c").read_text()
    number = CASES.index(case)
    both = ALL or (case.name in BOTH and is_in_turn(sorted(BOTH).index(case.name), 4))
    if not both and not is_in_turn(number, 2, SEED // 16):  # which changes after all turns of what follows
        return
    yield from compiles(text, number, both)
    yield from formatted(text)
    yield from unused(text)
    for name, compiler in COMPILERS.items():
        if compiler is not None and (both or is_in_turn(number, 8) and (name == "clang" or COMPILERS["clang"] is None)):
            yield f"is clean under {name}'s sanitizers", sanitize(compiler, case, folder)


def sanitize(compiler, case, folder):
    library = library_flags("--cflags", "--libs")
    result = run([compiler, *SANITIZERS, "program.c", "-o", "program", *library], folder)
    if result.returncode != 0:
        return result.stderr
    if case.program != "train":
        trainer = {**case.job, "training": {"steps": 1}}
        (folder / "train.yaml").write_text(json.dumps(trainer))
        built = run([GENERATOR, "build", "train.yaml", "-o", "trainer"], folder, CFLAGS="-std=c17 -O1")
        built = built if built.returncode != 0 else run(["./trainer"], folder)
        if built.returncode != 0:
            return built.stdout + built.stderr
        flags = ["--tokens", "9", "--prompt", "ab"] if case.program == "generate" else ["--format", "json"]
        result = run(["./program", *flags], folder, **ENVIRONMENT)
    else:
        result = run(["./program"], folder, **ENVIRONMENT)
    return result.stdout + result.stderr if result.returncode != 0 or "runtime error" in result.stderr else None


def all_checks(case):
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        return case.name, list(check(case, pathlib.Path(folder)))


def main():
    print(f"# seed {SEED}")
    names = [word for word in sys.argv[1:] if word != "--all"]
    wanted = [case for case in CASES if not names or case.name in names]
    failed = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, results in pool.map(all_checks, wanted):
            failed += report(name, results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
