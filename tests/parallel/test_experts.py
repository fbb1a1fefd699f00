"""Expert parallelism (parallelism.ep): ranks that have some experts of a mixture each, compared with one process with all of their batches
and compared with as many ranks that have all experts; whole tensors, of all ranks, in files, so that a run resumes on any mesh. A fifth of the tests a
day; CASES=all runs all."""

import re
import subprocess
import unittest

from ranks import GENERATOR, MODELS, ComparedWithOne, Ranks, job_of, load_file, relative, save_file, trained
from rotation import rotating  # tests/program; isort: skip

QWEN = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
        "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2,
        "router_aux_loss_coef": 0.01}
MIXTRAL = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
           "intermediate_size": 16, "num_local_experts": 4, "router_aux_loss_coef": 0.01}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}


class Compared(ComparedWithOne):
    def compare(self, several, lines, other, wanted, tolerance=1e-6, weights=1e-3):
        for line, want in zip(lines, wanted, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss")]:
                self.assertLess(abs(line[name] / want[name] - 1), tolerance, f"{name} of step {line['step']}")
            self.assertLess(abs(line["grad_norm"] / want["grad_norm"] - 1), 100 * tolerance, f"norm of step {line['step']}")
        after = other.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            self.assertLess(relative(value, after[name]), weights, name)


class Experts(Compared):
    def compared(self, ranks, ep, config=None, steps=20, tolerance=1e-6, weights=1e-3, **groups):
        """The same ranks with all experts each: a balance of a rank's own batches is not that of all of them."""
        config = {**QWEN, **(config or {})}
        groups = {"data": {"sequence_length": 16}, **groups}
        job = job_of(ranks, 3, steps, model="qwen_moe", config=config, parallelism={"ep": ep}, **groups)
        key = repr((ranks, steps, config, groups))
        if key not in self.known:
            self.known[key] = trained(ranks, job_of(ranks, 3, steps, model="qwen_moe", config=config, **groups))
        several, lines = trained(ranks, job)
        self.compare(several, lines, *self.known[key], tolerance, weights)
        return several

    def test_one_process(self):
        """Without the balance of the experts, which is no mean over batches."""
        groups = {"model": "qwen_moe", "config": {**QWEN, "router_aux_loss_coef": 0}, "data": {"sequence_length": 16, "eval_batch_size": 7}, "training": EVALUATED}
        several, lines = trained(2, job_of(2, 3, 20, parallelism={"ep": 2}, **groups))
        self.compare(several, lines, *self.one(6, 20, **groups))

    def test_two_ranks(self):
        several = self.compared(2, 2, training=EVALUATED)
        plan = several.plan()
        experts = QWEN["num_hidden_layers"] * QWEN["num_experts"] * 3
        size = QWEN["hidden_size"] * QWEN["moe_intermediate_size"]
        self.assertEqual((plan["split"]["ranks"], plan["split"]["parameters"]), (2, experts // 2))
        self.assertEqual(plan["parameters"] - plan["split"]["elements"], experts // 2 * size)
        sent = [c for c in plan["collectives"] if c["kind"] == "all-to-all"]
        self.assertEqual(len(sent), 4 * QWEN["num_hidden_layers"])
        rows = 3 * 16 * QWEN["num_experts_per_tok"] * QWEN["hidden_size"] * 4
        self.assertEqual({c["bytes"] for c in sent}, {rows, 2 * rows})

    def test_with_replicas(self):
        self.compared(4, 2, training=EVALUATED, accumulation={"num_steps": 2, "sync_with_dataloader": False})

    def test_an_expert_a_rank(self):
        self.compared(4, 4, steps=10, memory={"activation_checkpointing": "all"})

    def test_capacity(self):
        """Rows that no expert takes go nowhere, and come back as zeros."""
        self.compared(2, 2, config={"capacity_factor": 1.0}, steps=10, optimizer={"norm_type": 1, "clip_grad_norm": 0.1})

    def test_some_layers(self):
        """Half of the layers have no experts."""
        self.compared(2, 2, config={"decoder_sparse_step": 2, "intermediate_size": 32}, steps=10,
                    precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})

    def test_all_for_all(self):
        """Mixtral compared with ranks that compute every expert for every token."""
        groups = {"model": "mixtral", "data": {"sequence_length": 16}}
        several, lines = trained(2, job_of(2, 3, 20, config={**MIXTRAL, "grouped_experts": True}, parallelism={"ep": 2}, **groups))
        self.compare(several, lines, *trained(2, job_of(2, 3, 20, config=MIXTRAL, **groups)))


class Whole(Compared):
    """Rules that look at whole tensors, which a rank's experts are, and patterns that take all experts, compared with one process."""

    def compared_with_one(self, steps=10, tolerance=1e-6, weights=1e-3, ranks=2, samples=6, **groups):
        parallelism = {"ep": 2, **groups.pop("parallelism", {})}
        groups = {"model": "qwen_moe", "config": {**QWEN, "router_aux_loss_coef": 0}, "data": {"sequence_length": 16}, **groups}
        several, lines = trained(ranks, job_of(ranks, samples // ranks, steps, parallelism=parallelism, **groups))
        self.compare(several, lines, *self.one(samples, steps, **groups), tolerance, weights)
        return several

    def test_rules(self):
        for optimizer in ({"name": "lamb"}, {"name": "adafactor", "eps": 1e-3}, {"name": "muon"}, {"state_dtype": "8bit"},
                          {"param_groups": [{"match": "*.experts.*", "lr": 3e-3}, {"match": "*.gate.weight", "weight_decay": 0.0}]}):
            with self.subTest(optimizer):
                self.compared_with_one(steps=5, optimizer=optimizer)

    def test_in_fp16(self):
        self.compared_with_one(tolerance=1e-4, weights=1e-2, precision={"mixed_precision": "fp16"}, optimizer={"eps": 1e-3})

    def test_in_bf16(self):
        """Weights, too; the evaluation is that of averages."""
        self.compared_with_one(20, tolerance=1e-4, weights=1e-2, precision={"param_dtype": "bf16"}, optimizer={"eps": 1e-3},
                        training={**EVALUATED, "ema": {"decay": 0.5, "evaluate": True}})

    def test_adapters(self):
        """Of a published model, whose experts start fresh; the model that a run leaves has them in its matrices."""
        one, _ = self.one(6, 5, model="qwen_moe", config=QWEN, data={"sequence_length": 16})
        published = one.folder / "published.safetensors"
        save_file({name: value for name, value in one.weights().items() if ".experts." not in name}, published)
        self.compared_with_one(20, model_keys={"weights": str(published), "fresh": ["*.experts.*"],
                                        "lora": {"rank": 4, "targets": ["q_proj", "shared_expert.up_proj"], "modules_to_save": ["norm"]}})

    def test_best_averages(self):
        """What mirrors the weights has the experts of all ranks in files, too."""
        training = {**EVALUATED, "eval_interval": 2, "ema": {"decay": 0.5}, "early_stopping": {"patience": 2, "threshold": 2.0, "restore_best": True}}
        groups = {"model": "qwen_moe", "config": {**QWEN, "router_aux_loss_coef": 0}, "data": {"sequence_length": 16}, "training": training}
        several = self.compared_with_one(20, **groups)
        one, lines = self.one(6, 20, **groups)
        self.assertLess(len(lines), 20)
        for name in ("ema", "best"):
            wanted, left = (load_file(run.folder / "run" / f"{name}.safetensors") for run in (one, several))
            self.assertEqual(sorted(wanted), sorted(left))
            for weight, value in wanted.items():
                self.assertLess(relative(left[weight], value), 1e-3, f"{name}: {weight}")

    def test_shards(self):
        """Of four ranks two shard the same experts, and all other weights; of eight two pairs do, whose sums go on along two axes."""
        for ranks, stage, more in ((4, 1, {"optimizer": {"norm_type": "inf", "clip_grad_norm": 0.1}}), (8, 3, {"training": EVALUATED})):
            several = self.compared_with_one(steps=20, ranks=ranks, samples=8, parallelism={"zero_stage": stage, "dp_shard": 2}, **more)
            sent = several.plan()["collectives"]
            self.assertEqual({c["axis"] for c in sent}, {"dp_shard", "ep"} | ({"dp_replicate"} if ranks == 8 else set()))
            self.assertTrue([c for c in sent if c["kind"] == "reduce-scatter" and "experts" in c["what"]])
            self.assertFalse([c for c in sent if c["axis"] == "ep" and "experts" in c["what"] and c["kind"] == "all-reduce"])


class Sequences(Compared):
    """Ranks that divide each sequence sort rows of their own; the balance of the experts is that of all of a sequence's tokens."""

    def divided(self, ranks, model="qwen_moe", config=QWEN, **parallelism):
        groups = {"model": model, "config": {**config, "router_aux_loss_coef": 1.0}, "data": {"sequence_length": 16}, "training": EVALUATED}
        several, lines = trained(ranks, job_of(ranks, 3, 20, parallelism=parallelism, **groups))
        self.compare(several, lines, *self.one(3, 20, **groups))
        return several

    def test_keys(self):
        several = self.divided(2, cp=2, cp_comm="ring")
        sums = [c for c in several.plan()["collectives"] if c["axis"] == "cp" and c["kind"] == "all-reduce"]
        self.assertEqual({c["bytes"] for c in sums}, {QWEN["num_experts"] * 4})
        self.assertEqual(len(sums), 3 * QWEN["num_hidden_layers"])  # of two parts forward, and back of that which has a gradient

    def test_heads(self):
        self.divided(2, sp=2, zero_stage=2)

    def test_both(self):
        self.divided(4, model="mixtral", config={**MIXTRAL, "grouped_experts": True}, sp=2, cp=2)

    def test_with_experts(self):
        """Compared with as many ranks of each sequence that have all experts."""
        groups = {"model": "mixtral", "config": {**MIXTRAL, "grouped_experts": True}, "data": {"sequence_length": 16}, "training": EVALUATED}
        several, lines = trained(4, job_of(4, 3, 20, parallelism={"cp": 2, "ep": 2}, **groups))
        self.compare(several, lines, *trained(4, job_of(4, 3, 20, parallelism={"cp": 2}, **groups)))


class Stages(Compared):
    """Each stage of a pipeline has the experts of its layers, which its own ranks divide."""

    QWEN, MIXTRAL = ({**config, "num_hidden_layers": 3, "router_aux_loss_coef": 0} for config in (QWEN, {**MIXTRAL, "grouped_experts": True}))
    GROUPS = {"data": {"sequence_length": 16}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}, "training": EVALUATED}

    def compared_with_one(self, ranks, samples, steps=10, config=None, model="qwen_moe", **mesh):
        groups = {"model": model, "config": config or self.QWEN, **self.GROUPS}
        taken = ranks // (2 * mesh.get("tp", 1))
        several, lines = trained(ranks, job_of(ranks, samples // taken, steps, parallelism={"pp": 2, "ep": 2, **mesh}, **groups))
        self.compare(several, lines, *self.one(samples, steps, **groups))
        return several

    def test_router(self):
        """Whose balance is of a rank's own batches: compared with stages that have all experts."""
        groups = {"model": "qwen_moe", "config": {**self.QWEN, "router_aux_loss_coef": 0.01}, **self.GROUPS}
        several, lines = trained(4, job_of(4, 3, 20, parallelism={"pp": 2, "ep": 2}, **groups))
        self.compare(several, lines, *trained(2, job_of(2, 3, 20, **groups)))
        plan = several.plan()
        all_to_all = [c for c in plan["collectives"] if c["kind"] == "all-to-all"]
        self.assertEqual((len(all_to_all), {c["axis"] for c in all_to_all}), (8, {"ep"}))  # of the two layers of a stage

    def test_divided_matrices(self):
        """Squares of parts, of experts and of what all ranks of a stage have, in one norm."""
        self.compared_with_one(8, 4, tp=2, pp_schedule="zero_bubble")

    def test_shards(self):
        """A rank's part of the sum is added up along ep, too, but for experts."""
        several = self.compared_with_one(8, 4, model="mixtral", config=self.MIXTRAL, zero_stage=1)
        scattered, = [c["bytes"] for c in several.plan()["collectives"] if c["kind"] == "reduce-scatter"]
        then, = [c["bytes"] for c in several.plan()["collectives"] if c["axis"] == "ep" and "part" in c["what"]]
        experts = 4 * 2 * 2 * 3 * MIXTRAL["hidden_size"] * MIXTRAL["intermediate_size"]
        self.assertEqual(then, (scattered - experts) // 2)
        self.compared_with_one(8, 4, zero_stage=3, pp_schedule="zero_bubble")  # the first layer is not of the loop


class Claims(unittest.TestCase):
    """The audit of a program, and of edits of it: each breaks a claim that was not broken."""

    EDITS = {  # what: the claim, the text of the program and what stands there then
        "rows by the rank": ("same-collectives", r"(accel_dispatch_rows\([^;]*, )(\d+)(, \d+ \* sizeof)", r"\1\2 * (size_t)rank\3"),
        "rows by data": ("same-collectives", r"(accel_collect_rows\([^;]*, )(\d+)(, \d+ \* sizeof)", r"\1(size_t)all[0]\3"),
        "groups by the rank": ("same-collectives", r"(accel_exchange_starts\([^;]*, )(\d+)(, \d+\))", r"\1\2 - (size_t)rank\3"),
        "another axis": ("same-collectives", r"(accel_dispatch_rows\()ACCEL_EP", r"\1ACCEL_CP"),
        "an axis by the rank": ("same-collectives", r"(accel_collect_rows\()ACCEL_EP", r"\1(enum accel_axis)rank"),
        "a rank leaves it out": ("same-collectives", r"\n  (dispatch_rows_\w+\()", r"\n  if (rank == 0) \1"),
        "a rank leaves it out in the backward": ("same-collectives", r"(?s)(experts_backward\(.*?)\n  (collect_rows_\w+\()", r"\1\n  if (rank == 0) \2"),
        "data leave it out": ("same-collectives", r"\n  (exchange_starts_\w+\()", r"\n  if (starts[1] > 3) \1"),
        "too many rows": ("in-bounds", r"(accel_dispatch_rows\([^;]*, )(\d+)(, \d+ \* sizeof)", r"\1\2 + 1\3"),
        "too few rows": ("whole-arrays", r"(accel_collect_rows\([^;]*, )(\d+)(, \d+ \* sizeof)", r"\1\2 - 1\3"),
        "too many groups": ("in-bounds", r"(accel_exchange_starts\([^;]*, )(\d+)(, \d+\))", r"\1\2 + 2\3"),
    }

    def broken(self, source):
        result = subprocess.run([GENERATOR, "audit", source], capture_output=True, text=True)
        self.assertRegex(result.stdout, r"[0-9]+ hold, ", result.stderr)
        return result.stdout, set(re.findall(r"^  broken +(\S+)", result.stdout, re.MULTILINE))

    def test_edits(self):
        trainer = Ranks(4, job_of(4, 3, 5, model="qwen_moe", config=QWEN, data={"sequence_length": 16}, parallelism={"ep": 2}))
        source = trainer.folder / "trainer.c"
        subprocess.run([GENERATOR, "job.yaml", "-o", source], cwd=trainer.folder, check=True, capture_output=True)
        output, broken = self.broken(source)
        self.assertEqual(broken, set(), output)
        self.assertNotIn("cannot tell", output)
        self.assertIn("holds        same-collectives", output)
        text = source.read_text()
        for what, (claim, pattern, new) in self.EDITS.items():
            with self.subTest(what):
                edited = re.sub(pattern, new, text, count=1)
                self.assertNotEqual(edited, text)
                edited = edited.replace("/* ---- Kernels ---- */", "static int64_t rank;\n\n/* ---- Kernels ---- */", 1)
                source.write_text(re.sub(r"( = accel_start\(.*\n)", r"\1  rank = accel_rank(run);\n", edited, count=1))
                output, broken = self.broken(source)
                self.assertIn(claim, broken, output)


class Files(ComparedWithOne):
    """Files have the experts of all ranks."""

    def resumed(self, before, after):
        """A run of 5 steps on one mesh that resumes on another up to step 10, compared with one process: (ranks, batch, keys of parallelism)."""
        groups = {"model": "qwen_moe", "config": Stages.QWEN, "data": {"sequence_length": 16},
                  "checkpoint": {"every": 5}, "accumulation": {"num_steps": 2, "sync_with_dataloader": False}}
        one, wanted = self.one(4, 10, **groups)
        first = Ranks(before[0], job_of(before[0], before[1], 5, **groups, parallelism=before[2]))
        first.build()
        first.run()
        second = Ranks(after[0], job_of(after[0], after[1], 10, **groups, parallelism=after[2]), folder=first.folder)
        second.build()
        for line, want in zip(second.run("--resume", "auto"), wanted, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
        for name, value in one.weights().items():
            self.assertLess(relative(second.weights()[name], value), 1e-3, name)

    def test_from_stages_to_one_rank(self):
        self.resumed((4, 2, {"pp": 2, "ep": 2}), (1, 4, {}))

    def test_from_one_rank_to_stages_of_shards(self):
        self.resumed((1, 4, {}), (8, 1, {"pp": 2, "ep": 2, "zero_stage": 1}))

    def test_shards(self):
        """To files of each rank, of its own experts and stage, and from these."""
        files = {"fsdp": {"sharding_strategy": "shard_grad_op", "state_dict_type": "sharded_state_dict"}}
        self.resumed((2, 2, {"zero_stage": 2}), (4, 1, {"ep": 2, "zero_stage": 3}))
        self.resumed((8, 1, {"pp": 2, "ep": 2, **files}), (4, 1, {"ep": 2, **files}))


class Refused(unittest.TestCase):
    def refused(self, words, ranks=2, model="qwen_moe", config=None, file="job.yaml", **groups):
        trainer = Ranks(ranks, job_of(ranks, 3, 5, model, config or QWEN, **{"parallelism": {"ep": 2}, **groups}))
        result = subprocess.run([GENERATOR, "plan", "job.yaml", "--set", "data.sequence_length=16"], cwd=trainer.folder,
                                capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0, words)
        self.assertIn(words, result.stderr)
        self.assertRegex(result.stderr, rf"^(\S*/)?{re.escape(file)}:\d+:\d+: error: ")

    def test_ranks_that_it_does_not_divide(self):
        self.refused("'parallelism.ep' is 2, which does not divide the job's 3 ranks", ranks=3)

    def test_experts_that_it_does_not_divide(self):
        self.refused("3 ranks cannot divide the groups of 'grouped_matmul': they are 4, not a multiple of it", ranks=3, parallelism={"ep": 3})

    def test_no_experts(self):
        self.refused("the model has no operation over groups of rows that 2 ranks could divide", model="llama",
                     config={name: value for name, value in QWEN.items() if name[:6] not in ("moe_in", "shared", "num_ex", "router")}
                     | {"intermediate_size": 48})

    def test_all_experts_for_all_tokens(self):
        self.refused("the model has no operation over groups of rows that 2 ranks could divide", model="mixtral", config=MIXTRAL)

    def test_capacity_of_sequences(self):
        self.refused("'group_starts' fills a group's capacity in the order of a sequence's positions, of which a rank has some",
                     file="qwen_moe.c", config={**QWEN, "capacity_factor": 1.0}, parallelism={"cp": 2})

    def test_patterns(self):
        """That take an expert of one rank and not that in its place on another."""
        self.refused("the pattern takes 'model.layers.0.mlp.experts.3.gate_proj.weight' and not 'model.layers.0.mlp.experts.1.gate_proj.weight'",
                     optimizer={"param_groups": [{"match": "*.experts.3.*", "weight_decay": 0.0}]})
        frozen = {"source": str(MODELS / "qwen_moe.c"), "config": QWEN, "freeze": ["*.experts.2.*"]}
        trainer = Ranks(2, {**job_of(2, 3, 5, parallelism={"ep": 2}), "model": frozen})
        self.assertIn("of which each rank has one, one is frozen", trainer.command("plan", "job.yaml", "--set",
                                                                                              "data.sequence_length=16", status=2))


load_tests = rotating(5, always=("Refused",))


if __name__ == "__main__":
    unittest.main()
