"""Every kernel template over elements of 16 bits against itself over float32, which test_kernels.py holds to float64, on
the same numbers: they differ by the rounding of a result and by nothing else. Inputs and results have 16 bits; or results
alone; or of matmuls the inputs, of norms all but the parameters. In float16, which differs from bfloat16 in how a number is read and
written, which operands have 16 bits is all. Under gcc a sixth of the kinds is in each of both types a run, and under clang another sixth.
`test_bits16_kernels.py [--how HOW] [--all] [KIND ...]`; --all, as `ninja soak` has it: all of a kind's cases, and in float16, too, each
choice of operands of 16 bits."""
# long

import argparse
import sys

import cases
import kernels as kit
import numpy as np
from bits16_cases import WITHOUT, pair, patterns
from rotation import SEED, in_turn  # tests/program
from test_kernels import HOW

# The rounding of a result, and of what it is added to: of the largest value.
TOLERANCE = {"accel_bf16": 2**-7, "accel_f16": 2**-10}
EACH = {"gcc": 6, "clang": 15}  # of the fixed cases, which by SEED; of float16, in which kernels differ by two functions, half of these
WAYS = [("gcc", "accel_bf16", 0), ("gcc", "accel_f16", 1), ("clang", "accel_bf16", 2)]  # of which kinds a run: the first, every sixth one
# Where the processor has AVX512-BF16, their matmuls are its instructions: clang makes them without.
BY_PROCESSOR = ("attention", "attention_backward", "biased_attention", "biased_attention_backward")


def difference(bits16, wide, functions, dtype):
    got, _ = bits16.run(functions[bits16.kernel.name])
    expected, _ = wide.run(functions[wide.kernel.name])
    for operand, a, b in zip(bits16.kernel.outputs, got, expected):
        if operand.workspace:
            continue
        if not a.untouched():
            return f"{operand.name}: wrote outside"
        a, b = a.values(), b.values()
        if (np.isnan(a) != np.isnan(b)).any():
            return f"{operand.name}: NaN"
        error = float(np.abs(np.nan_to_num(a - b)).max(initial=0)) / max(1e-3, float(np.abs(np.nan_to_num(b)).max(initial=0)))
        if not error < (TOLERANCE[dtype] if operand.type == dtype else 1e-5):
            return f"{operand.name}: error {error:.3g} of the largest value"
    return None


def check(how, dtype, kind, everything):
    compiler, flags = HOW[how]
    if how == "clang" and kind in BY_PROCESSOR:
        flags = [*flags, "-march=x86-64-v3"]
    made = []
    each = EACH[how] * (2 if dtype == "accel_f16" else 1)
    chosen = list(cases.fixed(kind))
    for index, arguments in enumerate(in_turn(chosen, each, SEED // 3)):
        probe = cases.build(kind, arguments, "probe", np.random.default_rng(7))
        for number in range(len(list(patterns(probe, kind))) if everything or dtype == "accel_bf16" else 1):
            made.append(pair(kind, arguments, f"{kind}_{index}", number, dtype))
    kernels = {case.kernel.name: case.kernel for _, _, *both in made for case in both}
    functions = kit.load(list(kernels.values()), compiler, tuple(flags))
    messages = []
    for arguments, chosen, bits16, wide in made:
        message = difference(bits16, wide, functions, dtype)
        if message:
            messages.append(f"#   {arguments} {chosen}: {message}")
    print(f"{'not ok' if messages else 'ok'} {kind} {dtype} {how} ({len(made)} kernels)", *messages, sep="\n", flush=True)
    return not messages


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=EACH, action="append")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    good = True
    print(f"# seed {SEED}")
    for how, dtype, turn in [way for way in WAYS if way[0] in (options.how or EACH)]:
        if not kit.has(HOW[how][0]):
            print(f"ok {how} # SKIP {HOW[how][0]} is not installed")
            continue
        for kind in options.kinds or in_turn([kind for kind in cases.KINDS if kind not in WITHOUT], 6, SEED + turn):
            good &= check(how, dtype, kind, options.all)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
