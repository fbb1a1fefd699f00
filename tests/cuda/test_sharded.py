"""Emitted CUDA programs whose ranks divide states, gradients and weights, or send gradients in 16 bits, over the
stand-ins: the losses, norms, evaluations and weights of one process on a processor; streams that wait for each other,
also where a wait is taken out; and runs that resume."""

import json
import sys
import unittest

import numpy as np
from host import HostTrainer, Trainer, objects, without
from harness import load_file  # tests/program
from rotation import ALL, in_turn  # tests/program; isort: skip
from test_training import MODELS, TEXT, write_data

GPT = {"n_layer": 3, "n_head": 2, "n_embd": 16, "vocab_size": 256, "block_size": 8}
GROUPS = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "eps": 1e-5, "clip_grad_norm": 0.5,
          "param_groups": [{"match": "*.bias", "weight_decay": 0}]}
SAMPLES = 24


def job(ranks, accumulated=1, **groups):
    return {"model": {"source": str(MODELS / "gpt2.c"), "config": GPT},
            "data": {**TEXT, "batch_size": SAMPLES // ranks // accumulated, "sequence_length": 8, "eval_batch_size": 10}, "optimizer": GROUPS,
            "accumulation": {"num_steps": accumulated, "sync_with_dataloader": False},
            "training": {"steps": 2, "seed": 3, "eval_interval": 2, "eval_iters": "all"},
            "devices": {"per_node": ranks}, **groups}


def stage(number, **more):
    return {"zero_stage": number, "ddp": {"bucket_cap_mb": 0.01}, **more}


BF16 = {"precision": {"mixed_precision": "bf16"}}
LARGEST = {"optimizer": {**GROUPS, "norm_type": "inf"}}
AVERAGED = {"training": {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": "all", "ema": {"decay": 0.9, "evaluate": True}}}
FREE = {"optimizer": {**GROUPS, "name": "schedule_free_adamw"}, "training": {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": "all"}}
# Some parameters have codes, none of which ends with a full block.
CODED = {"optimizer": {**GROUPS, "state_dtype": "8bit"}, "model": {"source": str(MODELS / "gpt2.c"), "config": {**GPT, "n_layer": 2, "n_embd": 34}},
         "checkpoint": {"every": 1}}
# Of two ranks that divide tensors each has whole blocks.
BLOCKS = {**CODED, "model": {"source": str(MODELS / "gpt2.c"), "config": {**GPT, "n_layer": 1, "n_embd": 512}},
          "data": {**TEXT, "batch_size": 4, "sequence_length": 8}, "training": {"steps": 2, "seed": 3}}
TOGETHER = {"activation_checkpointing": "every", "checkpoint_every": 2}
# What ranks do, against what one process does. The suite runs three of them; --all: all (ninja soak).
CASES = {
    "states": (job(3, parallelism=stage(1), **LARGEST), LARGEST),
    "gradients_with_replicas": (job(4, 2, parallelism=stage(2, dp_shard=2), **AVERAGED), AVERAGED),
    "groups_of_layers": (job(2, 2, parallelism=stage(3), memory=TOGETHER, **AVERAGED), AVERAGED),
    "groups_of_layers_on_host": (job(2, 2, parallelism=stage(3, offload={"optimizer": "cpu", "param": "cpu"}), memory=TOGETHER, **AVERAGED), AVERAGED),
    "states_in_bf16": (job(2, parallelism=stage(1), **BF16), BF16),
    "weights_with_replicas_in_bf16": (job(4, 2, parallelism=stage(3, dp_shard=2), **BF16), BF16),
    "averages_of_states": (job(2, 2, parallelism=stage(1), **AVERAGED), AVERAGED),
    "averages_of_weights": (job(2, 2, parallelism=stage(3), **AVERAGED), AVERAGED),
    "averages_on_host": (job(2, 2, parallelism=stage(3, offload={"optimizer": "cpu", "param": "cpu"}), **AVERAGED), AVERAGED),
    "averages_in_bf16": (job(2, parallelism=stage(1), **AVERAGED, **BF16), {**AVERAGED, **BF16}),
    "averages_of_weights_in_bf16": (job(2, parallelism=stage(3), **AVERAGED, **BF16), {**AVERAGED, **BF16}),
    "model_of_averages": (job(4, 2, parallelism=stage(2, dp_shard=2), **FREE), FREE),
    "model_of_averages_of_states": (job(2, parallelism=stage(1), **FREE), FREE),
    "model_of_averages_of_weights": (job(2, 2, parallelism=stage(3), **FREE), FREE),
    "model_of_averages_in_bf16": (job(2, parallelism=stage(2), **FREE, **BF16), {**FREE, **BF16}),
    "model_of_averages_of_weights_in_bf16": (job(2, parallelism=stage(3), **FREE, **BF16), {**FREE, **BF16}),
    "codes": (job(3, parallelism=stage(1), **CODED), CODED),
    "codes_of_gradients": (job(4, 2, parallelism=stage(2, dp_shard=2), **CODED), CODED),
    "codes_of_weights": (job(2, 2, parallelism=stage(3), **CODED), CODED),
    "codes_on_host": (job(2, parallelism=stage(3, offload={"optimizer": "cpu", "param": "cpu"}), **CODED), CODED),
    "codes_of_averages": (job(2, 2, parallelism=stage(2), **{**CODED, **AVERAGED}), {**CODED, **AVERAGED}),
    "codes_of_tensors": (job(2, parallelism={"tp": 2}, **BLOCKS), BLOCKS),
    "wire": (job(2, parallelism={"ddp": {"bucket_cap_mb": 0.01, "comm_hook": "bf16"}}), {}),
    "wire_fp16": (job(2, parallelism={"ddp": {"bucket_cap_mb": 0.01, "comm_hook": "fp16"}}), {}),
}
SUITE = ["states", "gradients_with_replicas", "codes"]


class Sharded(unittest.TestCase):
    parts, device = None, HostTrainer
    ALONE = {}  # by what is special: the lines and weights of one process

    def alone(self, special):
        key = json.dumps(special, sort_keys=True)
        if key not in self.ALONE:
            trainer = self.built(Trainer(json.loads(json.dumps(job(1, **special)))))
            self.ALONE[key] = trainer.run(), trainer.weights(), self.averages(trainer), trainer
        return self.ALONE[key][:3]

    def averages(self, trainer):
        path = trainer.folder / "run" / "ema.safetensors"
        return load_file(path) if path.exists() else {}

    def built(self, trainer):
        write_data(trainer.folder, 1)
        trainer.build()
        return trainer

    def compare(self, name):
        described, special = CASES[name]
        trainer = self.built(self.device(json.loads(json.dumps(described)), self.parts, watched=True))
        self.check(trainer, special)
        if name == "gradients_with_replicas":
            self.miss(trainer, "accel_wait_reductions")
        if name.startswith("codes"):
            self.exchange(trainer, special)

    def exchange(self, trainer, special):
        """Checkpoints of ranks on GPUs and of one process on a processor, with the same codes, each resumed by the other."""
        one = self.ALONE[json.dumps(special, sort_keys=True)][3]
        folders = [each.folder / "run" / "checkpoints" / "checkpoint_0" for each in (trainer, one)]
        ours, theirs = (load_file(folder / "optimizer.safetensors") for folder in folders)
        self.assertEqual(ours.keys(), theirs.keys())
        for key, value in theirs.items():
            self.assertEqual((ours[key].shape, ours[key].dtype), (value.shape, value.dtype), key)
            if value.dtype == np.uint8:
                self.assertLess(np.mean(np.abs(ours[key].astype(int) - value) > 1), 1e-3, key)
        for each, folder, wanted in ((trainer, folders[1], one), (one, folders[0], trainer)):
            each.run("--resume", str(folder), "--project-dir", "on")
            for key, value in load_file(each.folder / "on" / "model.safetensors").items():
                away = np.abs(value.astype(np.float64) - wanted.weights()[key])
                self.assertLess(float(away.mean()), 0.01 * GROUPS["lr"], key)

    def miss(self, trainer, call):
        """That the program without a wait is found out."""
        trainer.rebuild(without((trainer.folder / "trainer.c").read_text(), call))
        with self.assertRaisesRegex(AssertionError, "without waiting for nccl|is not joined"):
            trainer.run("--project-dir", call)

    def check(self, trainer, special):
        lines, weights, averages = self.alone(special)
        rough = "precision" in special or "comm_hook" in trainer.job["parallelism"].get("ddp", {})
        for one, other in zip(lines, trainer.run(), strict=True):
            for key in ("loss", "grad_norm", "eval_loss"):
                if key in one:
                    np.testing.assert_allclose(other[key], one[key], rtol=2e-2 if rough else 3e-5, err_msg=key)
        for found, wanted in ((trainer.weights(), weights), (self.averages(trainer), averages)):
            self.assertEqual(found.keys(), wanted.keys())
            for key in wanted:
                away = np.abs(found[key].astype(np.float64) - wanted[key])
                self.assertLess(float(away.mean()), (0.2 if rough else 0.01) * GROUPS["lr"], key)

    def test_weights(self):
        """Ranks that divide weights too, and resume from a checkpoint to which each wrote its part; the same without what
        they wait for, and with all on the host, where they resume from one that is whole."""
        fsdp = {"sharding_strategy": "full_shard", "state_dict_type": "sharded_state_dict"}
        on_host = {"offload": {"optimizer": "cpu", "param": "cpu"}}
        ranks = 8 if ALL else 4
        trainer = self.built(self.device(job(ranks, parallelism={"fsdp": fsdp, "ddp": {"bucket_cap_mb": 0.01}}, checkpoint={"every": 1}), self.parts, watched=True))
        self.check(trainer, {})
        whole = trainer.weights()
        self.assertEqual(len(list((trainer.folder / "run" / "checkpoints" / "checkpoint_0").glob("model-*-of-*"))), ranks)
        self.go_on(trainer, whole)
        self.miss(trainer, "accel_wait_gathers")
        trainer = self.built(self.device(job(ranks, parallelism=stage(3, **on_host), checkpoint={"every": 1}), self.parts, watched=True))
        trainer.run()
        self.same(trainer, whole)
        self.go_on(trainer, whole)

    def same(self, trainer, weights):
        for key, value in trainer.weights().items():
            np.testing.assert_array_equal(value, weights[key], key)

    def go_on(self, trainer, weights):
        trainer.run("--resume", "run/checkpoints/checkpoint_0")
        self.same(trainer, weights)


def add(name):
    setattr(Sharded, f"test_{name}", lambda self: self.compare(name))


if __name__ == "__main__":
    Sharded.parts = objects()
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    for name in CASES:
        if name in (named or in_turn(SUITE, len(SUITE))) or ALL:
            add(name)
    unittest.main(argv=sys.argv[:1], defaultTest=[f"Sharded.test_{name}" for name in named] or None)
