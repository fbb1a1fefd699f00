"""The jobs whose programs are compiled, formatted and run by the tests of this folder: every model, kind of program,
optimizer, schedule and cadence at least once, on small odd shapes, so that every remainder loop runs."""

import os
import shutil
import subprocess

import numpy as np
from harness import MODELS, TREE

LOSSES = TREE / "tests" / "program" / "models" / "losses"
GPT = {"n_layer": 3, "n_head": 3, "n_embd": 15, "vocab_size": 256, "block_size": 7}
LLAMA = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "hidden_size": 15,
         "intermediate_size": 21, "vocab_size": 256, "rope.kind": "ROPE_LLAMA3", "rope.factor": 8, "rope.original_length": 8}
BERT = {"num_hidden_layers": 2, "num_attention_heads": 3, "hidden_size": 15, "intermediate_size": 21, "vocab_size": 257,
        "max_position_embeddings": 9}
ADAMW = {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.95], "weight_decay": 0.1, "clip_grad_norm": 1.0}
COSINE = {"name": "cosine", "warmup_steps": 2, "min_lr": 1e-4}
SCALER = {"grad_scaler": {"enabled": True, "init_scale": 1234.5, "growth_interval": 2}}
LATE_SCALER = {"grad_scaler": {**SCALER["grad_scaler"], "hysteresis": 2, "min_loss_scale": 1}}
BF16, FP16 = {"mixed_precision": "bf16"}, {"mixed_precision": "fp16"}
NO_DECAY = [{"match": "*.bias", "weight_decay": 0}, {"match": "*ln_*.weight", "weight_decay": 0, "lr_scale": 2}]


class Case:
    """A job and the kind of program that is made of it."""

    def __init__(self, name, model, config, program="train", data=None, freeze=(), **groups):
        self.name, self.program = name, program
        self.table = model in ("mlp_table", LOSSES)
        source = {"path": "rows.csv", "format": "csv"} if self.table else {"path": "corpus.txt", "format": "bytes"}
        self.job = {
            "model": {"source": str(MODELS / f"{model}.c"), "config": dict(config)},
            "data": {"train": source, "batch_size": 3, **({"features": 5} if self.table else {}), **(data or {})},
            "training": {"steps": 3, "seed": 11},
            "checkpoint": {"project_dir": "run"},
        }
        if freeze:
            self.job["model"]["freeze"] = freeze
        self.job["model"].update(groups.pop("model_keys", {}))
        for group, keys in groups.items():
            self.job.setdefault(group, {}).update(keys)

    def write_data(self, folder):
        rng = np.random.default_rng(5)
        (folder / "corpus.txt").write_bytes(rng.integers(97, 123, 1500).astype(np.uint8).tobytes())
        rows = [",".join(f"{x:.4f}" for x in rng.normal(size=5)) + f",{rng.integers(3)}" for _ in range(60)]
        (folder / "rows.csv").write_text("\n".join(rows) + "\n")


def gpt(name, model="gpt2", config=None, **groups):
    return Case(name, model, {**GPT, **(config or {})}, **groups)


def mlp(name, **groups):
    return Case(name, "mlp_table", {"n_layer": 2, "width": 7, "n_classes": 3}, **groups)


def gru(name, **groups):
    return Case(name, "gru_bytes", {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 3}, **groups)


CASES = [
    gpt("gpt2", optimizer=ADAMW, schedule=COSINE),
    gpt("gpt2_accumulation", accumulation={"num_steps": 3}, optimizer={"name": "sgd", "lr": 0.1}),
    gpt("gpt2_eval", training={"eval_interval": 2, "eval_iters": 3}, schedule={"name": "linear"}),
    gpt("gpt2_dropout", config={"dropout": 0.1}, training={"eval_interval": 2, "eval_iters": 2}),
    gpt("gpt2_dropout_accumulation", config={"dropout": 0.1}, accumulation={"num_steps": 2}),
    gpt("gpt2_one_layer", config={"n_layer": 1}, schedule={"warmup_steps": 2}, checkpoint={"every": 2}),
    gpt("gpt2_one_of_each", config={"n_layer": 1, "n_head": 1, "n_embd": 1, "block_size": 1}, data={"batch_size": 1}),
    gpt("gpt2_short", data={"sequence_length": 5, "shuffle": False, "eval_fraction": 0}),
    gpt("gpt2_wide", config={"n_layer": 2, "n_head": 2, "n_embd": 128, "block_size": 33}, optimizer=ADAMW),
    gpt("gpt2_generate", program="generate"),
    gpt("gpt2_evaluate", program="evaluate", config={"dropout": 0.1}, data={"batch_size": 4},
        training={"eval_interval": 2, "eval_iters": "all", "metrics": ["perplexity", "accuracy"]}),
    gpt("gpt2_evaluate_bf16", program="evaluate", precision=BF16, memory={"cross_entropy_chunk": 8}),
    gpt("nanogpt", "nanogpt", optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9, "clip_grad_norm": 0.5}),
    gpt("nanogpt_no_bias", "nanogpt", {"bias": False}, optimizer=ADAMW, accumulation={"num_steps": 2}),
    gpt("nanogpt_dropout", "nanogpt", {"dropout": 0.2}, schedule={"name": "linear", "decay_steps": 2, "min_lr": 1e-5}),
    gpt("nanogpt_generate", "nanogpt", {"bias": False}, program="generate"),
    gpt("nanogpt_generate_dropout", "nanogpt", {"dropout": 0.2}, program="generate"),
    mlp("mlp", optimizer={"name": "sgd", "lr": 0.1, "weight_decay": 0}),
    mlp("mlp_eval", training={"eval_interval": 1, "eval_iters": 2}, optimizer={"name": "sgd", "momentum": 0.9}),
    mlp("mlp_evaluate", program="evaluate", training={"eval_interval": 1, "metrics": ["f1_macro"]}),
    mlp("mlp_accumulation", accumulation={"num_steps": 2}, optimizer={**ADAMW, "weight_decay": 0}),
    gru("gru", optimizer=ADAMW, schedule={"name": "cosine"}),
    Case("llama", "llama", LLAMA, data={"sequence_length": 9}),
    Case("mistral", "mistral", {**LLAMA, "sliding_window": 4}, data={"sequence_length": 35}),
    Case("mistral_generate_bf16", "mistral", {**LLAMA, "sliding_window": 4}, program="generate", precision=BF16,
         data={"sequence_length": 35}),
    Case("bert", "bert", BERT, data={"sequence_length": 9, "masking": {"mask_token": 256}}),
    Case("losses", LOSSES, {"width": 7}, data={"batch_size": 9}),
    gpt("gpt2_checkpoint_all", config={"dropout": 0.1}, memory={"activation_checkpointing": "all"},
        training={"eval_interval": 2, "eval_iters": 2}),
    gpt("gpt2_checkpoint_every", config={"n_layer": 5, "dropout": 0.1},
        memory={"activation_checkpointing": "every", "checkpoint_every": 3}),
    gpt("gpt2_checkpoint_layers", memory={"activation_checkpointing": "layers", "checkpoint_layers": 2}),
    gpt("gpt2_checkpoint_functions", accumulation={"num_steps": 2},
        memory={"activation_checkpointing": "functions", "checkpoint_functions": ["block", "mlp"]}),
    gpt("gpt2_chunks", config={"dropout": 0.1}, memory={"cross_entropy_chunk": 7}, training={"eval_interval": 2, "eval_iters": 2}),
    gpt("nanogpt_chunks", "nanogpt", accumulation={"num_steps": 2},
        memory={"cross_entropy_chunk": "auto", "activation_checkpointing": "all"}),
    gru("gru_checkpoint", memory={"activation_checkpointing": "all"}),
    mlp("mlp_checkpoint", memory={"activation_checkpointing": "functions", "checkpoint_functions": ["hidden"]}),
    gpt("gpt2_groups", optimizer={**ADAMW, "param_groups": NO_DECAY}, schedule={"name": "one_cycle"}),
    mlp("mlp_rmsprop", optimizer={"name": "rmsprop", "momentum": 0.9, "centered": True, "param_groups": NO_DECAY[:1]}),
    mlp("mlp_nadam", optimizer={"name": "nadam", "clip_grad_norm": 1.0, "norm_type": "inf"}),
    gru("gru_lion", optimizer={"name": "lion", "clip_grad_value": 0.5}, schedule={"name": "wsd", "warmup_fraction": 0.1}),
    mlp("mlp_skip", training={"on_nonfinite": "skip"}, optimizer=ADAMW, schedule=COSINE),
    mlp("mlp_skip_accumulation", training={"on_nonfinite": "skip"}, optimizer={"name": "sgd"}, accumulation={"num_steps": 2}),
    mlp("mlp_scaler", precision=SCALER, optimizer={**ADAMW, "norm_type": "inf"}),
    gpt("gpt2_scaler", precision=LATE_SCALER, training={"on_nonfinite": "skip", "eval_interval": 2}, optimizer={"name": "sgd"},
        accumulation={"num_steps": 2}, config={"dropout": 0.1}),
    mlp("mlp_ema", training={"ema": {"decay": 0.9, "every": 2, "warmup": True, "evaluate": True}, "eval_interval": 2},
        optimizer={**ADAMW, "param_groups": NO_DECAY[:1]}),
    mlp("mlp_stopping", training={"early_stopping": {"patience": 2, "metric": "accuracy", "restore_best": True},
                                  "ema": {"decay": 0.9, "evaluate": True}, "eval_interval": 1, "eval_iters": 2}),
    gpt("gpt2_stopping", training={"early_stopping": {"patience": 1, "threshold": 0.1}, "eval_interval": 1, "eval_iters": "all"}),
    gpt("gpt2_deterministic", training={"deterministic": True, "device_specific_seed": True}, optimizer={"name": "sgd"}),
    gpt("gpt2_noise", tracking={"noise_scale": True, "grad_norms": "per_layer"}, accumulation={"num_steps": 3}, optimizer=ADAMW),
    mlp("mlp_noise", tracking={"noise_scale": True, "grad_norms": "per_layer"},
        accumulation={"num_steps": 2, "normalize": "tokens"}, optimizer={**ADAMW, "norm_type": "inf"}),
    gpt("gpt2_ema", training={"ema": {"decay": 0.999}}, optimizer={"name": "sgd"}),
    gpt("gpt2_ema_dropout", config={"dropout": 0.1}, training={"ema": {"decay": 0.99, "evaluate": True}, "eval_interval": 3}),
    mlp("mlp_exact_eval", training={"eval_interval": 2, "eval_iters": "all",
                                    "metrics": ["accuracy", "perplexity", "f1_macro"]}, data={"batch_size": 8}),
    mlp("mlp_one_sample_eval", training={"eval_interval": 3, "eval_iters": "all"}, data={"batch_size": 1}),
    gpt("gpt2_exact_eval", config={"dropout": 0.1}, data={"batch_size": 4, "data_seed": 5},
        training={"eval_interval": 3, "eval_iters": "all", "metrics": ["perplexity", "accuracy"]}),
    gpt("gpt2_schedule_free", optimizer={"name": "schedule_free_adamw", "param_groups": NO_DECAY}, config={"dropout": 0.1},
        training={"eval_interval": 2, "eval_iters": 2}, schedule={"warmup_steps": 2}),
    gpt("gpt2_bf16_states", optimizer={**ADAMW, "state_dtype": "bf16", "param_groups": NO_DECAY}),
    mlp("mlp_8bit_states", optimizer={"name": "adam", "state_dtype": "8bit"}),
    gpt("gpt2_8bit_states", config={"n_embd": 66}, optimizer={**ADAMW, "state_dtype": "8bit", "param_groups": NO_DECAY}),
    mlp("mlp_freeze", freeze=["hidden.0.*"], optimizer=ADAMW),
    gpt("gpt2_freeze", freeze=["w?e.*", "re:^h[.]0"], optimizer={**ADAMW, "param_groups": NO_DECAY},
        accumulation={"num_steps": 2}),
    gpt("gpt2_lomo", optimizer={"name": "lomo", "clip_grad_value": 0.01}, config={"dropout": 0.1},
        training={"eval_interval": 2, "eval_iters": 2}, schedule=COSINE),
    gpt("nanogpt_lomo_checkpoint", "nanogpt", optimizer={"name": "lomo", "clip_grad_norm": 1.0}, precision=FP16, memory={"activation_checkpointing": "all"}),
    gpt("gpt2_lora", model_keys={"lora": {"targets": ["c_attn", "h.1.mlp.c_fc"], "rank": 2, "dropout": 0.25}}, precision=BF16,
        training={"eval_interval": 2, "eval_iters": 2}),
    gpt("gpt2_lora_every", model_keys={"lora": {"targets": ["c_fc"]}}, memory={"activation_checkpointing": "every", "checkpoint_every": 2}),
    mlp("mlp_lora", model_keys={"lora": {"targets": ["hidden.0"], "rank": 3, "modules_to_save": ["output"], "merge": False}},
        optimizer=ADAMW),
    mlp("mlp_lomo", optimizer={"name": "lomo", "lr": 0.1}, freeze=["hidden.0.bias"]),
    gpt("gpt2_adalomo", optimizer={"name": "adalomo", "clip_grad_value": 0.01, "weight_decay": 0.1}, config={"dropout": 0.1},
        memory={"activation_checkpointing": "all"}, training={"eval_interval": 2, "eval_iters": 2}),
    mlp("mlp_adalomo", freeze=["hidden.0.bias"], precision=BF16, training={"ema": {"decay": 0.9}},
        optimizer={"name": "adalomo", "param_groups": [{"match": "*bias", "lr_scale": 0.5, "eps": 1e-20}]}),
    gpt("gpt2_adalomo_shared", freeze=["h.*", "wpe.*", "ln_f.*"], optimizer={"name": "adalomo"}),
    gpt("gpt2_lamb", optimizer={"name": "lamb", "clip_grad_norm": 1.0, "param_groups": NO_DECAY}),
    gpt("gpt2_adafactor", optimizer={"name": "adafactor", "clip_grad_value": 0.5}, accumulation={"num_steps": 2}),
    gpt("gpt2_muon", optimizer={"name": "muon", "param_groups": [{"match": "wte.weight", "adamw": True}]}),
    gpt("gpt2_bf16", precision=BF16, config={"dropout": 0.1}, accumulation={"num_steps": 2}, optimizer=ADAMW,
        training={"eval_interval": 2, "eval_iters": 2, "ema": {"decay": 0.99, "evaluate": True}}),
    gpt("gpt2_bf16_wide", config={"n_layer": 2, "n_head": 2, "n_embd": 128, "block_size": 33}, precision=BF16,
        optimizer={"name": "muon", "param_groups": [{"match": "wte.weight", "adamw": True}]},
        memory={"activation_checkpointing": "all"}),
    gpt("nanogpt_bf16_generate", "nanogpt", {"bias": False}, precision=BF16, program="generate"),
    gpt("gpt2_fp16", precision=FP16, optimizer={"name": "adafactor"}),
    gpt("gpt2_fp16_generate", precision=FP16, program="generate"),
    gru("gru_bf16", precision=BF16, optimizer={"name": "lamb", "param_groups": NO_DECAY[:1]}),
    mlp("mlp_bf16", precision=BF16, optimizer={**ADAMW, "param_groups": NO_DECAY[:1]}, data={"batch_size": 8},
        training={"eval_interval": 2, "eval_iters": "all", "metrics": ["accuracy"]}),
    gpt("gpt2_tokens", accumulation={"num_steps": 3, "normalize": "tokens"}, precision=SCALER, optimizer=ADAMW),
    mlp("mlp_tokens", accumulation={"normalize": "tokens"}, training={"eval_interval": 2}),
    mlp("mlp_without_sync", accumulation={"num_steps": 3, "sync_with_dataloader": False}),
    gru("gru_accumulation", accumulation={"num_steps": 2}, training={"eval_interval": 2, "eval_iters": 1}),
]


def tool(name):
    """The command `name`, or the same with the version that the tests install; None where there is none."""
    for candidate in (f"{name}-19", name, *(f"{name}-{v}" for v in (21, 20, 18, 17))):
        if shutil.which(candidate):
            return candidate
    return None


def library_flags(*words):
    """How an emitted program is compiled against this tree's runtime: "--cflags", "--libs"."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(TREE / "build")}
    return subprocess.check_output(["pkg-config", *words, "accel-runtime"], env=environment, text=True).split()
