"""Cases of the kinds that work along an axis: recurrences, sums up to a place, and indices, with the float64 truth."""

import numpy as np

from case import Case, normal
from kernels import Kernel, Operand


def build_cumsum(name, rng, shape=(1,), axis=0, reverse=0):
    x = normal(rng, *shape)
    wide = np.flip(x, axis).astype(np.float64) if reverse else x.astype(np.float64)
    truth = np.flip(wide.cumsum(axis), axis) if reverse else wide.cumsum(axis)
    return Case(Kernel("cumsum", [Operand("y", shape)], [Operand("x", shape)], name, axis=axis, reverse=reverse), {"x": x}, {"y": truth})


def build_argmax(name, rng, shape=(1,), axis=0):
    x = np.round(normal(rng, *shape), 1)  # some are equal
    kept = [n for i, n in enumerate(shape) if i != axis]
    kernel = Kernel("argmax", [Operand("y", kept, dtype="int32_t")], [Operand("x", shape)], name, axis=axis)
    return Case(kernel, {"x": x}, {"y": x.argmax(axis)})


def build_top_k_mask(name, rng, shape=(1,), k=1):
    x = np.round(normal(rng, *shape), 1)  # with ties
    order = np.argsort(-x, axis=-1, kind="stable")
    truth = np.zeros(shape)
    np.put_along_axis(truth, order[..., :k], 1, -1)
    return Case(Kernel("top_k_mask", [Operand("y", shape)], [Operand("x", shape)], name, k=k), {"x": x}, {"y": truth})


def build_arange(name, rng, count=1):
    return Case(Kernel("arange", [Operand("y", [count], dtype="int32_t")], [], name, count=count), {}, {"y": np.arange(count)})


def build_top_k(name, rng, shape=(1,), k=1):
    x = np.round(normal(rng, *shape), 1)  # with ties
    kernel = Kernel("top_k", [Operand("y", [*shape[:-1], k], dtype="int32_t")], [Operand("x", shape)], name, k=k)
    return Case(kernel, {"x": x}, {"y": np.argsort(-x, axis=-1, kind="stable")[..., :k]})


def index_of(rng, shape, axis, count, extent):
    """An index of `count` places along an axis of `extent` ones."""
    return rng.integers(0, extent, [count if i == axis else n for i, n in enumerate(shape)]).astype(np.int32)


def build_gather(name, rng, shape=(1,), axis=0, count=1):
    x, index = normal(rng, *shape), index_of(rng, shape, axis, count, shape[axis])
    kernel = Kernel("gather", [Operand("y", index.shape)], [Operand("x", shape), Operand("index", index.shape, dtype="int32_t")],
                    name, axis=axis)
    return Case(kernel, {"x": x, "index": index}, {"y": np.take_along_axis(x, index, axis)})


def build_gather_backward(name, rng, shape=(1,), axis=0, count=1, accumulate=False):
    index = index_of(rng, shape, axis, count, shape[axis])
    dy, truth = normal(rng, *index.shape), np.zeros(shape)
    for place in np.ndindex(*index.shape):
        truth[(*place[:axis], index[place], *place[axis + 1 :])] += dy[place]
    kernel = Kernel("gather_backward", [Operand("dx", shape, accumulate=accumulate)],
                    [Operand("dy", index.shape), Operand("index", index.shape, dtype="int32_t")], name, axis=axis, size=shape[axis])
    return Case(kernel, {"dy": dy, "index": index}, {"dx": truth})


def lstm64(gates, weight):
    """What the layer keeps: y, cells and the open gates."""
    batch, steps, width = gates.shape[0], gates.shape[1], gates.shape[2] // 4
    y, cells, active = np.zeros((batch, steps, width)), np.zeros((batch, steps, width)), np.zeros(gates.shape)
    state = cell = np.zeros((batch, width))
    for t in range(steps):
        i, f, g, o = np.split(gates[:, t].astype(np.float64) + state @ weight.T.astype(np.float64), 4, -1)
        i, f, o, g = *(1 / (1 + np.exp(-x)) for x in (i, f, o)), np.tanh(g)
        cell = f * cell + i * g
        state = o * np.tanh(cell)
        y[:, t], cells[:, t], active[:, t] = state, cell, np.concatenate((i, f, g, o), -1)
    return y, cells, active


def build_lstm(name, rng, b=1, t=1, h=1):
    gates, weight = normal(rng, b, t, 4 * h), normal(rng, 4 * h, h) / np.float32(h**0.5)
    y, cells, active = lstm64(gates, weight)
    kernel = Kernel("lstm", [Operand("y", y.shape), Operand("cells", y.shape), Operand("active", active.shape)],
                    [Operand("gates", gates.shape), Operand("weight", weight.shape)], name)
    return Case(kernel, {"gates": gates, "weight": weight}, {"y": y, "cells": cells, "active": active})


def build_lstm_backward(name, rng, b=1, t=1, h=1):
    gates, weight, dy = normal(rng, b, t, 4 * h), normal(rng, 4 * h, h) / np.float32(h**0.5), normal(rng, b, t, h)
    y, cells, active = lstm64(gates, weight)
    dgates, carried, dcell = np.zeros(gates.shape), np.zeros((b, h)), np.zeros((b, h))
    for step in reversed(range(t)):
        i, f, g, o = np.split(active[:, step], 4, -1)
        before = cells[:, step - 1] if step else 0 * i
        dstate, squashed = dy[:, step] + carried, np.tanh(cells[:, step])
        dc = dcell + dstate * o * (1 - squashed**2)
        slopes = (dc * g * i * (1 - i), dc * before * f * (1 - f), dc * i * (1 - g**2), dstate * squashed * o * (1 - o))
        dgates[:, step] = np.concatenate(slopes, -1)
        dcell, carried = dc * f, dgates[:, step] @ weight
    kernel = Kernel("lstm_backward", [Operand("dgates", gates.shape)],
                    [Operand("dy", y.shape), Operand("weight", weight.shape), Operand("cells", y.shape), Operand("active", active.shape)],
                    name)
    return Case(kernel, {"dy": dy, "weight": weight, "cells": cells, "active": active}, {"dgates": dgates})


def scan_inputs(rng, b, t, d, n):
    given = {"u": normal(rng, b, t, d), "delta": np.abs(normal(rng, b, t, d)), "a": -np.abs(normal(rng, d, n)),
             "b": normal(rng, b, t, n), "c": normal(rng, b, t, n)}
    wide = {name: values.astype(np.float64) for name, values in given.items()}
    decay = np.exp(wide["delta"][..., None] * wide["a"])
    states = np.zeros((b, t + 1, d, n))
    for s in range(t):
        states[:, s + 1] = decay[:, s] * states[:, s] + (wide["delta"] * wide["u"])[:, s, :, None] * wide["b"][:, s, None]
    return given, wide, decay, states


def build_selective_scan(name, rng, b=1, t=1, d=1, n=1):
    given, wide, _, states = scan_inputs(rng, b, t, d, n)
    y = (states[:, 1:] * wide["c"][:, :, None]).sum(-1)
    kernel = Kernel("selective_scan", [Operand("y", y.shape), Operand("states", states[:, 1:].shape)],
                    [Operand(key, values.shape) for key, values in given.items()], name)
    return Case(kernel, given, {"y": y, "states": states[:, 1:]})


def build_selective_scan_backward(name, rng, b=1, t=1, d=1, n=1):
    given, wide, decay, states = scan_inputs(rng, b, t, d, n)
    dy, g = normal(rng, b, t, d), np.zeros((b, t, d, n))
    for s in reversed(range(t)):
        g[:, s] = dy[:, s, :, None] * wide["c"][:, s, None] + (decay[:, s + 1] * g[:, s + 1] if s + 1 < t else 0)
    past, drive = g * decay * states[:, :-1], wide["b"][:, :, None]
    truths = {"du": wide["delta"] * (g * drive).sum(-1), "ddelta": (past * wide["a"] + g * drive * wide["u"][..., None]).sum(-1),
              "da": (past * wide["delta"][..., None]).sum(1), "db": (g * (wide["delta"] * wide["u"])[..., None]).sum(2),
              "dc": (dy[..., None] * states[:, 1:]).sum(2)}
    inputs = {"dy": dy, **given, "states": states[:, 1:]}
    kernel = Kernel("selective_scan_backward", [Operand(key, values.shape) for key, values in truths.items()],
                    [Operand(key, values.shape) for key, values in inputs.items()], name)
    return Case(kernel, inputs, truths)


BUILDERS = {
    "arange": build_arange,
    "top_k_mask": build_top_k_mask,
    "lstm": build_lstm,
    "lstm_backward": build_lstm_backward,
    "selective_scan": build_selective_scan,
    "selective_scan_backward": build_selective_scan_backward,
    "cumsum": build_cumsum,
    "argmax": build_argmax,
    "top_k": build_top_k,
    "gather": build_gather,
    "gather_backward": build_gather_backward,
}
ALONG = [dict(shape=(1,)), dict(shape=(17,)), dict(shape=(5, 7), axis=1), dict(shape=(33, 5)), dict(shape=(3, 7, 5), axis=1)]
FIXED = {
    "arange": [dict(count=n) for n in (1, 7, 1000)],
    "top_k_mask": [dict(), dict(shape=(5, 8), k=2), dict(shape=(3, 5, 33), k=7), dict(shape=(9, 4), k=4)],
    "lstm": [dict(), dict(b=3, t=5, h=7), dict(b=2, t=9, h=32)],
    "lstm_backward": [dict(), dict(b=3, t=5, h=7), dict(b=2, t=9, h=32)],
    "selective_scan": [dict(), dict(b=3, t=5, d=7, n=3), dict(b=2, t=9, d=5, n=16)],
    "selective_scan_backward": [dict(), dict(b=3, t=5, d=7, n=3), dict(b=2, t=9, d=5, n=16)],
    "cumsum": ALONG + [dict(shape=(3, 70), axis=1, reverse=1), dict(shape=(9, 3, 5), reverse=1)],
    "argmax": ALONG,
    "top_k": [dict(), dict(shape=(5, 8), k=2), dict(shape=(3, 5, 33), k=7), dict(shape=(9, 4), k=4)],
    "gather": [dict(count=n, **a) for n, a in zip((1, 3, 9, 33, 2), ALONG)],
    "gather_backward": [dict(count=n, accumulate=n > 8, **a) for n, a in zip((1, 3, 9, 40, 2), ALONG)],
}


def size(rng):
    return int(rng.choice([1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 33]))


def fuzzed_lstm(rng):
    return dict(b=int(rng.integers(1, 4)), t=int(rng.integers(1, 9)), h=size(rng))


def fuzzed_scan(rng):
    return dict(b=int(rng.integers(1, 4)), t=int(rng.integers(1, 9)), d=size(rng), n=size(rng))


def fuzzed_along(rng):
    shape = tuple(size(rng) for _ in range(rng.integers(1, 4)))
    return dict(shape=shape, axis=int(rng.integers(len(shape))))


def fuzzed_top_k(rng):
    shape = (size(rng), size(rng))
    return dict(shape=shape, k=int(rng.integers(1, shape[-1] + 1)))


FUZZED = {
    "lstm": fuzzed_lstm,
    "lstm_backward": fuzzed_lstm,
    "selective_scan": fuzzed_scan,
    "selective_scan_backward": fuzzed_scan,
    "cumsum": lambda rng: dict(fuzzed_along(rng), reverse=int(rng.integers(2))),
    "argmax": fuzzed_along,
    "top_k": fuzzed_top_k,
    "top_k_mask": fuzzed_top_k,
    "arange": lambda rng: dict(count=size(rng)),
    "gather": lambda rng: dict(fuzzed_along(rng), count=size(rng)),
    "gather_backward": lambda rng: dict(fuzzed_along(rng), count=size(rng)),
}
