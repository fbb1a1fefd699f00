"""The audit of programs that we did not emit: what is broken is at the named line, what cannot be decided says so, and the
rest holds. TAP."""

import sys

from foreign import PROGRAMS
from test_claims import audit, tap


def lines_of(text, mark):
    """The lines with /*B*/, /*?*/ or /*B?*/."""
    return {i + 1 for i, line in enumerate(text.split("\n")) if "/*" in line and mark in line.rsplit("/*", 1)[1].split("*/")[0]}


def problem(program, folder):
    (folder / "own.h").write_text(program.header)
    claims, _, report = audit(program.text, folder)
    if not claims:
        return "no report:\n" + report
    wanted = {**{name: "broken" for name in program.broken}, **{name: "cannot tell" for name in program.open}}
    wrong = [f"{name} {verdict}, not {wanted.get(name, 'holds')}" for name, (verdict, _) in claims.items()
             if verdict != wanted.get(name, "holds")]
    for names, mark in ((program.broken, "B"), (program.open, "?")):
        found = set().union(*(claims[name][1] for name in names)) if names else set()
        if found != lines_of(program.text, mark):
            wrong.append(f"'{mark}' at {sorted(found)}, not {sorted(lines_of(program.text, mark))}")
    return f"{wrong}\n{report}" if wrong else None


if __name__ == "__main__":
    sys.exit(tap(PROGRAMS, problem, lambda program: program.name))
