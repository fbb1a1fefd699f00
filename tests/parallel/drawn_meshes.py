"""Meshes with other keys, drawn: optimizers, clipping, types, averages, adapters, checkpointing, evaluations. Each job is planned,
audited and run beside one process with the same samples a step; it resumes on another mesh, from the checkpoint that it left; and
the evaluator and the generator of the mesh say what those of one process say.

usage: drawn_meshes.py COUNT    draws so many from number FIRST (0) on, by SEED; JOBS=N at a time (1)"""

import collections
import concurrent.futures
import json
import os
import random
import re
import subprocess
import sys

import meshes
from ranks import FAST, GENERATOR, MPI, Ranks, job_of, relative

STEPS, KEPT = 6, 3  # of a run; when its checkpoint is written
EXACT, HALF = 2e-6, 2e-2  # how far losses may be apart, and those of 16 or 8 bits
OPTIMIZERS = [{"name": name, "lr": lr} for name, lr in
              (("adamw", 1e-3), ("sgd", 0.05), ("adam", 1e-3), ("adamax", 1e-3), ("nadam", 1e-3), ("radam", 1e-3), ("adagrad", 1e-2),
               ("adadelta", 0.1), ("rmsprop", 1e-4), ("lion", 1e-4), ("lamb", 1e-3), ("adafactor", 1e-3), ("muon", 1e-3),
               ("schedule_free_adamw", 1e-3))]
OPTIMIZERS += [{"name": "sgd", "lr": 0.05, "momentum": 0.9, "nesterov": True}, {"name": "adamw", "lr": 1e-3, "state_dtype": "8bit"},
               {"name": "adamw", "lr": 1e-3, "state_dtype": "bf16"}, {"name": "adamw", "lr": 1e-3, "state_dtype": "bf16_stochastic"}]
CONCERNS = {  # keys by group
    "clipping": [*({"optimizer": {"clip_grad_norm": 0.5, **norm}} for norm in ({}, {"norm_type": 1}, {"norm_type": "inf"})),
                 {"optimizer": {"clip_grad_value": 0.01, "clip_grad_norm": None}}, {"optimizer": {"clip_grad_norm": None}}],
    "types": [{"precision": {"mixed_precision": "bf16"}}, {"precision": {"mixed_precision": "fp16"}}, {"precision": {"param_dtype": "bf16"}}],
    "average": [{"training": {"ema": {"decay": 0.9}}}, {"training": {"ema": {"decay": 0.9, "evaluate": True}, "eval_interval": 2, "eval_iters": "all"}}],
    "evaluation": [{"training": {"eval_interval": 2, "eval_iters": "all"}}, {"training": {"eval_interval": 3, "eval_iters": "all", "metrics": ["accuracy"]}},
                   {"training": {"eval_interval": 2, "eval_iters": "all", "early_stopping": {"patience": 1, "restore_best": True}}},
                   {"training": {"eval_interval": 3, "eval_iters": "all"}, "data": {"eval_batch_size": 16}}],
    "adapters": [{"model_keys": {"lora": {"targets": ["re:(c_attn|q_proj|q)$"], "rank": 2, "alpha": 4}}}],
    "frozen": [{"model_keys": {"freeze": ["re:(wte|embed_tokens|shared)"]}}],
    "recomputed": [{"memory": {"activation_checkpointing": "all"}}, {"memory": {"activation_checkpointing": "every", "checkpoint_every": 2}},
                   {"memory": {"cross_entropy_chunk": 48}}],
    "schedule": [{"schedule": {"name": "cosine", "warmup_steps": 2}}, {"schedule": {"name": "wsd", "warmup_steps": 1}}],
    "groups": [{"optimizer": {"param_groups": [{"match": "*.bias", "weight_decay": 0.0}]}}],
    "tokens": [{"accumulation": {"normalize": "tokens"}}],
    "skips": [{"training": {"on_nonfinite": "skip"}}],
    "sampled": [{"tracking": {"grad_norms": "per_layer"}}],
}


def merged(keys, more):
    both = dict(keys)
    for group, there in more.items():
        both[group] = {**both.get(group, {}), **there}
    return both


def without_none(keys):
    return {name: there for name, there in keys.items() if there is not None}


class Draw:
    """A model, a mesh, the keys that one process has, too, and another mesh."""

    def __init__(self, number, seed):
        rng = self.rng = random.Random(f"{seed} {number}")
        self.number, self.model = number, rng.choice(list(meshes.MODELS))
        every = [mesh for mesh in meshes.meshes() if self.model == "qwen_moe" or not any(kind == "ep" for kind, _ in mesh)]
        wide = [mesh for mesh in every if len(mesh) > 1]
        self.mesh = rng.choice(rng.choice((every, wide)))
        self.other = rng.choice([(), rng.choice(every), rng.choice(wide)])
        self.optimizer = rng.choice(OPTIMIZERS)
        names = rng.sample(list(CONCERNS), rng.choice((1, 2, 2, 3, 4)))
        self.concerns = {name: rng.choice(CONCERNS[name]) for name in names}
        self.micro = 4 if any("pp" in kind for kind, _ in (*self.mesh, *self.other)) else rng.choice((1, 2, 4))
        if meshes.replicas_of(self.mesh) * meshes.replicas_of(self.other) > 1:
            self.concerns.pop("schedule", None)  # which advances once for the batch of each rank

    def keys(self):
        keys = {"optimizer": {"weight_decay": 0.1 if self.optimizer["name"] in ("adamw", "lion", "sgd") else 0.0, "eps": 1e-5, **self.optimizer}}
        if self.optimizer["name"] in ("sgd", "lion", "adagrad", "adafactor"):
            keys["optimizer"]["eps"] = None
        for there in self.concerns.values():
            keys = merged(keys, there)
        return keys

    def job(self, mesh, steps=STEPS):
        """The same samples a step on each mesh."""
        _, config, groups = meshes.MODELS[self.model]
        keys = {**self.keys()}
        model_keys = keys.pop("model_keys", None)
        own = job_of(meshes.ranks_of(mesh), 8 // meshes.replicas_of(mesh), steps, model=self.model, config=config, model_keys=model_keys,
                     accumulation={"num_steps": self.micro, "sync_with_dataloader": False}, parallelism=meshes.parallelism(mesh),
                     checkpoint={"every": KEPT}, **{name: dict(there) for name, there in groups.items()})
        for group, there in keys.items():
            own[group] = without_none({**own.get(group, {}), **there})
        if "early_stopping" in own["training"]:
            own["checkpoint"].pop("every")
        return own

    def tolerance(self):
        half = any("precision" in there for there in self.concerns.values()) or "state_dtype" in self.optimizer
        return HALF if half else EXACT

    def text(self):
        return (f"{self.number} {self.model}: {meshes.titled(self.mesh)} -> {meshes.titled(self.other) or 'one process'}; "
                f"{json.dumps(self.optimizer)} x {self.micro}; " + ", ".join(f"{name} {json.dumps(there)}" for name, there in self.concerns.items()))


class Failed(Exception):
    pass


def refusal(draw, mesh):
    """Why the generator does not take it on a mesh; None where it does."""
    trainer = Ranks(meshes.ranks_of(mesh), draw.job(mesh))
    result = subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "trainer.c"], capture_output=True, text=True)
    if result.returncode == 0:
        return None
    if not re.search(r"^\S+:\d+:\d+: error: ", result.stderr, re.M) or (trainer.folder / "trainer.c").exists():
        raise Failed(f"refused with {result.returncode} and without a position: {result.stderr[-500:]}")
    return re.search(r"error: (.*)", result.stderr).group(1)


def audited(trainer, *flags):
    trainer.generate(*flags)
    result = subprocess.run([GENERATOR, "audit", "trainer.c"], cwd=trainer.folder, capture_output=True, text=True)
    bad = [line for line in result.stdout.splitlines() if re.match(r"  (broken|undecided)", line)]
    if bad or result.returncode != 0:
        raise Failed("audit: " + "; ".join(bad) + result.stderr[-300:])


def compare(lines, wanted, tolerance, what):
    if len(lines) != len(wanted):
        raise Failed(f"{what}: {len(lines)} lines, {len(wanted)} of one process")
    for line, want in zip(lines, wanted):
        for name in ("loss", "eval_loss", "eval_accuracy"):
            one, two = line.get(name), want.get(name)
            if (one is None) != (two is None) or (one is not None and not abs(one - two) <= tolerance * max(abs(two), 1e-3)):
                raise Failed(f"{what}: {name} of step {line['step']} is {one}, {two} of one process")
        one, two = line.get("grad_norm"), want.get("grad_norm")
        if (one is None) != (two is None) or (one is not None and not abs(one - two) <= 100 * tolerance * max(abs(two), 1e-3)):
            raise Failed(f"{what}: norm of step {line['step']} is {one}, {two} of one process")


def said(trainer, kind, weights, *flags):
    """What the job's evaluator or generator says of a run's weights; None where it is refused."""
    program = Ranks(trainer.ranks, trainer.job)
    result = subprocess.run([GENERATOR, program.path, "-o", program.folder / "trainer.c", "--program", kind], capture_output=True, text=True)
    if result.returncode != 0:
        return None
    audited(program, "--program", kind)
    program.build("--program", kind)
    axes = trainer.job.get("parallelism", {})
    ranks = axes.get("tp", 1) * axes.get("pp", 1)
    command = ["mpirun", "-n", str(ranks)] if ranks > 1 else []
    result = subprocess.run([*command, "./trainer", "--weights", weights, *flags], cwd=program.folder, capture_output=True, encoding="latin-1",
                            env={**os.environ, **MPI}, input="7 9 200 25 " * 2, timeout=300)
    if result.returncode != 0:
        raise Failed(f"{kind}: status {result.returncode}\n{result.stderr[-600:]}")
    return result.stdout


def built(mesh, job, folder=None):
    trainer = Ranks(meshes.ranks_of(mesh), job, folder)
    trainer.build(CFLAGS=FAST)
    return trainer


def tried(draw):
    """What was shown of a draw."""
    trainer = built(draw.mesh, draw.job(draw.mesh))
    audited(trainer)
    trainer.command("plan", "job.yaml", "-v")
    lines = trainer.run()
    one = built((), draw.job(()))
    wanted = one.run()
    compare(lines, wanted, draw.tolerance(), "run")
    shown = ["run"]
    after, there = one.weights(), trainer.weights()
    far = {name: relative(value, after[name]) for name, value in there.items() if not name.endswith(("key.bias", "k_proj.bias"))}
    worst = max(far, key=far.get)
    if not far[worst] <= 5000 * draw.tolerance():
        raise Failed(f"{worst} is {far[worst]:.1e} away")
    weights = one.folder / "run"
    if any("eval_loss" in line for line in wanted):
        shown += evaluated(draw, trainer, one, weights)
    if draw.model != "t5":
        shown += written(draw, trainer, one, weights)
    return shown + resumed(draw, trainer, wanted)


def evaluated(draw, trainer, one, weights):
    several, alone = (said(each, "evaluate", weights, "--format", "json") for each in (trainer, one))
    if several is None or alone is None:
        return ["evaluator refused"]
    several, alone = json.loads(several), json.loads(alone)
    if several["samples"] != alone["samples"] or not abs(several["loss"] - alone["loss"]) <= draw.tolerance() * abs(alone["loss"]):
        raise Failed(f"evaluate: {several}, {alone} of one process")
    return ["evaluated"]


def written(draw, trainer, one, weights):
    flags = ("--tokens", "12", "--prompt-file", "-", "--seed", "3")
    several, alone = (said(each, "generate", weights, *flags) for each in (trainer, one))
    if several is None or alone is None:
        return ["generator refused"]
    if several != alone and draw.tolerance() == EXACT:
        raise Failed(f"generate: {several!r}, {alone!r} of one process")
    return ["written"]


def resumed(draw, trainer, wanted):
    """On another mesh, from the first checkpoint."""
    folders = sorted((path.parent for path in (trainer.folder / "run").rglob("manifest.json")), key=lambda folder: int(folder.name.rsplit("_")[1]))
    if not folders:
        return []
    why = refusal(draw, draw.other)
    if why is not None:
        return [f"other mesh refused: {why}"]
    other = built(draw.other, draw.job(draw.other), trainer.folder)
    lines = other.run("--resume", str(folders[0].relative_to(trainer.folder)))
    compare(lines, wanted, draw.tolerance(), "resumed")
    return ["resumed"]


def attempt(number, seed):
    """(draw, refusals, what was shown, why it failed)."""
    draw, refusals = Draw(number, seed), []
    try:
        while True:
            why = refusal(draw, draw.mesh)
            if why is None:
                return draw, refusals, tried(draw), None
            refusals.append((draw.text(), why))
            if not relaxed(draw, why):
                return draw, refusals, [], None
    except (Failed, AssertionError, subprocess.SubprocessError, OSError) as error:
        return draw, refusals, [], str(error)


def relaxed(draw, why):
    """Takes one of the keys that a refusal may be about out of the draw; False: none is left."""
    words = re.findall(r"[a-z_0-9]+", why)
    named = [name for name, there in draw.concerns.items() if any(word in json.dumps(there) for word in words if len(word) > 3)]
    if draw.optimizer != OPTIMIZERS[0] and ("'optimizer." in why or any(str(there) in why for there in draw.optimizer.values())):
        draw.optimizer = OPTIMIZERS[0]
    elif named or draw.concerns:
        draw.concerns.pop(draw.rng.choice(named or list(draw.concerns)))
    elif draw.optimizer != OPTIMIZERS[0]:
        draw.optimizer = OPTIMIZERS[0]
    else:
        return False
    return True


def main():
    seed, first = os.environ.get("SEED", "0"), int(os.environ.get("FIRST", "0"))
    counts, reasons, failed = collections.Counter(), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for draw, refusals, shown, why in pool.map(lambda number: attempt(number, seed), range(first, first + int(sys.argv[1]))):
            counts.update(word for word in shown if ":" not in word)
            counts["drawn"] += 1
            failed += why is not None
            reasons.update(meshes.general(each) for _, each in refusals)
            print(f"{'FAIL' if why else 'ok  ' if shown else 'none'} {draw.text()}: {why or ', '.join(shown)}", flush=True)
            for text, each in refusals:
                print(f"       refused: {each}", flush=True)
    print(dict(counts), f"{failed} failed", *(f"\n{count} x {reason}" for reason, count in reasons.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
