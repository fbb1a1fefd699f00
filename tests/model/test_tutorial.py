"""docs/models.md: its models and jobs train, are measured and write text as it says, and its errors are what the tool
prints of tests/model/bad. TAP.

`python tests/model/test_tutorial.py --accept` writes the errors again."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
PAGE = TREE / "docs" / "models.md"
BEGIN, END = "<!-- Made by tests/model/test_tutorial.py --accept. -->\n", "<!-- End of what is made. -->\n"

# The file in tests/model/bad, and the cure.
ERRORS = [
    ("missing_include", "The header of a model is `accel/model.h`, which is built into `accel-gen`. Your own headers are found relative to the model's folder."),
    ("function_typo", "`include/accel/model.h` has all functions. The message is the same for misspelled `at`, `nth` and functions of `math.h`."),
    ("undeclared", "Numbers come from the config: `c.factor`, where `c` is a parameter of the function."),
    ("shape_mismatch", "The message shows both operands with their shapes, and the notes show the calls that led there. Shapes broadcast from the last dimension on; a dimension of 1 matches any."),
    ("matmul_mismatch", "For a layer use `linear(scope, x, outputs)`, which creates a weight of the right shape. For two matrices, the second may need `transpose`, or use `matmul_transposed`."),
    ("reshape_mismatch", "Take extents from `dim(x, axis)` instead of numbers; an extent of -1 is computed from the others."),
    ("split_uneven", "State in the model what the config must satisfy: `assert(c.width % c.n_head == 0);`. The error then shows the condition."),
    ("tensor_plus", "Write `add(x, y)` for `x + y`, `scale(x, 2.0)` for `2.0 * x`, `shift(x, 1.0)` for `x + 1.0`."),
    ("tensor_condition", "To decide by shape, use `dim(x, axis)`. To decide by element, compute both values and combine them with `where`, `maximum` or a mask."),
    ("loss_not_scalar", "End `model` with `cross_entropy`, `mean_all` or `sum_all`."),
    ("entry_missing", "`model` returns the loss. A second function, `predict`, returns the logits, for metrics and for text."),
    ("entry_unknown_tensor", "The parameters of an entry are matched by their names."),
    ("parameter_shape", "Two layers have the same scope. Give each its own: `at(s, \"up\")`, `at(s, \"down\")`, `nth(s, \"layer\", i)`."),
    ("config_missing", "Add it to `model.config` in the job, to `--config`, or to `defaults` in the model."),
    ("config_unknown", "A typing error in the job, or in the model's `struct config`."),
    ("tensor_null", "Declare the variable without a value, or start with `constant(0, dims...)`."),
    ("unset_tensor", "A loop that should have set it had no iteration. Check its bound."),
    ("global_written", "Return the new value; return several in a struct: `struct state { tensor h, c; };`."),
    ("print", "`accel-gen model check` and `accel-gen plan --dump read` show what was read."),
    ("endless_while", "A loop does not end, or a number of the config is much too large."),
]


def errors():
    """The section's text."""
    parts = []
    for name, cure in ERRORS:
        said = (TREE / "tests" / "model" / "bad" / f"{name}.expected").read_text()
        said = re.sub(r"\n\d+ errors?\n$", "\n", said.replace(f"tests/model/bad/{name}.c", "model.c"))
        parts.append(f"```\n{said}```\n\n{textwrap.fill(cure, 120)}\n")
    return "\n".join(parts)


def accept():
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + errors() + "\n" + END + rest.split(END)[1])


def report(good, what, why=""):
    print(f"{'ok' if good else 'not ok'} {what}")
    for line in "" if good else why.splitlines()[:30]:
        print(f"  {line}")
    return not good


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


def run(folder, *words):
    result = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True, errors="replace")
    return result.returncode, result.stdout, result.stderr


def check_tutorial(folder):
    """The files as a reader puts them together; fewer steps, as a test has less time."""
    first, *second = [block for block in blocks("c") if "struct state" not in block][:3]
    first_job, _, second_job = blocks("yaml")[:3]
    (folder / "first.c").write_text(first)
    (folder / "second.c").write_text("#include <accel/model.h>\n\n" + "\n".join(second))
    (folder / "first.yaml").write_text(first_job)
    (folder / "second.yaml").write_text(second_job)
    (folder / "corpus.txt").write_text("The quick brown fox jumps over the lazy dog. " * 300)
    failed = 0
    for name in ("first", "second"):
        status, _, said = run(folder, GENERATOR, "build", f"{name}.yaml", "-o", name, "--set", "training.steps=60")
        failed += report(status == 0, f"{name} builds", said)
        status, out, said = run(folder, f"./{name}", "--resume", "never")
        failed += report(status == 0 and "saved" in out, f"{name} trains", out + said)
    for kind in ("evaluate", "generate"):
        status, _, said = run(folder, GENERATOR, "build", "second.yaml", "--program", kind, "-o", kind)
        failed += report(status == 0, f"second has a program to {kind}", said)
    status, out, said = run(folder, "./evaluate", "--format", "json")
    failed += report(status == 0 and json.loads(out)["perplexity"] > 1, "it is measured", out + said)
    status, out, said = run(folder, "./generate", "--prompt", "The quick", "--tokens", "30", "--top-p", "0.9")
    failed += report(status == 0 and out.startswith("The quick") and len(out) == 40, "it writes text", out + said)
    status, out, said = run(folder, GENERATOR, "model", "check", "second.c", "--config", "block_size=64,n_layer=4")
    failed += report(status == 0 and "layer.3.down.weight" in out, "its parameters are printed", out + said)
    return failed


def main():
    if "--accept" in sys.argv[1:]:
        accept()
    section = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    failed = report(section.strip() == errors().strip(), "the errors are those of the tool",
                  "python tests/model/test_tutorial.py --accept writes them")
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        failed += check_tutorial(pathlib.Path(folder))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
