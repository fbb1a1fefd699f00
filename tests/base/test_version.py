"""Ranges of versions against Python's packaging, on random pairs; and texts that are no ranges. TAP."""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

from packaging.specifiers import SpecifierSet

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))

from tap import TREE, finish, report  # noqa: E402

PAIRS = 800
NO_RANGES = {  # what the answer says
    "": "does not begin with", ">=0.2,": "does not begin with", "0.2": "does not begin with", "=0.2": "does not begin with", ">=": "is not a version",
    ">= ,<1": "is not a version", ">=0.2.": "is not a version", ">=.2": "is not a version", ">=0..2": "is not a version", ">=v1": "is not a version",
    ">=0.2rc1": "is not a version", "==*": "is not a version", "===0.2": "is not a version", ">=0.2.*": "goes with == and !=", "~=0.2.*": "goes with == and !=",
    "~=1": "two numbers or more", ">=0.2 <0.3": "is not a version"}


def version(rng, least=1):
    """Numbers near each other, some long, some with zeros before them or at their end."""
    numbers = [rng.choice(("0", "0", "1", "1", "2", "9", "10", "010", "99999999999999999999999")) for _ in range(rng.randint(least, 4))]
    return ".".join(numbers)


def condition(rng):
    sign = rng.choice((">=", ">", "<=", "<", "==", "!=", "~="))
    bound = version(rng, 2 if sign == "~=" else 1)
    bound += ".*" if sign in ("==", "!=") and rng.random() < 0.4 else ""
    return rng.choice(("", " ")) + sign + rng.choice(("", " ")) + bound + rng.choice(("", " "))


def answers(program, pairs):
    text = "".join(f"{installed}\t{range_}\n" for installed, range_ in pairs)
    return subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


def main():
    rng = random.Random(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "version_ranges"
        sources = ["tests/base/programs/version_ranges.c", "gen/base/version.c", "gen/base/arena.c"]
        subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-I.", *sources, "-o", program], cwd=TREE, check=True)
        pairs = [(version(rng), ",".join(condition(rng) for _ in range(rng.randint(1, 3)))) for _ in range(PAIRS)]
        expected = ["yes" if SpecifierSet(range_).contains(installed) else "no" for installed, range_ in pairs]
        wrong = [f"{pair}: {said}, not {right}" for pair, said, right in zip(pairs, answers(program, pairs), expected, strict=True) if said != right]
        wrong += [] if PAIRS / 10 < expected.count("yes") < PAIRS * 0.9 else [f"{expected.count('yes')} of {PAIRS} are in their ranges"]
        report(f"{PAIRS} random pairs as packaging answers them", wrong)
        said = answers(program, [("0.2.0", range_) for range_ in NO_RANGES])
        report("what is no range", [f"'{text}': {one}" for (text, part), one in zip(NO_RANGES.items(), said, strict=True) if part not in one])
    finish()


if __name__ == "__main__":
    main()
