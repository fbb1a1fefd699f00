"""Every claim of the audit holds for every program of the matrix, and for GPT-2 124M's trainer. TAP."""

import json
import pathlib
import platform
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import GENERATOR  # noqa: E402
from matrix import CASES  # noqa: E402


# What programs ask the preprocessor is which vectors there are.
PROCESSORS = ["x86-64", "x86-64-v3", "x86-64-v4"] if platform.machine() == "x86_64" else ["native"]


def audit(job, folder, program="train", march="native"):
    """Why the audit of the job's program finds something; None when all claims hold."""
    written = subprocess.run([GENERATOR, job, "-o", "program.c", "--program", program], cwd=folder, capture_output=True,
                             text=True)
    if written.returncode != 0:
        return written.stderr
    result = subprocess.run([GENERATOR, "audit", "program.c", "--march", march], cwd=folder, capture_output=True, text=True)
    return None if result.returncode == 0 else result.stdout + result.stderr


def check(name, why):
    print(f"{'not ok' if why else 'ok'} {name}", flush=True)
    for line in (why or "").splitlines():
        if "  holds " not in line:
            print(f"  {line}")
    return why is not None


def main():
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        for number, case in enumerate(CASES):
            (folder / "job.yaml").write_text(json.dumps(case.job))
            march = PROCESSORS[number % len(PROCESSORS)]
            failed += check(f"{case.name} {march}", audit("job.yaml", folder, case.program, march))
        failed += check("gpt2 124M", audit(TREE / "examples" / "jobs" / "gpt2.yaml", folder))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
