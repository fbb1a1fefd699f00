"""accel-gen data: files of every format become token files that read back as the documentation says, training on them is
training on the originals, and a changed byte is refused."""

import random
import struct
import unittest

import numpy as np
from data_folder import Folder
from harness import MODELS, Trainer


def read(path):
    """A token file by docs/data.md: tokens, starts of documents, vocabulary."""
    content = path.read_bytes()
    magic, version, width, count, vocabulary, _, documents = struct.unpack("<8sIIQQQQ", content[:48])
    assert (magic, version, content[48:64]) == (b"ACCELTOK", 1, bytes(16))
    end = 64 + count * width
    starts = (end + 7) // 8 * 8 if documents else end
    assert len(content) == starts + 8 * documents
    tokens = np.frombuffer(content[64:end], dtype=f"<u{width}")
    return tokens, list(struct.unpack(f"<{documents}Q", content[starts:])), vocabulary


class Data(Folder):
    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return name

    def test_bytes(self):
        for sizes in ((5,), (100000, 1, 70001), (8, 8)):
            texts = [random.Random(size).randbytes(size) for size in sizes]
            names = [self.write(f"{i}.txt", text) for i, text in enumerate(texts)]
            self.data(*names, "-o", "out.tok")
            tokens, starts, vocabulary = read(self.folder / "out.tok")
            self.assertEqual(tokens.tobytes(), b"".join(texts))
            self.assertEqual(starts, [sum(sizes[:i]) for i in range(len(sizes))])
            self.assertEqual(vocabulary, 256)
        shown = self.data("inspect", "out.tok")
        self.assertIn("tokens      16 of 1 bytes\nvocabulary  256\ndocuments   2\nsum         as the header says\n", shown)

    def test_wide(self):
        held = np.array([3, 128255, 70000, 9], dtype="<u4")
        header = struct.pack("<256i", 20240801, 7, 4, *[0] * 253)
        self.data(self.write("a.bin", header + held.tobytes()), "--format", "llmc", "-o", "out.tok")
        tokens, _, vocabulary = read(self.folder / "out.tok")
        self.assertEqual((tokens.tolist(), tokens.dtype.itemsize, vocabulary), (held.tolist(), 4, 128256))
        again = self.data("out.tok", "--format", "tokens", "-o", "again.tok")
        self.assertIn("again.tok: 4 tokens of 4 bytes, 1 documents", again)
        self.assertEqual((self.folder / "again.tok").read_bytes(), (self.folder / "out.tok").read_bytes())

    def test_every_changed_byte(self):
        self.data(self.write("a.txt", b"some text"), self.write("b.txt", b"more"), "-o", "out.tok")
        content = (self.folder / "out.tok").read_bytes()
        for at in range(len(content)):
            changed = bytearray(content)
            changed[at] ^= 1 << at % 8
            self.assertIn("out.tok: ", self.data("inspect", self.write("out.tok", changed), status=1))
        for size in (0, 63, len(content) - 1):
            self.data("inspect", self.write("out.tok", content[:size]), status=1)

    def test_wrong_words(self):
        reading, writing = "a file to read is missing", "a file to write is missing: -o FILE"
        for words, why in (((), reading), (("a.txt",), writing), (("-o", "x"), reading),
                           (("inspect",), "inspect takes one file and writes none"),
                           (("a", "-o", "b", "--format", "csv"), "--format is bytes, nanogpt, llmc or tokens, not csv"),
                           (("a", "-x"), "unknown option -x"),
                           (("a", "-o", "b", "--end", "x"), "--end belongs to --tokenizer"),
                           (("encode",), "a tokenizer.json is missing"), (("encode", "t", "a"), "a tokenizer.json is all that it takes")):
            told = self.data(*words, status=2)
            self.assertIn(f"accel-gen: {why}", told)
            self.assertIn("usage: accel-gen data", told)
        self.assertIn("none: cannot be opened", self.data("none", "-o", "x", status=1))
        self.assertFalse((self.folder / "x").exists())

    def test_training(self):
        """The same tokens in three formats: the same losses. A damaged file is refused at the start."""
        tokens = np.random.default_rng(2).integers(0, 200, 900).astype("<u2")
        trainer = Trainer({
            "model": {"source": str(MODELS / "nanogpt.c"),
                      "config": {"n_layer": 1, "n_head": 1, "n_embd": 8, "vocab_size": 256, "block_size": 8}},
            "data": {"train": {"path": "data", "format": "nanogpt"}, "batch_size": 2},
            "training": {"steps": 4},
        })
        self.folder = trainer.folder
        self.write("tokens.bin", tokens.tobytes())
        wide = struct.pack("<256i", 20240801, 7, len(tokens), *[0] * 253) + tokens.astype("<u4").tobytes()
        losses = []
        self.data("tokens.bin", "--format", "nanogpt", "-o", "tokens.tok")
        for format, content in (("nanogpt", tokens.tobytes()), ("llmc", wide),
                                ("tokens", (self.folder / "tokens.tok").read_bytes())):
            self.write("data", content)
            trainer.job["data"]["train"]["format"] = format
            trainer.write()
            trainer.build()
            losses.append([line["loss"] for line in trainer.run()])
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])
        changed = bytearray((self.folder / "data").read_bytes())
        changed[300] ^= 1
        self.write("data", changed)
        with self.assertRaisesRegex(AssertionError, "data: byte 32: the sum of the file is"):
            trainer.run()


if __name__ == "__main__":
    unittest.main()
