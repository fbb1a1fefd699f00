"""What a trainer draws on a terminal: lines that fit, a progress line where somebody looks, metrics in columns, what to type next."""

import json
import os
import re
import signal
import subprocess

import support
from pseudo_terminal import Terminal, broken, lines, plain, show


class Drawn(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()
        self.command = [support.program("fake_trainer"), "--data", "corpus.txt"]

    def show(self, *flags, columns=80, **how):
        status, text = show([*self.command, *flags], columns, cwd=self.folder, **how)
        self.assertEqual(status, 0, text)
        return text

    def long_run(self, columns=80, **how):
        """Steps until something is drawn that this test waits for: the run ends by a signal."""
        return Terminal([*self.command, "--steps", "1000000000"], columns, cwd=self.folder, FAKE_LOG_EVERY="500000000", FAKE_EVAL_EVERY="0",
                        **how)

    def stop(self, run):
        """Ends the trainer below setsid, which waits for it."""
        children = subprocess.run(["pgrep", "-P", str(run.process.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(children[0]) if children else run.process.pid, signal.SIGTERM)
        return run.end()[1]

    def test_lines_fit(self):
        folder = "runs/a_folder_whose_name_takes_a_good_part_of_a_line"
        for columns in (40, 80, 120):
            text = self.show("--project-dir", f"{folder}_{columns}", columns=columns, FAKE_SAVE_EVERY="5")
            if columns >= 80:  # figures are 74 columns wide
                self.assertEqual(broken(text, columns), [])
            self.assertIn(f"{folder}_{columns}/model.safetensors", text)
        self.assertEqual(broken(show([*self.command, "--help"])[1]), [])
        self.assertEqual(broken(show([*self.command, "--version"])[1]), [])
        status, text = show([*self.command, "--resume", "runs/no_such_checkpoint_of_a_run"], cwd=self.folder)
        self.assertEqual((status, broken(text)), (1, []))

    def test_progress(self):
        run = self.long_run(columns=120)  # numbers of a fast machine, and all parts of the line
        shown = run.read_until(rb"(\d+) of 1000000000, loss \d+\.\d{4}, [\d.]+ (?:s|min|h|d) left, epoch [\d.]+, [\d,]+ tok/s")
        self.assertIsNotNone(shown, run.drawn)
        run.resize(40)  # what is too much is left out
        self.assertIsNotNone(run.read_until(rb"\x1b\[K +\d+ of 1000000000, loss \d+\.\d{4}\r"), run.drawn)
        run.resize(80)
        text = self.stop(run)
        self.assertEqual(broken(text, 119), [])
        last = plain(text).split("\r")[-1].split("\n")
        self.assertRegex(" ".join(last), r"SIGTERM after step \d+: saved \S+; resume with +--resume auto")

    def test_progress_of_an_evaluation(self):
        run = Terminal([*self.command, "--steps", "10"], cwd=self.folder, FAKE_EVAL_ITERS="1000000000")
        self.assertIsNotNone(run.read_until(rb"\r\x1b\[Kevaluates: batch \d+ of 1000000000, [\d.]+ (?:min|h|d) left"), run.drawn)
        run.process.kill()
        self.assertEqual(broken(run.end()[1]), [])

    def test_no_progress(self):
        """No session's terminal, as mpirun gives one to each rank; one without a cursor to move; a pipe."""
        for how in ({"session": False}, {"kind": "dumb"}):
            text = self.show("--steps", "120000", FAKE_LOG_EVERY="40000", FAKE_EVAL_EVERY="0", **how)
            self.assertEqual((text.count("\r"), text.count("\x1b")), (0, 0), how)
            self.assertEqual(re.findall(r"^ +(\d+0000) ", text, re.M)[:3], ["40000", "80000", "120000"])
        run = Terminal([*self.command, "--steps", "40000"], cwd=self.folder, piped=["stdout"], FAKE_LOG_EVERY="40000",
                       FAKE_EVAL_EVERY="0")
        out = run.process.stdout.read()
        self.assertEqual((run.end()[1], out.count(b"\r"), out.count(b"\x1b")), ("", 0, 0))

    def test_mpirun(self):
        allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        status, text = show(["mpirun", "-n", "1", *self.command, "--steps", "40000"], cwd=self.folder, FAKE_LOG_EVERY="20000",
                            FAKE_EVAL_EVERY="0", **allowed)
        self.assertEqual((status, text.count("\x1b"), re.findall(r"^ +(\d+0000) ", text, re.M)[:2]), (0, 0, ["20000", "40000"]))

    def test_first_and_last_lines(self):
        text = self.show("--project-dir", "out")
        self.assertIn("writes to out; accel-gen watch out shows the run", text)
        last = text[text.index("finished"):]
        self.assertRegex(last, r"^finished  20 steps in \d+ s; out has metrics.jsonl and model.safetensors\n")
        self.assertIn("sample    accel-gen build JOB --program generate -o generator;", last)
        self.assertIn("--weights out", last)
        self.assertNotIn("resume ", last)  # there is no checkpoint
        self.assertIn("report    accel-gen report out -o report.html", last)
        text = self.show(FAKE_SAVE_EVERY="5")
        flags = re.search(r"^resume    \S+ (.*)$", text.replace(f"\n{' ' * 10}", " "), re.M)[1].split()
        self.assertEqual(flags, ["--resume", "auto", "--steps", "40"])
        self.assertIn("resumes from", self.show(*flags))

    def job_in_last_lines(self, *command, **environment):
        done = subprocess.run([*(command or self.command), *self.command[1:], "--steps", "1"], cwd=self.folder, capture_output=True, text=True,
                              check=True, env={**os.environ, **environment})
        return re.search(r"^sample    accel-gen build (.*) --program generate", done.stdout, re.M)[1]

    def test_path_of_the_job(self):
        """The name that the program has, where there is such a file; the path that accel-gen launch hands on, if it is of this name."""
        self.assertEqual(self.job_in_last_lines(), "JOB")
        self.assertEqual(self.job_in_last_lines(FAKE_JOB="fake.yaml"), "JOB")
        for folder in ("jobs", "with a blank"):
            (self.folder / folder).mkdir()
            (self.folder / folder / "fake.yaml").touch()
            (self.folder / folder / "trainer").symlink_to(self.command[0])
        self.assertEqual(self.job_in_last_lines("jobs/trainer", FAKE_JOB="fake.yaml"), "jobs/fake.yaml")
        self.assertEqual(self.job_in_last_lines("with a blank/trainer", FAKE_JOB="fake.yaml"), "JOB")
        self.assertEqual(self.job_in_last_lines("jobs/trainer"), "JOB")
        self.assertEqual(self.job_in_last_lines(FAKE_JOB="fake.yaml", ACCEL_JOB="./jobs/fake.yaml"), "./jobs/fake.yaml")
        self.assertEqual(self.job_in_last_lines(FAKE_JOB="fake.yaml", ACCEL_JOB="jobs/none/fake.yaml"), "JOB")
        self.assertEqual(self.job_in_last_lines(FAKE_JOB="other.yaml", ACCEL_JOB="jobs/fake.yaml"), "JOB")
        (self.folder / "fake.yaml").mkdir()
        self.assertEqual(self.job_in_last_lines(FAKE_JOB="fake.yaml"), "JOB")
        (self.folder / "fake.yaml").rmdir()
        (self.folder / "fake.yaml").touch()
        self.assertEqual(self.job_in_last_lines("jobs/trainer", FAKE_JOB="fake.yaml"), "fake.yaml")

    def test_quiet(self):
        self.assertEqual(self.show("--quiet", "--steps", "40000", FAKE_LOG_EVERY="40000", FAKE_EVAL_EVERY="0"), "")
        self.assertEqual(self.show("--quiet", FAKE_SAVE_EVERY="5", session=False), "")
        status, text = show([*self.command, "--quiet=yes"], cwd=self.folder)
        self.assertEqual((status, text), (2, "error: --quiet takes no value\n    help: --help lists the flags\n"))

    def test_json(self):
        """As in metrics.jsonl, line by line, with the run before and its end after."""
        done = self.train("--data", "corpus.txt", "--json", FAKE_SAVE_EVERY="5")
        said = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(said[0] | {"steps": 20, "project_dir": "runs/fake", "first_step": 0, "ranks": 1}, said[0])
        written = (self.folder / "runs/fake/metrics.jsonl").read_text().splitlines()
        figures = [line for line in done.stdout.decode().splitlines() if '"loss"' in line]
        self.assertEqual(figures, written)
        self.assertEqual([line["step"] for line in said if "saving" in line or "saved" in line][:3], [5, 10, 15])
        self.assertEqual(said[-1] | {"end": "finished", "step": 20, "weights": "runs/fake/model.safetensors"}, said[-1])


if __name__ == "__main__":
    support.main()
