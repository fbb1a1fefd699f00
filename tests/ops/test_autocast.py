"""The type of each operation's result under autocast: what `plan --dump cast` says, for bfloat16 and float16, against what
PyTorch's autocast gives on the CPU, of operands in float32, of operands in the low type, and of one of each."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import torch
import torch.nn.functional as F

TREE = pathlib.Path(__file__).resolve().parents[2]
LOW = {"bf16": ("bfloat16", torch.bfloat16), "fp16": ("float16", torch.float16)}
ROWS, COLUMNS = 4, 8

# By name: the expression over a and b of the model, the same of PyTorch.
W, B = torch.randn(COLUMNS, COLUMNS), torch.randn(COLUMNS)
LABELS = torch.zeros(ROWS, dtype=torch.long)


def heads(x):
    return x.reshape(1, ROWS, 2, COLUMNS // 2).transpose(1, 2)


CASES = {
    "linear": ('linear(at(s, "NAME"), a, 8)', lambda a, b: F.linear(a, W, B)),
    "linear_no_bias": ('linear_no_bias(at(s, "NAME"), a, 8)', lambda a, b: F.linear(a, W)),
    "matmul": ("matmul(a, transpose(b, 0, 1))", lambda a, b: a @ b.T),
    "matmul_transposed": ("matmul_transposed(a, b)", lambda a, b: a @ b.T),
    "attention": ("attention(heads(a), heads(b), heads(a), CAUSAL)",
                  lambda a, b: F.scaled_dot_product_attention(heads(a), heads(b), heads(a), is_causal=True)),
    "layer_norm": ('layer_norm(at(s, "NAME"), a)', lambda a, b: F.layer_norm(a, (COLUMNS,), B, B)),
    "rms_norm": ('rms_norm(at(s, "NAME"), a)', lambda a, b: F.rms_norm(a, (COLUMNS,), B)),
    "add": ("add(a, b)", lambda a, b: a + b),
    "sub": ("sub(a, b)", lambda a, b: a - b),
    "mul": ("mul(a, b)", lambda a, b: a * b),
    "divide": ("divide(a, b)", lambda a, b: a / b),
    "scale": ("scale(a, 2)", lambda a, b: a * 2.0),
    "shift": ("shift(a, 2)", lambda a, b: a + 2.0),
    "maximum": ("maximum(a, b)", lambda a, b: torch.maximum(a, b)),
    "minimum": ("minimum(a, b)", lambda a, b: torch.minimum(a, b)),
    "where": ("where(greater(a, b), a, b)", lambda a, b: torch.where(a > b, a, b)),
    "pow": ("pow_of(a, 1.5)", lambda a, b: a**1.5),
    "cumsum": ("cumsum(a, 1)", lambda a, b: a.cumsum(1)),
    "max": ("max_along(a, 1)", lambda a, b: a.max(1).values),
    "pad": ("pad(a, 1, 1, 2)", lambda a, b: F.pad(a, (1, 2))),
    "abs": ("abs_of(a)", lambda a, b: a.abs()),
    "clamp": ("clamp(a, 0, 1)", lambda a, b: a.clamp(0, 1)),
    "softplus": ("softplus(a)", lambda a, b: F.softplus(a)),
    "rsqrt": ("rsqrt_of(a)", lambda a, b: a.rsqrt()),
    "sin": ("sin_of(a)", lambda a, b: a.sin()),
    "cos": ("cos_of(a)", lambda a, b: a.cos()),
    "neg": ("neg(a)", lambda a, b: -a),
    "exp": ("exp_of(a)", lambda a, b: a.exp()),
    "log": ("log_of(a)", lambda a, b: a.log()),
    "sqrt": ("sqrt_of(a)", lambda a, b: a.sqrt()),
    "square": ("square(a)", lambda a, b: a**2),
    "relu": ("relu(a)", lambda a, b: F.relu(a)),
    "gelu": ("gelu(a)", lambda a, b: F.gelu(a)),
    "gelu_tanh": ("gelu_tanh(a)", lambda a, b: F.gelu(a, approximate="tanh")),
    "silu": ("silu(a)", lambda a, b: F.silu(a)),
    "sigmoid": ("sigmoid(a)", lambda a, b: a.sigmoid()),
    "tanh": ("tanh_of(a)", lambda a, b: a.tanh()),
    "softmax": ("softmax(a)", lambda a, b: a.softmax(-1)),
    "dropout": ("dropout(a, 0.5)", lambda a, b: F.dropout(a, 0.5)),
    "sum": ("sum(a, 1)", lambda a, b: a.sum(1)),
    "mean": ("mean(a, 1)", lambda a, b: a.mean(1)),
    "concat": ("concat(1, a, b)", lambda a, b: torch.cat([a, b], 1)),
    "normalize": ("normalize(a)", lambda a, b: F.normalize(a, dim=-1)),
    "cross_entropy": ("cross_entropy(a, labels)", lambda a, b: F.cross_entropy(a, LABELS)),
    "mse_loss": ("mse_loss(a, b)", lambda a, b: F.mse_loss(a, b)),
    "l1_loss": ("l1_loss(a, b)", lambda a, b: F.l1_loss(a, b)),
    "huber_loss": ("huber_loss(a, b, 1)", lambda a, b: F.huber_loss(a, b)),
    "smooth_l1_loss": ("smooth_l1_loss(a, b, 1)", lambda a, b: F.smooth_l1_loss(a, b)),
    "bce": ("binary_cross_entropy_with_logits(a, b)", lambda a, b: F.binary_cross_entropy_with_logits(a, b)),
    "kl_div": ("kl_div(a, b)", lambda a, b: F.kl_div(a, b)),
    "triplet": ("triplet_margin_loss(a, b, a, 1)", lambda a, b: F.triplet_margin_loss(a, b, a)),
}
OPERANDS = {"full": ("full", "full"), "low": ("low", "low"), "mixed": ("low", "full"), "mixed_2": ("full", "low")}
# PyTorch refuses to compute these of two types.
SAME_ONLY = {("attention", "mixed"), ("attention", "mixed_2")}


def names():
    for case in CASES:
        for operands in OPERANDS:
            yield case, operands, f"{case}_of_{operands}"


def model():
    lines = []
    for case, operands, name in names():
        a, b = OPERANDS[operands]
        expression = re.sub(r"\ba\b", a, CASES[case][0].replace("NAME", name))
        expression = re.sub(r"\bb\b", b, expression)
        lines.append(f"  tensor {name} = {expression};\n  total = add(total, mean_all({name}));")
    return f"""#include <accel/model.h>
struct config {{ int width; }};
static tensor heads(tensor x) {{ return transpose(reshape(x, 1, {ROWS}, 2, {COLUMNS // 2}), 1, 2); }}
tensor model(scope s, struct config c, tensor features, tensor labels) {{
  tensor full = scale(features, 1.5);
  tensor low = linear_no_bias(at(s, "low"), features, c.width);
  tensor total = constant(0, 1);
{chr(10).join(lines)}
  return sum_all(total);
}}
"""


def planned(mode):
    """The types of values by name, after the pass that casts."""
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        folder = pathlib.Path(folder)
        (folder / "m.c").write_text(model())
        (folder / "rows.csv").write_text("1,2,3,4,5,6,7,8,0\n" * 20)
        (folder / "job.yaml").write_text(json.dumps({
            "model": {"source": "m.c", "config": {"width": COLUMNS}}, "training": {"steps": 1},
            "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": COLUMNS, "batch_size": ROWS},
            "precision": {"mixed_precision": mode}}))
        result = subprocess.run([TREE / "build" / "accel-gen", "plan", "job.yaml", "--dump", "cast"], cwd=folder,
                                capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    types = {}
    for left in re.findall(r"^  ([^=\n]*) = ", result.stdout, re.M):
        for name, dtype in re.findall(r"(\w+)(?: (bfloat16|float16|int32))? \[", left):
            types[name] = dtype or "float32"
    return types


class Autocast(unittest.TestCase):
    def check(self, mode):
        types, (name_of_low, low) = planned(mode), LOW[mode]
        x = torch.rand(ROWS, COLUMNS)
        given = {"full": x, "low": x.to(low)}
        for case, operands, name in names():
            if (case, operands) in SAME_ONLY:
                continue
            with self.subTest(case=case, operands=operands), torch.autocast("cpu", dtype=low):
                result = CASES[case][1](*(given[kind] for kind in OPERANDS[operands]))
                self.assertEqual(types[name], str(result.dtype)[6:])
        print(f"{mode}: {sum(1 for _ in names()) - len(SAME_ONLY)} results")

    def test_bfloat16(self):
        self.check("bf16")

    def test_float16(self):
        self.check("fp16")


if __name__ == "__main__":
    unittest.main()
