"""accel-gen data: files of every format become token files that read back as the documentation says, training on them is
training on the originals, and a changed byte is refused."""

import csv
import io
import json
import os
import random
import struct
import unittest

import numpy as np
from data_folder import Folder
from harness import MODELS, Trainer

SEED = int(os.environ.get("SEED", "1"))


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

    def test_documents_of_token_files(self):
        """A copy keeps them, across the parts in which it is made."""
        texts = [random.Random(size).randbytes(size) for size in (65536, 1, 200_000, 5)]
        names = [self.write(f"{i}.txt", text) for i, text in enumerate(texts)]
        self.data(*names, "-o", "out.tok")
        self.data("out.tok", "out.tok", "--format", "tokens", "-o", "twice.tok")
        tokens, starts, _ = read(self.folder / "twice.tok")
        self.assertEqual(tokens.tobytes(), 2 * b"".join(texts))
        self.assertEqual(starts, [sum(map(len, (texts + texts)[:i])) for i in range(8)])

    def test_replaces_files_alone(self):
        self.write("a.txt", b"text")
        for make, words in ((os.mkfifo, "out.tok: is not a regular file, and would be replaced"), (os.mkdir, "out.tok: is a folder")):
            out = self.folder / "out.tok"
            make(out)
            kind = out.stat().st_mode
            self.assertIn(words, self.data("a.txt", "-o", "out.tok", status=1))
            self.assertEqual(out.stat().st_mode, kind)
            (out.unlink if make is os.mkfifo else out.rmdir)()
        self.assertIn("does not write to standard output", self.data("a.txt", "-o", "-", status=2))
        self.assertEqual(os.listdir(self.folder), ["a.txt"])

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
                           (("a", "-o", "b", "--format", "csv"), "--format is text, bytes, nanogpt, llmc, tokens or megatron, not csv"),
                           (("a", "-x"), "unknown option -x"),
                           (("a", "-o", "b", "--end", "x"), "--end belongs to --tokenizer"),
                           (("a", "-o", "b", "--text-field", "x", "--text-column", "y"), "--text-field and --text-column"),
                           (("a", "-o", "b", "--text-field", "x", "--format", "text"), "--format is of files"),
                           (("encode",), "a tokenizer.json is missing"), (("encode", "t", "a"), "encode and decode take one tokenizer.json")):
            told = self.data(*words, status=2)
            self.assertIn(f"accel-gen: {why}", told)
            self.assertIn("usage: accel-gen data", told)
        self.assertIn("none: cannot be opened", self.data("none", "-o", "x", status=1))
        self.assertFalse((self.folder / "x").exists())

    def test_records(self):
        """Each record's text is a document, as Python's json and csv read it, in bytes."""
        texts = ["plain", "ä\u20ac\U0001f600", 'a "quote", and\r\nlines\n', "", "\0nul", "x" * 70001, "last"]
        lines = [json.dumps({"id": i, "text": text, "meta": {"text": "no"}}, ensure_ascii=i % 2 == 0)
                 for i, text in enumerate(texts)]
        self.write("a.jsonl", ("\n".join([lines[0], "", *lines[1:4], " \r", *lines[4:]])).encode())
        self.data("a.jsonl", "-o", "out.tok", "--text-field", "text")
        self.compare(texts)
        texts.remove("\0nul")
        for name, between in (("a.csv", ","), ("a.tsv", "\t")):
            out = io.StringIO()
            writer = csv.writer(out, delimiter=between)
            writer.writerows([["id", "the text", "z"], *([i, text, "t,\t\n"] for i, text in enumerate(texts))])
            self.write(name, b"\xef\xbb\xbf" + out.getvalue().encode())
            self.data(name, "-o", "out.tok", "--text-column", "the text")
            self.compare(texts)

    def test_json(self):
        """Lines as Python writes and reads them, of every shape that a quick reading of one field must not get wrong."""
        draw = random.Random(SEED)
        texts = []
        with open(self.folder / "a.jsonl", "w", encoding="utf-8") as out:
            for _ in range(500):
                record = {draw.choice(("id", "meta", "é", 'q"', "tex", "text\n")): self.value(draw, 3) for _ in range(draw.randrange(5))}
                texts.append(draw.choice(("", "plain", "ä\u20ac\U0001f600\n", '\\ud83d "', "\x7f\0", "text")) * draw.randrange(3))
                record["text"] = texts[-1]
                record |= {f"k{i}": self.value(draw, 2) for i in range(draw.choice((0, 1, 70)))}
                out.write(draw.choice(("", " ", "\t")) + json.dumps(record, ensure_ascii=draw.random() < 0.5, indent=None) + draw.choice(("", " \r")) + "\n")
        self.assertEqual([json.loads(line)["text"] for line in open(self.folder / "a.jsonl", encoding="utf-8")], texts)
        self.data("a.jsonl", "-o", "out.tok", "--text-field", "text")
        self.compare(texts)
        for line in (b'{"text": "a", "text": "b"}', b'{"text": "a", "m": {"x": 1, "x": 2}}', b'{"text": "\\ud800"}', b'{"text": "a", "n": "\\udc00"}', b'{"text": "a", "n": 1e999}',
                     b'{"text": "a", "n": 99999999999999999999}', b'{"text": "a",\x0b"n": 1}', b'{"text": "a"}\x0c', b'{"text": "a"}"', b'{"text": "a"', b'{"text": "\xc0\xaf"}',
                     b'{"text": "a", "n": "\xed\xa0\x80"}', b'{"text": ["a"]}', b'{"text": null}', b'{"text": true}', b'{"m": {"text": "a"}}', b'{"te\\u0078t": 1}', b'["text", "a"]'):
            self.write("a.jsonl", b'{"text": "first"}\n' + line + b"\n")
            self.assertIn("a.jsonl:2", self.data("a.jsonl", "-o", "bad.tok", "--text-field", "text", status=1), line)
        self.write("a.jsonl", b'{"te\\u0078t": "escaped \\u0041"}\n')
        self.data("a.jsonl", "-o", "out.tok", "--text-field", "text")
        self.compare(["escaped A"])

    def value(self, draw, depth):
        kind = draw.randrange(9 if depth else 7)
        if kind > 6:
            return [self.value(draw, depth - 1) for _ in range(3)] if kind == 7 else {"text": self.value(draw, depth - 1), "é": 1}
        return (draw.randrange(-10**9, 10**9), draw.random() * 10.0 ** draw.randrange(-200, 200), None, True, "text", "ü \U0001f600", 10**18)[kind]

    def compare(self, texts):
        tokens, starts, _ = read(self.folder / "out.tok")
        texts = [text.encode() for text in texts if text]
        ends = [*starts[1:], len(tokens)]
        self.assertEqual([tokens[a:b].tobytes() for a, b in zip(starts, ends)], texts)

    def test_bad_records(self):
        """A record without its text is named by file, line and column, and nothing is left."""
        for name, content, flags, told in (
                ("a.jsonl", b'{"text": "a"}\n{"text": 3}\n', "--text-field text", "a.jsonl:2: the field 'text' is not a text"),
                ("a.jsonl", b'{"text": "a"}\n\n{"tex": "b", "id": 1}\n', "--text-field text",
                 "a.jsonl:3: the record has no field 'text'\n    help: its fields are: tex, id"),
                ("a.jsonl", b'{"text": "a"}\n{"text": "b}\n', "--text-field text", "a.jsonl:2:12: premature end of input"),
                ("a.jsonl", b'{"text": "a"} 7\n', "--text-field text", "a.jsonl:1:"),
                ("a.jsonl", b'[1]\n', "--text-field text", "a.jsonl:1:1: not an object"),
                ("a.jsonl", b'{"text": "\xff"}\n', "--text-field text", "a.jsonl:1:"),
                ("a.csv", b'a,b\n1,2\n', "--text-column text", "a.csv:1: the header has no column 'text'"),
                ("a.csv", b'a,text\n1,"x\ny"\n2\n', "--text-column text", "a.csv:4: the row has fewer columns"),
                ("a.csv", b'a,text\n1,"x\n', "--text-column text", "a.csv:2:3: a quoted cell does not end"),
                ("a.csv", b'a,text\n1,x"y"\n', "--text-column text", "a.csv:2:4: a quote within a cell")):
            self.write(name, content)
            self.assertIn(told, self.data(name, "-o", "out.tok", *flags.split(), status=1), content)
            self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("out")], [])
        with open(self.folder / "sparse.jsonl", "wb") as file:
            file.truncate(1 << 36)
        told = self.data("sparse.jsonl", "-o", "out.tok", "--text-field", "text", status=1)
        self.assertIn("sparse.jsonl:1: the record is longer than 67108864 bytes", told)

    def test_skipped_records(self):
        """Of records of which some are broken, the texts of the others, how many were skipped, and why the first was."""
        draw = random.Random(SEED)
        broken = (b"[1]", b"{", b'{"text": "a\xff"}', b'{"text": 1}', b'{"id": 2}', b'{"text": "a"} 7')
        lines = [draw.choice(broken) if draw.random() < 0.3 else json.dumps({"text": f"é {i}"}).encode() for i in range(300)]
        good = [f"é {i}".encode() for i, line in enumerate(lines) if line not in broken]
        rows = [draw.choice((b"7", b'"a"b,c', b"8,\xff\xfe")) if draw.random() < 0.3 else b'%d,"a, ""%d"""' % (i, i) for i in range(300)]
        cells = [f'a, "{i}"'.encode() for i, row in enumerate(rows) if row.startswith(b"%d,\"a, " % i)]
        self.skips("a.jsonl", b"\n \n".join(lines), ("--text-field", "text"), good, lines)
        self.skips("a.csv", b"id,text\n" + b"\n\n".join(rows) + b"\n", ("--text-column", "text"), cells, rows)
        self.assertIn("--on-bad-record is stop or skip", self.data("a.csv", "-o", "out.tok", "--text-column", "text", "--on-bad-record", "go", status=2))
        self.assertIn("is of records", self.data("a.csv", "-o", "out.tok", "--on-bad-record", "skip", status=2))

    def skips(self, name, content, where, texts, all_of):
        (self.folder / name).write_bytes(content)
        told = self.data(name, "-o", "out.tok", *where, "--on-bad-record", "skip")
        tokens, starts, _ = read(self.folder / "out.tok")
        found = [bytes(tokens[first:last].tolist()) for first, last in zip(starts, [*starts[1:], len(tokens)], strict=True)]
        self.assertEqual(found, texts)
        self.assertIn(f"warning: {len(all_of) - len(texts)} records were skipped; the first: {name}:", told)

    def test_no_texts(self):
        """What is not text is refused by its name or by how it begins, unless it is said to be one."""
        for name, content, told in (
                ("a.jsonl", b"{}", "JSON Lines, not a text\n    help: --text-field NAME makes a document of each record"),
                ("a.txt", b'{"text": "a"}\n{"text": "b"}\n', "JSON Lines"), ("A.JSON", b"[1]", "JSON"),
                ("a.csv", b"a,b\n", "--text-column NAME"), ("a.npy", b"x", "an array of NumPy"),
                ("a.dat", b"\x93NUMPY\x01\x00", "an array of NumPy"), ("b.parquet", b"PAR1....", "Parquet"),
                ("c.dat", b"BZh9", "compressed"), ("d.dat", b"ACCELTOK....", "--format tokens")):
            self.write(name, content)
            shown = self.data(name, "-o", "out.tok", status=1)
            self.assertIn(f"{name}: this is ", shown)
            self.assertIn(told, shown)
            self.assertIn("--format text makes tokens of the file as it is", shown)
            self.assertFalse((self.folder / "out.tok").exists())
            for format in ("text", "bytes"):
                self.data(name, "-o", "out.tok", "--format", format)
                self.assertEqual(read(self.folder / "out.tok")[0].tobytes(), content)
            (self.folder / "out.tok").unlink()
        self.data(self.write("code.c", b"{ int x; }\n"), "-o", "out.tok")

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
