"""docs/meshes.md: which meshes of 2, 4 and 8 ranks the generator takes, for four models, and why not the others.

usage: meshes.py [--accept]          prints the page, or writes it
       meshes.py --run [--only PATTERN] [--part K/N] [MODEL...]
                                     runs each mesh that it takes for 20 steps compared with one process with the same samples a step;
                                     PATTERN is a regular expression in "MODEL: KIND of N x KIND of N"; part K of N (0 to N - 1) has the
                                     meshes whose text's CRC-32 leaves K; --part seed/N is chosen by SEED; JOBS=N at a time (2)
       meshes.py --audit [--only PATTERN] [--part K/N] [MODEL...]
                                     accel-gen audit of the CUDA program of each mesh that it takes, with an evaluation: all claims hold"""

import argparse
import collections
import concurrent.futures
import functools
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

from ranks import CORPUS, GENERATOR, STEADY, TREE, Ranks, job_of, relative

PAGE = TREE / "docs" / "meshes.md"
STEPS, SAMPLES = 20, 8  # of a micro-batch
MICRO_BATCHES = {"num_steps": 4, "sync_with_dataloader": False}

# A kind of division: the axis, what else the job says, and whether ranks along it take batches of their own.
KINDS = {
    "dp": ("dp_replicate", {}, True),
    "zero 1": ("dp_shard", {"zero_stage": 1}, True),
    "zero 2": ("dp_shard", {"zero_stage": 2}, True),
    "zero 3": ("dp_shard", {"zero_stage": 3}, True),
    "tp": ("tp", {}, False),
    "tp, sequence": ("tp", {"megatron": {"sequence_parallelism": True}}, False),
    "cp": ("cp", {}, False),
    "cp, ring": ("cp", {"cp_comm": "ring"}, False),
    "sp": ("sp", {}, False),
    "pp": ("pp", {}, False),
    "pp, gpipe": ("pp", {"pp_schedule": "gpipe"}, False),
    "pp, zero_bubble": ("pp", {"pp_schedule": "zero_bubble"}, False),
    "pp, interleaved": ("pp", {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}}, False),
    "ep": ("ep", {}, True),
}

# T5 with gelu: where a relu turns by a rounding, all that follows differs.
MODELS = {
    "gpt2": ("GPT-2", {"n_layer": 8, "n_head": 8, "n_embd": 32, "vocab_size": 256, "block_size": 32}, {}),
    "llama": ("Llama", {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_size": 32, "intermediate_size": 48,
                        "head_dim": 4, "vocab_size": 256}, {"data": {"sequence_length": 32}}),
    "qwen_moe": ("Qwen-MoE", {"num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_size": 32, "head_dim": 4,
                              "vocab_size": 256, "moe_intermediate_size": 16, "num_experts": 8, "num_experts_per_tok": 2,
                              "router_aux_loss_coef": 0}, {"data": {"sequence_length": 32}}),
    "t5": ("T5", {"num_layers": 5, "num_decoder_layers": 5, "num_heads": 8, "d_model": 32, "d_kv": 4, "d_ff": 48, "vocab_size": 256,
                  "gated": True},
           {"data": {"sequence_length": 32}}),
}


def meshes(most=8):
    """Every way to divide 2, 4 .. MOST ranks among kinds, each axis by at most one: tuples of (kind, ranks)."""
    sizes, count = [], 2
    while count <= most:
        sizes.append(count)
        count *= 2
    found = []
    for several in range(1, len(sizes) + 1):
        for kinds in itertools.combinations(KINDS, several):
            if len({KINDS[kind][0] for kind in kinds}) == several:
                found += [tuple(zip(kinds, each)) for each in itertools.product(sizes, repeat=several) if product(each) <= most]
    return sorted(found, key=lambda mesh: product(each for _, each in mesh))


def product(numbers):
    return functools.reduce(lambda one, other: one * other, numbers, 1)


def ranks_of(mesh):
    return product(each for _, each in mesh)


def replicas_of(mesh):
    return product(each for kind, each in mesh if KINDS[kind][2])


def text_of(model, mesh):
    return f"{model}: {titled(mesh)}"


def is_of_part(part, model, mesh):
    """Whether a mesh is one of part (K, N): by its text alone, so that other models and kinds move none of them."""
    which, parts = part
    return zlib.crc32(text_of(model, mesh).encode()) % parts == which


def part_named(word):
    """(K, N) of "K/N" or "seed/N"."""
    which, parts = word.split("/")
    number = int(os.environ.get("SEED", "0")) % int(parts) if which == "seed" else int(which)
    if not 0 <= number < int(parts):
        raise argparse.ArgumentTypeError(f"part {number} of parts 0 to {int(parts) - 1}")
    return number, int(parts)


def titled(mesh):
    return " x ".join(f"{kind} of {each}" for kind, each in mesh)


def parallelism(mesh):
    keys = {}
    for kind, each in mesh:
        axis, more, _ = KINDS[kind]
        both = {"megatron": keys.get("megatron", {}) | more.get("megatron", {})} if "megatron" in more else {}
        keys |= {axis: each, **more, **both}
    return keys


def job(model, mesh):
    """A step has the same samples on each mesh."""
    _, config, groups = MODELS[model]
    return job_of(ranks_of(mesh), SAMPLES // replicas_of(mesh), STEPS, model=model, config=config, accumulation=dict(MICRO_BATCHES),
                  parallelism=parallelism(mesh), **{name: dict(keys) for name, keys in groups.items()})


def refusal(model, mesh, folder):
    """Why the generator does not take it; None where it does."""
    trainer = Ranks(ranks_of(mesh), job(model, mesh), folder)
    result = subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "trainer.c"], capture_output=True, text=True)
    if result.returncode == 0:
        return None
    return re.search(r"error: (.*)", result.stderr).group(1)


def refusals(asked):
    """(model, mesh) to why not, or to None."""
    with tempfile.TemporaryDirectory(prefix="accel-meshes-") as name:
        def one(number, model, mesh):
            folder = pathlib.Path(name) / str(number)
            folder.mkdir()
            return refusal(model, mesh, folder)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(zip(asked, pool.map(lambda at: one(at[0], *at[1]), enumerate(asked))))


# ---- The page ----

HEAD = """# Which meshes run

Every mesh of 2, 4 and 8 ranks over data parallelism (`dp`: `dp_replicate`; `zero 1` to `zero 3`: `dp_shard` with
`zero_stage`), `tp` with and without `megatron.sequence_parallelism`, `cp` (with an all-gather and as a ring), `sp`, `pp`
(1F1B, GPipe, zero_bubble, and interleaved with stages of one layer) and `ep`, with at most one of each axis, was given
to the generator for four small models. [Dividing a model](model-parallelism.md) says what each of them does.

`tests/parallel/meshes.py --accept` regenerates this page, and `tests/parallel/test_mesh_page.py` compares it with the
generator. `tests/parallel/meshes.py --run` runs every mesh that is taken for 20 steps, and compares losses, norms and
weights with those of one process. `--audit` instead proves the claims of [accel-gen audit](audit.md) about the CUDA
program of each, which takes no GPU. With `--part K/N` both take one of N parts, which have the same meshes each time;
each round of `ninja soak` takes one of 64.

"""


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def general(message):
    """Without the numbers of one mesh."""
    return re.sub(r"\b\d+\b", "N", message)


def page():
    every = meshes()
    why = refusals([(model, mesh) for model in MODELS for mesh in every])
    rows = []
    for model, (title, *_) in MODELS.items():
        taken = [mesh for mesh in every if why[model, mesh] is None]
        count = collections.Counter(len(mesh) for mesh in taken)
        rows.append([title, str(len(every)), str(len(taken)), *(str(count[n]) for n in (1, 2, 3))])
    text = HEAD + "## Counts\n\n" + table(["model", "meshes", "taken", "of one axis", "of two", "of three"], rows)
    text += "\n## Pairs\n\nOf 4 ranks, 2 along each; the diagonal is 2 ranks along one axis. Where a pair runs, the models.\n\n"
    text += table(["", *KINDS], [[kind, *(cell(kind, other, why) for other in KINDS)] for kind in KINDS])
    text += "\n## Reasons\n\nMeshes of each model, by the generator's message.\n\n"
    counts = collections.Counter((general(said), model) for (model, _), said in why.items() if said is not None)
    reasons = sorted({said for said, _ in counts}, key=lambda said: (-sum(counts[said, model] for model in MODELS), said))
    return text + table(["message", *(title for title, *_ in MODELS.values())],
                        [[said.replace("|", "\\|"), *(str(counts[said, model] or "") for model in MODELS)] for said in reasons])


def cell(kind, other, why):
    """The models that take 2 ranks along each."""
    order = [name for name in KINDS if name in (kind, other)]
    mesh = tuple((name, 2) for name in order)
    titles = [MODELS[model][0] for model in MODELS if why.get((model, mesh), "") is None]
    if ("gpt2", mesh) not in why:
        return "same axis"
    return "all" if len(titles) == len(MODELS) else ", ".join(titles) or "no"


# ---- Runs ----


class Beside:
    """One process for each model, and meshes compared with it."""

    def __init__(self):
        self.one = functools.cache(self.trained)

    @staticmethod
    def trained(model):
        trainer = Ranks(1, job(model, ()))
        trainer.build(CFLAGS=STEADY)
        return trainer.run(), trainer.weights()

    def differs(self, model, mesh):
        """What is not as in one process; None where all is."""
        lines, weights = self.one(model)
        trainer = Ranks(ranks_of(mesh), job(model, mesh))
        trainer.build(CFLAGS=STEADY)
        for line, want in zip(trainer.run(), lines, strict=True):
            if not abs(line["loss"] / want["loss"] - 1) < 1e-6:
                return f"loss of step {line['step']}: {line['loss']}, {want['loss']} of one process"
            if not abs(line["grad_norm"] / want["grad_norm"] - 1) < 1e-4:
                return f"norm of step {line['step']}: {line['grad_norm']}, {want['grad_norm']} of one process"
        far = {name: relative(value, weights[name]) for name, value in trainer.weights().items()}
        worst = max(far, key=far.get)
        return f"{worst} is {far[worst]:.1e} away" if not far[worst] < 1e-3 else None


def unproved(model, mesh):
    """What the audit of the mesh's CUDA program cannot prove; None where all claims hold, or where CUDA programs do not take the mesh."""
    groups = job(model, mesh)
    groups["devices"]["kind"] = "cuda"
    groups["training"].update(eval_interval=STEPS // 2, eval_iters="all")
    trainer = Ranks(ranks_of(mesh), groups)
    if subprocess.run([GENERATOR, trainer.path, "-o", trainer.folder / "trainer.c"], capture_output=True).returncode == 2:
        return None
    result = subprocess.run([GENERATOR, "audit", "trainer.c"], cwd=trainer.folder, capture_output=True, text=True)
    lines = [line.strip() for line in result.stdout.splitlines() if not line.startswith("  holds")]
    return None if result.returncode == 0 else "\n".join([*lines, result.stderr])


def run(models, pattern, part, check, good):
    """Checks each mesh that is taken: `check` gives what is wrong."""
    asked = [(model, mesh) for model in models for mesh in meshes() if is_of_part(part, model, mesh)]
    why = refusals([each for each in asked if re.search(pattern, text_of(*each))])
    taken = [asked for asked, said in why.items() if said is None]
    failed = 0

    def one(asked):
        try:
            return asked, check(*asked)
        except (AssertionError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return asked, str(error)

    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "2"))) as pool:
        for (model, mesh), said in pool.map(one, taken):
            failed += said is not None
            print(f"{'ok  ' if said is None else 'FAIL'} {text_of(model, mesh)}{'' if said is None else ': ' + said}", flush=True)
    print(f"part {part[0]} of {part[1]}: {len(taken)} meshes, {len(taken) - failed} {good}, {failed} not; "
          f"{len(why) - len(taken)} of {len(why)} refused")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--audit", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--part", type=part_named, default=(0, 1))
    parser.add_argument("models", nargs="*", choices=[[], *MODELS], default=[])
    words = parser.parse_args()
    if words.run or words.audit:
        check, good = (Beside().differs, "as one process") if words.run else (unproved, "proved")
        return run(words.models or list(MODELS), words.only, words.part, check, good)
    if words.accept:
        PAGE.write_text(page())
    else:
        print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
