"""Programs of several ranks as texts: they compile without a warning under gcc or clang (a run takes one of
both for each, by SEED), are formatted, and prove every
claim of the audit; with one rank nothing of all this is left in them."""

import re
import shutil
import subprocess
import unittest

from ranks import GENERATOR, TREE, Ranks, job_of, library_flags
from rotation import is_in_turn  # tests/program; isort: skip

WARNINGS = ["-std=c17", "-O1", "-fopenmp", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
TOKENS = {"num_steps": 3, "normalize": "tokens"}
ALL = {"eval_interval": 2, "eval_iters": "all"}
LAYERS = {"n_layer": 4, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12}
JOINED = {"drop_last": False, "even_batches": False, "join_uneven_inputs": True}
NORMED = {"model": "../../tests/reference/models/normed", "config": {"n_layer": 2, "width": 9, "n_classes": 3},
          "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 6}, "training": ALL}
HOOKS = {name: name for name in ("on_pre_load", "on_start", "on_step", "on_eval", "on_pre_save", "on_save", "on_end", "on_step_begin", "on_epoch")}
CASES = {
    "plain": {},
    "accumulating": {"accumulation": {"num_steps": 3}, "training": ALL},
    "each_batch": {"accumulation": {"num_steps": 3, "sync_each_batch": True, "sync_with_dataloader": False}},
    "tokens": {"accumulation": TOKENS, "training": {"eval_interval": 2, "eval_iters": 3}},
    "tokens_at_once": {"accumulation": {"normalize": "tokens"}},
    "scaler": {"precision": {"mixed_precision": "fp16"}, "accumulation": {"num_steps": 2}, "training": ALL},
    "dropout": {"config": {"n_layer": 3, "n_head": 2, "n_embd": 24, "vocab_size": 256, "block_size": 12, "dropout": 0.1}},
    "in_bf16": {"parallelism": {"ddp": {"comm_hook": "bf16"}}, "accumulation": {"num_steps": 2}},
    "in_fp16": {"parallelism": {"ddp": {"comm_hook": "fp16"}}},
    "topology": {"parallelism": {"reproducible": "topology"}, "accumulation": {"num_steps": 4}, "training": ALL},
    "topology_of_tokens": {"parallelism": {"reproducible": "topology"}, "accumulation": {**TOKENS, "num_steps": 2},
                           "precision": {"mixed_precision": "fp16"}, "training": {"eval_interval": 2, "eval_iters": 3}},
    "topology_of_states": {"parallelism": {"reproducible": "topology", "zero_stage": 1, "dp_shard": 2}, "accumulation": {"num_steps": 2},
                           "optimizer": {"state_dtype": "bf16", "norm_type": "inf"}, "training": ALL},
    "topology_of_weights": {"config": LAYERS, "parallelism": {"reproducible": "topology", "zero_stage": 3}, "accumulation": {**TOKENS, "num_steps": 2},
                            "precision": {"mixed_precision": "bf16"}, "training": {"eval_interval": 2, "eval_iters": 3},
                            "optimizer": {"param_groups": [{"match": "*.bias", "weight_decay": 0}]}},
    "topology_at_once": {"parallelism": {"reproducible": "topology"}, "training": ALL},
    "states": {"parallelism": {"zero_stage": 1, "dp_shard": 2}, "accumulation": {"num_steps": 2}, "training": ALL},
    "states_in_bf16": {"parallelism": {"zero_stage": 1}, "precision": {"mixed_precision": "bf16"},
                       "optimizer": {"state_dtype": "bf16", "norm_type": 1}, "training": {"on_nonfinite": "skip"}},
    "states_in_groups": {"parallelism": {"zero_stage": 1}, "accumulation": TOKENS,
                         "optimizer": {"param_groups": [{"match": "*.bias", "weight_decay": 0}]}},
    "factors": {"parallelism": {"ddp": {"comm_hook": "power_sgd", "comm_state_option": {
        "matrix_approximation_rank": 2, "start_powerSGD_iter": 2}}}, "accumulation": {"num_steps": 2}, "training": ALL},
    "factors_drawn": {"parallelism": {"ddp": {"comm_hook": "power_sgd", "comm_state_option": {
        "warm_start": False, "use_error_feedback": False, "start_powerSGD_iter": 0, "orthogonalization_epsilon": 1e-8}}},
                      "accumulation": {"normalize": "tokens"}},
    "factors_of_stages": {"config": LAYERS, "parallelism": {"pp": 2, "ddp": {"comm_hook": "power_sgd", "comm_state_option": {
        "start_powerSGD_iter": 2}}}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}},
    "factors_drawn_of_stages": {"config": LAYERS, "parallelism": {"pp": 2, "ddp": {"comm_hook": "power_sgd", "comm_state_option": {
        "warm_start": False}}}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}, "training": ALL},
    "one_square": {"parallelism": {"ddp": {"comm_hook": "batched_power_sgd"}}},
    "factors_in_bf16": {"parallelism": {"ddp": {"comm_hook": "power_sgd", "comm_wrapper": "bf16"}}},
    "one_square_in_fp16": {"parallelism": {"ddp": {"comm_hook": "batched_power_sgd", "comm_wrapper": "fp16", "comm_state_option": {
        "warm_start": False, "use_error_feedback": False, "start_powerSGD_iter": 0}}}},
    "local": {"parallelism": {"local_sgd_steps": 2}, "precision": {"mixed_precision": "bf16"}, "training": ALL},
    "local_of_some": {"parallelism": {"local_sgd_steps": 4}, "freeze": ["h.0.*", "*.bias"]},
    "pipeline": {"config": {**LAYERS, "dropout": 0.1}, "parallelism": {"pp": 2}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False}},
    "pipeline_of_divided_matrices": {"config": LAYERS, "parallelism": {"pp": 2, "tp": 2}, "training": {"eval_interval": 2},
                                     "accumulation": {"num_steps": 3, "sync_with_dataloader": False}},
    "pipeline_of_chunks": {"config": {**LAYERS, "dropout": 0.1}, "training": {"eval_interval": 2}, "memory": {"cross_entropy_chunk": 7},
                           "parallelism": {"pp": 2, "pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}},
                           "accumulation": {"num_steps": 4, "sync_with_dataloader": False}},
    "pipeline_in_bf16": {"config": LAYERS, "parallelism": {"pp": 4}, "accumulation": {"num_steps": 2, "sync_with_dataloader": False},
                         "precision": {"mixed_precision": "bf16"}, "optimizer": {"norm_type": "inf"}},
    "pipeline_in_fp16": {"config": {**LAYERS, "dropout": 0.1}, "parallelism": {"pp": 2, "ddp": {"comm_hook": "bf16"}}, "freeze": ["h.*.ln_1.*", "wpe.weight"],
                         "accumulation": {**TOKENS, "sync_with_dataloader": False}, "precision": {"mixed_precision": "fp16"},
                         "memory": {"activation_checkpointing": "layers", "checkpoint_layers": 3}, "optimizer": {"state_dtype": "8bit"}},
    "pipeline_of_averages": {"config": LAYERS, "parallelism": {"pp": 2}, "accumulation": {"num_steps": 3, "sync_with_dataloader": False},
                             "optimizer": {"name": "muon"}, "training": {**ALL, "ema": {"decay": 0.9, "evaluate": True}, "on_nonfinite": "skip"},
                             "memory": {"activation_checkpointing": "every", "checkpoint_every": 2}},
    "gradients": {"config": LAYERS, "parallelism": {"zero_stage": 2, "dp_shard": 2}, "accumulation": {"num_steps": 2},
                  "optimizer": {"state_dtype": "8bit"}, "memory": {"activation_checkpointing": "every", "checkpoint_every": 2}},
    "gradients_of_stages": {"config": LAYERS, "training": {**ALL, "ema": {"decay": 0.9, "evaluate": True}}, "parallelism": {"pp": 2, "zero_stage": 2}, "accumulation": {"num_steps": 2, "sync_with_dataloader": False},
                            "optimizer": {"norm_type": "inf"}},
    "weights": {"config": LAYERS, "parallelism": {"fsdp": {"sharding_strategy": "full_shard", "min_num_params": 1000,
                                                           "transformer_cls_names_to_wrap": ["block"]}}, "accumulation": TOKENS,
                "training": {"eval_interval": 2, "eval_iters": 3}},
    "weights_in_bf16": {"config": LAYERS, "training": {**ALL, "ema": {"decay": 0.9, "evaluate": True}}, "parallelism": {"zero_stage": 3, "dp_shard": 2},
                        "precision": {"mixed_precision": "bf16"}, "optimizer": {"state_dtype": "bf16"},
                        "memory": {"activation_checkpointing": "all"}},
    "hooks": {"hooks": {"source": "hooks.c", **HOOKS}, "training": ALL, "checkpoint": {"every": 2}},
    "joined": {"data": JOINED, "accumulation": {"num_steps": 3}, "training": ALL},
    "joined_in_fp16": {"data": JOINED, "precision": {"mixed_precision": "fp16"}, "parallelism": {
        "zero_stage": 1, "ddp": {"divide_by_initial_world_size": False}}},
    "statistics": {**NORMED, "parallelism": {"sync_batch_norm": True, "zero_stage": 1, "dp_shard": 2}, "accumulation": {"num_steps": 2}},
    "statistics_in_bf16": {**NORMED, "parallelism": {"sync_batch_norm": True}, "precision": {"mixed_precision": "bf16"}},
    "skip": {"training": {"on_nonfinite": "skip"}, "parallelism": {"ddp": {"bucket_cap_mb": 0.01}}},
}

ON_GPUS = {
    # Batches of steps bring the factors that were drawn for them, and those of evaluations none.
    "factors_drawn_of_stages": CASES["factors_drawn_of_stages"],
    # Functions whose backward alone saves something, for what it defers.
    "deferred_gradients": {"model": "qwen_moe", "config": {
        "num_hidden_layers": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "hidden_size": 24, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 24, "vocab_size": 256, "router_aux_loss_coef": 0},
        "data": {"sequence_length": 12}, "parallelism": {"pp": 2, "pp_schedule": "zero_bubble", "zero_stage": 2},
        "accumulation": {"num_steps": 4, "sync_with_dataloader": False}},
}


class Programs(unittest.TestCase):
    def check(self, source, compilers, format, flags):
        result = subprocess.run([format, f"--style=file:{TREE}/.clang-format", "--dry-run", "-Werror", source],
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.compile(source, compilers, flags)

    def compile(self, source, compilers, flags):
        for compiler in compilers:
            result = subprocess.run([compiler, *WARNINGS, source, *flags], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = subprocess.run([GENERATOR, "audit", source], capture_output=True, text=True)
        broken = re.findall(r"^  (?:broken|cannot tell) +(\S+)", result.stdout, re.M)
        wanted = ["runtime-alone"] if source.with_name("hooks.c").exists() else []
        self.assertEqual((broken, result.returncode), (wanted, int(wanted != [])), result.stdout + result.stderr)

    def test_all(self):
        compilers = ("gcc", shutil.which("clang-19") or shutil.which("clang"))
        format = shutil.which("clang-format-19") or shutil.which("clang-format")
        flags = library_flags("--cflags")
        for number, (name, groups) in enumerate(CASES.items()):
            with self.subTest(name):
                job = job_of(4, 3, 4, **{key: value for key, value in groups.items() if key != "freeze"})
                job["model"]["freeze"] = groups.get("freeze", [])
                trainer = Ranks(4, job)
                if "hooks" in groups:
                    (trainer.folder / "hooks.c").write_text("#include <accel/hooks.h>\n" + "".join(
                        f"void {name}(struct accel_run *run, const struct accel_progress *at) {{}}\n" for name in HOOKS))
                trainer.generate()
                own = [compiler for at, compiler in enumerate(compilers) if is_in_turn(number + at, 2)]
                self.check(trainer.folder / "trainer.c", own, format, flags)

    def test_on_gpus(self):
        for name, groups in ON_GPUS.items():
            with self.subTest(name):
                trainer = Ranks(4, job_of(4, 3, 4, **groups, devices={"kind": "cuda"}))
                self.assertLessEqual(max(map(len, trainer.generate().splitlines())), 120)
                self.compile(trainer.folder / "trainer.c", ("gcc",), library_flags("--cflags"))

    def test_ranks_that_part_are_noticed(self):
        """All ranks run one text; where what they do together hangs on the rank, the audit says so."""
        trainer = Ranks(4, job_of(4, 3, 4, **CASES["dropout"]))
        text, source = trainer.generate(), trainer.folder / "trainer.c"
        edits = {
            "  accel_all_reduce_doubles(": "  if (rank == 0) accel_all_reduce_doubles(",
            "i < end; i++)\n    accel_start": "i < end - (size_t)rank; i++)\n    accel_start",
        }
        for before, after in edits.items():
            self.assertEqual(text.count(before), 1, before)
            source.write_text(text.replace(before, after))
            result = subprocess.run([GENERATOR, "audit", source], capture_output=True, text=True)
            self.assertEqual(result.returncode, 1, after)
            self.assertRegex(result.stdout, r"\n  broken +same-collectives ", after)

    def test_shards_that_leave_their_arrays_are_noticed(self):
        trainer = Ranks(4, job_of(4, 3, 4, **CASES["states_in_groups"]))
        text, source = trainer.generate(), trainer.folder / "trainer.c"
        before = "shard * range->shard_size"
        self.assertEqual(text.count(before), 1)
        source.write_text(text.replace(before, "(shard + 1) * range->shard_size"))
        result = subprocess.run([GENERATOR, "audit", source], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\n  (broken|cannot tell) +in-bounds ")

    def test_one_rank_has_no_trace(self):
        text = Ranks(1, job_of(1, 3, 4, **CASES["accumulating"])).generate()
        body = "\n".join(line for line in text.splitlines() if '"devices.' not in line and '"parallelism.' not in line)
        for word in ("accel_rank", "collective", "all_reduce", "mesh", "MPI", "bucket"):
            self.assertFalse(word in body, word)


if __name__ == "__main__":
    unittest.main()
