"""Parts of a layer that ranks can divide: heads of attention, two products in a row, experts. Each adds to a stream."""

from body import NoFit
from layers import attend, heads_of, mix, turned


def normed(b, x):
    return b.add(f'{b.random.choice(("layer_norm", "rms_norm"))}({b.scope()}, {x.name})', x.shape)


def perceptron(b, x):
    wide = (*x.shape[:-1], b.random.choice((2, 4)) * x.shape[-1])
    h = b.add(f"linear({b.scope()}, {normed(b, x).name}, {wide[-1]})", wide)
    h = b.add(f"{b.random.choice(('relu', 'gelu', 'silu'))}({h.name})", wide)
    if b.random.random() < 0.3:
        gate = b.add(f"linear_no_bias({b.scope()}, {x.name}, {wide[-1]})", wide)
        h = b.add(f"mul({h.name}, {gate.name})", wide)
    return b.add(f"linear({b.scope()}, {h.name}, {b.number(x.shape[-1])})", x.shape)


def attention(b, x):
    if len(x.shape) != 3:
        raise NoFit
    h, width, groups = normed(b, x), 2 * b.size(2), b.size(2)
    q, k, v = heads_of(b, h, 4, width), heads_of(b, h, 4 // groups, width), heads_of(b, h, 4 // groups, width)
    if b.random.random() < 0.3:
        q, k = turned(b, q, "rotary"), turned(b, k, "rotary")
    y = attend(b, f"attention({q.name}, {k.name}, {v.name}, {b.random.choice(('CAUSAL', 'CAUSAL', 'FULL'))})", q.shape)
    return b.add(f"linear({b.scope()}, {y.name}, {b.number(x.shape[-1])})", x.shape)


def experts(b, x):
    return mix(b, normed(b, x), b.random.choice((2, 4, 4)), x.shape[-1])


PARTS = {"tp": (perceptron, attention), "sp": (perceptron, attention), "cp": (perceptron, attention),
         "pp": (perceptron, attention), "ep": (experts, experts, attention)}


def add(b, stream, axis):
    """x + part(x) for parts of what ranks along the axis divide."""
    for part in b.random.sample(PARTS[axis], b.random.choice((1, 2, 2))):
        try:
            stream = b.add(f"add({stream.name}, {part(b, stream).name})", stream.shape)
        except NoFit:
            pass
    return stream
