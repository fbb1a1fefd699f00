"""Cases of every kind: shapes, strides, attributes, and the float64 truth."""

import attention_cases
import image_cases
import incremental_cases
import loss_cases
import numpy as np
import sequence_cases

from case import Case, decoded, drawn_size, encoded, normal, strides_of  # noqa: F401
from kernels import Kernel, Operand


def build_matmul(name, rng, batch=(), m=1, n=1, k=1, a="rows", b="rows", y="rows", b_rank2=False, accumulate=False, gap=0,
                 variant="each"):
    def operand(letter, shape, layout):
        order = list(range(len(shape)))
        if layout == "columns":
            order[-1], order[-2] = order[-2], order[-1]
        if layout == "heads" and len(shape) == 4:
            order[-2], order[-3] = order[-3], order[-2]
        return Operand(letter, shape, strides_of(shape, order, gap if layout == "gap" else 0),
                       accumulate=accumulate and letter == "y")
    oa = operand("a", [*batch, m, k], a)
    ob = operand("b", [k, n] if b_rank2 else [*batch, k, n], b)
    oy = operand("y", [*batch, m, n], y)
    va, vb = normal(rng, *oa.shape), normal(rng, *ob.shape)
    truth = va.astype(np.float64) @ vb.astype(np.float64)
    return Case(Kernel("matmul", [oy], [oa, ob], name, variant=variant), {"a": va, "b": vb}, {"y": truth})


def build_predict_class(name, rng, shape=(1, 1)):
    x = np.round(normal(rng, *shape), 1)  # some are equal
    truth = x.argmax(-1) if shape[-1] > 1 else x[..., 0] > 0
    kernel = Kernel("predict_class", [Operand("y", shape[:-1], dtype="int32_t")], [Operand("x", shape)], name)
    return Case(kernel, {"x": x}, {"y": truth.astype(np.int32)})


def build_embedding(name, rng, v=3, c=1, shape=(1,)):
    tokens, weight = rng.integers(0, v, shape).astype(np.int32), normal(rng, v, c)
    kernel = Kernel("embedding", [Operand("y", [*shape, c])],
                    [Operand("weight", [v, c]), Operand("tokens", shape, dtype="int32_t")], name)
    return Case(kernel, {"weight": weight, "tokens": tokens}, {"y": weight[tokens]})


def build_embedding_backward(name, rng, v=3, c=1, shape=(1,), accumulate=False):
    tokens, dy = rng.integers(0, v, shape).astype(np.int32), normal(rng, *shape, c)
    truth = np.zeros((v, c))
    np.add.at(truth, tokens.ravel(), dy.reshape(-1, c).astype(np.float64))
    kernel = Kernel("embedding_backward", [Operand("dweight", [v, c], accumulate=accumulate)],
                    [Operand("dy", [*shape, c]), Operand("tokens", shape, dtype="int32_t")], name, rows=v)
    return Case(kernel, {"dy": dy, "tokens": tokens}, {"dweight": truth})


def normalized(x, eps, centred):
    x = x.astype(np.float64)
    mean = x.mean(-1, keepdims=True) * centred
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + eps)
    return (x - mean) * rstd, mean[..., 0], rstd[..., 0]


def build_norm(kind, name, rng, shape=(1, 1), bias=True, centred=True, eps=1e-5):
    x, weight, b = normal(rng, *shape) + 1, normal(rng, shape[-1]), normal(rng, shape[-1])
    n, mean, rstd = normalized(x, eps, centred)
    rows = int(np.prod(shape[:-1]))
    inputs = [Operand("x", shape), Operand("weight", [shape[-1]])] + [Operand("bias", [shape[-1]])] * bias
    outputs = [Operand("y", shape)] + [Operand("mean", [rows])] * centred + [Operand("rstd", [rows])]
    return Case(Kernel(kind, outputs, inputs, name, eps=eps), {"x": x, "weight": weight, "bias": b},
                {"y": n * weight + b * bias, "mean": mean.ravel(), "rstd": rstd.ravel()})


def build_norm_backward(kind, name, rng, shape=(1, 1), bias=True, centred=True, eps=1e-5, accumulate=False,
                        add_dx=False, in_place=False):
    x, weight, dy = normal(rng, *shape) + 1, normal(rng, shape[-1]), normal(rng, *shape)
    n, mean, rstd = normalized(x, eps, centred)
    g = dy.astype(np.float64) * weight
    dx = (g - centred * g.mean(-1, keepdims=True) - n * (g * n).mean(-1, keepdims=True)) * rstd[..., None]
    c, rows = shape[-1], int(np.prod(shape[:-1]))
    inputs = [Operand("dy", shape), Operand("x", shape), Operand("weight", [c])]
    inputs += [Operand("mean", [rows])] * centred + [Operand("rstd", [rows])]
    outputs = [Operand("dx", shape, accumulate=add_dx), Operand("dweight", [c], accumulate=accumulate)]
    outputs += [Operand("dbias", [c], accumulate=accumulate)] * bias
    kernel = Kernel(kind, outputs, inputs, name, **({"bias": int(bias)} if centred else {}))
    return Case(kernel, {"dy": dy, "x": x, "weight": weight, "mean": mean.ravel(), "rstd": rstd.ravel()},
                {"dx": dx, "dweight": (dy * n).reshape(-1, c).sum(0), "dbias": dy.astype(np.float64).reshape(-1, c).sum(0)},
                {"dx": "dy"} if in_place else None, scales={"dx": float(np.abs(g * rstd[..., None]).max())})


def softmax64(x):
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def build_softmax(name, rng, shape=(1, 1), in_place=False):
    x = normal(rng, *shape) * 3
    return Case(Kernel("softmax", [Operand("y", shape)], [Operand("x", shape)], name), {"x": x},
                {"y": softmax64(x)}, {"y": "x"} if in_place else None)


def build_softmax_backward(name, rng, shape=(1, 1), in_place=False, accumulate=False):
    y, dy = softmax64(normal(rng, *shape) * 3).astype(np.float32), normal(rng, *shape)
    truth = y * (dy - (dy.astype(np.float64) * y).sum(-1, keepdims=True))
    kernel = Kernel("softmax_backward", [Operand("dx", shape, accumulate=accumulate)],
                    [Operand("dy", shape), Operand("y", shape)], name)
    return Case(kernel, {"dy": dy, "y": y}, {"dx": truth}, {"dx": "dy"} if in_place else None)


def build_log_sum_exp(name, rng, shape=(1,), nan=False):
    x = normal(rng, *shape) * 3
    x[0, 1:2] = np.nan if nan else x[0, 1:2]
    truth = np.log(np.exp(x.astype(np.float64)).sum(-1))
    return Case(Kernel("log_sum_exp", [Operand("y", shape[:-1])], [Operand("x", shape)], name), {"x": x}, {"y": truth})


def build_sum(name, rng, shape=(1,), axes=(0,), accumulate=False):
    x = normal(rng, *shape)
    remaining = [n for i, n in enumerate(shape) if i not in axes]
    kernel = Kernel("sum", [Operand("y", remaining, accumulate=accumulate)], [Operand("x", shape)], name, axes=list(axes))
    spread = np.sqrt(np.square(x.astype(np.float64)).sum(tuple(axes))).max()  # the sum itself may be near 0 by chance
    return Case(kernel, {"x": x}, {"y": x.astype(np.float64).sum(tuple(axes))}, scales={"y": spread})


def build_dropout(name, rng, shape=(1,), p=0.1, site=0, in_place=False):
    x, stream = normal(rng, *shape), int(rng.integers(0, 2**63))
    words = sequence_cases.words_of(x.size, site, stream)
    truth = np.where(words < round(p * 2**32), 0, x.ravel() / (1 - p)).reshape(shape)
    kernel = Kernel("dropout", [Operand("y", shape)], [Operand("x", shape)], name, random=True, p=p, site=site)
    return Case(kernel, {"x": x}, {"y": truth}, {"y": "x"} if in_place else None, stream=stream)


def build_slice_backward(name, rng, shape=(1,), axis=0, start=0, count=1):
    part = [count if i == axis else n for i, n in enumerate(shape)]
    dy, truth = normal(rng, *part), np.zeros(shape)
    truth[tuple(slice(start, start + count) if i == axis else slice(None) for i in range(len(shape)))] = dy
    kernel = Kernel("slice_backward", [Operand("dx", shape)], [Operand("dy", part)], name,
                    axis=axis, start=start, size=shape[axis])
    return Case(kernel, {"dy": dy}, {"dx": truth})


BUILDERS = {
    "matmul": build_matmul,
    "predict_class": build_predict_class,
    "embedding": build_embedding,
    "embedding_backward": build_embedding_backward,
    "layer_norm": lambda name, rng, **a: build_norm("layer_norm", name, rng, **a),
    "layer_norm_backward": lambda name, rng, **a: build_norm_backward("layer_norm_backward", name, rng, **a),
    "rms_norm": lambda name, rng, **a: build_norm("rms_norm", name, rng, bias=False, centred=False, **a),
    "rms_norm_backward": lambda name, rng, **a: build_norm_backward(
        "rms_norm_backward", name, rng, bias=False, centred=False, **a),
    "softmax": build_softmax,
    "softmax_backward": build_softmax_backward,
    "log_sum_exp": build_log_sum_exp,
    "sum": build_sum,
    "dropout": build_dropout,
    "slice_backward": build_slice_backward,
    **attention_cases.BUILDERS,
    **sequence_cases.BUILDERS,
    **image_cases.BUILDERS,
    **incremental_cases.BUILDERS,
    **loss_cases.BUILDERS,
}
KINDS = list(BUILDERS)

ROWS = [dict(shape=s) for s in [(1, 1), (3, 1), (1, 3), (5, 7), (7, 17), (3, 5, 33), (17, 64), (130, 65), (2, 384)]]
FIXED = {
    "matmul": [dict(m=m, n=n, k=k, a=a, b=b, y=y)
               for (m, n, k) in [(1, 1, 1), (5, 7, 3), (1, 17, 5), (17, 1, 7)]
               for (a, b, y) in [("rows", "rows", "rows"), ("columns", "rows", "rows"), ("rows", "columns", "rows"),
                                 ("columns", "columns", "columns"), ("gap", "gap", "gap")]]
    + [dict(batch=(3, 5), m=7, n=5, k=3, b_rank2=True, b="columns"), dict(batch=(3,), m=7, n=5, k=3, accumulate=True),
       dict(batch=(2, 3), m=7, n=5, k=3, a="heads", b="heads", y="heads"), dict(m=33, n=17, k=65, accumulate=True),
       dict(batch=(2, 3), m=17, n=5, k=3, a="heads", y="heads", b_rank2=True),
       dict(batch=(2,), m=128, n=128, k=128, a="columns", y="columns", variant="library"),
       dict(m=16, n=40, k=2000, variant="library")]  # whose sum the library divides among threads
    + [dict(m=m, n=n, k=k, a=a, b=b, y=y, accumulate=m > 200, variant=variant)
       for variant in ("parts", "primitive")
       for m, n, k in [(1, 1, 1), (5, 97, 33), (250, 40, 7)]
       for a, b, y in [("rows", "columns", "rows"), ("columns", "gap", "columns")]]
    + [dict(batch=(2, 3), m=7, n=5, k=3, a="heads", b="heads", y="heads", variant="primitive"),
       dict(batch=(2, 3), m=17, n=5, k=3, a="heads", y="heads", b_rank2=True, accumulate=True, variant="primitive")],
    "predict_class": ROWS + [dict(shape=(5, 1)), dict(shape=(3, 40, 65))],
    "embedding": [dict(v=3, c=1, shape=(1,)), dict(v=7, c=17, shape=(5, 3)), dict(v=65, c=384, shape=(3, 8))],
    "embedding_backward": [dict(v=3, c=1, shape=(1,)), dict(v=7, c=17, shape=(5, 3), accumulate=True),
                           dict(v=65, c=384, shape=(3, 80)), dict(v=5, c=300, shape=(33,), accumulate=True)],
    "layer_norm": ROWS + [dict(shape=(7, 17), bias=False)],
    "layer_norm_backward": ROWS + [dict(shape=(7, 17), bias=False), dict(shape=(130, 65), accumulate=True),
                                   dict(shape=(700, 40), in_place=True), dict(shape=(9, 33), add_dx=True)],
    "rms_norm": ROWS,
    "rms_norm_backward": ROWS + [dict(shape=(130, 65), accumulate=True), dict(shape=(700, 40), in_place=True),
                                 dict(shape=(9, 33), add_dx=True)],
    "softmax": ROWS + [dict(shape=(5, 77), in_place=True)],
    "softmax_backward": ROWS + [dict(shape=(5, 77), in_place=True), dict(shape=(5, 77), accumulate=True)],
    "log_sum_exp": ROWS,
    "sum": [dict(shape=s, axes=a, accumulate=acc) for s, a in
            [((1,), (0,)), ((17,), (0,)), ((5, 7), (0,)), ((5, 7), (1,)), ((5, 7), (0, 1)), ((3, 5, 7), (1,)),
             ((3, 5, 7), (0, 2)), ((3, 5, 65), (0, 1)), ((2, 3, 5, 7), (1, 3)), ((2, 3, 5, 7), (0, 2)),
             ((1, 5, 1, 7), (0, 2)), ((3, 1), (1,)), ((70, 130), (0,)), ((2, 70, 128), (1,)), ((100, 100), (0, 1)),
             ((2, 3, 2, 3, 2), (0, 2, 4))] for acc in (False, True)],
    "dropout": [dict(shape=(1,)), dict(shape=(5, 7), site=3), dict(shape=(17, 65), p=0.5), dict(shape=(64,), in_place=True)],
    "slice_backward": [dict(shape=(5,), start=1, count=3), dict(shape=(3, 7, 5), axis=1, start=2, count=5),
                       dict(shape=(3, 7, 5), axis=1, start=0, count=2), dict(shape=(3, 8), axis=1, start=3, count=4),
                       dict(shape=(3, 8), axis=0, start=0, count=3), dict(shape=(3, 8), axis=1, start=5),
                       dict(shape=(3, 1), axis=1)],
    **attention_cases.FIXED,
    **sequence_cases.FIXED,
    **image_cases.FIXED,
    **incremental_cases.FIXED,
    **loss_cases.FIXED,
}
def ways_of(kind, ways):
    """The ways to compile that a kind is tried in: what a library computes is the same in most of them."""
    return ("gcc", "sanitized") if kind in image_cases.BY_LIBRARY else ways


def fixed(kind):
    return FIXED[kind]


def fuzzed(kind, rng):
    """Arguments of a random case."""
    def size():
        return drawn_size(rng)

    def flag():
        return bool(rng.integers(2))

    for more in (attention_cases.FUZZED, sequence_cases.FUZZED, image_cases.FUZZED, incremental_cases.FUZZED, loss_cases.FUZZED):
        if kind in more:
            return more[kind](rng)
    shape = tuple(size() for _ in range(rng.integers(1, 4)))
    if kind == "matmul":
        layouts = ["rows", "columns", "gap"]
        return dict(batch=tuple(int(rng.integers(1, 4)) for _ in range(rng.integers(3))), m=size(), n=size(), k=size(),
                    a=str(rng.choice(layouts)), b=str(rng.choice(layouts)), y=str(rng.choice(layouts)), b_rank2=flag(),
                    accumulate=flag(), gap=int(rng.integers(5)), variant=str(rng.choice(["library", "each", "parts", "primitive"])))
    if kind.startswith("embedding"):
        return dict(v=size(), c=size(), shape=shape)
    if kind == "sum":
        axes = sorted(int(a) for a in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
        return dict(shape=shape, axes=axes, accumulate=flag())
    if kind == "slice_backward":
        axis = int(rng.integers(len(shape)))
        start = int(rng.integers(shape[axis]))
        return dict(shape=shape, axis=axis, start=start, count=int(rng.integers(1, shape[axis] - start + 1)))
    if kind == "dropout":
        return dict(shape=shape, p=float(rng.choice([0.1, 0.2, 0.5])), site=int(rng.integers(100)))
    return dict(shape=(size(), size()))


def build(kind, arguments, name, rng):
    return BUILDERS[kind](name, rng, **arguments)
