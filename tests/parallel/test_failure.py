"""What ends one rank ends all of them, soon, with one message and a status that is not 0; a signal ends all after the
same step, with one checkpoint from which any number of ranks goes on."""

import json
import os
import signal
import subprocess
import time
import unittest

from ranks import MPI, Ranks, Running, job_of, relative, start


def errors(result):
    return [line for line in result.stderr.splitlines() if line.startswith("rank ") and "error" in line]


class Failure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = Ranks(3, job_of(3, 2, 100000, devices={"timeout": 4}, checkpoint={"every": 1000000}))
        cls.trainer.job["tracking"]["every"] = 50
        cls.trainer.write()
        cls.trainer.build()

    def setUp(self):
        subprocess.run(["rm", "-rf", self.trainer.folder / "run"], check=True)

    def test_other_number_of_processes(self):
        result = start(self.trainer.folder / "trainer", 2, cwd=self.trainer.folder)
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1)
        self.assertIn("2 processes started, but this program is for 3 ranks: devices.nodes times devices.per_node",
                      result.stderr)

    def test_one_is_killed(self):
        running = Running(self.trainer)
        os.kill(running.ranks[1][1], signal.SIGKILL)
        self.assertNotEqual(running.end().returncode, 0)

    def test_one_hangs(self):
        running = Running(self.trainer)
        os.kill(running.ranks[2][1], signal.SIGSTOP)
        begin = time.monotonic()
        result = running.end()
        self.assertNotEqual(result.returncode, 0)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn("another rank did not come within 4 s", result.stderr)

    def test_other_data(self):
        """A rank that finds another file, as on a machine of its own."""
        folder = self.trainer.folder
        other = bytearray((folder / "corpus.txt").read_bytes())
        other[77] ^= 1
        (folder / "other.txt").write_bytes(other)
        (folder / "start.sh").write_text('[ "$OMPI_COMM_WORLD_RANK" = 2 ] && set -- --data other.txt\nexec ./trainer "$@"\n')
        result = subprocess.run(["mpirun", "-n", "3", "sh", "start.sh"], cwd=folder, capture_output=True, text=True,
                                timeout=60, env={**os.environ, **MPI})
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(errors(result), ["rank 0: error: the training data of rank 2 is not that of rank 0"])

    def test_no_data(self):
        result = self.trainer.launch("--data", "nowhere.txt")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1, result.stderr)

    def test_signal(self):
        """One rank gets it; the checkpoint is whole, and one rank and two go on from it alike."""
        running = Running(self.trainer)
        os.kill(running.ranks[1][1], signal.SIGTERM)
        result = running.end()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("SIGTERM after step"), 1)
        folder = next((self.trainer.folder / "run").rglob("manifest.json")).parent
        done = json.loads((folder / "random_states_0.json").read_text())["step"]
        weights = []
        for ranks, batch in ((1, 6), (2, 3), (3, 2)):
            job = job_of(ranks, batch, done + 5)
            job["checkpoint"] = {"resume": str(folder)}
            trainer = Ranks(ranks, job)
            trainer.build()
            lines = trainer.run()
            self.assertEqual([line["step"] for line in lines], list(range(done + 1, done + 6)))
            weights.append(trainer.weights())
        for other in weights[1:]:
            for name, value in other.items():
                self.assertLess(relative(value, weights[0][name]), 1e-4, name)


class Loss(unittest.TestCase):
    def test_not_finite(self):
        """All ranks know; one tells."""
        job = job_of(2, 2, 20, model="mlp_table", config={"n_layer": 1, "width": 7, "n_classes": 3})
        job["data"] = {"train": {"path": "rows.csv", "format": "csv"}, "features": 2, "batch_size": 2, "eval_fraction": 0}
        job["optimizer"] = {"name": "sgd", "lr": 1e30, "weight_decay": 0}
        trainer = Ranks(2, job)
        (trainer.folder / "rows.csv").write_text("".join(f"{i % 4},{i % 3},{i % 3}\n" for i in range(9)))
        trainer.build()
        result = trainer.launch()
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1, result.stderr)
        self.assertRegex(result.stderr, "rank 0: error: step [1-9]: the (loss|gradient's norm) is")


if __name__ == "__main__":
    unittest.main()
