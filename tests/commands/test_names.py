"""`accel-gen help` of other trainers' names, and schemas/names.yaml, its table: names.txt lists what Accelerate's pages on its
utilities, the Accelerator, state, kwargs handlers and configuration name; a run asks for a quarter of these (rotation.py). TAP."""

import collections
import functools
import json
import pathlib
import re
import shutil
import sys

import yaml

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / group) for group in ("build", "program")]

from rotation import in_turn  # noqa: E402
from tap import TREE, finish, report, run  # noqa: E402

NAMES = (TREE / "tests" / "commands" / "names.txt").read_text().splitlines()
SCHEMA = json.loads((TREE / "schemas" / "job.schema.json").read_text())
TABLE = yaml.load((TREE / "schemas" / "names.yaml").read_text(), Loader=yaml.BaseLoader)
STATES = ("works", "needless", "refused", "absent")


@functools.cache
def helped(topic):
    return re.sub(r"\s+", " ", run("help", topic).stdout)


def rows():
    """Every row with what messages call it."""
    for name, row in TABLE["names"].items():
        yield name, row
    for name, row in TABLE["classes"].items():
        yield name, row
        for member, inner in row["members"].items():
            yield f"{name}.{member}", inner
    for key, values in TABLE["values"].items():
        for value, row in values.items():
            yield f"{key}: {value}", row


def leads(row):
    at = row.get("at", [])
    return [at] if isinstance(at, str) else at


def schema_of(key):
    """The schema of a key; None where there is none."""
    schema = SCHEMA
    for name in key.split("."):
        schema = schema.get("properties", {}).get(name)
        if schema is None:
            return None
        if "$ref" in schema:
            schema = {**SCHEMA["$defs"][schema["$ref"].split("/")[-1]], **schema}
    return schema


def choices_of(schema):
    return [str(choice) for choice in schema.get("enum", schema.get("items", {}).get("enum", []))]


def key_exists(lead):
    key, _, value = lead.partition("=")
    schema = schema_of(key)
    if schema is None:
        return key.startswith("model.config.")
    if not value or "enum" in schema:
        return not value or value in choices_of(schema)
    return value == "auto" and "string" in schema["type"] or value.isdigit() and "integer" in schema["type"]


def exists(lead, headers, commands, written):
    """A key, a function of a header, a command with its words, a page, or a file that a run writes."""
    if lead.startswith(("accel_", "ACCEL_")):
        call = re.fullmatch(r"(\w+)(?:\(\)(?:->(\w+))?)?", lead)
        member = call and (not call[2] or re.search(rf"\b{call[2]}\b[^;]*;", headers))
        return bool(member and re.search(rf"\b{call[1]}\b *\(|define {call[1]}\b", headers))
    if lead.startswith("accel-gen "):
        command, *words = lead.split()[1:]
        return command in commands and all(word in helped(command) for word in words)
    if lead.endswith(".md"):
        return (TREE / lead).exists()
    if lead.endswith((".safetensors", ".json")):
        return re.search(rf"\b{re.escape(lead)}\b", written) is not None
    return key_exists(lead)


def guide():
    """docs/from-accelerate.md: its job is a good one with its hook, and its keys and functions exist."""
    text = (TREE / "docs" / "from-accelerate.md").read_text()
    folder = TREE / "build" / "tests" / "commands" / "names"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.S)[1])
    (folder / "stop.c").write_text(re.search(r"```c\n(.*?)```", text, re.S)[1])
    shutil.copy(TREE / "examples" / "models" / "nanogpt.c", folder)
    done = run("check", folder / "job.yaml")
    report("the job of the guide is a good one", [done.stderr] if done.returncode else [])
    headers = "".join(path.read_text() for path in (TREE / "include" / "accel").glob("*.h"))
    keys = re.findall(r"`((?:%s)\.[a-zA-Z0-9_.]+)" % "|".join(SCHEMA["properties"]), text)
    wrong = [key for key in keys if schema_of(key) is None and not key.endswith((".safetensors", ".jsonl", ".bin"))]
    report("keys and functions of the guide", wrong + [word for word in re.findall(r"\b(?:accel|ACCEL)_\w+", text) if word not in headers])


def table():
    headers = "".join(path.read_text() for path in (TREE / "include" / "accel").glob("*.h"))
    commands = ["JOB", *re.findall(r"^  (\w+) ", run("help").stdout, re.M)]
    written = (TREE / "docs" / "checkpoints.md").read_text()
    wrong = []
    for name, row in rows():
        of, _, value = name.partition(": ")
        own = choices_of(schema_of(of)) if value else []
        wrong += [f"{name}: unknown state" for _ in [0] if row["is"] not in STATES]
        wrong += [f"{name}: no reason" for _ in [0] if row["is"] in ("needless", "absent") and "says" not in row]
        wrong += [f"{name}: is a value of its own" for _ in [0] if value in own]
        wrong += [f"{name}: {lead} does not exist" for lead in leads(row) if lead not in own and not exists(lead, headers, commands, written)]
        says = row.get("says", "")
        wrong += [f"{name}: the sentence ends with a stop" for _ in [0] if says.endswith(".")]
        for key in re.findall(r"\b(?:%s)\.[a-z0-9_.]*[a-z0-9_]" % "|".join(SCHEMA["properties"]), says):
            if schema_of(key) is None and not key.endswith((".safetensors", ".json", ".jsonl", ".yaml")):
                wrong.append(f"{name}: no key {key}")
        wrong += [f"{name}: no function {word}" for word in re.findall(r"\baccel_\w+", says) if not re.search(rf"\b{word}\b", headers)]
        wrong += [f"{name}: no command {word}" for word in re.findall(r"'accel-gen (\w+)", says) if word not in commands]
    report("every row of names.yaml leads to what there is", wrong)


def answered(topic):
    done = run("help", "--", topic)
    wide = [line for line in done.stdout.splitlines() if len(line) > 80]
    return [f"{topic}: {done.stderr.strip()}"] * (done.returncode != 0) + [f"{topic}: {line}" for line in wide]


def answers():
    names = in_turn(NAMES, 4)
    report(f"{len(names)} names of Accelerate's pages have an answer in 80 columns", [wrong for name in names for wrong in answered(name)])


def spellings():
    """With and without class, with dashes, prefixes, letter cases; values."""
    for topic, words in {
        "Accelerator.gather_for_metrics": "is accel_gather_for_metrics here",
        "accelerate.utils.gather_object": "is accel_gather_object here",
        "gather_for_metrics": "is accel_gather_for_metrics here",
        "--gradient_accumulation_steps": "is accumulation.num_steps here",
        "--gradient-accumulation-steps": "is accumulation.num_steps here",
        "fsdp_sharding_strategy": "is parallelism.fsdp.sharding_strategy here",
        "ACCELERATE_MIXED_PRECISION": "is precision.mixed_precision here",
        "accelerate_gradient_accumulation_steps": "is accumulation.num_steps here",
        "num_train_epochs": "is training.epochs here",
        "--pp_degree": "is parallelism.pp here",
        "--cp_size": "is parallelism.cp here",
        "--save_on_each_node": "is checkpoint.save_on_each_node here",
        "FULL_SHARD": "parallelism.fsdp.sharding_strategy takes full_shard",
        "NO_SHARD": "parallelism.fsdp.sharding_strategy takes no_shard",
        "SHARDED_STATE_DICT": "parallelism.fsdp.state_dict_type takes sharded_state_dict",
        "FP16": "is precision.mixed_precision: fp16 here",
        "TRANSFORMER_BASED_WRAP": "is parallelism.fsdp.transformer_cls_names_to_wrap here",
        "inductor": "DynamoBackend.INDUCTOR is not needed",
        "dynamobackend": "DynamoBackend is not needed: every program is compiled. NO not needed",
        "Accelerator": "gather_for_metrics accel_gather_for_metrics",
        "deepspeed_zero_stage": "is parallelism.zero_stage here",
        "adamw_torch": "'adamw_torch' of optimizer.name is called adamw here",
        "--lr": "optimizer.lr: a number greater than 0",
        "TorchAoConfig.modules_to_not_convert": "is model.quantize.skip_modules here",
        "Q4_0": "is model.quantize.quant_type: q4_0 here",
        "int4wo": "'int4wo' of model.quantize.quant_type is called int4_weight_only here",
        "gather_for_metric": "",
    }.items():
        said = helped(topic)
        report(f"help of {topic}", [] if (words in said if words else said == "") else [said])


def jobs():
    """An unknown key or value in a job gets the sentence of the table at its position."""
    job = TREE / "examples" / "jobs" / "tiny.yaml"
    for setting, words in {
        "wandb=1": "'wandb' is tracking.log_with here",
        "parallelism.cp_size=2": "'cp_size' is parallelism.cp here",
        "precision.opt_level=O1": "'opt_level' is a key of precision.fp8",
        "optimizer.name=prodigy": "'prodigy' is not supported",
        "devices.kind=NPU": "'NPU' is not supported: programs for Ascend",
        "training.metrics=[f1]": "'f1' is called f1_macro or f1_binary here",
        "parallelism.fsdp.sharding_strategy=HYBRID_SHARD": "did you mean 'hybrid_shard'?",
    }.items():
        done = run("check", job, "--set", setting)
        report(f"{setting} in a job", [] if done.returncode == 2 and f"help: {words}" in done.stderr else [done.stderr])


if __name__ == "__main__":
    table()
    guide()
    answers()
    spellings()
    jobs()
    states = collections.Counter(row["is"] for _, row in rows())
    print("#", ", ".join(f"{states[state]} {state}" for state in STATES))
    finish()
