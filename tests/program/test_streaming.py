"""Evaluators and generators whose last layers are on the disk (memory.device_map): the bits of the run that fits, from files of 32 and 16
bits, in shards, from the page cache and past it, in memory that does not grow with them and is a third of the file's size at most; and
files that change meanwhile."""

import ctypes
import json
import mmap
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np
import torch
from harness import GENERATOR, MEASURED, MODELS, QUICK
from rotation import is_in_turn, rotating
from safetensors.torch import save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import start  # noqa: E402

DISK, FITS = '{"h.0": cpu, "h.*": disk, "*": cpu}', '{"*": cpu}'
VOCABULARY, LENGTH, LAYERS, WIDTH = 61, 32, 30, 384
BUFFERS = 16 << 20  # what is read past the page cache comes by way of these; a run that finds its layers there touches none of them
JOB = """model:
  source: {source}
  weights: model.safetensors
  config: {{n_layer: {layers}, n_head: 4, n_embd: {width}, vocab_size: {vocabulary}, block_size: {length}}}
data: {{train: {{path: tokens.bin, format: nanogpt}}, batch_size: 1, sequence_length: {length}}}
optimizer: {{name: sgd, lr: 0.1}}
training: {{steps: 1, eval_iters: 3}}
devices: {{threads: 1}}
memory: {{device_map: {places}}}
"""


PUBLISHED = {
    "llama": ({"num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 64, "intermediate_size": 96,
               "vocab_size": VOCABULARY}, {"model.layers.0": "cpu", "model.layers.*": "disk", "*": "cpu"}),
    "t5": ({"num_layers": 4, "num_decoder_layers": 4, "num_heads": 2, "d_model": 32, "d_kv": 16, "d_ff": 64, "vocab_size": VOCABULARY},
           {"encoder.block.0": "cpu", "encoder.block.1": "cpu", "encoder.block.*": "disk", "decoder.block.0": "cpu", "decoder.block.1": "cpu",
            "decoder.block.*": "disk", "*": "cpu"})}


def tensors(layers):
    torch.manual_seed(3)
    found = {"wte.weight": torch.randn(VOCABULARY, WIDTH), "wpe.weight": torch.randn(LENGTH, WIDTH), "ln_f.weight": torch.randn(WIDTH),
             "ln_f.bias": torch.randn(WIDTH)}
    shapes = {"attn.c_attn": (WIDTH, 3 * WIDTH), "attn.c_proj": (WIDTH, WIDTH), "mlp.c_fc": (WIDTH, 4 * WIDTH), "mlp.c_proj": (4 * WIDTH, WIDTH)}
    for i in range(layers):
        for norm in ("ln_1", "ln_2"):
            found |= {f"h.{i}.{norm}.weight": torch.randn(WIDTH), f"h.{i}.{norm}.bias": torch.randn(WIDTH)}
        for name, (rows, columns) in shapes.items():
            found |= {f"h.{i}.{name}.weight": 0.1 * torch.randn(rows, columns), f"h.{i}.{name}.bias": 0.1 * torch.randn(columns)}
    return found


def cached(path):
    """What part of a file the page cache has."""
    size = path.stat().st_size
    pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE + 1))()
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(mapped))), ctypes.c_size_t(size), pages)
    return sum(page & 1 for page in pages) * mmap.PAGESIZE / size


def drop(path):
    """From the page cache; whether the file system can do that."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return cached(path) < 0.1


class Streaming(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        np.random.default_rng(1).integers(0, VOCABULARY, 4000).astype(np.uint16).tofile(cls.folder / "tokens.bin")
        cls.weights = tensors(LAYERS)
        save_file(cls.weights, cls.folder / "model.safetensors")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def build(self, kind, places, layers=LAYERS, keys=(), made=True):
        """A program's name, and what its plan says of memory."""
        name = f"{kind}_{'disk' if 'disk' in places else 'fits'}_{layers}{len(keys)}"
        job = self.folder / f"{name}.yaml"
        job.write_text(JOB.format(source=MODELS / "gpt2.c", layers=layers, width=WIDTH, vocabulary=VOCABULARY, length=LENGTH, places=places))
        sets = [word for key in keys for word in ("--set", key)]
        if made:
            subprocess.run([GENERATOR, "build", job, "-o", self.folder / name, "--program", kind, "-q", *sets], check=True, env=QUICK)
        plan = subprocess.check_output([GENERATOR, "plan", job, "--program", kind, "--json", *sets])
        self.files = job, sets
        return name, json.loads(plan)["arena_bytes"]

    def run_in(self, name, *flags, limited=False):
        """What a program prints, and the most memory that it had. limited: it may have a third of the file's size, and may not map all of it."""
        size = (self.folder / "model.safetensors").stat().st_size
        limits = {resource.RLIMIT_DATA: size // 3, resource.RLIMIT_AS: size} if limited else {}
        done = subprocess.run([*MEASURED, "peak", self.folder / name, *flags], cwd=self.folder, capture_output=True,
                              preexec_fn=lambda: [resource.setrlimit(which, (bytes, bytes)) for which, bytes in limits.items()])
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout, int((self.folder / "peak").read_text())

    def in_shards_of_16_bits(self):
        folder = self.folder / "shards"
        folder.mkdir(exist_ok=True)
        names = sorted(self.weights)
        of = {name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(names)}
        for file in set(of.values()):
            save_file({name: self.weights[name].bfloat16() for name in names if of[name] == file}, folder / file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": of}))
        return folder

    def unaligned(self):
        """The file with tensors at odd bytes."""
        file = (self.folder / "model.safetensors").read_bytes()
        end = 8 + int.from_bytes(file[:8], "little")
        text = file[8:end] + b" " * ((2 - end) % 4 + 1)
        (self.folder / "odd.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + file[end:])
        return self.folder / "odd.safetensors"

    def audited(self, kind):
        job, sets = self.files
        program = self.folder / f"{kind}.c"
        subprocess.run([GENERATOR, job, "-o", program, "--program", kind, *sets], check=True)
        claims = subprocess.run([GENERATOR, "audit", program], capture_output=True, text=True)
        self.assertEqual(claims.returncode, 0, claims.stdout)
        self.assertIn(", 0 broken", claims.stdout)
        self.assertIn("no-race-with-transfers", claims.stdout)

    def test_evaluator(self):
        keys = ["precision.mixed_precision=bf16"] if is_in_turn(0, 2) else []
        fits, whole = self.build("evaluate", FITS, keys=keys)
        name, plan = self.build("evaluate", DISK, keys=keys)
        self.audited("evaluate")
        bits16 = 1.5 if keys else 1
        layer = sum(value.numel() for key, value in self.weights.items() if key.startswith("h.1.")) * 4
        self.assertAlmostEqual((whole["total"] - plan["total"]) / (bits16 * layer * (LAYERS - 3)), 1, delta=0.01)
        for flags in ((), ("--weights", self.in_shards_of_16_bits()), ("--weights", self.unaligned())):
            expected = json.loads(self.run_in(fits, "--format", "json", *flags)[0])
            for file in (self.folder / "model.safetensors", self.folder / "odd.safetensors"):
                if file.exists():
                    drop(file)
            found = json.loads(self.run_in(name, "--format", "json", *flags, limited=True)[0])
            self.assertEqual({**found, "job": ""}, {**expected, "job": ""})

    def test_ranks(self):
        """Ranks that divide tensors, each of which reads its parts of layers: the loss of one process that has all in memory. Where
        the file is not there, all of them end, and one says so."""
        one, _ = self.build("evaluate", FITS, layers=4)
        several, plan = self.build("evaluate", DISK, layers=4, keys=["devices.per_node=2", "parallelism.tp=2"])
        self.audited("evaluate")
        _, fits = self.build("evaluate", FITS, layers=4, keys=["devices.per_node=2", "parallelism.tp=2"], made=False)
        layer = sum(value.numel() for key, value in self.weights.items() if key.startswith("h.1.")) * 4
        self.assertAlmostEqual((fits["total"] - plan["total"]) / (layer / 2), 1, delta=0.02)
        few = {key: value for key, value in self.weights.items() if not key.startswith("h.") or int(key.split(".")[1]) < 4}
        for kind in (torch.float32, torch.bfloat16):
            save_file({key: value.to(kind) for key, value in few.items()}, self.folder / "few.safetensors")
            expected = json.loads(self.run_in(one, "--format", "json", "--weights", "few.safetensors")[0])
            found = start(self.folder / several, 2, "--format", "json", "--weights", "few.safetensors", cwd=self.folder)
            self.assertEqual(found.returncode, 0, found.stderr)
            self.assertAlmostEqual(json.loads(found.stdout)["loss"] / expected["loss"], 1, delta=1e-6)
        missing = start(self.folder / several, 2, "--weights", "none.safetensors", cwd=self.folder)
        self.assertEqual((missing.returncode, missing.stderr.count("none.safetensors")), (1, 1), missing.stderr)

    def test_memory(self):
        """The peak does not grow with the layers that stream."""
        name, plan = self.build("evaluate", DISK)
        few, other = self.build("evaluate", DISK, layers=4)
        streamed = (LAYERS - 4) * sum(value.numel() for key, value in self.weights.items() if key.startswith("h.1.")) * 4
        save_file({key: value for key, value in self.weights.items() if not key.startswith("h.") or int(key.split(".")[1]) < 4},
                  self.folder / "few.safetensors")
        peak, least = self.run_in(name)[1], self.run_in(few, "--weights", "few.safetensors")[1]
        self.assertLess(abs(peak - least - (plan["total"] - other["total"])), 0.02 * streamed + BUFFERS)

    def test_generator(self):
        flags = ("--prompt", "1 2 3 4 5 6 7", "--tokens", "20", "--seed", "5", "--logits")
        fits, _ = self.build("generate", FITS)
        name, _ = self.build("generate", DISK)
        self.assertEqual(self.run_in(fits, *flags, "fits")[0], self.run_in(name, *flags, "disk", limited=True)[0])
        file = self.folder / "model.safetensors"
        if drop(file):  # read once it is not in the page cache afterwards, read more often it is
            self.run_in(name, "--prompt", "1 2 3", "--tokens", "1")
            self.assertLess(cached(file), 0.6)
            self.run_in(name, *flags, "disk")
            self.assertGreater(cached(file), 0.8)
        self.assertEqual((self.folder / "fits").read_bytes(), (self.folder / "disk").read_bytes())
        if is_in_turn(1, 2):
            self.audited("generate")
        self.changing(name)

    def test_quantized(self):
        """Codes of 4 or of 8 bits with adapters next to them, made of floats at each read, and those that a run left."""
        bits4 = is_in_turn(3, 2)
        codes = "{load_in_4bit: true, bnb_4bit_quant_type: nf4, bnb_4bit_use_double_quant: true}" if bits4 else "{load_in_8bit: true}"
        alone = [f"model.quantize={codes}", "checkpoint.project_dir=left"]
        keys = [*alone, "model.lora={rank: 2, alpha: 4, targets: [c_attn], merge: false}"]
        kind, flags = ("generate", ("--prompt", "1 2 3", "--tokens", "3", "--seed", "5")) if bits4 else ("evaluate", ("--format", "json"))
        fits, disk = (self.build(kind, places, keys=alone)[0] for places in (FITS, DISK))
        self.same(fits, disk, *flags)
        subprocess.run([self.folder / self.build("train", FITS, keys=keys)[0]], cwd=self.folder, check=True, capture_output=True)
        fits, disk = (self.build(kind, places, keys=keys)[0] for places in (FITS, DISK))
        self.audited(kind)
        drop(self.folder / "left" / "model.safetensors")
        self.same(fits, disk, *flags)

    def same(self, fits, disk, *flags):
        found = [re.sub(rb'"job": "\w+"', b"", self.run_in(name, *flags)[0]) for name in (fits, disk)]
        self.assertEqual(*found)

    def test_published(self):
        """Shards of 16 bits of a Llama of grouped queries, and of a T5 both of whose stacks stream, one of them in a run: the numbers of the
        program that has all in memory."""
        model, kind, flags = (("llama", "generate", ("--prompt", "1 2 3 4 5", "--tokens", "20", "--seed", "5")) if is_in_turn(2, 2) else
                              ("t5", "evaluate", ("--format", "json")))
        config, disk = PUBLISHED[model]
        self.publish(model, config)
        found = []
        for places in ({"*": "cpu"}, disk):
            job = self.folder / f"{model}.yaml"
            job.write_text(json.dumps({
                "model": {"source": str(MODELS / f"{model}.c"), "config": config, "weights": model},
                "data": {"train": {"path": "tokens.bin", "format": "nanogpt"}, "batch_size": 1, "sequence_length": LENGTH},
                "training": {"steps": 1, "eval_iters": 3}, "devices": {"threads": 1}, "memory": {"device_map": places}}))
            subprocess.run([GENERATOR, "build", job, "-o", self.folder / model / "program", "--program", kind, "-q"], check=True, env=QUICK)
            found.append(re.sub(rb'"job": "\w+"', b"", self.run_in(f"{model}/program", *flags)[0]))
        self.assertEqual(*found)

    def publish(self, model, config):
        """Random weights in bfloat16 under the names of the model, in two files."""
        folder = self.folder / model
        folder.mkdir()
        said = subprocess.check_output([GENERATOR, "model", "check", MODELS / f"{model}.c", "--json", "--config",
                                        ",".join(f"{key}={value}" for key, value in config.items())])
        parts = [{}, {}]
        for i, one in enumerate(json.loads(said)["parameters"]):
            parts[i % 2][one["name"]] = (0.3 * torch.randn(one["shape"])).bfloat16()
        names = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
        for part, name in zip(parts, names):
            save_file(part, folder / name)
        index = {"metadata": {}, "weight_map": {key: name for part, name in zip(parts, names) for key in part}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    def changing(self, name):
        """Files that change while text is written."""
        copy = self.folder / "copy.safetensors"
        flags = ["--prompt", "1 2 3", "--seed", "5", "--weights", copy, "--tokens"]
        shutil.copy(self.folder / "model.safetensors", copy)
        expected = self.run_in(name, *flags, "30")[0]

        def rewritten():
            with open(copy, "r+b") as file:
                file.seek(5000)
                file.write(b"1")

        def replaced():
            other = self.folder / "other"
            other.write_bytes(b"none")
            os.replace(other, copy)

        for change, tokens, texts in ((replaced, "30", None), (rewritten, "100000", ("it was changed",)),
                                      (lambda: os.truncate(copy, 5000), "100000", ("it was changed", "became shorter"))):
            shutil.copy(self.folder / "model.safetensors", copy)
            process = subprocess.Popen([self.folder / name, *flags, tokens], cwd=self.folder, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            begin = process.stdout.read(8)
            time.sleep(0.05)
            change()
            out, error = process.communicate(timeout=300)
            if texts is None:
                self.assertEqual((process.returncode, begin + out, error), (0, expected, b""))
            else:
                self.assertEqual(process.returncode, 1)
                self.assertTrue(any(text in error.decode() for text in texts), error)

    def test_auto(self):
        """data.batch_size: auto with memory.device_map: auto: of an evaluator and a generator as many layers are in memory as fit with all
        else; what can be trained is what fits without a map."""
        job = self.folder / "auto.yaml"
        job.write_text(JOB.format(source=MODELS / "gpt2.c", layers=LAYERS, width=WIDTH, vocabulary=VOCABULARY, length=LENGTH, places="auto")
                       .replace("batch_size: 1", "batch_size: auto"))
        layer = sum(value.numel() for key, value in self.weights.items() if key.startswith("h.1.")) * 4

        def plan(*flags):
            return json.loads(subprocess.check_output([GENERATOR, "plan", job, "--json", *flags]))

        for kind in ("evaluate", "generate"):
            for limit in (24 << 20, 82 << 20, 150 << 20):
                total = plan("--program", kind, "--set", f"devices.memory={{cpu: {limit}, disk: .}}")["arena_bytes"]["total"]
                with self.subTest(kind=kind, limit=limit):
                    self.assertLessEqual(total, limit)
                    self.assertGreater(total + layer, limit)
        fits = [[(row["setting"], row["activation_checkpointing"], row.get("batch_size"))
                 for row in plan("--fit", "--set", memory, *flags)["fit"]["settings"]] for memory, flags in
                (("devices.memory={cpu: 600m, disk: .}", ()), ("devices.memory=600m", ("--set", "memory.device_map=null")))]
        self.assertEqual(*fits)
        self.assertGreater(fits[0][0][2]["size"], 1)

    def test_refusals(self):
        for kind, keys, text in (("train", [], "is trained, so that it stays in memory"),
                                 ("train", ["devices.kind=cuda", 'memory.device_map={"h.*": cpu, "*": gpu}'], "layers come to trainers on processors alone"),
                                 ("evaluate", ["devices.kind=cuda", 'memory.device_map={"h.*": 1, "*": gpu}'], "a program computes in the memory of its device"),
                                 ("evaluate", ["devices.kind=cuda", 'memory.device_map={"h.1.attn": disk, "h.*": cpu, "*": gpu}'],
                                  "'h.1.attn.c_attn.weight' is on the disk, and its layer is in the memory 'cpu'"),
                                 ("evaluate", ['memory.device_map={"h.1.*": disk, "*": cpu}'], "is in the memory of the device, and a layer before its own is not"),
                                 ("evaluate", ["devices.kind=cuda", "devices.per_node=2", "parallelism.tp=2", 'memory.device_map={"h.*": disk, "*": gpu}'],
                                  "layers come from elsewhere to one GPU alone"),
                                 ("evaluate", ["devices.per_node=2", "parallelism.pp=2", "accumulation={num_steps: 4, sync_with_dataloader: false}"],
                                  "a stage of a pipeline has its layers in memory"),
                                 ("evaluate", ['memory.device_map={"wte": disk, "*": cpu}'], "is of no layer that can come from there"),
                                 ("evaluate", ["memory.device_map=auto", "devices.memory={cpu: 9m, disk: .}"], "more layers stream with memory.reserve")):
            job = self.folder / "refused.yaml"
            job.write_text(JOB.format(source=MODELS / "gpt2.c", layers=LAYERS, width=WIDTH, vocabulary=VOCABULARY, length=LENGTH, places=DISK))
            sets = [word for key in keys for word in ("--set", key)]
            done = subprocess.run([GENERATOR, "plan", job, "--program", kind, *sets], capture_output=True, text=True)
            with self.subTest(keys=keys):
                self.assertEqual(done.returncode, 2)
                self.assertIn(text, done.stderr)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
