"""Jobs drawn from the schema: every key of schemas/job.schema.json with values worth combining, on small models. A key
that is new in the schema is drawn without a change here, unless its values are texts: then VALUES must have some."""

import json
import re
import subprocess

import jsonschema
import numpy as np
from harness import GENERATOR, MODELS, TREE

SCHEMA = json.loads((TREE / "schemas" / "job.schema.json").read_text())

# What every job here has. Keys of BASES are never taken away again.
COMMON = {"training.steps": 10, "training.seed": 11, "tracking.every": 1, "checkpoint.project_dir": "run"}
BYTES = {"data.train": {"path": "corpus.txt", "format": "bytes"}, "data.batch_size": 3}
BASES = {
    "gpt2": {**COMMON, **BYTES, "model.source": str(MODELS / "gpt2.c"), "model.config": {
        "n_layer": 2, "n_head": 3, "n_embd": 15, "vocab_size": 256, "block_size": 7, "dropout": 0.1}},
    "mlp_table": {**COMMON, "model.source": str(MODELS / "mlp_table.c"), "data.batch_size": 3, "data.features": 5,
                  "data.train": {"path": "rows.csv", "format": "csv"},
                  "model.config": {"n_layer": 2, "width": 7, "n_classes": 3}},
    "gru_bytes": {**COMMON, **BYTES, "model.source": str(MODELS / "gru_bytes.c"),
                  "model.config": {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 3}},
}

# The values of keys where their type does not say which are worth trying.
VALUES = {
    "extends": [],  # files: tests/spec/test_extends.py
    "requires": [],  # tests/spec/test_versions.py
    "training.samples": [20, 50],
    "training.epochs": [1],
    "model.weights": [],  # from another run: tests/program/test_parity.py
    "model.source": [], "model.config": [], "data.train": [], "checkpoint.project_dir": [],
    "data.eval": [{"path": "corpus.txt", "format": "bytes"}, {"path": "rows.csv", "format": "csv"}],
    "data.batch_size": [1, 4, "auto"],
    "data.sequence_length": [0, 2, 3],
    "data.features": [5],
    "data.inputs": [],  # a table with a header: tests/reference/test_inputs.py
    "data.epoch_samples": [],  # needs hooks.on_order: tests/reference/test_samplers.py
    "data.packing": [],  # needs tokens with documents: tests/reference/test_packing.py
    "data.label": ["class"],
    "data.masking": [{"mask_token": 5, "probability": 1}, {"mask_token": 0, "probability": 1, "random": 0.5, "keep": 0.5}],
    "devices.kind": ["cpu"], "devices.attention": [], "devices.convolution": [], "devices.arch": ["native", "x86-64-v3", "avx512"], "precision.tf32": [], "profile.nvtx": [],  # cuda: tests/cuda; xla: tests/xla
    "parallelism.offload.optimizer": ["nvme"], "parallelism.offload.optimizer_nvme_path": [],
    "parallelism.offload.param": ["nvme"], "parallelism.offload.param_nvme_path": [],
    "devices.tuning": [],  # a table of this machine: tests/commands/test_tune.py
    "devices.threads": [1, 2], "devices.nodes": [1], "devices.per_node": [1], "devices.numa_affinity": [False], "devices.timeout": [60],
    **{f"parallelism.{axis}": [1, 2] for axis in ("dp_replicate", "dp_shard", "pp", "cp", "sp", "tp", "ep")},
    "parallelism.pp_schedule": ["1f1b", "gpipe"],  # interleaved: tests/parallel/test_pipeline.py
    "parallelism.megatron.num_layers_per_virtual_pipeline_stage": [],
    "parallelism.megatron.pipeline_model_parallel_split_rank": [],  # an encoder and a decoder: tests/parallel/test_pipeline.py
    "parallelism.zero_stage": [0, 1, 2, 3],
    "parallelism.tp_plan": [],  # tests/parallel/test_tensor_plan.py
    "parallelism.sync_batch_norm": [False],  # batch normalisation: tests/reference/test_sync_batch_norm.py
    "parallelism.fsdp": [],  # several ranks: tests/parallel
    "parallelism.ddp.comm_state_option": [],  # tests/reference/test_power_sgd.py
    "parallelism.ddp.bucket_cap_mb": [25, 0.5],  # several ranks: tests/parallel
    "optimizer.lr": [1e-3, 0.01],
    "optimizer.betas": [[0.9, 0.95], [0.0, 0.99]],
    "optimizer.eps": [1e-8, 1e-5],
    "optimizer.weight_decay": [0, 0.1],
    "optimizer.clip_grad_norm": [0, 0.5],
    "optimizer.clip_grad_value": [0.01],
    "model.freeze": [["*.bias"], ["re:weight$"]],
    "model.lora": [{"targets": ["re:(c_fc|hidden[.]0)$"]},
                   {"targets": ["re:(c_proj|output)$"], "rank": 2, "dropout": 0.25, "merge": False}],
    "precision.mixed_precision": ["no", "bf16", "fp16"],  # fp8, of models whose extents are multiples of 16: tests/models/test_fp8.py
    "precision.fp8": [],
    "model.quantize": [],  # frozen weights: tests/models/test_quantized.py
    "checkpoint.folder_of": [],  # a folder of Hugging Face: tests/models/test_folder.py
    "model.weights_map": [],  # tests/models/test_weights_map.py
    "model.weights_prefix": [], "model.fresh": [], "model.ignore": [],  # tests/models/test_lora.py, tests/runtime
    "optimizer.r": [0, 0.5], "optimizer.weight_lr_power": [2, 1.0],
    "optimizer.beta2_decay": [-0.8, -0.5], "optimizer.ns_coefficients": [[3.4445, -4.775, 2.0315]],
    "optimizer.clip_threshold": [1.0, 2.0], "optimizer.ns_steps": [5, 2],
    "optimizer.adamw.lr": [1e-3], "optimizer.adamw.betas": [[0.9, 0.95]], "optimizer.adamw.eps": [1e-8],
    "optimizer.adamw.weight_decay": [0, 0.1],
    "optimizer.param_groups": [[{"match": "*.bias", "weight_decay": 0}], [{"match": "*", "lr_scale": 0.5}]],
    "data.eval_batch_size": [7, 1], "accumulation.num_steps": [1, 2, 3, "auto"], "accumulation.train_batch_size": [12],
    "devices.memory": ["1GiB", "2MB", {"cpu": "1g"}], "memory.reserve": ["1KiB"], "memory.no_split": [[]],
    "memory.device_map": ["auto", "balanced", "balanced_low_0", "sequential", {"*": "cpu"}],
    "memory.checkpoint_every": [1, 2], "memory.checkpoint_layers": [1, 2], "memory.checkpoint_functions": [["mlp"]], "memory.cross_entropy_chunk": [0, 2, "auto"],
    "training.steps": [10], "training.seed": [0, 7],
    "training.eval_delay": [3, "1/2 epoch"], "training.eval_on_start": [True], "training.eval_interval": [0, 5, "1/2 epoch"], "training.eval_iters": [1, 2, "all"],
    "training.early_stopping": [{"patience": 2}, {"patience": 1, "metric": "accuracy", "restore_best": True}],
    "hooks": [],  # tests/program/test_hooks.py
    "profile": [],  # tests/program/test_profile.py
    "precision.keep_in_fp32": [["*bias"], ["*.c_proj.*", "output.*"]], "precision.reduce_dtype": ["fp32"],
    "precision.buffer_dtype": ["fp32"],
    "training.ema": [{"decay": 0.9}, {"decay": 0.9, "every": 2, "warmup": True}],
    "training.metrics": [["perplexity"], ["accuracy", "f1_macro"]],
    "checkpoint.max_shard_size": ["10GB", "1KB"], "checkpoint.dtype": ["bf16", "fp16"], "checkpoint.resume": ["never", "auto"],
    "precision.grad_scaler.init_scale": [65536.0, 1024.0], "checkpoint.every": [0, 4, "30min", "2 epochs", {"steps": 4, "minutes": 30}], "tracking.every": [1],
    "tracking.log_with": [["csv", "tensorboard"], ["wandb", "mlflow", "dvclive", "trackio", "comet_ml", "clearml", "swanlab", "aim"]], "tracking.project": ["digits"], "tracking.run_name": ["first"], "tracking.tags": [["small"]],
    "tracking.logging_dir": ["logs"],
    "schedule.warmup_steps": [0, 3], "schedule.decay_steps": [0, 8], "schedule.min_lr": [0, 1e-5],
    "schedule.warmup_samples": [7], "schedule.decay_samples": [20], "schedule.start_weight_decay": [0, 0.01],
    "schedule.gamma": [0.5, 1], "schedule.cycles": [1, 2], "schedule.stable_steps": [0, 4],
    "schedule.step_size": [1, 4], "schedule.timescale": [0, 5], "schedule.div_factor": [25.0, 2.0],
    "schedule.final_div_factor": [1e4],
}

# What a key, or a key with one value, asks for in addition to itself; None: that it is away.
COMPANIONS = {
    "training.samples": {"training.steps": None},
    "training.epochs": {"training.steps": None},
    ("memory.activation_checkpointing", "every"): {"memory.checkpoint_every": 2},
    ("memory.activation_checkpointing", "layers"): {"memory.checkpoint_layers": 1},
    ("memory.activation_checkpointing", "functions"): {"memory.checkpoint_functions": ["mlp"]},
    ("memory.activation_checkpointing", "auto"): {"devices.memory": "1GiB"},
    ("data.batch_size", "auto"): {"devices.memory": "1MiB"},
    ("accumulation.num_steps", "auto"): {"accumulation.train_batch_size": 12},
    "accumulation.train_batch_size": {"accumulation.num_steps": "auto"},
    "memory.checkpoint_every": {"memory.activation_checkpointing": "every"},
    "memory.checkpoint_layers": {"memory.activation_checkpointing": "layers"},
    "memory.checkpoint_functions": {"memory.activation_checkpointing": "functions"},
    "training.metrics": {"training.eval_interval": 5},
    "training.eval_delay": {"training.eval_interval": 5},
    "data.eval_batch_size": {"training.eval_interval": 5},
    "training.eval_on_start": {"training.eval_interval": 5},
    "precision.autocast.enabled": {"precision.mixed_precision": "bf16"},
    "precision.autocast.cache_enabled": {"precision.mixed_precision": "bf16"},
    **{f"precision.grad_scaler.{key}": {"precision.grad_scaler.enabled": True}
       for key in ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "hysteresis", "consecutive_hysteresis",
                   "min_loss_scale", "dynamic")},
    "training.early_stopping": {"training.eval_interval": 5},
    **{f"tracking.{key}": {"tracking.log_with": ["tensorboard"]} for key in ("project", "run_name", "tags", "logging_dir")},
    "tracking.noise_scale": {"accumulation.num_steps": 2},
    "tracking.noise_decay": {"accumulation.num_steps": 2, "tracking.noise_scale": True},
    "optimizer.norm_type": {"optimizer.clip_grad_norm": 0.5},
    "schedule.start_weight_decay": {"optimizer.weight_decay": 0.1, "schedule.wd_incr_style": "linear"},
    ("schedule.wd_incr_style", "linear"): {"optimizer.weight_decay": 0.1},
    ("schedule.wd_incr_style", "cosine"): {"optimizer.weight_decay": 0.1},
    "optimizer.nesterov": {"optimizer.momentum": 0.5},
    ("optimizer.name", "sgd"): {"optimizer.momentum": 0.5},
    "data.join_uneven_inputs": {"data.drop_last": False, "data.even_batches": False},
    ("parallelism.tp", 2): {"devices.per_node": 2},
    ("parallelism.offload.optimizer", "nvme"): {"parallelism.offload.optimizer_nvme_path": "."},
    ("parallelism.offload.param", "nvme"): {"parallelism.offload.optimizer": "nvme", "parallelism.offload.optimizer_nvme_path": ".",
                                            "parallelism.offload.param_nvme_path": "."},
    "parallelism.pp_schedule": {"devices.per_node": 2, "parallelism.pp": 2, "accumulation.num_steps": 4,
                                "accumulation.sync_with_dataloader": False},
    **{f"devices.{link}.{one}": {f"devices.{link}.{other}": 1000} for link in ("link", "network")
       for one, other in (("latency", "bandwidth"), ("bandwidth", "latency"))},
    ("parallelism.megatron.sequence_parallelism", True): {"devices.per_node": 2, "parallelism.tp": 2},
    "parallelism.ddp.divide_by_initial_world_size": {"data.join_uneven_inputs": True, "data.drop_last": False,
                                                     "data.even_batches": False},
    ("parallelism.ddp.comm_wrapper", "fp16"): {"parallelism.ddp.comm_hook": "power_sgd"},
    ("parallelism.ddp.comm_wrapper", "bf16"): {"parallelism.ddp.comm_hook": "batched_power_sgd"},
    ("schedule.name", "exponential"): {"schedule.gamma": 0.5},
    ("schedule.name", "step"): {"schedule.gamma": 0.5, "schedule.step_size": 4},
}


def companions(key, value):
    return COMPANIONS.get(key, {}) | (COMPANIONS.get((key, value), {}) if isinstance(value, (str, int)) else {})


def target(schema):
    """The schema with what its $ref leads to."""
    if "$ref" not in schema:
        return schema
    return {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}


def default_of(job, key, default):
    """A key's default given the other keys of its group: the last one whose condition holds, else its own."""
    group, name = key.split(".")[0], key.split(".")[1:]
    own = {other.split(".", 1)[1]: value for other, value in job.items() if other.startswith(group + ".")}
    for part in SCHEMA["properties"][group].get("allOf", []) if len(name) == 1 else []:
        if jsonschema.Draft202012Validator(part["if"]).is_valid(own):
            then = part.get("then", {}).get("properties", {}).get(name[0], {})
            default = then.get("default", default) if isinstance(then, dict) else default
    return default


def by_type(key, schema):
    if "enum" in schema:
        return schema["enum"]
    if "const" in schema:
        return [schema["const"]]
    for form in ("oneOf", "anyOf"):
        if form in schema:
            return [value for one in schema[form] for value in by_type(key, target(one))]
    kinds = schema.get("type", [])
    values = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1e30))
        inside = [x for x in ([low, low + 1, low + 2] if kind == "integer" else [low, 0.25, 0.5, 1.0, 2.0])
                  if low <= x <= high and x not in (schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum"))]
        values += {"boolean": [False, True], "integer": inside, "number": inside}.get(kind, [])
    return values


def leaves(schema=SCHEMA, prefix=""):
    """Every key below the groups, with its schema; a group of groups is walked through."""
    for name, inner in schema.get("properties", {}).items():
        key, inner = prefix + name, target(inner)
        if "properties" in inner and key not in VALUES:
            yield from leaves(inner, key + ".")
        else:
            yield key, inner


def all_values():
    """Key to its values; keys without any are left out."""
    found = {}
    for key, schema in leaves():
        values = VALUES[key] if key in VALUES else by_type(key, schema)
        if not values and key not in VALUES:
            raise AssertionError(f"tests/program/keys.py: VALUES has no values for the new key {key}")
        if values:
            found[key] = values
    return found


def write(job, path):
    """Writes a job of dotted keys, one key a line; returns line to key."""
    lines, keys_of_lines, open_groups = [], {}, []
    for key in sorted(key for key in job if job[key] is not None):
        groups = key.split(".")[:-1]
        for depth, group in enumerate(groups):
            if open_groups[:depth + 1] != groups[:depth + 1]:
                lines.append("  " * depth + group + ":")
                open_groups = groups[:depth + 1]
        lines.append("  " * len(groups) + f"{key.rsplit('.', 1)[-1]}: {json.dumps(job[key])}")
        keys_of_lines[len(lines)] = key
    path.write_text("\n".join(lines) + "\n")
    return keys_of_lines


def write_data(folder):
    rng = np.random.default_rng(5)
    (folder / "corpus.txt").write_bytes(rng.integers(97, 123, 6000).astype(np.uint8).tobytes())
    rows = [",".join(f"{x:.4f}" for x in rng.normal(size=5)) + f",{rng.integers(3)}" for _ in range(6000)]
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")


class Refusal:
    """What the generator said no with: its messages, and the keys that they point at. What is missing in the whole job has
    no location of its own; its note has one."""

    def __init__(self, text, path, keys_of_lines):
        self.text = text
        self.messages = re.findall(rf"^{re.escape(str(path))}:(\d+):\d+: (?:error|note): (.*)$", text, re.M)
        self.keys = [keys_of_lines[int(line)] for line, _ in self.messages if int(line) in keys_of_lines]
        self.elsewhere = re.findall(r"^(\S+:\d+:\d+): (?:error|note): ", text, re.M)


def generate(job, folder, name="job", generator=GENERATOR):
    """The text of the program, or a Refusal. Anything else fails."""
    path, out = folder / f"{name}.yaml", folder / f"{name}.c"
    keys_of_lines = write(job, path)
    out.unlink(missing_ok=True)
    result = subprocess.run([generator, path, "-o", out], capture_output=True, text=True, cwd=folder, timeout=300)
    if result.returncode == 0:
        return out.read_text()
    if result.returncode != 2:
        raise AssertionError(f"status {result.returncode} for\n{path.read_text()}\n{result.stderr}")
    if out.exists():
        raise AssertionError(f"a refused job left a program:\n{path.read_text()}")
    refusal = Refusal(result.stderr, path, keys_of_lines)
    if not refusal.elsewhere:
        raise AssertionError(f"refused without a location:\n{path.read_text()}\n{result.stderr}")
    return refusal
