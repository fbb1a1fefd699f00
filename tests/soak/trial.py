"""One drawn job with its model, tried: generated, compiled, audited, run, resumed, evaluated, and let write."""

import functools
import json
import os
import re
import shutil
import struct
import subprocess
import sys

import jobs
import meshes
import models
import numpy as np
from jobs import TREE, keys

sys.path.insert(0, str(TREE / "tests" / "parallel"))
sys.path.insert(0, str(TREE / "tests" / "cuda"))

from harness import GENERATOR, TIMES  # noqa: E402
from matrix import tool  # noqa: E402
from ranks import MPI, free_port, library_flags  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Werror"]
ARCH = {"native": "native", "x86-64-v3": "x86-64-v3", "avx512": "x86-64-v4", "avx512-bf16": "cooperlake", "amx": "sapphirerapids"}
HERE = ("native", "x86-64-v3")  # programs of these run on every machine that tests run on
# On GPUs a job that is not deterministic may have convolutions whose sums vary (tests/cuda/test_ranks.py); here they do not,
# so that the bits of a resumed run show everything else.
ENVIRONMENT = {"OMP_WAIT_POLICY": "passive", "STANDIN_VARIES": "0"}
NEVER = 120  # seconds: what takes longer hangs
PACKAGE = re.compile(r"accel-runtime[\w-]*")  # in the line of a program that says how to build it
RANKS = re.compile(r"from each of (\d+) ranks")  # in its line of traffic
DIVERGED = re.compile(r"(infinite or not a number|not finite|is -?nan|is -?inf)")


class Failed(Exception):
    """What broke a promise: at which stage, and what was said."""

    def __init__(self, stage, said):
        super().__init__(f"{stage}: {said}")
        self.stage, self.said = stage, said

    def kind(self):
        """The same for the same cause: the first line that names an error, without what differs from draw to draw."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        line = next((line for line in lines if re.search(r"error|broken|assert|differs|signal", line)), lines[0] if lines else "")
        line = re.sub(r"^\S+:\d+:\d+: ", "", line)
        return self.stage + ": " + re.sub(r"[\w.]*\d[\w.]*|0x\w+|'[^']*'|‘[^’]*’", "N", line)[:150]


class Refused(Exception):
    """The generator said no, with messages."""

    def __init__(self, said):
        super().__init__(said)
        self.said = said
        self.placed = re.search(r"^\S+:\d+:\d+: (error|note): ", said, re.M) is not None


def write_data(folder):
    """The files that jobs.SOURCES names."""
    rng = np.random.default_rng(5)
    corpus = rng.integers(97, 123, 400).astype(np.uint8)
    (folder / "corpus.txt").write_bytes(corpus.tobytes())
    (folder / "more.txt").write_bytes(corpus[::-1].tobytes())
    tokens = corpus.astype("<u2")
    (folder / "tokens.u16").write_bytes(tokens.tobytes())
    (folder / "llmc.bin").write_bytes(struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253) + tokens.tobytes())
    np.save(folder / "tokens.npy", tokens)
    documents = [f"d{i}.txt" for i in range(12)]
    for name in documents:
        (folder / name).write_bytes(rng.integers(97, 123, rng.integers(1, 40)).astype(np.uint8).tobytes())
    subprocess.run([GENERATOR, "data", *documents, "-o", "all.tok"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    rows = rng.normal(size=(40, models.FEATURES)).astype(np.float32).round(3)
    labels, values = rng.integers(models.CLASSES, size=40), rng.normal(size=40).round(3)
    for name, of in (("rows", labels), ("values", values), ("rows2", labels[::-1])):
        lines = (",".join(map(str, [*row.tolist(), label])) for row, label in zip(rows, of.tolist()))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    np.save(folder / "rows.npy", rows)
    np.save(folder / "labels.npy", labels.astype(np.int64))
    np.save(folder / "values.npy", values.astype(np.float32))
    shutil.copy(TREE / "tests" / "soak" / "hooks.c", folder)


@functools.cache
def flags(words, package):
    return library_flags(words, package=package)


def said_by(result):
    return result.stdout + result.stderr


class Trial:
    def __init__(self, model, job, folder, optimize="-O0"):
        self.model, self.job, self.folder, self.optimize = model, job, folder, optimize
        self.counts = dict.fromkeys(("accepted", "compiled", "audited", "run", "resumed", "evaluated", "written", "compared", "diverged"), 0)
        self.ranks = job.get("devices.per_node", 1)
        self.gpu = {"cuda": "cu", "hip": "hip"}.get(job.get("devices.kind"))  # what the kernels' file ends with
        self.arch = job.get("devices.arch", "native")

    # Files and commands.

    def write(self):
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        (self.folder / "model.c").write_text(self.model.text())
        self.positions = keys.write(self.job, self.folder / "job.yaml")

    def command(self, *words, stage, **environment):
        environment = {**os.environ, **ENVIRONMENT, "OMP_NUM_THREADS": "2", **environment}
        try:
            result = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, text=True, errors="replace",
                                    timeout=NEVER, env=environment, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired as late:
            raise Failed(stage, f"error: no end after {NEVER} s of {words[0]}") from late
        if result.returncode < 0 or result.returncode > 128:
            raise Failed(stage, f"error: ended by signal {result.returncode}\n{said_by(result)}")
        return result

    def generate(self, program="train"):
        """Writes PROGRAM.c; a refusal must have left none."""
        out = self.folder / f"{program}.c"
        out.unlink(missing_ok=True)
        result = self.command(GENERATOR, "job.yaml", "-o", out, "--program", program, stage=f"generate {program}")
        if result.returncode == 0:
            return out
        if out.exists() or result.returncode not in (1, 2) or "error: " not in result.stderr:
            raise Failed(f"generate {program}", f"error: status {result.returncode}, program left: {out.exists()}\n{result.stderr}")
        raise Refused(result.stderr)

    def compile(self, source, by_both=True):
        """An executable, or None where this machine cannot have one; of gcc alone, or seen by clang too."""
        stage = f"compile {source.stem}"
        if self.gpu:
            return self.compile_gpu(source, stage)
        package = PACKAGE.search(source.read_text()).group()
        if self.arch not in ARCH:
            return None
        own = ["hooks.c"] if "hooks.source" in self.job and source.stem == "train" else []
        march = f"-march={ARCH[self.arch]}"
        if by_both:
            self.check(stage + " clang", tool("clang"), *WARNINGS, "-Wno-invalid-feature-combination", march, "-fsyntax-only", *flags("--cflags", package), source)
        program = source.with_suffix("")
        self.check(stage + " gcc", "gcc", *WARNINGS, march, self.optimize, *flags("--cflags", package), "-c", source, "-o", f"{program}.o")
        self.check(stage + " link", "gcc", march, self.optimize, *flags("--cflags", package), f"{program}.o", *own, "-o", program,
                   *flags("--libs", package))
        return program if self.arch in HERE else None

    def compile_gpu(self, source, stage):
        import host

        program, include = source.with_suffix(""), host.headers()
        self.check(stage + " clang", tool("clang"), *WARNINGS, "-fsyntax-only", include, source)
        self.check(stage + " gcc", "gcc", *WARNINGS, self.optimize, include, "-c", source, "-o", f"{program}.o")
        cxx = [flag for flag in host.CXX if flag != "-O1"]
        self.check(stage + " g++", "g++", *cxx, self.optimize, "-x", "c++", include, "-c", f"{program}.{self.gpu}", "-o", f"{program}.kernels.o")
        own = []
        if "hooks.source" in self.job and source.stem == "train":
            self.check(stage + " hooks", "gcc", "-std=c17", include, "-c", "hooks.c", "-o", "hooks.o")
            own = ["hooks.o"]
        self.check(stage + " link", "g++", f"{program}.o", f"{program}.kernels.o", *own, *host.objects(self.job["devices.kind"]), "-o", program, "-ljansson", "-ldnnl", "-lsqlite3",
                   "-fopenmp", "-lm", *host.LIBS)
        return program

    def check(self, stage, *words):
        result = self.command(*words, stage=stage)
        if result.returncode != 0:
            raise Failed(stage, said_by(result) + "\n" + " ".join(map(str, words)))

    def audit(self, source):
        result = self.command(GENERATOR, "audit", source, "--fail-on", "broken", stage=f"audit {source.stem}")
        broken = [line for line in said_by(result).splitlines() if re.match(r"  broken ", line)]
        if any(key.startswith("profile.") for key in self.job):  # such a program reads the clock after each part
            broken = [line for line in broken if "no-clock" not in line]
        if broken or result.returncode not in (0, 1):
            raise Failed(f"audit {source.stem}", "\n".join(["broken: " + " ".join(broken[0].split()[1:2] if broken else []), said_by(result)]))
        self.counts["audited"] += 1

    def start(self, program, *words, stage, **environment):
        """What a program says; it must end with 0, or because of its numbers: then None."""
        if self.ranks > 1 and self.gpu and program.stem == "train":
            return self.start_ranks(program, words, stage)
        text = program.with_suffix(".c").read_text()
        several = not self.gpu and PACKAGE.search(text).group() == "accel-runtime-mpi"
        ranks = RANKS.search(text)  # an evaluator has those that divide tensors
        command = ["mpirun", "-n", ranks.group(1) if ranks else self.ranks, program] if several else [program]
        result = self.command(*command, *words, stage=stage, **(MPI if several else {}), **environment)
        return self.ended(result.returncode, said_by(result), result.stdout, stage)

    def start_ranks(self, program, words, stage):
        environment = {**os.environ, **ENVIRONMENT, "WORLD_SIZE": str(self.ranks), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
        running = [subprocess.Popen([program, *words], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(self.ranks)]
        try:
            said = "\n".join(process.communicate(timeout=NEVER)[0] for process in running)
        except subprocess.TimeoutExpired as late:
            raise Failed(stage, f"error: no end after {NEVER} s") from late
        finally:
            for process in running:
                process.kill()
        return self.ended(max(process.returncode for process in running), said, said, stage)

    def ended(self, status, said, out, stage):
        if status == 0:
            return out
        if DIVERGED.search(said):
            self.counts["diverged"] = 1
            return None
        raise Failed(stage, f"error: status {status}\n{said}")

    # The promises.

    def run(self):
        """Raises Refused or Failed; else counts what was held."""
        self.write()
        self.weights()
        source = self.generate()
        self.counts["accepted"] += 1
        program = self.compile(source)
        self.counts["compiled"] += 1
        self.audit(source)
        if program is None or self.start(program, stage="run") is None:
            return
        self.counts["run"] += 1
        rows = self.lines()
        if not any("loss" in row for row in rows):
            raise Failed("run", f"error: no line of metrics\n{rows}")
        kept = self.left()
        self.resume(program, kept)
        if self.job.get("training.eval_interval") and "eval_loss" in rows[-1]:
            self.evaluate(rows)
        if self.model.predicts and self.model.domain == "tokens":
            self.let_write()
        if meshes.divides(self.job) and self.job["data.batch_size"] != "auto":  # which follows from a rank's memory
            self.compare(rows)

    def compare(self, rows):
        """The same job of ranks that divide nothing has the losses of these, as far as these are known: what a matmul that adds up
        in another order changes says how far."""
        other = Trial(self.model, meshes.undivided(self.job), self.folder, self.optimize)
        other.write()
        try:
            program = other.compile(other.generate(), by_both=False)
        except Refused:  # of so many ranks
            return
        if other.start(program, stage="run undivided") is None:
            return
        found, wanted = meshes.losses(rows), meshes.losses(other.lines())
        known = 3e-2 if {"bf16", "fp16"} & {there for there in self.job.values() if isinstance(there, str)} else 2e-5
        if meshes.differ(found, wanted, known):
            other.write()
            if other.start(program, stage="run undivided", ONEDNN_MAX_CPU_ISA="SSE41") is None:
                return
            if meshes.differ(found, wanted, known, meshes.losses(other.lines())):
                raise Failed("compare", f"the loss differs from that of undivided ranks\n{found}\n{wanted}")
        self.counts["compared"] += 1

    def lines(self):
        return [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]

    def left(self):
        """What a run leaves, but for the times."""
        rows = [{key: there for key, there in row.items() if key not in TIMES} for row in self.lines()]
        return rows, {path.name: path.read_bytes() for path in (self.folder / "run").glob("*.safetensors")}

    def resume(self, program, kept):
        """From its first checkpoint, the run ends with the same bytes."""
        folders = [path.parent for path in (self.folder / "run").rglob("manifest.json")]
        if not folders:
            return
        first = min(folders, key=lambda folder: int(folder.name.rsplit("_")[1]))
        if self.start(program, "--resume", first.relative_to(self.folder), stage="resume") is None:
            raise Failed("resume", "error: what was finite is not after a resume")
        if self.ranks > 1 and "parallelism.local_sgd_steps" in self.job:  # all ranks resume with rank 0's optimizer states
            self.counts["resumed"] += 1
            return
        rows, files = self.left()
        if rows != kept[0]:
            differing = [(one, other) for one, other in zip(kept[0], rows) if one != other]
            raise Failed("resume", f"metrics differs after {first.name}\n{differing[:2]} {len(kept[0])} {len(rows)}")
        for name in sorted(set(files) | set(kept[1])):
            if files.get(name) != kept[1].get(name):
                raise Failed("resume", f"{name} differs after {first.name}")
        self.counts["resumed"] += 1

    def other(self, kind):
        """Another program of the job, compiled and audited; None where it is refused, which must have a position."""
        try:
            source = self.generate(kind)
        except Refused as refused:
            if not refused.placed:
                raise Failed(f"generate {kind}", "error: refused without a location\n" + refused.said) from refused
            return None
        program = self.compile(source)
        self.audit(source)
        return program

    def evaluate(self, rows):
        """The evaluator says of the weights that the run left what the run said last, or said when it was best."""
        program = self.other("evaluate")
        if program is None:
            return
        out = self.start(program, "--format", "json", stage="run evaluate")
        if out is None:
            return
        found = json.loads(out)["loss"]
        wanted = rows[-1]["eval_loss"]
        if self.job.get("training.early_stopping.restore_best"):
            metric = "eval_" + self.job.get("training.early_stopping.metric", "loss")
            mode = self.job.get("training.early_stopping.mode", "min" if metric in ("eval_loss", "eval_perplexity") else "max")
            best = (min if mode == "min" else max)([row for row in rows if metric in row], key=lambda row: row[metric])
            wanted = best["eval_loss"]
        if self.ranks > 1 and ("parallelism" in self.job or self.job.get("training.eval_iters") != "all"):
            return  # each rank had batches of its own, or of a size that only the trainer has
        if None in (found, wanted):  # not a number
            if found != wanted:
                raise Failed("evaluate", f"the loss differs: {found} of the evaluator, {wanted} of the trainer")
        elif f"{found:.9g}" != f"{wanted:.9g}" and abs(found - wanted) > self.rounding() * abs(wanted):
            raise Failed("evaluate", f"the loss differs: {found:.9g} of the evaluator, {wanted:.9g} of the trainer")
        self.counts["evaluated"] += 1

    def rounding(self):
        """How far the evaluator's loss may be from the trainer's: ranks sum in another order, and merged adapters are rounded with
        the weight, in 16 bits where matmuls or weights are."""
        adapters = any(key.startswith("model.lora.") for key in self.job)
        half = {"bf16", "fp16"} & {self.job.get("precision.mixed_precision"), self.job.get("precision.param_dtype")}
        if adapters and half:
            return 5e-3
        return 2e-5 if adapters or self.ranks > 1 else 0

    def let_write(self):
        program = self.other("generate")
        if program is None:
            return
        out = self.start(program, "--prompt", "ab", "--tokens", "4", stage="run generate")
        if out is not None and len(out) < 4:
            raise Failed("run generate", f"error: it wrote {out!r}")
        self.counts["written"] += 1

    def weights(self):
        """A file for model.weights, of the model's parameters."""
        if "model.weights" not in self.job:
            return
        config = ",".join(f"{name}={json.dumps(there) if not isinstance(there, str) else there}" for name, there in self.model.config.items())
        extent = ["--set", f"data.features={models.FEATURES}"] if self.model.domain == "rows" else \
            ["--set", f"data.sequence_length={self.model.steps}"]
        result = self.command(GENERATOR, "model", "check", "model.c", "--config", config, "--json", *extent, stage="model check")
        if result.returncode != 0:
            raise Refused(result.stderr)
        rng, prefix = np.random.default_rng(3), self.job.get("model.weights_prefix", "")
        arrays = {}
        for parameter in json.loads(result.stdout)["parameters"]:
            whole = parameter["dtype"] == "int64"
            numbers = np.zeros(parameter["shape"], np.int64) if whole else (0.1 * rng.normal(size=parameter["shape"])).astype(np.float32)
            arrays[prefix + parameter["name"]] = abs(numbers) if parameter["buffer"] else numbers
        if "model.ignore" in self.job:
            arrays["some.extra"] = np.zeros(3, np.float32)
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, self.folder / "start.safetensors")


def repaired(refused, trial, random, fixed):
    """The model and the job without what a refusal points at, or without any drawn key; None where nothing is left."""
    positions = re.findall(r"^(?:\S*/)?(job\.yaml|model\.c):(\d+)", refused.said, re.M)
    named = [trial.positions[int(line)] for file, line in positions if file == "job.yaml" and int(line) in trial.positions]
    groups = tuple(f"{group}." for group in re.findall(r"'([\w.]+)' does not go with", refused.said))
    named = [key for key in named + [key for key in trial.job if key.startswith(groups)] if key not in fixed]
    named = [key for key in named if key not in meshes.KEYS] or named  # what a mesh does not go with, rather than the mesh
    job, model = dict(trial.job), trial.model
    lines = [int(line) for file, line in positions if file == "model.c"]
    smaller = model.without_line(lines[0]) if lines and (meshes.divides(job) or random.random() < 0.7) else None
    if named and meshes.KEYS.issuperset(named):
        if smaller is not None:  # what ranks could not divide
            return smaller, job
        return model, meshes.without(job)
    if "missing key 'training' in job" in refused.said:
        return model, {**job, "training.steps": 3}
    if named:
        for key in named:
            job.pop(key, None)
        if not {"training.steps", "training.samples", "training.epochs"} & set(job):
            job["training.steps"] = 3
        return model, job
    if smaller is not None:
        return smaller, job
    drawn = [key for key in job if key not in fixed]
    drawn = [key for key in drawn if key not in meshes.KEYS] or drawn
    if not drawn:
        return None
    key = random.choice(drawn)
    if key in meshes.KEYS:
        return model, meshes.without(job)
    job.pop(key)
    return model, job


__all__ = ["Trial", "Failed", "Refused", "repaired", "write_data", "jobs"]
