"""Edits of a program's object by one who means harm, each with the claims that must notice it. An edit changes the
assembly that a compiler makes of PROGRAM, or the object's bytes, or gives the compiler something else."""

import pathlib
import re
import struct
import subprocess

PROGRAM = (pathlib.Path(__file__).parent / "corpus_object" / "program.c").read_text()  # that of the fuzzer's seeds, too


# gcc keeps one of two functions with the same text, and puts it into the callers of both.
TWIN = """static void {name}(float {y}[static 1], const float {x}[static WEIGHTS]) {{
  float {sum} = 0.0f;
#pragma omp simd reduction(+ : {sum})
  for (int i = 0; i < WEIGHTS; i++) {sum} += {x}[i];
  {y}[0] = {sum};
}}

"""
TWINS = PROGRAM.replace("  update(weights, gradients);\n}", "  update(weights, gradients);\n  add(sums, gradients);\n  middle();\n}").replace(
    "static __attribute__((noinline)) void step(", TWIN.format(name="add", y="y", x="x", sum="sum")
    + TWIN.format(name="add_again", y="z", x="w", sum="total")
    + "static __attribute__((noinline)) void middle(void) {\n  add_again(sums, weights);\n}\n\n"
    + "static __attribute__((noinline)) void step(")


def line_of(piece):
    return PROGRAM[: PROGRAM.index(piece)].count("\n") + 1


# ---- Edits of assembly: from gcc -O1 -S ----


def appended(text):
    return lambda assembly: assembly + text + "\n"


def within(function, code):
    """`code` at the start of a function, at the line that is there."""
    def edit(assembly):
        start = re.compile(rf"^{function}:\n(?:\.L.*\n|\t\..*\n)*?\t\.cfi_startproc\n", re.M).search(assembly)
        files = [int(number) for number in re.findall(r"\t\.file (\d+)", assembly)]
        return assembly[: start.end()] + code.replace("FILE", str(max(files) + 1)) + "\n" + assembly[start.end():]

    return edit


def replaced(pattern, text):
    def edit(assembly):
        edited, count = re.subn(pattern, text, assembly, count=1, flags=re.M)
        assert count == 1, pattern
        return edited

    return edit


def section(name, flags, kind="@progbits", content=".quad 0", more=""):
    return appended(f'\t.section {name},"{flags}",{kind}{more}\n\t{content}')


def function(name, code="ret", where=".text", before=""):
    return appended(f"\t{where}\n{before}\t.type {name},@function\n{name}:\n\t{code}\n\t.size {name},.-{name}")


ASSEMBLY = {
    "a constructor": ("machine-sections", section(".init_array", "aw", "@init_array", ".quad main")),
    "a constructor with a priority": ("machine-sections", section(".init_array.00001", "aw", "@init_array", ".quad main")),
    "a destructor": ("machine-sections", section(".fini_array", "aw", "@fini_array", ".quad main")),
    "a constructor before all others": ("machine-sections", section(".preinit_array", "aw", "@preinit_array", ".quad main")),
    "an old constructor": ("machine-sections", section(".ctors", "aw", content=".quad main")),
    "an old destructor": ("machine-sections", section(".dtors", "aw", content=".quad main")),
    "a piece of _init": ("machine-sections", section(".init", "ax", content="call main")),
    "a piece of _fini": ("machine-sections", section(".fini", "ax", content="call main")),
    "code that is written": ("machine-sections", section(".text.more", "awx", content="ret")),
    "data that is run": ("machine-sections", section(".rodata.more", "ax", content="ret")),
    "constants that are written": ("machine-sections", section(".rodata.more", "aw")),
    "a stack that is run": ("machine-sections", replaced(r'\.note\.GNU-stack,""', '.note.GNU-stack,"x"')),
    "no word on the stack": ("machine-sections", replaced(r"\t\.section\t\.note\.GNU-stack.*\n", "")),
    "another loader": ("machine-sections", section(".interp", "a", content='.asciz "/tmp/ld.so"')),
    "code of the linker's own": ("machine-sections", section(".gnu.lto_main", "e")),
    "libraries for the linker": ("machine-sections", section(".deplibs", "MS", content='.asciz "evil"', more=",1")),
    "a section that others replace": (
        "machine-sections", section(".text.update", "axG", content="ret", more=",update_group,comdat")),
    "memory of each thread": ("machine-sections", section(".tdata", "awT")),
    "a note that is loaded": ("machine-sections", section(".note.more", "a", "@note")),
    "a function found by code": ("machine-symbols", function("spy", before="\t.type spy,@gnu_indirect_function\n", code=(
        "ret\n\t.type spy,@gnu_indirect_function"))),
    "the program's own malloc": ("machine-symbols", function("malloc", before="\t.globl malloc\n")),
    "OpenMP's own library": ("machine-symbols", function("GOMP_parallel", before="\t.globl GOMP_parallel\n")),
    "a weak function of the runtime": ("machine-symbols", function("accel_start", before="\t.weak accel_start\n")),
    "weights that others see": ("machine-symbols", appended("\t.globl weights")),
    "a weak name": ("machine-symbols", within("step", "\t.weak sqrt\n\tcall sqrt@PLT")),
    "a number with a name": ("machine-symbols", appended("\t.globl environ\n\t.set environ,0x1000")),
    "memory that others share": ("machine-symbols", appended("\t.comm stdout,8,8")),
    "a version of a library": ("machine-symbols", within("step", "\t.symver memset,memset@GLIBC_2.2.5\n\tcall memset")),
    "a local function of the library's name": ("machine-symbols", function("memcpy")),
    "system in data": ("machine-externals", section(".data", "aw", content=".quad system")),
    "a call of system": ("machine-externals", within("step", "\tcall system@PLT")),
    "a jump to _exit": ("machine-externals", within("step", "\tjmp _exit@PLT")),
    "environ": ("machine-externals", within("step", "\tmovq environ(%rip), %rax")),
    "a function of the source's that it may not call": ("machine-externals", within("update", "\tcall fork@PLT")),
    "the address of a function": ("machine-relocations", within("step", "\tleaq update(%rip), %rax")),
    "the address of a library's function": ("machine-relocations", within("step", "\tmovq memset@GOTPCREL(%rip), %rax")),
    "a function in data": ("machine-relocations", section(".data", "aw", content=".quad update")),
    "an opcode that the linker writes": (
        "machine-relocations", within("step", "1:\tmovl %eax, %eax\n\tnop\n\tnop\n\t.reloc 1b,R_X86_64_32,weights")),
    "half an operand": ("machine-relocations", within("step", "1:\tmovl $0, %eax\n\t.reloc 1b+2,R_X86_64_32,weights")),
    "the middle of a library's function": ("machine-relocations", within("step", "\tcall memset+4")),
    "a relocation of a thread's memory": (
        "machine-relocations", within("step", "1:\tmovl $0, %eax\n\t.reloc 1b+1,R_X86_64_TPOFF32,weights")),
    "code that is read": ("machine-relocations", within("step", "\tmovl update(%rip), %eax")),
    "syscall": ("machine-instructions", within("step", "\tsyscall")),
    "int 0x80": ("machine-instructions", within("step", "\tint $0x80")),
    "sysenter": ("machine-instructions", within("step", "\tsysenter")),
    "a port": ("machine-instructions", within("step", "\toutb %al, %dx")),
    "the clock": ("machine-instructions", within("step", "\trdtsc")),
    "chance": ("machine-instructions", within("step", "\trdrand %rax")),
    "the machine's name": ("machine-instructions", within("step", "\tcpuid")),
    "a thread's segment": ("machine-instructions", within("step", "\twrfsbase %rax")),
    "a thread's memory": ("machine-instructions", within("step", "\tmovq %fs:0, %rax")),
    "the canary": ("machine-instructions", within("step", "\tmovq %rax, %fs:0x28")),
    "another rounding": ("machine-instructions", within("step", "\tldmxcsr -8(%rsp)")),
    "another rounding by VEX": ("machine-instructions", within("step", "\tvldmxcsr -8(%rsp)")),
    "another rounding of x87": ("machine-instructions", within("step", "\tfldcw -8(%rsp)")),
    "a model's register": ("machine-instructions", within("step", "\trdmsr")),
    "the stack from a vector": ("machine-instructions", within("step", "\tvmovq %xmm0, %rsp\n\tnop\n\tnop\n\tnop")),
    "a transaction": ("machine-instructions", within("step", "\txbegin 1f\n1:")),
    "a jump into an instruction": ("machine-instructions", within("step", "\tmovl $0x90050f, %eax\n\tjmp .-4")),
    "a jump into another function": ("machine-instructions", within("step", "\tjmp update+4")),
    "a function without an end": ("machine-instructions", function("spy", "nop")),
    "a jump to a register": ("machine-no-indirect", within("step", "\tjmp *%rax")),
    "a call of a register": ("machine-no-indirect", within("step", "\tcall *%rax")),
    "a call of memory": ("machine-no-indirect", within("step", "\tcall *8(%rdi)")),
    "a return elsewhere": ("machine-stack", within("step", "\tpushq %rax\n\tret")),
    "a return to what is stored": ("machine-stack", within("step", "\tmovq %rax, (%rsp)\n\tret")),
    "another stack": ("machine-stack", within("step", "\tmovq %rdi, %rsp")),
    "an exchange of stacks": ("machine-stack", within("step", "\txchgq %rax, %rsp")),
    "a return that takes more": ("machine-stack", within("step", "\tret $8")),
    "code of no function": ("machine-functions", appended("\t.text\n\tmovl $1, %eax\n\tret")),
    "a function that the source has not": ("machine-functions", function("spy")),
    "a function with a shorter size": ("machine-functions", replaced(r"\.size\tupdate, \.-update", ".size\tupdate, 4")),
    "a function without a size": ("machine-functions", replaced(r"\.size\tupdate, \.-update", ".size\tupdate, 0")),
    "two functions in one": ("machine-functions", appended("\t.type step.cold,@function\n\t.set step.cold,update+4\n\t.size step.cold,8")),
    "lines of another file": ("machine-lines", within("step", '\t.file FILE "other.c"\n\t.loc FILE 1\n\tnop')),
    "lines of a header that is not included": (
        "machine-lines", within("step", '\t.file FILE "/usr/include/pthread.h"\n\t.loc FILE 1\n\tnop')),
    "a line after the text's end": ("machine-lines", within("step", "\t.loc 1 999\n\tnop")),
    "a line between functions": ("machine-lines", within("step", f"\t.loc 1 {line_of('static float weights')}\n\tnop")),
    "a line of a function that is not called": (
        "machine-lines", within("update", f"\t.loc 1 {line_of('  fill(gradients, at)')}\n\tnop")),
    "code without lines": (
        "machine-lines", function("step.cold", "movl $1, %eax\n\tret", where='.section .text.unlikely,"ax",@progbits')),
    "a branch in the step": ("machine-branches", replaced(
        r"^\tcall\tadd_rows\n", "\ttestq %rdi, %rdi\n\tje 1f\n\tnop\n1:\tcall\tadd_rows\n")),
    "a write at an honest line": ("machine-rebuilt", within("step", "\tmovl $0, weights(%rip)")),
    "another order of instructions": ("machine-rebuilt", within("step", "\tnop")),
    "one call less": ("machine-rebuilt", replaced(r"^\tcall\tupdate\n|^\tjmp\tupdate\n", "\tret\n")),
    "another constant": ("machine-rebuilt", replaced(r"^\t\.long\t1008981770$", "\t.long\t1008981771")),
    "data from the start": ("machine-rebuilt", section(".data", "aw", content=".long 1")),
    "another compiler's name": ("machine-rebuilt", replaced(r'"GNU C17 ', '"MSC C17 ')),
    "a compiler that is not here": ("machine-rebuilt", replaced(r'\.ident\t"GCC: \(', '.ident\t"GCC: (Other ')),
    "a flag that is not known": ("machine-rebuilt", replaced(r"(\"GNU C17 [^\"]*)\"", r'\1 -mfentry"')),
}

# ---- Edits of bytes ----


class Elf:
    """An object's section headers, and its bytes to change."""

    def __init__(self, data):
        self.data = bytearray(data)
        self.start, = struct.unpack_from("<Q", data, 40)
        self.each, self.count, names = struct.unpack_from("<HHH", data, 58)
        self.headers = [struct.unpack_from("<IIQQQQIIQQ", data, self.start + i * self.each) for i in range(self.count)]
        self.names = [self.string(names, header[0]) for header in self.headers]

    def string(self, table, at):
        start = self.headers[table][4] + at
        return self.data[start: self.data.index(0, start)].decode()

    def number(self, name):
        return self.names.index(name)

    def set(self, name, field, value):
        """A field of a section's header: 1 type, 2 flags, 4 offset, 5 size, 6 link, 7 info."""
        at = self.start + self.number(name) * self.each + [0, 4, 8, 16, 24, 32, 40, 44, 48, 56][field]
        struct.pack_into("<I" if field in (0, 1, 6, 7) else "<Q", self.data, at, value)

    def symbol(self, name):
        """Where a symbol is in the file, and its section and value."""
        table = self.headers[self.number(".symtab")]
        for at in range(table[4], table[4] + table[5], 24):
            word, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", self.data, at)
            if self.string(table[6], word) == name:
                return at, section, value
        raise KeyError(name)

    def code(self, name):
        """Where a function's code is in the file: a symbol's value is from the section's start, or in a program an address."""
        _, section, value = self.symbol(name)
        return self.headers[section][4] + value - self.headers[section][3]


def patched(change):
    def edit(data):
        elf = Elf(data)
        change(elf)
        return bytes(elf.data)

    return edit


def write(elf, at, content):
    elf.data[at: at + len(content)] = content


def set_relocation(elf, name, offset, form, value):
    """A field of the first relocation of a section: 0 offset, 8 type and symbol, 16 addend."""
    struct.pack_into(form, elf.data, elf.headers[elf.number(name)][4] + offset, value)


BYTES = {
    "an instruction's bytes": ("machine-instructions", patched(lambda e: write(e, e.code("update"), b"\x0f\x05"))),
    "a type that runs": ("machine-sections", patched(lambda e: e.set(".data", 1, 14))),
    "a program for another system": ("machine-sections", patched(lambda e: write(e, 7, b"\x03"))),
    "flags of the code": ("machine-sections", patched(lambda e: e.set(".text", 2, 7))),
    "a symbol's type": ("machine-symbols", patched(lambda e: write(e, e.symbol("update")[0] + 4, b"\x0a"))),
    "main is local": ("machine-symbols", patched(lambda e: write(e, e.symbol("main")[0] + 4, b"\x02"))),
    "main is elsewhere": ("machine-functions", patched(lambda e: struct.pack_into("<Q", e.data, e.symbol("main")[0] + 8, 1 << 40))),
    "a relocation outside": (
        "machine-relocations", patched(lambda e: set_relocation(e, ".rela.text", 0, "<Q", 1 << 40))),
    "a relocation of no symbol": (
        "machine-relocations", patched(lambda e: set_relocation(e, ".rela.text", 12, "<I", 1 << 30))),
    "relocations of no section": ("machine-relocations", patched(lambda e: e.set(".rela.text", 7, 0))),
    "another addend": ("machine-rebuilt", patched(lambda e: set_relocation(e, ".rela.text", 16, "<q", 4))),
    "half of the code": ("machine-relocations", patched(lambda e: e.set(".text", 4, 1 << 40))),
}

# ---- Another build ----


def text_changed(old, new):
    assert old in PROGRAM
    return PROGRAM.replace(old, new, 1)


# name: (claims, text, flags)
BUILDS = {
    "another constant in the text": ("machine-rebuilt", text_changed("0.01f", "0.02f"), []),
    "another sign in the text": ("machine-rebuilt", text_changed("-=", "+="), []),
    "another length in the text": ("machine-rebuilt", text_changed("at < 100", "at < 101"), []),
    "arithmetic that is fast": ("machine-rebuilt", PROGRAM, ["-ffast-math"]),
    "a macro": ("machine-rebuilt", PROGRAM, ["-Dsqrtf=cosf"]),
    "another ABI": ("machine-rebuilt", PROGRAM, ["-mlong-double-64"]),
    "no lines": ("machine-lines", PROGRAM, ["-g0"]),
    "a profile": ("machine-externals machine-instructions", PROGRAM, ["-pg"]),
    "coverage": ("machine-sections", PROGRAM, ["--coverage"]),
    "a sanitizer": ("machine-externals", PROGRAM, ["-fsanitize=undefined"]),
}


# ---- Another program ----

OWN_MALLOC = "static char bytes[1 << 20], *at = bytes;\nvoid *malloc(unsigned long n) { return at += n + 64; }\n"
IFUNC = """
  .text
  .type spy,@gnu_indirect_function
spy: ret
  .globl run
run: call spy@PLT
  ret
  .section .note.GNU-stack,"",@progbits
"""
CONSTRUCTOR = "__attribute__((constructor)) static void spy(void) { __asm__ volatile(\"nop\"); }\n"



def put(data, at, content):
    return data[:at] + content + data[at + len(content):]


def set_segment_flags(data, kind, old, new):
    """Of the first segment of this type that has the old flags."""
    start, = struct.unpack_from("<Q", data, 32)
    while struct.unpack_from("<II", data, start) != (kind, old):
        start += 56
    return put(data, start + 4, struct.pack("<I", new))


# name: (claims, flags of the linker, another file, and its text or what changes its bytes)
LINKED = {
    "another loader": ("linked-loading", ["-Wl,--dynamic-linker=/tmp/ld.so"]),
    "a folder of libraries": ("linked-loading", ["-Wl,-rpath,/tmp"]),
    "an old folder of libraries": ("linked-loading", ["-Wl,--disable-new-dtags,-rpath,/tmp"]),
    "a stack that is run in a program": ("linked-loading", ["-Wl,-z,execstack"]),
    "code that is written in a program": ("linked-loading", [], "program", lambda data: set_segment_flags(data, 1, 5, 7)),
    "another library": ("linked-loading", ["-Wl,--no-as-needed", "-l:libBrokenLocale.so.1"]),
    "an auditor": ("linked-loading", ["-Wl,--audit=/tmp/a.so"]),
    "an auditor of others": ("linked-loading", ["-Wl,--depaudit=/tmp/a.so"]),
    "the folder of the program": ("linked-loading", ["-Wl,-z,origin"]),
    "names that libraries see": ("linked-symbols", ["-rdynamic"]),
    "the program's own malloc in a program": ("linked-symbols", [], "own.c", OWN_MALLOC),
    "an address by code": ("linked-symbols", [], "own.s", IFUNC),
    "a constructor in a program": ("linked-rebuilt", [], "own.c", CONSTRUCTOR),
    "other flags": ("linked-rebuilt", ["-O1"]),
    "fast arithmetic": ("linked-rebuilt", ["-ffast-math"]),
    "another text in a program": ("linked-rebuilt", [], "program.c", text_changed("0.01f", "0.02f")),
    "a byte of a program's code": (
        "linked-rebuilt", [], "program", lambda data: put(data, Elf(data).code("update.constprop.0"), b"\x0f\x05")),
    "a byte of a program's data": (
        "linked-rebuilt", [], "program", lambda data: put(data, data.index(struct.pack("<f", 0.01)), bytes(4))),
    "another start": ("linked-rebuilt", [], "program", lambda data: put(data, 24, struct.pack("<Q", 4096))),
}


def link(folder, libraries, flags=(), files=("program.c",)):
    """The program as its first comment says, in the folder. PROGRAM calls nothing of the runtime."""
    subprocess.run(["gcc", "-std=c17", "-O2", *flags, "-w", *files, "-o", folder / "program", *libraries], cwd=folder, check=True)


def make_linked(kind, folder, libraries):
    """Writes folder/linked/program with this edit. Its claims."""
    claims, flags, *more = LINKED[kind]
    place = folder / "linked"
    place.mkdir(exist_ok=True)
    (place / "program.c").write_text(PROGRAM)
    name, content = more or ("", "")
    if name == "program":
        link(place, libraries)
        (place / name).write_bytes(content((place / name).read_bytes()))
        return claims
    if name:
        (place / name).write_text(content)
    link(place, libraries, flags, ["program.c", name] if name.startswith("own") else ["program.c"])
    return claims


def make_edit(kind, folder, flags):
    """Writes folder/program.o, with this edit. Its claims."""
    command = ["gcc", "-std=c17", "-O1", "-g", *flags]
    if kind in BUILDS:
        claims, text, more = BUILDS[kind]
        (folder / "edited").mkdir(exist_ok=True)
        (folder / "edited" / "program.c").write_text(text)
        subprocess.run([*command, *more, "-w", "-c", "program.c", "-o", folder / "program.o"], cwd=folder / "edited", check=True)
        return claims
    if kind in BYTES:
        claims, edit = BYTES[kind]
        (folder / "program.o").write_bytes(edit((folder / "plain.o").read_bytes()))
        return claims
    claims, edit = ASSEMBLY[kind]
    (folder / "program.s").write_text(edit((folder / "plain.s").read_text()))
    subprocess.run(["as", "--no-warn", "program.s", "-o", "program.o"], cwd=folder, check=True)
    return claims


def make_plain(folder, flags):
    """What the edits start from: the assembly and the object of the program."""
    (folder / "program.c").write_text(PROGRAM)
    command = ["gcc", "-std=c17", "-O1", "-g", *flags]
    subprocess.run([*command, "-S", "program.c", "-o", "plain.s"], cwd=folder, check=True)
    subprocess.run(["as", "plain.s", "-o", "plain.o"], cwd=folder, check=True)


KINDS = [*ASSEMBLY, *BYTES, *BUILDS, *LINKED]
