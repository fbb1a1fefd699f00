"""What is claimed of every emitted program's text, and how a test reports it in TAP."""

import os
import re
import subprocess
from collections import Counter

from harness import TREE
from matrix import library_flags, tool
from rotation import is_in_turn

WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Werror"]
COMPILERS = {"gcc": "gcc", "clang": tool("clang")}


def compiles(text, number, both=False):
    """Yields (what, None or why it failed): no warning under gcc and clang. Of two programs in a row one is compiled by
    gcc and one by clang. Those that come from following values (gcc) or from loops that were not vectorized (clang)
    need an optimizing compiler, which is what takes the time: of sixteen programs in a row each optimizes one. Others
    with another SEED; with `both`, both optimize."""
    alone = None in COMPILERS.values()
    for at, (name, compiler) in enumerate(COMPILERS.items()):
        if compiler is None:
            yield f"compiles with {name} # SKIP not installed", None
            continue
        if not (both or alone or is_in_turn(number + at, 2)):
            continue
        optimized = both or alone or is_in_turn(number + at, 16)
        how = ["-O2", "-c", "-o", os.devnull] if optimized else ["-fsyntax-only"]
        result = subprocess.run([compiler, *WARNINGS, *how, *library_flags("--cflags"), "-x", "c", "-"], input=text,
                                capture_output=True, text=True)
        yield (f"compiles with {name}{' -O2' if optimized else ''}",
               result.stderr if result.returncode != 0 or result.stderr else None)


def formatted(text):
    """The same, of clang-format."""
    if tool("clang-format") is None:
        yield "is formatted # SKIP clang-format is not installed", None
        return
    style = f"--style=file:{TREE / '.clang-format'}"
    result = subprocess.run([tool("clang-format"), style], input=text, capture_output=True, text=True, check=True)
    lines = zip(text.splitlines(), result.stdout.splitlines())
    first = next((f"{ours}\n{theirs}" for ours, theirs in lines if ours != theirs), "the end")
    yield "is formatted", None if result.stdout == text else first


DEFINITION = re.compile(r'^(?:static|template|__device__|__global__|extern "C")[^;{}=]*?\b(\w+)\([^;{}]*\) \{\n.*?^\}', re.M | re.S)


def unused(text, calls=""):
    """Yields (what, None or why it failed): each function of the text is named outside of it, there or in `calls`.
    Compilers say nothing of functions that are inline, templates or kernels."""
    text, calls = (re.sub(r"/\*.*?\*/|//[^\n]*|__attribute__\(\(.*?\)\)|__launch_bounds__\(\d+\)|alignas\(.*?\)|\bstruct \w+", "", half, flags=re.S)
                   for half in (text, calls))
    calls = re.sub(r"^\w[^;{}=]*?\w+\([^;{}]*\);", "", calls, flags=re.M)  # prototypes
    found = [(match[1], match[0]) for match in DEFINITION.finditer(text)]
    named = Counter(re.findall(r"\w+", text + calls))
    for name, definition in found:
        named[name] -= len(re.findall(rf"\b{name}\b", definition))
    alone = [name for name in dict.fromkeys(name for name, _ in found) if named[name] == 0]
    yield "uses its functions", ", ".join(alone) or (None if found else "no function was found")


def report(name, results):
    """Prints a line of TAP for each (what, why it failed); returns how many failed."""
    failed = 0
    for what, why in results:
        print(f"{'not ok' if why else 'ok'} {name} {what}", flush=True)
        for line in (why or "").splitlines()[:25]:
            print(f"  {line}")
        failed += why is not None
    return failed
