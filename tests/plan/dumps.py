"""What a pass makes of a small model, printed."""

import difflib
import pathlib
import re
import subprocess
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
DATA = {True: "train: {path: corpus.txt, format: bytes}, sequence_length: 16",
        False: "train: {path: rows.csv, format: csv}, features: 3"}
JOB = """model: {{source: {model}}}
data: {{{data}, batch_size: 2}}
optimizer: {{lr: 1e-3}}
training: {{steps: 1}}
"""


def accel_gen(folder, *words):
    return subprocess.run([GENERATOR, *words], cwd=folder, capture_output=True, text=True)


def passes():
    """The names of all passes, from the message about one that does not exist."""
    with tempfile.TemporaryDirectory() as folder:
        write_job(pathlib.Path(folder), TREE / "tests" / "plan" / "passes" / "read.c")
        said = accel_gen(folder, "plan", "job.yaml", "--dump", "?").stderr
    return re.search(r"the passes are (.*)", said).group(1).split(", ")


def write_job(folder, model):
    """A job for a model of tokens or of features, and its data."""
    (folder / "corpus.txt").write_text("a corpus of bytes, longer than two sequences of sixteen tokens each\n" * 4)
    (folder / "rows.csv").write_text("1,2,3,0\n4,5,6,1\n7,8,9,1\n" * 4)
    (folder / "job.yaml").write_text(JOB.format(model=model, data=DATA["tensor tokens" in model.read_text()]))


def changed(model, words, before, after):
    """The lines that the passes after `before` (None: all of them) up to `after` remove and add."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_job(folder, model)
        texts = []
        for name in (before, after):
            result = accel_gen(folder, "plan", "job.yaml", *words, "--dump", name) if name else None
            if result and result.returncode != 0:
                raise AssertionError(result.stderr)
            texts.append(result.stdout.splitlines() if result else [])
    lines = difflib.unified_diff(*texts, n=0, lineterm="")
    return [line for line in lines if not re.match(r"@@|---|\+\+\+", line)]
