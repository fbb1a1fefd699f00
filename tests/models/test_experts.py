"""examples/models/qwen_moe.c against Qwen's mixtures of experts in transformers: without a limit, and with a capacity, whose
rule is that of SwitchTransformers' router there for one choice, and GShard's for more; and deepseek_v3.c against DeepSeek's. Half of
the tests a run (rotation.py)."""

import math
import unittest

import torch
import torch.nn.functional as F
from peer import Text, drawn
from rotation import rotating
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM, Qwen2MoeConfig, Qwen2MoeForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM, SwitchTransformersConfig
from transformers.models.switch_transformers.modeling_switch_transformers import SwitchTransformersTop1Router

ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
COEFFICIENT = 0.1


class Limited(torch.nn.Module):
    """A router of which an expert takes `capacity` choices of a sequence: the weights of the others are 0."""

    def __init__(self, router, experts, length, capacity):
        super().__init__()
        self.router, self.experts, self.length, self.capacity = router, experts, length, capacity

    def forward(self, x):
        logits, weights, chosen = self.router(x)
        each = F.one_hot(chosen.unflatten(0, (-1, self.length)), self.experts).permute(0, 2, 1, 3)  # [B][k][T][E]
        position = each.flatten(1, 2).cumsum(1).unflatten(1, each.shape[1:3])
        within = (each * (position <= self.capacity)).sum(-1).mT.flatten(0, 1)
        return logits, weights * within, chosen


class Experts(Text):
    def shape(self):
        kv = self.random.choice([1, 2])
        heads = kv * self.random.choice([1, 2])
        experts = self.random.randint(2, 6)
        return {"num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": kv, "vocab_size": 256, "rms_norm_eps": 1e-5,
                "num_experts": experts, "num_experts_per_tok": self.random.randint(1, min(3, experts)),
                "moe_intermediate_size": self.random.randint(5, 40)}

    def compare(self, make, kind, length, theirs, ours, limit=0.0):
        settings = {**theirs, "rope_parameters": dict(ROPE), "initializer_range": 0.1, "max_position_embeddings": length,
                    "router_aux_loss_coef": COEFFICIENT, "output_router_logits": True, "pad_token_id": None}
        model = make(kind(**settings))
        model.config._experts_implementation = "eager"
        data, batches = self.text(length)
        capacity = math.ceil(limit * length * theirs["num_experts_per_tok"] / theirs["num_experts"])
        routers = [layer.mlp.gate for layer in model.model.layers] if limit else []

        def loss_of(model, tokens, targets):
            for layer, router in zip(model.model.layers, routers):
                layer.mlp.gate = Limited(router, theirs["num_experts"], length, capacity)
            try:
                out = model(tokens)
            finally:
                for layer, router in zip(model.model.layers, routers):
                    layer.mlp.gate = router
            return F.cross_entropy(out.logits.flatten(0, 1), targets.flatten()) + COEFFICIENT * out.aux_loss

        self.check("qwen_moe.c", model, {**ours, "router_aux_loss_coef": COEFFICIENT, "capacity_factor": limit}, data, batches, loss_of)

    def qwen3(self, length, limit=0.0, **more):
        same = {**self.shape(), "head_dim": 2 * self.random.randint(2, 9), "norm_topk_prob": self.random.choice([True, False]),
                "intermediate_size": 8, **more}
        same["hidden_size"] = self.random.randint(10, 40)
        theirs = {**same, "mlp_only_layers": []}
        self.compare(Qwen3MoeForCausalLM, Qwen3MoeConfig, length, theirs, same, limit)

    @drawn
    def test_qwen3(self):
        self.qwen3(self.random.randint(3, 40))

    @drawn
    def test_qwen2(self):
        same = {**self.shape(), "norm_topk_prob": self.random.choice([True, False]), "intermediate_size": 20, "qkv_bias": True,
                "decoder_sparse_step": self.random.choice([1, 2]), "shared_expert_intermediate_size": self.random.randint(5, 30)}
        width = 2 * self.random.randint(2, 9)
        same["hidden_size"] = same["num_attention_heads"] * width
        self.compare(Qwen2MoeForCausalLM, Qwen2MoeConfig, self.random.randint(3, 40), same, {**same, "head_dim": width, "qk_norm": False})

    def test_capacity(self):
        self.qwen3(24, limit=0.75, num_experts=4, num_experts_per_tok=2)

    def test_limited_is_switch(self):
        """The rule of the test above for one choice is that of SwitchTransformers."""
        switch = SwitchTransformersTop1Router(SwitchTransformersConfig(d_model=6, num_experts=3, expert_capacity=4)).eval()
        x = torch.randn(2, 15, 6)
        dispatch, weights, _ = switch(x)
        router = Limited(lambda x: (None, *switch.classifier(x).softmax(-1).topk(1)), 3, 15, 4)
        within = dispatch.sum(-1, keepdim=True)
        self.assertLess(within.sum(), 30)
        torch.testing.assert_close(router(x.flatten(0, 1))[1].reshape(2, 15, 1), weights * within)

    def deepseek(self, length, rope=None, ours=None, **more):
        """Biases of the choice that are not zero; a layer without experts and one with them."""
        groups, each = self.random.choice([(1, 4), (2, 2), (3, 3)])
        self.smooth = False
        same = {"num_hidden_layers": 2, "num_attention_heads": self.random.randint(1, 3), "hidden_size": self.random.randint(10, 40),
                "vocab_size": 256, "q_lora_rank": self.random.choice([None, 9]), "kv_lora_rank": self.random.randint(4, 12),
                "qk_nope_head_dim": self.random.randint(3, 9), "qk_rope_head_dim": 2 * self.random.randint(2, 4),
                "v_head_dim": self.random.randint(3, 20), "first_k_dense_replace": 1, "intermediate_size": self.random.randint(5, 40),
                "n_routed_experts": groups * each, "n_shared_experts": self.random.randint(1, 2), "num_experts_per_tok": 2,
                "n_group": groups, "topk_group": self.random.randint(1, groups), "moe_intermediate_size": self.random.randint(5, 30),
                "norm_topk_prob": self.random.choice([True, False]), "routed_scaling_factor": 1.5,
                "rope_interleave": self.random.choice([True, False]), **more}
        kv = {"num_key_value_heads": same["num_attention_heads"]}
        model = DeepseekV3ForCausalLM(DeepseekV3Config(**same, **kv, rope_parameters={**ROPE, **(rope or {})}, initializer_range=0.1,
                                                       max_position_embeddings=length))
        model.config._experts_implementation = "eager"
        model.model.layers[1].mlp.gate.e_score_correction_bias.normal_(std=0.1)
        self.causal("deepseek_v3.c", model, {**same, "q_lora_rank": same["q_lora_rank"] or 0, **(ours or {})}, length)

    @drawn
    def test_deepseek_v3(self):
        self.deepseek(self.random.randint(3, 40))

    def test_deepseek_v3_yarn(self):
        yarn = {"factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.7, "original_max_position_embeddings": 16}
        ours = {"rope.kind": "ROPE_YARN", "rope.factor": 4, "rope.mscale": 1, "rope.mscale_all_dim": 0.7, "rope.original_length": 16}
        self.deepseek(40, {**yarn, "rope_type": "yarn"}, ours)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
