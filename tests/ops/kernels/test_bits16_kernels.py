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
from rotation import SEED, in_turn  # tests/program
from test_kernels import HOW

# What stays in float32 (or int32) whatever the model is in: statistics of rows, the loss, angles.
WIDE = {"lse", "mean", "rstd", "running_mean", "running_var", "next_mean", "next_var", "loss", "scale", "d_loss", "workspace", "absmax", "nested_absmax", "nested_offset", "scales", "row_scales",
        "cache", "next",
        "k_cache", "v_cache", "next_k", "next_v", "cos", "sin", "targets", "tokens"}
WITHOUT = {"arange", "table", "random_uniform", "random_normal", "random_int", "sparse_rows",  # no operand of a type to choose
           "inverse_target_count", "linear_cross_entropy", "linear_cross_entropy_backward", "linear_cross_entropy_forward_backward",
           "lstm", "lstm_incremental", "lstm_backward", "selective_scan", "selective_scan_incremental", "selective_scan_backward", "sparse_matmul", "sparse_dot",
            "keep", "group_starts", "group_order", "grouped_matmul", "grouped_matmul_weight", "fp8_quantize",
            "fp8_quantize_delayed", "fp8_round"}  # in float32 whatever the model is in
# The rounding of a result, and of what it is added to: of the largest value.
TOLERANCE = {"accel_bf16": 2**-7, "accel_f16": 2**-10}
EACH = {"gcc": 6, "clang": 15}  # of the fixed cases, which by SEED; of float16, in which kernels differ by two functions, half of these
WAYS = [("gcc", "accel_bf16", 0), ("gcc", "accel_f16", 1), ("clang", "accel_bf16", 2)]  # of which kinds a run: the first, every sixth one
# Where the processor has AVX512-BF16, their matmuls are its instructions: clang makes them without.
BY_PROCESSOR = ("attention", "attention_backward", "biased_attention", "biased_attention_backward")
ONE_TYPE = ("matmul", "convolution", "convolution_data", "convolution_weights", "attention", "attention_backward", "biased_attention",
            "biased_attention_backward", "dropout", "conv_cache", "conv_cache_from", "cumsum_incremental", "attention_cached", "quantized_matmul", "int8_matmul", "llm_int8_matmul")


def patterns(case, kind):
    """Which operands have 16 bits, in each pattern."""
    inputs = {o.name for o in case.kernel.inputs if o.type == "float"} - WIDE
    outputs = {o.name for o in case.kernel.outputs if o.type == "float"} - WIDE - ({"dbias", "bias_sums"} if kind.startswith("biased") else set())
    yield inputs | outputs
    if kind == "matmul" or kind.startswith("convolution"):
        yield inputs
    elif kind not in ONE_TYPE and not case.in_place and outputs:
        yield outputs
        yield (inputs | outputs) - {"weight", "dweight", "dbias", "bias"}


def pair(kind, arguments, name, number, dtype):
    """The case with its chosen operands in 16 bits, and the same over float32, of numbers that both have; the latter's kernel is that of
    every choice."""
    bits16, wide = (cases.build(kind, arguments, f"{name}_{end}", np.random.default_rng(7)) for end in (number, "wide"))
    chosen = list(patterns(bits16, kind))[number]
    for operand in bits16.kernel.outputs + bits16.kernel.inputs:
        if operand.name in chosen:
            operand.type = dtype
    for case in (bits16, wide):
        for operand in chosen & set(case.inputs):
            case.inputs[operand] = cases.decoded(dtype, cases.encoded(dtype, case.inputs[operand])).astype(np.float32)
    return arguments, sorted(chosen), bits16, wide


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
