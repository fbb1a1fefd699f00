"""`accel-gen verify` on trainers whose arithmetic was edited: each differs. Unedited ones do not.

usage: test_sabotage.py [--all] [KIND...]    "functions": those of functions by themselves
In a run: some of the unedited trainers and of the edits, which SEED says; with --all, as in `ninja soak`, all of them.
--table: a line for each edit with what differed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path[:0] = ["tests/verify", "tests/program"]
from edits import (CLIPPED, CURVE, DIVIDED, DROPPED, DROPS, EDITS, GPT, KINDS, LLAMA, MAMBA, MIXTRAL, MLP, OF_FUNCTIONS, PACKED, PADDED,
                   REPLICAS, RESNET, SCALED, SHARDS)
from harness import GENERATOR, MODELS, TREE
from rotation import is_in_turn

ADAMW = {"name": "adamw", "lr": 3e-3, "betas": [0.9, 0.95], "weight_decay": 0.1,
         "param_groups": [{"match": "*.bias", "weight_decay": 0}]}


def mlp(optimizer, **groups):
    return {"model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 2, "width": 8, "n_classes": 3}},
            "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 5, "batch_size": 4},
            "optimizer": optimizer, "training": {"steps": 20, "seed": 3}, **groups}


SCALER = {"grad_scaler": {"enabled": True, "init_scale": 1234.5, "growth_interval": 2}}
JOBS = {
    MLP: mlp(ADAMW, accumulation={"num_steps": 2}, training={"steps": 20, "seed": 3, "ema": {"decay": 0.9}}),
    CLIPPED: mlp({"name": "sgd", "lr": 0.1, "clip_grad_norm": 0.01}),
    SCALED: mlp({"name": "adam", "lr": 3e-3}, precision=SCALER, accumulation={"num_steps": 3, "normalize": "tokens"}),
    CURVE: mlp(ADAMW, schedule={"name": "cosine", "warmup_steps": 3, "min_lr": 1e-4}),
    GPT: {"model": {"source": str(MODELS / "gpt2.c"),
                    "config": {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 24, "block_size": 8}},
          "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 2},
          "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}, "training": {"steps": 20, "seed": 3}},
    LLAMA: {"model": {"source": str(MODELS / "llama.c"),
                      "config": {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                                 "hidden_size": 8, "intermediate_size": 12, "vocab_size": 24}},
            "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 2, "sequence_length": 8},
            "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}},
}


def dropped(source, **config):
    """A job with dropout, of several micro-batches."""
    return {"model": {"source": str(source), "config": {**config, "vocab_size": 24, "block_size": 8, "dropout": 0.1}},
            "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 2}, "accumulation": {"num_steps": 2},
            "optimizer": {"name": "sgd", "lr": 0.1}, "training": {"steps": 20, "seed": 3}}


def ranks(count, **parallelism):
    """A job of several ranks, with dropout where they divide batches alone, and two micro-batches each."""
    config = {**JOBS[GPT]["model"]["config"], "dropout": 0 if "tp" in parallelism else 0.1}
    return {**JOBS[GPT], "model": {**JOBS[GPT]["model"], "config": config},
            "accumulation": {"num_steps": 2, "sync_with_dataloader": "pp" not in parallelism}, "devices": {"per_node": count},
            "optimizer": {"name": "adamw", "lr": 0.01, "clip_grad_norm": 0.1}, "parallelism": parallelism}


CURVED = {"schedule": {"name": "cosine", "warmup_steps": 3, "min_lr": 1e-4}}
BETAS = {"betas": [0.8, 0.97]}


def adapted(name, **lora):
    """A job of the others, with adapters."""
    return {**JOBS[name], "model": {**JOBS[name]["model"], "lora": lora}, "optimizer": {"name": "adamw", "lr": 0.01}}


def packed(packing):
    """A job over documents."""
    return {"model": {"source": str(TREE / "tests/reference/models/packed.c"), "config": {"width": 8, "block_size": 12}},
            "data": {"train": {"path": "documents.tok", "format": "tokens"}, "batch_size": 3, "packing": packing, "sequence_length": 12},
            "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}}


# Optimizers beyond those of the jobs above, with the defaults of their keys and with other numbers; averages; adapters; convolutions;
# documents.
OTHERS = {
    RESNET: {"model": {"source": str(MODELS / "resnet.c"),
                       "config": {"layer_type": "BASIC", "image_size": 8, "num_channels": 2, "num_labels": 3, "embedding_size": 4, "stages": 2,
                                  "hidden_sizes.0": 4, "hidden_sizes.1": 8, "depths.0": 1, "depths.1": 1}},
             "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": 128, "batch_size": 6},
             "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}},
    MAMBA: {**JOBS[GPT], "model": {"source": str(MODELS / "mamba.c"),
                                   "config": {"num_hidden_layers": 1, "hidden_size": 8, "state_size": 4, "time_step_rank": 2, "vocab_size": 24}},
            "data": JOBS[LLAMA]["data"]},
    MIXTRAL: {**JOBS[LLAMA], "model": {"source": str(MODELS / "mixtral.c"),
                                       "config": {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                                                  "hidden_size": 8, "intermediate_size": 12, "vocab_size": 24, "num_local_experts": 4,
                                                  "num_experts_per_tok": 2}}},
    DROPPED: dropped(MODELS / "gpt2.c", n_layer=2, n_head=2, n_embd=8),
    DROPS: dropped(TREE / "tests/reference/models/drops.c", n_layer=3, width=8),
    REPLICAS: ranks(2, dp_replicate=2),
    SHARDS: ranks(2, dp_shard=2, zero_stage=3),
    DIVIDED: ranks(4, dp_replicate=2, tp=2),
    "stages": ranks(2, pp=2),
    "positions": ranks(2, cp=2),
    PACKED: packed("documents"),
    PADDED: packed("pad"),
    # A mask among its numbers; relative positions without a scale of attention; eps that shows where numbers are 0 alone.
    "classifier": {"model": {"source": str(MODELS / "bert_classifier.c"),
                             "config": {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8, "intermediate_size": 12,
                                        "vocab_size": 20, "max_position_embeddings": 6, "num_labels": 3}},
                   "data": {"train": {"path": "rows.npz", "format": "npz"},
                            "inputs": {"input_ids": {"shape": [6], "dtype": "int32"}, "attention_mask": {"shape": [6]},
                                       "token_type_ids": {"shape": [6], "dtype": "int32"}, "labels": {"dtype": "int32"}}, "batch_size": 3},
                   "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}},
    "t5": {"model": {"source": str(MODELS / "t5.c"),
                     "config": {"num_layers": 1, "num_decoder_layers": 1, "num_heads": 2, "d_model": 8, "d_kv": 4, "d_ff": 12, "vocab_size": 24}},
           "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 2, "sequence_length": 8},
           "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}},
    "gemma": {"model": {"source": str(MODELS / "gemma.c"),
                        "config": {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
                                   "hidden_size": 8, "intermediate_size": 12, "vocab_size": 24}},
              "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 2, "sequence_length": 8},
              "optimizer": {"name": "adamw", "lr": 0.01}, "training": {"steps": 20, "seed": 3}},
    "lamb": mlp({"name": "lamb", "lr": 0.01}),
    "lamb_decay": mlp({"name": "lamb", "lr": 0.01, **BETAS, "eps": 1e-4, "weight_decay": 0.1, "clip_grad_norm": 0.5}, **CURVED),
    "adafactor": mlp({"name": "adafactor", "lr": 0.01}),
    "adafactor_decay": mlp({"name": "adafactor", "lr": 0.01, "beta2_decay": -0.6, "eps": 1e-3, "least_scale": 0.1,
                            "clip_threshold": 1.01, "weight_decay": 0.1}, **CURVED),
    "schedule_free": mlp({"name": "schedule_free_adamw", "lr": 0.01}),
    "schedule_free_decay": mlp({"name": "schedule_free_adamw", "lr": 0.01, **BETAS, "eps": 1e-6, "weight_decay": 0.1, "r": 0.5,
                                "weight_lr_power": 1.0}, schedule={"name": "constant", "warmup_steps": 3}),
    "nesterov": mlp({"name": "sgd", "lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "clip_grad_norm": 1.0}),
    "states_on_disk": mlp({"name": "adamw", "lr": 0.01}, parallelism={"offload": {"optimizer": "nvme", "optimizer_nvme_path": "states"}}),
    "muon": mlp({"name": "muon", "lr": 0.01, "weight_decay": 0.1}),
    "muon_plain": mlp({"name": "muon", "lr": 0.01, "nesterov": False, "momentum": 0.8, "adjust_lr_fn": "match_rms_adamw",
                       "ns_steps": 3, "adamw": {"lr": 0.02, **BETAS, "eps": 1e-6, "weight_decay": 0.1},
                       "param_groups": [{"match": "output.*", "adamw": True, "lr_scale": 0.5}]}, **CURVED),
    "lomo": mlp({"name": "lomo", "lr": 0.1, "clip_grad_value": 0.01}),
    "lomo_norm": mlp({"name": "lomo", "lr": 0.1, "clip_grad_norm": 0.1}),
    "adalomo": mlp({"name": "adalomo", "lr": 0.01}),
    "adalomo_decay": mlp({"name": "adalomo", "lr": 0.01, "beta2_decay": -0.6, "eps": 1e-6, "least_scale": 0.1,
                          "clip_threshold": 1.1, "weight_decay": 0.1, "clip_grad_norm": 0.1}, **CURVED),
    "average_every": mlp(ADAMW, training={"steps": 20, "seed": 3, "ema": {"decay": 0.9, "every": 2}}),
    "short_batches": {**JOBS[GPT], "data": {**JOBS[GPT]["data"], "batch_size": 4, "drop_last": False},
                      "accumulation": {"num_steps": 3, "normalize": "tokens"}},
    "adapters": adapted(GPT, targets=["c_attn", "c_proj"], rank=2, alpha=4),
    "adapters_apart": adapted(LLAMA, targets=["q_proj", "v_proj"], rank=3, alpha=4, use_rslora=True, merge=False,
                              modules_to_save=["lm_head"]),
    "average_warm": mlp(ADAMW, training={"steps": 20, "seed": 3, "ema": {"decay": 0.99, "warmup": True}}, **CURVED),
}
JOBS.update(OTHERS)


class Bench:
    def __init__(self, folder):
        self.folder, self.texts = folder, {}

    def job(self, name):
        path = self.folder / f"{name}.yaml"
        if name not in self.texts:
            path.write_text(json.dumps({**JOBS[name], "checkpoint": {"project_dir": "run"}}))
            subprocess.run([GENERATOR, path, "-o", self.folder / "trainer.c"], check=True)
            # The program says how it is compiled; less of it is enough here.
            self.texts[name] = (self.folder / "trainer.c").read_text().replace(" -O3 ", " -Og ", 1)
        return path, self.texts[name]

    def verify(self, name, text, *options):
        path = self.job(name)[0]
        (self.folder / "edited.c").write_text(text)
        return subprocess.run([GENERATOR, "verify", self.folder / "edited.c", "--job", path, *options], capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})


def subjects(run, verdict):
    """Of the lines with a verdict, what they are about."""
    return [line[15:].split()[0] for line in run.stdout.splitlines() if line.startswith(f"  {verdict} ")]


def subjects_after(run, verdict):
    """The same of the functions."""
    lines = run.stdout.partition("its functions, each by itself\n")[2].splitlines()
    return [line[15:].split()[0] for line in lines if line.startswith(f"  {verdict} ")]


def check_edit(bench, edit):
    _, name, old, new = edit
    text = bench.job(name)[1]
    if text.count(old) == 0:
        return "there is nothing to edit", []
    run = bench.verify(name, text.replace(old, new))
    found = subjects(run, "differs")
    return None if run.returncode == 1 and found else f"status {run.returncode}\n{run.stdout}{run.stderr}", found


def check_function(bench, edit):
    """The edited function differs by itself."""
    _, name, old, new, function = edit
    text = bench.job(name)[1]
    if text.count(old) == 0:
        return "there is nothing to edit"
    run = bench.verify(name, text.replace(old, new), "--functions")
    found = subjects_after(run, "differs")
    proved = function in subjects_after(run, "equal")
    return None if run.returncode == 1 and function in found and not proved else f"status {run.returncode}\n{run.stdout}{run.stderr}"


def main(arguments):
    names = [a for a in arguments if not a.startswith("--")]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-verify-") as folder:
        bench = Bench(pathlib.Path(folder))
        for i, name in enumerate(JOBS):
            if name in OTHERS and not is_in_turn(i, 7):
                continue
            run = bench.verify(name, bench.job(name)[1], "--functions")
            good = run.returncode == 0 and not subjects(run, "differs") and subjects_after(run, "equal")
            good = good and not (name in (MLP, SCALED, GPT) and subjects(run, "cannot tell"))
            print(f"ok unedited {name}" if good else f"not ok unedited {name}: {run.stdout}{run.stderr}")
            failed += not good
        caught = dict.fromkeys(KINDS, 0)
        for i, edit in enumerate(EDITS):
            if edit[0] not in names if names else not is_in_turn(i, 18):
                continue
            wrong, found = check_edit(bench, edit)
            print(f"not ok {edit[0]}, edit {i}: {wrong}" if wrong else f"ok {edit[0]}, edit {i}", flush=True)
            if "--table" in arguments:
                print(f"# {edit[0]} | {edit[1]} | {', '.join(found)}")
            caught[edit[0]] += wrong is None
            failed += wrong is not None
        if "--table" in arguments:
            for kind, edits in KINDS.items():
                print(f"# {kind} | {len(edits)} | {caught[kind]}")
        for i, edit in enumerate(OF_FUNCTIONS):
            if "functions" not in names if names else not is_in_turn(i, 12):
                continue
            wrong = check_function(bench, edit)
            print(f"not ok {edit[0]} in {edit[4]}: {wrong}" if wrong else f"ok {edit[0]} in {edit[4]}")
            failed += wrong is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
