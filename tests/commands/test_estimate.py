"""accel-gen estimate against accelerate's calculate_maximum_sizes of transformers' models on the meta device, to the byte, for every
class that examples/models lists; and its ways to train against accelerate's rule, ZeRO's, and `accel-gen plan` of the same job."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
import transformers
from accelerate import init_empty_weights
from accelerate.commands.estimate import estimate_training_usage
from accelerate.utils import calculate_maximum_sizes
from diffusers import AutoencoderKL, DiTTransformer2DModel

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from rotation import rotating  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
MODELS = TREE / "examples" / "models"

SMALL = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300}
FEW = {**SMALL, "num_key_value_heads": 2}
EXPERTS = {**FEW, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}
# What a class's own default config is made small by; the odd ones have a second one.
CONFIGS = {
    "GPT2LMHeadModel": [{"n_layer": 2, "n_head": 4, "n_embd": 64, "vocab_size": 300}, {"n_layer": 3, "n_head": 2, "n_embd": 24, "n_positions": 10}],
    "LlamaForSequenceClassification": [{**FEW, "num_labels": 1}],
    "LlamaForCausalLM": [FEW, {**FEW, "tie_word_embeddings": True, "head_dim": 8, "vocab_size": 9000}],
    "MistralForCausalLM": [FEW], "MixtralForCausalLM": [{**FEW, "sliding_window": None}], "GemmaForCausalLM": [FEW],
    "Qwen3ForCausalLM": [FEW], "Qwen3MoeForCausalLM": [EXPERTS], "Qwen2MoeForCausalLM": [{**EXPERTS, "shared_expert_intermediate_size": 48}],
    "GPTNeoXForCausalLM": [SMALL], "MambaForCausalLM": [{"num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 300}],
    "Gemma2ForCausalLM": [FEW], "Gemma3ForCausalLM": [{**FEW, "num_hidden_layers": 7}, {**FEW, "head_dim": 8}], "Qwen2ForCausalLM": [FEW],
    "PhiForCausalLM": [FEW, {**FEW, "qk_layernorm": True}], "Phi3ForCausalLM": [{**FEW, "pad_token_id": None}],
    "DeepseekV3ForCausalLM": [{**SMALL, "num_key_value_heads": 4, "n_routed_experts": 16, "moe_intermediate_size": 32, "first_k_dense_replace": 1}],
    "RobertaForMaskedLM": [SMALL], "XLMRobertaForMaskedLM": [SMALL], "CamembertForMaskedLM": [SMALL],
    "DistilBertForMaskedLM": [{"n_layers": 2, "n_heads": 4, "dim": 64, "hidden_dim": 96, "vocab_size": 300}],
    "AlbertForMaskedLM": [{**SMALL, "embedding_size": 16}, {**SMALL, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}],
    "BertForMaskedLM": [SMALL], "BertForSequenceClassification": [{**SMALL, "num_labels": 5}, SMALL], "BertForTokenClassification": [SMALL],
    "BertForQuestionAnswering": [SMALL],
    "ViTForImageClassification": [{**{key: value for key, value in SMALL.items() if key != "vocab_size"}, "image_size": 32, "patch_size": 8, "num_labels": 10}],
    "T5ForConditionalGeneration": [{"num_layers": 2, "num_heads": 2, "d_model": 32, "d_kv": 16, "d_ff": 64, "vocab_size": 300},
                                   {"num_layers": 1, "num_decoder_layers": 2, "feed_forward_proj": "gated-gelu", "d_model": 32, "d_ff": 40}],
    "WhisperForConditionalGeneration": [
        {"encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 4, "d_model": 32, "encoder_ffn_dim": 48,
         "decoder_ffn_dim": 40, "vocab_size": 300, "max_source_positions": 20, "max_target_positions": 12, "pad_token_id": 2,
         "decoder_start_token_id": 1},
        {"encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 1, "decoder_attention_heads": 1, "d_model": 10, "num_mel_bins": 3,
         "tie_word_embeddings": False}],
    "ConvNextForImageClassification": [{"hidden_sizes": [8, 12, 16, 24], "depths": [1, 2, 1, 1], "image_size": 32}],
    "SwinForImageClassification": [{"embed_dim": 12, "depths": [2, 1], "num_heads": [2, 3], "image_size": 32, "patch_size": 2, "window_size": 4,
                                    "drop_path_rate": 0.0}],
    "DebertaV2ForSequenceClassification": [{**SMALL, "relative_attention": True, "pos_att_type": "p2c|c2p", "norm_rel_ebd": "layer_norm",
                                            "position_buckets": 16, "share_att_key": True, "position_biased_input": False}],
    "CLIPModel": [{"text_config": SMALL, "vision_config": {**{key: value for key, value in SMALL.items() if key != "vocab_size"}, "image_size": 32,
                                                           "patch_size": 8}, "projection_dim": 16}],
    "AutoencoderKL": [{"block_out_channels": [8, 12], "norm_num_groups": 4, "layers_per_block": 2, "down_block_types": ["DownEncoderBlock2D"] * 2,
                       "up_block_types": ["UpDecoderBlock2D"] * 2}, {"block_out_channels": [8], "norm_num_groups": 2, "use_quant_conv": False}],
    "DiTTransformer2DModel": [{"num_layers": 2, "attention_head_dim": 4}, {"num_layers": 3, "num_attention_heads": 2, "out_channels": 4, "sample_size": 8}],
    "Transformer2DModel": [],  # the same model under its older name
    "ResNetForImageClassification": [{"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 2], "layer_type": "basic"}],
}
DIFFUSERS = {kind.__name__: kind for kind in (AutoencoderKL, DiTTransformer2DModel)}
# Whose classes name no module that stays whole, or count the tied table with the head, which they have first.
OTHER_LAYERS = ("Autoencoder", "DiT", "ResNet", "ConvNext", "Swin", "DebertaV2", "DistilBert", "Albert", "XLMRoberta", "Camembert")


class Estimate(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def command(self, *words, status=0):
        done = subprocess.run([GENERATOR, *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def config(self, name, changes):
        if name in DIFFUSERS:
            model = DIFFUSERS[name](**changes)
            (self.folder / "config.json").write_text(model.to_json_string())
            return model
        kind = getattr(transformers, name).config_class(**changes)
        kind.architectures = [name]
        (self.folder / "config.json").write_text(kind.to_json_string())
        return kind

    def test_no_positions(self):
        """A table of positions that padding takes whole."""
        self.config("RobertaForMaskedLM", {**SMALL, "max_position_embeddings": 2, "pad_token_id": 1})
        self.assertIn("max_position_embeddings is above pad_token_id + 1", self.command("estimate", ".", status=2))

    def test_labels(self):
        """A model of rewards has one label; a class without any has two."""
        for changes, words in ({}, "says 2 of 'num_labels id2label.#'"), ({"num_labels": 3}, "says 3 of 'id2label.#'"):
            self.config("LlamaForSequenceClassification", {**FEW, **changes})
            self.assertIn(words, self.command("estimate", ".", status=2))

    def theirs(self, name, config):
        """Without the buffers that are no state: tables of rotations and of positions. A counter of batches has 4 bytes here."""
        with init_empty_weights(include_buffers=True):
            model = config if name in DIFFUSERS else getattr(transformers, name)(config)
        for module in model.modules():
            for buffer in set(module._buffers) - {"running_mean", "running_var", "e_score_correction_bias"}:
                del module._buffers[buffer]
                if buffer == "num_batches_tracked":
                    module.register_buffer(buffer, torch.empty((), dtype=torch.int32, device="meta"))
        total, (largest, _) = calculate_maximum_sizes(model)
        return total, largest, sum(p.numel() for p in model.parameters())

    def test_sizes(self):
        listed = {name for file in MODELS.glob("*.c") for names in re.findall(r"architectures\[\] = \{([^}]*)\}", file.read_text())
                  for name in re.findall(r'"(\w+)', names)}
        self.assertEqual(listed, set(CONFIGS))
        for name, cases in CONFIGS.items():
            for changes in cases:
                with self.subTest(model=name, changes=changes):
                    total, largest, _ = self.theirs(name, self.config(name, changes))
                    sets = ["--set", "model.config.image_size=32"] if name.startswith("ResNet") else []
                    load = {row["dtype"]: row for row in json.loads(self.command("estimate", "config.json", "--json", *sets))["load"]}
                    self.assertEqual(load["float32"]["total"], total)
                    self.assertEqual([load[dtype]["total"] for dtype in ("float16", "int8", "int4")], [total // 2, total // 4, total // 8])
                    if not name.startswith(OTHER_LAYERS):
                        self.assertEqual(load["float32"]["largest_layer"], largest)

    def test_training(self):
        """Weights, gradients and states: Adam as accelerate's rule says for float32; the stages of ZeRO divide what they name, and
        hold some layers besides; and each is what `accel-gen plan` says of that job."""
        name, ranks = "LlamaForCausalLM", 4
        changes = {**CONFIGS[name][0], "num_hidden_layers": 8}
        total, _, _ = self.theirs(name, self.config(name, changes))
        said = json.loads(self.command("estimate", ".", "--json", "--set", "devices.per_node=4"))
        ways = {(way["optimizer"], way["precision"], way["ranks"], way["zero_stage"]): way for way in said["training"]}
        self.assertEqual({key for key, way in ways.items() if "refused" in way}, set())
        stored = {key: sum(way["bytes"][part] for part in ("weights", "gradients", "optimizer")) for key, way in ways.items()}
        adam = [row for row in said["load"] if row["dtype"] == "float32"][0]["training_adam"]
        self.assertEqual(adam, stored["adam", "no", 1, 0])
        self.assertAlmostEqual(adam, estimate_training_usage(total, "float32")["step"], delta=0.01 * total)
        states = {"sgd": 0, "lion": 1, "adagrad": 1, "adamw": 2, "lamb": 2}
        for optimizer, count in states.items():
            self.assertAlmostEqual(stored[optimizer, "no", 1, 0], (2 + count) * total, delta=0.01 * total)
        self.assertAlmostEqual(ways["lomo", "no", 1, 0]["bytes"]["gradients"], 0, delta=0.01 * total)
        least = [4, 2 + 2 / ranks, 1 + 3 / ranks, 4 / ranks]
        whole = [stored["adamw", "no", ranks, stage] for stage in range(4)]
        for stage in range(4):
            self.assertGreater(whole[stage], 0.99 * least[stage] * total)
        self.assertEqual(sorted(whole, reverse=True), whole)
        job = {"model": {"source": str(MODELS / "llama.c"), "config": {**changes, "head_dim": 16}},
               "data": {"train": {"path": "x", "format": "bytes"}, "batch_size": 1, "sequence_length": 512}, "training": {"steps": 10, "eval_interval": 0},
               "devices": {"per_node": ranks}, "parallelism": {"dp_shard": ranks, "zero_stage": 2}, "precision": {"mixed_precision": "bf16"}}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        planned = json.loads(self.command("plan", "job.yaml", "--json"))["arena_bytes"]
        for part in ("weights", "gradients", "optimizer", "activations", "total"):
            self.assertEqual(ways["adamw", "bf16", ranks, 2]["bytes"][part], planned[part], part)
        of_job = json.loads(self.command("estimate", "job.yaml", "--json"))
        self.assertEqual(of_job["load"], said["load"])
        self.assertEqual(of_job["training"][-1], said["training"][-1])

    def test_text(self):
        self.config("GPT2LMHeadModel", CONFIGS["GPT2LMHeadModel"][0])
        text = self.command("estimate", "config.json")
        self.assertIn("dtype        largest layer      total size   training using Adam\n", text)
        self.assertRegex(text, r"float32 +256\.0 KiB +722\.0 KiB +2\.8 MiB\n")
        self.assertRegex(text, r"\nadafactor +\d[^\n]*\n(.*\n)*\nadamw, 8 ranks +float32 +bf16\nzero_stage 0 .*\nzero_stage 1 .*\nzero_stage 2")

    def test_refused(self):
        for config, message in (({"architectures": ["BloomForCausalLM"]}, "no model here is of 'BloomForCausalLM'"),
                                ({"architectures": []}, "'architectures' is missing"), ([], "a config.json is an object"),
                                ({"architectures": ["GPT2LMHeadModel"]}, "model.config lacks"),
                                ({"architectures": ["GPT2LMHeadModel"], "n_layer": "two"}, "\"two\" of 'n_layer' is not a value")):
            (self.folder / "config.json").write_text(json.dumps(config))
            self.assertIn(message, self.command("estimate", ".", status=2))
        config = json.loads(self.config("GPT2LMHeadModel", CONFIGS["GPT2LMHeadModel"][0]).to_json_string())
        for change, message in (({"alibi": True}, "does not have what these say: alibi (true)"), ({"activation_function": "relu"}, "says \"relu\" of 'activation_function'")):
            (self.folder / "config.json").write_text(json.dumps({**config, **change}))
            self.assertIn(message, self.command("estimate", ".", status=2))
        self.assertIn("there is no such file", self.command("estimate", "none.json", status=2))


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
