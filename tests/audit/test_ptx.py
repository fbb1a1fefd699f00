"""The claims about device code: each is broken by the one edit of a small PTX file that it is about, hold for what nvcc makes of
emitted programs, where there is one, and no text makes the reader crash. TAP."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))
from harness import need_part  # noqa: E402
from matrix import CASES  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
CLAIM = re.compile(r"^  (holds|broken|cannot tell) +(\S+)", re.M)
SOURCE = """__global__ void add(float *y, const float *x) {
  const int i = threadIdx.x;
  if (i >= 7) return;
  for (int k = 0; k < i; k++) y[i] += x[k];
  y[i] = y[i] + 1.0f;
}
"""
PTX = """//
.version 8.4
.target sm_80
.address_size 64
.func (.param .b32 result) halve (.param .b32 x)
{
	.reg .f32 %f<3>;
	ld.param.f32 	%f1, [x];
	mul.f32 	%f2, %f1, 0f3F000000;
	st.param.f32 	[result], %f2;
	ret;
}
.visible .entry add(
	.param .u64 add_param_0,
	.param .u64 add_param_1
)
.maxntid 32, 1, 1
{
	.shared .align 4 .b8 rows[128]; // a comment; with a brace }
	.local .align 4 .b8 __local_depot0[16];
	.reg .pred 	%p<3>;
	.reg .b32 	%r<4>;
	.reg .f32 	%f<5>;
	.loc	1 2 3
	mov.u32 	%r1, %tid.x;
	.loc	1 3 3
	setp.gt.s32 	%p1, %r1, 6;
	@%p1 bra 	$L__BB0_3;
	mov.u32 	%r2, 0;
$L__BB0_2:
	.loc	1 4 3
	add.s32 	%r2, %r2, 1;
	setp.lt.s32 	%p2, %r2, %r1;
	@%p2 bra 	$L__BB0_2;
	.loc	1 5 3
	mov.b32 	{%f1, %f2}, %rd1;
	{ // callseq 0, 0
	.param .b32 param0;
	.param .b32 retval0;
	call.uni (retval0),
	halve,
	(
	param0
	);
	}
$L__BB0_3:
	ret;
}
	.file	1 "NAME"
	.section	.debug_str
	{
.b8 65,66
	}
"""
# The claim that does not hold, what of the text becomes what.
EDITS = {
    "a branch without a reason": ("ptx-branches", "\t.loc\t1 4 3\n", "\t.loc\t1 5 3\n"),
    "a branch at a line that is not there": ("ptx-branches", "\t.loc\t1 4 3\n", "\t.loc\t1 99 3\n"),
    "a branch of a file that is not there": ("ptx-branches", 'NAME"', 'nothing.cu"'),
    "a table of jumps": ("ptx-no-indirect", "@%p2 bra \t$L__BB0_2;", "brx.idx %r1, table;"),
    "a call by a register": ("ptx-no-indirect", "\thalve,\n", "\t%rd1,\n"),
    "print": ("ptx-externals", "\thalve,\n", "\tvprintf,\n"),
    "memory in a kernel": ("ptx-externals", "\thalve,\n", "\tmalloc,\n"),
    "shared memory without end": ("ptx-memory", "rows[128]", "rows[]"),
    "a stack without end": ("ptx-memory", "mov.u32 \t%r2, 0;", "alloca.u64 %rd1, %rd2;"),
    "a clock": ("ptx-no-clock", "mov.u32 \t%r2, 0;", "mov.u32 %r2, %clock;"),
    "where it runs": ("ptx-no-clock", "mov.u32 \t%r2, 0;", "mov.u32 %r2, %smid;"),
    "sums in any order": ("ptx-order", "mov.u32 \t%r2, 0;", "red.global.add.f32 [%rd1], %f1;"),
    "sums of half precision": ("ptx-order", "mov.u32 \t%r2, 0;", "atom.global.add.noftz.bf16x2 %r1, [%rd1], %r2;"),
}
NO_PTX = {"empty braces": "}", "a block outside of functions": "{ @%p1 bra somewhere; }", "cut": PTX[:PTX.index("add.s32")], "words": "hello world;", "unclosed list": ".func f() {\n mov {a, b"}
count = failed = 0


def report(name, good, why=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {name}" + ("" if good else f"\n  {why}"), flush=True)


def audit(path, *flags):
    result = subprocess.run([GENERATOR, "audit", path, *flags], capture_output=True, text=True)
    return result, {claim for verdict, claim in CLAIM.findall(result.stdout) if verdict != "holds"}


def edits(folder):
    (folder / "add.cu").write_text(SOURCE)
    path = folder / "add.ptx"
    text = PTX.replace("NAME", "/elsewhere/add.cu")  # it is found next to the PTX
    path.write_text(text)
    result, wrong = audit(path)
    report("all hold", result.returncode == 0 and not wrong, result.stdout + result.stderr)
    report("two functions", "2 functions, 1 of them kernels" in result.stdout, result.stdout)
    report("memory", "at most 16 bytes of a thread, 128 of a block" in result.stdout, result.stdout)
    for name, (claim, before, after) in EDITS.items():
        edited = PTX.replace(before, after, 1).replace("NAME", "add.cu")
        assert edited != text, name
        path.write_text(edited)
        result, wrong = audit(path)
        report(name, result.returncode == 1 and wrong == {claim}, f"{wrong}\n{result.stdout}{result.stderr}")
    for name, text in NO_PTX.items():
        path.write_text(text)
        result, _ = audit(path)
        report(f"no PTX: {name}", result.returncode == 2 and "error: this is not PTX" in result.stderr, result.stderr)
    path.write_text(PTX.replace("NAME", "/dev/zero"))
    result, wrong = audit(path)
    report("a source without end", wrong == {"ptx-branches"} and "cannot be read" in result.stdout, result.stdout + result.stderr)


def any_text(folder):
    """Bytes of the file changed, left out and doubled: an answer or a message, and no crash."""
    pick, path = random.Random(SEED), folder / "any.ptx"
    for number in range(150):
        text = list(PTX.replace("NAME", "add.cu"))
        for _ in range(pick.randint(1, 6)):
            at, size = pick.randrange(len(text)), pick.randint(0, 8)
            text[at:at + size] = pick.choice(["", "{", "}", ";", ":", "[", ".loc 9 9 9\n", "\x00", "call ", '"', "@", ".file 10000 \"x\""])
        path.write_text("".join(text))
        result, _ = audit(path)
        if result.returncode not in (0, 1, 2):
            report(f"text {number} of SEED={SEED}", False, f"status {result.returncode}")
            return
    report(f"150 texts of SEED={SEED}", True)


def compile_kernels(name, folder, nvcc, target, what):
    """The kernels of a case's program as program.WHAT: ptx or cubin."""
    case, = (case for case in CASES if case.name == name)
    (folder / "job.yaml").write_text(json.dumps({**case.job, "devices": {"kind": "cuda"}}))
    subprocess.run([GENERATOR, "job.yaml", "-o", "program.c"], cwd=folder, check=True)
    subprocess.run([nvcc, "-std=c++17", f"-arch={target}", "-lineinfo", f"-I{TREE}/include", f"-{what}", "program.cu"],
                   cwd=folder, check=True)


def compiled(folder):
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        print("ok emitted kernels # SKIP there is no nvcc")
        return
    for name in ("gpt2", "gpt2_bf16", "mlp"):
        compile_kernels(name, folder, nvcc, "sm_80", "ptx")
        result, wrong = audit(folder / "program.ptx")
        report(f"what nvcc makes of {name}", result.returncode == 0 and not wrong, result.stdout + result.stderr)


if __name__ == "__main__":
    need_part("device_code")
    with tempfile.TemporaryDirectory(prefix="accel-ptx-") as name:
        edits(pathlib.Path(name))
        any_text(pathlib.Path(name))
        compiled(pathlib.Path(name))
    print(f"1..{count}")
    sys.exit(failed > 0)
