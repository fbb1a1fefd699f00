"""Tensors that lie split over the sequence on the ranks of parallelism.tp: what ranks exchange of them."""

import os
import subprocess
import unittest

from ranks import TREE, library_flags, start

SEED = os.environ.get("SEED", "1")


class Parts(unittest.TestCase):
    """The collectives between parts and the whole, over MPI, against sums in the order of the ranks."""

    @classmethod
    def setUpClass(cls):
        print(f"SEED {SEED}")
        cls.program = TREE / "build" / "tests" / "parts"
        cls.program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-std=c17", "-O2", "-D_POSIX_C_SOURCE=200809L", "-I", TREE, "-o", cls.program,
                        TREE / "tests" / "parallel" / "parts.c", *library_flags("--cflags", "--libs")], check=True)

    def test_values(self):
        for ranks in (2, 3, 4):
            with self.subTest(ranks):
                result = start(self.program, ranks, SEED, "40")
                self.assertEqual((result.returncode, result.stderr), (0, ""), f"{ranks} ranks, SEED {SEED}")


if __name__ == "__main__":
    unittest.main()
