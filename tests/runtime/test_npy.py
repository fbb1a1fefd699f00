"""Arrays that NumPy wrote, of every type that is read and of odd shapes; and what is refused."""

import os

import numpy as np
import order
import support

TYPES = ["u1", "u2", "u4", "i1", "i2", "i4", "i8", "f4", "f8"]
SEED = int(os.environ.get("SEED", "1"))


class Rows(support.Folder):
    def save(self, name, array, version=None):
        with open(self.folder / name, "wb") as out:
            np.lib.format.write_array(out, array, version)

    def test_all(self):
        print("SEED", SEED)
        rng = np.random.default_rng(SEED)
        for kind in TYPES:
            for label in ("i8", "u1", "f4"):
                with self.subTest(kind=kind, label=label):
                    shape = [(40, 6), (33, 2, 3), (50, 1), (21, 2, 2, 2)][rng.integers(4)]
                    features = (rng.normal(size=shape) * 50).astype(kind)
                    labels = rng.integers(3, size=shape[0]).astype(label)
                    self.save("x.npy", features, [(1, 0), (2, 0), (3, 0)][rng.integers(3)])
                    self.save("y.npy", labels)
                    width, classes = int(np.prod(shape[1:])), int(label != "f4") * 3
                    done = self.run_program("print_rows", "x.npy", width, classes, 0, 60, "y.npy")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    got = np.array([[float(x) for x in line.split(",")] for line in done.stdout.decode().split()])
                    wanted = order.Order(77, order.TRAIN, True, *order.splits(len(labels), 0.25)[0])
                    rows = [wanted.start(i) for i in range(60)]
                    flat = features.reshape(len(labels), -1).astype(np.float32)[rows]
                    np.testing.assert_array_equal(got[:, :-1].astype(np.float32), flat)
                    np.testing.assert_array_equal(got[:, -1], labels[rows])

    def refused(self, message):
        done = self.run_program("print_rows", "x.npy", 6, 3, 0, 1, "y.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: {message}", done.stderr.decode())
        self.assertIn("\n    help: ", done.stderr.decode())

    def test_refused(self):
        good = np.zeros((40, 6), np.float32)
        self.save("y.npy", np.zeros(40, np.int64))
        for array, message in (
            (np.asfortranarray(good), "x.npy: byte 10: the array is in Fortran's order"),
            (good.astype(">f4"), "x.npy: byte 20: a type of elements that is not read"),
            (good.astype(np.complex64), "x.npy: byte 20: a type of elements that is not read"),
            (np.zeros(40, [("a", "<f4"), ("b", "<i4")]), "x.npy: byte 20: a type of elements that is not read"),
            (np.zeros((40, 7), np.float32), "x.npy: a row of the array has 7 numbers, not 6"),
            (np.zeros((39, 6), np.float32), "y.npy: 40 rows for the 39 rows of x.npy"),
        ):
            self.save("x.npy", array)
            self.refused(message)
        self.save("x.npy", good)
        whole = (self.folder / "x.npy").read_bytes()
        for text, message in (
            (whole[:-1], "x.npy: the header's shape needs another number of bytes than the 959 that follow it"),
            (whole[:50], "x.npy: byte 8: the file ends in its header"),
            (whole[:8], "x.npy: byte 0: no magic of a .npy file"),
            (b"1,2,3\n" * 9, "x.npy: byte 0: no magic of a .npy file"),
            (whole.replace(b"'shape'", b"'shaqe'"), "x.npy: byte 51: this is not the header that numpy.save writes"),
        ):
            (self.folder / "x.npy").write_bytes(text)
            self.refused(message)
        (self.folder / "x.npy").write_bytes(whole)
        self.save("y.npy", np.full(40, 3))
        self.refused("y.npy: row 1: label 3 is not a class number below 3")


if __name__ == "__main__":
    support.main()
