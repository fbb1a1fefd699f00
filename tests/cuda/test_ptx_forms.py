"""Each instruction that a lane executes for itself, by the stand-ins' interpreter of PTX, on edges and random operands: beside
its definition in NVIDIA's PTX ISA, computed here with whole numbers and fractions. Rounding is exact in each mode. The
functions that a GPU approximates lie within the document's bounds. And the functions of CUDA's library that programs call, as nvcc
compiles them."""

import fractions
import math
import os
import pathlib
import random
import re
import struct
import subprocess
import tempfile
import unittest

import ml_dtypes
import numpy as np
from ptx import compile_all, nvcc

from rotation import in_turn  # tests/program; isort: skip

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


def tf32(x):
    """11 digits, to the nearest, of two equally near to the larger one; subnormal numbers have as many bits."""
    if not math.isfinite(x) or x == 0:
        return x
    unit = Fraction(2)**max(math.frexp(x)[1] - 11, -136)
    whole = math.floor(abs(Fraction(x)) / unit + Fraction(1, 2))
    return math.copysign(INFINITY, x) if whole * unit >= 2**128 else math.copysign(float(whole * unit), x)


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
for t in ("u16", "s16"):
    form(f"mul.hi.{t}", t, f"{t} {t}", lambda x, y: x * y >> 16)
form("mad.hi.u32", "u32", "u32 u32 u32", lambda x, y, z: (x * y >> 32) + z)
form("prmt.b32", "b32", "b32 b32 b32", lambda x, y, s: sum(
    (lambda byte, c: (255 * (byte >> 7) if c & 8 else byte))((y << 32 | x) >> 8 * (s >> 4 * i & 7) & 255, s >> 4 * i) << 8 * i for i in range(4)))
form("dp2a.lo.u32.u32", "u32", "u32 u32 u32", lambda x, y, z: (x & 65535) * (y & 255) + (x >> 16) * (y >> 8 & 255) + z)
form("dp2a.hi.u32.u32", "u32", "u32 u32 u32", lambda x, y, z: (x & 65535) * (y >> 16 & 255) + (x >> 16) * (y >> 24) + z)
form("dp4a.u32.u32", "u32", "u32 u32 u32", lambda x, y, z: sum((x >> i & 255) * (y >> i & 255) for i in (0, 8, 16, 24)) + z)
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
form("cvt.rna.tf32.f32", "f32", "f32", tf32)
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


# ---- What moves: thread i has 32 bytes in each operand, and in the result ----

LOADS = [f"ld.global{nc}.{form}" for nc in ("", ".nc") for form in ("u8", "u16", "u32", "s32", "b32", "f32", "u64", "f64", "v2.u16", "v2.u32", "v2.f32", "v2.f64",
                                                                   "v4.u16", "v4.u32", "v4.b32", "v4.f32")] + ["ld.global.v8.f32"]
STORES = [f"st.global.{form}" for form in ("u8", "u16", "u32", "b32", "f32", "u64", "f64", "v2.u16", "v2.u32", "v2.f32", "v4.u16", "v4.u32", "v4.b32", "v4.f32", "v8.f32")]
PASSED = [f"{space}.{form}" for space in ("shared", "local") for form in ("u8", "u16", "u32", "b32", "f32", "u64", "f64", "v2.u32", "v2.f32", "v2.f64", "v4.u32", "v4.b32", "v4.f32")]
GIVEN = ".version 8.8\n.target sm_100\n.address_size 64\n"
ENTRY = """.visible .entry one(.param .u64 result, .param .u64 given, .param .u64 other) {
.reg .b16 %h<9>;
.reg .b32 %r<9>, %t, %x;
.reg .b64 %d<9>, %to, %from, %second, %i;
.reg .pred %p;
mov.u32 %t, %tid.x;
shl.b32 %x, %t, 5;
cvt.u64.u32 %i, %x;
ld.param.u64 %to, [result];
ld.param.u64 %from, [given];
ld.param.u64 %second, [other];
cvta.to.global.u64 %from, %from;
add.s64 %to, %to, %i;
add.s64 %from, %from, %i;
add.s64 %second, %second, %i;
"""


def parts_of(form):
    """Bytes of an element, their count, and the registers of v4.u32."""
    count, bits = int(form[1]) if form[0] == "v" else 1, int(form.rpartition(".")[2][1:])
    letter = LETTER[max(bits, 16)]
    names = [f"%{letter}{i}" for i in range(count)]
    return bits // 8, count, names[0] if count == 1 else f"{{{', '.join(names)}}}"


def moves():
    """A kernel for each form: (its text, the first bytes that are the same in the result)."""
    for name in LOADS:
        size, count, names = parts_of(name.removeprefix("ld.global.").removeprefix("nc."))
        stores = [f"st.global.{'b' if size > 1 else 'u'}{size * 8} [%to+{i * size}], %{LETTER[max(16, size * 8)]}{i};" for i in range(count)]
        yield GIVEN + ENTRY + "\n".join([f"{name} {names}, [%from];", *stores, "ret;\n}"]), size * count
    for name in STORES:
        size, count, names = parts_of(name.removeprefix("st.global."))
        loads = [f"ld.global.{'b' if size > 1 else 'u'}{size * 8} %{LETTER[max(16, size * 8)]}{i}, [%from+{i * size}];" for i in range(count)]
        yield GIVEN + ENTRY + "\n".join([*loads, f"{name} [%to], {names};", "ret;\n}"]), size * count
    for name in PASSED:
        space, _, form = name.partition(".")
        size, count, names = parts_of(form)
        memory = f".{space} .align 32 .b8 memory[{2048 if space == 'shared' else 32}];\nmov.u32 %x, memory;\n" + "shl.b32 %t, %t, 5;\nadd.s32 %x, %x, %t;\n" * (space == "shared")
        yield GIVEN + ENTRY + memory + f"ld.global.{form} {names}, [%from];\nst.{name} [%x], {names};\nld.{name} {names}, [%x];\nst.global.{form} [%to], {names};\nret;\n}}", size * count
    for space in ("shared", "local"):  # by an address that could be of any memory
        memory = f".{space} .align 8 .b8 memory[{512 if space == 'shared' else 8}];\nmov.u64 %second, memory;\n" + "mul.wide.u32 %i, %t, 8;\nadd.s64 %second, %second, %i;\n" * (space == "shared")
        yield (GIVEN + ENTRY + memory + f"cvta.{space}.u64 %second, %second;\nld.global.u64 %d0, [%from];\nst.u64 [%second], %d0;\ncvta.to.{space}.u64 %i, %second;\n"
               f"ld.{space}.u64 %d1, [%i];\ncvta.{space}.u64 %i, %i;\nld.u64 %d2, [%i];\nand.b64 %d1, %d1, %d2;\nst.global.u64 [%to], %d1;\nret;\n}}"), 8
    # Through the parameters of a function, and its result.
    for kind, wide in (("f64", "d"), ("b32", "r"), ("u64", "d"), ("u32", "r")):
        bits = kind[1:]
        function = f".func (.param .b{bits} made) same(.param .b{bits} given) {{\n.reg .b{bits} %q;\nld.param.{kind} %q, [given];\nst.param.{kind} [made], %q;\nret;\n}}\n"
        call = f"{{\n.param .b{bits} a;\nst.param.{kind} [a], %{wide}0;\n.param .b{bits} b;\ncall.uni (b), same, (a);\nld.param.{kind} %{wide}1, [b];\n}}\n"
        yield GIVEN + function + ENTRY + f"ld.global.{kind} %{wide}0, [%from];\n{call}st.global.{kind} [%to], %{wide}1;\nret;\n}}", int(bits) // 8
    yield (GIVEN + ENTRY.replace(".param .u64 other", ".param .align 8 .b8 other[8]").replace("ld.param.u64 %second, [other];\n", "ld.param.v2.u32 {%r1, %r2}, [other];\n")
           .replace("add.s64 %second, %second, %i;\n", "") + "ld.global.u32 %r0, [%from];\nst.global.v2.u32 [%to], {%r1, %r2};\nst.global.u32 [%to], %r0;\nret;\n}"), 4


# Each thread has its word: what it gives is the old one. cas compares with what is there in every other thread.
ATOMICS = {"add": lambda x, y: x + y, "min": min, "max": max, "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y, "exch": lambda x, y: y}


def atomic(name, result):
    """The operation on a thread's word of the result, which is what was given before; of atom, what it gives comes after it."""
    bits = int(name[-2:])
    register = LETTER[bits]
    operation = f"{name} %{register}2, [%to], %{register}1;" if result else f"{name} [%to], %{register}1;"
    if ".shared." in name:
        operation = (f".shared .align 8 .b8 memory[512];\nmov.u64 %from, memory;\nmul.wide.u32 %i, %t, 8;\nadd.s64 %from, %from, %i;\nst.shared.b{bits} [%from], %{register}0;\n"
                     f"{name} %{register}2, [%from], %{register}1;\nld.shared.b{bits} %{register}0, [%from];\nst.global.b{bits} [%to], %{register}0;")
    return (GIVEN + ENTRY + f"ld.global.b{bits} %{register}0, [%from];\nld.global.b{bits} %{register}1, [%second];\nst.global.b{bits} [%to], %{register}0;\n{operation}\n"
            + f"st.global.b{bits} [%to+8], %{register}2;\n" * result + "ret;\n}")


def atomics():
    for operation, function in ATOMICS.items():
        kinds = ("u32", "s32", "u64") if operation == "add" else ("u32", "s32", "u64", "s64") if operation in ("min", "max") else ("b32", "b64")
        for kind in kinds:
            yield f"atom.global.{operation}.{kind}", kind, function, True
            if operation == "add":  # of a block's memory
                yield f"atom.shared.{operation}.{kind}", kind, function, True
            if operation != "exch":
                yield f"red.global.{operation}.{kind}", kind, function, False


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

    def open_bits(self, name, to, given, bits, masks):
        """The bits of a result that have no value where an operand's bits in its mask have none, as the message says."""
        made = kernel(name, to, given)
        for i, (kind, mask) in enumerate(zip(given, masks)):
            if mask == 0:
                continue
            width, register = BITS[kind], f"%{LETTER[BITS[kind]]}{i + 1}"
            taken = f"and.b{width} {register}, {register}, {~mask & (1 << width) - 1};\nand.b{width} %open{i}, %open{i}, {mask};\nor.b{width} {register}, {register}, %open{i};\n"
            before, load, after = made.partition(f"ld.global.b{width} {register}, [%at];\n")
            made = before + load + f".reg .b{width} %open{i};\n" + taken + after
        (self.folder / "one.ptx").write_text(made)
        for i, (kind, x) in enumerate(zip(given, bits)):
            np.array([x], f"u{BITS[kind] // 8}").tofile(self.folder / f"{i}")
        ended = subprocess.run([DRIVER, self.folder / "one.ptx", "one", "1", "1", f"out:{self.folder / 'result'}:{BITS[to] // 8}",
                                *(f"inout:{self.folder / str(i)}" for i in range(len(given)))], capture_output=True, text=True)
        if ended.returncode == 0:
            return 0
        self.assertRegex(ended.stderr, rf"st\.global\.b{BITS[to]}: operand 2 has no value", name)
        said = re.search("no value in its bits ([0-9a-f]+)", ended.stderr)
        return int(said[1], 16) if said else (1 << BITS[to]) - 1

    def test_open_bits(self):
        """Of operands that have no value in some of their bits: every bit of the result that these can change has none, and
        where bits are moved or masked no other one."""
        for name, to, given, function in FORMS:
            if ";" in name or not all(re.fullmatch(r"[bus]\d+", kind) for kind in (to, *given)):
                continue
            is_exact = re.match(r"(mov|and|or|xor|not|shl|shr|bfe|bfi|prmt|shf|cvt)\.", name)
            for number in range(len(given)):
                bits = [operands(kind, self.rng, 1)[0] for kind in given]
                if name.startswith(("sh", "bf")):  # by as many bits as there are
                    bits = [x if i < (2 if name[:3] in ("shf", "bfi") else 1) else self.rng.randrange(BITS[to]) for i, x in enumerate(bits)]
                ones = (1 << BITS[given[number]]) - 1
                masks = [self.rng.choice((0xFF, 0xFFFF00, 0xFFFF << 16, self.rng.getrandbits(64))) & ones if i == number else 0 for i in range(len(given))]
                found, changed = self.open_bits(name, to, given, bits, masks), 0
                results = [packed(function(*(unpacked(x & ~mask | self.rng.getrandbits(64) & mask, kind) for x, mask, kind in zip(bits, masks, given))), to) for _ in range(40)]
                for one in results:
                    changed |= one ^ results[0]
                self.assertEqual(changed & ~found, 0, f"{name} of {[hex(x) for x in bits]}, open {[hex(x) for x in masks]}: {found:#x}")
                if is_exact and number < 2 - name.startswith(("shl", "shr", "bfe")):
                    self.assertEqual(found, changed, f"{name} of {[hex(x) for x in bits]}, open {[hex(x) for x in masks]}")

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

    def run_threads(self, text, threads, given, other):
        """32 bytes of a result for each thread, of rows of 32 bytes each."""
        (self.folder / "one.ptx").write_text(text)
        words = []
        for name, rows in (("given", given), ("other", other)):
            rows.tofile(self.folder / name)
            words.append(f"inout:{self.folder / name}")
        if "other[8]" in text:
            words[1] = "0x0000000200000001"
        ended = subprocess.run([DRIVER, self.folder / "one.ptx", "one", "1", str(threads), f"out:{self.folder / 'result'}:{threads * 32}", *words], capture_output=True, text=True)
        self.assertEqual(ended.returncode, 0, f"{text}\n{ended.stderr}")
        return np.fromfile(self.folder / "result", np.uint8).reshape(threads, 32)

    def rows(self, threads):
        return np.frombuffer(self.rng.randbytes(threads * 32), np.uint8).reshape(threads, 32)

    def test_moves(self):
        for text, same in moves():
            given = self.rows(64)
            np.testing.assert_array_equal(self.run_threads(text, 64, given, given)[:, :same], given[:, :same], text)

    def test_atomics(self):
        for name, kind, function, result in atomics():
            given, other = self.rows(64), self.rows(64)
            made, size = self.run_threads(atomic(name, result), 64, given, other), int(kind[1:]) // 8
            for i in range(64):
                old, new = (int.from_bytes(rows[i, :size].tobytes(), "little") for rows in (given, other))
                wanted = packed(function(*(unpacked(bits, kind) for bits in (old, new))), kind)
                self.assertEqual(int.from_bytes(made[i, :size].tobytes(), "little"), wanted, f"{name} of {old:#x}, {new:#x}")
                if result:
                    self.assertEqual(made[i, 8:8 + size].tobytes(), given[i, :size].tobytes(), f"{name}: what was there")
        given = self.rows(64)
        other = np.where(np.arange(64)[:, None] % 2 == 0, given, self.rows(64))  # every other thread finds what it compares with
        for bits, register in ((32, "r"), (64, "d")):
            text = atomic(f"atom.global.cas.b{bits}", True).replace(f"[%to], %{register}1;", f"[%to], %{register}1, %{register}3;").replace(
                f"st.global.b{bits} [%to], ", f"not.b{bits} %{register}3, %{register}0;\nst.global.b{bits} [%to], ")
            made = self.run_threads(text, 64, given, other)[:, :bits // 8]
            np.testing.assert_array_equal(made[::2], ~given[::2, :bits // 8])
            np.testing.assert_array_equal(made[1::2], given[1::2, :bits // 8])

    def test_all_known(self):
        """An instruction that there is not, or of another type, is refused by its name."""
        for name in ("add.f31", "fma.rn.bf16x2", "tex.2d"):
            (self.folder / "one.ptx").write_text(kernel(name, "f32", ["f32", "f32"]))
            ended = subprocess.run([DRIVER, "--kernels", self.folder / "one.ptx"], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 70)
            self.assertIn(f"one: no instruction that is known: '{name}'", ended.stderr)


# ---- Functions of CUDA's library ----

# name: (units in the last place that a result may be from the nearest number, by the appendix on mathematical functions of NVIDIA's
# programming guide; from and to where most operands are drawn). Those of kernels, and their kin. Half of them a run; CASES=all: all.
OF_FLOATS = {"expf": (2, -104, 89), "exp2f": (2, -150, 129), "expm1f": (1, -20, 89), "logf": (1, 0, 4), "log2f": (1, 0, 4),
             "log1pf": (1, -1, 4), "sqrtf": (0, 0, 9), "rsqrtf": (2, 0, 9), "cbrtf": (1, -9, 9), "sinf": (2, -9, 9),
             "cosf": (2, -9, 9), "tanhf": (2, -10, 10), "erff": (2, -4, 4), "erfcf": (4, -4, 10.1), "powf": (4, 0, 9)}
OF_DOUBLES = {"exp": (1, -709, 709), "log": (1, 0, 4), "log1p": (1, -1, 4), "sqrt": (0, 0, 9), "sin": (2, -9, 9),
              "cos": (2, -9, 9), "tanh": (2, -20, 20), "pow": (2, 0, 9)}
# What mpmath has by another name.
BY_NAME = {"exp2": lambda mp, x: mp.power(2, x), "log2": lambda mp, x: mp.log(x, 2), "rsqrt": lambda mp, x: 1 / mp.sqrt(x), "pow": lambda mp, x, y: mp.power(x, y),
           "cbrt": lambda mp, x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x)}


def place(bits, width):
    """The position of a float among all of its type; both zeros have one."""
    return bits if bits < 1 << (width - 1) else (1 << (width - 1)) - bits


@unittest.skipUnless(nvcc() and DRIVER.exists(), "there is no nvcc")
class Functions(unittest.TestCase):
    def run_function(self, path, name, kind, given):
        words = []
        for i, bits in enumerate(given):
            np.array(bits, f"u{BITS[kind] // 8}").tofile(path.with_suffix(f".{i}"))
            words.append(f"inout:{path.with_suffix(f'.{i}')}")
        count = len(given[0])
        subprocess.run([DRIVER, path, name, "1", str(count), f"out:{path.with_suffix('.made')}:{count * BITS[kind] // 8}", *words], check=True)
        return [int(x) for x in np.fromfile(path.with_suffix(".made"), f"u{BITS[kind] // 8}")]

    def nearest(self, name, kind, numbers):
        """The bits of the number of the type that is nearest to the true result; None: this is none, infinite or complex."""
        import mpmath  # it takes a while

        stem = name[:-1] if kind == "f32" else name
        with mpmath.workprec(200):
            try:
                exact = BY_NAME[stem](mpmath, *map(mpmath.mpf, numbers)) if stem in BY_NAME else getattr(mpmath, stem)(mpmath.mpf(numbers[0]))
            except ZeroDivisionError:
                return None
            if not isinstance(exact, mpmath.mpf) or not mpmath.isfinite(exact):
                return None
            size = mpmath.mag(exact)  # of the power of two above it
            if exact != 0 and not -1200 < size < 1100:
                return packed(math.copysign(0.0 if size < 0 else INFINITY, exact), kind)
            digits, exponent = exact.man_exp  # of its size
            return packed(rounded((-1 if exact < 0 else 1) * Fraction(int(digits)) * Fraction(2)**int(exponent), kind), kind)

    def test_functions(self):
        """On finite operands within the function's domain."""
        architecture = in_turn(("80", "90a", "100"), 3)[0]
        rng = random.Random(int(os.environ.get("SEED", 1)))
        with tempfile.TemporaryDirectory() as held:
            source = pathlib.Path(held) / "functions.cu"
            lists = [(c, kind, {name: names[name] for name in in_turn(names, 2)}, count)
                     for c, kind, names, count in (("float", "f32", OF_FLOATS, 256), ("double", "f64", OF_DOUBLES, 64))]
            source.write_text("".join(f'extern "C" __global__ void of_{name}({c} *y, const {c} *x{f", const {c} *z" * name.startswith("pow")}) {{\n'
                                      f'  y[threadIdx.x] = {name}(x[threadIdx.x]{", z[threadIdx.x]" * name.startswith("pow")});\n}}\n' for c, _, names, _ in lists for name in names))
            path = source.with_suffix(".ptx")
            compile_all([nvcc(), "-std=c++17", "-O3", "-w", f"-arch=compute_{architecture}", "-ptx", source, "-o", path])
            for _, kind, names, count in lists:
                for name, (units, low, high) in names.items():
                    given = [[*operands(kind, rng, count // 2), *(packed(rng.uniform(low, high), kind) for _ in range(count // 2))]]
                    given += [[packed(rng.uniform(-30, 30), kind) for _ in range(count)]] * name.startswith("pow")
                    worst = 0
                    for bits, found in zip(zip(*given), self.run_function(path, f"of_{name}", kind, given)):
                        numbers = [unpacked(x, kind) for x in bits]
                        wanted = self.nearest(name, kind, numbers) if all(map(math.isfinite, numbers)) else None
                        if wanted is None:
                            continue
                        away = abs(place(wanted, BITS[kind]) - place(found, BITS[kind]))
                        self.assertLessEqual(away, units, f"{name} of {numbers}: {unpacked(found, kind)} instead of {unpacked(wanted, kind)}")
                        worst = max(worst, away)
                    print(f"# {name}, sm_{architecture}: {worst} units in the last place, of {units}", flush=True)


if __name__ == "__main__":
    unittest.main()
