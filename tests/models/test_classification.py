"""A text classifier from a table to transformers and back: the rows of accel-gen data fine-tune a folder of Hugging Face, whose
AutoModelForSequenceClassification then gives the logits, the loss and the metrics that the program for evaluation gives."""

import csv
import json
import random
import shutil
import subprocess
import sys
import unittest

import numpy as np
import torch
from peer import GENERATOR, MODELS, Trainer
from sklearn.metrics import accuracy_score, f1_score
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertForSequenceClassification

TREE = MODELS.parents[1]
sys.path.insert(0, str(TREE / "examples" / "jobs"))

import reviews  # noqa: E402

LENGTH = 32


class Classification(unittest.TestCase):
    def setUp(self):
        rng = random.Random(1)
        self.records = [reviews.review(rng) for _ in range(120)]
        same = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64, "vocab_size": 60,
                "max_position_embeddings": LENGTH}
        shape = {"shape": [LENGTH]}
        self.trainer = Trainer({
            "model": {"source": str(MODELS / "bert_classifier.c"), "weights": "start", "config": {**same, "num_labels": 3}},
            "data": {"train": {"path": "train.npz", "format": "npz"}, "eval": {"path": "test.npz", "format": "npz"}, "batch_size": 8,
                     "inputs": {"input_ids": {**shape, "dtype": "int32"}, "attention_mask": shape,
                                "token_type_ids": {**shape, "dtype": "int32"}, "labels": {"dtype": "int32"}}},
            "optimizer": {"name": "adamw", "lr": 3e-3},
            "training": {"steps": 100, "eval_interval": 100, "eval_iters": "all", "metrics": ["accuracy", "f1_macro"]}})
        self.folder = self.trainer.folder
        self.addCleanup(shutil.rmtree, self.folder)
        torch.manual_seed(1)
        start = self.folder / "start"
        BertForSequenceClassification(BertConfig(**same, num_labels=3, initializer_range=0.05)).save_pretrained(start)
        (start / "tokenizer.json").write_text(json.dumps(reviews.tokenizer(text for row in self.records for text in row[:2])))
        (start / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "tokenizer_class": "PreTrainedTokenizerFast"}))

    def rows(self, name, records, *words):
        with open(self.folder / f"{name}.csv", "w", newline="") as out:
            csv.writer(out).writerows([["title", "review", "stars"], *records])
        self.trainer.command("data", f"{name}.csv", "-o", f"{name}.npz", "--tokenizer", "start/tokenizer.json", "--text-column", "title",
                             "--text-pair", "review", "--label", "stars", "--max-length", str(LENGTH), *words)

    def evaluate(self, *words):
        return json.loads(subprocess.check_output([self.folder / "evaluate", "--format", "json", *words], cwd=self.folder))

    def test_there_and_back(self):
        self.rows("train", self.records[:80])
        self.rows("test", self.records[80:], "--labels", "train.json")
        self.trainer.build()
        last = self.trainer.run()[-1]
        self.assertLess(last["eval_loss"], 0.9)
        subprocess.run([GENERATOR, "build", self.trainer.path, "-o", self.folder / "evaluate", "--program", "evaluate"], check=True)
        names = json.loads((self.folder / "train.json").read_text())
        config = json.loads((self.folder / "start" / "config.json").read_text())
        (self.folder / "run" / "config.json").write_text(json.dumps({**config, **names}))
        model = AutoModelForSequenceClassification.from_pretrained(self.folder / "run").eval()
        tokenizer = AutoTokenizer.from_pretrained(self.folder / "start")
        titles, texts, stars = zip(*self.records[80:])
        batch = tokenizer(list(titles), list(texts), truncation=True, padding="max_length", max_length=LENGTH, return_tensors="pt",
                          return_token_type_ids=True)
        labels = [model.config.label2id[star] for star in stars]
        with torch.no_grad():
            out = model(**batch, labels=torch.tensor(labels))
        said = self.evaluate()
        predicted = out.logits.argmax(1).numpy()
        self.assertLess(abs(said["loss"] - out.loss.item()), 1e-5)
        self.assertLess(abs(said["accuracy"] - accuracy_score(labels, predicted)), 1e-6)
        self.assertLess(abs(said["f1_macro"] - f1_score(labels, predicted, average="macro")), 1e-6)
        for metric in ("loss", "accuracy", "f1_macro"):
            self.assertLess(abs(said[metric] - last[f"eval_{metric}"]), 1e-6)
        self.logits(out.logits)

    def logits(self, theirs):
        """Of one row with each label: the losses are the negative logarithms of the softmax of its logits."""
        rows = np.load(self.folder / "test.npz")
        for row in range(2):
            losses = []
            for label in range(3):
                np.savez(self.folder / "one.npz", **{name: rows[name][row:row + 1] for name in rows if name != "labels"},
                         labels=np.array([label], "int32"))
                losses.append(self.evaluate("--data", "one.npz")["loss"])
            np.testing.assert_allclose(-np.array(losses), torch.log_softmax(theirs[row], 0), atol=1e-5)


if __name__ == "__main__":
    unittest.main()
