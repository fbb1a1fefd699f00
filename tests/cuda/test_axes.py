"""Ranks that divide a model (parallelism.tp and the other axes), in programs for GPUs over the stand-ins: compared with one process
of the same job over them, and compared with the program for the processor, with every access of host and kernels seen. A
fifth of the tests a run, as their programs take minutes to compile; --all runs all."""

import json
import shutil
import subprocess
import sys
import unittest
import unittest.mock

import numpy as np
from host import HostTrainer, Trainer, objects

from ranks import CORPUS, GENERATOR, job_of, relative  # tests/parallel; isort: skip
from rotation import rotating, in_turn  # tests/program; isort: skip

GPT = {"n_layer": 2, "n_head": 4, "n_embd": 32, "vocab_size": 257, "block_size": 12, "dropout": 0.1}
WHOLE = {**GPT, "vocab_size": 256}
RING = {"cp": 2, "cp_comm": "ring"}
MISTRAL = {"num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "hidden_size": 64,
           "intermediate_size": 128, "vocab_size": 256, "sliding_window": 100}
BERT = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 257,
        "max_position_embeddings": 16}
T5 = {"num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "d_model": 32, "d_kv": 8, "d_ff": 48, "vocab_size": 256, "gated": True}
RESIDUAL = {"tp": 2, "megatron": {"sequence_parallelism": True}}
LORA = {"model_keys": {"lora": {"rank": 2, "dropout": 0.1, "targets": ["*.c_attn", "*.c_fc"]}}}
FLOAT16 = {"precision": {"mixed_precision": "fp16"}}
EVALUATED = {"eval_interval": 4, "eval_iters": "all"}
EXPERTS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
           "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2,
           "router_aux_loss_coef": 0.01}
FREE = {"name": "schedule_free_adamw"}
KEYS = ("loss", "eval_loss", "grad_norm")
# Of a mixture's ranks, and of those that divide sequences: what a job may have in addition.
WITH_EXPERTS = [
    {"optimizer": {"param_groups": [{"match": "*norm*", "weight_decay": 0.0}]}, "training": {"ema": {"decay": 0.9}}},
    {"model_keys": {"freeze": ["*embed_tokens*", "model.layers.0.*"]}, "precision": {"param_dtype": "bf16"}},
    {"precision": {"mixed_precision": "fp16"}, "model_keys": {"lora": {"rank": 2, "targets": ["*.q_proj", "*.up_proj"]}}},
    {"optimizer": {"name": "muon"}}, {"optimizer": {"name": "lamb"}}, {"optimizer": {"name": "adafactor"}}, {"optimizer": {"state_dtype": "8bit"}},
    {"optimizer": FREE, "training": EVALUATED}]


def write_documents(folder):
    """Documents of all lengths, in documents.tok."""
    names = []
    for length in 4 * [1, 3, 60, 2, 17, 5, 90, 40, 30, 70, 12, 25]:
        names.append(f"{len(names)}.bin")
        (folder / names[-1]).write_bytes(b"".join((7 * i * length % 40).to_bytes(2, "little") for i in range(length)))
    subprocess.run([GENERATOR, "data", *names, "-o", "documents.tok", "--format", "nanogpt"], cwd=folder, check=True, capture_output=True)


class Axes(unittest.TestCase):
    parts, device = None, HostTrainer
    ALONE = {}  # by the job: what one process has left

    def made(self, kind, job, **more):
        """A trainer that has run: of one process on the processor, or of the job's ranks over the stand-ins."""
        job = json.loads(json.dumps(job))
        trainer = Trainer(job) if kind == "cpu" else self.device(job, self.parts, **more)
        (trainer.folder / "corpus.txt").write_bytes(CORPUS)
        if job["data"]["train"]["format"] == "tokens":
            write_documents(trainer.folder)
        trainer.build()
        return trainer, trainer.run()

    def alone(self, kind, batch, steps, groups):
        key = repr((kind, batch, steps, groups))
        if key not in self.ALONE:
            self.ALONE[key] = self.made(kind, job_of(1, batch, steps, **groups))
        return self.ALONE[key]

    def compare(self, found, wanted, tolerance, what):
        (several, lines), (one, expected) = found, wanted
        for line, want in zip(lines, expected, strict=True):
            for key in [key for key in KEYS if key in want]:
                away = abs(line[key] / want[key] - 1)
                self.assertLess(away, tolerance * (100 if key == "grad_norm" else 1), f"{what}: {key} of step {line['step']}")
        after = one.weights()
        self.assertEqual(sorted(after), sorted(several.weights()))
        for name, value in several.weights().items():
            if not name.endswith("key.bias"):  # the softmax takes it away, so that its gradient is rounding alone
                self.assertLess(relative(value, after[name]), 1000 * tolerance, f"{what}: {name}")

    def beside(self, ranks, parallelism, batch=2, steps=8, tolerance=1e-6, watched=False, replicas=1, **groups):
        """`ranks` ranks that take the batches of one process, or in `replicas` groups parts of them, against it."""
        found = self.made("cuda", job_of(ranks, batch, steps, parallelism=parallelism, **groups), watched=watched)
        for kind in ("cuda", "cpu"):
            self.compare(found, self.alone(kind, batch * replicas, steps, groups), tolerance, kind)
        return found[0]

    def go_on(self, trainer):
        """From its first checkpoint a run ends with the same weights."""
        wanted = trainer.weights()
        trainer.run("--resume", "run/checkpoints/checkpoint_0")
        for name, value in trainer.weights().items():
            np.testing.assert_array_equal(value, wanted[name], name)

    def said(self, trained, kind, ranks, job, *flags):
        """What a program that only runs the model forward says of the weights: on as many ranks as divide the model over the
        stand-ins, and as one process on the processor."""
        flags = ["--weights", "model.safetensors", *flags]
        programs = self.device(json.loads(json.dumps(trained.job)), self.parts, program=kind), Trainer(json.loads(json.dumps(job)))
        for program in programs:
            for name in ("corpus.txt", "run/model.safetensors"):
                shutil.copy(trained.folder / name, program.folder)
        programs[0].build()
        programs[1].build("--program", kind)
        one = subprocess.check_output([programs[1].folder / "trainer", *flags], cwd=programs[1].folder, encoding="latin-1")
        return "".join(programs[0].start(ranks, *flags)), one


class Tensor(Axes):
    def test_two(self):
        """Rows of a vocabulary that are padded, heads, dropout of parts of tensors."""
        groups = {"config": GPT, "training": EVALUATED, "checkpoint": {"every": 4}}
        trainer = self.beside(2, {"tp": 2}, **groups)
        self.go_on(trainer)
        job = job_of(1, 2, 8, **groups)
        loss, wanted = (json.loads(text)["loss"] for text in self.said(trainer, "evaluate", 2, job, "--format", "json"))
        self.assertLess(abs(loss / wanted - 1), 1e-6)
        text, wanted = self.said(trainer, "generate", 2, job, "--prompt", "12 7 99", "--tokens", "24", "--temperature", "0")
        self.assertEqual(text, wanted)

    def test_positions(self):
        """The residual split over positions, of whole micro-batches that add up; steps of four ranks."""
        self.beside(4, {"tp": 4, "megatron": {"sequence_parallelism": True}}, config=GPT,
                    accumulation={"num_steps": 2, "normalize": "tokens", "sync_with_dataloader": False})

    def test_plan(self):
        """Columns that ranks gather, and those of an input that is whole."""
        apart = [{"match": match, "style": style} for match, style in
                 (("*.c_attn", "rowwise_split_input"), ("h.*.mlp.c_fc", "colwise_gather_output"), ("*.mlp.c_proj", "rowwise_split_input"))]
        self.beside(2, {"tp": 2, "tp_plan": apart}, config=GPT)


class Shards(Axes):
    """Ranks along dp_shard divide what a rank along tp has of each tensor."""

    STILL = {**GPT, "dropout": 0.0}

    def test_weights(self):
        self.go_on(self.beside(4, {"tp": 2, "fsdp": {"sharding_strategy": "full_shard"}}, replicas=2, config=self.STILL, training=EVALUATED,
                               checkpoint={"every": 4}))

    def test_gradients(self):
        """The largest gradient of micro-batches that add up. Every access is seen."""
        self.beside(4, {"tp": 2, "zero_stage": 2}, batch=1, steps=3, watched=True, replicas=2, config=self.STILL,
                    optimizer={"norm_type": "inf", "clip_grad_norm": 0.1}, accumulation={"num_steps": 2, "sync_with_dataloader": False})


    def test_schedule_free(self):
        """Whose model is an average of which a rank has its part."""
        for mesh in in_turn(({}, {"zero_stage": 1}, {"zero_stage": 2}, {"zero_stage": 3}), 4):
            with self.subTest(**mesh):
                self.go_on(self.beside(4 if mesh else 2, {"tp": 2, **mesh}, steps=10, replicas=2 if mesh else 1, config=self.STILL, training={**EVALUATED, "eval_interval": 5},
                                       optimizer=FREE, checkpoint={"every": 5}))


class Sequences(Axes):
    """Dropout draws what one process draws, of a rank's positions."""

    def test_heads(self):
        self.go_on(self.beside(2, {"sp": 2}, config=WHOLE, training=EVALUATED, checkpoint={"every": 4}))

    def test_keys(self):
        self.beside(2, {"cp": 2}, config=WHOLE, training=EVALUATED, checkpoint={"every": 4}, data={"eval_batch_size": 7})

    def test_with_matrices(self):
        """Two ranks of each sequence, of which each has a part of the matrices; the largest gradient. Every access is seen, and whether it
        waits for the one before."""
        self.beside(4, {"tp": 2, "cp": 2}, config=GPT, watched=True, steps=3, optimizer={"norm_type": "inf", "clip_grad_norm": 0.1})

    def test_other_keys(self):
        """Sums of ranks are rounded to float16, as one process does not."""
        cases = [({"sp": 2}, LORA), (RESIDUAL, LORA), ({"cp": 2}, FLOAT16), (RESIDUAL, FLOAT16), ({"sp": 2}, FLOAT16)]
        for parallelism, more in in_turn(cases, len(cases)):
            with self.subTest(**parallelism, **more):
                found = self.made("cuda", job_of(2, 2, 5, parallelism=parallelism, config=WHOLE, **more))
                self.compare(found, self.alone("cuda", 2, 5, {"config": WHOLE, **more}), 1e-6 if more is LORA else 1e-5, "cuda")

    def test_documents(self):
        """Documents in rows: ranks along sp have all positions of some heads, and keys go round those along cp."""
        job = {"model": "../../tests/reference/models/packed", "config": {"width": 12, "block_size": 32}, "accumulation": {"normalize": "tokens"},
               "data": {"train": {"path": "documents.tok", "format": "tokens"}, "packing": "documents", "sequence_length": 32, "eval_fraction": 0}}
        for parallelism in ({"sp": 2}, RING):
            self.beside(2, parallelism, batch=3, **job)

    def test_ring(self):
        self.go_on(self.beside(2, RING, config=WHOLE, training=EVALUATED, checkpoint={"every": 4}, data={"eval_batch_size": 7}))

    def test_ring_of_windows(self):
        """Chunks of several blocks, heads that share keys, with matrices divided, too. Every access is seen."""
        self.beside(4, {"tp": 2, **RING}, model="mistral", config=MISTRAL, data={"sequence_length": 276}, steps=3, watched=True)

    def test_ring_both_directions(self):
        """Keys of four ranks, attention to later positions, too."""
        self.beside(4, {**RING, "cp": 4}, batch=6, model="bert", config=BERT, data={"sequence_length": 16, "masking": {"mask_token": 256}},
                    accumulation={"normalize": "tokens"})

    def test_ring_of_biases(self):
        """T5's learnt bias of both directions, whose gradient is a sum over samples, and the mask of its decoder."""
        self.go_on(self.beside(2, RING, model="t5", config=T5, data={"sequence_length": 32}, training=EVALUATED, checkpoint={"every": 4}))

    def test_ring_of_padding(self):
        """A bias of all ranks' keys, which is one for all queries and is not learnt; some samples are padding alone."""
        corpus = b"".join(CORPUS[i:i + 60].ljust(120) for i in range(0, len(CORPUS), 60))
        with unittest.mock.patch(f"{__name__}.CORPUS", corpus):
            self.beside(2, RING, model="bert", config={**BERT, "pad_token_id": 32}, accumulation={"normalize": "tokens"},
                        data={"sequence_length": 16, "masking": {"mask_token": 256}})


class Experts(Axes):
    def test_sequences(self):
        """The balance is of a sequence's ranks; and two of these compared with two that have all experts."""
        groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}}
        self.beside(2, {"sp": 2}, steps=5, **groups)
        found = self.made("cuda", job_of(4, 2, 5, parallelism={"cp": 2, "ep": 2}, **groups))
        self.compare(found, self.made("cuda", job_of(4, 2, 5, parallelism={"cp": 2}, **groups)), 1e-6, "replicas")

    def test_two(self):
        """Beside as many ranks that have all experts: a balance of a rank's own batches is not that of all of them."""
        groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16, "eval_batch_size": 7}, "training": EVALUATED}
        found = self.made("cuda", job_of(2, 3, 8, parallelism={"ep": 2}, checkpoint={"every": 4}, **groups))
        self.compare(found, self.made("cuda", job_of(2, 3, 8, **groups)), 1e-6, "replicas")
        self.go_on(found[0])

    def test_other_keys(self):
        for more in in_turn(WITH_EXPERTS, len(WITH_EXPERTS)):
            groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}, **more}
            with self.subTest(**more):
                found = self.made("cuda", job_of(2, 2, 5, parallelism={"ep": 2}, **groups))
                self.compare(found, self.made("cuda", job_of(2, 2, 5, **groups)), 1e-6, "replicas")

    def test_shards(self):
        """Ranks with the same experts shard these, all ranks of a group what they have in common."""
        groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}}
        for stage in in_turn((1, 2, 3), 3):
            with self.subTest(stage=stage):
                found = self.made("cuda", job_of(4, 2, 5, parallelism={"ep": 2, "zero_stage": stage}, **groups))
                self.compare(found, self.made("cuda", job_of(4, 2, 5, parallelism={"zero_stage": stage}, **groups)), 1e-6, "replicas")

    def test_replicas(self):
        """Rows that no expert takes; the largest gradient. Every access is seen."""
        groups = {"model": "qwen_moe", "config": {**EXPERTS, "capacity_factor": 1.0}, "data": {"sequence_length": 16},
                  "optimizer": {"norm_type": 1, "clip_grad_norm": 0.1}}
        found = self.made("cuda", job_of(4, 2, 3, parallelism={"ep": 2}, **groups), watched=True)
        self.compare(found, self.made("cuda", job_of(4, 2, 3, **groups)), 1e-6, "replicas")

    def test_with_matrices(self):
        """Squares of parts of matrices, of a rank's experts and of what all ranks have, together."""
        groups = {"model": "qwen_moe", "config": EXPERTS, "data": {"sequence_length": 16}}
        found = self.made("cuda", job_of(4, 3, 8, parallelism={"tp": 2, "ep": 2}, **groups))
        self.compare(found, self.made("cuda", job_of(2, 3, 8, **groups)), 1e-6, "replicas")


load_tests = rotating(15)


if __name__ == "__main__":
    Axes.parts = objects()
    unittest.main(argv=sys.argv[:1], defaultTest=[word for word in sys.argv[1:] if not word.startswith("-")] or None)
