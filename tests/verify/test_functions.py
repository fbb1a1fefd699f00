"""The second reading's functions of accel/model.h, and their gradients, against PyTorch in float64.

test_gradients --print SEED draws arguments for every function; here the same calls are compiled over gen/verify.
usage: test_functions.py [--seed N] [--program PATH] [--all]
In a run: two of the six shapes of each function; with --all, as in `ninja soak`, all of them.
"""

import argparse
import array
import json
import math
import os
import pathlib
import random
import subprocess
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the cases are small
sys.path.insert(0, "tests/ops")
import test_against_torch as against

FOLDER = pathlib.Path("build/tests/verify")
DRAWN = {"dropout"}  # whose words follow from a run of the whole model: test_sabotage.py


# Products of several blocks of rows, columns and terms, of which the last ones are not whole (gen/verify/tape/multiply.c).
PRODUCTS = [("matmul", (2, 67, 259), (259, 263)), ("matmul_transposed", (2, 3, 270), (2, 261, 270)), ("matmul", (2, 139, 5), (2, 5, 9))]


def products(seed):
    """The same as --print has of a function."""
    draw = random.Random(seed)
    def tensor(shape):
        return {"shape": list(shape), "elements": [draw.uniform(-1, 1) for _ in range(math.prod(shape))]}
    for function, a, b in PRODUCTS:
        shape = (*a[:-1], b[-2] if function == "matmul_transposed" else b[-1])
        yield {"function": function, "arguments": ["a", "b"], "y": {"shape": list(shape)},
               "tensors": {"a": tensor(a), "b": tensor(b), "weights": tensor(shape)}}


def call(case, k):
    """The function of a case, in C."""
    names = list(case["tensors"])
    def word(argument):
        if argument is None:
            return "s"
        if not isinstance(argument, str):
            return repr(argument)
        return f"T(s, {names.index(argument)})" if argument in names else json.dumps(argument)
    words = [word(a) for a in case["arguments"]]
    if case["function"] == "grouped_matmul":
        words = words[:3] + ["(const tensor[]){" + ", ".join(words[3:]) + "}"]
    return f"static tensor case_{k}(scope s) {{ (void)s; return {case['function']}({', '.join(words)}); }}\n"


def row(case, k):
    """Its line in the table of calls; the weights of the result are last."""
    def given(name, tensor):
        whole = name.startswith("in") and all(type(x) is int for x in tensor["elements"])
        return f'{{"{name}", {len(tensor["shape"])}, {{{", ".join(map(str, tensor["shape"])) or 0}}}, {str(whole).lower()}, NULL}}'
    tensors = ", ".join(given(n, t) for n, t in case["tensors"].items())
    return f"  {{case_{k}, {len(case['tensors'])}, {{{tensors}}}}},\n"


def build(cases, program):
    source = FOLDER / "calls.c"
    functions = "".join(call(case, k) for k, case in enumerate(cases))
    rows = "".join(row(case, k) for k, case in enumerate(cases))
    source.write_text('#include "tests/verify/calls.h"\n' + functions + f"static struct call calls[] = {{\n{rows}}};\n"
                      "int main(int argc, char **argv) {\n"
                      f"  return argc == 2 ? run_calls(calls, {len(cases)}, argv[1]) : 2;\n}}\n")
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-I.", "-Iinclude", "-o", program,
                    source, "build/libaccel-gen.a", "build/libaccel-runtime/base.a", "@build/config/libclang.libs", "-fopenmp", "-lm"], check=True)
    values = array.array("d", (float(x) for case in cases for t in case["tensors"].values() for x in t["elements"]))
    (FOLDER / "calls.bin").write_bytes(values.tobytes())


def results(program):
    """By case: what it printed, by name."""
    text = subprocess.run([program, FOLDER / "calls.bin"], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        name, *numbers = line.split(" ")
        if name == "case":
            found.append({})
        else:
            found[-1][name] = numbers if name == "refused" else [float(x) for x in numbers]
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or random.randrange(1_000_000)))
    parser.add_argument("--program", default="build/tests/ops/test_gradients")
    parser.add_argument("--all", action="store_true", default=os.environ.get("CASES") == "all")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    run = subprocess.run([options.program, "--print", str(options.seed)], capture_output=True, text=True, check=True)
    cases = [json.loads(line) for line in run.stdout.splitlines()]
    cases = cases if options.all else [case for i, case in enumerate(cases) if i % 3 == 0]
    cases += products(options.seed)
    for case in cases:
        case["tensors"]["weights"] = case["tensors"].pop("weights")
    build(cases, FOLDER / "calls")
    wrong = {}
    for case, found in zip(cases, results(FOLDER / "calls"), strict=True):
        name = case["function"]
        problem = wrong.setdefault(name, [])
        if name in DRAWN:
            problem += [] if "refused" in found else ["not refused"]
            continue
        if "refused" in found:
            problem.append(" ".join(found["refused"]))
            continue
        case["y"]["elements"] = found.pop("y")
        shapes = case["tensors"]
        case["gradients"] = {n: {"shape": shapes[n]["shape"], "elements": g} for n, g in found.items()}
        problem += [message for message in [against.check(case)] if message]
    for name, problem in wrong.items():
        print(f"not ok {name}: {'; '.join(problem)}" if problem else f"ok {name}")
    return 1 if any(wrong.values()) or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
