"""Metrics of an evaluation against scikit-learn and SciPy over all samples at once, for every kind of label: on one rank, on two that
see different samples, and in the program for evaluation."""

import json
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np
from harness import GENERATOR, QUICK, Trainer
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, roc_auc_score

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import Ranks  # noqa: E402

ROWS, FEATURES = 53, 4
MODEL = """#include <accel/model.h>
struct config { int outputs; };
const struct config defaults = {.outputs = 1};
tensor predict(scope s, struct config c, tensor x) { return linear(s, x, c.outputs); }
tensor model(scope s, struct config c, tensor x, tensor labels) { %s }
"""
CLASSES = "return cross_entropy(predict(s, c, x), labels);"
LOGITS = "linear(s, x, c.outputs)"
SPANS = f"reshape({LOGITS}, dim(x, 0), 2, 5)"
VALUES = "return mse_loss(reshape(predict(s, c, x), dim(x, 0)), labels);"
SEVERAL = "return binary_cross_entropy_with_logits(predict(s, c, x), labels);"


class Metrics(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(3)
        self.x = rng.normal(size=(ROWS, FEATURES)).astype("float32").round(1)
        self.rng = rng
        self.logits = LOGITS

    def trainer(self, body, outputs, labels, metrics, ranks, **training):
        job = {
            "model": {"source": "model.c", "config": {"outputs": outputs}},
            "data": {"train": {"path": "rows.npz", "format": "npz"}, "eval": {"path": "rows.npz", "format": "npz"}, "batch_size": 4,
                     "inputs": {"x": {"shape": [FEATURES]},
                                "labels": {**({"shape": list(labels.shape[1:])} if labels.ndim > 1 else {}),
                                           **({"dtype": "int32"} if labels.dtype == np.int32 else {})}}},
            "optimizer": {"name": "sgd", "lr": 0.1},
            "devices": {"per_node": ranks},
            "training": {"steps": 3, "eval_interval": 3, "eval_iters": "all", "metrics": metrics, **training}}
        trainer = Ranks(ranks, job) if ranks > 1 else Trainer(job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        (trainer.folder / "model.c").write_text((MODEL % body).replace(LOGITS, self.logits))
        np.savez(trainer.folder / "rows.npz", x=self.x, labels=labels)
        return trainer

    def check(self, body, outputs, labels, metrics, wanted, ranks=1):
        """wanted(logits): what each metric is by another library."""
        trainer = self.trainer(body, outputs, labels, metrics, ranks)
        trainer.build()
        row = trainer.run()[-1]
        w = {name: value.astype(np.float64) for name, value in trainer.weights().items()}
        logits = self.x.astype(np.float64) @ w["weight"].T + w["bias"]
        for name, value in wanted(logits).items():
            self.assertLess(abs(row[f"eval_{name}"] - value), 1e-6, name)
        if ranks > 1:
            return row
        subprocess.run([GENERATOR, "build", trainer.path, "-o", trainer.folder / "evaluate", "--program", "evaluate"], check=True, env=QUICK)
        said = json.loads(subprocess.check_output([trainer.folder / "evaluate", "--format", "json"], cwd=trainer.folder))
        for name in metrics:
            self.assertEqual(f"{said[name]:.9g}", f"{row['eval_' + name]:.9g}", name)
        return row

    def test_classes(self):
        labels = (self.x @ self.rng.normal(size=(FEATURES, 4))).argmax(1).astype("int32")
        labels[::7] = self.rng.integers(0, 4, len(labels[::7]))

        def wanted(logits):
            guess = logits.argmax(1)
            return {"accuracy": accuracy_score(labels, guess), "f1_macro": f1_score(labels, guess, average="macro"),
                    "f1_micro": f1_score(labels, guess, average="micro"), "matthews": matthews_corrcoef(labels, guess),
                    "exact_match": accuracy_score(labels, guess)}

        names = ["accuracy", "f1_macro", "f1_micro", "matthews", "exact_match"]
        rows = [self.check(CLASSES, 4, labels, names, wanted, ranks) for ranks in (1, 2)]
        self.assertEqual(*[set(row) for row in rows])

    def test_two_classes(self):
        labels = (self.x[:, 0] + self.rng.normal(size=ROWS) > 0).astype("int32")
        labels[:3] = -100

        def wanted(logits):
            score, of = (logits[:, 1] - logits[:, 0])[3:], labels[3:]
            return {"margin": np.where(of == 1, score, -score).mean(), "auc": roc_auc_score(of, score), "matthews": matthews_corrcoef(of, score > 0), "accuracy": accuracy_score(of, score > 0),
                    "f1_binary": f1_score(of, score > 0)}

        for ranks in (1, 2):
            self.check(CLASSES, 2, labels, ["auc", "margin", "matthews", "accuracy", "f1_binary"], wanted, ranks)

    def test_spans(self):
        """Of positions 0 to 4, of some spans without one of them; the rule of SQuAD's evaluate-v1.1.py over positions in place of words."""
        self.logits = SPANS
        labels = np.sort(self.rng.integers(0, 5, (ROWS, 2)), 1).astype("int32")
        labels[:3, 0], labels[3:5, 1], labels[5] = -100, -100, -100

        def f1(predicted, label):
            predicted, label = (list(range(a, b + 1)) for a, b in (predicted, label))
            common = len(set(predicted) & set(label))
            if common == 0:
                return 0
            precision, recall = common / len(predicted), common / len(label)
            return 2 * precision * recall / (precision + recall)

        def wanted(logits):
            guess = logits.reshape(ROWS, 2, 5).argmax(2)
            self.assertGreater(sum(a > b for a, b in guess), 0)
            counts, right = labels >= 0, (guess == labels)
            spans, any_label = counts.all(1), counts.any(1)
            return {"token_f1": np.mean([f1(*pair) for pair in zip(guess[spans], labels[spans])]),
                    "exact_match": (right | ~counts)[any_label].all(1).mean(), "accuracy": right[counts].mean()}

        for ranks in (1, 2):
            self.check(CLASSES, 10, labels, ["token_f1", "exact_match", "accuracy"], wanted, ranks)

    def test_values(self):
        labels = (self.x[:, 0] * 2 + self.rng.normal(size=ROWS)).round(0).astype("float32")  # some are equal

        def wanted(logits):
            return {"pearson": pearsonr(labels, logits[:, 0])[0], "spearman": spearmanr(labels, logits[:, 0].astype("float32"))[0]}

        for ranks in (1, 2):
            self.check(VALUES, 1, labels, ["pearson", "spearman"], wanted, ranks)

    def test_several_labels(self):
        labels = (self.x @ self.rng.normal(size=(FEATURES, 3)) > 0.3).astype("float32")
        labels[:, 2] = 0  # a label that never holds

        def wanted(logits):
            guess = logits > 0
            return {"accuracy": (guess == labels).mean(), "exact_match": accuracy_score(labels, guess),
                    "f1_macro": f1_score(labels, guess, average="macro", zero_division=0), "f1_micro": f1_score(labels, guess, average="micro")}

        for ranks in (1, 2):
            self.check(SEVERAL, 3, labels, ["accuracy", "exact_match", "f1_macro", "f1_micro"], wanted, ranks)

    def test_best(self):
        """Early stopping compares the new metrics, and takes the larger one."""
        labels = (self.x[:, 0] > 0).astype("int32")
        trainer = self.trainer(CLASSES, 2, labels, ["accuracy"], 1, early_stopping={"restore_best": True, "metric": "auc"})
        trainer.job["training"].update(steps=6, eval_interval=2)
        trainer.write()
        self.assertRegex(trainer.generate(), r"\.stopping.metric = \"auc\",\n +\.stopping\.greater = true")

    def test_refusals(self):
        whole, real = np.zeros(ROWS, "int32"), np.zeros(ROWS, "float32")
        for body, outputs, labels, metrics, parallelism, message in [
            (CLASSES, 3, whole, ["auc"], {}, "auc is of two classes; 'predict' gives 3"),
            (CLASSES, 2, whole, ["pearson"], {}, "pearson compares values, and the labels of this model are classes"),
            (VALUES, 1, real, ["accuracy"], {}, "accuracy compares classes, and the labels of this model are float32"),
            (SEVERAL, 2, np.zeros((ROWS, 2), "float32"), ["matthews"], {}, "matthews is of one label for each sample"),
            (CLASSES, 3, whole, ["margin"], {}, "margin is of two classes; 'predict' gives 3"),
            (CLASSES, 3, whole, ["token_f1"], {}, "token_f1 is of spans, and the labels of this model are [4]"),
            (CLASSES, 2, whole, ["auc"], {"tp": 2}, "needs ranks that have whole samples"),
        ]:
            with self.subTest(message):
                trainer = self.trainer(body, outputs, labels, metrics, 2 if parallelism else 1)
                trainer.job["parallelism"] = parallelism
                trainer.write()
                two = "linear(at(s, \"b\"), relu(linear(at(s, \"a\"), x, 8)), c.outputs)"  # which ranks can divide
                (trainer.folder / "model.c").write_text((MODEL % body).replace("linear(s, x, c.outputs)", two))
                self.assertIn(message, trainer.command("plan", "job.yaml", status=2))


if __name__ == "__main__":
    unittest.main()
