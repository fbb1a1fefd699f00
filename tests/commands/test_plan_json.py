"""What `plan --json` prints of jobs of every kind is what schemas/plan.schema.json says, and the schema says nothing that none of them
has. predicted_step and measured variants are in test_tune.py, which has a table, data in test_chat.py. TAP."""

import json
import pathlib
import subprocess
import sys

import jsonschema

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
SCHEMA = json.loads((TREE / "schemas" / "plan.schema.json").read_text())
RANKS = ["devices.per_node=2"]
PLANS = [("tiny", ["data.eval_fraction=0.1", "training.eval_interval=250", "data.eval_batch_size=48"], []), ("table", [], []), ("tiny", [], ["--program", "evaluate"]), ("tiny", [], ["--program", "generate"]),
         ("tiny", ["memory.activation_checkpointing=all", "precision.mixed_precision=bf16", "training.ema.decay=0.9"], []),
         ("tiny", RANKS, ["--latency", "20", "--step", "40"]),
         ("tiny", [*RANKS, "parallelism.zero_stage=3", "accumulation.num_steps=2"], ["--nodes", "2"]),
         ("tiny", [*RANKS, "parallelism.reproducible=topology", "accumulation.num_steps=2"], []),
         ("tiny", [*RANKS, "parallelism.ddp.comm_hook=power_sgd"], []),
         ("tiny", ["parallelism.offload={optimizer: nvme, optimizer_nvme_path: scratch}"], []),
         ("tiny", ["parallelism.offload={optimizer: nvme, optimizer_nvme_path: scratch, param: nvme, param_nvme_path: scratch}",
                   "optimizer.clip_grad_norm=0"], []),
         ("tiny", ['memory.device_map={"*.h.0": cpu, "*.h.*": disk, "*": cpu}'], ["--program", "evaluate"]),
         ("gpt2", [*RANKS, "devices.kind=cuda", "parallelism.zero_stage=3", "parallelism.offload.optimizer=cpu", "precision.mixed_precision=fp16"], [])]
AUTO = ["parallelism=auto", "data.batch_size=auto", "memory={activation_checkpointing: auto}", "training.eval_interval=0",
        "accumulation={num_steps: auto, train_batch_size: 1, sync_with_dataloader: false}",
        "devices={per_node: 4, memory: 1GiB, peak_flops: 5e10, memory_bandwidth: 5e9, link: {latency: 2, bandwidth: 2000}}"]
PLANS += [("tiny", AUTO, []),
          ("tiny", [*RANKS, "parallelism.pp=2", "training.eval_interval=0", "accumulation={num_steps: 4, sync_with_dataloader: false}"], [])]
PLANS += [("gpt2", [*RANKS, "devices.kind=cuda", "devices.memory=3GiB", "model.weights=none"], ["--fit"])]
MEASURED = {".predicted_step", ".choices.seconds", ".data"}


def names_of(schema, path=""):
    inner = schema.get("items", schema)
    for name, property in inner.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from names_of(property, f"{path}.{name}")


def names_in(value, path=""):
    for item in value if isinstance(value, list) else [value]:
        for name, inner in item.items() if isinstance(item, dict) else ():
            yield f"{path}.{name}"
            yield from names_in(inner, f"{path}.{name}")


def main():
    seen, failed = set(), 0
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name, keys, flags in PLANS:
        sets = [word for key in keys for word in ("--set", key)]
        done = subprocess.run([GENERATOR, "plan", TREE / "examples" / "jobs" / f"{name}.yaml", "--json", *sets, *flags],
                              capture_output=True, text=True, timeout=100)
        plan = json.loads(done.stdout) if done.returncode == 0 else None
        errors = [done.stderr] if plan is None else [
            f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(plan)]
        seen |= set(names_in(plan or {}))
        failed += bool(errors)
        print("\n  ".join([f"{'not ok' if errors else 'ok'} plan {name} {' '.join([*keys, *flags])}", *errors[:5]]))
    missing = [name for name in names_of(SCHEMA) if name not in seen and not any(name.startswith(one) for one in MEASURED)]
    print("\n  ".join([f"{'not ok' if missing else 'ok'} the schema has nothing more", *missing]))
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
