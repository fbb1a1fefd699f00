"""Products of groups of rows by tensor cores, kernel by kernel: those of a program with experts, over groups that are empty,
cross tiles or leave rows behind, beside NumPy in float64. The kernels run as C++ on the processor (tests/cuda/host), where
fragments are shared out among the lanes of a warp and copies beside threads are late.

usage: test_experts.py [--all]: fp16 and tf32, too (ninja soak)"""

import ctypes
import json
import re
import subprocess
import sys
import unittest

import numpy as np
from host import ALONE, CXX, HostTrainer, compile_all, headers
from test_training import HEADS, TEXT, case, write_data

MODEL = {**HEADS, "num_hidden_layers": 1, "hidden_size": 136, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 72,
         "capacity_factor": 0}
STARTS = np.array([0, 0, 60, 131, 131, 170], np.int32)  # of 180 rows
FORWARD = re.compile(r'rows = \{x, (\d+), (\d+), first, end\};\s+const accel_matrix<\w+> weight = \{weights.items\[g\], (\d+), (\d+), .*?'
                     r'extern "C" void (\w+)\(', re.DOTALL)
WEIGHT = re.compile(r'left = \{a, (\d+), (\d+), first, end\}, right = \{b, \1, (\d+), first, end\};.*?accel_store_sums<(\w+),.*?'
                    r'extern "C" void (\w+)\(', re.DOTALL)
GUARD = 64  # elements around results


def to_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


# Each type's settings, its way into memory and out of it, and half a unit in its last place beside the number.
TYPES = {"bf16": ({"mixed_precision": "bf16"}, to_bf16, of_bf16, 2**-8),
         "fp16": ({"mixed_precision": "fp16"}, lambda x: x.astype(np.float16), lambda x: x.astype(np.float32), 2**-11),
         "tf32": ({"tf32": True}, lambda x: x.astype(np.float32), lambda x: x, 2**-11)}


def shifted(array, by):
    """A copy whose memory begins `by` elements behind a multiple of 64 bytes."""
    room = np.zeros(array.nbytes + 128, np.uint8)
    at = -room.ctypes.data % 64 + by * array.itemsize
    copy = room[at:at + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


class Experts(unittest.TestCase):
    def kernels(self, kind):
        """The program's kernels as functions of this process, which a launch runs at once, and their text."""
        settings = TYPES[kind][0]
        trainer = HostTrainer(case("qwen_moe", MODEL, {**TEXT, "sequence_length": 30}, accumulation={"num_steps": 2}, precision=settings,
                                   devices={"attention": "own"}), [])
        write_data(trainer.folder, 1)
        trainer.generate()
        library = trainer.folder / "kernels.so"
        compile_all(["g++", *CXX, "-shared", "-fPIC", headers(), "-x", "c++", trainer.folder / "trainer.cu", *ALONE, "-o",
                     library])
        return ctypes.CDLL(library), (trainer.folder / "trainer.cu").read_text()

    def run_kernel(self, kernel, y, inputs, by):
        """What the kernel makes of y with its operands `by` elements off."""
        room = shifted(np.concatenate([np.full(GUARD, y.flat[0]), y.ravel(), np.full(GUARD, y.flat[0])]), by)
        moved = [shifted(x, by) if x.dtype != np.int32 else x for x in inputs]
        kernel(ctypes.c_void_p(room.ctypes.data + GUARD * room.itemsize), *(address(x) for x in moved))
        for guard in (room[:GUARD], room[-GUARD:]):
            np.testing.assert_array_equal(guard, np.full(GUARD, y.flat[0]))
        return room[GUARD:-GUARD].reshape(y.shape).copy()

    def check(self, kernel, y, inputs, exact, size, of, unit):
        """y: what stands there before; exact, size: the truth, and the sums of the terms' sizes."""
        plain, unpacked = (self.run_kernel(kernel, y, inputs, by) for by in (0, 1))
        np.testing.assert_array_equal(plain.view(np.uint8), unpacked.view(np.uint8))
        away = np.abs(of(plain).astype(np.float64) - exact)
        self.assertFalse(np.any(away > 2e-6 * size + unit * np.abs(exact)), float(away.max()))

    def check_all(self, kind):
        _, into, of, unit = TYPES[kind]
        library, text = self.kernels(kind)
        rng, low = np.random.default_rng(3), kind != "tf32"
        rounded = (lambda x: of(into(x))) if low else lambda x: x
        input_unit = 0 if low else 2 * unit  # of a product of two rounded factors
        groups = len(STARTS) - 1
        forward, weight = FORWARD.findall(text), WEIGHT.findall(text)
        self.assertEqual(len({lines != columns for *_, lines, columns, _ in forward}), 1)
        for rows, depth, lines, columns, name in forward:
            rows, depth, lines, columns = int(rows), int(depth), int(lines), int(columns)
            straight = lines == depth
            x = rng.normal(size=(rows, depth)).astype(np.float32)
            w = rng.normal(size=(groups, lines, columns)).astype(np.float32)
            x, w = rounded(x), rounded(w)
            exact = np.zeros((rows, columns if straight else lines))
            size = exact.copy()
            for g in range(groups):
                at = slice(STARTS[g], STARTS[g + 1])
                turned = w[g].astype(np.float64) if straight else w[g].astype(np.float64).T
                exact[at], size[at] = x[at].astype(np.float64) @ turned, np.abs(x[at]) @ np.abs(turned)
            x[STARTS[-1]:] = np.nan  # of no group
            y = into(np.full(exact.shape, 5.0))
            self.check(library[name], y, [into(x), STARTS, *(into(one) for one in w)], exact, size * (1 + input_unit / 2e-6), of, unit if low else 0)
        for rows, m, n, adds, name in weight:
            rows, m, n = int(rows), int(m), int(n)
            a, b = (rounded(rng.normal(size=(rows, c)).astype(np.float32)) for c in (m, n))
            for low_bound, high_bound in ((60, 131), (131, 131), (131, 170)):
                y = rng.normal(size=(m, n)).astype(np.float32)
                at = slice(low_bound, high_bound)
                exact = a[at].astype(np.float64).T @ b[at] + (y if adds == "true" else 0)
                size = np.abs(a[at]).T.astype(np.float64) @ np.abs(b[at]) + (np.abs(y) if adds == "true" else 0)
                self.check(library[name], y, [into(a), into(b), np.array([low_bound, high_bound], np.int32)], exact,
                           size * (1 + input_unit / 2e-6), lambda x: x, 0)
        self.assertEqual((len(forward), {adds for *_, adds, _ in weight}), (4, {"true"}), "kernels by tensor cores")

    def test_bf16(self):
        self.check_all("bf16")


for kind in TYPES if "--all" in sys.argv else ():
    setattr(Experts, f"test_{kind}", lambda self, kind=kind: (self.check_all(kind), None)[1])

if __name__ == "__main__":
    headers()
    sys.argv = [word for word in sys.argv if word != "--all"]
    unittest.main()
