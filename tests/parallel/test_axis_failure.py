"""What ends one rank ends all of them, soon and with one message, along each axis of the mesh: a rank that is killed, one that
hangs, and one that computes no numbers. No checkpoint is left half written, and the run resumes from the last."""
# long

import json
import os
import signal
import subprocess
import time
import unittest

import numpy as np
from ranks import CORPUS, GENERATOR, PATIENCE, Ranks, Running, errors, job_of, save_file, wait_for

TIMEOUT = 20  # longer than a busy machine holds up a rank that starts or saves
POSITIONS, BATCH, LAYERS = 16, 2, 2
LLAMA = {"num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8,
         "intermediate_size": 48, "vocab_size": 256}
QWEN = {"num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
        "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
AXES = {"tp": {"tp": 2}, "residual": {"tp": 2, "megatron": {"sequence_parallelism": True}}, "sp": {"sp": 2}, "cp": {"cp": 2},
        "pp": {"pp": 2}, "ep": {"ep": 2}}
NOWHERE = 255  # a token that only the last text of these has, at a position and in a vocabulary's part of rank 1


def job(axis):
    model, config = ("qwen_moe", QWEN) if axis == "ep" else ("llama", LLAMA)
    steps = {"num_steps": 2, "sync_with_dataloader": False} if axis == "pp" else {}
    return job_of(2, BATCH, 100000, model=model, config=config, parallelism=AXES[axis], devices={"timeout": TIMEOUT},
                  data={"sequence_length": POSITIONS, "shuffle": False, "eval_fraction": 0, "train": {"path": "corpus.txt", "format": "bytes"}},
                  accumulation=steps, checkpoint={"every": 2, "total_limit": 3})


def poisoned(axis, step):
    """A text in which rank 1 meets the token in a step, or both do in its part of the positions."""
    batches = {"ep": 2, "pp": 2}.get(axis, 1)  # of a step
    sample = ((step - 1) * batches + batches - 1) * BATCH
    text = bytearray(CORPUS)
    text[sample * POSITIONS + POSITIONS // 2] = NOWHERE
    return bytes(text)


class Axes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainers = {}
        for axis in AXES:
            trainer = cls.trainers[axis] = Ranks(2, job(axis))
            trainer.job["model"]["weights"] = "start.safetensors"
            trainer.write()
            cls.write_weights(trainer)
            (trainer.folder / "poisoned.txt").write_bytes(poisoned(axis, 6))
            trainer.build()

    @staticmethod
    def write_weights(trainer):
        """Numbers for all tokens but one."""
        model = trainer.job["model"]
        words = ",".join(f"{name}={value}" for name, value in model["config"].items())
        report = json.loads(trainer.command("model", "check", model["source"], "--config", words, "--json", "--set",
                                          f"data.sequence_length={POSITIONS}"))
        rng = np.random.default_rng(3)
        arrays = {one["name"]: (0.1 * rng.normal(size=one["shape"])).astype(np.float32) for one in report["parameters"]}
        arrays["model.embed_tokens.weight"][NOWHERE] = np.nan
        save_file(arrays, trainer.folder / "start.safetensors")

    def rows(self, trainer):
        """Losses by step; the line that a killed rank was writing is no line."""
        lines = [line for line in (trainer.folder / "run" / "metrics.jsonl").read_text().split("\n")[:-1]]
        return {row["step"]: row["loss"] for row in map(json.loads, lines)}

    def check_what_is_left(self, trainer, axis):
        """Whole checkpoints, from the last of which the run resumes with the losses that it had."""
        before = self.rows(trainer)
        for folder in (trainer.folder / "run" / "checkpoints").glob("checkpoint_*[0-9]"):
            self.assertTrue((folder / "manifest.json").exists(), f"{axis}: {folder}")
        last = max((trainer.folder / "run" / "checkpoints").glob("checkpoint_*[0-9]"), key=lambda at: int(at.name.split("_")[1]))
        done = json.loads((last / "random_states_0.json").read_text())["step"]
        running = self.running(trainer, "--resume", "auto")
        wait_for(lambda: max(self.rows(trainer), default=0) > max(done, *before), "steps")
        os.kill(running.find()[0][1], signal.SIGTERM)
        result = running.end()
        self.assertEqual(result.returncode, 128 + signal.SIGTERM, f"{axis}: {result.stderr}")
        self.assertIn(f"resumes from {last}, step {done}", result.stdout, axis)
        after = self.rows(trainer)
        self.assertEqual({step: loss for step, loss in before.items() if step <= max(after)},
                         {step: loss for step, loss in after.items() if step <= max(before)}, axis)

    def running(self, trainer, *flags):
        running = Running(trainer, *flags)
        self.addCleanup(running.mpirun.kill)
        return running

    def started(self, trainer):
        subprocess.run(["rm", "-rf", trainer.folder / "run"], check=True)
        running = self.running(trainer)
        wait_for(lambda: list((trainer.folder / "run").glob("checkpoints/*/manifest.json")), "a checkpoint")
        return running

    def test_one_is_killed(self):
        for axis, trainer in self.trainers.items():
            running = self.started(trainer)
            os.kill(running.ranks[1][1], signal.SIGKILL)
            begin = time.monotonic()
            self.assertNotEqual(running.end().returncode, 0, axis)
            self.assertLess(time.monotonic() - begin, TIMEOUT, axis)
            self.check_what_is_left(trainer, axis)

    def test_one_hangs(self):
        """All axes at a time: they wait."""
        hanging = {}
        for axis, trainer in self.trainers.items():
            hanging[axis] = self.started(trainer)
            os.kill(hanging[axis].ranks[1][1], signal.SIGSTOP)
        for axis, running in hanging.items():
            result = running.end()
            self.assertNotEqual(result.returncode, 0, axis)
            self.assertEqual(len(errors(result)), 1, f"{axis}: {result.stderr}")
            self.assertRegex(errors(result)[0], f"^rank 0: error: .*another rank did not come within {TIMEOUT} s", axis)
            self.check_what_is_left(self.trainers[axis], axis)

    def test_one_has_no_numbers(self):
        """All end before the update, one reports, and the checkpoint before is what the run resumes from."""
        for axis, trainer in self.trainers.items():
            subprocess.run(["rm", "-rf", trainer.folder / "run"], check=True)
            for flags in ((), ("--resume", "auto")):
                result = trainer.launch("--data", "poisoned.txt", *flags)
                self.assertNotEqual(result.returncode, 0, axis)
                self.assertEqual(len(errors(result)), 1, f"{axis}: {result.stderr}")
                self.assertRegex(errors(result)[0], "rank 0: error: step 6: the (loss|gradient's norm) is", axis)
            self.assertIn("run/checkpoints/checkpoint_1, step 4", result.stdout, axis)


if __name__ == "__main__":
    unittest.main()
