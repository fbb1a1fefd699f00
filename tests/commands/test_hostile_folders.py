"""Folders of Hugging Face that are broken: mutations of config.json, of the index, of weights, tokenizers and chat templates are each taken or
refused with a message that names a file; nothing crashes, hangs or writes half a job."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
import transformers
from chats_made import CHATML_MARKED, tokenizer_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from exported import save  # noqa: E402
from harness import GENERATOR  # noqa: E402
from rotation import ALL  # noqa: E402

SEED = int(os.environ.get("SEED", 1))
COUNT = int(os.environ.get("FOLDERS", 100 if ALL else 20))  # others for each SEED
GPT2 = {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 600, "n_positions": 16}
WORDS = [None, -1, 0, 2**63, -2**63, 1e308, "", "../x", "\u0000", [], {}, [[[[]]]], True, 0.5, "9" * 400, {"a": {"b": [1]}}]


def mutated_bytes(rng, data):
    """Cut, with bits flipped, with a piece repeated, or of other content."""
    data = bytearray(data)
    kind = rng.randrange(6)
    if kind == 0:
        return bytes(data[:rng.randrange(len(data) + 1)])
    if kind == 1:
        for _ in range(rng.randrange(1, 9)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        at = rng.randrange(len(data))
        data[at:at] = data[at:at + rng.randrange(1, 64)] * rng.randrange(1, 5)
    elif kind == 3:  # the length of a header, the first bytes of an archive
        data[:8] = rng.randrange(2**64).to_bytes(8, "little")
    elif kind == 4:
        return rng.choice([b"", b"null", b"[]", b"{}", b"\xff\xfe", b"version https://git-lfs.github.com/spec/v1\n", b"[" * 5000, b"{\"a\":" * 3000])
    else:
        del data[:rng.randrange(len(data))]
    return bytes(data)


def mutated_json(rng, text):
    """A value, a key or a list of it is another one."""
    root = json.loads(text)
    group = root
    while True:
        keys = list(group) if isinstance(group, dict) else list(range(len(group)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(group[key], (dict, list)) and rng.random() < 0.7:
            group = group[key]
            continue
        if rng.random() < 0.2:
            del group[key]
        else:
            group[key] = rng.choice(WORDS)
        break
    return json.dumps(root).encode()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = Path(tempfile.mkdtemp())
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2))
        whole, sharded, pickled = (cls.root / name for name in ("whole", "sharded", "pickled"))
        model.save_pretrained(whole)
        model.save_pretrained(sharded, max_shard_size="10KB")
        shutil.copytree(whole, pickled, ignore=shutil.ignore_patterns("*.safetensors"))
        torch.save(model.state_dict(), pickled / "pytorch_model.bin")
        for folder in (whole, sharded, pickled):
            tokenizer_of("llama3", "A folder is a model. " * 99, CHATML_MARKED).save_pretrained(folder)
        (cls.root / "corpus.txt").write_text("A folder is a model. " * 99)
        (cls.root / "chats.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}) + "\n")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def run_on(self, folder, *words):
        done = subprocess.run([GENERATOR, *words], cwd=folder, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=60)
        self.assertIn(done.returncode, (0, 1, 2), f"{words}: {done.returncode}\n{done.stderr[-2000:]}")
        if done.returncode != 0:
            self.assertRegex(done.stderr, r"(?m)error: \S|^accel-gen: \S", f"{words} says nothing")
            self.assertFalse((folder / "job.yaml").exists())
        return done.returncode

    def test_folders(self):
        counts = {}
        for number in range(COUNT):
            rng = random.Random(f"{SEED} {number}")
            folder = self.root / "now"
            shutil.copytree(self.root / rng.choice(["whole", "sharded", "pickled"]), folder / "base")
            for name in ("corpus.txt", "chats.jsonl"):
                shutil.copy(self.root / name, folder)
            path = rng.choice(sorted(folder.glob("base/*")))
            data = path.read_bytes()
            is_json = path.suffix == ".json" and rng.random() < 0.7
            path.write_bytes(mutated_json(rng, data) if is_json else mutated_bytes(rng, data))
            with self.subTest(folder=number, file=path.name):
                status = self.run_on(folder, "init", "base", "--data", "corpus.txt", "--set", "data.batch_size=1")
                self.run_on(folder, "model", "check", "base")
                (folder / "job.yaml").unlink(missing_ok=True)
                exported = self.run_on(folder, "export", "base", "--format", rng.choice(["gguf", "onnx"]), "-o", "out")
                self.assertEqual([path.name for path in folder.glob("out*") if path.name != "out_data"], ["out"] if exported == 0 else [])
                if "token" in path.name or "chat" in path.name:
                    (folder / "job.yaml").unlink(missing_ok=True)
                    self.run_on(folder, "data", "chats.jsonl", "-o", "chats.tok", "--chat", "base")
                counts.setdefault(path.name, [0, 0])[status != 0] += 1
            shutil.rmtree(folder)
        print("taken and refused:", dict(sorted(counts.items())), flush=True)

    def bounded(self, folder, *words):
        """A command in 1 GB of memory and 20 seconds of a processor."""
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        return subprocess.run([GENERATOR, *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=limit)

    def test_large(self):
        """What is in proportion to the file, not to its square: keys that no model has, lists in lists, a long key, a long token."""
        folder = self.root / "large"
        shutil.copytree(self.root / "whole", folder)
        config = json.loads((folder / "config.json").read_text())
        values = ",".join("0" * 20000)
        for more, words in (({f"key_{i}": i for i in range(100000)}, "and 99949 more"),
                            (f"{'[' * 1500}{values}{']' * 1500}", "too long or too deep"),
                            ({"k" * 1000000: list(range(4000))}, "too long or too deep")):
            text = json.dumps({**config, "x": 0, **(more if isinstance(more, dict) else {})})
            (folder / "config.json").write_text(text if isinstance(more, dict) else text.replace('"x": 0', f'"x": {more}'))
            done = self.bounded(self.root, "init", "large", "--data", "corpus.txt", "-o", "large.yaml")
            self.assertIn(words, done.stderr[-3000:])
            self.assertEqual(done.returncode, 2)
            self.assertLess(len(done.stderr), 10000)

    def test_large_token(self):
        base = save("llama2", self.root / "pieces")
        tokenizer = json.loads((base / "tokenizer.json").read_text())
        vocabulary = tokenizer["model"]["vocab"]
        vocabulary["a" * 2000000] = vocabulary.pop(next(text for text in vocabulary if text.startswith("<0x")))
        vocabulary["<0x00>"] = len(vocabulary)
        (base / "tokenizer.json").write_text(json.dumps(tokenizer))
        done = self.bounded(self.root, "export", "pieces", "--format", "gguf", "-o", "out.gguf")
        self.assertEqual(done.returncode, 2, done.stderr[:300])
        self.assertIn("error: ", done.stderr[:300])


if __name__ == "__main__":
    unittest.main()
