"""Early stopping against the EarlyStoppingCallback of Transformers, whose logic stands here in its own words: on the
evaluations of the same run without it, where should it end, and with which weights?"""

import shutil
import unittest

import numpy as np
from harness import TIMES, Trainer
from matrix import mlp

STEPS = 24


class Callback:
    """transformers.EarlyStoppingCallback and what Trainer does with the best metric."""

    def __init__(self, patience, threshold, greater_is_better):
        self.patience, self.threshold = patience, threshold
        self.operator = np.greater if greater_is_better else np.less
        self.best_metric, self.counter = None, 0

    def on_evaluate(self, value):
        """Whether training should stop, and whether this is the best so far."""
        if self.best_metric is None or (self.operator(value, self.best_metric)
                                        and abs(value - self.best_metric) > self.threshold):
            self.counter = 0
        else:
            self.counter += 1
        is_best = self.best_metric is None or self.operator(value, self.best_metric)
        if is_best:
            self.best_metric = value
        return self.counter >= self.patience, is_best


def prepare(test, checkpoint=None, **training):
    case = mlp("stopping", checkpoint=checkpoint or {}, optimizer={"name": "sgd", "lr": 1.5, "momentum": 0.8}, data={"batch_size": 4, "eval_fraction": 0.26},
               training={"steps": STEPS, "seed": 3, "eval_interval": 1, "eval_iters": "all",
                         "metrics": ["accuracy", "f1_macro"], **training})
    trainer = Trainer(case.job)
    test.addCleanup(shutil.rmtree, trainer.folder)
    case.write_data(trainer.folder)
    trainer.build()
    return trainer


class EarlyStopping(unittest.TestCase):
    def whole(self, **training):
        return prepare(self, **training).run()

    def check(self, rows, metric="loss", mode=None, patience=2, threshold=0.0, **training):
        rule = {"metric": metric, "threshold": threshold, **({"mode": mode} if mode else {}), **({"patience": patience} if patience else {})}
        greater = mode == "max" if mode else metric != "loss"
        callback = Callback(patience or STEPS + 1, threshold, greater)
        end, best = STEPS, 0
        for row in rows:
            stop, is_best = callback.on_evaluate(row[f"eval_{metric}"])
            best = row["step"] if is_best else best
            if stop:
                end = row["step"]
                break
        trainer = prepare(self, early_stopping={**rule, "restore_best": True}, **training)
        found = trainer.run()
        columns = ("loss", "eval_loss", "eval_accuracy", "grad_norm")
        self.assertEqual([[row[k] for k in columns] for row in found], [[row[k] for k in columns] for row in rows[:end]], rule)
        ended = trainer.weights()
        before = prepare(self, **training)
        before.run("--steps", str(best))
        for name, value in before.weights().items():
            self.assertTrue(np.array_equal(value, ended[name]), f"{name} of step {best}")
        return end

    def test_decisions(self):
        rows = self.whole()
        ends = {self.check(rows), self.check(rows, patience=4), self.check(rows, metric="accuracy", patience=3),
                self.check(rows, threshold=0.02, patience=3), self.check(rows, metric="f1_macro", mode="min", patience=1),
                self.check(rows, patience=None)}
        print("ends", sorted(ends))
        self.assertGreater(len(ends), 2, "the cases differ")

    def test_exactly_the_threshold(self):
        """What is better by the threshold and by no more is a failure. Of 16 labels, so that accuracies are exact."""
        rows = self.whole()
        values = [row["eval_accuracy"] for row in rows]
        self.assertTrue(all(16 * value == round(16 * value) for value in values), values)
        at = next(i for i, value in enumerate(values) if value < values[0] and min(values[:i]) == values[0])
        end = self.check(rows, metric="accuracy", mode="min", threshold=values[0] - values[at], patience=at)
        self.assertEqual(end, rows[at]["step"])

    def test_averages(self):
        """What is evaluated is what is best: the averages, and they end as those of the best evaluation."""
        ema = {"decay": 0.5, "evaluate": True}
        trainer = prepare(self, ema=ema, early_stopping={"patience": 2, "restore_best": True})
        rows = trainer.run()
        best = min(rows, key=lambda row: row["eval_loss"])["step"]
        self.assertLess(len(rows), STEPS)
        last, average = trainer.weights(), (trainer.folder / "run" / "ema.safetensors").read_bytes()
        plain = prepare(self, ema=ema)
        plain.run("--steps", str(best))
        self.assertEqual(average, (plain.folder / "run" / "ema.safetensors").read_bytes())
        plain.run("--steps", str(len(rows)))
        for name, value in plain.weights().items():
            self.assertTrue(np.array_equal(value, last[name]), name)

    def left(self, trainer):
        """What a run leaves, but for the times."""
        run = trainer.folder / "run"
        files = {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*.safetensors")}
        return [{key: value for key, value in row.items() if key not in TIMES} for row in trainer.rows], files

    def test_resumed_at_its_end(self):
        """A run that has ended takes no step more, and leaves the same."""
        trainer = prepare(self, {"every": 1, "resume": "auto"}, early_stopping={"patience": 2, "restore_best": True})
        trainer.rows = trainer.run()
        wanted, end = self.left(trainer), len(trainer.rows)
        self.assertLess(end, STEPS)
        for flags in ((), ("--steps", str(STEPS + 5)), ("--resume", f"run/checkpoints/checkpoint_{end - 1}")):
            (trainer.folder / "run" / "model.safetensors").unlink()
            trainer.rows = trainer.run(*flags)
            self.assertRegex(trainer.output, rf"step {end}\nnothing to train: 2 evaluations without improvement ended the run; .*\nfinished  0 steps in ")
            self.assertEqual(self.left(trainer), wanted, flags)
        trainer.run("--steps", str(end))
        self.assertRegex(trainer.output, rf"step {end}\nnothing to train: all {end} steps are done; .*\nfinished  0 steps in ")

    def test_patience_raised(self):
        """With a larger patience, a run that has ended becomes the one that had it from the start; with a smaller one
        it ends where it is resumed."""
        checkpoint = {"every": 1, "resume": "auto"}
        trainer = prepare(self, checkpoint, early_stopping={"patience": 2, "restore_best": True})
        first = trainer.run()
        patient = prepare(self, checkpoint, early_stopping={"patience": 6, "restore_best": True})
        patient.rows = patient.run()
        self.assertLess(len(first), len(patient.rows))
        trainer.job["training"]["early_stopping"]["patience"] = 6
        trainer.write()
        trainer.build()
        trainer.rows = trainer.run()
        self.assertIn("with changes: training.early_stopping.patience: 2 -> 6\n", trainer.output)
        self.assertEqual(self.left(trainer), self.left(patient))
        trainer.job["training"]["early_stopping"]["patience"] = 3
        trainer.write()
        trainer.build()
        self.assertEqual(len(trainer.run()), len(patient.rows))
        self.assertIn("nothing to train: 6 evaluations without improvement", trainer.output)

    def test_a_metric_need_not_be_listed(self):
        trainer = prepare(self, metrics=[], early_stopping={"patience": 3, "metric": "accuracy"})
        self.assertIn("eval_accuracy", trainer.run()[-1])


if __name__ == "__main__":
    unittest.main()
