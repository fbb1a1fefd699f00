"""Ranks that divide the layers (parallelism.pp) in programs for GPUs, over the stand-ins: compared with one process of the same job over
them and with the program for the processor. A quarter of the tests a run, as their programs take minutes to compile; --all runs all."""

import json
import os
import re
import shutil
import sys
import unittest

import numpy as np
import test_axes
from host import HostTrainer, Trainer, objects
from test_axes import EXPERTS, Axes

from ranks import CORPUS, job_of, trained  # tests/parallel; isort: skip
from rotation import is_in_turn, rotating, in_turn  # tests/program; isort: skip

CONFIG = {"n_layer": 4, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 12, "dropout": 0.1}
STILL = {**CONFIG, "dropout": 0.0}
LLAMA = {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 48, "head_dim": 8,
         "vocab_size": 256}
T5 = {"num_layers": 4, "num_decoder_layers": 3, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 32, "vocab_size": 256, "gated": True}
STEPS = {"num_steps": 4, "sync_with_dataloader": False}
EVALUATED = {"eval_interval": 2, "eval_iters": "all"}
CHUNKS = {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}
ZERO_BUBBLE = {"pp_schedule": "zero_bubble"}
# Of memory that a stage maps: what these small models have of it is less than the granules of a GPU.
os.environ["STANDIN_GRANULARITY"] = "64"


class Stages(Axes):
    def stages(self, ranks, parallelism, **groups):
        """Every access of host and kernels is seen where nothing else is said, and whether it waits for the one before."""
        groups = {"config": CONFIG, "accumulation": STEPS, "training": EVALUATED, "steps": 4, "watched": True, **groups}
        return self.beside(ranks, {"pp": 2, **parallelism}, **groups)

    def test_two(self):
        """20 steps; a run goes on from its checkpoint, and a processor does."""
        trainer = self.stages(2, {}, steps=20, watched=False, checkpoint={"every": 10}, training={"eval_interval": 10, "eval_iters": "all"})
        wanted = trainer.weights()
        self.go_on(trainer)
        one = Trainer(job_of(1, 2, 20, config=CONFIG, accumulation=STEPS, checkpoint={"every": 10}, training={"eval_interval": 10, "eval_iters": "all"}))
        for name in ("corpus.txt", "run"):
            (shutil.copytree if name == "run" else shutil.copy)(trainer.folder / name, one.folder / name)
        one.build()
        one.run("--resume", "run/checkpoints/checkpoint_0")
        for name, value in one.weights().items():
            if not name.endswith("key.bias"):
                np.testing.assert_allclose(value, wanted[name], rtol=1e-3, atol=1e-5, err_msg=name)

    def test_forward(self):
        """Evaluators, with a metric, and generators of three stages, of which the first prints, say what one process says."""
        groups = {"config": CONFIG, "accumulation": STEPS, "training": {**EVALUATED, "metrics": ["accuracy"]}}
        trained = self.stages(2, {}, steps=2, **groups, watched=False)
        trained.job.update(devices={**trained.job["devices"], "per_node": 3}, parallelism={"pp": 3})
        job = job_of(1, 2, 2, **groups)
        found, wanted = (json.loads(text) for text in self.said(trained, "evaluate", 3, job, "--format", "json"))
        self.assertEqual(found["accuracy"], wanted["accuracy"])
        self.assertLess(abs(found["loss"] / wanted["loss"] - 1), 1e-6)
        text, wanted = self.said(trained, "generate", 3, job, "--prompt", "12 7 99", "--tokens", "24", "--temperature", "0")
        self.assertEqual(text, wanted)

    def test_memory(self):
        """A GPU needs what the plan says of the stage that uses most, to 1 %, and not the whole arena; and less of the table's rows ends
        the program, which touches what it then has no memory for."""
        wide = {"config": {**STILL, "n_layer": 8, "n_embd": 256}, "accumulation": STEPS, "parallelism": {"pp": 4}}
        trainer = HostTrainer(job_of(4, 1, 1, **wide), test_axes.PARTS, watched=True)
        (trainer.folder / "corpus.txt").write_bytes(CORPUS)
        trainer.build()
        planned = json.loads(trainer.command("plan", "job.yaml", "--json"))
        most = max(stage["mapped"] for stage in planned["pipeline"]["stages"])
        self.assertLess(most, 0.6 * planned["arena_bytes"]["total"])
        trainer.run(STANDIN_MEMORY=str(int(1.01 * most)))
        with self.assertRaisesRegex(AssertionError, "the plan takes"):
            trainer.run(STANDIN_MEMORY=str(int(0.99 * most)))
        text = (trainer.folder / "trainer.c").read_text()
        for member in ("weights", "gradients", "moment_1", "saved"):
            row = re.search(rf"\{{1, offsetof\(struct arena, {member}\), (\d+)\}}", text)
            trainer.rebuild(text.replace(row[0], row[0].replace(row[1], str(int(row[1]) + 64))))
            with self.assertRaisesRegex(AssertionError, "reserved and have no memory|reach .* beyond|is not device memory"):
                trainer.run()

    def test_schedules(self):
        for number, schedule in enumerate(({"pp_schedule": "gpipe"}, ZERO_BUBBLE, CHUNKS)):
            if is_in_turn(number, 3):
                with self.subTest(**schedule):
                    self.stages(2, schedule)

    def test_four(self):
        """A layer each, and fewer micro-batches than the first stage has memory for; of messages that rank 0 and rank 3 exchange, too."""
        self.stages(4, {"pp": 4}, accumulation={**STEPS, "num_steps": 3})
        self.stages(4, {"pp": 4, **CHUNKS}, config={**STILL, "n_layer": 8}, watched=False)

    def test_deferred_of_four(self):
        self.stages(4, {"pp": 4, **ZERO_BUBBLE}, model="llama", config=LLAMA, data={"sequence_length": 16}, accumulation={**STEPS, "num_steps": 6})

    def test_replicas(self):
        self.stages(4, {}, replicas=2, config=STILL)

    def test_matrices(self):
        self.stages(4, {"tp": 2})
        self.stages(4, {"tp": 2, "megatron": {"sequence_parallelism": True}})

    def test_sequences(self):
        self.stages(4, {"cp": 2})
        self.stages(4, {"sp": 2})

    def test_shards(self):
        """Of states, gradients and weights, in three schedules."""
        for number, mesh in enumerate(({"zero_stage": 1}, {"zero_stage": 2, **CHUNKS}, {"zero_stage": 3, **ZERO_BUBBLE}, {"zero_stage": 3})):
            if is_in_turn(number, 4):
                with self.subTest(**mesh):
                    self.stages(4, mesh, replicas=2, config=STILL)

    def test_shards_of_matrices(self):
        self.go_on(self.stages(8, {"tp": 2, "zero_stage": 3}, replicas=2, config=STILL, watched=False, checkpoint={"every": 2}))

    def test_encoder_and_decoder(self):
        """Of four stages, those that have the embedding, of the encoder, the decoder and the loss, are no neighbours."""
        for ranks in in_turn((2, 4), 2):
            self.stages(ranks, {"pp": ranks}, model="t5", config=T5, data={"sequence_length": 12})

    def test_chunks_of_an_encoder_and_a_decoder(self):
        """The encoder is of several stages, the last of which makes what it gives."""
        self.stages(2, CHUNKS, model="t5", config={**T5, "num_layers": 3}, data={"sequence_length": 12})

    def test_experts(self):
        """All ranks of a stage have all of them."""
        self.stages(2, {}, model="qwen_moe", config={**EXPERTS, "num_hidden_layers": 4}, data={"sequence_length": 16})

    def test_sharded_experts(self):
        """Ranks of a stage divide its experts, compared with as many that have all of them."""
        groups = {"model": "qwen_moe", "config": {**EXPERTS, "router_aux_loss_coef": 0.0}, "data": {"sequence_length": 16}, "accumulation": STEPS}
        found = self.made("cuda", job_of(4, 2, 4, parallelism={"pp": 2, "ep": 2}, **groups))
        self.compare(found, self.made("cuda", job_of(4, 2, 4, parallelism={"pp": 2}, **groups)), 1e-6, "replicas")

    def test_best_weights(self):
        self.stages(2, {}, model="llama", config=LLAMA, data={"sequence_length": 16, "eval_batch_size": 7},
                    training={**EVALUATED, "metrics": ["accuracy"], "early_stopping": {"patience": 3, "restore_best": True}, "ema": {"decay": 0.9}})

    def test_adapters(self):
        self.stages(2, {}, model_keys={"lora": {"rank": 2, "targets": ["*.c_attn"]}}, memory={"activation_checkpointing": "all"})

    def test_more(self):
        """Weights on the host, gradients in 16 bits, what FSDP calls shards, and documents, which are packed or padded."""
        packed = {"model": "llama", "config": LLAMA, "data": {"sequence_length": 16, "packing": "documents", "train": {"path": "documents.tok", "format": "tokens"}}}
        padded = {**packed, "data": {**packed["data"], "packing": "pad"}, "accumulation": {**STEPS, "normalize": "tokens"}}
        for number, (mesh, more) in enumerate((
                ({"zero_stage": 3, "offload": {"param": "cpu", "optimizer": "cpu"}}, {}), ({"ddp": {"comm_hook": "fp16"}}, {"tolerance": 1e-4}),
                ({"fsdp": {"sharding_strategy": "full_shard"}}, {}), ({}, packed), ({}, padded))):
            if is_in_turn(number, 5):
                with self.subTest(mesh=mesh, **more):
                    self.stages(4 if mesh else 2, mesh, replicas=2 if mesh else 1, **{"config": STILL, **more})

    def test_factors(self):
        """Gradients as factors, which come with the samples or stay from step to step, with evaluations: compared with processors without
        stages."""
        groups = {"config": STILL, "accumulation": STEPS, "training": EVALUATED}
        for number, option in enumerate(({"warm_start": False}, {"orthogonalization_epsilon": 1e-8})):
            if is_in_turn(number, 2):
                hook = {"ddp": {"comm_hook": "power_sgd", "comm_state_option": {"matrix_approximation_rank": 2, "start_powerSGD_iter": 2, **option}}}
                with self.subTest(**option):
                    wanted = trained(2, job_of(2, 2, 6, parallelism=hook, **groups))
                    found = self.made("cuda", job_of(4, 2, 6, parallelism={"pp": 2, **hook}, **groups), watched=True)
                    self.compare(found, wanted, 1e-6, str(option))
                    self.assertRegex(found[0].command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_largest_gradient(self):
        """Which is one of those of all stages, of all parts of a matrix and of all shards."""
        for number, (mesh, replicas) in enumerate((({"tp": 2}, 1), ({"zero_stage": 3}, 2))):
            if is_in_turn(number, 2):
                with self.subTest(**mesh):
                    trainer = self.stages(4, mesh, replicas=replicas, config=STILL, training={}, optimizer={"norm_type": "inf", "clip_grad_norm": 0.01})
                    self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_schedule_free(self):
        """Whose model is an average of which a stage has its part."""
        for mesh in in_turn(({}, {"zero_stage": 1}, {"zero_stage": 2}, {"zero_stage": 3}), 4):
            with self.subTest(**mesh):
                trainer = self.stages(4 if mesh else 2, mesh, replicas=2 if mesh else 1, config=STILL, training=EVALUATED, optimizer={"name": "schedule_free_adamw"})
                self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_optimizers(self):
        """Of parameters that are updated as a whole, by matmuls, in blocks of codes and by chance, a stage has its own."""
        wide = {"model": "llama", "config": {**LLAMA, "hidden_size": 64, "head_dim": 16}, "data": {"sequence_length": 16}}
        codes = {"state_dtype": "8bit"}
        for number, (optimizer, mesh) in enumerate((({"name": "lamb"}, {}), ({"name": "adafactor"}, {}), ({"name": "muon"}, {}), (codes, {}),
                                                   ({"state_dtype": "bf16_stochastic"}, {}), (codes, {"zero_stage": 3}))):
            if is_in_turn(number, 6):
                with self.subTest(**optimizer, **mesh):
                    trainer = self.stages(4 if mesh else 2, mesh, replicas=2 if mesh else 1, watched=not mesh, optimizer=optimizer,
                                          training={**EVALUATED, "ema": {"decay": 0.9}}, **wide)
                    trainer.command("audit", "trainer.c")

    def test_groups(self):
        """Frozen parameters, means over tokens, and a loss in chunks."""
        self.stages(2, {}, model_keys={"freeze": ["wte.*", "h.0.*"]}, memory={"cross_entropy_chunk": 7}, accumulation={**STEPS, "normalize": "tokens"},
                    optimizer={"param_groups": [{"match": "*.bias", "weight_decay": 0.0}]})


load_tests = rotating(15)


if __name__ == "__main__":
    test_axes.Axes.parts = objects()
    unittest.main(argv=sys.argv[:1], defaultTest=[word for word in sys.argv[1:] if not word.startswith("-")] or None)
