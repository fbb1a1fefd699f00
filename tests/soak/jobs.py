"""Jobs drawn from schemas/job.schema.json around a model: any of its keys, with what the key's group requires in addition. A
key that is new there is drawn by its type; where its values are texts, TEXTS must have some, or `unknown` names it."""

import pathlib
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

import keys  # noqa: E402
import meshes  # noqa: E402
import models  # noqa: E402

SCHEMA = keys.SCHEMA

# Keys that the base has, and what no draw has.
BASE = {"model.source", "model.config", "data.train.path", "data.train.format", "data.features", "data.batch_size", "checkpoint.project_dir"}
NOT_DRAWN = {
    "model.weights_map": "files of other names: tests/models/test_weights_map.py",
    "checkpoint.folder_of": "a folder of Hugging Face: tests/models/test_folder.py",
    "checkpoint.dtype": "weights that are rounded after the last evaluation: tests/program/test_left.py",
    "extends": "files: tests/spec/test_extends.py",
    **{f"devices.memory.{key}": "parts of devices.memory, which TEXTS has" for key in ("gpu", "cpu", "disk")},
    "devices.tuning": "a table that takes minutes to measure: tests/commands/test_tune.py",
    "data.inputs": "in place of features and labels, which all models here take: tests/reference/test_inputs.py",
    "hooks.on_order": "a job that has no order of its own: tests/reference/test_samplers.py",
    "data.epoch_samples": "with hooks.on_order: tests/reference/test_samplers.py",
    "hooks.on_batch": "a call within a step, of which the audit says so: tests/reference/test_hooks.py",
    "hooks.on_bucket": "user code that would exchange for all jobs: tests/reference/test_comm_hook.py",
    "training.eval_on_start": "a line without figures of a step: tests/program/test_evaluation.py",
    **{f"tracking.{key}": "names of tracking.log_with: tests/program/test_tracking.py" for key in ("project", "run_name", "tags", "logging_dir")},
    **{f"model.quantize.{key}": "frozen weights: tests/models/test_quantized.py" for key in
       ("quant_type", "group_size", "activations", "load_in_4bit", "load_in_8bit", "llm_int8_threshold", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant", "bnb_4bit_compute_dtype",
        "bnb_4bit_quant_storage", "skip_modules", "keep_in_fp32_modules")},
    **{f"precision.fp8.{key}": "models whose extents are multiples of 16: tests/models/test_fp8.py" for key in
       ("emulate", "skip_first_and_last", "skip_modules", "override_linear_precision", "fp8_format", "margin", "interval", "amax_compute_algo")},
    "requires": "versions: tests/spec/test_versions.py",
    "devices.nodes": "machines: tests/parallel/test_hosts.py",
}

# Files of each domain, as data.train and data.eval name them.
SOURCES = {
    "tokens": [{"path": "corpus.txt", "format": "bytes"}, {"path": ["corpus.txt", "more.txt"], "format": "bytes"},
               {"path": ["corpus.txt", "more.txt"], "format": "bytes", "weights": [0.7, 0.3]}, {"path": "tokens.u16", "format": "nanogpt"},
               {"path": "llmc.bin", "format": "llmc"}, {"path": "all.tok", "format": "tokens"}, {"path": "tokens.npy", "format": "npy_tokens"}],
    "class": [{"path": "rows.csv", "format": "csv"}, {"path": "rows*.csv", "format": "csv"},
              {"path": "rows.npy", "labels": "labels.npy", "format": "npy"}],
    "value": [{"path": "values.csv", "format": "csv"}, {"path": "rows.npy", "labels": "values.npy", "format": "npy"}],
}

PATTERNS = ("*", "*.bias", "*.weight", "*p1.*", "re:^h[0-9]+", "re:p[2-5]", "*.0.*", "h1.*", "no_such")


def function(random, model):
    return random.choice([f.name for f in model.functions])


# Values of texts, and of what a type alone says too little of: drawers over (random, model).
TEXTS = {
    "precision.mixed_precision": lambda r, m: r.choice(("no", "bf16", "fp16")),
    "model.weights": lambda r, m: "start.safetensors",
    "model.weights_prefix": lambda r, m: r.choice(("", "base.")),
    "model.fresh": lambda r, m: [r.choice(PATTERNS)],
    "model.ignore": lambda r, m: [r.choice(("*.extra", "*"))],
    "model.lora.targets": lambda r, m: [r.choice(("re:p[0-9]+$", "re:.", "p1", "p2", "p4", "re:^h"))],
    "model.lora.modules_to_save": lambda r, m: [r.choice(("p1", "p3", "re:p[6-9]$"))],
    "model.lora.rank": lambda r, m: r.choice((1, 2, 3)),
    "model.lora.alpha": lambda r, m: r.choice((1, 8, 16.5)),
    "model.freeze": lambda r, m: [r.choice(PATTERNS)],
    "data.sequence_length": lambda r, m: r.choice((0, m.steps)),
    "data.batch_size": lambda r, m: r.choice((1, 2, 4, 6, "auto")),
    "data.eval_batch_size": lambda r, m: r.choice((1, 2, 3, 5, 8)),
    "data.packing": lambda r, m: r.choice(("none", "documents", "pad")),
    "data.eval_fraction": lambda r, m: r.choice((0, 0.2, 0.5)),
    "data.label": lambda r, m: r.choice(("class", "value")),
    "data.masking.mask_token": lambda r, m: r.choice((0, 5)),
    "data.masking.probability": lambda r, m: r.choice((0.3, 1)),
    "data.prefetch": lambda r, m: r.choice((0, 1, 3)),
    "precision.keep_in_fp32": lambda r, m: [r.choice(PATTERNS)],
    "precision.reduce_dtype": lambda r, m: "fp32",
    "precision.buffer_dtype": lambda r, m: "fp32",
    "precision.grad_scaler.init_scale": lambda r, m: r.choice((65536.0, 1024.0, 1e30)),
    "precision.grad_scaler.growth_factor": lambda r, m: r.choice((2.0, 1.5)),
    "precision.grad_scaler.growth_interval": lambda r, m: r.choice((1, 2)),
    "memory.checkpoint_functions": lambda r, m: [function(r, m)],
    "memory.cross_entropy_chunk": lambda r, m: r.choice((0, 1, 3, 7, 100, "auto")),
    "devices.memory": lambda r, m: r.choice(("1GiB", "2MB", 10**9, {"cpu": "1g"})),
    "memory.device_map": lambda r, m: r.choice(("auto", "sequential", {"*": "cpu"})),
    "memory.no_split": lambda r, m: [],
    "memory.reserve": lambda r, m: r.choice((0, "1KiB")),
    "devices.threads": lambda r, m: r.choice((0, 1, 2, 3)),
    "devices.per_node": lambda r, m: r.choice((1, 2)),
    "devices.timeout": lambda r, m: 60,
    "parallelism": lambda r, m: "auto",
    "parallelism.fsdp.transformer_cls_names_to_wrap": lambda r, m: [function(r, m)],
    "parallelism.tp_plan[].match": lambda r, m: r.choice(PATTERNS),
    "parallelism.fsdp.ignored_modules": lambda r, m: [r.choice(PATTERNS)],
    "parallelism.fsdp.min_num_params": lambda r, m: r.choice((0, 50, 10**6)),
    "parallelism.offload.optimizer_nvme_path": lambda r, m: ".",
    "parallelism.offload.param_nvme_path": lambda r, m: ".",
    "parallelism.local_sgd_steps": lambda r, m: r.choice((1, 2, 3)),
    "parallelism.ddp.bucket_cap_mb": lambda r, m: r.choice((25, 0.0001, 0.01)),
    "parallelism.ddp.comm_state_option.start_powerSGD_iter": lambda r, m: r.choice((0, 1, 2)),
    "parallelism.ddp.comm_state_option.matrix_approximation_rank": lambda r, m: r.choice((1, 2, 3)),
    "parallelism.ddp.comm_state_option.min_compression_rate": lambda r, m: r.choice((0.5, 2)),
    "optimizer.lr": lambda r, m: r.choice((1e-4, 1e-3, 0.01)),
    "optimizer.param_groups[].match": lambda r, m: r.choice(PATTERNS),
    "optimizer.param_groups[].lr": lambda r, m: r.choice((0, 1e-3)),
    "optimizer.weight_decay": lambda r, m: r.choice((0, 0.1)),
    "optimizer.momentum": lambda r, m: r.choice((0, 0.5, 0.9)),
    "training.steps": lambda r, m: r.choice((3, 4, 5)),
    "training.samples": lambda r, m: r.choice((7, 12)),
    "training.epochs": lambda r, m: 1,
    "training.seed": lambda r, m: r.choice((0, 7, 9007199254740991)),
    "training.eval_interval": lambda r, m: r.choice((0, 1, 2, 5)),
    "training.eval_delay": lambda r, m: r.choice((0, 1, 3)),
    "training.eval_iters": lambda r, m: r.choice((1, 2, 50, "all")),
    "training.early_stopping.patience": lambda r, m: r.choice((1, 2, 9)),
    "training.ema.decay": lambda r, m: r.choice((0.5, 0.99)),
    "training.ema.every": lambda r, m: r.choice((1, 2, 9)),
    "training.metrics": lambda r, m: r.sample(("accuracy", "perplexity", "f1_macro", "f1_binary", "f1_micro", "matthews"), r.randint(0, 3)),
    "tracking.log_with": lambda r, m: r.sample(("csv", "tensorboard", "jsonl", "wandb", "mlflow", "dvclive", "trackio", "comet_ml", "clearml", "swanlab", "aim"), r.randint(0, 3)),
    "hooks.source": lambda r, m: "hooks.c",
    **{f"hooks.{name}": (lambda name: lambda r, m: name)(name)
       for name in ("on_start", "on_step", "on_eval", "on_save", "on_end", "on_pre_save", "on_pre_load", "on_step_begin", "on_epoch")},
    "checkpoint.every": lambda r, m: r.choice((0, 1, 2, "30min", "1/3 epoch", {"steps": 2, "minutes": 30}, {"steps": 1})),
    "checkpoint.total_limit": lambda r, m: r.choice((1, 2, 5)),
    "checkpoint.max_shard_size": lambda r, m: r.choice(("10GB", "1KB")),
    "checkpoint.resume": lambda r, m: r.choice(("never", "auto")),
    "tracking.every": lambda r, m: r.choice((1, 2)),
    "profile.output_trace_dir": lambda r, m: "traces",
    "profile.schedule.active": lambda r, m: r.choice((1, 2)),
    "data.train.weights": lambda r, m: [0.5, 0.5],
    "optimizer.clip_threshold": lambda r, m: r.choice((1.0, 2.0)),
    "optimizer.eps": lambda r, m: r.choice((1e-8, 1e-5)),
    "optimizer.ns_coefficients": lambda r, m: [3.4445, -4.775, 2.0315],
    "optimizer.least_scale": lambda r, m: r.choice((1e-3, 0.0)),
    "optimizer.clip_grad_value": lambda r, m: r.choice((0.01, 1.0)),
    "optimizer.adamw.lr": lambda r, m: 1e-3,
    "optimizer.beta2_decay": lambda r, m: r.choice((-0.8, -0.5)),
}
PAIRS = ((0.9, 0.95), (0.0, 0.99), (0.9, 0.999))
GROUPS_DRAWN_AS_ONE = ("data.train.", "data.eval.")
# Products of 8 bits: MS-AMP's take layers of any extents, the others those of multiples of 16.
FP8 = {"precision.fp8.backend": ("msamp", "msamp", "ao", "te"), "precision.fp8.opt_level": ("O1", "O2"), "precision.fp8.recipe": ("tensorwise", "rowwise", "rowwise_with_gw_hp", "mxfp8"),
       "precision.fp8.scale_calculation_mode": ("floor", "rceil"), "precision.fp8.amax_history_len": (1, 4), "precision.fp8.use_autocast_during_eval": (False, True)}
OF_BACKEND = {"msamp": ("opt_level",), "ao": ("recipe",), "te": ("amax_history_len", "use_autocast_during_eval")}
COMMON = {"devices.kind", *FP8} | meshes.KEYS  # drawn by themselves, with their own chances


def leaves(schema=SCHEMA, prefix="", required=()):
    """(key, schema, keys that must be there too) of each key; of lists of groups, those of an item as name[].key."""
    for name, inner in schema.get("properties", {}).items():
        inner, key = keys.target(inner), prefix + name
        others = [f"{prefix}{other}" for other in schema.get("required", ()) if prefix] if schema is not SCHEMA else []
        others = [*required, *others]
        items = inner.get("items", {})
        if "properties" in inner:
            yield from leaves(inner, key + ".", others)
            if inner.get("type") == "object" and key != "model.config":
                continue
        if "properties" in items:
            yield from leaves(items, key + "[].", others)
        yield key, inner, others


LEAVES = {key: (schema, others) for key, schema, others in leaves()}


def is_drawn(key):
    return key not in BASE and key not in NOT_DRAWN and "[]" not in key and not key.startswith(GROUPS_DRAWN_AS_ONE)


def value(key, random, model):
    """A value by the table, or by the type; None where neither says one."""
    schema = LEAVES[key][0]
    if key in TEXTS:
        return TEXTS[key](random, model)
    items = schema.get("items", {})
    if "properties" in items:
        return [item(key, items, random, model) for _ in range(random.randint(1, 2))]
    if schema.get("minItems") == 2:
        return list(random.choice(PAIRS))
    found = keys.by_type(key, schema)
    return random.choice(found) if found else None


def item(key, schema, random, model):
    """One group of a list of groups."""
    wanted = schema.get("required", [])
    others = [name for name in schema["properties"] if name not in wanted]
    names = [*wanted, *random.sample(others, min(len(others), random.randint(0, 2)))]
    return {name: value(f"{key}[].{name}", random, model) for name in names}


def source(name, domain, random):
    return {f"data.{name}.{key}": there for key, there in random.choice(SOURCES[domain]).items()}


def unknown():
    """Keys that nothing draws: new ones of the schema, whose values no type says."""
    import random

    model = models.Model(random.Random(1), "tokens")
    return [key for key in LEAVES if key.split("[]")[0] not in NOT_DRAWN and key not in BASE and not key.startswith(GROUPS_DRAWN_AS_ONE)
            and value(key, random.Random(1), model) is None]


def in_8_bits(random):
    """Keys of a job whose products are of 8 bits."""
    backend = random.choice(FP8["precision.fp8.backend"])
    job = {"precision.mixed_precision": "fp8", "precision.fp8.backend": backend}
    for name in OF_BACKEND[backend]:
        job[f"precision.fp8.{name}"] = random.choice(FP8[f"precision.fp8.{name}"])
    if job.get("precision.fp8.recipe") == "mxfp8":
        job["precision.fp8.scale_calculation_mode"] = random.choice(FP8["precision.fp8.scale_calculation_mode"])
    return job | ({"optimizer.name": "adamw"} if backend == "msamp" else {})


def draw(random):
    """A model, a job for it, and the keys that such a job cannot be without."""
    domain = random.choice(("tokens", "tokens", "class", "value"))
    packed = domain == "tokens" and random.random() < 0.1
    axis, mesh = meshes.draw(random) if random.random() < 0.2 else (None, {})
    if axis in ("sp", "cp"):
        domain = "tokens"
    model = models.Model(random, "tokens" if domain == "tokens" else "rows", domain == "value", packed, axis)
    if meshes.CHUNKS in mesh:
        model.config["n_layer"] = 4
    job = {"model.source": "model.c", "model.config": model.config, "checkpoint.project_dir": "run", "data.batch_size": random.choice((1, 2, 3, 4)),
           "training.steps": 3, "checkpoint.every": random.choice((1, 1, 2)), "tracking.every": 1, **source("train", domain, random)}
    if domain != "tokens":
        job |= {"data.features": models.FEATURES} | ({"data.label": "value"} if domain == "value" else {})
    if packed:
        job |= {"data.packing": "documents", "data.train.path": "all.tok", "data.train.format": "tokens"}
        job.pop("data.train.weights", None)
    fixed = set(job)
    job |= mesh
    for key in meshes.together(random, axis):
        add(key, job, fixed | set(mesh), random, model)
    if random.random() < 0.6:
        job |= {"training.eval_interval": random.choice((1, 2, 2)), "training.eval_iters": random.choice((1, 2, "all"))}
    if axis is None and random.random() < 0.12:
        job["devices.kind"] = random.choice(("cuda", "cuda", "hip"))
    if axis is None and random.random() < (0.02 if job.get("devices.kind") == "hip" else 0.15):  # it has one process
        job["devices.per_node"] = 2
    if random.random() < 0.06:
        job |= in_8_bits(random)
    elif random.random() < 0.3:
        add("optimizer.name", job, fixed, random, model)
    if random.random() < 0.2:
        add("schedule.name", job, fixed, random, model)
    chosen = [key for key in LEAVES if is_drawn(key) and key not in COMMON and not ("parallelism" in mesh and key.startswith("parallelism."))]
    for key in random.sample(chosen, random.choice((0, 1, 2, 3, 4, 6, 8, 12))):
        if key not in mesh:
            add(key, job, fixed | set(mesh), random, model)
    if random.random() < 0.1:
        job |= source("eval", domain, random)
    return model, {key: there for key, there in job.items() if there is not None}, fixed


def add(key, job, fixed, random, model):
    """A key, and what must or should be there too."""
    if key == "data.label" and key in fixed:
        return  # the file's labels are values
    drawn = value(key, random, model)
    for other in LEAVES[key][1]:
        if other not in job and other in LEAVES:
            job[other] = value(other, random, model)
    for other, there in keys.companions(key, drawn).items():
        if other not in fixed or there is None:
            job[other] = there
    job[key] = drawn
