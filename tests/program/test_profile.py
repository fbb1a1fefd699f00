"""A profile measures the steps that torch.profiler.schedule would record, every kernel as often as the plan runs it, and changes
nothing of what is trained; its trace is one that tools read. Without the group a program knows nothing of it."""

import itertools
import json
import os
import pathlib
import random
import re
import sys
import unittest

import numpy as np
from harness import MODELS, Trainer
from torch.profiler import ProfilerAction, schedule

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))
from ranks import Ranks, job_of  # noqa: E402

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
STEPS = 12
ROW = re.compile(r" *([\d.]+) +([\d.]+) +[\d.]+.*?   ([a-z]\S*.*)")


def make(**groups):
    trainer = Trainer({
        "model": {"source": str(MODELS / "gpt2.c"),
                  "config": {"n_layer": 3, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8, "dropout": 0.1}},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2},
        "training": {"steps": STEPS, "eval_interval": 4, "eval_iters": 1}, **groups})
    (trainer.folder / "corpus.txt").write_bytes(np.random.default_rng(7).bytes(2000))
    return trainer


def recorded(options, steps):
    """The steps that PyTorch's profiler would record."""
    at = schedule(**{"wait": 0, "warmup": 0, "skip_first": 0, "repeat": 1, **options})
    return [step for step in range(steps) if at(step) in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)]


def rows(output):
    """The table: {part: (times, milliseconds)}."""
    table = itertools.takewhile(lambda line: line.startswith(" "), output[output.index("profile of"):].splitlines()[2:])
    return {match[3]: (float(match[1]), float(match[2])) for match in map(ROW.fullmatch, table)}


class Profile(unittest.TestCase):
    def events(self, folder, rank=0):
        trace = json.loads((folder / "traces" / f"profile_{rank}.json").read_text())
        self.assertEqual(set(trace), {"displayTimeUnit", "traceEvents"})
        complete = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        self.assertEqual({event["pid"] for event in complete}, {rank})
        return complete

    def test_nothing_without(self):
        self.assertEqual(re.findall("profile|clock|part_", make().generate()), [])

    def test_same_training(self):
        plain, measured = make(), make(profile={"schedule": {"active": 100}, "with_flops": True})
        results = []
        for trainer in (plain, measured):
            trainer.build(CFLAGS="-std=c17 -O1")
            trainer.run()
            results.append((trainer.folder / "run" / "model.safetensors").read_bytes())
        self.assertTrue(results[0] == results[1], "the weights differ")
        table = rows(measured.output)
        self.assertIn(f"profile of {STEPS} steps", measured.output)
        self.assertEqual(table["update"][0], 1)
        step = float(re.search(r"steps, ([\d.]+) ms", measured.output)[1])
        self.assertAlmostEqual(sum(ms for _, ms in table.values()), step, delta=1e-3 * len(table) + 1e-3)
        self.check_work(measured, table)

    def check_work(self, trainer, table):
        """Times a step, times operations of one execution: together those that the plan counts."""
        text = trainer.generate()
        work = {name: int(flops) for name, flops in re.findall(r'\[part_\w+\] = \{"(\w+)", (\d+), \d+\}', text)}
        done = sum(work[name] * times for name, (times, _) in table.items() if name in work)
        self.assertEqual(done, trainer.plan()["flops_per_step"])

    def test_schedule(self):
        pick = random.Random(SEED)
        for _ in range(3):
            options = {"active": pick.randint(1, 3), "wait": pick.randint(0, 2), "warmup": pick.randint(0, 2),
                       "skip_first": pick.randint(0, 2), "repeat": pick.randint(0, 2)}
            with self.subTest(SEED=SEED, **options):
                trainer = make(profile={"schedule": options, "output_trace_dir": "traces"})
                trainer.build(CFLAGS="-std=c17 -O1")
                trainer.run()
                steps = [event for event in self.events(trainer.folder) if event["cat"] == "step"]
                self.assertEqual([int(event["name"].split()[1]) - 1 for event in steps], recorded(options, STEPS))

    def test_parts_fill_steps(self):
        trainer = make(profile={"schedule": {"active": 2, "wait": 1}, "output_trace_dir": "traces", "with_flops": True},
                       accumulation={"num_steps": 2}, precision={"mixed_precision": "bf16"})
        trainer.build(CFLAGS="-std=c17 -O1")
        trainer.run()
        events = self.events(trainer.folder)
        parts = [event for event in events if event["cat"] == "part"]
        for step in (event for event in events if event["cat"] == "step"):
            inside = [e for e in parts if step["ts"] - 1e-2 <= e["ts"] < step["ts"] + step["dur"]]
            self.assertAlmostEqual(sum(event["dur"] for event in inside), step["dur"], delta=1e-2 * len(inside))
        self.assertEqual(sum(event["name"] == "load_batch" for event in parts), 2 * 2)
        self.assertEqual(sum(event["name"] == "clear_gradients" for event in parts), 2)
        self.assertTrue(all(set(event["args"]) == {"flop", "bytes"} for event in parts if event["name"] != "between parts"))

    def test_ranks(self):
        """Also where weights come together for a layer at a time: what ranks wait for is reported apart from kernels."""
        trainer = Ranks(2, job_of(2, 2, 4, profile={"schedule": {"active": 2}, "output_trace_dir": "traces"},
                                  parallelism={"zero_stage": 3}))
        text = trainer.generate()
        self.assertRegex(text, r"void hold_layer\([^}]*accel_profile_part\(part_exchange\);\n}")
        trainer.build()
        trainer.run()
        for rank in range(2):
            names = [event["name"] for event in self.events(trainer.folder, rank)]
            self.assertIn("exchange", names)
            self.assertEqual(sum(name.startswith("step ") for name in names), 2)


if __name__ == "__main__":
    print(f"SEED={SEED}")
    unittest.main()
