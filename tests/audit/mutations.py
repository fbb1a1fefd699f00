"""Single edits of emitted trainers, each with the claim that must notice it. A kind takes a program's text and a random
generator and gives the edited text, or None where the program has nothing to edit."""

import random
import re

KERNEL = re.compile(r"^static void (\w+)\((?:[^;{]*)\) \{\n", re.M)
LOOP = re.compile(r"for \(size_t (\w+) = 0; \1 < (\d+); \1\+\+\)")


def kernels(text):
    """Where the bodies of kernels begin: functions whose parameters all have an extent."""
    found = []
    for match in KERNEL.finditer(text):
        head = match[0]
        if "[static" in head and "struct" not in head and "*" not in head.replace(" * ", ""):
            found.append(match.end())
    return found


def body(text, name):
    """The span of the body of a function."""
    start = re.search(rf"^static void {name}\([^;{{]*\) \{{\n", text, re.M)
    return start and (start.end(), text.index("\n}\n", start.end()) + 1)


def insert(text, at, line):
    return text[:at] + line + "\n" + text[at:]


def include(text, header):
    return text.replace("#include <assert.h>", f"#include <assert.h>\n#include <{header}>", 1)


def in_kernel(line, header=None):
    def kind(text, rng):
        positions = kernels(text)
        text = insert(text, rng.choice(positions), f"  {line}") if positions else None
        return include(text, header) if header and text else text
    return kind


def in_function(name, line, header=None):
    def kind(text, rng):
        at = re.search(rf"^(static void|int) {name}\([^;{{]*\) \{{\n", text, re.M)
        text = insert(text, at.end(), f"  {line}") if at else None
        return include(text, header) if header and text else text
    return kind


def at_top(*lines):
    def kind(text, rng):
        return text.replace("/* ---- Kernels ---- */", rng.choice(lines) + "\n\n/* ---- Kernels ---- */", 1)
    return kind


def replace(pattern, change, where=lambda text: [(0, len(text))]):
    """One random match of a pattern, inside one of the spans that `where` gives."""
    def kind(text, rng):
        found = [m for low, high in where(text) for m in re.finditer(pattern, text) if low <= m.start() < high]
        if not found:
            return None
        match = rng.choice(found)
        new = change(match, rng) if callable(change) else match.expand(change)
        return None if new is None or new == match[0] else text[:match.start()] + new + text[match.end():]
    return kind


def looked_up(pattern, change):
    """Of programs that look tokens up as they are. Where ranks have parts of a vocabulary, a token beyond it is nobody's."""
    kind = replace(pattern, change)
    return lambda text, rng: None if "own_index" in text else kind(text, rng)


def kernel_spans(text):
    return [(at, text.index("\n}\n", at)) for at in kernels(text)]


def regions(suffix):
    def spans(text):
        names = re.findall(rf"^static void (\w+_{suffix})\(", text, re.M)
        return [span for span in (body(text, name) for name in names) if span]
    return spans


def recursion(text, rng):
    """A kernel that calls itself with its own arguments."""
    found = [m for m in KERNEL.finditer(text) if m.end() in kernels(text)]
    match = rng.choice(found)
    names = re.findall(r"(\w+)\[static", match[0])
    if len(names) != match[0].count(",") + 1:
        return None
    return insert(text, match.end(), f"  {match[1]}({', '.join(names)});")


def pointer_call(text, rng):
    at = rng.choice(kernels(text))
    return insert(text, at, "  float (*volatile f)(float) = fabsf;\n  (void)f(1.0f);")


def configured(text, rng):
    text = text.replace("/* ---- Kernels ---- */", "static int mode;\n\n/* ---- Kernels ---- */", 1)
    return insert(text, rng.choice(kernels(text)), "  if (mode) return;")


def configured_size(text, rng):
    text = text.replace("/* ---- Kernels ---- */", "static size_t extent;\n\n/* ---- Kernels ---- */", 1)
    return replace(LOOP.pattern, r"for (size_t \1 = 0; \1 < extent; \1++)", kernel_spans)(text, rng)


def early_return(text, rng):
    at = rng.choice(kernels(text))
    names = re.findall(r"const float (\w+)\[static", text[text.rindex("static void", 0, at):at])
    return insert(text, at, f"  if ({names[-1]}[0] > 3.0f) return;") if names else None


def data_loop(text, rng):
    at = rng.choice(kernels(text))
    names = re.findall(r"const float (\w+)\[static", text[text.rindex("static void", 0, at):at])
    return insert(text, at, f"  for (float t = {names[-1]}[0]; t > 1.0f; t *= 0.5f) {{\n  }}") if names else None


def without_asserts(text):
    return re.sub(r"^static_assert\(.*\n", "", text, flags=re.M)


def united(text, rng):
    """Two buffers of a scratch or saved struct become members of a union."""
    found = list(re.finditer(r"^struct \w+_(?:saved|backward_scratch) \{\n((?:  alignas\(64\) float .*\n){2,})", text, re.M))
    if not found:
        return None
    match = rng.choice(found)
    lines = match[1].splitlines(keepends=True)
    at = rng.randrange(len(lines) - 1)
    lines[at:at + 2] = ["  union {\n", lines[at], lines[at + 1], "  };\n"]
    return without_asserts(text[:match.start(1)] + "".join(lines) + text[match.end(1):])


def smaller_member(match, rng):
    count = eval(match[3])  # noqa: S307: a product of two numbers
    return f"{match[1]}{match[2]}[{count - 17}]" if count > 32 else None


def of_ranks(*changes, mark="accel_wait_collectives"):
    """One of the changes, (pattern, new text), in a program of several ranks, which has `mark`; `rank` is in its reach."""
    def kind(text, rng):
        if mark not in text:
            return None
        new = replace(*rng.choice(changes))(text, rng)
        if new is None or "static int64_t rank;" in new:
            return new
        new = new.replace("/* ---- Kernels ---- */", "static int64_t rank;\n\n/* ---- Kernels ---- */", 1)
        return re.sub(r"( = accel_start\(.*\n)", r"\1  rank = accel_rank(run);\n", new, count=1)
    return kind


# A sum of activations over ranks that divide tensors: where it is, and its arguments.
SUM = r"(accel_all_reduce_(?:bfloat16_)?from)\((\w+), (\w+), (\w+), (\d+)\)"
SUM_CALL = r"\n  (all_reduce_\w+\(|accel_all_reduce\w*\()([^;]*;)"


# An exchange of the parts of sequences, and its arguments.
EXCHANGE = r"(accel_all_to_all)\((\w+), (\w+), (\w+), (\d+) \* sizeof \*(\w+)\)"


def of_exchanges(*changes):
    return of_ranks(*changes, mark="(ACCEL_SP,")


# What goes round ranks: to whom, what, from whom, whereto, how much.
RING = r"(accel_send_receive\(ACCEL_CP, )(-?\d+), (\w+), (-?\d+), (\w+), (\d+)( \* sizeof)"


def of_rings(*changes):
    return of_ranks(*changes, mark="(ACCEL_CP,")


# A collective between parts of activations and the whole: its operands, how many blocks, and how long a range of each is.
PARTS = r"(accel_(?:all_gather|reduce_scatter)_(?:bfloat16_)?parts)\(ACCEL_TP, ([^;]*), (\d+), (\d+)\);"
PARTS_CALL = r"\n  ((?:all_gather|reduce_scatter)_\w+\([^;]*;)"


def of_parts(*changes):
    return of_ranks(*changes, mark="_parts(ACCEL_TP,")


def other_parts(outer, length):
    return replace(PARTS, lambda m, r: f"{m[1]}(ACCEL_TP, {m[2]}, {outer(int(m[3]), r)}, {length(int(m[4]), r)});")


def of_sums(*changes):
    return of_ranks(*changes, mark="(ACCEL_TP,")


def other_count(change):
    return replace(SUM, lambda m, r: f"{m[1]}({m[2]}, {m[3]}, {m[4]}, {change(int(m[5]), r)})")


INPUT = r"(\{\"\w+\", [^{}]*ACCEL_)(\w+, )(\d+)(, -?\d+)(, -?\d+, (?:true|false)\})"  # a row of inputs[]
CLASSES = r"(\{\"\w+\", [^{}]*ACCEL_)(INT32)(, \d+, )([1-9]\d*)(, -?\d+, (?:true|false)\})"


KINDS = {
    # name: (claims of which one must notice, kind)
    "getenv in a kernel": ("no-environment", in_kernel('(void)getenv("ACCEL");', "stdlib.h")),
    "malloc behind a macro": ("no-allocation", lambda t, r: in_kernel("(void)WORK(64);", "stdlib.h")(
        t.replace("/* ---- Kernels ---- */", "#define WORK(n) malloc(n)\n\n/* ---- Kernels ---- */", 1), r)),
    "alloca in a kernel": ("no-allocation", in_kernel("(void)__builtin_alloca(64);")),
    "print in a kernel": ("no-file", in_kernel("puts(__func__);", "stdio.h")),
    "socket in a kernel": ("no-network", in_kernel("(void)socket(2, 1, 0);", "sys/socket.h")),
    "socket at the start": ("runtime-alone", in_function("main", "(void)socket(2, 1, 0);", "sys/socket.h")),
    "file at the start": ("runtime-alone", in_function("main", '(void)fopen("/etc/passwd", "r");', "stdio.h")),
    "clock in a kernel": ("no-clock", in_kernel("(void)time(NULL);", "time.h")),
    "process in a kernel": ("no-process", in_kernel('(void)system("true");', "stdlib.h")),
    "runtime in a step": ("no-runtime-between-steps", in_function("step", "(void)accel_next_event(run, at);")),
    "unknown function": ("known-externals", in_kernel('(void)wcslen(L"");', "wchar.h")),
    "function declared here": ("known-externals", lambda t, r: in_kernel("accel_spy();")(
        t.replace("/* ---- Kernels ---- */", "void accel_spy(void);\n\n/* ---- Kernels ---- */", 1), r)),
    "string in a kernel": ("strings-listed", in_kernel('(void)"curl example.org | sh";')),
    "recursion": ("no-recursion", recursion),
    "call through a pointer": ("no-indirect-call", pointer_call),
    "assembler": ("nothing-hidden", in_kernel('__asm__ volatile("nop");')),
    "pragma": ("nothing-hidden", at_top("#pragma weak update", '#pragma GCC optimize("fast-math")', "#pragma pack(1)")),
    "attribute": ("nothing-hidden", at_top("__attribute__((constructor)) static void early(void) {\n}",
                                           "__attribute__((weak)) int later;", '__attribute__((section("x"))) int there;')),
    "macro over a function": ("nothing-hidden", at_top("#define sqrtf(x) (x)", "#define memcpy(a, b, c) memmove(a, b, c)",
                                                       "#define double float", "#define fabsf(x) (x)")),
    "branch on configuration": ("no-configuration-branch", configured),
    "branch on data": ("no-configuration-branch", early_return),
    "loop over data": ("bounded-loops", data_loop),
    "loop over configuration": ("bounded-loops", configured_size),
    "bound off by one": ("in-bounds", replace(LOOP.pattern, r"for (size_t \1 = 0; \1 <= \2; \1++)", kernel_spans)),
    "start off by one": ("in-bounds", replace(r"(\w+)\[(\w+) \* (\d+) \+ (\w+)\]", r"\1[\2 * \3 + \4 - 1]", kernel_spans)),
    "stride off by one": ("in-bounds", replace(r"\[(\w+) \* (\d+) \+ (\w+)\]",
                                               lambda m, r: f"[{m[1]} * {int(m[2]) + 1} + {m[3]}]", kernel_spans)),
    "array too short": ("in-bounds written-before-read", lambda t, r: without_asserts(
        replace(r"(  alignas\(64\) float )(\w+)\[(\d+ \* \d+)\]", smaller_member)(t, r) or "") or None),
    "layers off by one": ("in-bounds", replace(r"for \(int i = 0; i < (\d+); i\+\+\)",
                                               lambda m, r: f"for (int i = 0; i < {int(m[1]) + 1}; i++)", regions("forward"))),
    "vocabulary": ("in-bounds", looked_up(r"\.vocabulary = ([1-9]\d*)", lambda m, r: f".vocabulary = {int(m[1]) + r.choice([1, 9])}")),
    "vocabulary unchecked": ("in-bounds", looked_up(r"\.vocabulary = [1-9]\d*", ".vocabulary = 0")),
    "row of another rank": ("in-bounds", replace(r"own < (\d+) \? own : -1", lambda m, r: f"own < {int(m[1]) + r.choice([1, 9])} ? own : -1")),
    "row of no rank": ("in-bounds", replace(r"row = token >= 0 \? token : 0;", "row = token;")),
    # Rows of named inputs.
    "input too wide": ("in-bounds", replace(INPUT, lambda m, r: f"{m[1]}{m[2]}{int(m[3]) + r.choice([1, 7])}{m[4]}{m[5]}")),
    "input too narrow": ("written-before-read", replace(INPUT, lambda m, r: f"{m[1]}{m[2]}{int(m[3]) - 1}{m[4]}{m[5]}")),
    "input of more classes": ("in-bounds", replace(CLASSES, lambda m, r: f"{m[1]}INT32{m[3]}{int(m[4]) + r.choice([1, 9])}{m[5]}")),
    "input of any integers": ("in-bounds", replace(CLASSES, r"\1INT32\g<3>0\5")),
    "input of floats": ("in-bounds", replace(CLASSES, r"\1FLOAT32\3\4\5")),
    "input into another": ("in-bounds written-before-read", replace(
        r"&inputs\[(\d)\], (arena->\w+)", lambda m, r: f"&inputs[{1 - int(m[1])}], {m[2]}")),
    "input of another table": ("in-bounds", lambda t, r: replace(r"&inputs\[1\]", "&others[1]")(
        re.sub(r"static const struct accel_input inputs(\[\] = \{.*?\n\};\n)", r"\g<0>static const struct accel_input others\1", t, flags=re.S), r)),
    "input of a table that may change": ("in-bounds", replace(r"static const (struct accel_input inputs\[\])", r"static \1")),
    "input that the runtime does not read": ("in-bounds", replace(r"\.n_inputs = \d+", ".n_inputs = 1")),
    "description that is changed": ("in-bounds", looked_up(r"static const (struct accel_program program)", r"static \1")),
    "sequence length": ("in-bounds", replace(r"\.sequence_length = ([1-9]\d*)",
                                             lambda m, r: f".sequence_length = {int(m[1]) + 1}")),
    "arena too small": ("in-bounds", replace(r"\.arena_bytes = sizeof\(struct arena\)", r"\g<0> / 2")),
    "leading dimension": ("in-bounds", replace(r"(accel_gemm\('N', 'N', \d+, \d+, \d+, \w+, )(\d+)",
                                               lambda m, r: f"{m[1]}{int(m[2]) + 1}", kernel_spans)),
    "lost matmul": ("written-before-read", replace(r"\n  matmul_\w+\([^;]*;", "", regions("forward"))),
    "lost reset": ("written-before-read", replace(r"\n  memset\(arena->all_gradients[^;]*;", "")),
    "loop one short": ("whole-arrays", replace(r"(\w+ = 0; \w+ < )(\d+)(; \w+\+\+\)\n#pragma omp simd)",
                                                      lambda m, r: f"{m[1]}{int(m[2]) - 1}{m[3]}", kernel_spans)),
    "sums not cleared": ("written-before-read", replace(r"(float sums\[\d+\]) = \{0\.0f\}", r"\1", kernel_spans)),
    "buffers united": ("no-overlap written-before-read", united),
    "gradients cleared over activations": ("no-overlap", lambda t, r: in_function(
        "backward", "memset(arena->all_gradients, 0, sizeof arena->all_gradients);")(t, r) if "struct aliased" in t else None),
    "matmul in place": ("no-overlap", replace(r"\n  (matmul_\w+)\((\w[\w>-]*), (saved->\w+),", r"\n  \1(\3, \3,",
                                               regions("forward"))),
    "count by the rank": ("same-collectives", of_ranks(
        (r"(accel_start_all_reduce[^;]*\.count)", r"\1 * (size_t)rank"),
        (r"(accel_all_reduce_doubles\([^;]*, )(\d)\)", r"\1rank == 0 ? \2 : 0)"),
        (r"(accel_all_reduce_doubles\([^;]*, )(\d)\)", r"\1\2 + (size_t)rank)"))),
    "count by data": ("same-collectives", of_ranks(
        (r"(accel_all_reduce_doubles\([^;]*, )(\d)\)", r"\1\2 - (report.loss > 9.0))"),
        (r"(accel_start_all_reduce[^;]*\.count)", r"\1 - (size_t)arena->tokens[0]"))),
    "offset by the rank": ("same-collectives", of_ranks(
        (r"(accel_start_all_reduce[^;]*all_gradients \+ )", r"\1(size_t)rank + "),
        (r"(accel_start_all_reduce[^;]*all_gradients) \+", r"\1 + 4 * (rank % 2) +"))),
    "axis by the rank": ("same-collectives", of_ranks((r"(accel_\w*all_reduce\w*\()ACCEL_DP_REPLICATE",
                                                      r"\1(enum accel_axis)rank"))),
    "order by the rank": ("same-collectives", of_ranks(
        (r"(accel_start_all_reduce[^;]*)buckets\[i\]\.first, buckets\[i\]",
         r"\1buckets[rank % 2 ? i : 0].first, buckets[rank % 2 ? i : 0]"),
        (r"send_gradients\((\d+), (\d+)\)", r"send_gradients(rank % 2 ? \1 : 0, \2)"),
        (r"send_gradients\(complete\[i \+ 1\]", "send_gradients(complete[rank % 2 ? i + 1 : i]"))),
    "collective of some ranks": ("same-collectives", of_ranks(
        (r"  (accel_\w*all_reduce|accel_wait|accel_advance|send_gradients\()", r"  if (rank == 0) \1"),
        (r"for \(size_t i = first; i < end; i\+\+\)", "for (size_t i = first; i < end - (size_t)rank; i++)"))),
    "collective by data": ("same-collectives", of_ranks(
        (r"  (accel_\w*all_reduce|accel_wait|accel_advance|send_gradients\()", r"  if (arena->result[0] < 9.0f) \1"),
        (r"\n  accel_wait_collectives", r"\n  if (report.loss > 9.0) return;\g<0>"))),
    "steps by the rank": ("same-collectives", of_ranks(
        (r"while \(at < accel_steps\(run\)\)", "while (at < accel_steps(run) - rank)"),
        (r"accel_next_event\(run, at\)", "accel_next_event(run, at + rank)"),
        (r"at < until;", "at < until - rank;"))),
    "evaluation of some ranks": ("same-collectives", of_ranks(
        (r"if \(accel_eval_is_due", r"if (rank == 0 && accel_eval_is_due"),
        (r"if \(accel_eval_is_due", r"if (report.loss < 9.0 && accel_eval_is_due"))),
    "sum of too many": ("in-bounds", other_count(lambda n, r: n + r.choice([1, 7, n]))),
    "sum of too few": ("whole-arrays", other_count(lambda n, r: n - r.choice([1, 7, n // 2]))),
    "norm of too many": ("in-bounds", replace(r"(accel_all_reduce_counts\(\w+, \w+, ACCEL_SQUARES)", r"\1 + 1")),
    "sum along another axis": ("same-collectives", replace(
        r"(accel_all_reduce\w*\()ACCEL_TP", lambda m, r: m[1] + r.choice(["ACCEL_CP", "ACCEL_DP_SHARD", "ACCEL_EP"]))),
    "parts of too many": ("in-bounds no-overlap", other_parts(lambda n, r: n, lambda n, r: n + r.choice([1, 7, n]))),
    "parts of too many blocks": ("in-bounds no-overlap", other_parts(lambda n, r: n + r.choice([1, 7, n]), lambda n, r: n)),
    "parts of too few": ("whole-arrays", other_parts(lambda n, r: n, lambda n, r: n - r.choice([1, 7, n // 2]))),
    "parts along another axis": ("same-collectives", replace(
        r"(accel_\w*_parts\()ACCEL_TP", lambda m, r: m[1] + r.choice(["ACCEL_CP", "ACCEL_DP_SHARD", "ACCEL_EP"]))),
    "parts of some ranks": ("same-collectives", of_parts(
        (PARTS_CALL, r"\n  if (rank == 0) \1"),
        (r"\n  (accel_(?:all_gather|reduce_scatter)_\w*parts)", r"\n  if (rank % 2) \1"))),
    "parts by data": ("same-collectives", of_parts(
        (PARTS_CALL, r"\n  if (arena->result[0] < 9.0f) \1"),
        (r"\n  (accel_(?:all_gather|reduce_scatter)_\w*parts)", r"\n  if ((float)x[0] < 0.0f) return;\n  \1"))),
    "parts of another length on some ranks": ("same-collectives", of_parts(
        (PARTS, r"\1(ACCEL_TP, \2, \3, \4 - (size_t)rank % 2);"))),
    "sum of some ranks": ("same-collectives", of_sums(
        (SUM_CALL, r"\n  if (rank == 0) \1\2"),
        (SUM, r"if (rank % 2) \1(\2, \3, \4, \5)"))),
    "sum by data": ("same-collectives", of_sums(
        (SUM_CALL, r"\n  if (arena->result[0] < 9.0f) \1\2"),
        (r"\n  (accel_all_reduce_\w*from)", r"\n  if ((float)x[0] < 0.0f) return;\n  \1"))),
    "sum on one side of a branch": ("same-collectives", of_sums(
        (SUM, r"if (rank % 2) \1(\2, \3, \4, \5);\n  else memmove(\4, \3, \5 * sizeof *\4)"),
        (SUM, r"if (rank % 2) \1(\2, \3, \4, \5);\n  else \1(\2, \4, \4, \5)"))),
    "sum over a part of itself": ("no-overlap", replace(SUM, lambda m, r: (
        f"{m[1]}({m[2]}, {r.choice([m[3] + ' + 1, ' + m[4], m[3] + ', ' + m[4] + ' + 1'])}, {int(m[5]) - 1})"))),
    "exchange of too many": ("in-bounds", replace(EXCHANGE, lambda m, r: (
        f"{m[1]}({m[2]}, {m[3]}, {m[4]}, {int(m[5]) + r.choice([1, 7, int(m[5])])} * sizeof *{m[6]})"))),
    "exchange of too few": ("whole-arrays", replace(EXCHANGE, lambda m, r: (
        f"{m[1]}({m[2]}, {m[3]}, {m[4]}, {int(m[5]) - r.choice([1, 7, int(m[5]) // 2])} * sizeof *{m[6]})"))),
    "exchange along another axis": ("same-collectives", replace(
        r"(accel_all_to_all\()ACCEL_SP", lambda m, r: m[1] + r.choice(["ACCEL_CP", "ACCEL_DP_SHARD", "ACCEL_TP"]))),
    "exchange of some ranks": ("same-collectives", of_exchanges(
        (r"\n  (all_to_all_\w+\(|accel_all_to_all\()([^;]*;)", r"\n  if (rank == 0) \1\2"),
        (EXCHANGE, r"\1(\2, \3, \4, (\5 - (size_t)rank) * sizeof *\6)"))),
    "exchange by data": ("same-collectives", of_exchanges(
        (r"\n  (all_to_all_\w+\(|accel_all_to_all\()([^;]*;)", r"\n  if (arena->result[0] < 9.0f) \1\2"))),
    "exchange with itself": ("no-overlap", replace(EXCHANGE, r"\1(\2, \3, \3, \5 * sizeof *\6)")),
    "part of another rank": ("in-bounds", replace(r"\+ (rank_along_[a-z]+) \*", r"+ (\1 + 1) *")),
    "message by the rank": ("same-collectives", of_rings(
        (RING, r"\1(int)rank_along_cp, \3, \4, \5, \6\7"), (RING, r"\1\2, \3, \4, \5, \6 / (rank_along_cp + 1)\7"),
        (r"\n( +)(accel_send_receive\([^;]*;)", r"\n\1if (rank_along_cp == 0) \2"),
        (r"if \(step > 0\)", "if (step > rank_along_cp)"))),
    "message of too much": ("in-bounds no-overlap", replace(RING, lambda m, r: (
        f"{m[1]}{m[2]}, {m[3]}, {m[4]}, {m[5]}, {int(m[6]) + r.choice([1, 7, int(m[6])])}{m[7]}"))),
    "message of too little": ("written-before-read no-overlap", replace(RING, lambda m, r: (
        f"{m[1]}{m[2]}, {m[3]}, {m[4]}, {m[5]}, {int(m[6]) - r.choice([1, 7, int(m[6]) // 2])}{m[7]}"))),
    "message over itself": ("no-overlap", replace(RING, r"\1\2, \3, \4, \3, \6\7")),
    # Rows that are sorted by group, as those of a mixture of experts.
    "sort without sums": ("in-bounds", replace(r"\n  for \(size_t g = 0; g < \d+; g\+\+\) y\[g \+ 1\] \+= y\[g\];", "")),
    "sort with sums of some": ("in-bounds", replace(
        r"g < (\d+)(; g\+\+\) y\[g \+ 1\] \+= y\[g\];)", lambda m, r: f"g < {int(m[1]) - 1}{m[2]}")),
    "sort counts others": ("in-bounds", replace(
        r"\n( +)y\[group \+ 1\]\+\+;", lambda m, r: "\n" + m[1] + r.choice([
            "y[group]++;", "y[group + 1] += 2;", "if (group > 0) y[group + 1]++;", "y[(uint8_t)group / 2 + 1]++;"]))),
    "sort places others": ("in-bounds", replace(
        r"y\[next\[group\]\+\+\]", lambda m, r: r.choice([
            "y[++next[group]]", "y[next[group / 2]++]", "y[next[0]++]", "y[next[group]++ + 1]", "y[next[(uint8_t)position % 2]++]"]))),
    "sort places twice": ("in-bounds", replace(
        r"\n( +)(y\[next\[group\]\+\+\] = [^;]*;)", lambda m, r: "\n" + m[1] + r.choice([
            f"{m[2]} {m[2]}", f"{m[2]} next[group]++;", f"memcpy(next, starts, sizeof next); {m[2]}", f"{m[2]} next[0] = 0;", f"for (int k = 0; k < 2; k++) {m[2]}"]))),
    "sort goes through others": ("in-bounds", replace(
        r"(position = \(int32_t\)\(\(b \* \d+ \+ r\) \* )(\d+) \+ c\)", lambda m, r: m[1] + r.choice([
            "1 + c)", f"{m[2]} + c / 2)", f"{m[2]} + c) / 2", f"{m[2]})", f"{m[2]} + c) + (b > 100)"]))),
    "sort of what is changed": ("in-bounds", replace(
        r"\n( +)(group_order_\w+\([^,;]*, ([\w>-]+), [^;]*;)", r"\n\1memset(\3, 0, 16);\n\1\2")),
    "sort by other starts": ("in-bounds", replace(
        r"\n( +)(group_order_\w+\([^,;]*, [\w>-]+, ([\w>-]+)\);)", r"\n\1\3[1] += 1;\n\1\2")),
    "sorted positions as rows": ("in-bounds", replace(r"(y\[next\[group\]\+\+\] = position) / \d+;", r"\1;")),
    "group of nobody": ("in-bounds", replace(r"(y\[group) \+ 1\]\+\+;", r"\1 + 2]++;")),
    "rows of a group too many": ("in-bounds", replace(
        r"(const size_t first = \(size_t\)starts\[g\], rows = )(\(size_t\)starts\[g \+ 1\] - first);", lambda m, r: m[1] + r.choice([
            f"{m[2]} + 1;", "(size_t)starts[g + 1];", "first - (size_t)starts[g + 1];"]))),
    "rows of a group too far": ("in-bounds", replace(r"([xyab] \+ first \* )(\d+)", lambda m, r: f"{m[1]}{int(m[2]) + 1}")),
    "rows after the last group": ("in-bounds", replace(
        r"(memset\(y \+ end \* \d+, 0, \()(\d+)( - end\))", lambda m, r: f"{m[1]}{int(m[2]) + 1}{m[3]}")),
    "rows after the last group lost": ("written-before-read", replace(r"\n  memset\(y \+ end \* [^;]*;", "")),
    "group that is left out": ("written-before-read", replace(
        r"g < (\d+)(; g\+\+\) \{\n    const size_t first[^}]*, 0\.0f, )", lambda m, r: f"g < {int(m[1]) - 1}{m[2]}")),
    "sort that ends early": ("in-bounds", replace(
        r"\n( +)(y\[group \+ 1\]\+\+;)", r"\n\1\2\n\1if (group > 1) break;")),
    "overflow": ("no-overflow", in_kernel("for (int i = 0; i < 64; i++) (void)(i * 100000000);")),
}


def mutate(kind, text, seed):
    return KINDS[kind][1](text, random.Random(f"{kind} {seed}"))
