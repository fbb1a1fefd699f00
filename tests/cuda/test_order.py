"""Emitted CUDA programs of eight ranks over the stand-ins, with every access of host and kernels seen: nothing is read or
written without waiting for who writes or reads it, and what is taken out of the program is missed. And attention by
cuDNN's graphs, as programs of 16 bits have it, against the processor's."""

import sys
import unittest

import numpy as np
from host import HostTrainer, Ranks, Trainer, objects, without
from rotation import rotating  # tests/program; isort: skip
from test_training import CLIPPED, MODELS, TEXT, write_data

GPT = {"n_layer": 1, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}


def job(**groups):
    return {"model": {"source": str(MODELS / "gpt2.c"), "config": GPT},
            "data": {**TEXT, "batch_size": 1, "sequence_length": 8}, "optimizer": CLIPPED,
            "training": {"steps": 3, "seed": 3}, **groups}


class Order(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainer = HostTrainer(job(devices={"per_node": 8}, parallelism={"ddp": {"bucket_cap_mb": 0.001}}), PARTS,
                                  watched=True)
        write_data(cls.trainer.folder, 1)
        cls.trainer.build()
        cls.text = (cls.trainer.folder / "trainer.c").read_text()

    def test_eight_ranks(self):
        self.trainer.rebuild(self.text)
        rows = self.trainer.run()
        processor = Ranks(8, job(devices={"per_node": 8}, parallelism={"ddp": {"bucket_cap_mb": 0.001}}))
        write_data(processor.folder, 1)
        processor.build()
        for one, other in zip(processor.run(), rows, strict=True):
            np.testing.assert_allclose(other["loss"], one["loss"], rtol=2e-5)

    def test_a_wait_that_is_missing(self):
        self.trainer.rebuild(without(self.text, "accel_wait_collectives"))
        with self.assertRaisesRegex(AssertionError, "without waiting for ncclAllReduce of|forked is not joined"):
            self.trainer.run()

    def test_a_feed_that_is_not_sent(self):
        self.trainer.rebuild(without(self.text, "accel_gpu_feed_send"))
        with self.assertRaisesRegex(AssertionError, "the event was never recorded"):
            self.trainer.run()

    def test_an_end_that_leaves_things(self):
        self.trainer.rebuild(without(self.text, "accel_gpu_close"))
        with self.assertRaisesRegex(AssertionError, "left at the end"):
            self.trainer.run()


class Library(unittest.TestCase):
    def test_attention(self):
        described = job(precision={"mixed_precision": "bf16"})
        trainers = [Trainer(described), HostTrainer(described, PARTS, watched=True)]
        rows = []
        for trainer in trainers:
            write_data(trainer.folder, 1)
            trainer.build()
            rows.append(trainer.run())
        self.assertIn("accel_gpu_attend_backward", (trainers[1].folder / "trainer.c").read_text())
        for one, other in zip(*rows, strict=True):
            np.testing.assert_allclose(other["loss"], one["loss"], rtol=2e-2)


load_tests = rotating(2)


if __name__ == "__main__":
    PARTS = objects()
    unittest.main(argv=sys.argv[:1])
