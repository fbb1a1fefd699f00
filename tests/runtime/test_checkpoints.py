"""Checkpoints of a trainer: kills at any instant, faults at every call that writes, damage to every file, changed jobs,
signals. The trainer is so small that a save is most of what it does. SEED=n repeats the instants of a run."""

import errno
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import support

sys.path.insert(0, str(support.ROOT / "tests" / "program"))
from rotation import rotating  # noqa: E402

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
TIMES = ("tokens_per_s", "step_ms", "input_wait_ms", "start_to_first_step_s", "weights_s", "save_stall_ms",
         "peak_memory_mib")


class Checkpoints(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()
        self.steps, self.environment = 20, {"FAKE_SAVE_EVERY": 4, "OMP_NUM_THREADS": 2, "FAKE_EVAL_EVERY": 0}

    def go(self, *arguments, **environment):
        return self.train("--data", "corpus.txt", "--steps", self.steps, *arguments,
                          **{**self.environment, **environment})

    def good(self, *arguments, **environment):
        done = self.go(*arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def result(self):
        """What must not depend on how often a run was stopped."""
        metrics = [{key: value for key, value in line.items() if key not in TIMES} for line in self.metrics()]
        return metrics, (self.folder / "runs/fake/model.safetensors").read_bytes()

    def unstopped(self, **environment):
        self.good(**environment)
        result = self.result()
        shutil.rmtree(self.folder / "runs")
        return result

    def checkpoints(self):
        return sorted(path.name for path in (self.folder / "runs/fake/checkpoints").iterdir())

    def test_layout(self):
        self.good()
        self.assertEqual(self.checkpoints(), [f"checkpoint_{i}" for i in range(5)])
        one = self.folder / "runs/fake/checkpoints/checkpoint_1"
        manifest = json.loads((one / "manifest.json").read_text())
        names = {"model.safetensors", "optimizer.safetensors", "scheduler.json", "sampler.json", "random_states_0.json",
                 "job.json"}
        self.assertEqual(set(manifest["files"]), names)
        self.assertEqual({path.name for path in one.iterdir()}, names | {"manifest.json"})
        self.assertEqual(manifest["step"], 8)
        self.assertEqual(json.loads((one / "sampler.json").read_text())["index"], 32)

    def test_every_step_continues_to_the_same_end(self):
        wanted = self.unstopped()
        for background in (0, 1):
            self.good(FAKE_BACKGROUND=background)
            for number in reversed(range(5)):
                self.good("--resume", f"runs/fake/checkpoints/checkpoint_{number}")
                self.assertEqual(self.result(), wanted)
            shutil.rmtree(self.folder / "runs")

    def test_names_and_limit(self):
        self.good(FAKE_TOTAL_LIMIT=2, FAKE_ITERATION=7)
        self.assertEqual(self.checkpoints(), ["checkpoint_10", "checkpoint_11"])
        shutil.rmtree(self.folder / "runs")
        self.good(FAKE_NAMING=0, FAKE_TOTAL_LIMIT=3)
        names = sorted(path.name for path in (self.folder / "runs/fake").iterdir() if path.is_dir())
        self.assertEqual(names, ["step_12", "step_16", "step_20"])
        self.good("--resume", "runs/fake/step_12", FAKE_NAMING=0)

    def test_links(self):
        """What was moved away and linked back keeps its content, whichever name of the run is the link; what is dropped is
        the link, and the run continues."""
        away, runs = self.folder / "away", self.folder / "runs/fake"
        self.good(FAKE_TOTAL_LIMIT=5)
        away.mkdir()
        for name in ("checkpoints/checkpoint_0", "checkpoints/checkpoint_1", "metrics.jsonl", "model.safetensors"):
            (runs / name).rename(away / name.split("/")[-1])
            (runs / name).symlink_to(away / name.split("/")[-1])
        (runs / "checkpoints/checkpoint_2/notes").mkdir()
        (runs / "checkpoints/checkpoint_2/notes/mine.txt").write_text("dropped with its checkpoint")
        for name in ("checkpoint_5.partial", "checkpoint_7.partial", "checkpoint_1.old.partial"):
            (runs / "checkpoints" / name).symlink_to(away / "checkpoint_0")
        for name in ("model.safetensors", "metrics.jsonl"):
            (runs / f"{name}.partial").symlink_to(away / name)
        before = {path: path.read_bytes() for path in away.rglob("*") if path.is_file() and path.name != "metrics.jsonl"}
        self.good("--resume", "runs/fake/checkpoints/checkpoint_1", FAKE_TOTAL_LIMIT=5)
        self.steps = 40
        self.good("--resume", "auto", FAKE_TOTAL_LIMIT=2)
        self.assertEqual(self.checkpoints(), ["checkpoint_11", "checkpoint_12"])
        self.assertEqual({path: path.read_bytes() for path in before}, before)
        lines = (away / "metrics.jsonl").read_bytes()
        self.assertEqual(self.metrics()[-1]["step"], 40)  # a run that resumes adds to the file that is linked
        shutil.rmtree(runs / "checkpoints")
        self.good(FAKE_TOTAL_LIMIT=2)
        self.assertEqual((away / "metrics.jsonl").read_bytes(), lines)

    def test_two_runs_in_one_folder(self):
        """The second one says who writes there and changes nothing; in another folder it runs; a killed run blocks no other."""
        self.steps = 100000000
        self.environment.update(FAKE_SAVE_EVERY=0, FAKE_LOG_EVERY=1000)
        process = self.start()
        self.wait_for_steps(process)
        done = self.go("--resume", "auto")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: runs/fake: another run writes here: process {process.pid} on {socket.gethostname()}\n"
                      "    help: wait for its end, or choose another folder with --project-dir\n", done.stderr.decode())
        self.steps = 20
        self.good("--project-dir", "runs/other")
        self.assertIsNone(process.poll())
        self.assertEqual([line["step"] for line in self.metrics()][:1], [1000])
        process.kill()
        process.communicate(timeout=300)
        self.good("--resume", "auto")
        self.assertNotIn("runs/fake/run.lock", self.files())

    def test_many_runs_at_once(self):
        """Each either trains or says that another does; what stands there then is that of a run."""
        wanted = self.unstopped()
        for _ in range(3):
            processes = [self.start("--resume", "auto", stderr=subprocess.PIPE) for _ in range(6)]
            ends = [(process.communicate(timeout=300)[1].decode(), process.returncode) for process in processes]
            self.assertIn(0, [status for _, status in ends])
            for error, status in ends:
                self.assertRegex(error, r"error: runs/fake: another run writes here" if status else "^$")
            self.assertEqual(self.result(), wanted)
            shutil.rmtree(self.folder / "runs")

    def test_lock_leaves_nothing(self):
        """A run that is refused, or fails before its first step, leaves no folder; where there are no locks, that is said."""
        self.write_corpus("tiny.txt", 3)
        for arguments in (("--resume", "runs/none"), ("--data", "tiny.txt")):
            self.assertEqual(self.go("--project-dir", "new/a/b", *arguments).returncode, 1)
            self.assertFalse((self.folder / "new").exists())
        self.good()
        self.assertNotIn("runs/fake/run.lock", self.files())
        for number in (errno.ENOLCK, errno.ENOSYS):
            done = self.faulty(1, number, "--resume", "auto", FAULT_CALL="fcntl")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"warning: runs/fake/run.lock: cannot be locked: {os.strerror(number)}".encode(), done.stderr)

    def test_shards(self):
        wanted = self.unstopped()
        self.good(FAKE_SHARD_BYTES=1024)
        one = self.folder / "runs/fake/checkpoints/checkpoint_1"
        index = json.loads((one / "model.safetensors.index.json").read_text())
        self.assertEqual(index["metadata"]["total_size"], 4 * 304)
        self.assertEqual(set(index["weight_map"].values()),
                         {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
        self.good("--resume", "runs/fake/checkpoints/checkpoint_1")
        self.assertEqual(self.result(), wanted)
        self.assertFalse((self.folder / "runs/fake/model.safetensors.index.json").exists())

    def test_resume_words(self):
        self.good("--resume", "auto")
        done = self.go("--resume", "never")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"runs/fake/checkpoints: holds the checkpoints of an earlier run", done.stderr)
        self.assertIn(b"--resume auto", done.stderr)
        done = self.good("--resume", "auto")
        self.assertIn(b"resumes from runs/fake/checkpoints/checkpoint_4, step 20\n", done.stdout)
        done = self.go("--resume", "runs/none")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"runs/none/manifest.json: cannot be opened", done.stderr)

    def test_changed_job(self):
        self.good()
        done = self.good("--resume", "auto", FAKE_LR="0.5")
        self.assertIn(b"step 20, with changes: optimizer.lr: 3.0 -> 0.5\n", done.stdout)
        done = self.go("--resume", "auto", FAKE_OPTIMIZER="adam", FAKE_LR="0.5")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the run cannot resume with these changes of the job: optimizer.name: sgd -> adam\n", done.stderr)

    def test_changed_data(self):
        """Files of other content are named, by their sizes or without; what was copied elsewhere is the same."""
        self.good()
        self.steps = 24
        corpus = self.folder / "corpus.txt"
        text = corpus.read_bytes()
        went_on = "resumes from runs/fake/checkpoints/checkpoint_4, step 20"
        for content, arguments, changes in ((text, [], ""),
                                            (text[:9999] + b"?" + text[10000:], [], ", with changes: corpus.txt: other content"),
                                            (text + b"more", [], ", with changes: corpus.txt: 20000 -> 20004 bytes"),
                                            (text, ["--data", "./corpus.txt"], ""),
                                            (text, ["--data", "other.txt"], ", with changes: other.txt: not read before")):
            corpus.write_bytes(content)
            (self.folder / "other.txt").write_bytes(text[::-1])
            done = self.good("--resume", "runs/fake/checkpoints/checkpoint_4", *arguments)
            self.assertIn(f"{went_on}{changes}\n", done.stdout.decode())
        done = self.good("--resume", "runs/fake/checkpoints/checkpoint_4", "--data", "corpus.txt", FAKE_LR="0.5")
        self.assertIn(f"{went_on}, with changes: optimizer.lr: 3.0 -> 0.5\n", done.stdout.decode())

    def test_changed_data_of_a_large_file(self):
        """Of which pieces are read: bytes that have moved and the last one are seen, one between the pieces is not."""
        size = 24 << 20
        whole = random.Random(7).randbytes(size)
        (self.folder / "corpus.txt").write_bytes(whole)
        self.good()
        for content, seen in ((whole, False), (whole[:-1] + bytes([whole[-1] ^ 1]), True), (whole[1:] + whole[:1], True),
                              (whole[:70000] + bytes([whole[70000] ^ 1]) + whole[70001:], False)):
            (self.folder / "corpus.txt").write_bytes(content)
            done = self.good("--resume", "auto")
            self.assertEqual(b"corpus.txt: other content" in done.stdout, seen, done.stdout)

    def test_minutes(self):
        """Saved by the clock, between lines: the lines are those of a run that was never saved, and any of the checkpoints
        leads to the same end."""
        self.steps = 200000
        self.environment.update(FAKE_SAVE_EVERY=0, FAKE_LOG_EVERY=100000)
        wanted = self.unstopped()
        done = self.good(FAKE_SAVE_MINUTES=0.004)
        steps = [int(line.split()[0]) for line in done.stdout.decode().splitlines() if " saving runs/fake/checkpoints/" in line]
        self.assertGreater(len(steps), 1)
        self.assertEqual(len(set(steps)), len(steps))
        self.assertEqual(len(self.checkpoints()), len(steps) + 1)  # and one at the end
        self.assertEqual(self.result(), wanted)
        self.good("--resume", "runs/fake/checkpoints/checkpoint_0", FAKE_SAVE_MINUTES=1)
        self.assertEqual(self.result(), wanted)

    def test_minutes_and_steps(self):
        """What is over first: the clock counts from zero from a save on that the steps made."""
        self.steps = 40
        self.good(FAKE_SAVE_EVERY=10, FAKE_SAVE_MINUTES=60)
        self.assertEqual(len(self.checkpoints()), 4)

    def test_signals(self):
        wanted_steps = self.steps = 200000
        self.environment.update(FAKE_SAVE_EVERY=0, FAKE_LOG_EVERY=1000)
        wanted = self.unstopped()
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT):
            status, output = self.signalled(number)
            self.assertEqual(status, 128 + number)
            name = signal.Signals(number).name
            self.assertRegex(output, rf"{name} after step \d+: saved runs/fake/checkpoints/checkpoint_\d; resume with --resume auto")
            self.assertFalse((self.folder / "runs/fake/model.safetensors").exists())
        self.assertEqual(self.steps, wanted_steps)
        self.good("--resume", "auto")
        self.assertEqual(self.result(), wanted)

    def signalled(self, number):
        """Status and output of a run that gets the signal on its way; one that has ended before is started from scratch."""
        for _ in range(10):
            process = self.start("--resume", "auto")
            self.wait_for_steps(process)
            process.send_signal(number)
            output = process.communicate(timeout=300)[0].decode()
            if process.returncode != 0:
                break
            shutil.rmtree(self.folder / "runs")
        return process.returncode, output

    def start(self, *arguments, **streams):
        variables = {key: str(value) for key, value in self.environment.items()}
        return subprocess.Popen([support.program("fake_trainer"), "--data", "corpus.txt", "--steps", str(self.steps),
                                 *arguments], cwd=self.folder, env={**os.environ, **variables}, stdout=subprocess.PIPE,
                                **streams)

    def wait_for_steps(self, process):
        path = self.folder / "runs/fake/metrics.jsonl"
        before = path.stat().st_size if path.exists() else 0
        while process.poll() is None and not (path.exists() and path.stat().st_size > before):
            time.sleep(0.001)

    def test_signal_that_only_ends(self):
        self.steps = 100000000
        self.environment.update(FAKE_ON_SIGNAL=0, FAKE_SAVE_EVERY=0)
        process = self.start()
        self.wait_for_steps(process)
        process.terminate()
        process.communicate(timeout=300)
        self.assertEqual(process.returncode, -signal.SIGTERM)

    def test_kills(self):
        """Killed at random instants, KILLS (60) times: each time it resumes, and the end is the same."""
        pick = random.Random(SEED)
        print(f"seed {SEED}", file=sys.stderr)
        self.steps = 100
        self.environment.update(FAKE_SAVE_EVERY=1, FAKE_TOTAL_LIMIT=2)
        wanted = self.unstopped()
        killed = saving = 0
        for _ in range(int(os.environ.get("KILLS", 60))):
            process = self.start("--resume", "auto")
            try:
                process.communicate(timeout=pick.uniform(0.005, 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
            if process.returncode == 0:
                self.assertEqual(self.result(), wanted)
                shutil.rmtree(self.folder / "runs")
            else:
                killed += 1
                saving += any((self.folder / "runs").rglob("*.partial"))
        print(f"{killed} were killed, {saving} of them within a save", file=sys.stderr)
        self.good("--resume", "auto")
        self.assertEqual(self.result(), wanted)
        self.assertEqual(len(self.checkpoints()), 2)

    def faulty(self, at, number, *arguments, until=None, **environment):
        return self.go(*arguments, LD_PRELOAD=support.preloaded("faults"), FAULT_AT=at, FAULT_UNTIL=until or at,
                       FAULT_ERRNO=number, FAULT_NAMES=self.folder / "calls", **environment)

    def calls(self, **environment):
        """The names of all calls that change files, in the order of a run that none of them fails."""
        self.assertEqual(self.faulty(-1, 0, **environment).returncode, 0)
        shutil.rmtree(self.folder / "runs")
        return (self.folder / "calls").read_text().split()

    def check_what_is_left(self, wanted, message):
        again = self.good("--resume", "auto")
        self.assertNotIn(b"is skipped", again.stderr, message)
        self.assertEqual(self.result(), wanted, message)
        shutil.rmtree(self.folder / "runs")

    def test_faults(self):
        """Every call that changes files fails in turn: the run ends with an error that says so, and resumes from what is
        whole. FAULTS=all: in every way, with the save in the background and not."""
        self.steps = 8
        self.environment.update(FAKE_SAVE_EVERY=2, FAKE_TOTAL_LIMIT=2)
        wanted = self.unstopped()
        calls = self.calls()
        self.assertGreater(len(calls), 100)
        self.assertLessEqual({"open", "write", "close", "fsync", "rename", "ftruncate", "unlink", "unlinkat", "mkdir",
                              "fcntl"},
                             set(calls))
        ways = [(number, background) for number in (errno.ENOSPC, errno.EIO, errno.EACCES, 0) for background in (0, 1)]
        for at, name in enumerate(calls, 1):
            for number, background in ways if os.environ.get("FAULTS") == "all" else [ways[at % len(ways)]]:
                message = f"call {at}, {name}, fails with {number}, background {background}"
                done = self.faulty(at, number, FAKE_BACKGROUND=background)
                if done.returncode != 0:
                    self.assertEqual(done.returncode, 1, message)
                    self.assertIn(os.strerror(number).encode(), done.stderr, message)
                    self.assertIn(b"error: runs", done.stderr, message)
                self.check_what_is_left(wanted, message)

    def test_kills_at_every_call(self):
        """The process dies before each of these calls in turn; as a rule, before every third one."""
        self.steps = 6
        self.environment.update(FAKE_SAVE_EVERY=2, FAKE_TOTAL_LIMIT=2)
        wanted = self.unstopped()
        calls = list(enumerate(self.calls(FAKE_BACKGROUND=0), 1))
        for at, name in calls if os.environ.get("FAULTS") == "all" else calls[SEED % 3::3]:
            self.assertEqual(self.faulty(at, -1, FAKE_BACKGROUND=0).returncode, -signal.SIGKILL)
            self.check_what_is_left(wanted, f"killed before call {at}, {name}")

    def test_faults_that_are_outlived(self):
        """A folder that is away for a while (a full disk, a network that is down, a right that is taken): the run continues,
        says what failed, and when it is back all lines are there, and a whole checkpoint."""
        self.environment.update(FAKE_OUTLIVES=1, FAKE_SAVE_EVERY=2, FAKE_LOG_EVERY=1)
        wanted = self.unstopped()
        count = len(self.calls())
        for number in (errno.ENOSPC, errno.ESTALE, errno.EACCES, errno.EROFS):
            done = self.faulty(count // 4, number, until=count // 4 + 25)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr.decode(), rf"warning: runs/fake\S*: .*{os.strerror(number)}; the run continues")
            self.assertEqual(self.result(), wanted)
            self.good("--resume", "auto", FAKE_STEPS=30)
            shutil.rmtree(self.folder / "runs")

    def test_a_fault_that_stays(self):
        """To the end: the run trains to its end, but what it could not leave there is reported by its status."""
        for outlives in (0, 1):
            done = self.faulty(60, errno.ENOSPC, until=1 << 30, FAKE_OUTLIVES=outlives)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"No space left on device", done.stderr)
            self.assertEqual("20" in [line.split()[0] for line in done.stdout.decode().splitlines()], bool(outlives))
            self.assertNotIn(b"model.safetensors", done.stdout)
            self.good("--resume", "auto")
            shutil.rmtree(self.folder / "runs")

    def test_a_full_file_system(self):
        """A real one, of 112 KB."""
        mount = "mount -t tmpfs -o size=112k none runs"
        (self.folder / "runs").mkdir()
        if subprocess.run(["unshare", "-m", "sh", "-c", mount], cwd=self.folder, capture_output=True).returncode != 0:
            self.skipTest("no right to mount a file system")
        variables = {**os.environ, **{key: str(value) for key, value in self.environment.items()}, "FAKE_SAVE_EVERY": "1"}
        command = [support.program("fake_trainer"), "--data", "corpus.txt", "--steps", "20", "--resume", "auto"]
        for outlives in (0, 1):
            script = f"{mount}; \"$@\"; echo status $?; ls runs/fake/checkpoints; unset FAKE_SAVE_EVERY; rm -r $(ls -d " \
                     "runs/fake/checkpoints/* | head -1); \"$@\" --steps 21; echo status $?"
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *command], cwd=self.folder, capture_output=True,
                                  text=True, env={**variables, "FAKE_OUTLIVES": str(outlives)})
            self.assertRegex(done.stderr, r"runs/fake/checkpoints/checkpoint_\d+\.partial/\S+: cannot be (written|created|synced)"
                                          r": No space left on device")
            self.assertEqual(done.stdout.count("status 1"), 1 - outlives, done.stdout + done.stderr)
            self.assertNotIn(".partial\n", done.stdout)
            self.assertNotIn("is skipped", done.stderr)
            self.assertRegex(done.stdout, r"resumes from runs/fake/checkpoints/checkpoint_\d+, step \d+\n")

    def damage(self, path, pick):
        """Changes a file in some way; returns what was done."""
        content = bytearray(path.read_bytes())
        how = pick.choice(["flip", "cut", "longer", "gone", "empty"])
        if how == "flip":
            content[pick.randrange(len(content))] ^= 1 << pick.randrange(8)
        content = {"cut": content[:-1], "longer": content + b"x", "empty": b""}.get(how, content)
        path.unlink() if how == "gone" else path.write_bytes(content)
        return how

    def test_damage(self):
        pick = random.Random(SEED)
        self.good()
        folder = self.folder / "runs/fake/checkpoints/checkpoint_4"
        whole = self.folder / "whole"
        shutil.copytree(folder, whole)
        for path in sorted(whole.iterdir()):
            for _ in range(3):
                shutil.rmtree(folder)
                shutil.copytree(whole, folder)
                how = self.damage(folder / path.name, pick)
                done = self.go("--resume", "runs/fake/checkpoints/checkpoint_4")
                self.assertEqual(done.returncode, 1, (path.name, how))
                self.assertIn(f"checkpoint_4/{path.name}: ".encode(), done.stderr)
        done = self.good("--resume", "auto")
        self.assertIn(b"it is skipped", done.stderr)
        self.assertIn(b"resumes from runs/fake/checkpoints/checkpoint_3, step 16", done.stdout)

    def test_metrics_of_a_longer_past(self):
        """The lines after the checkpoint's step are cut, and so is half a line."""
        self.good()
        with open(self.folder / "runs/fake/metrics.jsonl", "a") as file:
            file.write('{"step": 25, "loss": 1}\n{"step": 3')
        self.good("--resume", "runs/fake/checkpoints/checkpoint_1")
        self.assertEqual([line["step"] for line in self.metrics()], [4, 5, 8, 10, 12, 15, 16, 20])


load_tests = rotating(2)


if __name__ == "__main__":
    support.main()
