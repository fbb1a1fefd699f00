"""Ranks that divide sequences (parallelism.sp and cp) against one process: the same losses, norms and weights, on models with attention,
with data parallelism or alone; a run resumes on any mesh. A fifth of the tests a
day; CASES=all runs all."""

import collections
import subprocess
import unittest
import unittest.mock

from ranks import CORPUS, GENERATOR, ComparedWithOne, Ranks, job_of, relative, trained
from rotation import rotating  # tests/program; isort: skip

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 256, "block_size": 12}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "intermediate_size": 48,
         "head_dim": 8, "vocab_size": 256}
BERT = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 257,
        "max_position_embeddings": 16}
T5 = {"num_layers": 3, "num_decoder_layers": 3, "num_heads": 4, "d_model": 16, "d_kv": 4, "d_ff": 32, "vocab_size": 256}
EVALUATED = {"eval_interval": 10, "eval_iters": "all"}
SP = {"sp": 2}


def along(axis, ranks):
    """The keys of ranks along sp, along cp, which gather keys, or round which keys go."""
    return {"cp": ranks, "cp_comm": "ring"} if axis == "ring" else {axis: ranks}


class Sequences(ComparedWithOne):
    """`ranks` ranks, of which each so many along `axis` have positions of the same samples."""

    def compared(self, ranks, each, axis="sp", batch=3, steps=20, tolerance=1e-6, **groups):
        config = groups.pop("config", CONFIG)
        several, lines = trained(ranks, job_of(ranks, batch, steps, config=config, parallelism=along(axis, each), **groups))
        self.agree(several, lines, *self.one(ranks // each * batch, steps, config=config, **groups), tolerance)
        return several

    def agree(self, several, lines, one, wanted, tolerance=1e-6):
        for line, want in zip(lines, wanted, strict=True):
            for name in [name for name in want if name in ("loss", "eval_loss")]:
                self.assertLess(abs(line[name] / want[name] - 1), tolerance, f"{name} of step {line['step']}")
            self.assertLess(abs(line["grad_norm"] / want["grad_norm"] - 1), 100 * tolerance, f"norm of step {line['step']}")
        after = one.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            if not name.endswith("key.bias"):  # the softmax takes it away, so that its gradient is rounding alone
                self.assertLess(relative(value, after[name]), 1000 * tolerance, name)

    def test_two_ranks(self):
        several = self.compared(2, 2, training=EVALUATED)
        collectives = several.plan()["collectives"]
        # Queries, keys and values, then what attention gives, in each of two layers, forward and back.
        parts = [c for c in collectives if c["axis"] == "sp"]
        self.assertEqual([(c["kind"], c["bytes"]) for c in parts], 16 * [("all-to-all", 3 * 6 * 32 * 4)])
        self.assertEqual({c["axis"] for c in collectives}, {"sp", "dp_replicate"})

    def test_gradients_as_factors(self):
        """A factor is a matrix's product, so that those of parts of sequences add up to those of whole ones."""
        groups = {"config": CONFIG, "accumulation": {"num_steps": 2}}
        for axis, hook in (("sp", "power_sgd"), ("ring", "batched_power_sgd")):
            with self.subTest(axis=axis, hook=hook):
                ddp = {"ddp": {"comm_hook": hook, "comm_state_option": {"matrix_approximation_rank": 2, "start_powerSGD_iter": 2}}}
                one, wanted = trained(2, job_of(2, 3, 20, parallelism=ddp, **groups))
                several, lines = trained(4, job_of(4, 3, 20, parallelism={**along(axis, 2), **ddp}, **groups))
                self.agree(several, lines, one, wanted)

    def test_four_ranks(self):
        self.compared(4, 4, training=EVALUATED, precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})

    def test_with_data_parallelism(self):
        self.compared(4, 2, training=EVALUATED, data={"eval_batch_size": 7})

    def test_accumulation(self):
        """Of what is made again in the backward."""
        self.compared(2, 2, accumulation={"num_steps": 3, "normalize": "tokens", "sync_with_dataloader": False},
                    memory={"activation_checkpointing": "all"})

    def test_in_bf16(self):
        """Weights, too: a gradient of rows that are cut for a rank is float32."""
        self.compared(2, 2, tolerance=1e-3, precision={"param_dtype": "bf16"}, optimizer={"eps": 1e-3})

    def test_in_fp16(self):
        """A scale at which neither overflows: a mean over fewer positions has larger gradients on a rank."""
        for axis in ("sp", "cp"):
            with self.subTest(axis):
                self.compared(2, 2, axis, tolerance=1e-3, optimizer={"eps": 1e-3}, precision={
                    "mixed_precision": "fp16", "grad_scaler": {"init_scale": 1024.0, "growth_interval": 8}})

    def test_adapters(self):
        self.compared(2, 2, model_keys={"lora": {"rank": 4, "targets": ["c_attn", "c_fc"], "modules_to_save": ["ln_f"]}})

    def test_dropout(self):
        """Each element has the random number that one process with as many micro-batches draws for it."""
        config = {**CONFIG, "dropout": 0.1}
        one = self.one(3, 20, config=config, training=EVALUATED, accumulation={"num_steps": 4, "sync_with_dataloader": False})
        for ranks, each, axis in ((2, 2, "sp"), (4, 2, "ring")):
            steps = {"num_steps": 4 * each // ranks, "sync_with_dataloader": False}
            several = trained(ranks, job_of(ranks, 3, 20, config=config, training=EVALUATED, accumulation=steps, parallelism=along(axis, each)))
            self.agree(*several, *one)

    def test_grouped_heads(self):
        self.compared(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_gathered_keys(self):
        """Keys and values of all positions, in each of two layers, forward; sums of their gradients back."""
        several = self.compared(2, 2, "cp", training=EVALUATED)
        parts = [c for c in several.plan()["collectives"] if c["axis"] == "cp"]
        self.assertEqual([(c["kind"], c["bytes"]) for c in parts],
                         4 * [("all-gather", 3 * 12 * 32 * 4)] + 4 * [("reduce-scatter", 3 * 12 * 32 * 4)])

    def test_gathered_keys_with_data_parallelism(self):
        self.compared(4, 2, "cp", training=EVALUATED, data={"eval_batch_size": 7})

    def test_more_ranks_than_heads_of_keys(self):
        self.compared(4, 4, "cp", model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_ring(self):
        """Keys and values go to the next rank in each of two layers, back with the gradients of others after them."""
        several = self.compared(4, 4, "ring", config={**CONFIG, "block_size": 16}, training=EVALUATED, data={"eval_batch_size": 7})
        parts = [c for c in several.plan()["collectives"] if c["axis"] == "cp"]
        self.assertEqual({(c["kind"], c["bytes"]) for c in parts}, {("send", 2 * 3 * 4 * 32 * 4)})
        there, back = 3 * ["keys"], ["keys", "keys", "gradients", "keys", "gradients", "gradients"]
        self.assertEqual([c["what"].split()[0] for c in parts], 2 * there + 2 * back)

    def test_ring_with_data_parallelism(self):
        """Of chunks of several blocks of queries and a rest, with grouped heads."""
        self.compared(4, 2, "ring", model="llama", config=LLAMA, data={"sequence_length": 276})

    def test_ring_in_bf16(self):
        self.compared(2, 2, "ring", tolerance=1e-3, precision={"mixed_precision": "bf16"}, optimizer={"eps": 1e-3},
                    memory={"activation_checkpointing": "all"}, accumulation={"num_steps": 2, "sync_with_dataloader": False})

    def test_ring_of_windows(self):
        self.compared(4, 4, "ring", model="mistral", config={**LLAMA, "head_dim": 16, "sliding_window": 20}, data={"sequence_length": 144})

    def packed(self, ranks, **parallelism):
        """A trainer of documents in rows that has run, and its metrics."""
        job = job_of(ranks, 3, 20, model="../../tests/reference/models/packed", config={"width": 12, "block_size": 32}, parallelism=parallelism,
                     accumulation={"normalize": "tokens"}, data={"packing": "documents", "sequence_length": 32, "eval_fraction": 0})
        job["data"]["train"] = {"path": "all.tok", "format": "tokens"}
        trainer, names = Ranks(ranks, job), []
        for length in 4 * [1, 3, 60, 2, 17, 5, 90, 40, 30, 70, 12, 25]:
            names.append(f"{len(names)}.bin")
            (trainer.folder / names[-1]).write_bytes(b"".join((7 * i * length % 40).to_bytes(2, "little") for i in range(length)))
        subprocess.run([GENERATOR, "data", *names, "-o", "all.tok", "--format", "nanogpt"], cwd=trainer.folder, check=True, capture_output=True)
        trainer.build()
        return trainer, trainer.run()

    def test_documents(self):
        one = self.packed(1)
        for axis in ("sp", "ring"):
            self.agree(*self.packed(2, **along(axis, 2)), *one)

    def test_both_directions(self):
        """Attention to later positions, too, and targets that count for nothing."""
        for axis in ("sp", "cp", "ring"):
            self.compared(2, 2, axis, model="bert", config=BERT, data={"sequence_length": 16, "masking": {"mask_token": 256}},
                        accumulation={"normalize": "tokens"}, training=EVALUATED)

    def test_encoder_and_decoder(self):
        """Scores that gain a bias, of keys that have the encoder's positions, too."""
        several = self.compared(2, 2, model="t5", config=T5, data={"sequence_length": 16}, training=EVALUATED)
        parts = [c for c in several.plan()["collectives"] if c["axis"] == "sp"]
        # Queries, keys, values and what attention gives, forward and back, of three attentions in each pair of layers.
        self.assertEqual([(c["kind"], c["bytes"]) for c in parts], 3 * 3 * 8 * [("all-to-all", 3 * 8 * 16 * 4)])
        several = self.compared(4, 2, "cp", model="t5", config=T5, data={"sequence_length": 16}, training=EVALUATED)
        parts = [c for c in several.plan()["collectives"] if c["axis"] == "cp"]
        self.assertEqual(collections.Counter((c["kind"], c["bytes"]) for c in parts),
                         {("all-gather", 3 * 16 * 16 * 4): 3 * 3 * 2, ("reduce-scatter", 3 * 16 * 16 * 4): 3 * 3 * 2})


    def test_ring_of_biased_scores(self):
        """Whose gradient is added up from all ranks' rows."""
        self.compared(4, 4, "ring", model="t5", config={**T5, "gated": True}, data={"sequence_length": 80})

    def test_padding(self):
        """A bias of all ranks' keys, which is one for all queries; some samples are padding alone."""
        corpus = b"".join(CORPUS[i:i + 60].ljust(120) for i in range(0, len(CORPUS), 60))
        with unittest.mock.patch("ranks.CORPUS", corpus):
            for axis in ("sp", "cp", "ring"):
                self.compared(2, 2, axis, model="bert", config={**BERT, "pad_token_id": 32}, accumulation={"normalize": "tokens"},
                              data={"sequence_length": 16, "masking": {"mask_token": 256}})


class Files(unittest.TestCase):
    """Weights and states are whole on each rank."""

    def resumed(self, before, after):
        """A run of 5 steps on one mesh that resumes on another up to step 10: (ranks, batch, keys of parallelism) each."""
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

    def test_from_heads_to_keys(self):
        self.resumed((2, 4, SP), (2, 4, {"cp": 2}))

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
        self.refused("'parallelism.sp' is 2, and the 11 positions of a sequence have no 2 equal parts", config={**CONFIG, "block_size": 11})
        self.refused("'parallelism.cp' is 2, and the 14 positions of a sequence have no 4 equal parts", config={**CONFIG, "block_size": 14},
                     parallelism={"cp": 2})

    def test_window(self):
        self.refused("'attention' with a window", model="mistral", config={**LLAMA, "sliding_window": 8}, data={"sequence_length": 16},
                     parallelism={"cp": 2})

    def test_products_of_positions(self):
        self.refused("'matmul' mixes positions, and ranks have no equal parts of its heads", model="gemma2",
                     config={**LLAMA, "num_attention_heads": 3, "num_key_value_heads": 3}, data={"sequence_length": 16})

    def test_dropout(self):
        """Of parts that four numbers at a time do not make up."""
        self.refused("'dropout' draws four random numbers at a time", parallelism={"cp": 2},
                     config={**CONFIG, "n_head": 2, "n_embd": 6, "dropout": 0.1})

    def test_positions_that_are_mixed(self):
        self.refused("'lstm' needs other positions than a rank has", model="lstm", data={"sequence_length": 8},
                     config={"n_embd": 8, "hidden_size": 8})

    def test_both(self):
        both = {"ranks": 4, "parallelism": {"sp": 2, "cp": 2}}
        self.refused("'parallelism.cp' times 'parallelism.sp' is 4, and the 12 positions of a sequence have no 8 equal parts", **both)
        self.refused("'dropout' draws random numbers by a rank's position along one axis, and two divide these",
                     config={**CONFIG, "block_size": 16, "dropout": 0.1}, **both)

    def test_gpus(self):
        """What runs on NVIDIA's is in tests/cuda/test_axes.py."""
        self.refused("programs for AMD's GPUs have no such ranks so far", devices={"per_node": 2, "kind": "hip"})


load_tests = rotating(5, always=("Refused",))


if __name__ == "__main__":
    unittest.main()
