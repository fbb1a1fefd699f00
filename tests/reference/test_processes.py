"""Who is who, who does what and who goes first, and what loggers write, against Accelerate's PartialState and get_logger:
the same program of one, two and three processes in C and in Python."""

import logging
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

from accelerate.logging import get_logger
from accelerate.state import PartialState

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "parallel"))

from ranks import free_port, library_flags, start  # noqa: E402


def peer(path):
    """What programs/run_processes.c does."""
    logging.basicConfig()
    state = PartialState(cpu=True)
    logger = get_logger("who", log_level="INFO")

    def say(what):
        logger.info(what, main_process_only=False)

    def come(what):
        with open(path, "a") as file:
            file.write(f"{what} {int(state.process_index == 0)}\n")

    logger.info("%d %d %d %d %d %d %s %s", state.process_index, state.num_processes, state.local_process_index,
                state.is_main_process, state.is_local_main_process, state.is_last_process,
                state.distributed_type.value, state.device.type, in_order=True)
    state.on_main_process(say)("main")
    state.on_local_main_process(say)("local main")
    state.on_last_process(say)("last")
    state.on_process(say, process_index=1)("process 1")
    state.on_local_process(say, local_process_index=1)("local process 1")
    with state.main_process_first():
        come("first")
    state.wait_for_everyone()
    with state.local_main_process_first():
        come("local first")
    logger.warning("of %s", "main")
    logger.debug("below the level", main_process_only=False)
    logger.error("of all", main_process_only=False)
    logger.critical("in order", in_order=True)
    for _ in range(3):
        logger.warning_once("once")
    state.destroy_process_group()


class Processes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        source = TREE / "tests/reference/programs/run_processes.c"
        for name, package in (("alone", "accel-runtime"), ("ranks", "accel-runtime-mpi")):
            subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c17", "-O1", "-Wall", "-Wextra", "-Werror",
                            "-I", TREE, source, "-o", cls.folder / name, *library_flags("--libs", package=package)], check=True)

    def peers(self, ranks):
        """What the processes of Accelerate write on standard error."""
        port, processes = str(free_port()), []
        for rank in range(ranks):
            process = os.fork()
            if process == 0:
                os.dup2(os.open(self.folder / f"errors{ranks}.{rank}", os.O_WRONLY | os.O_CREAT), 2)
                if ranks > 1:
                    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                                      MASTER_ADDR="127.0.0.1", MASTER_PORT=port, OMP_NUM_THREADS="1")
                signal.alarm(60)
                peer(self.folder / f"python{ranks}")
                os._exit(0)
            processes.append(process)
        for process in processes:
            self.assertEqual(os.waitpid(process, 0)[1], 0)
        return "".join((self.folder / f"errors{ranks}.{rank}").read_text() for rank in range(ranks))

    def lines(self, text):
        return sorted(line for line in text.splitlines() if ":who:" in line)

    def check(self, ranks):
        out = str(self.folder / f"c{ranks}")
        written = self.folder / f"errors{ranks}"  # by all: what mpirun collects of several it may mix
        words = ["-c", 'exec "$0" "$1" 2>>"$2"', self.folder / ("ranks" if ranks > 1 else "alone"), out, written]
        done = start("sh", ranks, *words) if ranks > 1 else subprocess.run(["sh", *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        ours, theirs = self.lines(written.read_text()), self.lines(self.peers(ranks))
        self.assertEqual(ours, theirs)
        self.assertEqual(len([line for line in ours if "in order" in line]), ranks)
        for name in ("c", "python"):
            came = (self.folder / f"{name}{ranks}").read_text().splitlines()
            self.assertEqual(came, [f"{what} {int(i == 0)}" for what in ("first", "local first") for i in range(ranks)])
        in_order = [line for line in written.read_text().splitlines() if "in order" in line]
        self.assertEqual(in_order, [f"CRITICAL:who:[RANK {i}] in order" for i in range(ranks)])

    def test_one(self):
        self.check(1)

    def test_two(self):
        self.check(2)

    def test_three(self):
        self.check(3)


if __name__ == "__main__":
    unittest.main()
