"""accel-gen data --format megatron: the tokens and documents of datasets that are written here by the layout which
Megatron-LM's megatron/core/datasets/indexed_dataset.py describes. Every cut or changed header is refused."""

import os
import random
import struct
import unittest

import numpy as np
from data_folder import Folder
from test_data import read

SEED = int(os.environ.get("SEED", "1"))
CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "f8": 6, "f4": 7, "u2": 8}


def index_of(documents, kind, width):
    """NAME.idx of documents, each a list of lengths of its sequences."""
    lengths = [length for document in documents for length in document]
    pointers = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * width if lengths else []
    firsts = np.cumsum([0, *map(len, documents)])
    return (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[kind], len(lengths), len(firsts)) + np.array(lengths, "<i4").tobytes()
            + np.array(pointers, "<i8").tobytes() + firsts.astype("<i8").tobytes())


class Megatron(Folder):
    def write(self, documents, kind="u2", top=None):
        count = sum(map(sum, documents))
        dtype = np.dtype("<" + kind)
        top = top or min(np.iinfo(dtype).max + 1, 128_000)
        tokens = np.random.default_rng(SEED).integers(0, top, count).astype(dtype)
        (self.folder / "d.bin").write_bytes(tokens.tobytes())
        (self.folder / "d.idx").write_bytes(index_of(documents, kind, dtype.itemsize))
        return tokens

    def convert(self, name="d.idx", status=0):
        return self.data(name, "--format", "megatron", "-o", "out.tok", status=status)

    def test_datasets(self):
        draw = random.Random(SEED)
        for kind in ("u1", "i1", "i2", "i4", "u2"):
            documents = [[draw.choice((0, 1, 7, 70_000 if i == 3 else 20)) for _ in range(draw.randint(0, 4))] for i in range(9)]
            documents.append([3, 0])
            tokens = self.write(documents, kind)
            for name in ("d.idx", "d.bin", "d"):
                told = self.convert(name)
                found, starts, vocabulary = read(self.folder / "out.tok")
                self.assertEqual(found.tolist(), tokens.tolist(), kind)
                sizes = [sum(document) for document in documents]
                self.assertEqual(starts, [sum(sizes[:i]) for i, size in enumerate(sizes) if size > 0])
                self.assertEqual(found.dtype.itemsize, tokens.dtype.itemsize)
                self.assertIn(f"{len(tokens)} tokens", told)
        self.assertIn(f"documents   {len(starts)}\n", self.data("inspect", "d.idx", "--format", "megatron"))
        self.write([])
        self.assertIn("0 tokens", self.convert())

    def test_refused(self):
        """With the byte or the sequence; nothing is written."""
        self.write([[4, 5], [6]])
        idx, tokens = (self.folder / "d.idx").read_bytes(), (self.folder / "d.bin").read_bytes()

        def changed(at, value, form="<Q"):
            return idx[:at] + struct.pack(form, value) + idx[at + struct.calcsize(form):]

        for content, told in ((b"", "not an index"), (idx[:33], "not an index"), (b"TNTIDX\0\0" + idx, "TNTIDX"), (idx[:-1], "but the file has"),
                              (idx + b"\0" * 3, "several modalities"), (idx + b"\0", "but the file has"), (changed(9, 2), "version 2"),
                              (changed(17, 7, "<B"), "float32"), (changed(17, 5, "<B"), "int64"), (changed(17, 9, "<B"), "type 9"),
                              (changed(18, 1 << 62), "sequences"), (changed(26, 1 << 61), "sequences"), (changed(26, 2), "sequences"),
                              (changed(34, -1, "<i"), "sequence 0"), (changed(34, 5, "<i"), "sequence 1"), (changed(42, 99, "<i"), "sequence 2"),
                              (changed(42, 5, "<i"), "14 tokens"), (changed(54, 9, "<q"), "sequence 1"), (changed(46, -2, "<q"), "sequence 0"),
                              (changed(70, 1, "<q"), "documents"), (changed(78, 0, "<q"), ""), (changed(78, 9, "<q"), "documents"),
                              (changed(86, 2, "<q"), "documents"), (changed(86, 4, "<q"), "documents"), (changed(17, 4, "<B"), "")):
            (self.folder / "d.idx").write_bytes(content)
            if told:
                self.assertIn(told, self.convert(status=1), content)
                self.assertFalse((self.folder / "out.tok").exists())
        (self.folder / "d.idx").write_bytes(idx)
        for content, told in ((tokens[:-1], "part of a token"), (tokens[:-2], "tokens"), (tokens + b"\0\0", "tokens")):
            (self.folder / "d.bin").write_bytes(content)
            self.assertIn(told, self.convert(status=1))
        for output in ("d.bin", "d.idx"):
            self.assertIn("one of the files, which is read", self.data("d", "--format", "megatron", "-o", output, status=1))
        self.write([[4]], "i4")
        (self.folder / "d.bin").write_bytes(struct.pack("<4i", 1, 2, -3, 4))
        self.assertIn("d.bin: byte 8: a token below 0", self.convert(status=1))
        (self.folder / "d.bin").unlink()
        self.assertIn("d.bin: cannot be opened", self.convert(status=1))
        self.assertIn("--format megatron reads it", self.data("d.idx", "-o", "out.tok", status=1))


if __name__ == "__main__":
    unittest.main()
