"""Meshes of ranks, drawn: keys of an axis along which ranks divide tensors, sequences, layers or experts, and the job that has
the same batches without it."""

AXES = ("tp", "sp", "cp", "pp", "ep")
SHARES_BATCHES = ("tp", "sp", "cp", "pp")  # ranks along these take the same batches; those along ep have their own
RESIDUAL = "parallelism.megatron.sequence_parallelism"
CHUNKS = "parallelism.megatron.num_layers_per_virtual_pipeline_stage"
FOUR = (  # what four ranks are for in addition to an axis of two
    lambda random, axis: {},
    lambda random, axis: {f"parallelism.{axis}": 4},
    lambda random, axis: {f"parallelism.{random.choice([other for other in AXES if other != axis])}": 2},
    lambda random, axis: {"parallelism.zero_stage": random.choice((1, 2, 3))},
    lambda random, axis: {"parallelism.fsdp.sharding_strategy": random.choice(("full_shard", "shard_grad_op")),
                          "parallelism.fsdp.state_dict_type": "sharded_state_dict"},
)
# Keys that other draws seldom have next to an axis.
TOGETHER = {"ep": ("precision.param_dtype", "model.lora.targets", "training.ema.decay", "training.early_stopping.restore_best"),
            "pp": ("memory.checkpoint_functions",)}
# What the search of a mesh asks for: speeds of a machine on which meshes of small models differ.
SEARCHED = {"parallelism": "auto", "data.batch_size": "auto", "accumulation.num_steps": "auto", "accumulation.train_batch_size": 8,
            "accumulation.sync_with_dataloader": False, "devices.memory": "1GiB", "devices.peak_flops": 5e10,
            "devices.memory_bandwidth": 5e9, "devices.link.latency": 2, "devices.link.bandwidth": 2000}
KEYS = {f"parallelism.{axis}" for axis in AXES} | {"parallelism", RESIDUAL, CHUNKS, "parallelism.pp_schedule", "parallelism.cp_comm", "devices.per_node"}


def draw(random):
    """An axis, and the keys of a job for it: two ranks, or four of which two have batches of their own or that divide once more."""
    axis = random.choice(AXES)
    if random.random() < 0.1:
        return axis, {**SEARCHED, "devices.per_node": random.choice((2, 4))}
    keys = {"devices.per_node": 2, f"parallelism.{axis}": 2}
    if axis == "tp" and random.random() < 0.35:
        keys[RESIDUAL] = True
    if random.random() < 0.3:
        keys |= {"devices.per_node": 4, **random.choice(FOUR)(random, axis)}
    elif axis == "ep" and random.random() < 0.15:  # replicas of ranks that shard what those along ep have
        keys |= {"devices.per_node": 8, "parallelism.dp_shard": 2, "parallelism.zero_stage": random.choice((1, 2, 3))}
    if "parallelism.pp" in keys:
        keys |= {"accumulation.num_steps": random.choice((2, 3, 4)), "accumulation.sync_with_dataloader": False}
        if random.random() < 0.5:
            keys["parallelism.pp_schedule"] = random.choice(("gpipe", "1f1b", "zero_bubble", "zero_bubble"))
        elif keys["parallelism.pp"] == 2 and random.random() < 0.3:  # of four layers
            keys |= {"parallelism.pp_schedule": "interleaved", CHUNKS: 1, "accumulation.num_steps": random.choice((2, 4))}
    if "parallelism.cp" in keys and random.random() < 0.4:
        keys["parallelism.cp_comm"] = "ring"
    return axis, keys


def together(random, axis):
    """Keys to add to the job of an axis; mostly none."""
    return [random.choice(TOGETHER[axis])] if axis in TOGETHER and random.random() < 0.3 else []


def divides(job):
    return any(job.get(f"parallelism.{axis}", 1) > 1 for axis in AXES)


def without(job):
    """The job of one rank, with batches of a size where that was searched for a memory that it would fill."""
    gone = KEYS | (SEARCHED.keys() if "parallelism" in job else set())
    return {key: there for key, there in job.items() if key not in gone} | ({"data.batch_size": 2} if "parallelism" in job else {})


def undivided(job):
    """The job whose ranks have all of what they divided, as many as have batches of their own."""
    ranks = job.get("devices.per_node", 1)
    for axis in SHARES_BATCHES:
        ranks //= job.get(f"parallelism.{axis}", 1)
    left = {key: there for key, there in job.items() if key not in KEYS and not key.startswith("parallelism.megatron.")}
    if ranks == 1:
        left.pop("devices.numa_affinity", None)
    return {**left, "devices.per_node": ranks}


def losses(rows):
    return [row[name] for row in rows for name in ("loss", "eval_loss") if name in row]


def differ(found, wanted, known, again=None):
    """Whether some are further apart than the relative `known`, or than ten times what the same program has come to again, so far."""
    if len(found) != len(wanted):
        return True
    for one, two, three in zip(found, wanted, again or wanted):
        if None in (one, two, three):  # not a number
            return one is not two
        known = max(known, 10 * abs(three - two) / max(abs(two), 1e-3))
        if abs(one - two) > known * max(abs(two), 1e-3):
            return True
    return False
