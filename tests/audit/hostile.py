"""Edits of a trainer by an author who means harm, each with the claims one of which must find it. A kind takes a program's text and a
random generator and gives the edited text, or None where the program has nothing to edit."""

import re

from mutations import include, insert

STEP = re.compile(r"^static void step\(struct accel_run \*run, int64_t at\) \{\n", re.M)
LOOP = re.compile(r"^( *)#pragma omp (parallel for simd|parallel for|simd)\n( *for \(size_t (\w+) = 0; \4 < (\d+); \4\+\+\) \{\n)", re.M)


def in_step(line, header=None):
    def kind(text, rng):
        at = STEP.search(text)
        text = insert(text, at.end(), f"  {line}") if at else None
        return include(text, header) if header and text else text
    return kind


def at_top(*lines, header=None):
    def kind(text, rng):
        text = text.replace("/* ---- Training ---- */", rng.choice(lines) + "\n\n/* ---- Training ---- */", 1)
        return include(text, header) if header else text
    return kind


def both(*kinds):
    def kind(text, rng):
        for each in kinds:
            text = text and each(text, rng)
        return text
    return kind


def put(old, new):
    """Text in place of another one; None where it is not there."""
    return lambda text, rng: text.replace(old, new, 1) if old in text else None


def put_like(pattern, new):
    def kind(text, rng):
        edited = re.sub(pattern, new, text, count=1, flags=re.M)
        return edited if edited != text else None
    return kind


def pragma(clause, header="stdlib.h"):
    """A clause more of a loop's pragma."""
    return lambda text, rng: include(LOOP.sub(rf"\1#pragma omp \2 {clause}\n\3", text, count=1), header) if LOOP.search(text) else None


def on_update(words):
    return put("static void update(", f"{words} static void update(")


def in_update(line):
    return put_like(r"^(  for \(size_t i = 0; i < \d+; i\+\+\) \{\n)(    const float g)", rf"\1    {line}\n\2")


def in_command(words, after="Build: cc"):
    return put(after, f"{after} {words}")


HARM = "arena->all_weights[99999999] = 0;"
READING, HIDDEN, ALONE, COMMAND = "one-reading", "nothing-hidden", "main-alone", "plain-command"

KINDS = {
    # The text is not what it seems, or not the same for every compiler.
    "line hidden by a trigraph": (READING, in_step("// note??/\n  arena->result[0] = 0;")),
    "trigraph in a string": (READING, put('.summary = "', '.summary = "??/x')),
    "line hidden by a splice": (READING, in_step("// note \\\n  arena->result[0] = 0;")),
    "name in two lines": (READING, put_like(r"^  forward\(\);", r"  for\\\nward();")),
    "digraphs": (READING, in_step("<% arena->result<:0:> = 0; %>")),
    "directive by a digraph": (READING, at_top("%:pragma omp parallel")),
    "letters of another alphabet": (READING, in_step("int \u0430t = 0; (void)\u0430t;")),
    "letter by its number": (READING, in_step("int \\u0430t = 0; (void)\\u0430t;")),
    "comment that turns the text round": (READING, in_step("/* \u202e x \u2066 */")),
    "carriage return": (READING, in_step("// note\r  arena->result[0] = 0;")),
    "compiler's number": (READING, in_step("if (__GNUC__ / 10) arena->result[0] = 0;")),
    "other compiler": (READING, in_step(f"\n#ifndef __clang__\n  {HARM}\n#endif")),
    "optimized": (READING, in_step(f"\n#ifdef __OPTIMIZE__\n  {HARM}\n#endif")),
    "fast mathematics": (READING, in_step(f"\n#ifdef __FAST_MATH__\n  {HARM}\n#endif")),
    "strict C": (READING, in_step(f"\n#ifndef __STRICT_ANSI__\n  {HARM}\n#endif")),
    "with OpenMP": (READING, in_step(f"\n#ifndef _OPENMP\n  {HARM}\n#endif")),
    "without asserts": (READING, in_step(f"\n#ifdef NDEBUG\n  {HARM}\n#endif")),
    "macro of nobody": (READING, in_step(f"\n#ifdef SITE\n  {HARM}\n#endif")),
    "file on this machine": (READING, in_step(f'\n#if __has_include("/etc/evil")\n  {HARM}\n#endif')),
    "how often it was asked": (READING, in_step(f"\n#if __COUNTER__ == 7\n  {HARM}\n#endif")),
    "time of the build": (READING, in_step("if (__TIME__[0] == 49) arena->result[0] = 0;")),
    "line of the text": (READING, in_step("if (__LINE__ % 2) arena->result[0] = 0;")),
    "known to the compiler": (READING, in_step("if (__builtin_constant_p(at)) arena->result[0] = 0;")),
    "constant of one compiler": (READING, both(at_top("enum { __GCC_IEC_559_COMPLEX = 0 };"),
                                               in_step("if (__GCC_IEC_559_COMPLEX) arena->result[0] = 0;"))),
    "errors of mathematics": (READING, in_step("if (math_errhandling & MATH_ERRNO) arena->result[0] = 0;")),
    "line of a header": (READING + " " + HIDDEN, at_top('# 1 "mlp.c" 3')),
    # The command that compiles it.
    "macro of the command": (COMMAND, in_command("-DNDEBUG")),
    "macro of the command in two words": (COMMAND, in_command("-D float=double")),
    "text before the program": (COMMAND, in_command("-include other.h")),
    "headers of another folder": (COMMAND, in_command("-I.")),
    "language of the command": (COMMAND, put("Build: cc -std=c17", "Build: cc -std=gnu17")),
    "arithmetic of the command": (COMMAND, in_command("-Ofast")),
    "code in the compiler": (COMMAND, in_command("-fplugin=./other.so")),
    "flags from a file": (COMMAND, in_command("@flags")),
    "flags of the linker": (COMMAND, in_command("-Wl,--wrap=accel_sum_doubles")),
    "flag that is not known": (COMMAND, in_command("-fother")),
    "library of the command": (COMMAND, in_command("-lother", "-o trainer")),
    "file of the command": (COMMAND, in_command("other.c", "-o trainer")),
    "package of the command": (COMMAND, in_command("other", "--libs accel-runtime")),
    "compiler of the author": (COMMAND, put("Build: cc", "Build: ./cc")),
    "command for the shell": (COMMAND, put_like(r"(accel-runtime\)) \*/", r"\1; ./trainer */")),
    "command in a command": (COMMAND, in_command("$(cat flags)")),
    # Pragmas.
    "pragma after a comment": (HIDDEN, put_like(r"^#pragma omp simd\n", "#/**/pragma omp simd\n")),
    "comment in a pragma": (HIDDEN, pragma("/* x */", "math.h")),
    "condition of a pragma": (HIDDEN, pragma('if(getenv("A") && system("ls"))')),
    "threads by a call": (HIDDEN, pragma('num_threads(system("ls"))')),
    "simd by a call": (HIDDEN, pragma('safelen(1) if(system("ls"))')),
    "another function for a pragma": (HIDDEN, at_top("int other(void);\n#pragma omp declare variant(other) match(construct={parallel})\nint base(void);")),
    "variable of a thread": (HIDDEN, at_top("static int tp;\n#pragma omp threadprivate(tp)")),
    "sum of the author's own": (HIDDEN, at_top("#pragma omp declare reduction(zz : float : omp_out += omp_in)")),
    "work on a device": (HIDDEN, at_top("#pragma omp declare target")),
    "order of a pragma": (HIDDEN, pragma("schedule(runtime)", "math.h")),
    "arrays packed": (HIDDEN, at_top("#pragma pack(1)")),
    "weak by a pragma": (HIDDEN, at_top("#pragma weak step")),
    "name by a pragma": (HIDDEN, at_top("#pragma redefine_extname sqrt system")),
    "pragma as an operator": (HIDDEN, at_top('_Pragma("redefine_extname sqrt system")')),
    "pragma that stops": (HIDDEN, at_top('#pragma GCC error "x"', "#pragma GCC system_header", "#pragma GCC poison x",
                                         "#pragma GCC optimize (\"fast-math\")", "#pragma STDC FENV_ACCESS ON")),
    # Attributes and assembler.
    "constant function": (HIDDEN, on_update("__attribute__((const))")),
    "pure function": (HIDDEN, on_update("__attribute__((pure))")),
    "function without an end": (HIDDEN, on_update("__attribute__((noreturn))")),
    "attribute of another optimization": (HIDDEN, on_update('__attribute__((optimize("no-strict-aliasing")))')),
    "attribute of a processor": (HIDDEN, on_update('__attribute__((target("avx512f")))')),
    "function aligned by an attribute": (HIDDEN, at_top("__attribute__((assume_aligned(64))) static void *zz(void);")),
    "constructor": (HIDDEN, at_top("__attribute__((constructor)) static void boot(void) { }")),
    "weak function": (HIDDEN, at_top("__attribute__((weak)) void accel_gemm_hook(void) { }")),
    "section that runs": (HIDDEN, at_top('__attribute__((section(".init_array"))) static void *x = 0;')),
    "cleaned up": (HIDDEN, both(put("static void step(", "static void forward2(int *p) { (void)p; }\nstatic void step("),
                                in_step("__attribute__((cleanup(forward2))) int c = 0; (void)c;"))),
    "attribute in brackets": (HIDDEN, at_top("[[noreturn]] static void ends(void);")),
    "function that never returns": (HIDDEN, on_update("_Noreturn")),
    "label of a declaration": (HIDDEN, at_top('int look(void) __asm__("system");')),
    "label of a variable": (HIDDEN, at_top('static int look __asm__("environ");')),
    "assembler of the file": (HIDDEN, at_top('__asm__(".globl x");')),
    "assembler": (HIDDEN, in_step('__asm("");')),
    # Types and declarations.
    "call in a type": (HIDDEN, in_step('typedef char t[1 + (system("ls") & 1)];', "stdlib.h")),
    "call in a size": (HIDDEN + " no-process", in_step('(void)sizeof(char[1 + (system("ls") & 1)]);', "stdlib.h")),
    "call in a cast": (HIDDEN + " no-process", in_step('(void)(char (*)[1 + (system("ls") & 1)])arena;', "stdlib.h")),
    "call in a parameter": (HIDDEN, both(at_top('static void sized(int n, char a[n][1 + (system("ls") & 1)]) { (void)n; (void)a; }', header="stdlib.h"),
                                         in_step("sized(1, 0);"))),
    "type of an expression": (HIDDEN, in_step("__typeof__(arena->result[0]) z = 0; (void)z;")),
    "array as large as a number": ("in-bounds", in_step("float big[at + 100000000]; big[0] = 0; (void)big;")),
    "function inside": (HIDDEN + " " + ALONE, in_step("extern int accel_zero(void); (void)sizeof(accel_zero());")),
    "choice by type": (HIDDEN, in_step("arena->result[0] = _Generic(at, int64_t: 0, default: 1);")),
    "variable of another thread": (HIDDEN, at_top("static _Thread_local int mine;")),
    "volatile variable": (HIDDEN, at_top("static volatile int seen;")),
    # Headers.
    "header of a library unknown": (HIDDEN, lambda text, rng: include(text, "sys/mman.h")),
    "header by its path": (HIDDEN, put("#include <assert.h>", '#include <assert.h>\n#include "/usr/include/errno.h"')),
    "header above": (HIDDEN, lambda text, rng: include(text, "../include/errno.h")),
    # Names.
    "name of the library": (ALONE, at_top("void *malloc(unsigned long n) { (void)n; return 0; }", "void free(void *p) { (void)p; }",
                                          "int open(const char *n, int f, ...) { (void)n; return f; }")),
    "name of OpenMP": (ALONE, at_top("int omp_get_num_threads(void) { return 1; }", "void GOMP_barrier(void) { }")),
    "name of the runtime": (ALONE, at_top("int accel_gemm_other(void) { return 1; }")),
    "variable for others": (ALONE, at_top("int verbose = 1;", "char **environ;")),
    "variable of others": (ALONE, both(at_top("extern char **environ;"), in_step("if (environ[0] != 0) arena->result[0] = 0;"))),
    "function for others": (ALONE, put("static void forward(void)", "void forward(void)")),
    "macro for mathematics": (HIDDEN, at_top("#define sqrtf(x) (x)")),
    # What main does.
    "step that nobody takes": ("step-path-found", put(
        "for (; at < until; at++) step(run, at);", "for (; at < until; at++) { arena->result[0] = 1; }\n    if (at < 0) step(run, at);")),
    "step under a condition": ("step-path-found", put("at++) step(run, at);", "at++) if (at % 2 == 0) step(run, at);")),
    "step after a jump": ("step-path-found", put("at++) step(run, at);", "at++) { if (at > 2) continue; step(run, at); }")),
    "step of another number": ("step-path-found", put("at++) step(run, at);", "at++) step(run, 0);")),
    "main without training": ("step-path-found", put("return train(accel_start(&program, argc, argv));",
                                                     "struct accel_run *run = accel_start(&program, argc, argv);\n  return argc > 5 ? train(run) : 0;")),
    "weight written before": ("known-writes", put_like(r"^(  int64_t at = accel_first_step\(run\);)", r"\1\n  arena->all_weights[7] = 1;")),
    "weight written between": ("known-writes", put_like(r"^(    accel_handle_events\(run, at, report\);)", r"\1\n    if (at > 3) arena->all_weights[7] *= 1.01f;")),
    "weights copied between": ("known-writes", put_like(
        r"^(    accel_handle_events\(run, at, report\);)", r"\1\n    memset(arena->all_weights, 0, 4);")),
    "weights through a pointer": ("known-writes", put_like(
        r"^(    accel_handle_events\(run, at, report\);)", r"\1\n    float *w = arena->all_weights;\n    w[3] = 0;")),
    "kernel outside of the step": ("known-writes", put_like(
        r"^(    accel_handle_events\(run, at, report\);)", r"\1\n    update(at, 0.5, 1.0f);")),
    "write beyond the weights": ("known-writes", put_like(
        r"^(  int64_t at = accel_first_step\(run\);)", r"\1\n  arena->all_weights[99999999] = 1;")),
    "write before the arena": ("known-writes", put_like(
        r"^(    accel_handle_events\(run, at, report\);)", r"\1\n    ((char *)arena)[-5] = 1;")),
    "write to a number": ("known-writes", put_like(
        r"^(  int64_t at = accel_first_step\(run\);)", r"\1\n  float *p = (float *)(uintptr_t)1234567;\n  p[3] = 1;")),
    # Loops and branches.
    "unsigned that wraps": ("in-bounds", in_step("for (unsigned q = 0; q < 20; q++) if (q + 4294967290u < 10u) arena->all_weights[999999999 + q] = 0;")),
    "loop down for ever": ("bounded-loops", in_step("for (size_t q = 3; q >= 0; q--) arena->result[0] = 0;")),
    "loop up for ever": ("bounded-loops", in_step("for (uint8_t q = 0; q < 256; q++) arena->result[0] = 0;")),
    "loop up to itself": ("bounded-loops", in_step("for (unsigned q = 0; q <= 4294967295u; q++) arena->result[0] = 0;")),
    "counter by a pointer": ("bounded-loops", in_step("for (size_t q = 0; q < 4; q++) { size_t *w = &q; *w = 0; }")),
    "iteration left out": ("whole-arrays", put_like(r"^(  for \(size_t i = 0; i < \d+; i\+\+\) \{\n)(    y\[i\])",
                                                    r"\1    if (i == 5) continue;\n\2")),
    "update left out": ("whole-arrays", in_update("if (i == 5) continue;")),
    "update broken off": ("whole-arrays", in_update("if (i == 5) break;")),
    "weight left out": ("whole-arrays", put("    weights[i] = w;", "    if (i != 5) weights[i] = w;")),
    "weights left out in turn": ("whole-arrays", put("    weights[i] = w;", "    if (i % 7 != 3) weights[i] = w;")),
    "another weight written": ("whole-arrays", put("    weights[i] = w;", "    if (i == 5) weights[0] = w; else weights[i] = w;")),
    "weight left out by logic": ("whole-arrays", put("    weights[i] = w;", "    (void)(i != 5 && (weights[i] = w, 1));")),
    "weight left out by a switch": ("whole-arrays", put("    weights[i] = w;", "    switch (i) { case 5: break; default: weights[i] = w; }")),
    "weight kept by a choice": ("whole-arrays", put("    weights[i] = w;", "    weights[i] = i != 5 ? w : weights[i];")),
    "weights kept beyond a bound": ("whole-arrays", put("    weights[i] = w;", "    weights[i] = i < 100 ? w : weights[i];")),
    "weight kept by a variable": ("whole-arrays", put(
        "    weights[i] = w;", "    const float old = weights[i], next = i == 5 ? old : w;\n    weights[i] = next;")),
    "weight kept by a variable that is set": ("whole-arrays", put(
        "    weights[i] = w;", "    float next = weights[i];\n    if (i != 5) next = w;\n    weights[i] = next;")),
    "weight kept by a sum": ("whole-arrays", put("    weights[i] = w;", "    weights[i] += i != 5 ? w - weights[i] : 0.0f;")),
    "weights kept by data": ("whole-arrays", put("    weights[i] = w;", "    weights[i] = w > 0.5f ? weights[i] : w;")),
    "weights left out by data": ("whole-arrays", put("    weights[i] = w;", "    if (w < 0.5f) weights[i] = w;")),
    "update that ends early": ("whole-arrays", put_like(r"^(static void update\((?:.*\n)+?  for \(size_t i = 0; i < \d+);", r"\1 / 2;")),
    "update that ends": ("whole-arrays", in_update("if (i == 5) return;")),
    "update of some steps": ("whole-arrays", put_like(r"^(static void update\(.*\n)", r"\1  if (at == 5) return;\n")),
    "jump from far": ("no-process runtime-alone", in_step("static jmp_buf j; if (setjmp(j)) return;", "setjmp.h")),
    # Tables.
    "state of too many": ("tables-fit", put_like(r"(offsetof\(struct arena, moment_1\), )(\d+)", r"\g<1>9\2")),
    "state of too few": ("tables-fit", put_like(r"(offsetof\(struct arena, moment_1\), )\d+", r"\g<1>7")),
    "state at another place": ("tables-fit", put_like(r"(offsetof\(struct arena, moment_1\)), (\d+)", r"\1 + 4, \2")),
    "state of another type": ("tables-fit", put_like(r"ACCEL_FLOAT32(, offsetof\(struct arena, moment_1\))", r"ACCEL_BFLOAT16\1")),
    "tensor of another type": ("tables-fit", put("ACCEL_##init, a, b, ACCEL_FLOAT32}", "ACCEL_##init, a, b, ACCEL_BFLOAT16}")),
    "tensor of another shape": ("tables-fit", put_like(r"^(    PARAMETER\(.*, )(\d+)\),$", r"\g<1>9\2),")),
    "tensor at another place": ("tables-fit", put("offsetof(struct model_weights, member)", "offsetof(struct model_weights, member) + 4")),
    "more tensors than rows": ("tables-fit", put_like(r"\.n_tensors = (\d+)", r".n_tensors = 9\1")),
    "more states than rows": ("tables-fit", put_like(r"\.n_states = (\d+)", r".n_states = 9\1")),
}
