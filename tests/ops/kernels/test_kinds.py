"""Every kind of the operation table that has C text has a case here, in test_kernels.py or test_elementwise.py, or stands below
with the test that holds it to an oracle instead."""

import pathlib
import subprocess
import sys

import cases
import test_elementwise

TREE = pathlib.Path(__file__).resolve().parents[3]
ELSEWHERE = {
    **dict.fromkeys(("cast_bfloat16", "cast_float16"), "ops/kernels/test_support.py"),
    **dict.fromkeys(("sync_batch_norm", "sync_batch_norm_backward"), "reference/test_sync_batch_norm.py"),
    "step_tensor": "optimizer/test_lomo.py",
    **dict.fromkeys(("fp8_matmul", "fp8_matmul_delayed", "fp8_group_matmul"), "models/test_fp8.py"),
    **dict.fromkeys(("all_reduce", "own_index", "own_extent", "embedding_part", "embedding_part_backward", "cross_entropy_part",
                     "cross_entropy_part_backward", "cross_entropy_combined", "cross_entropy_combined_backward", "linear_cross_entropy_part",
                     "linear_cross_entropy_part_backward"), "parallel/test_tensor.py"),
    **dict.fromkeys(("all_gather", "reduce_scatter", "part_of"), "parallel/test_residual.py"),
    **dict.fromkeys(("all_to_all", "part_in_zeros", "ring_attention", "ring_attention_backward", "ring_biased_attention",
                     "ring_biased_attention_backward"), "parallel/test_sequences.py"),
    **dict.fromkeys(("exchange_starts", "dispatch_rows", "collect_rows"), "parallel/test_experts.py"),
    # What a GPU's libraries and kernels do in one: matmuls with what follows them, sums before norms and after their gradients,
    # logits that stay for the backward; products of codes of 8 bits.
    **dict.fromkeys(("matmul_bias", "matmul_gelu", "matmul_bias_gelu", "matmul_relu", "matmul_bias_relu", "matmul_dgelu", "matmul_drelu",
                     "matmul_dgelu_sum", "matmul_drelu_sum", "matmul_sum", "embedding_plus", "add_layer_norm", "layer_norm_plus_backward",
                     "layer_norm_plus_bits16_backward", "add_rms_norm", "rms_norm_plus_backward", "rms_norm_plus_bits16_backward",
                     "saved_cross_entropy", "saved_cross_entropy_backward", "fp8_multiply", "fp8_transpose"), "cuda/test_training.py"),
}


def wrong(kinds, tried):
    """What is not so, a line each. kinds: those of the table; tried: those that have a case."""
    for kind in kinds:
        if kind not in tried and kind not in ELSEWHERE:
            yield f"{kind} has no case: a builder of tests/ops/kernels/*_cases.py, or a function of KINDS in test_elementwise.py"
    for kind, test in ELSEWHERE.items():
        if kind not in kinds or kind in tried or not (TREE / "tests" / test).exists():
            yield f"{kind} need not be among ELSEWHERE, or {test} is not there"


def main():
    driver = TREE / "build/tests/ops/kinds_driver"
    kinds = subprocess.run([driver], capture_output=True, text=True, check=True).stdout.split()
    messages = list(wrong(kinds, {*cases.KINDS, *test_elementwise.KINDS}))
    print(f"{'not ok' if messages or not kinds else 'ok'} {len(kinds)} kinds", *(f"#   {message}" for message in messages), sep="\n")
    return 1 if messages or not kinds else 0


if __name__ == "__main__":
    sys.exit(main())
