"""What `plan --fit` finds: a job with these sizes takes as much as it says, and with the next ones more than the limit; the trainer of the
largest batch runs in that memory, and that of the next batch does not."""

import json
import pathlib
import random
import subprocess
import sys
import unittest

import numpy as np
from harness import GENERATOR, MODELS, Trainer
from rotation import SEED

MIB = 1 << 20
GPT = {"n_layer": 3, "n_head": 2, "n_embd": 32, "vocab_size": 61, "block_size": 24}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 256}
ROWS = {"data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 5, "batch_size": 3}}


def job(model, config, **groups):
    return {"model": {"source": str(MODELS / f"{model}.c"), "config": config},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 4, "sequence_length": 16}, "training": {"steps": 3}, **groups}


# A job, and where there are no such programs of it.
JOBS = {
    "gpt2": (job("gpt2", GPT, training={"steps": 3, "eval_interval": 2}, memory={"activation_checkpointing": "layers", "checkpoint_layers": 1}), set()),
    "llama in bf16": (job("llama", LLAMA, precision={"mixed_precision": "bf16"}, memory={"cross_entropy_chunk": "auto"}), set()),
    "published": (job("gpt2", GPT, memory={"cross_entropy_chunk": 8}), set()),
    "adapters": (job("llama", LLAMA), set()),
    "divided": (job("nanogpt", GPT, accumulation={"num_steps": "auto", "train_batch_size": 96}), set()),
    "ranks": (job("llama", LLAMA, devices={"per_node": 4}, parallelism={"cp": 2, "zero_stage": 1}), {"QLoRA", "offload"}),
    "cuda": (job("gpt2", GPT, devices={"kind": "cuda"}), {"QLoRA"}),
    "rows": (job("mlp_table", {"width": 16, "n_classes": 3}, **ROWS), {"LoRA", "QLoRA"}),
}
JOBS["published"][0]["model"]["weights"] = "model.safetensors"
JOBS["adapters"][0]["model"]["lora"] = {"targets": ["q_proj", "o_proj"], "rank": 2}
JOBS["divided"][0]["data"]["batch_size"] = "auto"


def sets(keys):
    return [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]


class Fit(unittest.TestCase):
    def fit(self, trainer, *words):
        return json.loads(trainer.command("plan", "--fit", "job.yaml", "--json", *words))["fit"]

    def total(self, trainer, keys):
        """Bytes of the plan of a job with further keys; None and what is said where it has none."""
        done = subprocess.run([GENERATOR, "plan", trainer.path, "--json", *sets({"devices.memory": "9007199254740991", **keys})], cwd=trainer.folder, capture_output=True, text=True)
        return (json.loads(done.stdout)["arena_bytes"]["total"], "") if done.returncode == 0 else (None, done.stderr)

    def check_size(self, trainer, row, key, memory):
        found = row[key]
        if found["size"] == 0:
            return self.assertGreater(found["next_bytes"], memory)
        following = dict(found["keys"])
        if key == "batch_size":
            following["data.batch_size"] = found.get("next")
            if "accumulation.num_steps" in following:
                following["accumulation.num_steps"] = 96 // found["next"]
        else:
            following["data.sequence_length"] = found.get("next")
            if "block_size" in trainer.job["model"]["config"] and found.get("next", 0) > GPT["block_size"]:
                following["model.config.block_size"] = found["next"]
        self.assertEqual(self.total(trainer, row["keys"] | found["keys"]), (found["bytes"], ""))
        self.assertLessEqual(found["bytes"], memory)
        if "next_bytes" not in found:
            return self.assertIn("ends", found)
        self.assertEqual(self.total(trainer, row["keys"] | following), (found["next_bytes"], ""))
        self.assertGreater(found["next_bytes"], memory)

    def test_sizes(self):
        draw = random.Random(SEED)
        for name, (keys, refused) in JOBS.items():
            trainer = Trainer(json.loads(json.dumps(keys)))
            smallest, said = self.total(trainer, {"data.batch_size": 1, "accumulation.num_steps": 96} if name == "divided" else {})
            self.assertIsNotNone(smallest, said)
            memory = int(smallest * draw.uniform(1.01, 4))
            answer = self.fit(trainer, "--set", f"devices.memory={memory}")
            self.assertEqual((answer["memory_bytes"], answer["memory_of"]), (memory, "devices.memory"))
            self.assertEqual({row["setting"] for row in answer["settings"] if "refused" in row}, refused, answer)
            sized = [row for row in answer["settings"] if "refused" not in row]
            self.assertTrue(any(row["batch_size"]["size"] > 0 for row in sized))
            for key in ("batch_size", "sequence_length"):
                row = draw.choice([row for row in sized if key in row] or [None])
                if row is None:
                    continue

                with self.subTest(job=name, row=row):
                    self.check_size(trainer, row, key, memory)

    def test_reasons(self):
        """A refusal is the one of the job itself, and an end that is not the memory's has its reason."""
        trainer = Trainer(json.loads(json.dumps(JOBS["published"][0])))
        answer = self.fit(trainer, "--set", "devices.memory=1GiB")
        for row in answer["settings"]:
            if "refused" in row:
                self.assertIn(row["refused"], self.total(trainer, row["keys"])[1])
            else:
                self.assertEqual(row["sequence_length"]["size"], GPT["block_size"])
                self.assertIn("model.config.block_size", row["sequence_length"]["ends"])
        text = trainer.command("plan", "--fit", "job.yaml", "--set", "devices.memory=1GiB")
        self.assertIn("A sequence of 24 is the largest: the weights have no more positions", text)
        self.assertEqual(text.count("no more positions"), 1)
        self.assertIn("--set 'model.lora={targets: [c_attn]}'", text)
        large = ["--set", "model.config.n_embd=512", "--set", "model.config.block_size=1024", "--set", "data.sequence_length=1024"]
        machine = self.fit(trainer, *large)
        self.assertEqual(machine["memory_of"], "machine")
        self.assertLess(machine["memory_bytes"], int(next(line for line in pathlib.Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal")).split()[1]) * 1024)
        for words, message in ((["--program", "evaluate"], "--fit says what can be trained"), (["--set", "data.batch_size=auto"], "missing key 'devices.memory'"),
                               (["--set", "accumulation={num_steps: auto, train_batch_size: 5}", "--set", "devices={per_node: 2, memory: 1GiB}"],
                                "5 samples of a step do not divide by 2 ranks"),
                               (["--set", "devices.kind=cuda"], "no GPU of this machine says how much memory it has")):
            if "cuda" not in words[-1] or not machine_has_gpu():
                self.assertIn(message, trainer.command("plan", "--fit", "job.yaml", *words, status=2))

    def test_runs(self):
        """The largest batch in an address space with space for it and for the process; the next one is stopped by that limit."""
        trainer = Trainer(job("nanogpt", {"n_layer": 4, "n_head": 2, "n_embd": 128, "vocab_size": 256, "block_size": 1024}, devices={"threads": 1}))
        trainer.job["data"].update(sequence_length=1024, batch_size=1)
        trainer.job["training"]["steps"] = 1
        trainer.write()
        (trainer.folder / "corpus.txt").write_bytes(np.random.default_rng(7).bytes(200000))
        near = self.fit(trainer, "--set", f"devices.memory={120 * MIB}")["settings"][0]["batch_size"]
        memory = (near["bytes"] + near["next_bytes"]) // 2
        found = self.fit(trainer, "--set", f"devices.memory={memory}")["settings"][0]["batch_size"]
        self.assertEqual(found, near)
        self.assertGreater(found["next_bytes"] - memory, 16 * MIB)  # more than a process can do without: caches of the allocator, stacks
        overhead = self.run_in(trainer, {}, None)[1] - trainer.plan()["arena_bytes"]["total"]  # address space of libraries, stacks and files
        status, _, peak = self.run_in(trainer, found["keys"], memory + overhead)
        self.assertEqual(status, 0)
        self.assertLess(peak, found["bytes"] + 64 * MIB)
        self.assertGreater(peak, found["bytes"] - MIB)
        self.assertNotEqual(self.run_in(trainer, {"data.batch_size": found["next"]}, memory + overhead)[0], 0)

    def run_in(self, trainer, keys, limit):
        """A run's status, and the most of address space and of memory that it had."""
        trainer.build(*sets(keys))
        script = ("import os, resource, subprocess, sys\n"
                  "limit = int(sys.argv[1])\n"
                  "if limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))\n"
                  "os.execv(sys.argv[2], sys.argv[2:])\n")
        process = subprocess.Popen([sys.executable, "-S", "-E", "-c", script, str(limit or 0), str(trainer.folder / "trainer")], cwd=trainer.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"})
        space = 0
        while process.stdout.read(64):
            space = max([space, *self.line_of(process.pid, "VmPeak")])
        process.stdout.close()
        status = process.wait()
        lines = (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines() if status == 0 else []
        return status, space, int(json.loads(lines[-1])["peak_memory_mib"] * MIB) if lines else 0

    def line_of(self, pid, name):
        try:
            lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            return []
        return [int(line.split()[1]) * 1024 for line in lines if line.startswith(name)]


def machine_has_gpu():
    return subprocess.run(["sh", "-c", "command -v nvidia-smi"], capture_output=True).returncode == 0


if __name__ == "__main__":
    unittest.main()
