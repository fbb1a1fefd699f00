"""Matmuls of groups of rows by tensor cores, kernel by kernel: those of a program with experts, over groups that are empty,
cross tiles or leave rows over, against NumPy in float64. The kernels run as C++ on the processor (tests/cuda/host), where
fragments are shared out among the lanes of a warp and asynchronous copies are late.

usage: test_experts.py [--all]: fp16 and tf32, too (ninja soak)"""

import ctypes
import json
import re
import subprocess
import sys
import unittest

import numpy as np
from host import CXX, HostTrainer, alone, compile_all, headers
from test_training import HEADS, TEXT, case, write_data

from rotation import ALL  # tests/program; isort: skip

MODEL = {**HEADS, "num_hidden_layers": 1, "hidden_size": 136, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 72,
         "capacity_factor": 0}
STARTS = np.array([0, 0, 60, 131, 131, 170], np.int32)  # of 180 rows
FORWARD = re.compile(r'accel_matrix<\w+, (\d+), (\d+), false> rows = .*?accel_matrix<\w+, (\d+), (\d+), true> weight = .*?extern "C" void (\w+)\(',
                     re.DOTALL)
WEIGHT = re.compile(r'accel_matrix<\w+, (\d+), (\d+), false> left = .*?accel_matrix<\w+, \1, (\d+), false> right = .*?accel_store_sums<(\w+),.*?'
                    r'extern "C" void (\w+)\(', re.DOTALL)
FEW = re.compile(r'accel_dot<width, (\d+)>\(.*?extern "C" void (\w+_(\d+)x\1x(\d+))\(', re.DOTALL)
GUARD = 64  # elements around results


def to_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


# Each type's settings, its way into memory and out of it, and half a unit in its last place relative to the number.
TYPES = {"bf16": ({"mixed_precision": "bf16"}, to_bf16, of_bf16, 2**-8),
         "fp16": ({"mixed_precision": "fp16"}, lambda x: x.astype(np.float16), lambda x: x.astype(np.float32), 2**-11),
         "tf32": ({"tf32": True}, lambda x: x.astype(np.float32), lambda x: x, 2**-11)}


def shifted(array, by):
    """A copy whose memory begins `by` elements after a multiple of 64 bytes."""
    buffer = np.zeros(array.nbytes + 128, np.uint8)
    at = -buffer.ctypes.data % 64 + by * array.itemsize
    copy = buffer[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


class Experts(unittest.TestCase):
    def kernels(self, kind, program="train"):
        """A program's kernels as functions of this process, which a launch runs at once, and their text."""
        settings = TYPES[kind][0]
        trainer = HostTrainer(case("qwen_moe", MODEL, {**TEXT, "sequence_length": 30}, accumulation={"num_steps": 2}, precision=settings,
                                   devices={"attention": "own"}), [])
        write_data(trainer.folder, 1)
        trainer.generate("--program", program)
        library = trainer.folder / "kernels.so"
        compile_all(["g++", *CXX, "-shared", "-fPIC", headers(), "-x", "c++", trainer.folder / "trainer.cu", "-x", "none", *alone(), "-o",
                     library])
        return ctypes.CDLL(library), (trainer.folder / "trainer.cu").read_text()

    def run_kernel(self, kernel, results, inputs, by):
        """What the kernel makes of results with its operands `by` elements off."""
        around = np.full(GUARD, results[0].flat[0])
        buffers = [shifted(np.concatenate([around, y.ravel(), around]), by) for y in results]
        moved = [shifted(x, by) if x.dtype != np.int32 else x for x in inputs]
        kernel(*(ctypes.c_void_p(buffer.ctypes.data + GUARD * buffer.itemsize) for buffer in buffers), *(address(x) for x in moved))
        for buffer in buffers:
            for guard in (buffer[:GUARD], buffer[-GUARD:]):
                np.testing.assert_array_equal(guard, around)
        return np.stack([buffer[GUARD:-GUARD].reshape(results[0].shape) for buffer in buffers])

    def check(self, kernel, results, inputs, exact, size, of, unit, one_order=True):
        """results: what was there before; exact, size: the truth, and the sums of the terms' sizes. one_order: numbers that are
        moved one by one are added up in the order of those that are moved together."""
        plain, unpacked = (self.run_kernel(kernel, results, inputs, by) for by in (0, 1))
        if one_order:
            np.testing.assert_array_equal(plain.view(np.uint8), unpacked.view(np.uint8))
        for found in (plain, unpacked):
            away = np.abs(of(found).astype(np.float64) - exact)
            self.assertFalse(np.any(away > 2e-6 * size + unit * np.abs(exact)), float(away.max()))

    def check_all(self, kind):
        _, into, of, unit = TYPES[kind]
        library, text = self.kernels(kind)
        rng, half = np.random.default_rng(3), kind != "tf32"
        rounded = (lambda x: of(into(x))) if half else lambda x: x
        input_unit = 0 if half else 2 * unit  # of a matmul of two rounded factors
        groups = len(STARTS) - 1
        forward, weight = FORWARD.findall(text), WEIGHT.findall(text)
        self.assertEqual(len({lines != columns for *_, lines, columns, _ in forward}), 1)
        for rows, depth, lines, columns, name in forward:
            rows, depth, lines, columns = int(rows), int(depth), int(lines), int(columns)
            x = rounded(rng.normal(size=(rows, depth)).astype(np.float32))
            w = rounded(rng.normal(size=(groups, lines, columns)).astype(np.float32))
            exact, size = self.truth(x, w if lines == depth else w.transpose(0, 2, 1), STARTS, input_unit)
            x[STARTS[-1]:] = np.nan  # of no group
            y = into(np.full(exact.shape, 5.0))
            self.check(library[name], [y], [into(x), STARTS, *(into(one) for one in w)], exact[None], size, of, unit if half else 0)
        for rows, m, n, adds, name in weight:
            rows, m, n = int(rows), int(m), int(n)
            a, b = (rounded(rng.normal(size=(rows, c)).astype(np.float32)) for c in (m, n))
            before = rng.normal(size=(groups, m, n)).astype(np.float32)
            exact = before.astype(np.float64) if adds == "true" else np.zeros(before.shape)
            size = np.abs(exact)
            for g in range(groups):
                at = slice(STARTS[g], STARTS[g + 1])
                exact[g] += a[at].astype(np.float64).T @ b[at]
                size[g] += np.abs(a[at]).T.astype(np.float64) @ np.abs(b[at])
            self.check(library[name], list(before), [into(a), into(b), STARTS], exact, size * (1 + input_unit / 2e-6), lambda x: x, 0)
        self.assertEqual((len(forward), {adds for *_, adds, _ in weight}), (4, {"true"}), "kernels by tensor cores")

    def truth(self, x, w, starts, more):
        """x times w [groups][columns][outputs], group by group, and the sums of the terms' sizes; more: on top of 2e-6 of these."""
        exact, size = np.zeros((2, len(x), w.shape[2]))
        for g, (at, end) in enumerate(zip(starts, starts[1:])):
            exact[at:end], size[at:end] = x[at:end].astype(np.float64) @ w[g], np.abs(x[at:end]) @ np.abs(w[g])
        return exact, size * (1 + more / 2e-6)

    def test_few_rows(self):
        """A token's rows, of one group, of two, and of none."""
        _, into, of, unit = TYPES["bf16"]
        library, text = self.kernels("bf16", "generate")
        rng, groups = np.random.default_rng(4), len(STARTS) - 1
        kernels = FEW.findall(text)
        self.assertEqual(sorted(found[2:] for found in kernels), [("2", "136"), ("2", "72")])
        for depth, name, rows, outputs in kernels:
            x, w = (of(into(rng.normal(size=size))) for size in ((int(rows), int(depth)), (groups, int(outputs), int(depth))))
            for starts in ([0, 0, 2, 2, 2, 2], [0, 1, 1, 1, 1, 2], [0, 0, 0, 0, 1, 1]):
                exact, size = self.truth(x, w.transpose(0, 2, 1), starts, 0)
                y = into(np.full(exact.shape, 5.0))
                self.check(library[name], [y], [into(x), np.array(starts, np.int32), *(into(one) for one in w)], exact[None], size, of, unit,
                           one_order=False)

    def test_bf16(self):
        self.check_all("bf16")


for kind in TYPES if ALL else ():
    setattr(Experts, f"test_{kind}", lambda self, kind=kind: (self.check_all(kind), None)[1])

if __name__ == "__main__":
    headers()
    sys.argv = [word for word in sys.argv if word != "--all"]
    unittest.main()
