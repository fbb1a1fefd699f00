"""`accel-gen import`: what the keys of other trainers' files become. The names are compared with those of the packages
themselves, expressions with Python's own, and jobs with what `accel-gen check` takes. TAP."""

import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))

from tap import GENERATOR, TREE, finish, report, run  # noqa: E402

FOLDER = TREE / "build" / "tests" / "import"
FOLDER.mkdir(parents=True, exist_ok=True)
LACKING = {
    "model.source": str(TREE / "examples" / "models" / "nanogpt.c"),
    "data.train.path": "corpus.txt",
    "data.train.format": "bytes",
    "data.batch_size": "1",
    "training.steps": "1000",
    "model.config": "{n_layer: 2, n_head: 2, n_embd: 32, vocab_size: 256, block_size: 32}",
}

ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 8
use_cpu: true
fsdp_config:
  fsdp_sharding_strategy: SHARD_GRAD_OP
  fsdp_activation_checkpointing: true
  fsdp_transformer_layer_cls_to_wrap: BertLayer
"""
DEEPSPEED = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 0,
    "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}},
    "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 100, "warmup_max_lr": 3e-4, "total_num_steps": "auto"}},
    "fp16": {"enabled": True, "initial_scale_power": 12, "hysteresis": 4},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": 1.6e7, "overlap_comm": True},
    "tensorboard": {"enabled": False, "output_path": "x"},
    "no_such_key": 1,
}
TRAINER = {"output_dir": "out", "per_device_train_batch_size": 16, "optim": "adamw_bnb_8bit", "max_steps": 500, "warmup_ratio": 0.1, "adam_beta2": 0.95,
           "save_strategy": "no", "eval_strategy": "epoch", "label_smoothing_factor": 0.1}
NANOGPT = """'''A documentation string.'''
import time
dataset = 'shakespeare'   # a comment
gradient_accumulation_steps = 5 * 8
batch_size = 12
n_layer = n_head = 6
n_embd = 64 * 6
n_head = 6
wandb_run_name = 'ft-' + str(time.time())
decay_lr = False
"""


LLAMA_FACTORY = """model_name_or_path: ./weights
stage: pt
finetuning_type: lora
lora_rank: 8
lora_target: c_attn,c_proj
cutoff_len: 32
per_device_train_batch_size: 2
learning_rate: 1.0e-4
lr_scheduler_type: cosine
max_steps: 100
bf16: true
quantization_bit: 4
plot_loss: false
template: llama3
"""
AXOLOTL = """base_model: some/model
adapter: lora
lora_r: 16
lora_alpha: 32
lora_target_modules: [c_attn]
sequence_len: 32
micro_batch_size: 2
optimizer: adamw_bnb_8bit
lr_scheduler: cosine
learning_rate: 2e-4
max_steps: 100
bf16: auto
gradient_checkpointing: offload
wandb_entity:
saves_per_epoch: 4
evals_per_epoch: 1
liger_rope: true
"""


def write(name, text):
    path = FOLDER / name
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
    return path


def rows_of(*words):
    done = run("import", "--json", *words)
    if not done.stdout:
        raise AssertionError(done.stderr)
    parsed = json.loads(done.stdout)
    return parsed, [row for file in parsed["files"] for row in file["keys"]]


def leaves(tree, path="", whole=("tensorboard",)):
    """The dotted paths of all values that are no groups with keys, or of which one sentence says all."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and key not in whole:
            yield from leaves(value, f"{path}{key}.")
        else:
            yield path + key


def keys_of(rows):
    return {key: value for row in rows for key, value in row["keys"].items()}


def compare(what, words, keys, states):
    """A file gives these keys of the job, and keys of these states."""
    parsed, rows = rows_of(*words)
    got, wrong = keys_of(rows), []
    wrong += [f"{key} is {got.get(key)}, not {value}" for key, value in keys.items() if got.get(key) != value]
    found = {row["key"]: row["state"] for row in rows}
    wrong += [f"{key} is {found.get(key)}, not {state}" for key, state in states.items() if found.get(key) != state]
    wrong += [f"{row['key']} has no reason" for row in rows if row["state"] in ("needless", "refused", "open", "unknown") and not row.get("says")]
    job = FOLDER / "job.yaml"
    run("import", "-o", job, *words)
    sets = [word for key in [*parsed["missing"], *([] if "model.config.n_layer" in got else ["model.config"])] for word in ("--set", f"{key}={LACKING[key]}")]
    if "model.config.n_layer" in got:
        sets += ["--set", "model.config.vocab_size=256"]
    done = run("check", "--resolved", job, *sets)
    wrong += [done.stderr] if done.returncode else []
    report(what, wrong)


def kinds():
    compare("a configuration of Accelerate", [write("accelerate.yaml", ACCELERATE)],
            {"devices.nodes": "2", "devices.per_node": "4", "devices.kind": "cpu", "precision.mixed_precision": "bf16",
             "parallelism.fsdp.sharding_strategy": "shard_grad_op", "memory.activation_checkpointing": "all"},
            {"compute_environment": "needless", "fsdp_config.fsdp_transformer_layer_cls_to_wrap": "needless"})
    deepspeed = write("ds.json", DEEPSPEED)
    compare("a configuration of DeepSpeed", [deepspeed],
            {"data.batch_size": "4", "accumulation.num_steps": "2", "optimizer.name": "adamw", "optimizer.lr": "0.0003", "optimizer.betas": "[0.9, 0.95]",
             "optimizer.weight_decay": "0", "schedule.name": "linear", "schedule.warmup_steps": "100", "precision.mixed_precision": "fp16",
             "precision.grad_scaler.init_scale": "4096", "precision.grad_scaler.hysteresis": "4", "precision.grad_scaler.min_loss_scale": "1",
             "precision.grad_scaler.growth_interval": "1000"},
            {"gradient_clipping": "needless", "scheduler.params.total_num_steps": "open", "tensorboard": "needless",
             "no_such_key": "unknown", "zero_optimization.overlap_comm": "needless"})
    fixed = write("fixed.json", {"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": True, "loss_scale": 128, "initial_scale_power": 12}})
    compare("a fixed loss scale", [fixed],
            {"precision.grad_scaler.init_scale": "128", "precision.grad_scaler.dynamic": "false"},
            {"fp16.initial_scale_power": "needless", "fp16.hysteresis": "needless", "fp16.min_loss_scale": "needless"})
    auto = write("auto.json", {"fp16": {"enabled": "auto", "hysteresis": 2}, "zero_optimization": {"stage": 2}})
    compare("a group that a script turns on", [auto], {}, {"fp16.hysteresis": "open", "fp16.min_loss_scale": "needless"})
    disk = {"zero_optimization": {"offload_optimizer": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    compare("states on a disk", [write("nvme.json", disk)],
            {"parallelism.offload.optimizer": "nvme", "parallelism.offload.optimizer_nvme_path": "/local_nvme", "devices.kind": "cpu"}, {})
    both = {"zero_optimization": {**disk["zero_optimization"], "offload_param": {"device": "nvme", "nvme_path": "/local_nvme"}}}
    compare("layers on a disk", [write("nvme_param.json", both)],
            {"parallelism.offload.param": "nvme", "parallelism.offload.param_nvme_path": "/local_nvme", "devices.kind": "cpu"}, {})
    disk["zero_optimization"]["offload_optimizer"]["device"] = "cpu"
    compare("states on the host", [write("host.json", disk)], {"parallelism.offload.optimizer": "cpu", "devices.kind": "cuda"},
            {"zero_optimization.offload_optimizer.nvme_path": "needless"})
    compare("arguments of transformers' Trainer", [write("trainer.json", TRAINER)],
            {"data.batch_size": "16", "optimizer.name": "adamw", "optimizer.state_dtype": "8bit", "training.steps": "500", "schedule.warmup_fraction": "0.1",
             "optimizer.betas": "[0.9, 0.95]", "optimizer.clip_grad_norm": "1.0", "schedule.name": "linear", "training.seed": "42", "training.eval_interval": "epoch"},
            {"save_strategy": "needless", "save_steps": "needless", "num_train_epochs": "needless", "label_smoothing_factor": "refused"})
    text = NANOGPT.replace("n_layer = n_head = 6\n", "n_layer = 6\n")
    compare("a configuration of nanoGPT", [write("train.py", text)],
            {"data.train.path": "data/shakespeare/train.bin", "accumulation.num_steps": "40", "model.config.n_embd": "384", "optimizer.betas": "[0.9, 0.95]",
             "optimizer.lr": "0.0006"},
            {"wandb_run_name": "refused", "decay_lr": "needless", "min_lr": "needless"})
    compare("a configuration of nanoGPT that logs", [write("logs.py", "wandb_log = True\nwandb_project = 'owt'\nwandb_run_name = 'first'\n")],
            {"tracking.log_with": "[wandb]", "tracking.project": "owt", "tracking.run_name": "first"}, {})
    named = {"report_to": ["wandb", "mlflow"], "run_name": "first", "project": "owt", "logging_dir": "logs"}
    compare("arguments of transformers' Trainer with tools", [write("tools.json", TRAINER | named)],
            {"tracking.log_with": "[wandb, mlflow]", "tracking.project": "owt", "tracking.run_name": "first", "tracking.logging_dir": "logs"}, {})
    compare("names for tools that are not used", [write("no_tools.json", TRAINER | named | {"report_to": "none"})], {},
            {"report_to": "needless", "run_name": "needless", "project": "needless", "logging_dir": "needless"})
    compare("arguments of LLaMA-Factory", [write("factory.yaml", LLAMA_FACTORY)],
            {"model.weights": '"./weights"', "model.lora.rank": "8", "model.lora.alpha": "16", "model.lora.targets": "[c_attn, c_proj]", "data.sequence_length": "32",
             "training.steps": "100", "schedule.name": "cosine"},
            {"stage": "needless", "quantization_bit": "refused", "template": "refused", "plot_loss": "needless"})
    compare("a configuration of axolotl", [write("axolotl.yaml", AXOLOTL)],
            {"model.lora.rank": "16", "model.lora.targets": "[c_attn]", "optimizer.state_dtype": "8bit", "optimizer.lr": "0.0002",
             "checkpoint.every": '"1/4 epoch"', "training.eval_interval": "epoch"},
            {"base_model": "refused", "bf16": "open", "gradient_checkpointing": "refused", "wandb_entity": "needless", "liger_rope": "needless"})
    both = write("both.yaml", "distributed_type: DEEPSPEED\nnum_processes: 2\nuse_cpu: true\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n")
    compare("a file that another one names", [both], {"devices.per_node": "2", "optimizer.name": "adamw"}, {"deepspeed_config.deepspeed_config_file": "needless"})
    other = write("other.json", {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": 8})
    _, rows = rows_of(deepspeed, other)
    report("files that contradict", [] if any(row["state"] == "refused" and "ds.json:" in row["says"] for row in rows) else ["no row is refused"])


def every_key_once():
    wrong = []
    for path, tree in ((write("ds.json", DEEPSPEED), DEEPSPEED), (write("trainer.json", TRAINER), TRAINER)):
        _, rows = rows_of(path)
        own = [row["key"] for row in rows if row["line"] > 0]
        wrong += [f"{path.name}: {key} is there {own.count(key)} times" for key in leaves(tree) if own.count(key) != 1]
        wrong += [f"{path.name}: {key} is none of its keys" for key in own if key not in set(leaves(tree))]
    report("every key of a file has one row", wrong)


def packages():
    """The keys that the installed packages have today."""
    import transformers
    from accelerate.commands.config.config_args import ClusterConfig, SageMakerConfig

    arguments = {field.name: None for field in dataclasses.fields(transformers.TrainingArguments) if not field.name.startswith("_")}
    cluster = {field.name: None for config in (ClusterConfig, SageMakerConfig) for field in dataclasses.fields(config)}
    for name, kind, keys in (("transformers.TrainingArguments", "trainer", arguments), ("Accelerate's configurations", "accelerate", cluster)):
        _, rows = rows_of("--format", kind, write("names.json", keys))
        report(f"{len(keys)} keys of {name} are known", [row["key"] for row in rows if row["state"] == "unknown"])


def conversions():
    """Every `as` of names.yaml is a conversion, and every conversion is used."""
    table = (TREE / "schemas" / "names.yaml").read_text()
    used = {word for word in re.findall(r"\bas: (\w+)", table)}
    own = set(re.findall(r"^ \*   (\w+)(?: [A-Z]+)?  ", (TREE / "gen" / "import" / "convert.h").read_text(), re.M))
    coded = set(re.findall(r'\{"(\w+)", as_\w+\}', (TREE / "gen" / "import" / "conversions.c").read_text()))
    report("conversions of names.yaml", [f"{word} is not in all of names.yaml, convert.h and conversions.c" for word in used ^ own | own ^ coded])


def expression(draw, depth=0):
    kind = draw.randrange(7 if depth < 4 else 3)
    if kind == 0:
        return str(draw.randrange(1000))
    if kind == 1:
        return draw.choice(["1e-3", "2.5", ".5", "1_000", "6e4", "3.", "0.1"])
    if kind == 2:
        return f"-{draw.randrange(1, 50)}"
    if kind == 3:
        return f"({expression(draw, depth + 1)})"
    return f"{expression(draw, depth + 1)} {draw.choice('+-*/')} {expression(draw, depth + 1)}"


def python():
    draw, wrong, texts = random.Random(1), [], []
    while len(texts) < 300:
        text = expression(draw)
        try:
            value = eval(text)  # of what is drawn above
        except ZeroDivisionError:
            continue
        if abs(value) < 1e15:
            texts.append((text, value))
    path = write("drawn.py", "".join(f"v{i} = {text}\n" for i, (text, _) in enumerate(texts)))
    _, rows = rows_of(path)
    own = {row["key"]: row for row in rows}
    for i, (text, value) in enumerate(texts):
        got = own[f"v{i}"]["value"]
        if float(got) != value or isinstance(value, int) != (got.lstrip("-").isdigit()):
            wrong.append(f"{text} is {got}, not {value}")
    report(f"{len(texts)} expressions are what Python computes", wrong)


def bad_files():
    wrong = []
    for name, text, message in (
        ("empty.yaml", "", "is empty"),
        ("list.json", "[1, 2]", "has no keys"),
        ("broken.json", '{"fp16": {', "not YAML"),
        ("unknown.yaml", "alpha: 1\nbeta: 2\n", "none of the keys identifies the kind"),
        ("code.py", "for i in range(3):\n  x = i\n", "an assignment"),
        ("indented.py", "x = 1\n  y = 2\n", "first column"),
        ("open.py", "'''never ends\n", "has no end"),
        ("deep.py", "x = " + "(" * 100000 + "\n", None),
        ("deep.json", '{"fp16": ' + "[" * 100000, "too deep"),
    ):
        done = run("import", write(name, text))
        if message is None:
            wrong += [f"{name}: status {done.returncode}"] * (done.returncode != 1)
        elif done.returncode != 2 or message not in done.stderr:
            wrong.append(f"{name}: {done.returncode}: {done.stderr.strip()[:200]}")
    done = run("import", FOLDER / "no-such-file.json")
    wrong += [f"a missing file: {done.returncode}"] * (done.returncode != 2)
    report("files that cannot be read are refused", wrong)


def outputs():
    path, job = write("ds.json", DEEPSPEED), FOLDER / "written.yaml"
    job.unlink(missing_ok=True)
    wrong = []
    done = run("import", "--strict", path, "-o", job)
    wrong += ["--strict has written a job"] * job.exists() + [f"--strict: status {done.returncode}"] * (done.returncode != 1)
    before = path.read_text()
    done = run("import", path, "-o", path)
    wrong += ["an output has replaced its input"] * (path.read_text() != before) + ["an output over an input: status 0"] * (done.returncode == 0)
    good = write("good.json", {"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 0}})
    wrong += ["a good file: not status 0"] * (run("import", good, "-o", job).returncode != 0)
    wide = [line for line in run("import", good).stdout.splitlines() if len(line) > 80 and "/" not in line]
    report("outputs", wrong + wide)


def mutations():
    """Hostile bytes: a message or a report, never a crash."""
    draw, wrong = random.Random(2), []
    sources = [("m.yaml", ACCELERATE), ("m.json", json.dumps(DEEPSPEED)), ("m.py", NANOGPT)]
    for i in range(150):
        name, text = sources[i % 3]
        data = bytearray(text.encode())
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            data[at:at + draw.randrange(4)] = bytes(draw.choice(b"\x00\xff{}[]:'\"\n\t #*&!|>%-e0=()") for _ in range(draw.randrange(4)))
        (FOLDER / name).write_bytes(bytes(data))
        done = subprocess.run([GENERATOR, "import", "--json", FOLDER / name], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        if done.returncode not in (0, 1, 2) or (done.returncode == 2) == bool(done.stdout):
            wrong.append(f"draw {i}: status {done.returncode}: {bytes(data)!r}")
    report("150 files with hostile bytes", wrong)


conversions()
kinds()
every_key_once()
packages()
python()
bad_files()
outputs()
mutations()
finish()
