"""CUDA programs whose layers are on the host and on a disk (memory.device_map): the bits of the program that has all of them on the
device, in the device's memory that the plan says, over stand-ins that see whether each copy and each kernel waits for what it needs.

usage: test_streaming.py; --all: both kinds of program, and a file that changes meanwhile (ninja soak)"""

import json
import os
import re
import subprocess
import sys
import time
import unittest

import numpy as np
from host import GENERATOR, HostTrainer, objects
from test_forward import write_weights
from test_training import GPT, HEADS, TEXT, case, write_data

from rotation import ALL, is_in_turn  # tests/program; isort: skip

GRANULE = 2 << 20  # of the device's memory
PLACES = {"0": "gpu", "1": "cpu", "2": "cpu", "*": "disk"}
JOBS = {"evaluate": ("h", case("gpt2", {**GPT, "n_layer": 6}, TEXT, training={"steps": 4, "eval_iters": 3})),
        "generate": ("model.layers", case("llama", {**HEADS, "num_hidden_layers": 6}, {**TEXT, "sequence_length": 40},
                                          precision={"mixed_precision": "bf16"}, devices={"attention": "own"}))}
FLAGS = {"evaluate": ["--format", "json"],
         "generate": ["--prompt", "the quick brown fox jumps over the dogs", "--seed", "5"]}


class Streaming(unittest.TestCase):
    device = HostTrainer

    def made(self, kind, places):
        layers, job = JOBS[kind]
        device_map = {**{f"{layers}.{layer}": place for layer, place in places.items()}, "*": "gpu"}
        trainer = self.device({**json.loads(json.dumps(job)), "memory": {"device_map": device_map}}, self.parts, watched=True, program=kind)
        write_data(trainer.folder, 1)
        trainer.build()
        return trainer

    def command(self, trainer, kind, tokens=12):
        texts = ["--tokens", str(tokens), "--logits", "logits"] if kind == "generate" else []
        return [trainer.folder / "trainer", "--weights", "weights.safetensors", *FLAGS[kind], *texts]

    def ended(self, trainer, kind, **environment):
        return subprocess.run(self.command(trainer, kind), cwd=trainer.folder, capture_output=True, encoding="latin-1",
                              env={**os.environ, "OMP_NUM_THREADS": "2", **environment})

    def said(self, trainer, kind, **environment):
        """What it says, and its logits."""
        ended = self.ended(trainer, kind, **environment)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        logits = np.fromfile(trainer.folder / "logits", np.float32).tobytes() if kind == "generate" else b""
        return re.sub(r'"job": "\w+"', "", ended.stdout), logits

    def broken(self, trainer):
        claims = subprocess.run([GENERATOR, "audit", trainer.folder / "trainer.c"], capture_output=True, text=True).stdout
        self.assertIn("no-race-with-transfers", claims)
        return re.findall(r"^ +broken +(\S+)", claims, re.MULTILINE)

    def compare(self, kind):
        fits, streams = self.made(kind, {"*": "gpu"}), self.made(kind, PLACES)
        write_weights(fits, (fits.folder / "trainer.c").read_text())
        (streams.folder / "weights.safetensors").write_bytes((fits.folder / "weights.safetensors").read_bytes())
        expected = self.said(fits, kind)
        for graphs in ("yes", "no"):
            self.assertEqual(self.said(streams, kind, ACCEL_GRAPHS=graphs), expected, graphs)
        self.fitting(streams, kind)
        self.assertEqual(self.broken(streams), [])
        if kind == "generate" and ALL:
            self.changing(streams)
        streams.rebuild((streams.folder / "trainer.c").read_text().replace("accel_gpu_wait_prefetch();", "(void)0;"))
        self.assertEqual(self.ended(streams, kind).returncode, 70)
        self.assertIn("no-race-with-transfers", self.broken(streams))

    def fitting(self, trainer, kind):
        """It takes what is planned, and what the host sends of samples."""
        said = subprocess.check_output([GENERATOR, "plan", trainer.folder / "job.yaml", "--program", kind, "--json"])
        need = -(-json.loads(said)["arena_bytes"]["total"] // GRANULE) * GRANULE
        self.assertEqual(self.ended(trainer, kind, STANDIN_MEMORY=str(need + GRANULE)).returncode, 0)
        self.assertIn("the plan takes", self.ended(trainer, kind, STANDIN_MEMORY=str(need - GRANULE)).stderr)

    def changing(self, trainer):
        """A file that changes while text is written."""
        process = subprocess.Popen(self.command(trainer, "generate", 100000), cwd=trainer.folder, bufsize=0, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        process.stdout.read(4)
        time.sleep(0.05)
        with open(trainer.folder / "weights.safetensors", "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"1")
        self.assertIn(b"it was changed", process.communicate(timeout=300)[1])
        self.assertEqual(process.returncode, 1)


def add(kind):
    setattr(Streaming, f"test_{kind}", lambda self: self.compare(kind))


if __name__ == "__main__":
    Streaming.parts = objects()
    for i, kind in enumerate(JOBS):
        if kind in sys.argv or (len(sys.argv) == 1 or ALL) and is_in_turn(i, len(JOBS)):
            add(kind)
    unittest.main(argv=sys.argv[:1])
