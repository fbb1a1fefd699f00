"""Every optimizer for 50 steps beside PyTorch's in float32, in two ways.

The rule alone: the update function of the emitted program and PyTorch's optimizer get the same gradients. Sums of
rounded numbers differ by roundings, so a weight may differ by one part in a million of itself or of the way that it has
gone (a step can be as small beside the weight as its last digits); a centered variance is a difference of averages and
loses digits, and PyTorch rounds NAdam's product of momenta in every step, so these get more room.

The whole trainer: a small GPT-2 from the same weights on the same batches. Here gradients come from two programs and
differ in their last digits, which rules that divide by the gradient's own size blow up where it is near zero, so
losses are compared, and weights by the norm of their distance. The bias of the attention's keys, which no softmax can
see, has a gradient of rounding errors alone, and is left out."""

import ctypes
import re
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from parts import WARNINGS, generate, make_job, plan
from rules import LR, RULES, first_match, keys_of, peer_of

from harness import relative  # tests/program
from test_parity import prepare, tensors
from torch_gpt import Gpt

STEPS = 50
torch.set_num_threads(1)
ROOM = {"centered": 30, "nadam": 3}
# Rates at which a model of this size learns by the rule and does not diverge.
RATES = {"sgd": 0.1, "lion": 1e-4, "adagrad": 5e-3, "adamax": 2e-3, "rmsprop": 1e-4}


def without_keys(name, value):
    """A parameter's elements, of the attention's bias those of queries and values."""
    return np.delete(value, slice(len(value) // 3, len(value) * 2 // 3)) if "attn.bias" in name else value.ravel()


class Rule:
    """The update function of a job's program over arrays of its own."""

    def __init__(self, job):
        text = generate(job)
        spans = re.findall(r"^    {(\d+), (\d+), ([\w.+-]+)(?:, ([\w.+-]+))?},$", text, re.MULTILINE)
        self.spans = [(int(first), int(end), float(scale), float(decay or 0)) for first, end, scale, decay in spans]
        elements = int(re.search(r"float all_weights\[(\d+)\]", text).group(1))
        states = re.findall(r"^  float (moment_\d)\[", text, re.MULTILINE)
        first = re.search(r"^/\* The (norm of the whole gradient|size of the gradient's largest)", text, re.MULTILINE)
        code = text[first.start():text.index("/* What the newest step left behind")]
        arrays = ", ".join(f"{name}[{elements}]" for name in ["all_weights", "all_gradients", *states])
        source = "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
        source += f"static struct {{\n  float {arrays};\n}} arrays, *const arena = &arrays;\n{code}\n"
        source += "float *weights(void);\nfloat *weights(void) { return arena->all_weights; }\n"
        source += "float *gradients(void);\nfloat *gradients(void) { return arena->all_gradients; }\n"
        source += "double take_step(int64_t at, double lr);\n"
        factor = ", clip_factor(norm)" if "clip_factor" in code else ""
        source += "double take_step(int64_t at, double lr) {\n  const double norm = gradient_norm();\n"
        source += f"  update(at, lr{factor});\n  return norm;\n}}\n"
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            library = f"{folder}/rule.so"
            subprocess.run(["cc", *WARNINGS, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-",
                            "-x", "none", "-o", library, "-lm"], input=source, text=True, check=True)
            self.code = ctypes.CDLL(library)
        self.code.take_step.restype = ctypes.c_double
        for name in ("weights", "gradients"):
            getattr(self.code, name).restype = ctypes.POINTER(ctypes.c_float)
            setattr(self, name, np.ctypeslib.as_array(getattr(self.code, name)(), (elements,)))

    def step(self, at, lr):
        return self.code.take_step(ctypes.c_int64(at), ctypes.c_double(lr))


class RuleAlone(unittest.TestCase):
    def check(self, name, clip=None, **more):
        """clip: what PyTorch does to the parameter's gradient; its result, if any, is the norm that we report."""
        rule = Rule(make_job(optimizer=keys_of(name, **more)))
        rng = np.random.default_rng(5)
        n = len(rule.weights)
        start = rng.normal(size=n).astype(np.float32)
        rule.weights[:] = start
        peer = torch.nn.Parameter(torch.tensor(start))
        optimizer = peer_of(name, [peer])
        scales = 10.0 ** rng.uniform(-4, 1, n)
        way = np.zeros(n)
        for at in range(STEPS):
            gradient = (rng.normal(size=n) * scales).astype(np.float32)
            if at == 7:
                gradient[::3] = 0
            rate = LR * (1 + at % 5) / 5
            optimizer.param_groups[0]["lr"] = rate
            rule.gradients[:] = gradient
            peer.grad = torch.tensor(gradient)
            wanted = clip(peer) if clip else None
            before = peer.detach().numpy().copy()
            optimizer.step()
            way += np.abs(peer.detach().numpy() - before)
            norm = rule.step(at, rate)
            if wanted is not None:
                self.assertLess(abs(norm / wanted.item() - 1), 1e-6, f"norm of step {at}")
            room = 1e-6 * np.maximum(np.abs(start), way) * next((f for key, f in ROOM.items() if key in name), 1)
            excess = np.abs(rule.weights - peer.detach().numpy()) / room
            self.assertLess(excess.max(), 1, f"step {at}: {rule.weights[excess.argmax()]} at {excess.argmax()}")
            np.testing.assert_array_equal(rule.gradients, gradient)

    def test_every_rule(self):
        for name in RULES:
            with self.subTest(name):
                self.check(name)

    def test_groups(self):
        """Spans of the weights beside groups of PyTorch's."""
        groups = [{"match": "hidden.*weight", "weight_decay": 0.3}, {"match": "*bias", "lr": LR / 4}]
        for name in RULES:
            with self.subTest(name):
                rule = Rule(make_job(optimizer=keys_of(name, clip_grad_norm=2.0, param_groups=groups)))
                self.assertGreater(len(rule.spans), 1)
                rng = np.random.default_rng(5)
                rule.weights[:] = rng.normal(size=len(rule.weights))
                start = rule.weights.copy()
                peers = [torch.nn.Parameter(torch.tensor(start[first:end])) for first, end, *_ in rule.spans]
                optimizer = peer_of(name, [{"params": [peer], "weight_decay": decay, "lr": LR * scale}
                                           for peer, (_, _, scale, decay) in zip(peers, rule.spans)])
                for at in range(STEPS):
                    rule.gradients[:] = rng.normal(size=len(start))
                    for peer, (first, end, *_) in zip(peers, rule.spans):
                        peer.grad = torch.tensor(rule.gradients[first:end])
                    torch.nn.utils.clip_grad_norm_(peers, 2.0)
                    optimizer.step()
                    rule.step(at, LR)
                wanted = np.concatenate([peer.detach().numpy() for peer in peers])
                self.assertEqual(len(wanted), len(start))
                np.testing.assert_allclose(rule.weights, wanted, rtol=1e-4 if "centered" in name else 1e-5, atol=1e-5)

    def test_clip_by_norm(self):
        self.check("adamw_decay", lambda p: torch.nn.utils.clip_grad_norm_([p], 0.7), clip_grad_norm=0.7)

    def test_clip_by_largest(self):
        for name in ("sgd_momentum", "rmsprop"):
            with self.subTest(name):
                self.check(name, lambda p: torch.nn.utils.clip_grad_norm_([p], 0.3, norm_type=float("inf")),
                           clip_grad_norm=0.3, norm_type="inf")

    def test_clip_by_value(self):
        for name in ("sgd", "sgd_decay", "adam", "lion"):
            with self.subTest(name):
                self.check(name, lambda p: torch.nn.utils.clip_grad_value_([p], 0.2), clip_grad_value=0.2)

    def test_largest_of_a_nan(self):
        rule = Rule(make_job(optimizer=keys_of("sgd", clip_grad_norm=1.0, norm_type="inf")))
        rule.gradients[:] = 1
        self.assertEqual(rule.step(0, 0.1), 1)
        rule.gradients[3] = float("nan")
        self.assertTrue(np.isnan(rule.step(1, 0.1)))
        rule.gradients[3] = -np.inf
        self.assertEqual(rule.step(2, 0.1), np.inf)


class Memory(unittest.TestCase):
    """The plan counts the states; that the arena has them is asserted in each program when it is compiled."""

    STATES = {"sgd": 0, "sgd_momentum": 1, "sgd_nesterov": 1, "adam": 2, "adamw": 2, "adamax": 2, "nadam": 2, "radam": 2,
              "adagrad": 1, "rmsprop": 1, "rmsprop_momentum": 2, "rmsprop_centered": 2, "rmsprop_centered_momentum": 3,
              "lion": 1}

    def test_states(self):
        for name, states in self.STATES.items():
            with self.subTest(name):
                job = make_job(optimizer=keys_of(name))
                text = generate(job)
                found = re.findall(r"^  float moment_\d\[(\d+)\];$", text, re.MULTILINE)
                size = int(re.search(r"float all_weights\[(\d+)\];", text).group(1))
                self.assertEqual(found, [str(size)] * states)
                self.assertEqual(plan(job)["arena_bytes"]["optimizer"], 4 * size * states)


class WholeTrainer(unittest.TestCase):
    def check(self, name, **more):
        rate = RATES.get(name.split("_")[0], 1e-3)
        trainer, weights, batches = prepare("gpt2", keys_of(name, **{"lr": rate, **more}), STEPS)
        metrics = trainer.run()
        peer = Gpt(weights, {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}, "gpt2")
        groups = [first_match(more.get("param_groups", []), key) for key in peer.w]
        default = keys_of(name)["weight_decay"]
        optimizer = peer_of(name, [{"params": [w], "lr": group.get("lr", rate * group.get("lr_scale", 1)),
                                    "weight_decay": group.get("weight_decay", default)}
                                   for group, w in zip(groups, peer.w.values())])
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            loss = peer.loss(*tensors(batches(step)))
            loss.backward()
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])
        after = trainer.weights()
        whole = [np.concatenate([without_keys(key, w[key]) for key in weights])
                 for w in (after, {key: w.detach().numpy() for key, w in peer.w.items()}, weights)]
        self.assertLess(relative(whole[0], whole[1]), 1e-4, "the weights")
        self.assertLess(relative(whole[0] - whole[2], whole[1] - whole[2]), 2e-3, "the way that they have gone")

    def test_trainers(self):
        for name in ("sgd_nesterov", "adam_decay", "adamw", "adamax", "nadam", "radam", "adagrad", "rmsprop_momentum",
                     "lion_decay"):
            with self.subTest(name):
                self.check(name)

    def test_groups(self):
        """No decay of biases and norms, frozen places, a rate for the last norm."""
        groups = [{"match": "ln_f.*", "lr": 4e-3, "weight_decay": 0.5}, {"match": "*.ln_?.*", "weight_decay": 0},
                  {"match": "wpe.weight", "lr_scale": 0}, {"match": "*.bias", "weight_decay": 0}]
        for name in ("sgd_momentum", "adamw_decay", "nadam_decay"):
            with self.subTest(name):
                self.check(name, param_groups=groups)


class Refused(unittest.TestCase):
    def check(self, groups, *words):
        with self.assertRaises(AssertionError) as raised:
            generate(make_job(optimizer={"param_groups": groups}))
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_empty_group(self):
        self.check([{"match": "*.bias"}, {"match": "*.wieght"}], "'*.wieght' matches the name of no parameter",
                   "the nearest one is 'output.weight'", "job.yaml:1:")

    def test_taken_group(self):
        self.check([{"match": "*"}, {"match": "output.bias"}],
                   "all parameters that 'output.bias' matches belong to groups before it")


if __name__ == "__main__":
    unittest.main()
