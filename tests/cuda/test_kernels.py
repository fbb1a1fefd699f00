"""Kernels of templates/devices/gpu, one by one, formatted and against float64 in NumPy: the cases that hold those of a processor (tests/ops/kernels), and
here some with extents that fill more blocks than one. They run as C++ on the processor (tests/cuda/host). With --ptx they run as nvcc
compiles them, instruction by instruction (tests/cuda/standin/ptx); then also in 16 bits, compared with the same kernel over float32, on the
same numbers. A third of the kinds a run, and one by nvcc, as SEED says (tests/program/rotation.py).

usage: test_kernels.py [--all] [--seed N] [--ptx SM]... [--type float32|bfloat16|float16]... [KIND...]
  --all   all kinds, and more random cases (ninja soak)
  --ptx   the architecture that nvcc compiles for: 80, 90a or 100; then nothing runs as C++, and of each kind a dozen cases by nvcc
  --type  of all types only these"""

import argparse
import ctypes
import os
import subprocess
import sys

import numpy as np
from host import CXX, OUT, TREE, alone, compile_all, headers
from ptx import INCLUDE, PARTS as LIBRARIES, nvcc

sys.path.insert(0, str(TREE / "tests" / "ops" / "kernels"))

import bits16_cases as bits16  # noqa: E402
import cases  # noqa: E402
from compilers import formatted  # noqa: E402; tests/program
from rotation import in_turn  # noqa: E402; tests/program
import kernels as kit  # noqa: E402

SUMS = 1 << 22  # floats in which kernels keep partial sums, as gen/program/target_cuda.c has it
# Of libraries, or with random numbers whose key the device makes: what programs of test_training.py run.
WITHOUT = {"matmul", "convolution", "convolution_data", "convolution_weights", "dropout", "random_uniform", "random_normal",
           "random_int", "linear_cross_entropy", "linear_cross_entropy_backward", "linear_cross_entropy_forward_backward",
           "biased_attention", "biased_attention_backward",  # written out as other operations
           "quantized_matmul", "int8_matmul", "llm_int8_matmul", "gguf_matmul", "q8_0_matmul"}  # of processors alone
# In float32 whatever a model is in, or of a type of their own.
WITHOUT_16 = bits16.WITHOUT - {"grouped_matmul", "grouped_matmul_weight"}
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
INCLUDED = """#include <accel/gpu/fp8.h>
#include <accel/gpu/gemm.h>
#include <accel/gpu/kernels.h>
#include <accel/gpu/tensor_cores.h>
#include <assert.h>
"""
# What the runtime has: matmuls of float32 by the processor, at once.
MULTIPLY = """
static void multiply(const struct accel_gpu_gemm *p, float *y, const float *a, const float *b) {
  assert((uintptr_t)y % 16 == 0 && (uintptr_t)a % 16 == 0 && (uintptr_t)b % 16 == 0);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t c = 0; c < p->columns; c++) {
      double sum = 0.0;
      for (int64_t d = 0; d < p->depth; d++)
        sum += (double)a[r * p->a_row + d * p->a_column] * b[d * p->b_row + c * p->b_column];
      y[r * p->y_row + c] = (float)sum;
    }
}
"""
HEAD = INCLUDED + MULTIPLY + """
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
  multiply(p, (float *)y, (const float *)a, (const float *)b);
}

"""
# The same over the stand-ins, whose memory of a device is the host's. What a matmul touches is told to them.
HEAD_OF_PTX = INCLUDED + """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
""" + MULTIPLY + """
static float *sums;

accel_stream accel_gpu_stream(enum accel_stream_name) {
  return NULL;
}
void accel_gpu_launched(const char *call, const char *, int) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) fprintf(stderr, "%s: %s\\n", call, cudaGetErrorString(error)), exit(1);
}
void accel_gpu_zero(accel_stream, void *device, size_t bytes) {
  cudaMemsetAsync(device, 0, bytes, NULL);
}
void accel_gpu_multiply(const struct accel_gpu_gemm *p, accel_stream, void *y, const void *a, const void *b, void *,
                         void *) {
  const size_t count = (size_t)((p->rows - 1) * p->y_row + p->columns);
  cudaDeviceSynchronize();
  float *made = (float *)malloc(count * sizeof *made);
  memcpy(made, y, count * sizeof *made);
  multiply(p, made, (const float *)a, (const float *)b);
  cudaMemcpy(y, made, count * sizeof *made, cudaMemcpyHostToDevice);
  free(made);
}

"""
# Calls a kernel over operands in a file, one after the other, of as many bytes as the arguments say; + : they are written already;
# =N: that of operand N.
MAIN = """
int main(int count, char **words) {
  FILE *file = fopen(words[2], "r+b");
  void *host[64], *device[64];
  size_t bytes[64];
  const int operands = count - 3;
  cudaMalloc((void **)&sums, SUMS * sizeof *sums);
  for (int i = 0; i < operands; i++) {
    char *end;
    bytes[i] = 0;
    if (words[3 + i][0] == '=') {
      device[i] = device[atoi(words[3 + i] + 1)];
      continue;
    }
    bytes[i] = strtoull(words[3 + i], &end, 10);
    host[i] = malloc(bytes[i]);
    cudaMalloc(&device[i], bytes[i]);
    if (fread(host[i], 1, bytes[i], file) != bytes[i]) return 1;
    if (*end == '+')
      cudaMemcpy(device[i], host[i], bytes[i], cudaMemcpyHostToDevice);
    else
      memcpy(device[i], host[i], bytes[i]);
  }
  call(atoi(words[1]), device);
  cudaDeviceSynchronize();
  rewind(file);
  for (int i = 0; i < operands; i++) {
    fwrite(device[i], 1, bytes[i], file);
    if (bytes[i] > 0) cudaFree(device[i]);
  }
  cudaFree(sums);
  return fclose(file);
}
"""
# Which operands have 16 bits, and how far results may be from those of float32, relative to the largest.
TYPES = {"float32": ("float", 2**-24), "bfloat16": ("accel_bf16", 2**-8), "float16": ("accel_f16", 2**-11)}


def template_of(kind):
    return kit.template_of(kind, ENVIRONMENT)


def texts(kernel):
    """The kernels of the device, and the host's function where it puts them into the stream."""
    kernel.sums, kernel.by_library, kernel.tf32 = SUMS, False, False
    kernel.bits16 = any(operand.type in ("accel_bf16", "accel_f16") for operand in kernel.outputs + kernel.inputs)
    kernel.gemms = {part: "" for part in PARTS.get(kernel.kind, lambda _: [])(kernel)}
    op = ENVIRONMENT.get_template(template_of(kernel.kind)).make_module()
    host = str(op.host(kernel.kind, kernel)) if hasattr(op, "host") else ""
    return str(getattr(op, kernel.kind)(kernel)) + "\n", host + "\n" if host.strip() else ""


def body_of(made):
    device, host = ("".join(parts) for parts in zip(*(texts(case.kernel) for case in made)))
    return device + ('extern "C" {\n\n' + host + '} // extern "C"\n' if host else "")


def load(kind, made):
    """The launchers, each of which is done when it returns; and the text."""
    source, library = OUT / f"{kind}.cc", OUT / f"{kind}.so"
    text = HEAD.replace("SUMS", str(SUMS)) + body_of(made).rstrip() + "\n"
    source.write_text(text.replace("\nstatic void", "\nvoid"))
    compile_all(["g++", *CXX, "-shared", "-fPIC", "-Wno-unused-function", "-Wno-unused-variable", "-Wno-missing-field-initializers", headers(), source,
                 *alone(), "-o", library])
    functions = ctypes.CDLL(str(library))
    calls = [functions[case.kernel.name] for case in made]
    return [lambda *arrays, call=call: call(*(ctypes.c_void_p(a.ctypes.data) for a in arrays)) for call in calls], text


class Stopped(Exception):
    """The stand-ins have ended a program."""


def load_ptx(kind, made, architecture, element):
    """The same of kernels that nvcc compiles: each call is a process of its own, whose end by a fault is Stopped."""
    source, program = OUT / f"{kind}.{element}.cu", OUT / f"{kind}.{element}"
    included = f"#include <accel/gpu/{element.removeprefix('accel_')}.h>\n" if element != "float" else ""
    cases_of = "".join(f"  if (number == {i}) {case.kernel.name}("
                       + ", ".join(f"({operand.type} *)operands[{n}]" for n, operand in enumerate(case.kernel.outputs + case.kernel.inputs)) + ");\n"
                       for i, case in enumerate(made))
    source.write_text(included + (HEAD_OF_PTX + body_of(made) + f"\nstatic void call(int number, void **operands) {{\n{cases_of}}}\n" + MAIN).replace("SUMS", str(SUMS)))
    compile_all([nvcc(), "-std=c++17", "-O3", "-w", "-lineinfo", INCLUDE, "--compress-mode", "none", f"-gencode=arch=compute_{architecture},code=compute_{architecture}",
                 "-c", source, "-o", f"{program}.o"])
    compile_all(["g++", f"{program}.o", *LIBRARIES, "-o", program, "-ljansson", "-fopenmp", "-lm"])

    def run(number, case, arrays):
        operands = case.kernel.outputs + case.kernel.inputs
        is_written = [i >= len(case.kernel.outputs) or operand.accumulate or operand.name in case.in_place for i, operand in enumerate(operands)]
        own = {}  # of what is in place, the first
        words = [f"={own[id(array)]}" if own.setdefault(id(array), i) != i else f"{array.nbytes}{'+' * written}" for i, (array, written) in enumerate(zip(arrays, is_written))]
        held, kept = OUT / f"{kind}.operands", [arrays[i] for i in own.values()]
        held.write_bytes(b"".join(array.tobytes() for array in kept))
        ended = subprocess.run([program, str(number), held, *words], capture_output=True, text=True, env={**os.environ, "STANDIN_ARCH": architecture.rstrip("a")})
        if ended.returncode:
            raise Stopped(f"ended with {ended.returncode}: {ended.stderr.strip()}")
        content, at = held.read_bytes(), 0
        for array in kept:
            array[...] = np.frombuffer(content, array.dtype, array.size, at)
            at += array.nbytes

    return [lambda *arrays, i=i, case=case: run(i, case, arrays) for i, case in enumerate(made)]


def chosen_cases(kind, rounds, rng):
    return [*(how for how in cases.fixed(kind) if not how.get("powers")),  # which processors alone have
            *LARGE.get(kind, []), *(cases.fuzzed(kind, rng) for _ in range(rounds))]


def in_float32(case, function):
    """What is wrong, and the largest error in units of float32's rounding."""
    message = case.check(function)
    return message, case.error / 2**-24


def in_16_bits(short, wide, function, function_wide, element, rounding):
    """The same of a kernel over 16 bits compared with that over float32, in units of its own rounding."""
    (found, _), (expected, _) = short.run(function), wide.run(function_wide)
    worst = 0.0
    for operand, one, other in zip(short.kernel.outputs, found, expected):
        if operand.workspace:
            continue
        if not one.untouched():
            return f"{operand.name}: wrote outside", worst
        one, other = one.values(), other.values()
        if (np.isnan(one) != np.isnan(other)).any():
            return f"{operand.name}: NaN", worst
        error = float(np.abs(np.nan_to_num(one - other)).max(initial=0)) / max(1e-3, float(np.abs(np.nan_to_num(other)).max(initial=0)))
        is_rounded = operand.type == element
        worst = max(worst, error / (rounding if is_rounded else 2**-24))
        if not error < (2 * rounding if is_rounded else 1e-5):  # the rounding of a result, and of what it is added to
            return f"{operand.name}: error {error:.3g} of the largest value", worst
    return None, worst


def check_ptx(kind, rounds, seed, architecture, name, most):
    """A kind's kernels by nvcc's PTX, in a type; of its cases about as many as `most`, unless all run."""
    element, rounding = TYPES[name]
    if name != "float32" and kind in WITHOUT_16:
        return True
    rng = np.random.default_rng(seed)
    chosen, made = chosen_cases(kind, rounds, rng), []
    chosen = in_turn(chosen, -(-len(chosen) // most), seed)
    for i, arguments in enumerate(chosen):
        if name == "float32":
            made.append([cases.build(kind, arguments, f"{kind}_{i}", rng)])
        else:
            _, _, *both = bits16.pair(kind, arguments, f"{kind}_{i}", 0, element)
            made.append(both)
    functions = iter(load_ptx(kind, [case for both in made for case in both], architecture, element))
    wrong, worst = [], 0.0
    for arguments, both in zip(chosen, made):
        own = [next(functions) for _ in both]
        try:
            message, away = in_float32(*both, *own) if len(both) == 1 else in_16_bits(*both, *own, element, rounding)
        except Stopped as stopped:
            message, away = str(stopped), 0.0
        worst = max(worst, away)
        wrong += [f"#   {arguments}: {message}"] if message else []
    print(f"{'not ok' if wrong else 'ok'} {kind}, {name}, sm_{architecture} ({len(chosen)} cases; the largest error is {worst:.1f} roundings)", *wrong, sep="\n", flush=True)
    return not wrong


def check(kind, rounds, seed):
    rng = np.random.default_rng(seed)
    chosen = chosen_cases(kind, rounds, rng)
    made = [cases.build(kind, arguments, f"{kind}_{i}", rng) for i, arguments in enumerate(chosen)]
    functions, text = load(kind, made)
    results = [(arguments, case.check(function)) for arguments, case, function in zip(chosen, made, functions)]
    wrong = [f"#   {arguments}: {message}" for arguments, message in results if message]
    wrong += [f"#   {what}: {why}" for what, why in formatted(kit.laid_out(text)) if why]
    print(f"{'not ok' if wrong else 'ok'} {kind} ({len(made)} kernels)", *wrong, sep="\n", flush=True)
    return not wrong


def turns(kinds, options):
    """What runs by nvcc: kind, type, architecture. A run without arguments has one of them, --all those of one architecture."""
    types = options.type or list(TYPES)
    every = [(kind, name, architecture) for kind in kinds for name in types for architecture in options.ptx or ["90a"]]
    return every if options.all or options.ptx else [(kind, name, in_turn(("80", "90a", "100"), 3, options.seed)[0]) for kind, name, _ in in_turn(every, len(every), options.seed)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--ptx", action="append", choices=("80", "90a", "100"))
    parser.add_argument("--type", action="append", choices=TYPES)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 1)))
    parser.add_argument("kinds", nargs="*")
    options = parser.parse_args()
    print(f"# seed {options.seed}")
    known, rounds, good = [kind for kind in cases.KINDS if kind not in WITHOUT], 12 if options.all else 2, []
    if not options.ptx:
        good += [check(kind, rounds, options.seed) for kind in options.kinds or in_turn(known, 3, options.seed)]
    if nvcc():
        good += [check_ptx(kind, 2, options.seed, architecture, name, 12 if options.ptx else 3)
                 for kind, name, architecture in turns(options.kinds or known, options)]
    else:
        print("ok kernels by nvcc # SKIP there is none")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
