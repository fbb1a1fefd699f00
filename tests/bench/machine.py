"""What the machine itself can do: copies of memory, and the matmuls of a model's linear layers by the library that trainers
are linked with."""

import ctypes
import dataclasses
import glob
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
STEP_BYTES = 28  # of AdamW by parameter: weight, gradient and two averages are read, all but the gradient are written
COPY = """
#include <string.h>
void copy(float *to, const float *from, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i += 65536) memcpy(to + i, from + i, sizeof *to * (unsigned long)(n - i < 65536 ? n - i : 65536));
}
"""


def copier(elements):
    """A function that copies so many floats with the threads of OpenMP, 8 bytes of traffic each."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/copy.so"
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-", "-o", library],
                       input=COPY, text=True, check=True)
        code = ctypes.CDLL(library)
    a, b = torch.randn(elements), torch.randn(elements)
    positions = [ctypes.c_void_p(x.data_ptr()) for x in (a, b)]
    return lambda keep=(a, b): code.copy(positions[0], positions[1], ctypes.c_long(elements))


@dataclasses.dataclass
class Rate:
    """A second's worth of something: in the median of some rounds, and in the fastest of them."""
    median: float
    fastest: float


def copy_rate():
    """Bytes a second. By another process: what starts programs to measure their memory must stay small itself, since
    Linux counts what a process was before it became the program."""
    said = subprocess.run([sys.executable, __file__], check=True, capture_output=True, text=True).stdout
    return Rate(*map(float, said.split()))


def measured_copy_rate(elements=1 << 24, rounds=9):
    copy, seconds = copier(elements), []
    for round in range(rounds + 2):
        begin = time.perf_counter()
        copy()
        if round >= 2:
            seconds.append(time.perf_counter() - begin)
    return Rate(8 * elements / statistics.median(seconds), 8 * elements / min(seconds))


def matmul_rate(shape, threads, precision="no"):
    """Floating-point operations a second in the linear layers of "tiny", "small" or "gpt2", in float32 or in "bf16", over a second's
    rounds by the library's threads or by as many sequential calls, whichever is faster; None where the library is not found."""
    program = TREE / "build" / "bench" / "matmul"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-std=c17", "-O2", "-fopenmp", "-o", program, TREE / "tests" / "bench" / "matmul.c", "-ldl"],
                   check=True)
    folder = subprocess.run(["cc", "-print-multiarch"], capture_output=True, text=True).stdout.strip()
    kind = {"no": "dnnl", "bf16": "dnnl16"}[precision]
    for library in sorted(glob.glob(f"/usr/lib/{folder}/libdnnl.so.?"), reverse=True):
        results = [subprocess.run([program, kind, library, str(threads), shape, mode], capture_output=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": str(threads)}) for mode in ("loops", "split")]
        if all(result.returncode == 0 for result in results):
            said = [[1e9 * float(word) for word in result.stdout.split()] for result in results]
            return Rate(max(rates[4] for rates in said), max(rates[0] for rates in said))
    return None


if __name__ == "__main__":
    rate = measured_copy_rate()
    print(rate.median, rate.fastest)
