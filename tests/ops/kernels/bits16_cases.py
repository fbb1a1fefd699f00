"""Kernels over elements of 16 bits: which operands have them, and a case with the same over float32."""

import cases
import numpy as np

# What stays in float32 (or int32) whatever the model is in: statistics of rows, the loss, angles.
WIDE = {"lse", "mean", "rstd", "running_mean", "running_var", "next_mean", "next_var", "loss", "scale", "d_loss", "workspace", "absmax", "nested_absmax", "nested_offset", "scales", "row_scales",
        "cache", "next",
        "k_cache", "v_cache", "next_k", "next_v", "cos", "sin", "targets", "tokens"}
WITHOUT = {"arange", "table", "random_uniform", "random_normal", "random_int", "sparse_rows",  # no operand of a type to choose
           "inverse_target_count", "linear_cross_entropy", "linear_cross_entropy_backward", "linear_cross_entropy_forward_backward",
           "lstm", "lstm_incremental", "lstm_backward", "selective_scan", "selective_scan_incremental", "selective_scan_backward", "sparse_matmul", "sparse_dot",
            "keep", "group_starts", "group_order", "grouped_matmul", "grouped_matmul_weight", "fp8_quantize",
            "fp8_quantize_delayed", "fp8_round"}  # in float32 whatever the model is in
ONE_TYPE = ("matmul", "convolution", "convolution_data", "convolution_weights", "attention", "attention_backward", "biased_attention",
            "biased_attention_backward", "dropout", "conv_cache", "conv_cache_from", "cumsum_incremental", "attention_cached", "quantized_matmul", "int8_matmul", "llm_int8_matmul",
            "gguf_matmul", "q8_0_matmul")


def patterns(case, kind):
    """Which operands have 16 bits, in each pattern."""
    inputs = {o.name for o in case.kernel.inputs if o.type == "float"} - WIDE
    outputs = {o.name for o in case.kernel.outputs if o.type == "float"} - WIDE - ({"dbias", "bias_sums"} if kind.startswith("biased") else set())
    if kind == "grouped_matmul_weight":  # of GPUs alone: sums stay in float32
        yield inputs
        return
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
