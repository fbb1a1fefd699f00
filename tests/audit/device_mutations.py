"""Single edits of programs for GPUs, of the host's half (HOST) or of the kernels (DEVICE), each with the claim that must
notice it."""

import re

from mutations import include, insert, replace

KERNEL = re.compile(r"^__global__ void __launch_bounds__\(\d+\) (\w+)\([^;{]*\) \{\n", re.M)
LAST = re.compile(r"^__global__ void __launch_bounds__\(\d+\) (prepare_update|update|sum_squares)\([^;{]*\) \{\n", re.M)
# Of a kernel whose result is read: the launch, or of two that go by what memory allows the one in packs, which runs.
LAUNCHED = r"accel_launch\(device::(?:embedding(?:_plus)?|(?:add_)?(?:layer|rms)_norm|attention)_\d\w+"
LAUNCH = rf"\n(?:  {LAUNCHED}(?:<1>)?|    {LAUNCHED}<[48]>)"
PLACE = r"([\[+]) ?(r|t|i) \* (\d+) \+ (\w+)([\])])"  # within rows
# Up to its name and types; rows, columns, depth, and the step of y's rows.
MATMUL = r"(ACCEL_GPU_GEMM\((?:\w+,\s+){4})(\d+),\s+(\d+),\s+(\d+),\s+(\d+)"
SWEEP = r"(for \(size_t i = \(size_t\)blockIdx\.x \* )256( \+ threadIdx\.x)(; i < )([\w>-]+)(; i \+= \(size_t\)gridDim\.x \* 256\))"
# The bound of a kernel that finds its places by division.
SPLIT = r"(  const uint32_t first = [^\n]*\n  if \(first >= )(\d+)(\) return;\n  const size_t i = first / )"
GUARD = r"\n  if \((i|first|r) >= (\d+[13579])\) return;"  # an odd count fills no block


def at_start_of(pattern, line, header=None):
    """In a function that is used: a template of a kernel that nothing launches is no code."""
    def kind(text, rng):
        found = [m for m in pattern.finditer(text) if not m.re.groups or len(re.findall(rf"\b{m[1]}\b", text)) > 1]
        text = insert(text, rng.choice(found).end(), f"  {line}") if found else None
        return include(text, header) if header and text else text
    return kind


def in_host(name, line, header=None):
    return at_start_of(re.compile(rf"^static void {name}\([^;{{]*\) \{{\n", re.M), line, header)


def bodies(pattern):
    return lambda text: [(m.end(), text.index("\n}\n", m.end())) for m in pattern.finditer(text)]


def fewer_blocks(match, rng):
    return f"{match[1]}{int(match[2]) - 1}," if int(match[2]) > 1 else None


def fewer_blocks_of(match, rng):
    return f"{match[1]}{int(match[2]) - 1}{match[3]}"


def wider_rows(match, rng):
    return f"{match[1]} {match[2]} * {int(match[3]) + 1} + {match[4]}{match[5]}"


def own_memory(text, rng):
    """A kernel is handed an array of the host's, by whichever of its launches runs."""
    launch = re.compile(r"(  accel_launch\(device::\w+(?:<\d+>)?, \w+(?:\([^)]*\))?, \d+, )(?!sums\b)\w+")
    found = list(launch.finditer(text))
    if not found:
        return None
    start = text.index("{\n", text.rindex('extern "C"', 0, rng.choice(found).start())) + 2
    end = text.index("\n}\n", start)
    return insert(text[:start] + launch.sub(r"\1here", text[start:end]) + text[end:], start, "  float here[1 << 16];")


def lost(pattern):
    return replace(pattern, "")


HOST = {
    "GPU: host reads the device": ("address-spaces", in_host("step", "report.loss = arena->result[0];")),
    "GPU: host writes to the device": ("address-spaces", in_host("last_micro_step", "arena->result[0] = 0.0f;")),
    "GPU: host memory cleared as the device's": ("address-spaces", in_host(
        "last_micro_step", "accel_gpu_zero(accel_gpu_stream(ACCEL_COMPUTE), &report, sizeof report);")),
    "GPU: feed not sent": ("written-before-read", lost(r"\n  accel_gpu_feed_send\(\);")),
    "GPU: feed not taken": ("written-before-read", lost(r"\n  accel_gpu_feed_take\(\);")),
    "GPU: feed not filled": ("written-before-read", lost(r"\n  accel_load_\w+\([^;]*feed[^;]*;")),
    "GPU: device's arena too small": ("in-bounds", replace(r"\.arena_bytes = sizeof\(struct arena\)", r"\g<0> / 2")),
    "GPU: feed too small": ("in-bounds", replace(r"\.feed_bytes = sizeof\(struct feed\)", r"\g<0> / 2")),
    "GPU: launch lost": ("written-before-read", lost(r"\n  (?:layer_norm|embedding|attention|cross_entropy)_\d\w+\([^;]*;")),
    "GPU: last layer reads its own result": ("written-before-read", replace(
        r"(for \(int i = 0; i < (\d+); i\+\+\)[^;]*?saved->x\w*_of_\w+\[)i\]", lambda m, r: f"{m[1]}i == {int(m[2]) - 1} ? {m[2]} : i]")),
    "GPU: matmul too large": ("in-bounds", replace(MATMUL, lambda m, r: r.choice((
        f"{m[1]}{int(m[2]) + 1}, {m[3]}, {m[4]}, {m[5]}", f"{m[1]}{m[2]}, {m[3]}, {int(m[4]) + 1}, {m[5]}")))),
    "GPU: rows of a matmul too far apart": ("in-bounds", replace(
        MATMUL, lambda m, r: f"{m[1]}{m[2]}, {m[3]}, {m[4]}, {int(m[5]) + 1}")),
    "GPU: vocabulary": ("in-bounds", replace(r"\.vocabulary = ([1-9]\d*)", lambda m, r: f".vocabulary = {int(m[1]) + r.choice([1, 9])}")),
    "GPU: allocation in recorded work": ("no-allocation", in_host("last_micro_step", "(void)malloc(4);", "stdlib.h")),
    "GPU: environment in a step": ("no-environment", in_host("step", '(void)getenv("ACCEL");', "stdlib.h")),
    "GPU: wait in a step": ("no-runtime-between-steps", in_host("step", "accel_gpu_finish(accel_gpu_stream(ACCEL_COMPUTE));")),
}
DEVICE = {
    "GPU: guard lost": ("in-bounds", replace(GUARD, "")),
    "GPU: guard off by one": ("in-bounds", replace(GUARD, r"\n  if (\1 > \2) return;")),
    "GPU: too few blocks": ("written-before-read", replace(rf"({LAUNCH}, )(\d+),", fewer_blocks)),
    # Past the padding, too, with which copies of what a loop carries begin at multiples of 16 bytes.
    "GPU: index off by four": ("in-bounds", replace(PLACE, r"\1 \2 * \3 + \4 + 4\5", bodies(KERNEL))),
    "GPU: stride off by one": ("in-bounds aligned", replace(PLACE, wider_rows, bodies(KERNEL))),
    "GPU: rows of attention too far apart": ("in-bounds", replace(r"(\w_row = )(\d+)", lambda m, r: f"{m[1]}{2 * int(m[2])}")),
    "GPU: bias too far apart": ("in-bounds", replace(r"(bias_(?:head|row|key) = )([1-9]\d*)", lambda m, r: f"{m[1]}{2 * int(m[2])}")),
    "GPU: slopes of a bias too far apart": ("in-bounds", replace(r"(all_keys = )(\d+)", lambda m, r: f"{m[1]}{2 * int(m[2])}")),
    "GPU: second part of lse elsewhere": ("in-bounds", replace(r"(\brest = )(\d+)", lambda m, r: f"{m[1]}{int(m[2]) + r.choice([1, int(m[2])])}")),
    "GPU: slopes of more parts": ("in-bounds", replace(r"(accel_sum_of_parts<\d+, )(\d+)", lambda m, r: f"{m[1]}{int(m[2]) + 1}")),
    "GPU: slopes not cleared": ("written-before-read no-overlap", lost(r"\n  accel_launch\(device::ring_biased_\w+_clear,[^;]*;")),
    "GPU: samples of another block": ("in-bounds", replace(r"(samples = )([1-9]\d*)", lambda m, r: f"{m[1]}{int(m[2]) + 1}")),
    "GPU: update of a half": ("whole-arrays", replace(SWEEP, r"\g<1>256\2\3\4 / 2 + 1\5")),
    "GPU: update from the second element on": ("whole-arrays", replace(SWEEP, r"\g<1>256\2 + 1\3\4\5")),
    "GPU: update with gaps between threads": ("whole-arrays", replace(SWEEP, r"\g<1>256\2 * 2\3\4\5")),
    "GPU: update with a part of the threads": ("whole-arrays", replace(r"(device::update, (?:\d+|dim3\([^)]*\)), )256", r"\g<1>100")),
    "GPU: every other weight": ("whole-arrays", replace(r"(\n +)weights\[i\] = w;", r"\1weights[i / 2 * 2] = w;")),
    "GPU: copy of one element less": ("whole-arrays", replace(SPLIT, lambda m, r: f"{m[1]}{int(m[2]) - 1}{m[3]}")),
    "GPU: copy by too few blocks": ("whole-arrays", replace(r"(device::copy_\w+(?:<\d+>)?, )([2-9]|\d\d+)(, 256)", fewer_blocks_of)),
    "GPU: launcher does nothing": ("written-before-read", lost(rf"{LAUNCH},[^;]*;")),
    "GPU: other parameters": ("device-half", replace(r'(extern "C" void \w+\()', r"\1double more, ")),
    "GPU: kernel missing": ("device-half known-externals", replace(r'extern "C" void (?!open_kernels)(\w+)\(', r'extern "C" void \1_there(')),
    "GPU: thread leaves a kernel": ("whole-arrays", at_start_of(KERNEL, "if (blockIdx.x == 0 && threadIdx.x == 5) return;")),
    "GPU: thread leaves a kernel by its index": ("whole-arrays", replace(GUARD, r"\n  if (\1 >= \2 || \1 == 5) return;")),
    "GPU: write left out": ("whole-arrays", replace(r"\n( +)(\w+\[i\] = )", r"\n\1if (i != 5) \2", bodies(KERNEL))),
    "GPU: host memory in a kernel": ("address-spaces", own_memory),
    "GPU: print in a kernel": ("no-file", at_start_of(KERNEL, 'printf("here");', "stdio.h")),
    "GPU: allocation in a kernel": ("no-allocation", at_start_of(KERNEL, "(void)malloc(8);", "stdlib.h")),
    "GPU: clock in a kernel": ("no-clock", at_start_of(KERNEL, "(void)clock();", "time.h")),
    "GPU: assembler in a kernel": ("nothing-hidden", at_start_of(KERNEL, '__asm__ volatile("nop");')),
    "GPU: string in a kernel": ("strings-listed", at_start_of(KERNEL, '(void)"curl example.org | sh";')),
    "GPU: loop without end": ("bounded-loops", at_start_of(LAST, "for (size_t i = 1; i != 0; i = i * 3 + blockIdx.x) {\n  }")),
    "GPU: call through a pointer": ("no-indirect-call", at_start_of(KERNEL, "float (*volatile f)(float) = fabsf;\n  (void)f(1.0f);")),
    "GPU: what the table does not know": ("device-half known-externals", at_start_of(KERNEL, "(void)wcslen(0);", "wchar.h")),
}
