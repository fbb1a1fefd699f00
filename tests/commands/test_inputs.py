"""No output replaces an input: each kind of file that a command reads, under its name, a link and a second name."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GEN = ROOT / "build/accel-gen"
LEFT_OUT = (ROOT / "build/config/without").read_text().split()
WORK = ROOT / "build/tests/scratch/inputs"
TEXT = "some text of some length\n" * 200
JOB = """
model:
  source: model.c
  weights: weights/model.safetensors.index.json
  config: {n_layer: 1, n_head: 1, n_embd: 16, vocab_size: 256, block_size: 16, bias: false}
data:
  train: {path: "data/*.txt", format: bytes}
  eval: {path: eval.txt, format: bytes}
  batch_size: 2
training: {steps: 10}
hooks: {source: hooks.c, on_start: on_start}
"""
failed = 0


def report(name, problem):
    global failed
    failed += problem is not None
    print(f"ok {name}" if problem is None else f"not ok {name}: {problem}".replace("\n", "\n#   "))


def run(*words):
    return subprocess.run([GEN, *words], cwd=WORK, capture_output=True, text=True)


def write_inputs():
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.copytree(ROOT / "templates", WORK / "templates")
    for name, text in {
        "job.yaml": JOB,
        "model.c": '#include "own.h"\n' + (ROOT / "examples/models/nanogpt.c").read_text(),
        "own.h": "#define OWN 1\n",
        "hooks.c": (ROOT / "examples/hooks/watch.c").read_text(),
        "data/a.txt": TEXT,
        "data/b.txt": TEXT,
        "eval.txt": TEXT,
        "weights/model-1.safetensors": TEXT,
        "weights/model.safetensors.index.json": TEXT,
        "merged/model.safetensors": (8).to_bytes(8, "little").decode() + "{}      ",
        "tokenizer.json": TEXT,
    }.items():
        (WORK / name).parent.mkdir(exist_ok=True)
        (WORK / name).write_text(text)


def everything():
    return {path: path.read_bytes() for path in WORK.rglob("*") if path.is_file()}


def refused(name, file, what, *words, aliases=True):
    """Refused with status 1 and a message that says what the file is, and nothing has changed. "OUT" is the file."""
    names = [file]
    if aliases:
        names.append("symbolic.c")
        (WORK / "symbolic.c").symlink_to(WORK / file)
    if aliases and not what.startswith("a file of"):  # a folder's files are known by where they are
        names.append("hard.c")
        os.link(WORK / file, WORK / "hard.c")
    before = everything()
    for out in names:
        done = run(*(out if word == "OUT" else word for word in words))
        wanted = f": it is {what}, which is read\n    help: write to another file\n"
        problem = None
        if done.returncode != 1 or wanted not in done.stderr:
            problem = f"status {done.returncode}, no '{wanted.strip()}' in:\n{done.stderr}"
        elif everything() != before:
            problem = f"files that differ: {[str(p) for p, text in everything().items() if before.get(p) != text]}"
        report(f"{name}, as {out}", problem)
    for link in names[1:]:
        (WORK / link).unlink()


write_inputs()
generate = ["job.yaml", "-o", "OUT"]
refused("generate over the job", "job.yaml", "the job", *generate)
refused("generate over the model", "model.c", "the model (model.source)", *generate)
refused("generate over a header", "own.h", "a header of the model", *generate)
refused("generate over the hooks", "hooks.c", "the hooks (hooks.source)", *generate)
refused("generate over training data", "data/b.txt", "training data (data.train)", *generate)
refused("generate over evaluation data", "eval.txt", "evaluation data (data.eval)", *generate)
refused("generate over a shard", "weights/model-1.safetensors", "the weights (model.weights)", *generate)
refused("generate over a template", "templates/devices/cpu/train.c.j2", "a file of the templates", *generate, "--templates", "templates")
refused("build over the model", "model.c", "the model (model.source)", "build", *generate)
refused("a dump over the job", "job.yaml", "the job", *generate, "--dump", "read")
refused("tune over the model", "model.c", "the model (model.source)", "tune", *generate)
refused("tokens over their text", "eval.txt", "one of the files", "data", "data/a.txt", "eval.txt", "-o", "OUT")
refused("tokens over the tokenizer", "tokenizer.json", "the tokenizer", "data", "eval.txt", "--tokenizer", "tokenizer.json", "-o",
        "OUT")
refused("merge over a shard", "merged/model.safetensors", "a file of the checkpoint", "checkpoint", "merge", "merged", "-o", "OUT")
refused("a bundle over the hooks", "hooks.c", "the hooks (hooks.source)", "build", "job.yaml", "--bundle", ".", aliases=False)

for name, what, words in [("eval.tok.partial", "one of the files", ["data", "NAME", "-o", "eval.tok"]),
                          ("eval.tok.progress", "one of the files", ["data", "NAME", "-o", "eval.tok"]),
                          ("trainer.manifest.json", "the job", ["NAME", "-o", "trainer.c", "--manifest"]),
                          ("trainer.c.cdx.json", "the job", ["NAME", "-o", "trainer.c", "--provenance"]),
                          ("trainer.intoto.json", "the job", ["build", "NAME", "-o", "trainer", "--provenance"])]:
    if "--provenance" in words and "statements" in LEFT_OUT:
        print(f"ok what is next to the output, {name} # SKIP this build is without gen/statements")
        continue
    (WORK / name).write_text(JOB)
    refused(f"what is next to the output, {name}", name, what, *(name if word == "NAME" else word for word in words),
            aliases=False)
    (WORK / name).unlink()

done = run("job.yaml", "-o", "trainer.c", "--manifest")
report("generate", done.stderr if done.returncode != 0 else None)
refused("audit over its program", "trainer.c", "the program", "audit", "trainer.c", "-o", "OUT")
refused("regeneration over the model", "model.c", "the program's model", "audit", "--regenerate", "trainer.manifest.json", "-o",
        "OUT")
done = run("job.yaml", "-o", "trainer.c", "--manifest")
report("an older program and its manifest are no inputs", done.stderr if done.returncode != 0 else None)
sys.exit(failed > 0)
