"""Published folders of random weights, of the families that `accel-gen export` writes as GGUF."""

import json
import random
import sys
from pathlib import Path

import torch
import transformers

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402

WORDS = random.Random(0).choices("A job is a page of keys, and a folder is a model.".split(), k=2000)
TEXT = "\n".join(" ".join(WORDS[at:at + 8]) for at in range(0, len(WORDS), 8))
BASE = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64, "intermediate_size": 96,
        "vocab_size": 600, "max_position_embeddings": 128, "initializer_range": 0.2}
EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
ONE = {key: value for key, value in BASE.items() if key != "num_key_value_heads"}
GPT2 = {"n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 600, "n_positions": 128, "n_ctx": 128, "initializer_range": 0.2}
PIECES = BASE  # with as many numbers as the tokenizer has
WINDOW = {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}
DEEPSEEK = {**BASE, "num_key_value_heads": 4, "num_hidden_layers": 3, "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 32,
            "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24, "n_routed_experts": 8, "n_shared_experts": 2,
            "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "moe_intermediate_size": 32, "norm_topk_prob": True,
            "routed_scaling_factor": 2.5, "scoring_func": "sigmoid"}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 8.0, "beta_slow": 1.0, "mscale": 0.7, "mscale_all_dim": 0.7,
        "original_max_position_embeddings": 32}
MAMBA = {"num_hidden_layers": 2, "hidden_size": 64, "state_size": 8, "vocab_size": 600, "initializer_range": 0.2}

PIECEWISE = "llama2", "mistral", "gemma"
# Family to its class, the config, the tokenizer, and what llama.cpp calls it.
FAMILIES = {"llama": ("LlamaForCausalLM", BASE, "llama3", "llama"),
            "llama3": ("LlamaForCausalLM", {**BASE, "rope_parameters": LLAMA3}, "llama3", "llama"),
            "linear": ("LlamaForCausalLM", {**BASE, "rope_parameters": LINEAR}, "llama3", "llama"),
            "mistral": ("MistralForCausalLM", {**BASE, "sliding_window": None}, "llama3", "llama"),
            "mixtral": ("MixtralForCausalLM", {**BASE, **EXPERTS, "sliding_window": None}, "llama3", "llama"),
            "qwen2": ("Qwen2ForCausalLM", BASE, "qwen2", "qwen2"),
            "qwen3": ("Qwen3ForCausalLM", {**BASE, "head_dim": 16}, "qwen2", "qwen3"),
            "qwen3_moe": ("Qwen3MoeForCausalLM", {**BASE, "head_dim": 16, "moe_intermediate_size": 32, "num_experts": 3, "num_experts_per_tok": 2,
                                                  "norm_topk_prob": True}, "qwen2", "qwen3moe"),
            "gpt_neox": ("GPTNeoXForCausalLM", ONE, "gpt2", "gptneox"),
            "phi": ("PhiForCausalLM", {**ONE, "intermediate_size": 256}, "gpt2", "phi2"),
            "gpt2": ("GPT2LMHeadModel", GPT2, "gpt2", "gpt2"),
            "llama2": ("LlamaForCausalLM", PIECES, "llama2", "llama"),
            "mistral_pieces": ("MistralForCausalLM", {**PIECES, "sliding_window": None}, "mistral", "llama"),
            "gemma": ("GemmaForCausalLM", {**PIECES, "head_dim": 16}, "gemma", "gemma"),
            "gemma2": ("Gemma2ForCausalLM", {**PIECES, **WINDOW, "num_hidden_layers": 3}, "gemma", "gemma2"),
            "gemma3": ("Gemma3ForCausalLM", {**PIECES, **WINDOW, "num_hidden_layers": 7}, "gemma", "gemma3"),
            "phi3": ("Phi3ForCausalLM", {**PIECES, "sliding_window": None, "pad_token_id": 0}, "llama2", "phi3"),
            "qwen2_moe": ("Qwen2MoeForCausalLM", {**BASE, "moe_intermediate_size": 32, "num_experts": 3, "num_experts_per_tok": 2,
                                                  "shared_expert_intermediate_size": 64, "norm_topk_prob": False}, "qwen2", "qwen2moe"),
            "deepseek_v3": ("DeepseekV3ForCausalLM", DEEPSEEK, "deepseek_v3", "deepseek2"),
            "deepseek_v3_yarn": ("DeepseekV3ForCausalLM", {**DEEPSEEK, "q_lora_rank": None, "n_group": 1, "topk_group": 1,
                                                           "norm_topk_prob": False, "rope_parameters": YARN, "tie_word_embeddings": True},
                                 "deepseek_v3", "deepseek2"),
            "mamba": ("MambaForCausalLM", MAMBA, "gpt2", "mamba")}


def save(family, folder, **more):
    """A folder with weights, config and tokenizer; vectors are not all ones and zeros."""
    name, config, kind, _ = FAMILIES[family]
    tokenizer = tokenizer_of(kind, TEXT, CHATML_MARKED)
    if kind in PIECEWISE:
        config = {**config, "vocab_size": len(tokenizer)}
    architecture = getattr(transformers, name)
    torch.manual_seed(0)
    model = architecture(architecture.config_class(**{**config, **more}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.normal_(std=0.1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if kind in PIECEWISE:
        join_as_sentence_piece(folder / "tokenizer.json")
    return folder


def join_as_sentence_piece(path):
    """Lists all pairs of tokens that a token is, as files have it that are made of SentencePiece's."""
    tokenizer = json.loads(path.read_text())
    vocabulary = tokenizer["model"]["vocab"]
    products = dict.fromkeys("".join(pair) for pair in tokenizer["model"]["merges"])
    tokenizer["model"]["merges"] = [[text[:at], text[at:]] for text in products for at in range(1, len(text))
                                    if text[:at] in vocabulary and text[at:] in vocabulary]
    path.write_text(json.dumps(tokenizer))


def strip_as_phi3(folder):
    """Blanks after added tokens are part of them, as in the published tokenizers of Phi 3, which have <|endoftext|>."""
    for name in "tokenizer.json", "tokenizer_config.json":
        (folder / name).write_text((folder / name).read_text().replace("<|tool|>", "<|endoftext|>"))
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    for token in tokenizer["added_tokens"]:
        token["rstrip"] = token["content"] not in ("<unk>", "<s>", "<|endoftext|>")
    path.write_text(json.dumps(tokenizer))
