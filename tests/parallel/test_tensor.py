"""Tensor parallelism (parallelism.tp) against one process: the same losses, norms and weights, on every model with matmuls or
heads that ranks can divide, with data parallelism or alone; whole tensors in files, so that a run resumes on any mesh. A fifth of the tests a
day; CASES=all runs all."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
from ranks import GENERATOR, MPI, TREE, ComparedWithOne, Ranks, job_of, json_lines, load_file, relative, table, trained
from rotation import rotating  # tests/program; isort: skip

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 12, "dropout": 0.1}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 48,
         "head_dim": 8, "vocab_size": 256}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}
EACH = {"eval_iters": "all"}  # what an evaluation of several ranks measures then is what one process does


class Divided(ComparedWithOne):
    """`ranks` ranks, each `tp` of which divide tensors and take the same batches, compared with one."""

    def compared(self, ranks, tp, batch=3, steps=20, config=CONFIG, parallelism=None, **groups):
        return self.check(ranks, batch, steps, config=config, parallelism={"tp": tp, **(parallelism or {})}, **groups)[0]


class Tensor(Divided):
    def test_two_ranks(self):
        several = self.compared(2, 2, training=EVALUATED)
        plan = several.plan()
        self.assertEqual({c["axis"] for c in plan["collectives"]}, {"tp"})
        split, width = plan["split"], CONFIG["n_embd"]
        # Of a layer's 12 C^2 + 13 C elements, the biases of both products that end in the residual and two norms are whole.
        layers = CONFIG["n_layer"] * (6 * width * width + 7 * width // 2 + 6 * width)
        others = (CONFIG["vocab_size"] // 2 + CONFIG["block_size"] + 2) * width  # half of the vocabulary; positions, the last norm
        self.assertEqual((split["ranks"], split["parameters"], split["elements"]), (2, 13, layers + others))

    def test_four_ranks(self):
        self.compared(4, 4, training=EVALUATED, data={"eval_batch_size": 7})

    def test_with_data_parallelism(self):
        """Without dropout, whose draws are those of a micro-batch: here one process takes two of them as one."""
        self.compared(4, 2, training=EVALUATED, config={**CONFIG, "dropout": 0.0})

    def test_accumulation(self):
        self.compared(2, 2, accumulation={"num_steps": 3, "normalize": "tokens", "sync_with_dataloader": False, "sync_each_batch": True})

    def test_checkpointing(self):
        self.compared(2, 2, memory={"activation_checkpointing": "all"})

    def sharded(self, ranks, parallelism, **groups):
        """Ranks along dp_shard divide further what a rank has of each tensor; gradients of two layers are there at a time. Without dropout, as above."""
        return self.compared(ranks, 2, batch=1 if ranks == 8 else 2, parallelism=parallelism, config={**CONFIG, "n_layer": 4, "dropout": 0.0}, **groups)

    def test_sharded_states(self):
        self.sharded(4, {"zero_stage": 1}, optimizer={"name": "adamax", "param_groups": [{"match": "*.bias", "weight_decay": 0.0}]})

    def test_sharded_gradients(self):
        """The largest gradient of shards and parts; two groups of ranks with the same shards."""
        self.sharded(8, {"zero_stage": 2, "dp_shard": 2}, optimizer={"norm_type": 1, "clip_grad_norm": 0.1})

    def test_sharded_weights(self):
        several = self.sharded(4, {"fsdp": {"sharding_strategy": "full_shard"}}, training=EVALUATED,
                               accumulation={"num_steps": 2, "sync_with_dataloader": False})
        self.assertEqual({c["axis"] for c in several.plan()["collectives"]}, {"tp", "dp_shard"})

    def test_low_rank_adapters(self):
        """Matrices are divided as without them: what ranks add up in addition is as long as an adapter's rank."""
        runs = []
        for ranks, batch, parallelism in ((1, 4, {}), (4, 2, {"tp": 2, "zero_stage": 1})):
            job = job_of(ranks, batch, 20, config={**CONFIG, "dropout": 0.0}, parallelism=parallelism)
            job["model"]["lora"] = {"targets": ["c_attn", "c_proj", "c_fc"], "rank": 3}
            runs.append(trained(ranks, job))
        self.compare(*runs[1], *runs[0])
        lengths = [c["bytes"] // (4 * 2 * CONFIG["block_size"]) for c in runs[1][0].plan()["collectives"] if c["axis"] == "tp"]
        # Of the vocabulary the embedding's rows and the gradient of what the logits are made of, and two numbers of each rank.
        self.assertEqual(sorted(lengths[:-1]), 4 * CONFIG["n_layer"] * [3] + [4] + (4 * CONFIG["n_layer"] + 2) * [CONFIG["n_embd"]])

    def test_in_fp16(self):
        """Gradients overflow at first, on whichever rank has them: all leave out the same steps."""
        scaler = {"enabled": True, "init_scale": 2.0**26, "growth_interval": 5, "hysteresis": 2, "min_loss_scale": 1}
        several = self.compared(2, 2, tolerance=1e-4, precision={"mixed_precision": "fp16", "grad_scaler": scaler}, optimizer={"eps": 1e-3})
        norms = [line["grad_norm"] for line in json_lines(several.folder / "run")]
        self.assertIsNone(norms[0])
        self.assertIsNotNone(norms[-1])

    def test_what_replicas_exchange(self):
        """Gradients in 16 bits, or weights every few steps: as between ranks that have whole tensors."""
        for keys in ({"ddp": {"comm_hook": "bf16"}}, {"local_sgd_steps": 4}):
            with self.subTest(keys):
                runs = [trained(ranks, job_of(ranks, 2, 12, config={**CONFIG, "dropout": 0.0}, parallelism={**tp, **keys}))
                        for ranks, tp in ((2, {}), (4, {"tp": 2}))]
                self.compare(*runs[1], *runs[0])
                self.assertEqual({c["axis"] for c in runs[1][0].plan()["collectives"]}, {"tp", "dp_replicate"})

    def test_best_averages(self):
        """What mirrors the weights is made whole as they are."""
        stopping = {"patience": 3, "restore_best": True}
        groups = {"optimizer": {"lr": 3e-2}, "training": {**EVALUATED, "eval_interval": 2, "ema": {"decay": 0.5}, "early_stopping": stopping}}
        several = self.compared(2, 2, steps=40, tolerance=1e-5, **groups)
        one, lines = self.one(3, 40, config=CONFIG, **groups)
        self.assertLess(len(lines), 40)
        for name in ("ema", "best"):
            wanted, left = (load_file(run.folder / "run" / f"{name}.safetensors") for run in (one, several))
            for weight, value in wanted.items():
                self.assertLess(relative(left[weight], value), 1e-3, f"{name}: {weight}")

    def test_vocabulary(self):
        """Rows of an embedding, columns and biases of logits; labels that are smooth, targets that do not count, and lse
        squared."""
        config = {"width": 24, "ignored": 101, "block_size": 12, "z": True, "smoothing": 0.1}
        model = str(TREE / "tests" / "reference" / "models" / "ignoring")
        several = self.compared(2, 2, model=model, config=config, training=EVALUATED,
                              accumulation={"num_steps": 2, "normalize": "tokens", "sync_with_dataloader": False})
        self.assertEqual(several.plan()["split"]["parameters"], 3)

    def test_padded_vocabulary(self):
        """GPT-2 has 50257 tokens: the last rank's part of an odd number of rows is padded, in memory alone. Whole rows of
        logits, and chunks of rows that do not divide them."""
        config = {**CONFIG, "vocab_size": 257}
        even = Ranks(2, job_of(2, 3, 20, config={**config, "vocab_size": 258}, parallelism={"tp": 2})).plan()
        for memory in ({}, {"cross_entropy_chunk": 8}):
            plan = self.compared(2, 2, config=config, training=EVALUATED, memory=memory).plan()
            self.assertEqual((plan["split"]["parameters"], plan["split"]["elements"]), (13, even["split"]["elements"]))
            self.assertEqual(plan["parameters"], even["parameters"] - config["n_embd"])

    def test_grouped_heads(self):
        """Rotary positions, heads that share keys, gated products."""
        self.compared(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_more_ranks_than_heads_of_keys(self):
        """Then attention is whole on each rank, and the products after it are divided."""
        several = self.compared(4, 4, model="llama", config=LLAMA, data={"sequence_length": 16})
        self.assertIn("model.layers.0.mlp.down_proj.weight", several.weights())

    def test_experts(self):
        config = {**LLAMA, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
        self.compared(2, 2, model="qwen_moe", config=config, data={"sequence_length": 16}, steps=10)

    def test_encoder_and_decoder(self):
        config = {"num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "d_model": 32, "d_kv": 8, "d_ff": 64, "vocab_size": 256}
        self.compared(2, 2, model="t5", config=config, data={"sequence_length": 16}, steps=10)

    def test_rows(self):
        """A table's matmuls in a row."""
        job = {"model": "mlp_table", "config": {"n_layer": 2, "width": 8, "n_classes": 3}, "training": {"eval_interval": 10, **EACH, "metrics": ["accuracy"]}}
        lines = []
        for ranks, parallelism in ((1, {}), (2, {"tp": 2})):
            made = job_of(ranks, 6, 20, parallelism=parallelism, **job)
            made["data"].update({"train": {"path": "rows.csv", "format": "csv"}, "features": 5})
            trainer = Ranks(ranks, made)
            (trainer.folder / "rows.csv").write_text(table(90, 5))
            trainer.build()
            lines.append(trainer.run())
        for want, line in zip(*lines, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss", "eval_accuracy")]:
                self.assertLess(abs(line[name] / want[name] - 1), 1e-6, f"{name} of step {line['step']}")


class Files(unittest.TestCase):
    """Whole tensors are read and written, and moments of those alone that are trained."""

    @classmethod
    def setUpClass(cls):
        groups = {"config": {**CONFIG, "dropout": 0.0, "vocab_size": 257}, "checkpoint": {"every": 5}}
        def job(ranks, batch, steps, **more):
            job = job_of(ranks, batch, steps, **groups, **more)
            job["model"]["freeze"] = ["wpe.*", "h.*.attn.*"]
            return job
        cls.job = staticmethod(job)
        cls.one, cls.lines = trained(1, cls.job(1, 4, 10))

    def check(self, trainer, lines):
        for line, want in zip(lines, self.lines, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
        after = self.one.weights()
        for name, value in trainer.weights().items():
            self.assertLess(relative(value, after[name]), 1e-3, name)

    def resumed(self, before, after):
        """A run of 5 steps on one mesh that resumes on another up to step 10: (ranks, batch, keys of parallelism) each."""
        first = Ranks(before[0], self.job(before[0], before[1], 5, parallelism=before[2]))
        first.build()
        first.run()
        second = Ranks(after[0], self.job(after[0], after[1], 10, parallelism=after[2]), folder=first.folder)
        second.build()
        self.check(second, second.run("--resume", "auto"))

    def test_from_shards_of_parts_to_one_rank(self):
        self.resumed((4, 2, {"tp": 2, "zero_stage": 1}), (1, 4, {}))

    def test_from_one_rank_to_two_times_two(self):
        self.resumed((1, 4, {}), (4, 2, {"tp": 2}))

    def test_from_parts_to_shards_of_parts(self):
        self.resumed((4, 4, {"tp": 4}), (4, 2, {"tp": 2, "zero_stage": 1}))

    def test_evaluation(self):
        """Ranks measure a trained model as one process does, whatever other ranks the job has."""
        measured = []
        for ranks, parallelism in ((1, {}), (2, {"tp": 2, "zero_stage": 1})):
            evaluator = Ranks(ranks, self.job(2 * ranks, 3, 5, parallelism=parallelism, training={"eval_interval": 1, "metrics": ["accuracy"]}))
            evaluator.build("--program", "evaluate")
            flags = ("--weights", str(self.one.folder / "run"), "--format", "json")
            result = evaluator.launch(*flags) if ranks > 1 else subprocess.run(["./trainer", *flags], cwd=evaluator.folder, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            measured.append(json.loads(result.stdout))
        self.assertLess(abs(measured[1]["loss"] / measured[0]["loss"] - 1), 1e-6)
        self.assertEqual([(m["samples"], m["accuracy"]) for m in measured[:1]], [(m["samples"], m["accuracy"]) for m in measured[1:]])

    def test_generation(self):
        """Ranks write the text of one process: they gather logits of a padded vocabulary, and rank 0 chooses for all. A prompt
        that rank 0 alone has, of more tokens than the program runs over at once."""
        written = []
        sampling = ("--temperature", "1", "--top-k", "50", "--repetition-penalty", "1.2", "--seed", "3")
        flags = ("--weights", str(self.one.folder / "run"), "--tokens", "30", "--logits", "logits.f32", "--prompt-file", "-", *sampling)
        for ranks, parallelism in ((1, {}), (2, {"tp": 2, "zero_stage": 1})):
            writer = Ranks(ranks, self.job(2 * ranks, 3, 5, parallelism=parallelism))
            writer.build("--program", "generate")
            command = ["mpirun", "-n", str(ranks), "./trainer", *flags] if ranks > 1 else ["./trainer", *flags]
            result = subprocess.run(command, cwd=writer.folder, capture_output=True, text=True, input="7 9 200 256 " * 5,
                                    env={**os.environ, **MPI})
            self.assertEqual(result.returncode, 0, result.stderr)
            written.append((result.stdout.split(), np.fromfile(writer.folder / "logits.f32", np.float32)))
        self.assertEqual(written[1][0], written[0][0])
        self.assertEqual(len(written[0][0]), 20 + 30)
        self.assertLess(relative(written[1][1], written[0][1]), 1e-6)
        plan = json.loads(writer.command("plan", "job.yaml", "--program", "generate", "--json"))
        # Of a token: sums for the embedding and two for each layer, and the parts of logits that ranks gather.
        self.assertEqual([c["bytes"] // 4 for c in plan["collectives"]], 5 * [CONFIG["n_embd"]] + [258])
        writer.generate("--program", "generate")
        self.assertRegex(writer.command("audit", "trainer.c"), r"holds +same-collectives")

    def test_published_weights(self):
        """A file of whole tensors starts a run of ranks that divide them."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "start.safetensors"
            path.write_bytes((self.one.folder / "run" / "model.safetensors").read_bytes())
            runs = [trained(ranks, self.job(ranks, 4, 3, parallelism=parallelism) | {"model": {
                **self.job(1, 4, 3)["model"], "weights": str(path)}}) for ranks, parallelism in ((1, {}), (2, {"tp": 2}))]
        for want, line in zip(runs[0][1], runs[1][1], strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6)
        for name, value in runs[0][0].weights().items():
            self.assertTrue(np.allclose(value, runs[1][0].weights()[name], rtol=1e-4, atol=1e-6), name)


class Refused(unittest.TestCase):
    def refused(self, words, ranks=2, **groups):
        trainer = Ranks(ranks, job_of(ranks, 3, 5, **{"parallelism": {"tp": 2}, **groups}))
        (trainer.folder / "rows.csv").write_text(table(90, 7))
        result = subprocess.run([GENERATOR, "plan", "job.yaml"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode != 0, True, words)
        self.assertIn(words, result.stderr)
        self.assertRegex(result.stderr, r"^job\.yaml:\d+:\d+: error: ")

    def test_ranks_that_it_does_not_divide(self):
        self.refused("'parallelism.tp' is 2, which does not divide the job's 3 ranks", ranks=3)

    def test_nothing_to_divide(self):
        self.refused("the model has no two matmuls in a row, and no vocabulary, that 2 ranks could divide", model="mlp_table",
                     config={"n_layer": 2, "width": 7, "n_classes": 3}, data={"train": {"path": "rows.csv", "format": "csv"}, "features": 7})

    def test_shards(self):
        self.refused("'parallelism.fsdp.state_dict_type' does not go with ranks that divide matmuls", ranks=4, parallelism={
            "tp": 2, "fsdp": {"sharding_strategy": "full_shard", "state_dict_type": "sharded_state_dict"}})

    def test_rules_over_whole_parameters(self):
        self.refused("it looks at whole parameters, and a rank has a part of some", optimizer={"name": "muon"})

    def test_gpus(self):
        """What runs there is in tests/cuda/test_axes.py."""
        self.refused("programs for AMD's GPUs have no such ranks so far", devices={"per_node": 2, "kind": "hip"})


load_tests = rotating(5, always=("Refused",))


if __name__ == "__main__":
    unittest.main()
