"""Several files as one source: patterns, every sample once an epoch, fractions by weight; against order.py, and against what
any such order must keep to."""

import math
import struct

import order
import support

LENGTH = 4
SIZES = {"a0": 90, "a1": 41, "b0": 203, "c0": 5}


class Files(support.Folder):
    def setUp(self):
        super().setUp()
        for i, (name, count) in enumerate(SIZES.items()):
            first = 10000 * i
            (self.folder / f"{name}.bin").write_bytes(struct.pack(f"<{count}H", *range(first, first + count)))

    def draws(self, shuffle, split, count, *parts):
        """(file, position in it) of each position."""
        words = [word for path, weight in parts for word in (path, weight)]
        done = self.run_program("print_mixture", LENGTH, int(shuffle), split, count, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [divmod(int(line), 10000) for line in done.stdout.split()]

    def parts(self, split, *names):
        """As the oracle has them."""
        files = list(SIZES)
        return [(files.index(name), order.splits(SIZES[name], 0.1)[split]) for name in names]

    def test_every_sample_once(self):
        for shuffle in (False, True):
            for split in (order.TRAIN, order.EVAL):
                with self.subTest(shuffle=shuffle, split=split):
                    mixture = order.Mixture(7, split, shuffle, self.parts(split, "a0", "a1", "b0"), LENGTH)
                    count = 3 * mixture.samples
                    ours = self.draws(shuffle, split, count, ("a*.bin", 0), ("b0.bin", 0))
                    self.assertEqual(ours, [mixture.start(i) for i in range(count)])
                    self.assertEqual(len(set(ours[:mixture.samples])), mixture.samples)

    def test_weights(self):
        """A pattern's weight is shared by its files as their sizes are."""
        sizes = {name: order.splits(SIZES[name], 0.1)[0][1] for name in SIZES}
        for shuffle in (False, True):
            with self.subTest(shuffle=shuffle):
                both = SIZES["a0"] + SIZES["a1"]
                weights = [3 * SIZES["a0"] / both, 3 * SIZES["a1"] / both, 1]
                mixture = order.Mixture(7, order.TRAIN, shuffle, self.parts(0, "a0", "a1", "b0"), LENGTH, weights)
                count = 40 * mixture.samples
                ours = self.draws(shuffle, 0, count, ("a*.bin", 3), ("b0.bin", 1))
                self.assertEqual(ours, [mixture.start(i) for i in range(count)])
                for file, weight in enumerate(weights):
                    drawn = [position for which, position in ours if which == file]
                    self.assertLess(abs(len(drawn) - count * weight / sum(weights)), 1 + math.log2(len(weights)))
                    windows = (sizes[list(SIZES)[file]] - (LENGTH if shuffle else 1)) // LENGTH
                    if not shuffle:  # each file goes round by itself
                        self.assertEqual(drawn, [i % windows * LENGTH for i in range(len(drawn))])
                    self.assertEqual(len({position // LENGTH for position in drawn}) in (windows, windows + 1), True)

    def test_refused(self):
        for parts, message in (
            ((("x*.bin", 1),), "x*.bin: no file matches this pattern"),
            ((("a0.bin", 1), ("c0.bin", 1)), "c0.bin: too few tokens or rows for a sample, but it has a weight"),
        ):
            words = [word for part in parts for word in part]
            done = self.run_program("print_mixture", LENGTH, 1, 0, 1, *words)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"error: {message}\n    help: ", done.stderr.decode())


if __name__ == "__main__":
    support.main()
