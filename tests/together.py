"""Runs files of tests one by one, each in a process that is forked from this one, which has imported what imports.py of their folder
names: PyTorch and transformers take seconds of processors to import.

usage: together.py FILE...   tests/GROUP/test_NAME.py, all of one folder

A file has what run_one.sh gives it: a folder for temporary files, the limits of limited.sh, a log; run_one.sh counts and reports what it
said. What the imports took is counted with the first file.
"""

import atexit
import gc
import os
import pathlib
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

LIMITS = ("600", "3600")  # seconds of processors and of the clock, as in run_one.sh
LOGS = pathlib.Path("build/tests/logs")


def status_of(file):
    """Does what `python FILE` does up to its exit status."""
    try:
        runpy.run_path(str(file.resolve()), run_name="__main__")  # absolute, as python has __file__
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def run_here(file, log):
    """Runs the file in a session of its own, and ends without taking apart what was imported, which takes seconds."""
    os.setsid()
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        signal.signal(number, handler)
    nothing, out = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND)
    for source, target in ((nothing, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    tempfile.tempdir = None  # where TMPDIR says, whatever an import has asked for
    sys.argv, sys.path[0] = [str(file)], str(file.resolve().parent)
    status = status_of(file)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def pass_signals_on(child):
    """Who ends this process ends the file's processes, too."""
    def end(number, _frame):
        os.killpg(child, signal.SIGTERM)
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)


def ended(child, log):
    """The exit status of a file's process once it has ended, and its seconds of processors."""
    with log.open("a") as said:
        watcher = subprocess.Popen(["sh", "tests/limited.sh", *LIMITS, "--session", str(child)], stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    _, status, used = os.wait4(child, 0)
    if os.WIFSIGNALED(status):  # perhaps the watcher's
        try:
            watcher.wait(15)
        except subprocess.TimeoutExpired:
            pass
    stopped = watcher.poll()
    watcher.kill()
    watcher.wait()
    return stopped or os.waitstatus_to_exitcode(status) % 256, used.ru_utime + used.ru_stime


def run(file, imported):
    """Runs a file and reports it. In the process of the file it does not return."""
    name = f"{file.parent.relative_to('tests')}/{file.stem}"
    log, start = LOGS / f"{name.replace('/', '-')}.log", time.monotonic()
    log.write_text("")
    folder = os.environ["TMPDIR"] = tempfile.mkdtemp(dir=BEFORE)
    os.chmod(folder, 0o755)  # others than its user may look for theirs there
    child = os.fork()
    if child == 0:
        run_here(file, log)
    pass_signals_on(child)
    status, work = ended(child, log)
    shutil.rmtree(folder, ignore_errors=True)
    figures = (f"{seconds:.2f}" for seconds in (time.monotonic() - start, work + imported))
    subprocess.run(["sh", "tests/run_one.sh", "--report", name, str(status), *figures], check=True)


def main(files):
    start = time.process_time()
    runpy.run_path(str(files[0].parent / "imports.py"))
    imported = time.process_time() - start
    gc.collect()
    gc.freeze()  # so that no process of a file looks through them, nor copies their pages
    for file in files:
        run(file, imported)
        imported = 0
    os._exit(0)


if __name__ == "__main__":
    BEFORE = tempfile.gettempdir()
    main([pathlib.Path(word) for word in sys.argv[1:]])
