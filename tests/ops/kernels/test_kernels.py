"""Every kernel template against float64 NumPy, on odd, strided and fuzzed shapes: with gcc and clang, with the flags
for speed and without, for AVX2, with one thread and three, and under the sanitizers. What a library computes, and shares out among threads
as it likes, gives the same bits with one thread and three as a deterministic program has it, else run after run. `test_kernels.py [--how HOW] [--all]
[--seed N] [--rounds N] [KIND ...]`; without --how: all but plain and sse2, and AVX2 where the processor has more. A kernel is long in the compiler, so that gcc with
the flags for speed takes every sixth case, and each other way every twelfth one, not the same as the others; clang, AVX2 and
the sanitizers take a third of the kinds each a run; which, the seed says (tests/program/rotation.py). With --all, as `ninja soak` has it, every one."""
# long

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np

import cases
import kernels as kit
from rotation import in_turn  # tests/program

SANITIZED = ["-O1", "-march=native", "-ffp-contract=fast", *kit.SANITIZERS]
HOW = {
    "gcc": ("gcc", kit.SPEED_FLAGS),
    "plain": ("gcc", []),
    "avx2": ("gcc", [*kit.SPEED_FLAGS, "-march=x86-64-v3"]),
    "sse2": ("gcc", ["-march=x86-64"]),
    "clang": ("clang-19", kit.SPEED_FLAGS),
    "sanitized": ("gcc", SANITIZED),
}
WIDER = "avx512f" in pathlib.Path("/proc/cpuinfo").read_text()  # else gcc's own flags are those for AVX2
SHARES = {"gcc": (0, 6), "avx2": (0, 12), "clang": (4, 12), "sanitized": (8, 12)}  # of a kind's cases: the first, and every how-many-th
TURNS = {"avx2": (0, 3), "clang": (1, 3), "sanitized": (2, 3)}  # of the kinds, the same


def sanitized(arguments):
    """Runs this script again with the sanitizers' libraries loaded first."""
    libraries = [subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
                 for name in ("libasan.so", "libubsan.so")]
    environment = {**os.environ, "LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([sys.executable, __file__, *arguments], env=environment, check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=HOW, action="append")
    parser.add_argument("--all", action="store_true", help="every case in every way")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int, default=2, help="fuzzed cases of each kind")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(os.environ.get("SEED", 1))
    print(f"# seed {seed}")
    failed = False
    for how in options.how or [how for how in HOW if how not in ("plain", "sse2", *([] if WIDER or options.all else ["avx2"]))]:
        compiler, flags = HOW[how]
        if not kit.has(compiler):
            print(f"ok {how} # SKIP {compiler} is not installed")
        elif how == "sanitized" and "libasan" not in os.environ.get("LD_PRELOAD", ""):
            failed |= sanitized(arguments_of(options, how, seed)) != 0
        else:
            first, step = SHARES.get(how, (0, 2))
            turn, turns = TURNS.get(how, (0, 1))
            for kind in options.kinds or in_turn([kind for kind in cases.KINDS if how in cases.ways_of(kind, HOW)], turns, turn + seed):
                rng = np.random.default_rng(seed)
                chosen = list(cases.fixed(kind)) + [cases.fuzzed(kind, rng) for _ in range(options.rounds)]
                failed |= not check(how, compiler, tuple(flags), kind, in_turn(chosen, step, first + seed // turns), rng)
    return 1 if failed else 0


def arguments_of(options, how, seed):
    everything = ["--all"] if options.all else []
    return ["--how", how, *everything, "--seed", str(seed), "--rounds", str(options.rounds), *options.kinds]


def check(how, compiler, flags, kind, chosen, rng):
    """Makes, compiles and runs the cases `chosen` of one kind; prints their line."""
    made = [cases.build(kind, arguments, f"{kind}_{index}", rng) for index, arguments in enumerate(chosen)]
    functions = kit.load([case.kernel for case in made], compiler, flags)
    set_threads = ctypes.CDLL("libgomp.so.1").omp_set_num_threads if compiler == "gcc" else None
    steady = [kit.deterministic(case.kernel) for case in made if set_threads and kit.by_library(case.kernel)]
    fixed = kit.load(steady, compiler, flags) if steady else {}
    messages = []
    for arguments, case in zip(chosen, made):
        message = case.check(functions[case.kernel.name], set_threads, fixed.get(case.kernel.name))
        if message:
            messages.append(f"#   {arguments}: {message}")
    print(f"{'not ok' if messages else 'ok'} {kind} {how} ({len(chosen)} kernels)", *messages, sep="\n", flush=True)
    return not messages


if __name__ == "__main__":
    sys.exit(main())
