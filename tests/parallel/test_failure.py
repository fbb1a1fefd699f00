"""What ends one rank ends all of them, soon, with one message and a status that is not 0; a signal ends all after the
same step, with one checkpoint from which any number of ranks resumes."""
# long

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import unittest

from ranks import MPI, PATIENCE, TREE, Ranks, Running, errors, job_of, relative, start, wait_for

sys.path.insert(0, str(TREE / "tests" / "runtime"))

from support import preloaded  # noqa: E402

SEED = int(os.environ.get("SEED", "1"))
TIMEOUT = 20  # longer than a busy machine holds up a rank that starts or saves


def with_another(trainer, rank, words, *flags, running=False):
    """Ranks of which one does something else first, in the shell's words."""
    (trainer.folder / "start.sh").write_text(f'if [ "$OMPI_COMM_WORLD_RANK" = {rank} ]; then {words}; fi\nexec ./trainer "$@"\n')
    command = ["mpirun", "-n", str(trainer.ranks), "sh", "start.sh", *flags]
    environment = {**os.environ, **MPI}
    if running:
        return subprocess.Popen(command, cwd=trainer.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment)
    return subprocess.run(command, cwd=trainer.folder, capture_output=True, text=True, timeout=PATIENCE, env=environment)


class Failure(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = Ranks(3, job_of(3, 2, 100000, devices={"timeout": TIMEOUT}, checkpoint={"every": 1000000}))
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
        result = running.end()
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1, result.stderr)
        self.assertRegex(errors(result)[0], f"^rank [01]: error: .*another rank did not come within {TIMEOUT} s")

    def test_other_data(self):
        """A rank that finds another file, as on a machine of its own."""
        other = bytearray((self.trainer.folder / "corpus.txt").read_bytes())
        other[77] ^= 1
        (self.trainer.folder / "other.txt").write_bytes(other)
        result = with_another(self.trainer, 2, "set -- --data other.txt")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(errors(result), ["rank 0: error: the training data of rank 2 is not that of rank 0"])

    def other_program(self, change):
        """A rank with another file of the program."""
        path = self.trainer.folder / "trainer"
        (self.trainer.folder / "other").write_bytes(change(path.read_bytes()))
        (self.trainer.folder / "other").chmod(0o755)
        result = with_another(self.trainer, 1, "exec ./other")
        self.assertNotEqual(result.returncode, 0)
        return errors(result)

    def test_other_binary(self):
        self.assertEqual(self.other_program(lambda program: program + b"\0"),
                         ["rank 0: error: the program of rank 1 is not that of rank 0"])

    def test_other_job(self):
        text = subprocess.run([self.trainer.folder / "trainer", "--version"], capture_output=True, text=True).stdout
        digest = next(word for word in text.split() if len(word) == 64).encode()
        self.assertEqual(self.other_program(lambda program: program.replace(digest, digest[::-1])),
                         ["rank 0: error: the job of rank 1 is not that of rank 0"])

    def test_no_data(self):
        result = self.trainer.launch("--data", "nowhere.txt")
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1, result.stderr)

    def test_signal(self):
        """One rank gets it; the checkpoint is whole, and one rank and two resume from it alike."""
        running = Running(self.trainer)
        os.kill(running.ranks[1][1], signal.SIGTERM)
        result = running.end()
        self.assertEqual(result.returncode, 128 + signal.SIGTERM, result.stderr)
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


class Saves(unittest.TestCase):
    """A save that fails, or that a rank does not live through: all end, and what was saved before is whole. Rank 0, which
    saves, is given the faults of tests/runtime: every call that changes a file of the run may be the one that goes wrong."""

    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        cls.trainer = Ranks(2, job_of(2, 3, 24, devices={"timeout": TIMEOUT}, checkpoint={"every": 6}))
        cls.trainer.build()
        result = cls.faulty(FAULT_NAMES="calls")
        assert result.returncode == 0, result.stderr
        cls.wanted = cls.trainer.weights()
        cls.calls = (cls.trainer.folder / "calls").read_text().split()

    @classmethod
    def faulty(cls, running=False, **environment):
        shutil.rmtree(cls.trainer.folder / "run", ignore_errors=True)
        words = {"LD_PRELOAD": preloaded("faults"), "FAULT_PATH": "run/", **environment}
        return with_another(cls.trainer, 0, "export " + " ".join(f"{name}={value}" for name, value in words.items()),
                            running=running)

    def instants(self, count):
        """Calls from the first save on, which that may be without. The rename before it gives run.json its name."""
        first = self.calls.index("rename", self.calls.index("rename") + 1) + 1
        return sorted(self.random.sample(range(first + 1, len(self.calls)), count))

    def check_what_is_left(self, where):
        """The run resumes from what is whole, to the same bits."""
        whole = any((self.trainer.folder / "run" / "checkpoints").glob("checkpoint_?"))
        again = self.trainer.launch("--resume", "auto")
        self.assertEqual(again.returncode, 0, f"{where}: {again.stderr}")
        self.assertNotIn("is skipped", again.stderr, where)
        self.assertEqual("resumes from" in again.stdout, whole, where)
        for name, value in self.trainer.weights().items():
            self.assertEqual(value.tobytes(), self.wanted[name].tobytes(), f"{where}: {name}")

    def test_full_disk(self):
        for at in self.instants(3):
            where = f"call {at}, {self.calls[at - 1]} (SEED {SEED})"
            result = self.faulty(FAULT_AT=at, FAULT_UNTIL=10**6, FAULT_ERRNO=errno.ENOSPC)
            self.assertNotEqual(result.returncode, 0, where)
            self.assertEqual(len(errors(result)), 1, f"{where}: {result.stderr}")
            self.assertRegex(errors(result)[0], f"^rank 0: error: .*/run/.*: {os.strerror(errno.ENOSPC)}", where)
            self.check_what_is_left(where)

    def test_the_saving_rank_dies(self):
        for at in self.instants(3):
            where = f"call {at}, {self.calls[at - 1]} (SEED {SEED})"
            self.assertNotEqual(self.faulty(FAULT_AT=at, FAULT_ERRNO=-1).returncode, 0, where)
            self.check_what_is_left(where)

    def test_another_rank_dies_during_a_save(self):
        """While rank 0 waits at the end of its second save. Its position among all calls is another in each run, as steps are
        written down next to it."""
        mpirun = self.faulty(running=True, FAULT_CALL="rename", FAULT_AT=3, FAULT_ERRNO=-2)
        running = Running.of(mpirun)
        wait_for(lambda: list((self.trainer.folder / "run").rglob("*1.partial")), "the second save")
        os.kill(running.find()[1][1], signal.SIGKILL)
        self.assertNotEqual(running.end().returncode, 0)
        self.check_what_is_left("rename 3")


class Loss(unittest.TestCase):
    def test_one_rank_is_not_finite(self):
        """Rows that only rank 1 sees are beyond what its numbers hold: all end before the update, one reports, and the
        checkpoint before is what the run resumes from."""
        job = job_of(2, 2, 20, model="mlp_table", config={"n_layer": 1, "width": 7, "n_classes": 3},
                     devices={"timeout": TIMEOUT}, checkpoint={"every": 2})
        job["data"] = {"train": {"path": "rows.csv", "format": "csv"}, "features": 2, "batch_size": 2, "eval_fraction": 0,
                       "shuffle": False}
        trainer = Ranks(2, job)
        rows = [f"{i % 4},{i % 3},{i % 3}" for i in range(80)]
        rows[4 * 5 + 2:4 * 5 + 4] = ["3e38,3e38,1", "-3e38,-3e38,2"]  # of step 6, after rank 0's two
        (trainer.folder / "rows.csv").write_text("\n".join(rows) + "\n")
        trainer.build()
        result = trainer.launch()
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(errors(result)), 1, result.stderr)
        self.assertRegex(errors(result)[0], "rank 0: error: step 6: the (loss|gradient's norm) is")
        again = trainer.launch("--resume", "auto")
        self.assertIn("run/checkpoints/checkpoint_1, step 4", again.stdout)
        self.assertRegex(errors(again)[0], "rank 0: error: step 6: the (loss|gradient's norm) is")

    def test_not_finite(self):
        """All ranks know; one reports."""
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
