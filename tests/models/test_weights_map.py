"""model.weights_map: tensors of published files under other names, and a model that several files fill, compared with transformers; what
matches nothing, or is there twice, is refused by its name."""

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
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from harness import FAST, GENERATOR, MODELS, windows  # noqa: E402
from peer import texts  # noqa: E402

BERT = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 256,
        "max_position_embeddings": 32}
# A policy that stays near a reference: the loss compares the logits of two models of gpt2.c with the targets.
PAIR = """
tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor policy = predict(at(s, "policy"), c, tokens), reference = predict(at(s, "reference"), c, tokens);
  return cross_entropy(sub(policy, scale(reference, 0.5)), targets);
}
"""
RULES = [{"from": "*.gamma", "to": "*.weight"}, {"from": "*.beta", "to": "*.bias"}, {"from": "old.*", "to": "*"}]


class Map(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words, status=0):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "CFLAGS": FAST, "OMP_NUM_THREADS": "2"})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def write(self, model, data, checkpoint=None, **more):
        job = {"model": model, "data": {**data, "batch_size": 4}, "optimizer": {"name": "sgd", "lr": 0.01}, "training": {"steps": 1, "seed": 1},
               "tracking": {"every": 1}, "checkpoint": {"project_dir": "run", **(checkpoint or {})}, **more}
        (self.folder / "job.yaml").write_text(json.dumps(job))

    def build(self, kind="train"):
        self.command(GENERATOR, "build", "job.yaml", "--program", kind, "-o", kind)

    def evaluated(self):
        said = self.command("./evaluate", "--data", "rows.npz")
        return float(said.split("loss")[1].split()[0].strip(",:"))

    def test_bert(self):
        """The names of TensorFlow's checkpoints, below another prefix; the folder that the run leaves has them again."""
        theirs = transformers.BertForSequenceClassification(transformers.BertConfig(**BERT)).eval()
        base = self.folder / "base"
        theirs.save_pretrained(base)
        old = {"old." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
               for name, tensor in load_file(base / "model.safetensors").items()}
        save_file(old, base / "model.safetensors")
        rows = np.random.default_rng(1).integers(1, 256, (8, 8))
        data = texts(self.folder / "rows.npz", rows)
        model = {"source": str(MODELS / "bert_classifier.c"), "weights": "base", "weights_map": RULES, "config": {**BERT, "num_labels": 2}}
        self.write(model, data, {"folder_of": "base"}, training={"steps": 1, "seed": 1, "ema": {"decay": 0.9}})
        self.build("evaluate")
        loss = theirs(torch.from_numpy(rows), labels=torch.arange(8) % 2).loss.item()
        self.assertAlmostEqual(self.evaluated(), loss, places=4)
        self.build()
        self.command("./train")
        saved = load_file(self.folder / "run" / "model.safetensors")
        self.assertEqual(set(saved), set(old))
        self.assertEqual(set(load_file(self.folder / "run" / "ema.safetensors")), set(old))
        names = {"old.": "", "gamma": "weight", "beta": "bias"}
        theirs.load_state_dict({renamed(name, names): tensor for name, tensor in saved.items()})
        self.assertAlmostEqual(self.evaluated(), theirs(torch.from_numpy(rows), labels=torch.arange(8) % 2).loss.item(), places=4)

    def test_refused(self):
        save_file({"a.one": torch.zeros(2), "b.one": torch.ones(2), "c.two": torch.ones(2)}, self.folder / "w.safetensors")
        (self.folder / "m.c").write_text("#include <accel/model.h>\ntensor model(scope s, tensor features, tensor labels) {\n"
                                         "  return mean_all(square(sub(features, add(parameter(s, \"one\", 2), parameter(s, \"two\", 2)))));\n}\n")
        (self.folder / "rows.csv").write_text("1,2,0\n" * 8)
        data = {"train": {"path": "rows.csv", "format": "csv"}, "features": 2}
        rule = [{"from": "a.*", "to": "*"}, {"from": "c.*", "to": "*"}]

        def plan(rules, status=2, **more):
            self.write({"source": "m.c", "weights": "w.safetensors", "weights_map": rules, **more.pop("model", {})}, data, **more)
            return self.command(GENERATOR, "plan", "job.yaml", status=status)

        self.assertIn("'*' has 1 *, and 'a.*.*' has 2", plan([{"from": "a.*.*", "to": "*"}]))
        self.assertIn("'weights_prefix' does not go with", plan(rule, model={"weights_prefix": "x."}))
        self.assertIn("missing key 'to'", plan([{"from": "a"}]))
        for rules, more, message in (
                ([*rule, {"from": "*.weight", "to": "*"}], {}, "w.safetensors: model.weights_map: '*.weight' matches no tensor there"),
                ([*rule, {"from": "b.*", "to": "*"}], {}, "'a.one' of w.safetensors and 'b.one' of w.safetensors both become 'one'"),
                (rule, {}, "tensors that this model does not have: b.one"),
                ([*rule, {"from": "*", "to": "*", "path": "none"}], {}, "none: cannot be"),
                (rule[:1], {"ignore": ["b.*"]}, "no tensor for the parameters two"),
                (rule, {"ignore": ["b.*"]}, None)):
            plan(rules, 0, model=more)
            self.build()
            said = self.command("./train", status=0 if message is None else 1)
            self.assertIn(message or "", said)

    def test_sources(self):
        """Two files fill one model: the loss is that of both in transformers, and training moves both."""
        config = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "n_positions": 8}
        both = [transformers.GPT2LMHeadModel(transformers.GPT2Config(**config, initializer_range=0.3)).eval() for _ in range(2)]
        for name, one in zip("ab", both):
            one.save_pretrained(self.folder / name)
        text = (MODELS / "gpt2.c").read_text()
        (self.folder / "pair.c").write_text(text[:text.index("tensor model(")] + PAIR)
        corpus = np.random.default_rng(2).integers(0, 256, 40).astype(np.uint8)
        (self.folder / "corpus").write_bytes(corpus.tobytes())
        self.write({"source": "pair.c", "weights": "a", "config": {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8},
                    "weights_map": [{"from": "transformer.*", "to": "policy.*"}, {"from": "transformer.*", "to": "reference.*", "path": "b"}]},
                   {"train": {"path": "corpus", "format": "bytes"}, "batch_size": 1})
        job = json.loads((self.folder / "job.yaml").read_text())
        job["data"].update(batch_size=1, eval_fraction=0)
        (self.folder / "job.yaml").write_text(json.dumps(job))
        self.build()
        self.command("./train")
        tokens, targets = (torch.from_numpy(part) for part in windows(corpus.tobytes(), 8, 1, 1, True, 0)(0))
        logits = [one(tokens).logits for one in both]
        wanted = torch.nn.functional.cross_entropy((logits[0] - 0.5 * logits[1])[0], targets[0]).item()
        said = json.loads((self.folder / "run" / "metrics.jsonl").read_text().splitlines()[0])["loss"]
        self.assertLess(abs(said / wanted - 1), 1e-5)
        saved = load_file(self.folder / "run" / "model.safetensors")
        for name, one in zip(("policy", "reference"), both):
            start = one.state_dict()["transformer.wte.weight"]
            self.assertFalse(torch.equal(saved[f"{name}.wte.weight"], start))
            self.assertLess((saved[f"{name}.wte.weight"] - start).abs().max().item(), 0.05)


def renamed(name, words):
    for old, new in words.items():
        name = name.replace(old, new)
    return name


if __name__ == "__main__":
    unittest.main()
