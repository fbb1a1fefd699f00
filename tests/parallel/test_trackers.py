"""Trackers of several ranks: the main process alone writes, each number once."""

import json
import shutil
import unittest

from ranks import start  # which finds the modules of tests/program

import test_tracking as tracking  # noqa: E402
from harness import Trainer
from matrix import mlp


class Trackers(unittest.TestCase):
    def test_the_main_process_writes(self):
        case = mlp("tracking", training={"steps": 6}, checkpoint={"every": 4}, devices={"per_node": 2},
                   tracking={"log_with": ["all"], "every": 1, "project": "digits", "run_name": "first one"})
        trainer = Trainer(case.job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        case.write_data(trainer.folder)
        trainer.build()
        ended = start(trainer.folder / "trainer", 2, cwd=trainer.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(sorted(tracking.metrics(trainer.folder)), [1, 2, 3, 4, 5, 6])
        for tool, read in tracking.READERS.items():
            rows = read(trainer.folder)
            self.assertEqual(sorted(rows), [1, 2, 3, 4, 5, 6], tool)
        for name in ("*.wandb", "*tfevents*", "tracking.json"):
            self.assertEqual(len(list(trainer.folder.rglob(name))), 1, name)
        self.assertEqual(len(json.loads((trainer.folder / "run" / "tracking.json").read_text())["id"]), 32)

    def test_a_full_disk_and_hooks(self):
        """Hooks log in all ranks; the main process writes what waited once there is room."""
        trainer = tracking.prepare(self, log_with=tracking.ALL, steps=40, checkpoint={"on_save_error": "continue"}, devices={"per_node": 2})
        ended = start(trainer.folder / "trainer", 2, cwd=trainer.folder, FULL_AT="1", ROOM_AT="30")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("cannot be written: File too large; the run continues", ended.stderr)
        expected = tracking.metrics(trainer.folder)
        self.assertEqual(sorted(expected), list(range(1, 41)))
        for tool, read in tracking.READERS.items():
            self.assertEqual(sorted(read(trainer.folder)), sorted(expected), tool)
        images = tracking.open_tensorboard(trainer.folder).Images("sample/image")
        self.assertEqual([event.step for event in images], list(range(4, 41, 4)))


if __name__ == "__main__":
    unittest.main()
