"""Pipeline parallelism (parallelism.pp) against one process: the same losses, norms and weights, with tied embeddings or
without, alone or with data parallelism; whole tensors in files, so that a run resumes on any mesh. A sixth of the tests a
run; CASES=all runs all."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np
from ranks import FAST, GENERATOR, MODELS, MPI, ComparedWithOne, Ranks, job_of, json_lines, load_file, relative, trained
from rotation import rotating  # tests/program; isort: skip

CONFIG = {"n_layer": 4, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 12, "dropout": 0.1}
LLAMA = {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 48,
         "head_dim": 8, "vocab_size": 256}
T5 = {"num_layers": 4, "num_decoder_layers": 3, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 32, "vocab_size": 256, "gated": True}
STEPS = {"num_steps": 4, "sync_with_dataloader": False}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}


def factors(**option):
    """Keys of gradients that are sent as factors of matrices from step 2 on."""
    return {"ddp": {"comm_hook": "power_sgd", "comm_state_option": {"matrix_approximation_rank": 2, "start_powerSGD_iter": 2, **option}}}


def chunks(each):
    """Keys of a pipeline with several stages of so many layers on each rank."""
    return {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": each}}


class Pipeline(ComparedWithOne):
    """`ranks` ranks, each `pp` of which divide the layers and take the same batches; `mesh`: what a stage's ranks divide."""

    def compared(self, ranks, pp, batch=3, steps=20, tolerance=1e-6, schedule="1f1b", mesh=None, each=0, **groups):
        """each: layers of a stage, of which a rank has several."""
        groups = {"config": CONFIG, "accumulation": STEPS, "training": EVALUATED, **groups}
        parallelism = {"pp": pp, "pp_schedule": schedule, **(chunks(each) if each else {}), **(mesh or {})}
        several, lines = trained(ranks, job_of(ranks, batch, steps, parallelism=parallelism, **groups))
        same = math.prod(parallelism.get(axis, 1) for axis in ("pp", "tp", "cp", "sp"))  # ranks that take the same batches
        one, wanted = self.one(ranks // same * batch, steps, **groups)
        for line, want in zip(lines, wanted, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss", "eval_accuracy")]:
                self.assertLess(abs(line[name] / want[name] - 1), tolerance, f"{name} of step {line['step']}")
            self.assertEqual(line.get("loss_scale"), want.get("loss_scale"))
            if want["grad_norm"] is None:
                self.assertIsNone(line["grad_norm"])
            else:
                self.assertLess(abs(line["grad_norm"] / want["grad_norm"] - 1), 100 * tolerance, f"norm of step {line['step']}")
        after = one.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            self.assertLess(relative(value, after[name]), 1000 * tolerance, name)
        return several

    def test_large_messages(self):
        """Above what MPI sends at once, so that they move only while their sender is in a function of MPI."""
        config = {"n_layer": 32, "n_head": 2, "n_embd": 128, "vocab_size": 256, "block_size": 32}
        mesh = {"pp": 2, "dp_shard": 2, "tp": 2, "zero_stage": 2, **chunks(8)}
        several = Ranks(8, job_of(8, 2, 3, config=config, parallelism=mesh, accumulation=STEPS, devices={"timeout": 60}))
        several.build(CFLAGS=FAST)
        for _ in range(5):
            several.run()

    def test_two_stages(self):
        pipeline = self.compared(2, 2).plan()["pipeline"]
        width, states = CONFIG["n_embd"], 2
        layers = CONFIG["n_layer"] // 2 * (12 * width * width + 13 * width)
        ends = [(CONFIG["vocab_size"] + rows) * width for rows in (CONFIG["block_size"], 2)]
        self.assertEqual([stage["optimizer"] for stage in pipeline["stages"]], [4 * states * (layers + end) for end in ends])
        self.assertAlmostEqual(pipeline["bubble"], 1 / 5)
        self.assertEqual([stage["micro_batches"] for stage in pipeline["stages"]], [2, 1])

    def test_four_stages(self):
        """A layer each, and fewer micro-batches than the first stage has slots for."""
        pipeline = self.compared(4, 4, accumulation={**STEPS, "num_steps": 3}).plan()["pipeline"]
        self.assertEqual([stage["micro_batches"] for stage in pipeline["stages"]], [3, 3, 2, 1])

    def test_all_forwards_first(self):
        pipeline = self.compared(2, 2, schedule="gpipe").plan()["pipeline"]
        self.assertEqual([stage["micro_batches"] for stage in pipeline["stages"]], [4, 4])

    def test_two_chunks_each(self):
        pipeline = self.compared(2, 2, each=1).plan()["pipeline"]
        self.assertAlmostEqual(pipeline["bubble"], 1 / 9)
        self.assertEqual([stage["layers"] for stage in pipeline["stages"]], [2, 2])
        self.assertEqual([stage["chunks"] for stage in pipeline["stages"]], [[4, 2], [3, 1]])

    def test_four_chunks_each(self):
        self.compared(2, 2, each=1, model="llama", config={**LLAMA, "num_hidden_layers": 8}, data={"sequence_length": 16},
                    accumulation={**STEPS, "num_steps": 6})

    def test_chunks_of_four_ranks(self):
        self.compared(4, 4, each=1, config={**CONFIG, "n_layer": 8}, memory={"cross_entropy_chunk": 7})

    def test_chunks_with_data_parallelism(self):
        self.compared(4, 2, each=1, config={**CONFIG, "dropout": 0.0})

    def test_chunks_of_divided_matrices(self):
        self.compared(4, 2, mesh={"tp": 2}, each=1, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_gradients_of_weights_later(self):
        """The norms' gradients come with those of their inputs, all others later; with dropout, without, and in a step of fewer
        micro-batches than there are stages. Of what is computed again, what gradients of weights need is kept."""
        pipeline = self.compared(2, 2, schedule="zero_bubble", memory={"activation_checkpointing": "functions",
                                                                     "checkpoint_functions": ["attend", "mlp"]}).plan()["pipeline"]
        self.assertEqual([stage["micro_batches"] for stage in pipeline["stages"]], [2, 2])
        self.assertAlmostEqual(pipeline["bubble"], 1 / 13)
        pipeline = self.compared(4, 4, model="llama", config=LLAMA, data={"sequence_length": 16}, schedule="zero_bubble",
                               accumulation={**STEPS, "num_steps": 6}).plan()["pipeline"]
        self.assertEqual([stage["micro_batches"] for stage in pipeline["stages"]], [4, 4, 4, 4])
        self.assertAlmostEqual(pipeline["bubble"], 3 / 21)
        pipeline = self.compared(4, 4, schedule="zero_bubble", accumulation={**STEPS, "num_steps": 3},
                               memory={"cross_entropy_chunk": 7}).plan()["pipeline"]
        self.assertAlmostEqual(pipeline["bubble"], 4 / 13)

    def test_layers_left_over(self):
        """One more on the last of two stages, and on those in the middle of four, also where these are two of each rank."""
        for ranks, layers, each in ((2, 3, [1, 2]), (4, 6, [1, 2, 2, 1])):
            stages = self.compared(ranks, ranks, config={**CONFIG, "n_layer": layers}).plan()["pipeline"]["stages"]
            self.assertEqual([stage["layers"] for stage in stages], each)
        stages = self.compared(2, 2, each=1, config={**CONFIG, "n_layer": 5}).plan()["pipeline"]["stages"]
        self.assertEqual([stage["layers"] for stage in stages], [3, 2])

    def test_with_data_parallelism(self):
        """Without dropout, whose draws are those of a micro-batch: here one process takes two of them as one."""
        self.compared(4, 2, config={**CONFIG, "dropout": 0.0})

    def test_with_divided_matrices(self):
        """Stages of two ranks each."""
        plan = self.compared(4, 2, mesh={"tp": 2}).plan()
        self.assertEqual({c["axis"] for c in plan["collectives"]}, {"pp", "tp"})
        self.compared(4, 2, mesh={"tp": 2}, model="llama", config=LLAMA, data={"sequence_length": 16}, schedule="zero_bubble")
        by_name = [{"match": "layers.*.self_attn.*", "style": "replicate"}, {"match": "layers.*.mlp.up_proj", "style": "colwise"}]
        self.compared(4, 2, mesh={"tp": 2, "tp_plan": by_name}, model="llama", config=LLAMA, data={"sequence_length": 16}, schedule="zero_bubble")

    def test_with_divided_sequences(self):
        """A stage's ranks have positions each, and give these to the next stage's."""
        plan = self.compared(4, 2, mesh={"cp": 2}).plan()
        self.assertEqual({c["axis"] for c in plan["collectives"]}, {"dp_replicate", "pp", "cp"})
        first = plan["pipeline"]["stages"][0]["collectives"]
        crossing, = {c["bytes"] for c in first if c["axis"] == "pp" and c["what"] == "what the next stage takes"}
        self.assertEqual(crossing, 4 * 3 * CONFIG["block_size"] // 2 * CONFIG["n_embd"])
        self.compared(8, 2, schedule="zero_bubble", mesh={"cp": 2, "cp_comm": "ring", "tp": 2}, model="llama", config=LLAMA, data={"sequence_length": 16})
        self.compared(4, 2, schedule="zero_bubble", mesh={"sp": 2})

    def test_with_a_split_residual(self):
        """Gradients of norms and biases are added up over a stage's ranks."""
        plan = self.compared(4, 2, mesh={"tp": 2, "megatron": {"sequence_parallelism": True}}).plan()
        last = plan["pipeline"]["stages"][-1]["collectives"]
        self.assertEqual([c["bytes"] for c in last if c["what"].startswith("partial gradients")], [4 * (2 * 6 + 2) * CONFIG["n_embd"]])

    def test_with_sharded_states(self):
        """A stage's ranks along dp_shard have a part of its states each; tied embeddings are cut alike on both stages."""
        groups = {"config": {**CONFIG, "dropout": 0.0}}
        plan = self.compared(4, 2, mesh={"zero_stage": 1}, **groups).plan()
        width = CONFIG["n_embd"]
        layers, ends = 2 * (12 * width * width + 13 * width), [(CONFIG["vocab_size"] + rows) * width for rows in (CONFIG["block_size"], 2)]
        self.assertEqual([stage["optimizer"] for stage in plan["pipeline"]["stages"]], [4 * 2 * (layers + end) // 2 for end in ends])
        self.assertEqual([c["kind"] for c in plan["collectives"] if c["axis"] == "dp_shard"], ["reduce-scatter", "all-reduce", "all-reduce", "all-gather"])
        self.compared(8, 2, batch=2, schedule="zero_bubble", mesh={"zero_stage": 1, "tp": 2, "megatron": {"sequence_parallelism": True}}, **groups)

    def test_with_sharded_weights(self):
        """A stage holds two of its layers at a time, and sends their gradients with each micro-batch; those of embeddings, which are cut
        alike on two stages, once a step."""
        groups = {"config": {**CONFIG, "dropout": 0.0}}
        plan = self.compared(4, 2, each=1, mesh={"zero_stage": 3}, **groups).plan()
        sharded = [(c["kind"], c["bytes"] // 4, c["times"]) for c in plan["collectives"] if c["axis"] == "dp_shard" and c["bytes"] > 1000]
        width = CONFIG["n_embd"]
        layers, others = 2 * (12 * width * width + 13 * width), (CONFIG["vocab_size"] + CONFIG["block_size"]) * width
        self.assertEqual(sharded, [("reduce-scatter", layers, 4), ("reduce-scatter", others, 1), ("all-gather", layers, 8), ("all-gather", others, 1)])
        self.compared(8, 2, batch=2, schedule="zero_bubble", mesh={"zero_stage": 2, "cp": 2, "dp_replicate": 2}, **groups,
                    optimizer={"name": "adamax", "norm_type": "inf", "clip_grad_norm": 0.1, "param_groups": [{"match": "*.bias", "weight_decay": 0.0}]})

    def test_the_largest_gradient_of_divided_matrices(self):
        for mesh in ({"tp": 2}, {"tp": 2, "zero_stage": 2}):
            self.compared(8, 2, mesh=mesh, config={**CONFIG, "dropout": 0.0}, optimizer={"name": "adamax", "norm_type": 1, "clip_grad_norm": 0.1})

    def test_best_weights(self):
        """Evaluations end the run, and leave the weights of the best one."""
        training = {**EVALUATED, "eval_interval": 2, "metrics": ["accuracy"], "early_stopping": {"patience": 3, "restore_best": True}}
        groups = {"optimizer": {"lr": 3e-2}, "training": training, "data": {"eval_batch_size": 7}}
        several = self.compared(2, 2, steps=40, tolerance=1e-5, **groups)
        one, lines = self.one(3, 40, config=CONFIG, accumulation=STEPS, **groups)
        self.assertLess(len(lines), 40)
        wanted, left = (load_file(run.folder / "run" / "best.safetensors") for run in (one, several))
        for name, value in wanted.items():
            self.assertLess(relative(left[name], value), 1e-3, name)

    def test_grouped_heads(self):
        """Rotary positions, no tied embeddings."""
        self.compared(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_encoder_and_decoder(self):
        """The encoder's result, and the bias of its scores, continue from stage to stage, and so do their gradients, also where they come to a
        rank several times; three stages add up those of the embedding."""
        groups = {"model": "t5", "config": T5, "data": {"sequence_length": 16}}
        stages = self.compared(2, 2, each=1, **{**groups, "config": {**T5, "num_decoder_layers": 4}}).plan()["pipeline"]["stages"]
        self.assertEqual([stage["chunks"] for stage in stages], [[4, 4, 4]] * 2)
        stages = self.compared(4, 4, **groups).plan()["pipeline"]["stages"]
        self.assertEqual([stage["layers"] for stage in stages], [1, 2, 1, 1])
        split = {"megatron": {"pipeline_model_parallel_split_rank": 1}}
        stages = self.compared(3, 3, schedule="zero_bubble", mesh=split, **groups).plan()["pipeline"]["stages"]
        self.assertEqual([stage["layers"] for stage in stages], [3, 1, 1])

    def test_values_that_come_back_to_a_rank(self):
        """What the first stage makes and all layers use comes to a rank with several stages once, and so does an encoder's result: nothing
        is received where something may still be sent from."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, folder)
        text = (MODELS / "gpt2.c").read_text()
        loop = "x = block(nth(s, \"h\", i), x, c);\n"
        self.assertEqual(text.count(loop), 1)
        text = text.replace("/* tokens [B][T] to logits", "static tensor fed(scope s, tensor x, tensor first, struct config c) {\n"
                            "  return add(block(s, x, c), first);\n}\n\n/* tokens [B][T] to logits", 1)
        text = text.replace(loop, 'x = fed(nth(s, "h", i), x, first, c);\n').replace("  for (int i = 0; i < c.n_layer", "  tensor first = x;\n  for (int i = 0; i < c.n_layer", 1)
        (folder / "fed.c").write_text(text)
        deep = {"config": {**CONFIG, "n_layer": 4}, "model": str(folder / "fed")}
        pairs = ((2, deep), (4, {"model": "t5", "config": {**T5, "num_layers": 5, "num_decoder_layers": 5}, "data": {"sequence_length": 16}}))
        for ranks, groups in pairs:
            several = self.compared(ranks, ranks, each=1, **groups)
            several.generate()
            self.assertRegex(several.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_in_bf16(self):
        """Weights, too; recomputed layers end within a stage, and the evaluation is that of averages."""
        self.compared(2, 2, tolerance=1e-3, precision={"param_dtype": "bf16"}, optimizer={"eps": 1e-3},
                    memory={"activation_checkpointing": "layers", "checkpoint_layers": 3},
                    training={**EVALUATED, "ema": {"decay": 0.5, "evaluate": True}, "on_nonfinite": "skip"})

    def test_skipped_steps(self):
        """All stages skip a step whose gradients overflow on one of them, and have one scale. Frozen parameters."""
        several = self.compared(4, 2, mesh={"tp": 2}, tolerance=1e-3, optimizer={"eps": 1e-3}, accumulation={**STEPS, "normalize": "tokens"},
                              precision={"mixed_precision": "fp16", "grad_scaler": {"init_scale": 2.0 ** 26, "growth_interval": 4, "hysteresis": 2, "consecutive_hysteresis": True}},
                              model_keys={"freeze": ["wte.weight", "h.1.*", "*.ln_1.*"]})
        scales = [line["loss_scale"] for line in json_lines(several.folder / "run")]
        self.assertLess(scales[3], scales[0])
        self.assertGreater(scales[-1], min(scales))

    def test_adapters(self):
        self.compared(4, 2, mesh={"tp": 2}, tolerance=1e-5, optimizer={"state_dtype": "bf16"},
                    model_keys={"lora": {"rank": 4, "dropout": 0.1, "targets": ["c_attn", "c_fc"], "modules_to_save": ["ln_f"]}})

    def test_whole_parameters(self):
        """Steps of matrices: embeddings that two stages use are stepped by both."""
        for name in ("muon", "lamb"):
            with self.subTest(name):
                self.compared(2, 2, optimizer={"name": name}, memory={"activation_checkpointing": "every", "checkpoint_every": 2})

    def test_gradients_in_bf16(self):
        """They are rounded once on each of the ranks that add them up, as one process does not."""
        self.compared(4, 2, tolerance=1e-4, config={**CONFIG, "dropout": 0.0}, mesh={"ddp": {"comm_hook": "bf16"}})

    def test_gradients_as_factors(self):
        """Of matrices of the stages, each the factors that it has without stages: of embeddings that two stages use the same ones."""
        groups = {"config": {**CONFIG, "dropout": 0.0}, "accumulation": STEPS}
        for mesh, option in (({}, {}), (chunks(1), {"warm_start": False}), ({"pp_schedule": "zero_bubble"}, {"use_error_feedback": False})):
            with self.subTest(**mesh, **option):
                _, wanted = trained(2, job_of(2, 3, 20, parallelism=factors(**option), **groups))
                several, lines = trained(4, job_of(4, 3, 20, parallelism={"pp": 2, **mesh, **factors(**option)}, **groups))
                for line, want in zip(lines, wanted, strict=True):
                    self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
                self.assertIn("right factors of gradients", json.dumps(several.plan()))
                several.generate()
                self.assertRegex(several.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken")

    def test_groups(self):
        """And the norm that is the largest gradient; the backward gives the loss."""
        self.compared(2, 2, memory={"cross_entropy_chunk": 7}, optimizer={"name": "adamax", "norm_type": "inf", "clip_grad_norm": 0.1,
                                     "param_groups": [{"match": "*.bias", "weight_decay": 0.0}]})


class Received(unittest.TestCase):
    """A stage receives what its layers take where they take it: it has no copy of it."""

    def test_plan(self):
        """Layers that are computed again keep their inputs alone: of two layers two, and what the stage gives."""
        for schedule in ("1f1b", "gpipe", "zero_bubble"):
            config = {"n_layer": 8, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
            memory = {"activation_checkpointing": "all"} if schedule != "zero_bubble" else {}
            trainer = Ranks(4, job_of(4, 2, 5, config=config, accumulation=STEPS, parallelism={"pp": 4, "pp_schedule": schedule}, memory=memory))
            text = trainer.generate()
            self.assertNotRegex(text, r"accel_(receive|take)\([^;]*\);\n *copy_")
            stage = trainer.plan()["pipeline"]["stages"][1]
            if memory:
                self.assertEqual(stage["activations"], stage["micro_batches"] * 3 * 2 * 8 * 16 * 4)


class Files(unittest.TestCase):
    """Whole tensors are read and written."""

    @classmethod
    def setUpClass(cls):
        groups = {"config": {**CONFIG, "dropout": 0.0}, "checkpoint": {"every": 5}, "accumulation": STEPS}
        cls.job = staticmethod(lambda ranks, batch, steps, **more: job_of(ranks, batch, steps, **{**groups, **more}))
        cls.one, cls.lines = trained(1, cls.job(1, 4, 10))

    def resumed(self, before, after, one=None, wanted_lines=None, tolerance=1e-6, **more):
        """A run of 5 steps on one mesh that resumes on another up to step 10: (ranks, batch, keys of parallelism) each."""
        first = Ranks(before[0], self.job(before[0], before[1], 5, parallelism=before[2], **more))
        first.build()
        first.run()
        second = Ranks(after[0], self.job(after[0], after[1], 10, parallelism=after[2], **more), folder=first.folder)
        second.build()
        lines = second.run("--resume", "auto")
        for line, want in zip(lines, wanted_lines or self.lines, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), tolerance, f"loss of step {line['step']}")
        wanted = (one or self.one).weights()
        for name, value in second.weights().items():
            self.assertLess(relative(value, wanted[name]), 1e-3, name)

    def test_from_two_stages_to_one_rank(self):
        self.resumed((2, 4, {"pp": 2}), (1, 4, {}))

    def test_from_one_rank_to_two_times_two(self):
        self.resumed((1, 4, {}), (4, 2, {"pp": 2, "pp_schedule": "zero_bubble"}))

    def test_from_chunks_to_one_rank(self):
        self.resumed((2, 4, {"pp": 2, **chunks(1)}), (1, 4, {}))

    def test_from_stages_to_chunks(self):
        self.resumed((4, 4, {"pp": 4}), (4, 2, {"pp": 2, **chunks(1)}))

    def test_from_divided_matrices_to_stages_of_them(self):
        self.resumed((2, 4, {"tp": 2}), (4, 4, {"pp": 2, "tp": 2}))

    def test_from_stages_of_divided_matrices_to_one_rank(self):
        self.resumed((8, 2, {"pp": 2, "tp": 2, "zero_stage": 1, "pp_schedule": "zero_bubble"}), (1, 4, {}))

    def test_from_stages_of_sharded_weights_to_shards_of_matrices(self):
        self.resumed((4, 2, {"pp": 2, "zero_stage": 3}), (4, 2, {"tp": 2, "zero_stage": 3}))

    def test_from_one_rank_to_stages_of_sharded_weights(self):
        self.resumed((1, 4, {}), (8, 2, {"pp": 2, "tp": 2, "zero_stage": 3}))

    def test_from_divided_sequences_to_stages_of_them(self):
        self.resumed((4, 2, {"sp": 2}), (4, 4, {"pp": 2, "cp": 2, "pp_schedule": "zero_bubble"}))

    def test_factors(self):
        """What they have missed, and the ones with which the next step begins: of each rank that has batches of its own."""
        one, lines = trained(2, self.job(2, 4, 10, parallelism=factors()))
        self.resumed((4, 4, {"pp": 2, **factors()}), (2, 4, factors()), one, lines, 2e-6)
        self.resumed((2, 4, factors()), (4, 4, {"pp": 2, **chunks(1), **factors()}), one, lines, 2e-6)

    def test_other_states(self):
        """Scales of blocks and averages of rows, which are fewer than a parameter's elements: of embeddings that two stages use,
        there is one of each."""
        for optimizer in ({"state_dtype": "8bit"}, {"name": "adafactor"}):
            with self.subTest(**optimizer):
                more = {"optimizer": optimizer, "config": {**CONFIG, "dropout": 0.0, "n_embd": 64}, "training": {"ema": {"decay": 0.9}}}
                one, lines = trained(1, self.job(1, 4, 10, **more))
                self.resumed((2, 4, {"pp": 2}), (1, 4, {}), one, lines, 1e-5, **more)


class Programs(unittest.TestCase):
    """Evaluators and generators whose stages divide the layers, whatever other ranks the job has."""

    MESHES = ((2, {"pp": 2, "zero_stage": 3}), (4, {"pp": 2, "tp": 2}), (4, {"pp": 4}))

    @classmethod
    def setUpClass(cls):
        groups = {"model": "llama", "config": LLAMA, "data": {"sequence_length": 16}, "accumulation": STEPS}
        cls.job = staticmethod(lambda ranks, batch, steps, **more: job_of(ranks, batch, steps, **groups, **more))
        cls.one, _ = trained(1, cls.job(1, 4, 10))

    def ended(self, program, *flags, **more):
        command = ["mpirun", "-n", str(program.ranks)] if program.ranks > 1 else []
        result = subprocess.run([*command, "./trainer", "--weights", self.one.folder / "run", *flags], cwd=program.folder,
                                capture_output=True, encoding="latin-1", env={**os.environ, **MPI}, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def built(self, kind, ranks, parallelism, **more):
        program = Ranks(ranks, self.job(2 * ranks if ranks > 1 else 1, 3, 5, parallelism=parallelism, **more))
        program.build("--program", kind)
        program.generate("--program", kind)
        if ranks > 1:
            self.assertRegex(program.command("audit", "trainer.c"), r"holds +deadlock-free +\d stages")
        return program

    def test_evaluation(self):
        training = {"eval_interval": 1, "metrics": ["accuracy"]}
        wanted, *several = (json.loads(self.ended(self.built("evaluate", *mesh, training=training), "--format", "json"))
                            for mesh in ((1, {}), *self.MESHES))
        for measured in several:
            self.assertLess(abs(measured["loss"] / wanted["loss"] - 1), 1e-6)
            self.assertEqual([measured[name] for name in ("samples", "accuracy")], [wanted[name] for name in ("samples", "accuracy")])

    def test_generation(self):
        """Rank 0 chooses from the logits of the last stage. A prompt of more tokens than the program runs over at once."""
        written = []
        for mesh in ((1, {}), *self.MESHES):
            writer = self.built("generate", *mesh)
            text = self.ended(writer, "--tokens", "40", "--logits", "logits.f32", "--prompt-file", "-", "--seed", "3", input="7 9 200 25 " * 5)
            written.append((text, np.fromfile(writer.folder / "logits.f32", np.float32)))
        for text, logits in written[1:]:
            self.assertEqual(text, written[0][0])
            self.assertLess(relative(logits, written[0][1]), 1e-6)
        stages = json.loads(writer.command("plan", "job.yaml", "--program", "generate", "--json"))["pipeline"]["stages"]
        collectives = [*stages[0]["collectives"], *stages[-1]["collectives"]]
        # Of a token: what goes from stage to stage, and the logits of the last one.
        self.assertEqual([(c["axis"], c["bytes"] // 4) for c in collectives], [("pp", LLAMA["hidden_size"]), ("pp", LLAMA["vocab_size"])])


class Refused(unittest.TestCase):
    def refused(self, words, ranks=2, **groups):
        groups = {"parallelism": {"pp": 2}, "accumulation": STEPS, "config": CONFIG, **groups}
        trainer = Ranks(ranks, job_of(ranks, 3, 5, **groups))
        result = subprocess.run([GENERATOR, "plan", "job.yaml"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0, words)
        self.assertIn(words, result.stderr)
        self.assertRegex(result.stderr, r"^job\.yaml:\d+:\d+: error: ")

    def test_ranks_that_it_does_not_divide(self):
        self.refused("'parallelism.pp' is 2, which does not divide the job's 3 ranks", ranks=3)

    def test_all_computed_again(self):
        self.refused("'block' calls 'attend', and all that is recomputed in it would be saved for the gradients of weights",
                     parallelism={"pp": 2, "pp_schedule": "zero_bubble"}, memory={"activation_checkpointing": "all"})

    def test_all_layers_computed_again_at_once(self):
        self.refused("'predict' calls the layers that ranks along pp divide, so no rank can compute it again",
                     parallelism={"pp": 2}, memory={"activation_checkpointing": "functions", "checkpoint_functions": ["predict"]})

    def test_fewer_layers_than_ranks(self):
        self.refused("4 ranks have no layer each of 3", ranks=4, config={**CONFIG, "n_layer": 3}, parallelism={"pp": 4})

    def test_no_layers(self):
        self.refused("the model has no loop over layers that 2 ranks could divide", model="gru_bytes",
                     config={"n_embd": 6, "width": 10, "vocab_size": 256, "block_size": 4})

    def test_one_micro_batch(self):
        self.refused("with one micro-batch a step, ranks would wait for each other", accumulation={})

    def test_a_schedule_of_no_stages(self):
        self.refused("'parallelism.pp_schedule' is the order of stages", parallelism={"pp_schedule": "gpipe"})

    def test_layers_that_are_not_several_stages(self):
        words = "{} layers are not two or more times {} layers on each of 2 ranks"
        for layers, each in ((4, 2), (6, 2), (4, 3)):
            self.refused(words.format(layers, each), config={**CONFIG, "n_layer": layers}, parallelism={"pp": 2, **chunks(each)})

    def test_stages_of_an_encoder_and_a_decoder(self):
        groups = {"model": "t5", "config": {**T5, "num_decoder_layers": 6}, "data": {"sequence_length": 16}}
        self.refused("a stage of 2 layers would have some of the 3 of the first loop and some of the second", parallelism={"pp": 2, **chunks(2)}, **groups)
        split = {**chunks(1)["megatron"], "pipeline_model_parallel_split_rank": 1}
        self.refused("the layers of a stage say with which one the decoder begins", parallelism={"pp": 2, **chunks(1), "megatron": split}, **groups)

    def test_squares_of_all_gradients(self):
        self.refused("its squares are of neighbours in memory, which stages share out", ranks=4,
                     parallelism={"pp": 2, "ddp": {"comm_hook": "batched_power_sgd"}})

    def test_more_stages_than_there_can_be(self):
        self.refused("34 layers in stages of 1 are more than 32 stages", config={**CONFIG, "n_layer": 34}, parallelism={"pp": 2, **chunks(1)})


load_tests = rotating(12, always=("Refused",))


if __name__ == "__main__":
    unittest.main()
