"""Each instruction that a lane executes for itself, by the stand-ins' interpreter of PTX, on edges and random operands: beside
its definition in NVIDIA's PTX ISA, computed here with whole numbers and fractions. Rounding is exact in each mode. The
functions that a GPU approximates lie within the document's bounds."""

import fractions
import math
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest

import ml_dtypes
import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
DRIVER = TREE / "build" / "tests" / "cuda" / "ptx_driver"
COUNT = 512  # operands of a form, one a thread
Fraction = fractions.Fraction
NAN, INFINITY = math.nan, math.inf
BITS = {"pred": 32, **{f"{kind}{bits}": bits for kind in "bus" for bits in (16, 32, 64)}, "f32": 32, "f64": 64, "f16": 16, "bf16": 16}
LETTER = {16: "h", 32: "r", 64: "d"}

# ---- Numbers as bits ----


def unpacked(bits, kind):
    """The number that bits of a type are."""
    width = BITS[kind]
    if kind == "f32":
        return struct.unpack("f", struct.pack("I", bits))[0]
    if kind == "f64":
        return struct.unpack("d", struct.pack("Q", bits))[0]
    if kind in ("f16", "bf16"):
        return float(np.array([bits], np.uint16).view(np.float16 if kind == "f16" else ml_dtypes.bfloat16)[0])
    return bits - (1 << width) if kind[0] == "s" and bits >> (width - 1) else bits


def nearest(number, kind):
    """The bits of a float of 16 bits, as NumPy or ml_dtypes round it."""
    if math.isnan(number):
        return 0x7FFF
    with np.errstate(over="ignore"):
        return int(np.array([np.float32(number)]).astype(np.float16 if kind == "f16" else ml_dtypes.bfloat16).view(np.uint16)[0])


def packed(number, kind):
    if kind == "pred":
        return int(bool(number))
    if kind in ("f16", "bf16"):
        return nearest(number, kind)
    if kind == "f32":
        return 0x7FFFFFFF if math.isnan(number) else struct.unpack("I", struct.pack("f", number))[0]
    if kind == "f64":
        return struct.unpack("Q", struct.pack("d", number))[0]
    return int(number) & ((1 << BITS[kind]) - 1)


def rounded(exact, kind, mode="rn", sign=1):
    """A fraction as a float of the type; sign: of a zero."""
    if exact == 0:
        return math.copysign(0.0, sign)
    digits, least = (24, -149) if kind == "f32" else (53, -1074)
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2)**exponent > size
    unit = max(exponent - digits + 1, least)
    scaled = size / Fraction(2)**unit
    whole = math.floor(scaled)
    rest = scaled - whole
    up = {"rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2), "rz": False, "rm": rest > 0 > exact, "rp": rest > 0 and exact > 0}
    whole += bool(up[mode])
    most = (1 << digits) * Fraction(2)**((127 if kind == "f32" else 1023) - digits + 1)
    if whole * Fraction(2)**unit >= most:
        to_infinity = mode == "rn" or (mode == "rm" and exact < 0) or (mode == "rp" and exact > 0)
        largest = float(most - Fraction(2)**((104 if kind == "f32" else 971)))
        return (1 if exact > 0 else -1) * (INFINITY if to_infinity else largest)
    return math.copysign(math.ldexp(whole, unit), 1 if exact > 0 else -1)


# ---- What floating point gives ----


def plus(a, b, kind, mode="rn"):
    if not (math.isfinite(a) and math.isfinite(b)):
        return a + b
    exact = Fraction(a) + Fraction(b)
    if a == b == 0:
        return a if math.copysign(1, a) == math.copysign(1, b) else (-0.0 if mode == "rm" else 0.0)
    return rounded(exact, kind, mode, -1 if mode == "rm" else 1)


def times(a, b, kind, mode="rn"):
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b
    return rounded(Fraction(a) * Fraction(b), kind, mode, math.copysign(1, a) * math.copysign(1, b))


def fused(a, b, c, kind, mode="rn"):
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    product = Fraction(a) * Fraction(b)
    if product == 0 or product + Fraction(c) == 0:
        zero = math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
        if product == 0:
            return plus(zero, c, kind, mode)
        return -0.0 if mode == "rm" else 0.0
    return rounded(product + Fraction(c), kind, mode)


def over(a, b, kind, mode="rn"):
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (a == b == 0) or (math.isinf(a) and math.isinf(b)):
        return NAN
    if b == 0 or math.isinf(a):
        return math.copysign(INFINITY, sign)
    return math.copysign(0.0, sign) if math.isinf(b) else rounded(Fraction(a) / Fraction(b), kind, mode, sign)


def root(a, kind):
    if math.isnan(a) or a < 0:
        return NAN
    if a == 0 or math.isinf(a):
        return a
    exact = Fraction(a) * 4**600  # its root has more digits than any type
    return rounded(Fraction(math.isqrt(exact.numerator * 4**200 // exact.denominator) * 2 + 1, 2**801), kind) if math.isqrt(
        exact.numerator) ** 2 != exact.numerator or exact.denominator != 1 else rounded(Fraction(math.isqrt(exact.numerator), 2**600), kind)


def chosen(a, b, most):
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    if a == b == 0:
        return min(a, b, key=lambda x: math.copysign(1, x)) if not most else max(a, b, key=lambda x: math.copysign(1, x))
    return max(a, b) if most else min(a, b)


def flushed(x):
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def saturated(x):
    return min(x, 1.0) if x > 0 else 0.0


def even(x):
    return float(round(x)) if math.isfinite(x) else x


ROUND = {"rni": even, "rzi": lambda x: float(math.trunc(x)) if math.isfinite(x) else x,
         "rmi": lambda x: float(math.floor(x)) if math.isfinite(x) else x, "rpi": lambda x: float(math.ceil(x)) if math.isfinite(x) else x}


def whole(x, to, source):
    width, signed = BITS[to], to[0] == "s"
    least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if math.isnan(x):
        return 1 << (width - 1) if source == "f64" or width == 64 else 0
    return least if x < least else most if x > most else int(x)


# ---- The table: name, type of the result, types of operands, definition ----

FORMS = []


def form(name, to, given, function):
    FORMS.append((name, to, given.split(), function))


def divided(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


for width in (16, 32, 64):
    b, u, s = (f"{letter}{width}" for letter in "bus")
    for t in (u, s):
        form(f"add.{t}", t, f"{t} {t}", lambda x, y: x + y)
        form(f"sub.{t}", t, f"{t} {t}", lambda x, y: x - y)
        form(f"mul.lo.{t}", t, f"{t} {t}", lambda x, y: x * y)
        form(f"mad.lo.{t}", t, f"{t} {t} {t}", lambda x, y, z: x * y + z)
        form(f"min.{t}", t, f"{t} {t}", min)
        form(f"max.{t}", t, f"{t} {t}", max)
        form(f"shr.{t}", t, f"{t} u32", lambda x, y: x >> min(y, 64))
        form(f"div.{t}", t, f"{t} {t}", lambda x, y, w=width: divided(x, y) if y else (1 << w) - 1)
        form(f"rem.{t}", t, f"{t} {t}", lambda x, y: x - y * divided(x, y) if y else x)
        form(f"mov.{t}", t, t, lambda x: x)
        form(f"selp.{t}", t, f"{t} {t} pred", lambda x, y, p: x if p else y)
        for name, compare in (("eq", "__eq__"), ("ne", "__ne__"), ("lt", "__lt__"), ("le", "__le__"), ("gt", "__gt__"), ("ge", "__ge__")):
            form(f"setp.{name}.{t}", "pred", f"{t} {t}", lambda x, y, c=compare: getattr(x, c)(y))
    form(f"mov.{b}", b, b, lambda x: x)
    form(f"selp.{b}", b, f"{b} {b} pred", lambda x, y, p: x if p else y)
    form(f"and.{b}", b, f"{b} {b}", lambda x, y: x & y)
    form(f"or.{b}", b, f"{b} {b}", lambda x, y: x | y)
    form(f"xor.{b}", b, f"{b} {b}", lambda x, y: x ^ y)
    form(f"not.{b}", b, b, lambda x: ~x)
    form(f"cnot.{b}", b, b, lambda x: x == 0)
    form(f"shl.{b}", b, f"{b} u32", lambda x, y: x << min(y, 64))
    form(f"shr.{b}", b, f"{b} u32", lambda x, y: x >> min(y, 64))
    form(f"neg.{s}", s, s, lambda x: -x)
    form(f"abs.{s}", s, s, abs)
    form(f"setp.eq.{b}", "pred", f"{b} {b}", lambda x, y: x == y)
    form(f"setp.ne.{b}", "pred", f"{b} {b}", lambda x, y: x != y)
for width in (32, 64):
    for t in (f"u{width}", f"s{width}"):
        form(f"mul.hi.{t}", t, f"{t} {t}", lambda x, y, w=width: x * y >> w)
    ones = (1 << width) - 1
    form(f"popc.b{width}", "u32", f"b{width}", lambda x: bin(x).count("1"))
    form(f"clz.b{width}", "u32", f"b{width}", lambda x, w=width: w - x.bit_length())
    form(f"bfi.b{width}", f"b{width}", f"b{width} b{width} u32 u32",
         lambda x, y, p, n, w=width, o=ones: y if p % 256 >= w else (y & ~(((1 << n % 256) - 1 << p % 256) & o)) | ((x & (1 << n % 256) - 1) << p % 256) & o)
    form(f"bfe.u{width}", f"u{width}", f"u{width} u32 u32", lambda x, p, n: x >> p % 256 & (1 << n % 256) - 1)
for t, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
    form(f"mul.wide.{t}", wide, f"{t} {t}", lambda x, y: x * y)
    form(f"mad.wide.{t}", wide, f"{t} {t} {wide}", lambda x, y, z: x * y + z)
form("mad.hi.u32", "u32", "u32 u32 u32", lambda x, y, z: (x * y >> 32) + z)
form("prmt.b32", "b32", "b32 b32 b32", lambda x, y, s: sum(
    (lambda byte, c: (255 * (byte >> 7) if c & 8 else byte))((y << 32 | x) >> 8 * (s >> 4 * i & 7) & 255, s >> 4 * i) << 8 * i for i in range(4)))
form("dp2a.lo.u32.u32", "u32", "u32 u32 u32", lambda x, y, z: (x & 65535) * (y & 255) + (x >> 16) * (y >> 8 & 255) + z)
form("dp2a.hi.u32.u32", "u32", "u32 u32 u32", lambda x, y, z: (x & 65535) * (y >> 16 & 255) + (x >> 16) * (y >> 24) + z)
form("shf.l.wrap.b32", "b32", "b32 b32 u32", lambda x, y, n: (y << 32 | x) << n % 32 >> 32)
form("shf.r.wrap.b32", "b32", "b32 b32 u32", lambda x, y, n: (y << 32 | x) >> n % 32)
for name, function in (("and", lambda p, q: p and q), ("or", lambda p, q: p or q), ("xor", lambda p, q: p != q)):
    form(f"{name}.pred", "pred", "pred pred", function)
    form(f"setp.lt.{name}.s32", "pred", "s32 s32 pred", lambda x, y, p, f=function: f(x < y, bool(p)))
form("not.pred", "pred", "pred", lambda p: not p)
form("mov.pred", "pred", "pred", lambda p: p)

for t in ("f32", "f64"):
    form(f"mov.{t}", t, t, lambda x: x)
    form(f"selp.{t}", t, f"{t} {t} pred", lambda x, y, p: x if p else y)
    for mode in ("rn", "rz", "rm", "rp"):
        form(f"add.{mode}.{t}", t, f"{t} {t}", lambda x, y, t=t, m=mode: plus(x, y, t, m))
        form(f"sub.{mode}.{t}", t, f"{t} {t}", lambda x, y, t=t, m=mode: plus(x, -y, t, m))
        form(f"mul.{mode}.{t}", t, f"{t} {t}", lambda x, y, t=t, m=mode: times(x, y, t, m))
        form(f"fma.{mode}.{t}", t, f"{t} {t} {t}", lambda x, y, z, t=t, m=mode: fused(x, y, z, t, m))
        form(f"div.{mode}.{t}", t, f"{t} {t}", lambda x, y, t=t, m=mode: over(x, y, t, m))
        form(f"rcp.{mode}.{t}", t, t, lambda x, t=t, m=mode: over(1.0, x, t, m))
    form(f"add.{t}", t, f"{t} {t}", lambda x, y, t=t: plus(x, y, t))
    form(f"sub.{t}", t, f"{t} {t}", lambda x, y, t=t: plus(x, -y, t))
    form(f"mul.{t}", t, f"{t} {t}", lambda x, y, t=t: times(x, y, t))
    form(f"sqrt.rn.{t}", t, t, lambda x, t=t: root(x, t))
    form(f"min.{t}", t, f"{t} {t}", lambda x, y: chosen(x, y, False))
    form(f"max.{t}", t, f"{t} {t}", lambda x, y: chosen(x, y, True))
    bits = BITS[t]
    form(f"abs.{t}", f"b{bits}", f"b{bits}", lambda x, n=bits: x & ~(1 << (n - 1)))
    form(f"neg.{t}", f"b{bits}", f"b{bits}", lambda x, n=bits: x ^ (1 << (n - 1)))
    form(f"copysign.{t}", f"b{bits}", f"b{bits} b{bits}", lambda x, y, n=bits: (y & ~(1 << (n - 1))) | x & 1 << (n - 1))
    form(f"cvt.sat.{t}.{t}", t, t, saturated)
    for name, orders in (("eq", "e"), ("ne", "lg"), ("lt", "l"), ("le", "le"), ("gt", "g"), ("ge", "ge"), ("equ", "eu"), ("neu", "lgu"), ("ltu", "lu"),
                         ("leu", "leu"), ("gtu", "gu"), ("geu", "geu"), ("num", "leg"), ("nan", "u")):
        form(f"setp.{name}.{t}", "pred", f"{t} {t}",
             lambda x, y, o=orders: ("u" if math.isnan(x) or math.isnan(y) else "l" if x < y else "g" if x > y else "e") in o)
    for mode, function in ROUND.items():
        form(f"cvt.{mode}.{t}.{t}", t, t, lambda x, f=function: math.copysign(f(x), x))
        for to in ("s32", "u32", "s64", "u64"):
            form(f"cvt.{mode}.{to}.{t}", to, t, lambda x, f=function, to=to, t=t: whole(f(x), to, t))
    for source in ("u16", "s16", "u32", "s32", "u64", "s64"):
        form(f"cvt.rn.{t}.{source}", t, source, lambda x, t=t: rounded(Fraction(x), t))
for name, operation in (("add", lambda x, y: plus(x, y, "f32")), ("sub", lambda x, y: plus(x, -y, "f32")), ("mul", lambda x, y: times(x, y, "f32"))):
    form(f"{name}.ftz.f32", "f32", "f32 f32", lambda x, y, f=operation: flushed(f(flushed(x), flushed(y))))
form("add.sat.f32", "f32", "f32 f32", lambda x, y: saturated(plus(x, y, "f32")))
form("mul.sat.f32", "f32", "f32 f32", lambda x, y: saturated(times(x, y, "f32")))
form("fma.rn.sat.f32", "f32", "f32 f32 f32", lambda x, y, z: saturated(fused(x, y, z, "f32")))
form("fma.rn.ftz.f32", "f32", "f32 f32 f32", lambda x, y, z: flushed(fused(flushed(x), flushed(y), flushed(z), "f32")))
form("min.NaN.f32", "f32", "f32 f32", lambda x, y: NAN if math.isnan(x) or math.isnan(y) else chosen(x, y, False))
form("max.NaN.f32", "f32", "f32 f32", lambda x, y: NAN if math.isnan(x) or math.isnan(y) else chosen(x, y, True))
form("cvt.f64.f32", "f64", "f32", float)
form("cvt.rn.f32.f64", "f32", "f64", lambda x: rounded(Fraction(x), "f32", "rn", math.copysign(1, x)) if math.isfinite(x) else x)
for t in ("f16", "bf16"):
    form(f"cvt.rn.{t}.f32", t, "f32", lambda x: x)
    form(f"cvt.f32.{t}", "f32", t, lambda x: x)
    form(f"cvt.rn.{t}x2.f32", "b32", "f32 f32", lambda x, y, t=t: nearest(x, t) << 16 | nearest(y, t))
for to, source in (("u32", "u16"), ("u64", "u16"), ("s32", "u16"), ("u32", "s16"), ("s32", "s16"), ("s64", "s16"), ("u16", "u32"), ("u64", "u32"),
                   ("s64", "s32"), ("u64", "s32"), ("u16", "u64"), ("u32", "u64"), ("s32", "s64"), ("s16", "s32")):
    form(f"cvt.{to}.{source}", to, source, lambda x: x)


def chain(lines, function, result="b64"):
    """Several instructions as one: of the carry nothing else can be seen."""
    FORMS.append((lines, result, ["b64", "b64", "b64"], function))


# d = a + b, a - b, the low half of a b + c and what is above it, in halves: %r of r0 = low, r1 = high.
ADD = "add.cc.u32 %lo, %a0, %b0; addc.cc.u32 %hi, %a1, %b1; addc.u32 %hi, %hi, 0;"
SUB = "sub.cc.u32 %lo, %a0, %b0; subc.cc.u32 %hi, %a1, %b1; subc.u32 %hi, %hi, 0;"
LOW = "mad.lo.cc.u32 %lo, %a0, %b0, %c0; madc.hi.cc.u32 %hi, %a0, %b0, %c1; madc.lo.cc.u32 %hi, 0, 0, %hi;"
HIGH = "mad.lo.cc.u32 %lo, %a0, %b0, %c0; madc.lo.u32 %lo, %a1, %b1, %c1; mad.hi.cc.u32 %hi, %a0, %b0, %c0; madc.hi.u32 %hi, %a1, %b1, %c1;"
LOW32 = (1 << 32) - 1
chain(ADD, lambda a, b, c: ((a + b) & LOW32) | ((a + b & (1 << 64) - 1) >> 32) + (a + b >> 64) << 32)
chain(SUB, lambda a, b, c: (a - b & LOW32) | ((a - b) >> 32 & LOW32) - (a < b) << 32)
chain(LOW, lambda a, b, c: ((a & LOW32) * (b & LOW32) + c & LOW32) | (((a & LOW32) * (b & LOW32) + c >> 32) & LOW32) + 
      ((a & LOW32) * (b & LOW32) + c >> 64) << 32)


def high(a, b, c):
    a0, a1, b0, b1, c0, c1 = a & LOW32, a >> 32, b & LOW32, b >> 32, c & LOW32, c >> 32
    low = (a1 * b1 & LOW32) + c1 + ((a0 * b0 & LOW32) + c0 >> 32) & LOW32
    above = (a0 * b0 >> 32) + c0
    return low | ((a1 * b1 >> 32) + c1 + (above >> 32) & LOW32) << 32


chain(HIGH, high)

def upper(x):
    """The number whose lower 32 bits are not looked at."""
    return unpacked(packed(x, "f64") >> 32 << 32, "f64")


# What is approximated: the document's bounds, as an error relative to the true value.
APPROXIMATE = {"ex2.approx.ftz.f32": (lambda x: 2.0**x, 2**-22), "ex2.approx.f32": (lambda x: 2.0**x, 2**-22),
               "rcp.approx.ftz.f32": (lambda x: 1 / x, 2**-23), "rcp.approx.f32": (lambda x: 1 / x, 2**-23),
               "rsqrt.approx.f32": (lambda x: abs(x)**-0.5, 2**-22.9), "rsqrt.approx.ftz.f32": (lambda x: abs(x)**-0.5, 2**-22.9),
               "sqrt.approx.f32": (lambda x: abs(x)**0.5, 2**-23), "sqrt.approx.ftz.f32": (lambda x: abs(x)**0.5, 2**-23),
               "div.approx.f32": (None, 2**-22), "div.full.f32": (None, 2**-22),
               "tanh.approx.f32": (math.tanh, 2**-11), "rcp.approx.ftz.f64": (lambda x: 1 / upper(x), 2**-20),
               "rsqrt.approx.ftz.f64": (lambda x: abs(upper(x))**-0.5, 2**-20)}
ABSOLUTE = {"lg2.approx.f32": (lambda x: math.log2(abs(x)), 2**-22), "lg2.approx.ftz.f32": (lambda x: math.log2(abs(x)), 2**-22),
            "sin.approx.f32": (math.sin, 2**-20.9), "cos.approx.f32": (math.cos, 2**-20.9)}

FLOATS = {"f32": [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x3F800000, 0xBF800000, 0x3F000000, 0x3FC00000, 0x40200000, 0x7F7FFFFF, 0xFF7FFFFF,
                  0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345, 0x4F000000, 0xCF000000, 0x4B000001, 0x5F000000, 0x477FF000, 0x33000001, 0x38800000, 0x3F808000],
          "f64": [0, 1 << 63, 1, 0xFFFFFFFFFFFFF, 1 << 52, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000, 0x3FF8000000000000, 0x4004000000000000,
                  0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x41E0000000000000, 0xC1E0000000200000, 0x43E0000000000000,
                  0x36A0000000000000, 0x47EFFFFFF0000000]}


def operands(kind, rng, count):
    width = BITS[kind]
    if kind == "pred":
        return [rng.getrandbits(1) for _ in range(count)]
    edges = FLOATS.get(kind, [0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 65, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1])
    edges = [edge & ((1 << width) - 1) for edge in edges]
    made = []
    for _ in range(count):
        bits = rng.choice(edges) if rng.random() < 0.4 else rng.getrandbits(width)
        if kind in FLOATS and rng.random() < 0.5:  # near each other, so that sums cancel and quotients are no powers of two
            bits = packed(math.ldexp(rng.uniform(-2, 2), rng.randrange(-30, 34)), kind)
        made.append(bits)
    return made


def kernel(name, to, given):
    """A kernel of one form: thread i has the operands i."""
    text = [".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry one(.param .u64 result"]
    text += [f", .param .u64 operand{i}" for i in range(len(given))]
    text += [") {\n.reg .b16 %h<9>;\n.reg .b32 %r<9>, %t, %lo, %hi, %a0, %a1, %b0, %b1, %c0, %c1;\n.reg .b64 %d<9>, %at, %i;\n.reg .pred %p<9>;\n",
             "mov.u32 %t, %tid.x;\n"]
    names = []
    for i, kind in enumerate(given):
        width = BITS[kind]
        names.append(f"%{LETTER[width]}{i + 1}")
        text.append(f"ld.param.u64 %at, [operand{i}];\nmul.wide.u32 %i, %t, {width // 8};\nadd.s64 %at, %at, %i;\nld.global.b{width} {names[-1]}, [%at];\n")
        if kind == "pred":
            text.append(f"setp.ne.u32 %p{i + 1}, {names[-1]}, 0;\n")
            names[-1] = f"%p{i + 1}"
    width = BITS[to]
    result = "%p0" if to == "pred" else f"%{LETTER[width]}0"
    if ";" in name:
        text.append("mov.b64 {%a0, %a1}, %d1;\nmov.b64 {%b0, %b1}, %d2;\nmov.b64 {%c0, %c1}, %d3;\n" + name + "\nmov.b64 %d0, {%lo, %hi};\n")
    else:
        text.append(f"{name} {', '.join([result, *names])};\n")
    if to == "pred":
        text.append("selp.u32 %r0, 1, 0, %p0;\n")
    text.append(f"ld.param.u64 %at, [result];\nmul.wide.u32 %i, %t, {width // 8};\nadd.s64 %at, %at, %i;\nst.global.b{width} [%at], %{LETTER[width]}0;\nret;\n}}\n")
    return "".join(text)


@unittest.skipUnless(DRIVER.exists(), "there is no CUDA toolkit, so the stand-ins were not built")
class Forms(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        seed = int(os.environ.get("SEED", 1))
        self.rng = random.Random(seed)

    def run_form(self, name, to, given):
        lists = [operands(kind, self.rng, COUNT) for kind in given]
        words = []
        for i, (kind, bits) in enumerate(zip(given, lists)):
            np.array(bits, f"u{BITS[kind] // 8}").tofile(self.folder / f"{i}")
            words.append(f"inout:{self.folder / str(i)}")
        (self.folder / "one.ptx").write_text(kernel(name, to, given))
        ended = subprocess.run([DRIVER, self.folder / "one.ptx", "one", "1", str(COUNT), f"out:{self.folder / 'result'}:{COUNT * BITS[to] // 8}", *words],
                               capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, f"{name}: {ended.stderr}")
        return lists, [int(x) for x in np.fromfile(self.folder / "result", f"u{BITS[to] // 8}")]

    def test_exact(self):
        for name, to, given, function in FORMS:
            lists, found = self.run_form(name, to, given)
            for bits, one in zip(zip(*lists), found):
                numbers = [unpacked(x, kind) for x, kind in zip(bits, given)]
                moved = name.startswith(("mov.", "selp."))
                wanted = function(*bits) if moved else packed(function(*numbers), to)
                if to == "f64" and not moved and math.isnan(unpacked(wanted, to)) and math.isnan(unpacked(one, to)):
                    continue  # which number that is none is not said of double precision
                self.assertEqual(one, int(wanted), f"{name} of {[hex(x) for x in bits]} ({numbers}): {one:#x} instead of {int(wanted):#x}")

    def test_approximate(self):
        for name, (function, bound) in {**APPROXIMATE, **ABSOLUTE}.items():
            kind = name[-3:]
            given = [kind] * (2 if name.startswith("div") else 1)
            lists, found = self.run_form(name, kind, given)
            for bits, one in zip(zip(*lists), found):
                numbers = [unpacked(x, kind) for x in bits]
                if not all(math.isfinite(x) and 2.0**-60 < abs(x) < 2.0**60 for x in numbers):
                    continue
                if (name[:2] in ("lg", "sq", "rs") and numbers[0] < 0) or (name[:2] == "ex" and abs(numbers[0]) > 120) or (name[:3] in ("sin", "cos") and abs(numbers[0]) > 3.14):
                    continue
                true = numbers[0] / numbers[1] if function is None else function(*numbers)
                away = abs(unpacked(one, kind) - true)
                self.assertLessEqual(away, bound * max(1, abs(true)) if name in ABSOLUTE else bound * abs(true), f"{name} of {numbers}")

    def test_all_known(self):
        """An instruction that there is not, or of another type, is refused by its name."""
        for name in ("add.f31", "fma.rn.bf16x2", "tex.2d"):
            (self.folder / "one.ptx").write_text(kernel(name, "f32", ["f32", "f32"]))
            ended = subprocess.run([DRIVER, "--kernels", self.folder / "one.ptx"], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 70)
            self.assertIn(f"one: no instruction that is known: '{name}'", ended.stderr)


if __name__ == "__main__":
    unittest.main()
