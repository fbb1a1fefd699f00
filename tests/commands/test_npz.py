"""accel-gen data of a compressed archive of arrays: NumPy reads the same arrays from what it writes, and a trainer reads it at all;
archives that are damaged or hold something else are refused."""

import io
import os
import unittest
import zipfile

import numpy as np
from data_folder import TREE, Folder
from harness import Trainer

MISSING = (TREE / "build/config/missing").read_text().split()


@unittest.skipIf("archive" in MISSING, "built without libarchive")
class Npz(Folder):
    def arrays(self):
        numbers = np.random.default_rng(1)
        return {"x": numbers.normal(size=(300, 7)).astype("float32"), "labels": numbers.integers(0, 3, 300).astype("int32"), "ä b": np.zeros((0, 3)),
                "large": np.zeros(3_000_000, "uint8"), "one": np.array(5)}

    def test_arrays(self):
        arrays = self.arrays()
        for write in (np.savez_compressed, np.savez):
            write(self.folder / "a.npz", **arrays)
            self.assertIn("b.npz: 5 arrays", self.data("a.npz", "-o", "b.npz"))
            with np.load(self.folder / "b.npz") as found:
                self.assertEqual(found.files, list(arrays))
                for name, array in arrays.items():
                    np.testing.assert_array_equal(found[name], array)
                    self.assertEqual(found[name].dtype, array.dtype)
            with zipfile.ZipFile(self.folder / "b.npz") as archive:
                self.assertEqual({member.compress_type for member in archive.infolist()}, {zipfile.ZIP_STORED})
                self.assertIsNone(archive.testzip())
            first = (self.folder / "b.npz").read_bytes()
            self.data("a.npz", "-o", "b.npz")
            self.assertEqual((self.folder / "b.npz").read_bytes(), first)

    def test_training(self):
        """A trainer refuses the one with the command, and trains on the other as on what numpy.savez writes."""
        (self.folder / "model.c").write_text('#include <accel/model.h>\ntensor model(scope s, tensor x, tensor labels) {\n'
                                             '  return cross_entropy(linear(at(s, "l"), x, 3), labels);\n}\n')
        trainer = Trainer({"model": {"source": str(self.folder / "model.c")},
                           "data": {"train": {"path": "t.npz", "format": "npz"}, "inputs": {"x": {"shape": [7]}, "labels": {"dtype": "int32"}}, "batch_size": 4}, "training": {"steps": 3}})
        self.folder = trainer.folder
        arrays = {name: self.arrays()[name] for name in ("x", "labels")}
        np.savez(self.folder / "t.npz", **arrays)
        trainer.build()
        wanted = [line["loss"] for line in trainer.run()]
        np.savez_compressed(self.folder / "packed.npz", **arrays)
        os.rename(self.folder / "packed.npz", self.folder / "t.npz")
        with self.assertRaisesRegex(AssertionError, "t.npz: its file .* is compressed or encrypted\n.*accel-gen data t.npz -o NAME.npz"):
            trainer.run()
        self.data("t.npz", "-o", "u.npz")
        os.rename(self.folder / "u.npz", self.folder / "t.npz")
        self.assertEqual([line["loss"] for line in trainer.run()], wanted)

    def test_refusals(self):
        np.savez_compressed(self.folder / "good.npz", x=np.arange(100_000))
        good = (self.folder / "good.npz").read_bytes()
        npy = io.BytesIO()
        np.save(npy, np.arange(5))
        cases = {"cut.npz": good[:-30], "half.npz": good[: len(good) // 2], "empty.npz": b"", "text.npz": b"text", "changed.npz": good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]}
        for name, content in cases.items():
            (self.folder / name).write_bytes(content)
        for name, member, content in (("name.npz", "x.txt", npy.getvalue()), ("magic.npz", "x.npy", b"text"), ("none.npz", None, b""), ("zero.npz", "x.npy", b""),
                                      ("control.npz", "a\x1b[31m.npy", npy.getvalue())):
            with zipfile.ZipFile(self.folder / name, "w", zipfile.ZIP_DEFLATED) as out:
                if member:
                    out.writestr(member, content)
        (self.folder / "sum.npz").write_bytes(good.replace(zipfile.ZipFile(io.BytesIO(good)).getinfo("x.npy").CRC.to_bytes(4, "little"), b"abcd"))
        for name in (*cases, "name.npz", "magic.npz", "none.npz", "zero.npz", "control.npz", "sum.npz"):
            with self.subTest(name):
                said = self.data(name, "-o", "out.npz", status=1)
                self.assertRegex(said, f"error: {name}: ")
                self.assertNotIn("\x1b", said)
                self.assertEqual(list(self.folder.glob("out*")), [])
        self.assertIn("alone", self.data("good.npz", "good.npz", "-o", "out.npz", status=2))
        self.assertIn("alone", self.data("good.npz", "-o", "out.npz", "--size", "3", status=2))
        self.data("good.npz", "-o", "good.npz", status=1)
        self.assertEqual((self.folder / "good.npz").read_bytes(), good)


if __name__ == "__main__":
    unittest.main()
