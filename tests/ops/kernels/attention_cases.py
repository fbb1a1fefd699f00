"""Cases of attention and of what turns its operands, with the float64 truth."""

import numpy as np

from case import Case, drawn_size, normal, strides_of
from kernels import Kernel, Operand


def attention64(q, k, v, causal, scale, window=0, starts=None, bias=0.0):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    scores = scale * (q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2)) + bias
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:])), scores, -np.inf)
    if window:
        scores = np.where(np.triu(np.ones(scores.shape[-2:]), 1 - window), scores, -np.inf)
    if starts is not None:
        scores = np.where(np.arange(k.shape[2]) >= starts[:, None, :, None], scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    total = np.exp(scores - top).sum(-1, keepdims=True)
    p = np.exp(scores - top) / total
    return p @ v.astype(np.float64), (top + np.log(total))[..., 0], p


def lse_in_parts(q, k, causal, bias):
    """The highest score, which is -3e38 or more, and the logarithm of the sum of e^(score - highest); the scale is 0.7."""
    scores = 0.7 * (q.astype(np.float64) @ k.astype(np.float64).repeat(q.shape[1] // k.shape[1], 1).swapaxes(-1, -2)) + bias
    scores = np.where(np.tril(np.ones(scores.shape[-2:])) if causal else True, scores, -np.inf)
    top = scores.max(-1)
    rest = np.log(np.exp(scores - top[..., None]).sum(-1))
    return np.stack([np.maximum(top, -3e38), rest]).reshape(2, -1, q.shape[2])


def head_operand(name, b, h, t, d, layout, accumulate=False):
    """layout: "dense" [B][H][T][D], "merged" [B][T][H][D], "qkv" [B][T][3 H][D]."""
    strides = {"dense": None, "merged": [t * h * d, d, h * d, 1], "qkv": [t * 3 * h * d, d, 3 * h * d, 1]}[layout]
    return Operand(name, [b, h, t, d], strides, accumulate=accumulate)


def packed(rng, b, t, documents):
    """Where the document of each position begins, with about so many in a row; None: there is one, and nothing says so."""
    begins = rng.random((b, t)) < (documents - 1) / t
    return np.maximum.accumulate(np.where(begins, np.arange(t), 0), 1).astype(np.int32) if documents else None


def build_attention(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, layout="dense", large=1.0, group=1, window=0, documents=0,
                    variant="256"):
    s, kv = s or t, h // group
    q, k, v = normal(rng, b, h, t, d) * large, normal(rng, b, kv, s, d), normal(rng, b, kv, s, d)
    scale = float(d) ** -0.5
    starts = packed(rng, b, t, documents)
    y, lse, _ = attention64(q, k, v, causal, scale, window, starts)
    more = [Operand("starts", [b, t], dtype="int32_t")] if documents else []
    inputs = [head_operand("q", b, h, t, d, layout), head_operand("k", b, kv, s, d, layout), head_operand("v", b, kv, s, d, layout)]
    outputs = [head_operand("y", b, h, t, d, "dense" if layout == "dense" else "merged"), Operand("lse", [b, h, t])]
    return Case(Kernel("attention", outputs, inputs + more, name, causal=causal, window=window, scale=scale, variant=variant),
                {"q": q, "k": k, "v": v, **({"starts": starts} if documents else {})}, {"y": y, "lse": lse})


def by_group(x, group):
    """The sum over the heads of queries that share a head of keys."""
    return x.reshape(x.shape[0], -1, group, *x.shape[2:]).sum(2)


def build_rotary(name, rng, b=1, h=1, t=1, d=2, angles=1, interleaved=0, inverse=0, layout="dense"):
    x, cos, sin = normal(rng, b, h, t, d), normal(rng, t, angles), normal(rng, t, angles)
    first = np.arange(angles) * (2 if interleaved else 1)
    second = first + (1 if interleaved else angles)
    rotated = (x[..., first] + 1j * x[..., second].astype(np.float64)) * (cos + 1j * sin.astype(np.float64) * (-1 if inverse else 1))
    y = x.astype(np.float64)
    y[..., first], y[..., second] = rotated.real, rotated.imag
    kernel = Kernel("rotary", [head_operand("y", b, h, t, d, "dense" if layout == "dense" else "merged")],
                    [head_operand("x", b, h, t, d, layout), Operand("cos", [t, angles]), Operand("sin", [t, angles])], name,
                    interleaved=interleaved, inverse=inverse)
    return Case(kernel, {"x": x, "cos": cos, "sin": sin}, {"y": y})


def build_table(name, rng, count=1, whole=0):
    numbers = list(range(5, 5 + count)) if whole else [float(x) for x in normal(rng, count)]
    kernel = Kernel("table", [Operand("y", [count], dtype="int32_t" if whole else "float")], [], name, count=count, whole=whole,
                    numbers=[float(x) for x in numbers])
    return Case(kernel, {}, {"y": numbers})


def build_attention_backward(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, layout="dense", accumulate=False, group=1,
                             window=0, documents=0, variant="64"):
    s, kv = s or t, h // group
    q, k, v, dy = normal(rng, b, h, t, d), normal(rng, b, kv, s, d), normal(rng, b, kv, s, d), normal(rng, b, h, t, d)
    scale = float(d) ** -0.5
    starts = packed(rng, b, t, documents)
    y, lse, p = attention64(q, k, v, causal, scale, window, starts)
    more = [Operand("starts", [b, t], dtype="int32_t")] if documents else []
    dp = dy.astype(np.float64) @ v.astype(np.float64).repeat(group, 1).swapaxes(-1, -2)
    ds = scale * p * (dp - (dy * y).sum(-1, keepdims=True))
    out = "dense" if layout == "dense" else "merged"
    inputs = [head_operand("dy", b, h, t, d, out), head_operand("q", b, h, t, d, layout), head_operand("k", b, kv, s, d, layout),
              head_operand("v", b, kv, s, d, layout), head_operand("y", b, h, t, d, out), Operand("lse", [b, h, t])]
    outputs = [head_operand("dq", b, h, t, d, layout, accumulate), head_operand("dk", b, kv, s, d, layout, accumulate),
               head_operand("dv", b, kv, s, d, layout, accumulate)]
    return Case(Kernel("attention_backward", outputs, inputs + more, name, causal=causal, window=window, scale=scale, variant=variant),
                {"dy": dy, "q": q, "k": k, "v": v, "y": y, "lse": lse, **({"starts": starts} if documents else {})},
                {"dq": ds @ k.repeat(group, 1), "dk": by_group(ds.swapaxes(-1, -2) @ q, group),
                 "dv": by_group(p.swapaxes(-1, -2) @ dy, group)},
                scales={name: float(np.abs(scale * p * dp).max()) for name in ("dq", "dk")})


def drawn_bias(rng, b, h, t, s, wide, layout):
    """A bias with the dimensions of the scores that `wide` has a 1 for, and its operand: with gaps between rows, as views have them.
    All keys of every second query are hidden, or of every second sample."""
    shape = [n if w else 1 for n, w in zip((b, h, t, s), wide)]
    bias = normal(rng, *shape)
    bias.reshape(-1)[:: 7] = [-3.4028235e38] if s > 1 else 0.0
    bias[..., 0] = 0.5
    bias[(..., slice(1, None, 2), slice(None)) if wide[2] else slice(1, None, 2)] = -3.4028235e38
    return bias, Operand("bias", shape, None if layout == "dense" else strides_of(shape, gap=3))


def build_biased_attention(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, layout="dense", group=1, wide=(0, 1, 1, 1), variant="256"):
    s, kv = s or t, h // group
    q, k, v = normal(rng, b, h, t, d), normal(rng, b, kv, s, d), normal(rng, b, kv, s, d)
    bias, operand = drawn_bias(rng, b, h, t, s, wide, layout)
    y, _, _ = attention64(q, k, v, causal, 0.7, bias=bias.astype(np.float64))
    inputs = [head_operand("q", b, h, t, d, layout), head_operand("k", b, kv, s, d, layout), head_operand("v", b, kv, s, d, layout), operand]
    outputs = [head_operand("y", b, h, t, d, "dense" if layout == "dense" else "merged"), Operand("lse", [2, b * h, t])]
    return Case(Kernel("biased_attention", outputs, inputs, name, causal=causal, window=0, scale=0.7, variant=variant),
                {"q": q, "k": k, "v": v, "bias": bias}, {"y": y, "lse": np.ma.masked_less(lse_in_parts(q, k, causal, bias), -1e38)})


def build_biased_attention_backward(name, rng, b=1, h=1, t=1, s=None, d=1, causal=1, layout="dense", accumulate=False, group=1,
                                    wide=(0, 1, 1, 1), learnt=1, parts=1, variant="64"):
    s, kv = s or t, h // group
    q, k, v, dy = normal(rng, b, h, t, d), normal(rng, b, kv, s, d), normal(rng, b, kv, s, d), normal(rng, b, h, t, d)
    bias, operand = drawn_bias(rng, b, h, t, s, wide, layout)
    y, _, p = attention64(q, k, v, causal, 0.7, bias=bias.astype(np.float64))
    dp = dy.astype(np.float64) @ v.astype(np.float64).repeat(group, 1).swapaxes(-1, -2)
    slopes = p * (dp - (dy * y).sum(-1, keepdims=True))
    ds, out = 0.7 * slopes, "dense" if layout == "dense" else "merged"
    inputs = [head_operand("dy", b, h, t, d, out), head_operand("q", b, h, t, d, layout), head_operand("k", b, kv, s, d, layout),
              head_operand("v", b, kv, s, d, layout), head_operand("y", b, h, t, d, out), Operand("lse", [2, b * h, t]), operand]
    outputs = [head_operand("dq", b, h, t, d, layout, accumulate), head_operand("dk", b, kv, s, d, layout, accumulate),
               head_operand("dv", b, kv, s, d, layout, accumulate)]
    truths = {"dq": ds @ k.repeat(group, 1), "dk": by_group(ds.swapaxes(-1, -2) @ q, group), "dv": by_group(p.swapaxes(-1, -2) @ dy, group)}
    if learnt:
        samples = b if wide[0] else 1
        outputs += [Operand("dbias", [samples, h, t, s], accumulate=accumulate),
                    Operand("bias_sums", [b if wide[0] else parts, h, t, s], workspace=True)]
        truths["dbias"] = slopes if wide[0] else slopes.sum(0, keepdims=True)
    return Case(Kernel("biased_attention_backward", outputs, inputs, name, causal=causal, window=0, scale=0.7, variant=variant),
                {"dy": dy, "q": q, "k": k, "v": v, "y": y, "lse": lse_in_parts(q, k, causal, bias), "bias": bias}, truths,
                scales={name: float(np.abs(p * dp).max()) for name in ("dq", "dk", "dbias")})


BUILDERS = {"attention": build_attention, "attention_backward": build_attention_backward, "biased_attention": build_biased_attention,
            "biased_attention_backward": build_biased_attention_backward, "rotary": build_rotary, "table": build_table}
FIXED = {
    "attention": [dict(t=t, d=d, causal=c) for t, d in [(1, 1), (3, 5), (17, 7), (33, 17), (64, 32), (40, 16)] for c in (0, 1)]
    + [dict(b=2, h=3, t=5, d=7, layout="qkv"), dict(b=2, h=3, t=64, d=32, layout="qkv"), dict(b=1, h=2, t=70, d=64, layout="qkv"),
       dict(t=7, s=33, d=16, causal=0), dict(t=33, s=7, d=48, causal=1), dict(t=7, s=33, d=16, causal=1),
       dict(b=2, h=6, t=40, d=16, group=3, layout="qkv"), dict(h=4, t=70, d=7, group=2, causal=0), dict(h=2, t=33, d=16, group=2, window=5),
       dict(t=70, d=16, window=1), dict(t=300, d=8, window=33), dict(t=600, d=16, window=290), dict(t=20, d=5, window=64),
       dict(t=1, documents=2), dict(b=3, h=4, t=37, d=7, group=2, documents=5), dict(b=2, h=2, t=700, d=16, documents=3, layout="qkv"),
       dict(b=2, t=64, d=16, documents=64), dict(b=2, h=2, t=33, d=16, group=2),
       dict(t=40, s=700, d=8, causal=0), dict(t=600, d=80, causal=1), dict(t=65, d=32, large=30.0)],
    "rotary": [dict(), dict(b=2, h=3, t=5, d=7, angles=2), dict(b=2, h=3, t=9, d=32, angles=16, layout="qkv", inverse=1),
               dict(b=1, h=2, t=33, d=64, angles=8, interleaved=1, layout="qkv"), dict(t=3, d=6, angles=3, interleaved=1, inverse=1)],
    "table": [dict(), dict(count=17), dict(count=8, whole=1)],
}
FIXED["attention_backward"] = [{n: v for n, v in a.items() if n != "large"} for a in FIXED["attention"]] + [
    dict(b=2, h=2, t=33, d=16, layout="qkv", accumulate=True), dict(t=9, d=5, accumulate=True)]
FIXED["biased_attention"] = [dict(t=t, d=d, causal=c) for t, d in [(1, 1), (3, 5), (33, 17), (64, 32)] for c in (0, 1)] + [
    dict(b=2, h=4, t=70, d=16, group=2, layout="qkv"), dict(t=7, s=40, d=16, causal=0), dict(b=2, h=2, t=40, d=7, causal=0, wide=(1, 0, 0, 1)),
    dict(b=2, h=3, t=64, d=8, wide=(1, 1, 1, 1)), dict(b=2, h=2, t=300, d=8, causal=0, layout="qkv"),
    dict(h=2, t=140, d=16, causal=1, variant="64"), dict(t=33, d=8, wide=(0, 0, 1, 0))]
FIXED["biased_attention_backward"] = FIXED["biased_attention"][:-2] + [
    dict(b=4, h=2, t=40, d=16, parts=2, layout="qkv", accumulate=True), dict(b=3, h=2, t=33, d=5, parts=1, causal=0), dict(b=4, t=33, d=5, parts=2),
    dict(b=2, h=2, t=33, d=16, causal=0, learnt=0, wide=(1, 0, 0, 1)), dict(h=2, t=140, d=16, variant="32"), dict(h=2, t=140, d=16, causal=0)]
for backward, variants in (("", ("64", "128")), ("_backward", ("32", "128"))):
    FIXED["attention" + backward] = FIXED["attention" + backward] + [dict(t=140, d=16, causal=c, variant=w) for c in (0, 1) for w in variants]


def fuzzed_attention(rng):
    group = int(rng.integers(1, 3))
    return dict(b=int(rng.integers(1, 3)), h=group * int(rng.integers(1, 4)), t=drawn_size(rng), s=drawn_size(rng), d=drawn_size(rng),
                causal=int(rng.integers(2)), group=group)


def fuzzed_rotary(rng):
    angles = drawn_size(rng)
    return dict(b=int(rng.integers(1, 3)), h=int(rng.integers(1, 4)), t=drawn_size(rng), d=2 * angles + int(rng.integers(3)), angles=angles,
                interleaved=int(rng.integers(2)), inverse=int(rng.integers(2)))


FUZZED = {
    "attention": fuzzed_attention,
    "attention_backward": fuzzed_attention,
    "biased_attention": fuzzed_attention,
    "biased_attention_backward": fuzzed_attention,
    "rotary": fuzzed_rotary,
    "table": lambda rng: dict(count=drawn_size(rng)),
}
