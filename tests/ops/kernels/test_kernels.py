"""Every kernel template against float64 NumPy, on odd, strided and fuzzed shapes, with gcc and clang and under the
sanitizers. `test_kernels.py [--compiler gcc|clang|clang-19] [--sanitize] [--seed N] [--rounds N] [KIND ...]`."""

import argparse
import sys

import numpy as np

import cases
import kernels as kit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--sanitize", action="store_true", help="compile with the address and undefined sanitizers")
    parser.add_argument("--plain", action="store_true", help="without the flags that are only for speed")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rounds", type=int, default=1, help="fuzzed cases of each kind")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(np.random.SeedSequence().entropy % 1_000_000)
    print(f"seed {seed}")
    flags = [] if options.plain else list(kit.SPEED_FLAGS)
    flags += kit.SANITIZERS if options.sanitize else []
    failures = count = 0
    for kind in options.kinds or cases.KINDS:
        rng = np.random.default_rng(seed)
        todo = list(cases.fixed(kind)) + [cases.fuzzed(kind, rng) for _ in range(options.rounds)]
        made = []
        for index, arguments in enumerate(todo):
            made.append(cases.build(kind, arguments, f"{kind}_{index}", rng))
        functions = kit.load([case.kernel for case in made], options.compiler, tuple(flags))
        for arguments, case in zip(todo, made):
            count += 1
            message = case.check(functions[case.kernel.name])
            if message:
                failures += 1
                print(f"FAIL {kind} {arguments}: {message}")
    print(f"{count - failures} of {count} kernels right")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
