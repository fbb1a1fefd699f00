"""accel-gen data --label: rows of labelled texts against transformers' tokenizers, with the tables read by Python's csv; records that
are refused; threads and kills do not change the bytes."""

import csv
import io
import json
import os
import random
import subprocess
import tarfile
import time
import unittest

import numpy as np
from data_folder import TREE, Folder
from harness import GENERATOR
from test_tokenizer import characters, corpus, random_text, train
from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

MISSING = (TREE / "build/config/missing").read_text().split()
SEED = int(os.environ.get("SEED", "1"))
CLS_SEP = [("[CLS]", 2), ("[SEP]", 3)]
# The family, what it puts around texts, its padding token and the sides of padding and truncation.
TOKENIZERS = {
    "bert": ("bert", processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", CLS_SEP), "[PAD]", "right", "right"),
    "bert_fixed": ("bert", processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), "[PAD]", "right", "left"),
    "roberta": ("roberta", processors.RobertaProcessing(("</s>", 2), ("<s>", 0)), "<pad>", "right", "right"),
    "llama": ("llama3", processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                             processors.TemplateProcessing("<|end|>:0 $A:0", "<|end|>:0 $A:0 <|end|>:1 $B:1", [("<|end|>", 0)])]),
              "<|end|>", "left", "left"),
    "t5": ("t5", processors.TemplateProcessing("$A </s>", "$A </s> $B </s>", [("</s>", 2)]), "<pad>", "right", "right"),
    "gpt2": ("gpt2", None, "<|end|>", "left", "right"),
}


class LabelledFolder(Folder):
    def tokenizer(self, name):
        """The tokenizer of transformers, whose files are in the folder."""
        family, processor, pad, padding, truncation = TOKENIZERS[name]
        made = Tokenizer.from_str(train(family, corpus()).to_str())
        if processor is not None:
            made.post_processor = processor
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, pad_token=pad, padding_side=padding, truncation_side=truncation)
        tokenizer.save_pretrained(self.folder / "model")
        return tokenizer

    def equal(self, got, wanted):
        for name in ("input_ids", "attention_mask", "token_type_ids"):
            np.testing.assert_array_equal(got[name], np.array(wanted[name]), name)


class Labelled(LabelledFolder):
    def table(self, rows, name="rows.csv"):
        with open(self.folder / name, "w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, delimiter="\t" if name.endswith(".tsv") else ",", lineterminator=random.choice(["\n", "\r\n"]))
            writer.writerows(rows)
        return name

    def made(self, name, *words, status=0):
        how = "--text-field" if name.endswith(".jsonl") else "--text-column"
        text = self.data(name, "-o", "out.npz", "--tokenizer", "model/tokenizer.json", how, "text", "--label", "label", *words, status=status)
        return text if status else np.load(self.folder / "out.npz")

    def names(self):
        return json.loads((self.folder / "out.json").read_text())

    def test_tokenizers(self):
        """One text and two, of CSV, TSV and JSON Lines, shortened and padded."""
        for name in TOKENIZERS:
            tokenizer = self.tokenizer(name)
            rng = random.Random(f"{SEED} {name}")
            texts = lambda: [random_text(rng, characters(), corpus()).replace("\r", "").replace("\0", "") or "x" for _ in range(60)]
            first, second, label = texts(), texts(), [rng.choice("cab") for _ in range(60)]
            for kind in ("csv", "tsv", "jsonl"):
                length, pairs = rng.choice([8, 9, 16, 31, 64]), kind == "jsonl" or rng.random() < 0.5
                with self.subTest(tokenizer=name, kind=kind, length=length, pairs=pairs):
                    if kind == "jsonl":
                        file = "rows.jsonl"
                        (self.folder / file).write_text("".join(json.dumps({"label": c, "text": a, "b": b}) + "\n" for a, b, c in zip(first, second, label)))
                    else:
                        file = self.table([["b", "other", "text", "label"], *([b, "1", a, c] for a, b, c in zip(first, second, label))], f"rows.{kind}")
                    got = self.made(file, "--max-length", str(length), *(["--text-pair", "b"] if pairs else []))
                    wanted = tokenizer(first, second if pairs else None, truncation=True, padding="max_length", max_length=length,
                                       return_token_type_ids=True)
                    self.equal(got, wanted)
                    np.testing.assert_array_equal(got["labels"], ["abc".index(c) for c in label])
        self.assertEqual(self.names(), {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2},
                                        "num_labels": 3, "problem_type": "single_label_classification"})

    def test_labels(self):
        """Whole numbers in their order; a list that another run wrote; several labels; numbers."""
        self.tokenizer("bert")
        rows = lambda *labels: self.table([["text", "label"], *(["a", label] for label in labels)])
        np.testing.assert_array_equal(self.made(rows("10", "9", "-1", "10"), "--max-length", "8")["labels"], [2, 1, 0, 2])
        (self.folder / "names.json").write_text((self.folder / "out.json").read_text())
        np.testing.assert_array_equal(self.made(rows("10", "10"), "--max-length", "8", "--labels", "names.json")["labels"], [2, 2])
        np.testing.assert_array_equal(self.made(rows("b", "a"), "--max-length", "8", "--labels", "b, c ,a")["labels"], [0, 2])
        got = self.made(rows("x", "", "y, x"), "--max-length", "8", "--task", "multi-label")["labels"]
        np.testing.assert_array_equal(got, np.array([[1, 0], [0, 0], [1, 1]], "float32"))
        self.assertEqual(self.names()["problem_type"], "multi_label_classification")
        got = self.made(rows("1.5", "-2e-3", "7"), "--max-length", "8", "--task", "regression")["labels"]
        np.testing.assert_array_equal(got, np.array([1.5, -2e-3, 7], "float32"))
        self.assertEqual(self.names(), {"num_labels": 1, "problem_type": "regression"})
        (self.folder / "rows.jsonl").write_text('{"text": "a", "label": ["v", "u"]}\n\n{"text": "b", "label": []}\n')
        got = self.made("rows.jsonl", "--max-length", "8", "--task", "multi-label")["labels"]
        np.testing.assert_array_equal(got, [[1, 1], [0, 0]])
        (self.folder / "rows.jsonl").write_text('{"text": "a", "label": true}\n{"text": "b", "label": false}\n')
        np.testing.assert_array_equal(self.made("rows.jsonl", "--max-length", "8")["labels"], [1, 0])

    def test_words(self):
        """A label for each word: of the token that begins it."""
        for name in ("bert", "roberta", "llama", "gpt2"):
            tokenizer = self.tokenizer(name)
            rng = random.Random(f"{SEED} {name}")
            words = lambda: [word for word in random_text(rng, characters(), corpus()).replace("\0", "").split() if word][:20] or ["x"]
            texts = [words() for _ in range(40)]
            labels = [[rng.choice(["B-X", "I-X", "O"]) for _ in text] for text in texts]
            (self.folder / "rows.jsonl").write_text("".join(json.dumps({"text": text, "label": of}) + "\n" for text, of in zip(texts, labels)))
            length = rng.choice([9, 24, 60])
            with self.subTest(tokenizer=name, length=length):
                got = self.made("rows.jsonl", "--max-length", str(length), "--task", "token-classification")
                wanted = tokenizer(texts, is_split_into_words=True, truncation=True, padding="max_length", max_length=length, return_token_type_ids=True)
                self.equal(got, wanted)
                for row in range(len(texts)):
                    numbers = wanted.word_ids(row)
                    of = [["B-X", "I-X", "O"].index(labels[row][n]) if n is not None and n not in numbers[:i] else -100
                          for i, n in enumerate(numbers)]
                    self.assertEqual(got["labels"][row].tolist(), of, (texts[row], numbers))
        self.assertEqual(set(self.names()), {"id2label", "label2id", "num_labels"})

    def test_killed(self):
        """Any number of threads gives the same bytes, and so does a run that was killed twice and went on."""
        self.tokenizer("bert")
        text, rng = corpus(), random.Random(SEED)
        record = lambda: {"text": text[(start := rng.randrange(len(text) - 3000)) : start + rng.randrange(1, 3000)], "label": f"l{int(rng.expovariate(0.3))}", "b": "x"}
        lines = [json.dumps(record() if i % 50 else {"text": "", "label": "bad"}) for i in range(9000)]
        (self.folder / "a.jsonl").write_text("\n".join(lines[:5000]))
        (self.folder / "b.jsonl").write_text("\n".join(lines[5000:]))
        words = [GENERATOR, "data", "a.jsonl", "b.jsonl", "--tokenizer", "model/tokenizer.json", "--text-field", "text", "--text-pair", "b", "--label", "label", "--max-length", "24", "--on-bad-record", "skip"]
        for threads in ("1", "2", "5"):
            subprocess.run([*words, "-o", f"out{threads}.npz"], cwd=self.folder, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": threads})
        content = lambda stem: [(self.folder / f"{stem}{ending}").read_bytes() for ending in (".npz", ".json")]
        self.assertEqual(content("out1"), content("out2"))
        self.assertEqual(content("out1"), content("out5"))
        resumes, note = 0, self.folder / "killed.npz.progress"
        for _ in range(20):  # one that ends before it is killed proves nothing
            run = subprocess.Popen([*words, "-o", "killed.npz"], cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            before = note.stat().st_mtime_ns if note.exists() else 0
            while run.poll() is None and (not note.exists() or note.stat().st_mtime_ns == before):
                time.sleep(0.002)
            run.kill()
            resumes += "resumes after" in run.communicate()[1]
            if resumes == 2:
                break
        self.assertGreater(resumes, 0)
        done = subprocess.run([*words, "-o", "killed.npz"], cwd=self.folder, check=True, capture_output=True, text=True)
        self.assertIn("180 records were skipped", done.stderr)
        self.assertEqual(content("killed"), content("out1"))
        self.assertEqual([path.name for path in self.folder.glob("killed*.p*")] + [path.name for path in self.folder.glob("*rows*")], [])

    def test_killed_in_turn(self):
        """A run that begins anew over what another one left takes its note away, which does not fit the new rows."""
        self.tokenizer("bert")
        lines = [json.dumps({"text": "one two three " * 200, "a": f"a{i % 3}", "b": f"b{i % 5}"}) for i in range(15_000)]
        (self.folder / "a.jsonl").write_text("\n".join(lines))
        words = lambda label: [GENERATOR, "data", "a.jsonl", "--tokenizer", "model/tokenizer.json", "--text-field", "text", "--label", label, "--max-length", "8", "-o", "out.npz"]  # noqa: E731
        note = self.folder / "out.npz.progress"
        for label, noted in (("a", True), ("b", False)):
            run = subprocess.Popen(words(label), cwd=self.folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
            while run.poll() is None and note.exists() != noted:
                time.sleep(0.001)
            run.kill()
            self.assertNotEqual(run.wait(), 0, "it ended before it was killed")
            self.assertEqual(note.exists(), noted)
        done = subprocess.run(words("a"), cwd=self.folder, check=True, capture_output=True, text=True)
        self.assertNotIn("resumes", done.stderr)
        np.testing.assert_array_equal(np.load(self.folder / "out.npz")["labels"], np.arange(15_000) % 3)

    def test_shards(self):
        """The .json of a shard's samples are records, too."""
        self.tokenizer("bert")
        records = [{"text": f"text {i} of it", "label": "ab"[i % 2]} for i in range(50)]
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        with tarfile.open(self.folder / "rows.tar", "w") as out:
            for i, record in enumerate(records):
                member = tarfile.TarInfo(f"{i:03}.json")
                member.size = len(json.dumps(record))
                out.addfile(member, io.BytesIO(json.dumps(record).encode()))
        self.made("rows.jsonl", "--max-length", "8")
        wanted = (self.folder / "out.npz").read_bytes()
        if "archive" not in MISSING:
            self.data("rows.tar", "-o", "out.npz", "--tokenizer", "model/tokenizer.json", "--text-field", "text", "--label", "label", "--max-length", "8")
            self.assertEqual((self.folder / "out.npz").read_bytes(), wanted)

    def test_word_refusals(self):
        self.tokenizer("bert")
        for record, message in [({"text": ["a"] * 65537, "label": ["x"] * 65537}, "rows.jsonl:2: 'text' has more than 65536 words"),
                                ({"text": ["a"], "label": ["x", "y"]}, "rows.jsonl:2: 1 words of 'text' have 2 labels in 'label'"),
                                ({"text": "a", "label": ["x"]}, "rows.jsonl:2: 'text' is not a list"),
                                ({"text": ["a", ""], "label": ["x", "y"]}, "rows.jsonl:2: word 2 is not a text, or is empty"),
                                ({"text": ["a", "b"], "label": ["new", None]}, "rows.jsonl:2: the label is neither a text nor a whole number")]:
            (self.folder / "rows.jsonl").write_text(json.dumps({"text": ["a"], "label": ["x"]}) + "\n" + json.dumps(record) + "\n")
            self.assertIn(message, self.made("rows.jsonl", "--max-length", "8", "--task", "token-classification", status=1))
        self.made("rows.jsonl", "--max-length", "8", "--task", "token-classification", "--on-bad-record", "skip")
        self.assertEqual(self.names()["label2id"], {"x": 0})  # a record that is skipped adds none

    def test_refusals(self):
        self.tokenizer("bert")
        head = "text,label\n"
        for content, words, message in [
            (head + "a,x\n\"b\nc\",\nd,y\n", (), "rows.csv:4:4: the label is empty"),
            (head + "a,x\n,y\n", (), "rows.csv:3:1: the text 'text' is empty"),
            (head + "a,x\nb,z\n", ("--labels", "x,y"), "rows.csv:3:3: the label 'z' is not among those of --labels\n    help: they are: x, y"),
            (head + "a,x\nb\n", (), "rows.csv:3: the row has fewer columns than the header"),
            (head + "a,x\nb,c,d\n", (), "rows.csv:3: the row has more columns than the header"),
            (head + "a,1\nb,0x1\n", ("--task", "regression"), "rows.csv:3:3: the label '0x1' is not a finite decimal number"),
            (head + "a,x\nb,x\n", (), "rows.csv: all records have the same label"),
            ("text,tag\na,x\n", (), "rows.csv:2: the record has no 'label'\n    help: its fields are: text, tag"),
            ("text,text,label\n", (), "rows.csv:1:6: the header has this name twice"),
            (head, (), "rows.csv: no record gives a row"),
        ]:
            with self.subTest(content):
                (self.folder / "rows.csv").write_text(content)
                self.assertIn(message, self.made("rows.csv", "--max-length", "8", *words, status=1))
                self.assertFalse((self.folder / "out.npz").exists() or (self.folder / "out.npz.partial").exists())
        (self.folder / "rows.csv").write_text(head + "a,x\nb,\n,x\nc,y\n")
        said = self.data("rows.csv", "-o", "out.npz", "--tokenizer", "model/tokenizer.json", "--text-column", "text", "--label", "label",
                         "--max-length", "8", "--on-bad-record", "skip")
        self.assertIn("2 records were skipped; the first: rows.csv:3:3: the label is empty", said)
        self.assertEqual(len(np.load(self.folder / "out.npz")["labels"]), 2)
        self.assertIn("2 tokens of a row are taken by the 2 special ones", self.made("rows.csv", "--max-length", "2", status=1))
        (self.folder / "rows.jsonl").write_text('{"text": "a", "label": 1}\n{"text": 3, "label": 1}\n')
        self.assertIn("rows.jsonl:2: 'text' is not a text", self.made("rows.jsonl", "--max-length", "8", status=1))
        for task in ("classification", "multi-label", "regression"):
            (self.folder / "rows.jsonl").write_text(json.dumps({"text": "a", "label": "4\0b"}) + "\n")
            self.assertIn("rows.jsonl:1: the label has a NUL", self.made("rows.jsonl", "--max-length", "8", "--task", task, status=1))
        (self.folder / "f.json").mkdir()
        self.data("rows.csv", "-o", "f.npz", "--tokenizer", "model/tokenizer.json", "--text-column", "text", "--label", "label",
                  "--max-length", "8", "--on-bad-record", "skip", status=1)
        self.assertFalse((self.folder / "f.npz").exists())  # its names cannot be written
        said = self.data("rows.csv", "-o", "model/tokenizer_config.npz", "--tokenizer", "model/tokenizer.json", "--text-column", "text", "--label",
                         "label", "--max-length", "8", status=1)
        self.assertIn("tokenizer_config.json: it is the configuration of the tokenizer, which is read", said)
        for written in ("o.json.partial", "o.npz.progress.partial", "o.npz.rows.partial"):
            (self.folder / "rows.csv").rename(self.folder / written)
            said = self.data(written, "-o", "o.npz", "--tokenizer", "model/tokenizer.json", "--text-column", "text", "--label", "label",
                             "--max-length", "8", status=1)
            self.assertIn(f"{written}: it is one of the files, which is read", said)
            (self.folder / written).rename(self.folder / "rows.csv")
        self.assertIn("--label needs --tokenizer", self.data("rows.csv", "-o", "o.npz", "--label", "label", status=2))
        (self.folder / "model" / "tokenizer_config.json").unlink()
        self.assertIn("names a padding token (pad_token)", self.made("rows.csv", "--max-length", "8", status=1))
        self.made("rows.csv", "--max-length", "8", "--pad", "[PAD]", "--on-bad-record", "skip")


if __name__ == "__main__":
    unittest.main()
