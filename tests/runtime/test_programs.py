"""A trainer and a generator as a person meets them: flags, lines, files, errors."""

import os
import re
import shutil
import struct
import subprocess
import time

import support


class Training(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()

    def test_lines_and_metrics(self):
        done = self.train("--data", "corpus.txt")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        lines = done.stdout.decode().splitlines()
        self.assertRegex(
            lines[0], r"^fake 1 layer, 304 parameters, float32, 1 rank x \d+ threads, job 012345, plan 0.0 MiB$"
        )
        self.assertEqual(lines[1], "corpus.txt: 20,000 tokens, 561 sequences to train on, 62 to evaluate")
        date = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        self.assertRegex(lines[2], rf"^starts at {date} on {re.escape(os.uname().nodename)}$")
        self.assertEqual(lines.pop(3), "writes to runs/fake; accel-gen watch runs/fake shows the run")
        self.assertRegex(lines[9], rf"^finished  20 steps in \d+ s, at {date}; runs/fake has metrics.jsonl and model.safetensors$")
        self.assertEqual(lines[3].split(), ["step", "loss", "eval", "lr", "norm", "tok/s", "ms", "left"])
        self.assertEqual([line.split()[0] for line in lines[4:8]], ["5", "10", "15", "20"])
        self.assertEqual(lines[8].split(), ["20", "saved", "runs/fake/model.safetensors"])
        metrics = self.metrics()
        self.assertEqual([line["step"] for line in metrics], [5, 10, 15, 20])
        self.assertEqual(["eval_loss" in line for line in metrics], [False, True, False, True])
        self.assertEqual(["start_to_first_step_s" in line for line in metrics], [True, False, False, False])
        for line in metrics:
            self.assertLessEqual({"step", "loss", "lr", "grad_norm", "tokens_per_s", "step_ms"}, set(line))
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])
        self.assertEqual(self.files(), ["corpus.txt", "runs/fake/metrics.jsonl", "runs/fake/model.safetensors", "runs/fake/run.json"])

    def test_threads_change_nothing(self):
        results = []
        for threads in (1, 3):
            self.train("--data", "corpus.txt", FAKE_THREADS=threads)
            results.append((self.folder / "runs/fake/model.safetensors").read_bytes())
        self.assertEqual(results[0], results[1])

    def test_cadences_change_nothing(self):
        results = []
        for cadences in ((1, 0, 3), (0, 7, 0), (5, 5, 5)):
            log, evaluate, save = cadences
            shutil.rmtree(self.folder / "runs", ignore_errors=True)
            done = self.train(
                "--data", "corpus.txt", FAKE_LOG_EVERY=log, FAKE_EVAL_EVERY=evaluate, FAKE_SAVE_EVERY=save
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            results.append((self.metrics()[-1]["loss"], (self.folder / "runs/fake/model.safetensors").read_bytes()))
        self.assertEqual(results[0], results[1])
        self.assertEqual(results[0], results[2])

    def test_steps_and_project_dir(self):
        done = self.train("--data=corpus.txt", "--steps", "7", "--project-dir", "a/b/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.metrics("a/b")[-1]["step"], 7)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_new_run_begins_its_metrics_anew(self):
        for _ in range(2):
            self.train("--data", "corpus.txt")
        self.assertEqual(len(self.metrics()), 4)

    def test_help_and_version(self):
        done = self.train("--help")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        for flag in (b"--data FILE", b"--project-dir DIR", b"--steps N", b"--version", b"--help"):
            self.assertIn(flag, done.stdout)
        done = self.train("--version")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"job 0123456789abcdef", done.stdout)
        self.assertIn(b"accel-gen 0.1.0", done.stdout)
        self.assertIn(b"304 parameters", done.stdout)
        self.assertEqual(self.files(), ["corpus.txt"])

    def test_wrong_flags(self):
        done = self.train("--step", "3")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(
            done.stderr,
            b"error: unknown flag '--step'; did you mean '--steps'?\n    help: --help lists the flags\n",
        )

    def test_a_loss_that_is_not_finite(self):
        done = self.train("--data", "corpus.txt", FAKE_NAN_AT=10)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"error: step 10: the loss is nan; nothing of this step is saved", done.stderr)
        self.assertEqual([line["step"] for line in self.metrics()], [5])
        self.assertEqual(self.files(), ["corpus.txt", "runs/fake/metrics.jsonl", "runs/fake/run.json"])

    def test_a_full_disk_leaves_the_old_weights(self):
        self.train("--data", "corpus.txt")
        old = (self.folder / "runs/fake/model.safetensors").read_bytes()
        program = support.program("fake_trainer")
        done = subprocess.run(
            ["sh", "-c", f"trap '' XFSZ; ulimit -f 2; exec {program} --data corpus.txt --steps 7"],
            cwd=self.folder,
            capture_output=True,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"model.safetensors: cannot be written: File too large", done.stderr)
        self.assertEqual((self.folder / "runs/fake/model.safetensors").read_bytes(), old)
        self.assertEqual(self.files(), ["corpus.txt", "runs/fake/metrics.jsonl", "runs/fake/model.safetensors", "runs/fake/run.json"])

    def test_a_full_disk_leaves_whole_lines(self):
        program = support.program("fake_trainer")
        done = subprocess.run(
            ["sh", "-c", f"ulimit -f 2; exec {program} --data corpus.txt --steps 50"],
            cwd=self.folder,
            env={**os.environ, "FAKE_LOG_EVERY": "1", "FAKE_EVAL_EVERY": "0"},
            capture_output=True,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"metrics.jsonl: cannot be written: ", done.stderr)
        lines = self.metrics()
        self.assertEqual([line["step"] for line in lines], list(range(1, len(lines) + 1)))
        self.assertEqual(self.files(), ["corpus.txt", "runs/fake/metrics.jsonl", "runs/fake/run.json"])

    def test_data_cut_while_training(self):
        process = subprocess.Popen(
            [support.program("fake_trainer"), "--data", "corpus.txt", "--steps", "100000000"],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        while not (self.folder / "runs/fake/metrics.jsonl").exists():
            time.sleep(0.01)
        os.truncate(self.folder / "corpus.txt", 0)
        _, error = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"became shorter while it was being read", error)


class BadData(support.Folder):
    """Every input that cannot be trained on: status 1, a message with a cure, no file written."""

    FORMATS = {"bytes": 0, "nanogpt": 1, "llmc": 2}

    def refuse(self, content, format, message, **environment):
        path = self.folder / "data"
        if content is not None:
            path.write_bytes(content)
        done = self.train("--data", "data", FAKE_FORMAT=self.FORMATS[format], **environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"error: {message}", done.stderr.decode())
        self.assertIn("\n    help: ", done.stderr.decode())
        self.assertEqual(done.stdout, b"")
        self.assertEqual(self.files(), [] if content is None else ["data"])

    def llmc(self, magic=20240520, version=1, count=5000, held=5000):
        return struct.pack("<256i", magic, version, count, *[0] * 253) + struct.pack(f"<{held}H", *[1] * held)

    def test_missing(self):
        self.refuse(None, "bytes", "data: cannot be opened: No such file or directory")

    def test_folder(self):
        (self.folder / "data").mkdir()
        done = self.train("--data", "data")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"data: cannot be read: not a regular file", done.stderr)

    def test_no_source(self):
        done = self.train()
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"no data to train on\n    help: name a file with --data FILE", done.stderr)

    def test_empty(self):
        for format in ("bytes", "nanogpt"):
            self.refuse(b"", format, "data: 0 sequences for train (of 32 tokens each) are too few: 4 needed")
        self.refuse(b"", "llmc", "data: 0 bytes are too few for llm.c's header of 1024")

    def test_less_than_a_batch(self):
        self.refuse(b"a" * 150, "bytes", "data: 3 sequences for train (of 32 tokens each) are too few: 4 needed")

    def test_less_than_a_window_to_evaluate(self):
        self.refuse(b"a" * 300, "bytes", "data: 0 sequences for eval (of 32 tokens each) are too few: 1 needed")

    def test_odd_bytes(self):
        self.refuse(b"a" * 5001, "nanogpt", "data: byte 5000: half a token at the end of a list of uint16")

    def test_token_out_of_vocabulary(self):
        tokens = struct.pack("<5000H", *[0] * 4000, 256, *[0] * 999)
        self.refuse(tokens, "nanogpt", "data: byte 8000: token 256 is not below the model's vocabulary of 256")
        self.refuse(b"a" * 5000 + b"z", "bytes", "data: byte 5000: token 122 is not below", FAKE_VOCABULARY=122)

    def test_llmc(self):
        self.refuse(self.llmc(magic=1), "llmc", "data: byte 0: magic 1 instead of llm.c's 20240520 or 20240801")
        self.refuse(self.llmc(version=7), "llmc", "data: byte 4: version 7 of llm.c's format; 1 is read")
        self.refuse(self.llmc(held=4999), "llmc", "data: byte 8: the header says 5000 tokens (10000 bytes), but 9998")
        self.refuse(self.llmc(count=4999), "llmc", "data: byte 8: the header says 4999 tokens (9998 bytes), but 10000")
        self.refuse(self.llmc()[:1000], "llmc", "data: 1000 bytes are too few for llm.c's header of 1024")
        self.refuse(self.llmc(), "nanogpt", "data: byte 0: this is llm.c's token format, read as nanoGPT's")

    def test_good_formats_train(self):
        for format, content in (("llmc", self.llmc()), ("nanogpt", self.llmc()[1024:])):
            (self.folder / "data").write_bytes(content)
            done = self.train("--data", "data", FAKE_FORMAT=self.FORMATS[format])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_missing_weights(self):
        self.write_corpus("data")
        done = self.train("--data", "data", FAKE_WEIGHTS="none.safetensors")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"none.safetensors: cannot be opened", done.stderr)
        self.assertEqual(self.files(), ["data"])

    def test_inputs_are_spared(self):
        """What a run would write over its data, or the weights that it starts from."""
        self.write_corpus("data")
        (self.folder / "runs/fake").mkdir(parents=True)
        for name in ("metrics.jsonl", "model.safetensors"):
            (self.folder / "runs/fake" / name).symlink_to(self.folder / "data")
            done = self.train("--data", "data")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"runs/fake/{name}: the run trains on this file, and would write over it", done.stderr.decode())
            (self.folder / "runs/fake" / name).unlink()
        self.assertEqual(self.train("--data", "data").returncode, 0)
        before = (self.folder / "runs/fake/model.safetensors").read_bytes()
        for weights in ("runs/fake/model.safetensors", "runs/../runs/fake"):
            done = self.train("--data", "data", "--steps", "3", FAKE_WEIGHTS=weights)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"runs/fake/model.safetensors: the run starts from this file, and would", done.stderr)
            self.assertEqual((self.folder / "runs/fake/model.safetensors").read_bytes(), before)
        done = self.train("--data", "data", "--project-dir", "runs/next", FAKE_WEIGHTS="runs/fake/model.safetensors")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_project_dir_that_cannot_be_made(self):
        self.write_corpus("data")
        done = self.train("--data", "data", "--project-dir", "data/runs")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"data: the folder cannot be made: Not a directory", done.stderr)


class Generation(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()
        self.assertEqual(self.train("--data", "corpus.txt", "--steps", "50").returncode, 0)

    def generate(self, *arguments, **environment):
        return self.run_program("fake_generator", *arguments, **environment)

    def test_text(self):
        done = self.generate("--prompt", "once", "--tokens", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(b"once"))
        self.assertEqual(len(done.stdout), 105)
        self.assertEqual(done.stdout, self.generate("--prompt", "once", "--tokens", "100").stdout)
        self.assertNotEqual(done.stdout, self.generate("--prompt", "once", "--tokens", "100", "--seed", "2").stdout)

    def test_logits_over_inputs(self):
        (self.folder / "prompt").write_text("once")
        before = (self.folder / "runs/fake/model.safetensors").read_bytes()
        for flags in ([], ["--weights", "runs/fake/model.safetensors"], ["--weights", "runs/fake"]):
            done = self.generate("--logits", "runs/../runs/fake/model.safetensors", *flags)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"model.safetensors: this file is read", done.stderr)
        done = self.generate("--logits", "prompt", "--prompt-file", "prompt")
        self.assertEqual(done.returncode, 1)
        self.assertEqual((self.folder / "prompt").read_text(), "once")
        self.assertEqual((self.folder / "runs/fake/model.safetensors").read_bytes(), before)
        self.assertEqual(self.generate("--logits", "logits", "--tokens", "2").returncode, 0)

    def test_greedy_and_top_1(self):
        greedy = self.generate("--temperature", "0", "--tokens", "20")
        self.assertEqual(greedy.stdout, b"\n" + b" " * 20 + b"\n")
        self.assertEqual(greedy.stdout, self.generate("--top-k", "1", "--tokens", "20").stdout)

    def test_control_characters_are_not_obeyed(self):
        done = self.generate("--prompt", "a\x1b[2J\x07\tb\n\x7fé", "--tokens", "0")
        self.assertEqual(done.stdout, "a?[2J?\tb\n?é\n".encode())

    def test_token_numbers(self):
        done = self.generate("--prompt", "5  99", "--tokens", "3", "--temperature", "0", FAKE_VOCABULARY=100)
        self.assertEqual(done.stdout, b"5 99 32 32 32 \n")
        for prompt in ("5 100", "-1", "5,6", "", " "):
            self.assertEqual(self.generate("--prompt", prompt, FAKE_VOCABULARY=100).returncode, 2)

    def test_wrong_use(self):
        self.assertEqual(self.generate("--tokens", "9223372036854775807").returncode, 2)
        self.assertEqual(self.generate("--prompt", "").returncode, 2)
        self.assertEqual(self.generate("--top-k", "x").returncode, 2)
        done = self.generate("--weights", "none")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"none: cannot be opened", done.stderr)


if __name__ == "__main__":
    support.main()
