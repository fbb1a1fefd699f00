"""What HIP programs compute, compared with the programs for the processor, as tests/cuda/test_training.py and test_forward.py
compare CUDA's: their kernels run as C++ on the processor, their calls of HIP and hipBLASLt go to stand-ins
(tests/hip/standin). This is said of their arithmetic and their barriers, of the host program and of the runtime's part for
HIP; nothing of a GPU, and nothing of hipBLASLt. SKIPPED where HIP's headers are not.

usage: test_programs.py [NAME...], of a case, an optimizer or a class; --all: every example model, every optimizer (ninja soak)"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "cuda"))

import test_forward  # noqa: E402
import test_training  # noqa: E402
from host import GENERATOR, HostTrainer, objects  # noqa: E402
from rotation import ALL, in_turn  # noqa: E402; tests/program
from test_optimizers import RULES  # noqa: E402
from test_training import EVALUATED, GPT, ROWS, case, write_data  # noqa: E402

import numpy as np  # isort: skip


class HipTrainer(HostTrainer):
    device = ending = "hip"


def in_float32(job):
    """The job with what HIP has: float32, one process."""
    return {key: group for key, group in json.loads(json.dumps(job)).items() if key not in ("precision", "devices", "parallelism")}


def has_experts(job):
    return "num_experts" in job["model"]["config"]


TRAINED = {**test_training.CASES, **test_training.MORE}
USUAL = ("gpt", "resnet_own", "lstm")  # of which the suite runs one a run, as SEED says
CASES = {name: in_float32(job) for name, job in TRAINED.items() if not has_experts(job)}
USUAL_RULES = ("nadam", "lomo", "muon")  # states in 8 bits; updates in the backward; matmuls of the optimizer; one a run
NAMES = json.loads((TREE / "schemas" / "job.schema.json").read_text())["properties"]["optimizer"]["properties"]["name"]["enum"]
KEYS = {name: {"lr": 1e-3} for name in NAMES} | {name: keys for name, (keys, _) in RULES.items()}
FORWARD = {"evaluate": ("gpt",), "write": ("llama",)}
STREAMS = {"gpt": {"h.0": "cpu", "h.1": "cpu", "*": "gpu"}}  # layers that come to the device before each use


class Training(test_training.Training):
    device = HipTrainer


class Rules(test_training.Comparison):
    """Every rule on a small model whose matmuls end in relu, which is no epilogue here."""

    device = HipTrainer

    def check(self, name):
        job = case("mlp_table", {"n_layer": 1, "width": 128, "n_classes": 10}, ROWS, optimizer={"name": name, **KEYS[name]}, training=EVALUATED)
        _, text, _ = self.compare(name, job)
        self.assertNotIn("RELU", text)


class Forward(test_forward.Forward):
    device = HipTrainer


class Runs(unittest.TestCase):
    """How a run begins, resumes and ends."""

    def built(self, **groups):
        trainer = HipTrainer({**in_float32(TRAINED["gpt"]), **groups}, PARTS)
        write_data(trainer.folder, 1)
        trainer.build()
        return trainer

    def start(self, trainer, *flags, **environment):
        return subprocess.run([trainer.folder / "trainer", *flags], cwd=trainer.folder, capture_output=True, text=True,
                              env={**os.environ, **environment})

    def test_run(self):
        trainer = self.built(checkpoint={"every": 2})
        self.assertEqual(self.start(trainer).returncode, 0)
        whole = trainer.weights()
        for ways in (([[], {"ACCEL_GRAPHS": "no"}],), ([["--steps", "2"], {}], [["--resume", "auto"], {}])):
            shutil.rmtree(trainer.folder / "run")
            for flags, environment in ways:
                self.assertEqual(self.start(trainer, *flags, **environment).returncode, 0)
            for key, there in trainer.weights().items():
                np.testing.assert_array_equal(there, whole[key], f"{ways}: {key}")
        for environment, said in (({"STANDIN_GFX": "gfx1100"}, "GPU 0 (stand-in) is a gfx1100, but the kernels are for gfx90a"),
                                  ({"STANDIN_GPUS": "0"}, "no GPU on this machine"),
                                  ({"STANDIN_MEMORY": "1000000"}, "the plan takes"),
                                  ({"STANDIN_FAIL": "cublasLtMatmulAlgoGetHeuristic:1"}, "hipBLASLt has no algorithm for the matmul of"),
                                  ({"STANDIN_FAIL": "cudaGraphLaunch:1"}, "ACCEL_GRAPHS=no and AMD_SERIALIZE_KERNEL=3")):
            shutil.rmtree(trainer.folder / "run", ignore_errors=True)
            ended = self.start(trainer, **environment)
            self.assertEqual(ended.returncode, 1, environment)
            self.assertIn(said, ended.stderr)

    def test_refused(self):
        """What has no kernel at its position in the model, and what cannot be measured."""
        lines = (TREE / "examples" / "models" / "qwen_moe.c").read_text().splitlines()
        line, column = next((i, text.index("grouped_matmul(")) for i, text in enumerate(lines, 1) if "grouped_matmul(" in text)
        for words, said in ((["qwen_moe.yaml", "-o", "-"], f"qwen_moe.c:{line}:{column + 1}: error: there is no kernel of 'grouped_matmul' for devices.kind 'hip' yet\n"),
                            (["tune", "tiny.yaml", "-o", "/dev/null"], "--set devices.kind=hip: error: there is nothing to measure")):
            ended = subprocess.run([GENERATOR, *words, "--set", "devices.kind=hip"], cwd=TREE / "examples" / "jobs", capture_output=True, text=True)
            self.assertEqual(ended.returncode, 1 if "tune" not in words else 2)
            self.assertIn(said, ended.stderr)

    def test_audited(self):
        """With the kernels of its own device, also where those of another one are left."""
        trainer = HipTrainer(CASES["gpt"], [])
        write_data(trainer.folder, 1)
        trainer.generate()
        (trainer.folder / "trainer.cu").write_text("int left;\n")
        said = {name: subprocess.run([GENERATOR, "audit", name], cwd=trainer.folder, capture_output=True, text=True)
                for name in ("trainer.c", "trainer.hip")}
        self.assertRegex(said["trainer.c"].stdout, r"holds +device-half +\d+ functions of \S*trainer\.hip")
        self.assertNotIn("broken  ", said["trainer.c"].stdout)
        self.assertIn("accel-gen audit trainer.c reads both", said["trainer.hip"].stderr)

    def test_epilogues(self):
        """Those that hipBLASLt has, and no other."""
        names = ("gpt", "freeze", "t5", "bert")
        found = set().union(*(test_training.epilogues_of(HipTrainer(CASES[name], [])) for name in names))
        self.assertEqual(found, {"BIAS", "BIAS_GELU", "DGELU", "DGELU_SUM", "SUM_A", "SUM_B"})


def add(to, name, *arguments, way="check"):
    setattr(to, f"test_{way}_{name}", lambda self: getattr(self, way)(*arguments))


if __name__ == "__main__":
    found = subprocess.run(["sh", TREE / "tools" / "hip-toolkit.sh", "--cflags"], cwd=TREE, capture_output=True, text=True)
    if found.returncode != 0:
        print("SKIPPED: the runtime was not compiled for HIP: " + found.stderr.strip())
        sys.exit(77)
    PARTS = objects("hip")
    Training.parts = Rules.parts = Forward.parts = PARTS
    named, every = [word for word in sys.argv[1:] if not word.startswith("-")], ALL
    for name, job in CASES.items():
        if every or name in named or name in in_turn(USUAL, 3):
            add(Training, name, name, job)
    for name in NAMES:
        if every or name in named or name in in_turn(USUAL_RULES, 3):
            add(Rules, name, name)
    forward = {"evaluate": {**test_forward.EVALUATED, **test_forward.MORE_EVALUATED}, "write": {**test_forward.WRITTEN, **test_forward.MORE_WRITTEN}}
    for way, jobs in forward.items():
        for name, job in jobs.items():
            if not has_experts(job) and (every or name in FORWARD[way]):
                streams = {"memory": {"device_map": STREAMS[name]}} if name in STREAMS else {}
                add(Forward, name, name, {**in_float32(job), **streams}, way=way)
    tests = [f"{group}.test_check_{name}" for name in named for group, its in (("Training", CASES), ("Rules", NAMES)) if name in its]
    unittest.main(argv=sys.argv[:1], defaultTest=tests + [name for name in named if name not in (*CASES, *NAMES)] or None)
