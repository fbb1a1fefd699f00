"""Programs for GPUs on the processor: the emitted host program and its kernels, built with the header of tests/cuda/host in
the position of the toolkit's. What runs is the text that nvcc, or hipcc, would compile."""

import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
HOST = TREE / "tests" / "cuda" / "host"
sys.path.insert(0, str(TREE / "tests" / "parallel"))

from ranks import GENERATOR, Ranks, Trainer, free_port  # noqa: E402

OUT = pathlib.Path(tempfile.mkdtemp(prefix="accel-cuda-"))  # of this Python: others make the same at the same time
atexit.register(shutil.rmtree, OUT, ignore_errors=True)
C = ["-std=c17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# A kernel gets all operands of its launcher, used or not.
CXX = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-parameter",
       "-Wno-maybe-uninitialized"]  # gcc does not see that both loops end at the same column
LIBS = (GENERATOR.parent / "config" / "runtime.libs").read_text().split()  # that this machine has, of the runtime


@functools.cache
def headers():
    """A folder <accel/...> with the host's launch.h instead of the runtime's."""
    folder = OUT / "host" / "include" / "accel"
    (folder / "gpu").mkdir(parents=True)
    include = TREE / "include" / "accel"
    wanted = {path.name: path for path in include.glob("*.h")}
    wanted |= {f"gpu/{path.name}": path for path in (include / "gpu").glob("*.h")}
    wanted["gpu/launch.h"] = HOST / "accel" / "gpu" / "launch.h"
    for name, path in wanted.items():
        (folder / name).symlink_to(path)
    for path in HOST.glob("*.h"):
        (folder.parent / path.name).symlink_to(path)
    return f"-I{folder.parent}"


def compile_all(*commands):
    running = [(command, subprocess.Popen([str(word) for word in command])) for command in commands]
    for command, process in running:
        if process.wait() != 0:
            raise AssertionError(f"failed: {' '.join(map(str, command))}")


@functools.cache
def alone():
    """Objects of what kernels need that a test calls itself."""
    sources = [HOST / "threads.cc", HOST / "at_once.cc"]
    made = [OUT / f"{source.stem}.alone.o" for source in sources]
    compile_all(*(["g++", *CXX, "-fPIC", headers(), "-c", source, "-o", to] for source, to in zip(sources, made)))
    return made


# The runtime's part for a kind of GPUs, and the stand-ins of its libraries: HIP's are over those of CUDA.
LIBRARIES = {"cuda": ["nccl", "tcp", "cuda", "standin", "runtime"], "hip": ["hip", "hip-standin", "standin", "runtime"]}


@functools.cache
def objects(device="cuda"):
    """What stands for the GPU: threads, launches; and for the device's libraries, below the runtime's own part for it."""
    include, out = headers(), OUT / "host"
    sources = [HOST / "threads.cc", HOST / "launches.cc"]
    compile_all(*(["g++", *CXX, "-O2", include, "-c", source, "-o", out / (source.name + ".o")] for source in sources))
    return [*(out / (source.name + ".o") for source in sources),
            *(TREE / "build" / f"libaccel-{name}.a" for name in LIBRARIES[device])]


class HostTrainer(Trainer):
    """A job for GPUs whose kernels run on the processor. watched: each access of host and kernels is seen
    by the stand-ins, which check that streams wait for each other."""

    device, ending = "cuda", "cu"  # devices.kind, and what the name of the kernels' file ends with

    def __init__(self, job, parts, watched=False, program="train", folder=None):
        super().__init__({**job, "devices": {**job.get("devices", {}), "kind": self.device}}, folder)
        self.parts = parts
        self.kind = program
        self.flags = ["-fsanitize=thread"] if watched else []

    def build(self):
        self.generate("--program", self.kind)
        source, program, include = self.folder / "trainer.c", self.folder / "trainer", headers()
        compile_all(["gcc", *C, *self.flags, include, "-c", source, "-o", f"{program}.o"],
                    *(["gcc", "-std=c17", include, "-c", path, "-o", f"{path}.o"] for path in self.hooks()),
                    ["g++", *CXX, *self.flags, "-x", "c++", include, "-c", f"{program}.{self.ending}", "-o", f"{program}.kernels.o"])
        self.link()
        return program

    def rebuild(self, text):
        """The program with another host's half."""
        (self.folder / "trainer.c").write_text(text)
        compile_all(["gcc", *C, "-Wno-unused", *self.flags, headers(), "-c", self.folder / "trainer.c", "-o",
                     self.folder / "trainer.o"])
        self.link()

    def hooks(self):
        return [self.folder / self.job["hooks"]["source"]] if "hooks" in self.job else []

    def link(self):
        program = self.folder / "trainer"
        own = [f"{path}.o" for path in self.hooks()]
        compile_all(["g++", f"{program}.o", f"{program}.kernels.o", *own, *self.parts, "-o", program, "-ljansson", "-ldnnl", "-lsqlite3",
                     "-fopenmp", "-lm", *LIBS])

    def run(self, *flags, **environment):
        ranks = self.job["devices"].get("per_node", 1)
        if ranks == 1:
            return super().run(*flags, **environment)
        self.start(ranks, *flags, **environment)
        return [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]

    def start(self, ranks, *flags, **environment):
        """What each rank has said, when all have ended well."""
        meeting = {**os.environ, **environment, "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                   "OMP_NUM_THREADS": "1"}
        running = [subprocess.Popen([self.folder / "trainer", *flags], cwd=self.folder, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True,
                                    env={**meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]
        said = [process.communicate(timeout=300)[0] for process in running]
        if any(process.returncode != 0 for process in running):
            raise AssertionError("the ranks failed:\n" + "\n".join(said))
        return said


def without(text, call):
    """The program without one of the runtime's calls."""
    left, count = re.subn(rf"^ *{call}\(.*?\);\n", "", text, flags=re.MULTILINE | re.DOTALL)
    assert count > 0, f"the program does not call {call}"
    return left


__all__ = ["HostTrainer", "Ranks", "Trainer", "objects", "without", "GENERATOR", "TREE"]
