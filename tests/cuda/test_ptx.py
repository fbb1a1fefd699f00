"""Kernels that nvcc has compiled, run instruction by instruction (tests/cuda/standin/ptx): whole programs beside those for the
processor, from the same weights and batches, and faults that are planted, each found by the check that names it.

Programs are skipped where there is no nvcc. The suite runs one of them, for few steps.

usage: test_ptx.py [NAME...], of a case of test_training.py or a class; --all: every case, float32 and bf16 (ninja soak)"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import ml_dtypes
import numpy as np
from host import TREE, Trainer
from ptx import PtxTrainer, nvcc
from test_training import CASES, KEYS, MORE, TOLERANCES, case, write_data

DRIVER = TREE / "build" / "tests" / "cuda" / "ptx_driver"
EXAMPLE = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
DATA = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2, "sequence_length": 8}
TINY = {"tiny": case("nanogpt", EXAMPLE, DATA, training={"steps": 20, "seed": 3}),
        "tiny_bf16": case("nanogpt", EXAMPLE, DATA, training={"steps": 20, "seed": 3}, precision={"mixed_precision": "bf16"}, devices={"attention": "own"})}

# ---- Kernels by hand: thread i of 64 in each block, %i its number, %b the block's, %o the result's address of 64 words ----

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 result, .param .u64 given)
.maxntid 64, 1, 1
{
.reg .b32 %i, %b, %x, %y, %z;
.reg .b64 %o, %g, %d, %e;
.reg .pred %p, %q;
.reg .f32 %f0, %f1, %f2, %f3;
.shared .align 16 .b8 words[256];
.local .align 8 .b8 own[16];
mov.u32 %i, %tid.x;
mov.u32 %b, %ctaid.x;
ld.param.u64 %o, [result];
ld.param.u64 %g, [given];
mul.wide.u32 %d, %i, 4;
add.s64 %d, %o, %d;
mov.u32 %x, words;
shl.b32 %y, %i, 2;
add.s32 %x, %x, %y;
"""
LEFT = "xor.b32 %y, %i, 32;\nshl.b32 %y, %y, 2;\nmov.u32 %z, words;\nadd.s32 %y, %z, %y;\n"  # %y: the word of the other warp's thread
EXCHANGE = f"st.shared.u32 [%x], %i;\nbar.sync 0;\n{LEFT}ld.shared.u32 %z, [%y];\nst.global.u32 [%d], %z;\n"
NEIGHBOUR = "xor.b32 %y, %i, 1;\nshl.b32 %y, %y, 2;\nmov.u32 %z, words;\nadd.s32 %y, %z, %y;\n"  # of the same warp
HALF = "and.b32 %y, %i, 31;\nsetp.lt.u32 %p, %y, 16;\n"

SOUND = {
    "exchange": EXCHANGE,
    "barrier of a warp": f"st.shared.u32 [%x], %i;\nbar.warp.sync -1;\n{NEIGHBOUR}ld.shared.u32 %z, [%y];\nst.global.u32 [%d], %z;\n",
    "shuffle": "shfl.sync.bfly.b32 %z, %i, 1, 31, -1;\nst.global.u32 [%d], %z;\n",
    "shuffle of a half": f"{HALF}@!%p bra after;\nshfl.sync.bfly.b32 %z, %i, 1, 31, 65535;\nafter:\nst.global.u32 [%d], %i;\n",
    "paths that join": f"{HALF}@%p bra low;\nmov.u32 %z, 1;\nbra join;\nlow:\nmov.u32 %z, 2;\njoin:\nbar.sync 0;\nst.global.u32 [%d], %z;\n",
    "the barrier out of line": f"{HALF}@%p bra far;\nback:\nbar.sync 0;\nst.global.u32 [%d], %i;\nret;\nfar:\nmov.u32 %z, 1;\nbra back;\n",
    "ended threads": "setp.gt.u32 %p, %i, 40;\n@%p ret;\nbar.sync 0;\nst.global.u32 [%d], %i;\n",
    "a vote of the block": "setp.gt.u32 %p, %i, 40;\nbar.red.or.pred %q, 0, %p;\nselp.u32 %z, 1, 0, %q;\nst.global.u32 [%d], %z;\n",
    "what nobody uses": "setp.lt.u32 %p, %i, 64;\nadd.s32 %z, %z, 1;\nselp.b32 %z, %i, %z, %p;\nsetp.eq.u32 %q, %b, %z;\nor.pred %q, %p, %q;\n@%q st.global.u32 [%d], %z;\n",
    "own memory": "mov.u64 %e, own;\nst.local.u32 [%e+4], %i;\nld.local.u32 %z, [%e+4];\nst.global.u32 [%d], %z;\n",
    "an asynchronous copy": f"shl.b32 %y, %i, 4;\nand.b32 %y, %y, 255;\nmov.u32 %z, words;\nadd.s32 %z, %z, %y;\nsetp.gt.u32 %p, %i, 15;\n@%p bra wait;\n"
                            "cp.async.cg.shared.global [%z], [%g], 16;\nwait:\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n"
                            "ld.shared.u32 %z, [%x];\nst.global.u32 [%d], %z;\n",
}

# name: (the check, how a block of 64 threads breaks its rule, what is said, blocks)
FAULTY = {
    "a missing barrier": (EXCHANGE.replace("bar.sync 0;\n", ""), r"ld.shared.u32: (shared memory at 128, which was never written|a race)", 1),
    "a missing barrier before the next write": (EXCHANGE + "st.shared.u32 [%x], %b;\n", r"a race: shared memory at \d+, which (thread 0 writes|another thread reads) with no barrier", 1),
    "a missing barrier of a warp": (f"st.shared.u32 [%x], %i;\n{NEIGHBOUR}ld.shared.u32 %z, [%y];\n", "ld.shared.u32: a race: shared memory at 4, which thread 1 writes", 1),
    "one word for all": ("mov.u32 %z, words;\nst.shared.u32 [%z], %i;\n", "st.shared.u32: a race: lane 0 stores another value to the same address .*thread 1", 1),
    "one too far": ("st.global.u32 [%d+4], %i;\n", r"st.global.u32: 4 bytes at \S+, outside of the array that the address was derived from: byte 256 of 256", 1),
    "one too early": ("ld.global.u32 %z, [%g+-4];\n", "ld.global.u32: 4 bytes at .*: byte -4 of 256", 1),
    "nowhere": ("mov.u64 %e, 4096;\nld.global.u32 %z, [%e];\n", "where no allocation is", 1),
    "too far in shared memory": ("ld.shared.u32 %z, [%x+256];\n", "byte 256 of the block's shared memory of 256", 1),
    "too far in its own": ("mov.u64 %e, own;\nst.local.u32 [%e+16], %i;\n", "byte 16 of the thread's memory of 16", 1),
    "a vector that is not aligned": ("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%g+4];\n", "ld.global.v4.f32: an address that is not a multiple of 16", 1),
    "what was never written": ("ld.global.u32 %z, [%d];\n", "ld.global.u32: memory at .*, which was never written", 1),
    "shared memory of the block before": (f"setp.ne.u32 %p, %b, 0;\n@%p bra after;\nst.shared.u32 [%x], %i;\nafter:\n{NEIGHBOUR}bar.sync 0;\nld.shared.u32 %z, [%y];\n",
                                          "ld.shared.u32: shared memory at 4, which was never written .*block 1 0 0", 2),
    "a register without a value": ("add.s32 %z, %z, 1;\nst.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value", 1),
    "a branch without a value": ("setp.lt.u32 %p, %z, 3;\n@%p ret;\n", "ret: a predicate that has no value", 1),
    "an address without a value": ("add.s64 %d, %o, %e;\nst.global.u32 [%d], %i;\n", "st.global.u32: operand 1 has no value", 1),
    "a value of half of the lanes": (f"{HALF}@%p mov.u32 %z, 1;\nst.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value .*thread 16", 1),
    "own memory without a value": ("mov.u64 %e, own;\nld.local.u32 %z, [%e];\n", "memory of the thread at 0, which was never written", 1),
    "a race of blocks": ("st.global.u32 [%d], %b;\n", r"st.global.u32: a race: byte 0 .*, which block 0 of the same launch writes .*block 1 0 0", 2),
    "a block that reads what another writes": ("setp.eq.u32 %p, %b, 0;\n@!%p ld.global.u32 %z, [%d];\n@%p st.global.u32 [%d], %i;\n", "ld.global.u32: a race", 2),
    "a mask without the lane": (f"shfl.sync.bfly.b32 %z, %i, 1, 31, 65535;\n", "shfl.sync.bfly.b32: the mask 0000ffff, which has not the lane itself", 1),
    "a mask with lanes that are elsewhere": (f"{HALF}@!%p bra after;\nshfl.sync.bfly.b32 %z, %i, 1, 31, -1;\nafter:\nbar.sync 0;\n", "shfl.sync.bfly.b32: divergence: the lanes 0000ffff", 1),
    "a mask with a lane that has ended": ("and.b32 %y, %i, 31;\nsetp.eq.u32 %p, %y, 7;\n@%p ret;\nshfl.sync.bfly.b32 %z, %i, 1, 31, -1;\n", "divergence: .* wait for 00000080, which have ended", 1),
    "a lane that does not take part": (f"{HALF}@!%p bra after;\nshfl.sync.bfly.b32 %z, %i, 16, 31, 65535;\nafter:\nret;\n", "the value of lane 16, which does not take part", 1),
    "half a warp at a barrier": (f"{HALF}@%p bra after;\nbar.sync 0;\nafter:\nst.global.u32 [%d], %i;\nbar.sync 0;\n", "bar.sync: divergence", 1),
    "warps at different barriers": ("setp.lt.u32 %p, %i, 32;\n@%p bra low;\nbar.sync 0;\nbra after;\nlow:\nbar.sync 0;\nafter:\nret;\n", "bar.sync: divergence: warp 1 is at this barrier, and warp 0", 1),
    "a copy that nobody has waited for": ("mov.u32 %z, words;\nsetp.gt.u32 %p, %i, 0;\n@%p ret;\ncp.async.cg.shared.global [%z], [%g], 16;\ncp.async.commit_group;\nld.shared.u32 %z, [%z];\n",
                                          "ld.shared.u32: shared memory at 0, which was never written", 1),
    "a block that is too large": ("ret;\n", "a block of 96 threads, of at most 64", -96),
}


@unittest.skipUnless(DRIVER.exists(), "there is no CUDA toolkit, so the stand-ins were not built")
class Rules(unittest.TestCase):
    """What each check finds, and that it finds nothing where there is nothing."""

    def run_kernel(self, body, blocks, threads=64):
        with tempfile.TemporaryDirectory() as held:
            folder = pathlib.Path(held)
            (folder / "one.ptx").write_text(HEAD + body + "ret;\n}\n")
            np.arange(64, dtype=np.uint32).tofile(folder / "given")
            ended = subprocess.run([DRIVER, folder / "one.ptx", "one", str(blocks), str(threads), f"out:{folder / 'result'}:256", f"inout:{folder / 'given'}"],
                                   capture_output=True, text=True, timeout=60)
            made = np.fromfile(folder / "result", np.uint32) if ended.returncode == 0 else None
        return ended, made

    def test_sound(self):
        expected = {"exchange": np.arange(64) ^ 32, "barrier of a warp": np.arange(64) ^ 1, "shuffle": np.arange(64) ^ 1, "own memory": np.arange(64),
                    "paths that join": np.where(np.arange(64) % 32 < 16, 2, 1), "a vote of the block": np.ones(64), "an asynchronous copy": np.arange(64) % 4}
        for name, body in SOUND.items():
            ended, made = self.run_kernel(body, 1)
            self.assertEqual(ended.returncode, 0, f"{name}: {ended.stderr}")
            if name in expected:
                np.testing.assert_array_equal(made, expected[name], name)

    def test_faulty(self):
        for name, (body, said, blocks) in FAULTY.items():
            with self.subTest(name):
                ended, _ = self.run_kernel(body, max(blocks, 1), -blocks if blocks < 0 else 64)
                self.assertEqual(ended.returncode, 70, "it is not found")
                self.assertRegex(ended.stderr, said)


def multiply(kind, layout):
    """A product of 16 x 16 numbers by tensor cores: fragments of the device's memory, sums in the block's."""
    a, b = ([f"%{letter}{i}" for i in range(4 if kind == "bf16" else 8)] for letter in "ab")
    a, b, c = (f"{{{', '.join(names)}}}" for names in (a, b, [f"%c{i}" for i in range(8)]))
    types = "f32.bf16.bf16.f32" if kind == "bf16" else "f32.f32"
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 result, .param .u64 left, .param .u64 right)
{{
.reg .b32 %a<8>, %b<8>, %s, %i, %at, %x;
.reg .f32 %c<8>;
.reg .b64 %o, %l, %r, %d;
.reg .pred %p;
.shared .align 32 .b8 sums[1024];
ld.param.u64 %o, [result];
ld.param.u64 %l, [left];
ld.param.u64 %r, [right];
mov.u32 %s, 16;
{"".join(f"mov.f32 %c{i}, 0f3F800000;{chr(10)}" for i in range(8))}wmma.load.a.sync.aligned.{layout}.m16n16k16.global.{kind} {a}, [%l], %s;
wmma.load.b.sync.aligned.row.m16n16k16.global.{kind} {b}, [%r], %s;
wmma.mma.sync.aligned.{layout}.row.m16n16k16.{types} {c}, {a}, {b}, {c};
mov.u32 %at, sums;
wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%at], {c}, %s;
bar.warp.sync -1;
mov.u32 %i, %tid.x;
next:
shl.b32 %x, %i, 2;
add.s32 %x, %at, %x;
ld.shared.f32 %c0, [%x];
mul.wide.u32 %d, %i, 4;
add.s64 %d, %o, %d;
st.global.f32 [%d], %c0;
add.s32 %i, %i, 32;
setp.lt.u32 %p, %i, 256;
@%p bra next;
ret;
}}
"""


@unittest.skipUnless(DRIVER.exists(), "there is no CUDA toolkit, so the stand-ins were not built")
class Matrices(unittest.TestCase):
    def test_products(self):
        rng = np.random.default_rng(1)
        for kind, dtype in (("bf16", ml_dtypes.bfloat16), ("f16", np.float16)):
            for layout in ("row", "col"):
                left, right = (rng.normal(size=(16, 16)).astype(dtype) for _ in range(2))
                with tempfile.TemporaryDirectory() as held:
                    folder = pathlib.Path(held)
                    (folder / "one.ptx").write_text(multiply(kind, layout))
                    (left if layout == "row" else left.T.copy()).tofile(folder / "left")
                    right.tofile(folder / "right")
                    subprocess.run([DRIVER, folder / "one.ptx", "one", "1", "32", f"out:{folder / 'result'}:1024", f"inout:{folder / 'left'}", f"inout:{folder / 'right'}"], check=True)
                    made = np.fromfile(folder / "result", np.float32).reshape(16, 16)
                wanted = left.astype(np.float64) @ right.astype(np.float64) + 1
                np.testing.assert_allclose(made, wanted, rtol=1e-6, atol=1e-6, err_msg=f"{kind}, {layout}")


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Programs(unittest.TestCase):
    """A job's program for GPUs, by nvcc's PTX, against its program for the processor."""

    def check(self, name, job, architecture="80"):
        precision = job.get("precision", {})
        tolerance = TOLERANCES.get(precision.get("mixed_precision", "tf32" if precision.get("tf32") else None), 2e-5)
        copies = [json.loads(json.dumps(job)) for _ in range(2)]
        for group, key in (("devices", "attention"), ("devices", "convolution"), ("precision", "tf32")):  # of GPUs alone
            copies[0].get(group, {}).pop(key, None)
        trainers, rows = [Trainer(copies[0]), PtxTrainer(copies[1], architecture)], []
        for trainer in trainers:
            write_data(trainer.folder, job["data"].get("features", 64 if "inputs" in job["data"] else 1))
            trainer.build()
            began = time.monotonic()
            rows.append(trainer.run())
        took = time.monotonic() - began
        away = 0.0
        for one, other in zip(*rows, strict=True):
            for key in KEYS:
                if one.get(key) is not None:
                    np.testing.assert_allclose(other[key], one[key], rtol=tolerance, err_msg=f"{name}: {key} of {one['step']}")
            if one.get("loss"):
                away = max(away, abs(other["loss"] - one["loss"]) / abs(one["loss"]))
        print(f"# {name}: losses of {len(rows[0])} steps differ by {away:.1e}, {took / len(rows[0]):.2f} s a step", file=sys.stderr)
        return trainers[1], rows[1]

    def test_tiny(self):
        job = json.loads(json.dumps(TINY["tiny_bf16"]))
        job["training"]["steps"] = 3
        trainer, rows = self.check("tiny_bf16", job)
        again = trainer.run(STANDIN_ORDER="7")  # blocks and warps in an order that is drawn
        self.assertEqual([row["loss"] for row in rows], [row["loss"] for row in again[-len(rows):]])


SUMS = "    __syncthreads();\n    x = 0;"
# Faults in the program of tiny_bf16: an edit, and what is said of the kernel.
PLANTED = {
    "no barrier before the parts of a sum": (("group.h", SUMS, "    x = 0;"), r"shared memory at .*(no barrier|never written).*trainer.cu:\d+ by group.h:\d+"),
    "half of each warp at the barrier of a sum": (("group.h", SUMS, f"    if (threadIdx.x % 32 < 16)\n{SUMS}"), "bar.sync: divergence|a race: shared memory"),
    "half a mask of a shuffle": (("group.h", "x += __shfl_xor_sync(0xffffffffu,", "x += __shfl_xor_sync(0xffffu,"), "the mask 0000ffff, which has not the lane itself"),
    "no barrier after rows are brought": (("attend_by_rows.h", "  }\n  __syncthreads();\n}\n\n/* The dot", "  }\n}\n\n/* The dot"), "attention.*(a race|never written)"),
    "no barrier after counts": (("embedding.h", "counts[warp] = own;\n  __syncthreads();", "counts[warp] = own;"), "embedding.*(a race|never written)"),
    "no barrier after a list": (("embedding.h", "  __syncthreads();\n  return count;", "  return count;"), "embedding.*(a race|never written)"),
    "one weight too many": (("trainer.cu", "i < 7536;", "i <= 7536;"), "update.*outside of the array that the address was derived from"),
    "two blocks for one": (("trainer.cu", "device::note_loss, 1, 1,", "device::note_loss, 2, 1,"), "note_loss.*a race: byte 0 .* which (block 0|another block)"),
    "rows of two blocks": (("trainer.cu", "const size_t r = (size_t)blockIdx.x * 8 + threadIdx.x / 32", "const size_t r = (size_t)blockIdx.x * 7 + threadIdx.x / 32"),
                           "layer_norm.*a race: .* of the same launch"),
    "all blocks the first numbers": (("trainer.cu", "(size_t)blockIdx.x * 256 + threadIdx.x; i < count;", "threadIdx.x; i < count;"), "narrow_weights.*a race: .* of the same launch"),
    "a pack that is not aligned": (("trainer.cu", "add_bf16_2x8x16<4>, 1, 256, y, x0, x1)", "add_bf16_2x8x16<4>, 1, 256, y, x0, x1 + 1)"), "add_bf16.*an address that is not a multiple of 8"),
    "more threads than registers": (("trainer.cu", "device::add_bf16_2x8x16<4>, 1, 256,", "device::add_bf16_2x8x16<4>, 1, 512,"), "a block of 512 threads, of at most 256"),
}


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Planted(unittest.TestCase):
    """Faults in the text of an emitted program's kernels: found by the check that names them. Without them nothing is."""

    def test_planted(self):
        for name, (edit, said) in PLANTED.items():
            with self.subTest(name):
                trainer = PtxTrainer(json.loads(json.dumps(TINY["tiny_bf16"])))
                write_data(trainer.folder, 1)
                trainer.build(edit)
                with self.assertRaisesRegex(AssertionError, rf"failed with 70:[\s\S]*stand-in: rank 0: .*({said})"):
                    trainer.run("--steps", "1")


def add(name, job):
    def run(self):
        self.check(name, job)

    setattr(Programs, f"test_{name}", run)


if __name__ == "__main__":
    known = {**TINY, **CASES, **MORE}
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in [word for word in named if word in known] or ([name for name in known if name != "ranks"] if "--all" in sys.argv else []):
        add(name, known[name])
    if not named and "--all" not in sys.argv:
        del Planted
    unittest.main(argv=sys.argv[:1], defaultTest=[f"Programs.test_{name}" if name in known else name for name in named] or None)
