"""lomo and adalomo, whose steps are parts of the backward, against PyTorch's SGD and the published arithmetic in float64;
what they save is what the plan says and what a process does not take. Half of the tests of numbers a run; CASES=all runs all."""

import fnmatch
import json
import math
import unittest

import torch
from parts import generate, make_job, plan
from rules import AdaLomo

import numpy as np
from harness import FAST, load_file, relative  # tests/program
from rotation import rotating
from test_figures import MIB, make, peak
from test_parity import prepare, tensors
from torch_gpt import Gpt

STEPS = 50
RATE = 0.1
CONFIG = {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}
torch.set_num_threads(1)


def lomo(**more):
    return {"name": "lomo", "lr": RATE, **more}


def adalomo(**more):
    """With an eps that the rounding of gradients that should be 0, as those of the keys' biases, does not count next to them."""
    return {"name": "adalomo", "lr": 1e-2, "eps": 1e-10, **more}


def peer_of(keys, weights):
    """PyTorch's optimizer over named weights, with groups as the job's first pattern makes them."""
    own = {key: keys[key] for key in keys if key not in ("name", "clip_grad_value", "clip_grad_norm", "param_groups")}
    groups = {}
    for name, weight in weights.items():
        pattern = next((g for g in keys.get("param_groups", []) if fnmatch.fnmatchcase(name, g["match"])), {})
        groups.setdefault(json.dumps(pattern), []).append(weight)
    listed = []
    for pattern, members in groups.items():
        numbers = json.loads(pattern)
        scale = numbers.pop("lr_scale", 1)
        numbers.pop("match", None)
        listed.append({"params": members, **own, **numbers, "lr": keys["lr"] * scale})
    return (AdaLomo if keys["name"] == "adalomo" else torch.optim.SGD)(listed, lr=keys["lr"])


class Parity(unittest.TestCase):
    def check(self, keys, kind="gpt2", frozen=(), **more):
        trainer, weights, batches = prepare(kind, keys, STEPS, FAST, **more)
        metrics = trainer.run()
        peer = Gpt(weights, CONFIG, kind, torch.float64)
        trained = {key: w for key, w in peer.w.items() if key not in frozen}
        for key in frozen:
            peer.w[key].requires_grad_(False)
        optimizer = peer_of(keys, trained)
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            loss = peer.loss(*tensors(batches(step)))
            loss.backward()
            norm = math.sqrt(sum((w.grad**2).sum().item() for w in trained.values()))
            self.assertLess(abs(row["grad_norm"] / norm - 1), 2e-5, f"norm of step {step + 1}")
            if "clip_grad_norm" in keys:
                torch.nn.utils.clip_grad_norm_(trained.values(), keys["clip_grad_norm"])
            if "clip_grad_value" in keys:
                torch.nn.utils.clip_grad_value_(trained.values(), keys["clip_grad_value"])
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-6, f"loss of step {step + 1}")
        after = trainer.weights()
        for key, weight in peer.w.items():
            moved = relative(after[key], weight.detach().numpy())
            self.assertLess(moved, 5e-6, f"{key} after {STEPS} steps")
            self.assertEqual(np.array_equal(after[key], weights[key]), key in frozen, key)

    def test_gpt2(self):
        """Its embedding is tied to its last layer, so that its gradient is stored."""
        for keys in (lomo(), adalomo()):
            with self.subTest(keys["name"]):
                self.check(keys)

    def test_nanogpt_clipped(self):
        self.check(lomo(clip_grad_value=1e-3), "nanogpt")

    def test_groups(self):
        """A backward serves all layers, and finds each one's numbers."""
        groups = [{"match": "*bias", "weight_decay": 0.0, "eps": 1e-9}, {"match": "h.1.*", "lr_scale": 0.25}]
        self.check(adalomo(weight_decay=0.1, clip_grad_value=1e-2, beta2_decay=-0.7, least_scale=0.1, clip_threshold=1.01,
                           param_groups=groups))

    def test_checkpointing(self):
        self.check(lomo(), memory={"activation_checkpointing": "all"})

    def test_frozen(self):
        names = [f"h.{i}.ln_1.{kind}" for i in range(3) for kind in ("weight", "bias")]
        self.check(adalomo(), frozen=names, model={"freeze": ["*.ln_1.*"]})

    def test_clipped_by_norm(self):
        """Which a first backward finds, that moves nothing."""
        for keys in (lomo(clip_grad_norm=0.5), adalomo(clip_grad_norm=0.5)):
            with self.subTest(keys["name"]):
                self.check(keys, "nanogpt")

    def test_equals_sgd(self):
        """Bit by bit, as far as all gradients are the same, with all that is kept in addition to the weights."""
        ema = {"ema": {"decay": 0.9}}
        cases = {
            "plain": {},
            "bf16, averages": {"precision": {"mixed_precision": "bf16"}, "training": ema},
            "fp16, scaled": {"precision": {"mixed_precision": "fp16", "grad_scaler": {"init_scale": 2.0**40}}},
            "dropout, tokens, skipping": {"model": {"config": {**CONFIG, "dropout": 0.1}}, "training": {"on_nonfinite": "skip"},
                                          "accumulation": {"normalize": "tokens"}},
        }
        for case, more in cases.items():
            with self.subTest(case):
                (plain, rows), (moved, others) = [self.after(name, more) for name in ("sgd", "lomo")]
                self.assertEqual([row["loss"] for row in rows], [row["loss"] for row in others])
                self.assertEqual([row.get("skipped") for row in rows], [row.get("skipped") for row in others])
                self.assertEqual(case == "fp16, scaled", any(row.get("skipped") for row in rows), "skips")
                for key, weight in plain.items():
                    np.testing.assert_array_equal(weight, moved[key], key)

    def after(self, name, more):
        trainer, _, _ = prepare("gpt2", {"name": name, "lr": RATE, "weight_decay": 0.0}, 8, FAST, **more)
        rows = trainer.run()
        averages = load_file(trainer.folder / "run" / "ema.safetensors") if "ema" in more.get("training", {}) else {}
        return {**trainer.weights(), **{f"average of {k}": w for k, w in averages.items()}}, rows


class Memory(unittest.TestCase):
    def test_nothing_is_left(self):
        job = make_job(optimizer=lomo())
        job["model"]["config"].update(width=67, n_layer=3)
        self.assertEqual(plan(job)["arena_bytes"]["gradients"], 0)
        self.assertNotIn("all_gradients", generate(job))

    def test_what_is_shared_is_left(self):
        trainer, weights, _ = prepare("gpt2", lomo(), 1, FAST)
        self.assertEqual(trainer.plan()["arena_bytes"]["gradients"], weights["wte.weight"].nbytes)

    def test_peak(self):
        """Peak = plan + the constant of a process, as tests/program/test_figures.py has it; less than sgd's by about the
        gradients of all layers, but for those in whose memory sgd keeps activations."""
        one = make(1, 64, 8, 2, optimizer=lomo())
        constant = peak(one) - one.plan()["arena_bytes"]["total"]
        found, figures, aliased = {}, {}, {}
        for name in ("sgd", "lomo", "adalomo"):
            trainer = make(24, 64, 8, 2, optimizer={"name": name, "lr": 1e-3})
            figures[name] = trainer.plan()["arena_bytes"]
            aliased[name] = trainer.plan().get("aliased_bytes", 0)
            found[name] = peak(trainer) - constant
            # The names by which 24 layers' parameters are saved, and adalomo's states of them, are no part of the arena.
            names = (3e3 if name == "adalomo" else 1e3) * 12 * 24
            most = max(0.01 * figures[name]["total"], MIB / 2) + names
            self.assertLess(abs(found[name] - figures[name]["total"]), most, name)
        gradients, states = figures["sgd"]["gradients"], figures["adalomo"]["optimizer"]
        for name in ("lomo", "adalomo"):
            print(f"{gradients / MIB:.2f} MiB of gradients, {(found['sgd'] - found[name]) / MIB:.2f} MiB less taken by {name}")
            self.assertGreater(found["sgd"] + aliased["sgd"] - found[name], 0.9 * gradients)
        print(f"{states / MIB:.2f} MiB of states")
        self.assertLess(states, 0.05 * gradients)


load_tests = rotating(2, always=("Memory",))


if __name__ == "__main__":
    unittest.main()
