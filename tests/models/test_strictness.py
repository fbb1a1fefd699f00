"""Each value of a config.json, changed alone, is refused by its key or honoured: a job whose config did not change goes with a class of
transformers whose logits did not, and one whose config changed computes their logits. A run tries some of the families (rotation.py)."""

import copy
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
import transformers
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, QUICK  # noqa: E402
from rotation import SEED, todays  # noqa: E402

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 96,
         "max_position_embeddings": 32, "initializer_range": 0.3}
GROUPED = {**SIZES, "num_key_value_heads": 2}
HEADS = {**GROUPED, "head_dim": 4}
EXPERTS = {**HEADS, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
FAMILIES = {
    "GPT2LMHeadModel": {"n_layer": 2, "n_head": 4, "n_embd": 16, "vocab_size": 96, "n_positions": 32, "initializer_range": 0.3},
    "LlamaForCausalLM": GROUPED,
    "MistralForCausalLM": {**HEADS, "sliding_window": 4},
    "MixtralForCausalLM": {**GROUPED, "num_local_experts": 4},
    "GemmaForCausalLM": HEADS,
    "Qwen2ForCausalLM": GROUPED,
    "Qwen3ForCausalLM": HEADS,
    "Qwen3MoeForCausalLM": EXPERTS,
    "Qwen2MoeForCausalLM": {**{key: value for key, value in EXPERTS.items() if key != "head_dim"}, "shared_expert_intermediate_size": 8},
    "GPTNeoXForCausalLM": {**SIZES, "hidden_size": 128},
    "MambaForCausalLM": {"num_hidden_layers": 2, "hidden_size": 16, "vocab_size": 96, "initializer_range": 0.3},
    "BertForMaskedLM": SIZES,
    "Gemma2ForCausalLM": {**HEADS, "sliding_window": 4},
    "Gemma3ForCausalLM": {**HEADS, "sliding_window": 4},
    "PhiForCausalLM": {**SIZES, "hidden_size": 96},
    "Phi3ForCausalLM": {**GROUPED, "hidden_size": 96, "pad_token_id": 0},
    "RobertaForMaskedLM": {**SIZES, "max_position_embeddings": 40},
    "DistilBertForMaskedLM": {"n_layers": 2, "n_heads": 4, "dim": 16, "hidden_dim": 24, "vocab_size": 96, "max_position_embeddings": 32,
                              "initializer_range": 0.3},
    "AlbertForMaskedLM": {**SIZES, "embedding_size": 8},
}
WORDS = {"silu": "gelu", "gelu": "relu", "gelu_new": "relu", "gelu_pytorch_tanh": "relu", "default": "linear", "absolute": "relative_key"}
# What is not a value of the model: what it is, and the numbers of the tokenizer's tokens.
SKIPPED = ("architectures", "model_type", "transformers_version", "torch_dtype", "dtype", "_name_or_path")


def leaves(value, path=()):
    """The values that are no group or list, with where they are."""
    if isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def changed(value, number):
    """Another value of the type; of numbers the larger or the smaller ones by the day."""
    if value is None:
        return 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return WORDS.get(value, "other")
    return value * (2, 3)[number % 2] if value else 1


def with_value(config, path, value):
    config = copy.deepcopy(config)
    group = config
    for key in path[:-1]:
        group = group[key]
    group[path[-1]] = value
    return config


class Strictness(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "corpus").write_text("text " * 200)
        self.prompt = torch.tensor([[5, 17, 80, 2, 33, 64, 41, 9]])

    def run_here(self, *words):
        return subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=QUICK)

    def theirs(self, kind, config, state=None):
        """The class with this config, its weights those of `state` where their shapes fit; None where transformers has no such model."""
        try:
            torch.manual_seed(5)
            model = kind(kind.config_class.from_dict(config)).eval()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(0.3 * torch.randn_like(parameter))
            if state is not None:
                model.load_state_dict(state)
        except RuntimeError:
            pass  # other shapes: the weights are its own
        except Exception:  # a value that transformers refuses in one of its many ways
            return None
        return model

    def logits(self, model, prompt=None):
        try:
            with torch.no_grad():
                return model(self.prompt if prompt is None else prompt).logits[0, -1]
        except Exception:
            return None

    def job_of(self, config):
        """The config of init's job, or the message."""
        (self.folder / "base").mkdir(exist_ok=True)
        (self.folder / "base" / "config.json").write_text(json.dumps(config))
        done = self.run_here("init", "base", "--data", "corpus", "-o", "-", "--set", "data.batch_size=1", "--set", "data.sequence_length=8")
        self.assertIn(done.returncode, (0, 2), done.stderr)
        return (yaml.safe_load(done.stdout)["model"]["config"], None) if done.returncode == 0 else (None, done.stderr)

    def ours(self, model, config):
        """What a program computes with their weights, and after which prompt."""
        model.save_pretrained(self.folder / "base")
        (self.folder / "base" / "config.json").write_text(json.dumps(config))
        done = self.run_here("model", "check", "base", "--logits", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)["logits"]
        (self.folder / "base" / "model.safetensors").unlink()
        return torch.tensor(found["values"]), torch.tensor([found["prompt"]])

    def family(self, name):
        kind = getattr(transformers, name)
        config = {**json.loads(kind.config_class(**FAMILIES[name]).to_json_string(use_diff=False)), "architectures": [name]}
        config = {key: value for key, value in config.items() if not key.startswith("_")}
        base = self.theirs(kind, config)
        wanted, (own, why) = self.logits(base), self.job_of(config)
        self.assertIsNone(why)
        count = {"refused": 0, "without effect": 0, "honoured": 0, "not of transformers": 0}
        honoured = []
        for path, value in leaves(config):
            if path[0] in SKIPPED:
                continue
            other = with_value(config, path, changed(value, SEED))
            job, why = self.job_of(other)
            key = ".".join(map(str, path))
            model = self.theirs(kind, other, base.state_dict())
            theirs = self.logits(model) if model is not None else None
            with self.subTest(family=name, key=key, value=changed(value, SEED)):
                if theirs is None:
                    count["not of transformers"] += 1
                elif job is None:
                    self.assertIn(str([part for part in path if isinstance(part, str)][-1]), why, f"{key} is refused by another name")
                    count["refused"] += 1
                elif job == own:
                    self.assertTrue(torch.allclose(theirs, wanted, rtol=1e-4, atol=1e-5), f"{key} changes the logits of transformers, and nothing of the job")
                    count["without effect"] += 1
                else:
                    honoured.append((key, other, model))
                    count["honoured"] += 1
        for key, other, model in todays(honoured, 6):
            with self.subTest(family=name, honoured=key):
                got, prompt = self.ours(model, other)
                theirs = self.logits(model, prompt)
                self.assertLess(((got - theirs).norm() / theirs.norm()).item(), 1e-4, key)
        print(name, count, flush=True)

    def test_families(self):
        for name in todays(FAMILIES, len(FAMILIES)):
            self.family(name)


if __name__ == "__main__":
    unittest.main()
