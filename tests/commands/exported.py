"""Published folders of random weights, of the families that `accel-gen export` writes as GGUF."""

import sys
from pathlib import Path

import torch
import transformers

sys.path[:0] = [str(Path(__file__).resolve().parent)]

from chats_made import CHATML_MARKED, tokenizer_of  # noqa: E402

TEXT = "A job is a page of keys, and a folder is a model. " * 200
BASE = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64, "intermediate_size": 96,
        "vocab_size": 600, "max_position_embeddings": 128, "initializer_range": 0.2}
EXPERTS = {"num_local_experts": 3, "num_experts_per_tok": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
ONE = {key: value for key, value in BASE.items() if key != "num_key_value_heads"}
GPT2 = {"n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 600, "n_positions": 128, "n_ctx": 128, "initializer_range": 0.2}

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
            "gpt2": ("GPT2LMHeadModel", GPT2, "gpt2", "gpt2")}


def save(family, folder, **more):
    """A folder with weights, config and tokenizer; vectors are not all ones and zeros."""
    name, config, tokenizer, _ = FAMILIES[family]
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = kind(kind.config_class(**{**config, **more}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    model.save_pretrained(folder)
    tokenizer_of(tokenizer, TEXT, CHATML_MARKED).save_pretrained(folder)
    return folder
