"""Parts of emitted programs, for tests that need no whole trainer: its functions of the rate and of the update."""

import ctypes
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
MODELS = TREE / "examples" / "models"
WARNINGS = ["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror"]
sys.path.insert(0, str(TREE / "tests" / "program"))


def make_job(steps=1000, **groups):
    job = {
        "model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 1, "width": 3, "n_classes": 2}},
        "data": {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 2, "features": 5},
        "training": {"steps": steps},
    }
    return {**job, **groups}


def accel_gen(job, *words, before=()):
    """What the generator prints."""
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        path = pathlib.Path(folder) / "job.yaml"
        path.write_text(json.dumps(job))
        result = subprocess.run([GENERATOR, *before, path, *words], capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(f"refused: {job}:\n{result.stderr}")
    return result.stdout


def generate(job):
    """The program of a job."""
    return accel_gen(job, "-o", "-")


def plan(job):
    return json.loads(accel_gen(job, "--json", before=["plan"]))


def function(text, name):
    """A static function of a program with the comment before it."""
    pattern = rf"^/\*(?:(?!\*/).)*\*/\nstatic [\w ]*{name}\([^\n]*\n.*?^}}\n"
    return re.search(pattern, text, re.MULTILINE | re.DOTALL).group(0)


def render(template, values):
    """A template of the generator with values of a test's own."""
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        path = pathlib.Path(folder) / "values.json"
        path.write_text(json.dumps(values))
        return subprocess.check_output([GENERATOR, "render", "--trim-blocks", "--lstrip-blocks", "--keep-newline",
                                        TREE / "templates" / template, path], text=True)


def library(source):
    """C as a library of this process."""
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        path = f"{folder}/values.so"
        flags = [*WARNINGS, "-Wno-unused-function", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", path, "-lm"]
        subprocess.run(["cc", *flags], input=source, text=True, check=True)
        return ctypes.CDLL(path)


def tabulate(text, call, count):
    """The values of an expression of `i` over the first steps, by functions of a program."""
    source = f'#include "{TREE}/include/accel/cpu/functions.h"\n\n' + text
    source += "void all(int64_t n, double *to);\nvoid all(int64_t n, double *to) {\n"
    source += f"  for (int64_t i = 0; i < n; i++) to[i] = {call};\n}}\n"
    values = (ctypes.c_double * count)()
    library(source).all(ctypes.c_int64(count), values)
    return list(values)


def compile_rates(text, count):
    return tabulate(text, "learning_rate()" if "learning_rate(void)" in text else "learning_rate(i)", count)


def rates(job, count):
    """The learning rates of the first steps, by the function that the program has for it."""
    return compile_rates(function(generate(job), "learning_rate"), count)


def weight_decays(job, count, end):
    """The weight decays of the first steps."""
    return tabulate(function(generate(job), "weight_decay"), f"weight_decay(i, {end})", count)
