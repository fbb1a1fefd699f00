"""Each function of a public header has a comment of its own: one that ends in the line above its declaration. TAP."""

import re

from tap import TREE, finish, report

# A name that begins with an underline is another library's, which a header stands in for.
FUNCTION = re.compile(r"(?!typedef\b|static\b)(?:[\w*]+[\s*]+)+(?!_)(\w+)\(")


def code_of(text):
    """The same lines, with blanks instead of comments and of directives, which may continue."""
    for other in (r"/\*.*?\*/", r"(?m)^#(?:[^\n]*\\\n)*[^\n]*"):
        text = re.sub(other, lambda part: re.sub(r"[^\n]", " ", part[0]), text, flags=re.S)
    return text


def declarations(text):
    """The functions of a header, each with the number of its first line: no statement is open there, and no structure."""
    depth, is_open = 0, False
    for number, line in enumerate(code_of(text).splitlines(), 1):
        code = line.strip()
        if code == 'extern "C" {' or (code == "}" and depth == 0):
            continue
        if depth == 0 and not is_open and (found := FUNCTION.match(line)):
            yield found[1], number
        depth += code.count("{") - code.count("}")
        if code:
            is_open = not code.endswith((";", "{", "}"))


def bare(text):
    """Those without a comment of their own, which is nothing but a comment and no heading."""
    lines = text.splitlines()
    for name, number in declarations(text):
        above = lines[number - 2] if number > 1 else ""
        if not above.startswith(("/*", " *")) or not above.endswith("*/") or above.startswith("/* ---- "):
            yield f"{name}, line {number}"


HEADER = """#ifndef A_H
/* What it is for. */

struct a {
  int (*call)(int); /* to be called */
};

/* One. */
int one(void);
int two(int a,
        int b); /* 2 */

/* ---- More ---- */
struct a *three(void);

/* Many,
 * many. */
const char *four(struct a a) __attribute__((format(printf, 1, 2)));

/* Five. */

void five(void);
typedef int six(int);
#define SEVEN(x) \\
  do_seven(x)

int eight(void);
__device__ inline void __nine(void) {
}
#endif
"""


def self_test():
    """Functions are found, and those that lack a comment are distinguished from the others."""
    yield [name for name, _ in declarations(HEADER)] == ["one", "two", "three", "four", "five", "eight"]
    yield list(bare(HEADER)) == ["two, line 10", "three, line 14", "five, line 22", "eight, line 27"]


if __name__ == "__main__":
    report("a missing comment is found", [f"case {i}" for i, good in enumerate(self_test()) if not good])
    headers = sorted((TREE / "include" / "accel").rglob("*.h"))
    found = sum(len(list(declarations(header.read_text()))) for header in headers)
    report("functions are found", [] if found > 300 else [f"{found} in {len(headers)} headers"])
    for header in headers:
        report(f"{header.relative_to(TREE)} documents its functions", list(bare(header.read_text())))
    finish()
