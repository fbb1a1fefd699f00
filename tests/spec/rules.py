"""What gen/spec/rules.c and gen/spec/parallel.c say of keys that contradict, once more in Python: the oracle of test_schema.py."""

import json
import math
import re
from pathlib import Path

import jsonschema
import numpy as np
from packaging.specifiers import InvalidSpecifier, SpecifierSet

ROOT = Path(__file__).resolve().parents[2]
FLOAT32 = np.finfo(np.float32)
VERSION = re.search(r'ACCEL_VERSION "(.*)"', (ROOT / "include" / "accel" / "version.h").read_text())[1]
SCHEMA = json.loads((ROOT / "schemas" / "job.schema.json").read_text())


def axes_of(job):
    """What the job writes of its axes; the plan finds them with `auto`."""
    axes = job.get("parallelism", {})
    return {} if axes == "auto" else axes


def default_of(group, schema, name):
    """The default of a group's key: the last condition's that holds and has one, else its own."""
    found = schema["properties"][name].get("default")
    for part in schema.get("allOf", []):
        holds = jsonschema.Draft202012Validator(part["if"]).is_valid(group)
        own = part.get("then" if holds else "else", {}).get("properties", {}).get(name, {})
        if isinstance(own, dict) and "default" in own:
            found = own["default"]
    return found


def compared(job, key):
    """A key's value in a job with the defaults, for the rules."""
    schema = job
    for name in key.split("."):
        schema = schema.get(name, {}) if isinstance(schema, dict) else {}
    if not isinstance(schema, dict):
        return schema
    group, name = key.split(".")
    return default_of(job.get(group, {}), SCHEMA["properties"][group], name)


def reals(value):
    """All numbers of a job with a fraction or an exponent."""
    if isinstance(value, (dict, list)):
        return [number for one in (value.values() if isinstance(value, dict) else value) for number in reals(one)]
    return [value] if isinstance(value, float) else []


def in_backward_holds(job):
    """What does not go with weights that move within the backward."""
    name = job.get("optimizer", {}).get("name")
    if name not in ("lomo", "adalomo"):
        return True
    allowed = {"optimizer.norm_type": (2,), "accumulation.num_steps": (1,), "tracking.grad_norms": ("global",)}
    if name == "lomo":
        allowed["optimizer.weight_decay"] = (0,)
    for key, values in allowed.items():
        given = job
        for part in key.split("."):
            given = given.get(part) if isinstance(given, dict) else None
        if given is not None and given not in values:
            return False
    return True


def quantizes(model):
    return any(model.get("quantize", {}).get(key, False) for key in ("load_in_4bit", "load_in_8bit", "quant_type"))


def quantize_holds(job):
    """What does not go with weights of codes."""
    model = job.get("model", {})
    if not quantizes(model):
        return True
    if len({job.get("precision", {}).get("param_dtype", "fp32"), model["quantize"].get("bnb_4bit_compute_dtype", "fp32")} - {"fp32"}) > 1:
        return False  # a program has one type of 16 bits
    if model["quantize"].get("keep_in_fp32_modules") and job.get("precision", {}).get("param_dtype", "fp32") != "fp32":
        return False
    axes = axes_of(job)
    if "local_sgd_steps" in axes or any(axes.get(axis, 1) != 1 for axis in ("tp", "cp", "sp", "ep", "pp")):
        return False
    merged = "lora" in model and model["lora"].get("merge", True)
    return (compared(job, "devices.kind") or "cpu") == "cpu" and "ema" not in job.get("training", {}) and (
        merged or "folder_of" not in job.get("checkpoint", {}))


def given(value):
    """Whether a key, or one below it, has a value."""
    return any(given(inner) for inner in value.values()) if isinstance(value, dict) else True


def msamp_holds(job):
    """What does not go with MS-AMP's layers, gradients and moments."""
    optimizer = job.get("optimizer", {})
    return (optimizer.get("name") == "adamw" and optimizer.get("state_dtype", "float32") == "float32"
            and job.get("accumulation", {}).get("num_steps", 1) == 1 and "on_bucket" not in job.get("hooks", {})
            and "device_map" not in job.get("memory", {}))


def fp8_holds(job):
    """What does not go with products of 8 bits."""
    precision, model = job.get("precision", {}), job.get("model", {})
    if precision.get("mixed_precision") != "fp8":
        return True
    parallelism = job.get("parallelism", {})
    if not isinstance(parallelism, dict) or any(
            given(value) for key, value in parallelism.items() if key not in ("dp_replicate", "dp_shard", "zero_stage")):
        return False
    backend = precision.get("fp8", {}).get("backend")
    if backend == "te" and parallelism.get("zero_stage", 0) == 3:
        return False
    if backend == "msamp" and (any(given(parallelism[key]) for key in ("dp_shard", "zero_stage") if key in parallelism) or not msamp_holds(job)):
        return False
    if job.get("data", {}).get("join_uneven_inputs", False):
        return False
    allowed = {"devices.kind": "cpu", "devices.nodes": 1, "checkpoint.dtype": "fp32"}
    without = (("data", "eval_batch_size"), ("training", "ema"), ("checkpoint", "folder_of"))
    if any(key in job.get(group, {}) for group, key in without):
        return False
    return (all((compared(job, key) or value) == value for key, value in allowed.items()) and not precision.get("keep_in_fp32")
            and "lora" not in model and not quantizes(model)
            and job.get("optimizer", {}).get("name") not in ("schedule_free_adamw", "lomo", "adalomo"))


def ranks_of(job):
    devices = job.get("devices", {})
    return devices.get("nodes", 1) * devices.get("per_node", 1)


def divides(job, stage):
    """What gen/spec/sharding.c says."""
    optimizer, accumulation = job.get("optimizer", {}), job.get("accumulation", {})
    whole = optimizer.get("name") in ("lamb", "adafactor", "muon")
    hook = axes_of(job).get("ddp", {}).get("comm_hook", "no") != "no" or "on_bucket" in job.get("hooks", {})
    if stage == 3 and optimizer.get("state_dtype") == "bf16_stochastic":
        return False
    by_layer = job.get("tracking", {}).get("grad_norms") == "per_layer"
    local = "local_sgd_steps" in axes_of(job)
    return not (whole or hook or local or by_layer or accumulation.get("sync_each_batch"))


# Keys of parallelism.fsdp about what ranks divide.
DIVIDED = {"transformer_cls_names_to_wrap", "min_num_params", "ignored_modules", "state_dict_type"}


def ranks_hold(job):
    """What gen/spec/parallel.c says, where no axis divides the model."""
    axes, ranks = axes_of(job), ranks_of(job)
    if "pp_schedule" in axes or "tp_plan" in axes or axes.get("megatron", {}).get("sequence_parallelism"):
        return False
    if {"num_layers_per_virtual_pipeline_stage", "pipeline_model_parallel_split_rank"} & axes.get("megatron", {}).keys():
        return False
    fsdp, replicas = axes.get("fsdp"), axes.get("dp_replicate", 1)
    if fsdp is not None and "zero_stage" in axes:
        return False
    strategy = (fsdp or {}).get("sharding_strategy", "no_shard")
    stage = axes.get("zero_stage", {"full_shard": 3, "hybrid_shard": 3, "no_shard": 0}.get(strategy, 2))
    if "reshard_after_forward" in (fsdp or {}):
        stage = 3 if fsdp["reshard_after_forward"] else 2
    if stage == 0 and fsdp and not DIVIDED.isdisjoint(fsdp):
        return False
    by_node = strategy.startswith("hybrid") and "dp_replicate" not in axes
    rest = job.get("devices", {}).get("per_node", 1) if by_node else ranks // replicas
    shards = axes.get("dp_shard", rest if stage > 0 else 1)
    if axes.get("dp_replicate", ranks // max(shards, 1)) * shards != ranks or shards > 1 and stage == 0:
        return False
    if shards > 1 and not divides(job, stage):
        return False
    if job.get("devices", {}).get("numa_affinity") and job["devices"].get("per_node", 1) == 1:
        return False
    if job.get("devices", {}).get("nodes", 1) > 1 and job.get("checkpoint", {}).get("save_on_each_node"):
        others = "local_sgd_steps" in axes or "source" in job.get("hooks", {}) or job["devices"].get("kind", "cpu") == "cuda"
        if others or shards > 1 or any(axes.get(axis, 1) != 1 for axis in ("tp", "ep")):
            return False
    data = job.get("data", {})
    if ranks > 1 and data.get("split_batches") and (data["batch_size"] == "auto" or data["batch_size"] % ranks or data.get("eval_batch_size", 0) % ranks):
        return False
    uneven = not data.get("even_batches", True) or data.get("dispatch_batches")
    by_tokens = job.get("accumulation", {}).get("normalize") == "tokens"
    rounds = ranks > 1 or axes.get("reproducible") == "topology" and job.get("accumulation", {}).get("num_steps", 1) != 1
    if rounds and not data.get("drop_last", True) and uneven and not by_tokens and not data.get("join_uneven_inputs"):
        return False
    if not (joined_holds(job) and order_holds(job) and local_holds(job, ranks) and factors_hold(job) and hook_holds(job)):
        return False
    alone = job.get("optimizer", {}).get("name") in ("lomo", "adalomo") or job.get("tracking", {}).get("noise_scale")
    return ranks == 1 or not alone


def hook_of(job):
    return axes_of(job).get("ddp", {}).get("comm_hook", "no")


def hook_holds(job):
    """With user code that exchanges gradients."""
    axes = axes_of(job)
    if "on_bucket" not in job.get("hooks", {}):
        return True
    alone = ranks_of(job) == 1 or "local_sgd_steps" in axes or axes.get("reproducible") == "topology"
    other = hook_of(job) != "no" or job.get("accumulation", {}).get("sync_each_batch") or job.get("data", {}).get("join_uneven_inputs")
    return not (alone or other or job.get("devices", {}).get("kind", "cpu") != "cpu")


def joined_holds(job):
    """With ranks that run out of samples."""
    data, axes = job.get("data", {}), axes_of(job)
    if not data.get("join_uneven_inputs"):
        return axes.get("ddp", {}).get("divide_by_initial_world_size", True)
    even = data.get("drop_last", True) or data.get("even_batches", True) or data.get("dispatch_batches")
    alone = axes.get("reproducible") == "topology" or axes.get("sync_batch_norm") or "local_sgd_steps" in axes
    return not (even or alone or job.get("accumulation", {}).get("normalize") == "tokens")


def order_holds(job):
    """With one order of all sums."""
    each = job.get("accumulation", {}).get("sync_each_batch")
    gone = job.get("optimizer", {}).get("name") in ("lomo", "adalomo") or job.get("tracking", {}).get("noise_scale")
    return axes_of(job).get("reproducible") != "topology" or not (each or gone or hook_of(job) != "no")


def local_holds(job, ranks):
    """With ranks that step alone."""
    axes = axes_of(job)
    local = axes.get("local_sgd_steps")
    if local is None or ranks == 1:
        return True
    every = job.get("checkpoint", {}).get("every", 0)
    every = every.get("steps", 0) if isinstance(every, dict) else every if not isinstance(every, str) else 0
    if every % local or job.get("training", {}).get("eval_interval", 0) % local:
        return False
    averages = "ema" in job.get("training", {}) or job.get("optimizer", {}).get("name") == "schedule_free_adamw"
    return not (averages or axes.get("reproducible") == "topology" or hook_of(job) != "no"
                or job.get("accumulation", {}).get("sync_each_batch"))


def factors_hold(job):
    """With gradients that are sent as factors."""
    option, hook = axes_of(job).get("ddp", {}).get("comm_state_option", {}), hook_of(job)
    if "power_sgd" not in hook:
        return True
    of_matrices = (option.get("min_compression_rate", 2), option.get("orthogonalization_epsilon", 0))
    if hook == "batched_power_sgd" and of_matrices != (2, 0):
        return False
    late = option.get("start_powerSGD_iter", 1000) > 1
    plain = not (option.get("warm_start", True) or option.get("use_error_feedback", True))
    return (late or plain) and not job.get("accumulation", {}).get("sync_each_batch")


def sources_hold(data):
    """Labels and weights are one for each path; an evaluation has no weights."""
    for name in ("train", "eval"):
        source = data.get(name, {})
        count = {key: len(source[key]) if isinstance(source[key], list) else 1 for key in ("path", "labels", "weights") if key in source}
        if any(number != count.get("path", number) for number in count.values()) or name == "eval" and "weights" in source:
            return False
    return True


def version_holds(job):
    """What gen/spec/requires.c says. An empty condition is none."""
    conditions = job.get("requires", ">=0.1").split(",")
    try:
        return all(condition.strip() and SpecifierSet(condition).contains(VERSION) for condition in conditions)
    except InvalidSpecifier:
        return False


def cadence_holds(value, units):
    """What gen/spec/bind.c reads of a word in place of a number of steps."""
    return not isinstance(value, str) or re.fullmatch(rf"([1-9]\d*|1/[1-9]\d*)? *epochs?{units}", value) is not None


def inputs_hold(data):
    """What gen/spec/data_inputs.c says, of the names that are drawn."""
    inputs, table = data.get("inputs", {}), data.get("train", {}).get("format") == "csv"
    names = table or data.get("train", {}).get("format") == "npz"

    def files(paths):
        return None if paths is None else len(paths) if isinstance(paths, list) else 1

    for name, one in inputs.items():
        own = {key: files(one.get(key)) for key in ("path", "eval_path")}
        sources = {"path": files(data["train"].get("path")), "eval_path": files(data.get("eval", {}).get("path"))}
        if name.startswith("_") or any(own[key] not in (None, sources[key]) for key in own):
            return False
        if (own["path"] is None) != (own["eval_path"] is None) and (own["eval_path"] is not None or sources["eval_path"] is not None):
            return False
        if ("below" in one and one.get("dtype") != "int32") or ("column" in one and not names):
            return False
        if ("shape" in one and table and own["path"] is None) or math.prod(one.get("shape", [])) > 1 << 30:
            return False
    formats = [data[source]["format"] == "npy" for source in ("train", "eval") if "format" in data.get(source, {})]
    if inputs and len(set(formats)) > 1:
        return False
    shared = sum("path" not in one for one in inputs.values())
    return (shared > 0 or not inputs or "path" not in data["train"]) if names else shared <= 1


def rules_hold(job):
    """What gen/spec/rules.c says."""
    if not version_holds(job):
        return False
    if not cadence_holds(job.get("checkpoint", {}).get("every"), r"|[1-9]\d* *(min|h)"):
        return False
    if not all(cadence_holds(job.get(group, {}).get(key), "") for group, key in (("training", "eval_interval"), ("training", "eval_delay"), ("tracking", "every"))):
        return False
    warmup, decay = compared(job, "schedule.warmup_steps"), compared(job, "schedule.decay_steps")
    if warmup > (compared(job, "training.steps") or math.inf) or 0 < decay < warmup:
        return False
    steps, averages = compared(job, "training.steps"), job.get("training", {}).get("ema", {})
    if averages and averages.get("every", 1) > (steps or math.inf):
        return False
    if not all(number == 0 or FLOAT32.tiny <= abs(number) <= FLOAT32.max for number in reals(job)):
        return False
    if job.get("schedule", {}).get("wd_incr_style", "constant") != "constant":
        end = compared(job, "optimizer.weight_decay")
        if end == 0 or compared(job, "schedule.start_weight_decay") > end:
            return False
    sizes = [compared(job, key) for key in ("data.batch_size", "accumulation.num_steps", "accumulation.train_batch_size")]
    split = job.get("data", {}).get("split_batches", False)
    if None not in sizes and "auto" not in sizes and sizes[0] * sizes[1] * (1 if split else ranks_of(job)) != sizes[2]:
        return False
    if not sources_hold(job.get("data", {})) or not inputs_hold(job.get("data", {})):
        return False
    scaler = job.get("precision", {}).get("grad_scaler", {})
    if scaler.get("min_loss_scale", 0) > scaler.get("init_scale", 65536):
        return False
    masking = job.get("data", {}).get("masking", {})
    if masking.get("random", 0.1) + masking.get("keep", 0.1) > 1:
        return False
    if not ranks_hold(job):
        return False
    if not in_backward_holds(job) or not quantize_holds(job) or not fp8_holds(job):
        return False
    falls = ("linear", "cosine", "cosine_with_restarts", "polynomial", "wsd")
    decays = job.get("schedule", {}).get("name", "constant") in falls
    return not decays or compared(job, "schedule.min_lr") <= compared(job, "optimizer.lr")
