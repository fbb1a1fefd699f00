"""The claims about machine code of GPUs: each is broken by the one edit of a small text that it is about, and hold for what nvcc and
nvdisasm make of emitted programs, where there are both: of one of these, which by SEED; with --all of each. TAP."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

import test_ptx  # noqa: E402
from rotation import in_turn  # noqa: E402
from test_ptx import SOURCE, audit, compile_kernels, report  # noqa: E402

KERNELS = (("gpt2", "sm_80"), ("gpt2_bf16", "sm_90a"), ("mlp", "sm_90a"), ("gpt2", "sm_100"))

SASS = """	.target	sm_80
	.section	.text.add,"ax",@progbits
        .other          add,@"STO_CUDA_ENTRY STV_DEFAULT"
add:
.text.add:
	//## File "add.cu", line 1
        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/                   IADD3 R1, R1, -0x28, RZ ;
	//## File "add.cu", line 3
        /*0030*/              @P0 EXIT ;
.L_x_0:
	//## File "add.cu", line 4
        /*0040*/                   FADD R3, R3, R2 ;
        /*0050*/              @!P1 BRA `(.L_x_0) ;
	//## File "add.cu", line 5
        /*0060*/               @P2 BRA `(.L_x_1) ;
        /*0070*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div) ;
.L_x_1:
        /*0080*/                   STG.E [R4.64], R3 ;
        /*0090*/                   EXIT ;
$__internal_0_$__cuda_sm20_div:
        /*00a0*/               @P0 BRA `(.L_x_2) ;
        /*00b0*/                   MUFU.RCP R3, R3 ;
.L_x_2:
        /*00c0*/                   RET.REL.NODEC R6 `(add) ;
"""
EDITS = {
    "a branch without a reason": ("sass-branches", 'line 4\n', 'line 5\n'),
    "an end without a reason": ("sass-branches", 'line 3\n', 'line 5\n'),
    "a branch of a file that is not there": ("sass-branches", '"add.cu", line 4', '"nothing.cu", line 4'),
    "a branch of a line that no file has": ("sass-branches", 'line 4', 'line 400'),
    "a branch without a line": ("sass-branches", '	//## File "add.cu", line 1\n        /*0000*/ ', '        /*0030*/               @P0 EXIT ;\n        /*0000*/ '),
    "a jump by a register": ("sass-no-indirect", "FADD R3, R3, R2", "BRX R2 -0x40"),
    "a call by a register": ("sass-no-indirect", "FADD R3, R3, R2", "CALL.ABS.NOINC R2"),
    "print": ("sass-externals", "FADD R3, R3, R2", "CALL.ABS.NOINC `(vprintf)"),
    "a stack without end": ("sass-stack", "IADD3 R1, R1, -0x28, RZ", "IADD3 R1, R1, -R2, RZ"),
    "a clock": ("sass-no-clock", "SR_TID.X", "SR_CLOCKLO"),
    "where it runs": ("sass-no-clock", "SR_TID.X", "SR_VIRTUALSMID"),
    "sums in any order": ("sass-order", "FADD R3, R3, R2", "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R4.64], R3"),
}


def edits(folder):
    (folder / "add.cu").write_text(SOURCE)
    path = folder / "add.sass"
    path.write_text(SASS)
    result, wrong = audit(path)
    report("all hold", result.returncode == 0 and not wrong, result.stdout + result.stderr)
    report("stack", "at most 40 bytes" in result.stdout and "1 calls" in result.stdout, result.stdout)
    for name, (claim, before, after) in EDITS.items():
        assert before in SASS, name
        path.write_text(SASS.replace(before, after, 1))
        result, wrong = audit(path)
        report(name, result.returncode == 1 and wrong == {claim}, f"{wrong}\n{result.stdout}{result.stderr}")
    path.write_text(SASS.replace("line 4", "line -400000000"))
    result, _ = audit(path)
    report("a line before the first", result.returncode in (0, 1), result.stdout + result.stderr)
    for text in ("", "hello\n", SASS.replace("STO_CUDA_ENTRY", "")):
        path.write_text(text)
        result, _ = audit(path)
        report("no machine code", result.returncode == 2 and "error: this is not machine code" in result.stderr, result.stderr)


def find_tool(name):
    """In PATH, with the toolkit, or in a wheel of NVIDIA's or of Triton."""
    folders = [os.environ.get(key, "") + "/bin" for key in ("CUDA_HOME", "CUDA_PATH")] + ["/usr/local/cuda/bin"]
    folders += [str(path) for base in sys.path for where in ("nvidia/*/bin", "triton/backends/nvidia/bin") for path in pathlib.Path(base or ".").glob(where)]
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *folders]))


def compiled(folder):
    nvcc, nvdisasm = find_tool("nvcc"), find_tool("nvdisasm")
    if nvcc is None or nvdisasm is None:
        print(f"ok emitted kernels # SKIP there is no {'nvcc' if nvcc is None else 'nvdisasm'}")
        return
    for name, target in in_turn(KERNELS, len(KERNELS)):
        compile_kernels(name, folder, nvcc, target, "cubin")
        text = subprocess.run([nvdisasm, "-g", "-c", "program.cubin"], cwd=folder, check=True, capture_output=True, text=True)
        (folder / "program.sass").write_text(text.stdout)
        result, wrong = audit(folder / "program.sass")
        report(f"what nvcc makes of {name} for {target}", result.returncode == 0 and not wrong, result.stdout + result.stderr)


if __name__ == "__main__":
    test_ptx.need_part("device_code")
    with tempfile.TemporaryDirectory(prefix="accel-sass-") as name:
        edits(pathlib.Path(name))
        compiled(pathlib.Path(name))
    print(f"1..{test_ptx.count}")
    sys.exit(test_ptx.failed > 0)
