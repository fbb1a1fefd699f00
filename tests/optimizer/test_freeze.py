"""Frozen parameters: the rest is trained as PyTorch trains it with requires_grad off for them, and they cost neither
gradients nor states nor a backward."""

import unittest

import torch
from parts import accel_gen, generate, make_job, plan
from rules import first_match, keys_of, peer_of
from test_against_torch import without_keys

import numpy as np
from harness import FAST, relative  # tests/program
from test_parity import prepare, tensors
from torch_gpt import Gpt

STEPS = 20
CONFIG = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}
torch.set_num_threads(1)


def is_frozen(patterns, name):
    return any(first_match([{"match": pattern}], name) for pattern in patterns)


class Parity(unittest.TestCase):
    def check(self, patterns, name="adamw", **more):
        keys = keys_of(name, **{"lr": 1e-3, **more})
        trainer, weights, batches = prepare("gpt2", keys, STEPS, FAST, model={"freeze": patterns})
        metrics = trainer.run()
        peer = Gpt(weights, CONFIG, "gpt2")
        trained = {key: w for key, w in peer.w.items() if not is_frozen(patterns, key)}
        for key, w in peer.w.items():
            w.requires_grad_(key in trained)
        self.assertLess(len(trained), len(peer.w))
        optimizer = peer_of(name, list(trained.values()))
        for group in optimizer.param_groups:
            group["lr"] = 1e-3
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            loss = peer.loss(*tensors(batches(step)))
            loss.backward()
            if "clip_grad_norm" in more:
                torch.nn.utils.clip_grad_norm_(trained.values(), more["clip_grad_norm"])
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
        after = trainer.weights()
        for key in weights:
            if key not in trained:
                np.testing.assert_array_equal(after[key], weights[key], key)
        whole = [np.concatenate([without_keys(key, w[key]) for key in trained])
                 for w in (after, {key: w.detach().numpy() for key, w in trained.items()})]
        self.assertLess(relative(*whole), 1e-4, "the weights")

    def test_lower_layers(self):
        self.check(["wte.weight", "wpe.weight", "h.0.*"])

    def test_embeddings_alone(self):
        self.check(["re:^w[tp]e"], clip_grad_norm=0.5)

    def test_middle_layer(self):
        self.check(["h.1.*"], "sgd_momentum")

    def test_parts_of_all_layers(self):
        self.check(["*.attn.*", "*.ln_?.*"], "adam_decay")

    def test_all_but_the_head(self):
        self.check(["re:^(h|wpe)"], "lion", clip_grad_norm=1.0)


class Cost(unittest.TestCase):
    def job(self, patterns, **optimizer):
        job = make_job(optimizer=optimizer)
        job["model"]["config"].update(width=67, n_layer=3)
        job["model"]["freeze"] = patterns
        return job

    def test_memory(self):
        """What is left: output.weight [2][67] and output.bias [2], in whole lines of 64 bytes."""
        lines = lambda count: (4 * count + 63) // 64 * 64  # noqa: E731
        left = lines(2 * 67) + lines(2)
        for name, states in (("adamw", 2), ("sgd", 0), ("lamb", 2)):
            figures = plan(self.job(["hidden.*"], name=name))["arena_bytes"]
            self.assertEqual(figures["gradients"], left)
            self.assertEqual(figures["optimizer"], states * left)

    def test_no_backward(self):
        text = generate(self.job(["hidden.*"]))
        self.assertNotIn("layer_backward", text)
        self.assertNotIn("hidden_weight_gradient", text)
        with_all = plan(self.job([]))["flops_per_step"]
        self.assertLess(plan(self.job(["hidden.*"]))["flops_per_step"], 0.6 * with_all)

    def test_plan_says_so(self):
        text = accel_gen(self.job(["output.*"]), before=["plan"])
        self.assertIn("(136 frozen)", text)


class Refused(unittest.TestCase):
    def check(self, patterns, *words, **groups):
        with self.assertRaises(AssertionError) as raised:
            job = make_job(**groups)
            job["model"]["freeze"] = patterns
            generate(job)
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_nothing_matches(self):
        self.check(["*.wieght"], "'*.wieght' matches the name of no parameter", "the nearest one is 'output.weight'",
                   "job.yaml:1:")

    def test_everything_is_frozen(self):
        self.check(["output.*", "hidden*"], "all parameters are frozen", "job.yaml:1:")

    def test_no_expression(self):
        self.check(["re:h("], "'h(' is not a regular expression")

    def test_frozen_group(self):
        self.check(["*bias"], "all parameters that '*.bias' matches are frozen",
                   optimizer={"param_groups": [{"match": "*.bias", "lr": 0.1}]})


if __name__ == "__main__":
    unittest.main()
