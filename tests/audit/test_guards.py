"""The bounds claim, against the sanitizer: programs that the audit accepts are rewritten so that every slot of the arena
stands alone with poisoned bytes after it, unions taken apart. They run clean and to the same weights as before; a program
that steps out of its slot by one element does not. TAP."""

import json
import pathlib
import re
import shutil
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import GENERATOR  # noqa: E402
from matrix import CASES, library_flags  # noqa: E402
from test_compile import ENVIRONMENT, SANITIZERS, run  # noqa: E402

NAMES = {"gpt2_accumulation", "gru_checkpoint", "mlp_bf16"}
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};\nstatic_assert\([^;]*\);\n", re.M | re.S)
LEAF = re.compile(r" *(?:alignas\(\d+\) )?\w+ (\w+)(?:\[[^\]]*\])+;")
NESTED = re.compile(r" *struct (\w+) (\w+)(?:\[(\d+)\])?;")
GUARD = """#include <sanitizer/asan_interface.h>
static inline void guard(void *slot, size_t size, void *after) {
  ASAN_POISON_MEMORY_REGION((char *)slot + size, (size_t)((char *)after + 64 - (char *)slot) - size);
}

"""


class Separated:
    """The structs of a program with guards after each member. A union with `all_...` in it is a view: the same numbers as a
    struct and as one array. It is one slot, and the structs below it stay as they are."""

    def __init__(self, text):
        self.bodies, self.viewed, self.count = dict(STRUCT.findall(text)), set(), 0
        for view in re.findall(r"union \{\n *struct (\w+) \w+;\n[^}]* all_", "\n".join(self.bodies.values())):
            self.view(view)

    def view(self, name):
        self.viewed.add(name)
        for nested in NESTED.findall(self.bodies[name]):
            self.view(nested[0])

    def guard(self, slot):
        """The line of a guard after `slot`, and the statement that poisons it."""
        self.count += 1
        return (f"  alignas(64) char guard_{self.count}[64];",
                f"guard(&{{0}}{slot}, sizeof {{0}}{slot}, {{0}}guard_{self.count});")

    def member(self, line):
        """The lines of a member and its guard, and the statement that poisons what belongs to it."""
        nested = NESTED.match(line)
        if nested and nested[1] not in self.viewed:
            index, count = ("[i]", nested[3]) if nested[3] else ("", "1")
            return [line], f"for (int i = 0; i < {count}; i++) guard_{nested[1]}(&{{0}}{nested[2]}{index});"
        slot = nested[2] if nested else LEAF.match(line)[1]
        after, statement = self.guard(slot)
        return [line, after], statement

    def union(self, lines):
        """Its members, and the line that ends it, taken from what follows its first line."""
        members, depth = [], 1
        for line in lines:
            depth += (line.strip() == "union {") - line.lstrip().startswith("}")
            if depth == 0:
                return members, line
            members.append(line)
        raise AssertionError("a union without an end")

    def apart(self, lines):
        """Lines of members with guards, and the statements that poison these."""
        separate, statements = [], []
        lines = iter(lines)
        for line in lines:
            if line.strip() != "union {":
                wide, statement = self.member(line)
                separate += wide
                statements.append(statement)
                continue
            members, end = self.union(lines)
            if members[0].strip() != "union {" and any(" all_" in member for member in members):
                after, statement = self.guard(NESTED.match(members[0])[2])
                separate += [line, *members, end, after]
                statements.append(statement)
                continue
            name = re.match(r" *\} ?(\w*)", end)[1]
            wide, within = self.apart(members)
            separate += ["  struct {", *wide, end]
            statements += [statement.replace("{0}", "{0}" + (name + "." if name else "")) for statement in within]
        return separate, statements

    def definition(self, name):
        """A struct with guards, and the function that poisons them."""
        lines, statements = self.apart(self.bodies[name].splitlines())
        poison = "".join(f"  {statement.format('s->')}\n" for statement in statements)
        return "struct %s {\n%s\n};\n\nstatic inline void guard_%s(struct %s *s) {\n%s}\n" % (
            name, "\n".join(lines), name, name, poison)


def separate(text):
    """The program with all of its slots apart, and how many there are."""
    structs = Separated(text)

    def define(match):
        return match[0] if match[1] in structs.viewed else structs.definition(match[1])

    first = text.index("struct ", text.index("The arena's map"))
    text = text[:first] + GUARD + STRUCT.sub(define, text[first:])
    return re.sub(r"( *)(arena = accel_arena\(run\);)", r"\1\2\n\1guard_arena(arena);", text, count=1), structs.count


def train(text, folder):
    """What the program says under the sanitizers, and its weights."""
    (folder / "program.c").write_text(text)
    shutil.rmtree(folder / "run", ignore_errors=True)
    built = run(["gcc", *SANITIZERS, "program.c", "-o", "program", *library_flags("--cflags", "--libs")], folder)
    result = built if built.returncode != 0 else run(["./program"], folder, **ENVIRONMENT)
    weights = folder / "run" / "model.safetensors"
    return result, weights.read_bytes() if weights.exists() else b""


def check(case, folder):
    """Yields (what, None or why not)."""
    case.write_data(folder)
    (folder / "job.yaml").write_text(json.dumps(case.job))
    run([GENERATOR, "job.yaml", "-o", "program.c"], folder)
    text = (folder / "program.c").read_text()
    audit = run([GENERATOR, "audit", "program.c"], folder)
    yield "is accepted", None if audit.returncode == 0 else audit.stdout
    _, plain = train(text, folder)
    apart, count = separate(text)
    result, weights = train(apart, folder)
    yield f"{count} slots apart, runs clean", None if result.returncode == 0 else result.stdout + result.stderr
    yield "and to the same weights", None if plain and weights == plain else "they differ"
    if case.name != "mlp_bf16":
        return
    wrong = re.sub(r"(static void step\([^{]*\{\n)", r"\1  *(volatile char *)(arena->result + 1) = 0;\n", apart, count=1)
    result, _ = train(wrong, folder)
    caught = result.returncode != 0 and "use-after-poison" in result.stderr
    yield "a step out of a slot is caught", None if caught else result.stdout + result.stderr


def main():
    failed = 0
    for case in CASES:
        if case.name not in NAMES:
            continue
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            for what, why in check(case, pathlib.Path(folder)):
                print(f"{'not ok' if why else 'ok'} {case.name}: {what}", flush=True)
                for line in (why or "").splitlines()[:40]:
                    print(f"  {line}")
                failed += why is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
