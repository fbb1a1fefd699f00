#include "gen/audit/machine/object.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/file.h"

struct reader {
  struct arena *arena;
  struct object_file *object;
  Elf *elf;
  size_t table; /* the section that holds the symbols; 0: there is none */
};

static void add_problem(const struct reader *reader, const char *problem) {
  struct object_file *object = reader->object;
  object->problems = arena_grow(reader->arena, object->problems, object->n_problems, &object->problems_capacity,
                                sizeof *object->problems);
  object->problems[object->n_problems++] = problem;
}

static const char *string_at(const struct reader *reader, size_t strings, size_t offset) {
  const char *string = elf_strptr(reader->elf, strings, offset);
  return string != NULL ? arena_string(reader->arena, string) : "?";
}

/* ---- Sections ---- */

static void read_section(const struct reader *reader, size_t number, size_t strings) {
  struct object_section *section = &reader->object->sections[number];
  Elf_Scn *scn = elf_getscn(reader->elf, number);
  GElf_Shdr header;
  section->name = "?";
  if (scn == NULL || gelf_getshdr(scn, &header) == NULL) {
    add_problem(reader, arena_printf(reader->arena, "section %zu has no header", number));
    return;
  }
  section->name = string_at(reader, strings, header.sh_name);
  section->type = header.sh_type;
  section->link = header.sh_link;
  section->info = header.sh_info;
  section->flags = header.sh_flags;
  section->size = header.sh_size;
  if (header.sh_type == SHT_NOBITS || header.sh_type == SHT_NULL || header.sh_size == 0) return;
  const Elf_Data *data = elf_rawdata(scn, NULL);
  if (data != NULL && data->d_buf != NULL && data->d_size == header.sh_size)
    section->bytes = (const uint8_t *)arena_copy(reader->arena, data->d_buf, data->d_size);
  else
    add_problem(reader, arena_printf(reader->arena, "section '%s' is not all in the file", section->name));
}

static void read_sections(const struct reader *reader) {
  struct object_file *object = reader->object;
  size_t strings = 0;
  if (elf_getshdrnum(reader->elf, &object->n_sections) != 0) object->n_sections = 0;
  if (elf_getshdrstrndx(reader->elf, &strings) != 0) add_problem(reader, "its sections have no names");
  object->sections = arena_alloc(reader->arena, (object->n_sections + 1) * sizeof *object->sections);
  object->sections[0].name = "";
  for (size_t i = 1; i < object->n_sections; i++) read_section(reader, i, strings);
}

/* ---- Symbols ---- */

static void read_symbols(struct reader *reader) {
  struct object_file *object = reader->object;
  for (size_t i = 1; i < object->n_sections; i++) {
    if (object->sections[i].type != SHT_SYMTAB) continue;
    if (reader->table != 0) add_problem(reader, "it has more than one table of symbols");
    reader->table = i;
  }
  Elf_Data *data = reader->table == 0 ? NULL : elf_getdata(elf_getscn(reader->elf, reader->table), NULL);
  const size_t each = sizeof(Elf64_Sym);
  if (data == NULL) return;
  object->n_symbols = data->d_size / each;
  object->symbols = arena_alloc(reader->arena, (object->n_symbols + 1) * sizeof *object->symbols);
  for (size_t i = 0; i < object->n_symbols; i++) {
    GElf_Sym symbol;
    if (gelf_getsym(data, (int)i, &symbol) == NULL) symbol = (GElf_Sym){0};
    object->symbols[i] = (struct object_symbol){string_at(reader, object->sections[reader->table].link, symbol.st_name),
                                                GELF_ST_TYPE(symbol.st_info),
                                                GELF_ST_BIND(symbol.st_info),
                                                symbol.st_shndx,
                                                symbol.st_value,
                                                symbol.st_size};
    if (symbol.st_shndx < SHN_LORESERVE && symbol.st_shndx >= object->n_sections) {
      add_problem(reader, arena_printf(reader->arena, "'%s' is in no section of it", object->symbols[i].name));
      object->symbols[i].section = SHN_UNDEF;
    }
  }
}

/* ---- Relocations ---- */

static size_t count_relocations(const struct object_file *object) {
  size_t count = 0;
  for (size_t i = 1; i < object->n_sections; i++)
    if (object->sections[i].type == SHT_RELA && object->sections[i].bytes != NULL)
      count += object->sections[i].size / sizeof(Elf64_Rela);
  return count;
}

static void read_table(const struct reader *reader, size_t number) {
  struct object_file *object = reader->object;
  const struct object_section *table = &object->sections[number];
  Elf_Data *data = elf_getdata(elf_getscn(reader->elf, number), NULL);
  if (data == NULL || table->bytes == NULL) return;
  if (table->info == 0 || table->info >= object->n_sections || table->link != reader->table || reader->table == 0) {
    add_problem(reader, arena_printf(reader->arena, "'%s' belongs to no section", table->name));
    return;
  }
  for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela); i++) {
    GElf_Rela entry;
    if (gelf_getrela(data, (int)i, &entry) == NULL) continue;
    const struct object_relocation relocation = {table->info, entry.r_offset, (uint32_t)GELF_R_TYPE(entry.r_info),
                                                 GELF_R_SYM(entry.r_info), entry.r_addend};
    if (relocation.symbol < object->n_symbols)
      object->relocations[object->n_relocations++] = relocation;
    else
      add_problem(reader, arena_printf(reader->arena, "a relocation of '%s' names no symbol", table->name));
  }
}

static int compare_relocations(const void *left, const void *right) {
  const struct object_relocation *a = left, *b = right;
  if (a->section != b->section) return a->section < b->section ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

static void read_relocations(const struct reader *reader) {
  struct object_file *object = reader->object;
  object->relocations = arena_alloc(reader->arena, (count_relocations(object) + 1) * sizeof *object->relocations);
  for (size_t i = 1; i < object->n_sections; i++)
    if (object->sections[i].type == SHT_RELA) read_table(reader, i);
  qsort(object->relocations, object->n_relocations, sizeof *object->relocations, compare_relocations);
}

/* ---- All ---- */

static const char *read_all(struct reader *reader) {
  GElf_Ehdr header;
  if (reader->elf == NULL || elf_kind(reader->elf) != ELF_K_ELF || gelf_getehdr(reader->elf, &header) == NULL)
    return "it is not an ELF file";
  if (header.e_type != ET_REL) return "it is not relocatable: give what the compiler's -c makes";
  if (header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return "it is not for x86-64";
  reader->object->abi = header.e_ident[EI_OSABI];
  read_sections(reader);
  read_symbols(reader);
  read_relocations(reader);
  return NULL;
}

struct object_file *object_read(struct arena *arena, const char *path, const char **why) {
  size_t length = 0;
  const char *bytes = read_bytes(arena, path, &length);
  if (bytes == NULL) {
    *why = strerror(errno);
    return NULL;
  }
  struct reader reader = {.arena = arena, .object = arena_alloc(arena, sizeof *reader.object)};
  elf_version(EV_CURRENT);
  reader.elf = elf_memory(arena_copy(arena, bytes, length), length);
  *why = read_all(&reader);
  elf_end(reader.elf);
  return *why == NULL ? reader.object : NULL;
}

bool section_is_loaded(const struct object_section *section) {
  return (section->flags & SHF_ALLOC) != 0;
}

bool section_is_code(const struct object_section *section) {
  return (section->flags & SHF_EXECINSTR) != 0 && section->type == SHT_PROGBITS;
}

size_t relocation_size(uint32_t type) {
  switch (type) {
  case R_X86_64_64:
    return 8;
  case R_X86_64_PC32:
  case R_X86_64_PLT32:
  case R_X86_64_32:
  case R_X86_64_32S:
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX:
    return 4;
  default:
    return 0;
  }
}

const struct object_relocation *object_relocation(const struct object_file *object, size_t section, uint64_t from,
                                                  uint64_t to) {
  const struct object_relocation *found = object->relocations;
  const struct object_relocation from_here = {.section = section, .offset = from};
  for (size_t count = object->n_relocations; count > 0;) { /* the first that is not before it */
    const size_t half = count / 2;
    const bool before = compare_relocations(&found[half], &from_here) < 0;
    found = before ? found + half + 1 : found;
    count = before ? count - half - 1 : half;
  }
  if (found == object->relocations + object->n_relocations || found->section != section || found->offset >= to)
    return NULL;
  return found;
}

const char *object_comment(struct arena *arena, const struct object_file *object) {
  for (size_t i = 1; i < object->n_sections; i++) {
    const struct object_section *section = &object->sections[i];
    if (strcmp(section->name, ".comment") != 0 || section->bytes == NULL) continue;
    const size_t start = section->bytes[0] == '\0' ? 1 : 0;
    return arena_string(arena, (const char *)section->bytes + start);
  }
  return "";
}
