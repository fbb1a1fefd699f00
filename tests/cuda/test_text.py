"""The text of CUDA programs: both halves of each program of the matrix, and of what tests/cuda trains, call every function
that they have, which compilers do not say of kernels and templates, and have no line of more than 120 columns. TAP. SEED
says which half of the matrix; --all: all of it, and every example job (ninja soak)."""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import test_compile  # before those of tests/program and tests/parallel
import test_sharded  # isort: skip
import test_ranks  # isort: skip
import test_training  # isort: skip
from host import GENERATOR  # isort: skip
from ranks import job_of  # isort: skip
from test_axes import EXPERTS  # isort: skip

import matrix  # isort: skip
from compilers import report, unused  # isort: skip
from rotation import ALL, SEED, in_turn  # isort: skip


# Of no parameter that is trained do all ranks have the whole.
EXPERTS_ALONE = job_of(4, 2, 5, model="qwen_moe", config=EXPERTS, parallelism={"tp": 2, "ep": 2}, data={"sequence_length": 16},
                       model_keys={"freeze": ["*norm*", "*gate.weight"]})


def jobs():
    """Name, job, words and settings; data need not be there."""
    for case in in_turn(matrix.CASES, 2):
        yield case.name, case.job, ["--program", case.program], []
    for name, job in {**test_training.CASES, **test_training.MORE, **test_ranks.CASES,
                      **{name: job for name, (job, _) in test_sharded.CASES.items()}}.items():
        yield name, job, [], []
    for name, (model, config, data, divisions) in test_ranks.MODELS.items():
        for how, division in divisions.items():
            yield f"{name}, {how}", test_ranks.ordered(model, config, data, *division), [], []
    yield "experts alone of a mixture are trained, whose matrices ranks divide", EXPERTS_ALONE, [], []
    for name, settings, _ in test_compile.ALL if ALL else test_compile.SUITE:
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
            yield f"has no long line: {half}", longest(text)
        yield "sums the squares that there are", next((line for line in host.split("\n") if "+ ACCEL_SQUARES, 2 *" in line), None)


TABLES = re.compile(r"/\* clang-format off \*/.*?/\* clang-format on \*/", re.DOTALL)


def longest(text):
    """The first line of more than 120 columns, but of tables that clang-format leaves alone."""
    return next((line for line in TABLES.sub("", text).split("\n") if len(line) > 120), None)


SHARED = re.compile(r"__shared__ (?:alignas\(\d+\) )?(\w+) ([^;=]*);")
SIZES = {"float": 4, "double": 8, "int32_t": 4, "number": 8}


def shared(text):
    """Bytes of shared memory that the kernel asks for that has most, where extents are numbers."""
    most = 0
    for kernel in re.split(r"^__global__|^template.*__global__", text, flags=re.MULTILINE)[1:]:
        arrays = [(SIZES[kind], re.findall(r"\[(\d+)\]", one)) for kind, names in SHARED.findall(kernel.split("\n}\n")[0])
                  if kind in SIZES for one in names.split(", ")]
        most = max(most, sum(size * math.prod(map(int, extents)) for size, extents in arrays))
    return most


# A state that no multiprocessor's shared memory holds.
WIDE = test_training.case("lstm", {"num_layers": 1, "n_embd": 8, "hidden_size": 8192, "vocab_size": 256}, test_training.TEXT)

# A number for each of 2^23 rows, where kernels have space for 2^22 sums.
MANY_ROWS = test_training.case("gpt2", {"n_layer": 1, "n_head": 1, "n_embd": 8, "vocab_size": 16, "block_size": 1024},
                               {**test_training.TEXT, "batch_size": 8192, "sequence_length": 1024})

# A recursion, an inline function, a kernel under its launcher's name, and a launcher that nobody calls.
ALONE = """static int recurs(int x) {
  return recurs(x);
}
template <int n> __device__ inline float once(float x) {
  return x;
}
__global__ void __launch_bounds__(256) used(float *x) {
  once<1>(*x);
}
extern "C" void used(float *x) {
  accel_launch(device::used, 1);
}
extern "C" void alone(void) {
}
"""
# 32 x 33 floats.
SUM = """__global__ void __launch_bounds__(1024) sum(float *x) {
  __shared__ float parts[32][33];
}
"""


def main():
    found = dict(unused(ALONE, "void used(float *x);\nvoid alone(void);\nint main(void) {\n  used(0);\n}\n"))
    failed = report("the check", [("finds what nothing calls", None if found == {"uses its functions": "recurs, alone"} else str(found))])
    found = [longest(before + "x" * 121 + after) for before, after in (("", ""), ("/* clang-format off */\n", "\n/* clang-format on */\n"))]
    failed += report("the check", [("finds a long line", None if found == ["x" * 121, None] else str(found))])
    print(f"# SEED={SEED}")
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        for name, *described in jobs():
            failed += report(name, list(check(pathlib.Path(folder), *described)))
        failed += report("many rows", list(check(pathlib.Path(folder), MANY_ROWS, [], [])))
        sums = "float sums[8388608];" in (pathlib.Path(folder) / "trainer.c").read_text()
        failed += report("many rows", [("have space for their losses", None if sums else "less than 2^23 numbers")])
        failed += report("wide state", list(check(pathlib.Path(folder), WIDE, [], [])))
        bytes_ = shared((pathlib.Path(folder) / "trainer.cu").read_text())
        failed += report("wide state", [("takes 48 KiB of shared memory at most", None if bytes_ <= 49152 else f"{bytes_} bytes")])
        failed += report("a sum", [("is found", None if shared(SUM) == 4224 else str(shared(SUM)))])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
