"""Ranks that divide what each of them would have whole, against one process: the same losses, norms and weights over 50 steps.
Half of the tests a run; CASES=all runs all."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from ranks import CONFIG, GENERATOR, MODELS, ComparedWithOne, Ranks, job_of
from rotation import rotating  # tests/program; isort: skip

ACCUMULATING = {"num_steps": 2, "sync_with_dataloader": False}
GROUPS = {"param_groups": [{"match": "*.bias", "weight_decay": 0}, {"match": "re:ln_", "weight_decay": 0}]}


LAYERS = {**CONFIG, "n_layer": 5}


def stage(number, **axes):
    return {"zero_stage": number, "ddp": {"bucket_cap_mb": 0.01}, **axes}


class States(ComparedWithOne):
    """zero_stage: 1."""

    def test_two_ranks(self):
        self.check(2, 6, parallelism=stage(1), training={"eval_interval": 25, "eval_iters": "all"})

    def test_four_ranks_accumulating(self):
        self.check(4, 3, parallelism=stage(1), accumulation=ACCUMULATING)

    def test_in_bf16(self):
        self.check(2, 6, tolerance=3e-4, parallelism=stage(1), precision={"mixed_precision": "bf16"})

    def test_scaled(self):
        self.check(3, 2, tolerance=3e-5, parallelism=stage(1), optimizer={"norm_type": "inf", "state_dtype": "bf16"},
                   precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})


class Gradients(ComparedWithOne):
    """zero_stage: 2."""

    def test_accumulating_with_replicas(self):
        self.check(4, 3, parallelism=stage(2, dp_shard=2), config=LAYERS, accumulation=ACCUMULATING, optimizer=GROUPS)


class Weights(ComparedWithOne):
    """zero_stage: 3."""

    def test_four_ranks(self):
        self.check(4, 3, parallelism=stage(3), config=LAYERS, training={"eval_interval": 25, "eval_iters": "all"})

    def test_accumulating_with_replicas(self):
        self.check(4, 3, parallelism=stage(3, dp_shard=2), config=LAYERS, accumulation=ACCUMULATING)

    def test_loops_that_begin_with_the_second_layer(self):
        config = {"num_layers": 4, "num_decoder_layers": 3, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 32, "vocab_size": 256}
        self.check(2, 3, steps=10, model="t5", config=config, parallelism=stage(3), data={"sequence_length": 16})

    def test_in_bf16_with_checkpointing(self):
        self.check(2, 6, tolerance=3e-4, parallelism=stage(3), config={**LAYERS, "dropout": 0.0},
                   precision={"mixed_precision": "bf16"}, memory={"activation_checkpointing": "all"}, optimizer=GROUPS)

    def test_layers_that_run_again_together(self):
        """They come and go together, the last one of five alone. Of a stage's four, three and one, whose slots begin again within a unit."""
        for which, every, axes, layers in ((2, 2, {}, 5), (3, 2, {}, 5), (3, 3, {"pp": 2}, 8)):
            with self.subTest(stage=which, **axes):
                trainer, _ = self.check(2 * axes.get("pp", 1), 3, steps=20, parallelism=stage(which, **axes), config={**CONFIG, "n_layer": layers},
                                        accumulation=ACCUMULATING, training={"eval_interval": 10, "eval_iters": "all"},
                                        memory={"activation_checkpointing": "every", "checkpoint_every": every})
                trainer.generate()
                self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")


class Unreached(ComparedWithOne):
    """A parameter that no gradient reaches in layers that are held one at a time: a router's bias for the choice alone."""

    def test_layers(self):
        config = {"num_hidden_layers": 4, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 16, "vocab_size": 256,
                  "kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 4, "n_routed_experts": 4,
                  "num_experts_per_tok": 2, "moe_intermediate_size": 8}
        for which, steps in ((1, 1), (2, 1), (3, 1), (3, 2)):
            with self.subTest(stage=which, steps=steps):
                trainer, _ = self.check(2, 6, model="deepseek_v3", config=config, data={"sequence_length": 12}, parallelism=stage(which),
                                        accumulation={"num_steps": steps})
                trainer.generate()
                self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")


class Ignored(ComparedWithOne):
    """ignored_modules: of two loops over layers, one whose layers are whole on every rank."""

    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, folder)
        loop = '  for (int i = 0; i < c.n_layer; i++) x = block(nth(s, "h", i), x, c);\n'
        text = (MODELS / "gpt2.c").read_text()
        self.assertEqual(text.count(loop), 1)
        (folder / "twice.c").write_text(text.replace(loop, loop + loop.replace('"h"', '"g"')))
        self.model = str(folder / "twice")

    def parallelism(self, *names):
        return {"fsdp": {"reshard_after_forward": True, "ignored_modules": list(names)}}

    def test_one_of_two(self):
        trainer, _ = self.check(2, 6, model=self.model, parallelism=self.parallelism("g.*.ln_1.weight"))
        gathered = {c["what"].split()[5][0] for c in trainer.plan()["collectives"] if "layer" in c["what"]}
        self.assertEqual(gathered, {"h"})

    def test_refused(self):
        for names, words in ((("re:^[gh][.]",), "has no loop over layers"), (("f.*",), "matches the name of no parameter")):
            job = Ranks(2, job_of(2, 6, 10, model=self.model, parallelism=self.parallelism(*names)))
            result = subprocess.run([GENERATOR, job.path, "-o", job.folder / "trainer.c"], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)


class Shared(ComparedWithOne):
    """ALBERT: all layers are one layer's weights, so ranks divide states alone, whatever else they were to divide."""

    ROUNDING = ("key.bias",)
    CONFIG = {"num_hidden_layers": 4, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 8, "vocab_size": 256, "embedding_size": 4}

    def compared(self, ranks, which, config, steps=2, **more):
        return self.check(ranks, 12 // ranks, 10, model="albert", config={**self.CONFIG, **config}, data={"sequence_length": 12},
                          parallelism=which, accumulation={"num_steps": steps}, **more)[0]

    def test_layers(self):
        evaluated = {"training": {"eval_interval": 5, "eval_iters": "all"}}
        for ranks, which, config, steps in ((2, stage(2), {}, 1), (3, stage(3), {}, 2), (2, stage(3), {"num_hidden_groups": 2}, 2)):
            with self.subTest(ranks=ranks, which=which, config=config, steps=steps):
                trainer = self.compared(ranks, which, config, steps, **evaluated)
                trainer.generate()
                self.assertRegex(trainer.command("audit", "trainer.c"), r"\n\d+ hold, 0 broken$")

    def test_plan(self):
        """What is planned is what stage 1 takes, and the reason."""
        plans = []
        for which in (1, 2, 3):
            trainer = Ranks(2, job_of(2, 6, 10, model="albert", config=self.CONFIG, data={"sequence_length": 12}, parallelism=stage(which)))
            plans.append(trainer.command("plan", "job.yaml"))
        self.assertEqual(plans[1], plans[2])
        self.assertRegex(plans[2], r"\nwhole +albert.encoder\S+ and the other parameters, .*: several calls share it")
        self.assertEqual([line for line in plans[1].splitlines() if not line.startswith("whole ")], plans[0].splitlines())

    def test_names(self):
        """Functions and parameters that the model does not have are refused here, too."""
        for key, name, words in (("transformer_cls_names_to_wrap", "blok", "calls no function 'blok' that has parameters"),
                                 ("ignored_modules", "wpee.*", "matches the name of no parameter")):
            which = {"fsdp": {"reshard_after_forward": True, key: [name]}}
            job = Ranks(2, job_of(2, 6, 10, model="albert", config=self.CONFIG, data={"sequence_length": 12}, parallelism=which))
            result = subprocess.run([GENERATOR, job.path, "-o", job.folder / "trainer.c"], capture_output=True, text=True)
            self.assertEqual(result.returncode, 2, key)
            self.assertIn(words, result.stderr)


load_tests = rotating(4)


if __name__ == "__main__":
    unittest.main()
