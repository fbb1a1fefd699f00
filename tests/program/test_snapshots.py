"""Emitted programs, plans and the IR behind each pass, as they were when somebody last read them. TAP.

A difference fails and is printed. `python tests/program/test_snapshots.py --accept` prints it and takes it over: read
it, then commit it."""

import difflib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import GENERATOR, MODELS, TREE
from matrix import ADAMW, COSINE, Case

SNAPSHOTS = TREE / "tests" / "program" / "snapshots"
GPT = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 256, "block_size": 4}
CASES = [
    Case("gpt2", "gpt2", GPT, optimizer=ADAMW, schedule=COSINE, training={"eval_interval": 2}),
    Case("gpt2_bf16", "gpt2", {**GPT, "dropout": 0.1}, optimizer=ADAMW, training={"eval_interval": 2},
         precision={"mixed_precision": "bf16"}),
    Case("gpt2_generate", "gpt2", GPT, program="generate"),
    Case("mlp_evaluate", "mlp_table", {"n_layer": 2, "width": 7, "n_classes": 3}, program="evaluate",
         training={"eval_interval": 1, "metrics": ["accuracy"]}),
    Case("mlp", "mlp_table", {"n_layer": 2, "width": 7, "n_classes": 3}, accumulation={"num_steps": 2},
         optimizer={"name": "sgd", "momentum": 0.9}),
    Case("gru", "gru_bytes", {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 2}),
]


def generator(folder, *words):
    result = subprocess.run([GENERATOR, *words], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"accel-gen {' '.join(words)} failed:\n{result.stderr}")
    return result.stdout


def passes(folder):
    """The names of all passes, from the message about one that does not exist."""
    result = subprocess.run([GENERATOR, "plan", "job.yaml", "--dump", "?"], cwd=folder, capture_output=True, text=True)
    return re.search(r"the passes are (.*)", result.stderr).group(1).split(", ")


def of_job(plan):
    """A plan without the line that says of the machine at hand how it multiplies 16 bits."""
    return re.sub(r"^products  .*\n", "", plan, flags=re.M)


def texts(case, folder):
    """The snapshots of a case: file name and text, one after the other."""
    # A path of this machine would be part of the job's digest.
    source = pathlib.Path(case.job["model"]["source"])
    (folder / source.name).write_text((MODELS / source.name).read_text())
    case.job["model"]["source"] = source.name
    (folder / "job.yaml").write_text(json.dumps(case.job, indent=2))
    kind = ["--program", case.program]
    yield f"{case.name}.c", generator(folder, "job.yaml", "-o", "-", *kind)
    yield f"{case.name}.plan", of_job(generator(folder, "plan", "job.yaml", *kind)) + generator(
        folder, "plan", "job.yaml", "--json", *kind)
    before = None
    for name in passes(folder):
        text = generator(folder, "plan", "job.yaml", "--dump", name, *kind)
        if text != before:  # a pass that changes nothing that is printed needs no file
            yield f"{case.name}.{name}", text
        before = text


def compare(name, text, accept):
    """The difference from the snapshot; None when there is none."""
    path = SNAPSHOTS / name
    old = path.read_text() if path.exists() else ""
    if old == text:
        return None
    if accept:
        path.write_text(text)
    return "".join(difflib.unified_diff(old.splitlines(True), text.splitlines(True), name, f"{name} now", n=1))


def main():
    accept = "--accept" in sys.argv[1:]
    SNAPSHOTS.mkdir(exist_ok=True)
    seen, failed = set(), 0
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            for name, text in texts(case, pathlib.Path(folder)):
                seen.add(name)
                difference = compare(name, text, accept)
                failed += difference is not None
                print(f"{'ok' if difference is None else 'accepted' if accept else 'not ok'} {name}")
                for line in (difference or "").splitlines()[: None if accept else 30]:
                    print(f"  {line}")
    for path in sorted(SNAPSHOTS.iterdir()):
        if path.name not in seen:
            failed += 1
            print(f"{'removed' if accept else 'not ok'} {path.name} belongs to no case")
            if accept:
                path.unlink()
    if failed and not accept:
        print("to take these over: python tests/program/test_snapshots.py --accept")
    return 1 if failed and not accept else 0


if __name__ == "__main__":
    sys.exit(main())
