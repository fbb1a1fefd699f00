"""CUDA trainers compile by nvcc without a warning and link with the libraries of the toolkit, as accel-gen build does it
for all architectures. What nvcc reports on the way: no kernel keeps registers in memory, but those of SPILLS, and those of WIDE load
or store 16 bytes at a time, and the other way at least 8. SKIPPED where there is no nvcc. A run compiles half of SUITE, which SEED says; --all:
every example job, in every type (ninja soak)."""

import pathlib
import re
import subprocess
import sys
import tempfile

import machine_code

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

import rotation  # noqa: E402
from rotation import in_turn  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
JOBS = TREE / "examples" / "jobs"
# Under the data that the jobs name, which need not be there.
SMALL = ["model.config.n_layer=2", "model.config.n_embd=64", "model.config.n_head=2"]
DIVIDED = ["devices.per_node=2", "parallelism.zero_stage=3", "parallelism.offload.optimizer=cpu",
           "parallelism.offload.param=cpu", "accumulation.num_steps=2", "profile.schedule.active=1", "profile.nvtx=true", "profile.with_flops=true"]
JOINED = ["data.drop_last=false", "data.even_batches=false", "data.join_uneven_inputs=true"]
ORDERED = ["devices.per_node=2", "parallelism.reproducible=topology", "accumulation.num_steps=2"]
TENSORS = ["devices.per_node=2", "parallelism.tp=2"]
# The generator takes as many tokens at a time as it has positions, and also one.
SUITE = [("gpt2", ["precision.mixed_precision=fp8", "precision.fp8.backend=te", "model.config.dropout=0.1", "optimizer.state_dtype=8bit",
                   "tracking.grad_norms=per_layer", *SMALL], ["90a"]),
         ("gpt2", ["precision.mixed_precision=fp16", "devices.attention=own", *DIVIDED, *JOINED, *SMALL, "model.config.n_embd=512"], ["80"]),
         ("qwen_moe", ["model.config.num_hidden_layers=1", "model.config.capacity_factor=1.0", *ORDERED], ["100"]),
         ("gpt2 --program generate", ["precision.mixed_precision=fp16", "model.config.block_size=32", "data.sequence_length=32", *SMALL], ["80"]),
         ("resnet", ["optimizer.name=lamb", "optimizer.clip_grad_norm=1", "optimizer.norm_type=inf", "training.on_nonfinite=skip",
                     "training.ema.decay=0.9", "devices.per_node=2", "parallelism.sync_batch_norm=true"], ["80"]),
         ("gpt2 --program evaluate", ["precision.mixed_precision=bf16", "training.eval_iters=all", *TENSORS, *SMALL], ["90a"])]
# What no such job has.
MORE = [("gru", ["optimizer.name=adalomo"]), ("table", ["optimizer.name=lomo", "optimizer.weight_decay=0"]),
        ("resnet", ["devices.convolution=own", "precision.mixed_precision=fp16"])]
MORE += [("t5", ["devices.per_node=2", "parallelism.cp=2", "parallelism.cp_comm=ring", "precision.mixed_precision=bf16"])]
MORE += [("gpt2", [*SMALL, *more]) for more in (
    ["devices.per_node=2", "parallelism.ddp.comm_hook=power_sgd", "parallelism.ddp.comm_wrapper=bf16"],
    ["devices.per_node=2", "parallelism.ddp.comm_hook=batched_power_sgd", "accumulation.num_steps=2"],
    ["devices.per_node=2", "parallelism.local_sgd_steps=4"],
    ["devices.per_node=2", "accumulation.num_steps=2", "accumulation.sync_each_batch=true", "parallelism.ddp.comm_hook=fp16"],
    ["devices.per_node=2", "parallelism.cp=2", "parallelism.cp_comm=ring", "precision.mixed_precision=bf16"],
    ["devices.per_node=4", "parallelism.tp=2", "parallelism.zero_stage=3", "optimizer.clip_grad_norm=1"],
    [*TENSORS, "model.config.vocab_size=257", "model.config.dropout=0.1", "precision.mixed_precision=bf16"],
    ["devices.per_node=2", "parallelism.pp=2", "accumulation.num_steps=4", "accumulation.sync_with_dataloader=false", "precision.mixed_precision=bf16",
     "optimizer.state_dtype=8bit"],
    ["accumulation.num_steps=2", "tracking.noise_scale=true", "optimizer.norm_type=inf"])]
TYPES = [[], ["precision.mixed_precision=bf16"], ["precision.mixed_precision=fp16"]]
ALL = [(path.stem, more, ["80", "90a", "100"])
       for path in sorted(JOBS.glob("*.yaml")) if path.stem not in ("hooks", "gcn") for more in TYPES]
ALL += [(name, more, ["80", "90a", "100"]) for name, more in MORE]
ALL += [(f"{name} --program {program}", [], ["80", "90a", "100"]) for program, names in (
    ("evaluate", ("table", "tiny", "qwen_moe", "gru")), ("generate", ("tiny", "qwen_moe"))) for name in names]

# Bytes that kernels may keep in memory for want of registers, by how their names begin. The gradient of the program's own
# attention, with heads of 256 columns, has 512 threads of a block share its registers.
SPILLS = {"attention_backward": 850}
# What a step's time goes into in addition to matmuls, by how names begin, and whether some program of the suite has them.
WIDE = dict.fromkeys(("add_layer_norm", "layer_norm_backward", "layer_norm_plus_bits16_backward", "add_rms_norm", "rms_norm_backward",
                      "rms_norm_plus_backward", "embedding_plus", "linear_cross_entropy_forward_backward", "cast"), False)


def tool(*arguments):
    return subprocess.run(["sh", TREE / "tools" / "cuda-toolkit.sh", *arguments], capture_output=True, text=True)


def compile_one(folder, job, settings, architectures, nvcc):
    program = pathlib.Path(folder) / "trainer"
    flags = [word for setting in ["devices.kind=cuda", *settings] for word in ("--set", setting)]
    name, *words = job.split()
    subprocess.run([GENERATOR, JOBS / f"{name}.yaml", *words, *flags, "-o", f"{program}.c"], check=True)
    include = f"-I{TREE / 'include'}"
    subprocess.run(["cc", "-std=c17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", include, "-c", f"{program}.c",
                    "-o", f"{program}.o"], check=True)
    targets = [f"-gencode=arch=compute_{name},code=sm_{name}" for name in architectures]
    result = subprocess.run([*nvcc, "-std=c++17", "-O3", "-Werror", "all-warnings", "-Xptxas", "-v", "--keep", "--keep-dir", folder, *targets,
                             include, "-c", f"{program}.cu", "-o", f"{program}.cu.o"], capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stdout + result.stderr)
    result.check_returncode()
    built = TREE / "build"
    many, profiled = any(word.startswith("devices.per_node=") for word in settings), "profile.nvtx=true" in settings
    libraries = tool("--libs", "cudart", "cublasLt", "cudnn", *["nccl"] * many, *["cupti"] * profiled).stdout.split()
    ranks = [built / "libaccel-nccl.a", built / "libaccel-tcp.a"] if many else []
    subprocess.run(["c++", f"{program}.o", f"{program}.cu.o", *ranks, built / "libaccel-cuda.a", built / "libaccel-runtime.a",
                    *libraries, "-ljansson", "-ldnnl", "-fopenmp", "-lm", "-o", program], check=True)
    return [*spilling(result.stdout + result.stderr), *narrow(pathlib.Path(folder).glob("*.ptx"))]


def begins(name, words):
    """The longest of the words that a kernel's name begins with, before its precision and shape."""
    return max((word for word in words if re.match(rf"{word}_(?:add_|bf16|f16|bfloat|float|\d)", name)), key=len, default=None)


def spilling(output):
    for (kernel, architecture), used in machine_code.usage(output).items():
        if used.spilled > SPILLS.get(begins(kernel, SPILLS), 0):
            yield f"{kernel} for {architecture} has {used.spilled} bytes of spills"


def narrow(paths):
    """A kernel for memory that is not aligned, or for rows of a number that no pack divides, moves one number."""
    for path in paths:
        for kernel, (loaded, stored) in machine_code.widest(path.read_text()).items():
            word = begins(kernel, WIDE)
            if word is None or kernel.endswith("<1>"):
                continue
            WIDE[word] = True
            if max(loaded, stored) < 16:
                yield f"{kernel} moves no more than {max(loaded, stored)} bytes at a time"
            # Of numbers of 16 bits that are made of others of 32, or these of those; a constant is not loaded.
            if 0 < loaded < 8:
                yield f"{kernel} loads no more than {loaded} bytes at a time"
            if stored < 8:
                yield f"{kernel} stores no more than {stored} bytes at a time"


if __name__ == "__main__":
    found = tool("--nvcc")
    if found.returncode != 0:
        print("SKIPPED: no CUDA trainer was compiled, as there is no nvcc: " + found.stderr.strip())
        sys.exit(77)
    failed = 0
    for job, settings, architectures in ALL if rotation.ALL else in_turn(SUITE, 2):
        name = f"{job} {' '.join(settings)} for {' '.join(architectures)}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                wrong = compile_one(folder, job, settings, architectures, found.stdout.split())
            for what in wrong:
                print(f"not ok {name}: {what}")
            if not wrong:
                print(f"ok {name}")
            failed += len(wrong) > 0
        except subprocess.CalledProcessError as error:
            failed += 1
            print(f"not ok {name}: {error}")
    # Half of the programs have some of these kernels.
    missing = [word for word, seen in WIDE.items() if not seen] if rotation.ALL else [] if any(WIDE.values()) else list(WIDE)
    print(f"not ok no program has {', '.join(missing)}" if missing else "ok kernels that move 16 bytes were there")
    failed += len(missing) > 0
    sys.exit(failed > 0)
