"""What the host of a CUDA program does in a step, by the calls that it makes over the stand-ins: nothing waits for the
device, nothing is made or given back, and whether a step's gradients were finite is no business of the host's."""

import collections
import re
import subprocess
import unittest

from host import GENERATOR, HostTrainer, objects
from test_training import MODELS, TEXT, write_data

GPT = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
# Calls that the host waits in, or that take or give memory, streams, handles.
SLOW = re.compile(r"Synchronize$|Create|Destroy|Malloc|Alloc|Free|cudaMemcpy$|GetHeuristic|Instantiate|Capture")


def job(**groups):
    return {"model": {"source": str(MODELS / "gpt2.c"), "config": GPT},
            "data": {**TEXT, "batch_size": 1, "sequence_length": 8}, "optimizer": {"name": "adamw", "lr": 1e-3, "clip_grad_norm": 1.0},
            "training": {"steps": 30, "seed": 3}, **groups}


def calls(trainer, steps):
    trace = trainer.folder / "trace"
    trace.unlink(missing_ok=True)
    trainer.rows = trainer.run("--steps", str(steps), STANDIN_TRACE=str(trace))
    return collections.Counter(line.split()[0] for line in trace.read_text().splitlines())


def of_a_step(trainer, few=10, many=30):
    """Calls of one step, as far as each step makes them: from the difference of two runs."""
    before, after = calls(trainer, few), calls(trainer, many)
    return {name: (after[name] - before[name]) / (many - few) for name in after if after[name] != before[name]}


class Host(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        parts, cls.made = objects(), {}
        scaler = {"mixed_precision": "fp16", "grad_scaler": {"init_scale": 1e12, "growth_interval": 4}}
        for name, precision in (("plain", {}), ("scaled", scaler)):
            trainer = HostTrainer(job(precision=precision, devices={"attention": "own"}), parts)
            write_data(trainer.folder, 1)
            trainer.build()
            cls.made[name] = (of_a_step(trainer), trainer.rows)
        cls.trainer = trainer

    def test_no_driver(self):
        """That there is no driver is said before anything of the data, which may be where the GPU is."""
        for flags in ([], ["--data", "nowhere"]):
            with self.assertRaisesRegex(AssertionError, "error: no NVIDIA driver on this machine"):
                self.trainer.run(*flags, STANDIN_DRIVER="0")

    def test_a_step(self):
        """A launch, a copy of the batch to its ring and from there, a report, and the events between them."""
        step, _ = self.made["plain"]
        self.assertEqual(step["cudaGraphLaunch"], 1)
        self.assertLessEqual(sum(step.values()), 16, step)
        slow = {name: times for name, times in step.items() if SLOW.search(name)}
        self.assertLessEqual(set(slow), {"cudaEventSynchronize"}, slow)  # of an event two steps ago

    def test_overflow_stays_on_the_device(self):
        """A scaler's steps are the same calls, whether they are skipped or not."""
        (plain, _), (scaled, rows) = self.made["plain"], self.made["scaled"]
        self.assertEqual(scaled, plain)
        skipped = rows[-1]["skipped"]
        self.assertGreater(skipped, 3)
        self.assertLess(skipped, len(rows))


class Ended(unittest.TestCase):
    def test_early_stopping(self):
        """A run that its evaluations have ended launches nothing when it is resumed, and leaves the same weights."""
        training = {"steps": 8, "seed": 3, "eval_interval": 1, "eval_iters": 1, "early_stopping": {"patience": 2, "threshold": 100}}
        trainer = HostTrainer(job(training=training, checkpoint={"every": 1, "resume": "auto"}), objects())
        write_data(trainer.folder, 1)
        trainer.build()
        self.assertGreater(calls(trainer, 8)["cudaGraphLaunch"], 0)
        weights = trainer.weights()
        self.assertEqual([row["step"] for row in trainer.rows], [1, 2, 3])
        self.assertEqual(calls(trainer, 8)["cudaGraphLaunch"], 0)
        self.assertIn("nothing to train: 2 evaluations without improvement ended the run", trainer.output)
        self.assertEqual(len(trainer.rows), 3)
        for name, value in trainer.weights().items():
            self.assertTrue((value == weights[name]).all(), name)

    def test_best_model_of_averages(self):
        """A run leaves the model of its best evaluation, which schedule_free_adamw has beside the weights: as evaluated by the run that ends there."""
        training = {"seed": 3, "eval_interval": 1, "eval_iters": 1}
        optimizer = {"name": "schedule_free_adamw", "lr": 0.3}
        left = {}
        for steps, rule in ((3, {"early_stopping": {"patience": 2, "threshold": 100, "restore_best": True}}), (1, {})):
            trainer = HostTrainer(job(optimizer=optimizer, training={**training, "steps": steps, **rule}), objects())
            write_data(trainer.folder, 1)
            trainer.build()
            trainer.run()
            left[steps] = trainer.weights()
        for name, value in left[1].items():
            self.assertTrue((value == left[3][name]).all(), name)


class Keys(unittest.TestCase):
    def text(self, **groups):
        trainer = HostTrainer(job(**groups), [])
        return trainer.generate()

    def test_tf32(self):
        for wanted in (False, True):
            text = self.text(precision={"tf32": wanted})
            self.assertEqual(".tf32 = true" in text, wanted)  # a member that is left out is false
        self.assertNotIn(".tf32 = true", self.text(precision={"tf32": True, "mixed_precision": "bf16"}))

    def test_blocks(self):
        """The update of many weights has blocks enough for all multiprocessors to be full, whatever the rows it goes by."""
        bias = [{"match": "*.bias", "weight_decay": 0}]
        for keys in ({}, {"state_dtype": "bf16"}, {"state_dtype": "bf16", "param_groups": [{"match": "wte.*", "weight_decay": 0}]}, {"param_groups": bias}):
            trainer = HostTrainer(job(optimizer={"name": "adamw", "lr": 1e-3, **keys}), [])
            trainer.job["model"]["config"] = {**GPT, "vocab_size": 50257}
            trainer.write()
            trainer.generate()
            grid = re.search(r"accel_launch\(device::update, (?:dim3\((\d+), (\d+)\)|(\d+)),", (trainer.folder / "trainer.cu").read_text())
            self.assertGreaterEqual(int(grid[3] or int(grid[1]) * int(grid[2])), 1056, keys)

    def test_memory(self):
        """What does not fit is refused where the program is made."""
        trainer = HostTrainer(job(devices={"memory": "40MiB"}), [])
        ended = subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "trainer.c"], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"the program takes .* and devices\.memory is 40\.0 MiB")
        self.assertFalse((trainer.folder / "trainer.c").exists())


if __name__ == "__main__":
    unittest.main()
