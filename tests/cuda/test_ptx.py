"""Kernels that nvcc has compiled, run instruction by instruction (tests/cuda/standin/ptx): whole programs beside those for the
processor, from the same weights and batches, and faults that are planted, each found by the check that names it.

Programs are skipped where there is no nvcc. The suite runs two of them, one for 20 steps, and plants one fault.

usage: test_ptx.py [NAME...] [--sm=90a] [--orders=20] [--planted=PATTERN] [--all]
  NAME       of a case of runs(), as gpt, evaluate_gpt, generate_llama, sharded_states, topology_table, tp, pp, ep, optimizer_lomo, hooks_calls,
             curve_200; or a class
  --sm       the architecture that is compiled for: 80, 90a or 100
  --orders   in how many drawn orders of blocks and warps a program that trains must give the same bits
  --planted  of the planted faults only those whose names match
  --all      every case, and all planted faults (ninja soak)"""

import importlib.util
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import ml_dtypes
import numpy as np
from host import TREE
from ptx import PtxTrainer, nvcc
from ranks import job_of  # tests/parallel; isort: skip
from rotation import ALL, in_turn  # tests/program; isort: skip

import test_axes  # isort: skip
import test_forward  # isort: skip
import test_optimizers  # isort: skip
import test_ranks  # isort: skip
import test_sharded  # isort: skip
import test_training  # isort: skip
from test_training import CASES, KEYS, MORE, case, write_data  # isort: skip

DRIVER = TREE / "build" / "tests" / "cuda" / "ptx_driver"
EXAMPLE = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
DATA = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 2, "sequence_length": 8}
TINY = {"tiny": case("nanogpt", EXAMPLE, DATA, training={"steps": 3, "seed": 3}),
        "tiny_bf16": case("nanogpt", EXAMPLE, DATA, training={"steps": 3, "seed": 3}, precision={"mixed_precision": "bf16"}, devices={"attention": "own"},
                          optimizer={"name": "adamw", "eps": 1e-4})}  # the gradient of the bias of keys is rounding alone
# Of each kind of program one that is small enough for many orders.
SHORT = {"training": {"steps": 2, "seed": 3}, "optimizer": {"name": "sgd", "lr": 0.05}}
BF16 = {"precision": {"mixed_precision": "bf16"}, "devices": {"attention": "own"}}
LLAMA = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 256}
EXPERTS = {**LLAMA, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "router_aux_loss_coef": 0.01}
SMALL_RESNET = {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 10, "embedding_size": 4, "stages": 1, "hidden_sizes.0": 4, "depths.0": 1}
TINY |= {"tiny_llama": case("llama", LLAMA, DATA, **SHORT, **BF16),
         "tiny_resnet": case("resnet", SMALL_RESNET, {**test_training.ROWS, "batch_size": 3}, **SHORT),
         "tiny_experts_bf16": case("qwen_moe", EXPERTS, DATA, **SHORT, **BF16),
         "tiny_lstm": case("lstm", {"num_layers": 1, "n_embd": 8, "hidden_size": 12, "vocab_size": 256}, DATA, **SHORT)}
TINY |= {f"tiny_{name}": case("nanogpt", EXAMPLE, DATA, training={"steps": 3, "seed": 3}, optimizer={"name": name})
         for name in ("adafactor", "muon", "lamb", "adalomo", "schedule_free_adamw")}
SMALL = ("tiny_bf16", "evaluate_tiny", "generate_tiny", "sharded_averages_of_weights", "tp", "sp", "pp", "optimizer_lomo", "hooks_calls")  # the suite runs one of these
ORDERS = 2


def test_file(name):
    """A test's file that is no module by its name, as another folder has one of the same."""
    made = importlib.util.spec_from_file_location(f"cuda_{name}", TREE / "tests" / "cuda" / f"{name}.py")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


with unittest.mock.patch.dict(os.environ):  # it has small granules of memory
    import test_stages  # isort: skip
test_hooks = test_file("test_hooks")


def without_times(rows):
    return [{key: row[key] for key in KEYS if key in row} for row in rows]


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
SUM = "setp.ne.u32 %p, %i, 0;\nmov.u32 %z, words;\n@!%p st.shared.u32 [%z], %i;\nbar.sync 0;\nred.shared.add.u32 [%z], %i;\n"
OTHER = "xor.b32 %y, %i, 32;\nmul.wide.u32 %e, %y, 4;\nadd.s64 %e, %o, %e;\n"  # %e: the word of the other warp's thread in the result
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
    "a ballot": f"setp.gt.u32 %p, %i, 40;\nvote.sync.ballot.b32 %z, %p, -1;\nst.global.u32 [%d], %z;\n",
    "what nobody uses": "setp.lt.u32 %p, %i, 64;\nadd.s32 %z, %z, 1;\nselp.b32 %z, %i, %z, %p;\nsetp.eq.u32 %q, %b, %z;\nor.pred %q, %p, %q;\n@%q st.global.u32 [%d], %z;\n",
    "own memory": "mov.u64 %e, own;\nst.local.u32 [%e+4], %i;\nld.local.u32 %z, [%e+4];\nst.global.u32 [%d], %z;\n",
    "a sum of all": f"{SUM}bar.sync 0;\nld.shared.u32 %z, [%z];\nst.global.u32 [%d], %z;\n",
    "a sum of all blocks": "red.global.add.u32 [%g], %i;\nsetp.eq.u32 %p, %b, 0;\n@%p st.global.u32 [%d], %i;\n",
    "a word of the device that passes a barrier": f"st.global.u32 [%d], %i;\nbar.sync 0;\n{OTHER}ld.global.u32 %z, [%e];\nbar.sync 0;\nst.global.u32 [%d], %z;\n",
    "two arrays of the block": f".shared .align 4 .b8 others[256];\nsetp.lt.u32 %p, %i, 32;\nmov.u32 %y, others;\nmov.u32 %z, words;\nselp.b32 %y, %y, %z, %p;\nand.b32 %z, %i, 31;\n"
                               "mad.lo.u32 %y, %z, 4, %y;\nst.shared.u32 [%y], %i;\nld.shared.u32 %z, [%y];\nst.global.u32 [%d], %z;\n",
    "an asynchronous copy": f"shl.b32 %y, %i, 4;\nand.b32 %y, %y, 255;\nmov.u32 %z, words;\nadd.s32 %z, %z, %y;\nsetp.gt.u32 %p, %i, 15;\n@%p bra wait;\n"
                            "cp.async.cg.shared.global [%z], [%g], 16;\nwait:\ncp.async.commit_group;\ncp.async.wait_group 0;\nbar.sync 0;\n"
                            "ld.shared.u32 %z, [%x];\nst.global.u32 [%d], %z;\n",
    "an asynchronous copy of 4 bytes": "mul.wide.u32 %e, %i, 4;\nadd.s64 %e, %g, %e;\ncp.async.ca.shared.global [%x], [%e], 4;\ncp.async.commit_group;\ncp.async.wait_group 0;\n"
                                       "ld.shared.u32 %z, [%x];\nst.global.u32 [%d], %z;\n",
}

# Of a register some bits alone are there.
LOW = ".reg .b16 %low, %high;\ncvt.u16.u32 %low, %i;\nmov.b32 %z, {%low, %high};\n"
BYTES = "prmt.b32 %z, %i, %i, 0x3340;\nprmt.b32 %y, %z, %e32, 0x5410;\n"  # a byte of %i twice, and two of what has none
SOUND |= {
    "a half that nobody uses": f"{LOW}shl.b32 %z, %z, 16;\nshr.u32 %z, %z, 16;\nst.global.u32 [%d], %z;\n",
    "a half that a mask takes away": f"{LOW}add.s32 %z, %z, %z;\nand.b32 %z, %z, 65535;\nst.global.u32 [%d], %z;\n",
    "a half that is not stored": f"{LOW}st.global.u32 [%d], 0;\nst.global.u16 [%d], %z;\n",
    "a half that is replaced": f"{LOW}bfi.b32 %z, 0, %z, 16, 16;\nst.global.u32 [%d], %z;\n",
    "a half that is there again": f"{LOW}mov.b32 {{%low, %high}}, %z;\ncvt.u32.u16 %y, %low;\nst.global.u32 [%d], %y;\n",
    "bytes that are not multiplied": f".reg .b32 %e32;\n{BYTES}dp2a.lo.u32.u32 %z, 0x00030002, %y, 0;\nst.global.u32 [%d], %z;\n",
    "bytes that are multiplied by zero": f".reg .b32 %e32;\n{BYTES}dp4a.u32.u32 %z, %y, 2, 0;\nst.global.u32 [%d], %z;\n",
}

OTHERS = f".shared .align 4 .b8 others[256];\nst.shared.u32 [%x], %i;\nmov.u32 %z, others;\nadd.s32 %z, %z, %y;\nst.shared.u32 [%z], %i;\nbar.sync 0;\n"

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
    "too far in an array of the block": (f"{OTHERS}ld.shared.u32 %z, [%x+256];\n", "ld.shared.u32: byte 256 of the block's array words of 256", 1),
    "too early in an array of the block": (f"{OTHERS}mov.u32 %z, others;\nld.shared.u32 %z, [%z+-4];\n", "ld.shared.u32: byte -4 of the block's array others of 256", 1),
    "too far in its own": ("mov.u64 %e, own;\nst.local.u32 [%e+16], %i;\n", "byte 16 of the thread's memory of 16", 1),
    "a vector that is not aligned": ("ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%g+4];\n", "ld.global.v4.f32: an address that is not a multiple of 16", 1),
    "what was never written": ("ld.global.u32 %z, [%d];\n", "ld.global.u32: memory at .*, which was never written", 1),
    "shared memory of the block before": (f"setp.ne.u32 %p, %b, 0;\n@%p bra after;\nst.shared.u32 [%x], %i;\nafter:\n{NEIGHBOUR}bar.sync 0;\nld.shared.u32 %z, [%y];\n",
                                          "ld.shared.u32: shared memory at 4, which was never written .*block 1 0 0", 2),
    "a register without a value": ("add.s32 %z, %z, 1;\nst.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value", 1),
    "a branch without a value": ("setp.lt.u32 %p, %z, 3;\n@%p ret;\n", "ret: a predicate that has no value", 1),
    "an address without a value": ("add.s64 %d, %o, %e;\nst.global.u32 [%d], %i;\n", "st.global.u32: operand 1 has no value", 1),
    "a value of half of the lanes": (f"{HALF}@%p mov.u32 %z, 1;\nst.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value .*thread 16", 1),
    "half of a register": (f"{LOW}st.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value in its bits ffff0000", 1),
    "a half that a sum moves up": (f"{LOW}shl.b32 %z, %z, 8;\nadd.s32 %z, %z, %i;\nand.b32 %z, %z, 0xff000000;\nst.global.u32 [%d], %z;\n",
                                   "st.global.u32: operand 2 has no value in its bits ff000000", 1),
    "a half that decides": (f"{LOW}setp.lt.u32 %p, %z, 3;\n@%p ret;\n", "ret: a predicate that has no value", 1),
    "a half that is shuffled": (f"{LOW}shfl.sync.bfly.b32 %z, %z, 1, 31, -1;\n", "shfl.sync.bfly.b32: operand 2 has no value in its bits ffff0000", 1),
    "bytes that are multiplied": (f".reg .b32 %e32;\n{BYTES}dp2a.hi.u32.u32 %z, 0x00030002, %y, 0;\nst.global.u32 [%d], %z;\n", "st.global.u32: operand 2 has no value", 1),
    "own memory without a value": ("mov.u64 %e, own;\nld.local.u32 %z, [%e];\n", "memory of the thread at 0, which was never written", 1),
    "a sum that is read before all have added": (f"{SUM}ld.shared.u32 %z, [%z];\nst.global.u32 [%d], %z;\n", r"a race: shared memory at 0, which (other threads write|thread \d+ writes) with no", 1),
    "a sum that begins late": (f"mov.u32 %z, words;\nst.shared.u32 [%z], 0;\n{SUM.partition('bar.sync 0;')[2]}", "a race: shared memory at 0, which thread", 1),
    "a sum of blocks that one reads": ("red.global.add.u32 [%g], %i;\nld.global.u32 %z, [%g];\nst.global.u32 [%o], 0;\n", "a race: memory at .*, which other threads of the block", 1),
    "a sum of blocks that the second reads": ("setp.eq.u32 %p, %b, 0;\n@%p red.global.add.u32 [%g], %i;\n@!%p ld.global.u32 %z, [%g];\n", "a race: byte 0 .*, which block 0 of the same launch writes .*block 1", 2),
    "a missing barrier for a word of the device": (f"st.global.u32 [%d], %i;\n{OTHER}ld.global.u32 %z, [%e];\nbar.sync 0;\nst.global.u32 [%d], %z;\n",
                                                   r"(ld.global.u32: memory at .*, which was never written|a race: memory at .*, which thread \d+ of the block writes)", 1),
    "a word of the device that two threads write": ("mul.wide.u32 %e, %b, 4;\nadd.s64 %e, %o, %e;\nst.global.u32 [%e], %i;\n", "a race: lane 0 stores another value", 1),
    "a word of the device that two warps write": ("shr.u32 %y, %i, 5;\nst.global.u32 [%o], %y;\n", "a race: memory at .*, which thread 31 of the block writes with no barrier", 1),
    "a word of the device that is read too late": (f"ld.global.u32 %z, [%g];\nst.global.u32 [%g], 1;\n", "a race: memory at .*, which other threads of the block have touched", 1),
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
                    "paths that join": np.where(np.arange(64) % 32 < 16, 2, 1), "a vote of the block": np.ones(64), "a sum of all": np.full(64, 2016), "a ballot": np.repeat([0, 0xFFFFFE00], 32),
                    "a word of the device that passes a barrier": np.arange(64) ^ 32, "an asynchronous copy": np.arange(64) % 4}
        expected |= {"a half that nobody uses": np.arange(64), "a half that a mask takes away": 2 * np.arange(64), "a half that is not stored": np.arange(64),
                     "a half that is replaced": np.arange(64), "a half that is there again": np.arange(64), "bytes that are not multiplied": 5 * np.arange(64),
                     "bytes that are multiplied by zero": 2 * np.arange(64)}
        expected |= {"an asynchronous copy of 4 bytes": np.arange(64), "two arrays of the block": np.arange(64)}
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


PRODUCTS = list(itertools.product(("bf16", "f16", "tf32"), ("row", "col"), ("row", "col"), (".global", ".shared", "")))


def bring(name, given, depth):
    """16 x depth numbers, as 8 or 4 words a lane, to shared memory, and their generic address to %l or %r."""
    moved = "".join(f"ld.global.u32 %x, [%d+{128 * i}];\nst.shared.u32 [%e+{128 * i}], %x;\n" for i in range(4))
    return (f"mov.u32 %i, %tid.x;\nmul.wide.u32 %d, %i, 4;\nmov.u64 %e, {name};\nadd.s64 %e, %e, %d;\nadd.s64 %d, %d, {given};\n{moved}bar.warp.sync -1;\n"
            f"mov.u64 {given}, {name};\n")


def multiply(kind, layout, other, space):
    """A product of 16 x 16 numbers, of 8 in common for TF32, by tensor cores: fragments of the device's memory or the block's, sums in
    the block's. Without a space addresses are generic ones, of the block's."""
    depth = 8 if kind == "tf32" else 16
    a, b = ([f"%{letter}{i}" for i in range(8 if kind == "f16" else 4)] for letter in "ab")
    a, b, c = (f"{{{', '.join(names)}}}" for names in (a, b, [f"%c{i}" for i in range(8)]))
    types, shape = "f32.f32" if kind == "f16" else f"f32.{kind}.{kind}.f32", f"m16n16k{depth}"
    return f""".version 8.0
.target sm_80
.address_size 64
.visible .entry one(.param .u64 result, .param .u64 left, .param .u64 right)
{{
.reg .b32 %a<8>, %b<8>, %s, %i, %at, %x;
.reg .f32 %c<8>;
.reg .b64 %o, %l, %r, %d, %e, %to;
.reg .pred %p;
.shared .align 32 .b8 sums[1024];
.shared .align 32 .b8 lefts[512];
.shared .align 32 .b8 rights[512];
ld.param.u64 %o, [result];
ld.param.u64 %l, [left];
ld.param.u64 %r, [right];
{"" if space == ".global" else bring("lefts", "%l", depth) + bring("rights", "%r", depth)}mov.u64 %to, sums;
{"".join(f"cvta.shared.u64 {at}, {at};{chr(10)}" for at in ("%to", "%l", "%r")) if space == "" else ""}mov.u32 %s, {depth if layout == "row" else 16};
{"".join(f"mov.f32 %c{i}, 0f3F800000;{chr(10)}" for i in range(8))}wmma.load.a.sync.aligned.{layout}.{shape}{space}.{kind} {a}, [%l], %s;
mov.u32 %s, {16 if other == "row" else depth};
wmma.load.b.sync.aligned.{other}.{shape}{space}.{kind} {b}, [%r], %s;
mov.u32 %s, 16;
wmma.mma.sync.aligned.{layout}.{other}.{shape}.{types} {c}, {a}, {b}, {c};
mov.u32 %at, sums;
wmma.store.d.sync.aligned.row.{shape}{space.replace("global", "shared")}.f32 [%to], {c}, %s;
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
        dtypes = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "tf32": np.float32}
        for kind, layout, other, space in PRODUCTS:
            depth = 8 if kind == "tf32" else 16
            left, right = (rng.normal(size=shape).astype(dtypes[kind]) for shape in ((16, depth), (depth, 16)))
            if kind == "tf32":  # numbers of this type
                left, right = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (left, right))
            with tempfile.TemporaryDirectory() as held:
                folder = pathlib.Path(held)
                (folder / "one.ptx").write_text(multiply(kind, layout, other, space))
                for name, matrix, order in (("left", left, layout), ("right", right, other)):
                    (matrix if order == "row" else matrix.T.copy()).tofile(folder / name)
                subprocess.run([DRIVER, folder / "one.ptx", "one", "1", "32", f"out:{folder / 'result'}:1024", f"inout:{folder / 'left'}", f"inout:{folder / 'right'}"], check=True)
                made = np.fromfile(folder / "result", np.float32).reshape(16, 16)
            wanted = left.astype(np.float64) @ right.astype(np.float64) + 1
            np.testing.assert_allclose(made, wanted, rtol=1e-6, atol=1e-6, err_msg=f"{kind}, {layout}, {other}, {space}")


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Programs(test_training.Comparison):
    """A job's program for GPUs, by nvcc's PTX, against its program for the processor: losses, norms, evaluations and weights."""

    device = PtxTrainer

    orders = None  # how many are drawn, other than ORDERS

    def curve(self, steps):
        """Losses of many steps of AdamW in float32."""
        self.orders, job = 0, {**TINY["tiny"], "training": {**TINY["tiny"]["training"], "steps": steps}}
        self.compare(f"curve of {steps}", job)

    def turn_round(self, name, trainer, lines, weights):
        """The same bits where blocks and warps take turns in an order that is drawn; in every other order without graphs, too."""
        lines, kept = without_times(lines), trainer.folder / "straight"
        (trainer.folder / "run").rename(kept)
        for order in range(1, (ORDERS if self.orders is None else self.orders) + 1):
            graphs = {"ACCEL_GRAPHS": "no"} if order % 2 else {}
            self.assertEqual(without_times(trainer.run(STANDIN_ORDER=str(order), **graphs))[-len(lines):], lines, f"{name}: order {order}")
            for key, value in trainer.weights().items():
                self.assertEqual(value.tobytes(), weights[key].tobytes(), f"{name}: {key}, order {order}")
            shutil.rmtree(trainer.folder / "run")


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Texts(test_forward.Forward):
    """What evaluators report, and tokens and logits of text generators."""

    device = PtxTrainer

    def said(self, trainer, *flags, **environment):
        return super().said(trainer, *flags, **(trainer.settings() if isinstance(trainer, PtxTrainer) else {}), **environment)


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Sharded(test_sharded.Sharded):
    """Ranks that divide states, gradients or weights, against one process on the processor."""

    device = PtxTrainer


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Order(test_ranks.Order):
    """Sums whose bits do not depend on who has which micro-batches."""

    device = PtxTrainer


WHOLE, STAGES = {"config": test_axes.WHOLE}, {"config": test_stages.CONFIG, "accumulation": test_stages.STEPS}
# Ranks, what they divide, and more of the job.
AXES = {"tp": (2, {"tp": 2}, {"config": test_axes.GPT}), "tp_positions": (2, test_axes.RESIDUAL, WHOLE),
        "tp_shards": (4, {"tp": 2, "fsdp": {"sharding_strategy": "full_shard"}}, {"config": test_axes.Shards.STILL, "replicas": 2}),
        "sp": (2, {"sp": 2}, WHOLE), "cp": (2, {"cp": 2}, WHOLE), "cp_ring": (2, test_axes.RING, WHOLE),
        "pp": (2, {"pp": 2}, STAGES), "pp_zero_bubble": (2, {"pp": 2, **test_stages.ZERO_BUBBLE}, STAGES), "pp_interleaved": (2, {"pp": 2, **test_stages.CHUNKS}, STAGES)}


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
@unittest.mock.patch.dict(os.environ, {"STANDIN_GRANULARITY": "64"})  # of memory that a stage maps
class Axes(test_axes.Axes):
    """Ranks that divide tensors, positions, layers or experts, against one process on both devices, or as many with all experts."""

    device = PtxTrainer

    def several(self, name):
        ranks, parallelism, more = AXES[name]
        self.beside(ranks, parallelism, **{"steps": 4, "training": {"eval_interval": 4, "eval_iters": "all"}, **more})

    def experts(self):
        groups = {"model": "qwen_moe", "config": test_axes.EXPERTS, "data": {"sequence_length": 16}}
        found = self.made("cuda", job_of(2, 2, 4, parallelism={"ep": 2}, **groups))
        self.compare(found, self.made("cuda", job_of(2, 2, 4, **groups)), 1e-6, "replicas")


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Hooks(test_hooks.Hooks):
    """Functions of a job's own."""

    device = PtxTrainer

    def settings(self, trainer):
        return trainer.settings() if isinstance(trainer, PtxTrainer) else {}


SUMS = "    __syncthreads();\n    x = 0;"
OUTSIDE = "outside of the array that the address was derived from"
# One more program to plant faults in: with two tiles of keys.
TILES = case("nanogpt", {**EXAMPLE, "block_size": 40}, {**DATA, "batch_size": 1, "sequence_length": 40}, training={"steps": 3, "seed": 3})
PROGRAMS = {"tiny_bf16": TINY["tiny_bf16"], "tiles": TILES}
# Faults: an edit, what is said of the kernel, and the program, without a word tiny_bf16.
PLANTED = {
    "no barrier before the parts of a sum": (("group.h", SUMS, "    x = 0;"), r"shared memory at .*(no barrier|never written).*trainer.cu:\d+ by group.h:\d+"),
    "half of each warp at the barrier of a sum": (("group.h", SUMS, f"    if (threadIdx.x % 32 < 16)\n{SUMS}"), "bar.sync: divergence|a race: shared memory"),
    "half a mask of a shuffle": (("group.h", "x += __shfl_xor_sync(0xffffffffu,", "x += __shfl_xor_sync(0xffffu,"), "the mask 0000ffff, which has not the lane itself"),
    "no barrier after rows are brought": (("attend_by_rows.h", "  }\n  __syncthreads();\n}\n\n/* The dot", "  }\n}\n\n/* The dot"), "attention.*(a race|never written)"),
    "no barrier before rows are given": (("attend_by_rows.h", "  __syncthreads();\n#pragma unroll\n", "#pragma unroll\n"), "attention.*a race: shared memory"),
    "no barrier of a warp before a row is taken": (("attend_by_rows.h", "    __syncwarp();\n#pragma unroll\n    for (int n = 0; n < some; n++) to[", "#pragma unroll\n    for (int n = 0; n < some; n++) to["),
                                                   "attention.*shared memory.*(a race|never written)|attention.*a race: shared memory"),
    "no barrier after counts": (("embedding.h", "counts[warp] = own;\n  __syncthreads();", "counts[warp] = own;"), "embedding.*(a race|never written)"),
    "no barrier after a list": (("embedding.h", "  __syncthreads();\n  return count;", "  return count;"), "embedding.*(a race|never written)"),
    "one weight too many": (("trainer.cu", "i < 7536;", "i <= 7536;"), "update.*outside of the array that the address was derived from"),
    "two blocks for one": (("trainer.cu", "device::note_loss, 1, 1,", "device::note_loss, 2, 1,"), "note_loss.*a race: byte 0 .* which (block 0|another block)"),
    "rows of two blocks": (("trainer.cu", "const size_t r = (size_t)blockIdx.x * 8 + threadIdx.x / 32", "const size_t r = (size_t)blockIdx.x * 7 + threadIdx.x / 32"),
                           "layer_norm.*a race: .* of the same launch"),
    "all blocks the first numbers": (("trainer.cu", "(size_t)blockIdx.x * 256 + threadIdx.x; i < count;", "threadIdx.x; i < count;"), "narrow_weights.*a race: .* of the same launch"),
    "a pack that is not aligned": (("trainer.cu", "add_bf16_2x8x16<4>, 1, 256, y, x0, x1)", "add_bf16_2x8x16<4>, 1, 256, y, x0, x1 + 1)"), "add_bf16.*an address that is not a multiple of 8"),
    "more threads than registers": (("trainer.cu", "device::add_bf16_2x8x16<4>, 1, 256,", "device::add_bf16_2x8x16<4>, 1, 512,"), "a block of 512 threads, of at most 256"),
    "no barrier before a column's sum": (("group.h", "% 32] = sum;\n  __syncthreads();", "% 32] = sum;"), "two_columns.*(a race|never written)"),
    "warps that leave before a barrier": (("embedding.h", "if (!__syncthreads_or(own > 0)) return 0;", "if (own == 0) return 0;"), "embedding.*(divergence|a race|never written)"),
    "a kernel that is left out": (("trainer.cu", "accel_launch(device::gelu_bf16_2x8x64<8>, 1, 256, y, x);", "return;"), "gelu_bf16_2x8x64 launches no kernel"),
    "rows that are not there": (("trainer.cu", "layer_norm_bf16_2x8x16<4>, 2, 256, y, mean, rstd, x, weight", "layer_norm_bf16_2x8x16<4>, 3, 256, y, mean, rstd, x, weight"), f"layer_norm.*{OUTSIDE}"),
    "rows that are left out": (("trainer.cu", "layer_norm_bf16_2x8x16<4>, 2, 256, y, mean, rstd, x, weight", "layer_norm_bf16_2x8x16<4>, 1, 256, y, mean, rstd, x, weight"),
                               "(never written|in an earlier batch, and nothing in this one)"),
    "a row that is not aligned": (("trainer.cu", "row[n] = accel_load<width>(x + r * 16 + c);", "row[n] = accel_load<width>(x + r * 16 + c + 1);"), "layer_norm.*an address that is not a multiple of 16"),
    "all threads store a number": (("trainer.cu", "if (lane == 0) scale[0] =", "scale[0] ="), "inverse_target_count.*a race: memory at .* of the block writes with no barrier"),
    "another lane's number from memory": (("trainer.cu", "const float s = 1.0f / sqrtf(accel_sum<32>(squares) / 16.0f + 1e-05f);\n  if (lane == 0) {\n    mean[r] = m;\n    rstd[r] = s;\n  }",
                                           "if (lane == 0) rstd[r] = 1.0f / sqrtf(squares / 16.0f + 1e-05f);\n  mean[r] = m;\n  const float s = rstd[r];"), "layer_norm.*(a race: memory|never written)"),
    "half of a block's threads": (("trainer.cu", "dim3(1, 2, 2), 64, y, lse", "dim3(1, 2, 2), 32, y, lse"), "attention.*shared memory at .*never written"),
    "a head too many": (("trainer.cu", "dim3(1, 2, 2), 64, y, lse", "dim3(1, 3, 2), 64, y, lse"), f"attention.*({OUTSIDE}|a race|never written)"),
    "a sample too many": (("trainer.cu", "dim3(1, 2, 2), 64, y, lse", "dim3(1, 2, 3), 64, y, lse"), f"attention.*{OUTSIDE}"),
    "one element too many in shared memory": (("attend_by_rows.h", "n < part::tile * part::width; n += 64", "n <= part::tile * part::width; n += 64"), "attention.*(a race|byte .* of the block's (array|shared memory))"),
    "a key too many": (("attend_by_rows.h", "&sum, query, keys.items[n_key],", "&sum, query, keys.items[n_key + 1],"), "attention.*byte .* of the block's (array|shared memory)", "tiles"),
    "a count too many": (("embedding.h", "for (unsigned w = 0; w < 8; w++)", "for (unsigned w = 0; w < 9; w++)"), "embedding.*(never written|byte .* of the block's (array|shared memory)|a race)"),
    "a token too many": (("embedding.h", "at < end ? (uint32_t)tokens[at]", "at <= end ? (uint32_t)tokens[at]"), f"embedding.*{OUTSIDE}"),
    "a ballot without a lane": (("embedding.h", "__ballot_sync(0xffffffffu, which", "__ballot_sync(0x7fffffffu, which"), "the mask 7fffffff, which has not the lane itself"),
    "threads beyond the end": (("trainer.cu", "if (first >= 256) return;", "if (first >= 260) return;"), OUTSIDE),
    "rows that overlap": (("trainer.cu", "accel_store(y, r * 16 + c, result[n]);", "accel_store(y, r * 8 + c, result[n]);"), "layer_norm.*a race: .*"),
    "a kernel in place that is left out": (("trainer.cu", "accel_launch(device::gelu_backward_bf16_2x8x64<8>, 1, 256, y, x0, x1);", "return;"), "gelu_backward_bf16_2x8x64 launches no kernel"),
    "a column too many": (("group.h", "c < columns && r < last; r += 32", "c <= columns && r < last; r += 32"),
                          "two_columns.*(the partial sums, which no kernel of this operation wrote|never written)"),
}


@unittest.skipUnless(nvcc(), "there is no nvcc, so no program was compiled to PTX")
class Planted(unittest.TestCase):
    """Faults in the text of an emitted program's kernels: found by the check that names them. Without them nothing is."""

    def built(self, job, *edits, **how):
        trainer = PtxTrainer(json.loads(json.dumps(job)))
        write_data(trainer.folder, 1)
        trainer.build(*edits, **how)
        return trainer

    def test_planted(self):
        hosts, wanted = {}, option("planted", "")
        for name in [name for name in PLANTED if re.search(wanted, name)] if wanted or "Planted" in sys.argv else in_turn(PLANTED, len(PLANTED)):
            edit, said, *named = PLANTED[name]
            with self.subTest(name):
                program = named[0] if named else "tiny_bf16"
                if program not in hosts:
                    hosts[program] = self.built(PROGRAMS[program])
                    hosts[program].run("--steps", "2")
                    shutil.rmtree(hosts[program].folder / "run")
                trainer, kernels = hosts[program], hosts[program].kernels_with(edit)
                if kernels is None:
                    trainer = self.built(PROGRAMS[program], edit, host=trainer)
                with self.assertRaisesRegex(AssertionError, rf"failed with 70:[\s\S]*stand-in: rank 0: .*({said})"):
                    trainer.run("--steps", "2", **({"STANDIN_PTX": str(kernels)} if kernels else {}))
                shutil.rmtree(trainer.folder / "run", ignore_errors=True)
                print(f"# found: {name}", file=sys.stderr, flush=True)


def runs():
    """What there is to run: name: (class, method, arguments)."""
    made = {name: (Programs, "compare", (name, job)) for name, job in {**TINY, **CASES, **MORE}.items()}
    for kind, method, cases in (("evaluate", "evaluate", {"tiny": TINY["tiny"], **test_forward.EVALUATED, **test_forward.MORE_EVALUATED}),
                                ("generate", "write", {"tiny": TINY["tiny"], **test_forward.WRITTEN, **test_forward.MORE_WRITTEN})):
        made |= {f"{kind}_{name}": (Texts, method, (name, job)) for name, job in cases.items()}
    made |= {f"sharded_{name}": (Sharded, "compare", (name,)) for name in test_sharded.CASES}
    made |= {f"topology_{name}": (Order, "check", described) for name, described in test_ranks.MODELS.items()}
    made |= {name: (Axes, "several", (name,)) for name in AXES} | {"ep": (Axes, "experts", ())}
    made |= {f"optimizer_{name}": (Programs, "compare", (name, test_optimizers.job_of(name))) for name in test_optimizers.RULES}
    made |= {f"hooks_{name}": (Hooks, f"test_{name}", ()) for name in ("calls", "moments")}
    return made | {f"curve_{steps}": (Programs, "curve", (steps,)) for steps in (20, 200)}


def add(name, case, method, arguments):
    def run(self):
        getattr(self, method)(*arguments)

    setattr(case, f"test_{name}", run)
    return f"{case.__name__}.test_{name}"


def option(word, otherwise):
    found = [given.partition("=")[2] for given in sys.argv if given.startswith(f"--{word}=")]
    return found[0] if found else otherwise


if __name__ == "__main__":
    known, named = runs(), [word for word in sys.argv[1:] if not word.startswith("-")]
    PtxTrainer.architecture = option("sm", in_turn(("80", "90a", "100"), 3)[0])
    ORDERS = int(option("orders", ORDERS))
    chosen = named or ["Rules", "Matrices", *(known if ALL else ("curve_20", *in_turn(SMALL, len(SMALL)))), "Planted"]
    unittest.main(argv=sys.argv[:1], defaultTest=[add(name, *known[name]) if name in known else name for name in chosen])
