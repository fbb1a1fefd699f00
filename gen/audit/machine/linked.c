#include "gen/audit/machine/linked.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gen/audit/program/grammar.h"
#include "gen/audit/text/compile_command.h"
#include "gen/base/file.h"
#include "gen/base/path.h"

/* A program's file. Every number in it is a stranger's. */
struct linked {
  const uint8_t *bytes;
  size_t size;
  Elf64_Ehdr header;
  Elf64_Phdr *segments;
  int n_segments;
  Elf64_Dyn *dynamic;
  size_t n_dynamic;
};

struct linked_check {
  struct audit *audit;
  const struct linked *linked;
  struct claim *claim;
};

/* ---- The file ---- */

static bool is_inside(const struct linked *linked, uint64_t offset, uint64_t size) {
  return offset <= linked->size && size <= linked->size - offset;
}

/* Where `size` bytes at an address of the loaded program are in the file; NULL: not in it. */
static const uint8_t *at_address(const struct linked *linked, uint64_t address, uint64_t size) {
  for (int i = 0; i < linked->n_segments; i++) {
    const Elf64_Phdr *segment = &linked->segments[i];
    if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
    const uint64_t offset = address - segment->p_vaddr;
    if (offset <= segment->p_filesz && size <= segment->p_filesz - offset)
      return linked->bytes + segment->p_offset + offset;
  }
  return NULL;
}

/* NULL, and why for people. */
static struct linked *read_linked(struct arena *arena, const char *path, const char **why) {
  struct linked *linked = arena_alloc(arena, sizeof *linked);
  linked->bytes = (const uint8_t *)read_bytes(arena, path, &linked->size);
  *why = "it is not an ELF file";
  if (linked->bytes == NULL || linked->size < sizeof linked->header) return NULL;
  memcpy(&linked->header, linked->bytes, sizeof linked->header);
  const Elf64_Ehdr *header = &linked->header;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return NULL;
  *why = "it is not a program for x86-64";
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != EM_X86_64 || (header->e_type != ET_DYN && header->e_type != ET_EXEC))
    return NULL;
  *why = "its segments are not in the file";
  const uint64_t size = (uint64_t)header->e_phnum * sizeof *linked->segments;
  if (header->e_phentsize != sizeof *linked->segments || !is_inside(linked, header->e_phoff, size)) return NULL;
  linked->n_segments = header->e_phnum;
  linked->segments = arena_alloc(arena, size + 1);
  if (size > 0) memcpy(linked->segments, linked->bytes + header->e_phoff, size);
  for (int i = 0; i < linked->n_segments; i++) {
    const Elf64_Phdr *segment = &linked->segments[i];
    if (!is_inside(linked, segment->p_offset, segment->p_filesz)) return NULL;
    if (segment->p_type != PT_DYNAMIC) continue;
    linked->n_dynamic = segment->p_filesz / sizeof *linked->dynamic;
    linked->dynamic = arena_alloc(arena, segment->p_filesz + 1);
    if (segment->p_filesz > 0) memcpy(linked->dynamic, linked->bytes + segment->p_offset, segment->p_filesz);
  }
  return linked;
}

bool linked_is_program(const char *path) {
  Elf64_Ehdr header;
  FILE *file = fopen(path, "rb");
  const bool read = file != NULL && fread(&header, sizeof header, 1, file) == 1;
  if (file != NULL) fclose(file);
  return read && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && (header.e_type == ET_DYN || header.e_type == ET_EXEC);
}

static void find(const struct linked_check *check, enum verdict verdict, const char *message) {
  claim_finding(check->audit, check->claim, verdict, (struct location){.file = check->audit->tree->file}, "%s",
                message);
}

/* ---- What the loader does ---- */

/* Libraries that the runtime's packages name, and those of the compilers. */
static const char *const libraries[] = {"libc.so.",      "libm.so.",       "libdnnl.so.",   "libjansson.so.",
                                        "libgomp.so.",   "libomp.so.",     "libiomp5.so",   "libmpi.so.",
                                        "libz.so.",      "libsqlite3.so.", "liburing.so.",  "libpthread.so.",
                                        "libdl.so.",     "libgcc_s.so.",   "libstdc++.so.", "libcuda.so.",
                                        "libcudart.so.", "libcublas.so.",  "libnccl.so.",   "ld-linux-x86-64.so."};

/* What a dynamic section may say, and what it says else. */
static const struct {
  int64_t tag;
  const char *what; /* NULL: it may */
} tags[] = {
    {DT_NEEDED, NULL},
    {DT_INIT, NULL},
    {DT_FINI, NULL},
    {DT_INIT_ARRAY, NULL},
    {DT_INIT_ARRAYSZ, NULL},
    {DT_FINI_ARRAY, NULL},
    {DT_FINI_ARRAYSZ, NULL},
    {DT_HASH, NULL},
    {DT_GNU_HASH, NULL},
    {DT_STRTAB, NULL},
    {DT_SYMTAB, NULL},
    {DT_STRSZ, NULL},
    {DT_SYMENT, NULL},
    {DT_DEBUG, NULL},
    {DT_PLTGOT, NULL},
    {DT_PLTRELSZ, NULL},
    {DT_PLTREL, NULL},
    {DT_JMPREL, NULL},
    {DT_RELA, NULL},
    {DT_RELASZ, NULL},
    {DT_RELAENT, NULL},
    {DT_RELACOUNT, NULL},
    {DT_FLAGS, NULL},
    {DT_FLAGS_1, NULL},
    {DT_VERNEED, NULL},
    {DT_VERNEEDNUM, NULL},
    {DT_VERSYM, NULL},
    {DT_BIND_NOW, NULL},
    {35, NULL},
    {36, NULL}, /* DT_RELR* */
    {37, NULL},
    {DT_RPATH, "looks for libraries in folders of its own (RPATH)"},
    {DT_RUNPATH, "looks for libraries in folders of its own (RUNPATH)"},
    {DT_PREINIT_ARRAY, "runs code before all libraries"},
    {DT_PREINIT_ARRAYSZ, "runs code before all libraries"},
    {DT_TEXTREL, "has its code changed when it is loaded"},
    {DT_SYMBOLIC, "takes its own names before those of libraries"},
    {DT_AUXILIARY, "has another library's names before its own"},
    {DT_FILTER, "has another library's names in place of its own"},
    {0x6ffffefc, "has a library audit it when it is loaded"},       /* DT_AUDIT */
    {0x6ffffefb, "has a library audit others when they are loaded"} /* DT_DEPAUDIT */
};

static uint64_t value_of(const struct linked *linked, int64_t tag) {
  for (size_t i = 0; i < linked->n_dynamic && linked->dynamic[i].d_tag != DT_NULL; i++)
    if (linked->dynamic[i].d_tag == tag) return linked->dynamic[i].d_un.d_val;
  return 0;
}

/* A string of the dynamic section; "?" where it is not in the file. */
static const char *string_at(const struct linked_check *check, uint64_t offset) {
  const struct linked *linked = check->linked;
  const uint64_t start = value_of(linked, DT_STRTAB), size = value_of(linked, DT_STRSZ);
  const uint8_t *strings = at_address(linked, start, size);
  if (strings == NULL || offset >= size || memchr(strings + offset, '\0', size - offset) == NULL) return "?";
  return (const char *)strings + offset;
}

static bool is_library(const char *name) {
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (strncmp(name, libraries[i], strlen(libraries[i])) == 0 && strchr(name, '/') == NULL) return true;
  return false;
}

static const char *judge_tag(int64_t tag) {
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
    if (tags[i].tag == tag) return tags[i].what;
  return "says something to the loader that linkers do not say for C";
}

static void check_entry(const struct linked_check *check, const Elf64_Dyn *entry) {
  enum { FLAGS = DF_BIND_NOW | DF_STATIC_TLS };
  struct arena *arena = check->audit->arena;
  const uint64_t flags_1 = DF_1_NOW | 0x08000000; /* DF_1_PIE */
  const char *what = judge_tag(entry->d_tag);
  if (what != NULL)
    find(check, VERDICT_BROKEN, arena_printf(arena, "the program %s", what));
  else if (entry->d_tag == DT_NEEDED && !is_library(string_at(check, entry->d_un.d_val)))
    find(check, VERDICT_BROKEN,
         arena_printf(arena, "the program has '%s' loaded, which is none of the runtime's libraries",
                      string_at(check, entry->d_un.d_val)));
  else if ((entry->d_tag == DT_FLAGS && (entry->d_un.d_val & ~(uint64_t)FLAGS) != 0) ||
           (entry->d_tag == DT_FLAGS_1 && (entry->d_un.d_val & ~flags_1) != 0))
    find(check, VERDICT_BROKEN, "the program has flags for the loader that linkers do not give it for C");
}

static void check_interpreter(const struct linked_check *check, const Elf64_Phdr *segment) {
  static const char system[] = "/lib64/ld-linux-x86-64.so.2";
  if (segment->p_filesz != sizeof system ||
      memcmp(check->linked->bytes + segment->p_offset, system, sizeof system) != 0)
    find(check, VERDICT_BROKEN, "the program is loaded by another loader than the system's");
}

static void check_loading(struct audit *audit, const struct linked *linked) {
  struct linked_check check = {audit, linked, NULL};
  check.claim = audit_claim(audit, "linked-loading",
                            "The system's loader loads the program, with the runtime's libraries from the system's "
                            "folders, runs nothing of them in another order, and no memory is both written and run.");
  int loaded = 0, stacks = 0, interpreters = 0;
  for (int i = 0; i < linked->n_segments; i++) {
    const Elf64_Phdr *segment = &linked->segments[i];
    loaded += segment->p_type == PT_LOAD;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0 && (segment->p_flags & PF_X) != 0)
      find(&check, VERDICT_BROKEN, "memory of the program is both written and run");
    if (segment->p_type == PT_INTERP) check_interpreter(&check, segment);
    interpreters += segment->p_type == PT_INTERP;
    stacks += segment->p_type == PT_GNU_STACK && (segment->p_flags & PF_X) == 0;
  }
  if (stacks != 1) find(&check, VERDICT_BROKEN, "the program's stack may be run");
  if (interpreters > 1) find(&check, VERDICT_BROKEN, "the program names more than one loader");
  int libraries_needed = 0;
  for (size_t i = 0; i < linked->n_dynamic && linked->dynamic[i].d_tag != DT_NULL; i++) {
    check_entry(&check, &linked->dynamic[i]);
    libraries_needed += linked->dynamic[i].d_tag == DT_NEEDED;
  }
  claim_evidence(audit, check.claim, "%d segments, %d libraries", loaded, libraries_needed);
}

/* ---- Names ---- */

/* Data of libraries that a program may have a copy of, and names of linkers. */
static bool is_copied(const char *name) {
  static const char *const names[] = {"stdout", "stderr", "stdin",          "environ",      "__environ",
                                      "optarg", "optind", "_edata",         "_end",         "__bss_start",
                                      "main",   "_start", "_IO_stdin_used", "__data_start", "data_start"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return strncmp(name, "ompi_", 5) == 0; /* Open MPI's MPI_COMM_WORLD is such data */
}

/* Symbols end where the strings begin, as linkers place them; a table elsewhere has no known end. */
static void check_symbols(struct audit *audit, const struct linked *linked) {
  struct linked_check check = {audit, linked, NULL};
  check.claim = audit_claim(audit, "linked-symbols",
                            "The program replaces no function of a library, and none of its addresses is found by "
                            "running code.");
  const uint64_t start = value_of(linked, DT_SYMTAB), end = value_of(linked, DT_STRTAB);
  const uint64_t count = end > start ? (end - start) / sizeof(Elf64_Sym) : 0;
  const uint8_t *table = count > 0 ? at_address(linked, start, count * sizeof(Elf64_Sym)) : NULL;
  if (start != 0 && table == NULL) find(&check, VERDICT_CANNOT_TELL, "where the table of symbols ends is not known");
  for (uint64_t i = 1; table != NULL && i < count; i++) {
    Elf64_Sym symbol;
    memcpy(&symbol, table + i * sizeof symbol, sizeof symbol);
    const char *name = string_at(&check, symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF) continue;
    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || !is_copied(name))
      find(&check, VERDICT_BROKEN,
           arena_printf(audit->arena, "the program shows libraries '%s', in place of theirs", name));
  }
  static const int64_t places[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
  uint64_t relocations = 0;
  for (size_t i = 0; i < 2; i++) {
    const uint64_t size = value_of(linked, places[i][1]);
    const uint8_t *entries = at_address(linked, value_of(linked, places[i][0]), size);
    if (size > 0 && entries == NULL) find(&check, VERDICT_BROKEN, "relocations are not in the file");
    for (uint64_t at = 0; entries != NULL && at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela), relocations++) {
      Elf64_Rela entry;
      memcpy(&entry, entries + at, sizeof entry);
      if (ELF64_R_TYPE(entry.r_info) == R_X86_64_IRELATIVE)
        find(&check, VERDICT_BROKEN, "the loader runs code of the program to find an address");
    }
  }
  claim_evidence(audit, check.claim, "%" PRIu64 " symbols, %" PRIu64 " relocations", count, relocations);
}

/* ---- The same program once more ---- */

/* What of the file does not depend on the program alone: the build's digest, and where sections are listed that are not
 * loaded. */
static void mask(uint8_t *bytes, const struct linked *linked) {
  Elf64_Ehdr header = linked->header;
  header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
  memcpy(bytes, &header, sizeof header);
  for (int i = 0; i < linked->n_segments; i++) {
    const Elf64_Phdr *segment = &linked->segments[i];
    for (uint64_t at = 0; segment->p_type == PT_NOTE && segment->p_align == 4 && at + 12 <= segment->p_filesz;) {
      Elf64_Nhdr note;
      memcpy(&note, linked->bytes + segment->p_offset + at, sizeof note);
      const uint64_t name = ((uint64_t)note.n_namesz + 3) / 4 * 4, size = ((uint64_t)note.n_descsz + 3) / 4 * 4;
      if (name > segment->p_filesz || size > segment->p_filesz || at + 12 + name + size > segment->p_filesz) break;
      if (note.n_type == NT_GNU_BUILD_ID && size <= 64) memset(bytes + segment->p_offset + at + 12 + name, 0, size);
      at += 12 + name + size;
    }
  }
}

static uint8_t *masked(struct arena *arena, const struct linked *linked) {
  uint8_t *bytes = (uint8_t *)arena_copy(arena, linked->bytes, linked->size);
  mask(bytes, linked);
  return bytes;
}

static void compare(const struct linked_check *check, const struct linked *again, bool is_native) {
  struct arena *arena = check->audit->arena;
  const struct linked *linked = check->linked;
  const enum verdict verdict = is_native ? VERDICT_CANNOT_TELL : VERDICT_BROKEN;
  const char *where = is_native ? "the command makes for this processor (-march=native)" : "the command makes";
  const uint8_t *theirs = masked(arena, linked), *ours = masked(arena, again);
  uint64_t bytes = 0;
  if (linked->n_segments != again->n_segments ||
      memcmp(linked->segments, again->segments, (size_t)linked->n_segments * sizeof *linked->segments) != 0) {
    find(check, verdict, arena_printf(arena, "its segments are not those that %s", where));
    return;
  }
  for (int i = 0; i < linked->n_segments; i++) {
    const Elf64_Phdr *segment = &linked->segments[i];
    uint64_t at = 0;
    if (segment->p_type != PT_LOAD) continue;
    while (at < segment->p_filesz && theirs[segment->p_offset + at] == ours[segment->p_offset + at]) at++;
    bytes += at;
    if (at == segment->p_filesz) continue;
    find(check, verdict,
         arena_printf(arena, "byte %" PRIu64 " of the program is not what %s", segment->p_offset + at, where));
    return;
  }
  claim_evidence(check->audit, check->claim, "%" PRIu64 " loaded bytes are the same", bytes);
}

/* The flags of a plain command: what it has before its packages, without files. False after a finding. */
static bool read_flags(const struct linked_check *check, const char *text, struct audit_compilation *compilation) {
  struct arena *arena = check->audit->arena;
  const size_t most = strlen(text) / 2 + 2;
  const char **flags = arena_alloc(arena, most * sizeof *flags), **names = arena_alloc(arena, sizeof *names);
  const char *end = strstr(text, "$(");
  bool skips = false;
  if (end == NULL) end = text + strlen(text);
  compilation->flags = flags;
  compilation->names = names;
  for (text += strspn(text, " "); text < end; text += strspn(text, " \n*")) {
    const char *word = arena_copy(arena, text, strcspn(text, " \n"));
    text += strlen(word);
    if (compilation->n_names == 0) {
      names[compilation->n_names++] = strncmp(word, "/usr/bin/", 9) == 0 ? word + 9 : word;
      if (!grammar_has_compiler(names[0])) return false;
    } else if (!skips && word[0] == '-' && strcmp(word, "-o") != 0) {
      if (!grammar_has_flag(word)) return false;
      flags[compilation->n_flags++] = word;
    }
    skips = strcmp(word, "-o") == 0;
  }
  return compilation->n_names == 1;
}

static void check_rebuilt(struct audit *audit, const struct audit_options *options, const struct linked *linked) {
  struct linked_check check = {audit, linked, NULL};
  struct location where;
  struct audit_compilation compilation = {.source = name_in_folder(audit->tree->file), .is_linked = true};
  const char *why = NULL, *stated = compile_command_stated(audit, &where);
  const char *text = options->n_commands > 0 ? options->commands[0].text : stated;
  check.claim = audit_claim(audit, "linked-rebuilt",
                            "The plain command makes the same program of the text, the runtime's library included, on "
                            "this machine.");
  if (options->compiler == NULL || text == NULL || !read_flags(&check, text, &compilation)) {
    find(&check, VERDICT_CANNOT_TELL, "there is no plain command that the audit can follow; --command gives one");
    return;
  }
  const char *runtime = strstr(text, "accel-runtime"); /* a name, and no path */
  if (runtime != NULL)
    compilation.runtime = arena_copy(audit->arena, runtime, strspn(runtime, "abcdefghijklmnopqrstuvwxyz-"));
  compilation.has_ranks = runtime != NULL && strcmp(compilation.runtime, "accel-runtime-mpi") == 0;
  compilation.has_sqlite = strstr(text, "sqlite3") != NULL;
  bool is_native = false;
  for (int i = 0; i < compilation.n_flags; i++)
    is_native = is_native || strstr(compilation.flags[i], "=native") != NULL;
  const char *path = options->compiler->compile(options->compiler->context, &compilation, &why);
  const struct linked *again = path == NULL ? NULL : read_linked(audit->arena, path, &why);
  if (again == NULL)
    find(&check, VERDICT_CANNOT_TELL, arena_printf(audit->arena, "the text is not compiled once more: %s", why));
  else
    compare(&check, again, is_native);
}

bool linked_check(struct audit *audit, const struct audit_options *options, struct diagnostics *diags) {
  const char *why = NULL;
  const struct linked *linked = read_linked(audit->arena, options->object, &why);
  if (linked == NULL) {
    diag_error(diags, (struct location){.file = options->object}, "cannot read the program: %s", why);
    return false;
  }
  check_loading(audit, linked);
  check_symbols(audit, linked);
  check_rebuilt(audit, options, linked);
  return true;
}
