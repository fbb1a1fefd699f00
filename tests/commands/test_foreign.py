"""Files of Parquet and Arrow, as pyarrow writes them: accel-gen data and a trainer refuse them with a command, and what the
command writes has the same texts and numbers."""

import io
import json
import re
import shlex
import subprocess
import sys
import tarfile
import unittest

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from data_folder import TREE, Folder
from harness import Trainer
from PIL import Image
from test_data import read

TEXTS = ["plain", "ä\u20ac\U0001f600", 'a "quote",\r\nlines\n', "", "x" * 3000]


def write_stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as out:
        out.write_table(table, max_chunksize=2)


def write_file(table, path):
    with pa.ipc.new_file(path, table.schema) as out:
        out.write_table(table, max_chunksize=2)


WRITERS = {
    "a.parquet": lambda table, path: pa.parquet.write_table(table, path, row_group_size=2, compression="zstd"),
    "b.arrow": write_file,
    "c.feather": lambda table, path: pa.feather.write_feather(table, path, compression="lz4"),
    "d.arrow": write_stream,
}


class Foreign(Folder):
    def run_command_of(self, told):
        """Runs the command of a message, with this Python."""
        command = re.search(r"^ +(python3 -c .*)$", told, re.M)[1]
        words = shlex.split(command.split(">")[0])
        self.assertEqual(words[:2], ["python3", "-c"])
        subprocess.run(command.replace("python3", shlex.quote(sys.executable), 1), shell=True, check=True, cwd=self.folder)

    def test_texts(self):
        table = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
        for name, write in WRITERS.items():
            write(table, str(self.folder / name))
            for flags in (("--text-field", "text"), ("--text-column", "text"), ()):
                told = self.data(name, "-o", "out.tok", *flags, status=1)
                self.assertRegex(told, f"{name}: a file of (Parquet|Arrow), which is not read")
                self.assertFalse((self.folder / "out.tok").exists())
            self.run_command_of(told)
            self.data(name[0] + ".jsonl", "-o", "out.tok", "--text-field", "text")
            tokens, starts, _ = read(self.folder / "out.tok")
            ends = [*starts[1:], len(tokens)]
            self.assertEqual([bytes(tokens[a:b]).decode() for a, b in zip(starts, ends)], [text for text in TEXTS if text])
            (self.folder / "out.tok").unlink()
        self.assertEqual([json.loads(line)["id"] for line in (self.folder / "a.jsonl").read_text().splitlines()], list(range(len(TEXTS))))
        (self.folder / "it's.parquet").write_bytes((self.folder / "a.parquet").read_bytes())
        self.assertIn('"NAME"', self.data("it's.parquet", "-o", "out.tok", status=1))

    def test_archives(self):
        """A shard of WebDataset is refused, and the commands of docs/data.md make of it what can be read."""
        images = {f"d/{i:03}": (label, bytes(Image.new("RGB", (4, 4), (i, 2 * i, 3)).tobytes())) for i, label in enumerate((2, 0, 10, 2, 1))}
        with tarfile.open(self.folder / "s.tar", "w", format=tarfile.PAX_FORMAT) as out:
            for name, (label, pixels) in images.items():
                png = io.BytesIO()
                Image.frombytes("RGB", (4, 4), pixels).save(png, "PNG")
                for ending, content in ((".png", png.getvalue()), (".cls", str(label).encode()), (".txt", f"ä {name}".encode())):
                    member = tarfile.TarInfo(name + ending)
                    member.size = len(content)
                    out.addfile(member, io.BytesIO(content))
        (self.folder / "t.dat").write_bytes((self.folder / "s.tar").read_bytes())
        for name in ("s.tar", "t.dat"):
            for flags in ((), ("--text-field", "text"), ("--text-column", "text")):
                told = self.data(name, "-o", "out.tok", *flags, status=1)
                self.assertIn(f"{name}: a tar archive", told)
        for command in re.findall(r"^(python3 -c .*NAME\.tar.*)$", (TREE / "docs/data.md").read_text(), re.M):
            subprocess.run(command.replace("NAME", "s").replace("python3", shlex.quote(sys.executable), 1), shell=True, check=True, cwd=self.folder)
        self.data("s.jsonl", "-o", "out.tok", "--text-field", "text")
        self.assertEqual(bytes(read(self.folder / "out.tok")[0]).decode(), "".join(f"ä {name}" for name in images))
        if "pictures" in (TREE / "build/config/missing").read_text():
            return
        self.data("s", "-o", "out.npy")
        labels, order = np.load(self.folder / "out.labels.npy"), sorted(images.items(), key=lambda one: (one[1][0], one[0]))
        self.assertEqual(labels.tolist(), [sorted({0, 1, 2, 10}).index(label) for _, (label, _) in order])
        for found, (_, (_, pixels)) in zip(np.load(self.folder / "out.npy"), order, strict=True):
            self.assertEqual(found.transpose(1, 2, 0).tobytes(), pixels)

    def test_tables(self):
        """A trainer refuses them, and trains on what the command writes."""
        (self.folder / "model.c").write_text('#include <accel/model.h>\ntensor model(scope s, tensor features, tensor labels) {\n'
                                             '  return cross_entropy(linear(at(s, "l"), features, 3), labels);\n}\n')
        trainer = Trainer({"model": {"source": str(self.folder / "model.c")},
                           "data": {"train": {"path": "t.csv", "format": "csv"}, "features": 2, "batch_size": 2}, "training": {"steps": 2}})
        table = pa.table({"a": [0.5, 1.0, 2.0, -3.0], "b": [1, 2, 3, 4], "label": [0, 1, 2, 1]})
        self.folder = trainer.folder
        trainer.build()
        losses = []
        for name, write in WRITERS.items():
            write(table, str(self.folder / name))
            with self.assertRaisesRegex(AssertionError, f"{name}: a file of (Parquet|Arrow), which is not read") as refused:
                trainer.run("--data", name)
            self.run_command_of(str(refused.exception))
            losses.append([line["loss"] for line in trainer.run("--data", f"{name[0]}.csv")])
        self.assertEqual(losses, losses[:1] * len(WRITERS))
        (self.folder / "a.csv").rename(self.folder / "t.csv")
        subprocess.run(["gzip", "-f", "t.csv"], cwd=self.folder, check=True)
        (self.folder / "t.csv.gz").rename(self.folder / "t.csv")
        with self.assertRaisesRegex(AssertionError, "t.csv: the file is compressed"):
            trainer.run()


if __name__ == "__main__":
    unittest.main()
