"""Checks that print one line each in TAP's form, and the command that they run."""

import pathlib
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
failed = 0


def report(name, wrong):
    """A check, which passes when the list of what is wrong is empty."""
    global failed
    failed += bool(wrong)
    print("\n  ".join([f"{'not ok' if wrong else 'ok'} {name}", *map(str, wrong)]))


def finish():
    """Ends the test with the status of its checks."""
    sys.exit(failed > 0)


def run(*words):
    return subprocess.run([GENERATOR, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
