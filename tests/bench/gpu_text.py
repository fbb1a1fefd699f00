"""What can be said of a program's speed on an H100 without one: bounds from its text, its machine code and documented numbers (NVIDIA,
"H100 Tensor Core GPU Architecture", SXM5; limits of compute capability 9.0 in the CUDA C++ Programming Guide). Nothing here is a time that
something took.

usage: gpu_text.py JOB.yaml [--set KEY=VALUE ...] [--rate 0.75] [--templates FOLDER] [--all]

A line for each kernel of the program's own:

  launches    in a step
  MB, ms      what it must read and write in a step, and how long that takes at 3.35 TB/s: operands once, logits twice and their gradients once
  loads       of its text, so many of so many bytes each; stores the same
  registers   of a thread; spills: bytes that it keeps in memory for want of more
  warps       that a multiprocessor holds, of 64
  blocks      of a launch; waves: so many times what runs at once
  in flight   KiB that the loads of a multiprocessor have on their way while its threads wait: those of the loop that loads most, or of a
              kernel without loops, by how often a thread waits in it. 3.35 TB/s for 700 ns are 18 KiB of each multiprocessor; under load, twice that

and then the step: matmuls and attention at their documented rate and at --rate of it, and all others at 3.35 TB/s, one kernel after the
other. Launches take no time here, and caches keep nothing from one kernel to the next. --all: kernels below 0.5 % of the others' time, too.
It needs nvcc, and nvdisasm (the toolkit's, or the wheel nvidia-cuda-nvdisasm)."""

import argparse
import collections
import math
import pathlib
import re
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "audit"), str(TREE / "tests" / "cuda")]
import machine_code  # noqa: E402
from test_sass import find_tool  # noqa: E402

GENERATOR = TREE / "build" / "accel-gen"
MULTIPROCESSORS, BANDWIDTH, PEAK = 132, 3.35e12, 989.4e12
REGISTERS, THREADS, BLOCKS, SHARED = 65536, 2048, 32, 227 * 1024
WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}

Code = collections.namedtuple("Code", "usage loads stores in_flight")
Line = collections.namedtuple("Line", "kernel launches bytes blocks threads")


# ---- Machine code ----


def walk(instructions):
    """Of instructions in a row: loads and stores by width, and how often a thread waits for loads: for all that are on their way, as
    they come about when the first of them does."""
    loads, stores, pending, waits = collections.Counter(), collections.Counter(), set(), 0
    for instruction in instructions:
        name, _, operands = instruction.partition(" ")
        is_load = name.startswith("LDG")
        used = {int(n) for n in re.findall(r"\bR(\d+)", operands.partition(",")[2] if is_load else operands)}
        if pending & used:
            waits, pending = waits + 1, set()
        if not is_load and not name.startswith("STG"):
            continue
        width = next((WIDTHS[part] for part in name.split(".") if part in WIDTHS), 4)
        (loads if is_load else stores)[width] += 1
        if is_load and (to := re.match(r"\s*R(\d+)", operands)):
            pending |= {int(to[1]) + i for i in range(max(1, width // 4))}
    return loads, stores, waits + bool(pending)


def instructions_of(text):
    """The instructions of a function, and its loops as pairs of positions among them."""
    lines, labels, loops = [], {}, []
    for line in text.split("\n"):
        if match := re.match(r"(\.L_x_\d+):", line):
            labels[match[1]] = len(lines)
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?\s*(.*?) ?;", line):
            lines.append(match[1])
            target = re.search(r"BRA.*\((\.L_x_\d+)\)", match[1])
            if target and labels.get(target[1], len(lines)) < len(lines) - 1:
                loops.append((labels[target[1]], len(lines)))
    return lines, loops


def moved(loads):
    return sum(width * count for width, count in loads.items())


def code_of(usage, text):
    lines, loops = instructions_of(text)
    loads, stores, waits = walk(lines)
    body = max((walk(lines[first:end]) for first, end in loops), key=lambda part: moved(part[0]), default=(loads, stores, waits))
    if moved(body[0]) == 0:
        body = (loads, stores, waits)
    return Code(usage, loads, stores, moved(body[0]) / max(1, body[2]))


def codes_of(path):
    """{kernel: Code} of a .cu."""
    tools = {name: find_tool(name) for name in ("nvcc", "nvdisasm")}
    for name, found in tools.items():
        if found is None:
            print(f"SKIPPED: there is no {name}")
            sys.exit(77)
    cubin = path.with_suffix(".cubin")
    output = subprocess.run([tools["nvcc"], "-std=c++17", "-O3", "-arch=sm_90a", "-cubin", "-Xptxas", "-v", f"-I{TREE}/include", path, "-o",
                           cubin], check=True, capture_output=True, text=True).stderr
    text = subprocess.run([tools["nvdisasm"], cubin], check=True, capture_output=True, text=True).stdout
    bodies = re.findall(r"\n\t\.section\t\.text\.([^\s,]+),(.*?)(?=\n\t\.section|\Z)", text, re.S)
    usage = machine_code.usage(output)
    return {machine_code.plain(name): code_of(usage[machine_code.plain(name), "sm_90a"], body) for name, body in bodies}


def resident(usage, threads):
    """Blocks that a multiprocessor holds: a warp takes registers by 256, a block 1 KiB of shared memory in addition to its own."""
    warps = -(-threads // 32)
    by_registers = REGISTERS // (-(-usage.registers * 32 // 256) * 256) // warps
    return max(1, min(THREADS // (32 * warps), BLOCKS, by_registers, SHARED // (usage.shared + 1024)))


# ---- The program ----


def functions(text):
    """{name: body} of what is void and named in one."""
    return {match[1]: match[2] for match in re.finditer(r'^(?:static |extern "C" )?void (\w+)\([^;{]*\) \{\n(.*?)^\}', text, re.M | re.S)}


def iterations(line):
    """Of a loop over constants, as the program spells them."""
    if match := re.match(r"\s*for \(\w+ \w+ = (\d+); \w+ < (\d+); \w+(?:\+\+| \+= (\d+))\)", line):
        return -(-(int(match[2]) - int(match[1])) // int(match[3] or 1))
    match = re.match(r"\s*for \(\w+ \w+ = (\d+); \w+ >= 0; \w+--\)", line)
    return int(match[1]) + 1 if match else 1


def count_calls(bodies, name, times, found):
    """Adds to found[f] how often `times` calls of a function call f, directly and through others. Loops are recognized by indentation."""
    loops = []
    for line in bodies.get(name, "").split("\n"):
        indent = len(line) - len(line.lstrip())
        loops = [loop for loop in loops if loop[0] < indent]
        if line.lstrip().startswith("for ("):
            loops.append((indent, iterations(line)))
        count = times * math.prod(loop[1] for loop in loops)
        for called in re.findall(r"(\w+)\(", line):
            found[called] += count
            count_calls(bodies, called, count, found)


def launches(body):
    """[(kernel, blocks, threads)] of a launcher, in the width that aligned memory allows; blocks are None where the caller says how many."""
    body = re.sub(r"\n  else\n    accel_launch\(.*?\);", "", body, flags=re.S)
    found = []
    for kernel, grid, threads in re.findall(r"accel_launch\((?:device::)?(\w+(?:<[^>]*>)?), (dim3\([^)]*\)|[^,]+), (\d+),", body):
        extents = [int(n) for n in re.findall(r"\b\d+\b", grid)]
        kernel = re.sub(r"<(?!\d+>).*", "", kernel)  # types are not distinguished
        found.append((kernel, math.prod(extents) if extents else None, int(threads)))
    return found


def parts_of(profiled):
    """{kernel: (operations, bytes of its operands)}, as a program has them that is to measure itself."""
    return {part: (float(flops), float(size)) for part, flops, size in re.findall(r'= \{"(\w+)",\s+(\d+),\s+(\d+)\}', profiled)}


def update_bytes(device):
    """An update reads gradients, reads and writes weights and states, and writes copies in 16 bits."""
    arrays = re.search(r"^struct arrays \{\n(.*?)^\}", device, re.M | re.S)[1]
    count = int(re.search(r"i < (\d+); i \+= ", device[device.index(" update(struct arrays"):])[1])
    each = 0
    for kind, names in re.findall(r"^  (\w+) (\*.*);", arrays, re.M):
        for name in names.split(","):
            once = "gradients" in name or kind.startswith("accel_")
            each += (4 if kind == "float" else 2) * (1 if once else 2)
    return each * count


def logits_of(host, name):
    """A chunk's rows, and the bytes of their logits."""
    fields = re.search(rf"ACCEL_GPU_GEMM\({name}_logits,\s+(.*?)\);", host, re.S)[1].replace("\n", " ").split(",")
    result, rows, row = fields[1].strip(), int(fields[3]), int(fields[6])
    return rows, rows * row * (4 if result == "F32" else 2)


def lines_of(host, device, parts):
    """Lines of the program's own kernels; operations of the others in a step, with their operands' bytes, as (operations, bytes, times)."""
    bodies, launchers, calls = functions(host), functions(device), collections.Counter()
    count_calls(bodies, "last_micro_step", 1, calls)
    lines, matmuls = [], []
    for name, count in calls.items():
        flops, size = parts.get(name, (0.0, 0.0))
        rows = None
        if name == "sum_squares":
            size = parts["gradient_norm"][1]
        elif name == "update":
            size = update_bytes(device)
        elif name.endswith("_rows") and name[:-len("_rows")] in parts:
            rows, logits = logits_of(host, name[:-len("_rows")])
            size = 3 * logits
        if name not in launchers:
            matmuls += [(flops, size, count)] if flops else []
            continue
        for number, (kernel, blocks, threads) in enumerate(launches(launchers[name])):
            lines.append(Line(kernel, count, size * count if number == 0 else 0, blocks or rows or 1, threads))
    return lines, matmuls


def generate(folder, options, more):
    words = [word for setting in [*options.set, "devices.kind=cuda", *more] for word in ("--set", setting)]
    templates = ["--templates", options.templates] if options.templates else []
    subprocess.run([GENERATOR, *templates, options.job, *words, "-o", folder / "trainer.c"], check=True)
    return (folder / "trainer.c").read_text()


def table(lines, codes, least):
    print("| kernel | launches | MB | ms | loads | stores | registers | spills | warps | blocks | waves | KiB in flight |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for line in sorted(lines, key=lambda line: -line.bytes):
        if line.bytes < least:
            continue
        code = codes[line.kernel]
        at_once = resident(code.usage, line.threads)
        loads, stores = (" ".join(f"{count} x {width}" for width, count in sorted(each.items(), reverse=True)) for each in (code.loads, code.stores))
        print(f"| {line.kernel} | {line.launches} | {line.bytes / 1e6:.0f} | {line.bytes / BANDWIDTH * 1e3:.2f} | {loads} | {stores} | "
              f"{code.usage.registers} | {code.usage.spilled} | {at_once * -(-line.threads // 32)} | {line.blocks} | "
              f"{line.blocks / at_once / MULTIPROCESSORS:.1f} | {code.in_flight * at_once * line.threads / 1024:.0f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--rate", type=float, default=0.75)
    parser.add_argument("--templates")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        profiled = generate(folder, options, ["profile.with_flops=true", "profile.schedule.active=1"])
        parts = parts_of(profiled)
        host = generate(folder, options, [])
        lines, matmuls = lines_of(host, (folder / "trainer.cu").read_text(), parts)
        codes = codes_of(folder / "trainer.cu")
    rest = sum(line.bytes for line in lines) / BANDWIDTH
    table(lines, codes, 0 if options.all else 0.005 * rest * BANDWIDTH)
    work = sum(flops * count for flops, _, count in matmuls)
    print(f"\n{work / 1e12:.2f} TFLOP of matmuls and attention; {sum(line.launches for line in lines)} launches of the program's own kernels")
    for rate in (1.0, options.rate):
        times = sum(max(flops / (rate * PEAK), size / BANDWIDTH) * count for flops, size, count in matmuls)
        print(f"matmuls at {rate:g} of {PEAK / 1e12:g} TFLOP/s: a step takes at least {times * 1e3:.2f} + {rest * 1e3:.2f} = {(times + rest) * 1e3:.2f} ms, "
              f"and does at most {work / (times + rest) / PEAK:.3f} of {PEAK / 1e12:g} TFLOP/s")


if __name__ == "__main__":
    main()
