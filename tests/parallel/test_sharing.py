"""What ranks of a machine exchange through memory: every collective gives its value, to the bit, whoever comes when; a
power of two ranks has the bits of MPI's."""

import os
import subprocess
import unittest

from ranks import TREE, library_flags, start

SEED = os.environ.get("SEED", "1")
ROUNDS = 60


class Sharing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"SEED {SEED}")
        folder = TREE / "build" / "tests"
        cls.program, cls.counter = folder / "sharing", folder / "sharing_traffic.so"
        subprocess.run(["cc", "-std=c17", "-O2", "-D_POSIX_C_SOURCE=200809L", "-I", TREE, "-o", cls.program,
                        TREE / "tests" / "parallel" / "sharing.c", *library_flags("--cflags", "--libs")], check=True)
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", cls.counter, TREE / "tests" / "parallel" / "traffic.c"],
                       check=True)

    def bits(self, ranks, **environment):
        result = start(self.program, ranks, SEED, str(ROUNDS), **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), f"{ranks} ranks, SEED {SEED}")
        return result.stdout

    def counted(self, ranks, **environment):
        """The same; and the bytes that MPI was given."""
        traffic = TREE / "build" / "tests" / "sharing_traffic"
        bits = self.bits(ranks, LD_PRELOAD=str(self.counter), TRAFFIC=str(traffic), **environment)
        lines = [line.split("\t") for line in traffic.with_name(traffic.name + ".0").read_text().splitlines()]
        return bits, sum(int(line[2]) for line in lines if line[0] == "dp_shard")

    def test_values(self):
        for ranks in (3, 5, 8):
            with self.subTest(ranks):
                self.bits(ranks)

    def test_as_over_mpi(self):
        for ranks in (2, 4):
            with self.subTest(ranks):
                apart, given = self.counted(ranks)
                self.assertGreater(given, 1000000)
                together, given = self.counted(ranks, TOGETHER="1")
                self.assertLess(given, 1000)  # at the start, who is where, and whether all have opened what they share
                self.assertEqual(together, apart)


if __name__ == "__main__":
    unittest.main()
