"""accel-gen model check and init of folders of Hugging Face: the table of tensors, what is left out of itself, what is refused, and logits
that are those of transformers; and models of named inputs."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
import yaml
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, QUICK  # noqa: E402
from rotation import in_turn  # noqa: E402

GPT2 = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 256, "n_positions": 32, "initializer_range": 0.3}
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 99,
         "max_position_embeddings": 32, "initializer_range": 0.3}
FAMILIES = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=1)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**SIZES)),
    "gpt_neox": lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**SIZES, num_key_value_heads=1, head_dim=8)),
    "mixtral": lambda: transformers.MixtralForCausalLM(transformers.MixtralConfig(**SIZES, num_key_value_heads=1, num_local_experts=4)),
}
# A model whose tensors are named by its data.
NAMED = """#include <accel/model.h>
struct config { int width; };
tensor model(scope s, struct config c, tensor pixels, tensor kind) {
  tensor flat = reshape(pixels, dim(pixels, 0), dim(pixels, 1) * dim(pixels, 2));
  return cross_entropy(linear(at(s, "out"), tanh_of(linear(at(s, "in"), flat, c.width)), 3), kind);
}
"""


class Published(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "corpus.txt").write_text("A folder is a model. " * 100)

    def command(self, *words, status=0):
        done = subprocess.run([GENERATOR, *map(str, words)], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=QUICK)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def save(self, family):
        theirs = FAMILIES[family]().eval()
        theirs.save_pretrained(self.folder / "base")
        return theirs, load_file(self.folder / "base" / "model.safetensors")

    def store(self, tensors):
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, self.folder / "base" / "model.safetensors")

    def init(self, *words, status=0):
        (self.folder / "job.yaml").unlink(missing_ok=True)
        said = self.command("init", "base", "--data", "corpus.txt", *words, status=status)
        return said, yaml.safe_load((self.folder / "job.yaml").read_text()) if status == 0 else None

    def test_logits(self):
        for family in in_turn(FAMILIES, 3):
            with self.subTest(family=family):
                theirs, tensors = self.save(family)
                report = json.loads(self.command("model", "check", "base", "--logits", "--json"))
                with torch.no_grad():
                    wanted = theirs(torch.tensor([report["logits"]["prompt"]])).logits[0, -1]
                got = torch.tensor(report["logits"]["values"])
                self.assertLess(((got - wanted).norm() / wanted.norm()).item(), 1e-5)
                self.assertEqual({row["tensor"] for row in report["tensors"] if row["state"] == "used"}, set(tensors))
                text = self.command("model", "check", "base", "--logits")
                self.assertIn(f"tensors: {len(tensors)} used\n", text)
                token, value = text[text.index("logits of the token"):].splitlines()[1].split()
                self.assertEqual(int(token), wanted.argmax().item())
                self.assertAlmostEqual(float(value), wanted.max().item(), places=4)
                shutil.rmtree(self.folder / "base")

    def test_left_out(self):
        """Masks, the angles and tied copies of older files are left out by the job that init writes; the trainer then reads the file."""
        theirs, tensors = self.save("gpt2")
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        for layer in range(2):
            tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 32, 32).tril()
            tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = tensors["wte.weight"].clone()
        self.store(tensors)
        said, job = self.init("--set", "training.steps=1", "--set", "data.batch_size=2")
        self.assertIn("28 used, 4 not needed, 1 a tied copy", said)
        self.assertEqual(set(job["model"]["ignore"]), {"h.*.attn.bias", "h.*.attn.masked_bias", "lm_head.weight"})
        self.command("build", "job.yaml", "-o", "trainer")
        subprocess.run(["./trainer"], cwd=self.folder, check=True, capture_output=True)
        tensors["lm_head.weight"] += 1
        self.store(tensors)
        self.assertIn("tensors that this model does not have: lm_head.weight", self.init(status=2)[0])
        self.assertIn("lm_head.weight", self.init("--set", "model.ignore=[lm_head.weight]")[1]["model"]["ignore"])

    def test_old_names(self):
        """BERT as it was published: norms have TensorFlow's names, the heads of another class are there, and hidden tokens are predicted."""
        theirs, tensors = self.save("bert")
        tensors |= {"bert.pooler.dense.weight": torch.rand(16, 16), "bert.pooler.dense.bias": torch.rand(16), "cls.seq_relationship.weight": torch.rand(2, 16),
                    "cls.seq_relationship.bias": torch.rand(2), "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].clone()}
        self.store({name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t for name, t in tensors.items()})
        self.assertIn("used, 4 another head's, 1 a tied copy\n", self.command("model", "check", "base"))
        self.assertIn("names no token that hides them", self.init(status=2)[0])
        self.assertEqual(self.init("--set", "data.masking.mask_token=7")[1]["data"]["masking"], {"mask_token": 7})
        (self.folder / "base" / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"id": 4, "content": "[MASK]"}, {"id": 5, "content": "[SEP]"}]}))
        (self.folder / "base" / "tokenizer_config.json").write_text(json.dumps({"mask_token": {"content": "[MASK]"}}))
        _, job = self.init()
        self.assertEqual(job["model"]["weights_map"], [{"from": "*.gamma", "to": "*.weight"}, {"from": "*.beta", "to": "*.bias"}])
        self.assertEqual(job["model"]["ignore"], ["bert.pooler.*", "cls.predictions.decoder.weight", "cls.seq_relationship.*"])
        self.assertEqual(job["data"]["masking"], {"mask_token": 4})

    def test_refused(self):
        theirs, tensors = self.save("llama")
        name = "model.layers.1.mlp.up_proj.weight"
        for change, message in (({name: None}, f"no tensor for the parameters {name}"), ({"model.extra": torch.ones(2)}, "does not have: model.extra"),
                                ({name: torch.ones(3, 4)}, f"another shape or type: {name} ([3, 4] F32 there)"),
                                ({name: tensors[name].double()}, f"{name} ([24, 16] F64 there)")):
            self.store({key: tensor for key, tensor in {**tensors, **change}.items() if tensor is not None})
            said, _ = self.init(status=2)
            self.assertIn(message, said)
            self.assertFalse((self.folder / "job.yaml").exists())
            self.assertIn(message, self.command("model", "check", "base", status=2))
        (self.folder / "base" / "model.safetensors").write_bytes(b"none")
        self.assertIn("base/model.safetensors", self.init(status=2)[0])
        (self.folder / "base" / "model.safetensors").unlink()
        self.assertIn("the folder has none", self.command("model", "check", "base", "--logits", status=2))
        self.assertIn("--logits needs a folder", self.command("model", "check", GENERATOR.parents[1] / "examples/models/lstm.c", "--logits", status=2))
        self.assertIn("--config is of a model in C", self.command("model", "check", "base", "--config", "a=1", status=2))

    def test_named_inputs(self):
        """Of an archive init knows shapes and types; model check is given them."""
        (self.folder / "named.c").write_text(NAMED)
        rng = np.random.default_rng(1)
        np.savez(self.folder / "rows.npz", pixels=rng.normal(size=(20, 4, 3)).astype(np.float32), kind=rng.integers(0, 3, 20), other=np.zeros(20))
        said = self.command("init", "named.c", "--data", "rows.npz", "--set", "model.config.width=5", "--set", "training.steps=2", "--set",
                            "data.batch_size=2", "--set", "tracking.every=1")
        job = yaml.safe_load((self.folder / "job.yaml").read_text())
        self.assertEqual(job["data"]["inputs"], {"kind": {"dtype": "int32"}, "pixels": {"dtype": "float32", "shape": [4, 3]}}, said)
        self.command("build", "job.yaml", "-o", "trainer")
        subprocess.run(["./trainer"], cwd=self.folder, check=True, capture_output=True)
        inputs = "data.inputs={pixels: {shape: [4, 3]}, kind: {dtype: int32}}"
        report = json.loads(self.command("model", "check", "named.c", "--config", "width=5", "--set", inputs, "--json"))
        self.assertEqual(sorted((i["name"], i["shape"], i["dtype"]) for i in report["inputs"]),
                         [("kind", [1], "int32"), ("pixels", [1, 4, 3], "float32")])
        (self.folder / "job.yaml").unlink()
        self.assertIn("tensors of names of its own", self.command("init", "named.c", "--data", "corpus.txt", "--set", "model.config.width=5", status=2))
        np.savez(self.folder / "rows.npz", other=np.zeros(20))
        self.assertIn("no array is an input", self.command("init", "named.c", "--data", "rows.npz", "--set", "model.config.width=5", status=2))
        self.assertIn("--set 'data.inputs=", self.command("model", "check", "named.c", "--config", "width=5", status=2))


if __name__ == "__main__":
    unittest.main()
