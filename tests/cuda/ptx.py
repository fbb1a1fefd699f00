"""Programs for GPUs as nvcc compiles them, to PTX, which the stand-ins' interpreter runs (tests/cuda/standin/ptx)."""

import functools
import subprocess

from host import TREE, HostTrainer, compile_all

PARTS = [TREE / "build" / "libaccel-nccl.a", TREE / "build" / "libaccel-tcp.a", TREE / "build" / "libaccel-cuda.a",
         TREE / "build" / "libaccel-standin.a", TREE / "build" / "libaccel-ptx.a", TREE / "build" / "lib" / "ptx.a",
         TREE / "build" / "libaccel-gen.a", TREE / "build" / "libaccel-runtime.a", TREE / "build" / "libaccel-runtime" / "base.a"]


@functools.cache
def nvcc():
    """The compiler; None: there is none here."""
    found = subprocess.run(["sh", TREE / "tools" / "cuda-toolkit.sh", "--nvcc"], capture_output=True, text=True)
    return found.stdout.strip() or None


class PtxTrainer(HostTrainer):
    """A job for GPUs whose kernels nvcc compiles to PTX."""

    def __init__(self, job, architecture="80", program="train"):
        super().__init__(job, PARTS, program=program)
        self.architecture = architecture

    def build(self, edit=lambda text: text):
        """`edit`: what the text of the kernels becomes before it is compiled."""
        self.generate("--program", self.kind)
        program, include, architecture = self.folder / "trainer", f"-I{TREE / 'include'}", self.architecture
        kernels = program.with_suffix(".cu")
        kernels.write_text(edit(kernels.read_text()))
        compile_all(["gcc", "-std=c17", "-O1", include, "-c", f"{program}.c", "-o", f"{program}.o"],
                    [nvcc(), "-std=c++17", "-O3", "-lineinfo", "--compress-mode", "none", f"-gencode=arch=compute_{architecture},code=compute_{architecture}",
                     include, "-c", kernels, "-o", f"{program}.kernels.o"])
        self.link()
        return program
