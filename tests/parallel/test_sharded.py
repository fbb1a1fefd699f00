"""Ranks that divide what each of them would have whole, beside one process: the same losses, norms and weights; what one
number of ranks has saved goes on with another."""

import unittest

from ranks import CONFIG, BesideOne, Ranks, job_of, relative, trained

ACCUMULATING = {"num_steps": 2, "sync_with_dataloader": False}
GROUPS = {"param_groups": [{"match": "*.bias", "weight_decay": 0}, {"match": "re:ln_", "weight_decay": 0}]}


LAYERS = {**CONFIG, "n_layer": 5}


def stage(number, **axes):
    return {"zero_stage": number, "ddp": {"bucket_cap_mb": 0.01}, **axes}


class States(BesideOne):
    """zero_stage: 1."""

    def test_two_ranks(self):
        self.check(2, 6, 30, parallelism=stage(1), training={"eval_interval": 15, "eval_iters": "all"})

    def test_four_ranks_accumulating(self):
        self.check(4, 3, 20, parallelism=stage(1), accumulation=ACCUMULATING)

    def test_in_bf16(self):
        self.check(2, 6, 20, 3e-4, parallelism=stage(1), precision={"mixed_precision": "bf16"})

    def test_scaled(self):
        self.check(3, 2, 20, 1e-5, parallelism=stage(1), optimizer={"norm_type": "inf", "state_dtype": "bf16"},
                   precision={"grad_scaler": {"enabled": True, "init_scale": 1024.0, "growth_interval": 5}})


class Gradients(BesideOne):
    """zero_stage: 2."""

    def test_accumulating_with_replicas(self):
        self.check(4, 3, 20, parallelism=stage(2, dp_shard=2), config=LAYERS, accumulation=ACCUMULATING, optimizer=GROUPS)


class Weights(BesideOne):
    """zero_stage: 3."""

    def test_four_ranks(self):
        self.check(4, 3, 20, parallelism=stage(3), config=LAYERS, training={"eval_interval": 10, "eval_iters": "all"})

    def test_accumulating_with_replicas(self):
        self.check(4, 3, 20, parallelism=stage(3, dp_shard=2), config=LAYERS, accumulation=ACCUMULATING)

    def test_in_bf16_with_checkpointing(self):
        self.check(2, 6, 20, 3e-4, parallelism=stage(3), config={**LAYERS, "dropout": 0.0},
                   precision={"mixed_precision": "bf16"}, memory={"activation_checkpointing": "all"}, optimizer=GROUPS)


class Saved(unittest.TestCase):
    def test_other_numbers_of_ranks(self):
        """A run of four ranks goes on with one, two and three, divided and not, as it would have gone on."""
        jobs = {(1, 12): {}, (2, 6): stage(1), (3, 4): stage(2), (4, 3): stage(3)}
        first = job_of(4, 3, 6, parallelism=jobs[4, 3], checkpoint={"every": 3})
        saved, _ = trained(4, first)
        whole, _ = trained(1, job_of(1, 12, 6))
        for (ranks, batch), parallelism in jobs.items():
            with self.subTest(ranks=ranks):
                job = job_of(ranks, batch, 6, parallelism=parallelism)
                job["checkpoint"] = {"resume": str(saved.folder / "run" / "checkpoints" / "checkpoint_0")}
                trainer, lines = trained(ranks, job)
                self.assertEqual([line["step"] for line in lines], [4, 5, 6])
                for name, value in trainer.weights().items():
                    self.assertLess(relative(value, whole.weights()[name]), 1e-4, name)


if __name__ == "__main__":
    unittest.main()
