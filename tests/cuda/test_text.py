"""The text of CUDA programs: both halves of each program of the matrix, and of what tests/cuda trains, call every function
that they have. TAP. Compilers do not say that of kernels and templates. --all: every example job, too (ninja soak)."""

import json
import pathlib
import subprocess
import sys
import tempfile

import test_compile  # before those of tests/program and tests/parallel
import test_sharded  # isort: skip
import test_ranks  # isort: skip
import test_training  # isort: skip
from host import GENERATOR  # isort: skip

import matrix  # isort: skip
from compilers import tell, unused  # isort: skip


def jobs():
    """Name, job, words and settings; data need not be there."""
    for case in matrix.CASES:
        yield case.name, case.job, ["--program", case.program], []
    for name, job in {**test_training.CASES, **test_training.MORE, **test_ranks.CASES,
                      **{name: job for name, (job, _) in test_sharded.CASES.items()}}.items():
        yield name, job, [], []
    for name, (model, config, data, divisions) in test_ranks.MODELS.items():
        for how, division in divisions.items():
            yield f"{name}, {how}", test_ranks.ordered(model, config, data, *division), [], []
    for name, settings, _ in test_compile.ALL if "--all" in sys.argv else test_compile.SUITE:
        job, *words = name.split()
        yield f"{name} {' '.join(settings)}", str(test_compile.JOBS / f"{job}.yaml"), words, settings


def check(folder, job, words, settings):
    path = job
    if not isinstance(job, str):
        path = folder / "job.yaml"
        path.write_text(json.dumps(job))
    flags = [word for setting in ["devices.kind=cuda", *settings] for word in ("--set", setting)]
    ended = subprocess.run([GENERATOR, path, *words, *flags, "-o", "trainer.c"], cwd=folder, capture_output=True, text=True)
    yield "generates", ended.stderr if ended.returncode != 0 else None
    if ended.returncode == 0:
        host, device = ((folder / f"trainer.{ending}").read_text() for ending in ("c", "cu"))
        for half, (text, calls) in {"host": (host, ""), "device": (device, host)}.items():
            yield from ((f"{what}: {half}", why) for what, why in unused(text, calls))


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        for name, *described in jobs():
            failed += tell(name, list(check(pathlib.Path(folder), *described)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
