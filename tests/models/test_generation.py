"""Text from a trained model against transformers: the logits from which each token is chosen, the tokens of a greedy text,
and what is left to choose from. Half of
the tests a run (rotation.py)."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from peer import GENERATOR, MODELS, QUICK, SEED, Peer
from rotation import rotating
from transformers import (Gemma2Config, Gemma2ForCausalLM, Gemma3ForCausalLM, Gemma3TextConfig, GemmaConfig,
                          GemmaForCausalLM, GPT2Config, GPT2LMHeadModel, GPTNeoXConfig, GPTNeoXForCausalLM, LlamaConfig,
                          LlamaForCausalLM, MambaConfig, MambaForCausalLM, MistralConfig, MistralForCausalLM, MixtralConfig,
                          MixtralForCausalLM, Phi3Config, Phi3ForCausalLM, PhiConfig, PhiForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM)
from test_recurrent import Memory, Saved

ROPE = {"rope_theta": 10000.0, "rope_type": "default"}


class BothWays(Saved):
    def __init__(self, width, vocab_size):
        super().__init__()
        self.made = {"width": width, "vocab_size": vocab_size}
        self.table, self.output = torch.nn.Embedding(vocab_size, width), torch.nn.Linear(width, vocab_size)

    def forward(self, tokens):
        x = self.table(tokens)
        return self.output(x + 0.5 * x.flip(1))


class LookingBack(Saved):
    def __init__(self, width, kernel, dilation, shift, vocab_size):
        super().__init__()
        self.made = {"width": width, "kernel": kernel, "dilation": dilation, "shift": shift, "vocab_size": vocab_size}
        self.table, self.output = torch.nn.Embedding(vocab_size, width), torch.nn.Linear(width, vocab_size)
        self.start = torch.nn.Parameter(torch.randn(1, shift, width))
        reach = dilation * (kernel - 1)
        self.around = torch.nn.Conv1d(width, width, kernel, padding=reach, dilation=dilation, groups=width)
        self.valid = torch.nn.Conv1d(width, 2 * width, kernel, dilation=dilation)

    def forward(self, tokens):
        x, positions = self.table(tokens), tokens.shape[1]
        x = x + torch.cat([self.start, x], 1)[:, :positions]
        x = torch.relu(self.around(x.mT)[:, :, :positions]).mT
        x = x + 0.1 * x.cumsum(1)
        reach = self.made["dilation"] * (self.made["kernel"] - 1)
        gate, x = torch.tanh(self.valid(torch.nn.functional.pad(x.mT, (reach, 0)))).mT.chunk(2, 2)
        far = torch.nn.functional.pad(gate, (0, 0, 3, 0))
        return self.output(x + far[:, 1:positions + 1] * far[:, 3:])


class Writer:
    """A program that writes text with the weights of a model of theirs."""

    def __init__(self, source, theirs, config, length, **groups):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-writer-"))
        self.theirs, self.length = theirs.eval(), length
        (self.folder / "theirs").mkdir()
        theirs.save_pretrained(self.folder / "theirs")
        job = {"model": {"source": str(MODELS / source), "config": config, "weights": "theirs/model.safetensors"},
               "data": {"train": {"path": "none.bin", "format": "nanogpt"}, "batch_size": 2, "sequence_length": length},
               "training": {"steps": 1, "seed": SEED}, "checkpoint": {"project_dir": "run"}, **groups}
        (self.folder / "job.yaml").write_text(json.dumps(job))
        subprocess.run([GENERATOR, "build", "job.yaml", "--program", "generate", "-o", "write"], cwd=self.folder, check=True,
                       env=QUICK)

    def write(self, prompt, count, *flags):
        """The tokens, prompt and all, and the logits that each new one was chosen from."""
        out = subprocess.run([self.folder / "write", "--prompt", " ".join(map(str, prompt)), "--tokens", str(count),
                              "--logits", "logits.f32", *map(str, flags)], cwd=self.folder, capture_output=True, text=True)
        if out.returncode != 0:
            raise AssertionError(out.stdout + out.stderr)
        tokens = [int(word) for word in out.stdout.split()]
        logits = np.fromfile(self.folder / "logits.f32", np.float32)
        return tokens, logits.reshape(len(tokens) - len(prompt), -1)

    def audit(self):
        """What claims do not hold, or cannot be decided."""
        subprocess.run([GENERATOR, "job.yaml", "--program", "generate", "-o", "write.c"], cwd=self.folder, check=True)
        result = subprocess.run([GENERATOR, "audit", "write.c"], cwd=self.folder, capture_output=True, text=True)
        return result.stdout if result.returncode != 0 else ""


class Models(Peer):
    def shape(self):
        kv = self.random.choice([1, 2])
        heads = kv * self.random.choice([1, 2, 3])
        return {"num_hidden_layers": self.random.randint(1, 3), "num_attention_heads": heads, "num_key_value_heads": kv,
                "head_dim": 2 * self.random.randint(2, 9), "hidden_size": heads * self.random.randint(5, 15),
                "intermediate_size": self.random.randint(5, 60), "vocab_size": self.random.randint(257, 300),
                "rms_norm_eps": 1e-5}

    def writer(self, source, theirs, config, length, **groups):
        writer = Writer(source, theirs, config, length, **groups)
        self.addCleanup(shutil.rmtree, writer.folder)
        return writer

    def same_logits(self, writer, vocabulary, positions, tolerance=1e-5, proved=True):
        """Token by token as over the whole text at once, by a program whose audit holds (proved=False: as far as it can decide); a prompt that is longer or shorter than what the program runs over
        at once. The prompt, all tokens, and how many of them do not depend on rounding."""
        prompt = [self.random.randrange(vocabulary) for _ in range(self.random.randint(1, positions - 9))]
        tokens, logits = writer.write(prompt, positions - len(prompt), "--temperature", 0)
        with torch.no_grad():
            out = writer.theirs(torch.tensor([tokens[:-1]]))
        want = (out if isinstance(out, torch.Tensor) else out.logits)[0, len(prompt) - 1:].numpy()
        self.assertLess(np.linalg.norm(logits - want), tolerance * np.linalg.norm(want))
        audit = writer.audit()
        self.assertTrue(audit == "" or not proved and ", 0 broken" in audit, audit)
        # Where two logits are equal but for rounding either token is right, and what follows differs.
        top = np.sort(want, axis=1)
        clear = top[:, -1] - top[:, -2] > 10 * tolerance * np.abs(top).max()
        sure = len(clear) if clear.all() else int(np.argmin(clear))
        self.assertEqual(tokens[len(prompt):len(prompt) + sure], want[:sure].argmax(1).tolist())
        return prompt, tokens, len(prompt) + sure

    def same_text(self, source, theirs, config, length, positions=None, **how):
        """`positions` of the text, where the model is not bound to `length`."""
        writer = self.writer(source, theirs, config, length)
        prompt, tokens, until = self.same_logits(writer, config["vocab_size"], positions or length, **how)
        with torch.no_grad():
            text = writer.theirs.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), do_sample=False,
                                          max_new_tokens=len(tokens) - len(prompt), pad_token_id=0, eos_token_id=None)[0].tolist()
        self.assertEqual(tokens[:until], text[:until])
        return writer

    def rotary(self, source, make, kind, length, rope=None, ours=None, tied=False, **more):
        same = self.shape()
        theirs = make(kind(**same, **more, rope_parameters={**ROPE, **(rope or {})}, initializer_range=0.3,
                           max_position_embeddings=length, pad_token_id=None, tie_word_embeddings=tied))
        ties = {} if source.startswith("gemma") else {"tie_word_embeddings": tied}
        return self.same_text(source, theirs, {**same, **ties, **(ours or {})}, length)

    def length(self):
        return self.random.randint(12, 90)

    def test_gpt2(self):
        heads, length = self.random.randint(1, 3), self.length()
        same = {"n_layer": 2, "n_head": heads, "n_embd": 8 * heads, "vocab_size": 270}
        theirs = GPT2LMHeadModel(GPT2Config(**same, n_positions=length, initializer_range=0.3, resid_pdrop=0.0))
        self.same_text("gpt2.c", theirs, {**same, "block_size": length}, length)

    def test_stored_in_bf16(self):
        """The learned positions are those of the 16-bit copy of their table, in both widths that the program runs over."""
        config, length = {"n_layer": 2, "n_head": 2, "n_embd": 16, "vocab_size": 270}, 40
        theirs = GPT2LMHeadModel(GPT2Config(**config, n_positions=length, initializer_range=0.3, resid_pdrop=0.0))
        writer = self.writer("gpt2.c", theirs, {**config, "block_size": length}, length, precision={"param_dtype": "bf16"})
        self.same_logits(writer, config["vocab_size"], length, tolerance=2e-2)

    def test_llama(self):
        writer = self.rotary("llama.c", LlamaForCausalLM, LlamaConfig, self.length())
        flags = [[5, 7], 6, "--top-p", 0.9, "--top-k", 40, "--repetition-penalty", 1.3]
        text, _ = writer.write(*flags, "--seed", 3)
        self.assertEqual(text, writer.write(*flags, "--seed", 3)[0])
        self.assertNotEqual(text, writer.write(*flags, "--seed", 4)[0])
        self.assertEqual(writer.write(*flags, "--seed", 3, "--stop", f"{text[3]} {text[4]}")[0], text[:5])
        (writer.folder / "prompt").write_text("5\n7\n")
        self.assertEqual(writer.write(*flags, "--seed", 3, "--prompt-file", "prompt")[0], text)
        self.past_the_window(writer)

    def past_the_window(self, writer):
        """A window that is full starts again with its newer half."""
        length = writer.length
        tokens, logits = writer.write([1, 2, 3], length + 3, "--temperature", 0)
        window = tokens[length + 1 - length // 2:-1]
        with torch.no_grad():
            want = writer.theirs(torch.tensor([window])).logits[0, -1].numpy()
        self.assertLess(np.linalg.norm(logits[-1] - want), 1e-5 * np.linalg.norm(want))

    def test_qwen_moe(self):
        """Tokens are sorted by their experts; a limit of these mixes them."""
        experts, length = self.random.randint(2, 5), self.length()
        same = {**self.shape(), "num_experts": experts, "num_experts_per_tok": self.random.randint(1, experts),
                "moe_intermediate_size": self.random.randint(5, 40), "norm_topk_prob": self.random.choice([True, False])}
        theirs = Qwen3MoeForCausalLM(Qwen3MoeConfig(**same, rope_parameters=dict(ROPE), mlp_only_layers=[],
                                                    initializer_range=0.3, max_position_embeddings=length, pad_token_id=None))
        theirs.config._experts_implementation = "eager"
        writer = self.same_text("qwen_moe.c", theirs, same, length, proved=False)
        plan = subprocess.check_output([GENERATOR, "plan", "job.yaml", "--program", "generate", "--set", "model.config.capacity_factor=1"],
                                       cwd=writer.folder, text=True)
        self.assertIn("group_starts in qwen_moe.c", plan)

    def test_lstm(self):
        """What it keeps is of one size: a text continues beyond the length that the model is trained over."""
        same = {"num_layers": 2, "n_embd": self.random.randint(3, 12), "hidden_size": self.random.randint(3, 20), "vocab_size": 258}
        length = self.length()
        self.same_logits(self.writer("lstm.c", Memory(**same), same, length), 258, 2 * length)

    def test_mamba(self):
        same = {"num_hidden_layers": 2, "hidden_size": self.random.randint(5, 24), "state_size": self.random.randint(3, 17),
                "conv_kernel": self.random.randint(2, 4), "time_step_rank": self.random.randint(1, 5), "vocab_size": 270}
        length = self.length()
        self.same_text("mamba.c", MambaForCausalLM(MambaConfig(**same)), same, length, positions=2 * length)

    def test_looking_back(self):
        """Convolutions, sums and shifts that end at their own position."""
        made = {"width": self.random.randint(2, 9), "kernel": self.random.randint(1, 4), "dilation": self.random.randint(1, 3),
                "shift": self.random.randint(1, 3), "vocab_size": 258}
        length = self.length()
        for tolerance, precision in (1e-5, "no"), (2e-2, "bf16"):
            writer = self.writer(pathlib.Path(__file__).parent / "sources/looking_back.c", LookingBack(**made), made, length,
                                 precision={"mixed_precision": precision})
            self.same_logits(writer, 258, 2 * length, tolerance)

    def test_recomputed(self):
        """A model whose positions depend on each other in a way that no cache can have runs over the whole text for each token, and
        says so."""
        made = {"width": 5, "vocab_size": 258}
        writer = self.writer(pathlib.Path(__file__).parent / "sources/both_ways.c", BothWays(**made), made, 12)
        self.assertIn("flip in both_ways.c", subprocess.check_output([writer.folder / "write", "--version"], text=True))
        tokens, logits = writer.write([4, 9], 7, "--temperature", 0)
        for i, row in enumerate(logits):
            with torch.no_grad():
                want = writer.theirs(torch.tensor([tokens[:2 + i] + [0] * (10 - i)]))[0, 1 + i].numpy()
            self.assertLess(np.linalg.norm(row - want), 1e-5 * np.linalg.norm(want))

    def test_qwen3(self):
        self.rotary("qwen3.c", Qwen3ForCausalLM, Qwen3Config, self.length(), ours={"rope.theta": 10000})

    def test_mistral(self):
        window = self.random.randint(2, 12)  # of a window of 1 their cache keeps all positions, their forward one
        self.rotary("mistral.c", MistralForCausalLM, MistralConfig, self.length(), ours={"sliding_window": window},
                    sliding_window=window)

    def test_gemma(self):
        self.rotary("gemma.c", GemmaForCausalLM, GemmaConfig, self.length(), tied=True)

    def test_gemma3(self):
        """Layers with a cache of all positions, and with one of a window, each with its own angles."""
        rope = {"full_attention": {"rope_theta": 1e6, "rope_type": "default"}, "sliding_attention": dict(ROPE)}
        same = {**self.shape(), "query_pre_attn_scalar": 11, "sliding_window": self.random.randint(2, 12)}
        theirs = Gemma3ForCausalLM(Gemma3TextConfig(**same, rope_parameters=rope, initializer_range=0.3, pad_token_id=None,
                                                    max_position_embeddings=90, sliding_window_pattern=2))
        kinds = {f"layer_types.{i}": f"LAYER_{kind.upper()}" for i, kind in enumerate(theirs.config.layer_types)}
        self.same_text("gemma3.c", theirs, {**same, **kinds, "sliding_window_pattern": 2}, self.length())

    def test_gemma2(self):
        """Capped scores, in layers with a cache of all positions, and with one of a window."""
        same = {**self.shape(), "query_pre_attn_scalar": 11, "sliding_window": self.random.randint(2, 12),
                "attn_logit_softcapping": self.random.choice([0.5, 3.0, 50.0])}
        theirs = Gemma2ForCausalLM(Gemma2Config(**same, rope_parameters=dict(ROPE), initializer_range=0.3, pad_token_id=None,
                                                max_position_embeddings=90))
        kinds = {f"layer_types.{i}": f"LAYER_{kind.upper()}" for i, kind in enumerate(theirs.config.layer_types)}
        writer = self.same_text("gemma2.c", theirs, {**same, **kinds}, self.length())
        self.assertNotIn("recompute", subprocess.run([GENERATOR, "plan", "job.yaml", "--program", "generate"], cwd=writer.folder,
                                                     capture_output=True, text=True, check=True).stdout)

    def test_qwen2(self):
        same = {key: value for key, value in self.shape().items() if key != "head_dim"}
        same["hidden_size"] = same["num_attention_heads"] * 2 * self.random.randint(2, 8)
        theirs = Qwen2ForCausalLM(Qwen2Config(**same, rope_parameters=dict(ROPE), initializer_range=0.3, max_position_embeddings=90))
        self.same_text("qwen2.c", theirs, {**same, "rope.theta": 10000}, self.length())

    def test_phi(self):
        same = {key: value for key, value in self.shape().items() if key not in ("head_dim", "rms_norm_eps")}
        same["hidden_size"] = same["num_attention_heads"] * 4 * self.random.randint(1, 4)
        theirs = PhiForCausalLM(PhiConfig(**same, rope_parameters={**ROPE, "partial_rotary_factor": 0.5}, initializer_range=0.3,
                                          max_position_embeddings=90))
        self.same_text("phi.c", theirs, same, self.length())

    def test_phi3(self):
        same = {key: value for key, value in self.shape().items() if key != "head_dim"}
        same["hidden_size"] = same["num_attention_heads"] * 4 * self.random.randint(1, 4)
        theirs = Phi3ForCausalLM(Phi3Config(**same, rope_parameters={**ROPE, "partial_rotary_factor": 1.0}, initializer_range=0.3,
                                            max_position_embeddings=90, pad_token_id=None, eos_token_id=None))
        self.same_text("phi3.c", theirs, same, self.length())

    def test_gpt_neox(self):
        heads, length = self.random.randint(1, 4), self.length()
        same = {"num_hidden_layers": 2, "num_attention_heads": heads, "hidden_size": heads * 8 * self.random.randint(1, 3),
                "intermediate_size": self.random.randint(5, 60), "vocab_size": 260,
                "use_parallel_residual": self.random.choice([True, False])}
        theirs = GPTNeoXForCausalLM(GPTNeoXConfig(**same, rope_parameters={**ROPE, "partial_rotary_factor": 0.25},
                                                  initializer_range=0.3, max_position_embeddings=length))
        self.same_text("gpt_neox.c", theirs, same, length)

    def test_mixtral(self):
        experts, length = self.random.randint(2, 5), self.length()
        same = {**self.shape(), "num_local_experts": experts, "num_experts_per_tok": self.random.randint(1, experts)}
        theirs = MixtralForCausalLM(MixtralConfig(**same, rope_parameters=ROPE, initializer_range=0.3,
                                                  max_position_embeddings=length, sliding_window=None))
        theirs.config._experts_implementation = "eager"  # the others want rows of 16 bytes
        self.same_text("mixtral.c", theirs, same, length)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
