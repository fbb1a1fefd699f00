"""Ranks that divide sequences (parallelism.sp) against one process: the same losses, norms and weights, on models with attention,
with data parallelism or alone; a run resumes on any mesh."""

import subprocess
import unittest

from ranks import GENERATOR, BesideOne, Ranks, job_of, relative, trained

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 12}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 48,
         "head_dim": 8, "vocab_size": 256}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}
SP = {"sp": 2}


class Sequences(BesideOne):
    """`ranks` ranks, of which each `sp` have positions of the same samples."""

    def beside(self, ranks, sp, batch=3, steps=20, tolerance=1e-6, **groups):
        config = groups.pop("config", CONFIG)
        several, lines = trained(ranks, job_of(ranks, batch, steps, config=config, parallelism={"sp": sp}, **groups))
        one, wanted = self.one(ranks // sp * batch, steps, config=config, **groups)
        for line, want in zip(lines, wanted, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss")]:
                self.assertLess(abs(line[name] / want[name] - 1), tolerance, f"{name} of step {line['step']}")
            self.assertLess(abs(line["grad_norm"] / want["grad_norm"] - 1), 100 * tolerance, f"norm of step {line['step']}")
        after = one.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            self.assertLess(relative(value, after[name]), 1000 * tolerance, name)
        return several

    def test_two_ranks(self):
        several = self.beside(2, 2, training=EVALUATED)
        collectives = several.plan()["collectives"]
        # Queries, keys and values, then what attention gives, in each of two layers, forward and back.
        parts = [c for c in collectives if c["axis"] == "sp"]
        self.assertEqual([(c["kind"], c["bytes"]) for c in parts], 16 * [("all-to-all", 3 * 6 * 32 * 4)])
        self.assertEqual({c["axis"] for c in collectives}, {"sp", "dp_replicate"})

    def test_four_ranks(self):
        self.beside(4, 4, training=EVALUATED)

    def test_with_data_parallelism(self):
        self.beside(4, 2, training=EVALUATED)

    def test_accumulation(self):
        self.beside(2, 2, accumulation={"num_steps": 3, "normalize": "tokens", "sync_with_dataloader": False})

    def test_checkpointing(self):
        self.beside(2, 2, memory={"activation_checkpointing": "all"})

    def test_scaler(self):
        self.beside(2, 2, precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})

    def test_in_bf16(self):
        self.beside(2, 2, tolerance=1e-3, precision={"mixed_precision": "bf16"}, optimizer={"eps": 1e-3})

    def test_grouped_heads(self):
        self.beside(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16})


class Files(unittest.TestCase):
    """Weights and states are whole on each rank."""

    def resumed(self, before, after):
        """A run of 5 steps on one mesh that goes on to 10 on another: (ranks, batch, keys of parallelism) each."""
        job = {"config": CONFIG, "checkpoint": {"every": 5}}
        one, wanted = trained(1, job_of(1, 4, 10, **job))
        first = Ranks(before[0], job_of(before[0], before[1], 5, parallelism=before[2], **job))
        first.build()
        first.run()
        second = Ranks(after[0], job_of(after[0], after[1], 10, parallelism=after[2], **job), folder=first.folder)
        second.build()
        for line, want in zip(second.run("--resume", "auto"), wanted, strict=True):
            self.assertLess(abs(line["loss"] / want["loss"] - 1), 1e-6, f"loss of step {line['step']}")
        after = one.weights()
        for name, value in second.weights().items():
            self.assertLess(relative(value, after[name]), 1e-3, name)

    def test_from_two_ranks_to_one(self):
        self.resumed((2, 4, SP), (1, 4, {}))

    def test_from_parts_of_matrices_to_two_times_two(self):
        self.resumed((2, 4, {"tp": 2}), (4, 2, SP))


class Refused(unittest.TestCase):
    def refused(self, words, ranks=2, **groups):
        trainer = Ranks(ranks, job_of(ranks, 3, 5, **{"parallelism": SP, "config": CONFIG, **groups}))
        result = subprocess.run([GENERATOR, "plan", "job.yaml"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0, words)
        self.assertIn(words, result.stderr)

    def test_ranks_that_it_does_not_divide(self):
        self.refused("'parallelism.sp' is 2, which does not divide the job's 3 ranks", ranks=3)

    def test_more_ranks_than_heads(self):
        self.refused("'attention' has 4 heads of queries and 2 of keys, and each rank takes as many whole heads of both", ranks=4,
                     parallelism={"sp": 4}, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_positions(self):
        self.refused("'parallelism.sp' is 2, which does not divide the 11 positions of a sequence", config={**CONFIG, "block_size": 11})

    def test_dropout(self):
        self.refused("'dropout' draws random numbers", config={**CONFIG, "dropout": 0.1})

    def test_positions_that_are_mixed(self):
        self.refused("'lstm' needs other positions than a rank has", model="lstm", data={"sequence_length": 8},
                     config={"n_embd": 8, "hidden_size": 8})

    def test_with_tensor_parallelism(self):
        self.refused("'parallelism.sp' does not go with 'parallelism.tp'", ranks=4, parallelism={"sp": 2, "tp": 2})

    def test_gpus(self):
        self.refused("programs for GPUs divide no sequences so far", devices={"per_node": 2, "kind": "cuda"})


if __name__ == "__main__":
    unittest.main()
