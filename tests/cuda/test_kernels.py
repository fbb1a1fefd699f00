"""Kernels of templates/devices/gpu, one by one, formatted and against float64 in NumPy: the cases that hold those of a processor (tests/ops/kernels), and
here some with extents that fill more blocks than one. They run as C++ on the processor (tests/cuda/host).
A third of the kinds a run, as SEED says (tests/program/rotation.py).

usage: test_kernels.py [--all] [--seed N] [KIND...]; --all: all kinds, and more random cases (ninja soak)"""

import argparse
import ctypes
import os
import sys

import numpy as np
from host import CXX, OUT, TREE, alone, compile_all, headers

sys.path.insert(0, str(TREE / "tests" / "ops" / "kernels"))

import cases  # noqa: E402
from compilers import formatted  # noqa: E402; tests/program
from rotation import in_turn  # noqa: E402; tests/program
import kernels as kit  # noqa: E402

SUMS = 1 << 22  # floats in which kernels keep partial sums, as gen/program/target_cuda.c has it
# Of libraries, or with random numbers whose key the device makes: what programs of test_training.py run.
WITHOUT = {"matmul", "convolution", "convolution_data", "convolution_weights", "dropout", "random_uniform", "random_normal",
           "random_int", "linear_cross_entropy", "linear_cross_entropy_backward", "linear_cross_entropy_forward_backward",
           "biased_attention", "biased_attention_backward",  # written out as other operations
           "quantized_matmul", "int8_matmul", "llm_int8_matmul"}  # of processors alone
# Extents that those of a processor do not come to.
WINDOWS = [dict(b=2, h=2, t=300, d=8, window=70, documents=4), dict(t=200, d=5, window=199), dict(t=200, d=5, window=200)]
LARGE = {
    "attention": WINDOWS,
    "attention_backward": WINDOWS,
    "embedding_backward": [dict(v=7, c=40, shape=(5000,)), dict(v=300, c=5, shape=(2, 2600), accumulate=True), dict(v=40, c=1100, shape=(3000,))],
    "selective_scan_backward": [dict(b=2, t=9, d=300, n=8), dict(b=1, t=3, d=700, n=4), dict(b=2, t=4, d=40, n=3)],
    "lstm": [dict(b=9, t=3, h=36), dict(b=2, t=1, h=8)],
    "lstm_backward": [dict(b=9, t=3, h=36), dict(b=2, t=1, h=8)],
    "fp8_quantize": [dict(shape=(9, 300), codes=True, e5m2=i, size=1e-3) for i in range(2)],
    "fp8_quantize_delayed": [dict(shape=(90, 300), codes=True, e5m2=i, length=40) for i in range(2)],
    "fp8_round": [dict(shape=(3, 2000), group=2000), dict(shape=(1, 4000), group=4000)],
    "argmax": [dict(shape=(9, 300), axis=1), dict(shape=(64,)), dict(shape=(2, 3, 33), axis=2)],
    "top_k": [dict(shape=(9, 130), k=8), dict(shape=(3, 40), k=40)],
    "grouped_matmul": [dict(rows=90, k=72, n=70, groups=3), dict(rows=16, k=136, n=9, groups=5), dict(rows=200, k=20, n=65, groups=7, straight=1)],
    "log_sum_exp": [dict(shape=(3, 5), nan=True)],
    "cross_entropy": [dict(shape=(3,), v=5, nan=True), dict(shape=(3,), v=300, nan=True)],
    "sum": [dict(shape=(64, 3, 300), axes=(0, 2)), dict(shape=(9, 5, 70), axes=(0, 2), accumulate=True), dict(shape=(2, 1100, 3), axes=(0, 2))],
    "batch_norm": [dict(shape=(3, 2, 3000)), dict(shape=(8, 3, 2048)), dict(shape=(90, 2, 19, 10)), dict(shape=(2, 3, 4096))],
    "batch_norm_backward": [dict(shape=(3, 2, 3000), in_place=True), dict(shape=(8, 3, 2048), accumulate=True)],
}


# The matmuls that the plan names, as its templates' gemms, by kind.
def lstm_parts(shape, *others):
    return [*(["recurrent"] if shape[1] > 1 else []), *others] if shape[2] % 4 == 0 else []


PARTS = {
    "lstm": lambda k: lstm_parts(k.y.shape),
    "lstm_incremental": lambda k: lstm_parts(k.y.shape, "first"),
    "lstm_backward": lambda k: lstm_parts(k.dy.shape),
}
ENVIRONMENT = kit.Environment("gpu")
ENVIRONMENT.globals["training"] = {"deterministic": False}
HEAD = """#include <accel/gpu/fp8.h>
#include <accel/gpu/gemm.h>
#include <accel/gpu/kernels.h>
#include <accel/gpu/tensor_cores.h>
#include <assert.h>

static float partial_sums[SUMS];
static float *const sums = partial_sums;

accel_stream accel_gpu_stream(enum accel_stream_name) {
  return NULL;
}
void accel_gpu_zero(accel_stream, void *device, size_t bytes) {
  memset(device, 0, bytes);
}
void accel_gpu_multiply(const struct accel_gpu_gemm *p, accel_stream, void *y, const void *a, const void *b, void *,
                         void *) {
  assert((uintptr_t)y % 16 == 0 && (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
  const float *left = (const float *)a, *right = (const float *)b;
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t c = 0; c < p->columns; c++) {
      double sum = 0.0;
      for (int64_t d = 0; d < p->depth; d++)
        sum += (double)left[r * p->a_row + d * p->a_column] * right[d * p->b_row + c * p->b_column];
      ((float *)y)[r * p->y_row + c] = (float)sum;
    }
}

"""


def template_of(kind):
    return kit.template_of(kind, ENVIRONMENT)


def texts(kernel):
    """The kernels of the device, and the host's function where it puts them into the stream."""
    kernel.sums, kernel.by_library, kernel.bits16, kernel.tf32 = SUMS, False, "", False
    kernel.gemms = {part: "" for part in PARTS.get(kernel.kind, lambda _: [])(kernel)}
    op = ENVIRONMENT.get_template(template_of(kernel.kind)).make_module()
    host = str(op.host(kernel.kind, kernel)) if hasattr(op, "host") else ""
    return str(getattr(op, kernel.kind)(kernel)) + "\n", host + "\n" if host.strip() else ""


def load(kind, made):
    """The launchers, each of which is done when it returns; and the text."""
    device, host = ("".join(parts) for parts in zip(*(texts(case.kernel) for case in made)))
    body = device + ('extern "C" {\n\n' + host + '} // extern "C"\n' if host else "")
    source, library = OUT / f"{kind}.cc", OUT / f"{kind}.so"
    text = HEAD.replace("SUMS", str(SUMS)) + body.rstrip() + "\n"
    source.write_text(text.replace("\nstatic void", "\nvoid"))
    compile_all(["g++", *CXX, "-shared", "-fPIC", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers", headers(), source,
                 *alone(), "-o", library])
    functions = ctypes.CDLL(str(library))
    calls = [functions[case.kernel.name] for case in made]
    return [lambda *arrays, call=call: call(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) for call in calls], text


def check(kind, rounds, seed):
    rng = np.random.default_rng(seed)
    chosen = [*(how for how in cases.fixed(kind) if not how.get("powers")),  # which processors alone have
              *LARGE.get(kind, []), *(cases.fuzzed(kind, rng) for _ in range(rounds))]
    made = [cases.build(kind, arguments, f"{kind}_{i}", rng) for i, arguments in enumerate(chosen)]
    functions, text = load(kind, made)
    results = [(arguments, case.check(function)) for arguments, case, function in zip(chosen, made, functions)]
    wrong = [f"#   {arguments}: {message}" for arguments, message in results if message]
    wrong += [f"#   {what}: {why}" for what, why in formatted(kit.laid_out(text)) if why]
    print(f"{'not ok' if wrong else 'ok'} {kind} ({len(made)} kernels)", *wrong, sep="\n", flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 1)))
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    print(f"# seed {options.seed}")
    kinds = options.kinds or in_turn([kind for kind in cases.KINDS if kind not in WITHOUT], 3, options.seed)
    return 0 if all([check(kind, 12 if options.all else 2, options.seed) for kind in kinds]) else 1


if __name__ == "__main__":
    sys.exit(main())
