"""Cases of the kinds by which a sequence is decoded: over new positions from position at[0] on, of which the first valid[0] count, after
what earlier ones left in a cache, whose memory the next cache takes; with the float64 truth. at: 0 begins a sequence."""

import numpy as np

from attention_cases import head_operand
from case import Case, drawn_size, normal
from kernels import Kernel, Operand
from sequence_cases import lstm64, scan_inputs


def build(kind, name, outputs, given, truths, at, valid=None, replaced=None, layout=None, **attributes):
    """The case of given arrays, then at and valid. replaced: the cache whose memory an output takes, by output."""
    given = {**given, "at": np.array([at], np.int32), **({} if valid is None else {"valid": np.array([valid], np.int32)})}
    inputs = [(layout or {}).get(key) or Operand(key, array.shape, dtype="int32_t" if array.dtype == np.int32 else "float") for key, array in given.items()]
    return Case(Kernel(kind, outputs, inputs, name, **attributes), given, truths, {"next": "cache"} if replaced is None else replaced)


def counted(extent, valid):
    return extent if valid is None else min(valid, extent)


def along(axis, begin, end):
    return (slice(None),) * axis + (slice(begin, end),)


def extended(shape, axis, extent):
    return [extent if i == axis else n for i, n in enumerate(shape)]


def short(rng, shape):
    """Numbers that 16 bits hold: a cache keeps what its operands had."""
    return (np.round(8 * normal(rng, *shape)) / 8).astype(np.float32)


def build_dynamic_slice(name, rng, shape=(1,), axis=0, count=1, at=0):
    x, first = normal(rng, *shape), min(at, shape[axis] - count)
    return build("dynamic_slice", name, [Operand("y", extended(shape, axis, count))], {"x": x}, {"y": x[along(axis, first, first + count)]}, at,
                 replaced={}, axis=axis, count=count)


def build_conv_cache(name, rng, shape=(1,), axis=0, n=1, at=0, valid=None, first=False):
    x, size, extent = normal(rng, *shape), extended(shape, axis, n), shape[axis]
    given = {"x": x, "cache": short(rng, size), **({"first": short(rng, size)} if first else {})}
    y = np.concatenate((given["cache" if at else "first"] if at or first else np.zeros(size), x), axis)
    count = counted(extent, valid)
    outputs = [Operand("y", y.shape), Operand("next", size)]
    return build("conv_cache_from" if first else "conv_cache", name, outputs, given, {"y": y, "next": y[along(axis, count, count + n)]}, at, valid,
                 axis=axis)


def build_keep(name, rng, shape=(1,)):
    x = normal(rng, *shape)
    operands = [Operand("x", shape), Operand("kept", shape)]
    return Case(Kernel("keep", [Operand("y", shape)], operands, name), {"x": x, "kept": normal(rng, *shape)}, {"y": x}, {"y": "kept"})


def build_cumsum(name, rng, shape=(1,), axis=0, at=0, valid=None):
    x, cache = normal(rng, *shape), normal(rng, *extended(shape, axis, 1))
    y, count = x.astype(np.float64).cumsum(axis) + (cache if at else 0), counted(shape[axis], valid)
    outputs = [Operand("y", shape), Operand("next", cache.shape)]
    return build("cumsum_incremental", name, outputs, {"x": x, "cache": cache}, {"y": y, "next": y[along(axis, count - 1, count)]}, at, valid,
                 axis=axis)


def build_lstm(name, rng, b=1, t=1, h=1, at=0, valid=None):
    given = {"gates": normal(rng, b, t, 4 * h), "weight": normal(rng, 4 * h, h) / np.float32(h**0.5), "cache": normal(rng, 2, b, h)}
    y, cells, active = lstm64(given["gates"], given["weight"], given["cache"] if at else (0, 0))
    count = counted(t, valid)
    truths = {"y": np.ma.array(y, mask=np.broadcast_to(np.arange(t)[:, None] >= count, y.shape)),
              "next": np.stack((y[:, count - 1], cells[:, count - 1]))}
    outputs = [Operand("y", y.shape), Operand("next", [2, b, h]), Operand("active", active.shape, workspace=True)]
    return build("lstm_incremental", name, outputs, given, truths, at, valid)


def build_scan(name, rng, b=1, t=1, d=1, n=1, at=0, valid=None):
    cache = normal(rng, b, d, n)
    given, wide, _, states = scan_inputs(rng, b, t, d, n, cache if at else 0)
    y = (states[:, 1:] * wide["c"][:, :, None]).sum(-1)
    outputs = [Operand("y", y.shape), Operand("next", cache.shape)]
    return build("selective_scan_incremental", name, outputs, {**given, "cache": cache}, {"y": y, "next": states[:, counted(t, valid)]}, at, valid)


def build_attention(name, rng, b=1, h=1, t=1, positions=8, d=1, group=1, window=0, cap=0, at=0, layout="dense"):
    kv, first, scale = h // group, min(at, positions - t), float(d) ** -0.5
    given = {"q": normal(rng, b, h, t, d), "k": normal(rng, b, kv, t, d), "v": normal(rng, b, kv, t, d),
             "k_cache": normal(rng, b, kv, positions, d), "v_cache": normal(rng, b, kv, positions, d)}
    following = {key: given[f"{key}_cache"].copy() for key in "kv"}
    for key in "kv":
        following[key][:, :, first : first + t] = given[key]
    keys, values = (following[key].astype(np.float64).repeat(group, 1) for key in "kv")
    ages = first + np.arange(t)[:, None] - np.arange(positions)
    scores = scale * given["q"] @ keys.swapaxes(-1, -2)
    scores = cap * np.tanh(scores / cap) if cap else scores
    scores = np.where((ages >= 0) & (ages < (window or positions)), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    truths = {"y": p / p.sum(-1, keepdims=True) @ values, "next_k": following["k"], "next_v": following["v"]}
    heads = {"q": h, "k": kv, "v": kv}
    operands = {key: head_operand(key, b, heads[key], t, d, layout) for key in heads}
    outputs = [head_operand("y", b, h, t, d, "dense" if layout == "dense" else "merged"), *(Operand(f"next_{key}", following[key].shape) for key in "kv")]
    return build("attention_cached", name, outputs, given, truths, at, replaced={"next_k": "k_cache", "next_v": "v_cache"}, layout=operands,
                 window=window, scale=scale, cap=cap)


BUILDERS = {
    "dynamic_slice": build_dynamic_slice,
    "conv_cache": build_conv_cache,
    "conv_cache_from": lambda name, rng, **a: build_conv_cache(name, rng, first=True, **a),
    "keep": build_keep,
    "cumsum_incremental": build_cumsum,
    "lstm_incremental": build_lstm,
    "selective_scan_incremental": build_scan,
    "attention_cached": build_attention,
}
# New sequences and old ones; all positions count, some, or more than there are.
POSITIONS = [dict(), dict(at=7), dict(valid=1), dict(at=1, valid=2), dict(at=40, valid=90)]
CACHED = [dict(shape=(1,)), dict(shape=(3, 5, 7), axis=1), dict(shape=(17, 5)), dict(shape=(2, 3, 33), axis=2), dict(shape=(2, 9, 4), axis=1)]
CONV = [dict(n=n, **how, **at) for n, how, at in zip((1, 2, 3, 4, 12), CACHED, POSITIONS)]
SIZES = [dict(), dict(b=3, t=5, h=7), dict(b=2, t=4, h=32), dict(b=2, t=3, h=5), dict(b=1, t=9, h=8)]
STATES = [dict(), dict(b=3, t=5, d=7, n=3), dict(b=2, t=9, d=5, n=16), dict(b=2, t=3, d=300, n=4), dict(b=1, t=4, d=33, n=8)]
FIXED = {
    "dynamic_slice": [dict(), dict(shape=(17,), count=4, at=3), dict(shape=(3, 7, 5), axis=1, count=2, at=5),
                      dict(shape=(3, 7, 5), axis=1, count=3, at=6), dict(shape=(4, 9), axis=1, count=9, at=2)],
    "conv_cache": CONV,
    "conv_cache_from": CONV,
    "keep": [dict(shape=shape) for shape in ((1,), (17,), (3, 5, 7), (2, 3, 33, 8))],
    "cumsum_incremental": [dict(how, **at) for how, at in zip(CACHED, POSITIONS)],
    "lstm_incremental": [dict(how, **at) for how, at in zip(SIZES, POSITIONS)],
    "selective_scan_incremental": [dict(how, **at) for how, at in zip(STATES, POSITIONS)],
    "attention_cached": [dict(), dict(positions=9, at=4, d=5), dict(b=2, h=3, t=5, positions=33, d=7, at=20),
                         dict(h=4, group=2, t=3, positions=40, d=16, at=39), dict(b=2, h=2, t=4, positions=70, d=33, at=50, window=9, layout="qkv"),
                         dict(h=2, t=9, positions=64, d=32, window=4, cap=0.5), dict(h=2, t=9, positions=9, d=8, window=3, at=2, layout="merged"),
                         dict(h=6, group=3, positions=300, d=64, at=290)],
}


def size(rng):
    return drawn_size(rng, 33)


def fuzzed_positions(rng, extent):
    valid = {"valid": int(rng.integers(1, extent + 2))} if rng.integers(2) else {}
    return dict(at=int(rng.integers(0, 3)), **valid)


def fuzzed_along(rng):
    shape = tuple(size(rng) for _ in range(rng.integers(1, 4)))
    return dict(shape=shape, axis=int(rng.integers(len(shape))))


def fuzzed_slice(rng):
    how = fuzzed_along(rng)
    extent = how["shape"][how["axis"]]
    return dict(how, count=int(rng.integers(1, extent + 1)), at=int(rng.integers(extent + 2)))


def fuzzed_cumsum(rng):
    how = fuzzed_along(rng)
    return dict(how, **fuzzed_positions(rng, how["shape"][how["axis"]]))


def fuzzed_sizes(*names):
    def fuzzed(rng):
        t = int(rng.integers(1, 9))
        return dict(b=int(rng.integers(1, 4)), t=t, **{name: size(rng) for name in names}, **fuzzed_positions(rng, t))

    return fuzzed


def fuzzed_attention(rng):
    group, t = int(rng.integers(1, 3)), int(rng.integers(1, 9))
    positions = t + 8 + int(rng.integers(65))
    return dict(b=int(rng.integers(1, 3)), h=group * int(rng.integers(1, 4)), t=t, positions=positions, d=drawn_size(rng), group=group,
                window=int(rng.integers(12)), cap=float(rng.choice([0, 0.3, 30])), at=int(rng.integers(positions + 1)))


FUZZED = {
    "dynamic_slice": fuzzed_slice,
    **{kind: lambda rng: dict(fuzzed_cumsum(rng), n=int(rng.integers(1, 6))) for kind in ("conv_cache", "conv_cache_from")},
    "keep": lambda rng: dict(shape=fuzzed_along(rng)["shape"]),
    "cumsum_incremental": fuzzed_cumsum,
    "lstm_incremental": fuzzed_sizes("h"),
    "selective_scan_incremental": fuzzed_sizes("d", "n"),
    "attention_cached": fuzzed_attention,
}
