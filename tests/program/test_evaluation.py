"""Evaluation: the exact set, metrics, the order of the data; against NumPy,
scikit-learn and PyTorch over all samples at once. What the program for evaluation alone says is what the trainer says
of the weights that it leaves, bit for bit."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import unittest

import numpy as np
import torch
from harness import GENERATOR, MODELS, QUICK, Order, Trainer, save_file, splits
from order import EVAL, masked
from sklearn.metrics import accuracy_score, f1_score

ROWS, FEATURES = 61, 5
CONFIG = {"n_layer": 2, "width": 7}

ONE_LOGIT = """#include <accel/model.h>
tensor predict(scope s, tensor features) {
  return reshape(linear(s, features, 1), dim(features, 0));
}
tensor model(scope s, tensor features, tensor labels) {
  tensor x = reshape(predict(s, features), dim(features, 0), 1);
  return cross_entropy(concat(1, scale(x, 0.0), x), labels);
}
"""


def table(classes, seed=3):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(ROWS, FEATURES)).round(4)
    return features, (features @ rng.normal(size=(FEATURES, classes))).argmax(1)


def make(classes, batch, iters="all", metrics=("accuracy", "f1_macro", "perplexity"), model=None, **training):
    trainer = Trainer({
        "model": {"source": str(MODELS / "mlp_table.c"), "config": {**CONFIG, "n_classes": classes}},
        "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": FEATURES, "batch_size": batch,
                 "eval_fraction": 0.4},
        "optimizer": {"name": "adam", "lr": 0.05},
        "training": {"steps": 6, "seed": 4, "eval_interval": 3, "eval_iters": iters, **training},
    })
    if metrics:
        trainer.job["training"]["metrics"] = list(metrics)
    if model is not None:
        (trainer.folder / "model.c").write_text(model)
        trainer.job["model"] = {"source": "model.c"}
    trainer.write()
    features, labels = table(classes)
    rows = (",".join(map(str, [*x, y])) for x, y in zip(features, labels))
    (trainer.folder / "rows.csv").write_text("\n".join(rows) + "\n")
    first = int(ROWS * 0.6)
    return trainer, features[first:].astype(np.float32).astype(np.float64), labels[first:]


def logits_of(weights, x):
    for i in range(CONFIG["n_layer"]):
        x = np.maximum(x @ weights[f"hidden.{i}.weight"].T + weights[f"hidden.{i}.bias"], 0)
    return x @ weights["output.weight"].T + weights["output.bias"]


def mean_loss(logits, labels):
    rest = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
    return float((rest - logits[np.arange(len(labels)), labels]).mean())


def measure(trainer, *flags):
    """What the program of kind evaluate says."""
    program = trainer.folder / "evaluate"
    subprocess.run([GENERATOR, "build", trainer.path, "-o", program, "--program", "evaluate"], check=True,
                   env=QUICK)
    return json.loads(subprocess.check_output([program, "--format", "json", *flags], cwd=trainer.folder))


def check_measured(test, trainer, row):
    """All metrics of the last line of the trainer, which has 9 digits; the text says them, too."""
    report = measure(trainer)
    text = subprocess.check_output([trainer.folder / "evaluate"], cwd=trainer.folder, text=True)
    names = [name.removeprefix("eval_") for name in row if name.startswith("eval_")]
    test.assertIn("loss", names)
    for name in names:
        test.assertEqual(f"{report[name]:.9g}", f"{row['eval_' + name]:.9g}", name)
        test.assertIn(f"\n{name} {report[name]:.9g}\n", text)


class Exact(unittest.TestCase):
    def run_trainer(self, trainer):
        self.addCleanup(shutil.rmtree, trainer.folder)
        trainer.build()
        row = trainer.run()[-1]
        return row, {name: value.astype(np.float64) for name, value in trainer.weights().items()}

    def test_every_sample_once(self):
        """Batches that divide the set, that leave one over, that are larger than it, and of one sample."""
        for batch in (5, 8, 25, 30, 1):
            trainer, features, labels = make(3, batch)
            self.assertEqual(len(labels), 25)
            row, weights = self.run_trainer(trainer)
            logits = logits_of(weights, features)
            guess = logits.argmax(1)
            loss = mean_loss(logits, labels)
            self.assertLess(abs(row["eval_loss"] / loss - 1), 1e-6, batch)
            self.assertLess(abs(row["eval_perplexity"] / math.exp(loss) - 1), 2e-6, batch)
            self.assertAlmostEqual(row["eval_accuracy"], accuracy_score(labels, guess), places=8)
            self.assertAlmostEqual(row["eval_f1_macro"], f1_score(labels, guess, average="macro"), places=8)
            if batch in (8, 1):
                check_measured(self, trainer, row)

    def test_other_weights_and_data(self):
        """The flags: weights of elsewhere, another file, whose every row is seen."""
        trainer, features, labels = make(3, 8)
        self.run_trainer(trainer)
        other = {name: np.random.default_rng(4).normal(size=value.shape).astype(np.float32)
                 for name, value in trainer.weights().items()}
        save_file(other, trainer.folder / "other.safetensors")
        weights = {name: value.astype(np.float64) for name, value in other.items()}
        guess = logits_of(weights, features).argmax(1)
        self.assertEqual(set(guess), {0, 1, 2})
        one = np.full(len(guess), guess[0])  # other classes are guessed that no row has
        for x, y, guess in ((features[:11], labels[:11], guess[:11]), (features, one, guess)):
            rows = (",".join(map(str, [*sample, label])) for sample, label in zip(x, y))
            (trainer.folder / "other.csv").write_text("\n".join(rows) + "\n")
            report = measure(trainer, "--weights", "other.safetensors", "--data", "other.csv")
            self.assertEqual(report["samples"], len(y))
            self.assertLess(abs(report["loss"] / mean_loss(logits_of(weights, x), y) - 1), 1e-6)
            self.assertAlmostEqual(report["accuracy"], accuracy_score(y, guess), places=8)
            self.assertAlmostEqual(report["f1_macro"], f1_score(y, guess, average="macro", zero_division=0), places=8)

    def test_averages(self):
        """Of averages of the weights what the trainer says of them, from where the run leaves them."""
        for optimizer, training in (({"name": "adam", "lr": 0.05}, {"ema": {"decay": 0.9, "evaluate": True}}),
                                    ({"name": "schedule_free_adamw", "lr": 0.05}, {})):
            trainer, _, _ = make(3, 8, **training)
            trainer.job["optimizer"] = optimizer
            trainer.write()
            row, _ = self.run_trainer(trainer)
            check_measured(self, trainer, row)

    def test_no_trace_of_training(self):
        """Neither gradients nor an optimizer, in the text or in memory."""
        trainer, _, _ = make(3, 8)
        self.addCleanup(shutil.rmtree, trainer.folder)
        text = trainer.generate("--program", "evaluate")
        for word in ("gradient", "moment", "backward", "learning_rate", "update"):
            self.assertNotIn(word, text)
        plan = json.loads(subprocess.check_output([GENERATOR, "plan", trainer.path, "--program", "evaluate", "--json"]))
        self.assertEqual([plan["arena_bytes"][name] for name in ("gradients", "optimizer", "activations")], [0, 0, 0])

    def test_classes_that_never_occur(self):
        """scikit-learn leaves them out of the mean."""
        trainer, features, labels = make(7, 4)
        row, weights = self.run_trainer(trainer)
        guess = logits_of(weights, features).argmax(1)
        self.assertLess(len(set(labels) | set(guess)), 7)
        self.assertAlmostEqual(row["eval_f1_macro"], f1_score(labels, guess, average="macro", zero_division=0), places=8)

    def test_two_classes(self):
        trainer, features, labels = make(2, 8, metrics=["f1_binary"])
        row, weights = self.run_trainer(trainer)
        guess = logits_of(weights, features).argmax(1)
        self.assertAlmostEqual(row["eval_f1_binary"], f1_score(labels, guess), places=8)

    def test_one_logit(self):
        trainer, features, labels = make(2, 8, metrics=["f1_binary", "accuracy"], model=ONE_LOGIT)
        row, weights = self.run_trainer(trainer)
        guess = (features @ weights["weight"].T + weights["bias"])[:, 0] > 0
        self.assertAlmostEqual(row["eval_f1_binary"], f1_score(labels, guess), places=8)
        self.assertAlmostEqual(row["eval_accuracy"], accuracy_score(labels, guess), places=8)

    def test_some_batches(self):
        """A number of batches: the metrics are of these alone."""
        trainer, features, labels = make(3, 5, iters=2)
        trainer.job["data"]["shuffle"] = False
        trainer.write()
        row, weights = self.run_trainer(trainer)
        logits = logits_of(weights, features[:10])
        self.assertLess(abs(row["eval_loss"] / mean_loss(logits, labels[:10]) - 1), 1e-6)
        self.assertAlmostEqual(row["eval_accuracy"], accuracy_score(labels[:10], logits.argmax(1)), places=8)
        check_measured(self, trainer, row)

    def test_metrics_change_no_training(self):
        """What is reported in addition leaves weights and losses alone."""
        runs = []
        for metrics in ((), ("accuracy",)):
            trainer, _, _ = make(3, 8, metrics=metrics)
            runs.append(self.run_trainer(trainer))
        (plain, before), (with_evaluation, after) = runs
        self.assertEqual([plain[k] for k in ("loss", "eval_loss", "grad_norm")],
                         [with_evaluation[k] for k in ("loss", "eval_loss", "grad_norm")])
        for name, value in before.items():
            self.assertTrue(np.array_equal(value, after[name]), name)


LENGTH = 9
MASKING = {"mask_token": 7, "probability": 0.06}


class Counted(unittest.TestCase):
    """Losses that are means over what a batch counts, where batches count very different numbers: the mean over all that
    counts in the set. PyTorch in float64 takes the whole set as one batch."""

    def make(self, form, batch, iters, drop=0.0, masking=None, metrics=(), evaluated=None, **accumulation):
        trainer = Trainer({
            "model": {"source": str(pathlib.Path(__file__).parent / "models" / "counted.c"),
                      "config": {"form": form, "drop": drop}},
            "data": {"train": {"path": "text.bin", "format": "bytes"}, "sequence_length": LENGTH, "batch_size": batch,
                     "eval_fraction": 0.5, **({"masking": masking} if masking else {}),
                     **({"eval_batch_size": evaluated} if evaluated else {})},
            "optimizer": {"name": "adam", "lr": 0.02},
            "training": {"steps": 4, "seed": 6, "eval_interval": 2, "eval_iters": iters, "metrics": ["perplexity", *metrics]},
            "accumulation": accumulation,
        })
        self.addCleanup(shutil.rmtree, trainer.folder)
        rng = np.random.default_rng(11)
        text = rng.integers(97, 123, 900)
        for start in rng.integers(0, 890, 30):  # stretches that hardly count
            text[start:start + 17] = 32
        self.text = bytes(text.tolist())
        (trainer.folder / "text.bin").write_bytes(self.text)
        return trainer

    def samples(self, count, batch, masking):
        """Tokens and targets of the first evaluation windows; all without a count."""
        order = Order(6, EVAL, True, *splits(len(self.text), 0.5)[1], LENGTH, batch)
        rows = []
        for i in range(order.samples if count is None else count):
            start = order.start(i)
            window = list(self.text[start:start + LENGTH + 1])
            rows.append(masked(6, EVAL, i, window[:-1], 256, **masking) if masking else (window[:-1], window[1:]))
        return (torch.tensor(column) for column in zip(*rows))

    def check(self, form, batch, iters="all", masking=None, **options):
        trainer = self.make(form, batch, iters, masking=masking, **options)
        trainer.build()
        row = trainer.row = trainer.run()[-1]
        w = {name.removeprefix("net."): torch.tensor(x, dtype=torch.float64) for name, x in trainer.weights().items()}
        batch = options.get("evaluated", batch)
        tokens, targets = self.samples(None if iters == "all" else iters * batch, batch, masking)
        if iters == "all":
            self.assertNotEqual(len(tokens) % batch, 0)
        if form in (1, 2) or masking:
            counted = targets > 100 if form == 2 else targets != (-100, 32)[form]
            self.assertGreater(len(set(counted.sum(1).tolist())), 2)
        logits = w["embedding.weight"][tokens] @ w["output.weight"].T + w["output.bias"]
        if form < 2:
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=(-100, 32)[form])
        else:
            rows = (logits**2).sum(2)
            loss = rows[targets > 100].mean() if form == 2 else rows.sum() / len(rows)
        self.assertLess(abs(row["eval_loss"] / loss.item() - 1), 1e-6)
        if form < 2:
            self.assertLess(abs(row["eval_perplexity"] / math.exp(loss.item()) - 1), 1e-5)
        if "accuracy" in options.get("metrics", ()):
            hits = (logits.argmax(2) == targets)[targets >= 0]
            self.assertAlmostEqual(row["eval_accuracy"], hits.double().mean().item(), places=8)
        return trainer

    def test_masked(self):
        """Some samples, the last one too, count nothing."""
        for batch, iters in ((5, "all"), (6, "all"), (4, 7)):
            trainer = self.check(0, batch, iters, masking=MASKING)
        check_measured(self, trainer, trainer.row)

    def test_ignored_class(self):
        self.check(1, 5, drop=0.1, metrics=["accuracy"])
        self.check(1, 2, 9)

    def test_weights(self):
        """The count that training has serves evaluation, too."""
        self.check(2, 6, normalize="tokens", num_steps=2)
        trainer = self.check(2, 5, drop=0.1, normalize="tokens", num_steps=2)
        check_measured(self, trainer, trainer.row)

    def test_batches_of_evaluation(self):
        """Of another size than those of training: what they count, and a mean that the model makes of its batch's size."""
        check_measured(self, trainer := self.check(0, 5, masking=MASKING, evaluated=14), trainer.row)
        self.check(2, 6, normalize="tokens", num_steps=2, evaluated=4)
        check_measured(self, trainer := self.check(4, 3, 5, drop=0.1, evaluated=7), trainer.row)

    def test_nothing_counts_differently(self):
        """Without masking there is nothing to ignore, and no trace of counts."""
        for form in (0, 4):
            self.assertNotIn("->counted", self.check(form, 6).generate())

    def test_sum(self):
        trainer = self.make(3, 6, "all")
        said = subprocess.run([GENERATOR, trainer.path, "-o", "/dev/null"], capture_output=True, text=True)
        self.assertIn(said.returncode, (1, 2))
        for text in ("this one is a sum over a batch", "counted.c:19:", "'training.eval_iters' is all here",
                     "divide the sum by the number of samples"):
            self.assertIn(text, said.stderr)
        self.make(3, 6, 2).generate()  # a number of batches takes any loss


class Refusals(unittest.TestCase):
    """What a model cannot give is refused when the program is generated, with the location and what would work."""

    def check(self, model, expected, metrics=("accuracy",), **data):
        trainer, _, _ = make(3, 8, metrics=metrics, model=model)
        self.addCleanup(shutil.rmtree, trainer.folder)
        trainer.job["data"].update(data)
        trainer.write()
        result = subprocess.run([GENERATOR, trainer.path, "-o", "/dev/null"], capture_output=True, text=True)
        self.assertIn(result.returncode, (1, 2))
        for text in expected:
            self.assertIn(text, result.stderr)

    def test_no_predict(self):
        model = ONE_LOGIT.replace("predict", "guess")
        self.check(model, ["metrics need what the model predicts", "model.c:5", "tensor predict(scope s"])

    def test_other_shape(self):
        model = ONE_LOGIT.replace("linear(s, features, 1), dim(features, 0))", "linear(s, features, 1), 2, 4)")
        self.check(model, ["'predict' gives [2][4], and labels is [8]", "let 'predict' return logits"])

    def test_classes(self):
        model = ONE_LOGIT.replace("linear(s, features, 1), dim(features, 0)", "linear(s, features, 3), dim(features, 0), 3")
        model = model.replace("reshape(predict(s, features), dim(features, 0), 1)", "slice(predict(s, features), 1, 0, 1)")
        self.check(model, ["f1_binary is of two classes; 'predict' gives 3"], metrics=["f1_binary"])

    def test_values(self):
        model = ONE_LOGIT.replace("cross_entropy(concat(1, scale(x, 0.0), x), labels)", "mean_all(sub(x, reshape(labels, 8, 1)))")
        self.check(model, ["accuracy compares classes, and the labels of this model are float32"], label="value")


class Start(unittest.TestCase):
    """eval_on_start and eval_delay."""

    def trainer(self, ranks=1, **training):
        trainer, features, labels = make(3, 8 // ranks, eval_interval=2, **training)
        self.addCleanup(shutil.rmtree, trainer.folder)
        rng = np.random.default_rng(5)
        start = {"hidden.0.weight": (7, FEATURES), "hidden.0.bias": (7,), "hidden.1.weight": (7, 7), "hidden.1.bias": (7,),
                 "output.weight": (3, 7), "output.bias": (3,)}
        start = {name: rng.normal(size=shape).astype("float32") for name, shape in start.items()}
        save_file(start, trainer.folder / "start.safetensors")
        trainer.job["model"]["weights"] = "start.safetensors"
        trainer.job["checkpoint"] |= {"every": 3}
        trainer.job["devices"] = {"per_node": ranks}
        trainer.write()
        logits = logits_of({name: value.astype(np.float64) for name, value in start.items()}, features)
        return trainer, mean_loss(logits, labels), accuracy_score(labels, logits.argmax(1))

    def test_on_start(self):
        """Step 0 has the figures of the weights that the run begins with, and the steps have the bits of a run without it; a run that
        resumes does not repeat it."""
        trainer, loss, accuracy = self.trainer(eval_on_start=True)
        trainer.build()
        rows = trainer.run()
        self.assertEqual(set(rows[0]), {"step", "eval_loss", "eval_accuracy", "eval_f1_macro", "eval_perplexity"})
        self.assertEqual(rows[0]["step"], 0)
        self.assertLess(abs(rows[0]["eval_loss"] / loss - 1), 1e-6)
        self.assertAlmostEqual(rows[0]["eval_accuracy"], accuracy, places=8)
        self.assertIn("start_to_first_step_s", rows[1])
        weights = (trainer.folder / "run" / "model.safetensors").read_bytes()
        shutil.rmtree(trainer.folder / "run")
        trainer.run("--steps", "3")
        resumed = trainer.run("--resume", "auto")
        self.assertEqual([row["step"] for row in resumed], list(range(7)))
        self.assertEqual((trainer.folder / "run" / "model.safetensors").read_bytes(), weights)
        plain, _, _ = self.trainer()
        plain.build()
        for row, other in zip(plain.run(), rows[1:]):
            self.assertEqual([row[name] for name in ("step", "loss", "grad_norm")], [other[name] for name in ("step", "loss", "grad_norm")])
        self.assertEqual((plain.folder / "run" / "model.safetensors").read_bytes(), weights)

    def test_ranks(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))
        from ranks import Ranks  # noqa: PLC0415
        trainer, loss, accuracy = self.trainer(2, eval_on_start=True)
        trainer = Ranks(2, trainer.job, trainer.folder)
        trainer.build()
        row = trainer.run()[0]
        self.assertEqual(row["step"], 0)
        self.assertLess(abs(row["eval_loss"] / loss - 1), 1e-6)
        self.assertAlmostEqual(row["eval_accuracy"], accuracy, places=8)

    def test_delay(self):
        for delay, evaluated in ((3, [4, 6]), (6, [6]), (0, [2, 4, 6]), ("epoch", [4, 6]), ("2 epochs", [6])):
            trainer, _, _ = self.trainer(eval_delay=delay)
            trainer.build()
            self.assertEqual([row["step"] for row in trainer.run() if "eval_loss" in row], evaluated, delay)

    def test_refusals(self):
        for training, groups, message in [
            ({"eval_on_start": True}, {"tracking": {"grad_norms": "per_layer"}}, "grad_norms"),
            ({"eval_on_start": True}, {"hooks": {"source": "h.c", "on_step": "on_step"}}, "on_step"),
        ]:
            trainer, _, _ = self.trainer(**training)
            trainer.job |= groups
            trainer.write()
            self.assertIn(message, trainer.command("plan", "job.yaml", status=2))


class Seeds(unittest.TestCase):
    def numbers(self, **data):
        trainer, _, _ = make(3, 8, metrics=(), seed=data.pop("seed", 4))
        self.addCleanup(shutil.rmtree, trainer.folder)
        trainer.job["data"].update(data)
        trainer.write()
        trainer.build()
        return [row["loss"] for row in trainer.run()]

    def test_data_seed(self):
        """It alone decides the order: the loss on fresh weights of the same seed, over other samples."""
        plain = self.numbers()
        self.assertEqual(plain, self.numbers(data_seed=4), "the default is training.seed")
        self.assertNotEqual(plain[0], self.numbers(data_seed=5)[0])
        self.assertNotEqual(plain, self.numbers(data_seed=4, seed=5), "weights come from training.seed")


if __name__ == "__main__":
    unittest.main()
