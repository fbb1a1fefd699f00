"""Programs of every optimizer and schedule: no warning under gcc and clang, and as clang-format would have written
them. Half of them a run, each by one compiler; --all: all. TAP."""

import sys

from parts import MODELS, generate, make_job
from rules import RULES, keys_of

from compilers import compiles, formatted, report  # tests/program; isort: skip
from rotation import ALL, SEED, in_turn  # tests/program; isort: skip

WARMUPS = {"none": {}, "warm": {"warmup_steps": 1234567}, "fraction": {"warmup_fraction": 0.123}}
FORMS = {
    "linear": {},
    "cosine": {"min_lr": 1.23456789e-5, "decay_steps": 123456789012},
    "cosine_with_restarts": {"cycles": 12345, "decay_steps": 123456789012},
    "polynomial": {"power": 1.23456789, "min_lr": 1.23456789e-5, "decay_steps": 123456789012},
    "inverse_sqrt": {"timescale": 123456789012},
    "exponential": {"gamma": 0.123456789},
    "step": {"gamma": 0.123456789, "step_size": 123456789012},
    "wsd": {"decay_type": "sqrt", "stable_steps": 123456789012, "min_lr": 1.23456789e-5, "decay_steps": 999999999999},
}
JOBS = {
    f"{name}_{warmup}": {"schedule": {"name": name, **form, **WARMUPS[warmup]}}
    for name, form in FORMS.items()
    for warmup in WARMUPS
}
JOBS |= {
    f"one_cycle_{start}_{anneal}": {"schedule": {"name": "one_cycle", "anneal": anneal, "pct_start": start, "div_factor": 7}}
    for start in (0, 0.1, 0.3, 1)
    for anneal in ("cosine", "linear")
}
JOBS |= {f"optimizer_{name}": {"optimizer": keys_of(name)} for name in RULES}
JOBS |= {f"optimizer_{name}_norm": {"optimizer": keys_of(name, clip_grad_norm=1.0)} for name in RULES if "_" in name}
GROUPS = [{"match": "*bias", "lr_scale": 0.123456789}, {"match": "hidden.*", "weight_decay": 1.23456789e-5}]
JOBS |= {
    f"groups_{name}": {"optimizer": keys_of(name, param_groups=GROUPS, clip_grad_norm=i % 2)}
    for i, name in enumerate(RULES)
}
JOBS |= {
    f"growth_{name}": {"optimizer": {**keys_of(name), "weight_decay": 1.23456789, "param_groups": GROUPS[i % 2:]},
                       "schedule": {"wd_incr_style": ("linear", "cosine")[i % 2], "start_weight_decay": 0.123456789 * (i % 3)}}
    for i, name in enumerate(["sgd", "adamw", "lamb", "adafactor", "muon", "sgd_momentum"])
}
JOBS |= {
    "many_groups": {
        "model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 9, "width": 3, "n_classes": 2}},
        "optimizer": {"param_groups": GROUPS[:1]},
    },
    "one_group": {"optimizer": {"param_groups": [{"match": "*", "lr_scale": 2}]}},
    "groups_without_decay": {"optimizer": {"weight_decay": 0, "param_groups": [{"match": "*bias", "lr": 2}]}},
    "groups_clip_by_value": {"optimizer": {"name": "sgd", "clip_grad_value": 1, "param_groups": GROUPS}},
}
JOBS |= {
    "clip_by_sum": {"optimizer": {"clip_grad_norm": 0.12345678, "norm_type": 1}},
    "clip_by_largest": {"optimizer": {"clip_grad_norm": 0.12345678, "norm_type": "inf"}},
    "clip_by_value": {"optimizer": {"clip_grad_value": 1.23456789e-5}},
    "clip_by_value_coupled": {"optimizer": {"name": "sgd", "clip_grad_value": 1.23456789e-5, "weight_decay": 1.23456789e-5}},
}


def main():
    print(f"# seed {SEED}")
    failed, names = 0, [word for word in sys.argv[1:] if word != "--all"]
    for number, name in enumerate(names or in_turn(JOBS, 2), SEED // 2):
        text = generate(make_job(steps=999999999999, **JOBS[name]))
        failed += report(name, [*compiles(text, number, ALL), *formatted(text)])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
