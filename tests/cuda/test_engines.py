"""Graphs of attention and of convolutions before cuDNN itself, which needs no GPU to make plans for one whose properties it gets (from 9.11
on): it has engines for them, and these fit the workspace of the program that accel-gen plans. Nothing is executed.
SKIPPED without such a cuDNN. --all: every case on every GPU (ninja soak)."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR, OUT = TREE / "build" / "accel-gen", TREE / "build" / "tests" / "cuda" / "engines"
# Compute capability: processors, shared memory of a block, cache.
GPUS = {"A100": (800, 108, 166912, 41943040), "H100": (900, 132, 232448, 52428800), "B200": (1000, 148, 232448, 132644864)}
# batch, heads, groups, length, columns, causal, float16, deterministic
ALL = [(4, 12, 12, 1024, 64, 1, 0, 0), (16, 12, 12, 1024, 64, 1, 0, 0), (16, 12, 12, 1024, 64, 1, 0, 1),
       (2, 32, 8, 2048, 128, 1, 1, 0), (2, 32, 8, 2048, 128, 1, 1, 1), (2, 4, 4, 100, 16, 1, 0, 0), (2, 4, 2, 65, 8, 1, 0, 1),
       (8, 16, 16, 512, 64, 0, 0, 0), (3, 4, 1, 1000, 24, 1, 1, 0), (2, 4, 4, 2, 16, 1, 0, 0)]
SUITE = [("H100", (8, 16, 4, 512, 64, 1, 0, 0)), ("A100", (8, 16, 16, 512, 64, 1, 0, 0))]


# batch, channels, height, width, channels of the result, kernel, stride, padding, dilation, groups: of ResNet-50 and 18,
# of grouped and separable ones, of U-Nets, of ViT's patches, of signals, and odd ones.
SHAPES = [(64, 3, 224, 224, 64, 7, 2, 3, 1, 1), (64, 64, 56, 56, 64, 3, 1, 1, 1, 1), (64, 256, 56, 56, 512, 1, 2, 0, 1, 1),
          (64, 128, 56, 56, 128, 3, 2, 1, 1, 1), (64, 64, 56, 56, 256, 1, 1, 0, 1, 1), (64, 512, 7, 7, 512, 3, 1, 1, 1, 1),
          (64, 128, 56, 56, 128, 3, 1, 1, 1, 32), (64, 64, 56, 56, 64, 3, 1, 1, 1, 64), (8, 320, 56, 56, 320, 3, 1, 1, 1, 1),
          (8, 4, 64, 64, 320, 3, 1, 1, 1, 1), (8, 1280, 8, 8, 1280, 3, 1, 1, 1, 1), (32, 3, 224, 224, 768, 16, 16, 0, 1, 1),
          (16, 64, 33, 29, 96, 3, 1, 2, 2, 1), (4, 5, 17, 13, 7, 3, 1, 1, 1, 1)]
TYPES = {"float32": (0, 0), "tf32": (0, 1), "bf16": (1, 0), "fp16": (2, 0)}
ALL_CONVOLUTIONS = [(*shape, precision, deterministic) for shape in SHAPES for precision in TYPES for deterministic in range(2)]
SUITE_CONVOLUTIONS = [("H100", (*SHAPES[0], "bf16", 1)), ("H100", (*SHAPES[3], "float32", 1)), ("A100", (*SHAPES[7], "fp16", 0)),
                      ("B200", (*SHAPES[11], "bf16", 0))]
# Its operand has a gradient, so that all three are there.
CONVOLUTION = """#include <accel/model.h>

struct config {{
  int classes;
}};

const struct config defaults = {{.classes = 2}};

tensor model(scope s, struct config c, tensor features, tensor labels) {{
  tensor images = reshape(features, {0}, {1}, {2}, {3});
  tensor x = add(images, parameter(s, "shift", 1));
  tensor y = conv2d_grouped_no_bias(at(s, "conv"), x, {4}, {5}, {6}, {7}, {8}, {9});
  return cross_entropy(linear(at(s, "output"), mean(reshape(y, {0}, {4}, -1), 2), c.classes), labels);
}}
"""


def tool(*arguments):
    return subprocess.run(["sh", TREE / "tools" / "cuda-toolkit.sh", *arguments], capture_output=True, text=True).stdout.split()


def properties(gpu):
    version, processors, shared, cache = GPUS[gpu]
    return {
        "deviceName": gpu, "cudaDeviceId": 0, "deviceVer": version, "driverVer": 13000, "multiProcessorCount": processors,
        "smCountOrigin": 0, "warpSize": 32, "totalGlobalMem": 80 << 30, "l2CacheSize": cache, "pciDeviceId": 0,
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": 2048, "maxCtasPerSM": 32, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
        "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": shared, "reservedSharedMemoryPerBlock": 1024,
        "oversizedSharedMemoryPerBlock": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "smClockRateKHz": 1980000,
        "memClockRateKHz": 2619000}


def build():
    """The program, and instead of the driver's library one whose kernels load and do nothing; False without cuDNN."""
    flags, libraries = tool("--cflags", "cudnn"), tool("--libs", "cudnn")
    headers = [pathlib.Path(word) for word in flags if word.startswith("/")]
    version, driver = (next((path.read_text() for path in (folder / name for folder in headers) if path.exists()), "")
                       for name in ("cudnn_version.h", "cuda.h"))
    numbers = [int(number) for number in re.findall(r"#define CUDNN_(?:MAJOR|MINOR) (\d+)", version)]
    if not libraries or not driver or numbers < [9, 11]:
        return False
    (OUT / "driver").mkdir(parents=True, exist_ok=True)
    names = set(re.findall(r"CUDAAPI\s+(cu\w+)\s*\(", driver)) | set(re.findall(r"#define cu\w+ +(cu\w+_v\d)\b", driver))
    loads = {name for name in names if re.match("cu(LibraryLoadData|LibraryGetKernel|KernelGetFunction|Module(LoadData|GetFunction))", name)}
    sets = {name for name in names if re.match("cu(Func|Kernel)Set|cu(Library|Module)Unload", name)}
    text = [f"int {name}(void **made) {{ *made = (void *)8; return 0; }}" if name in loads else
            f"int {name}(void) {{ return {0 if name in sets else 999}; }}" for name in sorted(names)]
    (OUT / "driver.c").write_text("\n".join(text))
    subprocess.run(["cc", "-w", "-shared", "-fPIC", OUT / "driver.c", "-o", OUT / "driver" / "libcuda.so.1"], check=True)
    subprocess.run(["cc", "-std=c17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{TREE}", *flags,
                    TREE / "tests" / "cuda" / "engines" / "engines.c", *libraries, "-lm", "-o", OUT / "engines"], check=True)
    return True


def workspace(case):
    """Of the workspace of a program with such attention."""
    batch, heads, groups, length, columns, _, half, deterministic = case
    job = {"model": {"source": str(TREE / "examples" / "models" / "llama.c"), "config": {
        "num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": columns,
        "hidden_size": 64, "intermediate_size": 64, "vocab_size": 64}},
        "data": {"train": {"path": "absent", "format": "nanogpt"}, "batch_size": batch, "sequence_length": length},
        "precision": {"mixed_precision": "fp16" if half else "bf16"},
        "training": {"steps": 1, "deterministic": bool(deterministic)}, "devices": {"kind": "cuda"}}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.json"
        path.write_text(json.dumps(job))
        subprocess.run([GENERATOR, path, "-o", path.with_name("trainer.c")], check=True, stderr=subprocess.DEVNULL)
        text = path.with_name("trainer.c").read_text()
    assert "accel_gpu_open_attention_backward" in text
    return int(re.search(r"char workspace\[(\d+)\]", text)[1]) - 192


def room_of_convolution(case):
    """Of the workspace of a program with such a convolution."""
    *shape, precision, deterministic = case
    job = {"model": {"source": "convolution.c"}, "data": {"train": {"path": "absent.csv", "format": "csv"}, "batch_size": shape[0],
           "features": shape[1] * shape[2] * shape[3]}, "training": {"steps": 1, "deterministic": bool(deterministic)},
           "precision": {"tf32": True} if precision == "tf32" else {"mixed_precision": precision if precision != "float32" else "no"},
           "devices": {"kind": "cuda"}}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.json"
        path.write_text(json.dumps(job))
        path.with_name("convolution.c").write_text(CONVOLUTION.format(*shape))
        subprocess.run([GENERATOR, path, "-o", path.with_name("trainer.c")], check=True)
        text = path.with_name("trainer.c").read_text()
    assert set(re.findall(r"\.makes = ACCEL_MAKES_(\w+),", text)) == {"X", "Y", "WEIGHTS"}
    return int(re.search(r"char workspace\[(\d+)\]", text)[1]) - 192


def run(gpu, workspace, deterministic, *words):
    (OUT / f"{gpu}.json").write_text(json.dumps(properties(gpu)))
    return subprocess.run([OUT / "engines", OUT / f"{gpu}.json", str(workspace), str(deterministic), *map(str, words)], capture_output=True,
                          text=True, env={"LD_LIBRARY_PATH": str(OUT / "driver")})


class Engines(unittest.TestCase):
    def check_attention(self, gpu, case):
        *sizes, causal, half, deterministic = case
        for lengths in range(2 if ALL_OF_THEM else 1):
            for backward in range(2) if ALL_OF_THEM or gpu == "H100" else [1]:
                words = [workspace(case), deterministic, "attention", *sizes, causal, lengths, half, backward]
                ended = run(gpu, *words)
                self.assertEqual(ended.returncode, 0, f"{gpu}, {words}: {ended.stdout}")

    def check_convolution(self, gpu, case):
        """That the plan's workspace leaves the first of cuDNN's engines, or one about as fast."""
        *shape, precision, deterministic = case
        words = [room_of_convolution(case), deterministic, "convolution", *shape, *TYPES[precision], 0]
        for words[-1] in range(2 if ALL_OF_THEM else 1):
            ended = run(gpu, *words)
            self.assertEqual(ended.returncode, 0, f"{gpu}, {words}: {ended.stdout}")


ALL_OF_THEM = "--all" in sys.argv
if __name__ == "__main__":
    if not build():
        print("SKIPPED: no cuDNN of 9.11 or later")
        sys.exit(77)
    attention = [(gpu, case) for gpu in GPUS for case in ALL] if ALL_OF_THEM else SUITE
    convolutions = [(gpu, case) for gpu in GPUS for case in ALL_CONVOLUTIONS] if ALL_OF_THEM else SUITE_CONVOLUTIONS
    for check, cases in ((Engines.check_attention, attention), (Engines.check_convolution, convolutions)):
        for gpu, case in cases:
            name = f"test_{check.__name__[6:]}_{gpu}_{'_'.join(map(str, case))}"
            setattr(Engines, name, lambda self, check=check, gpu=gpu, case=case: check(self, gpu, case))
    unittest.main(argv=sys.argv[:1])
