"""The config.json next to published weights: one that transformers writes for what a job says is taken for every model of
examples/models that has a class there, each change of it that the model cannot have is refused by its key, and what
neither has is named."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, MODELS, Trainer  # noqa: E402
from transformers import (AlbertConfig, BertConfig, CLIPConfig, ConvNextConfig, DebertaV2Config, DeepseekV3Config,  # noqa: E402
                          DistilBertConfig, Gemma2Config, Gemma3TextConfig, GemmaConfig, GPT2Config, GPTNeoXConfig, LlamaConfig, MambaConfig, MistralConfig, MixtralConfig, Phi3Config, PhiConfig,
                          Qwen2Config, Qwen2MoeConfig, Qwen3Config, Qwen3MoeConfig, ResNetConfig, RobertaConfig, SwinConfig, T5Config, ViTConfig, WhisperConfig)

ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
LLAMA = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "hidden_size": 8,
         "intermediate_size": 8, "vocab_size": 256, "rms_norm_eps": 1e-5}
BERT = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8,
        "layer_norm_eps": 1e-12}
MOE = {**LLAMA, "num_experts": 4, "num_experts_per_tok": 2,
       "moe_intermediate_size": 8, "norm_topk_prob": True}
NEOX = {**BERT, "hidden_size": 16, "layer_norm_eps": 1e-5, "vocab_size": 256}
GPT2 = {"n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 256}
DEEPSEEK = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8, "vocab_size": 256, "q_lora_rank": 4,
            "kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4, "n_routed_experts": 4, "n_shared_experts": 1,
            "num_experts_per_tok": 2, "n_group": 2, "topk_group": 2, "moe_intermediate_size": 8, "first_k_dense_replace": 1,
            "routed_scaling_factor": 2.5}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
LLAMA3_JOB = {"rope.kind": "ROPE_LLAMA3", "rope.factor": 4, "rope.original_length": 64}
TOKENS = {"train": {"path": "x.txt", "format": "bytes"}, "sequence_length": 16, "batch_size": 2}

TEXT = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8, "vocab_size": 50}
VISION = {**{key: value for key, value in TEXT.items() if key != "vocab_size"}, "image_size": 4, "patch_size": 2}
PAIRS = {"train": {"path": "x.npy", "format": "npy"}, "batch_size": 2, "inputs": {
    "pixel_values": {"shape": [3, 4, 4]}, "input_ids": {"path": "y.npy", "shape": [6], "dtype": "int32", "below": 50}}}

DEBERTA = {key: value for key, value in BERT.items() if key != "layer_norm_eps"}
LABELLED = {"train": {"path": "x.npz", "format": "npz"}, "batch_size": 2, "inputs": {
    "input_ids": {"shape": [6], "dtype": "int32", "below": 50}, "attention_mask": {"shape": [6]}, "labels": {"dtype": "int32"}}}


WHISPER = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8,
           "decoder_ffn_dim": 8, "d_model": 8, "vocab_size": 50, "num_mel_bins": 3, "max_source_positions": 4, "max_target_positions": 6,
           "pad_token_id": 7, "decoder_start_token_id": 9}
SPEECH = {"train": {"path": "x.npz", "format": "npz"}, "batch_size": 2, "inputs": {
    "input_features": {"shape": [3, 8]}, "labels": {"shape": [6], "dtype": "int32"}}}


def rows(features):
    return {"train": {"path": "x.csv", "format": "csv"}, "features": features, "batch_size": 2}


TEXTS = {"train": {"path": "x.npz", "format": "npz"}, "batch_size": 2, "inputs": {
    "input_ids": {"shape": [8], "dtype": "int32"}, "attention_mask": {"shape": [8]}, "token_type_ids": {"shape": [8], "dtype": "int32"},
    "labels": {"dtype": "int32"}}}

# model, config of transformers, the job's model.config, data, [(changed keys, a piece of the message)]
CASES = [
    ("gpt2.c", GPT2Config(**GPT2, n_positions=16), {**GPT2, "block_size": 16}, TOKENS, [
        ({"n_head": 4}, "'n_head' is 2 here, but the weights' {} says 4 of 'n_head'"),
        ({"n_positions": 32}, "'block_size' is 16 here, but the weights' {} says 32 of 'n_positions'"),
        ({"activation_function": "relu"}, '{} says "relu" of \'activation_function\''),
        ({"layer_norm_epsilon": 1e-6}, "of 'layer_norm_epsilon'"), ({"n_inner": 16}, "says 16 of 'n_inner'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "says true of 'scale_attn_by_inverse_layer_idx'")]),
    ("llama.c", LlamaConfig(**LLAMA, rope_parameters={**ROPE, **LLAMA3}), {**LLAMA, **LLAMA3_JOB}, TOKENS, [
        ({"rope_parameters": ROPE}, "'rope.kind' is ROPE_LLAMA3 here, but the weights' {} says \"default\" of "
                                    "'rope_parameters.rope_type'"),
        ({"rope_parameters": None}, "without the key means \"default\""),
        ({"rope_parameters": {**ROPE, **LLAMA3, "factor": 8.0}}, "'rope.factor' is 4 here"),
        ({"rope_parameters": {**ROPE, "rope_type": "longrope"}}, 'says "longrope"'),
        ({"rope_parameters": None, "rope_theta": 500000.0, "rope_scaling": LLAMA3}, "'rope.theta' is 10000 here"),
        ({"rms_norm_eps": 1e-6}, "'rms_norm_eps' is 1e-05 here"), ({"hidden_act": "gelu"}, "says \"gelu\" of 'hidden_act'"),
        ({"attention_bias": True}, "says true of 'attention_bias'"), ({"head_dim": None}, None),
        ({"rope_parameters": None, "rope_theta": 10000.0, "rope_scaling": LLAMA3}, None)]),
    ("llama.c", LlamaConfig(**LLAMA), LLAMA, TOKENS, [
        ({"rope_parameters": {**ROPE, **LLAMA3}}, "'rope.kind' is ROPE_DEFAULT here"),
        ({"tie_word_embeddings": True}, "'tie_word_embeddings' is false here"), ({"num_key_value_heads": None}, "is 1 here")]),
    ("mistral.c", MistralConfig(**LLAMA, sliding_window=8), {**LLAMA, "sliding_window": 8}, TOKENS,
     [({"sliding_window": None}, "'sliding_window' is 8 here"), ({"sliding_window": 9}, "says 9")]),
    ("mixtral.c", MixtralConfig(**LLAMA, rope_parameters=ROPE), LLAMA, TOKENS,
     [({"sliding_window": 4096}, "says 4096 of 'sliding_window'")]),
    ("gemma.c", GemmaConfig(**LLAMA), LLAMA, TOKENS, [({"hidden_activation": "relu"}, "'hidden_activation'")]),
    ("qwen3.c", Qwen3Config(**LLAMA), {**LLAMA, "rope.theta": 10000}, TOKENS,
     [({"layer_types": ["sliding_attention"]}, "of 'layer_types.0'"), ({"use_sliding_window": True}, "says true")]),
    ("qwen_moe.c", Qwen3MoeConfig(**MOE), MOE, TOKENS, [
        ({"mlp_only_layers": [0]}, "says 0 of 'mlp_only_layers.0'"), ({"intermediate_size": 16}, "'intermediate_size' is 8 here")]),
    ("qwen_moe.c", Qwen2MoeConfig(**{k: v for k, v in MOE.items() if k != "head_dim"}, shared_expert_intermediate_size=8),
     {**MOE, "qk_norm": False, "qkv_bias": True, "shared_expert_intermediate_size": 8}, TOKENS,
     [({"norm_topk_prob": False}, "'norm_topk_prob' is true here")]),
    ("gpt_neox.c", GPTNeoXConfig(**NEOX),
     NEOX, TOKENS, [
        ({"rope_parameters": None, "rotary_pct": 1.0}, "'rotary_pct' is 0.25 here"), ({"use_parallel_residual": False}, "is true here")]),
    ("mamba.c", MambaConfig(num_hidden_layers=1, hidden_size=16, vocab_size=256),
     {"num_hidden_layers": 1, "hidden_size": 16, "vocab_size": 256, "time_step_rank": 1}, TOKENS,
     [({"use_bias": True}, "says true of 'use_bias'"), ({"time_step_rank": 2}, "'time_step_rank' is 1 here")]),
    ("gemma2.c", Gemma2Config(**LLAMA, attn_logit_softcapping=None),
     {**LLAMA, "attn_logit_softcapping": 0, "layer_types.0": "LAYER_SLIDING_ATTENTION"}, TOKENS, [
        ({"attn_logit_softcapping": 50.0}, "'attn_logit_softcapping' is 0 here"), ({"query_pre_attn_scalar": 4}, "is 256 here"),
        ({"layer_types": ["full_attention"]}, "'layer_types.0' is LAYER_SLIDING_ATTENTION here"), ({"sliding_window": 3}, "says 3")]),
    ("gemma3.c", Gemma3TextConfig(**LLAMA), {**LLAMA, "layer_types.0": "LAYER_SLIDING_ATTENTION"}, TOKENS, [
        ({"rope_parameters": None, "rope_theta": 1e6, "rope_local_base_freq": 10000, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
         "'rope.kind' is ROPE_DEFAULT here"), ({"final_logit_softcapping": 30.0}, "'final_logit_softcapping'"),
        ({"_sliding_window_pattern": 5}, "'sliding_window_pattern' is 6 here"), ({"use_bidirectional_attention": True}, "says true")]),
    ("qwen2.c", Qwen2Config(**{key: value for key, value in LLAMA.items() if key != "head_dim"}),
     {**{key: value for key, value in LLAMA.items() if key != "head_dim"}, "rope.theta": 10000}, TOKENS,
     [({"use_sliding_window": True}, "says true"), ({"rope_theta": 1e6, "rope_parameters": None}, "'rope.theta' is 10000 here")]),
    ("phi.c", PhiConfig(**{**BERT, "hidden_size": 16, "layer_norm_eps": 1e-5}, vocab_size=256),
     {**BERT, "hidden_size": 16, "layer_norm_eps": 1e-5, "num_key_value_heads": 2, "vocab_size": 256}, TOKENS,
     [({"qk_layernorm": True}, "'qk_layernorm' is false here"), ({"rope_parameters": None, "partial_rotary_factor": 0.4}, "0.5 here"),
      ({"num_key_value_heads": None}, None)]),
    ("phi3.c", Phi3Config(**{key: value for key, value in LLAMA.items() if key != "head_dim"}, pad_token_id=None),
     {key: value for key, value in LLAMA.items() if key != "head_dim"}, TOKENS,
     [({"rope_parameters": {**ROPE, "rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}}, 'says "longrope"'),
      ({"sliding_window": 9}, "'sliding_window' is 0 here"), ({"attention_bias": True}, "says true")]),
    ("deepseek_v3.c", DeepseekV3Config(**DEEPSEEK, num_key_value_heads=2), DEEPSEEK, TOKENS, [
        ({"rope_parameters": None, "rope_theta": 10000.0, "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0}}, "'rope.kind'"),
        ({"q_lora_rank": None}, "'q_lora_rank' is 4 here"), ({"scoring_func": "softmax"}, "'scoring_func'"), ({"moe_layer_freq": 2}, "says 2"),
        ({"rope_interleave": False}, "'rope_interleave' is true here"), ({"topk_group": 1}, "'topk_group' is 2 here"),
        ({"num_nextn_predict_layers": 3}, None)]),
    ("roberta.c", RobertaConfig(**{**BERT, "layer_norm_eps": 1e-5}, vocab_size=256), {
        **BERT, "layer_norm_eps": 1e-5, "vocab_size": 256, "type_vocab_size": 2, "max_position_embeddings": 512}, TOKENS,
     [({"pad_token_id": 0}, "'pad_token_id' is 1 here"), ({"type_vocab_size": 1}, "'type_vocab_size' is 2 here")]),
    ("distilbert.c", DistilBertConfig(n_layers=1, n_heads=2, dim=8, hidden_dim=8, vocab_size=256),
     {"n_layers": 1, "n_heads": 2, "dim": 8, "hidden_dim": 8, "vocab_size": 256, "pad_token_id": 0}, TOKENS,
     [({"activation": "relu"}, "'activation'"), ({"tie_word_embeddings": False}, "'tie_word_embeddings'"), ({"tie_weights_": True}, None)]),
    ("albert.c", AlbertConfig(**BERT, vocab_size=256, embedding_size=4), {**BERT, "vocab_size": 256, "embedding_size": 4,
                                                                         "pad_token_id": 0}, TOKENS,
     [({"num_hidden_groups": 2}, "'num_hidden_groups' is 1 here"), ({"hidden_act": "gelu"}, "'hidden_act'")]),
    ("bert_classifier.c", BertConfig(**BERT, vocab_size=30), {**BERT, "vocab_size": 30, "num_labels": 2}, TEXTS, [
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, "'num_labels' is 2 here"), ({"position_embedding_type": "relative_key"}, "relative_key")]),
    ("bert_tagger.c", BertConfig(**BERT, vocab_size=30), {**BERT, "vocab_size": 30, "num_labels": 2}, {
        **TEXTS, "inputs": {**TEXTS["inputs"], "labels": {"shape": [8], "dtype": "int32"}}}, [
        ({"id2label": {"0": "a"}}, "'num_labels' is 2 here"), ({"hidden_act": "relu"}, "'hidden_act'")]),
    ("bert_questions.c", BertConfig(**BERT, vocab_size=30), {**BERT, "vocab_size": 30}, {
        **TEXTS, "inputs": {**TEXTS["inputs"], "labels": {"shape": [2], "dtype": "int32"}}}, [
        ({"id2label": {"0": "a", "1": "b"}}, None), ({"hidden_act": "relu"}, "'hidden_act'"), ({"type_vocab_size": 3}, "'type_vocab_size' is 2 here")]),
    ("vit.c", ViTConfig(**BERT, image_size=8, patch_size=4, num_channels=1),
     {**BERT, "image_size": 8, "patch_size": 4, "num_channels": 1, "num_labels": 2}, rows(64),
     [({"patch_size": 8}, "'patch_size' is 4 here")]),
    ("whisper.c", WhisperConfig(**WHISPER), WHISPER, SPEECH, [
        ({"activation_function": "relu"}, '{} says "relu" of \'activation_function\''), ({"apply_spec_augment": True}, "says true of 'apply_spec_augment'"),
        ({"encoder_layers": 3}, "'encoder_layers' is 1 here, but the weights' {} says 3 of 'encoder_layers'"),
        ({"decoder_attention_heads": 4}, "'decoder_attention_heads' is 2 here"), ({"pad_token_id": 3}, "'pad_token_id' is 7 here"),
        ({"decoder_start_token_id": 3}, "'decoder_start_token_id' is 9 here"), ({"tie_word_embeddings": False}, "'tie_word_embeddings' is true here"),
        ({"scale_embedding": True}, None), ({"mask_time_prob": 0.5, "encoder_layerdrop": 0.5, "suppress_tokens": [1, 2]}, None)]),
    ("t5.c", T5Config(num_layers=1, num_decoder_layers=1, num_heads=2, d_model=8, d_kv=4, d_ff=8, vocab_size=256),
     {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_model": 8, "d_kv": 4, "d_ff": 8, "vocab_size": 256}, TOKENS,
     [({"is_gated_act": True}, "'gated' is false here"), ({"dense_act_fn": "gelu_new"}, "'gated' is false here"),
      ({"scale_decoder_outputs": False}, "'scale_decoder_outputs' is true here")]),
    ("convnext.c", ConvNextConfig(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], image_size=32),
     {"image_size": 32, "num_labels": 2, **{f"hidden_sizes.{i}": 8 for i in range(4)}, **{f"depths.{i}": 1 for i in range(4)}}, rows(3 * 32 * 32),
     [({"depths": [1, 2, 1, 1]}, "'depths.1' is 1 here"), ({"num_stages": 3}, "says 3")]),
    ("clip.c", CLIPConfig(text_config=TEXT, vision_config=VISION, projection_dim=4),
     {"projection_dim": 4, **{f"text_config.{key}": value for key, value in TEXT.items()},
      **{f"vision_config.{key}": value for key, value in VISION.items()}}, PAIRS,
     [({"projection_dim": 8}, "'projection_dim' is 4 here"), ({"text_config": {**TEXT, "hidden_act": "gelu"}}, "'text_activation'"),
      ({"vision_config": {**VISION, "patch_size": 4}}, "'vision_config.patch_size' is 2 here"),
      ({"text_config": {**TEXT, "model_type": "x", "top_k": 50, "length_penalty": 1.0, "eos_token_id": 49407}}, None)]),
    ("deberta_v2.c", DebertaV2Config(**DEBERTA, vocab_size=50, relative_attention=True, pos_att_type="p2c|c2p", norm_rel_ebd="layer_norm",
                                     position_buckets=8, share_att_key=True, position_biased_input=False, layer_norm_eps=1e-7),
     {**DEBERTA, "vocab_size": 50, "num_labels": 2, "norm_rel_ebd": "NORM_REL_LAYER_NORM", "position_buckets": 8, "share_att_key": True,
      "position_biased_input": False}, LABELLED,
     [({"pos_att_type": ["c2p"]}, "'pos_att_type.#'"), ({"pos_att_type": None}, "'pos_att_type'"), ({"relative_attention": False}, "says false"),
      ({"norm_rel_ebd": "none"}, "'norm_rel_ebd' is NORM_REL_LAYER_NORM here"), ({"position_buckets": -1}, "says -1"),
      ({"conv_kernel_size": 3, "conv_act": "gelu"}, "'conv_kernel_size' is 0 here"), ({"type_vocab_size": 2}, "says 2")]),
    ("swin.c", SwinConfig(embed_dim=8, depths=[2, 1], num_heads=[2, 2], image_size=8, patch_size=2, window_size=2, drop_path_rate=0.0),
     {"embed_dim": 8, "num_layers": 2, "depths.0": 2, "depths.1": 1, "num_heads.0": 2, "num_heads.1": 2, "image_size": 8, "patch_size": 2,
      "window_size": 2, "num_labels": 2}, rows(3 * 8 * 8),
     [({"num_heads": [2, 1]}, "'num_heads.1' is 2 here"), ({"qkv_bias": False}, "'qkv_bias'"), ({"window_size": 4}, "is 2 here"),
      ({"use_absolute_embeddings": True}, "'use_absolute_embeddings'")]),
    ("resnet.c", ResNetConfig(embedding_size=8, hidden_sizes=[8, 16, 16, 16], depths=[1, 1, 1, 1], layer_type="basic"),
     {"layer_type": "BASIC", "image_size": 32, "embedding_size": 8, "num_labels": 2,
      **{f"hidden_sizes.{i}": n for i, n in enumerate([8, 16, 16, 16])}, **{f"depths.{i}": 1 for i in range(4)}}, rows(3 * 32 * 32),
     [({"depths": [1, 2, 1, 1]}, "'depths.1' is 1 here"), ({"layer_type": "bottleneck"}, "'layer_type' is BASIC here")]),
]


OTHERWISE = re.compile(r"of '([^']+)'$", re.MULTILINE)
# What the tensors' shapes decide, and what counts in training alone.
DECIDED = {"qwen_moe.c": {"model_type", "num_local_experts", "qkv_bias", "intermediate_size", "shared_expert_intermediate_size"},
           "mamba.c": {"time_step_rank"},
           "swin.c": {"drop_path_rate"}}


class Published(unittest.TestCase):
    def check(self, trainer, content):
        (trainer.folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
        ended = subprocess.run([GENERATOR, "job.yaml", "-o", "out.c"], cwd=trainer.folder, capture_output=True, text=True)
        return ended.returncode, ended.stderr

    def trainer(self, model, config, data):
        return Trainer({"model": {"source": str(MODELS / model), "weights": "model.safetensors", "config": config},
                        "data": data, "training": {"steps": 1}})

    def test_examples(self):
        for model, theirs, config, data, changes in CASES:
            trainer = self.trainer(model, config, data)
            written = json.loads(theirs.to_json_string())
            with self.subTest(model=model):
                self.assertEqual(self.check(trainer, written), (0, ""))
            for change, message in changes:
                with self.subTest(model=model, change=change):
                    status, text = self.check(trainer, {**written, **change})
                    self.assertEqual(status, 0 if message is None else 2, text)
                    self.assertIn("" if message is None else message.replace("{}", "./config.json"), text)

    def test_defaults(self):
        """A key that is left out means what the class makes of it, not what the model does."""
        for model, theirs, sizes, data, _ in CASES:
            written = json.loads(type(theirs)().to_json_string())
            trainer, config, lacking = self.trainer(model, {}, data), {}, True
            while lacking:
                lacking = re.findall("model.config lacks '([^']+)'", self.check(trainer, written)[1])
                config.update({key: sizes.get(key, written.get(key, 1)) for key in lacking})
                trainer.job["model"]["config"] = config
                trainer.write()
            other = {key for key in OTHERWISE.findall(self.check(trainer, written)[1]) if key in written} - set(config)
            refused = OTHERWISE.findall(self.check(trainer, {key: value for key, value in written.items() if key not in other})[1])
            with self.subTest(model=model):
                self.assertLessEqual(other - {word for keys in refused for word in keys.split()}, DECIDED.get(model, set()))

    def test_listed(self):
        """docs/models.md has the classes that the models have."""
        page, models = (MODELS.parents[1] / "docs" / "models.md").read_text(), sorted(MODELS.glob("*.c"))
        classes = {model.name: re.findall('"(\\w+)', (re.findall(r"architectures\[\] = {(.*?)}", model.read_text(), re.DOTALL) or [""])[0]) for model in models}
        listed = dict(re.findall(r"^\| \[(\w+\.c)\]\(.*?\) \| (.*) \|$", page, re.MULTILINE))
        self.assertEqual({name: re.findall("`(.*?)`", text) for name, text in listed.items()}, {name: found for name, found in classes.items() if found})

    def test_positions(self):
        """What a kind of scaling, a part of a head or a long sequence leaves without a meaning is refused by its key."""
        for model, config, data, more, words in (
                ("llama.c", LLAMA, TOKENS, {"rope.kind": "ROPE_YARN", "rope.factor": 4}, "rope.kind needs rope.original_length"),
                ("llama.c", LLAMA, TOKENS, {"rope.kind": "ROPE_LINEAR"}, "rope.kind needs rope.factor"),
                ("phi.c", next(case[2] for case in CASES if case[0] == "phi.c"), TOKENS, {"partial_rotary_factor": 0.1}, "partial_rotary_factor leaves"),
                ("roberta.c", {**BERT, "vocab_size": 256}, TOKENS, {"max_position_embeddings": 17}, "is below max_position_embeddings")):
            trainer = self.trainer(model, {**config, **more}, data)
            ended = subprocess.run([GENERATOR, "job.yaml", "-o", "out.c"], cwd=trainer.folder, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(words, ended.stderr)

    def test_locations(self):
        """The file is next to the weights or in their folder, which are named from here or from the job's folder."""
        trainer = self.trainer("gpt2.c", {**GPT2, "block_size": 16}, TOKENS)
        published = trainer.folder / "published"
        published.mkdir()
        (published / "config.json").write_text('{"n_head": 4}')
        for weights in ("published", "published/", "published/model.safetensors", str(published), f"{published}/x.safetensors"):
            trainer.job["model"]["weights"] = weights
            trainer.write()
            for folder, job in ((trainer.folder, "job.yaml"), (MODELS, trainer.path)):
                ended = subprocess.run([GENERATOR, job, "-o", "/dev/null"], cwd=folder, capture_output=True, text=True)
                self.assertIn("/config.json says 4 of 'n_head'", ended.stderr, weights)

    def test_files(self):
        """What is no config.json is refused; keys that the model has not are named, and those that say nothing are not."""
        trainer = self.trainer("gpt2.c", {**GPT2, "block_size": 16}, TOKENS)
        self.assertIn("config.json:2:", self.check(trainer, '{"n_head":\n 2,}')[1])
        self.assertIn("a config.json is an object", self.check(trainer, "[]")[1])
        with open(trainer.folder / "config.json", "w") as file:
            file.truncate(1 << 36)
        self.assertIn("no file of at most 16 MB", subprocess.run(
            [GENERATOR, "job.yaml", "-o", "out.c"], cwd=trainer.folder, capture_output=True, text=True).stderr)
        status, text = self.check(trainer, {"n_head": 2, "n_positions": 16, "alibi": True, "softcap": {"logits": 30.0},
                                            "model_type": "gpt2", "eos_token_id": [1, 2], "moe": False, "extra": None})
        self.assertEqual(status, 0, text)
        self.assertIn("warning: ./config.json has keys that the model's config does not have: alibi (true), softcap.logits (30.0)\n", text)


if __name__ == "__main__":
    unittest.main()
