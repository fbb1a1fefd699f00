"""Draws of the functions of accel/model.h that are about elements, shapes, sums and positions. A draw takes values of a body
that fit, and adds statements; where none fits it raises NoFit. DRAWS is all of them, of the other files too."""

import re

from body import NoFit, times

DRAWS = {}


def draws(*names):
    """Says that a function draws these of the vocabulary; it gets the body and the name."""

    def remember(function):
        DRAWS.update({name: function for name in names})
        return function

    return remember


def functions(folder):
    """The names that the headers give a model: of functions, or of the macros that count their arguments."""
    names, macros = set(), set()
    for header in ("model.h", "images.h", "losses.h"):
        text = re.sub(r"/\*.*?\*/", "", (folder / header).read_text(), flags=re.S)
        names |= set(re.findall(r"^(?:tensor|scope|int) (\w+)\(", text, re.M))
        macros |= {name for name in re.findall(r"^#define (\w+)\(", text, re.M) if not name.startswith("ACCEL_")}
    return names - {f"{name}_{end}" for name in macros for end in ("of", "to")} | macros


# ---- Elements ----

@draws("scale", "shift", "neg", "square", "abs_of", "softplus", "detach", "sin_of", "cos_of", "tanh_of", "sigmoid", "relu", "silu", "gelu",
       "gelu_tanh", "exp_of", "log_of", "sqrt_of", "rsqrt_of", "pow_of", "clamp", "dropout")
def unary(b, name):
    x = b.value()
    if name in ("exp_of",):
        x = b.add(f"clamp({x.name}, -3.0, 2.0)", x.shape)
    if name in ("log_of", "sqrt_of", "rsqrt_of", "pow_of"):
        x = b.add(f"shift(square({x.name}), 0.5)", x.shape)
    more = {"scale": b.real(-1, 1), "shift": b.real(-1, 1), "pow_of": b.random.choice(("2", "0.5", "-0.5", "1.5")),
            "clamp": "-0.7, 0.9", "dropout": b.random.choice(("0.0", "0.1", "0.5", "c.drop"))}.get(name)
    b.add(f"{name}({x.name}, {more})" if more else f"{name}({x.name})", x.shape)


@draws("add", "sub", "mul", "divide", "maximum", "minimum", "greater", "greater_equal", "less", "less_equal", "equal")
def binary(b, name):
    x, way = b.value(), b.random.random()
    if way < 0.5:
        y = b.like(x)
    elif way < 0.8:
        y = b.value(lambda v: len(v.shape) <= len(x.shape) and all(
            e in (1, f) for e, f in zip(v.shape[::-1], x.shape[::-1])))
    else:
        shape = x.shape[b.random.randint(0, len(x.shape)):]
        if not shape or any(isinstance(extent, str) for extent in shape):
            raise NoFit
        y = b.spread(tuple(b.random.choice((1, extent)) for extent in shape))
    if name == "divide":
        y = b.add(f"shift(square({y.name}), 1.0)", y.shape)
    pair = [x.name, y.name]
    if name != "divide":
        b.random.shuffle(pair)
    b.add(f"{name}({', '.join(pair)})", x.shape)


@draws("where")
def where(b, name):
    x = b.value()
    y = b.like(x)
    condition = b.add(f"greater({b.like(x).name}, constant(0.1, 1))", x.shape or (1,))
    b.add(f"where({condition.name}, {x.name}, {y.name})", condition.shape)


@draws("cast_index")
def cast_index(b, name):
    x = b.value(lambda v: v.below is not None, "i")
    whole = b.add(f"cast_float({x.name})", x.shape)
    b.add(f"cast_index({whole.name}, {b.number(x.below)})", x.shape, "i", x.below)


@draws("cast_float")
def cast_float(b, name):
    x = b.value(kind="i")
    b.add(f"scale(cast_float({x.name}), 0.01)", x.shape)


@draws("random_normal", "random_uniform", "random_int", "constant")
def made(b, name):
    b.may_draw(name != "constant")
    like, bound = b.value(), b.size()
    shape = b.random.choice((like.shape, (b.size(), b.size()))) or (1,)
    first = {"random_int": f"{b.number(bound)}, ", "constant": b.real(-1, 1) + ", "}.get(name, "")
    b.add(f"{name}({first}{b.numbers(shape)})", shape, "i" if name == "random_int" else "f",
          bound if name == "random_int" else None)


@draws("arange")
def arange(b, name):
    extent = b.random.choice([e for v in b.values for e in v.shape if isinstance(e, int)] or [3])
    b.add(f"arange({b.number(extent)})", (extent,), "i", extent)


@draws("table_of", "int_table_of")
def table(b, name):
    n, whole, array = b.size(), name == "int_table_of", b.model.name("t")
    numbers = ", ".join(str(b.random.randrange(n)) if whole else b.real(-1, 1) for _ in range(n))
    b.say(f"  {'int' if whole else 'double'} {array}[{n}] = {{{numbers}}};")
    b.add(f"{name}({n}, {array})", (n,), "i" if whole else "f", n if whole else None)


@draws("rank")
def rank(b, name):
    x = b.value()
    b.add(f"rank({x.name}) > 2 ? relu({x.name}) : scale({x.name}, 0.5)", x.shape)


# ---- Shapes ----

@draws("reshape")
def reshape(b, name):
    x = b.value(lambda v: v.shape, b.random.choice("ffffi"))
    numbers = [extent for extent in x.shape if isinstance(extent, int)]
    symbols = [extent for extent in x.shape if isinstance(extent, str)]
    way = b.random.randrange(4)
    if way == 0 and len(x.shape) > 1:
        first = x.shape[:2]
        merged = times(*first) if isinstance(first[0], str) and isinstance(first[1], int) else None
        merged = first[0] * first[1] if all(isinstance(e, int) for e in first) else merged
        if merged is None:
            raise NoFit
        b.add(f"reshape({x.name}, {', '.join(['-1', *map(b.number, x.shape[2:])])})", (merged, *x.shape[2:]), x.kind, x.below)
    elif way == 1:
        at = b.random.randrange(len(x.shape) + 1)
        shape = x.shape[:at] + (1,) + x.shape[at:]
        b.add(f"reshape({x.name}, {b.numbers(shape)})", shape, x.kind, x.below)
    elif way == 2 and numbers and isinstance(x.shape[-1], int):
        part = b.random.choice([n for n in range(1, x.shape[-1] + 1) if x.shape[-1] % n == 0])
        shape = (*x.shape[:-1], x.shape[-1] // part, part)
        b.add(f"reshape({x.name}, {b.numbers(shape)})", shape, x.kind, x.below)
    elif len(symbols) == 1 and x.shape[0] == symbols[0] and len(numbers) > 1:
        product = 1
        for extent in numbers:
            product *= extent
        b.add(f"reshape({x.name}, {b.number(x.shape[0])}, -1)", (x.shape[0], product), x.kind, x.below)
    else:
        raise NoFit


@draws("transpose", "flip", "roll")
def turned(b, name):
    x = b.value(lambda v: len(v.shape) > 1, b.random.choice("ffffi") if name == "transpose" else "f")
    one, other = b.random.sample(range(len(x.shape)), 2)
    if name == "flip":
        b.add(f"flip({x.name}, {one})", x.shape)
        return
    if name == "roll":
        b.add(f"roll({x.name}, {one}, {b.random.randint(-9, 9)})", x.shape)
        return
    shape = list(x.shape)
    shape[one], shape[other] = shape[other], shape[one]
    b.add(f"transpose({x.name}, {one - len(shape) if b.random.random() < 0.3 else one}, {other})", shape, x.kind, x.below)


def numbered_axis(b, x, least=1):
    """An axis whose extent is a number."""
    axes = [axis for axis, extent in enumerate(x.shape) if isinstance(extent, int) and extent >= least]
    if not axes:
        raise NoFit
    return b.random.choice(axes)


@draws("split", "slice", "pad", "concat")
def cut(b, name):
    x = b.value(lambda v: any(isinstance(e, int) for e in v.shape), b.random.choice("ffffi") if name in ("split", "slice") else "f")
    axis, shape = numbered_axis(b, x), list(x.shape)
    extent = shape[axis]
    if name == "split":
        parts = b.random.choice([n for n in range(1, extent + 1) if extent % n == 0])
        shape[axis] = extent // parts
        more = f"{axis}, {parts}, {b.random.randrange(parts)}"
    elif name == "slice":
        start = b.random.randrange(extent)
        shape[axis] = b.random.randint(1, extent - start)
        more = f"{axis}, {start}, {b.number(shape[axis])}"
    elif name == "pad":
        before, after = b.random.randint(0, 2), b.random.randint(0, 2)
        shape[axis] = extent + before + after
        more = f"{axis}, {before}, {after}"
    else:
        others = [b.value(lambda v: len(v.shape) == len(shape) and isinstance(v.shape[axis], int) and
                          v.shape[:axis] + v.shape[axis + 1:] == x.shape[:axis] + x.shape[axis + 1:])
                  for _ in range(b.random.randint(1, 3))]
        shape[axis] = extent + sum(other.shape[axis] for other in others)
        b.add(f"concat({axis}, {x.name}, {', '.join(other.name for other in others)})", shape)
        return
    b.add(f"{name}({x.name}, {more})", shape, x.kind, x.below)


# ---- Positions ----

@draws("take")
def take(b, name):
    x = b.value(lambda v: len(v.shape) == 2 and isinstance(v.shape[0], int))
    index = b.index(x.shape[0])
    b.add(f"take({x.name}, {index.name})", (*index.shape, x.shape[1]))


@draws("index_add")
def index_add(b, name):
    x = b.value(lambda v: len(v.shape) > 1)
    index = b.value(lambda v: v.below is not None and v.shape == x.shape[:-1], "i")
    rows = index.below + b.random.randint(0, 2)
    b.add(f"index_add({x.name}, {index.name}, {b.number(rows)})", (rows, x.shape[-1]))


@draws("gather", "scatter_add")
def gather(b, name):
    x = b.value(lambda v: any(isinstance(e, int) for e in v.shape))
    axis = numbered_axis(b, x)
    shape = list(x.shape)
    bound = shape[axis] if name == "gather" else shape[axis] + 1
    shape[axis] = b.size() if name == "gather" else shape[axis]
    if b.model.may_draw or not isinstance(x.shape[-1], int):
        b.may_draw()
        index = b.add(f"random_int({b.number(bound)}, {b.numbers(shape)})", shape, "i", bound)
    else:
        axis, shape, bound = len(x.shape) - 1, x.shape, x.shape[-1]
        index = b.add(f"top_k_indices({x.name}, {b.number(bound)})", shape, "i", bound)
    if name == "gather":
        b.add(f"gather({x.name}, {axis}, {index.name})", shape)
    else:
        b.add(f"scatter_add({x.name}, {axis}, {index.name}, {bound})", (*shape[:axis], bound, *shape[axis + 1:]))


@draws("argmax", "max_along", "min_along", "sum", "mean", "variance")
def along(b, name):
    x = b.value(lambda v: v.shape)
    axis = numbered_axis(b, x) if name == "argmax" else b.random.randrange(len(x.shape))
    back = axis - len(x.shape) if b.random.random() < 0.3 else axis
    shape = x.shape[:axis] + x.shape[axis + 1:]
    b.add(f"{name}({x.name}, {back})", shape, *(("i", x.shape[axis]) if name == "argmax" else ()))


@draws("top_k", "top_k_indices", "top_k_mask")
def top_k(b, name):
    x = b.of_rank(1, 2, 3, 4)
    k = b.random.randint(1, x.shape[-1])
    if name == "top_k_mask":
        b.add(f"top_k_mask({x.name}, {k})", x.shape)
    else:
        positions = name == "top_k_indices"
        b.add(f"{name}({x.name}, {k})", (*x.shape[:-1], k), *(("i", x.shape[-1]) if positions else ()))


@draws("one_hot")
def one_hot(b, name):
    try:
        x = b.value(lambda v: v.below is not None and v.below < 99, "i")
    except NoFit:
        extent = b.size()
        x = b.add(f"arange({b.number(extent)})", (extent,), "i", extent)
    b.add(f"one_hot({x.name}, {b.number(x.below)})", (*x.shape, x.below))


# ---- Sums ----

@draws("sum_all", "mean_all")
def all_of(b, name):
    b.add(f"{name}({b.value().name})", ())


@draws("cumsum")
def cumsum(b, name):
    x = b.value(lambda v: v.shape)
    b.add(f"cumsum({x.name}, {b.random.randrange(len(x.shape))})", x.shape)


@draws("softmax", "log_softmax", "normalize")
def rows(b, name):
    x = b.of_rank(1, 2, 3, 4, last=False)
    b.add(f"{name}({x.name})", x.shape)


@draws("log_sum_exp")
def log_sum_exp(b, name):
    x = b.of_rank(1, 2, 3, last=False)
    b.add(f"log_sum_exp({x.name})", x.shape[:-1])


@draws("cosine_similarity")
def cosine_similarity(b, name):
    x = b.of_rank(1, 2, 3, last=False)
    b.add(f"cosine_similarity({x.name}, {b.like(x).name})", x.shape[:-1])
