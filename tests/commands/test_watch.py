"""accel-gen watch: what it shows of a run against its metrics.jsonl, while it grows, is replaced and ends; the terminal is given
back."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "runtime"))

import support  # noqa: E402
from pseudo_terminal import Terminal, plain  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
TAKEN, GIVEN_BACK = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
BLOCKS = " ▁▂▃▄▅▆▇█"


def frames(text):
    """The pictures that were drawn one after the other, as lines."""
    return [plain(frame).replace("\r", "").split("\n") for frame in text.split("\x1b[H")[1:]]


class Watch(support.Folder):
    def write(self, lines, record=None, tail=""):
        folder = self.folder / "run"
        folder.mkdir(exist_ok=True)
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
        if record is not None:
            (folder / "run.json").write_text(json.dumps(record))
        return folder

    def snapshot(self, *words, status=0, **environment):
        done = subprocess.run([GENERATOR, "watch", *words], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", **environment}, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def curve(self, text, label, columns=26):
        """The rows of a curve from the top, and what is right of its first and last."""
        lines = text.splitlines()
        last = next(i for i, line in enumerate(lines) if line.startswith(label))
        first = last
        while lines[first - 1].startswith(" " * 28):
            first -= 1
        return [line[28:28 + columns] for line in lines[first:last + 1]], lines[first][28 + columns:], lines[last][28 + columns:]

    def test_snapshot(self):
        """Heights in eighths of a row, of which the smallest number has one and the largest all."""
        losses = [4.0, 2.0, 1.0, 3.0, 2.5, 1.5, 1.0, 0.5, 0.75, 1.25, 2.25, 3.25, 3.75]
        lines = [{"step": i + 1, "loss": loss, "lr": 0.5, "step_ms": 10.0, "tokens_per_s": 1234567.0} for i, loss in enumerate(losses)]
        lines[3]["eval_loss"], lines[7]["eval_loss"], lines[7]["eval_accuracy"] = 2.0, 1.0, 0.25
        self.write(lines, {"steps": 20, "model": "tiny", "summary": "1 layer", "unit": "token", "units_per_step": 100})
        text = self.snapshot("run")
        rows, top, bottom = self.curve(text, "loss ")
        self.assertEqual((top.strip(), bottom.strip()), ("4.0000", "0.5000"))
        drawn = [sum(BLOCKS.index(row[2 * i]) for row in rows) for i in range(13)]
        wanted = [1 + round((loss - 0.5) / 3.5 * (8 * len(rows) - 1)) for loss in losses]
        self.assertEqual(drawn, wanted)
        self.assertEqual(text.splitlines()[:3], ["run: ended before its last step", "tiny 1 layer",
                                                 "[===============.........] step 13 of 20, 1,300 tokens"])
        self.assertRegex(text, r"(?m)^eval +1\.0000 .* 1\.0000 to 2\.0000$")
        self.assertRegex(text, r"(?m)^accuracy +0\.2500 ")
        self.assertRegex(text, r"(?m)^tok/s +1,234,567 ")
        self.assertTrue(self.snapshot("run", LC_ALL="C").isascii())
        self.assertEqual(self.snapshot("run/metrics.jsonl"), text)
        self.assertNotIn("\x1b", text)

    def test_states(self):
        self.assertIn("name the project folder", self.snapshot("none", status=1))
        (self.folder / "run").mkdir()
        self.assertIn("run: waits for the first line\n", self.snapshot("run"))
        self.write([{"step": 5, "loss": 1.0}], {"steps": 5}, tail='{"step": 6, "lo')
        self.assertIn("run: finished\n", self.snapshot("run"))
        self.write([{"step": 5, "loss": None}, {"step": 6, "loss": None}], {"steps": "x", "model": 3})
        self.assertIn("loss", self.snapshot("run"))
        self.write([{"step": 5, "loss": 1.0, "a\x1b[2J\u009b": 2.0}], {"steps": 9, "model": "m\x1b]0;title\x07"})
        text = self.snapshot("run")
        self.assertFalse(any(c in text for c in "\x1b\x07\u009b"), text)
        os.truncate(self.folder / "run" / "metrics.jsonl", 0)
        self.assertIn("run: ended before its last step\n", self.snapshot("run"))

    def watch(self, **how):
        return Terminal([GENERATOR, "watch", "run"], cwd=self.folder, LC_ALL="C.UTF-8", **how)

    def test_grows(self):
        """A line that is half there, the rest of it, a run that takes its place, its end; q gives the terminal back."""
        folder = self.write([{"step": 10, "loss": 3.0}], {"steps": 40, "began": 100})
        run = self.watch()
        self.assertIsNotNone(run.read_until(rb"step 10 of 40"))
        with (folder / "metrics.jsonl").open("a") as file:
            file.write('{"step": 20, "loss": 2.')
            file.flush()
            time.sleep(0.1)
            file.write('0}\n')
        self.assertIsNotNone(run.read_until(rb"step 20 of 40"))
        self.write([{"step": 7, "loss": 9.0}], {"steps": 7, "began": 200})
        self.assertIsNotNone(run.read_until(rb"(?s)run: another run began; finished.*step 7 of 7"))
        run.press(b"xq")
        status, text = run.end()
        self.assertEqual((status, text.count(TAKEN), text.endswith(GIVEN_BACK)), (0, 1, True), text[-100:])
        self.assertTrue(any("loss                 9.0000" in line for line in frames(text)[-1]))

    def test_resized(self):
        """Every picture fits into the terminal as it then was."""
        self.write([{"step": i, "loss": 1 / (1 + i), "lr": 0.1, "grad_norm": float(i)} for i in range(200)], {"steps": 200})
        run = self.watch(columns=120)
        self.assertIsNotNone(run.read_until(rb"norm[^\n]*\n"))
        drawn = len(run.drawn)
        run.resize(50, 10)
        while b"\x1b[H" not in run.drawn[drawn:] or not run.drawn.endswith(b"\x1b[J"):
            run.read()
        last = frames(run.drawn.decode())[-1]
        self.assertLessEqual((max(map(len, last)), len(last)), (50, 10))
        self.assertGreater(max(max(map(len, frame)) for frame in frames(run.drawn.decode())), 80)
        run.press(b"q")
        self.assertEqual(run.end()[0], 0)

    def test_signals(self):
        """Each ends it as it ends others, after the terminal was given back: its screen, its cursor, its keys."""
        self.write([{"step": 1, "loss": 1.0}])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = Terminal(["sh", "-c", f"stty -a >before; {GENERATOR} watch run; echo status $? >&2; stty -a >after"],
                           cwd=self.folder)
            self.assertIsNotNone(run.read_until(rb"\x1b\[J"))
            pid = int(subprocess.run(["pgrep", "-n", "-f", f"{GENERATOR} watch run$"], capture_output=True, text=True).stdout)
            os.kill(pid, number)
            text = run.end()[1]
            end = text[text.index(GIVEN_BACK) + len(GIVEN_BACK):]
            self.assertEqual((text.count(TAKEN), end.split("\n")[-2]), (1, f"status {128 + number}"), end)
            self.assertEqual((self.folder / "before").read_text(), (self.folder / "after").read_text())

    def test_live(self):
        """Of a trainer: it runs while it does, and then no more."""
        self.write_corpus()
        trainer = subprocess.Popen([support.program("fake_trainer"), "--data", "corpus.txt", "--steps", "1000000000", "--project-dir",
                                    "run"], cwd=self.folder, stdout=subprocess.DEVNULL, env={**os.environ, "FAKE_LOG_EVERY": "20000"})
        run = None
        try:
            while not (self.folder / "run" / "metrics.jsonl").exists():
                time.sleep(0.05)
            run = self.watch()
            self.assertIsNotNone(run.read_until(rb"run: runs, .* left, newest line \d+ s ago"), run.drawn)
            shown = run.read_until(rb"step ([\d,]+) of 1,000,000,000, [\d,]+ tokens")
            self.assertIsNotNone(shown)
        finally:
            trainer.terminate()
            trainer.wait()
        self.assertIsNotNone(run.read_until(rb"run: ended before its last step"))
        run.press(b"q")
        text = run.end()[1]
        last = json.loads((self.folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
        self.assertIn(f"step {last['step']:,} of", "\n".join(frames(text)[-1]))


if __name__ == "__main__":
    support.main()
