"""Configurations of classes of transformers over tokens, three of each class, odd ones too: what a folder of Hugging Face that goes
through a run can have."""

import torch
from safetensors.torch import load_file
from test_strictness import EXPERTS, FAMILIES, GROUPED, HEADS, SIZES

LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 8}
SHARED = {"shared_expert_intermediate_size": 8}
DEEPSEEK = {**SIZES, "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
            "moe_intermediate_size": 8, "n_shared_experts": 1, "first_k_dense_replace": 1, "q_lora_rank": 8, "kv_lora_rank": 8,
            "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 6}
CASES = {
    "GPT2LMHeadModel": [{}, {"n_layer": 1, "n_embd": 20, "n_head": 5}, {"n_positions": 50, "activation_function": "gelu_pytorch_tanh"}],
    "LlamaForCausalLM": [{"tie_word_embeddings": True}, {"rope_parameters": LLAMA3, "head_dim": 6},
                         {"num_key_value_heads": 1, "rms_norm_eps": 1e-5, "num_hidden_layers": 1}],
    "MistralForCausalLM": [{"sliding_window": 4}, {"sliding_window": None, "head_dim": 10}, {"rope_parameters": LINEAR, "num_key_value_heads": 4}],
    "MixtralForCausalLM": [{"num_local_experts": 4}, {"num_experts_per_tok": 1, "num_local_experts": 2}, {"num_local_experts": 3, "head_dim": 8}],
    "GemmaForCausalLM": [{}, {"head_dim": 10, "num_key_value_heads": 1}, {"rope_parameters": LINEAR}],
    "Gemma2ForCausalLM": [{}, {"attn_logit_softcapping": None, "query_pre_attn_scalar": 9},
                          {"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 3}],
    "Gemma3ForCausalLM": [{}, {"layer_types": ["full_attention", "sliding_attention"], "query_pre_attn_scalar": 9},
                          {"num_hidden_layers": 3, "sliding_window": 3, "num_key_value_heads": 1}],
    "Qwen2ForCausalLM": [{"tie_word_embeddings": True}, {"num_key_value_heads": 4}, {"rope_parameters": YARN}],
    "Qwen3ForCausalLM": [{}, {"head_dim": 10, "tie_word_embeddings": True}, {"num_key_value_heads": 1, "rope_parameters": LINEAR}],
    "Qwen3MoeForCausalLM": [{"norm_topk_prob": True}, {"decoder_sparse_step": 2}, {"tie_word_embeddings": True, "num_experts_per_tok": 1}],
    "Qwen2MoeForCausalLM": [{}, {"decoder_sparse_step": 2}, {"norm_topk_prob": True, "num_experts": 3}],
    "DeepseekV3ForCausalLM": [{}, {"q_lora_rank": None, "n_shared_experts": 2}, {"first_k_dense_replace": 0, "n_group": 1}],
    "GPTNeoXForCausalLM": [{}, {"use_parallel_residual": False}, {"tie_word_embeddings": True, "hidden_size": 64}],
    "MambaForCausalLM": [{}, {"state_size": 8, "expand": 3}, {"time_step_rank": 3, "conv_kernel": 3}],
    "PhiForCausalLM": [{}, {"qk_layernorm": True}, {"num_key_value_heads": 2, "num_hidden_layers": 1}],
    "Phi3ForCausalLM": [{}, {"sliding_window": 4}, {"tie_word_embeddings": True, "num_key_value_heads": 1}],
    "BertForMaskedLM": [{}, {"type_vocab_size": 3, "num_attention_heads": 2}, {"intermediate_size": 10, "layer_norm_eps": 1e-5}],
    "RobertaForMaskedLM": [{}, {"pad_token_id": 3}, {"type_vocab_size": 1, "num_attention_heads": 2}],
    "DistilBertForMaskedLM": [{}, {"n_layers": 1, "n_heads": 2}, {"hidden_dim": 10}],
    "AlbertForMaskedLM": [{}, {"num_hidden_groups": 2}, {"inner_group_num": 2, "embedding_size": 12}],
}
BASES = {**FAMILIES, "DeepseekV3ForCausalLM": DEEPSEEK}


def save(kind, config, number, folder):
    """A published folder: of one file in float32, of shards in bfloat16, of a pickle in float16."""
    model = kind(kind.config_class(**config)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model = model.to((torch.float32, torch.bfloat16, torch.float16)[number])
    model.save_pretrained(folder, max_shard_size=("5GB", "20KB", "5GB")[number])
    if number == 2:
        torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()


__all__ = ["BASES", "CASES", "EXPERTS", "GROUPED", "HEADS", "SHARED", "save"]
