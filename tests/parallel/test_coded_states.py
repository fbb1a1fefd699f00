"""States of 8 bits of ranks that divide them: scales are of blocks of 256 elements of a parameter, which no rank's part cuts, so that losses,
weights and the states themselves are those of one process; resumed from any other division, and in the memory that the plan says."""

import itertools
import math
import shutil
import unittest

import numpy as np
from ranks import CONFIG, ComparedWithOne, Ranks, job_of, json_lines, load_file, relative, trained
from rotation import rotating, in_turn  # tests/program; isort: skip

WIDE = {**CONFIG, "n_layer": 2, "n_embd": 66}  # matrices of blocks that are not full, vectors without codes
BLOCKS = {**CONFIG, "n_layer": 1, "n_head": 2, "n_embd": 512}  # of which each of two ranks has whole blocks
ACCUMULATING = {"num_steps": 2, "sync_with_dataloader": False}
CODED = {"state_dtype": "8bit"}
EVALUATED = {"eval_interval": 3, "eval_iters": "all"}
QWEN = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 64, "head_dim": 8, "vocab_size": 256,
        "moe_intermediate_size": 72, "shared_expert_intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2,
        "router_aux_loss_coef": 0}


def stage(number, **axes):
    return {"zero_stage": number, "ddp": {"bucket_cap_mb": 0.05}, **axes}


def states(trainer, folder="run", number=0):
    return load_file(trainer.folder / folder / "checkpoints" / f"checkpoint_{number}" / "optimizer.safetensors")


class Coded(ComparedWithOne):
    def same(self, found, wanted, exact):
        """Codes are next to each other where sums have another order, now and then."""
        self.assertEqual(found.keys(), wanted.keys())
        self.assertTrue(any(value.dtype == np.uint8 for value in wanted.values()))
        for name, value in wanted.items():
            ours = found[name]
            self.assertEqual((ours.shape, ours.dtype), (value.shape, value.dtype), name)
            if exact:
                self.assertTrue(np.array_equal(ours, value), name)
            elif value.dtype == np.uint8:
                away = np.abs(ours.astype(int) - value)
                self.assertLess(np.mean(away > 1), 0.01, name)
            else:
                self.assertLess(relative(ours, value), 1e-2, name)

    def compared(self, ranks, samples, mesh, steps=6, tolerance=1e-6, **groups):
        micro = groups.get("accumulation", {}).get("num_steps", 1)
        taken = ranks // math.prod(mesh.get(axis, 1) for axis in ("tp", "cp", "sp", "pp"))
        groups = {"config": WIDE, "training": EVALUATED, "checkpoint": {"every": 3}, "optimizer": CODED, **groups}
        several, lines = trained(ranks, job_of(ranks, samples // taken // micro, steps, parallelism=mesh, **groups))
        one, wanted = self.one(samples // micro, steps, parallelism=mesh, **groups)
        self.compare(several, lines, one, wanted, tolerance)
        self.same(states(several), states(one), False)
        several.generate()
        self.assertRegex(several.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_meshes(self):
        mixture = {"model": "qwen_moe", "config": QWEN, "data": {"sequence_length": 16}}
        accumulating = {"accumulation": ACCUMULATING}
        for ranks, mesh, more in in_turn([(2, stage(1), {}), (3, stage(2), {}), (4, stage(2, dp_shard=2), accumulating), (2, stage(3), accumulating),
                                         (4, stage(3, sp=2), {}), (4, stage(2, cp=2), {}), (4, stage(1, pp=2), accumulating),
                                         (4, stage(3, pp=2), accumulating), (4, stage(2, ep=2), mixture)], 5):
            with self.subTest(mesh):
                self.compared(ranks, 24, mesh, **more)

    def test_tensors(self):
        """Of which a rank's part is whole blocks: of rows, of columns, and of queries, keys and values."""
        for ranks, mesh in in_turn([(2, {}), (4, stage(2)), (4, {"pp": 2}), (2, {"megatron": {"sequence_parallelism": True}})], 4):
            with self.subTest(mesh):
                micro = {"accumulation": ACCUMULATING} if "pp" in mesh else {}
                config = {**BLOCKS, "n_layer": mesh.get("pp", 1)}
                self.compared(ranks, 4, {"tp": 2, "tp_plan": [{"match": "wte", "style": "replicate"}], **mesh}, 4, config=config, **micro)

    def test_tensors_resumed(self):
        """By one process from ranks that divide tensors, and by those from its checkpoint."""
        groups = {"config": BLOCKS, "optimizer": CODED, "checkpoint": {"every": 2}}
        several, _ = trained(2, job_of(2, 4, 4, parallelism={"tp": 2}, **groups))
        one, _ = trained(1, job_of(1, 4, 4, **groups))
        self.same(states(several), states(one), False)
        for saver, trainer in ((several, one), (one, several)):
            result = trainer.launch("--resume", str(saver.folder / "run" / "checkpoints" / "checkpoint_0"), "--project-dir", "on")
            self.assertEqual(result.returncode, 0, result.stderr)
            on = load_file(trainer.folder / "on" / "model.safetensors")
            for name, value in saver.weights().items():
                self.assertLess(relative(on[name], value), 1e-4, name)

    def test_cut_blocks(self):
        trainer = Ranks(2, job_of(2, 4, 2, config=WIDE, parallelism={"tp": 2}, optimizer=CODED))
        with self.assertRaisesRegex(AssertionError, r"job.yaml:\d+:\d+: error: states of 8 bits have a scale for 256 elements in a row, and a "
                                                    r"rank along tp has 33 in a row of 'h.0.attn.c_attn.weight', "):
            trainer.command("plan", "job.yaml")

    def test_padding(self):
        """Of a parameter that its padding makes a multiple of the ranks' blocks: 93 x 66 elements are 6 fewer than 24 blocks."""
        config = {**WIDE, "n_layer": 1, "block_size": 93}
        self.compared(2, 4, stage(1), 2, config=config, data={"sequence_length": 93}, training={}, checkpoint={"every": 1})

    def test_one_order_of_sums(self):
        """The losses, the weights and the states of one process, to the last bit."""
        runs = [trained(ranks, job_of(ranks, 3, 6, config=WIDE, optimizer=CODED, checkpoint={"every": 3}, training=EVALUATED,
                                      parallelism={"reproducible": "topology", **mesh}, accumulation={**ACCUMULATING, "num_steps": 4 // ranks}))
                for ranks, mesh in ((1, {}), *in_turn([(2, stage(1)), (4, stage(2)), (4, stage(3))], 3))]
        (one, wanted), *others = runs
        for several, lines in others:
            for line, want in zip(lines, wanted, strict=True):
                self.assertEqual([line[name] for name in ("loss", "grad_norm")], [want[name] for name in ("loss", "grad_norm")])
            for name, value in one.weights().items():
                self.assertTrue(np.array_equal(several.weights()[name], value), name)
            self.same(states(several), states(one), True)


def built(ranks, mesh):
    """Six steps of 12 samples, with a checkpoint in the middle."""
    stages = mesh.get("pp", 1)
    trainer = Ranks(ranks, job_of(ranks, 6 * stages // ranks, 6, config=WIDE, parallelism=mesh, checkpoint={"every": 3}, training=EVALUATED,
                                  accumulation=ACCUMULATING, optimizer=CODED))
    trainer.build()
    return trainer


def in_parts(strategy, **axes):
    return {"fsdp": {"sharding_strategy": strategy, "state_dict_type": "sharded_state_dict"}, "ddp": {"bucket_cap_mb": 0.05}, **axes}


class Resumed(unittest.TestCase):
    def test_each_from_each(self):
        """A checkpoint, whole or in parts, resumes with any other division, with its codes and their scales; with its own to the last bit."""
        meshes = [(1, {}), (2, stage(1)), (3, in_parts("full_shard")), (4, in_parts("shard_grad_op", pp=2))]
        trainers = [built(ranks, mesh) for ranks, mesh in meshes]
        wanted = [line["eval_loss"] for line in trainers[0].run() if "eval_loss" in line]
        for trainer in trainers[1:]:
            trainer.run()
        for saver, trainer in in_turn(itertools.product(trainers, trainers), 3):
            with self.subTest(saved=saver.ranks, resumed=trainer.ranks):
                self.check(saver, trainer, wanted[1])

    def check(self, saver, trainer, wanted):
        shutil.rmtree(trainer.folder / "on", ignore_errors=True)
        result = trainer.launch("--resume", str(saver.folder / "run" / "checkpoints" / "checkpoint_0"), "--project-dir", "on")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(abs(json_lines(trainer.folder / "on")[-1]["eval_loss"] / wanted - 1), 1e-6)
        on = load_file(trainer.folder / "on" / "model.safetensors")
        for name, value in saver.weights().items():
            self.assertTrue(np.array_equal(on[name], value) if saver is trainer else relative(on[name], value) < 1e-4, name)


load_tests = rotating(3)

if __name__ == "__main__":
    unittest.main()
