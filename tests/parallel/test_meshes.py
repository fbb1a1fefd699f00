"""Ranks that divide along several axes of the mesh at a time against one process: the same losses, norms and weights; a run
resumes on any mesh. A third of the tests a run; CASES=all runs all."""

import json
import subprocess
import unittest

from ranks import ComparedWithOne, Ranks, job_of, relative, trained
from rotation import rotating  # tests/program; isort: skip

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 16}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_size": 32, "intermediate_size": 48,
         "head_dim": 8, "vocab_size": 256, "tie_word_embeddings": False}
EXPERTS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
           "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2,
           "router_aux_loss_coef": 0}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}
SPLIT = {"megatron": {"sequence_parallelism": True}}


class Meshes(ComparedWithOne):
    def pair(self, ranks, batch, config=CONFIG, **parallelism):
        groups = {"training": EVALUATED, **parallelism.pop("groups", {})}
        return self.check(ranks, batch, 20, config=config, parallelism=parallelism, **groups)[0]

    def split(self, trainer):
        """The parameters that ranks divide, and the axes of collectives."""
        plan = trainer.plan()
        return plan["split"]["parameters"], {c["axis"] for c in plan["collectives"]}

    def test_tensors_and_keys(self):
        self.assertEqual(self.split(self.pair(4, 2, tp=2, cp=2)), (13, {"tp", "cp", "dp_replicate"}))

    def test_tensors_and_heads(self):
        """Of four heads, ranks along tp have two each, and exchange them for positions: one each."""
        self.assertEqual(self.split(self.pair(4, 2, tp=2, sp=2)), (13, {"tp", "sp", "dp_replicate"}))

    def test_keys_and_heads(self):
        self.assertEqual({c["axis"] for c in self.pair(4, 2, cp=2, sp=2).plan()["collectives"]}, {"cp", "sp", "dp_replicate"})

    def test_three_axes(self):
        self.assertEqual(self.split(self.pair(8, 2, tp=2, cp=2, sp=2)), (13, {"tp", "cp", "sp", "dp_replicate"}))

    def test_residual(self):
        self.pair(4, 2, tp=2, cp=2, **SPLIT, config={**CONFIG, "dropout": 0.1})
        self.pair(8, 1, tp=2, sp=2, **SPLIT)

    def test_sharded(self):
        """Ranks that divide sequences are among those that shard states, gradients and weights."""
        for ranks, batch, mesh in ((4, 1, {"sp": 2, "zero_stage": 1}), (8, 1, {"tp": 2, "cp": 2, "zero_stage": 3}),
                                   (4, 1, {"tp": 2, "zero_stage": 2, **SPLIT})):
            with self.subTest(mesh):
                axes = {"dp_shard", *(axis for axis in ("tp", "cp", "sp") if axis in mesh)}
                self.assertEqual({c["axis"] for c in self.pair(ranks, batch, **mesh).plan()["collectives"]}, axes)

    def test_rotated_heads(self):
        """Embeddings that are not tied: a rank looks up its rows for its positions."""
        for axis in ("cp", "sp"):
            several = self.pair(4, 2, tp=2, **{axis: 2}, config=LLAMA, groups={"model": "llama", "data": {"sequence_length": 16}})
            self.assertEqual(several.plan()["split"]["parameters"], 2 * 7 + 2)

    def test_experts(self):
        """Ranks along ep have samples of their own, and so rank 1 other ones than rank 0, which has the same parts of matrices."""
        groups = {"model": "qwen_moe", "data": {"sequence_length": 16}}
        self.pair(4, 2, tp=2, ep=2, config=EXPERTS, groups={**groups, "optimizer": {"norm_type": "inf"}})
        several = self.pair(8, 1, tp=2, ep=2, **SPLIT, config=EXPERTS, groups=groups)
        self.assertEqual({c["axis"] for c in several.plan()["collectives"]}, {"tp", "ep", "dp_replicate"})
        self.pair(8, 2, tp=2, sp=2, ep=2, config=EXPERTS, groups=groups)

    def test_in_bf16(self):
        job = {"config": CONFIG, "precision": {"mixed_precision": "bf16"}, "optimizer": {"eps": 1e-3},
               "memory": {"activation_checkpointing": "all"}, "accumulation": {"num_steps": 2, "sync_with_dataloader": False}}
        self.check(4, 2, 20, tolerance=1e-3, parallelism={"tp": 2, "cp": 2}, **job)


class Resumed(unittest.TestCase):
    """Whole tensors are read and written."""

    groups = {"config": CONFIG, "checkpoint": {"every": 5}}

    @classmethod
    def setUpClass(cls):
        cls.one, cls.lines = trained(1, job_of(1, 4, 10, **cls.groups))

    def check(self, trainer, lines):
        for line, want in zip(lines, self.lines, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
        after = self.one.weights()
        for name, value in trainer.weights().items():
            if not name.endswith("key.bias"):
                self.assertLess(relative(value, after[name]), 1e-3, name)

    def resumed(self, before, after):
        """A run of 5 steps on one mesh that resumes on another up to step 10: (ranks, batch, keys of parallelism) each."""
        first = Ranks(before[0], job_of(before[0], before[1], 5, parallelism=before[2], **self.groups))
        first.build()
        first.run()
        second = Ranks(after[0], job_of(after[0], after[1], 10, parallelism=after[2], **self.groups), folder=first.folder)
        second.build()
        self.check(second, second.run("--resume", "auto"))


class Files(Resumed):
    def test_from_heads_to_one_rank(self):
        self.resumed((8, 4, {"tp": 2, "cp": 2, "sp": 2}), (1, 4, {}))

    def test_from_one_rank_to_heads(self):
        self.resumed((1, 4, {}), (8, 2, {"tp": 2, "sp": 2}))

    def test_from_shards_of_states(self):
        """Which are in files of their own."""
        shards = {"fsdp": {"sharding_strategy": "full_shard", "state_dict_type": "sharded_state_dict"}}
        self.resumed((4, 2, {"cp": 2, **shards}), (8, 2, {"tp": 2, "sp": 2, "zero_stage": 2, "dp_replicate": 2}))

    def test_evaluation(self):
        """Ranks along tp measure a trained model as one process does."""
        measured = []
        for ranks, parallelism in ((1, {}), (2, {"tp": 2, "sp": 2})):
            evaluator = Ranks(ranks, job_of(2 * ranks, 4, 5, parallelism=parallelism, training={"eval_interval": 1}, **self.groups))
            evaluator.build("--program", "evaluate")
            flags = ("--weights", str(self.one.folder / "run"), "--format", "json")
            result = evaluator.launch(*flags) if ranks > 1 else subprocess.run(["./trainer", *flags], cwd=evaluator.folder, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            measured.append(json.loads(result.stdout))
        self.assertLess(abs(measured[1]["loss"] / measured[0]["loss"] - 1), 1e-6)


class Experts(Resumed):
    groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}, "checkpoint": {"every": 5}}

    def test_from_experts(self):
        self.resumed((4, 2, {"tp": 2, "ep": 2}), (4, 2, {"cp": 2, "ep": 2}))


load_tests = rotating(3)


if __name__ == "__main__":
    unittest.main()
