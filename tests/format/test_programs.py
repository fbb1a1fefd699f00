"""Programs written with careless white space are formatted as clang-format formats them.

Each line of an emitted program gets some indentation or none, and what is on several lines is joined or broken at
other positions. Directives stay, and so do tables that clang-format leaves alone, and single lines of lists."""

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))
from compilers import formatted, report  # noqa: E402

SEED = int(os.environ.get("SEED", 0))
CUDA = ["--set", "devices.kind=cuda", "--set", "precision.mixed_precision=bf16"]
JOBS = {"gpt2": [], "t5": [], "resnet": [], "mixtral": [], "gru": [], "vit": CUDA, "llama": CUDA, "mamba": CUDA}
KEPT = re.compile(r"/\* clang-format off \*/.*?/\* clang-format on \*/|^#(?:\\\n|[^\n])*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"", re.M | re.S)


def careless(text, rng):
    """The text with other white space wherever that is between two tokens of a statement or before a line."""
    unchanged = []

    def keep(match):
        unchanged.append(match[0])
        return f"\x00{len(unchanged) - 1}\x01"

    text = KEPT.sub(keep, text)
    text = re.sub(r"(?<=[(\[])\n +", "", text)                                       # broken after a bracket: joined
    text = re.sub(r"(?<=[,=+*/?&|-])\n +(?![ \[{.\x00]|[A-Z]+\()", " ", text)             # broken elsewhere: joined
    text = re.sub(r"(?<=[^\s{}\d]), (?=[a-z(*&][^;{}\n]*\))", lambda _: rng.choice([", ", ",\n", ",\n\n  "]), text)
    text = re.sub(r"^[ ]*(?=\S)", lambda _: " " * rng.randrange(9), text, flags=re.M)
    text = re.sub(r"^ +(?=\x00\d+\x01(?:\n|$))", "", text, flags=re.M)
    return re.sub("\x00(\\d+)\x01", lambda match: unchanged[int(match[1])], text)


def format_program(text):
    return subprocess.run([TREE / "build/tests/format/format_driver"], input=text, capture_output=True, text=True, check=True).stdout


def differences(text, rng):
    """Yields (what, None or why it failed)."""
    yield from formatted(text)
    yield "stays as it is", None if format_program(text) == text else "it changes"
    written = careless(text, rng)
    again = format_program(written)
    pairs = zip(text.splitlines(), again.splitlines())
    first = next((f"{ours}\n{theirs}" for ours, theirs in pairs if ours != theirs), "the end")
    yield "is the same from careless text", None if again == text and written != text else first


def main():
    failed = 0
    rng = random.Random(SEED)
    print(f"# SEED={SEED}")
    with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
        for job, flags in JOBS.items():
            out = Path(folder) / f"{job}.c"
            subprocess.run([TREE / "build/accel-gen", TREE / f"examples/jobs/{job}.yaml", *flags, "-o", out], check=True, capture_output=True)
            for half in sorted(Path(folder).glob(f"{job}.c*")):
                failed += report(half.name, differences(half.read_text(), rng))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
