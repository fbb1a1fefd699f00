"""What CUDA programs compute: steps of small models against the programs for the processor, from the same weights and
batches. The kernels run as C++ on the processor (tests/cuda/host), so this is said of their arithmetic and their
barriers, and of the host program; nothing of a GPU, and nothing of cuBLASLt and cuDNN.

A sixth of the cases a run, and of the other example models one, as SEED says (tests/program/rotation.py).

usage: test_training.py [NAME...], of a case or a class; --all: every example model (ninja soak)"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import numpy as np
from host import TREE, HostTrainer, Ranks, Trainer, objects

from compilers import formatted  # tests/program; isort: skip
from rotation import ALL, in_turn  # tests/program; isort: skip

MODELS = TREE / "examples" / "models"
TEXT = {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3, "sequence_length": 9}
ROWS = {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 5, "features": 64, "eval_fraction": 0.2}
HEADS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_size": 24,
         "intermediate_size": 40, "vocab_size": 256}
GPT = {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 256, "block_size": 9}
CLIPPED = {"name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 0.5,
           "param_groups": [{"match": "*.bias", "weight_decay": 0}]}
EVALUATED = {"steps": 4, "seed": 3, "eval_interval": 2, "eval_iters": 2}


GPT8 = {"n_layer": 2, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 16, "bias": False}
LINES = {**TEXT, "batch_size": 4, "sequence_length": 16}  # blocks of 32 rows


def fp8(**keys):
    return {"mixed_precision": "fp8", "autocast": {"enabled": False}, "fp8": keys}


def case(model, config, data, **groups):
    return {"model": {"source": str(MODELS / f"{model}.c"), "config": config}, "data": data,
            "training": {"steps": 4, "seed": 3}, **groups}


# Experts take no more of a sequence's choices than that.
MOE = {**HEADS, "num_hidden_layers": 1, "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 70,
       "router_aux_loss_coef": 0.01, "capacity_factor": 1.0}
RESNET = {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 10, "embedding_size": 4, "stages": 2,
          "hidden_sizes.0": 4, "hidden_sizes.1": 6, "depths.0": 1, "depths.1": 1}
UNET = {"sample_size": 8, "in_channels": 1, "blocks": 2, "block_out_channels.0": 8, "block_out_channels.1": 16,
        "attend.0": False, "attend.1": True, "layers_per_block": 1, "norm_num_groups": 4}
ODD = 259  # classes: rows of logits that would not begin where libraries want them

# What the suite runs: most keys on few models.
CASES = {
    "gpt": case("gpt2", {**GPT, "dropout": 0.1, "vocab_size": ODD}, {**TEXT, "eval_batch_size": 5}, accumulation={"num_steps": 3}, optimizer=CLIPPED,
                training={**EVALUATED, "ema": {"decay": 0.9}}, tracking={"grad_norms": "per_layer", "noise_scale": True}),
    "bf16": case("llama", {**HEADS, "vocab_size": ODD}, {**TEXT, "eval_batch_size": 7}, precision={"mixed_precision": "bf16"}, devices={"attention": "own"}, optimizer={"name": "adamw", "lr": 1e-3},
                 schedule={"name": "cosine", "warmup_steps": 2, "min_lr": 1e-5},
                 training={**EVALUATED, "eval_iters": "all"}),
    "experts": case("qwen_moe", MOE, TEXT, accumulation={"num_steps": 2}),
    "images": case("unet", {**UNET, "attend.1": False, "block_out_channels.0": 4, "block_out_channels.1": 8}, ROWS,
                   accumulation={"num_steps": 2}, precision={"mixed_precision": "bf16"}, optimizer={"name": "sgd", "lr": 0.01}),
    "ranks": case("gpt2", {**GPT, "dropout": 0.1}, {**TEXT, "eval_batch_size": 2}, accumulation={"num_steps": 2, "normalize": "tokens"},
                  optimizer=CLIPPED, training=EVALUATED, devices={"per_node": 2},
                  parallelism={"ddp": {"bucket_cap_mb": 0.01}}, memory={"cross_entropy_chunk": 8}),
    # Products of 8 bits by the library, and of what was rounded. With all else in float32 few roundings turn.
    "fp8": case("nanogpt", {**GPT8, "n_layer": 2}, LINES, precision=fp8(backend="te", amax_history_len=3, amax_compute_algo="max", margin=1),
                accumulation={"num_steps": 2}, training={**EVALUATED, "eval_iters": "all"}, optimizer={"name": "sgd", "lr": 0.1}),
    # Rows of several warps, their last one in part, and rows whose packs have one element.
    "wide": case("gpt2", {**GPT, "n_layer": 1, "n_head": 4, "n_embd": 260}, TEXT, optimizer={"name": "sgd", "lr": 1e-3},
                 training={"steps": 2, "seed": 3}),
    "narrow": case("gpt2", {**GPT, "n_layer": 1, "n_head": 2, "n_embd": 34}, TEXT, training={"steps": 2, "seed": 3}),
}

# Every other example, and rules and types that are left.
MORE = {
    "resnet": case("resnet", RESNET, {**ROWS, "eval_batch_size": 8}, optimizer={"name": "sgd", "lr": 0.05, "momentum": 0.9},
                   training={**EVALUATED, "metrics": ["accuracy"]}),
    "resnet_own": case("resnet", RESNET, ROWS, devices={"convolution": "own"}, optimizer={"name": "sgd", "lr": 0.05}),
    "resnet_tf32": case("resnet", RESNET, ROWS, precision={"tf32": True}, optimizer={"name": "sgd", "lr": 0.01},
                        training={**EVALUATED, "deterministic": True}),
    "resnet_fp16": case("resnet", {**RESNET, "layer_type": "BOTTLENECK"}, ROWS, precision={"mixed_precision": "fp16"},
                        optimizer={"name": "sgd", "lr": 0.05}),
    "nanogpt": case("nanogpt", {**GPT, "bias": False}, TEXT, optimizer={"name": "lion", "lr": 1e-3}),
    "chunk": case("gpt2", {**GPT, "vocab_size": ODD}, TEXT, memory={"cross_entropy_chunk": 8}, optimizer={"name": "radam", "lr": 1e-3},
                  precision={"mixed_precision": "bf16"}, devices={"attention": "own"}),
    "block": case("llama", {**HEADS, "num_hidden_layers": 1, "hidden_size": 1032}, TEXT, precision={"mixed_precision": "bf16"},
                  devices={"attention": "own"}, training={"steps": 2, "seed": 3}),
    "radam": case("gpt2", GPT, TEXT, optimizer={"name": "radam", "lr": 1e-3}),
    "fp16": case("gpt2", {**GPT, "vocab_size": ODD}, TEXT, precision={"mixed_precision": "fp16"}, devices={"attention": "own"}, optimizer=CLIPPED,
                 accumulation={"num_steps": 2}, training={"steps": 6, "seed": 3}),
    "freeze": case("gpt2", GPT, TEXT, optimizer={"name": "adam", "lr": 1e-3}),
    "gemma": case("gemma", HEADS, TEXT, optimizer={"name": "adamax", "lr": 1e-3}),
    "qwen3": case("qwen3", HEADS, TEXT, optimizer={"name": "adagrad", "lr": 1e-2}),
    "mistral": case("mistral", {**HEADS, "sliding_window": 4}, TEXT, optimizer={"name": "rmsprop", "lr": 1e-3}),
    "mixtral": case("mixtral", {**HEADS, "num_local_experts": 4, "router_aux_loss_coef": 0.01}, TEXT),
    "dropless": case("qwen_moe", {**MOE, "capacity_factor": 0, "num_hidden_layers": 2}, TEXT),
    "experts_bf16": case("qwen_moe", {**MOE, "capacity_factor": 0, "moe_intermediate_size": 72}, TEXT, accumulation={"num_steps": 2},
                         precision={"mixed_precision": "bf16"}, devices={"attention": "own"}, optimizer={"name": "sgd", "lr": 0.1}),
    "experts_fp16": case("qwen_moe", MOE, TEXT, precision={"mixed_precision": "fp16"}, devices={"attention": "own"}, optimizer={"name": "sgd", "lr": 0.1}),
    "experts_tf32": case("qwen_moe", MOE, TEXT, precision={"tf32": True}, optimizer={"name": "sgd", "lr": 0.1}),
    "gpt_neox": case("gpt_neox", {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32,
                                  "intermediate_size": 40, "vocab_size": 256}, TEXT),
    "bert": case("bert", {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 24, "intermediate_size": 40,
                          "vocab_size": 257, "max_position_embeddings": 9}, {**TEXT, "masking": {"mask_token": 256}}),
    "t5": case("t5", {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_model": 16, "d_kv": 8, "d_ff": 128,
                      "vocab_size": 256}, {**TEXT, "sequence_length": 8}),
    "lstm": case("lstm", {"num_layers": 2, "n_embd": 8, "hidden_size": 12, "vocab_size": 256}, TEXT),
    "gru": case("gru_bytes", {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 3},
                {key: TEXT[key] for key in ("train", "batch_size")}),
    "mamba": case("mamba", {"num_hidden_layers": 1, "hidden_size": 12, "state_size": 4, "vocab_size": 256}, TEXT),
    "gcn": case("gcn", {"hidden_channels": 8, "out_channels": 2, "n_train": 10}, {
        "train": {"path": "rows.csv", "format": "csv"}, "batch_size": 34, "features": 34, "eval_fraction": 0,
        "shuffle": False}),
    "table": case("mlp_table", {"n_layer": 2, "width": 7, "n_classes": 10}, ROWS, training=EVALUATED),
    "inputs": case("mlp_table", {"n_layer": 2, "width": 7, "n_classes": 10}, {
        "train": {"path": "rows.npy", "format": "npy"}, "batch_size": 5, "eval_fraction": 0.2,
        "inputs": {"features": {"shape": [64]}, "labels": {"path": "labels.npy", "dtype": "int32"}}}, training=EVALUATED),
    "deepseek": case("deepseek_v3", {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 24, "vocab_size": 256, "q_lora_rank": 9, "kv_lora_rank": 8,
                                     "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "v_head_dim": 8, "first_k_dense_replace": 1, "intermediate_size": 40,
                                     "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
                                     "moe_intermediate_size": 20}, TEXT),
    "vit": case("vit", {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16, "intermediate_size": 20,
                        "image_size": 8, "patch_size": 2, "num_channels": 1, "num_labels": 10}, ROWS, training=EVALUATED),
}
# Random numbers in evaluations, too.
MORE["unet"] = case("unet", UNET, {**ROWS, "eval_batch_size": 3}, optimizer={"name": "sgd", "lr": 0.01}, training=EVALUATED)
MORE |= {name: case("nanogpt", GPT8, LINES, precision=fp8(**keys), optimizer={"name": "sgd", "lr": 0.1}, training=EVALUATED) for name, keys in {
    "fp8_ao": {}, "fp8_emulated": {"emulate": True}, "fp8_wgrad": {"backend": "te", "override_linear_precision": "wgrad", "fp8_format": "E4M3"},
    "fp8_rows": {"recipe": "rowwise", "emulate": True}, "fp8_rows_wide": {"recipe": "rowwise_with_gw_hp", "emulate": True},
    "fp8_ranks": {"backend": "te", "amax_history_len": 4}, "fp8_shards": {}, "fp8_blocks": {"recipe": "mxfp8", "emulate": True}, "fp8_blocks_up": {"recipe": "mxfp8", "scale_calculation_mode": "rceil", "emulate": True}}.items()}
MORE["fp8_ranks"] |= {"devices": {"per_node": 2}, "parallelism": {"dp_shard": 2, "zero_stage": 1}, "accumulation": {"num_steps": 2}}
MORE["fp8_shards"] |= {"devices": {"per_node": 2}, "parallelism": {"dp_shard": 2, "zero_stage": 3}}
MORE["freeze"]["model"]["freeze"] = ["*.c_attn.*", "*.c_fc.weight"]
# Whose accesses of memory the stand-ins see, and order: each of streams and of the host.
WATCHED = ["gpt"]
KEYS = ("loss", "lr", "grad_norm", "eval_loss", "accuracy", "loss_scale", "noise_scale")
# Of 8 bits, once a rounding has fallen to the other side because a sum was added up in another order; the first loss has none.
TOLERANCES = {"bf16": 2e-2, "fp16": 2e-3, "tf32": 2e-3, "fp8": 2e-3}


def write_data(folder, features):
    rng = np.random.default_rng(1)
    (folder / "corpus.txt").write_bytes(bytes(rng.integers(97, 123, 900).astype(np.uint8)))
    classes = 2 if features == 34 else 10
    count = 34 if features == 34 else 60
    rows = [[*rng.normal(size=features), rng.integers(classes)] for _ in range(count)]
    (folder / "rows.csv").write_text("".join(",".join([f"{x:.4f}" for x in row[:-1]] + [str(row[-1])]) + "\n" for row in rows))
    np.save(folder / "rows.npy", [row[:-1] for row in rows])
    np.save(folder / "labels.npy", np.array([row[-1] for row in rows]))


class Comparison(unittest.TestCase):
    """A job on the device against the same on the processor."""

    parts, device = None, HostTrainer

    def compare(self, name, job, watched=False, tolerance=None):
        precision = job.get("precision", {})
        tolerance = tolerance or TOLERANCES.get(precision.get("mixed_precision", "tf32" if precision.get("tf32") else None))
        ranks, copies = job.get("devices", {}).get("per_node", 1), [json.loads(json.dumps(job)) for _ in range(2)]
        for group, key in (("devices", "attention"), ("devices", "convolution"), ("precision", "tf32")):  # of GPUs alone
            copies[0].get(group, {}).pop(key, None)
        trainers = [Ranks(ranks, copies[0]) if ranks > 1 else Trainer(copies[0]), self.device(copies[1], self.parts, watched or name in WATCHED or ALL)]
        rows = []
        for trainer in trainers:
            write_data(trainer.folder, job["data"].get("features", 64 if "inputs" in job["data"] else 1))
            trainer.build()
            rows.append(trainer.run())
        expected, found = rows
        self.assertEqual(len(expected), len(found), name)
        if ranks == 1:  # what is reported at the start is the device's memory
            planned = re.search(r"sizeof\(struct arena\) == (\d+),", (trainers[1].folder / "trainer.c").read_text()).group(1)
            self.assertIn(f"plan {int(planned) / 2**20:.1f} MiB\n", trainers[1].output, name)
        keys = [key for key in expected[-1] if key in KEYS or key.startswith("grad_norm/")]
        for one, other in zip(expected, found):
            for key in keys:
                if one.get(key, 0) is None:  # of a step that overflowed
                    self.assertIsNone(other[key], f"{name}: {key} of {one['step']}")
                elif key in one:
                    np.testing.assert_allclose(other[key], one[key], rtol=tolerance or 2e-5, err_msg=f"{name}: {key} of {one['step']}")
        if precision.get("mixed_precision") == "fp8":
            np.testing.assert_allclose(found[0]["loss"], expected[0]["loss"], rtol=2e-5, err_msg=name)
        left, right = trainers[0].weights(), trainers[1].weights()
        self.assertEqual(left.keys(), right.keys())
        lr = job.get("optimizer", {}).get("lr", 1e-3)
        for key in left:
            if ".fp8_" in key:  # a number of E4M3 that is rounded to the other side moves by an eighth at most, of E5M2 by a quarter
                rtol = 1 / 4 if key.endswith("grad_output") else 1 / 8
                np.testing.assert_allclose(right[key], left[key], rtol=rtol, err_msg=f"{name}: {key}")
                continue
            away = np.abs(right[key].astype(np.float64) - left[key])
            self.assertLess(float(away.mean()), 0.2 * lr if tolerance else 0.01 * lr, f"{name}: {key}")
        self.turn_round(name, trainers[1], found, right)
        return found, *((trainers[1].folder / f"trainer.{ending}").read_text() for ending in ("c", trainers[1].ending))

    def turn_round(self, name, trainer, lines, weights):
        """The same bits where the threads of a block, and the blocks, take turns from the last to the first: none reads what
        another writes without a barrier between them."""
        kept = (trainer.folder / "run").rename(trainer.folder / "straight")
        for one, other in zip(lines, trainer.run(HOST_ORDER="reversed"), strict=True):
            for key in one.keys() & {*KEYS}:
                self.assertEqual(one[key], other[key], f"{name}: {key} of {one['step']}, threads in another order")
        for key, value in trainer.weights().items():
            np.testing.assert_array_equal(value, weights[key], f"{name}: {key}, threads in another order")
        shutil.rmtree(trainer.folder / "run")
        kept.rename(trainer.folder / "run")


class Training(Comparison):
    def check(self, name, job):
        _, *texts = self.compare(name, job)
        for text in texts:
            for what, why in formatted(text):
                self.assertIsNone(why, f"{name}: {what}")


def epilogues_of(trainer):
    write_data(trainer.folder, 1)
    trainer.generate()
    return set(re.findall(r"ACCEL_GPU_GEMM\(\w+,\s+\w+,\s+\w+,\s+(\w+),", (trainer.folder / "trainer.c").read_text())) - {"PLAIN"}


class Epilogues(unittest.TestCase):
    """Which matmuls take up what follows them."""

    def found(self, name):
        return epilogues_of(HostTrainer(json.loads(json.dumps({**CASES, **MORE}[name])), PARTS))

    def test_kinds(self):
        self.assertEqual(self.found("bf16"), set())  # llama: silu, no bias
        self.assertEqual(self.found("gpt"), {"BIAS", "BIAS_GELU", "DGELU", "SUM_B"})
        self.assertEqual(self.found("freeze"), {"BIAS", "BIAS_GELU", "DGELU_SUM", "SUM_B"})
        self.assertEqual(self.found("t5"), {"RELU", "DRELU"})
        self.assertEqual(self.found("bert"), {"BIAS", "SUM_A"})  # gelu by erf


class Sums(unittest.TestCase):
    """Which norms are fused with the additions next to them: residual and norm, and the gradients of both, are one kernel each."""

    def kernels(self, model, config, **precision):
        trainer = HostTrainer(case(model, config, TEXT, precision=precision), [])
        write_data(trainer.folder, 1)
        trainer.generate()
        text = (trainer.folder / "trainer.cu").read_text()
        self.host = (trainer.folder / "trainer.c").read_text()
        return re.findall(r'^extern "C" void (\w+?)_(?:add_)?(?:bf16_)?\d', text, re.MULTILINE)

    def test_layer_norm(self):
        names = self.kernels("gpt2", GPT)
        for name in ("embedding_plus", "add_layer_norm", "layer_norm_backward", "layer_norm_plus_backward"):
            self.assertIn(name, names)
        self.assertNotIn("layer_norm", names, "what a block ends with and the next begins with is one, too")
        self.assertNotIn("add", names)

    def test_in_bf16(self):
        """What goes back to both the residual and a matmul of 16 bits is written for both at once, from one block to the
        next too: no kernel of a block copies."""
        names = self.kernels("gpt2", GPT, mixed_precision="bf16")
        self.assertIn("layer_norm_plus_bits16_backward", names)
        self.assertNotIn("layer_norm_plus_backward", names)
        self.assertNotIn("add_cast_bfloat16", names)
        block = self.host[self.host.index("static void block_backward("):].split("\n}\n")[0]
        self.assertNotIn("  cast_", block)

    def test_rms_norm(self):
        names = self.kernels("llama", HEADS, mixed_precision="bf16")
        self.assertLessEqual({"add_rms_norm", "rms_norm_backward", "rms_norm_plus_bits16_backward"}, set(names))


class Logits(unittest.TestCase):
    """Logits are of the matmuls' type and in rows that begin at multiples of 16 bytes, whole or a chunk at a time: made
    once, and their gradient replaces them."""

    def text(self, **groups):
        trainer = HostTrainer(case("gpt2", {**GPT, "vocab_size": ODD}, TEXT, **groups), [])
        write_data(trainer.folder, 1)
        trainer.generate()
        return (trainer.folder / "trainer.c").read_text()

    def test_whole(self):
        for groups, kind, pitch in (({}, "float", 260), ({"precision": {"mixed_precision": "bf16"}}, "accel_bf16", 264)):
            text = self.text(**groups)
            self.assertEqual(len(re.findall(rf"alignas\(64\) {kind} \w*logits\[27 \* {pitch}\];", text)), 1)
            self.assertEqual(len(re.findall(r"ACCEL_GPU_GEMM\(\w+_logits,", text)), 1)

    def test_in_chunks(self):
        text = self.text(precision={"mixed_precision": "bf16"}, memory={"cross_entropy_chunk": 4})
        self.assertEqual(re.findall(r"alignas\(64\) (.*logits\[.*\]);", text), ["accel_bf16 cross_entropy_logits[4 * 264]"])
        self.assertEqual(len(re.findall(r"ACCEL_GPU_GEMM\(\w+_logits,", text)), 2)  # of a chunk, and of the last one


class Runs(unittest.TestCase):
    """How a run is resumed, recorded and ended."""

    def built(self, **groups):
        trainer = HostTrainer({**json.loads(json.dumps(CASES["gpt"])), **groups}, PARTS)
        write_data(trainer.folder, 1)
        trainer.build()
        return trainer

    def start(self, trainer, *flags, **environment):
        return subprocess.run([trainer.folder / "trainer", *flags], cwd=trainer.folder, capture_output=True, text=True,
                              env={**os.environ, **environment})

    def ended(self, trainer, *flags, **environment):
        """The weights after a run."""
        self.assertEqual(self.start(trainer, *flags, **environment).returncode, 0)
        return trainer.weights()

    def assert_equal(self, left, right):
        for key in left:
            np.testing.assert_array_equal(left[key], right[key], key)

    def test_same_bits(self):
        """A step that was not recorded as a graph, and a run that was stopped and resumed, with its averages and its random
        numbers, give the bits of a run from start to end."""
        trainer = self.built(checkpoint={"every": 2})
        whole = self.ended(trainer)
        shutil.rmtree(trainer.folder / "run")
        self.assert_equal(whole, self.ended(trainer, ACCEL_GRAPHS="no"))
        shutil.rmtree(trainer.folder / "run")
        self.ended(trainer, "--steps", "2")
        self.assert_equal(whole, self.ended(trainer, "--resume", "auto"))

    def test_without_fp8(self):
        """A GPU that multiplies no numbers of 8 bits."""
        keys = {"model": {"source": str(MODELS / "nanogpt.c"), "config": GPT8}, "data": LINES, "precision": fp8(), "accumulation": {},
                "optimizer": {}, "training": {"steps": 1}, "tracking": {}}
        ended = self.start(self.built(**keys), STANDIN_ARCH="86")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("multiplies no numbers of 8 bits", ended.stderr)
        self.assertIn("precision.fp8.emulate: true", ended.stderr)

    def test_not_finite(self):
        """The device takes no update from such a step on, and the host says which it was."""
        small = {"source": str(MODELS / "gpt2.c"), "config": {**GPT, "n_layer": 1, "n_head": 1, "n_embd": 8}}
        keys = {"optimizer": {"name": "sgd", "lr": 1e30}, "training": {"steps": 40, "seed": 3}, "tracking": {}, "accumulation": {}}
        ended = self.start(self.built(model=small, **keys))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("step 2: the loss is", ended.stderr)
        scaler = {"init_scale": 1e30, "min_loss_scale": 1e30, "hysteresis": 2}
        keys |= {"optimizer": {"name": "sgd", "lr": 1e-3}, "precision": {"mixed_precision": "fp16", "grad_scaler": scaler}}
        ended = self.start(self.built(model=small, **keys))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("step 2: gradients overflow at a loss scale of 1e+30, the least one", ended.stderr)


def add(name, job):
    setattr(Training, f"test_{name}", lambda self: self.check(name, job))


if __name__ == "__main__":
    PARTS = Training.parts = objects()
    named, known = [word for word in sys.argv[1:] if not word.startswith("-")], {**CASES, **MORE}
    cases = [name for name in named if name in known] or [*in_turn(CASES, 6), *in_turn(MORE, len(MORE))]
    for name in cases:
        add(name, known[name])
    unittest.main(argv=sys.argv[:1], defaultTest=[f"Training.test_{name}" if name in known else name for name in named] or None)
