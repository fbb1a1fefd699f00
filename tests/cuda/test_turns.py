"""That the threads which run on the processor instead of a GPU's (tests/cuda/host) find what lacks a barrier: a kernel that
is right when they take turns from the first to the last is wrong the other way round."""

import ctypes
import os
import unittest

import numpy as np
from host import CXX, OUT, alone, compile_all, headers

KERNELS = """#include <accel/gpu/launch.h>
/* Each number gets the next one's position: a thread, a warp or a block may be at the next one first. */
__global__ void shift(float *x, bool waits) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  const float next = x[i + 1];
  if (waits) __syncthreads();
  x[i] = next;
}
extern "C" void shift_block(float *x, bool waits) {
  accel_launch(shift, 1, 64, x, waits);
}
extern "C" void shift_blocks(float *x, bool waits) {
  accel_launch(shift, 3, 64, x, waits);
}
/* Whether a thread of the block, and none of another, has such a number. */
__global__ void find(float *x) {
  const bool found = __syncthreads_or(x[blockIdx.x * 64 + threadIdx.x] == 70.0f);
  const bool all = __syncthreads_or(true), none = __syncthreads_or(false);
  x[blockIdx.x * 64 + threadIdx.x] = found + 2 * all + 4 * none;
}
extern "C" void find_blocks(float *x) {
  accel_launch(find, 3, 64, x);
}
"""


class Turns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        source = OUT / "turns.cc"
        source.write_text(KERNELS)
        cls.libraries = {}
        for order in ("", "reversed"):  # which a library asks for once
            library = OUT / f"turns_{order}.so"
            compile_all(["g++", *CXX, "-shared", "-fPIC", headers(), source, *alone(), "-o", library])
            cls.libraries[order] = ctypes.CDLL(str(library))

    def run_kernel(self, order, name, *arguments):
        os.environ["HOST_ORDER"] = order
        x = np.arange(193, dtype=np.float32)
        self.libraries[order][name](ctypes.c_void_p(x.ctypes.data), *arguments)
        return x

    def test_shift(self):
        for name, count in (("shift_block", 64), ("shift_blocks", 192)):
            right = np.arange(193, dtype=np.float32)
            right[:count] += 1
            for order in self.libraries:
                for waits in (False, True):
                    is_right = np.array_equal(self.run_kernel(order, name, waits), right)
                    self.assertEqual(is_right, order == "" or (waits and count == 64), f"{name}, {order}, {waits}")

    def test_or(self):
        for order in self.libraries:
            np.testing.assert_array_equal(self.run_kernel(order, "find_blocks")[:192], np.repeat([2, 3, 2], 64), order)


if __name__ == "__main__":
    unittest.main()
