"""examples/models/llama.c beside transformers' LlamaForCausalLM."""

import unittest

from peer import Text
from transformers import LlamaConfig, LlamaForCausalLM


class Llama(Text):
    def compare(self, length, rope, tied=False, **ours):
        kv = self.random.choice([1, 2])
        heads, width = kv * self.random.choice([1, 2, 3]), 2 * self.random.randint(2, 9)
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": width,
                "hidden_size": self.random.randint(9, 40), "intermediate_size": self.random.randint(5, 60),
                "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": tied}
        theirs = LlamaForCausalLM(LlamaConfig(**same, rope_parameters={"rope_theta": 10000.0, **rope}, initializer_range=0.1,
                                              max_position_embeddings=length))
        self.causal("llama.c", theirs, {**same, **ours}, length, skip=["lm_head.weight"] if tied else [])

    def test_plain(self):
        self.compare(self.random.randint(3, 40), {"rope_type": "default"})

    def test_llama3_tied(self):
        rope = {"factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
        self.compare(33, {"rope_type": "llama3", **rope}, tied=True, **{"rope.kind": "ROPE_LLAMA3", "rope.factor": 4,
                                                                         "rope.original_length": 16})

    def test_yarn(self):
        rope = {"factor": 4.0, "original_max_position_embeddings": 16}
        self.compare(64, {"rope_type": "yarn", **rope}, **{"rope.kind": "ROPE_YARN", "rope.factor": 4, "rope.original_length": 16})

    def test_linear(self):
        self.compare(20, {"rope_type": "linear", "factor": 2.0}, **{"rope.kind": "ROPE_LINEAR", "rope.factor": 2})


if __name__ == "__main__":
    unittest.main()
