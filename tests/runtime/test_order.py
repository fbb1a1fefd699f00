"""The runtime's windows against order.py."""

import struct

import order
import support

SEED = 0x123456789ABCDEF


class Windows(support.Folder):
    def check(self, count, length, shuffle, split):
        (self.folder / "tokens.bin").write_bytes(struct.pack(f"<{count}H", *range(count)))
        wanted = order.Order(SEED, split, shuffle, *order.splits(count, 0.1)[split], length)
        positions = min(3 * wanted.samples, 400)
        done = self.run_program("print_windows", "tokens.bin", length, int(shuffle), split, positions)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([int(line) for line in done.stdout.split()], [wanted.start(i) for i in range(positions)])

    def test_all(self):
        for count, length in [(100, 8), (1000, 1), (10, 8), (12345, 64), (65536, 32), (40, 9), (330, 32)]:
            for shuffle in (False, True):
                for split in (order.TRAIN, order.EVAL):
                    with self.subTest(count=count, length=length, shuffle=shuffle, split=split):
                        if order.splits(count, 0.1)[split][1] > length:
                            self.check(count, length, shuffle, split)


if __name__ == "__main__":
    support.main()
