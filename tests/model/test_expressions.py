"""Random expressions of C: what the reader computes against what the compiler computes.

Each expression is run natively, with the sanitizers marking what C leaves undefined; the others become assertions of a
model. Conversions that lose a number are errors in a model on purpose; those expressions are left out.

SEED=N repeats a run.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

READER = os.environ.get("MODEL_READER", "build/tests/model/test_models")
WORK = "build/tests/scratch/expressions"
SEED = int(os.environ.get("SEED", time.time()))
EXPRESSIONS = 400
# GCC folds some overflows away before its sanitizer sees them.
CLANG = next((path for name in ("clang-19", "clang-20", "clang-18", "clang") if (path := shutil.which(name))), None)

VARIABLES = {
    "a": ("int", "7"),
    "b": ("int", "-13"),
    "u": ("unsigned", "4000000000u"),
    "l": ("long", "-9000000000l"),
    "m": ("unsigned long", "18446744073709551000ul"),
    "h": ("short", "-300"),
    "y": ("unsigned char", "200"),
    "f": ("float", "1.1f"),
    "d": ("double", "-2.75"),
    "t": ("bool", "1"),
}
INTEGERS = ["0", "1", "2", "3", "31", "100", "1u", "2147483647", "4294967295u", "1l", "255", "-1"]
REALS = ["0.5", "1.5f", "3.0"]
CASTS = ["int", "unsigned", "long", "short", "unsigned char", "bool", "unsigned long"]
RULES = "#include <accel/model.h>\n#include <assert.h>\n\ntensor model(scope s, tensor tokens) {\n"
NATIVE = """#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

static sigjmp_buf next;

static void trap(int number) {
  (void)number;
  siglongjmp(next, 1);
}

int main(void) {
  signal(SIGFPE, trap);
  setvbuf(stdout, 0, _IONBF, 0);
  setvbuf(stderr, 0, _IONBF, 0);
"""


def leaf(source, whole):
    if source.random() < 0.35:
        return source.choice(INTEGERS if whole else INTEGERS + REALS)
    return source.choice([name for name in VARIABLES if not (whole and name in "fd")])


def expression(source, depth, whole=False):
    """An expression; `whole`: of integers alone."""
    if depth == 0 or source.random() < 0.12:
        return leaf(source, whole)
    below = lambda integers=whole: expression(source, depth - 1, integers)
    kind = source.random()
    if kind < 0.12:
        return f"{source.choice(['-', '+', '!'] + (['~'] if whole else []))}({below()})"
    if kind < 0.22:
        return f"({source.choice(CASTS if whole else CASTS + ['float', 'double'])})({below()})"
    if kind < 0.30:
        return f"({below(True)} ? {below()} : {below()})"
    if kind < 0.40:
        return f"({below()} {source.choice(['<', '>', '<=', '>=', '==', '!=', '&&', '||'])} {below()})"
    if whole or kind < 0.5:
        return f"({below(True)} {source.choice(['+', '-', '*', '/', '%', '&', '|', '^', '<<', '>>'])} {below(True)})"
    return f"({below()} {source.choice(['+', '-', '*', '/'])} {below()})"


def declarations(qualifier=""):
    return "".join(f"  {qualifier}{kind} {name} = {value};\n" for name, (kind, value) in VARIABLES.items())


def run_natively(expressions):
    """The value of each expression that C defines, as text of a hexadecimal float."""
    text = NATIVE + declarations("volatile ")
    for i, one in enumerate(expressions):
        text += f'#line {1000 + i}\n  if (!sigsetjmp(next, 1)) {{ double r = (double)({one}); printf("%d %a\\n", {i}, r); }}\n'
    with open(f"{WORK}/native.c", "w", encoding="utf-8") as file:
        file.write(text + "}\n")
    flags = ["-w", "-std=gnu17", "-fsanitize=undefined,float-divide-by-zero,float-cast-overflow"]
    subprocess.run([CLANG, *flags, f"{WORK}/native.c", "-o", f"{WORK}/native"], check=True)
    ran = subprocess.run([f"{WORK}/native"], capture_output=True, text=True, check=False)
    undefined = {int(line) - 1000 for line in re.findall(r"native\.c:(\d+):", ran.stderr)}
    values = dict(line.split() for line in ran.stdout.splitlines())
    return {int(i): v for i, v in values.items() if int(i) not in undefined and "n" not in v.lower()}


def read_model(expressions, values):
    """The first error of the model that asserts these values: its line and message, or None."""
    text = RULES + declarations()
    first = text.count("\n") + 1
    text += "".join(f"  assert((double)({expressions[i]}) == {v});\n" for i, v in values.items())
    with open(f"{WORK}/model.c", "w", encoding="utf-8") as file:
        file.write(text + "  return mean_all(embedding(s, tokens, 10, 16));\n}\n")
    read = subprocess.run([READER, "--read", f"{WORK}/model.c"], capture_output=True, text=True, check=False)
    error = re.search(r"model\.c:(\d+):\d+: error: (.*)", read.stdout)
    return (int(error[1]) - first, error[0]) if error else None


class Expressions(unittest.TestCase):
    def test_random_expressions(self):
        os.makedirs(WORK, exist_ok=True)
        print(f"seed {SEED}")
        source = random.Random(SEED)
        expressions = [expression(source, 4) for _ in range(EXPRESSIONS)]
        values = run_natively(expressions)
        defined = len(values)
        while (error := read_model(expressions, values)) is not None:
            line, message = error
            self.assertRegex(message, "does not fit into", f"seed {SEED}")
            self.assertNotIn("signed overflow", message, f"seed {SEED}")
            del values[list(values)[line]]
        self.assertGreater(len(values), defined // 2)


if __name__ == "__main__":
    if CLANG is None:
        print("no clang here, whose sanitizers say what C leaves undefined")
        sys.exit(77)
    unittest.main()
