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

import numpy as np
import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "program"))

import test_round_trip_of_inputs as seen  # noqa: E402
from harness import GENERATOR, QUICK  # noqa: E402
from job_text import load  # noqa: E402
from rotation import SEED, in_turn  # noqa: E402
from test_speech import samples  # noqa: E402

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
    families = FAMILIES
    said = {}  # of keys that are refused by what they lead to
    data = ("corpus", "data.batch_size=1", "data.sequence_length=8")  # of init

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

    def of_data(self):
        return "--data", self.data[0], *[word for value in self.data[1:] for word in ("--set", value)]

    def job_of(self, config):
        """The config of init's job, or the message."""
        (self.folder / "base").mkdir(exist_ok=True)
        (self.folder / "base" / "config.json").write_text(json.dumps(config))
        done = self.run_here("init", "base", "-o", "-", *self.of_data())
        self.assertIn(done.returncode, (0, 2), done.stderr)
        return (load(done.stdout)["model"]["config"], None) if done.returncode == 0 else (None, done.stderr)

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
        config = {**json.loads(kind.config_class(**self.families[name]).to_json_string(use_diff=False)), "architectures": [name]}
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
                    last = [part for part in path if isinstance(part, str)][-1]
                    self.assertIn(self.said.get(last, last), why, f"{key} is refused by another name")
                    count["refused"] += 1
                elif job == own:
                    self.assertTrue(torch.allclose(theirs, wanted, rtol=1e-4, atol=1e-5), f"{key} changes the logits of transformers, and nothing of the job")
                    count["without effect"] += 1
                else:
                    honoured.append((key, other, model))
                    count["honoured"] += 1
        for key, other, model in in_turn(honoured, 6):
            with self.subTest(family=name, honoured=key):
                got, prompt = self.ours(model, other)
                theirs = self.logits(model, prompt)
                self.assertLess(((got - theirs).norm() / theirs.norm()).item(), 1e-4, key)
        print(name, count, flush=True)

    def test_families(self):
        for name in in_turn(self.families, len(self.families)):
            self.family(name)


class Written(Strictness):
    """Of classes that write from an input: the loss that the program for evaluation gives in the logits' place."""

    families = {
        "T5ForConditionalGeneration": {"num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "d_model": 16, "d_kv": 6, "d_ff": 20,
                                       "vocab_size": 96, "decoder_start_token_id": 0},
        "WhisperForConditionalGeneration": {
            "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 3, "encoder_ffn_dim": 20,
            "decoder_ffn_dim": 12, "d_model": 24, "vocab_size": 96, "num_mel_bins": 4, "max_source_positions": 6, "max_target_positions": 7,
            "pad_token_id": 3, "bos_token_id": 1, "eos_token_id": 3, "decoder_start_token_id": 5},
    }

    def family(self, name):
        """T5 of a text of bytes below 96, of which the evaluator's file is one window; Whisper of spectrograms."""
        rng = np.random.default_rng(3)
        self.rows = {"input_ids": rng.integers(0, 96, (1, 9)), "labels": rng.integers(0, 96, (1, 9))}
        self.rows["labels"][:, :-1] = self.rows["input_ids"][:, 1:]
        tokens = [*self.rows["input_ids"][0], self.rows["labels"][0, -1]]
        (self.folder / "window").write_bytes(np.array(tokens, np.uint8).tobytes())
        self.data, self.read = ("window", "data.train.format=bytes", "data.batch_size=1", "data.sequence_length=9", "training.eval_iters=1"), "window"
        if name.startswith("Whisper"):
            config = transformers.WhisperConfig(**self.families[name])
            self.rows = {key: array[:6] for key, array in samples(rng, config, 7).items()}
            np.savez(self.folder / "rows.npz", **self.rows)
            self.data, self.read = ("rows.npz", "data.batch_size=6", "training.eval_iters=1"), "rows.npz"
        super().family(name)

    def logits(self, model, what=None):
        rows = {key: torch.tensor(array.astype(np.int64) if array.dtype == np.int32 else array) for key, array in self.rows.items()}
        try:
            with torch.no_grad():
                out = model(**rows)
        except Exception:
            return None
        return out.logits if what is None else out.loss

    def ours(self, model, config):
        model.save_pretrained(self.folder / "base")
        (self.folder / "base" / "config.json").write_text(json.dumps(config))
        for words in (("init", "base", *self.of_data()), ("build", "job.yaml", "--program", "evaluate", "-o", "evaluate")):
            done = self.run_here(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = subprocess.run(["./evaluate", "--weights", "base", "--data", self.read, "--format", "json"], cwd=self.folder, capture_output=True,
                              text=True, env=QUICK)
        self.assertEqual(done.returncode, 0, done.stderr)
        for made in ("base/model.safetensors", "job.yaml"):
            (self.folder / made).unlink()
        return torch.tensor(json.loads(done.stdout)["loss"]), "loss"


class Seen(Written):
    """Of classes that take images, images with texts, or texts with masks, likewise."""

    families = {name: configs[0] for name, (_, _, configs) in seen.CASES.items()}
    said = {"image_size": "a row of the data has", "num_channels": "a row of the data has", "drop_path_rate": "dropout: the probability must be"}
    make_data = seen.RoundTrip.make_data

    def family(self, name):
        self.clip, self.read = name == "CLIPModel", self.make_data(name, self.families[name])
        self.data = (self.read, "data.batch_size=12", "training.eval_iters=1",
                     *(["model.config.image_size=32"] if name.startswith("ResNet") else []))
        Strictness.family(self, name)

    def logits(self, model, what=None):
        given = {"pixel_values" if name == "features" else name: torch.tensor(a) for name, a in self.arrays.items()}
        given = {name: a.long() if a.dtype == torch.int32 else a for name, a in given.items()}
        more = {"return_loss": True} if self.clip else {"labels": torch.arange(12) % 2}
        try:
            with torch.no_grad():
                out = model(**given, **more, return_dict=True)
        except Exception:
            return None
        return out.loss if what is not None else out.logits_per_text if self.clip else out.logits


if __name__ == "__main__":
    unittest.main()
