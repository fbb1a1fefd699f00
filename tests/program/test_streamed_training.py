"""Trainers whose frozen layers are on the disk (memory.device_map): the bits of the run that has all in memory, in memory that does not grow
with them and is a third of the file's size at most; killed and resumed, and what such a run leaves."""

import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
import test_streaming as streaming
from harness import GENERATOR, MEASURED, MODELS, QUICK, load_file
from rotation import SEED, in_turn, rotating
from safetensors.torch import save_file

LAYERS, STEPS = 32, 4
PLACES = {"fits": '{"*": cpu}', "disk": '{"h.0": cpu, "h.*": disk, "*": cpu}'}
LORA = "lora: {rank: 2, alpha: 4, targets: [c_attn, c_fc], merge: %s}"
JOB = """model:
  source: {source}
  weights: model.safetensors
  config: {{n_layer: {layers}, n_head: 4, n_embd: {width}, vocab_size: {vocabulary}, block_size: {length}}}
  {trained}
data: {{train: {{path: tokens.bin, format: nanogpt}}, batch_size: 1, sequence_length: {length}}}
optimizer: {{name: adamw, lr: 0.001}}
training: {{steps: {steps}, eval_iters: 2, eval_interval: 2}}
checkpoint: {{project_dir: {folder}, every: 1, background: false}}
tracking: {{every: 1}}
devices: {{threads: 1}}
memory: {{device_map: {places}, activation_checkpointing: all}}
"""
BITS4 = "quantize: {load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}\n  "
# What is trained, and other keys.
WAYS = {"codes of 4 bits": (BITS4 + LORA % "false", []),
        "codes of 4 bits, merged": (BITS4 + LORA % "true", []),
        "codes of 8 bits": ("quantize: {load_in_8bit: true}\n  " + LORA % "false", []),
        "16 bits": (LORA % "true", ["precision.mixed_precision=bf16", "memory.activation_checkpointing=none"]),
        "micro-batches": (LORA % "false", ["accumulation.num_steps=2", "optimizer.clip_grad_norm=1.0", "memory.activation_checkpointing=layers",
                                           "memory.checkpoint_layers=2"]),
        "states on the disk": (LORA % "true", ["parallelism.offload={optimizer: nvme, optimizer_nvme_path: .}"]),
        "norms": ('freeze: ["w*", "h.*.attn.*", "h.*.mlp.*"]', ['memory.device_map={"h.*.ln_*": cpu, "h.0": cpu, "h.*": disk, "*": cpu}']),
        "dropout, some layers": ("lora: {rank: 2, alpha: 4, dropout: 0.1, targets: ['h.3.*c_attn', 'h.4.*c_attn']}", [])}


class Trainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        np.random.default_rng(1).integers(0, streaming.VOCABULARY, 4000).astype(np.uint16).tofile(cls.folder / "tokens.bin")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def publish(self, layers):
        save_file(streaming.tensors(layers), self.folder / "model.safetensors")

    def job(self, name, layers, trained=LORA % "true", keys=()):
        job = self.folder / f"{name}.yaml"
        job.write_text(JOB.format(source=MODELS / "gpt2.c", layers=layers, width=streaming.WIDTH, vocabulary=streaming.VOCABULARY,
                                  length=streaming.LENGTH, trained=trained, steps=STEPS, folder=f"run_{name}", places=PLACES[name]))
        fits = [key for key in keys if "device_map" not in key or name == "disk"]
        self.sets = [word for key in fits for word in ("--set", key)]
        return job

    def build(self, job, kind="train"):
        program = job.with_suffix(f".{kind}")
        subprocess.run([GENERATOR, "build", job, "-o", program, "--program", kind, "-q", *self.sets], check=True, env=QUICK)
        return program

    def audit(self, job):
        program = job.with_suffix(".c")
        subprocess.run([GENERATOR, job, "-o", program, *self.sets], check=True)
        claims = subprocess.run([GENERATOR, "audit", program], capture_output=True, text=True)
        self.assertIn(", 0 broken", claims.stdout)
        self.assertIn("no-race-with-transfers", claims.stdout)

    def run_in(self, program, *flags, limit=None):
        """The most memory that a program had, and what it printed. limit: so much memory, and three times as much address space."""
        limits = {resource.RLIMIT_DATA: limit, resource.RLIMIT_AS: 3 * limit} if limit else {}
        done = subprocess.run([*MEASURED, "peak", program, *flags], cwd=self.folder, capture_output=True,
                              preexec_fn=lambda: [resource.setrlimit(which, (most, most)) for which, most in limits.items()])
        self.assertEqual(done.returncode, 0, done.stderr)
        return int((self.folder / "peak").read_text()), done.stdout

    def left(self, name):
        """What a run leaves: its losses, and the bytes of all tensors."""
        folder = self.folder / f"run_{name}"
        with open(folder / "metrics.jsonl") as lines:
            losses = [(row["step"], row.get("loss"), row.get("eval_loss")) for row in map(json.loads, lines)]
        return losses, {(file, key): value.tobytes() for file in ("model", "adapter/adapter_model") if (folder / f"{file}.safetensors").exists()
                        for key, value in load_file(folder / f"{file}.safetensors").items()}

    def compare(self, trained=LORA % "true", keys=(), limit=None):
        programs = {}
        for name in PLACES:
            shutil.rmtree(self.folder / f"run_{name}", ignore_errors=True)
            programs[name] = self.build(self.job(name, self.layers, trained, keys))
        self.run_in(programs["fits"], "--quiet")
        file = self.folder / "model.safetensors"
        before = file.stat()
        peak, _ = self.run_in(programs["disk"], "--quiet", limit=limit)
        self.assertEqual((file.stat().st_mtime_ns, file.stat().st_size), (before.st_mtime_ns, before.st_size))
        expected = self.left("fits")
        self.assertEqual(self.left("disk"), expected)
        self.assertEqual(len(expected[0]), STEPS)
        return programs["disk"], peak, expected

    def evaluated(self, name):
        shutil.copytree(self.folder / "run_fits", self.folder / "run_disk", dirs_exist_ok=True)
        return json.loads(self.run_in(self.build(self.folder / f"{name}.yaml", "evaluate"), "--format", "json")[1])["loss"]


class StreamedTraining(Trainers):
    def test_larger_than_memory(self):
        """In a third of the file's size: trained, killed, resumed, evaluated."""
        self.layers = LAYERS
        self.publish(LAYERS)
        limit = (self.folder / "model.safetensors").stat().st_size // 3
        program, peak, expected = self.compare(limit=limit)
        shutil.rmtree(self.folder / "run_disk")
        chance = random.Random(SEED)
        for _ in range(2):
            process = subprocess.Popen([program, "--quiet", "--resume", "auto"], cwd=self.folder)
            time.sleep(chance.uniform(0.1, 1.5))
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.run_in(program, "--quiet", "--resume", "auto", limit=limit)
        self.assertEqual(self.left("disk")[1], expected[1])
        checkpoint = load_file(self.folder / "run_disk" / "checkpoints" / f"checkpoint_{STEPS - 1}" / "model.safetensors")
        self.assertEqual({key for key in checkpoint if key.startswith("h.1.")},
                         {f"h.1.{module}.lora_{part}.weight" for module in ("attn.c_attn", "mlp.c_fc") for part in "AB"})
        self.audit(self.folder / "disk.yaml")
        self.assertEqual(self.evaluated("disk"), self.evaluated("fits"))
        self.check_peak(peak)

    def check_peak(self, peak):
        """It does not grow with the layers that stream."""
        plans = [json.loads(subprocess.check_output([GENERATOR, "plan", self.job("disk", layers), "--json"]))["arena_bytes"]["total"]
                 for layers in (LAYERS, 4)]
        self.publish(4)
        shutil.rmtree(self.folder / "run_disk")
        least, _ = self.run_in(self.build(self.job("disk", 4)), "--quiet")
        layer = sum(value.numel() for key, value in streaming.tensors(2).items() if key.startswith("h.1.")) * 4
        self.assertLess(abs(peak - least - (plans[0] - plans[1])), 0.02 * (LAYERS - 4) * layer + streaming.BUFFERS)

    def test_ways(self):
        self.layers = 5
        self.publish(self.layers)
        for way in in_turn(WAYS, 4):
            trained, keys = WAYS[way]
            with self.subTest(way=way):
                program, _, expected = self.compare(trained, keys)
                shutil.rmtree(self.folder / "run_disk" / "checkpoints" / f"checkpoint_{STEPS - 1}")
                (self.folder / "run_disk" / "model.safetensors").unlink()
                self.run_in(program, "--quiet", "--resume", "auto")
                self.assertEqual(self.left("disk")[1], expected[1])
                self.audit(self.folder / "disk.yaml")


class Refusals(Trainers):
    def test_other_weights(self):
        """A run resumes with the weights that it began with alone. Others, also of the same size, end it and change nothing."""
        self.publish(3)
        program = self.build(self.job("disk", 3))
        self.run_in(program, "--quiet", "--steps", "2")
        folder, file = self.folder / "run_disk", self.folder / "model.safetensors"
        began, other = file.read_bytes(), streaming.tensors(3)
        other["h.2.mlp.c_fc.weight"][0, 0] += 1
        for metadata, text in ((None, "other content"), ({"longer": "x" * 64}, " bytes")):
            save_file(other, file, metadata)
            left = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
            done = subprocess.run([program, "--quiet", "--resume", "auto"], cwd=self.folder, capture_output=True, text=True)
            with self.subTest(text=text):
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, f"layers stream from other weights than when the run of .*: model.safetensors: .*{text}")
                self.assertIn("put back the file as it was", done.stderr)
                self.assertEqual({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}, left)
        file.write_bytes(began)
        self.run_in(program, "--quiet", "--resume", "auto")

    def test_refusals(self):
        for trained, keys, text in ((LORA % "true", ["devices.kind=cuda"], "layers come to trainers on processors alone"),
                                    (LORA % "true", ["devices.per_node=2"], "layers come to a trainer of one process alone"),
                                    (LORA % "true", ["model.weights=null"], "layers come from the file of model.weights, which is not set"),
                                    (LORA % "true", ["training.ema={decay: 0.9}"], "training.ema averages weights that are in memory"),
                                    (LORA % "true", ["training.early_stopping={patience: 2, restore_best: true}"],
                                     "training.early_stopping.restore_best takes all weights"),
                                    (LORA % "true", ["memory.activation_checkpointing=every", "memory.checkpoint_every=2"],
                                     "activation_checkpointing: every runs several layers again together"),
                                    (LORA % "true", ["optimizer={name: lomo, lr: 0.1}"], "lomo and adalomo have all weights in memory"),
                                    ('freeze: ["w*"]', [], "is trained, so that it stays in memory"),
                                    (LORA % "true", ["memory.device_map=auto", "devices.memory={cpu: 20m, disk: .}"], "more layers stream with memory.reserve")):
            done = subprocess.run([GENERATOR, "plan", self.job("disk", 5, trained, keys), *self.sets], capture_output=True, text=True)
            with self.subTest(keys=keys):
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(text, done.stderr)


load_tests = rotating(2, always=("Refusals",))


if __name__ == "__main__":
    unittest.main()
