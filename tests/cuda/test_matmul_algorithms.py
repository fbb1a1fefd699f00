"""Matmuls by the algorithm that was measured to be the fastest: what a trainer measures, the table that `accel-gen tune`
makes of it, and the program that is made by the table. Over the stand-ins, whose second algorithm of three is said to be
the fastest: nothing here is a time.

The programs are those that nvcc would compile; tests/gpu/run.sh is for what a GPU does."""

import json
import os
import re
import subprocess
import unittest

import jsonschema
import numpy as np
from host import TREE, HostTrainer, objects
from test_training import MODELS, TEXT, write_data

GPT = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
SCHEMAS = {name: json.loads((TREE / "schemas" / f"{name}.schema.json").read_text()) for name in ("tuning", "measured")}
FASTEST = "algo 61 tile 21 split 1 reduction 0 swizzle 0 custom 0 stages 3 inner 0 cluster 2"


class Matmuls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = HostTrainer({
            "model": {"source": str(MODELS / "gpt2.c"), "config": GPT},
            "data": {**TEXT, "batch_size": 1, "sequence_length": 8}, "optimizer": {"name": "muon", "lr": 1e-3},
            "training": {"steps": 3, "seed": 3}, "accumulation": {"num_steps": 2},
            "memory": {"cross_entropy_chunk": 3}}, objects())
        write_data(cls.trainer.folder, 1)
        cls.trainer.build()
        cls.rows, cls.weights = cls.trainer.run(), cls.trainer.weights()
        cls.file = cls.trainer.folder / "measured.json"
        cls.measuring = cls.trainer.run(ACCEL_MEASURE=str(cls.file))
        cls.measured = json.loads(cls.file.read_text())
        cls.said = cls.trainer.command("tune", "job.yaml", "--measured", "measured.json", "-o", "table.json")
        cls.table = json.loads((cls.trainer.folder / "table.json").read_text())
        cls.trainer.generate("--tuning", "table.json")
        cls.text = (cls.trainer.folder / "trainer.c").read_text()

    def test_measuring_changes_nothing(self):
        self.assertEqual([row["loss"] for row in self.measuring], [row["loss"] for row in self.rows])

    def test_what_is_measured(self):
        """Every matmul: those of a kernel, those of a loss in chunks, the last of which is smaller, and the optimizer's."""
        names = set(re.findall(r"^ACCEL_GPU_GEMM\((\w+),", self.text, re.MULTILINE))
        self.assertEqual(set(self.measured["matmuls"]), names)
        for part in ("logits", "dx", "dweight", "next_dweight", "last_logits", "last_dx", "last_dweight"):
            self.assertIn(f"linear_cross_entropy_forward_backward_add_1_{part}", names)
        self.assertLessEqual({"square_64x16", "power_64x16", "product_64x16"}, names)
        for name, variants in self.measured["matmuls"].items():
            self.assertEqual([variant["variant"] for variant in variants][1], FASTEST)
            np.testing.assert_allclose([variant["seconds"] for variant in variants], [2e-6, 1e-6, 4e-6], rtol=0.05, err_msg=name)

    def test_table(self):
        jsonschema.validate(self.table, SCHEMAS["tuning"])
        jsonschema.validate(self.measured, SCHEMAS["measured"])
        self.assertEqual(self.table["library"], "cuBLASLt 12.8.3")
        self.assertEqual(self.table["machine"]["processor"], self.measured["device"])
        self.assertTrue(all("by the library" in entry["subject"] for entry in self.table["entries"]))
        self.assertIn("choice    algorithm of matmul_", self.said)
        again = self.trainer.command("tune", "job.yaml", "--measured", "measured.json", "-o", "table.json")
        self.assertIn(f"table.json: {len(self.table['entries'])} entries", again)

    def test_program(self):
        """It names the fastest, takes it, and gives the same numbers; with none such it says so and continues."""
        matmuls = [" ".join(row.split()) for row in re.findall(r"^ACCEL_GPU_GEMM\(\w+,([^;]*)\);", self.text, re.MULTILINE)]
        self.assertTrue(matmuls)
        self.assertTrue(all(f'.algorithm_name = "{FASTEST}"' in matmul for matmul in matmuls), self.text)
        self.assertNotIn("algorithm_name", HostTrainer.generate(self.trainer))
        self.trainer.rebuild(self.text)
        self.assertEqual([row["loss"] for row in self.trainer.run()], [row["loss"] for row in self.rows])
        ended = subprocess.run([self.trainer.folder / "trainer"], cwd=self.trainer.folder, capture_output=True, text=True,
                               env={**os.environ, "STANDIN_ALGORITHMS": "1"})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(ended.stderr.count("its own choice is taken"), len(set(matmuls)), "one for all that are alike")

    def test_choices(self):
        plan = json.loads(self.trainer.command("plan", "job.yaml", "--json", "--tuning", "table.json"))
        self.assertEqual({choice["of"] for choice in plan["choices"]}, set(self.measured["matmuls"]))
        for choice in plan["choices"]:
            self.assertEqual((choice["by"], choice["selects"], choice["variant"]), ("measurement", "algorithm", FASTEST))
        other = json.loads(self.trainer.command("plan", "job.yaml", "--json", "--tuning", "table.json", "--set",
                                                "training.deterministic=true"))
        self.assertNotIn("choices", other, "sums in one order are other measurements")

    def test_refused(self):
        for table, *words in (
                [self.measured | {"matmuls": {}}, "bad.json has no measurements of this job's matmuls"],
                [self.measured | {"format": "accel-measured-1"}, "bad.json:2:12: error: ", "generate the program again and measure with it"],
                [{}, "bad.json:1:1: error: missing key 'format' in the measurements of a trainer"],
                [self.measured | {"cores": -1}, "bad.json:4:11: error: 'cores' must be at least 1"],
                [self.measured | {"matmuls": {"a": [{"variant": "x\",\n.rows = 1", "seconds": 1}]}}, "bad.json:", "'variant' must "],
                [self.measured | {"matmuls": {"a": [{"variant": "x", "seconds": "soon"}]}}, "'seconds' must be a number"],
                [self.measured | {"matmuls": {"a b": []}}, "bad.json:", "'a b'"]):
            (self.trainer.folder / "bad.json").write_text(json.dumps(table, indent=1))
            said = self.trainer.command("tune", "job.yaml", "--measured", "bad.json", "-o", "x.json", status=2)
            for word in words:
                self.assertIn(word, said)
        said = self.trainer.command("tune", "job.yaml", "--measured", "absent.json", "-o", "x.json", status=2)
        self.assertIn("absent.json", said)
        said = self.trainer.command("tune", "job.yaml", "--measured", "measured.json", status=2)
        self.assertIn("-o FILE", said)
        said = self.trainer.command("tune", "job.yaml", "--measured", "measured.json", "-o", "x.json", "--set",
                                    "devices.kind=cpu", status=2)
        self.assertIn("--measured is of programs for GPUs", said)

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version"), "there is a GPU")
    def test_no_gpu(self):
        said = self.trainer.command("tune", "job.yaml", "-o", "x.json", status=1)
        self.assertRegex(said, "^accel-gen: no GPU to measure on: .*\n$")


if __name__ == "__main__":
    unittest.main()
