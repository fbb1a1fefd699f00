"""Public headers say what each of their functions does: a comment ends in the line above each declaration. TAP."""

import pathlib
import re
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
FUNCTION = re.compile(r"^(?!typedef\b|struct \w+ \{|enum\b.*\{|#|extern \"C\")(?:[\w*]+[\s*]+)+(\w+)\(")


def declarations(text):
    """Names of functions that are declared or defined at the outermost level, each with the number of its first line."""
    depth, continues, in_comment = 0, False, False
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("/*")[0] if not in_comment else ""
        if depth == 0 and not continues and not in_comment and (found := FUNCTION.match(line)):
            yield found[1], number
        if "/*" in line or in_comment:
            in_comment = "*/" not in line
        if line.startswith("#"):
            continues = False
            continue
        if code.strip() == 'extern "C" {' or (code.strip() == "}" and depth == 0):
            continue
        depth += code.count("{") - code.count("}")
        continues = bool(code.strip()) and not code.rstrip().endswith((";", "}", "{")) or (in_comment and continues)


def bare(text):
    """The functions that have no comment directly above them."""
    lines = text.splitlines()
    return [(name, number) for name, number in declarations(text) if number < 2 or not lines[number - 2].rstrip().endswith("*/") or not lines[number - 2].startswith(("/*", " *"))]


if __name__ == "__main__":
    for header in sorted((TREE/"include"/"accel").rglob("*.h")):
        for n,l in bare(header.read_text()): print(header.relative_to(TREE),l,n)
