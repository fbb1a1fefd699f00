"""Decoders with rotary embeddings against their classes of transformers: examples/models/llama.c, qwen2.c, qwen3.c, mistral.c,
mixtral.c, gemma.c, gemma2.c, gemma3.c, phi.c, phi3.c and gpt_neox.c. Half of
the tests a run (rotation.py)."""
# long

import unittest

import torch.nn.functional as F
from peer import Text, drawn
from rotation import rotating
from transformers import (Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, GemmaConfig, GemmaForCausalLM,
                          GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM,
                          MixtralConfig, MixtralForCausalLM, Phi3Config, Phi3ForCausalLM, PhiConfig, PhiForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

ROPE = {"rope_theta": 10000.0, "rope_type": "default"}


class Decoders(Text):
    def shape(self):
        kv = self.random.choice([1, 2])
        heads = kv * self.random.choice([1, 2, 3])
        return {"num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": kv,
                "head_dim": 2 * self.random.randint(2, 9), "hidden_size": heads * self.random.randint(5, 15),
                "intermediate_size": self.random.randint(5, 60), "vocab_size": 256, "rms_norm_eps": 1e-5}

    def compare(self, source, make, kind, length, rope=None, ours=None, tied=False, **more):
        same = self.shape()
        settings = {**same, **more, "tie_word_embeddings": tied}
        theirs = make(kind(**settings, rope_parameters={**ROPE, **(rope or {})}, initializer_range=0.1,
                           max_position_embeddings=length, pad_token_id=None))
        ties = {} if source.startswith("gemma") else {"tie_word_embeddings": tied}
        self.causal(source, theirs, {**same, **ties, **(ours or {})}, length)

    @drawn
    def test_llama(self):
        self.compare("llama.c", LlamaForCausalLM, LlamaConfig, self.random.randint(3, 40))

    def test_llama_3_tied(self):
        rope = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16}
        ours = {"rope.kind": "ROPE_LLAMA3", "rope.factor": 4, "rope.original_length": 16}
        self.compare("llama.c", LlamaForCausalLM, LlamaConfig, 33, rope, ours, tied=True)

    def test_llama_yarn(self):
        rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
        ours = {"rope.kind": "ROPE_YARN", "rope.factor": 4, "rope.original_length": 16}
        self.compare("llama.c", LlamaForCausalLM, LlamaConfig, 64, rope, ours)

    def test_llama_linear(self):
        ours = {"rope.kind": "ROPE_LINEAR", "rope.factor": 2}
        self.compare("llama.c", LlamaForCausalLM, LlamaConfig, 20, {"rope_type": "linear", "factor": 2.0}, ours)

    @drawn
    def test_qwen3(self):
        self.compare("qwen3.c", Qwen3ForCausalLM, Qwen3Config, self.random.randint(3, 40), ours={"rope.theta": 10000})

    @drawn
    def test_mistral(self):
        window = self.random.randint(1, 12)
        self.compare("mistral.c", MistralForCausalLM, MistralConfig, 40, ours={"sliding_window": window}, sliding_window=window)

    @drawn
    def test_mixtral(self):
        length = self.random.randint(3, 40)
        shape = self.shape()
        experts = self.random.randint(2, 5)
        same = {**shape, "num_local_experts": experts, "num_experts_per_tok": self.random.randint(1, experts)}
        theirs = MixtralForCausalLM(MixtralConfig(**same, rope_parameters=ROPE, initializer_range=0.1, router_aux_loss_coef=0.1,
                                                  max_position_embeddings=length, sliding_window=None, output_router_logits=True))
        theirs.config._experts_implementation = "eager"  # the others want rows of 16 bytes
        data, batches = self.text(length)

        def loss_of(model, tokens, targets):
            out = model(tokens)
            return F.cross_entropy(out.logits.flatten(0, 1), targets.flatten()) + 0.1 * out.aux_loss

        self.check("mixtral.c", theirs, {**same, "router_aux_loss_coef": 0.1}, data, batches, loss_of)

    @drawn
    def test_gemma(self):
        self.compare("gemma.c", GemmaForCausalLM, GemmaConfig, self.random.randint(3, 40), tied=True)

    @drawn
    def test_gemma2(self):
        """Layers of both kinds, with caps of scores and logits and without."""
        same = {**self.shape(), "sliding_window": self.random.randint(1, 12), "query_pre_attn_scalar": self.random.randint(4, 40)}
        caps = {key: self.random.choice([None, 2.0, 30.0]) for key in ("attn_logit_softcapping", "final_logit_softcapping")}
        theirs = Gemma2ForCausalLM(Gemma2Config(**same, **caps, rope_parameters=ROPE, initializer_range=0.1, pad_token_id=None,
                                                max_position_embeddings=40))
        ours = {f"layer_types.{i}": f"LAYER_{kind.upper()}" for i, kind in enumerate(theirs.config.layer_types)}
        self.causal("gemma2.c", theirs, {**same, **ours, **{key: cap or 0 for key, cap in caps.items()}}, 20)

    @drawn
    def test_gemma3(self):
        """Layers of both kinds by a pattern, and by a list."""
        same = {**self.shape(), "num_hidden_layers": 4, "sliding_window": self.random.randint(1, 12), "query_pre_attn_scalar": 11}
        kinds = self.random.choice([None, self.random.choices(["sliding_attention", "full_attention"], k=4)])
        rope = {"full_attention": {"rope_theta": 500000.0, "rope_type": "linear", "factor": 8.0},
                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}
        theirs = Gemma3ForCausalLM(Gemma3TextConfig(**same, rope_parameters=rope, initializer_range=0.1, pad_token_id=None,
                                                    max_position_embeddings=40, sliding_window_pattern=3, layer_types=kinds))
        ours = {"rope.theta": 500000, "rope.kind": "ROPE_LINEAR", "rope.factor": 8, "sliding_window_pattern": 3}
        ours |= {f"layer_types.{i}": f"LAYER_{kind.upper()}" for i, kind in enumerate(theirs.config.layer_types)}
        self.causal("gemma3.c", theirs, {**same, **ours}, 20)

    @drawn
    def test_phi(self):
        same = {**self.shape(), "partial_rotary_factor": 0.5, "qk_layernorm": self.random.choice([True, False])}
        same = {key: value for key, value in same.items() if key not in ("head_dim", "rms_norm_eps")}
        same["hidden_size"] = same["num_attention_heads"] * 4 * self.random.randint(1, 4)
        theirs = PhiForCausalLM(PhiConfig(**{k: v for k, v in same.items() if k != "partial_rotary_factor"},
                                          rope_parameters={**ROPE, "partial_rotary_factor": 0.5}, initializer_range=0.1,
                                          max_position_embeddings=40))
        self.causal("phi.c", theirs, same, self.random.randint(3, 40))

    @drawn
    def test_phi3(self):
        same, part = self.shape(), self.random.choice([0.5, 1.0])
        same = {key: value for key, value in same.items() if key != "head_dim"}
        same["hidden_size"] = same["num_attention_heads"] * 4 * self.random.randint(1, 4)
        window = self.random.choice([None, self.random.randint(1, 12)])
        theirs = Phi3ForCausalLM(Phi3Config(**same, rope_parameters={**ROPE, "partial_rotary_factor": part}, initializer_range=0.1,
                                            sliding_window=window, max_position_embeddings=40, pad_token_id=None))
        self.causal("phi3.c", theirs, {**same, "partial_rotary_factor": part, "sliding_window": window or 0}, 20)

    @drawn
    def test_qwen2(self):
        same, tied = self.shape(), self.random.choice([True, False])
        same = {key: value for key, value in same.items() if key != "head_dim"}
        same["hidden_size"] = same["num_attention_heads"] * 2 * self.random.randint(2, 8)
        theirs = Qwen2ForCausalLM(Qwen2Config(**same, rope_parameters=ROPE, initializer_range=0.1, tie_word_embeddings=tied,
                                              max_position_embeddings=40))
        self.causal("qwen2.c", theirs, {**same, "rope.theta": 10000, "tie_word_embeddings": tied}, self.random.randint(3, 40))

    @drawn
    def test_gpt_neox(self):
        heads, length = self.random.randint(1, 4), self.random.randint(3, 40)
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * 8 * self.random.randint(1, 3),
                "intermediate_size": self.random.randint(5, 60), "vocab_size": 256,
                "use_parallel_residual": self.random.choice([True, False])}
        theirs = GPTNeoXForCausalLM(GPTNeoXConfig(**same, rope_parameters={**ROPE, "partial_rotary_factor": 0.25},
                                                  initializer_range=0.1, max_position_embeddings=length))
        self.causal("gpt_neox.c", theirs, same, length)


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
