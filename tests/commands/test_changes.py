"""A file that is written to, cut or replaced while accel-gen data reads it is refused, with and without a tokenizer; images of a folder, too; files that
are empty, of no UTF-8, or much larger than the memory that a run may take."""

import json
import os
import re
import subprocess
import time
import unittest

import numpy as np
from data_folder import TREE, Folder
from harness import GENERATOR
from PIL import Image
from test_data import read
from tokenizers_made import FAMILIES

MISSING = (TREE / "build/config/missing").read_text().split()
LINE = json.dumps({"text": "some words of a text " * 40, "label": "x"}).encode() + b"\n"


def grow(path):
    with open(path, "ab") as file:
        file.write(LINE)


def replace(path):
    """By the file beside it, which was written before: a copy made now could take longer than the run."""
    path.with_suffix(".new").rename(path)


CHANGES = {"grow": grow, "cut": lambda path: os.truncate(path, 4096), "replace": replace}


class Changes(Folder):
    def setUp(self):
        super().setUp()
        FAMILIES["gpt2"](LINE.decode(), 300).save(str(self.folder / "t.json"))

    def changed(self, change, *flags, first=20_000):
        """What a run says whose file is changed once it is mapped. One that ends before proves nothing and is repeated with more."""
        for lines in (first, 100_000, 500_000):
            path = self.folder / "a.jsonl"
            path.write_bytes(LINE * lines)
            path.with_suffix(".new").write_bytes(LINE * lines)
            run = subprocess.Popen([GENERATOR, "data", "a.jsonl", "-o", "out.tok", "--text-field", "text", *flags], cwd=self.folder,
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            while run.poll() is None and str(path) not in read_of(run.pid, "maps"):
                time.sleep(0.001)
            CHANGES[change](path)
            told = run.communicate()[1]
            if run.returncode != 0:
                return told
        self.fail(f"{change} {flags}: no run saw the change")

    def test_changes(self):
        for flags in ((), ("--tokenizer", "t.json")):
            for change in CHANGES:
                told = self.changed(change, *flags)
                self.assertRegex(told, "a.jsonl: the file was changed while it was read|became shorter while it was being read", (change, flags))
                self.assertFalse((self.folder / "out.tok").exists())
                for left in self.folder.glob("out.tok.*"):  # as of a run that is killed
                    left.unlink()

    def test_labelled(self):
        """Also where rows are made, of few tokens of each text."""
        words = ("--tokenizer", "t.json", "--label", "label", "--labels", "x,y", "--max-length", "8", "--pad", "a", "-o", "out.npz")
        for change in ("grow", "cut"):
            told = self.changed(change, *words, first=2_000)
            self.assertRegex(told, "a.jsonl: the file was changed while it was read|became shorter while it was being read")
            self.assertFalse((self.folder / "out.npz").exists())

    @unittest.skipIf("pictures" in MISSING, "built without libpng and libjpeg")
    def test_images(self):
        """Also one of the images of a folder, whether it was read already or not."""
        (self.folder / "in/a").mkdir(parents=True)
        pixels = np.random.default_rng(1).integers(0, 256, (300, 300, 3), dtype=np.uint8)
        for name, change in (("0000.png", grow), ("last.png", replace), ("last.png", lambda path: os.truncate(path, 100))):
            self.assertIn(f"in/a/{name}: the file was changed while it was read", self.changed_image(pixels, name, change))
            self.assertEqual(list(self.folder.glob("out*")), [])

    def changed_image(self, pixels, name, change):
        """What a run says where one of its images is changed once the output is begun."""
        for count in (60, 300, 1500):
            for i in range(count):
                Image.fromarray(pixels).save(self.folder / "in/a" / ("last.png" if i + 1 == count else f"{i:04}.png"), compress_level=1)
            (self.folder / "in/a/last.new").write_bytes((self.folder / "in/a/last.png").read_bytes())
            run = subprocess.Popen([GENERATOR, "data", "in", "-o", "out.npy", "--on-bad-record", "skip"], cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
            while run.poll() is None and not list(self.folder.glob("out.npy*")):
                time.sleep(0.001)
            change(self.folder / "in/a" / name)
            told = run.communicate()[1]
            if run.returncode != 0:
                return told
        self.fail(f"{name}: no run saw the change")

    def test_memory(self):
        """Memory does not grow with the file: 330 MB of records in a third of that, mapped pages included."""
        (self.folder / "a.jsonl").write_bytes(LINE * 400_000)
        run = subprocess.Popen([GENERATOR, "data", "a.jsonl", "-o", "out.tok", "--text-field", "text"], cwd=self.folder, stdout=subprocess.DEVNULL)
        most = 0
        while run.poll() is None:
            most = max(most, peak_of(run.pid))
            time.sleep(0.01)
        self.assertEqual(run.returncode, 0)
        self.assertGreater(most, 1 << 20)
        self.assertLess(most, 110 << 20)  # half of it are libraries

    def test_empty(self):
        for name, flags, documents in (("a.txt", (), 0), ("a.jsonl", ("--text-field", "text"), 0), ("b.txt", ("--tokenizer", "t.json"), 0)):
            (self.folder / name).write_bytes(b"")
            self.data(name, "-o", "out.tok", *flags)
            tokens, starts, _ = read(self.folder / "out.tok")
            self.assertEqual((len(tokens), len(starts)), (0, documents))
        (self.folder / "a.csv").write_bytes(b"")
        (self.folder / "out.tok").unlink()
        for flags in ((), ("--tokenizer", "t.json")):
            self.assertIn("a.csv:1: the header has no column", self.data("a.csv", "-o", "out.tok", "--text-column", "text", *flags, status=1))
            self.assertEqual([path.name for path in self.folder.glob("out.tok*")], [])

    def test_no_utf8(self):
        """Named with its byte or line, for each kind of file."""
        for name, content, flags, told in (("a.txt", b"good \xff bad", ("--tokenizer", "t.json"), "a.txt: byte 5"),
                                           ("a.jsonl", b'{"text": "a"}\n{"text": "\xe4"}\n', ("--text-field", "text"), "a.jsonl:2"),
                                           ("a.csv", b"id,text\n1,a\n2,\xe4\n", ("--text-column", "text", "--tokenizer", "t.json"), "a.csv")):
            (self.folder / name).write_bytes(content)
            shown = self.data(name, "-o", "out.tok", *flags, status=1)
            self.assertIn(told, shown)
            self.assertRegex(shown, "UTF-8|unable to decode byte 0xe4")
            self.assertFalse((self.folder / "out.tok").exists())


def read_of(pid, name):
    try:
        with open(f"/proc/{pid}/{name}") as file:
            return file.read()
    except OSError:
        return ""


def peak_of(pid):
    """Bytes of the most memory that it has had so far."""
    found = re.search(r"VmHWM:\s*(\d+) kB", read_of(pid, "status"))
    return int(found[1]) << 10 if found else 0


if __name__ == "__main__":
    unittest.main()
