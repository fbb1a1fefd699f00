"""What ranks exchange in addition to whole gradients after a step: CUDA programs that send them as factors of matrices, after each
micro-batch, or means of weights every few steps, over the stand-ins against the same ranks on processors, which
tests/reference compares with PyTorch's hooks and Accelerate's LocalSGD."""

import sys
import unittest

from host import objects
from test_training import MODELS, ROWS, Comparison

from rotation import ALL  # tests/program; isort: skip

TRAINING = {"steps": 6, "seed": 3, "eval_interval": 6, "eval_iters": 2}
ACCUMULATED = {"accumulation": {"num_steps": 2}}


def power_sgd(hook="power_sgd", wrapper="no", **options):
    return {"parallelism": {"ddp": {"comm_hook": hook, "comm_wrapper": wrapper, "comm_state_option": options}}}


# The suite runs the first ones; --all: all (ninja soak).
CASES = {
    "factors": {**power_sgd(start_powerSGD_iter=2, matrix_approximation_rank=2), **ACCUMULATED,
                "checkpoint": {"every": 3}},
    "local": {"parallelism": {"local_sgd_steps": 3}},
    "each_batch": {"parallelism": {"ddp": {"bucket_cap_mb": 0.01, "comm_hook": "bf16"}},
                   "accumulation": {"num_steps": 2, "sync_each_batch": True}},
    # As many columns as the gradients of so many samples have directions.
    "factors_drawn": {**power_sgd(start_powerSGD_iter=0, matrix_approximation_rank=9, warm_start=False,
                                  use_error_feedback=False, min_compression_rate=1), "data": {**ROWS, "batch_size": 16}},
    "factors_in_bf16": power_sgd("power_sgd", "bf16", start_powerSGD_iter=2),
    "squares": {**power_sgd("batched_power_sgd", start_powerSGD_iter=2), **ACCUMULATED},
    "squares_in_fp16": power_sgd("batched_power_sgd", "fp16", start_powerSGD_iter=0, warm_start=False,
                                 use_error_feedback=False),
    "local_in_bf16": {"parallelism": {"local_sgd_steps": 2}, "precision": {"mixed_precision": "bf16"}},
    "each_batch_in_float32": {"parallelism": {"ddp": {"bucket_cap_mb": 0.01}},
                              "accumulation": {"num_steps": 2, "sync_each_batch": True}},
}
SUITE = ["factors", "local", "each_batch"]


def job(groups):
    return {"model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 2, "width": 20, "n_classes": 10}},
            "data": {**ROWS, "batch_size": 4}, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9, "clip_grad_norm": 1.0},
            "training": TRAINING, "devices": {"per_node": 2}, "tracking": {"every": 1}, **groups}


class Exchange(Comparison):
    parts = None


def add(name):
    def test(self):
        rough = CASES[name].get("parallelism", {}).get("ddp", {})
        rounds = rough.get("comm_hook") == "bf16" or rough.get("comm_wrapper", "no") != "no"
        self.compare(name, job(CASES[name]), watched=True, tolerance=2e-2 if rounds else None)

    setattr(Exchange, f"test_{name}", test)


if __name__ == "__main__":
    Exchange.parts = objects()
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in CASES:
        if name in (named or SUITE) or ALL:
            add(name)
    unittest.main(argv=sys.argv[:1], defaultTest=[f"Exchange.test_{name}" for name in named] or None)
