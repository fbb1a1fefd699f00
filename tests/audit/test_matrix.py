"""Every claim of the audit holds for every program of the matrix, a quarter of which a run takes by SEED (tests/program/rotation.py), for what
ranks of every kind do together, and for the examples. TAP. --all, as `ninja soak` has it: the whole matrix."""

import json
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "program"), str(TREE / "tests" / "parallel")]

from harness import GENERATOR  # noqa: E402
from matrix import CASES  # noqa: E402
from ranks import job_of  # noqa: E402
from rotation import SEED, in_turn  # noqa: E402

# What is open: functions of the user's own.
OPEN = {"hooks": {"runtime-alone"}}
CLAIM = re.compile(r"^  (holds|broken|cannot tell) +(\S+)", re.M)
RANKS = {
    "zero_stage 1": {"parallelism": {"dp_shard": 4, "zero_stage": 1}},
    "zero_stage 3": {"parallelism": {"dp_shard": 4, "zero_stage": 3}, "accumulation": {"num_steps": 2}},
    "two grids": {"parallelism": {"dp_replicate": 2, "dp_shard": 2, "zero_stage": 3}},
    "local steps": {"parallelism": {"local_sgd_steps": 2}, "training": {"eval_interval": 2}},
    "power_sgd": {"parallelism": {"ddp": {"comm_hook": "power_sgd"}}},
    "tensor parallelism": {"parallelism": {"tp": 2, "dp_replicate": 2}},
    "sequence parallelism": {"parallelism": {"sp": 2}},
    "context parallelism": {"parallelism": {"cp": 2}},
    "reproducible": {"parallelism": {"reproducible": "topology"}},
}

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
    print(f"# SEED={SEED}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        for number, case in in_turn(enumerate(CASES), 4):
            (folder / "job.yaml").write_text(json.dumps(case.job))
            march = PROCESSORS[number % len(PROCESSORS)]
            failed += check(f"{case.name} {march}", audit("job.yaml", folder, case.program, march))
        for name, groups in RANKS.items():
            (folder / "job.yaml").write_text(json.dumps(job_of(4, 3, 4, **groups)))
            failed += check(name, audit("job.yaml", folder))
        for job in sorted((TREE / "examples" / "jobs").glob("*.yaml")):
            why = audit(job, folder)
            open_claims = {claim for verdict, claim in CLAIM.findall(why or "") if verdict == "cannot tell"}
            broken = why and ("broken  " in why or "error" in why)
            failed += check(job.name, why if broken or open_claims != OPEN.get(job.stem, set()) else None)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
