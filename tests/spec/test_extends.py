"""Jobs that extend files: what is merged against the rule written once more in Python, the sources of values, the messages, and
what records a job. SEED=N repeats the random ones."""

import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ROOT / "build" / "accel-gen"
READER = Path(os.environ.get("ACCEL_TEST_BAD", ROOT / "build" / "tests" / "spec" / "test_bad"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))

JOB = {"model": {"source": "models/gpt2.c", "config": {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 256, "block_size": 8}},
       "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2},
       "optimizer": {"lr": 0.01, "betas": [0.8, 0.9]}, "training": {"steps": 3, "eval_interval": 0}}
# Values that a file may have of its own; None removes.
CHOICES = [("optimizer", "lr", [0.1, 1e-3, None]), ("optimizer", "betas", [[0.9, 0.95], None]), ("data", "batch_size", [4, 6]),
           ("optimizer", "weight_decay", [0.5, 0]), ("training", "steps", [5, 7]), ("devices", "threads", [1, 2]),
           ("optimizer", None, [None]), ("checkpoint", "every", [1, {"steps": 2}, "30min"])]


def merge(below, above):
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    merged = dict(below)
    for key, value in above.items():
        if value is None and key in merged:
            del merged[key]
        else:
            merged[key] = merge(merged[key], value) if key in merged else value
    return merged


def plain(text):
    return re.sub("  +# .*", "", text)


class Extends(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "models").symlink_to(ROOT / "examples" / "models")
        (self.folder / "corpus.txt").write_bytes(bytes(range(32, 127)) * 20)

    def write(self, **files):
        """name="..." is name.yaml; a_b is b.yaml in the folder a."""
        for name, content in files.items():
            path = self.folder / (name.replace("_", "/") + ".yaml")
            path.parent.mkdir(exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content))

    def run_it(self, *words, status=0):
        done = subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def resolved(self, name, *words):
        return plain(self.run_it("check", "--resolved", name, *words))

    def refuse(self, message, job="job.yaml", *words):
        self.assertIn(message, self.run_it("check", job, *words, status=2))

    def test_random(self):
        """Three files in a row or side by side, and the job, each with values of its own."""
        r = random.Random(SEED)
        for _ in range(8):
            parts = [copy.deepcopy(JOB)]
            for _ in range(3):
                parts.append({})
                for group, key, values in r.sample(CHOICES, r.randint(1, 4)):
                    value = r.choice(values)
                    if key is None:
                        parts[-1][group] = value
                    elif isinstance(parts[-1].setdefault(group, {}), dict):
                        parts[-1][group][key] = value
            whole = {}
            for part in parts:
                whole = merge(whole, part)
            names = ["a.yaml", "b.yaml", "c.yaml"]
            chains = [None, names[0], names[1], names[2]]
            above = r.choice([chains, [None, None, None, names], [None, None, names[:2], "c.yaml"]])
            files = {name: {**({"extends": by} if by else {}), **part} for name, part, by in zip(["a", "b", "c", "job"], parts, above)}
            self.write(whole=whole, **files)
            with self.subTest(seed=SEED, files=files):
                good = subprocess.run([GENERATOR, "check", "whole.yaml"], cwd=self.folder, capture_output=True).returncode == 0
                if good:
                    self.assertEqual(self.resolved("job.yaml"), self.resolved("whole.yaml"))
                else:
                    self.run_it("check", "job.yaml", status=2)

    def test_sources(self):
        self.write(base="devices:\n  threads: 1\noptimizer: {lr: 0.1,\n  betas: [0.5, 0.6]}\n",
                   job="extends: base.yaml\n" + "\n".join(f"{key}: {json.dumps(value)}" for key, value in JOB.items() if key != "optimizer")
                       + "\noptimizer:\n  lr: 0.2\n")
        text = self.run_it("check", "--resolved", "job.yaml", "--set", "training.seed=9")
        sources = dict(re.findall(r"^ *(\w+): .*?  +# (.*)$", text, re.M))
        self.assertEqual({key: sources[key] for key in ("threads", "lr", "betas", "seed", "eps", "steps", "batch_size")},
                         {"threads": "base.yaml:2", "lr": "job.yaml:6", "betas": "base.yaml:4", "seed": "--set", "eps": "default",
                          "steps": "job.yaml:4", "batch_size": "job.yaml:3"})
        self.assertEqual(yaml.safe_load(text)["training"]["seed"], 9)
        self.write(open={**JOB, "devices": {"memory": "1GiB"}, "data": {**JOB["data"], "batch_size": "auto"}})
        self.assertRegex(self.run_it("check", "--resolved", "open.yaml"), r"batch_size: \d+ +# found by the plan")

    def test_null(self):
        """What --set takes away is as if no file had it."""
        self.write(job={**JOB, "extends": "a.yaml"}, a="checkpoint: {total_limit: 7, every: 3}\nprecision: {mixed_precision: bf16}\n",
                   without={**JOB, "checkpoint": {"every": 3}})
        self.assertEqual(self.resolved("job.yaml", "--set", "checkpoint.total_limit=null", "--set", "precision=null"), self.resolved("without.yaml"))

    def test_paths(self):
        """A path is relative to the file that writes it, wherever the job is; the recorded job names it from the job."""
        self.write(**{"sets_base": {"model": {**JOB["model"], "source": "../models/gpt2.c"}}, "sets_mid": {"extends": "base.yaml"},
                      "runs_job": {**{key: value for key, value in JOB.items() if key != "model"}, "extends": "../sets/mid.yaml"}})
        self.assertEqual(yaml.safe_load(self.resolved("runs/job.yaml"))["model"]["source"], "../sets/../models/gpt2.c")
        (self.folder / "sets" / "mid.yaml").write_text(f"extends: {self.folder}/sets/base.yaml\n")
        self.assertEqual(yaml.safe_load(self.resolved("runs/job.yaml"))["model"]["source"], f"{self.folder}/sets/../models/gpt2.c")

    def test_recorded(self):
        self.write(low={"optimizer": {"lr": 0.5}}, base={"extends": "low.yaml", "devices": {"threads": 1}}, job={**JOB, "extends": ["base.yaml"]})
        self.run_it("job.yaml", "-o", "t.c", "--manifest")
        manifest = json.loads((self.folder / "t.manifest.json").read_text())
        self.assertEqual([(file["role"], file["name"]) for file in manifest["inputs"][:3]],
                         [("job", "job.yaml"), ("base", "low.yaml"), ("base", "base.yaml")])
        self.assertEqual(manifest["job"]["resolved"], self.resolved("job.yaml"))
        self.assertEqual({key["key"]: key.get("where") for key in manifest["keys"]}["devices.threads"], "base.yaml:1")
        self.assertNotIn("differs", self.run_it("audit", "--regenerate", "t.manifest.json"))
        self.write(base={"extends": "low.yaml", "devices": {"threads": 2}})
        self.assertRegex(self.run_it("audit", "--regenerate", "t.manifest.json", status=1), r"differs +base\.yaml is another[^\0]*same +t\.c:")
        self.assertEqual(self.run_it("check", "--resolved", "t.c"), manifest["job"]["resolved"])
        self.assertIn("a file that the job extends, which is read", self.run_it("job.yaml", "-o", "base.yaml", status=1))

    def test_messages(self):
        self.write(job={**JOB, "extends": "none.yaml"})
        self.refuse("job.yaml:1:")
        self.refuse("error: cannot open 'none.yaml': No such file")
        self.write(job={**JOB, "extends": "job.yaml"})
        self.refuse("error: 'job.yaml' extends itself")
        self.write(job={**JOB, "extends": ["a.yaml"]}, a="devices: {}\nextends:\n  - b.yaml", b="extends: ./job.yaml\n")
        self.refuse("b.yaml:1:10: error: './job.yaml' extends itself by way of 'b.yaml'")
        self.write(**{f"l{i}": f"extends: l{i + 1}.yaml\n" for i in range(20)}, job={**JOB, "extends": "l0.yaml"})
        self.refuse("l15.yaml:1:10: error: more than 16 files extend each other in a row")
        self.write(**{f"d{i}": f"extends: [d{i + 1}.yaml, d{i + 1}.yaml]\n" for i in range(12)}, d12="{devices: {}}", job={**JOB, "extends": "d0.yaml"})
        self.refuse("error: more than 64 files are extended")
        for value, message in ((3, "must be the path of a file or a list of paths, not 3"), ([], "not a list"), (["a.yaml", {}], "not a group of keys"),
                               ("models", "'models' is not a file"), ("", "not ''"), (None, "not null")):
            self.write(job={**JOB, "extends": value}, a="devices: {}\n")
            self.refuse(message)
        self.write(job={**JOB, "extends": "a.yaml"}, a="optimizer:\n  learning_rate: 3\n")
        self.refuse("a.yaml:2:3: error: unknown key 'learning_rate' in optimizer")
        self.write(a="devices:\n  threads: [\n")
        self.refuse("a.yaml:3:1: error: not YAML")
        self.write(a="- 1\n")
        self.refuse("a.yaml:1:1: error: a file that is extended must be a group of keys, not a list")
        self.write(a="devices: {threads: 1}\n")
        self.refuse("--set overrides what files say", "job.yaml", "--set", "extends=b.yaml")
        self.refuse("'threads' must be", "job.yaml", "--set", "devices.threads=-1")
        self.refuse("missing key 'model' in job", "job.yaml", "--set", "model=null")
        self.refuse("--set optimizer.nesterov=null: error:", "job.yaml", "--set", "optimizer.nesterov=null")
        self.write(a="optimizer: {nesterov: null}\n")
        self.refuse("a.yaml:1:23: error:")  # nothing is there to remove
        self.write(job={"extends": "a.yaml"}, a="devices: {}\n")
        self.refuse("missing key 'model' in job")

    def test_damaged(self):
        """Bytes that anyone changes give a job or a message."""
        r = random.Random(SEED)
        texts = {"job.yaml": json.dumps({**JOB, "extends": ["a.yaml", "b.yaml"]}), "a.yaml": "extends: b.yaml\noptimizer: {lr: null}\n",
                 "b.yaml": "devices: &d {threads: 1}\noptimizer: {lr: 3, betas: [1, 2]}\n"}
        jobs = []
        for i in range(150):
            folder = self.folder / str(i)
            folder.mkdir()
            for name, text in texts.items():
                data = bytearray(text.encode())
                for _ in range(r.choice((0, 1, 3))):
                    at = r.randrange(len(data))
                    data[at:at + r.randint(0, 2)] = r.choice((b"", b"null", b"extends", bytes([r.randrange(256)]), b"*d", b"b.yaml", b"{", b"\n"))
                (folder / name).write_bytes(data)
            jobs.append(folder / "job.yaml")
        done = subprocess.run([READER, "--check", *jobs], cwd=self.folder, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout.split()), len(jobs))


if __name__ == "__main__":
    if not READER.exists():
        print(f"{READER} is not built")
        sys.exit(77)
    unittest.main()
