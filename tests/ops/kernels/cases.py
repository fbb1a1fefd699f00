"""Cases of every kind: shapes, strides, attributes, and the float64 truth."""

import image_cases
import numpy as np
import sequence_cases

from case import Case, decoded, encoded, normal, strides_of  # noqa: F401
from kernels import Kernel, Operand

SIZES = [1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33, 40, 64, 65]


def build_matmul(name, rng, batch=(), m=1, n=1, k=1, a="rows", b="rows", y="rows", b_rank2=False, accumulate=False, gap=0,
                 way="each"):
    def operand(letter, shape, lie):
        order = list(range(len(shape)))
        if lie == "columns":
            order[-1], order[-2] = order[-2], order[-1]
        if lie == "heads" and len(shape) == 4:
            order[-2], order[-3] = order[-3], order[-2]
        return Operand(letter, shape, strides_of(shape, order, gap if lie == "gap" else 0),
                       accumulate=accumulate and letter == "y")
    oa = operand("a", [*batch, m, k], a)
    ob = operand("b", [k, n] if b_rank2 else [*batch, k, n], b)
    oy = operand("y", [*batch, m, n], y)
    va, vb = normal(rng, *oa.shape), normal(rng, *ob.shape)
    truth = va.astype(np.float64) @ vb.astype(np.float64)
    return Case(Kernel("matmul", [oy], [oa, ob], name, way=way), {"a": va, "b": vb}, {"y": truth})


def build_decide(name, rng, shape=(1, 1)):
    x = np.round(normal(rng, *shape), 1)  # some are equal
    truth = x.argmax(-1) if shape[-1] > 1 else x[..., 0] > 0
    kernel = Kernel("decide", [Operand("y", shape[:-1], dtype="int32_t")], [Operand("x", shape)], name)
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


def attention64(q, k, v, causal, scale, window=0, starts=None):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = scale * (q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2))
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])), scores, -np.inf)
    if window:
        scores = np.where(np.triu(np.ones(scores.shape[-2:]), 1 - window), scores, -np.inf)
    if starts is not None:
        scores = np.where(np.arange(k.shape[2]) >= starts[:, None, :, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    lse = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
    p = np.exp(scores - lse)
    return p @ v.astype(np.float64), lse[..., 0], p


def head_operand(name, b, h, t, d, lie, accumulate=False):
    """lie: "dense" [B][H][T][D], "merged" [B][T][H][D], "qkv" [B][T][3 H][D]."""
    strides = {"dense": None, "merged": [t * h * d, d, h * d, 1], "qkv": [t * 3 * h * d, d, 3 * h * d, 1]}[lie]
    return Operand(name, [b, h, t, d], strides, accumulate=accumulate)


def packed(rng, b, t, documents):
    """Where the document of each place begins, with about so many in a row; None: there is one, and nothing says so."""
    begins = rng.random((b, t)) < (documents - 1) / t
    return np.maximum.accumulate(np.where(begins, np.arange(t), 0), 1).astype(np.int32) if documents else None


def build_attention(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, lie="dense", large=1.0, group=1, window=0, documents=0,
                    way="256"):
    s, kv = s or t, h // group
    q, k, v = normal(rng, b, h, t, d) * large, normal(rng, b, kv, s, d), normal(rng, b, kv, s, d)
    scale = float(d) ** -0.5
    starts = packed(rng, b, t, documents)
    y, lse, _ = attention64(q, k, v, causal, scale, window, starts)
    more = [Operand("starts", [b, t], dtype="int32_t")] if documents else []
    inputs = [head_operand("q", b, h, t, d, lie), head_operand("k", b, kv, s, d, lie), head_operand("v", b, kv, s, d, lie)]
    outputs = [head_operand("y", b, h, t, d, "dense" if lie == "dense" else "merged"), Operand("lse", [b, h, t])]
    return Case(Kernel("attention", outputs, inputs + more, name, causal=causal, window=window, scale=scale, way=way),
                {"q": q, "k": k, "v": v, **({"starts": starts} if documents else {})}, {"y": y, "lse": lse})


def by_group(x, group):
    """The sum over the heads of queries that share a head of keys."""
    return x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(2)


def build_rotary(name, rng, b=1, h=1, t=1, d=2, angles=1, interleaved=0, inverse=0, lie="dense"):
    x, cos, sin = normal(rng, b, h, t, d), normal(rng, t, angles), normal(rng, t, angles)
    first = np.arange(angles) * (2 if interleaved else 1)
    second = first + (1 if interleaved else angles)
    turned = (x[..., first] + 1j * x[..., second].astype(np.float64)) * (cos + 1j * sin.astype(np.float64) * (-1 if inverse else 1))
    y = x.astype(np.float64)
    y[..., first], y[..., second] = turned.real, turned.imag
    kernel = Kernel("rotary", [head_operand("y", b, h, t, d, "dense" if lie == "dense" else "merged")],
                    [head_operand("x", b, h, t, d, lie), Operand("cos", [t, angles]), Operand("sin", [t, angles])], name,
                    interleaved=interleaved, inverse=inverse)
    return Case(kernel, {"x": x, "cos": cos, "sin": sin}, {"y": y})


def build_table(name, rng, count=1, whole=0):
    numbers = list(range(5, 5 + count)) if whole else [float(x) for x in normal(rng, count)]
    kernel = Kernel("table", [Operand("y", [count], dtype="int32_t" if whole else "float")], [], name, count=count, whole=whole,
                    numbers=[float(x) for x in numbers])
    return Case(kernel, {}, {"y": numbers})


def build_attention_backward(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, lie="dense", accumulate=False, group=1,
                             window=0, documents=0, way="64"):
    s, kv = s or t, h // group
    q, k, v, dy = normal(rng, b, h, t, d), normal(rng, b, kv, s, d), normal(rng, b, kv, s, d), normal(rng, b, h, t, d)
    scale = float(d) ** -0.5
    starts = packed(rng, b, t, documents)
    y, lse, p = attention64(q, k, v, causal, scale, window, starts)
    more = [Operand("starts", [b, t], dtype="int32_t")] if documents else []
    dp = dy.astype(np.float64) @ v.astype(np.float64).repeat(group, 1).swapaxes(-1, -2)
    ds = scale * p * (dp - (dy * y).sum(-1, keepdims=True))
    out = "dense" if lie == "dense" else "merged"
    inputs = [head_operand("dy", b, h, t, d, out), head_operand("q", b, h, t, d, lie), head_operand("k", b, kv, s, d, lie),
              head_operand("v", b, kv, s, d, lie), head_operand("y", b, h, t, d, out), Operand("lse", [b, h, t])]
    outputs = [head_operand("dq", b, h, t, d, lie, accumulate), head_operand("dk", b, kv, s, d, lie, accumulate),
               head_operand("dv", b, kv, s, d, lie, accumulate)]
    return Case(Kernel("attention_backward", outputs, inputs + more, name, causal=causal, window=window, scale=scale, way=way),
                {"dy": dy, "q": q, "k": k, "v": v, "y": y, "lse": lse, **({"starts": starts} if documents else {})},
                {"dq": ds @ k.repeat(group, 1), "dk": by_group(ds.swapaxes(-1, -2) @ q, group),
                 "dv": by_group(p.swapaxes(-1, -2) @ dy, group)},
                scales={name: float(np.abs(scale * p * dp).max()) for name in ("dq", "dk")})


def entropy64(logits, targets, ignore):
    x = logits.astype(np.float64).reshape(-1, logits.shape[-1])
    t = targets.ravel()
    lse = np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1)
    counts = t != ignore
    picked = np.where(counts, lse - x[np.arange(len(t)), np.where(counts, t, 0)], 0)
    return x, t, lse, counts, picked


def entropy_inputs(rng, shape, v, ignored):
    logits, targets = normal(rng, *shape, v) * 3, rng.integers(0, v, shape).astype(np.int32)
    if ignored:
        targets[rng.random(shape) < 0.3] = -1
        targets.ravel()[0] = 0
    return logits, targets


def build_cross_entropy(name, rng, shape=(1,), v=2, ignored=False, smoothing=0.0, z=0.0):
    logits, targets = entropy_inputs(rng, shape, v, ignored)
    x, t, lse, counts, picked = entropy64(logits, targets, -1)
    picked = (1 - smoothing) * picked + np.where(counts, smoothing * (lse - x.mean(-1)) + z * lse**2, 0)
    rows = len(t)
    kernel = Kernel("cross_entropy", [Operand("loss", []), Operand("lse", [rows]), Operand("scale", [])],
                    [Operand("logits", [*shape, v]), Operand("targets", shape, dtype="int32_t")], name, ignore=-1,
                    smoothing=smoothing, z=z)
    return Case(kernel, {"logits": logits, "targets": targets},
                {"loss": picked.sum() / counts.sum(), "lse": lse, "scale": 1 / counts.sum()}, tolerance=1e-6, scales={"loss": 0.1, "lse": 0.1})


def build_cross_entropy_backward(name, rng, shape=(1,), v=2, ignored=False, in_place=False, accumulate=False, smoothing=0.0,
                                 z=0.0):
    logits, targets = entropy_inputs(rng, shape, v, ignored)
    x, t, lse, counts, _ = entropy64(logits, targets, -1)
    rows = len(t)
    p = np.exp(x - lse[:, None]) * (1 + 2 * z * lse[:, None]) - smoothing / v
    p[np.arange(rows)[counts], t[counts]] -= 1 - smoothing
    truth = (0.7 / counts.sum() * p * counts[:, None]).reshape(logits.shape)
    kernel = Kernel("cross_entropy_backward", [Operand("dlogits", [*shape, v], accumulate=accumulate)],
                    [Operand("d_loss", []), Operand("logits", [*shape, v]), Operand("lse", [rows]), Operand("scale", []),
                     Operand("targets", shape, dtype="int32_t")], name, ignore=-1, smoothing=smoothing, z=z)
    return Case(kernel, {"d_loss": np.float32(0.7), "logits": logits, "lse": lse, "scale": 1 / counts.sum(), "targets": targets},
                {"dlogits": truth}, {"dlogits": "logits"} if in_place else None,
                scales={"dlogits": 0.7 / counts.sum()})  # a probability near 1, less 1


def build_log_sum_exp(name, rng, shape=(1,)):
    x = normal(rng, *shape) * 3
    truth = np.log(np.exp(x.astype(np.float64)).sum(-1))
    return Case(Kernel("log_sum_exp", [Operand("y", shape[:-1])], [Operand("x", shape)], name), {"x": x}, {"y": truth})


def build_sum(name, rng, shape=(1,), axes=(0,), accumulate=False):
    x = normal(rng, *shape)
    kept = [n for i, n in enumerate(shape) if i not in axes]
    kernel = Kernel("sum", [Operand("y", kept, accumulate=accumulate)], [Operand("x", shape)], name, axes=list(axes))
    return Case(kernel, {"x": x}, {"y": x.astype(np.float64).sum(tuple(axes))})


def build_dropout(name, rng, shape=(1,), p=0.1, site=0, in_place=False):
    x, stream = normal(rng, *shape), int(rng.integers(0, 2**63))
    words = sequence_cases.words_of(x.size, site, stream)
    truth = np.where(words < round(p * 2**32), 0, x.ravel() / (1 - p)).reshape(shape)
    kernel = Kernel("dropout", [Operand("y", shape)], [Operand("x", shape)], name, random=True, p=p, site=site)
    return Case(kernel, {"x": x}, {"y": truth}, {"y": "x"} if in_place else None, stream=stream)


def build_slice_backward(name, rng, shape=(1,), axis=0, start=0, count=1, accumulate=False):
    part = [count if i == axis else n for i, n in enumerate(shape)]
    dy, truth = normal(rng, *part), np.zeros(shape)
    truth[tuple(slice(start, start + count) if i == axis else slice(None) for i in range(len(shape)))] = dy
    kernel = Kernel("slice_backward", [Operand("dx", shape, accumulate=accumulate)], [Operand("dy", part)], name,
                    axis=axis, start=start, size=shape[axis])
    return Case(kernel, {"dy": dy}, {"dx": truth})


BUILDERS = {
    "matmul": build_matmul,
    "decide": build_decide,
    "embedding": build_embedding,
    "embedding_backward": build_embedding_backward,
    "layer_norm": lambda name, rng, **a: build_norm("layer_norm", name, rng, **a),
    "layer_norm_backward": lambda name, rng, **a: build_norm_backward("layer_norm_backward", name, rng, **a),
    "rms_norm": lambda name, rng, **a: build_norm("rms_norm", name, rng, bias=False, centred=False, **a),
    "rms_norm_backward": lambda name, rng, **a: build_norm_backward(
        "rms_norm_backward", name, rng, bias=False, centred=False, **a),
    "softmax": build_softmax,
    "softmax_backward": build_softmax_backward,
    "attention": build_attention,
    "attention_backward": build_attention_backward,
    "rotary": build_rotary,
    "table": build_table,
    "cross_entropy": build_cross_entropy,
    "cross_entropy_backward": build_cross_entropy_backward,
    "log_sum_exp": build_log_sum_exp,
    "sum": build_sum,
    "dropout": build_dropout,
    "slice_backward": build_slice_backward,
    **sequence_cases.BUILDERS,
    **image_cases.BUILDERS,
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
       dict(batch=(2,), m=128, n=128, k=128, a="columns", y="columns", way="library")]
    + [dict(m=m, n=n, k=k, a=a, b=b, y=y, accumulate=m > 200, way=way)
       for way in ("parts", "primitive")
       for m, n, k in [(1, 1, 1), (5, 97, 33), (250, 40, 7)]
       for a, b, y in [("rows", "columns", "rows"), ("columns", "gap", "columns")]]
    + [dict(batch=(2, 3), m=7, n=5, k=3, a="heads", b="heads", y="heads", way="primitive"),
       dict(batch=(2, 3), m=17, n=5, k=3, a="heads", y="heads", b_rank2=True, accumulate=True, way="primitive")],
    "decide": ROWS + [dict(shape=(5, 1)), dict(shape=(3, 40, 65))],
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
    "attention": [dict(t=t, d=d, causal=c) for t, d in [(1, 1), (3, 5), (17, 7), (33, 17), (64, 32), (40, 16)] for c in (0, 1)]
    + [dict(b=2, h=3, t=5, d=7, lie="qkv"), dict(b=2, h=3, t=64, d=32, lie="qkv"), dict(b=1, h=2, t=70, d=64, lie="qkv"),
       dict(t=7, s=33, d=16, causal=0), dict(t=33, s=7, d=48, causal=1), dict(t=7, s=33, d=16, causal=1),
       dict(b=2, h=6, t=40, d=16, group=3, lie="qkv"), dict(h=4, t=70, d=7, group=2, causal=0), dict(h=2, t=33, d=16, group=2, window=5),
       dict(t=70, d=16, window=1), dict(t=300, d=8, window=33), dict(t=600, d=16, window=290), dict(t=20, d=5, window=64),
       dict(t=1, documents=2), dict(b=3, h=4, t=37, d=7, group=2, documents=5), dict(b=2, h=2, t=700, d=16, documents=3, lie="qkv"),
       dict(b=2, t=64, d=16, documents=64),
       dict(t=40, s=700, d=8, causal=0), dict(t=600, d=80, causal=1), dict(t=65, d=32, large=30.0)],
    "cross_entropy": [dict(shape=s, v=v) for s, v in [((1,), 2), ((3,), 1), ((5, 7), 17), ((130,), 65), ((2,), 5000)]]
    + [dict(shape=(50,), v=33, ignored=True), dict(shape=(5, 7), v=17, smoothing=0.1),
       dict(shape=(50,), v=33, ignored=True, smoothing=0.25, z=1e-4), dict(shape=(9,), v=5, z=0.01)],
    "cross_entropy_backward": [dict(shape=s, v=v) for s, v in [((1,), 2), ((3,), 1), ((5, 7), 17), ((130,), 65)]]
    + [dict(shape=(50,), v=33, ignored=True, in_place=True), dict(shape=(5, 7), v=17, accumulate=True),
       dict(shape=(5, 7), v=17, smoothing=0.1), dict(shape=(50,), v=33, ignored=True, smoothing=0.25, z=1e-4),
       dict(shape=(9,), v=5, z=0.01, accumulate=True)],
    "log_sum_exp": ROWS,
    "rotary": [dict(), dict(b=2, h=3, t=5, d=7, angles=2), dict(b=2, h=3, t=9, d=32, angles=16, lie="qkv", inverse=1),
               dict(b=1, h=2, t=33, d=64, angles=8, interleaved=1, lie="qkv"), dict(t=3, d=6, angles=3, interleaved=1, inverse=1)],
    "table": [dict(), dict(count=17), dict(count=8, whole=1)],
    "sum": [dict(shape=s, axes=a, accumulate=acc) for s, a in
            [((1,), (0,)), ((17,), (0,)), ((5, 7), (0,)), ((5, 7), (1,)), ((5, 7), (0, 1)), ((3, 5, 7), (1,)),
             ((3, 5, 7), (0, 2)), ((3, 5, 65), (0, 1)), ((2, 3, 5, 7), (1, 3)), ((2, 3, 5, 7), (0, 2)),
             ((1, 5, 1, 7), (0, 2)), ((3, 1), (1,)), ((70, 130), (0,)), ((2, 70, 128), (1,)), ((100, 100), (0, 1)),
             ((2, 3, 2, 3, 2), (0, 2, 4))] for acc in (False, True)],
    "dropout": [dict(shape=(1,)), dict(shape=(5, 7), site=3), dict(shape=(17, 65), p=0.5), dict(shape=(64,), in_place=True)],
    "slice_backward": [dict(shape=(5,), start=1, count=3), dict(shape=(3, 7, 5), axis=1, start=2, count=5),
                       dict(shape=(3, 7, 5), axis=1, start=0, count=2), dict(shape=(3, 8), axis=1, start=3, count=4, accumulate=True),
                       dict(shape=(3, 8), axis=0, start=0, count=3)],
    **sequence_cases.FIXED,
    **image_cases.FIXED,
}
FIXED["attention_backward"] = [{n: v for n, v in a.items() if n != "large"} for a in FIXED["attention"]] + [
    dict(b=2, h=2, t=33, d=16, lie="qkv", accumulate=True), dict(t=9, d=5, accumulate=True)]
for backward, ways in (("", ("64", "128")), ("_backward", ("32", "128"))):
    FIXED["attention" + backward] = FIXED["attention" + backward] + [dict(t=140, d=16, causal=c, way=w) for c in (0, 1) for w in ways]


def ways_of(kind, ways):
    """The ways to compile that a kind is tried in: what a library computes is the same in most of them."""
    return ("gcc", "sanitized") if kind in image_cases.BY_LIBRARY else ways


def fixed(kind):
    return FIXED[kind]


def fuzzed(kind, rng):
    """Arguments of a random case."""
    def size():
        return int(rng.choice(SIZES))

    def flag():
        return bool(rng.integers(2))

    for more in (sequence_cases.FUZZED, image_cases.FUZZED):
        if kind in more:
            return more[kind](rng)
    shape = tuple(size() for _ in range(rng.integers(1, 4)))
    if kind == "matmul":
        lies = ["rows", "columns", "gap"]
        return dict(batch=tuple(int(rng.integers(1, 4)) for _ in range(rng.integers(3))), m=size(), n=size(), k=size(),
                    a=str(rng.choice(lies)), b=str(rng.choice(lies)), y=str(rng.choice(lies)), b_rank2=flag(),
                    accumulate=flag(), gap=int(rng.integers(5)), way=str(rng.choice(["library", "each", "parts", "primitive"])))
    if kind.startswith("attention"):
        causal = int(flag())
        group = int(rng.integers(1, 3))
        return dict(b=int(rng.integers(1, 3)), h=group * int(rng.integers(1, 4)), t=size(), s=size(), d=size(), causal=causal,
                    group=group)
    if kind.startswith("embedding"):
        return dict(v=size(), c=size(), shape=shape)
    if kind.startswith("cross_entropy"):
        return dict(v=size(), shape=shape[:2], ignored=flag())
    if kind == "sum":
        axes = sorted(int(a) for a in rng.choice(len(shape), rng.integers(1, len(shape) + 1), replace=False))
        return dict(shape=shape, axes=axes, accumulate=flag())
    if kind == "slice_backward":
        axis = int(rng.integers(len(shape)))
        start = int(rng.integers(shape[axis]))
        return dict(shape=shape, axis=axis, start=start, count=int(rng.integers(1, shape[axis] - start + 1)), accumulate=flag())
    if kind == "table":
        return dict(count=size())
    if kind == "rotary":
        angles = size()
        return dict(b=int(rng.integers(1, 3)), h=int(rng.integers(1, 4)), t=size(), d=2 * angles + int(rng.integers(3)), angles=angles,
                    interleaved=int(flag()), inverse=int(flag()))
    if kind in ("dropout",):
        return dict(shape=shape, p=float(rng.choice([0.1, 0.2, 0.5])), site=int(rng.integers(100)))
    return dict(shape=(size(), size()))


def build(kind, arguments, name, rng):
    return BUILDERS[kind](name, rng, **arguments)
