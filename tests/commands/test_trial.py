"""`accel-gen test`: what it proves of two ranks; that it notices ranks that go wrong, by an mpirun that damages what they leave; that
nothing is left of it, also after a signal. TAP."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("build", "runtime")]

from pseudo_terminal import Terminal  # noqa: E402
from tap import GENERATOR, finish, report  # noqa: E402

DAMAGE = r"""#!/bin/sh
mpirun=$(PATH=${PATH#*:} command -v mpirun)
"$mpirun" "$@" || exit
case $* in
*resumed*) printf x | dd of=resumed/model.safetensors bs=1 seek=2000 conv=notrunc 2>/dev/null ;;
*) sed -i '3s/"loss": *[0-9.]*/"loss":4.5/' run/metrics.jsonl && sed -i 's/^reduce 0/reduce 1/' run/collectives.txt ;;
esac
"""
PASSED = {"build": "a trainer for 2 ranks, and one for one process", "audit": "hold, 0 broken", "run": "6 of 6 steps", "ranks": "2 of 2, on ",
          "collectives": "gather, reduce, mean, broadcast, pad_across_processes, gather_object", "losses": "6 steps as in one process",
          "resume": "losses, weights and states of the optimizer have the same bits"}


def environment(folder):
    return os.environ | {"TMPDIR": folder, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def trial(folder, *flags, **variables):
    done = subprocess.run([GENERATOR, "test", "--ranks", "2", "--by", "mpirun", *flags], capture_output=True, text=True, cwd=folder,
                          env=environment(folder) | variables, timeout=600, check=False)
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if line.startswith("  ") and line[2] != " "}
    return done, lines


def left(folder):
    """What is in it, but for what Open MPI leaves of its own."""
    return [path.name for path in pathlib.Path(folder).iterdir() if not path.name.startswith(("ompi.", "openmpi-", "pmix", "bin"))]


def main():
    with tempfile.TemporaryDirectory() as folder:
        done, lines = trial(folder)
        wrong = [f"{name}: {lines.get(name)}" for name, words in PASSED.items() if lines.get(name, [""])[0] != "ok" or words not in lines[name][1]]
        report("two ranks pass all checks", wrong if done.returncode == 0 else [done.stdout + done.stderr])
        mpirun = pathlib.Path(folder) / "bin" / "mpirun"
        mpirun.parent.mkdir()
        mpirun.write_text(DAMAGE)
        mpirun.chmod(0o755)
        done, lines = trial(folder, "--quiet", PATH=f"{mpirun.parent}:{os.environ['PATH']}")
        failed = {name for name, (verdict, *_) in lines.items() if verdict == "FAILED"}
        wrong = [] if done.returncode == 1 and failed == {"collectives", "losses", "resume"} else [done.stdout + done.stderr]
        report("what ranks do wrong fails", wrong + ([] if "wrong: reduce on 1 rank" in done.stdout else [lines.get("collectives")]))
        report("a quiet test prints what fails alone", [] if set(lines) == failed and "accel-gen test:" not in done.stdout else [done.stdout])
        done, lines = trial(folder, CC="/none/cc")
        report("a machine without a compiler fails", [] if done.returncode == 1 and lines["build"][0] == "FAILED" and "/none/cc" in done.stdout else [done.stdout])
        terminal = Terminal([GENERATOR, "test"], cwd=folder, **environment(folder))
        shown = terminal.read_until(rb"\r\x1b\[K  build        running, \d+ s")
        report("a terminal shows what it does and for how long", [] if shown else [terminal.drawn])
        terminal.process.send_signal(signal.SIGTERM)
        status = terminal.end()[0]
        report("a signal ends it", [] if status == 128 + signal.SIGTERM else [status])
        report("nothing is left", left(folder))
    finish()


if __name__ == "__main__":
    main()
