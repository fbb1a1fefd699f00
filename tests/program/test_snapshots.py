"""Emitted text as it was when somebody last read it: three whole programs with their plans, one for a CPU, one for a GPU and one
of two ranks; and of other programs the functions that these three do not have, after what their plan says. What each
pass makes of a graph is in tests/plan/test_passes.py. TAP.

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
from matrix import ADAMW, Case

SNAPSHOTS = TREE / "tests" / "program" / "snapshots"
GPT = {"n_layer": 2, "n_head": 2, "n_embd": 8, "vocab_size": 256, "block_size": 4}
TABLE = {"n_layer": 2, "width": 7, "n_classes": 3}
WHOLE = [
    Case("gpt2_bf16", "gpt2", {**GPT, "dropout": 0.1}, optimizer=ADAMW, training={"eval_interval": 2},
         precision={"mixed_precision": "bf16"}),
    Case("mlp_cuda", "mlp_table", TABLE, optimizer=ADAMW, devices={"kind": "cuda"}),
    Case("mlp_ranks", "mlp_table", TABLE, accumulation={"num_steps": 2}, optimizer={"name": "sgd", "momentum": 0.9},
         devices={"per_node": 2}, parallelism={"zero_stage": 1}),
]
PARTS = [  # a job, and what the names of its functions begin with
    (Case("gpt2", "gpt2", GPT, optimizer=ADAMW), ["attention_", "layer_norm_"]),
    (Case("gpt2_generate", "gpt2", GPT, program="generate"),
     ["attention_cached_1x2x1", "dynamic_slice_", "predict_step_", "write_texts", "main"]),
    (Case("gru", "gru_bytes", {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 2}),
     ["add_sigmoid_", "mul_neg_add_tanh_", "cell_", "step_loss_", "model_"]),
    (Case("mlp_evaluate", "mlp_table", TABLE, program="evaluate", training={"eval_interval": 1, "metrics": ["accuracy"]}),
     ["predict_class_", "evaluate", "measure", "main"]),
    (Case("gpt2_tp", "gpt2", GPT, optimizer=ADAMW, devices={"per_node": 4}, parallelism={"tp": 2}),
     ["all_reduce_", "own_index", "embedding_part", "cross_entropy_combined", "step", "clip"]),
]


def generator(folder, *words):
    result = subprocess.run([GENERATOR, *words], cwd=folder, capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"accel-gen {' '.join(words)} failed:\n{result.stderr}")
    return result.stdout


def of_job(plan):
    """A plan without the line that says of the machine at hand how it multiplies 16 bits."""
    return re.sub(r"^matmuls   .*\n", "", plan, flags=re.M)


def write_job(case, folder):
    # A path of this machine would be part of the job's digest.
    source = pathlib.Path(case.job["model"]["source"])
    (folder / source.name).write_text((MODELS / source.name).read_text())
    (folder / "job.yaml").write_text(json.dumps({**case.job, "model": {**case.job["model"], "source": source.name}}, indent=2))


def whole(case, folder):
    """The snapshots of a case: file name and text, one after the other."""
    kind = ["--program", case.program]
    generator(folder, "job.yaml", "-o", f"{case.name}.c", *kind)
    for path in sorted(folder.glob(f"{case.name}.c*")):
        yield path.name, path.read_text()
    yield f"{case.name}.plan", of_job(generator(folder, "plan", "job.yaml", *kind)) + generator(
        folder, "plan", "job.yaml", "--json", *kind)


def parts(case, prefixes, folder):
    """The same for the functions, with the comments before them, whose names begin with one of these."""
    kind = ["--program", case.program]
    text = of_job(generator(folder, "plan", "job.yaml", *kind)) + "\n"
    program = generator(folder, "job.yaml", "-o", "-", *kind)
    for prefix in prefixes:
        found = re.findall(rf"^(?:/\*(?:(?!\*/).)*\*/\n)?(?:\w[^\n;={{]*[ *])?{prefix}\w*\([^;{{]*\) \{{\n.*?^\}}\n", program,
                           re.M | re.S)
        if not found:
            raise AssertionError(f"{case.name} has no function {prefix}...")
        text += "\n".join(found) + "\n"
    yield f"{case.name}.parts", text


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
    for case, *prefixes in [*((case,) for case in WHOLE), *PARTS]:
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            folder = pathlib.Path(folder)
            write_job(case, folder)
            for name, text in parts(case, *prefixes, folder) if prefixes else whole(case, folder):
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
