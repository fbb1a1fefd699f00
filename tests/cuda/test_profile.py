"""The profile of a CUDA program over the stand-ins: the table and the trace of the steps that its schedule measures,
from CUPTI's records; ranges of the model's functions where the job asks for them; and nothing of either otherwise."""

import json
import re
import subprocess
import unittest

from host import HostTrainer, objects
from test_training import MODELS, ROWS, TEXT, write_data

GPT = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}


def job(**groups):
    return {"model": {"source": str(MODELS / "gpt2.c"), "config": GPT},
            "data": {**TEXT, "batch_size": 1, "sequence_length": 8}, "optimizer": {"name": "adamw", "lr": 1e-3},
            "training": {"steps": 6, "seed": 3}, **groups}


class Profile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schedule = {"skip_first": 1, "wait": 1, "active": 2}
        cls.trainer = HostTrainer(job(profile={"schedule": schedule, "output_trace_dir": "traces", "nvtx": True}), objects())
        write_data(cls.trainer.folder, 1)
        cls.trainer.build()

    def start(self, **environment):
        return subprocess.run([self.trainer.folder / "trainer"], cwd=self.trainer.folder, capture_output=True, text=True,
                              env=environment)

    def test_trace_and_table(self):
        ended = self.start()
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("profile of 2 steps", ended.stdout)
        events = json.loads((self.trainer.folder / "traces" / "profile_0.json").read_text())["traceEvents"]
        steps = [event for event in events if event.get("cat") == "step"]
        self.assertEqual([event["name"] for event in steps], ["step 3", "step 4"])
        names = [event["name"] for event in events if event.get("cat") == "kernel"]
        for name in ("prepare_update", "update", "sum_squares"):
            self.assertEqual(sum(re.search(rf"\b{name}\b", other) is not None for other in names), 2, name)
            self.assertRegex(ended.stdout, rf"\n +1\.0 .* {name}|\n +1\.0 .*{name}")
        for event in events:
            if event.get("cat") == "kernel":
                inside = [step for step in steps if step["ts"] <= event["ts"] <= step["ts"] + step["dur"]]
                self.assertEqual(len(inside), 1, event)
        self.assertTrue(any(event.get("cat") == "memory" for event in events))

    def test_ranges(self):
        text = (self.trainer.folder / "trainer.c").read_text()
        for name in ("block_forward", "block_backward", "end_step"):
            self.assertIn(f'accel_gpu_range_begin("{name}");', text)
        self.assertEqual(text.count("accel_gpu_range_begin("), text.count("accel_gpu_range_end("))

    def test_refused(self):
        """What CUPTI refuses is said in one message."""
        ended = self.start(STANDIN_FAIL="cuptiActivityEnable:1")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "cuptiActivityEnable of CUPTI: requested of the stand-in")

    def test_rates(self):
        """with_flops: rows are the program's parts, kernels of libraries too, each with what it does a second."""
        trainer = HostTrainer({"model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 2, "width": 24, "n_classes": 10}},
                               "data": ROWS, "optimizer": {"name": "adamw", "lr": 1e-3}, "training": {"steps": 6, "seed": 3},
                               "profile": {"schedule": {"wait": 3, "active": 2}, "with_flops": True, "output_trace_dir": "traces"}},
                              objects())
        write_data(trainer.folder, 64)
        trainer.build()
        ended = subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = ended.stdout.split("profile of 2 steps")[1].splitlines()
        self.assertRegex(lines[1], r"ms +% +GFLOP/s +GB/s +on the device")
        rows = {line.split()[-1]: line.split() for line in lines[2:] if len(line.split()) > 3}
        source = (trainer.folder / "trainer.c").read_text()
        parts = {name: work for name, *work in re.findall(r'\[part_\w+\] = \{"(\w+)", (\d+), (\d+)\}', source)}
        matmuls = [name for name in parts if name.startswith("matmul")]
        self.assertGreater(len(matmuls), 2, parts)
        for name in [*matmuls, "update", "gradient_norm"]:
            self.assertEqual(len(rows[name]), 4 + (int(parts[name][0]) > 0) + (int(parts[name][1]) > 0), rows[name])
            self.assertEqual(rows[name][0], f"{len(re.findall(rf'accel_gpu_profile_part.part_{name}.;', source)):.1f}", rows[name])
        events = json.loads((trainer.folder / "traces" / "profile_0.json").read_text())["traceEvents"]
        flop = {event["args"]["part"]: event["args"]["flop"] for event in events if "part" in event.get("args", {})}
        for name in matmuls:
            self.assertEqual(flop[name], int(parts[name][0]))

    def test_absent(self):
        trainer = HostTrainer(job(), [])
        trainer.generate()
        text = (trainer.folder / "trainer.c").read_text()
        for word in ("trace", "range", "profile"):
            self.assertNotIn(f"accel_gpu_{word}", text)
            self.assertNotIn(f"accel/gpu/{word}", text)


if __name__ == "__main__":
    unittest.main()
