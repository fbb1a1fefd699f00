"""Cases of the kinds over images [batch][channels][height][width], with the float64 truth."""

import numpy as np

from case import Case, normal
from kernels import Kernel, Operand


def windows(x, k, l, y_shape, stride, padding, dilation):
    """The elements of x that the places of y see at place (k, l) of the kernel: a view of x padded."""
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
                seen = windows(whole[:, g * of : (g + 1) * of], k, l, y.shape, stride, padding, dilation)
                if made == "y":
                    y[:, outs] += np.einsum("nchw,oc->nohw", seen, w[outs, :, k, l])
                elif made == "x":
                    seen += np.einsum("nohw,oc->nchw", y[:, outs], w[outs, :, k, l])
                else:
                    w[outs, :, k, l] += np.einsum("nohw,nchw->oc", y[:, outs], seen)
    if made == "x":
        x[...] = inside


def build_convolution(made, name, rng, n=1, c=1, o=1, x=(1, 1), kernel=(1, 1), stride=(1, 1), padding=(0, 0), dilation=(1, 1),
                      groups=1, accumulate=False, room=100_000):
    y = [(x[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2)]
    shapes = {"x": [n, c * groups, *x], "weight": [o * groups, c, *kernel], "y": [n, o * groups, *y]}
    arrays = {key: np.zeros(shape) if key == made else normal(rng, *shape) for key, shape in shapes.items()}
    convolved(*(a.astype(np.float64) if key != made else a for key, a in arrays.items()), groups, stride, padding, dilation, made)
    kind, gives, takes = {"y": ("convolution", "y", {"x": "x", "weight": "weight"}),
                          "x": ("convolution_data", "dx", {"dy": "y", "weight": "weight"}),
                          "weight": ("convolution_weights", "dweight", {"dy": "y", "x": "x"})}[made]
    outputs = [Operand(gives, shapes[made], accumulate=accumulate), Operand("room", [room], room=True)]
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
    dict(n=2, c=16, o=16, x=(6, 6), kernel=(3, 3), padding=(1, 1), room=16), dict(n=2, c=3, o=5, x=(7, 6), kernel=(3, 3), accumulate=True),
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


BUILDERS = {
    "convolution": lambda name, rng, **a: build_convolution("y", name, rng, **a),
    "convolution_data": lambda name, rng, **a: build_convolution("x", name, rng, **a),
    "convolution_weights": lambda name, rng, **a: build_convolution("weight", name, rng, **a),
}
FIXED = {kind: CONVOLUTIONS for kind in BUILDERS}
FUZZED = {kind: fuzzed_convolution for kind in BUILDERS}
BY_LIBRARY = ("convolution", "convolution_data", "convolution_weights")
