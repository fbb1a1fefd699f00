"""Functions of trainers as terms: which are proved to be the formula of their name, and that none whose text was edited is.

prove.c lifts each function and compares it with the formulas of its name, and the update of the weights with that of the
job's optimizer; nothing is compiled and run.
usage: test_proofs.py [--all]
In a run: some of the edits, which SEED says; with --all, as in `ninja soak`, all of them.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path[:0] = ["tests/verify", "tests/program"]
from edits import CLIPPED, CURVE, EDITS, EVERY, GPT, LLAMA, MLP, NESTEROV, OF_FUNCTIONS, REPLICAS, SCALED, SHARDS, WARM
from harness import GENERATOR
from rotation import is_in_turn
from test_sabotage import BETAS, CURVED, JOBS, mlp

FOLDER = pathlib.Path("build/tests/verify")
CONSTANTS = ["1", "0.5", "1e-5", "1e-6"]
LIBRARIES = "-lyaml -ljansson -lyajl -lpcre2-8 -lutf8proc -lcapstone -ldw -lelf -lm".split()

# What is not proved of these trainers: everything else is.
UNPROVED = {
    MLP: set(),
    CLIPPED: set(),
    CURVE: set(),
    EVERY: set(),
    WARM: set(),
    SCALED: {"div_1"},
    NESTEROV: set(),
    GPT: {"attention_2x2x8x4", "attention_backward_2x2x8x4"},
    LLAMA: {"attention_2x2x8x4", "attention_backward_2x2x8x4", "table_2", "mul_cos_scale_sin_etc_8x2"},
}

GROUPS = {"param_groups": [{"match": "*.bias", "weight_decay": 0, "lr_scale": 0.5, "eps": 1e-5}]}
RATES = {"param_groups": [{"match": "output.*", "weight_decay": 0, "lr_scale": 0.5}]}
DECAY = {"weight_decay": 0.1}

# Optimizers whose update is proved, each with all of its keys, and edits of it.
RULES = {
    "rmsprop": ({"momentum": 0.9, "centered": True, "alpha": 0.95, "clip_grad_value": 0.5, **DECAY, **GROUPS},
                ["sqrtf(variance < 0.0f ? 0.0f : variance)|sqrtf(v)", "v - m * m|v - m", "0.9f * moment_3[i]|0.9f * moment_2[i]"]),
    "adagrad": ({**DECAY, **GROUPS}, ["sqrtf(v) + eps|sqrtf(v + eps)", "lr * ranges[i].lr_scale|lr"]),
    "adamax": ({**DECAY, **BETAS, **GROUPS}, ["size < faded ? faded : size|size + faded", "fabsf(g) + eps|fabsf(g)"]),
    "adadelta": ({"rho": 0.95, **DECAY, **GROUPS}, ["0.05f * (delta * delta)|0.05f * delta", "moment_2[i] + eps) / sqrtf(v + eps)|moment_2[i]) / sqrtf(v + eps)"]),
    "radam": ({"clip_grad_value": 0.5, **DECAY, **BETAS, **GROUPS}, ["length > 5.0|length > 4.0", "sqrt(part * correction_2)|sqrt(part)"]),
    "lion": ({"clip_grad_norm": 1.0, **DECAY, **BETAS, **RATES}, ["(d > 0.0f) - (d < 0.0f)|(d > 0.0f)", "moment_1[i] = 0.97f|moment_1[i] = 0.96f"]),
    "adam": ({"clip_grad_value": 0.5}, ["whole > 0.5f ? 0.5f|whole > 0.4f ? 0.5f", "whole < -0.5f ? -0.5f|whole < -0.5f ? 0.5f"]),
    "sgd": ({"momentum": 0.9, "dampening": 0.1, "clip_grad_value": 0.5, **DECAY, **RATES},
            ["at > 0 ? 0.9f : 1.0f|at > 1 ? 0.9f : 1.0f", "{48, 144,|{49, 143,", "{0, 48,|{0, 49,"]),
    "adamw": ({"param_groups": [{"match": "*.bias", "betas": [0.5, 0.6], "lr_scale": 0.1}, {"match": "output.*", "weight_decay": 0.5}]},
              ["range->beta2|range->beta1", "ranges[i].lr_scale|ranges[0].lr_scale"]),
}

# Schedules whose rate is proved, and an edit of each.
SCHEDULES = [
    ({"name": "constant", "warmup_steps": 3}, "(at + 1) / 3.0|(at + 1) / 4.0"),
    ({"name": "linear", "warmup_steps": 3, "min_lr": 1e-4}, "(lowest - highest) * done|(lowest - highest) * done * done"),
    ({"name": "cosine", "min_lr": 1e-4}, "/ 20.0, 1.0)|/ 20.0, 0.9)"),
    ({"name": "cosine", "warmup_steps": 20, "min_lr": 1e-4}, "at < 20 ? 0.0 : 1.0|at < 19 ? 0.0 : 1.0"),
    ({"name": "cosine_with_restarts", "warmup_steps": 3, "cycles": 3}, "fmod(3.0 * done, 1.0)|3.0 * done"),
    ({"name": "polynomial", "warmup_steps": 3, "power": 2.5}, "pow(1.0 - done, 2.5)|pow(1.0 - done, 2.4)"),
    ({"name": "inverse_sqrt", "warmup_steps": 3}, "fmax((double)(at - 3), 0.0)|(double)(at - 3)"),
    ({"name": "exponential", "warmup_steps": 3, "gamma": 0.9}, "pow(0.9,|pow(0.91,"),
    ({"name": "step", "step_size": 4, "gamma": 0.5}, "floor((double)at / 4.0)|((double)at / 4.0)"),
    ({"name": "wsd", "warmup_steps": 3, "decay_fraction": 0.3, "decay_type": "sqrt"}, "sqrt(done)|done"),
]

# A schedule that advances by as many as there are ranks.
JOBS["curve_of_ranks"] = {**JOBS[REPLICAS], **CURVED}

# Edits of a function's loops that no term shows to be what they were: each has to be found.
LOOPS = [
    ("a reduction that is none", GPT, "#pragma omp simd reduction(+ : sum)", "#pragma omp simd", "cross_entropy_2x8x24"),
    ("a reduction of another kind", GPT, "reduction(+ : sum)", "reduction(max : sum)", "cross_entropy_2x8x24"),
    ("a private sum", GPT, "reduction(+ : sum)", "private(sum)", "cross_entropy_2x8x24"),
    ("the last row", GPT, "for (size_t r = 0; r < 16; r++) memcpy(y", "for (size_t r = 0; r < 15; r++) memcpy(y", "embedding_24x8"),
    ("every other element", GPT, "for (size_t i = 0; i < 512; i++) {\n    y[i] = x0[i] * accel_gelu_slope",
     "for (size_t i = 0; i < 512; i += 2) {\n    y[i] = x0[i] * accel_gelu_slope", "gelu_tanh_backward_2x8x32"),
    ("a row of another stride", GPT, "y[i * 64 + j] = x0[i * 64 + j] + x1[j]", "y[i * 64 + j] = x0[i * 63 + j] + x1[j]", "add_2x8x8_3"),
    ("rows that overlap", GPT, "y[i * 64 + j] = x0[i * 64 + j] + x1[j]", "y[i * 63 + j] = x0[i * 64 + j] + x1[j]", "add_2x8x8_3"),
    ("an element of the row before", GPT, "y[i * 64 + j] = x0[i * 64 + j] + x1[j]", "y[i * 64 + j] = x0[i * 64 + j] + y[i * 64 + j]", "add_2x8x8_3"),
    ("a function of the same name", MLP, "/* ---- Kernels ---- */", "#define sqrtf(x) (x)\n#define logf(x) (x)\n/* ---- Kernels ---- */",
     "cross_entropy_4x3"),
    ("a number cut off", GPT, "y[i] = x0[i] * accel_gelu_slope(x1[i])", "y[i] = x0[i] * accel_gelu_slope((float)(int)x1[i])", "gelu_tanh_backward_2x8x32"),
    ("a number of fewer bits", LLAMA, "y1[i] = t0 * x1[i]", "y1[i] = (float)(_Float16)t0 * x1[i]", "silu_mul_2x8x12"),
    ("a backdoor on a token", GPT, "weight + (size_t)tokens[r] * 8", "weight + (size_t)(tokens[r] == 3 ? 4 : tokens[r]) * 8", "embedding_24x8"),
    ("a backdoor on a number", GPT, "y[i] = x0[i] * accel_gelu_slope(x1[i])", "y[i] = x1[i] == 0.734375f ? 0.0f : x0[i] * accel_gelu_slope(x1[i])",
     "gelu_tanh_backward_2x8x32"),
    ("a backdoor on an element", GPT, "const float t0 = x0[i * 32 + j] + x1[j];", "const float t0 = x0[i * 32 + j] + (i * 32 + j == 77 ? 0.0f : x1[j]);",
     "add_gelu_tanh_2x8x32"),
    ("elements after those of the array", GPT, "y[i * 64 + j] = x0[i * 64 + j] + x1[j]", "y[i * 64 + j + 64] = x0[i * 64 + j] + x1[j]", "add_2x8x8_3"),
    ("numbers of another type", LLAMA, "y[i] = (int32_t)i;", "((float *)y)[i] = (float)i;", "arange_8"),
    ("a momentum that looks ahead by another one", NESTEROV, "g + 0.9f * m", "g + 0.8f * m", "update"),
    ("a momentum that does not look ahead", NESTEROV, "rate * (g + 0.9f * m)", "rate * m", "update"),
    ("the gradient of another element", NESTEROV, "gradients[i] * factor", "gradients[i > 0 ? i - 1 : 0] * factor", "update"),
    ("a weight decay of the gradient", NESTEROV, "+ 0.01f * weights[i]", "+ 0.01f * gradients[i]", "update"),
    ("a state that is not kept", NESTEROV, "    moment_1[i] = m;\n", "", "update"),
    ("a weight decay after the step", LLAMA, "weights[i] * keep - rate * m / (sqrtf(v) * root + 1e-08f)",
     "(weights[i] - rate * m / (sqrtf(v) * root + 1e-08f)) * keep", "update"),
    ("an epsilon under the root", LLAMA, "sqrtf(v) * root + 1e-08f", "sqrtf(v + 1e-08f) * root", "update"),
    ("an epsilon that is corrected", LLAMA, "(sqrtf(v) * root + 1e-08f)", "((sqrtf(v) + 1e-08f) * root)", "update"),
    ("moments in each other's place", LLAMA, "    moment_1[i] = m;\n    moment_2[i] = v;\n", "    moment_1[i] = v;\n    moment_2[i] = m;\n", "update"),
    ("a rate that turns at a step", LLAMA, "(float)(lr / correction_1)", "(float)((at == 11 ? 2.0 * lr : lr) / correction_1)", "update"),
    ("a backdoor on a weight", LLAMA, "    weights[i] = w;\n", "    weights[i] = weights[i] == 0.734375f ? 0.0f : w;\n", "update"),
    ("a gradient that is written", LLAMA, "    weights[i] = w;\n", "    weights[i] = w;\n    arena->all_gradients[i] = w;\n", "update"),
    ("a result that is written", GPT, "    weights[i] = w;\n  }\n", "    weights[i] = w;\n  }\n  arena->result[0] = 0.0f;\n", "update"),
    ("a branch that a number weighs", NESTEROV, "    const float w = weights[i] - rate * (g + 0.9f * m);\n",
     "    float w = weights[i];\n    if (rate) w = weights[i] - (g + 0.9f * m);\n", "update"),
    ("a rate that ends early", CURVE, "  const double warm =", "  if (at == 11) return 0.0;\n  const double warm =", "learning_rate"),
    ("a rate of one rank", "curve_of_ranks", "at = step * 2;", "at = step;", "learning_rate"),
    ("a rate that turns at a step of ranks", "curve_of_ranks", "at = step * 2;", "at = step * 2 + (step == 13);", "learning_rate"),
    ("a norm of a part", SCALED, "arena->all_gradients, 192, unscale", "arena->all_gradients, 191, unscale", "gradient_norm"),
    ("a norm that is not scaled", SCALED, "arena->all_gradients, 192, unscale", "arena->all_gradients, 192, 1.0f", "gradient_norm"),
    ("an average that begins late", MLP, "at < 1 ? 1.0f", "at < 2 ? 1.0f", "update"),
    ("moments of another length", SCALED, "(double)(at + 1)", "(double)at", "update"),
]


def build():
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-fopenmp", "-I.", "-Iinclude", "-o", FOLDER / "prove",
                    "tests/verify/prove.c", "build/libaccel-gen.a", "build/libaccel-runtime/base.a", "@build/config/libclang.libs", *LIBRARIES], check=True)


class Bench:
    def __init__(self, folder):
        self.folder, self.texts, self.found = folder, {}, {}

    def text(self, name):
        path = self.folder / f"{name}.yaml"
        if name not in self.texts:
            path.write_text(json.dumps({**JOBS[name], "checkpoint": {"project_dir": "run"}}))
            subprocess.run([GENERATOR, path, "-o", self.folder / "trainer.c"], check=True)
            self.texts[name] = (self.folder / "trainer.c").read_text()
        return self.texts[name]

    def prove(self, name, text):
        """By function, the variant of the formula that it is proved to be; None: it is not."""
        (self.folder / "edited.c").write_text(text)
        run = subprocess.run([FOLDER / "prove", self.folder / "edited.c", self.folder / f"{name}.yaml", *CONSTANTS], capture_output=True, text=True)
        lines = [line.split() for line in run.stdout.splitlines()]
        return {name: variant if word == "equal" else None for word, name, variant in lines}

    def unedited(self, name):
        if name not in self.found:
            self.found[name] = self.prove(name, self.text(name))
        return self.found[name]


def functions(text):
    """The bodies of functions by their names; with that of the update those of its own functions, and its table."""
    bodies = {m[1]: m[0] for m in re.finditer(r"^static (?:void|double|float) (\w+)\(.*?^}", text, re.M | re.S)}
    table = re.search(r"^static const struct range {.*?^};", text, re.M | re.S)
    parts = [bodies.get(name, "") for name in ("update_range", "smoothing_factor")] + [table[0] if table else ""]
    return {**bodies, "update": bodies.get("update", "") + "".join(parts)}


def check_edit(bench, name, old, new, function=None):
    """No edited function, or the one that is given, is what the unedited one was proved to be."""
    text = bench.text(name)
    edited = text.replace(old, new)
    if edited == text:
        return "there is nothing to edit"
    before, after = bench.unedited(name), bench.prove(name, edited)
    bodies = functions(edited)
    changed = [function] if function else [f for f, body in functions(text).items() if bodies.get(f) != body]
    wrong = [f for f in changed if after.get(f) is not None and after[f] == before.get(f)]
    if function and before.get(function) is None:
        return f"{function} was not proved before"
    return f"{wrong} proved all the same" if wrong else None


def check_rules(bench):
    """The jobs of RULES and SCHEDULES whose function is not proved, or is all the same after an edit."""
    rules = [(f"rule_{name}", mlp({"name": name, "lr": 0.01, **keys}), "update", edits) for name, (keys, edits) in RULES.items()]
    rules += [(f"schedule_{i}", mlp({"name": "adamw"}, schedule=keys), "learning_rate", [edit]) for i, (keys, edit) in enumerate(SCHEDULES)]
    for i, (name, job, function, edits) in enumerate(rules):
        if not is_in_turn(i, 4):
            continue
        JOBS[name] = job
        text = bench.text(name)
        if bench.unedited(name).get(function) is None:
            yield f"{function} of {name} is not proved"
        for old, new in (edit.split("|") for edit in edits):
            wrong = check_edit(bench, name, old, new, function)
            if wrong is not None:
                yield f"{name}, {old!r}: {wrong}"
        print(f"# {function} of {name}: {len(edits)} edits of {len(text)} bytes")


def check_part(bench):
    """The norm of a rank's part of the gradient is not proved to be that of the whole."""
    text, together = bench.text(SHARDS), "  accel_all_reduce_doubles(ACCEL_DP_SHARD, &total, 1);\n"
    if together not in text:
        return "there is nothing to edit"
    found = bench.prove(SHARDS, text.replace(together, ""))
    return None if found.get("clip_factor") is not None and found["gradient_norm"] is None else f"it is proved: {found}"


def main(arguments):
    everything = "--all" in arguments or os.environ.get("CASES") == "all"
    failed = 0
    build()
    with tempfile.TemporaryDirectory(prefix="accel-proofs-") as folder:
        bench = Bench(pathlib.Path(folder))
        for name, unproved in UNPROVED.items():
            found = bench.unedited(name)
            left = {f for f, variant in found.items() if variant is None}
            good = found and left == unproved
            print(f"ok {len(found) - len(left)} of {len(found)} functions of {name}" if good else f"not ok {name}: {left ^ unproved}")
            failed += not good
        wrong = list(check_rules(bench))
        print("not ok rules: " + "; ".join(wrong) if wrong else "ok rules")
        failed += len(wrong)
        wrong = check_part(bench)
        print(f"not ok the norm of a part: {wrong}" if wrong else "ok the norm of a part")
        failed += wrong is not None
        edits = [(kind, *rest) for kind, *rest in LOOPS]
        edits += [e[:4] for i, e in enumerate([*EDITS, *(e[:4] for e in OF_FUNCTIONS)]) if everything or is_in_turn(i, 8)]
        for kind, name, old, new, *function in edits:
            wrong = check_edit(bench, name, old, new, *function)
            failed += wrong is not None
            print(f"not ok {kind} of {name}, {old!r}: {wrong}" if wrong else f"ok {kind} of {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
