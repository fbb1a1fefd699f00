"""Tensors that are split over the sequence on the ranks of parallelism.tp (parallelism.megatron.sequence_parallelism): what
ranks exchange of them; the same losses, norms and weights as one process. A third of the tests of these a run; CASES=all runs
all."""

import os
import subprocess
import unittest

from ranks import GENERATOR, TREE, Ranks, job_of, library_flags, relative, start, trained
from rotation import rotating  # tests/program; isort: skip
from test_tensor import CONFIG, EVALUATED, LLAMA, Divided

SPLIT_OF = {"megatron": {"sequence_parallelism": True}}
SPLIT = {"tp": 2, **SPLIT_OF}
SEED = os.environ.get("SEED", "1")


class Parts(unittest.TestCase):
    """The collectives between parts and the whole, over MPI, against sums in the order of the ranks."""

    @classmethod
    def setUpClass(cls):
        print(f"SEED {SEED}")
        cls.program = TREE / "build" / "tests" / "parts"
        cls.program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-std=c17", "-O2", "-D_POSIX_C_SOURCE=200809L", "-I", TREE, "-o", cls.program,
                        TREE / "tests" / "parallel" / "parts.c", *library_flags("--cflags", "--libs")], check=True)

    def test_values(self):
        for ranks in (2, 3, 4):
            with self.subTest(ranks):
                result = start(self.program, ranks, SEED, "40")
                self.assertEqual((result.returncode, result.stderr), (0, ""), f"{ranks} ranks, SEED {SEED}")


class Sequence(Divided):
    """With sequence parallelism, compared with one process."""

    def compared(self, ranks, tp, **groups):
        return super().compared(ranks, tp, parallelism=SPLIT_OF, **groups)

    def test_two_ranks(self):
        """Dropout as on one rank; an evaluation. Another mesh resumes the run."""
        several = self.compared(2, 2, training=EVALUATED, checkpoint={"every": 10})
        kinds = [c["kind"] for c in several.plan()["collectives"]]
        # Two of each layer in the forward and two in the backward; of the embedding, and of the gradient of what logits are made of.
        self.assertEqual(kinds.count("reduce-scatter"), 4 * CONFIG["n_layer"] + 2)
        self.assertEqual(kinds.count("all-reduce"), 2)  # small gradients, and the norm
        more = Ranks(1, job_of(1, 3, 25, config=CONFIG, training=EVALUATED, checkpoint={"every": 10}), folder=several.folder)
        more.build()
        one, _ = trained(1, job_of(1, 3, 25, config=CONFIG, training=EVALUATED, checkpoint={"every": 10}))
        more.run("--resume", "auto")
        after = one.weights()
        for name, value in more.weights().items():
            self.assertLess(relative(value, after[name]), 1e-3, name)

    def test_activations(self):
        """What the layers keep for the backward shrinks by the number of ranks: it is a layer's input, what its norms gave, and what
        dropout and the residual are made of, next to what tp divides already."""
        config = {"n_layer": 4, "n_head": 4, "n_embd": 64, "vocab_size": 256, "block_size": 64, "dropout": 0.1}
        kept = {name: Ranks(ranks, job_of(ranks, 4, 5, config=config, parallelism=words)).plan()["arena_bytes"]["activations"]
                for name, ranks, words in (("one", 1, {}), ("tp", 4, {"tp": 4}), ("sequence", 4, {"tp": 4, **SPLIT_OF}))}
        self.assertLess(kept["sequence"], 0.65 * kept["tp"])
        self.assertLess(kept["sequence"], 0.45 * kept["one"])

    def test_with_data_parallelism(self):
        self.compared(4, 2, config={**CONFIG, "dropout": 0.0}, accumulation={"num_steps": 2, "normalize": "tokens", "sync_with_dataloader": False})

    def test_checkpointing(self):
        self.compared(4, 4, memory={"activation_checkpointing": "all"}, optimizer={"clip_grad_norm": 0.1})

    def test_largest_gradient(self):
        self.compared(2, 2, optimizer={"norm_type": "inf", "clip_grad_norm": 0.1})

    def test_in_bf16(self):
        self.compared(2, 2, tolerance=1e-3, precision={"mixed_precision": "bf16"}, optimizer={"eps": 1e-3})

    def test_adapters_in_fp16(self):
        self.compared(2, 2, tolerance=1e-3, optimizer={"eps": 1e-3}, precision={
            "mixed_precision": "fp16", "grad_scaler": {"init_scale": 1024.0, "growth_interval": 8}},
            model_keys={"lora": {"rank": 4, "targets": ["c_attn", "c_fc"], "modules_to_save": ["ln_f"]}})

    def test_ranks_that_step_alone(self):
        """Two replicas of two ranks, compared with two ranks that have all."""
        local = {"local_sgd_steps": 2}
        groups = {"config": {**CONFIG, "dropout": 0.0}}
        several, lines = trained(4, job_of(4, 3, 20, parallelism={**SPLIT, **local}, **groups))
        self.compare(several, lines, *trained(2, job_of(2, 3, 20, parallelism=local, **groups)))

    def test_llama(self):
        self.compared(2, 2, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_attention_that_is_whole(self):
        """More ranks than heads of keys."""
        self.compared(4, 4, model="llama", config=LLAMA, data={"sequence_length": 16})

    def test_experts(self):
        config = {**LLAMA, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
        self.compared(2, 2, model="qwen_moe", config=config, data={"sequence_length": 16}, steps=10)

    def test_encoder_and_decoder(self):
        config = {"num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "d_model": 32, "d_kv": 8, "d_ff": 64, "vocab_size": 256}
        self.compared(2, 2, model="t5", config=config, data={"sequence_length": 16}, steps=10)


class Refused(unittest.TestCase):
    def refused(self, words, **groups):
        trainer = Ranks(2, job_of(2, 3, 5, **groups))
        result = subprocess.run([GENERATOR, "plan", "job.yaml"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertRegex(result.stderr, r"^job\.yaml:\d+:\d+: error: ")
        self.assertIn(words, result.stderr)

    def test_positions_that_ranks_do_not_divide(self):
        self.refused("2 ranks of parallelism.tp cannot have equal parts of 13 positions", parallelism=SPLIT, config={**CONFIG, "block_size": 13})

    def test_no_ranks(self):
        self.refused("and there are no such ranks", parallelism=SPLIT_OF)


load_tests = rotating(3, always=("Parts", "Refused"))


if __name__ == "__main__":
    unittest.main()
