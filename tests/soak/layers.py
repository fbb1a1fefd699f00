"""Draws of layers, matmuls, attention, experts, images and losses of accel/model.h."""

import math

from body import NoFit, times
from vocabulary import DRAWS, draws

LETTERS = "abcdefg"


# ---- Layers ----

@draws("parameter")
def parameter(b, name):
    b.spread(tuple(b.size() for _ in range(b.random.randint(1, 3))))


@draws("buffer")
def kept(b, name):
    """Numbers that are not trained, which start as waves in half of them."""
    if not b.scoped:
        raise NoFit
    start, shape = f'at(s, "p{b.model.scope()}")', (b.size(), 4 * b.size(3))
    wave = b.random.random()
    if wave < 0.5:
        start = f"init_sinusoid({start}, 1.5)" if wave < 0.25 else f"init_sinusoid_grid({start}, 1.5, {b.size()})"
    b.add(f'buffer({start}, "kept", {b.numbers(shape)})', shape)


@draws("embedding")
def embedding(b, name):
    index = b.value(lambda v: v.below is not None, "i")
    width = b.size()
    rows = index.below + b.random.randint(0, 2)
    b.add(f"embedding({b.scope()}, {index.name}, {b.number(rows)}, {b.number(width)})", (*index.shape, width))


@draws("linear", "linear_no_bias", "linear_transposed")
def linear(b, name):
    x, out = b.of_rank(1, 2, 3, 4), b.size()
    b.add(f"{name}({b.scope()}, {x.name}, {b.number(out)})", (*x.shape[:-1], out))


@draws("layer_norm", "layer_norm_no_bias", "layer_norm_eps", "rms_norm", "rms_norm_eps")
def norm(b, name):
    x = b.of_rank(1, 2, 3, 4)
    eps = f", {b.random.choice(('1e-5', '1e-3', '0.5'))}" if name.endswith("_eps") else ""
    b.add(f"{name}({b.scope()}, {x.name}{eps})", x.shape)


def sequence(b):
    """A value [batch][steps][columns]."""
    return b.value(lambda v: len(v.shape) == 3 and isinstance(v.shape[0], str) and isinstance(v.shape[2], int)
                   and isinstance(v.shape[1], int))


@draws("lstm")
def lstm(b, name):
    x, width = sequence(b), b.size()
    b.add(f"lstm({b.scope()}, {x.name}, {b.number(width)}, {b.random.randint(0, 1)})", (*x.shape[:2], width))


@draws("selective_scan")
def selective_scan(b, name):
    u, states = sequence(b), b.size(4)
    delta = b.add(f"softplus({b.like(u).name})", u.shape)
    a = b.spread((u.shape[2], states))
    a = b.add(f"neg(exp_of({a.name}))", a.shape)
    maps = [b.add(f"linear_no_bias({b.scope()}, {u.name}, {states})", (*u.shape[:2], states)) for _ in range(2)]
    b.add(f"selective_scan({u.name}, {delta.name}, {a.name}, {maps[0].name}, {maps[1].name})", u.shape)


# ---- Matmuls ----

@draws("matmul", "matmul_transposed")
def matmul(b, name):
    a, n = b.of_rank(2, 3, 4), b.size()
    k = a.shape[-1]
    try:
        if b.random.random() < 0.5:
            raise NoFit
        same = -2 if name == "matmul" else -1
        other = b.value(lambda v: len(v.shape) == len(a.shape) and v.shape[same] == k and v.shape[:-2] == a.shape[:-2])
    except NoFit:
        other = b.spread((k, n) if name == "matmul" else (n, k))
    b.add(f"{name}({a.name}, {other.name})", (*a.shape[:-1], other.shape[-1 if name == "matmul" else -2]))


@draws("einsum")
def einsum(b, name):
    """One, two or three operands; labels that stay are in any order, the others are summed over."""
    x = b.of_rank(1, 2, 3, 4, last=False)
    labels = LETTERS[:len(x.shape)]
    specs, operands, sizes = [labels], [x], dict(zip(labels, x.shape))
    for _ in range(b.random.choice((0, 1, 1, 2))):
        known = [label for label in sizes if isinstance(sizes[label], int)]
        own = "".join(b.random.sample(known, min(len(known), b.random.randint(1, 2))))
        if not own:
            raise NoFit
        if b.random.random() < 0.4 and "z" not in sizes:
            own += "z"
            sizes["z"] = b.size(5)
        specs.append(own)
        operands.append(b.spread(tuple(sizes[label] for label in own)))
    kept = "".join(b.random.sample(sorted(sizes), b.random.randint(0, len(sizes))))
    spec = ",".join(specs) + "->" + kept
    if len(specs) == 1 and b.random.random() < 0.3:
        spec, kept = f"...{labels[-1]}->...", labels[:-1]
    names = ", ".join(operand.name for operand in operands)
    b.add(f'einsum("{spec}", {names})', tuple(sizes[label] for label in kept))


@draws("sparse_matmul", "sparse_matmul_csr")
def sparse(b, name):
    x = b.value(lambda v: len(v.shape) == 2 and isinstance(v.shape[0], int))
    elements, rows, array = b.random.randint(3, 9), b.size(5), b.model.name("t")
    csr = name == "sparse_matmul_csr"
    numbers = sorted(b.random.randint(0, elements) for _ in range(rows - 1)) if csr else None
    numbers = [0, *numbers, elements] if csr else [b.random.randrange(rows) for _ in range(elements)]
    b.say(f"  int {array}[] = {{{', '.join(map(str, numbers))}}};")
    first = b.add(f"int_table_of({len(numbers)}, {array})", (len(numbers),), "i")
    positions = ", ".join(str(b.random.randrange(x.shape[0])) for _ in range(elements))
    b.say(f"  int {array}_at[] = {{{positions}}};")
    columns = b.add(f"int_table_of({elements}, {array}_at)", (elements,), "i", x.shape[0])
    values = b.spread((elements,))
    more = "" if csr else f", {b.number(rows)}"
    b.add(f"{name}({first.name}, {columns.name}, {values.name}, {x.name}{more})", (rows, x.shape[1]))


# ---- Attention ----

def heads_of(b, x, heads, width):
    made = b.add(f"linear({b.scope()}, {x.name}, {heads * width})", (*x.shape[:2], heads * width))
    made = b.add(f"reshape({made.name}, {b.numbers(x.shape[:2])}, {heads}, {width})", (*x.shape[:2], heads, width))
    return b.add(f"transpose({made.name}, 1, 2)", (x.shape[0], heads, x.shape[1], width))


def turned(b, x, name):
    """Rotary positions of x [batch][heads][t][d]."""
    angles = b.random.randint(1, max(1, x.shape[3] // 2))
    positions = b.add(f"reshape(cast_float(arange({b.number(x.shape[2])})), {x.shape[2]}, 1)", (x.shape[2], 1))
    table = b.add(f"mul({positions.name}, constant({b.real(0.1, 1)}, 1, {angles}))", (x.shape[2], angles))
    cos, sin = (b.add(f"{f}_of({table.name})", table.shape) for f in ("cos", "sin"))
    return b.add(f"{name}({x.name}, {cos.name}, {sin.name})", x.shape)


@draws("rotary", "rotary_interleaved")
def rotary(b, name):
    x = sequence(b)
    turned(b, heads_of(b, x, b.size(3), 2 * b.size(3)), name)


def attend(b, call, shape):
    """The heads' results [batch][heads][t][d], side by side."""
    batch, heads, steps, width = shape
    y = b.add(call, shape)
    y = b.add(f"transpose({y.name}, 1, 2)", (batch, steps, heads, width))
    return b.add(f"reshape({y.name}, {b.numbers((batch, steps))}, -1)", (batch, steps, heads * width))


@draws("attention", "attention_scaled", "attention_window", "attention_capped", "attention_bias", "attention_bias_scaled", "attention_documents",
       "padding_bias")
def attention(b, name):
    x = sequence(b)
    shared, groups, width = b.size(2), b.size(2), 2 * b.size(4)
    q, k, v = heads_of(b, x, shared * groups, width), heads_of(b, x, shared, width), heads_of(b, x, shared, width)
    if b.random.random() < 0.4:
        way = b.random.choice(("rotary", "rotary_interleaved"))
        q, k = turned(b, q, way), turned(b, k, way)
    batch, steps = x.shape[:2]
    if name == "attention_documents":
        starts = [value for value in b.values if value.name == "starts"]
        if not starts:  # each sample is one document
            starts = [b.add(f"argmax(constant(0.5, {b.numbers((batch, steps))}, 2), 2)", (batch, steps), "i", 2)]
        starts = starts[0]
    if name == "padding_bias":
        mask = b.add(f"less({b.spread((steps,)).name}, constant(0.3, {b.number(batch)}, 1))", (batch, steps))
        bias = b.add(f"padding_bias({mask.name})", (batch, 1, 1, steps))
    mask = b.random.choice(("CAUSAL", "FULL"))
    added = b.spread((b.random.choice((1, shared * groups)), steps, steps)).name if name.startswith("attention_bias") else ""
    call = {
        "attention": lambda: f"attention({q.name}, {k.name}, {v.name}, {mask})",
        "attention_scaled": lambda: f"attention_scaled({q.name}, {k.name}, {v.name}, {mask}, {b.real(0.1, 1)})",
        "attention_window": lambda: f"attention_window({q.name}, {k.name}, {v.name}, {b.size(5)})",
        "attention_capped": lambda: f"attention_capped({q.name}, {k.name}, {v.name}, {b.size(5)}, {b.real(0.1, 1)}, {b.real(0.5, 2)})",
        "attention_documents": lambda: f"attention_documents({q.name}, {k.name}, {v.name}, {starts.name})",
        "padding_bias": lambda: f"attention_bias({q.name}, {k.name}, {v.name}, {bias.name})",
        "attention_bias": lambda: f"attention_bias({q.name}, {k.name}, {v.name}, {added})",
        "attention_bias_scaled": lambda: f"attention_bias_scaled({q.name}, {k.name}, {v.name}, {added}, {mask}, {b.real(0.1, 1)})",
    }[name]()
    attend(b, call, q.shape)


# ---- Experts ----

@draws("group_positions", "group_rows", "group_starts", "grouped_matmul")
def experts(b, name):
    mix(b, sequence(b), b.random.randint(2, 4), b.size(6))


def mix(b, x, groups, out):
    """Some of the groups' products for each row of x [batch][...][columns]."""
    rows, columns, array = times(x.shape[0], math.prod(x.shape[1:-1])), x.shape[-1], b.model.name("w")
    k = b.random.randint(1, groups)
    capacity = b.random.choice((0, 0, 3))
    flat = b.add(f"reshape({x.name}, -1, {b.number(columns)})", (rows, columns))
    gates = b.add(f"softmax(linear({b.scope()}, {flat.name}, {groups}))", (rows, groups))
    index = b.add(f"top_k_indices({gates.name}, {k})", (rows, k), "i", groups)
    of = f"({index.name}, {groups}, {capacity})"
    sent = b.add(f"group_rows{of}", (times(rows, k),), "i")
    starts = b.add(f"group_starts{of}", (groups + 1,), "i")
    if not b.scoped:
        raise NoFit
    b.say(f"  tensor {array}[{groups}];\n  for (int e = 0; e < {groups}; e++) "
          f"{array}[e] = parameter(init_normal(nth(s, \"e{b.model.scope()}\", e), 0.3), \"w\", {out}, {columns});")
    taken = b.add(f"take({flat.name}, {sent.name})", (times(rows, k), columns))
    y = b.add(f"grouped_matmul({taken.name}, {starts.name}, {groups}, {array})", (times(rows, k), out))
    if b.random.random() < 0.5:
        chosen = b.add(f"top_k({gates.name}, {k})", (rows, k))
        chosen = b.add(f"reshape({chosen.name}, -1, 1)", (times(rows, k), 1))
        positions = b.add(f"group_positions{of}", (times(rows, k),), "i")
        y = b.add(f"mul({y.name}, take({chosen.name}, {positions.name}))", y.shape)
    y = b.add(f"index_add({y.name}, {sent.name}, dim({flat.name}, 0))", (rows, out))
    return b.add(f"reshape({y.name}, {b.numbers(x.shape[:-1])}, {out})", (*x.shape[:-1], out))


# ---- Images and signals ----

def picture(b, name):
    """A value [batch][channels][positions...] with as many dimensions of positions as the function's name says."""
    rank = 3 if "1d" in name else 4
    try:
        return b.value(lambda v: len(v.shape) == rank and isinstance(v.shape[0], str) and
                       all(isinstance(e, int) for e in v.shape[1:]))
    except NoFit:
        x = b.value(lambda v: len(v.shape) > 1 and isinstance(v.shape[0], str) and all(isinstance(e, int) for e in v.shape[1:]))
        if not b.scoped:
            raise
        shape = (x.shape[0], b.size(3), b.random.randint(2, 6), *([b.random.randint(2, 5)] if rank == 4 else []))
        flat = b.add(f"reshape({x.name}, {b.number(x.shape[0])}, -1)", (x.shape[0], math.prod(x.shape[1:])))
        product = math.prod(shape[1:])
        flat = b.add(f"linear({b.scope()}, {flat.name}, {product})", (x.shape[0], product))
        return b.add(f"reshape({flat.name}, {b.numbers(shape)})", shape)


def window(b, x, widen=False):
    """Extents after it, kernel, stride, padding, dilation."""
    kernel, stride, dilation = b.random.randint(1, 3), b.random.randint(1, 2), b.random.choice((1, 1, 2))
    padding = b.random.randint(0, kernel // 2)
    reach = dilation * (kernel - 1) + 1
    positions = [(e - 1) * stride - 2 * padding + reach if widen else (e + 2 * padding - reach) // stride + 1 for e in x.shape[2:]]
    if min(positions) < 1 or not widen and min(x.shape[2:]) + 2 * padding < reach:
        raise NoFit
    return tuple(positions), kernel, stride, padding, dilation


@draws("conv1d", "conv1d_no_bias", "conv2d", "conv2d_no_bias", "conv1d_grouped", "conv1d_grouped_no_bias", "conv2d_grouped",
       "conv2d_grouped_no_bias", "conv_transpose1d", "conv_transpose2d", "convolve1d", "convolve2d", "convolve2d_pairs",
       "convolve_transposed1d", "convolve_transposed2d")
def convolution(b, name):
    x = picture(b, name)
    widen = "transpose" in name
    positions, kernel, stride, padding, dilation = window(b, x, widen)
    grouped = "grouped" in name or name.startswith("convolve")
    if not grouped and dilation != 1:
        raise NoFit
    groups = b.random.choice([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0]) if grouped else 1
    out = groups * b.size(3)
    if not name.startswith("convolve"):
        more = f", {dilation}, {groups}" if grouped else ""
        b.add(f"{name}({b.scope()}, {x.name}, {b.number(out)}, {kernel}, {stride}, {padding}{more})", (*x.shape[:1], out, *positions))
        return
    first = (x.shape[1], out // groups) if widen else (out, x.shape[1] // groups)
    weight = b.spread((*first, *[kernel] * len(positions)))
    numbers = [stride, padding, *([0] if widen else []), dilation]
    if name == "convolve2d_pairs":
        numbers = [n for n in numbers for _ in range(2)]
    b.add(f"{name}({x.name}, {weight.name}, {', '.join(map(str, numbers))}, {groups})", (*x.shape[:1], out, *positions))


@draws("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d")
def pool(b, name):
    x = picture(b, name)
    positions, kernel, stride, padding, dilation = window(b, x)
    if dilation != 1:
        raise NoFit
    b.add(f"{name}({x.name}, {kernel}, {stride}, {padding})", (*x.shape[:2], *positions))


@draws("adaptive_avg_pool1d", "adaptive_avg_pool2d", "interpolate_nearest", "interpolate_bilinear", "interpolate_bilinear_corners")
def resized(b, name):
    x = picture(b, name)
    positions = tuple(b.size(6) for _ in x.shape[2:])
    b.add(f"{name}({x.name}, {', '.join(map(str, positions))})", (*x.shape[:2], *positions))


@draws("group_norm", "group_norm_eps", "batch_norm", "batch_norm_with")
def channel_norm(b, name):
    x = b.value(lambda v: len(v.shape) in (2, 3, 4) and isinstance(v.shape[1], int) and isinstance(v.shape[0], str))
    groups = b.random.choice([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0])
    more = {"group_norm": f", {groups}", "group_norm_eps": f", {groups}, 1e-3", "batch_norm_with": ", 1e-3, 0.2"}.get(name, "")
    b.add(f"{name}({b.scope()}, {x.name}{more})", x.shape)


# ---- Losses ----

@draws("cross_entropy", "cross_entropy_ignore", "cross_entropy_smooth", "cross_entropy_z", "cross_entropy_with")
def cross_entropy(b, name):
    try:
        targets = b.value(lambda v: v.name in ("targets", "labels"), "i")
        logits = b.value(lambda v: len(v.shape) > 1 and v.shape[:-1] == targets.shape and
                         isinstance(v.shape[-1], int) and v.shape[-1] >= b.model.classes)
    except NoFit:
        targets = b.value(lambda v: v.below is not None, "i")
        logits = b.value(lambda v: v.shape[:-1] == targets.shape and isinstance(v.shape[-1], int) and v.shape[-1] >= targets.below)
    more = {"cross_entropy_ignore": f", {b.random.choice((-100, 0, 2))}", "cross_entropy_smooth": f", {b.real(0, 0.3)}",
            "cross_entropy_z": ", 1e-3", "cross_entropy_with": f", -100, {b.real(0, 0.3)}, 1e-3"}.get(name, "")
    b.add(f"{name}({logits.name}, {targets.name}{more})", ())


@draws("binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits_weighted", "mse_loss", "l1_loss", "huber_loss",
       "smooth_l1_loss", "kl_div", "kl_div_log_target")
def regression(b, name):
    x = b.value(lambda v: v.shape)
    goal = b.like(x)
    if name.startswith("binary"):
        goal = b.add(f"sigmoid({goal.name})", x.shape)
    if name.startswith("kl"):
        goal = b.add(f"{'softmax' if name == 'kl_div' else 'log_softmax'}({goal.name})", x.shape)
        x = b.add(f"log_softmax({x.name})", x.shape)
    more = {"huber_loss": f", {b.real(0.2, 1)}", "smooth_l1_loss": f", {b.real(0.2, 1)}",
            "binary_cross_entropy_with_logits_weighted": ", constant(2.5, 1)"}.get(name, "")
    b.add(f"{name}({x.name}, {goal.name}{more})", ())


@draws("cast_target")
def cast_target(b, name):
    x = b.value(lambda v: len(v.shape) > 1 and isinstance(v.shape[-1], int))
    classes = x.shape[-1]
    position = b.add(f"argmax({x.name}, -1)", x.shape[:-1], "i", classes)
    number = b.add(f"cast_float({position.name})", position.shape)
    ignored = b.random.choice((-100, 0))
    goal = b.add(f"cast_target({number.name}, {b.number(classes)}, {ignored})", position.shape, "i")
    b.add(f"cross_entropy_ignore({x.name}, {goal.name}, {ignored})", ())


@draws("contrastive_loss", "clip_loss")
def contrastive(b, name):
    x = b.value(lambda v: len(v.shape) == 2)
    b.add(f"{name}(scale(matmul_transposed(normalize({x.name}), normalize({b.like(x).name})), 5.0))", ())


@draws("triplet_margin_loss")
def triplet(b, name):
    x = b.value(lambda v: len(v.shape) > 1)
    b.add(f"{name}({x.name}, {b.like(x).name}, {b.like(x).name}, {b.real(0.2, 1)})", ())


LOSSES = [name for name, draw in DRAWS.items() if draw in (cross_entropy, regression, contrastive, triplet)]
