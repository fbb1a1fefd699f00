"""The expression of every elementwise kind against float64, gradients against central differences."""

import math
import sys

import numpy as np

import kernels as kit


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def slope(function):
    return lambda dy, x: dy * (function(x + 1e-6) - function(x - 1e-6)) / 2e-6


KINDS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "greater": lambda a, b: (a > b) * 1.0,
    "greater_equal": lambda a, b: (a >= b) * 1.0,
    "equal": lambda a, b: (a == b) * 1.0,
    "where": lambda a, b, c: np.where(a != 0, b, c),
    "pow": lambda a: a**1.7,
    "abs": np.abs,
    "clamp": lambda a: np.clip(a, -0.75, 2),
    "softplus": lambda a: np.logaddexp(a, 0),
    "huber": lambda a: np.where(np.abs(a) < 0.75, a * a / 2, 0.75 * (np.abs(a) - 0.375)),
    "bce_with_logits": lambda a, b: np.maximum(a, 0) - a * b + np.log1p(np.exp(-np.abs(a))),
    "scale": lambda a: a * -1.5,
    "shift": lambda a: a - 1.5,
    "neg": np.negative,
    "detach": lambda a: a,
    "square": np.square,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "relu": lambda a: np.where(a < 0, 0, a),
    "silu": lambda a: a * sigmoid(a),
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "cast": lambda a: a,
    "cast_index": lambda a: np.trunc(np.clip(a, 0, 2)),
    "cast_index_target": lambda a: np.where(a == -3, a, np.trunc(np.clip(a, 0, 2))),
    "copy": lambda a: a,
    "broadcast": lambda a: a,
    "constant": lambda: np.float64(-1.5),
    "abs_backward": lambda dy, x: dy * np.sign(x),
    "clamp_backward": lambda dy, x: np.where((x >= -0.75) & (x <= 2), dy, 0),
    "relu_backward": lambda dy, x: np.where(x > 0, dy, 0),
    "silu_backward": slope(lambda x: x * sigmoid(x)),
    "gelu_backward": slope(gelu),
    "gelu_tanh_backward": slope(gelu_tanh),
    "tanh_backward": lambda dy, y: dy * (1 - y * y),
    "sigmoid_backward": lambda dy, y: dy * y * (1 - y),
}
N = 1003


def arity_of(truth):
    return truth.nin if isinstance(truth, np.ufunc) else truth.__code__.co_argcount


def text_of(kind, arity, attributes):
    module = kit.module_of(kind)
    names = ["a", "b", "c"][:arity]
    expression = getattr(module, kind)(attributes, *names)
    element = "int32_t" if kind == "cast" else "float"
    parameters = "".join(f", const {element} *{name}_" for name in names)
    loads = "".join(f"    const {element} {name} = {name}_[i];\n" for name in names)
    return (
        f"void run_{kind}(float *y{parameters});\nvoid run_{kind}(float *y{parameters}) {{\n#pragma omp simd\n"
        f"  for (size_t i = 0; i < {N}; i++) {{\n{loads}    y[i] = {expression};\n  }}\n}}\n"
    )


def main():
    rng = np.random.default_rng(3)
    attributes = type("Attributes", (), {"value": -1.5, "low": -0.75, "high": 2.0, "delta": 0.75, "exponent": 1.7,
                                         "last": 2, "ignore": -3})()
    body, failures = "", 0
    for kind, truth in KINDS.items():
        arity = 0 if kind == "constant" else 2 if kind.endswith("_backward") else arity_of(truth)
        body += text_of(kind, arity, attributes)
    for compiler in ("gcc", "clang-19"):
        if not kit.has(compiler):
            print(f"ok elementwise {compiler} # SKIP not installed")
            continue
        library = kit.Library(kit.HEADERS + kit.with_helpers(body), compiler, kit.SPEED_FLAGS)
        for kind, truth in KINDS.items():
            arity = body.split(f"void run_{kind}(float *y", 1)[1].split(")", 1)[0].count(",")
            inputs = [(rng.standard_normal(N) * 3).astype(np.float32) for _ in range(arity)]
            if kind in ("sqrt", "rsqrt", "log", "pow"):
                inputs[0] = np.abs(inputs[0]) + np.float32(1e-3)
            if kind == "cast":
                inputs[0] = rng.integers(-1000, 1000, N).astype(np.int32)
            if kind == "cast_index_target":
                inputs[0] = np.round(inputs[0])
            if kind in ("greater_equal", "equal", "where"):
                inputs[0] = np.round(inputs[0])
                inputs[1] = np.round(inputs[1])
            y = np.full(N, np.nan, np.float32)
            library[f"run_{kind}"](y, *inputs)
            expected = truth(*[v.astype(np.float64) for v in inputs])
            # Absolute near 0: gelu's 1 + erf and sigmoid's tails cancel there, in every library alike.
            error = float((np.abs(y - expected) / (1 + np.abs(expected))).max())
            right = error < 2e-6
            failures += not right
            print(f"{'ok' if right else 'not ok'} {kind} {compiler} (error {error:.2g})")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
