/* The claim that ties an object to the text: the compiler that the object names makes the same of it once more. */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/machine/machine.h"
#include "gen/audit/program/grammar.h"
#include "gen/audit/text/compile_command.h"

struct rebuilding {
  struct audit *audit;
  const struct machine *machine;   /* the stranger's */
  const struct object_file *again; /* ours */
  struct claim *claim;
  const char *names[3]; /* of the compiler */
  int n_names;
  const char **flags;
  int n_flags, flags_capacity;
  const char **folders; /* of headers, as the object's command has them */
  int n_folders, folders_capacity;
  bool is_clang, is_possible;
};

static void find(const struct rebuilding *rebuilding, enum verdict verdict, const char *message) {
  claim_finding(rebuilding->audit, rebuilding->claim, verdict, (struct location){.file = rebuilding->audit->tree->file},
                "%s", message);
}

/* ---- What the object says of its compiler ---- */

static void add_flag(struct rebuilding *rebuilding, const char *flag) {
  rebuilding->flags = arena_grow(rebuilding->audit->arena, rebuilding->flags, rebuilding->n_flags,
                                 &rebuilding->flags_capacity, sizeof *rebuilding->flags);
  rebuilding->flags[rebuilding->n_flags++] = flag;
}

static void add_folder(struct rebuilding *rebuilding, const char *folder) {
  rebuilding->folders = arena_grow(rebuilding->audit->arena, rebuilding->folders, rebuilding->n_folders,
                                   &rebuilding->folders_capacity, sizeof *rebuilding->folders);
  rebuilding->folders[rebuilding->n_folders++] = folder;
}

/* gcc of a major version, by "GNU C17 12.2.0 -O2 ...", or clang, by "... clang version 19.1.7 ...". NULL: another one;
 * else what follows the version. */
static const char *read_compiler(struct rebuilding *rebuilding) {
  struct arena *arena = rebuilding->audit->arena;
  const char *producer = rebuilding->machine->producer, *version = NULL;
  const char *clang = strstr(producer, "clang version ");
  if (clang != NULL) version = clang + strlen("clang version ");
  if (strncmp(producer, "GNU C17 ", 8) == 0) version = producer + 8;
  const size_t digits = version == NULL ? 0 : strspn(version, "0123456789");
  if (digits == 0 || digits > 3) return NULL;
  rebuilding->is_clang = clang != NULL;
  const char *name = clang != NULL ? "clang" : "gcc";
  rebuilding->names[rebuilding->n_names++] = arena_printf(arena, "%s-%.*s", name, (int)digits, version);
  rebuilding->names[rebuilding->n_names++] = name;
  return version + strcspn(version, " ");
}

/* A flag that an object states. gcc writes out what -march=native is for its machine. */
static void take_flag(struct rebuilding *rebuilding, const char *word) {
  if (grammar_has_flag(word) || grammar_has_machine_flag(word)) {
    if (strcmp(word, "-c") != 0) add_flag(rebuilding, word);
    return;
  }
  const char *how = compile_command_change(word);
  rebuilding->is_possible = false;
  find(rebuilding, how != NULL ? VERDICT_BROKEN : VERDICT_CANNOT_TELL,
       arena_printf(rebuilding->audit->arena, "the object was compiled with '%s', which %s", word,
                    how != NULL ? how : "is a flag that the audit does not know"));
}

/* The words after the version: clang's have its own path first, and files. */
static void read_flags(struct rebuilding *rebuilding, const char *text) {
  static const char *const with_operand[] = {"-o", "-x", "-main-file-name"};
  struct arena *arena = rebuilding->audit->arena;
  bool skips = false, names_folder = false;
  for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
    const char *word = arena_copy(arena, text, strcspn(text, " "));
    text += strlen(word);
    const bool is_operand = skips, is_folder = names_folder;
    if (is_folder || (strncmp(word, "-I", 2) == 0 && word[2] != '\0'))
      add_folder(rebuilding, is_folder ? word : word + 2);
    skips = names_folder = strcmp(word, "-I") == 0;
    if (is_operand || word[0] != '-' || strncmp(word, "-I", 2) == 0) continue;
    for (size_t i = 0; i < sizeof with_operand / sizeof *with_operand; i++)
      skips = skips || strcmp(word, with_operand[i]) == 0;
    if (!skips) take_flag(rebuilding, word);
  }
}

/* The flags of --command, of an object of clang's that does not say its own. */
static void read_command(struct rebuilding *rebuilding, const struct audit_options *options) {
  const char *text = options->n_commands > 0 ? options->commands[0].text : "";
  const char *begin = strstr(text, " -"), *end = strstr(text, "$(");
  if (begin == NULL || options->commands[0].where.file == NULL) {
    rebuilding->is_possible = false;
    find(rebuilding, VERDICT_CANNOT_TELL,
         "the object does not say with which flags it was compiled: compile it with -grecord-gcc-switches, or give "
         "--command");
    return;
  }
  if (end == NULL) end = text + strlen(text);
  read_flags(rebuilding, arena_copy(rebuilding->audit->arena, begin, end > begin ? (size_t)(end - begin) : 0));
}

/* ---- The comparison ---- */

/* Loaded sections in their order. */
static size_t next_loaded(const struct object_file *object, size_t from) {
  while (from < object->n_sections && !section_is_loaded(&object->sections[from])) from++;
  return from;
}

/* The function of an object at an offset of a section; NULL: none. */
static const char *function_name(const struct object_file *object, size_t section, uint64_t offset) {
  for (size_t i = 1; i < object->n_symbols; i++) {
    const struct object_symbol *symbol = &object->symbols[i];
    if ((symbol->type == STT_FUNC || symbol->type == STT_OBJECT) && symbol->section == section &&
        offset >= symbol->value && offset - symbol->value < symbol->size)
      return symbol->name;
  }
  return NULL;
}

/* Adds the first difference of two sections. */
static bool compare_bytes(const struct rebuilding *rebuilding, size_t number, const struct object_section *ours) {
  const struct object_file *object = rebuilding->machine->object;
  const struct object_section *theirs = &object->sections[number];
  struct arena *arena = rebuilding->audit->arena;
  uint64_t at = 0;
  if (theirs->bytes != NULL && ours->bytes != NULL)
    while (at < theirs->size && at < ours->size && theirs->bytes[at] == ours->bytes[at]) at++;
  const bool same = theirs->size == ours->size && (theirs->bytes != NULL) == (ours->bytes != NULL) &&
                    (theirs->bytes == NULL || at == theirs->size);
  if (same) return true;
  const char *name = function_name(object, number, at);
  find(rebuilding, VERDICT_BROKEN,
       name != NULL
           ? arena_printf(arena, "%s is not what the compiler makes of the text, from byte %" PRIu64 " of %s on", name,
                          at, theirs->name)
           : arena_printf(arena, "%s is not what the compiler makes of the text, from byte %" PRIu64 " on",
                          theirs->name, at));
  return false;
}

/* What a symbol is, whatever its number. */
static bool is_same_symbol(const struct object_file *a, const struct object_symbol *x, const struct object_file *b,
                           const struct object_symbol *y) {
  const bool in_a = x->section != SHN_UNDEF && x->section < a->n_sections,
             in_b = y->section != SHN_UNDEF && y->section < b->n_sections;
  if (x->type != y->type || x->binding != y->binding || x->value != y->value || x->size != y->size) return false;
  if (in_a != in_b || (!in_a && x->section != y->section)) return false;
  if (in_a && strcmp(a->sections[x->section].name, b->sections[y->section].name) != 0) return false;
  return strcmp(x->name, y->name) == 0;
}

static size_t next_relocation(const struct object_file *object, size_t from) {
  while (from < object->n_relocations && !section_is_loaded(&object->sections[object->relocations[from].section]))
    from++;
  return from;
}

static void compare_relocations(const struct rebuilding *rebuilding) {
  const struct object_file *theirs = rebuilding->machine->object, *ours = rebuilding->again;
  struct arena *arena = rebuilding->audit->arena;
  size_t i = next_relocation(theirs, 0), j = next_relocation(ours, 0);
  for (; i < theirs->n_relocations && j < ours->n_relocations;
       i = next_relocation(theirs, i + 1), j = next_relocation(ours, j + 1)) {
    const struct object_relocation *x = &theirs->relocations[i], *y = &ours->relocations[j];
    const bool same = strcmp(theirs->sections[x->section].name, ours->sections[y->section].name) == 0 &&
                      x->offset == y->offset && x->type == y->type && x->addend == y->addend &&
                      is_same_symbol(theirs, &theirs->symbols[x->symbol], ours, &ours->symbols[y->symbol]);
    if (same) continue;
    find(rebuilding, VERDICT_BROKEN,
         arena_printf(arena, "the relocation at %" PRIu64 " of %s is not what the compiler makes of the text",
                      x->offset, theirs->sections[x->section].name));
    return;
  }
  if (i < theirs->n_relocations || j < ours->n_relocations)
    find(rebuilding, VERDICT_BROKEN, "there are other relocations than the compiler makes of the text");
}

/* Visible symbols: the linker goes by them. */
static void compare_symbols(const struct rebuilding *rebuilding, const struct object_file *some,
                            const struct object_file *other, const char *what) {
  for (size_t i = 1; i < some->n_symbols; i++) {
    const struct object_symbol *symbol = &some->symbols[i];
    bool found = symbol->binding == STB_LOCAL && symbol->type != STT_FUNC;
    for (size_t j = 1; j < other->n_symbols && !found; j++)
      found = is_same_symbol(some, symbol, other, &other->symbols[j]);
    if (!found)
      find(rebuilding, VERDICT_BROKEN,
           arena_printf(rebuilding->audit->arena, "the symbol '%s' %s", symbol->name, what));
  }
}

static void compare(const struct rebuilding *rebuilding) {
  const struct object_file *theirs = rebuilding->machine->object, *ours = rebuilding->again;
  struct arena *arena = rebuilding->audit->arena;
  size_t i = next_loaded(theirs, 1), j = next_loaded(ours, 1);
  uint64_t bytes = 0;
  int sections = 0;
  for (; i < theirs->n_sections && j < ours->n_sections; i = next_loaded(theirs, i + 1), j = next_loaded(ours, j + 1)) {
    const struct object_section *x = &theirs->sections[i], *y = &ours->sections[j];
    if (strcmp(x->name, y->name) != 0 || x->type != y->type || x->flags != y->flags) {
      find(rebuilding, VERDICT_BROKEN,
           arena_printf(arena, "the section '%s' is not what the compiler makes of the text, but '%s'", x->name,
                        y->name));
      return;
    }
    if (!compare_bytes(rebuilding, i, y)) return;
    bytes += x->size;
    sections++;
  }
  if (i < theirs->n_sections || j < ours->n_sections)
    find(rebuilding, VERDICT_BROKEN, "there are other sections than the compiler makes of the text");
  compare_relocations(rebuilding);
  compare_symbols(rebuilding, theirs, ours, "is not what the compiler makes of the text");
  compare_symbols(rebuilding, ours, theirs, "is missing");
  claim_evidence(rebuilding->audit, rebuilding->claim, "%s, %" PRIu64 " bytes of %d sections are the same",
                 object_comment(arena, ours), bytes, sections);
}

/* ---- All ---- */

static void rebuild(struct rebuilding *rebuilding, const struct audit_compiler *compiler) {
  struct arena *arena = rebuilding->audit->arena;
  const char *why = NULL;
  const struct audit_compilation compilation = {.names = rebuilding->names,
                                                .n_names = rebuilding->n_names,
                                                .flags = rebuilding->flags,
                                                .n_flags = rebuilding->n_flags,
                                                .folders = rebuilding->folders,
                                                .n_folders = rebuilding->n_folders,
                                                .source = rebuilding->machine->source};
  const char *path = compiler->compile(compiler->context, &compilation, &why);
  if (path != NULL) rebuilding->again = object_read(arena, path, &why);
  if (rebuilding->again == NULL) {
    find(rebuilding, VERDICT_CANNOT_TELL, arena_printf(arena, "the text is not compiled once more: %s", why));
    return;
  }
  const char *theirs = object_comment(arena, rebuilding->machine->object),
             *ours = object_comment(arena, rebuilding->again);
  if (strcmp(theirs, ours) != 0)
    find(rebuilding, VERDICT_CANNOT_TELL,
         arena_printf(arena, "the object is of '%s', and the compiler here is '%s'", theirs, ours));
  else
    compare(rebuilding);
}

void machine_check_rebuilt(const struct machine_check *check) {
  struct rebuilding rebuilding = {.audit = check->audit, .machine = check->machine, .is_possible = true};
  rebuilding.claim = audit_claim(check->audit, "machine-rebuilt",
                                 "The compiler that the object names makes the same code, data, relocations and "
                                 "symbols of the program's text, with flags that leave its meaning as it is.");
  if (check->options->compiler == NULL) {
    find(&rebuilding, VERDICT_CANNOT_TELL, "the text is not compiled once more");
    return;
  }
  const char *flags = read_compiler(&rebuilding);
  if (flags == NULL) {
    find(&rebuilding, VERDICT_CANNOT_TELL,
         "the object does not say which compiler made it: compile it with -g -grecord-gcc-switches, by gcc or clang");
    return;
  }
  if (rebuilding.is_clang && strstr(flags, " -") == NULL)
    read_command(&rebuilding, check->options);
  else
    read_flags(&rebuilding, flags);
  if (rebuilding.is_possible) rebuild(&rebuilding, check->options->compiler);
}
