"""Cases of cross-entropy, over logits and over the matmul that makes them, with the float64 truth."""

import functools

import numpy as np

from case import Case, drawn_size, normal, strides_of
from kernels import Kernel, Operand


def rows64(logits, targets):
    """Logits and targets by rows, each row's lse, and which targets count: those that are not -1."""
    x, t = logits.astype(np.float64).reshape(-1, logits.shape[-1]), targets.ravel()
    return x, t, np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1), t != -1


def loss64(logits, targets, smoothing, z):
    """The loss, each row's lse, and 1 / the number of targets that count."""
    x, t, lse, counts = rows64(logits, targets)
    picked = (1 - smoothing) * (lse - x[np.arange(len(t)), np.where(counts, t, 0)]) + smoothing * (lse - x.mean(-1)) + z * lse**2
    return picked[counts].sum() / counts.sum(), lse, 1 / counts.sum()


def slope64(logits, targets, smoothing, z):
    """0.7 times the gradient of the loss."""
    x, t, lse, counts = rows64(logits, targets)
    p = np.exp(x - lse[:, None]) * (1 + 2 * z * lse[:, None]) - smoothing / x.shape[1]
    p[np.arange(len(t))[counts], t[counts]] -= 1 - smoothing
    return (0.7 / counts.sum() * p * counts[:, None]).reshape(logits.shape)


def entropy_inputs(rng, shape, v, ignored):
    logits, targets = normal(rng, *shape, v) * 3, rng.integers(0, v, shape).astype(np.int32)
    if ignored:
        targets[rng.random(shape) < 0.3] = -1
        targets.ravel()[0] = 0
    return logits, targets


def build_cross_entropy(name, rng, shape=(1,), v=2, ignored=False, smoothing=0.0, z=0.0, nan=False):
    logits, targets = entropy_inputs(rng, shape, v, ignored)
    if nan:  # in a position that is not the target's
        logits[0, (targets[0] + 1) % v] = np.nan
    loss, lse, scale = loss64(logits, targets, smoothing, z)
    kernel = Kernel("cross_entropy", [Operand("loss", []), Operand("lse", [lse.size]), Operand("scale", [])],
                    [Operand("logits", [*shape, v]), Operand("targets", shape, dtype="int32_t")], name, ignore=-1,
                    smoothing=smoothing, z=z)
    return Case(kernel, {"logits": logits, "targets": targets},
                {"loss": loss, "lse": lse, "scale": scale}, tolerance=1e-6, scales={"loss": 0.1, "lse": 0.1})


def build_cross_entropy_backward(name, rng, shape=(1,), v=2, ignored=False, in_place=False, accumulate=False, smoothing=0.0,
                                 z=0.0):
    logits, targets = entropy_inputs(rng, shape, v, ignored)
    _, lse, scale = loss64(logits, targets, smoothing, z)
    kernel = Kernel("cross_entropy_backward", [Operand("dlogits", [*shape, v], accumulate=accumulate)],
                    [Operand("d_loss", []), Operand("logits", [*shape, v]), Operand("lse", [lse.size]), Operand("scale", []),
                     Operand("targets", shape, dtype="int32_t")], name, ignore=-1, smoothing=smoothing, z=z)
    return Case(kernel, {"d_loss": np.float32(0.7), "logits": logits, "lse": lse, "scale": scale, "targets": targets},
                {"dlogits": slope64(logits, targets, smoothing, z)}, {"dlogits": "logits"} if in_place else None,
                scales={"dlogits": 0.7 * scale})  # a probability near 1, less 1


def build_linear(kind, name, rng, shape=(1,), c=1, v=2, rows=1, layout="rows", ignored=False, smoothing=0.0, z=0.0, accumulate=False):
    """The loss, its gradient, or both at once, of logits that are x weight."""
    x, weight, targets = normal(rng, *shape, c), normal(rng, c, v), entropy_inputs(rng, shape, v, ignored)[1]
    logits = (x.astype(np.float64) @ weight).reshape(*shape, v)
    loss, lse, scale = loss64(logits, targets, smoothing, z)
    given = {"d_loss": np.float32(0.7), "x": x, "weight": weight, "lse": lse, "scale": scale, "targets": targets}
    dlogits = slope64(logits, targets, smoothing, z).reshape(-1, v)
    truths = {"loss": loss, "lse": lse, "scale": scale, "dx": (dlogits @ weight.T).reshape(x.shape), "dweight": x.reshape(-1, c).T @ dlogits}
    strides = strides_of([c, v], [0, 1] if layout == "rows" else [1, 0])
    operands = {"d_loss": Operand("d_loss", []), "x": Operand("x", x.shape), "weight": Operand("weight", weight.shape, strides),
                "loss": Operand("loss", []), "lse": Operand("lse", [lse.size]), "scale": Operand("scale", []),
                "targets": Operand("targets", shape, dtype="int32_t"), "dx": Operand("dx", x.shape, accumulate=accumulate),
                "dweight": Operand("dweight", weight.shape, strides, accumulate=accumulate),
                "logits": Operand("logits", [rows, v], workspace=True)}
    takes, gives = LINEAR[kind]
    kernel = Kernel(kind, [operands[key] for key in gives], [operands[key] for key in takes], name, ignore=-1, smoothing=smoothing, z=z, rows=rows)
    size = 0.7 * scale * float(np.abs(weight).max() + np.abs(x).max())  # a probability near 1, less 1
    return Case(kernel, {key: given[key] for key in takes}, {key: truths[key] for key in gives if key in truths},
                scales={"dx": size, "dweight": size, "loss": 0.1, "lse": 0.1})


def build_inverse_target_count(name, rng, shape=(1,), v=2, ignore=-1, part=0.3):
    targets = rng.integers(0, v, shape).astype(np.int32)
    targets[rng.random(shape) < part] = ignore
    targets.ravel()[-1] = (ignore + 1) % v
    kernel = Kernel("inverse_target_count", [Operand("scale", [])], [Operand("targets", shape, dtype="int32_t")], name, ignore=ignore, classes=v)
    return Case(kernel, {"targets": targets}, {"scale": 1 / (targets != ignore).sum()})


# What each form takes and gives.
LINEAR = {
    "linear_cross_entropy": (("x", "weight", "targets"), ("loss", "lse", "scale", "logits")),
    "linear_cross_entropy_backward": (("d_loss", "x", "weight", "lse", "scale", "targets"), ("dx", "dweight", "logits")),
    "linear_cross_entropy_forward_backward": (("d_loss", "x", "weight", "scale", "targets"), ("loss", "dx", "dweight", "logits")),
}
BUILDERS = {
    "cross_entropy": build_cross_entropy,
    "cross_entropy_backward": build_cross_entropy_backward,
    **{kind: functools.partial(build_linear, kind) for kind in LINEAR},
    "inverse_target_count": build_inverse_target_count,
}
CHUNKS = [dict(), dict(shape=(3, 5), c=7, v=17, rows=4), dict(shape=(40,), c=17, v=33, rows=40, layout="columns", ignored=True),
          dict(shape=(70,), c=5, v=65, rows=32, smoothing=0.1), dict(shape=(9,), c=33, v=7, rows=5, layout="columns", z=0.01)]
SUMMED = [dict(CHUNKS[1], accumulate=True), dict(CHUNKS[2], rows=16, accumulate=True)]
FIXED = {
    "cross_entropy": [dict(shape=s, v=v) for s, v in [((1,), 2), ((3,), 1), ((5, 7), 17), ((130,), 65), ((2,), 5000)]]
    + [dict(shape=(50,), v=33, ignored=True), dict(shape=(5, 7), v=17, smoothing=0.1),
       dict(shape=(50,), v=33, ignored=True, smoothing=0.25, z=1e-4), dict(shape=(9,), v=5, z=0.01)],
    "cross_entropy_backward": [dict(shape=s, v=v) for s, v in [((1,), 2), ((3,), 1), ((5, 7), 17), ((130,), 65)]]
    + [dict(shape=(50,), v=33, ignored=True, in_place=True), dict(shape=(5, 7), v=17, accumulate=True),
       dict(shape=(5, 7), v=17, smoothing=0.1), dict(shape=(50,), v=33, ignored=True, smoothing=0.25, z=1e-4),
       dict(shape=(9,), v=5, z=0.01, accumulate=True)],
    "linear_cross_entropy": CHUNKS,
    "linear_cross_entropy_backward": CHUNKS + SUMMED,
    "linear_cross_entropy_forward_backward": CHUNKS + SUMMED,
    "inverse_target_count": [dict(), dict(shape=(3, 700), v=65), dict(shape=(50,), v=5, ignore=3), dict(shape=(33,), v=7, ignore=0, part=1)],
}


def fuzzed_shape(rng):
    return tuple(drawn_size(rng) for _ in range(rng.integers(1, 3)))


def fuzzed_entropy(rng):
    return dict(v=drawn_size(rng), shape=fuzzed_shape(rng), ignored=bool(rng.integers(2)))


def fuzzed_linear(rng):
    shape = fuzzed_shape(rng)
    return dict(shape=shape, c=drawn_size(rng), v=drawn_size(rng), rows=int(rng.integers(1, np.prod(shape) + 1)), ignored=bool(rng.integers(2)),
                layout=str(rng.choice(["rows", "columns"])))


FUZZED = {
    **{kind: fuzzed_entropy for kind in ("cross_entropy", "cross_entropy_backward")},
    **{kind: fuzzed_linear for kind in LINEAR},
    "inverse_target_count": lambda rng: dict(shape=fuzzed_shape(rng), v=2 + drawn_size(rng), ignore=int(rng.integers(-1, 2))),
}
