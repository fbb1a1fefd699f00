"""What commands draw on a terminal: lines that fit, between words; progress where somebody looks; colours by NO_COLOR."""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from safetensors.numpy import save_file

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "runtime"))

import support  # noqa: E402
from pseudo_terminal import broken, lines, plain, show  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
JOB = """model:
  source: nanogpt.c
  config: {n_layer: 2, n_head: 2, n_embd: 32, vocab_size: 256, block_size: 32}
data:
  train: {path: corpus.txt, format: bytes}
  batch_size: 4
training: {steps: 20}
"""
WRONG = """model: {source: nanogpt.c, config: {n_layer: 2, n_head: 2, n_embd: 32, vocab_size: 256, block_size: 32}, surce: 1}
optimizer: {name: adamv}
"""


class Commands(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()
        shutil.copy(TREE / "examples" / "models" / "nanogpt.c", self.folder)
        (self.folder / "job.yaml").write_text(JOB)
        (self.folder / "wrong.yaml").write_text(WRONG)
        self.train("--data", "corpus.txt", FAKE_SAVE_EVERY="10", FAKE_SHARD_BYTES="1024")

    def show(self, *words, columns=80, **how):
        return show([GENERATOR, *words], columns, cwd=self.folder, **how)

    def test_lines_fit(self):
        """Each command's, also those of what it refuses. What a program reads (JSON, YAML, C) is as it is."""
        first, second = "runs/fake/checkpoints/checkpoint_0", "runs/fake/checkpoints/checkpoint_1"
        commands = [
            "help", "help data", "help launch", "help optimizer.name", "help elsewhere", "version", "env", "nonsense", "plan job.yaml",
            "plan -v job.yaml --nodes 4", "plan job.yaml --dump help", "plan wrong.yaml", "plan none.yaml", "check wrong.yaml",
            "check job.yaml", "model check nanogpt.c", "model check nanogpt.c --config n_layer=2", "estimate job.yaml",
            "init --model gpt2 --data corpus.txt -o made.yaml --default", "job.yaml -o trainer.c --manifest", "diff job.yaml made.yaml",
            "audit trainer.c", "audit --regenerate trainer.manifest.json", "audit --grammar", "explain trainer.c:20",
            "explain --key optimizer.lr trainer.c", "data corpus.txt nanogpt.c -o corpus.tok", "data inspect corpus.tok",
            "data corpus.txt -o corpus.txt", "data none.jsonl --text-field a_field_of_a_long_name --label x -o rows.npz",
            "import wrong.yaml", "config --default", "launch --print job.yaml ./trainer", "checkpoint list runs/fake",
            f"checkpoint show {first}", f"checkpoint verify {first}", f"checkpoint diff {first} {second}",
            f"checkpoint merge {first} -o merged.safetensors", "checkpoint list none", "export runs/fake --format gguf -o model.gguf",
        ]
        wide = {}
        for command in commands:
            text = self.show(*command.split())[1]
            self.assertTrue(text or command == "check job.yaml" or "-o" in command, command)
            wide[command] = broken(text)
        self.assertEqual({command: found for command, found in wide.items() if found}, {})

    def test_words_stay(self):
        """A narrow terminal breaks between words, and leaves none out; elsewhere a line stays one."""
        for command in ("plan job.yaml", "estimate job.yaml", "plan wrong.yaml", "checkpoint list none"):
            done = subprocess.run([GENERATOR, *command.split()], cwd=self.folder, capture_output=True, text=True)
            piped = done.stdout + done.stderr
            shown = plain(self.show(*command.split(), columns=44)[1])
            if "wrong" not in command:  # whose excerpts show a part of a line
                self.assertEqual(shown.split(), piped.split(), command)
            self.assertGreater(len(shown.splitlines()), len(piped.splitlines()), command)

    def test_excerpt(self):
        """Of a line that is too long, the part with what is meant, which the mark is below."""
        shown = plain(self.show("check", "wrong.yaml", columns=60)[1]).splitlines()
        mark = next(i for i, line in enumerate(shown) if "^~" in line)
        at = shown[mark].index("^")
        self.assertEqual(shown[mark - 1][at:at + len("surce")], "surce")
        self.assertEqual(shown[mark].count("~"), len("surce") - 1)

    def test_command_line(self):
        """A shell joins the lines of what is to be typed again."""
        command = [GENERATOR, "launch", "--print", "job.yaml", "./trainer", *(f"--a-flag-of-some-length-{i}" for i in range(9))]
        whole = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True).stdout
        status, shown = show(command, 60, cwd=self.folder)
        self.assertEqual((status, broken(shown, 60)), (0, []))
        self.assertGreater(len(shown.splitlines()), 3)
        read = ["sh", "-c", f"printf '%s\\n' {shown}"]
        self.assertEqual(subprocess.run(read, capture_output=True, text=True, check=True).stdout.split(), whole.split())

    def test_colours(self):
        coloured = self.show("check", "wrong.yaml")[1]
        self.assertIn("\x1b[1;31m", coloured)
        self.assertNotIn("\x1b", self.show("check", "wrong.yaml", NO_COLOR="1")[1])
        self.assertIn("\x1b[1;31m", self.show("check", "wrong.yaml", NO_COLOR="")[1])
        piped = subprocess.run([GENERATOR, "check", "wrong.yaml"], cwd=self.folder, capture_output=True)
        self.assertNotIn(b"\x1b", piped.stderr)

    def slow_compiler(self):
        """A compiler that takes its time, and warns."""
        path = self.folder / "slow"
        path.write_text("#!/bin/sh\nsleep 1.6\necho 'slow: a warning' >&2\nexec cc -O0 \"$@\"\n")
        path.chmod(0o755)
        return {"CC": str(path), "CFLAGS": "-std=c17 -O0 -march=native"}

    def test_progress_of_a_build(self):
        slow = self.slow_compiler()
        status, text = self.show("build", "job.yaml", "-o", "trainer", **slow)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"\r\x1b\[Kcompiles trainer, \d s\r\x1b\[Kslow: a warning\n")
        self.assertEqual(self.show("build", "job.yaml", "-o", "trainer", "--quiet", **slow), (0, "slow: a warning\n"))
        self.assertEqual(self.show("build", "job.yaml", "-o", "trainer", kind="dumb", **slow), (0, "slow: a warning\n"))

    def test_progress_of_a_merge(self):
        """And none where it takes no time, nobody looks, or it is to be quiet."""
        (self.folder / "big").mkdir()
        rows = {f"part{i}": np.zeros((24, 1 << 20), np.float32) for i in range(4)}
        for name, rows_of in rows.items():
            save_file({name: rows_of}, self.folder / "big" / f"{name}.safetensors")
        index = {"metadata": {}, "weight_map": {name: f"{name}.safetensors" for name in rows}}
        (self.folder / "big" / "model.safetensors.index.json").write_text(json.dumps(index))
        merge = ["checkpoint", "merge", "big", "-o", "all.safetensors"]
        status, text = self.show(*merge)
        self.assertEqual((status, broken(text)), (0, []), text)
        self.assertRegex(text, r"\r\x1b\[Kmerges \[[=.]{20}\] \d+\.\d of 402\.7 MB, \d+\.\d MB/s, \d+ s left")
        self.assertRegex(text, r"\r\x1b\[Kall.safetensors: 4 tensors of 4 files\n$")
        self.assertEqual(self.show(*merge, "--quiet"), (0, ""))

    def test_progress_of_verifying(self):
        """By a clock that is fast, so that a small checkpoint takes long."""
        one = "runs/fake/checkpoints/checkpoint_0"
        hurried = {"LD_PRELOAD": str(support.preloaded("fast_clock"))}
        for words, what in (("verify", "verifies"), ("show", "verifies"), ("diff", "compares")):
            command = ["checkpoint", words, one, *([one] if words == "diff" else [])]
            status, text = self.show(*command, **hurried)
            self.assertEqual((status, broken(text)), (0, []), text)
            self.assertRegex(text, r"\r\x1b\[K" + what + r" \[[=.]{20}\] \d+\.\d of \d+\.\d MB, \d+\.\d MB/s")
            quiet = self.show(*command, "--quiet", **hurried)[1]
            self.assertEqual((text.split("\r\x1b[K")[-1], quiet.count("\x1b")), (self.show(*command, kind="dumb")[1], 0))

    def test_quiet(self):
        self.assertEqual(self.show("data", "corpus.txt", "-o", "a.tok", "-q"), (0, ""))
        self.assertEqual(self.show("checkpoint", "verify", "runs/fake/checkpoints/checkpoint_0", "-q"), (0, ""))
        self.assertEqual(self.show("init", "--model", "gpt2", "--data", "corpus.txt", "-o", "a.yaml", "--default", "-q"), (0, ""))
        status, text = self.show("checkpoint", "verify", "none", "-q")
        self.assertEqual((status, len(lines(text)) > 0), (1, True))


if __name__ == "__main__":
    support.main()
