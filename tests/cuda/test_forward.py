"""CUDA programs that only run a model forward, against those for the processor, from the same weights: what --program evaluate
says of the data, and the text that --program generate writes. The kernels run as C++ on the processor (tests/cuda/host),
over stand-ins that see each access and whether it waits for the one before.

usage: test_forward.py [NAME...]; --all: more models (ninja soak)"""

import json
import os
import re
import subprocess
import sys
import unittest

import numpy as np
from host import TREE, HostTrainer, Trainer, objects
from test_training import CASES as TRAINED
from test_training import GPT, HEADS, MOE, MORE, ODD, TEXT, case, write_data
import rotation  # tests/program; isort: skip

from compilers import formatted  # tests/program; isort: skip
from harness import save_file  # isort: skip

ALL = {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": "all"}
EVALUATED = {
    "gpt": case("gpt2", {**GPT, "dropout": 0.1, "vocab_size": ODD}, TEXT, training={**ALL, "metrics": ["accuracy", "perplexity"]}),
    "masked": {**MORE["bert"], "precision": {"mixed_precision": "bf16"}, "training": ALL, "devices": {"attention": "own"}},
}
MORE_EVALUATED = {name: {**{**TRAINED, **MORE}[name], "training": {**ALL, "eval_iters": 3}}
                  for name in ("bf16", "experts", "resnet", "table", "vit", "t5", "lstm", "mamba", "gemma")}
LONG = {**TEXT, "sequence_length": 40}  # beyond what the beginning of a text is run over at once
WRITTEN = {
    # Whoever trained, one process writes.
    "llama": case("llama", HEADS, LONG, devices={"per_node": 2}, parallelism={"zero_stage": 3}),
    "mistral": case("mistral", {**HEADS, "sliding_window": 4, "head_dim": 40, "vocab_size": 300}, LONG, precision={"mixed_precision": "bf16"},
                    devices={"attention": "own"}),
}
MODELS_OF_TESTS = TREE / "tests" / "models" / "sources"
MORE_WRITTEN = {
    **{name: {**MORE[name], "data": LONG} for name in ("gemma", "qwen3", "mixtral", "gpt_neox", "lstm", "mamba")},
    "gpt": case("gpt2", {**GPT, "vocab_size": ODD}, TEXT),
    "experts": case("qwen_moe", {**MOE, "capacity_factor": 0}, LONG),
    "recomputed": case("qwen_moe", MOE, LONG),
    "looking_back": {**case("llama", {}, LONG), "model": {"source": str(MODELS_OF_TESTS / "looking_back.c"), "config": {
        "width": 5, "kernel": 3, "dilation": 2, "shift": 2, "vocab_size": 258}}},
    "both_ways": {**case("llama", {}, LONG), "model": {"source": str(MODELS_OF_TESTS / "both_ways.c"), "config": {
        "width": 5, "vocab_size": 258}}},
}
TENSOR = re.compile(r'PARAMETER\("([^"]+)",[^,]+,\s+(\w+),[^,]+,[^,]+,\s+(\d+),([\d,\s]+)\)|INTEGERS\("([^"]+)"')
LAYERS = re.compile(r"^ +{(\d+), (\d+), (\d+), (\d+), (?:sizeof|\d)", re.MULTILINE)
HALF_TOLERANCE = 2e-2


def parameters_of(text):
    """Name, kind of start, rank and shape of each parameter of the program's text; no kind: it counts."""
    rows = [(match[1] or match[5], *match.groups()[1:4]) for match in TENSOR.finditer(text)]
    layers = text.partition(" layers_of_tensors[] = {")[2].partition("\n};")[0]
    numbers = {}
    for first, count, start, n in (map(int, row) for row in LAYERS.findall(layers)):
        numbers |= {row: range(start, start + n) for row in range(first, first + count)}
    return [(name.replace("%d", str(number), 1) if number is not None else name, *rest)
            for row, (name, *rest) in enumerate(rows) for number in numbers.get(row, [None])]


def write_weights(trainer, text):
    """Parameters of every size, as numbers, for the program's text."""
    rng = np.random.default_rng(5)
    weights = {}
    for name, init, rank, dims in parameters_of(text):
        if init is None:
            weights[name] = np.array(3, np.int64)
            continue
        shape = [int(word) for word in dims.split(",")][:int(rank)]
        numbers = rng.normal(size=shape) * 0.2 + (init == "ONES")
        weights[name] = (np.abs(numbers) if name.endswith("running_var") else numbers).astype(np.float32)
        if name == "cls.predictions.bias":
            weights[name][:8] = -np.inf  # tokens that are never there, and of which a row of logits begins
    assert weights, "no parameter in the program's text"
    save_file(weights, trainer.folder / "weights.safetensors")


class Forward(unittest.TestCase):
    parts, device = None, HostTrainer

    def made(self, job, kind):
        """The program for the processor and the one for the device, in folders with the same weights and data."""
        copies = [json.loads(json.dumps(job)) for _ in range(2)]
        copies[0].get("devices", {}).pop("attention", None)  # of GPUs alone
        copies[0].pop("memory", None)
        trainers = [Trainer(copies[0]), self.device(copies[1], self.parts, watched=True, program=kind)]
        text = trainers[0].generate("--program", kind)
        for trainer, flags in zip(trainers, (["--program", kind], [])):
            write_data(trainer.folder, job["data"].get("features", 1))
            write_weights(trainer, text)
            trainer.build(*flags)
        return trainers

    def said(self, trainer, *flags, **environment):
        ended = subprocess.run([trainer.folder / "trainer", "--weights", "weights.safetensors", *map(str, flags)], cwd=trainer.folder,
                               capture_output=True, encoding="latin-1", env={**os.environ, "OMP_NUM_THREADS": "2", **environment})
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def check_format(self, trainer):
        for ending in ("c", trainer.ending):
            for what, why in formatted((trainer.folder / f"trainer.{ending}").read_text()):
                self.assertIsNone(why, f"{ending}: {what}")

    def evaluate(self, name, job):
        processor, device = self.made(job, "evaluate")
        self.check_format(device)
        expected, found = (json.loads(self.said(trainer, "--format", "json")) for trainer in (processor, device))
        self.assertEqual(expected.keys(), found.keys())
        self.assertEqual(expected["samples"], found["samples"])
        half = job.get("precision", {}).get("mixed_precision", "no") != "no"
        for key in ("loss", "perplexity", "accuracy"):
            if key in expected:
                np.testing.assert_allclose(found[key], expected[key], rtol=HALF_TOLERANCE if half else 2e-5, err_msg=f"{name}: {key}")
        if name == "gpt":
            self.assertEqual(self.said(device), self.said(device, ACCEL_GRAPHS="no"))

    def write(self, name, job):
        """The likeliest tokens, and drawn ones; of a text as long as the window, and beyond it."""
        processor, device = self.made(job, "generate")
        self.check_format(device)
        vocabulary = job["model"]["config"]["vocab_size"]
        begin = "the quick brown fox jumps over the dogs" if vocabulary == 256 else " ".join(str(7 * i % 250) for i in range(39))
        half = job.get("precision", {}).get("mixed_precision", "no") != "no"
        length = job["data"]["sequence_length"]
        for flags in (["--temperature", 0], ["--top-k", 9, "--repetition-penalty", 1.3, "--seed", 5]):
            said, rows = [], []
            for trainer in (processor, device):
                said.append(self.said(trainer, "--prompt", begin, "--tokens", length, "--logits", "logits", *flags))
                rows.append(np.fromfile(trainer.folder / "logits", np.float32).reshape(length, vocabulary))
            same = [i for i in range(length) if np.array_equal(rows[0][:i].argmax(1), rows[1][:i].argmax(1))][-1] + 1 if half else length
            away = np.linalg.norm(rows[1][:same] - rows[0][:same], axis=1) / np.linalg.norm(rows[0][:same], axis=1)
            self.assertLess(away.max(), HALF_TOLERANCE if half else 2e-5, f"{name}: {flags}")
            if not half:
                self.assertEqual(said[0], said[1])
        if name == "llama":
            self.assertEqual(said[1], self.said(device, "--prompt", begin, "--tokens", length, *flags, ACCEL_GRAPHS="no"))


def add(name, job, way):
    setattr(Forward, f"test_{way}_{name}", lambda self: getattr(self, way)(name, job))


if __name__ == "__main__":
    Forward.parts = objects()
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    unknown = set(named) - {name for cases in (EVALUATED, MORE_EVALUATED, WRITTEN, MORE_WRITTEN) for name in cases}
    if unknown:
        sys.exit(f"no case is called {', '.join(sorted(unknown))}")
    for cases, more, way in ((EVALUATED, MORE_EVALUATED, "evaluate"), (WRITTEN, MORE_WRITTEN, "write")):
        for name, job in ({**cases, **more} if named or rotation.ALL else cases).items():
            if not named or name in named:
                add(name, job, way)
    unittest.main(argv=sys.argv[:1])
