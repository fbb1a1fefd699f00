"""`accel-gen tune` writes a table that its schema allows; plans choose by it and predict by it, and what they choose trains
as the rules' choices do. A table of another machine, of another version, or that is none is refused with its location and
the reason."""

import hashlib
import json
import os
import pathlib
import platform
import sys
import unittest

import jsonschema
import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import MODELS, Trainer, relative  # noqa: E402

SCHEMA = json.loads((TREE / "schemas" / "tuning.schema.json").read_text())
PLAN = json.loads((TREE / "schemas" / "plan.schema.json").read_text())
STEPS = 6
FAST = "-std=c17 -O1 -march=native"  # to compile, not to run


def make(**groups):
    trainer = Trainer({
        "model": {"source": str(MODELS / "gpt2.c"),
                  "config": {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 80}},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2},
        "memory": {"cross_entropy_chunk": "auto"}, "devices": {"threads": 2}, "training": {"steps": STEPS}, **groups})
    (trainer.folder / "corpus.txt").write_bytes(np.random.default_rng(7).bytes(4000))
    return trainer


class Tune(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = make()
        cls.said = cls.trainer.command("tune", "job.yaml", "-o", "table.json", "--rounds", "1", CFLAGS=FAST)
        cls.file = cls.trainer.folder / "table.json"
        cls.table = json.loads(cls.file.read_text())

    def plan(self, *flags):
        plan = json.loads(self.trainer.command("plan", "job.yaml", "--json", *flags))
        jsonschema.validate(plan, PLAN)
        return plan

    def write(self, name, table):
        text = table if isinstance(table, str) else json.dumps(table, indent=1)
        (self.trainer.folder / name).write_text(text)
        return name

    def test_table(self):
        jsonschema.validate(self.table, SCHEMA)
        self.assertEqual(self.table["machine"]["cores"], os.cpu_count())
        self.assertTrue(all(entry["threads"] == 2 for entry in self.table["entries"]))
        names = [entry["subject"].split()[0] for entry in self.table["entries"]]
        for name in ("matmul", "attention", "attention_backward", "linear_cross_entropy_forward_backward", "layer_norm", "load_batch", "update"):
            self.assertIn(name, names)

    def test_every_way_is_measured(self):
        plan = self.plan("--tuning", "table.json")
        chosen = {choice["selects"] for choice in plan["choices"]}
        self.assertLessEqual({"matmuls", "KV block size", "threads", "rows of a chunk"}, chosen)
        self.assertTrue(any(choice["of"].startswith("update by adamw, ") for choice in plan["choices"]))
        for choice in plan["choices"]:
            self.assertEqual(choice["by"], "measurement", choice)
            self.assertEqual(set(choice["seconds"]), set(choice["variants"]), choice)
            self.assertLessEqual(choice["seconds"][choice["variant"]], min(choice["seconds"].values()) / 0.96, choice)
        self.assertEqual({choice["by"] for choice in self.plan()["choices"]}, {"rule"})
        self.assertIn("matmuls of matmul_", self.said)

    def test_prediction(self):
        predicted = self.plan("--tuning", "table.json")["predicted_step"]
        self.assertEqual(predicted["measured"], predicted["of"])
        self.assertEqual(predicted["estimated"], 0)
        self.assertNotIn("predicted_step", self.plan())
        alike = self.fastest(0)
        once = self.plan("--tuning", alike)["predicted_step"]
        self.assertTrue(0.3 * once["kernels"] < once["matmuls"] < once["kernels"], once)
        twice = self.plan("--tuning", alike, "--set", "accumulation.num_steps=2")["predicted_step"]
        self.assertGreater(twice["seconds"], 1.2 * once["seconds"])
        deep = [self.plan("--tuning", alike, "--set", f"model.config.n_layer={n}")["predicted_step"]["kernels"] for n in (2, 3, 4)]
        self.assertGreater(deep[1], 1.2 * deep[0])  # each kernel takes the same here: as many more for each layer
        self.assertAlmostEqual(deep[2] - deep[1], deep[1] - deep[0], places=9)
        among = self.plan("--tuning", "table.json", "--nodes", "4")
        self.assertAlmostEqual(among["predicted"]["step"], among["predicted_step"]["seconds"])
        self.assertGreater(among["predicted"]["communication"], 0)
        other = self.plan("--tuning", "table.json", "--set", "data.batch_size=3")["predicted_step"]
        self.assertLess(other["measured"], other["of"])
        self.assertGreater(other["estimated"], 0)

    def fastest(self, number):
        """The table with another variant of each entry the fastest: its variant of this number, or its last."""
        table = json.loads(self.file.read_text())
        for entry in table["entries"]:
            for at, variant in enumerate(entry["variants"]):
                variant["seconds"] = 1e-6 if at == min(number, len(entry["variants"]) - 1) else 1e-3
        return self.write(f"variant{number}.json", table)

    def test_ways_train_alike(self):
        losses = []
        for flags in ([], ["--tuning", self.fastest(1)], ["--tuning", self.fastest(2)]):
            self.trainer.build(*[str(self.trainer.folder / f) if f.endswith(".json") else f for f in flags], CFLAGS=FAST)
            losses.append([step["loss"] for step in self.trainer.run()])
        for other in losses[1:]:
            self.assertLess(relative(np.array(other), np.array(losses[0])), 1e-6)

    def test_same_bytes_and_manifest(self):
        name = self.fastest(1)
        self.trainer.command("job.yaml", "-o", "a.c", "--tuning", name, "--manifest")
        self.trainer.command("job.yaml", "-o", "b.c", "--set", f"devices.tuning={name}")
        folder = self.trainer.folder
        self.assertEqual((folder / "a.c").read_bytes(), (folder / "b.c").read_bytes())
        self.assertNotEqual((folder / "a.c").read_bytes(), self.trainer.generate())
        manifest = json.loads((folder / "a.manifest.json").read_text())
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        self.assertIn({"role": "tuning", "name": name, "sha256": digest}, manifest["inputs"])
        self.assertEqual({choice["by"] for choice in manifest["plan"]["choices"]}, {"measurement"})
        self.assertIn("same", self.trainer.command("audit", "--regenerate", "a.manifest.json"))
        self.write(name, self.table)
        self.assertIn(f"{name} is another", self.trainer.command("audit", "--regenerate", "a.manifest.json", status=1)
                      .replace("  ", " "))

    def test_machines_own_table(self):
        home = str(self.trainer.folder / "cache")
        said = self.trainer.command("plan", "job.yaml", "--tuning", "machine", status=2, XDG_CACHE_HOME=home)
        self.assertIn("cannot read the table of measurements", said)
        self.assertIn("accel-gen tune JOB", said)
        processor = self.table["machine"]["processor"] + f", {os.cpu_count()}"
        table = pathlib.Path(home) / "accel-gen" / f"tuning-{hashlib.sha256(processor.encode()).hexdigest()[:16]}.json"
        table.parent.mkdir(parents=True)
        table.write_bytes(self.file.read_bytes())
        said = self.trainer.command("plan", "job.yaml", "--tuning", "machine", XDG_CACHE_HOME=home)
        self.assertIn("predicted ", said)

    def refuse(self, table, *words):
        name = self.write("bad.json", table)
        said = self.trainer.command("job.yaml", "-o", "bad.c", "--tuning", name, status=2)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse((self.trainer.folder / "bad.c").exists())

    def test_refusals(self):
        self.refuse(self.table | {"machine": {"processor": "Z80", "cores": 2}},
                    "bad.json:5:16: error: measured on another machine: this one is ", "accel-gen tune JOB")
        self.refuse(self.table | {"machine": self.table["machine"] | {"cores": 999}}, "this one has ")
        self.refuse(self.table | {"generator": "0.0.1"}, "bad.json:3:15: error: measured by version 0.0.1, whose kernels ")
        self.refuse(self.table | {"format": "accel-gen-tuning-0"}, "bad.json:2:12: error: 'format' must be ")
        ways = {"subject": "x", "threads": 1, "flops": 0, "bytes": 0, "ways": [{"way": "", "seconds": 1}]}
        self.refuse(self.table | {"entries": [ways] * 3}, "a table of an earlier version, whose 'ways' are 'variants' now", "accel-gen tune JOB", "\n1 error\n")
        self.refuse(self.table | {"entries": self.table["entries"][:1] * 2}, "there is an entry before for this subject")
        self.refuse({key: value for key, value in self.table.items() if key != "entries"},
                    "missing key 'entries' in a table of measurements")
        self.refuse(self.file.read_text()[:200], "bad.json:")
        self.refuse(self.file.read_text().replace('"seconds": ', '"seconds": -', 1), "bad.json:", "'seconds' must be ")
        self.refuse("", "bad.json: error: the file is empty")
        self.refuse("\0\1", "bad.json")

    def test_what_cannot_be_tuned(self):
        said = self.trainer.command("tune", "job.yaml", "-o", "x.json", "--set", "devices.per_node=2", status=2)
        self.assertIn("tune the same job with one rank", said)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU")
    def test_matmuls_need_a_gpu(self):
        said = self.trainer.command("tune", "job.yaml", "-o", "x.json", "--set", "devices={kind: cuda}", status=1)
        self.assertIn("no GPU to measure on", said)


if __name__ == "__main__":
    if platform.system() != "Linux":
        print("measurements know a machine by /proc/cpuinfo")
        sys.exit(77)
    unittest.main()
