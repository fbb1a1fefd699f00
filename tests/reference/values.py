"""Values as JSON, as programs/run_operations.c reads and writes them: from and to Accelerate's, drawn at random, and what
that program makes of them."""

import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import torch
from accelerate.utils import operations

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "parallel"))

from ranks import PATIENCE, free_port, library_flags, start  # noqa: E402

SEED = int(os.environ.get("SEED", "1"))
DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16,
          "int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}
FLOATING = ("float32", "float64", "float16", "bfloat16")
RUNTIME = TREE / "runtime"
SOURCES = [*sorted((RUNTIME / "values").glob("*.c")), RUNTIME / "report" / "logger.c"]


def tensor(dtype, shape, data):
    """data: a torch tensor."""
    return {"tensor": [dtype, list(shape), data.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes().hex()
                       if data.numel() else ""]}


def to_torch(value):
    if isinstance(value, list):
        return [to_torch(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "map" in value:
        return {name: to_torch(item) for name, item in value["map"]}
    dtype, shape, data = value["tensor"]
    flat = torch.frombuffer(bytearray.fromhex(data), dtype=torch.uint8).clone() if data else torch.empty(0, dtype=torch.uint8)
    return flat.view(DTYPES[dtype]).reshape(shape)


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def from_torch(value):
    if isinstance(value, torch.Tensor):
        return tensor(name_of(value.dtype), value.shape, value)
    if isinstance(value, operations.TensorInformation):
        return {"information": [name_of(value.dtype), list(value.shape)]}
    if isinstance(value, (list, tuple)):
        return [from_torch(item) for item in value]
    if isinstance(value, dict):
        return {"map": [[name, from_torch(item)] for name, item in value.items()]}
    return value


# ---- Random values ----

class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def build(self, depth=3, leaf=None):
        """How a value is built: nested lists and maps of (dtype, shape), or of what `leaf` gives."""
        kind = self.random.random()
        if depth == 0 or kind < 0.4:
            return (leaf or self.shape)()
        count = self.random.choice([0, 1, 1, 2, 3])
        items = [self.build(depth - 1, leaf) for _ in range(count)]
        return items if kind < 0.7 else {f"{i}é": item for i, item in enumerate(items)}

    def shape(self, least=0):
        rank = self.random.choice([0, 1, 1, 2, 3]) or least
        return (self.random.choice(list(DTYPES)), tuple(self.random.choice([0, 1, 2, 3, 5]) for _ in range(rank)))

    def elements(self, dtype, shape):
        count = int(np.prod(shape))
        if dtype in FLOATING:
            values = [self.random.gauss(0, 10) for _ in range(count)]
        else:
            values = [self.random.randrange(0, 2 if dtype == "bool" else 120) for _ in range(count)]
        return torch.tensor(values, dtype=torch.float64 if dtype in FLOATING else torch.int64).to(DTYPES[dtype]).reshape(shape)

    def fill(self, build):
        if isinstance(build, list):
            return [self.fill(item) for item in build]
        if isinstance(build, dict):
            return {"map": [[name, self.fill(item)] for name, item in build.items()]}
        if isinstance(build, tuple):
            return tensor(*build, self.elements(*build))
        return build

    def anything(self):
        return self.random.choice([None, True, False, 7, -2**40, 0.1, "", "naïve \"text\"", self.shape(), self.shape()])

    def object(self):
        return self.fill(self.build(leaf=self.anything))


def without(build, dtypes):
    """The build with float32 for some types."""
    if isinstance(build, list):
        return [without(item, dtypes) for item in build]
    if isinstance(build, dict):
        return {name: without(item, dtypes) for name, item in build.items()}
    return ("float32", build[1]) if build[0] in dtypes else build


def ragged(draw, build, dim):
    """The build with another length along a dimension."""
    if isinstance(build, list):
        return [ragged(draw, item, dim) for item in build]
    if isinstance(build, dict):
        return {name: ragged(draw, item, dim) for name, item in build.items()}
    dtype, shape = build
    if not -len(shape) <= dim < len(shape):
        return build
    shape = list(shape)
    shape[dim] = draw.random.choice([0, 1, 2, 4])
    return dtype, tuple(shape)


def rows(draw, length, depth=2):
    """A value to split: of one length, but for what is deeper in it."""
    kind = draw.random.choice(["list", "tensor", "map"] if depth else ["list", "tensor"])
    if kind == "list":
        return [draw.fill(draw.anything()) for _ in range(length)]
    if kind == "tensor":
        dtype, shape = draw.shape()
        return draw.fill((dtype, (length, *shape[1:])))
    return {"map": [[f"k{i}", rows(draw, length, 0)] for i in range(draw.random.choice([1, 2, 3]))]}


class Program:
    """The driver, with the sources of what it tests under sanitizers, for one process and for several."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        compiler = shlex.split(os.environ.get("CC", "cc"))
        sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        flags = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", TREE]
        subprocess.run([*compiler, *flags, *sanitizers, "-c", TREE / "tests/reference/programs/run_operations.c", *SOURCES],
                       cwd=self.folder, check=True)
        for name, package in (("alone", "accel-runtime"), ("ranks", "accel-runtime-mpi")):
            subprocess.run([*compiler, *sanitizers, *self.folder.glob("*.o"), "-o", self.folder / name,
                            *library_flags("--libs", package=package)], check=True)

    def run(self, ranks, cases):
        (self.folder / "cases.json").write_text(json.dumps(cases))
        environment = {"ASAN_OPTIONS": f"detect_leaks={int(ranks == 1)}", "UBSAN_OPTIONS": "print_stacktrace=1"}
        words = [str(self.folder / "cases.json"), str(self.folder / "out")]
        if ranks == 1:
            done = subprocess.run([self.folder / "alone", *words], capture_output=True, text=True, env={**os.environ, **environment})
        else:
            done = start(self.folder / "ranks", ranks, *words, **environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return [json.loads((self.folder / f"out.{rank}").read_text()) for rank in range(ranks)]


__all__ = ["DTYPES", "Draw", "FLOATING", "PATIENCE", "Program", "SEED", "free_port", "from_torch", "ragged", "rows", "tensor", "to_torch",
           "without"]
