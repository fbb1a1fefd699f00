"""The same inputs give the same program, byte for byte, wherever it is generated; and the same program on the same data
gives the same numbers, bit for bit, run after run, for any number of steps and with one thread or two."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
from harness import GENERATOR, Trainer
from matrix import ADAMW, BF16, CASES, COSINE, gpt, gru, mlp
from rotation import rotating

STEADY = {"deterministic": True}  # the bits of any number of threads
EXACT = ("step", "loss", "lr", "grad_norm", "eval_loss")


def generate(case, folder, **environment):
    """The program's text, generated in `folder` from copies of the inputs."""
    job = json.loads(json.dumps(case.job))
    source = pathlib.Path(job["model"]["source"])
    for file in [source, *source.parent.glob("*.h")]:
        shutil.copy(file, folder / file.name)
    job["model"]["source"] = source.name
    (folder / "job.yaml").write_text(json.dumps(job))
    result = subprocess.run([GENERATOR, "job.yaml", "-o", "-", "--program", case.program], cwd=folder, check=True,
                            stdout=subprocess.PIPE, env={**os.environ, **environment})
    return result.stdout


class Program(unittest.TestCase):
    def test_bytes(self):
        locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
        foreign = next((name for name in locales if name not in ("C", "POSIX", "C.utf8")), "C.utf8")
        environments = [
            {"LC_ALL": "C", "TZ": "UTC", "HOME": "/"},
            {"LC_ALL": foreign, "TZ": "Pacific/Chatham", "MALLOC_PERTURB_": "165", "USER": "somebody"},
        ]
        for case in CASES:
            texts = []
            for environment in environments:
                with tempfile.TemporaryDirectory(prefix="accel-" + environment["TZ"].replace("/", "-")) as folder:
                    texts.append(generate(case, pathlib.Path(folder), **environment))
                    self.assertNotIn(folder.encode(), texts[-1], f"{case.name}: a path of this machine")
            self.assertEqual(texts[0], texts[1], case.name)


class Everything(unittest.TestCase):
    """The program, its manifest, and what the manifest's own command makes of it: the same bytes in another folder, for
    another user, in another locale and time zone, on another number of processors."""

    def made(self, folder, one_processor=False, user=None, **environment):
        case = mlp("mlp", optimizer=ADAMW)
        source = pathlib.Path(case.job["model"]["source"])
        shutil.copy(source, folder)
        (folder / "job.yaml").write_text(json.dumps({**case.job, "model": {**case.job["model"], "source": source.name}}))
        folder.chmod(0o777)
        processors = {min(os.sched_getaffinity(0))} if one_processor else os.sched_getaffinity(0)
        settings = {"cwd": folder, "check": True, "user": user, "preexec_fn": lambda: os.sched_setaffinity(0, processors),
                    "env": {**os.environ, "PKG_CONFIG_PATH": str(GENERATOR.parent), **environment}}
        subprocess.run([GENERATOR, "job.yaml", "-o", "trainer.c", "--manifest"], **settings)
        command = json.loads((folder / "trainer.manifest.json").read_text())["compile"]
        subprocess.run(["sh", "-c", f"umask {'077' if one_processor else '022'}; {command}"], **settings)
        return [(folder / name).read_bytes() for name in ("trainer.c", "trainer.manifest.json", "trainer")]

    def another_user(self):
        """Somebody else's number, where this one may become him and he may use what is built."""
        if os.getuid() != 0:
            return None
        try:
            subprocess.run([GENERATOR, "version"], user=65534, check=True, capture_output=True)
            return 65534
        except (OSError, subprocess.CalledProcessError):
            return None

    def test_bytes(self):
        locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
        foreign = next((name for name in locales if name not in ("C", "POSIX", "C.utf8")), "C.utf8")
        user = self.another_user()
        print("another user:", user, "another locale:", foreign)
        with tempfile.TemporaryDirectory(prefix="accel-") as one, tempfile.TemporaryDirectory(prefix="accel else ") as other:
            first = self.made(pathlib.Path(one), LC_ALL="C", TZ="UTC", HOME="/")
            second = self.made(pathlib.Path(other), one_processor=True, user=user, LC_ALL=foreign, TZ="Pacific/Chatham",
                               USER="somebody", MALLOC_PERTURB_="165", SOURCE_DATE_EPOCH="1", CCACHE_DISABLE="1")
            for content in second:
                self.assertNotIn(other.encode(), content)
            self.assertEqual(first, second)


class Runs(unittest.TestCase):
    def prepare(self, case, steps=8):
        job = json.loads(json.dumps(case.job))
        job["training"]["steps"] = steps
        trainer = Trainer(job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        case.write_data(trainer.folder)
        trainer.build(cflags=None)
        return trainer

    def numbers(self, trainer, *flags, threads=2):
        """What a run leaves: the numbers of each step, and all weights."""
        shutil.rmtree(trainer.folder / "run", ignore_errors=True)
        metrics = trainer.run(*flags, OMP_NUM_THREADS=str(threads))
        weights = (trainer.folder / "run" / "model.safetensors").read_bytes()
        return [[row.get(key) for key in EXACT] for row in metrics], weights


class Numbers(Runs):
    def check(self, case):
        trainer = self.prepare(case)
        metrics, weights = self.numbers(trainer)
        self.assertTrue(np.isfinite([row[1] for row in metrics]).all())
        self.assertEqual((metrics, weights), self.numbers(trainer), "run to run")
        short, _ = self.numbers(trainer, "--steps", "5")
        if case.job.get("schedule", {}).get("name", "constant") == "constant":
            self.assertEqual(metrics[:5], short, "a prefix")
        else:  # the schedule is the job's, whatever --steps says
            self.assertEqual([row[:4] for row in metrics[:5]], [row[:4] for row in short], "a prefix")
        if not case.job["training"].get("deterministic"):
            return  # matmuls may differ in their last bits
        one_metrics, one_weights = self.numbers(trainer, threads=1)
        self.assertEqual(metrics, one_metrics, "one thread and two")
        self.assertEqual(weights, one_weights, "one thread and two")

    def test_gpt2(self):
        self.check(gpt("gpt2", optimizer=ADAMW, schedule=COSINE))

    def test_gpt2_wide(self):
        self.check(gpt("gpt2", config={"n_layer": 2, "n_head": 4, "n_embd": 128, "block_size": 64},
                       data={"batch_size": 8}, optimizer=ADAMW, training=STEADY))

    def test_nanogpt_dropout(self):
        self.check(gpt("nanogpt", "nanogpt", {"dropout": 0.2}, accumulation={"num_steps": 2}, training=STEADY))

    def test_mlp(self):
        self.check(mlp("mlp", optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9}, training=STEADY))

    def test_gru(self):
        self.check(gru("gru", optimizer=ADAMW, training=STEADY))

    def test_bf16(self):
        self.check(gpt("gpt2", config={"n_layer": 2, "n_embd": 48, "dropout": 0.1}, optimizer=ADAMW, precision=BF16, training=STEADY))


class Threads(Runs):
    """deterministic: true, on shapes whose matmuls oneDNN divides otherwise with more threads: one, two, three, and five."""

    def bits(self, deterministic):
        rng = np.random.default_rng(5)
        case = mlp("deterministic", data={"batch_size": 65, "features": 2048, "eval_fraction": 0},
                   training={"deterministic": deterministic}, optimizer={**ADAMW, "lr": 0.01})
        case.job["model"]["config"]["width"] = 384
        case.write_data = lambda folder: np.savetxt(
            folder / "rows.csv", np.hstack([rng.normal(size=(80, 2048)), rng.integers(0, 3, (80, 1))]), "%.3f", ",")
        trainer = self.prepare(case, steps=3)
        return [self.numbers(trainer, threads=threads) for threads in (1, 2, 3, 5, 2)]

    def test_deterministic(self):
        first, *others = self.bits(True)
        for numbers in others:
            self.assertEqual(first, numbers)

    def test_without_it(self):
        """Run after run the same, with the same number of threads; with others the sums may differ in their last bits."""
        one, two, *others, again = self.bits(False)
        self.assertEqual(two, again)
        print("differs with the number of threads:", one != two, [one != other for other in others])

    def test_transformer(self):
        self.check_transformer()

    def test_transformer_in_bf16(self):
        self.check_transformer(precision=BF16)

    def check_transformer(self, **groups):
        case = gpt("gpt2", config={"n_layer": 2, "n_head": 4, "n_embd": 128, "block_size": 64, "dropout": 0.1},
                   data={"batch_size": 8}, optimizer=ADAMW, training={"deterministic": True}, **groups)
        trainer = self.prepare(case, steps=3)
        first, *others = [self.numbers(trainer, threads=threads) for threads in (1, 2, 3)]
        for numbers in others:
            self.assertEqual(first, numbers)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
