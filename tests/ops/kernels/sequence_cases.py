"""Cases of the kinds that work along an axis: recurrences, sums up to a position, and indices, with the float64 truth."""

import functools

import gguf
import ml_dtypes
import numpy as np

from case import Case, drawn_size, normal
from kernels import Kernel, Operand


def build_cumsum(name, rng, shape=(1,), axis=0, reverse=0):
    x = normal(rng, *shape)
    wide = np.flip(x, axis).astype(np.float64) if reverse else x.astype(np.float64)
    truth = np.flip(wide.cumsum(axis), axis) if reverse else wide.cumsum(axis)
    return Case(Kernel("cumsum", [Operand("y", shape)], [Operand("x", shape)], name, axis=axis, reverse=reverse), {"x": x}, {"y": truth})


def build_argmax(name, rng, shape=(1,), axis=0):
    x = np.round(normal(rng, *shape), 1)  # some are equal
    remaining = [n for i, n in enumerate(shape) if i != axis]
    kernel = Kernel("argmax", [Operand("y", remaining, dtype="int32_t")], [Operand("x", shape)], name, axis=axis)
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
    """An index of `count` positions along an axis of `extent` ones."""
    return rng.integers(0, extent, [count if i == axis else n for i, n in enumerate(shape)]).astype(np.int32)


def build_gather(name, rng, shape=(1,), axis=0, count=1):
    x, index = normal(rng, *shape), index_of(rng, shape, axis, count, shape[axis])
    kernel = Kernel("gather", [Operand("y", index.shape)], [Operand("x", shape), Operand("index", index.shape, dtype="int32_t")],
                    name, axis=axis)
    return Case(kernel, {"x": x, "index": index}, {"y": np.take_along_axis(x, index, axis)})


def build_gather_backward(name, rng, shape=(1,), axis=0, count=1, accumulate=False):
    index = index_of(rng, shape, axis, count, shape[axis])
    dy, truth = normal(rng, *index.shape), np.zeros(shape)
    for position in np.ndindex(*index.shape):
        truth[(*position[:axis], index[position], *position[axis + 1 :])] += dy[position]
    kernel = Kernel("gather_backward", [Operand("dx", shape, accumulate=accumulate)],
                    [Operand("dy", index.shape), Operand("index", index.shape, dtype="int32_t")], name, axis=axis, size=shape[axis])
    return Case(kernel, {"dy": dy, "index": index}, {"dx": truth})


def lstm64(gates, weight, cache=(0, 0)):
    """What the layer keeps: y, cells and the open gates. cache: y and the cells before the first step."""
    batch, steps, width = gates.shape[0], gates.shape[1], gates.shape[2] // 4
    y, cells, active = np.zeros((batch, steps, width)), np.zeros((batch, steps, width)), np.zeros(gates.shape)
    state, cell = (part + np.zeros((batch, width)) for part in cache)
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
    kernel = Kernel("lstm", [Operand("y", y.shape), Operand("cells", y.shape), Operand("active", active.shape),
                             Operand("workspace", [2, b, h], workspace=True)],
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
    kernel = Kernel("lstm_backward", [Operand("dgates", gates.shape), Operand("workspace", [2, b, h], workspace=True)],
                    [Operand("dy", y.shape), Operand("weight", weight.shape), Operand("cells", y.shape), Operand("active", active.shape)],
                    name)
    return Case(kernel, {"dy": dy, "weight": weight, "cells": cells, "active": active}, {"dgates": dgates})


def scan_inputs(rng, b, t, d, n, start=0):
    given = {"u": normal(rng, b, t, d), "delta": np.abs(normal(rng, b, t, d)), "a": -np.abs(normal(rng, d, n)),
             "b": normal(rng, b, t, n), "c": normal(rng, b, t, n)}
    wide = {name: values.astype(np.float64) for name, values in given.items()}
    decay = np.exp(wide["delta"][..., None] * wide["a"])
    states = np.zeros((b, t + 1, d, n))
    states[:, 0] = start
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


def build_flip(name, rng, shape=(1,), axis=0):
    x = normal(rng, *shape)
    return Case(Kernel("flip", [Operand("y", shape)], [Operand("x", shape)], name, axis=axis), {"x": x}, {"y": np.flip(x, axis)})


def build_roll(name, rng, shape=(2,), axis=0, shift=1):
    x = normal(rng, *shape)
    kernel = Kernel("roll", [Operand("y", shape)], [Operand("x", shape)], name, axis=axis, shift=shift)
    return Case(kernel, {"x": x}, {"y": np.roll(x, shift, axis)})


def positions(rng, rows, columns, elements):
    """Rows and columns of a sparse matrix's elements, some in one position."""
    return {"rows": rng.integers(0, rows, elements).astype(np.int32), "columns": rng.integers(0, columns, elements).astype(np.int32)}


def build_sparse_matmul(name, rng, rows=1, columns=1, elements=1, width=1, accumulate=False):
    at, values, x, matrix = positions(rng, rows, columns, elements), normal(rng, elements), normal(rng, columns, width), np.zeros((rows, columns))
    np.add.at(matrix, (at["rows"], at["columns"]), values)
    inputs = [Operand("rows", [elements], dtype="int32_t"), Operand("columns", [elements], dtype="int32_t"),
              Operand("values", [elements]), Operand("x", x.shape)]
    kernel = Kernel("sparse_matmul", [Operand("y", [rows, width], accumulate=accumulate)], inputs, name)
    return Case(kernel, {**at, "values": values, "x": x}, {"y": matrix @ x})


def build_sparse_dot(name, rng, rows=1, columns=1, elements=1, width=1):
    at, a, b = positions(rng, rows, columns, elements), normal(rng, rows, width), normal(rng, columns, width)
    truth = (a.astype(np.float64)[at["rows"]] * b[at["columns"]]).sum(1)
    inputs = [Operand("rows", [elements], dtype="int32_t"), Operand("columns", [elements], dtype="int32_t"), Operand("a", a.shape),
              Operand("b", b.shape)]
    return Case(Kernel("sparse_dot", [Operand("y", [elements])], inputs, name), {**at, "a": a, "b": b}, {"y": truth})


def build_sparse_rows(name, rng, rows=1, most=4):
    counts = rng.integers(0, most, rows)
    counts[-1] += not counts.any()
    starts = np.concatenate(([0], counts.cumsum()[:-1])).astype(np.int32)
    kernel = Kernel("sparse_rows", [Operand("y", [counts.sum()], dtype="int32_t")], [Operand("starts", [rows], dtype="int32_t")], name)
    return Case(kernel, {"starts": starts}, {"y": np.repeat(np.arange(rows), counts)})


def philox(counter, key):
    """Philox-4x32-10 over arrays of counters, [4, n]."""
    w, mask = [c.astype(np.uint64) for c in counter], np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = w[0] * np.uint64(0xD2511F53), w[2] * np.uint64(0xCD9E8D57)
        w = [(b >> np.uint64(32)) ^ w[1] ^ np.uint64(key[0]), b & mask,
             (a >> np.uint64(32)) ^ w[3] ^ np.uint64(key[1]), a & mask]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(w)


def grouped(index, groups, capacity):
    """Positions sorted by group, by the order in which a block's rows fill it; and where each group starts."""
    lists, dropped = [[] for _ in range(groups)], []
    for b, block in enumerate(index.reshape(-1, *index.shape[-2:])):
        taken = [0] * groups
        for c in range(block.shape[1]):
            for r in range(len(block)):
                group = block[r, c]
                taken[group] += 1
                (lists[group] if not capacity or taken[group] <= capacity else dropped).append((b * len(block) + r) * block.shape[1] + c)
    return np.array(sum(lists, []) + dropped, np.int32), np.cumsum([0] + [len(positions) for positions in lists]).astype(np.int32)


def build_group(kind, name, rng, shape=(1, 1), groups=1, capacity=0, rows=0):
    index = rng.integers(0, groups, shape).astype(np.int32)
    order, starts = grouped(index, groups, capacity)
    inputs = [Operand("index", shape, dtype="int32_t")] + [Operand("starts", [groups + 1], dtype="int32_t")] * (kind == "group_order")
    truth = (order // shape[-1] if rows else order) if kind == "group_order" else starts
    kernel = Kernel(kind, [Operand("y", truth.shape, dtype="int32_t")], inputs, name, groups=groups, capacity=capacity, rows=rows)
    return Case(kernel, {"index": index, "starts": starts}, {"y": truth})


def group_bounds(rng, rows, groups):
    return np.sort(np.concatenate(([0], rng.integers(0, rows + 1, groups)))).astype(np.int32)


def build_grouped_matmul(name, rng, rows=1, k=1, n=1, groups=1, straight=0):
    x, starts = normal(rng, rows, k), group_bounds(rng, rows, groups)
    weights, truth = {f"x{g + 2}": normal(rng, *((k, n) if straight else (n, k))) for g in range(groups)}, np.zeros((rows, n))
    for a, b, weight in zip(starts, starts[1:], weights.values()):
        truth[a:b] = x[a:b].astype(np.float64) @ (weight if straight else weight.T)
    inputs = [Operand("x", x.shape), Operand("starts", starts.shape, dtype="int32_t")] + [Operand(key, w.shape) for key, w in weights.items()]
    return Case(Kernel("grouped_matmul", [Operand("y", truth.shape)], inputs, name, straight=straight), {"x": x, "starts": starts, **weights},
                {"y": truth})


def build_grouped_matmul_weight(name, rng, rows=1, k=1, n=1, groups=1, accumulate=False):
    a, b, starts = normal(rng, rows, k), normal(rng, rows, n), group_bounds(rng, rows, groups)
    inputs = [Operand("a", a.shape), Operand("b", b.shape), Operand("starts", starts.shape, dtype="int32_t")]
    adds = [bool(accumulate) and (accumulate == "all" or g % 2 == 0) for g in range(groups)]
    outputs = [Operand(f"y{g}", [k, n], accumulate=adds[g]) for g in range(groups)]
    truth = {f"y{g}": a[at:end].astype(np.float64).T @ b[at:end] for g, (at, end) in enumerate(zip(starts, starts[1:]))}
    return Case(Kernel("grouped_matmul_weight", outputs, inputs, name), {"a": a, "b": b, "starts": starts}, truth)


NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]
FP4 = [sign * magnitude for sign in (1, -1) for magnitude in (0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4)]


def drawn_codes(rng, form, out, columns, group):
    """Codes and scales that are drawn, and the matrix that they stand for, by numpy as gguf-py's and torchao's dequantization say it.
    Scales of GGUF's in float16 are powers of two."""
    whole = lambda *shape: rng.integers(0, 256, shape).astype(np.uint8)
    halves = lambda codes, size: np.concatenate((codes.reshape(-1, size) & 15, codes.reshape(-1, size) >> 4), 1).astype(np.float64)
    half = lambda *shape: (2.0 ** rng.integers(-6, 2, shape)).astype(np.float16)
    if form == "INT8_GROUPS":
        codes, scales = rng.integers(-128, 128, (out, columns)).astype(np.int8), rng.random((out, columns // group), np.float32)
        return {"codes": codes, "absmax": scales}, codes * np.repeat(scales.astype(np.float64), group, 1)
    if form == "INT4_GROUPS":
        codes, scales = whole(out, columns // 2), rng.random((out, columns // group, 2), np.float32) - np.float32(0.5)
        parts = [np.repeat(scales[..., i].astype(np.float64), group, 1) for i in (0, 1)]
        return {"codes": codes, "absmax": scales}, (halves(codes, 16).reshape(out, columns) - 8) * parts[0] + parts[1]
    if form == "Q4_K":
        blocks = out * columns // 256
        d, m, packed, codes = half(blocks, 1), half(blocks, 1), whole(blocks, 12), whole(blocks, 128)
        low, high, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
        a, b = (np.concatenate((x & 63, y | (x >> 6) << 4), 1).astype(np.float64) for x, y in ((low, third & 15), (high, third >> 4)))
        elements = halves(codes, 32).reshape(blocks, 8, 32) * (d * a)[..., None] - (m * b)[..., None]
        codes = np.concatenate((d.view(np.uint8), m.view(np.uint8), packed, codes), 1)
        return {"codes": codes.reshape(out, columns // 256, 144)}, elements.reshape(out, columns)
    blocks, size = out * columns // 32, 32 if form == "Q8_0" else 16
    d, codes = half(blocks, 1), whole(blocks, size)
    elements = codes.view(np.int8) * d.astype(np.float64) if form == "Q8_0" else (halves(codes, 16) - 8) * d
    return {"codes": np.concatenate((d.view(np.uint8), codes), 1).reshape(out, columns // 32, size + 2)}, elements.reshape(out, columns)


def levels_codes(rng, form, count, nested):
    """Of bitsandbytes' levels: scales of scales are of the dynamic map's 0, its largest, and others between."""
    blocks = (count + 63) // 64
    codes = rng.integers(0, 256, ((count + 1) // 2, 1)).astype(np.uint8)
    halves = np.stack((codes.ravel() >> 4, codes.ravel() & 15), 1).ravel()[:count]
    inputs = {"codes": codes}
    if nested:
        inputs["absmax"] = rng.choice([127, 255, 191], blocks).astype(np.uint8)
        inputs["nested_absmax"], inputs["nested_offset"] = rng.random((blocks + 255) // 256, np.float32), np.float32([0.75])
        levels = {127: 0.0, 255: 1.0, 191: 0.1 + 0.9 * 0.5 / 64}  # 191 is the first level of the last power
        scales = np.array([levels[int(code)] for code in inputs["absmax"]]) * np.repeat(inputs["nested_absmax"], 256)[:blocks] + 0.75
    else:
        inputs["absmax"] = scales = rng.random(blocks, np.float32)
    return inputs, np.array(FP4 if form == "FP4" else NF4)[halves] * np.repeat(scales, 64)[:count]


FORMS = ("NF4", "FP4", "INT8", "INT8_GROUPS", "INT4_GROUPS", "Q8_0", "Q4_0", "Q4_K")


def build_quantized_matmul(name, rng, rows=1, out=1, columns=1, straight=0, form="NF4", group=0, nested=0, accumulate=False, kind="quantized_matmul"):
    group = group or columns
    if form in ("NF4", "FP4"):
        inputs, matrix = levels_codes(rng, form, out * columns, nested)
        matrix = matrix.reshape(out, columns)
    else:
        inputs, matrix = drawn_codes(rng, form, out, columns, group)
    inputs = {"x": normal(rng, rows, out if straight else columns), **inputs}
    truth = inputs["x"].astype(np.float64) @ (matrix if straight else matrix.T)
    types = {np.dtype(np.uint8): "uint8_t", np.dtype(np.int8): "int8_t"}
    operands = [Operand(key, value.shape, dtype=types.get(value.dtype, "float")) for key, value in inputs.items()]
    kernel = Kernel(kind, [Operand("y", truth.shape, accumulate=accumulate)], operands, name, out=out, straight=straight,
                    form=FORMS.index(form), group=group, **{"in": columns})
    return Case(kernel, inputs, {"y": truth})


def build_q8_0_matmul(name, rng, rows=1, out=1, columns=32, form="Q8_0", largest=False):
    """By x as gguf-py quantizes it; `largest`: all products are 127^2 or 127 times 128, whose sums of two have more than 15 bits."""
    inputs, matrix = drawn_codes(rng, form, out, columns, 32)
    x = normal(rng, rows, columns)
    x[rng.random((rows, columns // 32)).repeat(32, 1) < 0.1] = 0  # blocks without a scale
    if largest:
        x = np.where(rng.random(x.shape) < 0.5, np.float32(3), np.float32(-3))
        inputs["codes"][..., 2:] = rng.choice(np.uint8([127, 128]), inputs["codes"][..., 2:].shape)
        matrix = gguf.quants.dequantize(inputs["codes"].reshape(out, -1), gguf.GGMLQuantizationType[form])
    inputs = {"x": x, **inputs}
    rounded = gguf.quants.dequantize(gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0), gguf.GGMLQuantizationType.Q8_0)
    truth = rounded.astype(np.float64) @ matrix.T
    outputs = [Operand("y", truth.shape), Operand("row_codes", x.shape, dtype="int8_t", workspace=True),
               Operand("row_scales", [rows, columns // 32], workspace=True)]
    operands = [Operand("x", x.shape), Operand("codes", inputs["codes"].shape, dtype="uint8_t")]
    return Case(Kernel("q8_0_matmul", outputs, operands, name, out=out, form=FORMS.index(form), **{"in": columns}), inputs, {"y": truth})


def build_int8_matmul(name, rng, rows=1, out=1, columns=1, straight=0, accumulate=False):
    inputs = {"x": normal(rng, rows, out if straight else columns), "codes": rng.integers(-127, 128, (out, columns)).astype(np.int8),
              "absmax": rng.random(out, np.float32)}
    matrix = inputs["codes"] * inputs["absmax"].astype(np.float64)[:, None] / 127
    truth = inputs["x"].astype(np.float64) @ (matrix if straight else matrix.T)
    operands = [Operand(key, value.shape, dtype="int8_t" if value.dtype == np.int8 else "float") for key, value in inputs.items()]
    kernel = Kernel("int8_matmul", [Operand("y", truth.shape, accumulate=accumulate)], operands, name, out=out, straight=straight, threshold=6.0,
                    **{"in": columns})
    return Case(kernel, inputs, {"y": truth})


def build_llm_int8_matmul(name, rng, rows=1, out=1, columns=1, threshold=0.0, largest=False, valid=None):
    """A row of x has its largest number as a power of two, so that numbers a quarter of a code from the middle between two are
    rounded by no one to another; `largest`: all products are 127^2, whose sums of two have more than 16 bits."""
    steps = rng.integers(-127, 128, (rows, columns)) + rng.choice([-0.25, 0, 0.25], (rows, columns))
    steps[:, 0] = 127
    codes = rng.integers(-127, 128, (out, columns)).astype(np.int8)
    if largest:
        steps[:], codes[:] = 127, 127
    scales = 2.0 ** rng.integers(-3, 2, rows)
    x = np.float32(steps.clip(-127, 127) * scales[:, None] / 128)
    apart = np.zeros(columns, bool)
    if threshold:
        apart[rng.random(columns) < 0.3] = True
        apart[0] = False
        x[rng.integers(rows if valid is None else valid), apart] = rng.choice([-1, 1], apart.sum()) * np.float32(threshold * (1 + rng.random(apart.sum())))
    inputs = {"x": x, "codes": codes, "scales": rng.random(out, np.float32)}
    matrix = codes * inputs["scales"].astype(np.float64)[:, None] / 127
    row_scales = np.where(np.abs(x) >= threshold if threshold else False, 0, np.abs(x)).max(1, keepdims=True).astype(np.float64)
    rounded = np.rint(x * (127 / row_scales)) * row_scales / 127
    truth = np.where(apart, x, rounded) @ matrix.T
    operands = [Operand(key, value.shape, dtype="int8_t" if value.dtype == np.int8 else "float") for key, value in inputs.items()]
    if valid is not None:
        operands.append(Operand("valid", [1], dtype="int32_t"))
        inputs["valid"] = np.int32([valid])
        truth = np.ma.array(truth, mask=np.broadcast_to(np.arange(rows)[:, None] >= valid, truth.shape))
    outputs = [Operand("y", truth.shape), Operand("row_codes", x.shape, dtype="int8_t", workspace=True), Operand("row_scales", [rows], workspace=True),
               Operand("outliers", [columns + 1], dtype="int32_t", workspace=True)]
    kernel = Kernel("llm_int8_matmul", outputs, operands, name, out=out, threshold=threshold, **{"in": columns})
    return Case(kernel, inputs, {"y": truth})


def build_fp8_quantize(kind, name, rng, shape=(1,), e5m2=0, size=1.0, length=1, codes=False, powers=0, known=True):
    """Rounded by ml_dtypes. A delayed scale may be too large for x, which is then saturated; of a scale that is not known yet, by the power
    of two of x itself."""
    x = normal(rng, *shape) * np.float32(size)
    made, most = (ml_dtypes.float8_e5m2, 57344.0) if e5m2 else (ml_dtypes.float8_e4m3fn, 448.0)
    largest, inputs, outputs = np.abs(x).max(), {"x": x}, [Operand("q", shape, dtype="uint8_t" if codes else "float"), Operand("inverse", [1])]
    factor, truth = np.float32(most / max(np.float64(largest), 1e-12)), {}
    if powers:
        factor = np.float32(2.0) ** np.floor(np.log2(most / np.float64(largest))).astype(np.float32)
    if kind == "fp8_quantize_delayed":
        factor = np.float32(rng.choice([1.0, 2 * factor])) if known else factor
        history = np.float32(rng.random(length) * size)
        inputs |= {"scale": np.float32([factor if known else -3.0]), "history": history}
        outputs += [Operand("next_history", [length])]
        truth["next_history"] = np.append([max(history[0], largest) if known else largest], history[1:])
    rounded = np.clip(x * factor, -most, most).astype(made)
    truth["q"] = rounded.view(np.uint8) if codes else rounded.astype(np.float64)
    truth["inverse"] = [np.float32(1) / factor]
    operands = [Operand(key, value.shape) for key, value in inputs.items()]
    return Case(Kernel(kind, outputs, operands, name, e5m2=e5m2, powers=powers), inputs, truth)


def power_of(scaling, largest):
    """The power of two that numbers of a group are to be multiplied with: torchao's of a row, the MX specification's, cuBLAS's."""
    if scaling == 0:
        return -int(np.floor(np.log2(np.float64(np.float32(448 / max(np.float64(largest), 1e-12))))))
    if largest == 0:
        return -127
    power = np.floor(np.log2(np.float64(largest))) - 8 if scaling == 1 else np.ceil(np.log2(np.float64(np.float32(largest) / np.float32(448))))
    return int(np.clip(power, -127, 127))


def build_fp8_round(name, rng, shape=(1,), group=1, scaling=0, size=1.0):
    """Rounded by ml_dtypes, with scales that its e8m0 has."""
    x = normal(rng, *shape) * np.float32(size)
    x.reshape(-1, group)[rng.random(x.size // group) < 0.1] = 0
    truth = []
    for numbers in x.reshape(-1, group):
        scale = 2.0 ** power_of(scaling, np.abs(numbers).max())
        assert np.float64(np.float32(scale).astype(ml_dtypes.float8_e8m0fnu)) == scale
        codes = np.clip(np.float64(numbers) / scale, -448, 448).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
        truth.append(codes.astype(np.float64) * scale)
    return Case(Kernel("fp8_round", [Operand("y", shape)], [Operand("x", shape)], name, group=group, scaling=scaling),
                {"x": x}, {"y": np.concatenate(truth).reshape(shape)})


def words_of(count, site, stream):
    """Words of a kernel's stream."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    zeros = np.zeros_like(blocks)
    return philox([blocks, zeros, zeros + np.uint64(site), zeros], [stream & 0xFFFFFFFF, stream >> 32]).T.ravel()[:count]


def build_random(kind, name, rng, shape=(1,), site=0, bound=None):
    stream, count = int(rng.integers(0, 2**63)), int(np.prod(shape))
    words = words_of(count + count % 2, site, stream)
    upper = (words >> np.uint64(8)).astype(np.float64) / 2**24
    if kind == "random_normal":
        far, angle = np.sqrt(-2 * np.log(upper[::2] + 2.0**-24)), 2 * np.pi * upper[1::2]
        truth = np.stack((far * np.cos(angle), far * np.sin(angle)), -1).ravel()
    else:
        truth = upper if bound is None else (words * np.uint64(bound)) >> np.uint64(32)
    made = Operand("y", shape, dtype="float" if bound is None else "int32_t")
    return Case(Kernel(kind, [made], [], name, random=True, site=site, bound=bound), {}, {"y": truth[:count].reshape(shape)}, stream=stream)


BUILDERS = {
    **{kind: functools.partial(build_group, kind) for kind in ("group_starts", "group_order")},
    "grouped_matmul": build_grouped_matmul,
    "quantized_matmul": build_quantized_matmul,
    "gguf_matmul": functools.partial(build_quantized_matmul, kind="gguf_matmul"),
    "q8_0_matmul": build_q8_0_matmul,
    "int8_matmul": build_int8_matmul,
    "llm_int8_matmul": build_llm_int8_matmul,
    **{kind: functools.partial(build_fp8_quantize, kind) for kind in ("fp8_quantize", "fp8_quantize_delayed")},
    "fp8_round": build_fp8_round,
    "grouped_matmul_weight": build_grouped_matmul_weight,
    "flip": build_flip,
    "roll": build_roll,
    "sparse_matmul": build_sparse_matmul,
    "sparse_dot": build_sparse_dot,
    "sparse_rows": build_sparse_rows,
    **{kind: functools.partial(build_random, kind) for kind in ("random_uniform", "random_normal", "random_int")},
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
SPARSE = [dict(), dict(rows=5, columns=7, elements=9, width=3), dict(rows=90, columns=33, elements=200, width=130)]
DRAWN = [dict(), dict(shape=(5, 7), site=3), dict(shape=(130,))]
GROUPS = [dict(), dict(shape=(9, 2), groups=4), dict(shape=(3, 17, 2), groups=5, capacity=4), dict(shape=(2, 30, 1), groups=3, capacity=7)]
ROUNDED = [dict(), dict(shape=(5, 48)), dict(shape=(33, 16), e5m2=1, size=1e-6), dict(shape=(3, 7, 32), size=300.0)]
GROUPED = [dict(), dict(rows=9, k=5, n=7, groups=3), dict(rows=33, k=17, n=40, groups=5)]
FIXED = {
    "group_starts": GROUPS,
    "group_order": [dict(how, rows=i % 2) for i, how in enumerate(GROUPS)],
    "quantized_matmul": [dict(rows=r, out=o, columns=c, straight=s, form=FORMS[(r + o) % 2], nested=n, accumulate=s != n)
                         for r, o, c in [(1, 1, 1), (1, 130, 64), (3, 130, 320), (5, 7, 9), (1, 20, 28), (17, 300, 129)]
                         for s in (0, 1) for n in (0, 1)] +
                        [dict(rows=r, out=o, columns=c, straight=s, form=f, group=64 if r == 1 else 0, accumulate=s == 1)
                         for f in FORMS[3:] for r, o, c, s in [(1, 130, 768, 0), (1, 3, 256, 0), (5, 131, 512, 0), (9, 5, 256, 1)]],
    "gguf_matmul": [dict(rows=3, out=5, columns=64, straight=s, form=f) for s, f in ((0, "Q8_0"), (1, "Q4_0"))],
    "q8_0_matmul": [dict(rows=r, out=o, columns=c, form=f, largest=r == 3) for f in ("Q8_0", "Q4_0")
                    for r, o, c in [(1, 1, 32), (1, 130, 768), (3, 9, 1120), (33, 131, 64), (1, 6, 17664)]],
    "int8_matmul": [dict(rows=r, out=o, columns=c, straight=s, accumulate=r == 3)
                    for r, o, c in [(1, 1, 1), (3, 130, 320), (5, 7, 9), (17, 300, 129)] for s in (0, 1)],
    "llm_int8_matmul": [dict(rows=r, out=o, columns=c, threshold=t) for r, o, c in [(1, 1, 1), (1, 130, 321), (3, 7, 9), (70, 300, 129)]
                        for t in (0.0, 2.5)] + [dict(rows=r, out=9, columns=1100, largest=True) for r in (1, 5)] + [dict(rows=9, out=20, columns=40, threshold=2.5, valid=4)],
    "fp8_quantize": ROUNDED + [dict(how, powers=1) for how in ROUNDED],
    "fp8_round": [dict(), dict(shape=(5, 48), group=48), dict(shape=(33, 64), group=32, scaling=1, size=1e-6), dict(shape=(3, 7, 32), group=32, scaling=2, size=300.0),
                  dict(shape=(4, 32), group=128), dict(shape=(2, 32), group=32, scaling=1, size=1e-38)],
    "fp8_quantize_delayed": [dict(how, length=1 + 3 * i) for i, how in enumerate(ROUNDED)] +
                            [dict(how, length=2 + i, powers=1, known=i % 2 == 0) for i, how in enumerate(ROUNDED)],
    "grouped_matmul": GROUPED + [dict(how, straight=1) for how in GROUPED],
    "grouped_matmul_weight": GROUPED + [dict(how, accumulate=which) for how in GROUPED for which in ("all", "some")],
    "flip": ALONG,
    "roll": [dict(), dict(shape=(33, 5), shift=32), dict(shape=(5, 7), axis=1, shift=3), dict(shape=(3, 7, 5), axis=1, shift=2)],
    "sparse_matmul": SPARSE + [dict(rows=100, columns=17, elements=500, width=16, accumulate=True)],
    "sparse_dot": SPARSE,
    "sparse_rows": [dict(), dict(rows=7), dict(rows=40, most=9)],
    "random_uniform": DRAWN,
    "random_normal": DRAWN,
    "random_int": [dict(bound=bound, **drawn) for bound, drawn in zip((2**31 - 1, 7, 1000), DRAWN)],
    "arange": [dict(count=n) for n in (1, 7, 1000)],
    "top_k_mask": [dict(), dict(shape=(5, 8), k=2), dict(shape=(3, 5, 33), k=7), dict(shape=(9, 4), k=4)],
    "lstm": [dict(), dict(b=3, t=5, h=7), dict(b=2, t=9, h=32)],
    "lstm_backward": [dict(), dict(b=3, t=5, h=7), dict(b=2, t=9, h=32)],
    "selective_scan": [dict(), dict(b=3, t=5, d=7, n=3), dict(b=2, t=9, d=5, n=16)],
    "selective_scan_backward": [dict(), dict(b=3, t=5, d=7, n=3), dict(b=2, t=9, d=5, n=16)],
    "cumsum": ALONG + [dict(shape=(3, 70), axis=1, reverse=1), dict(shape=(9, 3, 5), reverse=1)],
    "argmax": ALONG,
    "top_k": [dict(), dict(shape=(5, 8), k=2), dict(shape=(3, 5, 33), k=7), dict(shape=(9, 4), k=4)],
    "gather": [dict(count=n, **a) for n, a in zip((1, 3, 9, 33, 2), ALONG)] + [dict(shape=(3, 1, 5), axis=1, count=2)],
    "gather_backward": [dict(count=n, accumulate=n > 8, **a) for n, a in zip((1, 3, 9, 40, 2), ALONG)],
}


def size(rng):
    return drawn_size(rng, 33)


def fuzzed_lstm(rng):
    return dict(b=int(rng.integers(1, 4)), t=int(rng.integers(1, 9)), h=size(rng))


def fuzzed_scan(rng):
    return dict(b=int(rng.integers(1, 4)), t=int(rng.integers(1, 9)), d=size(rng), n=size(rng))


def fuzzed_along(rng):
    shape = tuple(size(rng) for _ in range(rng.integers(1, 4)))
    return dict(shape=shape, axis=int(rng.integers(len(shape))))


def fuzzed_roll(rng):
    shape = tuple(1 + size(rng) for _ in range(rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    return dict(shape=shape, axis=axis, shift=int(rng.integers(1, shape[axis])))


def fuzzed_top_k(rng):
    shape = (size(rng), size(rng))
    return dict(shape=shape, k=int(rng.integers(1, shape[-1] + 1)))


def fuzzed_sparse(rng):
    return dict(rows=size(rng), columns=size(rng), elements=size(rng), width=size(rng))


def fuzzed_draws(rng):
    return dict(shape=fuzzed_along(rng)["shape"], site=int(rng.integers(100)))


def fuzzed_groups(rng):
    return dict(shape=(int(rng.integers(1, 4)), size(rng), int(rng.integers(1, 4))), groups=size(rng), capacity=int(rng.integers(0, 5)))


def fuzzed_grouped(rng):
    return dict(rows=size(rng), k=size(rng), n=size(rng), groups=int(rng.integers(1, 6)))


def fuzzed_fp8(rng):
    return dict(shape=(size(rng), size(rng)), e5m2=int(rng.integers(2)), size=float(10 ** rng.uniform(-9, 6)))


def fuzzed_fp8_groups(rng):
    group = size(rng)
    return dict(shape=(size(rng), int(rng.integers(1, 4)) * group), group=group, scaling=int(rng.integers(3)), size=float(10 ** rng.uniform(-37, 6)))


def fuzzed_quantized(rng):
    form = str(rng.choice([form for form in FORMS if form != "INT8"]))
    step = {"NF4": 1, "FP4": 1, "Q4_K": 256}.get(form, 32)
    group = step * int(rng.integers(1, 4))
    columns = size(rng) if step == 1 else group * int(rng.integers(1, 5))
    return dict(rows=size(rng), out=size(rng), columns=columns, straight=int(rng.integers(2)), form=form, group=group,
                nested=int(rng.integers(2)) if step == 1 else 0, accumulate=bool(rng.integers(2)))


FUZZED = {
    "group_starts": fuzzed_groups,
    "group_order": lambda rng: dict(fuzzed_groups(rng), rows=int(rng.integers(2))),
    "quantized_matmul": lambda rng: fuzzed_quantized(rng),
    "gguf_matmul": lambda rng: dict(rows=size(rng), out=size(rng), columns=32 * int(rng.integers(1, 5)), straight=int(rng.integers(2)), form="Q8_0"),
    "q8_0_matmul": lambda rng: dict(rows=size(rng), out=size(rng), columns=32 * int(rng.integers(1, 9)), form=str(rng.choice(["Q8_0", "Q4_0"]))),
    "int8_matmul": lambda rng: dict(rows=size(rng), out=size(rng), columns=size(rng), straight=int(rng.integers(2)), accumulate=bool(rng.integers(2))),
    "llm_int8_matmul": lambda rng: dict(rows=size(rng), out=size(rng), columns=size(rng), threshold=float(rng.choice([0, 2.5, 6]))),
    "fp8_quantize": fuzzed_fp8,
    "fp8_round": fuzzed_fp8_groups,
    "fp8_quantize_delayed": lambda rng: dict(fuzzed_fp8(rng), length=size(rng)),
    "grouped_matmul": lambda rng: dict(fuzzed_grouped(rng), straight=int(rng.integers(2))),
    "grouped_matmul_weight": lambda rng: dict(fuzzed_grouped(rng), accumulate=("", "all", "some")[rng.integers(3)]),
    "flip": fuzzed_along,
    "roll": fuzzed_roll,
    "sparse_matmul": fuzzed_sparse,
    "sparse_dot": fuzzed_sparse,
    "sparse_rows": lambda rng: dict(rows=size(rng)),
    "random_uniform": fuzzed_draws,
    "random_normal": fuzzed_draws,
    "random_int": lambda rng: dict(fuzzed_draws(rng), bound=size(rng)),
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
