"""Runs whose length is in samples or epochs: as many steps as a DataLoader of PyTorch gives, which leaves out what makes no
whole batch, in the hands of Accelerate's accumulation; and refusals when the data is not what was counted."""

import math
import subprocess
import unittest

import test_accumulation
from rows import GENERATOR, QUICK, SEED, Rows, Trainer


def steps_of_epochs(rows, micro, epochs):
    """Optimizer steps of Accelerate's loop, counted by running it."""
    schedule = test_accumulation.Accumulation.EXPONENTIAL[1]
    steps, _ = test_accumulation.steps_of(rows, {"num_steps": micro}, schedule, math.inf, epochs)
    return len(steps)


class Length(unittest.TestCase):
    def rows(self, count, training, micro=1, **more):
        rows = Rows(count, 4, training=training, accumulation={"num_steps": micro, **more},
                    schedule={"name": "linear", "warmup_steps": 1},
                    checkpoint={"every": "epoch", "automatic_checkpoint_naming": False})
        return rows

    def saved(self, rows):
        """The steps of its checkpoints."""
        return sorted(int(path.name[5:]) for path in (rows.trainer.folder / "run").glob("step_*"))

    def test_epochs(self):
        for count, micro, epochs in ((12, 1, 2), (30, 1, 2), (30, 3, 2), (9, 3, 4)):
            with self.subTest(count=count, micro=micro):
                rows = self.rows(count, {"epochs": epochs}, micro)
                metrics = rows.run()
                self.assertEqual(len(metrics), steps_of_epochs(rows, micro, epochs))
                self.assertEqual(self.saved(rows), [steps_of_epochs(rows, micro, epoch + 1) for epoch in range(epochs)])
                steps = len(metrics)  # which the schedule knows
                self.assertLess(abs(metrics[-1]["lr"] / metrics[0]["lr"] - 1 / (steps - 1)), 1e-6)

    def test_epochs_across_steps(self):
        """Fourteen micro-batches of two epochs by threes."""
        rows = self.rows(30, {"epochs": 2}, 3, sync_with_dataloader=False)
        self.assertEqual(len(rows.run()), 5)
        self.assertEqual(self.saved(rows), [3, 5])  # the third step takes the seventh and the eighth

    def test_samples(self):
        self.assertEqual(len(self.rows(30, {"samples": 21}).run()), 6)
        self.assertEqual(len(self.rows(30, {"samples": 33}, 3).run()), 3 + 1)  # 7 micro-batches and 2 of the next epoch

    def test_samples_need_no_data(self):
        """Where steps are alike."""
        trainer = Trainer(self.rows(30, {"samples": 21}).job)
        self.assertIn(".steps = 6,", trainer.generate())

    def refused(self, rows):
        done = subprocess.run([GENERATOR, rows.trainer.path, "-o", "-"], cwd=rows.trainer.folder, capture_output=True,
                              text=True)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_without_data(self):
        rows = self.rows(30, {"epochs": 2})
        (rows.trainer.folder / "rows.csv").unlink()
        message = self.refused(rows)
        self.assertIn("rows.csv: cannot be opened", message)
        self.assertIn("for 'training.epochs' the samples are counted when the program is generated", message)

    def test_warmup_longer_than_the_run(self):
        rows = self.rows(12, {"epochs": 2})
        rows.trainer.job["schedule"]["warmup_steps"] = 7
        rows.trainer.write()
        self.assertIn("'schedule.warmup_steps' must be at most the steps of the run, which are 6, not 7", self.refused(rows))

    def test_other_data(self):
        rows = self.rows(30, {"epochs": 2})
        rows.run()
        text = (rows.trainer.folder / "rows.csv").read_text()
        (rows.trainer.folder / "rows.csv").write_text(text + text.splitlines()[0] + "\n")
        with self.assertRaises(AssertionError) as raised:
            rows.trainer.run()
        self.assertIn("rows.csv: 31 rows to train on, but the 14 steps of this program were counted from 30",
                      str(raised.exception))


class Tokens(unittest.TestCase):
    def test_windows(self):
        """Windows of a token file, with those kept for evaluation away."""
        trainer = Trainer({
            "model": {"source": "examples/models/gru_bytes.c",
                      "config": {"n_embd": 3, "width": 3, "vocab_size": 256, "block_size": 5}},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 4},
            "training": {"epochs": 3, "seed": SEED},
        })
        trainer.job["model"]["source"] = str(GENERATOR.parents[1] / trainer.job["model"]["source"])
        trainer.write()
        (trainer.folder / "corpus.txt").write_bytes(bytes(range(97, 123)) * 20)
        subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True,
                       env=QUICK)
        windows = (int(520 * 0.9) - 5) // 5
        self.assertEqual(len(trainer.run()), 3 * (windows // 4))


if __name__ == "__main__":
    unittest.main()
