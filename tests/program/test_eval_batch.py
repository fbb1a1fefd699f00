"""data.eval_batch_size: a trainer whose evaluation has batches of its own size, from a second graph of the same parameters.
Against NumPy over the whole set, and against the run without the key, which trains the same bits."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import numpy as np
import test_evaluation as table
from harness import GENERATOR, MODELS, Trainer
from sklearn.metrics import accuracy_score, f1_score

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))
from ranks import Ranks, job_of  # noqa: E402

# Reads the size of its batch, and another function of it for batches above 8: the parameters are the same.
READS = """#include <accel/model.h>
static tensor wide(scope s, tensor x) { return relu(linear(s, x, 6)); }
static tensor narrow(scope s, tensor x) { tensor y = linear(s, x, 6); return maximum(y, scale(y, 0.0)); }
tensor predict(scope s, tensor features) {
  scope one = at(s, "hidden");
  tensor x = dropout(features, 0.25);
  if (dim(features, 0) > 8) x = wide(one, x);
  else x = narrow(one, x);
  return linear(at(s, "output"), x, 3);
}
tensor model(scope s, tensor features, tensor labels) {
  tensor losses = cross_entropy(predict(s, features), labels);
  return scale(losses, (float)dim(features, 0) / (float)dim(labels, 0));
}
"""
HOOK = """#include <accel/hooks.h>
#include <stdlib.h>
void on_batch(struct accel_run *run, struct accel_batch *batch) {
  (void)run;
  if (batch->count != (batch->is_evaluation ? 11 : 8)) abort();
  if (!batch->is_evaluation) return;
  for (int64_t i = 0; i < batch->count * batch->width; i++) batch->features[i] *= 2;
  for (int64_t i = 0; i < batch->count; i++) batch->classes[i] = 2 - batch->classes[i];
}
"""
CONVOLVED = {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 3, "embedding_size": 4, "stages": 1,
             "hidden_sizes.0": 4, "depths.0": 1}


def weights_of(trainer):
    return (trainer.folder / "run" / "model.safetensors").read_bytes()


def plan_of(trainer, *flags):
    return json.loads(subprocess.check_output([GENERATOR, "plan", trainer.path, "--json", *flags]))


class Evaluated(unittest.TestCase):
    def ran(self, trainer, size=None):
        """A trainer that has run with such batches, its last line and the bits of its weights."""
        self.addCleanup(shutil.rmtree, trainer.folder)
        if size is not None:
            trainer.job["data"]["eval_batch_size"] = size
        trainer.write()
        trainer.build()
        return trainer, trainer.run(), weights_of(trainer)

    def same(self, lines, wanted, tolerance=1e-6):
        """Steps have the same bits, evaluations the same figures as far as sums in another order go."""
        for line, want in zip(lines, wanted, strict=True):
            self.assertEqual([line[key] for key in ("step", "loss", "grad_norm")], [want[key] for key in ("step", "loss", "grad_norm")])
            for key in [key for key in want if key.startswith("eval_")]:
                self.assertLess(abs(line[key] - want[key]), tolerance * max(abs(want[key]), 1e-3), f"{key} of {line['step']}")


class Table(Evaluated):
    def test_every_sample_once(self):
        """Batches that divide the set, leave one over, are larger than it, and of one sample."""
        plain, _, bits = self.ran(table.make(3, 8)[0])
        for size in (5, 12, 30, 1):
            made, features, labels = table.make(3, 8)
            trainer, lines, weights = self.ran(made, size)
            self.assertEqual(weights, bits, f"weights with evaluations of {size}")
            logits = table.logits_of({name: value.astype(np.float64) for name, value in trainer.weights().items()}, features)
            row, guess = lines[-1], logits.argmax(1)
            self.assertLess(abs(row["eval_loss"] / table.mean_loss(logits, labels) - 1), 1e-6, size)
            self.assertAlmostEqual(row["eval_accuracy"], accuracy_score(labels, guess), places=8)
            self.assertAlmostEqual(row["eval_f1_macro"], f1_score(labels, guess, average="macro"), places=8)
        table.check_measured(self, trainer, row)

    def test_some_batches(self):
        """eval_iters counts batches of this size."""
        made, features, labels = table.make(3, 5, iters=2)
        made.job["data"]["shuffle"] = False
        trainer, lines, _ = self.ran(made, 7)
        logits = table.logits_of({name: value.astype(np.float64) for name, value in trainer.weights().items()}, features[:14])
        self.assertLess(abs(lines[-1]["eval_loss"] / table.mean_loss(logits, labels[:14]) - 1), 1e-6)
        table.check_measured(self, trainer, lines[-1])

    def test_model_that_reads_its_batch(self):
        runs = [self.ran(table.make(3, 4, model=READS)[0], size) for size in (None, 10)]
        self.same(runs[1][1], runs[0][1])
        self.assertEqual(runs[1][2], runs[0][2])

    def test_hook(self):
        """on_batch gets the whole batch of an evaluation, and this has what it writes."""
        made, features, labels = table.make(3, 8)
        (made.folder / "hooks.c").write_text(HOOK)
        made.job["hooks"] = {"source": "hooks.c", "on_batch": "on_batch"}
        trainer, lines, _ = self.ran(made, 11)
        logits = table.logits_of({name: value.astype(np.float64) for name, value in trainer.weights().items()}, 2 * features)
        self.assertLess(abs(lines[-1]["eval_loss"] / table.mean_loss(logits, 2 - labels) - 1), 1e-6)
        self.assertAlmostEqual(lines[-1]["eval_accuracy"], accuracy_score(2 - labels, logits.argmax(1)), places=8)

    def test_same_size(self):
        """Nothing but the key in the program's record."""
        trainer, _, _ = table.make(3, 8)
        self.addCleanup(shutil.rmtree, trainer.folder)
        texts = [trainer.generate_from(*flags).splitlines() for flags in ((), ("--set", "data.eval_batch_size=8"))]
        self.assertEqual(*([line for line in text if not re.search("job  |job_digest|eval_batch_size", line)] for text in texts))

    def test_what_follows_an_evaluation(self):
        """Averages that are evaluated, early stopping, the best weights restored, a schedule by the metric; and a run that resumes."""
        training = {"ema": {"decay": 0.9, "evaluate": True}, "early_stopping": {"patience": 2, "metric": "loss", "restore_best": True}}
        for optimizer, more in (({"name": "adam", "lr": 0.3}, training), ({"name": "schedule_free_adamw", "lr": 0.05}, {})):
            runs = []
            for size in (None, 11):
                made, _, _ = table.make(3, 8, **more)
                made.job["training"] |= {"steps": 14, "eval_interval": 2}
                made.job["optimizer"] = optimizer
                made.job["checkpoint"]["every"] = 5
                made.job["accumulation"] = {"num_steps": 2}
                runs.append(self.ran(made, size))
            (_, wanted, bits), (trainer, lines, weights) = runs
            self.same(lines, wanted)
            self.assertEqual(weights, bits)
            shutil.rmtree(trainer.folder / "run")
            trainer.run("--steps", "5")
            self.same(trainer.run("--resume", "auto"), wanted)
            self.assertEqual(weights_of(trainer), bits)


class Images(Evaluated):
    def test_running_statistics(self):
        """Batch normalisation: evaluations read the statistics that training left, and change none."""
        runs = []
        for size in (None, 9):
            made, _, _ = table.make(3, 4, model="")
            made.job["model"] = {"source": str(MODELS / "resnet.c"), "config": CONVOLVED}
            made.job["data"]["features"] = 64
            rng = np.random.default_rng(2)
            rows = [[*rng.normal(size=64).round(3), int(rng.integers(3))] for _ in range(61)]
            (made.folder / "rows.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
            runs.append(self.ran(made, size))
        self.same(runs[1][1], runs[0][1])
        self.assertEqual(runs[1][2], runs[0][2])


class Texts(Evaluated):
    CONFIG = {"n_layer": 3, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "dropout": 0.1}

    def trainer(self, **groups):
        return Ranks(1, job_of(1, 4, 4, config=self.CONFIG, **{"training": {"eval_interval": 2, "eval_iters": 5}, **groups}))

    def test_chunked_loss_and_recomputed_layers(self):
        groups = {"memory": {"cross_entropy_chunk": 8, "activation_checkpointing": "all"}, "training": {"eval_interval": 2, "eval_iters": "all"},
                  "precision": {"mixed_precision": "bf16"}}
        made = [self.trainer(**groups) for _ in range(2)]
        for one in made:
            one.job["data"]["eval_fraction"] = 0.05
        runs = [self.ran(one, size) for one, size in zip(made, (None, 7), strict=True)]
        self.same(runs[1][1], runs[0][1], 2e-3)  # sums in bfloat16's order
        self.assertEqual(runs[1][2], runs[0][2])

    def test_memory(self):
        """An evaluation of four times as many samples needs less than training on them, and works where training's activations are; a
        smaller one needs nothing."""
        made = self.trainer()
        self.addCleanup(shutil.rmtree, made.folder)
        bytes_of = {}
        for name, flags in {"4": [], "4 and 16": ["--set", "data.eval_batch_size=16"], "16": ["--set", "data.batch_size=16"],
                            "4 and 1": ["--set", "data.eval_batch_size=1"]}.items():
            bytes_of[name] = plan_of(made, *flags)["arena_bytes"]["total"]
        self.assertLess(bytes_of["4 and 16"], bytes_of["16"])
        self.assertLess(bytes_of["4 and 16"] - bytes_of["4"], (bytes_of["16"] - bytes_of["4"]) / 3)
        self.assertLessEqual(bytes_of["4 and 1"], bytes_of["4"])
        said = subprocess.check_output([GENERATOR, "plan", "-v", made.path, "--set", "data.eval_batch_size=16"], text=True)
        self.assertRegex(said, r"\nevaluates 16 x 8 tokens a batch, in 0[.][0-9] MiB: in memory of activations and scratch, and 0[.]1 more\n")

    def test_found_batch(self):
        """batch_size: auto finds the same size, since an evaluation works in memory that a step has, too; and what does not fit is
        refused with what would."""
        made = self.trainer(devices={"memory": "2MB"})
        self.addCleanup(shutil.rmtree, made.folder)
        made.job["data"]["batch_size"] = "auto"
        made.write()
        found = [plan_of(made, "--set", f"data.eval_batch_size={size}") for size in (1, 140)]
        sizes = [plan["samples_per_step"] for plan in found]
        self.assertEqual(*sizes)
        self.assertGreater(*(plan["arena_bytes"]["total"] for plan in reversed(found)))
        self.assertTrue(all(plan["arena_bytes"]["total"] <= 2e6 for plan in found))
        made.job["data"] |= {"batch_size": 4, "eval_batch_size": 1000}
        made.write()
        said = made.command("plan", "job.yaml", status=2)
        fitting = int(re.search(r"it fits with data.eval_batch_size: (\d+)\n", said)[1])
        self.assertLessEqual(plan_of(made, "--set", f"data.eval_batch_size={fitting}")["arena_bytes"]["total"], 2e6)


class Divided(Evaluated):
    def test_ranks(self):
        """Ranks with batches of their own and parts of matrices or layers: the figures of one process, proven by the audit."""
        for mesh, steps in (({"dp_shard": 2, "zero_stage": 3}, 1), ({"tp": 2}, 1), ({"pp": 2}, 2)):
            runs = []
            for size in (None, 7):
                made = Ranks(2, job_of(2, 3, 2, config={**Texts.CONFIG, "n_layer": 2}, parallelism=mesh,
                                       training={"eval_interval": 1, "eval_iters": "all"}, accumulation={"num_steps": steps, "sync_with_dataloader": False}))
                made.job["data"]["eval_fraction"] = 0.03
                runs.append(self.ran(made, size))
            self.same(runs[1][1], runs[0][1])
            self.assertEqual(runs[1][2], runs[0][2])
            trainer = runs[1][0]
            trainer.generate()
            self.assertIn(" hold, 0 broken", trainer.command("audit", "trainer.c"))

    def test_split_batches(self):
        made = Ranks(2, job_of(2, 4, 2, config=Texts.CONFIG, training={"eval_interval": 1}))
        self.addCleanup(shutil.rmtree, made.folder)
        made.job["data"] |= {"split_batches": True, "eval_batch_size": 7}
        made.write()
        self.assertIn("'data.eval_batch_size' must be a multiple of the 2 ranks that it is split among", made.command("plan", "job.yaml", status=2))
        made.job["data"]["eval_batch_size"] = 8
        made.write()
        self.assertIn(".eval_batch_size = 4,", made.generate())
        made.job |= {"devices": {**made.job["devices"], "memory": "1MB"}}
        made.job["data"]["eval_batch_size"] = 1002
        made.write()
        fitting = re.search(r"it fits with data.eval_batch_size: (\d+)\n", made.command("plan", "job.yaml", status=2))[1]
        self.assertEqual(int(fitting) % 2, 0)
        self.assertIn(f".eval_batch_size = {int(fitting) // 2},", made.generate("--set", f"data.eval_batch_size={fitting}"))


class Refused(unittest.TestCase):
    def test_model(self):
        """What a model says of its batch is said of this one, too."""
        model = table.ONE_LOGIT.replace("linear(s, features, 1), dim(features, 0))", "linear(s, features, 1), 8)")
        made, _, _ = table.make(2, 8, metrics=(), model=model)
        self.addCleanup(shutil.rmtree, made.folder)
        made.generate()
        made.job["data"]["eval_batch_size"] = 6
        made.write()
        said = made.command("plan", "job.yaml", status=2)
        self.assertIn("'data.eval_batch_size' is 6 here", said)
        self.assertIn("model.c:3", said)

    def test_parameter(self):
        """A parameter whose shape follows the batch."""
        biased = "add(linear(s, features, 1), parameter_of(s, \"each\", 2, dim(features, 0), 1))"
        made, _, _ = table.make(2, 8, metrics=(), model=table.ONE_LOGIT.replace("linear(s, features, 1)", biased))
        self.addCleanup(shutil.rmtree, made.folder)
        made.generate()
        made.job["data"]["eval_batch_size"] = 6
        made.write()
        said = made.command("plan", "job.yaml", status=2)
        self.assertIn("is named twice with different shapes", said)
        self.assertIn("follows the batch, and 'data.eval_batch_size' gives an evaluation another one", said)

    def test_sum_of_a_batch(self):
        made, _, _ = table.make(2, 8, metrics=(), model=table.ONE_LOGIT.replace("cross_entropy(", "scale(sum_all(").replace(
            "x), labels)", "x)), 1.0 / 8)").replace("sum_all(concat", "sum_all(concat"))
        self.addCleanup(shutil.rmtree, made.folder)
        made.generate()
        made.job["data"]["eval_batch_size"] = 6
        made.write()
        self.assertIn("this one is a sum over a batch", made.command("plan", "job.yaml", status=2))


if __name__ == "__main__":
    unittest.main()
