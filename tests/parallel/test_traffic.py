"""What ranks hand to MPI in their steps, counted through its profiling interface, is what the plan says, to the byte and in
its order, on each of them. Half of the tests a run; CASES=all runs all. DIVISIONS=all: for all ranks and all that they may divide."""

import os
import subprocess
import unittest

from placements import cases_of, parallelism
from ranks import TREE, Ranks, job_of, table
from rotation import rotating  # tests/program; isort: skip

STEPS = 5
TABLE = {"train": {"path": "rows.csv", "format": "csv"}, "features": 7}
PLACED = [case for case in cases_of((1, 4)) if case[0] > 1] if os.environ.get("DIVISIONS") == "all" else [
    case for case in cases_of((2,)) if case[0] == 4]
LAYERS = {"n_layer": 4, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12}


class Traffic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.counter = TREE / "build" / "tests" / "traffic.so"
        cls.counter.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mpicc", "-shared", "-fPIC", "-o", cls.counter, TREE / "tests" / "parallel" / "traffic.c"],
                       check=True)

    def counted(self, trainer):
        """By rank and group: the calls, the bytes and the largest."""
        result = trainer.launch(LD_PRELOAD=str(self.counter), TRAFFIC=str(trainer.folder / "traffic"))
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [(trainer.folder / f"traffic.{rank}").read_text().splitlines() for rank in range(trainer.ranks)]
        tables = [{line.split("\t")[0]: [int(x) for x in line.split("\t")[1:]] for line in of} for of in lines]
        return tables

    def check_order(self, trainer, plan):
        """Along each axis: what micro-batches have, for each, and with the last one what a step has. Weights that no layer has
        come before the first step, too."""
        step = (max(c["times"] for c in plan) - 1) * [c for c in plan if c["times"] > 1] + plan
        for rank in range(trainer.ranks):
            lines = [line.split("\t") for line in (trainer.folder / f"traffic.{rank}.order").read_text().splitlines()]
            for axis in {c["axis"] for c in plan}:
                handed, wanted = ([int(bytes) for name, bytes in lines if name == axis], [c["bytes"] for c in step if c["axis"] == axis])
                before = len(handed) - STEPS * len(wanted)
                self.assertEqual(handed[before:], STEPS * wanted, f"{axis} of rank {rank}")
                self.assertTrue(set(handed[:before]) <= set(wanted))

    def check(self, ranks, axes=("dp_replicate",), first="nothing", **groups):
        """first: what of the plan is done once before the first step, too."""
        trainer = Ranks(ranks, job_of(ranks, 2, STEPS, **groups))
        (trainer.folder / "rows.csv").write_text(table(90, 7))
        trainer.build()
        plan = trainer.plan()["collectives"]
        self.assertEqual({c["axis"] for c in plan}, set(axes))
        for rank, counts in enumerate(self.counted(trainer)):
            for axis in axes:
                own = [c for c in plan if c["axis"] == axis]
                before = [c for c in own if c["what"].startswith(first)]
                calls = STEPS * sum(c["times"] for c in own) + len(before)
                bytes = STEPS * sum(c["times"] * c["bytes"] for c in own) + sum(c["bytes"] for c in before)
                self.assertEqual(counts[axis], [calls, bytes, max(c["bytes"] for c in own)], f"{axis} of rank {rank}")
        return plan, trainer

    def test_buckets(self):
        plan, trainer = self.check(2, parallelism={"ddp": {"bucket_cap_mb": 0.02}})
        self.assertGreater(len(plan), 4)
        gradients = sum(c["bytes"] for c in plan[:-1])
        self.assertEqual(gradients, trainer.plan()["arena_bytes"]["gradients"])

    def test_no_sync(self):
        """Micro-batches before the last one send nothing."""
        once, _ = self.check(2)
        accumulating, _ = self.check(3, accumulation={"num_steps": 3, "normalize": "tokens", "sync_with_dataloader": False})
        self.assertEqual([c["bytes"] for c in once[:-1]], [c["bytes"] for c in accumulating[:-1]])
        self.assertEqual(accumulating[-1]["bytes"], 16)

    def test_half(self):
        plan, trainer = self.check(2, parallelism={"ddp": {"comm_hook": "fp16"}})
        self.assertEqual(2 * sum(c["bytes"] for c in plan[:-1]), trainer.plan()["arena_bytes"]["gradients"])

    def test_divided(self):
        plan, trainer = self.check(4, ("dp_replicate", "dp_shard"), parallelism={"zero_stage": 1, "dp_shard": 2})
        kinds = [c["kind"] for c in plan]
        self.assertEqual(kinds.count("reduce-scatter"), kinds.count("all-gather"))

    def test_split_tensors(self):
        """Sums of activations of the embedding and of each layer, forward; of each row of logits two numbers of each rank;
        sums of gradients of what they are made of, and of each layer; the norm. With replicas, their gradients too."""
        plan, trainer = self.check(2, ("tp",), config=LAYERS, parallelism={"tp": 2})
        sums = ["partial sums"] * (1 + 2 * LAYERS["n_layer"])
        self.assertEqual([c["what"].split(" in ")[0] for c in plan], [*sums, "parts", *sums, "the gradient's norm"])
        self.check_order(trainer, plan)
        plan, trainer = self.check(4, ("dp_replicate", "tp"), config=LAYERS, parallelism={"tp": 2},
                                   accumulation={"num_steps": 2, "sync_with_dataloader": False})
        self.check_order(trainer, plan)
        plan, trainer = self.check(4, ("dp_shard", "tp"), "weights from", config=LAYERS, parallelism={"tp": 2, "zero_stage": 3})
        self.check_order(trainer, plan)

    def test_stages(self):
        """Of the first stage, two in the middle and the last one; of several on a rank; with shards and tensors."""
        accumulation = {"num_steps": 2, "sync_with_dataloader": False}
        for ranks, parallelism in ((4, {"pp": 2, "zero_stage": 3}), (4, {"pp": 4}), (8, {"pp": 2, "tp": 2, "zero_stage": 1, "dp_shard": 2}),
                                   (4, {"pp": 2, "cp": 2, "pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}),
                                   (4, {"pp": 2, "zero_stage": 2, "pp_schedule": "zero_bubble"}),
                                   (4, {"pp": 2, "tp": 2, "megatron": {"sequence_parallelism": True}})):
            with self.subTest(**parallelism):
                trainer = Ranks(ranks, job_of(ranks, 2, STEPS, config=LAYERS, parallelism=parallelism, accumulation=accumulation))
                trainer.build()
                self.check_stages(trainer, self.counted(trainer), parallelism.get("tp", 1))

    def test_stages_of_an_encoder(self):
        """Whose result goes through all stages of the decoder, and whose embedding three stages use."""
        config = {"num_layers": 4, "num_decoder_layers": 3, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 32, "vocab_size": 256}
        trainer = Ranks(3, job_of(3, 2, STEPS, model="t5", config=config, data={"sequence_length": 16},
                                  parallelism={"pp": 3, "pp_schedule": "zero_bubble", "megatron": {"pipeline_model_parallel_split_rank": 1}},
                                  accumulation={"num_steps": 3, "sync_with_dataloader": False}))
        trainer.build()
        self.check_stages(trainer, self.counted(trainer))

    def check_stages(self, trainer, tables, inner=1):
        """Each rank hands over what its stage's collectives are, along every axis; inner: ranks of a stage that are neighbours. What
        layers do not have is gathered before the first step, too."""
        pipeline = trainer.plan()["pipeline"]
        stages = pipeline["stages"]
        for rank, table in enumerate(tables):
            stage = stages[rank // inner % len(stages)]
            for axis in {c["axis"] for c in stage["collectives"]}:
                own = [c for c in stage["collectives"] if c["axis"] == axis]
                before = sum(c["bytes"] for c in own if c["what"] == "its other weights")
                self.assertEqual(table[axis][1], STEPS * sum(c["times"] * c["bytes"] for c in own) + before, f"{axis} of rank {rank}")
            self.assertEqual(table["pp"][1], STEPS * stage["sends"])
        most = max(range(len(stages)), key=lambda k: sum(c["times"] * c["bytes"] for c in stages[k]["collectives"]))
        self.assertEqual(pipeline["busiest"], most)
        self.assertEqual(trainer.plan()["collectives"], stages[most]["collectives"])

    def test_divided_sequences(self):
        plan, trainer = self.check(4, ("dp_replicate", "sp"), config=LAYERS, parallelism={"sp": 2},
                                   accumulation={"num_steps": 2, "sync_with_dataloader": False})
        self.assertEqual([c["times"] for c in plan if c["axis"] == "sp"], [2] * (8 * LAYERS["n_layer"]))
        self.check_order(trainer, plan)
        plan, trainer = self.check(4, ("dp_replicate", "cp", "tp"), config=LAYERS, parallelism={"cp": 2, "tp": 2})
        self.check_order(trainer, plan)
        plan, trainer = self.check(3, ("dp_replicate", "cp"), config=LAYERS, parallelism={"cp": 3, "cp_comm": "ring"},
                                   precision={"mixed_precision": "bf16"})
        self.assertEqual({c["bytes"] for c in plan if c["axis"] == "cp"}, {2 * 2 * 4 * 24 * 2, 2 * 2 * 4 * 24 * 4})
        self.check_order(trainer, plan)

    def test_experts(self):
        """Gradients of experts, of which ranks along dp_shard have parts, go along dp_replicate and not ep, all others along both. Data
        decides what an all-to-all sends: no more than the plan says."""
        config = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "hidden_size": 16, "head_dim": 8,
                  "vocab_size": 256, "moe_intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2}
        trainer = Ranks(8, job_of(8, 1, STEPS, model="qwen_moe", config=config, data={"sequence_length": 16},
                                  parallelism={"ep": 2, "zero_stage": 1, "dp_shard": 2}))
        trainer.build()
        plan = trainer.plan()["collectives"]
        self.counted(trainer)
        for rank in range(8):
            lines = [line.split("\t") for line in (trainer.folder / f"traffic.{rank}.order").read_text().splitlines()]
            for axis in ("dp_replicate", "dp_shard", "ep"):
                # Sums that follow on others begin when these have ended, so among others.
                wanted = STEPS * [c for c in plan if c["axis"] == axis and not c["chained"]]
                chained = [c["bytes"] for c in plan if c["axis"] == axis and c["chained"]]
                handed = [int(bytes) for name, bytes in lines if name == axis]
                self.assertEqual(len(handed), len(wanted) + STEPS * len(chained), f"{axis} of rank {rank}")
                if not chained:
                    self.assertEqual(handed, [c["bytes"] for c in wanted])
                elif axis == "dp_replicate":
                    self.assertEqual(sorted(handed), sorted([c["bytes"] for c in wanted] + STEPS * chained))
            most = STEPS * sum(c["bytes"] for c in plan if c["axis"] == "ep")
            sent = sum(int(bytes) for name, bytes in lines if name == "ep")
            exact = STEPS * sum(c["bytes"] for c in plan if c["axis"] == "ep" and c["kind"] != "all-to-all")
            self.assertTrue(exact < sent < most, (exact, sent, most))
        expert = sum(c["bytes"] for c in plan if c["axis"] == "dp_replicate" and "experts" in c["what"])
        self.assertGreaterEqual(2 * expert, 2 * 2 * 3 * 16 * 8 * 4)
        self.assertFalse([c for c in plan if c["axis"] == "ep" and "experts" in c["what"]])

    def test_split_sequence(self):
        """What each collective of parts hands over is as the plan says, in its order."""
        plan, trainer = self.check(4, ("dp_replicate", "tp"), config=LAYERS, parallelism={"tp": 2, "megatron": {"sequence_parallelism": True}},
                                   accumulation={"num_steps": 2, "sync_with_dataloader": False})
        self.check_order(trainer, plan)

    def test_divided_weights(self):
        plan, _ = self.check(2, ("dp_shard",), "weights from", parallelism={"zero_stage": 3}, config=LAYERS,
                             accumulation={"num_steps": 2, "sync_with_dataloader": False})
        self.assertEqual({c["times"] for c in plan if c["kind"] == "reduce-scatter"}, {2})
        layers = [(c["what"].split()[5], c.get("overlaps"), c["times"]) for c in plan if "layer" in c["what"]]
        call = "block_{} of layer {}".format
        self.assertEqual([(name[:3], overlapping) for name, overlapping, _ in layers[1:]],
                         [("h.1", call("forward", 0)), ("h.2", call("forward", 1)), ("h.3", call("forward", 2)),
                          ("h.1", call("backward", 2)), ("h.0", call("backward", 1))])
        self.assertEqual({times for _, _, times in layers}, {2})
        kinds = [c["kind"] for c in plan]
        self.assertLess(kinds.index("reduce-scatter"), len(kinds) - 1 - kinds[::-1].index("all-gather"))

    def test_order(self):
        """Stage 3 in groups: a rank hands them over in the order of the plan, those within a micro-batch for each. Sums of
        parts along dp_replicate begin when the parts are there, so along each axis, and while the backward continues."""
        trainer = Ranks(4, job_of(4, 2, STEPS, config=LAYERS, parallelism={"zero_stage": 3, "dp_shard": 2},
                                  accumulation={"num_steps": 2, "sync_with_dataloader": False}))
        trainer.build()
        plan = trainer.plan()["collectives"]
        within = [c for c in plan if c["times"] == 2 or c["chained"]]
        after = plan[len(within):]
        self.assertEqual(plan[:len(within)], within)
        self.assertEqual([c["times"] for c in after], [1] * len(after))
        for at, c in enumerate(plan):
            if c["kind"] == "reduce-scatter":
                self.assertTrue(plan[at + 1]["chained"])
                self.assertEqual((plan[at + 1]["axis"], plan[at + 1]["times"]), ("dp_replicate", 1))
                self.assertIn(plan[at + 1].get("overlaps"), ("the rest of the backward", None))
        step = [c for c in within if c["times"] == 2] + within + after
        self.counted(trainer)
        overlapping = 0
        for rank in range(4):
            lines = (trainer.folder / f"traffic.{rank}.order").read_text().splitlines()
            calls = [(axis, int(bytes)) for axis, bytes in (line.split("\t") for line in lines) if axis.startswith("dp_")]
            for axis in ("dp_replicate", "dp_shard"):
                own, wanted = ([bytes for name, bytes in calls if name == axis], [c["bytes"] for c in step if c["axis"] == axis])
                before = len(own) - STEPS * len(wanted)
                self.assertEqual(own[before:], STEPS * wanted, f"{axis} of rank {rank}")
                self.assertTrue(set(own[:before]) <= {c["bytes"] for c in after})
            overlapping += self.overlapping(calls, {c["bytes"] for c in plan if c["chained"]})
        self.assertGreater(overlapping, 0)

    @staticmethod
    def overlapping(calls, parts):
        """How many begin along dp_shard after the first sum of parts of a step, before its loss."""
        count, begun = 0, False
        for axis, bytes in calls:
            begun = bytes in parts or (begun and bytes != 8) if axis == "dp_replicate" else begun
            count += begun and axis == "dp_shard" and bytes != 8
        return count

    def test_placements(self):
        """Of five layers as wide as no number of ranks divides."""
        for ranks, placement, micro in PLACED:
            with self.subTest(placement, ranks=ranks, micro=micro):
                words = parallelism(ranks, placement)
                axes = {"whole": ["dp_replicate"], "groups": ["dp_replicate", "dp_shard"]}.get(placement, ["dp_shard"])
                plan, trainer = self.check(ranks, axes, "weights from" if words.get("zero_stage") == 3 else "nothing",
                                           model="mlp_table", config={"n_layer": 5, "width": 7, "n_classes": 3}, data=TABLE,
                                           parallelism=words, accumulation={"num_steps": micro, "sync_with_dataloader": False})
                self.check_order(trainer, plan)

    def test_each_batch(self):
        plan, _ = self.check(2, accumulation={"num_steps": 2, "sync_each_batch": True, "sync_with_dataloader": False})
        self.assertEqual({c["times"] for c in plan[:-1]}, {2})

    def test_statistics(self):
        """Two sums of each channel, forward and backward, in each micro-batch."""
        plan, _ = self.check(3, model="../../tests/reference/models/normed", config={"n_layer": 2, "width": 9, "n_classes": 3},
                             data=TABLE, parallelism={"sync_batch_norm": True},
                             accumulation={"num_steps": 2, "sync_with_dataloader": False})
        sums = [c for c in plan if c["what"].startswith("statistics")]
        self.assertEqual((sum(c["times"] for c in sums), {c["bytes"] for c in sums}), (2 * 2 * 2, {2 * 9 * 8}))

    def test_in_order(self):
        """What ranks exchange by halves, one after the other, is as much as the plan says."""
        trainer = Ranks(4, job_of(4, 2, STEPS, parallelism={"reproducible": "topology"}, accumulation={"num_steps": 2}))
        trainer.build()
        plan = trainer.plan()["collectives"]
        self.assertEqual([c["kind"] for c in plan], ["tree all-reduce", "tree all-reduce"])
        self.assertEqual(plan[0]["bytes"], trainer.plan()["arena_bytes"]["gradients"] * 2 * 3 // 4)
        for rank, counts in enumerate(self.counted(trainer)):
            self.assertEqual(counts["dp_replicate"][1], STEPS * sum(c["bytes"] for c in plan), f"rank {rank}")

    def test_in_order_by_layer(self):
        """With one micro-batch for each rank gradients leave layer by layer: a rank holds no more of them than without the
        order, and two ranks together give each number of a bucket once."""
        parallelism = {"zero_stage": 3, "dp_shard": 2}
        trainer = Ranks(4, job_of(4, 2, STEPS, config=LAYERS, parallelism={**parallelism, "reproducible": "topology"}))
        trainer.build()
        plan = trainer.plan()
        whole = sum(c["bytes"] for c in plan["collectives"] if c["axis"] == "dp_replicate" and c["bytes"] > 16)
        tables = self.counted(trainer)
        for rank in range(4):
            self.assertEqual(tables[rank]["dp_replicate"][1],
                             STEPS * sum(c["bytes"] for c in plan["collectives"] if c["axis"] == "dp_replicate"), f"rank {rank}")
        other = [c for c in plan["collectives"] if c["axis"] == "dp_shard" and c["kind"] != "tree reduce-scatter"]
        own = STEPS * sum(c["bytes"] * c["times"] for c in other) + sum(c["bytes"] for c in other if c["what"].startswith("weights from"))
        self.assertEqual(sum(table["dp_shard"][1] for table in tables[:2]), 2 * own + STEPS * whole)
        free = Ranks(4, job_of(4, 2, STEPS, config=LAYERS, parallelism=parallelism)).plan()
        self.assertEqual(plan["arena_bytes"]["gradients"], free["arena_bytes"]["gradients"])

    def test_in_order_divided(self):
        trainer = Ranks(4, job_of(4, 2, STEPS, config=LAYERS, accumulation={"num_steps": 2},
                                  parallelism={"reproducible": "topology", "zero_stage": 3, "dp_shard": 2}))
        trainer.build()
        plan = trainer.plan()["collectives"]
        self.assertEqual([c["axis"] for c in plan if c["kind"] == "tree all-reduce"], ["dp_replicate", "dp_shard"] * 2)
        for rank, counts in enumerate(self.counted(trainer)):
            for axis in ("dp_replicate", "dp_shard"):
                own = [c for c in plan if c["axis"] == axis]
                before = sum(c["bytes"] for c in own if c["what"].startswith("weights from"))
                self.assertEqual(counts[axis][1], STEPS * sum(c["times"] * c["bytes"] for c in own) + before, f"rank {rank}")


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
