"""Every rule that has kernels of its own against the processor's, which tests/optimizer compares with PyTorch's: a small
model's weights, losses and norms over steps with groups, clipping and decay; its matmuls end in relu. And
the scaler of fp16 that finds overflows, of which the device decides and the host reads later."""

import re
import unittest

import host
from compilers import formatted  # tests/program
from test_training import ROWS, Comparison, case

GROUPS = [{"match": "*bias", "weight_decay": 0, "lr_scale": 0.5}]
CLIPPED = {"clip_grad_norm": 0.5, "param_groups": GROUPS}
# By name: the keys, and what the steps change otherwise.
RULES = {
    "nadam": ({"lr": 1e-3, "state_dtype": "8bit", **CLIPPED}, {"width": 67}),
    "schedule_free_adamw": ({"lr": 1e-3, "weight_decay": 0.1}, {"accumulation": {"num_steps": 2}}),
    "lamb": ({"lr": 1e-2, "weight_decay": 0.1, **CLIPPED}, {}),
    "adafactor": ({"lr": 1e-2, "weight_decay": 0.1, "param_groups": GROUPS}, {"precision": {"mixed_precision": "bf16"}}),
    "adamw": ({"lr": 1e-3, "state_dtype": "bf16_stochastic", **CLIPPED}, {"width": 128}),
    "sgd": ({"lr": 1e-2}, {"precision": {"mixed_precision": "fp16", "grad_scaler": {"init_scale": 2.0**27, "growth_interval": 2, "hysteresis": 2, "min_loss_scale": 1}},
                           "training": {"steps": 16, "seed": 3}, "width": 128}),
    "rmsprop": ({"lr": 1e-3, "momentum": 0.9, "centered": True, "state_dtype": "bf16"}, {}),
    "lomo": ({"lr": 1e-2, "param_groups": GROUPS}, {}),
    "adalomo": ({"lr": 1e-2, "weight_decay": 0.1, **CLIPPED}, {"precision": {"mixed_precision": "fp16", "grad_scaler": {"init_scale": 2.0**27, "growth_interval": 2}}}),
    "muon": ({"lr": 1e-2, "clip_grad_value": 0.01, "param_groups": GROUPS}, {}),
}
EVALUATED = {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": 2}


class Rules(Comparison):
    parts = None


def job_of(name):
    keys, groups = RULES[name]
    averaged = {} if name == "schedule_free_adamw" else {"ema": {"decay": 0.9}}  # it is an average by itself
    groups, width = dict(groups), groups.get("width", 9)
    groups.pop("width", None)
    return case("mlp_table", {"n_layer": 1, "width": width, "n_classes": 10}, ROWS,
                **{"optimizer": {"name": name, **keys}, "training": {**EVALUATED, **averaged}, **groups})


def add(name):
    def test(self):
        rows, text, kernels = self.compare(name, job_of(name))
        for what, why in formatted(kernels):
            self.assertIsNone(why, what)
        self.assertEqual(set(re.findall(r"\b[A-Z_]*RELU\b", text)), {"BIAS_RELU"} if RULES[name][1].get("width") == 128 else set())
        scales = [row["loss_scale"] for row in rows if "loss_scale" in row]
        if name == "sgd":  # it falls over overflows, and grows between them
            self.assertLess(min(scales), scales[0] / 4)
            self.assertTrue(any(later > earlier for earlier, later in zip(scales, scales[1:])), scales)

    setattr(Rules, f"test_{name}", test)


if __name__ == "__main__":
    Rules.parts = host.objects()
    for name in RULES:
        add(name)
    unittest.main(defaultTest="Rules")
