"""The runtime's sequences and rows against order.py."""

import struct

import order
import support

SEED = 0x123456789ABCDEF


class Sequences(support.Folder):
    def check(self, count, length, shuffle, split):
        (self.folder / "tokens.bin").write_bytes(struct.pack(f"<{count}H", *range(count)))
        wanted = order.Order(SEED, split, shuffle, *order.splits(count, 0.1)[split], length)
        positions = min(3 * wanted.samples, 400)
        done = self.run_program("print_sequences", "tokens.bin", length, int(shuffle), split, positions)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([int(line) for line in done.stdout.split()], [wanted.start(i) for i in range(positions)])

    def test_all(self):
        for count, length in [(100, 8), (1000, 1), (10, 8), (12345, 64), (65536, 32), (40, 9), (330, 32)]:
            for shuffle in (False, True):
                for split in (order.TRAIN, order.EVAL):
                    with self.subTest(count=count, length=length, shuffle=shuffle, split=split):
                        if order.splits(count, 0.1)[split][1] > length:
                            self.check(count, length, shuffle, split)


class Rows(support.Folder):
    def check(self, classes, split, count):
        rows = [f"{i},{i * 0.5},{i % 3 if classes else i * 0.25}" for i in range(101)]
        (self.folder / "table.csv").write_text("a,b,label\n" + "\n".join(rows) + "\n")
        wanted = order.Order(77, split, True, *order.splits(101, 0.25)[split])
        done = self.run_program("print_rows", "table.csv", 2, classes, split, count)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = [[float(cell) for cell in line.split(",")] for line in done.stdout.decode().split()]
        self.assertEqual(values, [[float(c) for c in rows[wanted.start(i)].split(",")] for i in range(count)])

    def test_all(self):
        for classes in (0, 3):
            for split in (order.TRAIN, order.EVAL):
                for count in (150, 1000):
                    with self.subTest(classes=classes, split=split, count=count):
                        self.check(classes, split, count)

    def test_bad_tables(self):
        for text, message in (
            ("1,2,9\n" * 5, "table.csv: line 1: label 9 is not a class number below 3"),
            ("1,2\n", "table.csv: line 1: fewer than 3 columns"),
            ("a,b,c\n1,2,x\n", "table.csv: line 2, column 3: 'x' is not a finite decimal number"),
            ("a,b,c\n", "table.csv: 0 rows for train are too few: 1 needed"),
            ("", "table.csv: 0 rows for train are too few: 1 needed"),
        ):
            (self.folder / "table.csv").write_text(text)
            done = self.run_program("print_rows", "table.csv", 2, 3, 0, 1)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"error: {message}\n    help: ", done.stderr.decode())


if __name__ == "__main__":
    support.main()
