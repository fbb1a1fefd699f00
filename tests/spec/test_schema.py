"""The job reader against jsonschema: the schema is standard, and both accept the same jobs of thousands drawn at random.

SEED=N repeats a run, COUNT=N draws so many."""

import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema
from rules import ROOT, SCHEMA, rules_hold

READER = Path(os.environ.get("ACCEL_TEST_BAD", ROOT / "build" / "tests" / "spec" / "test_bad"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = int(os.environ.get("COUNT", 4000))

# What gen/spec/schema.h says that the reader knows, and what is there for people.
KEYWORDS = set(
    "$ref type const enum minimum exclusiveMinimum maximum exclusiveMaximum minLength pattern items minItems maxItems"
    " properties required minProperties maxProperties propertyNames additionalProperties dependentSchemas allOf if then else".split()
)
ANNOTATIONS = {"$schema", "title", "description", "default", "$defs", "patternErrorMessage", "mayChange"}
# Those that tests/spec/test_yaml.c tries, each with a text that matches.
PATTERNS = {"^[A-Za-z_][A-Za-z0-9_]*$": "a", "^[A-Za-z_][A-Za-z0-9_.]*$": "a.b",
            "^[^\\x00-\\x1f\\x7f]*$": "dir/ä b", "^[f][p][3][2]$": "fp32", "^[u][i][n][t][8]$": "uint8", "^[a][l][l]$": "all", "^[0-9/]*[ ]*[a-z]+$": "1/4 epoch",
            "^[o][n][_][A-Za-z0-9_]+$": "on_step", "^[A-Za-z0-9_][A-Za-z0-9_ .-]*$": "a b",
            "^[a][u][t][o]$": "auto", "^[1-9][0-9]*[KMGT][B]$": "5GB", "^[1-9][0-9]*[KMGTkmgt][iI]*[Bb]*$": "16GiB",
            "^[ 0-9.,*<=>!~]+$": ">=0.1"}

# What a job needs that extends no file.
REQUIRED = next(part["else"]["required"] for part in SCHEMA["allOf"] if part["if"] == {"required": ["extends"]})

# The keys that not every optimizer has.
ADAM = {"betas", "eps"}
OPTIMIZER_KEYS = {
    "sgd": {"momentum", "dampening", "nesterov"},
    "adam": ADAM,
    "adamw": ADAM,
    "adamax": ADAM,
    "nadam": ADAM | {"momentum_decay"},
    "radam": ADAM,
    "adagrad": {"eps"},
    "adadelta": {"eps", "rho"},
    "rmsprop": {"eps", "momentum", "alpha", "centered"},
    "lion": {"betas"},
    "lamb": ADAM,
    "schedule_free_adamw": ADAM | {"r", "weight_lr_power"},
    "adafactor": {"eps", "beta2_decay", "least_scale", "clip_threshold"},
    "lomo": set(),
    "adalomo": {"eps", "beta2_decay", "least_scale", "clip_threshold"},
    "muon": {"eps", "momentum", "nesterov", "ns_steps", "ns_coefficients", "adjust_lr_fn", "adamw"},
}
for name in set(OPTIMIZER_KEYS) - {"lamb", "adafactor", "muon", "schedule_free_adamw", "lomo", "adalomo"}:
    OPTIMIZER_KEYS[name] = OPTIMIZER_KEYS[name] | {"state_dtype"}
# The keys that not every schedule has.
WARM, FALL = {"warmup_steps", "warmup_fraction", "warmup_samples"}, {"decay_steps", "decay_samples", "min_lr"}
SCHEDULE_KEYS = {
    "constant": WARM,
    "linear": WARM | FALL,
    "cosine": WARM | FALL,
    "cosine_with_restarts": WARM | FALL | {"cycles"},
    "polynomial": WARM | FALL | {"power"},
    "inverse_sqrt": WARM | {"timescale"},
    "exponential": WARM | {"gamma"},
    "step": WARM | {"gamma", "step_size"},
    "one_cycle": {"decay_steps", "decay_samples", "pct_start", "anneal", "div_factor", "final_div_factor"},
    "wsd": WARM | FALL | {"decay_type", "decay_fraction", "stable_steps"},
}


def target(schema):
    """The schema with what its $ref leads to."""
    if "$ref" not in schema:
        return schema
    return {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema}


def subschemas(schema):
    """All schemas within a schema."""
    if not isinstance(schema, dict):
        return
    yield schema
    inner = [schema.get(key) for key in ("items", "additionalProperties", "propertyNames", "if", "then", "else")]
    for key in ("properties", "dependentSchemas", "$defs"):
        inner += schema.get(key, {}).values()
    for one in inner + schema.get("allOf", []):
        yield from subschemas(one)


class Drawer:
    """Jobs that are good, or nearly."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, schema, whole):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -1000))
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1000))
        edge = [low, high, low - 1, high + 1, 0, 1, -1, 0.5, 1.0, 2.0, 1e3]
        inside = [self.random.randint(1, 9), self.random.randint(1, 9) * 10]
        if not whole:
            inside += [self.random.random(), 1e-3, 1e-5]
        return self.random.choice(inside * 5 + edge if self.random.random() < 0.3 else inside)

    def text(self):
        return self.random.choice(["a", "m.c", "dir/ä", "no", "12", "x y", "-", "#", "1e3", "", "a\nb", "\x00", "a\x1b", "~"])

    def odd(self):
        return self.random.choice([None, True, False, 0, 1, -1, 1.5, "", "no", "1", [], [1], {}, {"a": 1}, [[0.5, 0.5]]])

    def value(self, schema):
        schema = target(schema)
        kind = schema.get("type")
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if self.random.random() < 0.01:
            return self.odd()
        if "enum" in schema:
            return self.random.choice(schema["enum"]) if self.random.random() < 0.97 else self.text()
        if kind in ("integer", "number"):
            return self.number(schema, kind == "integer")
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "string":
            return PATTERNS.get(schema.get("pattern"), "m.c") if self.random.random() < 0.97 else self.text()
        if kind == "array" and schema["items"].get("type") == "string":
            return [self.value(schema["items"])]
        if kind == "array" and schema.get("minItems", 2) == 3:
            return [self.random.random() for _ in range(3 if self.random.random() < 0.95 else 2)]
        if kind == "array" and schema["items"].get("type") == "object":
            return [self.group(schema["items"]) for _ in range(self.random.randint(0, 2))]
        if kind == "array":
            length = 2 if self.random.random() < 0.95 else self.random.randint(0, 3)
            items = {"type": "number", "minimum": 0, "maximum": 0.9}
            return [self.random.random() if self.random.random() < 0.9 else self.number(items, False) for _ in range(length)]
        return self.group(schema)

    def group(self, schema):
        job = {}
        for key, inner in schema.get("properties", {}).items():
            required = key in REQUIRED if schema is SCHEMA else key in schema.get("required", [])
            if schema is SCHEMA and key == "extends":  # its files are read first: test_extends.py
                continue
            if self.random.random() < (0.99 if required else 0.15):
                job[key] = self.value(inner)
        if isinstance(schema.get("additionalProperties"), dict):
            for name in self.random.sample(["n", "n_layer", "A1", "_"], self.random.randint(0, 3)):
                job[name] = self.value(schema["additionalProperties"])
            if self.random.random() < 0.02:
                job[self.random.choice(["1a", "a b", "", "ä", "a\nb"])] = 1
        if self.random.random() < 0.004:
            job[self.random.choice(["extra", "lr", "model", ""])] = self.odd()
        return job

    def tidied(self, job):
        """On the processor: what other devices do not do yet is in tests/spec/bad/device-*.yaml alone."""
        job = self.harmonized(job)
        for axis in ("tp", "pp", "cp", "sp", "ep"):  # what goes with them is in docs/combinations.md and docs/meshes.md
            if isinstance(job.get("parallelism"), dict):
                job["parallelism"].pop(axis, None)
        if isinstance(job.get("devices"), dict) and job["devices"].get("kind") in ("cuda", "hip", "xla", "tpu", "neuron", "rocm", "xpu"):
            del job["devices"]["kind"]
        for group, key in (("devices", "attention"), ("devices", "convolution"), ("precision", "tf32"), ("parallelism", "offload"), ("profile", "nvtx")):
            if isinstance(job.get(group), dict):
                job[group].pop(key, None)
        return job

    def harmonized(self, job):
        """Without most of the keys that contradict, so that enough jobs are good."""
        data, optimizer, schedule = (job.get(name) for name in ("data", "optimizer", "schedule"))
        keeps = self.random.random() < 0.1
        if keeps or not all(isinstance(group, dict) for group in (data, optimizer or {}, schedule or {})):
            return job
        train = data.get("train")
        rows = isinstance(train, dict) and train.get("format") in ("csv", "npy", "npz")
        if isinstance(train, dict):
            train.pop("weights", None)
            train.pop("labels", None)
            train.update({"labels": "labels.npy"} if train.get("format") == "npy" else {})
        for key in ["sequence_length", "masking"] if rows else ["features", "label", "inputs"]:
            data.pop(key, None)
        if rows and train["format"] == "npz":
            data.setdefault("inputs", {"a": {}})
        if rows and "inputs" in data:
            for key in ("features", "label"):
                data.pop(key, None)
            train.pop("labels", None)
        elif rows:
            data.setdefault("features", 3)
        training = job.get("training")
        if isinstance(optimizer, dict) and optimizer.get("name") == "schedule_free_adamw" and isinstance(training, dict):
            training.pop("ema", None)
        if isinstance(training, dict):
            ways = [key for key in ("steps", "samples", "epochs") if key in training]
            for key in ways[1:]:
                training.pop(key)
            training.setdefault(ways[0] if ways else "steps", 100)
            training.setdefault("eval_interval", 5)
        precision = job.get("precision")
        scaler = precision.get("grad_scaler") if isinstance(precision, dict) else None
        if isinstance(scaler, dict):
            scaler.setdefault("enabled", True)
        if "eval" in data:
            data.pop("eval_fraction", None)
            data["eval"] = copy.deepcopy(train)
        if isinstance(job.get("model"), dict):
            self.tidy_model(job["model"], job)
        self.tidy_sizes(job)
        self.tidy_ranks(job)
        if optimizer:
            self.tidy_optimizer(optimizer)
        if schedule:
            self.tidy_schedule(schedule)
        return job

    def tidy_ranks(self, job):
        """Mostly one rank."""
        devices, axes = job.get("devices"), job.get("parallelism", {})
        if self.random.random() < 0.05 or not isinstance(devices, dict) or not isinstance(axes, dict):
            return
        if self.random.random() < 0.9:
            devices.pop("nodes", None)
            devices.pop("per_node", None)
            devices.pop("numa_affinity", None)
        for axis in ("dp_replicate", "dp_shard", "zero_stage", "fsdp"):
            axes.pop(axis, None)

    def tidy_model(self, model, job):
        if "weights" not in model:
            for key in ("weights_prefix", "weights_map", "fresh", "ignore"):
                model.pop(key, None)
        optimizer = job.get("optimizer")
        if isinstance(optimizer, dict) and optimizer.get("name") == "schedule_free_adamw":
            model.pop("lora", None)
            model.pop("freeze", None)

    def tidy_sizes(self, job):
        accumulation, memory, devices = (job.setdefault(name, {}) for name in ("accumulation", "memory", "devices"))
        if not all(isinstance(group, dict) for group in (accumulation, memory, devices)):
            return
        way = memory.get("activation_checkpointing", "none")
        own = {"every": ("checkpoint_every", 2), "layers": ("checkpoint_layers", 2), "functions": ("checkpoint_functions", ["a"])}
        for name, (key, value) in own.items():
            if way == name:
                memory.setdefault(key, value)
            else:
                memory.pop(key, None)
        if way == "auto" and job["data"].get("batch_size") == "auto":
            job["data"]["batch_size"] = 4
        if "auto" in (way, job["data"].get("batch_size")):
            devices.setdefault("memory", "16GiB")
        if accumulation.get("num_steps") == "auto":
            accumulation.setdefault("train_batch_size", 12)
        else:
            accumulation.pop("train_batch_size", None)

    def tidy_optimizer(self, optimizer):
        name = optimizer.get("name", "adamw")
        own = OPTIMIZER_KEYS.get(name if isinstance(name, str) else "", set())
        for key in set().union(*OPTIMIZER_KEYS.values()) - own:
            optimizer.pop(key, None)
        if optimizer.get("nesterov") is True:
            optimizer.pop("dampening", None)
            optimizer.setdefault("momentum", 0.9)
        groups = optimizer.get("param_groups")
        for group in groups if isinstance(groups, list) else []:
            if isinstance(group, dict) and "lr" in group:
                group.pop("lr_scale", None)
            if isinstance(group, dict):
                for key in {"betas", "eps", "momentum", "adamw"} - own:
                    group.pop(key, None)
        if "clip_grad_value" in optimizer:
            optimizer.pop("clip_grad_norm", None)
        if optimizer.get("clip_grad_norm", 0) == 0:
            optimizer.pop("norm_type", None)

    def tidy_schedule(self, schedule):
        name, own = schedule.get("name", "constant"), SCHEDULE_KEYS
        own = own.get(name if isinstance(name, str) else "", set())
        for key in set().union(*SCHEDULE_KEYS.values()) - own:
            schedule.pop(key, None)
        for key in own & {"gamma", "step_size"}:
            schedule.setdefault(key, 1)
        if schedule.get("wd_incr_style", "constant") == "constant":
            schedule.pop("start_weight_decay", None)
        for key, other in (("warmup_fraction", "warmup_samples"), ("warmup_fraction", "warmup_steps"),
                           ("warmup_samples", "warmup_steps"), ("decay_samples", "decay_steps"), ("stable_steps", "decay_fraction")):
            if key in schedule:
                schedule.pop(other, None)


class Schema(unittest.TestCase):
    def test_standard(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_keywords(self):
        for schema in subschemas(SCHEMA):
            self.assertLessEqual(set(schema), KEYWORDS | ANNOTATIONS, schema)
            self.assertIn(schema.get("pattern", min(PATTERNS)), PATTERNS)
            self.assertTrue(schema.get("$ref", "#/$defs/").startswith("#/$defs/"))

    def test_described(self):
        for group in subschemas({"properties": SCHEMA["properties"]}):
            for key, schema in group.get("properties", {}).items() if "type" in group else ():
                self.assertTrue(target(schema).get("description", "").endswith("."), key)

    def test_defaults_are_valid(self):
        for schema in subschemas(SCHEMA):
            if "default" in schema:
                jsonschema.Draft202012Validator({**target(schema), "$defs": SCHEMA["$defs"]}).validate(schema["default"])

    def test_integers_fit(self):
        for schema in subschemas(SCHEMA):
            if schema.get("type") == "integer":
                self.assertLess(schema["maximum"], 1 << 53, schema)


class Reader(unittest.TestCase):
    def answers(self, jobs):
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for i, job in enumerate(jobs):
                names.append(f"{folder}/{i}.yaml")
                Path(names[-1]).write_text(json.dumps(job, ensure_ascii=i % 2 == 0))
            done = subprocess.run([READER, "--check", *names], capture_output=True, text=True, check=True)
        return [line == "0" for line in done.stdout.split()]

    def test_random_jobs(self):
        validator = jsonschema.Draft202012Validator(SCHEMA)
        drawer = Drawer(SEED)
        jobs = [drawer.tidied(drawer.group(SCHEMA)) for _ in range(COUNT)]
        wanted = [validator.is_valid(job) and rules_hold(job) for job in jobs]
        got = self.answers(jobs)
        print(f"seed {SEED}: {sum(wanted)} of {COUNT} jobs are good", file=sys.stderr)
        self.assertEqual(len(got), COUNT)
        self.assertGreater(sum(wanted), COUNT // 25)
        self.assertLess(sum(wanted), COUNT * 19 // 20)
        for job, answer, right in zip(jobs, got, wanted):
            why = [error.message for error in validator.iter_errors(job)]
            self.assertEqual(answer, right, f"seed {SEED}: {json.dumps(job)}\n{why}")


if __name__ == "__main__":
    if not READER.exists():
        print(f"{READER} is not built")
        sys.exit(77)
    unittest.main()
