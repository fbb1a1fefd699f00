"""accel-gen data of compressed files: the tokens of what Python's gzip and the command zstd unpack them to, whatever the
members and frames are; a file that is cut, damaged or followed by something is refused; memory does not grow with what a
file unpacks to."""

import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import unittest

from data_folder import TREE, Folder
from harness import GENERATOR
from test_data import read
from tokenizers_made import FAMILIES

SEED = int(os.environ.get("SEED", "1"))
MISSING = (TREE / "build" / "config" / "missing").read_text().split()


def zstd(content, *flags):
    return subprocess.run(["zstd", "-q", "-c", *flags], input=content, capture_output=True, check=True).stdout


def packers():
    """By the ending of a name: bytes to a member or a frame."""
    yield ".gz", lambda content: gzip.compress(content, random.choice((0, 1, 9)))
    if "zstd" not in MISSING and shutil.which("zstd"):
        yield ".zst", lambda content: zstd(content, random.choice(("-1", "-9", "--no-check")))


PEERS = {".gz": gzip.decompress, ".zst": lambda content: zstd(content, "-d")}


def pack(content, packer, members):
    """The content in so many members of random sizes, some of them empty."""
    cuts = sorted(random.choices(range(len(content) + 1), k=members - 1))
    return b"".join(packer(content[a:b]) for a, b in zip([0, *cuts], [*cuts, len(content)]))


class Packed(Folder):
    def setUp(self):
        super().setUp()
        random.seed(SEED)

    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return name

    def compare(self, name, content, *flags):
        """The tokens of a file, and of it compressed."""
        self.data(self.write(name, content), "-o", "plain.tok", *flags)
        for ending, packer in packers():
            for members in (1, 7):
                self.data(self.write(name + ending, pack(content, packer, members)), "-o", "packed.tok", *flags)
                self.assertEqual((self.folder / "packed.tok").read_bytes(), (self.folder / "plain.tok").read_bytes(), name + ending)

    def test_same_tokens(self):
        """Records that are longer than the window at first, and cells with line ends, come out as of the plain file."""
        texts = ["ä" * random.choice((3, 50, 2000, 30_000, 900_000 if i % 20 == 0 else 4)) + f'\r\n"{i}", ' for i in range(60)]
        self.compare("a.jsonl", "".join(json.dumps({"text": text}) + "\n" * (i % 3 + 1) for i, text in enumerate(texts)).encode(), "--text-field", "text")
        for name, between in (("a.csv", ","), ("a.tsv", "\t")):
            rows = ['"' + text.replace('"', '""') + f'"{between}{i}' for i, text in enumerate(texts)]
            self.compare(name, f"text{between}id\r\n".encode() + "\r\n".join(rows).encode(), "--text-column", "text")
        self.compare("a.txt", "".join(texts).encode())
        self.compare("empty.txt", b"")

    def test_tokenizer(self):
        """Also through a tokenizer, where bad records are skipped, and after a kill."""
        FAMILIES["gpt2"]("some words of a text and some more", 300).save(str(self.folder / "t.json"))
        lines = [random.choice(("{", '{"text": 1}', json.dumps({"text": f"some words {i} " * random.randint(0, 40)}))) for i in range(9000)]
        flags = ("--tokenizer", "t.json", "--text-field", "text", "--on-bad-record", "skip")
        self.compare("a.jsonl", "\n".join(lines).encode(), *flags)
        self.compare("a.txt", "\n".join(lines).encode()[1:], "--tokenizer", "t.json")
        for ending, _ in packers():
            (self.folder / "packed.tok.progress").unlink(missing_ok=True)
            self.resume(f"a.jsonl{ending}", flags)

    def resume(self, name, flags):
        """A run that is killed once it has noted how far it is; the next one ends as a whole one does."""
        content = (self.folder / name).read_bytes()
        self.write(name, content * 4)
        self.data(name, "-o", "whole.tok", *flags)
        run = subprocess.Popen([GENERATOR, "data", name, "-o", "killed.tok", *flags], cwd=self.folder, stderr=subprocess.DEVNULL)
        while run.poll() is None and not (self.folder / "killed.tok.progress").exists():
            pass
        run.kill()
        run.wait()
        self.data(name, "-o", "killed.tok", *flags)
        self.assertEqual((self.folder / "killed.tok").read_bytes(), (self.folder / "whole.tok").read_bytes())

    def test_damage(self):
        """Every cut, and changes of all bytes that count, are refused, and nothing is left of an output."""
        content = "".join(json.dumps({"text": f"text {i}"}) + "\n" for i in range(40)).encode()
        for ending, packer in packers():
            packed = packer(content)
            name = f"a.jsonl{ending}"
            for size in random.sample(range(5, len(packed)), 6):
                self.refused(name, packed[:size], "within its compressed data")
            self.refused(name, packed + b"more", "follows the compressed data")
            self.refused(name, packed + packed[:-1], "within its compressed data")
            self.refused(name, packed[:-4] + bytes(4), "byte")
            for at in random.sample(range(20, len(packed)), 5):
                changed = bytearray(packed)
                changed[at] ^= 1 << random.randrange(8)
                self.refused(name, bytes(changed), "", PEERS[ending])
        self.data(self.write("a.jsonl.gz", gzip.compress(content) + bytes(512)), "-o", "out.tok", "--text-field", "text")
        self.data(self.write("t.tok.gz", gzip.compress(b"ACCELTOK")), "--format", "tokens", "-o", "x.tok", status=1)

    def refused(self, name, content, message, peer=None):
        """peer: refuses it, too."""
        if peer:
            try:
                return peer(content)
            except Exception:
                pass
        for flags in (("--text-field", "text"), ("--text-field", "text", "--on-bad-record", "skip")):
            told = self.data(self.write(name, content), "-o", "out.tok", *flags, status=1)
            self.assertIn(message, told)
            self.assertEqual([path.name for path in self.folder.iterdir() if path.name.startswith("out")], [])

    def test_inside(self):
        """What a file unpacks to is looked at as a plain one is."""
        for name, content, told in (("a.jsonl", b'{"text": "a"}\n', "JSON Lines"), ("a", b'{"text": "a"}\n', "JSON Lines"),
                                    ("a.npy", b"\x93NUMPY", "an array of NumPy"), ("a.tar", b"x", "not what tar writes")):
            for ending, packer in packers():
                self.assertIn(told, self.data(self.write(name + ending, packer(content)), "-o", "out.tok", status=1))
        self.assertIn("not what gzip writes", self.data(self.write("a.txt.gz", b"text"), "-o", "out.tok", status=1))
        packed = gzip.compress(b"text")
        self.data(self.write("a.txt.gz", packed), "-o", "out.tok", "--format", "bytes")
        self.assertEqual(read(self.folder / "out.tok")[0].tobytes(), packed)
        self.assertIn("without zstd" if "zstd" in MISSING else "no frame of zstd",
                      self.data(self.write("a.zst", b"\x28\xb5\x2f\xfd\x20\x05\xff\xff\xff" + bytes(9)), "-o", "out.tok", status=1))

    def test_bombs(self):
        """A quarter of a gigabyte of zeros or blank lines in little of a file: refused or read, in 160 MB."""
        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (160 << 20, 160 << 20))

        FAMILIES["gpt2"]("text", 300).save(str(self.folder / "t.json"))
        for ending, packer in packers():
            for content, flags, told in ((bytes(1 << 22), ("--text-field", "text"), "the record is longer"),
                                         (bytes(1 << 22), ("--tokenizer", "t.json"), "that a compressed text may have"),
                                         (b"\n" * (1 << 22), ("--text-field", "text"), "0 documents")):
                self.write(f"bomb{ending}", packer(content) * 48)
                run = subprocess.run([GENERATOR, "data", f"bomb{ending}", "-o", "out.tok", *flags], cwd=self.folder, capture_output=True,
                                     text=True, preexec_fn=limited, env={**os.environ, "OMP_NUM_THREADS": "2"})
                self.assertIn(told, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
