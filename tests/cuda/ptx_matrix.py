"""The forms of instructions that programs for GPUs have, as nvcc compiles them: which of them the interpreter of PTX
(tests/cuda/standin/ptx) knows, and which its tests execute alone.

usage: ptx_matrix.py [--each] [--keep FOLDER] [NAME...]
  NAME     of a program, gpt, evaluate_gpt or gpt2_bf16; without names all of them
  --each   a line for each form: its name, how many programs of each architecture have it, known, tested
  --keep   leaves the PTX there, and takes what is there already"""

import argparse
import collections
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from host import HostTrainer
from ptx import kept, nvcc

from ranks import job_of  # tests/parallel; isort: skip

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # tests/parallel has files of the same names

import ptx_examples  # noqa: E402
import test_axes  # noqa: E402
import test_forward  # noqa: E402
import test_ptx  # noqa: E402
import test_ptx_forms  # noqa: E402
import test_ranks  # noqa: E402
import test_sharded  # noqa: E402
import test_training  # noqa: E402

ARCHITECTURES = ("80", "90a", "100")
BF16 = {"precision": {"mixed_precision": "bf16"}, "devices": {"attention": "own"}}
DRIVER = test_ptx.DRIVER
SHARDED = ("states", "gradients_with_replicas", "groups_of_layers", "averages_of_weights_in_bf16", "codes_of_weights", "wire")  # the others have the same kernels
EXAMPLES = {ptx_examples.program(name, precision): (name, precision) for name in ptx_examples.NAMES for precision in ptx_examples.PRECISIONS}
INSTRUCTION = re.compile(r"^[ \t{]*(?:@!?%\w+[ \t]+)?([a-z][\w.]*(?:::\w+[\w.]*)*)(?=[ \t;])", re.MULTILINE)


def programs():
    """Name: (job, kind of program) of the whole matrix."""
    made = {name: (job, "train") for name, job in {**test_ptx.TINY, **test_training.CASES, **test_training.MORE}.items()}
    for kind, cases in (("evaluate", {**test_forward.EVALUATED, **test_forward.MORE_EVALUATED}),
                        ("generate", {**test_forward.WRITTEN, **test_forward.MORE_WRITTEN})):
        made |= {f"{kind}_{name}": (job, kind) for name, job in cases.items()}
    made |= {f"sharded_{name}": (test_sharded.CASES[name][0], "train") for name in SHARDED}
    for name, (model, config, data, divisions) in test_ranks.MODELS.items():
        made |= {f"topology_{name}_{word}": (test_ranks.ordered(model, config, data, *division), "train") for word, division in list(divisions.items())[1:2]}
    made["tp"] = (job_of(2, 2, 8, config=test_axes.GPT, parallelism={"tp": 2}), "train")
    made["cp"] = (job_of(2, 2, 8, config=test_axes.WHOLE, parallelism={"cp": 2, "cp_comm": "ring"}), "train")
    made["codes"] = (job_of(1, 2, 8, config=test_axes.WHOLE, optimizer={"state_dtype": "8bit"}, **BF16), "train")
    for name in ("adafactor", "muon", "lamb", "adalomo", "schedule_free_adamw"):
        made[name] = (job_of(1, 2, 8, config=test_axes.WHOLE, optimizer={"name": name, "clip_grad_norm": 0}), "train")
    return made


def write_data(job, folder):
    test_training.write_data(folder, job["data"].get("features", 64 if "inputs" in job["data"] else 1))


def prepared(name):
    """(job, kind of program, what writes its data into a folder) of a program."""
    if name in EXAMPLES:
        example = ptx_examples.example(EXAMPLES[name][0])
        return example.on_device(ptx_examples.STEPS, EXAMPLES[name][1]), "train", example.write
    job, kind = programs()[name]
    return json.loads(json.dumps(job)), kind, functools.partial(write_data, job)


def names_in(text):
    """The names of instructions in PTX: add.rn.f32. A call and a jump are those of the decoder itself."""
    return {name for name in INSTRUCTION.findall(text) if not re.match(r"(bra|call|ret|exit)\b", name)}


def tested():
    """What tests execute alone, compared with a definition or with what must come out."""
    texts = [test_ptx_forms.kernel(name, to, given) for name, to, given, _ in test_ptx_forms.FORMS]
    texts += [f"{name} x;" for name in {**test_ptx_forms.APPROXIMATE, **test_ptx_forms.ABSOLUTE}]
    texts += [test_ptx.HEAD + body for body in test_ptx.SOUND.values()]
    texts += [test_ptx.multiply(*given) for given in test_ptx.PRODUCTS]
    texts += [text for text, _ in test_ptx_forms.moves()] + [f"{name} x;" for name, *_ in test_ptx_forms.atomics()]
    return set().union(*(names_in("\n".join(text.replace(";", ";\n").splitlines())) for text in texts))


def unknown(names):
    ended = subprocess.run([DRIVER, "--forms"], input="\n".join(names), capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def decode(path):
    """All kernels of a file; the driver says what it does not know, and ends this program."""
    subprocess.run([DRIVER, "--kernels", path], check=True, stdout=subprocess.DEVNULL)


def compiled(name, folder):
    """The paths of the PTX of a program, by architecture."""
    job, kind, write = prepared(name)
    trainer = HostTrainer(job, [], program=kind)
    write(trainer.folder)
    trainer.generate("--program", kind)
    return {architecture: kept(folder, name, architecture, trainer.folder / "trainer.cu") for architecture in ARCHITECTURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    if not nvcc():
        sys.exit("ptx_matrix: there is no nvcc")
    chosen = arguments.names or [*programs(), *EXAMPLES]
    counts, first = collections.defaultdict(collections.Counter), {}
    with tempfile.TemporaryDirectory() as held:
        folder = arguments.keep or pathlib.Path(held)
        folder.mkdir(exist_ok=True)
        for name in chosen:
            for architecture, path in compiled(name, folder).items():
                decode(path)
                for form in names_in(path.read_text()):
                    counts[form][architecture] += 1
                    first.setdefault(form, f"{name} for sm_{architecture}")
    lacking, alone = unknown(counts), tested()
    for form in sorted(counts) if arguments.each else []:
        print(f"{form:48}", *(f"{counts[form][architecture]:4}" for architecture in ARCHITECTURES), "" if form in lacking else "known", "tested" * (form in alone))
    print(f"{len(chosen)} programs | in programs | known | tested alone")
    for architecture in ARCHITECTURES:
        there = {form for form in counts if counts[form][architecture]}
        print(f"sm_{architecture} | {len(there)} | {len(there - lacking)} | {len(there & alone)}")
    print(f"all | {len(counts)} | {len(set(counts) - lacking)} | {len(set(counts) & alone)}")
    for form in sorted(set(counts) - alone if not lacking else lacking):
        print(f"{'not known' if form in lacking else 'not tested alone'}: {form} ({first[form]})")
    sys.exit(bool(lacking))


if __name__ == "__main__":
    main()
