"""Programs for GPUs as nvcc compiles them, to PTX, which the stand-ins' interpreter runs (tests/cuda/standin/ptx)."""

import functools
import hashlib
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from host import TREE, HostTrainer, compile_all

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # tests/parallel has files of the same names
INCLUDE = f"-I{TREE / 'include'}"
PARTS = [TREE / "build" / "libaccel-nccl.a", TREE / "build" / "libaccel-tcp.a", TREE / "build" / "libaccel-cuda.a",
         TREE / "build" / "libaccel-standin.a", TREE / "build" / "libaccel-ptx.a", TREE / "build" / "lib" / "ptx.a",
         TREE / "build" / "libaccel-gen.a", TREE / "build" / "libaccel-runtime.a", TREE / "build" / "libaccel-runtime" / "base.a"]


@functools.cache
def nvcc():
    """The compiler; None: there is none here."""
    found = subprocess.run(["sh", TREE / "tools" / "cuda-toolkit.sh", "--nvcc"], capture_output=True, text=True)
    return found.stdout.strip() or None


@functools.cache
def headers():
    """What the kernels' text includes, and who compiles it."""
    paths = sorted((TREE / "include" / "accel").rglob("*.h"))
    return subprocess.check_output([nvcc(), "--version"]) + b"".join(path.read_bytes() for path in paths)


def digest(*texts):
    return hashlib.sha256(b"\0".join([headers(), *(text.encode() for text in texts)])).hexdigest()[:16]


def path_of(folder, name, architecture, source):
    return folder / f"{name}.{architecture}.{digest(source.read_text())}.ptx"


def kept(folder, name, architecture, source):
    """The path of the PTX of a program's kernels; what the folder has of the same text is not compiled again."""
    path = path_of(folder, name, architecture, source)
    if not path.exists():
        made = path.with_suffix(".made")
        compile_all([nvcc(), "-std=c++17", "-O3", "-w", "-lineinfo", f"-arch=compute_{architecture}", INCLUDE, "-ptx", source, "-o", made])
        made.rename(path)
    return path


def keep(folder, name, trainer):
    """Leaves the PTX in the kernels' object of a trainer that is built where kept() finds it."""
    within = (trainer.folder / "trainer.kernels.o").read_bytes()
    begin = within.index(b".version ")
    path = path_of(folder, name, trainer.architecture, trainer.folder / "trainer.cu")
    path.write_bytes(within[begin:within.index(b"\0", begin)])


def members_of(body, structs, before=""):
    """The arrays in the body of a struct, each by its path: "scratch.forward.a", "saved.block[3].x"."""
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    while body.strip():
        inner = re.match(r"\s*(?:union|struct) \{", body)
        if inner:  # to its closing brace
            depth, end = 1, inner.end()
            while depth > 0:
                depth += {"{": 1, "}": -1}.get(body[end], 0)
                end += 1
            name, rest = re.match(r"\s*(\w*);(.*)", body[end:], re.DOTALL).groups()
            yield from members_of(body[inner.end():end - 1], structs, f"{before}{name}." if name else before)
            body = rest
            continue
        kind, names, body = re.match(r"\s*(?:alignas\(\w+\) )?((?:struct )?\w+) ([^;]*);(.*)", body, re.DOTALL).groups()
        for name in names.split(", "):
            if "*" in name or kind.removeprefix("struct ") not in structs:
                name = name.replace("*", "")
                yield before + name.split("[")[0]
                rows = re.search(r"\[(\d+)\]\[", name)
                for i in range(int(rows[1])) if rows else []:
                    yield f"{before}{name.split('[')[0]}[{i}]"
                continue
            count = re.search(r"\[(\d+)\]", name)
            for i in range(int(count[1])) if count else [None]:
                yield from members_of(structs[kind.removeprefix("struct ")], structs, f"{before}{name.split('[')[0]}{'' if i is None else f'[{i}]'}.")


def with_operations(text):
    """Kernels' text whose functions that launch say so (standin/operation.h). Lines keep their numbers."""
    def begin(found):
        return f'{found[1]} standin_operation of("{found[2]}");{found[3]}' if "accel_launch" in found[3] else found[0]

    return re.sub(r'^(extern "C" void (\w+)\([^)]*\) \{)(\n.*?^\}\n)', begin, text, flags=re.MULTILINE | re.DOTALL)


def write_arrays(program):
    """A file with the offset and the bytes of each array of a program's arena, as the compiler places them."""
    text = program.with_suffix(".c").read_text()
    text = text[:text.index("static struct arena *arena;")]
    structs = dict(re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.MULTILINE | re.DOTALL))
    paths = list(members_of(structs["arena"], structs))
    lines = [f'  printf("%zu %zu {path}\\n", offsetof(struct arena, {path}), sizeof ((struct arena *)0)->{path});\n' for path in paths]
    source, made = program.with_name("arrays.c"), program.with_name("arrays")
    source.write_text(f"{text}#include <stdio.h>\nint main(void) {{\n{''.join(lines)}}}\n")
    compile_all(["gcc", "-std=c17", "-w", f"-I{TREE / 'include'}", source, "-o", made])
    listed = program.with_name("arrays.txt")
    listed.write_text(subprocess.check_output([made], text=True))
    return listed


class PtxTrainer(HostTrainer):
    """A job for GPUs whose kernels nvcc compiles to PTX for `architecture`. Every access is seen, whether `watched` or not."""

    architecture = "80"

    def __init__(self, job, parts=None, watched=False, program="train", folder=None):
        super().__init__(job, parts or PARTS, program=program, folder=folder)

    def build(self, *edits, host=None):
        """`edits`: (the name of a header of accel/gpu or trainer.cu, a text in it, the text in its place) each, before
        the kernels are compiled. host: a trainer of the same job that is built, whose half for the host this one has, too."""
        self.generate("--program", self.kind)
        program = self.folder / "trainer"
        kernels, headers = program.with_suffix(".cu"), self.edit(self.folder, edits)
        text = kernels.read_text()
        kernels.write_text(with_operations(text))
        if host is not None:
            shutil.copy(host.folder / "trainer.o", f"{program}.o")
        compile_all(*[["gcc", "-std=c17", "-O1", INCLUDE, "-c", f"{program}.c", "-o", f"{program}.o"]] * (host is None),
                    *(["gcc", "-std=c17", INCLUDE, "-c", path, "-o", f"{path}.o"] for path in self.hooks()),
                    [*self.compiler(headers), "--compress-mode", "none", f"-gencode=arch=compute_{self.architecture},code=compute_{self.architecture}",
                     "-c", kernels, "-o", f"{program}.kernels.o"])
        kernels.write_text(text)  # as it was emitted
        self.link()
        self.arrays = write_arrays(program) if host is None else host.arrays
        return program

    def compiler(self, headers):
        return [nvcc(), "-std=c++17", "-O3", "-lineinfo", "-include", TREE / "tests" / "cuda" / "standin" / "operation.h", *headers, INCLUDE]

    def edit(self, folder, edits):
        """Edits of the kernels' text there, and of headers in a copy of all of them, which comes before the tree's: its flag."""
        headers = []
        for name, old, new in edits:
            path = folder / name
            if path.suffix == ".h":
                if not headers:
                    shutil.copytree(TREE / "include" / "accel", folder / "accel")
                headers, path = [f"-I{folder}"], folder / "accel" / "gpu" / name
            text = path.read_text()
            assert old in text, f"{name} has no {old!r}"
            path.write_text(text.replace(old, new))
        return headers

    def kernels_with(self, edit):
        """The PTX of this program, which is built, with an edit of what runs on the device, for STANDIN_PTX; None: the edit is
        of how kernels are launched."""
        name, old, _ = edit
        before = (self.folder / "trainer.cu").read_text().partition(old)[0]
        if name == "trainer.cu" and before.rfind("namespace device {") <= before.rfind("} // namespace device"):
            return None
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copy(self.folder / "trainer.cu", folder)
        headers = self.edit(folder, [edit])
        compile_all([*self.compiler(headers), f"-arch=compute_{self.architecture}", "-ptx", folder / "trainer.cu", "-o", folder / "trainer.ptx"])
        return folder / "trainer.ptx"

    def settings(self):
        """What the stand-ins are told of the program."""
        return {"STANDIN_ARCH": self.architecture.rstrip("a"), "STANDIN_ARRAYS": str(self.arrays)}

    def run(self, *flags, **environment):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        rows = super().run(*flags, **self.settings(), **environment)
        self.seconds = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) / max(len(rows), 1)
        print(f"# {len(rows)} steps, {self.seconds:.2f} s of a processor a step", file=sys.stderr)
        return rows

    def start(self, ranks, *flags, **environment):
        return super().start(ranks, *flags, **{**self.settings(), **environment})
