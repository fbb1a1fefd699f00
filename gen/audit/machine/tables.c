/* The claims about what an object gives the linker besides instructions: sections and symbols. */
#include <elf.h>
#include <string.h>

#include "gen/audit/machine/machine.h"
#include "gen/audit/program/externals.h"
#include "gen/base/text.h"

#ifndef SHT_X86_64_UNWIND
#define SHT_X86_64_UNWIND 0x70000001
#endif
#ifndef SHT_LLVM_ADDRSIG
#define SHT_LLVM_ADDRSIG 0x6fff4c03
#endif

/* ---- Sections ---- */

/* What compilers make of C: names between spaces (a star matches any rest), the type, the flags that all have and those
 * that some have. The first row that has a name and a type decides. */
static const struct {
  const char *names;
  uint32_t type;
  uint64_t flags, more;
} kinds[] = {
    {" .text .text.unlikely .text.startup .text.hot .text.exit .text.* ", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0},
    {" .data .data.* .ldata ", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0},
    {" .bss .bss.* .lbss ", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0},
    {" .rodata .rodata.* .lrodata ", SHT_PROGBITS, SHF_ALLOC, SHF_MERGE | SHF_STRINGS},
    {" .eh_frame ", SHT_PROGBITS, SHF_ALLOC, 0},
    {" .eh_frame ", SHT_X86_64_UNWIND, SHF_ALLOC, 0},
    {" .note.gnu.property ", SHT_NOTE, SHF_ALLOC, 0},
    {" .note.GNU-stack ", SHT_PROGBITS, 0, 0},
    {" .comment ", SHT_PROGBITS, SHF_MERGE | SHF_STRINGS, 0},
    {" .debug_* ", SHT_PROGBITS, 0, SHF_MERGE | SHF_STRINGS | SHF_COMPRESSED},
    {" .rela.* ", SHT_RELA, 0, SHF_INFO_LINK},
    {" .llvm_addrsig ", SHT_LLVM_ADDRSIG, SHF_EXCLUDE, 0},
    {" .symtab ", SHT_SYMTAB, 0, 0},
    {" .strtab .shstrtab ", SHT_STRTAB, 0, 0},
};

/* What others do, for people. */
static const struct {
  const char *names, *what;
} others[] = {
    {" .init_array* .preinit_array* .ctors* .init ", "runs before main"},
    {" .fini_array* .dtors* .fini ", "runs after main"},
    {" .interp ", "names another program that loads this one"},
    {" .gnu.lto_* .llvm.lto .llvmbc .llvmcmd ", "has the linker compile other code"},
    {" .deplibs .linker-options .drectve ", "gives the linker other files or flags"},
    {" .group .gnu.linkonce.* ", "lets another file replace what it holds"},
    {" .tdata* .tbss* ", "is of each thread"},
    {" .plt* .got* .dynamic .dynsym .dynstr .iplt* .rela.plt .rela.iplt .hash .gnu.hash .gnu.version* ",
     "is the linker's to make"},
};

/* How a section's flags are not those of its kind. */
static const char *judge_flags(uint64_t flags, uint64_t wanted, uint64_t more) {
  if ((flags & SHF_WRITE) != 0 && (flags & SHF_EXECINSTR) != 0) return "is both written and run";
  if ((flags & SHF_EXECINSTR) != 0 && (wanted & SHF_EXECINSTR) == 0) return "holds code";
  if ((flags & SHF_WRITE) != 0 && (wanted & SHF_WRITE) == 0) return "is written";
  if ((flags & wanted) != wanted || (flags & ~(wanted | more)) != 0) return "has flags that compilers do not give it";
  return NULL;
}

static const char *judge_section(const struct object_section *section) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (section->type == kinds[i].type && text_lists(kinds[i].names, section->name, true))
      return judge_flags(section->flags, kinds[i].flags, kinds[i].more);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (text_lists(others[i].names, section->name, true)) return others[i].what;
  if (section->type == SHT_INIT_ARRAY || section->type == SHT_PREINIT_ARRAY) return "runs before main";
  if (section->type == SHT_FINI_ARRAY) return "runs after main";
  return "is none that compilers make of C";
}

static void check_sections(const struct machine_check *check) {
  struct audit *audit = check->audit;
  const struct object_file *object = check->machine->object;
  const struct location where = {.file = audit->tree->file};
  struct claim *claim = audit_claim(audit, "machine-sections",
                                    "The object has the sections that compilers make of C: none runs by itself before "
                                    "or after main, and none is both written and run, the stack included.");
  bool has_stack = false;
  int loaded = 0;
  for (size_t i = 1; i < object->n_sections; i++) {
    const struct object_section *section = &object->sections[i];
    const char *what = section->type == SHT_NULL ? NULL : judge_section(section);
    if (what != NULL) claim_finding(audit, claim, VERDICT_BROKEN, where, "the section '%s' %s", section->name, what);
    has_stack = has_stack || strcmp(section->name, ".note.GNU-stack") == 0;
    loaded += section_is_loaded(section);
  }
  if (!has_stack)
    claim_finding(audit, claim, VERDICT_BROKEN, where,
                  "there is no '.note.GNU-stack', so that the program's stack may be run");
  if (object->abi != ELFOSABI_NONE)
    claim_finding(audit, claim, VERDICT_BROKEN, where, "it has what the loader resolves by running code (ABI %d)",
                  object->abi);
  claim_evidence(audit, claim, "%zu sections, %d of them loaded", object->n_sections == 0 ? 0 : object->n_sections - 1,
                 loaded);
}

/* ---- Symbols ---- */

/* What others call: main, and of a program for GPUs the addition of shards. */
static bool is_for_others(const struct audit *audit, const char *name) {
  return strcmp(name, "main") == 0 || (audit->device != NULL && strcmp(name, "accel_add_shards") == 0);
}

/* What a symbol does that none of a program's does. */
static const char *judge_symbol(const struct audit *audit, const struct object_symbol *symbol) {
  const bool is_defined = symbol->section != SHN_UNDEF;
  if (symbol->type == STT_GNU_IFUNC) return "is found by running code before main";
  if (symbol->type == STT_TLS) return "is of each thread";
  if (symbol->type > STT_FILE) return "is of no type that compilers give";
  if (symbol->binding != STB_LOCAL && symbol->binding != STB_GLOBAL)
    return symbol->binding == STB_WEAK ? "is weak" : "is visible as nothing of C is";
  if (strchr(symbol->name, '@') != NULL) return "names a version of a library";
  if (symbol->binding == STB_LOCAL && !is_defined) return "is local and nowhere";
  if (symbol->binding == STB_GLOBAL && is_defined && !is_for_others(audit, symbol->name))
    return "is visible to the linker, and may replace a library's";
  if (symbol->section == SHN_ABS && symbol->type != STT_FILE) return "is a number of no section";
  if (symbol->section >= SHN_LORESERVE && symbol->section != SHN_ABS) return "is in a section that no compiler names";
  const struct function *function = tree_function(audit->tree, symbol->name);
  const bool is_source = function != NULL && function->body != NULL; /* a header's own */
  if (symbol->type == STT_FUNC && symbol->binding == STB_LOCAL && external_is_listed(symbol->name) && !is_source)
    return "has a library's name";
  return NULL;
}

static void check_symbols(const struct machine_check *check) {
  struct audit *audit = check->audit;
  const struct object_file *object = check->machine->object;
  const struct location where = {.file = audit->tree->file};
  struct claim *claim =
      audit_claim(audit, "machine-symbols",
                  "The object shows the linker main alone and what the runtime calls, replaces no name of a library, "
                  "and has none that is found by running code.");
  bool has_main = false;
  for (size_t i = 1; i < object->n_symbols; i++) {
    const struct object_symbol *symbol = &object->symbols[i];
    const char *what = judge_symbol(audit, symbol);
    if (what != NULL) claim_finding(audit, claim, VERDICT_BROKEN, where, "the symbol '%s' %s", symbol->name, what);
    has_main = has_main || (strcmp(symbol->name, "main") == 0 && symbol->binding == STB_GLOBAL &&
                            symbol->type == STT_FUNC && symbol->section != SHN_UNDEF);
  }
  if (!has_main) claim_finding(audit, claim, VERDICT_BROKEN, where, "the object has no function main");
  claim_evidence(audit, claim, "%zu symbols", object->n_symbols);
}

void machine_check_tables(const struct machine_check *check) {
  check_sections(check);
  check_symbols(check);
}
