"""Files of Parquet and Arrow, as pyarrow writes them: accel-gen data and a trainer refuse them with a command, and what the
command writes has the same texts and numbers; compressed tables of a trainer."""

import json
import re
import shlex
import subprocess
import sys
import unittest

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from data_folder import Folder
from harness import Trainer
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
