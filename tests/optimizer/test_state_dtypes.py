"""Optimizer states in bfloat16 and in blocks of 8 bits, by the update function of the emitted program, step by step against
the published arithmetic in NumPy: PyTorch's Adam, RMSprop, Adadelta and SGD over states that are stored in between as PyTorch
rounds to bfloat16, or as bitsandbytes does (create_dynamic_map and quantize_2D of version 0.49: the nearest number of
the map, times the largest size in a block of 256)."""

import ctypes
import os
import unittest

import numpy as np
import torch
from parts import TREE, library, make_job, plan
from test_against_torch import Rule

STEPS = 50
LR = 0.013


def dynamic_map(signed):
    """create_dynamic_map(signed, 7, 8) of bitsandbytes."""
    data = []
    for i in range(7):
        items = 2**i + 1 if signed else 2 ** (i + 1) + 1
        boundaries = torch.linspace(0.1, 1, items, dtype=torch.float32)
        means = (boundaries[:-1] + boundaries[1:]) / 2.0
        data += ((10 ** (-6 + i)) * means).tolist()
        if signed:
            data += (-(10 ** (-6 + i)) * means).tolist()
    return np.sort(np.array([*data, 0, 1.0], np.float32))


def store_8bit(x, signed):
    """What is read back of x: nearest numbers of the map, of negative ones never 0."""
    numbers, out = dynamic_map(signed), np.empty_like(x)
    between = (numbers[:-1] + numbers[1:]) / 2
    for begin in range(0, len(x), 256):
        block = x[begin:begin + 256]
        scale = np.abs(block).max()
        parts = block / scale if scale > 0 else block
        codes = np.searchsorted(between, parts, "left")
        codes -= (parts < 0) & (numbers[codes] == 0)
        out[begin:begin + 256] = numbers[codes] * scale
    return out


def store_bf16(x, signed):
    return torch.tensor(x).bfloat16().float().numpy()


def wide(**optimizer):
    job = make_job(optimizer={"lr": LR, **optimizer})
    job["model"]["config"].update(width=67, n_layer=2)
    return job


class StateDtypes(unittest.TestCase):
    def check(self, keys, signs, step, dtype):
        """step(weights, gradient, states, at): PyTorch's arithmetic in float32, over arrays in place."""
        rule = Rule(wide(**keys, state_dtype=dtype))
        rng = np.random.default_rng(5)
        if dtype == "8bit":
            rule.code.begin()
            self.assertEqual([row["count"] for row in rule.tensors], [67 * 67])
        positions = [(row["first"], row["first"] + row["count"], dtype if row in rule.tensors or dtype == "bf16" else None)
                  for row in rule.rows]
        rule.weights[:] = rng.normal(size=len(rule.weights)) * rule.used
        mine = rule.weights.astype(np.float32)
        states = [np.zeros_like(mine) for _ in signs]
        start, scales = mine.copy(), 10.0 ** rng.uniform(-4, 1, len(mine)) * rule.used
        wrong = 0
        for at in range(STEPS):
            rule.gradients[:] = rng.normal(size=len(mine)) * scales
            step(mine, rule.gradients, states, at)
            rule.step(at, LR)
            for state, signed in zip(states, signs):
                for first, end, stored in positions:
                    if stored:
                        store = store_8bit if stored == "8bit" else store_bf16
                        state[first:end] = store(state[first:end], signed)
            off = np.abs(rule.weights - mine) > 1e-6 * np.maximum(np.abs(mine), LR) * (at + 1)
            wrong = max(wrong, off.mean())
            mine[off] = rule.weights[off]  # a number between two codes may fall to either side, which would continue
        self.assertLess(wrong, 0.01)
        self.assertGreater(np.linalg.norm(mine - start), 0.1)

    @staticmethod
    def adamw(w, g, states, at):
        m, v = states
        m[:] = np.float32(0.9) * m + np.float32(0.1) * g
        v[:] = np.float32(0.999) * v + np.float32(0.001) * g * g
        w *= np.float32(1 - LR * 0.1)
        root = np.sqrt(v) / np.float32(np.sqrt(1 - 0.999 ** (at + 1))) + np.float32(1e-8)
        w -= np.float32(LR / (1 - 0.9 ** (at + 1))) * m / root

    @staticmethod
    def momentum(w, g, states, at):
        states[0][:] = np.float32(0.9) * states[0] + g
        w -= np.float32(LR) * states[0]

    @staticmethod
    def rmsprop(w, g, states, at):
        states[0][:] = np.float32(0.99) * states[0] + np.float32(0.01) * g * g
        w -= np.float32(LR) * g / (np.sqrt(states[0]) + np.float32(1e-8))

    @staticmethod
    def adadelta(w, g, states, at):
        v, u = states
        v[:] = np.float32(0.9) * v + np.float32(0.1) * g * g
        delta = np.sqrt(u + np.float32(1e-2)) / np.sqrt(v + np.float32(1e-2)) * g
        u[:] = np.float32(0.9) * u + np.float32(0.1) * delta * delta
        w -= np.float32(LR) * delta

    def test_rules(self):
        for dtype in ("bf16", "8bit"):
            for keys, signs, step in (({"name": "adamw", "weight_decay": 0.1}, [True, False], self.adamw),
                                      ({"name": "sgd", "momentum": 0.9}, [True], self.momentum),
                                      ({"name": "rmsprop"}, [False], self.rmsprop),
                                      ({"name": "adadelta", "eps": 1e-2}, [False, False], self.adadelta)):
                with self.subTest(dtype=dtype, **keys):
                    self.check(keys, signs, step, dtype)

    def test_chance(self):
        """Rounding by chance: all 65,536 chances of a number give its two neighbours of 16 bits, as often as its expected
        value wants them; and the bits of positions and steps are as even as those of coins."""
        source = f'#include "{TREE}/include/accel/cpu/states.h"\n'
        source += """void round_all(float x, uint16_t *to) {
  for (uint32_t chance = 0; chance < 65536; chance++) to[chance] = accel_round_by_chance(x, chance + ((uint64_t)x << 16));
}
void chances(uint64_t at, uint64_t first, uint64_t count, uint64_t *to) {
  for (uint64_t i = 0; i < count; i++) to[i] = accel_chance(7, at, first + i);
}
"""
        code = library(source)
        seed = int(os.environ.get("SEED", 1))
        print(f"SEED={seed}")
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, 2**32, 100, dtype=np.uint32).view(np.float32)
        numbers = np.concatenate([drawn[np.isfinite(drawn)], np.float32([0, -0.0, 1, 1.00390625, 3e-45, np.inf, -np.inf])])
        halves = np.empty(65536, np.uint16)
        for x in numbers:
            code.round_all(ctypes.c_float(x), halves.ctypes.data_as(ctypes.c_void_p))
            bits = int(x.view(np.uint32))
            below, above = bits >> 16, (bits >> 16) + 1
            up = halves == above
            self.assertTrue(np.all(up | (halves == below)), x)
            self.assertEqual(int(up.sum()), bits & 0xFFFF, x)  # that many of 65,536: x on average
        code.round_all(ctypes.c_float(np.nan), halves.ctypes.data_as(ctypes.c_void_p))
        self.assertTrue(np.all((halves & 0x7F80) == 0x7F80) and np.all(halves & 0x7F))
        count, drawn = 1 << 16, np.empty((16, 1 << 16), np.uint64)
        for at in range(16):
            code.chances(ctypes.c_uint64(seed + at), ctypes.c_uint64(at * 977), ctypes.c_uint64(count),
                         drawn[at].ctypes.data_as(ctypes.c_void_p))
        bits = np.unpackbits(drawn.view(np.uint8).reshape(16, -1, 8), axis=2).astype(np.int8) * 2 - 1
        limit = 5.5 / np.sqrt(count)  # of 64 bits, their neighbours, and the next position's and step's, in 16 steps
        for name, product in (("ones", bits), ("next bit", bits[:, :, 1:] * bits[:, :, :-1]),
                              ("next position", bits[:, 1:] * bits[:, :-1]), ("next step", bits[1:] * bits[:-1])):
            self.assertLess(np.abs(product.mean(axis=1, dtype=np.float64)).max(), limit, name)

    def test_map(self):
        """All 256 numbers, by what becomes of momenta that are nothing but the gradients."""
        rule = Rule(wide(name="sgd", momentum=0.5, state_dtype="8bit"))
        rule.code.begin()
        first = rule.tensors[0]["first"]
        numbers = dynamic_map(True)
        rule.gradients[first:first + 256] = numbers
        rule.step(0, 0)
        rule.gradients[:] = 0
        rule.weights[:] = 0
        rule.step(1, 1)  # weights: minus half of what was stored
        np.testing.assert_allclose(rule.weights[first:first + 256], -numbers / 2, rtol=3e-7)

    def test_memory(self):
        """Bytes: of 4,489 elements in 18 blocks, and of 67 * 5 + 2 * 67 + 67 + 67 + 2 in float32, in lines of 64 bytes."""
        lines = lambda count: (count + 63) // 64 * 64  # noqa: E731
        whole = plan(wide(name="adamw"))["arena_bytes"]["weights"]
        large = lines(4 * 67 * 67)
        wanted = {"float32": 2 * whole, "bf16": whole, "8bit": 2 * (lines(67 * 67) + lines(18 * 4) + whole - large)}
        for dtype, count in wanted.items():
            self.assertEqual(plan(wide(name="adamw", state_dtype=dtype))["arena_bytes"]["optimizer"], count, dtype)


if __name__ == "__main__":
    unittest.main()
