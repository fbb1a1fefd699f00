"""Every rule on the device beside the processor's, which tests/optimizer holds against PyTorch's: a small model's weights,
losses and norms over steps with groups, clipping and decay. What each test compiles is small, and not optimised."""

import unittest

import host
from test_training import MODELS, ROWS, Comparison, case

GROUPS = [{"match": "*bias", "weight_decay": 0, "lr_scale": 0.5}]
CLIPPED = {"clip_grad_norm": 0.5, "param_groups": GROUPS}
# By name: the keys, and what the steps change otherwise.
RULES = {
    "nadam": ({"lr": 1e-3, **CLIPPED}, {}),
    "schedule_free_adamw": ({"lr": 1e-3, "weight_decay": 0.1}, {"accumulation": {"num_steps": 2}}),
    "lamb": ({"lr": 1e-2, "weight_decay": 0.1, **CLIPPED}, {}),
    "adafactor": ({"lr": 1e-2, "weight_decay": 0.1, "param_groups": GROUPS}, {"precision": {"mixed_precision": "bf16"}}),
    "adamw": ({"lr": 1e-3, "state_dtype": "bf16_stochastic", **CLIPPED}, {}),
    "rmsprop": ({"lr": 1e-3, "momentum": 0.9, "centered": True, "state_dtype": "bf16"}, {}),
    "muon": ({"lr": 1e-2, "clip_grad_value": 0.01, "param_groups": GROUPS}, {}),
}
EVALUATED = {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": 2}


class Rules(Comparison):
    parts = None


def add(name, keys, groups):
    averaged = {} if name == "schedule_free_adamw" else {"ema": {"decay": 0.9}}  # it is an average by itself
    job = case("mlp_table", {"n_layer": 1, "width": 9, "n_classes": 10}, ROWS, optimizer={"name": name, **keys},
               training={**EVALUATED, **averaged}, **groups)
    setattr(Rules, f"test_{name}", lambda self: self.compare(name, job))


if __name__ == "__main__":
    Rules.parts = host.objects()
    for name, (keys, groups) in RULES.items():
        add(name, keys, groups)
    unittest.main(defaultTest="Rules")
