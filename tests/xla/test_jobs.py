"""The jobs of examples/jobs with devices.kind xla: which are planned and which are refused, as the table of docs/xla.md says. TAP; no
plugin is needed."""

import os
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "build"))

from tap import GENERATOR, finish, report  # noqa: E402


def table():
    """What the page says of each job: "are trained" or "refused: ..."."""
    text = (TREE / "docs" / "xla.md").read_text()
    rows = re.findall(r"^\| (`[a-z0-9_`, ]+`) \| ((?:are trained|refused).*) \|$", text[text.index("## What is refused"):], re.M)
    return {name: said for names, said in rows for name in re.findall(r"`(\w+)`", names)}


def plan(name):
    return subprocess.run([GENERATOR, "plan", TREE / "examples" / "jobs" / f"{name}.yaml", "--set", "devices.kind=xla"], capture_output=True,
                          text=True, check=False, env={**os.environ, "PJRT_PLUGIN_LIBRARY_PATH": "/nowhere/plugin.so"})


def wrong(name, said):
    done = plan(name)
    if said == "are trained":
        return [] if done.returncode == 0 else [done.stderr]
    located = re.search(r"^\S+:\d+:\d+: error: .*(cannot be written in StableHLO|does not go with devices.kind 'xla')", done.stderr, re.M)
    return [] if done.returncode == 2 and located else [f"{done.returncode}: {done.stderr}"]


def main():
    said = table()
    jobs = {path.stem for path in (TREE / "examples" / "jobs").glob("*.yaml")}
    report("each job is in the table", sorted(jobs ^ said.keys()))
    for name in sorted(jobs & said.keys()):
        report(f"{name}: {said[name]}", wrong(name, said[name]))
    finish()


if __name__ == "__main__":
    main()
