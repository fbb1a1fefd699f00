"""Several ranks against one process that takes their batches as one: the same losses, norms and weights over 50 steps.
Half of the tests a run; CASES=all runs all."""

import pathlib
import tempfile
import unittest

from ranks import CONFIG, ComparedWithOne, Ranks, job_of, trained
from rotation import rotating  # tests/program; isort: skip

ARGUMENT = """#include <accel/model.h>
struct config { int block_size; };
static tensor layer(scope s, tensor x, tensor p) { return linear(at(s, "a"), add(x, p), 256); }
tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor x = embedding(at(s, "in"), tokens, 256, 8), p = parameter(init_normal(at(s, "p"), 0.5), "w", c.block_size, 8);
  return cross_entropy(layer(at(s, "layer"), x, p), targets);
}
"""


class OneProcess(ComparedWithOne):
    """Ranks with batches of B give what one process gives with batches of ranks times B, as shards of the same order."""

    def test_two_ranks(self):
        self.check(2, 6, training={"eval_interval": 25, "eval_iters": "all"})

    def test_three_ranks(self):
        self.check(3, 4, training={"eval_interval": 25, "eval_iters": "all"})

    def test_four_ranks(self):
        self.check(4, 3, training={"eval_interval": 25, "eval_iters": "all"})

    def test_accumulation_over_epochs(self):
        """Steps that end with an epoch are short; they are so on all ranks."""
        self.check(2, 3, accumulation={"num_steps": 4}, training={"eval_interval": 25, "eval_iters": 2})

    def test_each_batch(self):
        self.check(3, 2, accumulation={"num_steps": 2, "sync_each_batch": True})

    def test_small_buckets(self):
        self.check(2, 6, parallelism={"ddp": {"bucket_cap_mb": 0.001}})

    def test_split_batches(self):
        """A batch that ranks divide, and rates by steps of all of them."""
        schedule = {"name": "linear", "warmup_steps": 3}
        _, lines = trained(2, job_of(2, 12, 50, data={"split_batches": True}, schedule=schedule))
        _, wanted = self.one(12, 50, schedule=schedule)
        for line, want in zip(lines, wanted, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
            self.assertEqual(line["lr"], want["lr"])

    def test_dropout(self):
        """Random numbers follow from a batch and not from who has it: what each rank drops is what one process drops
        in as many micro-batches."""
        config = {**CONFIG, "dropout": 0.3}
        _, lines = trained(3, job_of(3, 2, 50, config=config))
        _, wanted = trained(1, job_of(1, 2, 50, config=config, accumulation={"num_steps": 3},
                                      schedule={"name": "constant"}))
        for line, want in zip(lines, wanted, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")

    def test_bf16(self):
        self.check(2, 6, tolerance=3e-4, precision={"mixed_precision": "bf16"})

    def test_scaler(self):
        self.check(2, 3, accumulation={"num_steps": 2},
                   precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})

    def test_parameter_as_argument(self):
        """A parameter that a function is given has a gradient that the function's backward writes; ranks exchange it."""
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "argument.c").write_text(ARGUMENT)
            self.check(2, 6, model=f"{folder}/argument", config={"block_size": 12})

    def test_table(self):
        """Three ranks divide rows that neither they nor batches divide; each counts once in the metrics."""
        groups = {"model": "mlp_table", "config": {"n_layer": 1, "width": 7, "n_classes": 3},
                  "training": {"eval_interval": 25, "eval_iters": "all", "metrics": ["accuracy", "f1_macro"]}}
        rows = "".join(f"{i % 7 / 7:.4f},{i % 5 / 5:.4f},{i % 3}\n" for i in range(233))
        data = {"train": {"path": "rows.csv", "format": "csv"}, "features": 2}
        lines = []
        for ranks, batch in ((1, 12), (3, 4)):
            job = job_of(ranks, batch, 50, **groups)
            job["data"].update(data)
            trainer = Ranks(ranks, job)
            (trainer.folder / "rows.csv").write_text(rows)
            trainer.build()
            lines.append(trainer.run())
        for line, want in zip(*lines, strict=True):
            for name in ("loss", "eval_loss", "eval_accuracy", "eval_f1_macro"):
                if name in want:
                    self.assertLess(abs(line[name] / want[name] - 1), 1e-6, f"{name} of step {line['step']}")

    def test_rows_alone(self):
        """The gradient of a bias over one row is the gradient of what the layer gives, which the backward still reads: a bucket is
        sent after that."""
        groups = {"model": "mlp_table", "config": {"n_layer": 1, "width": 7, "n_classes": 3},
                  "parallelism": {"ddp": {"bucket_cap_mb": 0.0001}}}
        rows = "".join(f"{i % 7 / 7:.4f},{i % 5 / 5:.4f},{i % 3}\n" for i in range(40))
        runs = []
        for ranks, batch in ((2, 1), (1, 2)):
            job = job_of(ranks, batch, 20, **groups)
            job["data"].update({"train": {"path": "rows.csv", "format": "csv"}, "features": 2})
            trainer = Ranks(ranks, job)
            (trainer.folder / "rows.csv").write_text(rows)
            trainer.build()
            runs += [trainer, trainer.run()]
        self.compare(*runs)


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
