"""The operators of ONNX that each operation is made of, in onnxruntime, against its float64 reference."""

import json
import os
import subprocess
import unittest
from pathlib import Path

import numpy
import onnx
import onnxruntime

PROGRAM = Path(__file__).resolve().parents[2] / "build/tests/ops/test_exports"
TOLERANCE = 1e-5
# Functions, by the operation of theirs that has no rule.
REFUSED = {
    "bce_with_logits": ["binary_cross_entropy_with_logits"],
    "convolution_data": ["conv_transpose1d", "conv_transpose2d", "convolve_transposed1d", "convolve_transposed2d"],
    "cross_entropy": ["clip_loss", "contrastive_loss", "cross_entropy", "cross_entropy_ignore", "cross_entropy_smooth",
                      "cross_entropy_with", "cross_entropy_z"],
    "gather_backward": ["scatter_add"],
    "huber": ["huber_loss", "smooth_l1_loss"],
    "sparse_matmul": ["sparse_matmul"],
    "sparse_rows": ["sparse_matmul_csr"],
}


def array_of(tensor, dtype):
    return numpy.array(tensor["elements"]).reshape(tensor["shape"]).astype(dtype)


def session_of(case):
    """The model, as onnx's checker takes it; its weights are in the case."""
    graph = onnx.GraphProto.FromString(bytes.fromhex(case["graph"]))
    for name in case["weights"]:
        graph.initializer.append(onnx.numpy_helper.from_array(array_of(case["tensors"][name], "float32"), name))
    model = onnx.helper.make_model(graph, ir_version=9, opset_imports=[onnx.helper.make_opsetid("", 20)])
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def computed(case):
    session = session_of(case)
    types = {"tensor(float)": "float32", "tensor(int64)": "int64"}
    return session.run(None, {x.name: array_of(case["tensors"][x.name], types[x.type]) for x in session.get_inputs()})[0]


def evaluated(case):
    """A batch norm, of variances that are made positive."""
    variance = case["tensors"]["running_var"]
    variance["elements"] = [abs(x) + 0.1 for x in variance["elements"]]
    x, weight, bias, mean, variance = (array_of(case["tensors"][name], "float64")
                                       for name in ("x0", "weight", "bias", "running_mean", "running_var"))
    eps = onnx.GraphProto.FromString(bytes.fromhex(case["graph"])).node[0].attribute[0].f
    column = (-1, *[1] * (x.ndim - 2))
    rows = [v.reshape(column) for v in (weight / numpy.sqrt(variance + eps), mean, bias)]
    return (x - rows[1]) * rows[0] + rows[2]


class Operations(unittest.TestCase):
    maxDiff = None

    def test_operations(self):
        seed = os.environ.get("SEED", "1")
        run = subprocess.run([PROGRAM, "--print", seed], capture_output=True, text=True, check=True)
        cases = [json.loads(line) for line in run.stdout.splitlines()]
        refused = {}
        for case in cases:
            function = case["function"]
            if "refused" in case:
                refused.setdefault(case["refused"].split("'")[1], set()).add(function)
                continue
            with self.subTest(function=function, shape=case["y"]["shape"]):
                # In inference a dropout is its input, and a batch norm takes the statistics that it has kept.
                wanted = case["tensors"]["x0"] if function == "dropout" else case["y"]
                wanted = evaluated(case) if function.startswith("batch_norm") else array_of(wanted, "float64")
                ours = computed(case)
                self.assertEqual(ours.shape, wanted.shape)
                self.assertLess(numpy.max(abs(ours - wanted) / (1 + abs(wanted)), initial=0), TOLERANCE)
        self.assertEqual({kind: sorted(functions) for kind, functions in refused.items()}, REFUSED)


if __name__ == "__main__":
    unittest.main()
