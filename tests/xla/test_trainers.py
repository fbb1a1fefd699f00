"""What programs for XLA compute: the example models whose operations have a rule, next to the programs for the processor from the
same weights and batches. Losses of 20 steps within 1e-5, in bfloat16 within twice its rounding; the optimizers; what a run resumes from, on both
devices; several devices next to as many processes. SKIPPED without a plugin.

One of the models, one of the optimizers and one of the jobs for several devices a run, as SEED says (tests/program/rotation.py).

usage: test_trainers.py [NAME...], of a case or a class; --all: every one of them (ninja soak)"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

import jsonschema
import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "parallel")]

from harness import GENERATOR, MODELS, Trainer, load_file, relative  # noqa: E402
from ranks import start  # noqa: E402
from rotation import ALL, in_turn, is_in_turn  # noqa: E402

STEPS = 20
CFLAGS = "-std=c17 -O1 -march=native -Wall -Wextra -Wpedantic -Werror"
TEXT = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3, "sequence_length": 9}
ROWS = {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 5, "features": 64, "eval_fraction": 0.2}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_size": 24,
         "intermediate_size": 40, "vocab_size": 256}
GPT = {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 256, "block_size": 9}
BLOCKS = {"block_out_channels.0": 4, "block_out_channels.1": 8}
EXPERTS = {**{key: HEADS[key] for key in HEADS if key != "intermediate_size"}, "num_experts": 4, "num_experts_per_tok": 2,
           "moe_intermediate_size": 12, "shared_expert_intermediate_size": 12, "router_aux_loss_coef": 0.01}
ENCODER = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 24, "vocab_size": 30,
           "max_position_embeddings": 9}
ADAMW = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 0.5}


EVALUATED = {"steps": STEPS, "seed": 3, "eval_interval": 5, "eval_iters": 2}
KEYS = ("loss", "eval_loss", "accuracy", "perplexity")


def case(model, config, data, **groups):
    return {"model": {"source": str(MODELS / f"{model}.c"), "config": config}, "data": data,
            "training": {"steps": STEPS, "seed": 3}, "optimizer": ADAMW, **groups}


# What the suite runs each time: most keys on one model. An epoch is shorter than the run and ends with a short step.
MOST = case("gpt2", GPT, TEXT, accumulation={"num_steps": 3}, schedule={"name": "cosine", "warmup_steps": 2, "min_lr": 1e-5},
            optimizer={**ADAMW, "param_groups": [{"match": "*.bias", "weight_decay": 0, "lr": 1e-2, "betas": [0.8, 0.9]}]},
            training={**EVALUATED, "ema": {"decay": 0.9, "evaluate": True}}, checkpoint={"every": 10})
MODELS_OF = {
    "nanogpt": case("nanogpt", {**GPT, "bias": False}, TEXT, accumulation={"num_steps": 2}, checkpoint={"every": 10},
                    training={**EVALUATED, "ema": {"decay": 0.9, "evaluate": True}}, optimizer={
                        "name": "muon", "lr": 0.02, "weight_decay": 0.1, "clip_grad_norm": 0.5, "adamw": {"lr": 1e-3},
                        "param_groups": [{"match": "*.c_proj.*", "lr": 1e-2, "momentum": 0.8}]}),
    "llama": case("llama", HEADS, {**TEXT, "eval_batch_size": 5}, training={**EVALUATED, "eval_iters": "all"}),
    "gemma": case("gemma", HEADS, TEXT),
    "qwen3": case("qwen3", HEADS, TEXT),
    "mistral": case("mistral", {**HEADS, "sliding_window": 4}, TEXT),
    "gpt_neox": case("gpt_neox", {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32,
                                  "intermediate_size": 40, "vocab_size": 256}, TEXT),
    "bert": case("bert", {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 24, "intermediate_size": 40,
                          "vocab_size": 257, "max_position_embeddings": 9}, {**TEXT, "masking": {"mask_token": 256}}, training=EVALUATED),
    "gru": case("gru_bytes", {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 3},
                {key: TEXT[key] for key in ("train", "batch_size")}),
    "table": case("mlp_table", {"n_layer": 2, "width": 7, "n_classes": 10}, ROWS,
                  training={**EVALUATED, "metrics": ["accuracy", "perplexity"], "early_stopping": {"patience": 3, "restore_best": True}}),
    "autoencoder": case("autoencoder", {"width": 16, "code": 8}, {
        "train": {"path": "rows.npy", "format": "npy"}, "inputs": {"picture": {"shape": [1, 8, 8]}}, "batch_size": 5}),
    "vit": case("vit", {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 20,
                        "image_size": 8, "patch_size": 2, "num_channels": 1, "num_labels": 10}, ROWS),
    "resnet": case("resnet", {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 10, "embedding_size": 4, "stages": 2,
                              "hidden_sizes.0": 4, "hidden_sizes.1": 6, "depths.0": 1, "depths.1": 1}, ROWS, accumulation={"num_steps": 2},
                   training={**EVALUATED, "ema": {"decay": 0.9, "evaluate": True}}, checkpoint={"every": 10}),
    "unet": case("unet", {"sample_size": 8, "in_channels": 1, "blocks": 2, **BLOCKS, "attend.0": False, "attend.1": True, "layers_per_block": 1,
                          "norm_num_groups": 2, "num_class_embeds": 10}, ROWS, training=EVALUATED, accumulation={"num_steps": 2}),
    "vae": case("vae", {"in_channels": 1, "sample_size": 8, "latent_channels": 2, "blocks": 2, **BLOCKS, "layers_per_block": 1,
                        "norm_num_groups": 2, "kl_weight": 0.05}, {
        "train": {"path": "rows.npy", "format": "npy"}, "inputs": {"picture": {"shape": [1, 8, 8]}}, "batch_size": 5}),
    "dit": case("dit", {"sample_size": 8, "patch_size": 2, "in_channels": 1, "out_channels": 2, "num_layers": 2, "num_attention_heads": 2,
                        "attention_head_dim": 8, "num_embeds_ada_norm": 10}, ROWS, training=EVALUATED),
    "convnext": case("convnext", {"image_size": 8, "num_channels": 1, "num_labels": 10, "patch_size": 1, "drop_path_rate": 0.5,
                                  **{f"hidden_sizes.{i}": 4 for i in range(4)}, **{f"depths.{i}": 1 for i in range(4)}}, ROWS),
    "gcn": case("gcn", {"hidden_channels": 8, "out_channels": 2, "n_train": 10, "dropout": 0.2}, {
        "train": {"path": "club.csv", "format": "csv"}, "features": 34, "eval_fraction": 0, "batch_size": 34, "shuffle": False}),
    "lstm": case("lstm", {"num_layers": 2, "n_embd": 8, "hidden_size": 12, "vocab_size": 256}, TEXT),
    "mamba": case("mamba", {"num_hidden_layers": 2, "hidden_size": 16, "state_size": 4, "vocab_size": 256}, TEXT),
    "mixtral": case("mixtral", {**HEADS, "num_local_experts": 4, "router_aux_loss_coef": 0.01}, TEXT),
    "qwen_moe": case("qwen_moe", {**EXPERTS}, TEXT),
    "capacity": case("qwen_moe", {**EXPERTS, "capacity_factor": 0.75}, TEXT),
    "preferences": case("llama_dpo", {**HEADS, "beta": 0.1}, {
        "train": {"path": "pairs.npz", "format": "npz"}, "batch_size": 5,
        "inputs": {"input_ids": {"shape": [2, 9], "dtype": "int32"}, "completion_mask": {"shape": [2, 9]},
                   "labels": {"dtype": "int32", "below": 2}}}, training={**EVALUATED, "ema": {"decay": 0.9, "evaluate": True}}),
    "adapters": case("llama", HEADS, TEXT, training=EVALUATED, accumulation={"num_steps": 2}, checkpoint={"every": 10}),
    "t5": case("t5", {"num_layers": 2, "num_decoder_layers": 1, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 24, "vocab_size": 256}, TEXT,
               optimizer={"name": "adafactor", "lr": 1e-2, "weight_decay": 0.1, "param_groups": [{"match": "shared.*", "lr": 1e-3}]},
               training={**EVALUATED, "ema": {"decay": 0.9, "evaluate": True}}, checkpoint={"every": 10}),
    "classifier": case("bert_classifier", {**ENCODER, "num_labels": 3, "hidden_dropout_prob": 0.1}, {
        "train": {"path": "encoded.npz", "format": "npz"}, "batch_size": 5,
        "inputs": {"input_ids": {"shape": [9], "dtype": "int32"}, "attention_mask": {"shape": [9]},
                   "token_type_ids": {"shape": [9], "dtype": "int32"}, "labels": {"dtype": "int32"}}}, training=EVALUATED),
}
# Of several devices in one process, next to as many processes. Each model has something that is a rank's own: its number of micro-batches,
# running statistics, random numbers, an evaluation that devices share, predictions.
SEVERAL = {
    "several": {**MOST, "devices": {"per_node": 2}},
    "several_statistics": {**MODELS_OF["resnet"], "devices": {"per_node": 2}},
    "several_draws": {**MODELS_OF["classifier"], "devices": {"per_node": 2}},
    "several_rows": {**MODELS_OF["llama"], "devices": {"per_node": 3}},
    "several_scores": {**MODELS_OF["table"], "devices": {"per_node": 4}},
    "several_states": {**MOST, "devices": {"per_node": 2}, "parallelism": {"zero_stage": 1}},
    "several_gradients": {**MODELS_OF["llama"], "devices": {"per_node": 3}, "parallelism": {"zero_stage": 2, "ddp": {"bucket_cap_mb": 0.01}}},
    "several_weights": {**MOST, "devices": {"per_node": 4}, "parallelism": {"fsdp": {"sharding_strategy": "full_shard"}}},
    "several_bits16": {**MOST, "devices": {"per_node": 2}, "precision": {"mixed_precision": "bf16"}},
}
PRECISIONS = {"float32": {}, "autocast": {"mixed_precision": "bf16", "keep_in_fp32": ["*.c_proj.*"]}, "throughout": {"param_dtype": "bf16"}}
# By how much devices may differ, relative to the numbers: losses and metrics; the gradient's norm and the weights at the end. bfloat16 is
# rounded to within 2^-9; which sums are rounded is a matter of how kernels are merged.
FLOAT32, BFLOAT16 = (1e-5, 1e-3), (2 * 2**-9, 2 * 2**-7)
MODELS_OF["preferences"]["model"]["freeze"] = ["reference.*"]
MODELS_OF["adapters"]["model"]["lora"] = {"targets": ["q_proj", "v_proj"], "rank": 2, "alpha": 4, "dropout": 0.1, "modules_to_save": ["lm_head"]}
RULES = {
    "sgd": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "dampening": 0, "clip_grad_value": 0.01}, "adam": {"lr": 1e-3}, "adamax": {"lr": 1e-3},
    "nadam": {"lr": 1e-3}, "radam": {"lr": 1e-3}, "adagrad": {"lr": 1e-2}, "adadelta": {"lr": 1.0}, "lion": {"lr": 1e-4},
    "rmsprop": {"lr": 1e-3, "centered": True, "momentum": 0.9},
    "lamb": {"lr": 1e-2, "weight_decay": 0.1, "clip_grad_norm": 0.5}, "adafactor": {"lr": 1e-2, "weight_decay": 0.1},
    "muon": {"lr": 1e-2, "weight_decay": 0.1, "clip_grad_norm": 0.5}, "lomo": {"lr": 1e-2, "clip_grad_norm": 0.5}, "adalomo": {"lr": 1e-2},
    "bf16_states": {"name": "adamw", "lr": 1e-3, "state_dtype": "bf16"},
}


def write_data(folder):
    rng = np.random.default_rng(1)
    (folder / "corpus.txt").write_bytes(bytes(rng.integers(97, 123, 900).astype(np.uint8)))
    rows = [[*rng.normal(size=64), rng.integers(10)] for _ in range(60)]
    np.save(folder / "rows.npy", [row[:-1] for row in rows])
    (folder / "club.csv").write_text("".join(",".join(["1" if i == k else "0" for k in range(34)] + [str(i % 2)]) + "\n" for i in range(34)))
    np.savez(folder / "pairs.npz", input_ids=rng.integers(0, 256, (60, 2, 9)).astype(np.int32),
             completion_mask=(np.arange(9) > 3)[None, None].repeat(60, 0).repeat(2, 1).astype(np.float32),
             labels=rng.integers(0, 2, 60).astype(np.int32))
    lengths = rng.integers(3, 10, 60)
    np.savez(folder / "encoded.npz", input_ids=rng.integers(0, 30, (60, 9)).astype(np.int32),
             attention_mask=(np.arange(9) < lengths[:, None]).astype(np.float32), token_type_ids=rng.integers(0, 2, (60, 9)).astype(np.int32),
             labels=rng.integers(0, 3, 60).astype(np.int32))
    (folder / "rows.csv").write_text("".join(",".join([f"{x:.4f}" for x in row[:-1]] + [str(row[-1])]) + "\n" for row in rows))


class Processes(Trainer):
    """The same for several ranks."""

    def run(self, *flags, **environment):
        ended = start(self.folder / "trainer", self.job["devices"]["per_node"], *flags, cwd=self.folder, **environment)
        self.output = ended.stdout
        if ended.returncode != 0:
            raise AssertionError(f"the ranks failed with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
        return [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]


def on(device, job):
    job = json.loads(json.dumps(job))
    job["devices"] = {**job.get("devices", {}), "kind": device}
    trainer = Processes(job) if device == "cpu" and "per_node" in job["devices"] else Trainer(job)
    write_data(trainer.folder)
    return trainer


def saved(trainer):
    """What the run has left of weights, under whatever name the model's library has for the file."""
    return load_file(next((trainer.folder / "run").glob("*.safetensors")))


class Trainers(unittest.TestCase):
    def compare(self, name, job, steps=STEPS):
        trainers = [on(device, job) for device in ("cpu", "xla")]
        rows, (near, far) = [], BFLOAT16 if job.get("precision") else FLOAT32
        for trainer in trainers:
            trainer.build(cflags=CFLAGS)
            rows.append(trainer.run("--steps", str(steps)))
        self.assertEqual(len(rows[0]), len(rows[1]))
        self.assertTrue(len(rows[0]) == steps or "early_stopping" in job["training"])
        for one, other in zip(*rows):
            self.assertEqual(one["lr"], other["lr"])
            self.assertEqual(one.keys() & {*KEYS}, other.keys() & {*KEYS})
            for key in one.keys() & {*KEYS}:
                self.assertLess(abs(other[key] - one[key]), near * abs(one[key]) + 1e-12, f"{name}: {key} of step {one['step']}")
            self.assertLess(abs(other["grad_norm"] / one["grad_norm"] - 1), far, f"{name}: the norm of step {one['step']}")
        left, right = map(saved, trainers)
        self.assertEqual(left.keys(), right.keys())
        for key in left:
            # Softmax does not see a key's bias: its gradient is rounding alone, which Adam makes a step of. In bfloat16 others have some
            # such elements, which are all of a tensor that starts from 0.
            if not key.endswith((".key.bias", ".to_k.bias")) and (near == FLOAT32[0] or left[key].ndim > 1):
                self.assertLess(relative(right[key], left[key]), far, f"{name}: {key} at the end")
        return trainers

    def measured(self, trainer, *flags):
        """What a program that evaluates says of the weights that the run has left."""
        trainer.command("build", "job.yaml", *flags, "--program", "evaluate", "-o", "evaluator", CFLAGS=CFLAGS)
        said = subprocess.run([trainer.folder / "evaluator", "--format", "json"], cwd=trainer.folder, capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    def compare_evaluators(self, xla):
        """Over the weights of a run, the evaluators for both devices; that for XLA as the trainer's last evaluation, where each of
        several devices has not measured batches of its own."""
        of_cpu, of_xla = self.measured(xla, "--set", "devices.kind=cpu"), self.measured(xla)
        last = json.loads((xla.folder / "run" / "metrics.jsonl").read_text().splitlines()[-1])
        if xla.job["training"].get("early_stopping") is None and "per_node" not in xla.job["devices"]:
            self.assertEqual(f"{of_xla['loss']:.9g}", f"{last['eval_loss']:.9g}")
        self.assertEqual(of_cpu.keys(), of_xla.keys())
        for key in of_cpu.keys() - {"model", "job"}:
            near = (BFLOAT16 if xla.job.get("precision") else FLOAT32)[0]
            self.assertLessEqual(abs(of_xla[key] - of_cpu[key]), near * abs(of_cpu[key]), key)
        xla.command("job.yaml", "--program", "evaluate", "-o", "evaluator.c")
        said = xla.command("audit", "evaluator.c")
        self.assertIn("0 broken", said)
        for claim in ("module-computes-alone", "module-static-shapes", "module-donates", "module-files"):
            self.assertRegex(said, rf"holds +{claim}")
        self.assertIn("1 of 1 modules have one", said)

    def draws(self, trainer):
        """Whether both devices refuse an evaluator, as the model draws random numbers, which only a trainer has."""
        said = [subprocess.run([GENERATOR, "plan", "job.yaml", "--set", f"devices.kind={kind}", "--program", "evaluate"], cwd=trainer.folder,
                               capture_output=True, text=True, check=False).stderr for kind in ("cpu", "xla")]
        self.assertEqual(*("draws random numbers" in text for text in said))
        return "draws random numbers" in said[0]

    def check_model(self, name):
        trainers = self.compare(name, MODELS_OF[name])
        if "eval_interval" in MODELS_OF[name]["training"] and not self.draws(trainers[1]):
            self.compare_evaluators(trainers[1])
        if "checkpoint" in MODELS_OF[name]:
            self.check_resumed(*trainers)

    def check_several(self, name):
        cpu, xla = self.compare(name, SEVERAL[name])
        self.compare_evaluators(xla)
        if "checkpoint" in SEVERAL[name]:
            self.check_resumed(cpu, xla)
        devices = SEVERAL[name]["devices"]["per_node"]
        self.assertRegex(xla.output, rf"XLA .*on each of {devices} devices")
        xla.generate()
        said = xla.command("audit", "trainer.c")
        self.assertIn("0 broken", said)
        self.assertRegex(said, rf"holds +module-same-collectives +\d+ collectives of {devices} devices")
        self.assertRegex(xla.command("plan", "job.yaml"), rf"XLA .* on each of {devices} devices \(cpu\)")

    def check_rule(self, name):
        small = case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS)
        self.compare(name, {**small, "optimizer": {"name": name, **RULES[name]}}, steps=6)

    def check_resumed(self, cpu, xla):
        """A run that is resumed from the other device's checkpoint, or from its own."""
        straight = saved(xla)
        for trainer in (cpu, xla):
            shutil.copytree(trainer.folder / "run" / "checkpoints" / "checkpoint_0", trainer.folder / "middle")
        for first, then in ((xla, xla), (cpu, xla), (xla, cpu)):
            shutil.rmtree(then.folder / "run")
            then.run("--resume", str(first.folder / "middle"))
            self.assertEqual(then.output.count("resumes from"), 1)
            for key, value in saved(then).items():
                if first is then:
                    np.testing.assert_array_equal(value, straight[key], f"{key}, resumed")
                else:
                    far = BFLOAT16[1] if xla.job.get("precision") else FLOAT32[1]
                    if far == FLOAT32[1] or value.ndim > 1:
                        self.assertLess(relative(value, straight[key]), far, f"{key}, from the other device")

    def test_most(self):
        """Most keys, in one of the precisions; then a run that is resumed, and the audit."""
        for name in in_turn(PRECISIONS, len(PRECISIONS)):
            with self.subTest(name):
                self.check_most(MOST if not PRECISIONS[name] else {**MOST, "precision": PRECISIONS[name]})

    def check_most(self, job):
        cpu, xla = self.compare("most", job)
        self.compare_evaluators(xla)
        self.check_resumed(cpu, xla)
        xla.generate()
        said = xla.command("audit", "trainer.c")
        self.assertIn("0 broken", said)
        for claim in ("module-computes-alone", "module-static-shapes", "module-donates", "module-files", "no-runtime-between-steps"):
            self.assertRegex(said, rf"holds +{claim}")
        self.assertRegex(xla.output, r"sample +accel-gen build job.yaml --program generate -o generator")
        self.assertIn('"plugin of XLA": "cpu, PJRT 0.', xla.command("env", "--json"))
        said = xla.command("plan", "job.yaml")
        self.assertRegex(said, r"memory +at least [\d.]+ MiB: weights")
        self.assertRegex(said, r"XLA +[\d.]+ [KM]iB in a step on cpu: arguments .*become results, temporary")

    def test_edited(self):
        """What the audit says of modules that are not as they are written."""
        xla = on("xla", case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS))
        text = xla.generate()
        for old, new, claim, why in (
                ("= stablehlo.maximum ", "= stablehlo.custom_call ", "module-computes-alone", "stablehlo.custom_call"),
                ("= stablehlo.maximum ", "= mhlo.maximum ", "module-computes-alone", "another dialect, 'mhlo.maximum'"),
                ("module @", "#x = 1\\n\",\n    \"module @", "module-files", "another module"),
                ("tensor<5xi32>", "tensor<?xi32>", "module-static-shapes", "'tensor<?xi32>'"),
                ("aliasing_output = 3 ", "aliasing_output = 2 ", "module-donates", "not that of its result"),
                (" {tf.aliasing_output = 2 : i32}", "", "module-donates", "not that of its result")):
            self.assertIn(old, text)
            self.check_edit(xla, text.replace(old, new, 1), claim, why)

    def check_edit(self, xla, text, claim, why):
        (xla.folder / "trainer.c").write_text(text)
        said = xla.command("audit", "trainer.c", status=1)
        self.assertRegex(said, rf"broken +{claim} .*{why}".replace("?", r"\?"), said)

    def test_edited_exchange(self):
        """The same of what several devices exchange."""
        xla = on("xla", case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS, devices={"per_node": 3}))
        text = xla.generate()
        for old, new, claim, why in (
                ("dense<[[0, 1,", "dense<[[1, 0,", "module-same-collectives", "not one group of all devices, 'all_reduce'"),
                ("<{replica_groups", "<{x = replica_groups, replica_groups", "module-same-collectives", "not one group of all devices"),
                ("= stablehlo.maximum ", "= stablehlo.all_reduce ", "module-same-collectives", "in a loop or another function, 'all_reduce'"),
                ('"xla", 3,', '"xla", 1,', "module-computes-alone", "stablehlo.all_reduce")):
            self.assertIn(old, text)
            self.check_edit(xla, text.replace(old, new, 1), claim, why)

    def test_refused_parts(self):
        """What several devices do not divide."""
        small = case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS, devices={"per_node": 2}, parallelism={"zero_stage": 3})
        frozen = {**small, "model": {**small["model"], "freeze": ["output.bias"]}}
        for job, why in (({**small, "optimizer": RULES["bf16_states"]}, "divide states of 32 bits alone"),
                         (frozen, "'output.bias' is not trained, and devices divide weights"),
                         ({**frozen, "parallelism": {"zero_stage": 1}, "training": {**small["training"], "ema": {"decay": 0.9}}},
                          "'output.bias' is not trained, and devices divide averages of weights"),
                         ({**small, "parallelism": {"zero_stage": 1, "dp_replicate": 2}, "devices": {"per_node": 4}}, "not along a part of the mesh")):
            self.assertIn(why, on("xla", job).command("plan", "job.yaml", status=2))

    @unittest.skipUnless(is_in_turn(1, 4), "a manifest tries other values of each key, which takes 10 s: not in turn")
    def test_manifest(self):
        """It has the digests of the modules, which the audit compares, and the command that makes them again."""
        xla = on("xla", case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS, training=EVALUATED))
        text = xla.generate("--manifest")
        manifest = json.loads((xla.folder / "trainer.manifest.json").read_text())
        jsonschema.validate(manifest, json.loads((TREE / "schemas" / "manifest.schema.json").read_text()))
        names = ["trainer.mlir", "trainer.evaluation.mlir"]
        self.assertEqual(manifest["modules"], [{"role": "module", "name": name, "sha256": hashlib.sha256(
            (xla.folder / name).read_bytes()).hexdigest()} for name in names])
        self.assertIn("2 of 2 modules have one, 2 a digest", xla.command("audit", "trainer.c"))
        self.assertRegex(xla.command("audit", "--regenerate", "trainer.manifest.json"), r"same +trainer.evaluation.mlir")
        for name in names:
            (xla.folder / name).unlink()
        (xla.folder / "trainer.c").write_text(text.replace("module @", "#x = 1\\n\",\n    \"module @", 1))
        said = xla.command("audit", "trainer.c", status=1)
        self.assertRegex(said, r"broken +module-files")
        self.assertRegex(said, "the SHA-256 of 'trainer.mlir' is another one than that of 'module'")
        said = xla.command("audit", "--regenerate", "trainer.manifest.json", status=1)
        self.assertRegex(said, "trainer.mlir is not there")

    def test_not_finite(self):
        """The step whose loss is not finite is named, although steps after it have begun."""
        xla = on("xla", case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS, optimizer={"name": "sgd", "lr": 1e30}))
        xla.build(cflags=CFLAGS)
        ended = subprocess.run([xla.folder / "trainer"], cwd=xla.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r"step [23]: the (loss|gradient's norm) is")
        self.assertFalse((xla.folder / "run" / "model.safetensors").exists())

    def test_without(self):
        """What is said without a plugin."""
        xla = on("xla", case("mlp_table", {"n_layer": 1, "width": 7, "n_classes": 10}, ROWS))
        xla.build(cflags=CFLAGS)
        ended = subprocess.run([xla.folder / "trainer"], cwd=xla.folder, capture_output=True, text=True,
                               env={**os.environ, "PJRT_PLUGIN_LIBRARY_PATH": "/nowhere/plugin.so"})
        self.assertEqual(ended.returncode, 1)
        self.assertIn("the plugin of XLA cannot be loaded: /nowhere/plugin.so", ended.stderr)


WAYS = (("model", MODELS_OF), ("rule", RULES), ("several", SEVERAL))


def add(way, name):
    setattr(Trainers, f"test_{way}_{name}", lambda self: getattr(self, f"check_{way}")(name))


if __name__ == "__main__":
    os.environ.setdefault("PYTHON", sys.executable)
    small = pathlib.Path(TREE / "examples" / "jobs" / "tiny.yaml")
    found = subprocess.run([GENERATOR, "plan", small, "--set", "devices.kind=xla"], capture_output=True, text=True)
    if "no plugin" in found.stdout:
        print("SKIPPED: there is no plugin of XLA (pip install xla-cpu-pjrt)")
        sys.exit(77)
    named, every = [word for word in sys.argv[1:] if not word.startswith("-")], ALL
    for way, known in WAYS:
        if way == "several" and not named and not is_in_turn(0, 2):
            continue
        for name in known if every else [name for name in named if name in known] or in_turn(known, len(known)):
            add(way, name)
    tests = [f"Trainers.test_{way}_{name}" for name in named for way, known in WAYS if name in known]
    unittest.main(argv=sys.argv[:1], defaultTest=tests + [f"Trainers.{name}" for name in named if name.startswith("test_")] or None)
