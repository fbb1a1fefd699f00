"""Each claim of the audit on hand-written programs with one thing wrong each: it is the claim that says so, at the line
that is at fault. TAP."""

import pathlib
import re
import subprocess
import sys
import tempfile

from claims import CASES, GOOD

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
CLAIM = re.compile(r"  (holds|broken|cannot tell) +(\S+) +(.*)")


def audit(text, folder, root=None):
    """{claim: (verdict, lines of its findings)}, the exit status, and the whole report."""
    (folder / "program.c").write_text(text)
    command = [GENERATOR, "audit", "program.c", *(["--root", root] if root else [])]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    claims, current = {}, None
    for line in result.stdout.splitlines():
        found = CLAIM.match(line)
        if found:
            current = claims[found[2]] = (found[1], set())
        location = re.search(r" program\.c:(\d+):\d+: ", line)
        if location and current:
            current[1].add(int(location[1]))
    return claims, result.returncode, result.stdout + result.stderr


def problem(case, folder):
    claims, status, report = audit(case.text, folder, case.root)
    if not claims:
        return "no report:\n" + report
    wrong = [name for name, (verdict, _) in claims.items() if verdict != "holds"]
    missing = [name for name in case.claims if claims[name][0] != case.verdict]
    missing += [name for name in case.open if claims[name][0] != "cannot tell"]
    extra = [name for name in wrong if name not in case.claims + case.open]
    lines = set().union(*(claims[name][1] for name in case.claims)) if case.claims else set()
    if missing or extra or lines != set(case.lines) or status != (1 if case.claims else 0):
        return f"missing {missing}, extra {extra}, lines {sorted(lines)} not {case.lines}, status {status}\n{report}"
    return None


def tap(cases, problem, title):
    """Prints a line for each case, and why where there is a problem; the exit status."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        for case in cases:
            why = problem(case, pathlib.Path(folder))
            print(f"{'not ok' if why else 'ok'} {title(case)}", flush=True)
            for line in (why or "").splitlines():
                print(f"  {line}")
            failed += why is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(tap([GOOD, *CASES], problem, lambda case: " ".join(case.claims) or "nothing wrong"))
