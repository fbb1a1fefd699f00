"""Jobs that use none of a newer feature keep their program: rate and update of such jobs, as emitted before the feature
came. `python tests/optimizer/test_unchanged.py --accept` takes over what is emitted now. TAP."""

import difflib
import pathlib
import sys

from parts import function, generate, make_job

FOLDER = pathlib.Path(__file__).resolve().parent / "unchanged"
ADAMW = {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.1, "clip_grad_norm": 1.0}
JOBS = {
    "defaults": {},
    "adamw_cosine": {"optimizer": ADAMW, "schedule": {"name": "cosine", "warmup_steps": 20, "min_lr": 1e-4}},
    "adamw_linear": {"optimizer": {"weight_decay": 0}, "schedule": {"name": "linear"}},
    "sgd": {"optimizer": {"name": "sgd", "lr": 0.1, "weight_decay": 0}, "schedule": {"warmup_steps": 20}},
    "sgd_momentum": {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "clip_grad_norm": 0.5},
                     "schedule": {"name": "cosine", "decay_steps": 500}},
}


def main():
    accept, failed = "--accept" in sys.argv[1:], 0
    for name, groups in JOBS.items():
        text = generate(make_job(**groups))
        text = "\n".join(function(text, part) for part in ("learning_rate", "gradient_norm", "update"))
        path = FOLDER / f"{name}.c"
        old = path.read_text() if path.exists() else ""
        if accept:
            path.write_text(text)
        failed += old != text and not accept
        print(f"{'ok' if old == text else 'accepted' if accept else 'not ok'} {name}")
        for line in difflib.unified_diff(old.splitlines(), text.splitlines(), name, f"{name} now", "", "", 1, ""):
            print(f"  {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
