"""Operations on values beside Accelerate's own: the same nested, ragged, scalar and empty values of many types, on one
process and on several, Accelerate's over gloo. What differs on purpose is named here."""

import json
import multiprocessing
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import PartialState
from accelerate.utils import operations

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "parallel"))

from ranks import free_port, library_flags, start  # noqa: E402

SEED = int(os.environ.get("SEED", "1"))
DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16,
          "int64": torch.int64, "int32": torch.int32, "int8": torch.int8, "uint8": torch.uint8, "bool": torch.bool}
FLOATING = ("float32", "float64", "float16", "bfloat16")
SOURCES = ["value", "value_text", "value_bytes", "store", "elements", "operations", "concatenate", "gather", "broadcast",
           "reduce", "pad", "split", "agreement", "process", "logger"]


# ---- Values as JSON, in the form of programs/run_operations.c, and as Accelerate has them ----

def tensor(dtype, shape, data):
    """data: a torch tensor."""
    return {"tensor": [dtype, list(shape), data.contiguous().flatten().view(torch.uint8).numpy().tobytes().hex()
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


def case(op, *args, values):
    return {"op": op, "args": list(args), "values": values}


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


def alone(draw):
    """Cases that need no other rank."""
    cases = []
    for _ in range(25):
        anything = draw.object()
        for op in ("listify", "convert_to_fp32", "convert_outputs_to_fp32", "get_data_structure", "get_shape", "find_batch_size", "send_to_device"):
            cases.append(case(op, values=anything))
        bounds = [draw.random.choice([None, 0, 1, 2, 7, -1, -2, -9]) for _ in range(2)]
        cases.append(case("slice_tensors", *bounds, draw.random.choice([None, 1, 2, 3]), values=anything))
        build, dim = draw.build(2, lambda: draw.shape(1)), draw.random.choice([0, 0, 0, 1, -1])
        alike = [draw.fill(ragged(draw, build, dim)) for _ in range(draw.random.choice([1, 2, 3]))]
        cases.append(case("concatenate", dim, values=alike))
        types = [(draw.random.choice(list(DTYPES)), (n, 2)) for n in (1, 2, 3)]
        cases.append(case("concatenate", 0, values=[draw.fill(one) for one in types]))
    for odd in ([], [1], [1, 2], [[1], [2]], [["a"]], {"map": []}):
        cases += [case("concatenate", 0, values=odd), case("find_batch_size", values=odd)]
    for shape in ((2, 0), (0,), (3, 0)):
        cases.append(case("concatenate", 0, values=[draw.fill(("float32", shape)), draw.fill(("float16", (2, 4)))]))
    return cases


def together(draw, ranks):
    """Cases of all ranks. A mean of integers and padding of booleans are apart: `Own` has them."""
    cases = []
    for _ in range(12):
        build = without(draw.build(), ("bool",))
        cases.append(case("gather", values=[draw.fill(build) for _ in range(ranks)]))
        cases.append(case("broadcast", draw.random.randrange(ranks), values=[draw.fill(build) for _ in range(ranks)]))
        for kind in ("sum", "none", "max"):
            cases.append(case("reduce", kind, 1.0, values=[draw.fill(build) for _ in range(ranks)]))
        reals = without(build, [dtype for dtype in DTYPES if dtype not in FLOATING])
        cases.append(case("reduce", "mean", 1.0, values=[draw.fill(reals) for _ in range(ranks)]))
        dim = draw.random.choice([0, 0, 1, -1, -2, 2])
        cases.append(case("pad_across_processes", dim, draw.random.choice([0, 0, 3, 7]), draw.random.random() < 0.5,
                          values=[draw.fill(ragged(draw, build, dim)) for _ in range(ranks)]))
        cases.append(case("gather_object", values=[[draw.object() for _ in range(draw.random.randrange(4))] for _ in range(ranks)]))
        count = draw.random.randrange(1, 4)  # gloo hangs on none
        cases.append(case("broadcast_object_list", draw.random.randrange(ranks),
                          values=[[draw.object() for _ in range(count)] for _ in range(ranks)]))
        for length in (0, 1, 2, 3, 4, 7):
            cases.append(case("split_between_processes", draw.random.random() < 0.5, values=[rows(draw, length)] * ranks))
    for odd in ("text", [1], {"map": [["a", None]]}, 1.5):
        for op in (["gather"], ["reduce", "sum", 1.0], ["broadcast", 0], ["pad_across_processes", 0, 0, False],
                   ["split_between_processes", False]):
            cases.append(case(*op, values=[odd] * ranks))
    cases.append(case("split_between_processes", False, values=[{"map": [["a", [1, 2]], ["b", [1]]]}] * ranks))
    cases.append(case("split_between_processes", False, values=[{"map": []}] * ranks))
    cases.append(case("split_between_processes", True, values=[{"map": [["a", [1]], ["b", {"map": [["c", [1, 2, 3]]]}]]}] * ranks))
    return cases


# ---- Accelerate ----

REAL = {"split_between_processes": None, "convert_outputs_to_fp32": lambda value: operations.convert_outputs_to_fp32(lambda x: x)(value),
        "send_to_device": lambda value: operations.send_to_device(value, "cpu"),
        "slice_tensors": lambda value, *bounds: operations.slice_tensors(value, slice(*bounds)),
        "concatenate": operations.concatenate}


def accelerate(op, args, value):
    if op == "split_between_processes":
        with PartialState().split_between_processes(value, apply_padding=args[0]) as part:
            return part
    return (REAL.get(op) or getattr(operations, op))(value, *args)


def metrics(accelerator, ranks, draw):
    """What an evaluation gathers, batch by batch: [case, result]."""
    found = []
    for length, batch, objects in ((9, 5, False), (10, 2, False), (7, 3, True), (1, 2, False), (12, 2, True)):
        data = [{"x": torch.arange(3) + 10 * i, "y": torch.tensor(float(i))} for i in range(length)]
        for item in accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=batch)):
            state = accelerator.gradient_state
            remainder = state.remainder if state.end_of_dataloader else 0
            value = [str(y) for y in item["y"].tolist()] if objects else item
            all_values = [None] * ranks
            if ranks > 1:
                torch.distributed.all_gather_object(all_values, from_torch(value))
            else:
                all_values = [from_torch(value)]
            found.append([case("gather_for_metrics", max(remainder, 0), False, values=all_values),
                          from_torch(accelerator.gather_for_metrics(value))])
    return found


def peer(rank, ranks, port, cases, out):
    os.environ["OMP_NUM_THREADS"] = "1"
    if ranks > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    results = []
    for one in cases:
        try:
            results.append({"ok": from_torch(accelerate(one["op"], one["args"], to_torch(one["values"][rank])))})
        except (TypeError, ValueError, IndexError, RuntimeError, KeyError, AttributeError) as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    out.put((rank, results, metrics(accelerator, ranks, None)))
    if ranks > 1:
        torch.distributed.destroy_process_group()


def peers(ranks, cases):
    """The results of each rank of Accelerate's, and the cases of metrics with theirs."""
    context, port = multiprocessing.get_context("fork"), free_port()
    out = context.Queue()
    processes = [context.Process(target=peer, args=(rank, ranks, port, cases, out), daemon=True) for rank in range(ranks)]
    for process in processes:
        process.start()
    answers = sorted(out.get(timeout=60) for _ in processes)
    for process in processes:
        process.join()
    return [answer[1] for answer in answers], [answer[2] for answer in answers]


# ---- Ours ----

class Program:
    """The driver, with the sources of what it tests under sanitizers, for one process and for several."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        compiler, sanitizers = shlex.split(os.environ.get("CC", "cc")), ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
        flags = ["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", TREE]
        sources = [TREE / "runtime" / f"{name}.c" for name in SOURCES]
        subprocess.run([*compiler, *flags, *sanitizers, "-c", TREE / "tests/reference/programs/run_operations.c", *sources],
                       cwd=self.folder, check=True)
        for name, package in (("alone", "accel-runtime"), ("ranks", "accel-runtime-mpi")):
            subprocess.run([*compiler, *sanitizers, *self.folder.glob("*.o"), "-o", self.folder / name,
                            *library_flags("--libs", package=package)], check=True)

    def run(self, ranks, cases, timeout=60):
        (self.folder / "cases.json").write_text(json.dumps(cases))
        environment = {"ASAN_OPTIONS": f"detect_leaks={int(ranks == 1)}", "UBSAN_OPTIONS": "print_stacktrace=1"}
        words = [str(self.folder / "cases.json"), str(self.folder / "out")]
        if ranks == 1:
            done = subprocess.run([self.folder / "alone", *words], capture_output=True, text=True, env={**os.environ, **environment})
        else:
            done = start(self.folder / "ranks", ranks, *words, timeout=timeout, **environment)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        return [json.loads((self.folder / f"out.{rank}").read_text()) for rank in range(ranks)]


PROGRAM = Program()


class Beside(unittest.TestCase):
    def compare(self, ours, theirs, exact, where):
        self.assertIs(type(ours), type(theirs), where)
        if isinstance(ours, list):
            self.assertEqual(len(ours), len(theirs), where)
            for a, b in zip(ours, theirs, strict=True):
                self.compare(a, b, exact, where)
        elif isinstance(ours, dict):
            self.assertEqual(list(ours), list(theirs), where)
            if "tensor" not in ours or exact:
                for name in ours:
                    self.compare(ours[name], theirs[name], exact, where)
                return
            self.assertEqual(ours["tensor"][:2], theirs["tensor"][:2], where)
            a, b = (to_torch(value).double() for value in (ours, theirs))
            near = {"float64": 1e-15, "float32": 4e-7, "float16": 3e-3, "bfloat16": 3e-2}.get(ours["tensor"][0], 0)
            self.assertTrue(torch.all((a - b).abs() <= near * (30 + b.abs())), f"{where}: {a} {b}")
        elif isinstance(ours, float):
            self.assertEqual(np.float64(ours).tobytes(), np.float64(theirs).tobytes(), where)
        else:
            self.assertEqual(ours, theirs, where)

    def check(self, ranks):
        draw = Draw(SEED + ranks)
        cases = [{**one, "values": [one["values"]] * ranks} for one in alone(draw)] if ranks == 1 else []
        cases += together(draw, ranks)
        theirs, metrics_of = peers(ranks, cases)
        more = [one for one, _ in metrics_of[0]]
        ours = PROGRAM.run(ranks, cases + more)
        for rank in range(ranks):
            for one, got, want in zip(cases, ours[rank], theirs[rank]):
                where = f"{one['op']}{one['args']} of {one['values'][rank]} on rank {rank} of {ranks}"
                self.assertEqual(list(got), list(want), f"{where}: {got} {want}")
                if "ok" in want:
                    self.compare(got["ok"], want["ok"], one["op"] != "reduce" or ranks < 3, where)
            for (one, want), got in zip(metrics_of[rank], ours[rank][len(cases):], strict=True):
                self.compare(got["ok"], want, True, f"{one} on rank {rank} of {ranks}")

    def test_one_process(self):
        self.check(1)

    def test_two_processes(self):
        self.check(2)

    def test_three_processes(self):
        self.check(3)


if __name__ == "__main__":
    print("seed", SEED)
    unittest.main()
