"""HIP trainers compile by hipcc for gfx90a without a warning and link with HIP's runtime; the program then says that there is no
GPU. hipBLASLt is the stand-in's: Debian has no package of it. SKIPPED where there is no hipcc. --all: every example job
(ninja soak)."""

import os
import pathlib
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
JOBS = TREE / "examples" / "jobs"
# Under the data that the jobs name, which need not be there.
SMALL = ["model.config.n_layer=2", "model.config.n_embd=64", "model.config.n_head=2"]
SUITE = [("gpt2", ["model.config.dropout=0.1", "optimizer.state_dtype=8bit", "tracking.grad_norms=per_layer", *SMALL]),
         ("resnet", ["optimizer.name=lamb", "optimizer.clip_grad_norm=1", "training.on_nonfinite=skip", "training.ema.decay=0.9"]),
         ("gpt2 --program generate", SMALL)]
# What no such job has.
MORE = [(name, [f"optimizer.name={rule}", *more]) for name, rule, more in (
    ("gru", "adalomo", []), ("table", "lomo", ["optimizer.weight_decay=0"]), ("table", "muon", []), ("table", "adafactor", []),
    ("tiny", "adamw", ["optimizer.state_dtype=bf16_stochastic"]), ("tiny", "schedule_free_adamw", []))]
MORE += [("gpt2 --program evaluate", ["training.eval_iters=all", *SMALL]), ("tiny", ["accumulation.num_steps=2", "tracking.noise_scale=true"])]
WITHOUT = ("gcn", "hooks", "qwen_moe")  # data that need not be there; a file of its own; an operation that HIP lacks
ALL = [*SUITE, *MORE, *((path.stem, []) for path in sorted(JOBS.glob("*.yaml")) if path.stem not in WITHOUT)]


def tool(*arguments):
    return subprocess.run(["sh", TREE / "tools" / "hip-toolkit.sh", *arguments], capture_output=True, text=True)


def compile_one(folder, job, settings, hipcc, libraries):
    program, built = pathlib.Path(folder) / "trainer", TREE / "build"
    flags = [word for setting in ["devices.kind=hip", *settings] for word in ("--set", setting)]
    name, *words = job.split()
    subprocess.run([GENERATOR, JOBS / f"{name}.yaml", *words, *flags, "-o", f"{program}.c"], check=True, stdout=subprocess.DEVNULL)
    include = f"-I{TREE / 'include'}"
    subprocess.run(["cc", "-std=c17", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", include, "-c", f"{program}.c",
                    "-o", f"{program}.o"], check=True)
    # clang reports loops that it does not unroll, which is of speed, and that was not measured.
    subprocess.run([*hipcc, "-std=c++17", "-O3", "-Wall", "-Werror", "-Wno-pass-failed", "--offload-arch=gfx90a", include, "-c", f"{program}.hip", "-o",
                    f"{program}.hip.o"], check=True)
    subprocess.run(["c++", f"{program}.o", f"{program}.hip.o", built / "libaccel-hip.a", *libraries, built / "libaccel-hip-standin.a",
                    built / "libaccel-standin.a", built / "libaccel-runtime.a", "-ljansson", "-ldnnl", "-fopenmp", "-lm", "-o", program],
                   check=True)
    if not os.path.exists("/dev/kfd"):
        ended = subprocess.run([program, *["--prompt", "1"] * ("generate" in words)], cwd=folder, capture_output=True, text=True)
        assert ended.returncode == 1 and "no GPU" in ended.stderr, ended.stderr


if __name__ == "__main__":
    found, libraries = tool("--hipcc"), tool("--libs", "amdhip64")
    if found.returncode != 0 or libraries.returncode != 0:
        print("SKIPPED: no HIP trainer was compiled: " + (found.stderr + libraries.stderr).strip())
        sys.exit(77)
    failed = 0
    for job, settings in ALL if "--all" in sys.argv else SUITE:
        name = f"{job} {' '.join(settings)}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                compile_one(folder, job, settings, found.stdout.split(), libraries.stdout.split())
            print(f"ok {name}")
        except (subprocess.CalledProcessError, AssertionError) as error:
            failed += 1
            print(f"not ok {name}: {error}")
    sys.exit(failed > 0)
