"""Cases of the kinds over images [batch][channels][height][width], with the float64 truth."""

import numpy as np

from case import Case, normal
from kernels import Kernel, Operand


def windows(x, k, l, y_shape, stride, dilation):
    """The elements of x, which is padded, that the positions of y see at position (k, l) of the kernel: a view."""
    rows = slice(k * dilation[0], k * dilation[0] + (y_shape[2] - 1) * stride[0] + 1, stride[0])
    columns = slice(l * dilation[1], l * dilation[1] + (y_shape[3] - 1) * stride[1] + 1, stride[1])
    return x[:, :, rows, columns]


def padded(shape, y_shape, kernel, stride, padding, dilation):
    """Extents of x with padding and whatever more the windows reach."""
    return [max(padding[i] + shape[2 + i], (y_shape[2 + i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1) for i in range(2)]


def convolved(x, w, y, groups, stride, padding, dilation, made):
    """Adds to one of the three, in float64, what the other two give."""
    n, channels, height, width = x.shape
    whole = np.zeros((n, channels, *padded(x.shape, y.shape, w.shape[2:], stride, padding, dilation)))
    inside = whole[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width]
    inside += x
    for g in range(groups):
        of, some = w.shape[1], w.shape[0] // groups
        outs = slice(g * some, (g + 1) * some)
        for k in range(w.shape[2]):
            for l in range(w.shape[3]):
                seen = windows(whole[:, g * of : (g + 1) * of], k, l, y.shape, stride, dilation)
                if made == "y":
                    y[:, outs] += np.einsum("nchw,oc->nohw", seen, w[outs, :, k, l])
                elif made == "x":
                    seen += np.einsum("nohw,oc->nchw", y[:, outs], w[outs, :, k, l])
                else:
                    w[outs, :, k, l] += np.einsum("nohw,nchw->oc", y[:, outs], seen)
    if made == "x":
        x[...] = inside


def build_convolution(made, name, rng, n=1, c=1, o=1, x=(1, 1), kernel=(1, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1),
                      groups=1, accumulate=False, workspace=100_000):
    y = [(x[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    shapes = {"x": [n, c * groups, *x], "weight": [o * groups, c, *kernel], "y": [n, o * groups, *y]}
    arrays = {key: np.zeros(shape) if key == made else normal(rng, *shape) for key, shape in shapes.items()}
    convolved(*(a.astype(np.float64) if key != made else a for key, a in arrays.items()), groups, stride, padding, dilation, made)
    kind, gives, takes = {"y": ("convolution", "y", {"x": "x", "weight": "weight"}),
                          "x": ("convolution_data", "dx", {"dy": "y", "weight": "weight"}),
                          "weight": ("convolution_weights", "dweight", {"dy": "y", "x": "x"})}[made]
    outputs = [Operand(gives, shapes[made], accumulate=accumulate), Operand("workspace", [workspace], workspace=True)]
    given = {key: arrays[of] for key, of in takes.items()}
    inputs = [Operand(key, list(array.shape)) for key, array in given.items()]
    attributes = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation), "groups": groups}
    return Case(Kernel(kind, outputs, inputs, name, in_blocks=True, **attributes), given, {gives: arrays[made]})


CONVOLUTIONS = [
    dict(), dict(n=2, c=3, o=5, x=(7, 6), kernel=(3, 3), padding=(1, 1)), dict(n=2, c=3, o=5, x=(7, 6), kernel=(3, 2), stride=(2, 3)),
    dict(n=3, c=16, o=32, x=(8, 8), kernel=(3, 3), stride=(2, 2), padding=(1, 1)), dict(n=2, c=17, o=33, x=(5, 9), kernel=(1, 1)),
    dict(n=2, c=8, o=8, x=(8, 8), kernel=(1, 1), stride=(2, 2)), dict(n=2, c=4, o=6, x=(9, 9), kernel=(3, 3), dilation=(2, 3), padding=(2, 1)),
    dict(n=2, c=1, o=1, groups=16, x=(7, 7), kernel=(3, 3), padding=(1, 1)), dict(n=2, c=3, o=2, groups=3, x=(6, 5), kernel=(2, 3)),
    dict(n=1, c=3, o=16, x=(1, 40), kernel=(1, 7), padding=(0, 3)), dict(n=1, c=3, o=16, x=(20, 20), kernel=(7, 7), stride=(2, 2), padding=(3, 3)),
    dict(n=2, c=16, o=16, x=(6, 6), kernel=(3, 3), padding=(1, 1), workspace=16), dict(n=2, c=3, o=5, x=(7, 6), kernel=(3, 3), accumulate=True),
    dict(n=2, c=16, o=32, x=(6, 6), kernel=(3, 3), padding=(1, 1), accumulate=True), dict(n=2, c=16, o=16, x=(6, 7), kernel=(1, 1), accumulate=True),
]


def fuzzed_convolution(rng):
    def pick(low, high):
        return tuple(int(v) for v in rng.integers(low, high, 2))

    kernel, dilation = pick(1, 5), pick(1, 3)
    padding = tuple(int(rng.integers(0, k)) for k in kernel)
    x = tuple(max(1, dilation[i] * (kernel[i] - 1) + 1 - 2 * padding[i]) + int(rng.integers(0, 9)) for i in range(2))
    return dict(n=int(rng.integers(1, 4)), c=int(rng.integers(1, 20)), o=int(rng.integers(1, 20)), groups=int(rng.integers(1, 3)), x=x,
                kernel=kernel, stride=pick(1, 4), padding=padding, dilation=dilation, accumulate=bool(rng.integers(2)))


def statistics(x, axes, eps):
    x = x.astype(np.float64)
    mean = x.mean(axes, keepdims=True)
    variance = x.var(axes, keepdims=True)
    return mean, variance, 1 / np.sqrt(variance + eps)


def column(vector, rank):
    return vector.astype(np.float64).reshape([-1] + [1] * (rank - 2))


def build_batch_norm(name, rng, shape=(2, 1), eps=1e-5, momentum=0.1):
    x, c = normal(rng, *shape) + 1, shape[1]
    weight, bias, running_mean, running_var = normal(rng, c), normal(rng, c), normal(rng, c), rng.random(c).astype(np.float32)
    axes = tuple(i for i in range(len(shape)) if i != 1)
    mean, variance, rstd = statistics(x, axes, eps)
    count = x.size // c
    inputs = [Operand("x", shape)] + [Operand(n, [c]) for n in ("weight", "bias", "running_mean", "running_var")]
    inputs += [Operand("num_batches_tracked", [], dtype="int64_t")]
    outputs = [Operand("y", shape)] + [Operand(n, [c]) for n in ("mean", "rstd", "next_mean", "next_var")]
    outputs += [Operand("next_count", [], dtype="int64_t")]
    return Case(Kernel("batch_norm", outputs, inputs, name, eps=eps, momentum=momentum),
                {"x": x, "weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var,
                 "num_batches_tracked": np.int64(6)},
                {"y": (x - mean) * rstd * column(weight, x.ndim) + column(bias, x.ndim), "mean": mean.ravel(), "rstd": rstd.ravel(),
                 "next_mean": (1 - momentum) * running_mean + momentum * mean.ravel(),
                 "next_var": (1 - momentum) * running_var + momentum * variance.ravel() * count / (count - 1), "next_count": 7})


def build_norm_backward(kind, name, rng, shape, groups, eps, accumulate, in_place=False):
    """Of a batch norm where groups is 0."""
    x, dy, c = normal(rng, *shape) + 1, normal(rng, *shape), shape[1]
    weight = normal(rng, c)
    others = tuple(i for i in range(len(shape)) if i != 1)
    cut = [shape[0], groups, -1] if groups else list(shape)
    axes = (2,) if groups else others
    mean, _, rstd = statistics(x.reshape(cut), axes, eps)
    n = ((x.reshape(cut) - mean) * rstd)
    g = (dy * column(weight, x.ndim)).reshape(cut)
    dx = rstd * (g - g.mean(axes, keepdims=True) - n * (g * n).mean(axes, keepdims=True))
    inputs = [Operand("dy", shape), Operand("x", shape), Operand("weight", [c]), Operand("mean", [mean.size]), Operand("rstd", [rstd.size])]
    outputs = [Operand("dx", shape, accumulate=accumulate), Operand("dweight", [c], accumulate=accumulate), Operand("dbias", [c], accumulate=accumulate)]
    return Case(Kernel(kind, outputs, inputs, name, **({"groups": groups} if groups else {})),
                {"dy": dy, "x": x, "weight": weight, "mean": mean.ravel(), "rstd": rstd.ravel()},
                {"dx": dx.reshape(shape), "dweight": (dy * n.reshape(shape)).sum(others), "dbias": dy.astype(np.float64).sum(others)},
                {"dx": "dy"} if in_place else None, scales={"dx": float(np.abs(g * rstd).max())})


def build_batch_norm_backward(name, rng, shape=(2, 1), eps=1e-5, accumulate=False, in_place=False):
    return build_norm_backward("batch_norm_backward", name, rng, shape, 0, eps, accumulate, in_place)


def build_group_norm(name, rng, shape=(1, 1, 2), groups=1, eps=1e-5):
    x, c = normal(rng, *shape) + 1, shape[1]
    weight, bias = normal(rng, c), normal(rng, c)
    mean, _, rstd = statistics(x.reshape(shape[0], groups, -1), (2,), eps)
    n = ((x.reshape(shape[0], groups, -1) - mean) * rstd).reshape(shape)
    outputs = [Operand("y", shape), Operand("mean", [mean.size]), Operand("rstd", [rstd.size])]
    return Case(Kernel("group_norm", outputs, [Operand("x", shape), Operand("weight", [c]), Operand("bias", [c])], name, eps=eps, groups=groups),
                {"x": x, "weight": weight, "bias": bias},
                {"y": n * column(weight, x.ndim) + column(bias, x.ndim), "mean": mean.ravel(), "rstd": rstd.ravel()})


def build_group_norm_backward(name, rng, shape=(1, 1, 2), groups=1, eps=1e-5, accumulate=False):
    return build_norm_backward("group_norm_backward", name, rng, shape, groups, eps, accumulate)


def build_resample(name, rng, shape=(2,), axis=0, rows=((0, (1.0,)),), accumulate=False):
    x = normal(rng, *shape)
    matrix = np.zeros((len(rows), shape[axis]))
    for i, (start, weights) in enumerate(rows):
        matrix[i, start : start + len(weights)] = weights
    truth = np.moveaxis(np.tensordot(matrix, x.astype(np.float64), (1, axis)), 0, axis)
    terms = max(1, *(len(weights) for _, weights in rows))
    starts = [min(start, shape[axis] - terms) for start, _ in rows]
    factors = [matrix[i, start : start + terms].tolist() for i, start in enumerate(starts)]
    kernel = Kernel("resample", [Operand("y", list(truth.shape), accumulate=accumulate)], [Operand("x", shape)], name, axis=axis,
                    positions=len(rows), terms=terms, starts=list(map(float, starts)), factors=sum(factors, []),
                    even_starts=int(len(set(np.diff(starts))) < 2), even_factors=int(all(row == factors[0] for row in factors)))
    return Case(kernel, {"x": x}, {"y": truth})


def window_positions(shape, kernel, stride, padding):
    """For each window of a plane its positions, row by row."""
    extents = [(shape[2 + i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in range(2)]
    for i in range(extents[0]):
        for j in range(extents[1]):
            rows = [i * stride[0] - padding[0] + k for k in range(kernel[0])]
            columns = [j * stride[1] - padding[1] + l for l in range(kernel[1])]
            yield i, j, [(r, q) for r in rows for q in columns if 0 <= r < shape[2] and 0 <= q < shape[3]]


def build_max_pool(name, rng, shape=(1, 1, 1, 1), kernel=(1, 1), stride=(1, 1), padding=(0, 0), backward=False):
    x = np.round(normal(rng, *shape), 1)  # some are equal
    y = [shape[0], shape[1], *((shape[2 + i] + 2 * padding[i] - kernel[i]) // stride[i] + 1 for i in range(2))]
    dy, largest, dx = normal(rng, *y), np.zeros(y), np.zeros(shape)
    for i, j, positions in window_positions(shape, kernel, stride, padding):
        for n in range(shape[0]):
            for c in range(shape[1]):
                found = max(positions, key=lambda at: x[n, c, at[0], at[1]])
                largest[n, c, i, j] = x[n, c, found[0], found[1]]
                dx[n, c, found[0], found[1]] += dy[n, c, i, j]
    attributes = {"kernel": list(kernel), "stride": list(stride), "padding": list(padding)}
    if backward:
        return Case(Kernel("max_pool_backward", [Operand("dx", shape)], [Operand("dy", y), Operand("x", shape)], name, **attributes),
                    {"dy": dy, "x": x}, {"dx": dx})
    return Case(Kernel("max_pool", [Operand("y", y)], [Operand("x", shape)], name, **attributes), {"x": x}, {"y": largest})


BATCHES = [dict(), dict(shape=(7, 5)), dict(shape=(3, 17, 9)), dict(shape=(4, 8, 5, 7)), dict(shape=(2, 3, 64))]
GROUPS = [dict(), dict(shape=(3, 6, 5), groups=2), dict(shape=(2, 8, 3, 5), groups=8), dict(shape=(2, 33, 17), groups=3)]
POOLS = [dict(), dict(shape=(2, 3, 7, 6), kernel=(2, 2), stride=(2, 2)), dict(shape=(1, 2, 9, 8), kernel=(3, 3), stride=(2, 2), padding=(1, 1)),
         dict(shape=(2, 1, 1, 40), kernel=(1, 4), stride=(1, 3), padding=(0, 2)), dict(shape=(2, 2, 5, 5), kernel=(5, 5)),
         dict(shape=(2, 16, 4, 4), kernel=(3, 3), stride=(2, 2), padding=(1, 1)), dict(shape=(3, 7, 4, 6), kernel=(3, 2), stride=(1, 2)),
         dict(shape=(2, 3, 6, 40), kernel=(3, 4), stride=(2, 2), padding=(1, 2)), dict(shape=(1, 2, 34, 34), kernel=(34, 33), stride=(1, 1))]


def fuzzed_norm(groups):
    def arguments(rng):
        count = int(rng.integers(1, 5))
        shape = (int(rng.integers(2, 5)), count * int(rng.integers(1, 9)), int(rng.integers(2, 40)))
        return dict(shape=shape, groups=count) if groups else dict(shape=shape)

    return arguments


def fuzzed_resample(rng):
    shape = tuple(int(n) for n in rng.integers(1, 18, 3))
    axis = int(rng.integers(3))
    rows = []
    for _ in range(int(rng.integers(1, 12))):
        start = int(rng.integers(shape[axis]))
        rows.append((start, tuple(rng.standard_normal(int(rng.integers(0, shape[axis] - start + 1))))))
    return dict(shape=shape, axis=axis, rows=rows, accumulate=bool(rng.integers(2)))


def fuzzed_pool(rng):
    kernel = tuple(int(n) for n in rng.integers(1, 5, 2))
    padding = tuple(int(rng.integers(0, k // 2 + 1)) for k in kernel)
    return dict(shape=(2, int(rng.integers(1, 12)), *(k + int(n) for k, n in zip(kernel, rng.integers(0, (9, 40))))), kernel=kernel, padding=padding,
                stride=tuple(int(n) for n in rng.integers(1, 4, 2)))


BUILDERS = {
    "convolution": lambda name, rng, **a: build_convolution("y", name, rng, **a),
    "convolution_data": lambda name, rng, **a: build_convolution("x", name, rng, **a),
    "convolution_weights": lambda name, rng, **a: build_convolution("weight", name, rng, **a),
}
FIXED = {kind: CONVOLUTIONS for kind in BUILDERS}
FUZZED = {kind: fuzzed_convolution for kind in BUILDERS}
BUILDERS |= {
    "batch_norm": build_batch_norm,
    "batch_norm_backward": build_batch_norm_backward,
    "group_norm": build_group_norm,
    "group_norm_backward": build_group_norm_backward,
    "resample": build_resample,
    "max_pool": build_max_pool,
    "max_pool_backward": lambda name, rng, **a: build_max_pool(name, rng, backward=True, **a),
}
FIXED |= {
    "batch_norm": [*BATCHES, dict(shape=(3, 4, 5), eps=0.1, momentum=0.3)],
    "batch_norm_backward": [*BATCHES, dict(shape=(3, 4, 5), accumulate=True), dict(shape=(3, 4, 5), in_place=True)],
    "group_norm": [*GROUPS, dict(shape=(2, 4, 9), groups=2, eps=0.1)],
    "group_norm_backward": [*GROUPS, dict(shape=(2, 4, 9), groups=2, accumulate=True)],
    "resample": [dict(), dict(shape=(3, 4, 5), axis=1, rows=[(0, (0.5, 0.5)), (2, (0.5, 0.5))]),
                 dict(shape=(3, 5), axis=1, rows=[(i // 2, (1.0,)) for i in range(10)]),
                 dict(shape=(3, 5, 7), axis=1, rows=[(0, (1.0,)), (1, (0.25, 0.5, 0.25)), (4, (2.0,)), (0, ())], accumulate=True)],
    "max_pool": POOLS,
    "max_pool_backward": POOLS,
}
FUZZED |= {
    "batch_norm": fuzzed_norm(False), "batch_norm_backward": fuzzed_norm(False),
    "group_norm": fuzzed_norm(True), "group_norm_backward": fuzzed_norm(True),
    "resample": fuzzed_resample, "max_pool": fuzzed_pool, "max_pool_backward": fuzzed_pool,
}
BY_LIBRARY = ("convolution", "convolution_data", "convolution_weights")
