"""The polynomials of accel/cpu/functions.h against the C library in float64, in units in the last place, over a dense sample of
all floats (every 97th; `--all`: each one); rounding of rows to bfloat16 against rounding by shifts; and rounding to 8 bits
against ml_dtypes, bit by bit."""

import ctypes
import sys

import kernels as kit
import ml_dtypes
import numpy as np

# Function: its float64 truth, and the error that its comment states.
BOUNDS = {
    "accel_exp": ("exp", 1.1),
    "accel_log": ("log", 1.5),
    "accel_log1p": ("log1p", 2.0),
    "accel_tanh": ("tanh", 2.0),
    "accel_sigmoid": ("sigmoid", 3.0),
    # Absolute, in units of a half's last place, 6e-8.
    "accel_normal": ("normal", 4.0),
    "accel_gelu_gate": ("gelu_gate", 3.0),
    "accel_gelu_slope": ("gelu_slope", 35.0),
}
# The cubes of all others are no floats.
RANGE = {"accel_gelu_slope": 1e12}
ABSOLUTE = ("accel_normal", "accel_gelu_gate", "accel_gelu_slope")

TRUTHS = """
static double normal(double x) {
  return 0.5 * erfc(-x / sqrt(2.0));
}

static double sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}

/* (1 + tanh u) / 2 is the sigmoid of 2 u. */
static double gelu_gate(double x) {
  return sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
}

static double gelu_slope(double x) {
  const double gate = gelu_gate(x);
  if (isinf(x)) return x > 0.0 ? 1.0 : 0.0;
  return gate + x * gate * gelu_gate(-x) * 1.5957691216057308 * (1.0 + 3.0 * 0.044715 * x * x);
}
"""

CODE = """
double measure_%(name)s(uint32_t step, float *worst);
double measure_%(name)s(uint32_t step, float *worst) {
  double most = 0.0;
  for (uint64_t first = 0; first <= UINT32_MAX; first += 4096ull * step) {
    float x[4096], y[4096];
    for (uint32_t i = 0; i < 4096; i++) {
      const uint32_t bits = (uint32_t)(first + (uint64_t)i * step);
      memcpy(&x[i], &bits, sizeof bits);
    }
#pragma omp simd
    for (uint32_t i = 0; i < 4096; i++) y[i] = %(name)s(x[i]);
    for (uint32_t i = 0; i < 4096; i++) {
      if (fabsf(x[i]) > %(most)s) continue;
      const double truth = %(truth)s((double)x[i]);
      const float nearest = (float)truth;
      double error;
      if (isnan(truth) || isnan(y[i])) error = isnan(truth) && isnan(y[i]) ? 0.0 : INFINITY;
      else if (isinf(nearest) || isinf(y[i])) error = nearest == y[i] ? 0.0 : INFINITY;
      else if (fabs(truth) < 1.1754944e-38) error = fabs(y[i]) <= 1.1754944e-38f ? 0.0 : INFINITY;
      else error = fabs(y[i] - truth) / ldexp(1.0, %(exponent)s - 23);
      if (error > most) {
        most = error;
        *worst = x[i];
      }
    }
  }
  return most;
}
"""

# How many floats a row rounds otherwise than accel_narrow; below the normal ones it may give 0, and any NaN of a NaN.
ROUNDING = """
uint64_t rounded_otherwise(uint32_t step);
uint64_t rounded_otherwise(uint32_t step) {
  uint64_t count = 0;
  for (uint64_t first = 0; first <= UINT32_MAX; first += 32ull * step) {
    float x[32];
    accel_bf16 row[32];
    for (uint32_t i = 0; i < 32; i++) {
      const uint32_t bits = (uint32_t)(first + (uint64_t)i * step);
      memcpy(&x[i], &bits, sizeof bits);
    }
    accel_narrow_row(x, row);
    for (uint32_t i = 0; i < 32; i++) {
      const bool zero = fabsf(x[i]) < 1.1754944e-38f && (row[i] & 0x7fff) == 0;
      const bool nan = isnan(x[i]) && isnan(accel_widen(row[i]));
      count += row[i] != accel_narrow(x[i]) && !zero && !nan;
    }
  }
  return count;
}
"""

FP8 = """
void round_fp8(size_t count, const float *x, float *e4m3, float *e5m2);
void round_fp8(size_t count, const float *x, float *e4m3, float *e5m2) {
#pragma omp simd
  for (size_t i = 0; i < count; i++) e4m3[i] = accel_round_e4m3(x[i]);
#pragma omp simd
  for (size_t i = 0; i < count; i++) e5m2[i] = accel_round_e5m2(x[i]);
}
void powers(size_t count, const float *largest, int32_t *row, int32_t *floored, int32_t *ceiling);
void powers(size_t count, const float *largest, int32_t *row, int32_t *floored, int32_t *ceiling) {
  for (size_t i = 0; i < count; i++) {
    row[i] = accel_row_power(largest[i]);
    floored[i] = accel_floor_power(largest[i]);
    ceiling[i] = accel_ceiling_power(largest[i]);
  }
}
void powers_of_two(float *all);
void powers_of_two(float *all) {
  for (int power = -127; power <= 127; power++) all[power + 127] = accel_power_of_two(power);
}
float next_scale(float scale, float *history, size_t length, int of_all, float most);
float next_scale(float scale, float *history, size_t length, int of_all, float most) {
  return accel_fp8_next_scale(scale, history, length, of_all != 0, most);
}
"""


def numbers_for(kind):
    """All numbers of the type, what is half-way between neighbours, the floats next to all of these, and a million floats of
    any bits."""
    codes = np.arange(256, dtype=np.uint8).view(kind).astype(np.float32)
    finite = np.unique(codes[np.isfinite(codes)])
    middle = np.concatenate((codes, (finite[1:] + finite[:-1]) / 2))
    near = [np.nextafter(middle, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
    bits = np.random.default_rng(8).integers(0, 2**32, 10**6, dtype=np.uint32).view(np.float32)
    scaled = np.random.default_rng(9).standard_normal(10**5).astype(np.float32) * np.float32(100)
    return np.concatenate((middle, *near, bits, scaled, np.float32([np.inf, -np.inf, np.nan, -0.0])))


def check_fp8(compiler, flags):
    """How many numbers are rounded otherwise than by ml_dtypes, which does not saturate."""
    library = ctypes.CDLL(str(kit.compile_text(kit.HEADERS + kit.support("fp8") + FP8, compiler, flags)))
    otherwise = 0
    for which, kind, most in ((0, ml_dtypes.float8_e4m3fn, 448), (1, ml_dtypes.float8_e5m2, 57344)):
        x = numbers_for(kind)
        made = [np.empty_like(x), np.empty_like(x)]
        library.round_fp8(ctypes.c_size_t(len(x)), *(ctypes.c_void_p(a.ctypes.data) for a in (x, *made)))
        with np.errstate(invalid="ignore"):  # of NaNs
            truth = np.clip(x, -np.float32(most), np.float32(most)).astype(kind).astype(np.float32)
        same = (made[which].view(np.uint32) == truth.view(np.uint32)) | (np.isnan(made[which]) & np.isnan(truth))
        otherwise += int((~same).sum())
    return otherwise


def check_scales(compiler, flags):
    """How many scales and histories are not those of Transformer Engine's DelayedScaling, written in NumPy: the sizes roll by one
    place, the first is 0, and the scale stays where the size is 0 or not finite."""
    library = ctypes.CDLL(str(kit.compile_text(kit.HEADERS + kit.support("fp8") + FP8, compiler, flags)))
    library.next_scale.restype = ctypes.c_float
    rng, otherwise = np.random.default_rng(1), 0
    for length, of_all, most in ((length, of_all, most) for length in (1, 2, 7, 33) for of_all in (0, 1) for most in (448, 28672)):
        for newest in (0, 1e-44, 2e-30, 0.7, 3e30, np.inf):
            history = rng.random(length).astype(np.float32)
            history[0] = newest
            wanted = np.roll(history, -1)
            size, wanted[0] = history.max() if of_all else history[0], 0
            moved = history.copy()
            scale = library.next_scale(ctypes.c_float(3), ctypes.c_void_p(moved.ctypes.data), ctypes.c_size_t(length), of_all, ctypes.c_float(most))
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                right = min(np.float32(most) / size, np.finfo(np.float32).max) if 0 < size < np.inf else np.float32(3)
            otherwise += np.float32(scale) != right or not np.array_equal(moved, wanted)
    return otherwise


def check_powers(compiler, flags):
    """How many scales of a million sizes of any bits are not those that e8m0 has of the definitions in float64: the factor 448 / size
    rounded down, size / 2^8 rounded down, size / 448 in float32 rounded up."""
    library = ctypes.CDLL(str(kit.compile_text(kit.HEADERS + kit.support("fp8") + FP8, compiler, flags)))
    all_powers = np.empty(255, np.float32)
    library.powers_of_two(ctypes.c_void_p(all_powers.ctypes.data))
    otherwise = int((all_powers.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8) != np.arange(255)).sum())
    otherwise += int((all_powers.astype(np.float64) != 2.0 ** np.arange(-127, 128)).sum())
    edges = 448 * 2.0 ** np.arange(-150, 119)
    sizes = np.concatenate([np.abs(np.random.default_rng(1).integers(0, 0x7F800000, 1_000_000, dtype=np.uint32).view(np.float32)), np.zeros(1, np.float32),
                            *(np.nextafter(np.float32(x), np.float32(to)) for x in (edges, 2.0 ** np.arange(-149, 127)) for to in (0, np.inf)),
                            np.float32(edges)]).astype(np.float32)
    made = [np.empty(len(sizes), np.int32) for _ in range(3)]
    library.powers(ctypes.c_size_t(len(sizes)), *(ctypes.c_void_p(a.ctypes.data) for a in (sizes, *made)))
    wide = sizes.astype(np.float64)
    factors = np.float32(448 / np.maximum(wide, 1e-12)).astype(np.float64)
    with np.errstate(divide="ignore"):
        ceiling = np.frexp((sizes / np.float32(448)).astype(np.float64))
        wanted = (1 - np.frexp(factors)[1],
                  np.where(sizes > 0, np.clip(np.frexp(wide)[1] - 1 - 8, -127, 127), -127),
                  np.where(ceiling[0] > 0, np.clip(ceiling[1] - (ceiling[0] == 0.5), -127, 127), -127))
    return otherwise + sum(int((a != b).sum()) for a, b in zip(made, wanted))


def main():
    step = 1 if "--all" in sys.argv else 97
    failures = 0
    for compiler in ("gcc", "clang-19"):
        if not kit.has(compiler):
            print(f"ok polynomials {compiler} # SKIP not installed")
            continue
        for flags, how in ((kit.SPEED_FLAGS, "as they are"), (["-mno-avx512f", "-ffp-contract=off"], "without AVX-512")):
            otherwise = check_fp8(compiler, flags)
            failures += otherwise != 0
            print(f"{'not ok' if otherwise else 'ok'} accel_round_e4m3, accel_round_e5m2 {compiler} {how}: {otherwise} rounded otherwise", flush=True)
            otherwise = check_powers(compiler, flags)
            failures += otherwise != 0
            print(f"{'not ok' if otherwise else 'ok'} accel_row_power, accel_floor_power, accel_ceiling_power {compiler} {how}: {otherwise} otherwise", flush=True)
            otherwise = check_scales(compiler, flags)
            failures += otherwise != 0
            print(f"{'not ok' if otherwise else 'ok'} accel_fp8_next_scale {compiler} {how}: {otherwise} scales or histories are otherwise", flush=True)
        for flags, how in ((kit.SPEED_FLAGS, "fused"), (["-ffp-contract=off"], "unfused")):
            text = kit.HEADERS + kit.support("kernels", "bf16")
            text += TRUTHS + "".join(CODE % {"name": name, "truth": truth, "exponent": "-1" if name in ABSOLUTE else "ilogb(truth)",
                                              "most": RANGE.get(name, "INFINITY")} for name, (truth, _) in BOUNDS.items())
            library = ctypes.CDLL(str(kit.compile_text(text + ROUNDING, compiler, flags)))
            library.rounded_otherwise.restype = ctypes.c_uint64
            otherwise = library.rounded_otherwise(ctypes.c_uint32(step))
            failures += otherwise != 0
            print(f"{'not ok' if otherwise else 'ok'} accel_narrow_row {compiler} {how}: {otherwise} rounded otherwise", flush=True)
            for name, (_, bound) in BOUNDS.items():
                measure = getattr(library, f"measure_{name}")
                measure.restype = ctypes.c_double
                worst = ctypes.c_float()
                error = measure(ctypes.c_uint32(step), ctypes.byref(worst))
                failures += not error <= bound
                verdict = "ok" if error <= bound else "not ok"
                print(f"{verdict} {name} {compiler} {how}: {error:.2f} ulp at {worst.value!r}, {bound} allowed", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
