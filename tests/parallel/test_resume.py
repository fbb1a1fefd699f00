"""What N ranks have saved in the middle of a run resumes with M, for N and M in 1, 2, 3, 4 and 8, whatever either divide and
whether files are whole or parts: the losses of one process to 1e-6, its weights to 1e-5, and of the same ranks to the last bit.
DIVISIONS=all: all that each number of ranks may divide, from all; else one for each number, from each."""

import os
import shutil
import unittest

import numpy as np
from placements import PLACEMENTS, cases_of, parallelism
from ranks import Ranks, job_of, json_lines, load_file, relative, table

STEPS, SAVED, BATCH = 6, 3, 24
STRATEGIES = {2: "shard_grad_op", 3: "full_shard"}  # those that can save parts
ALL = os.environ.get("DIVISIONS") == "all"
ALONE = (1, "whole", False)
# Ranks, what they divide, whether each saves its part.
DIVISIONS = [case for case in cases_of((False, True)) if not case[2] or PLACEMENTS[case[1]].get("zero_stage") in STRATEGIES] if ALL else [
    ALONE, (2, "states", False), (3, "gradients", True), (4, "groups", True), (8, "weights", False)]


def words(ranks, placement, parts):
    keys = parallelism(ranks, placement)
    if parts:
        keys["fsdp"] = {"sharding_strategy": STRATEGIES[keys.pop("zero_stage")], "state_dict_type": "sharded_state_dict"}
    return keys


def built(division):
    """Six steps of 24 rows, with a checkpoint after the third."""
    job = job_of(division[0], BATCH // division[0], STEPS, model="mlp_table", config={"n_layer": 5, "width": 7, "n_classes": 3},
                 data={"train": {"path": "rows.csv", "format": "csv"}, "features": 7}, parallelism=words(*division),
                 checkpoint={"every": SAVED})
    trainer = Ranks(division[0], job)
    (trainer.folder / "rows.csv").write_text(table(120, 7))
    trainer.build()
    return trainer


class GoingOn(unittest.TestCase):
    def check(self, saver, trainer, wanted, weights):
        shutil.rmtree(trainer.folder / "on", ignore_errors=True)
        checkpoint = saver.folder / "run" / "checkpoints" / "checkpoint_0"
        result = trainer.launch("--resume", str(checkpoint), "--project-dir", "on")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines, after = json_lines(trainer.folder / "on"), load_file(trainer.folder / "on" / "model.safetensors")
        for line, want in zip(lines, wanted[SAVED:], strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
        for name, value in after.items():
            self.assertLess(relative(value, weights[name]), 1e-5, name)
            if saver is trainer:
                self.assertTrue(np.array_equal(value, saver.weights()[name]), name)

    def test_each_from_each(self):
        trainers = {division: built(division) for division in DIVISIONS}
        lines = {division: trainer.run() for division, trainer in trainers.items()}
        wanted, weights = lines[ALONE], trainers[ALONE].weights()
        # Who resumes reads both forms, whichever it writes itself.
        going = trainers if not ALL else {division: trainer for division, trainer in trainers.items() if not division[2]}
        for saved, saver in trainers.items():
            for division, trainer in {**going, saved: saver}.items():
                with self.subTest(saved=saved, resumed=division):
                    self.check(saver, trainer, wanted, weights)


if __name__ == "__main__":
    unittest.main()
