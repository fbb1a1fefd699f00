"""Renders kernel templates with operands made up here, compiles them and calls them through ctypes."""

import copy
import ctypes
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jinja2
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "program"))


# The templates that all others know by a name.
MODULES = dict(re.findall(r'^    {"(\w+)", "([\w/.]+)"},$', (ROOT / "gen" / "emit" / "templates.c").read_text(), re.M))


class Module:
    """The module of a template, which is loaded when something of it is used."""

    def __init__(self, environment, template):
        self.environment, self.template = environment, template

    def __getattr__(self, name):
        return getattr(self.environment.get_template(self.environment.join_path(self.template, None)).module, name)


class Environment(jinja2.Environment):
    """The templates of a device: device/NAME is that of the device's folder, or else of kernels."""

    def __init__(self, device):
        super().__init__(loader=jinja2.FileSystemLoader(ROOT / "templates"), trim_blocks=True, lstrip_blocks=True,
                         undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        self.folders = (f"devices/{device}", "kernels")
        self.globals.update({name: Module(self, template) for name, template in MODULES.items()})

    def join_path(self, template, parent):
        names = [template.replace("device", folder, 1) for folder in self.folders if template.startswith("device/")]
        return next((name for name in names if (ROOT / "templates" / name).exists()), template)


ENVIRONMENT = Environment("cpu")
ENVIRONMENT.globals["device"] = {"name": "cpu", "lanes": 0, "multiplies": False}  # the compiler says which registers there are
ENVIRONMENT.globals["training"] = {"deterministic": False}
# The last one: what clang 19 says of the processor itself, if that is newer.
FLAGS = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O3", "-march=native", "-fopenmp", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
         "-Wno-invalid-feature-combination"]
SPEED_FLAGS = ["-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math", "-mprefer-vector-width=512"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
# What a kernel opens before it runs, and the runtime's files that do it.
OPENED = ("gemm", "convolution", "quantized_gemm", "int8_gemm", "q8_0_gemm")
RUNTIME = [*sorted((ROOT / "runtime" / "onednn").glob("*.c")),
           *(ROOT / "runtime" / f"{name}.c" for name in ("base/levels", "base/linear_codes", "base/problem", "base/terminal", "process/fail", "process/world", "process/world_self"))]
CACHE = ROOT / "build" / "tests" / "kernels"
HEADERS = """#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

"""


class Operand:
    """An operand as the emitter describes it."""

    def __init__(self, name, shape, strides=None, dtype="float", accumulate=False, workspace=False):
        self.name, self.shape, self.rank, self.type = name, list(shape), len(shape), dtype
        self.count = int(np.prod(shape, dtype=np.int64))
        self.cols = self.shape[-1] if shape else 1
        self.rows = self.count // self.cols
        row_major = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
        self.before, self.after = [int(np.prod(shape[:i], dtype=np.int64)) for i in range(len(shape))], row_major
        self.strides = list(strides) if strides is not None else row_major
        self.dense = self.strides == row_major
        self.even = all(self.strides[i] == self.strides[i + 1] * self.shape[i + 1] for i in range(len(shape) - 2))
        self.elements = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        self.extent = " * ".join(map(str, shape)) if self.dense and shape else str(self.elements)
        self.accumulate, self.workspace = accumulate, workspace


class Kernel:
    """What a kernel macro gets as `k`."""

    def __init__(self, kind, outputs, inputs, name=None, random=False, **attributes):
        self.kind, self.name = kind, name or f"{kind}_kernel"
        self.outputs, self.inputs, self.random, self.weights, self.variant = outputs, inputs, random, 0, ""
        self.in_blocks = False
        self.__dict__.update(attributes)
        if "axis" in attributes and inputs:
            self.outer, self.inner = inputs[0].before[self.axis], inputs[0].after[self.axis]
        self.__dict__.update({operand.name: operand for operand in outputs + inputs})


def by_library(kernel):
    """Whether a library computes some of it, and divides that among threads by itself."""
    return any(f"{call}(" in kernel_text(kernel) for call in ("accel_gemm", "accel_multiply", "accel_convolve"))


def deterministic(kernel):
    """The kernel as a program with training.deterministic has it."""
    steady = copy.copy(kernel)
    steady.in_blocks, steady.variant = True, "library" if kernel.variant in ("parts", "primitive", "packed") else kernel.variant
    return steady


@functools.cache
def template_of(kind, environment=ENVIRONMENT):
    """The template that defines a kind's macro, or sets it to another kind's: that of its name, else one that has others, too."""
    defines = re.compile(rf"{{% (macro {kind}\(k[,)]|set (\w+, )*{kind}(, \w+)* = \w+(, \w+)* %)")
    for folder in environment.folders:
        paths = sorted((ROOT / "templates" / folder).glob("*.c.j2"))
        for path in sorted(paths, key=lambda path: path.name != f"{kind}.c.j2"):
            if defines.search(path.read_text()):
                return f"{folder}/{path.name}"
    raise KeyError(kind)


def module_of(kind):
    return ENVIRONMENT.get_template(template_of(kind)).make_module()


SUPPORT = [ROOT / "include" / "accel" / "functions.h", *sorted((ROOT / "include" / "accel" / "cpu").glob("*.h"))]


def support(*names):
    """The headers of these names, as a program includes them."""
    return "".join(f'#include "{ROOT}/include/accel/cpu/{name}.h"\n' for name in names)


def with_helpers(body):
    """The text after the headers of a program's kernels."""
    return support("kernels", "matmul_in_blocks" if ENVIRONMENT.globals["training"]["deterministic"] else "matmul") + "\n" + body


def laid_out(text):
    """The text as a program has it: lines broken and indented."""
    return subprocess.run([ROOT / "build/tests/format/format_driver"], input=text, capture_output=True, text=True, check=True).stdout


def kernel_text(kernel):
    return str(getattr(module_of(kernel.kind), kernel.kind)(kernel))


def program_text(kernels):
    """A whole translation unit: support functions, the kernels, and an exported twin for each. All of them are deterministic, or
    none."""
    ENVIRONMENT.globals["training"]["deterministic"] = all(kernel.in_blocks for kernel in kernels)
    body = "".join(kernel_text(kernel) + "\n" for kernel in kernels)
    types = {operand.type for kernel in kernels for operand in kernel.outputs + kernel.inputs}
    low = sorted(types & {"accel_bf16", "accel_f16"})
    runtime = "".join(f'#include "{ROOT}/include/accel/{name}.h"\n' for name in OPENED if f"accel_{name} " in body)
    used = "float accel_used(float x);\nfloat accel_used(float x) { return accel_widen(accel_narrow(x)); }\n" if low else ""
    text = HEADERS + runtime + support(*(name.removeprefix("accel_") for name in low)) + used + "\n" + with_helpers(body)
    for kernel in kernels:
        operands = [f"{o.type} *{o.name}" for o in kernel.outputs] + [f"const {i.type} *{i.name}" for i in kernel.inputs]
        names = [o.name for o in kernel.outputs + kernel.inputs] + (["stream"] if kernel.random else [])
        operands += ["uint64_t stream"] if kernel.random else []
        text += f"void call_{kernel.name}({', '.join(operands)});\n"
        opened = "".join(f"accel_open_{what}(&{kernel.name}_{what}); " for what in OPENED if f" {kernel.name}_{what} =" in body)
        text += f"void call_{kernel.name}({', '.join(operands)}) {{ {opened}{kernel.name}({', '.join(names)}); }}\n\n"
    return text


def compile_all(command, sources, libraries, kind, text):
    """What a command makes of sources; it runs once for the same text, which is all of theirs."""
    key = hashlib.sha256("\0".join([text, *command]).encode()).hexdigest()[:24]
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / f"{key}.{kind}"
    if not target.exists():
        made = CACHE / f"{key}.{os.getpid()}.tmp"
        # What is loaded before this Python, a sanitizer's library, is not for the compiler, which it would slow down.
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        result = subprocess.run([*command, f"-I{ROOT}", *map(str, sources), "-o", str(made), *map(str, libraries)], capture_output=True,
                                text=True, env=environment)
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)} {sources[0]}\n{result.stderr[:4000]}")
        made.rename(target)
    return target


def compile_text(text, compiler="gcc", flags=(), libraries=("-ldnnl", "-lm"), kind="so"):
    """Compiles to a shared object (or, with kind "exe", a program). What kernels call of the runtime is a shared object of its own, one
    for the same compiler and flags."""
    base = [flag for flag in FLAGS if kind == "so" or flag not in ("-fPIC", "-shared")]
    if any(f"/accel/{name}.h" in text for name in OPENED):
        sources = "".join(source.read_text() for source in RUNTIME)
        libraries = [compile_all([compiler, *FLAGS, *flags], RUNTIME, libraries, "so", sources), *libraries]
    CACHE.mkdir(parents=True, exist_ok=True)
    source = CACHE / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.c"
    if not source.exists():  # others may be reading it
        new = source.with_suffix(f".{os.getpid()}.tmp")
        new.write_text(text)
        new.rename(source)
    return compile_all([compiler, *base, *flags], [source], libraries, kind, text)


def load(kernels, compiler="gcc", flags=tuple(SPEED_FLAGS)):
    """The kernels as callables over arrays in the order of the parameters."""
    library = ctypes.CDLL(str(compile_text(program_text(kernels), compiler, flags)))
    functions = {}
    for kernel in kernels:
        function = getattr(library, f"call_{kernel.name}")

        def call(*arrays, stream=None, function=function):
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            function(*pointers, *([] if stream is None else [ctypes.c_uint64(stream)]))

        functions[kernel.name] = call
    return functions


def has(compiler):
    return shutil.which(compiler) is not None


class Library:
    """Functions of a compiled text, by name, over arrays."""

    def __init__(self, text, compiler, flags):
        self.handle = ctypes.CDLL(str(compile_text(text, compiler, tuple(flags))))

    def __getitem__(self, name):
        function = getattr(self.handle, name)
        return lambda *arrays: function(*[ctypes.c_void_p(array.ctypes.data) for array in arrays])
