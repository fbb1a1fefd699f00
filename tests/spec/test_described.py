"""What the schema says of a key that changes nothing, or nothing on one rank, is so, and is said: programs of both values of each
switch are compared, on one rank and on two. TAP."""

import json
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
SCHEMA = json.loads((TREE / "schemas" / "job.schema.json").read_text())
BASE = ["data.drop_last=false", "data.data_seed=5", "checkpoint.every=2", "accumulation.num_steps=2"]
RANKS = ["devices.per_node=2"]
NEEDS = {"checkpoint.save_on_each_node": ["devices.nodes=2"],
         "parallelism.fsdp.reshard_after_forward": ["memory.activation_checkpointing=all"], "data.join_uneven_inputs": ["data.even_batches=false"],
         "training.early_stopping.restore_best": ["training.eval_interval=1", "training.early_stopping.patience=2"],
         "training.ema.warmup": ["training.ema.decay=0.9"], "training.ema.evaluate": ["training.ema.decay=0.9", "training.eval_interval=1"],
         "optimizer.nesterov": ["optimizer={name: sgd, momentum: 0.9}"], "optimizer.centered": ["optimizer={name: rmsprop}"],
         "precision.autocast.enabled": ["precision.mixed_precision=bf16"],
         "model.lora.use_rslora": ["model.lora={rank: 4, targets: ['*c_attn*']}"], "model.quantize.load_in_4bit": ["model.freeze=['*.c_*']"],
         "model.quantize.bnb_4bit_use_double_quant": ["model.freeze=['*.c_*']", "model.quantize={load_in_4bit: true}"], "model.lora.merge": ["model.lora={rank: 4, targets: ['*c_attn*']}"]}
NOWHERE = re.compile(r"with both|mean the same program|writes them either way")  # on no number of ranks
ALONE = re.compile(r"(?i)(on|with) one (process|rank)|ranks? ")  # that one rank is not concerned


def target(schema):
    return {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema} if "$ref" in schema else schema


def switches(schema, path=""):
    for key, inner in target(schema).get("properties", {}).items():
        inner = target(inner)
        if inner.get("type") == "boolean":
            yield path + key, inner["description"]
        yield from switches(inner, f"{path}{key}.")


def text(*keys):
    """The program but for digests; None where the job is refused."""
    done = subprocess.run([GENERATOR, TREE / "examples" / "jobs" / "tiny.yaml", "-o", "-", *[word for key in keys for word in ("--set", key)]],
                          capture_output=True, text=True, timeout=100)
    return re.sub(r"[0-9a-f]{64}|(?<=fixed_digest = )\"[0-9a-f]{16}\"", "", done.stdout) if done.returncode == 0 else None


def differs(key, ranks):
    """Whether the programs of both values do, but for the record of the key itself; None where one is refused."""
    base = [*BASE, *NEEDS.get(key, []), *ranks]
    on, off = text(*base, f"{key}=true"), text(*base, f"{key}=false")
    if on is None or off is None:
        return None
    return any(f'"{key}' not in line for line in set(on.splitlines()) ^ set(off.splitlines()))


def main():
    failed = compared = 0
    for key, description in switches(SCHEMA):
        one, two = differs(key, []), differs(key, RANKS)
        compared += one is not None or two is not None
        wrong = None
        if (one or two) and NOWHERE.search(description):
            wrong = "both values are said to mean the same, and two programs differ"
        elif one is False and two is False and not NOWHERE.search(description):
            wrong = "both values mean the same program, which is not said"
        elif one is False and two and not ALONE.search(description):
            wrong = "on one rank both values mean the same program, which is not said"
        failed += wrong is not None
        print(f"{'not ok' if wrong else 'ok'} {key}{': ' + wrong if wrong else ''}{' # SKIP refused here' if one is None and two is None else ''}")
    print(f"{'ok' if compared > 20 else 'not ok'} {compared} switches are compared")
    return 1 if failed or compared <= 20 else 0


if __name__ == "__main__":
    sys.exit(main())
