/* ELF and DWARF by elfutils, instructions by Capstone. */
#include <capstone/capstone.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/machine.h"

/* A relocation: a field of the code that the linker fills in. */
struct fixup {
  size_t section;
  uint64_t offset;
  const char *symbol;                 /* NULL: a location in this object */
  size_t target;                      /* section of that location */
  int64_t addend;                     /* of that location, from the section's start and the next instruction on */
  bool is_external, is_through_table; /* the linker's table of addresses */
};

struct reader {
  struct arena *arena;
  struct machine *machine;
  Dwfl_Module *module;
  Elf *elf;
  csh capstone;
  struct {
    struct fixup *items;
    int count, capacity;
  } fixups;
  struct symbol {
    size_t section;
    uint64_t offset, size, address;
    const char *name;
    int function; /* among the machine's */
  } *symbols;
  int n_symbols, symbols_capacity;
};

/* ---- Symbols and relocations ---- */

static void read_symbols(struct reader *reader) {
  int count = dwfl_module_getsymtab(reader->module);
  for (int i = 1; i < count; i++) {
    GElf_Sym symbol;
    GElf_Addr address;
    GElf_Word section = 0;
    const char *name = dwfl_module_getsym_info(reader->module, i, &symbol, &address, &section, NULL, NULL);
    if (name == NULL || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 || section == SHN_UNDEF)
      continue;
    struct machine *machine = reader->machine;
    struct machine_function function = {
        .name = arena_string(reader->arena, name), .address = address, .size = symbol.st_size};
    machine->functions = arena_grow(reader->arena, machine->functions, machine->n_functions,
                                    &machine->functions_capacity, sizeof function);
    struct symbol entry = {section, symbol.st_value, symbol.st_size, address, function.name, machine->n_functions};
    machine->functions[machine->n_functions++] = function;
    reader->symbols =
        arena_grow(reader->arena, reader->symbols, reader->n_symbols, &reader->symbols_capacity, sizeof entry);
    reader->symbols[reader->n_symbols++] = entry;
  }
}

static void read_fixup(struct reader *reader, const GElf_Rela *entry, size_t section, Elf_Data *table, size_t strings) {
  GElf_Sym symbol;
  if (gelf_getsym(table, (int)GELF_R_SYM(entry->r_info), &symbol) == NULL) return;
  GElf_Xword type = GELF_R_TYPE(entry->r_info);
  struct fixup fixup = {.section = section, .offset = entry->r_offset, .target = symbol.st_shndx};
  fixup.is_through_table = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  if (GELF_ST_TYPE(symbol.st_info) == STT_SECTION) {
    fixup.addend = entry->r_addend;
  } else {
    const char *name = elf_strptr(reader->elf, strings, symbol.st_name);
    fixup.symbol = arena_string(reader->arena, name == NULL ? "?" : name);
    fixup.is_external = symbol.st_shndx == SHN_UNDEF;
    fixup.addend = (int64_t)symbol.st_value + entry->r_addend;
  }
  ARENA_PUSH(reader->arena, reader->fixups, fixup);
}

static void read_fixups(struct reader *reader) {
  for (Elf_Scn *scn = NULL; (scn = elf_nextscn(reader->elf, scn)) != NULL;) {
    GElf_Shdr header, table_header;
    if (gelf_getshdr(scn, &header) == NULL || header.sh_type != SHT_RELA) continue;
    Elf_Scn *target = elf_getscn(reader->elf, header.sh_info), *symbols = elf_getscn(reader->elf, header.sh_link);
    GElf_Shdr code;
    if (gelf_getshdr(target, &code) == NULL || !(code.sh_flags & SHF_EXECINSTR)) continue;
    if (gelf_getshdr(symbols, &table_header) == NULL) continue;
    Elf_Data *data = elf_getdata(scn, NULL), *table = elf_getdata(symbols, NULL);
    for (size_t i = 0; data != NULL && i < header.sh_size / header.sh_entsize; i++) {
      GElf_Rela entry;
      if (gelf_getrela(data, (int)i, &entry) != NULL)
        read_fixup(reader, &entry, header.sh_info, table, table_header.sh_link);
    }
  }
}

static const struct fixup *find_fixup(const struct reader *reader, size_t section, uint64_t from, uint64_t to) {
  for (int i = 0; i < reader->fixups.count; i++) {
    const struct fixup *fixup = &reader->fixups.items[i];
    if (fixup->section == section && fixup->offset >= from && fixup->offset < to) return fixup;
  }
  return NULL;
}

/* The function at an offset of a section; -1 when there is none. */
static int function_at(const struct reader *reader, size_t section, uint64_t offset) {
  for (int i = 0; i < reader->n_symbols; i++) {
    const struct symbol *symbol = &reader->symbols[i];
    if (symbol->section == section && offset >= symbol->offset && offset < symbol->offset + symbol->size)
      return symbol->function;
  }
  return -1;
}

/* ---- Instructions ---- */

/* The compilation unit of an address; NULL when there is no line table for it. Units are queried one by one: not every
 * compiler writes a table of their addresses. */
static Dwarf_Die *unit_of(struct reader *reader, uint64_t address, Dwarf_Addr *bias, Dwarf_Line **line) {
  for (Dwarf_Die *unit = NULL; (unit = dwfl_module_nextcu(reader->module, unit, bias)) != NULL;) {
    *line = dwarf_getsrc_die(unit, address - *bias);
    if (*line != NULL) return unit;
  }
  return NULL;
}

static struct location line_of(struct reader *reader, uint64_t address) {
  struct location where = {0};
  Dwarf_Addr bias;
  Dwarf_Line *line;
  if (unit_of(reader, address, &bias, &line) == NULL) return where;
  const char *file = dwarf_linesrc(line, NULL, NULL);
  dwarf_lineno(line, &where.line);
  dwarf_linecol(line, &where.column);
  where.file = file == NULL ? NULL : arena_string(reader->arena, file);
  reader->machine->has_lines = true;
  return where;
}

/* The lines of the inlined calls around an address. */
static void read_callers(struct reader *reader, uint64_t address, int callers[MAX_CALLERS]) {
  Dwarf_Addr bias;
  Dwarf_Line *line;
  Dwarf_Die *unit = unit_of(reader, address, &bias, &line), *scopes = NULL;
  int count = unit == NULL ? 0 : dwarf_getscopes(unit, address - bias, &scopes), found = 0;
  for (int i = 0; i < count && found + 1 < MAX_CALLERS; i++) {
    Dwarf_Attribute attribute;
    Dwarf_Word at;
    if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine &&
        dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &at) == 0)
      callers[found++] = (int)at;
  }
  free(scopes);
}

static void add_callee(struct reader *reader, int caller, int callee) {
  struct machine_function *function = &reader->machine->functions[caller];
  if (callee < 0 || callee == caller) return;
  for (int i = 0; i < function->n_callees; i++)
    if (function->callees[i] == callee) return;
  function->callees = arena_grow(reader->arena, function->callees, function->n_callees, &function->callees_capacity,
                                 sizeof *function->callees);
  function->callees[function->n_callees++] = callee;
}

static void add_jump(struct reader *reader, struct jump jump) {
  struct machine *machine = reader->machine;
  machine->jumps = arena_grow(reader->arena, machine->jumps, machine->n_jumps, &machine->jumps_capacity, sizeof jump);
  machine->jumps[machine->n_jumps++] = jump;
}

static bool is_stack_pointer(const cs_x86_op *operand) {
  return operand->type == X86_OP_REG && operand->reg == X86_REG_RSP;
}

/* What an instruction adds to the frame, at most. */
static void add_frame(struct machine_function *function, const cs_insn *insn) {
  const cs_x86 *x86 = &insn->detail->x86;
  const cs_x86_op *first = &x86->operands[0], *second = &x86->operands[1];
  if (function->frame < 0) return;
  if (insn->id == X86_INS_PUSH) function->frame += 8;
  if (x86->op_count < 2 || !is_stack_pointer(first)) {
    /* The end of a large frame that is touched page by page. */
    bool probes = insn->id == X86_INS_LEA && second->type == X86_OP_MEM && second->mem.base == X86_REG_RSP &&
                  second->mem.disp < -4096 && first->type == X86_OP_REG && first->reg == X86_REG_R11;
    if (probes) function->frame -= second->mem.disp;
    return;
  }
  if (insn->id == X86_INS_SUB && second->type == X86_OP_IMM) function->frame += second->imm > 0 ? second->imm : 0;
  if (insn->id == X86_INS_SUB && second->type != X86_OP_IMM) function->frame = -1;
  if (insn->id == X86_INS_AND && second->type == X86_OP_IMM) function->frame += -second->imm;
  if (insn->id == X86_INS_LEA && second->type == X86_OP_MEM && second->mem.disp < 0)
    function->frame -= second->mem.disp;
}

/* Whether an operand is an address to jump to, not a register or memory that holds one. */
static bool is_direct(const cs_insn *insn) {
  return insn->detail->x86.op_count > 0 && insn->detail->x86.operands[0].type == X86_OP_IMM;
}

static void read_call(struct reader *reader, const struct symbol *symbol, const cs_insn *insn, struct jump jump) {
  uint64_t offset = symbol->offset + (insn->address - symbol->address);
  const struct fixup *fixup = find_fixup(reader, symbol->section, offset, offset + insn->size);
  bool through_table = fixup != NULL && fixup->is_through_table;
  jump.kind = is_direct(insn) || through_table ? JUMP_CALL : JUMP_CALL_INDIRECT;
  int callee = -1;
  if (fixup != NULL) {
    jump.target = fixup->symbol;
    jump.is_external = fixup->is_external;
    if (!fixup->is_external) callee = function_at(reader, fixup->target, (uint64_t)(fixup->addend + 4));
  } else if (is_direct(insn)) {
    uint64_t target = (uint64_t)insn->detail->x86.operands[0].imm;
    callee = function_at(reader, symbol->section, target - symbol->address + symbol->offset);
  }
  if (callee >= 0 && jump.target == NULL) jump.target = reader->machine->functions[callee].name;
  add_callee(reader, symbol->function, callee);
  add_jump(reader, jump);
}

/* A jump: conditional ones, and those to an address in a register; a plain one to another function is a call. */
static void read_jump(struct reader *reader, const struct symbol *symbol, const cs_insn *insn, struct jump jump) {
  if (!is_direct(insn)) {
    jump.kind = JUMP_INDIRECT;
    add_jump(reader, jump);
    return;
  }
  uint64_t target = (uint64_t)insn->detail->x86.operands[0].imm;
  bool inside = target >= symbol->address && target < symbol->address + symbol->size;
  uint64_t offset = symbol->offset + (insn->address - symbol->address);
  bool elsewhere = find_fixup(reader, symbol->section, offset, offset + insn->size) != NULL || !inside;
  if (insn->id == X86_INS_JMP) {
    if (elsewhere) read_call(reader, symbol, insn, jump);
    return;
  }
  jump.kind = JUMP_CONDITIONAL;
  jump.is_backward = inside && !elsewhere && target <= insn->address;
  add_jump(reader, jump);
}

/* An address of a function that is taken: what a thread will run. */
static void read_reference(struct reader *reader, const struct symbol *symbol, const cs_insn *insn) {
  uint64_t offset = symbol->offset + (insn->address - symbol->address);
  const struct fixup *fixup = find_fixup(reader, symbol->section, offset, offset + insn->size);
  if (fixup != NULL) {
    if (!fixup->is_external)
      add_callee(reader, symbol->function, function_at(reader, fixup->target, (uint64_t)(fixup->addend + 4)));
    return;
  }
  const cs_x86_op *second = &insn->detail->x86.operands[1];
  if (second->type != X86_OP_MEM || second->mem.base != X86_REG_RIP) return;
  uint64_t target = insn->address + insn->size + (uint64_t)second->mem.disp;
  add_callee(reader, symbol->function, function_at(reader, symbol->section, target - symbol->address + symbol->offset));
}

static void read_instruction(struct reader *reader, const struct symbol *symbol, const cs_insn *insn) {
  struct machine_function *function = &reader->machine->functions[symbol->function];
  reader->machine->n_instructions++;
  if (insn->id == 0) { /* bytes that Capstone skipped */
    function->n_undecoded++;
    return;
  }
  add_frame(function, insn);
  bool call = cs_insn_group(reader->capstone, insn, CS_GRP_CALL),
       jump = cs_insn_group(reader->capstone, insn, CS_GRP_JUMP);
  if (insn->id == X86_INS_LEA) read_reference(reader, symbol, insn);
  if (!call && !jump) return;
  struct jump found = {.function = function->name, .where = line_of(reader, insn->address)};
  read_callers(reader, insn->address, found.callers);
  if (call)
    read_call(reader, symbol, insn, found);
  else
    read_jump(reader, symbol, insn, found);
}

/* The length of an instruction with a VEX or EVEX prefix; 0 for another one. These work on vectors and masks: none
 * jumps, none moves the stack, and Capstone does not know the newest. (Intel, Software Developer's Manual 2, 2.3
 * and 2.7.) */
static size_t vector_length(const uint8_t *bytes, size_t left) {
  size_t prefix = left < 8 ? 0 : bytes[0] == 0xC5 ? 2 : bytes[0] == 0xC4 ? 3 : bytes[0] == 0x62 ? 4 : 0;
  if (prefix == 0) return 0;
  int map = prefix == 2 ? 1 : bytes[1] & (prefix == 3 ? 0x1F : 0x07);
  uint8_t opcode = bytes[prefix], modrm = bytes[prefix + 1], mode = modrm >> 6, base = modrm & 7;
  if (map == 1 && opcode == 0x77) return prefix + 1; /* vzeroupper */
  size_t length = prefix + 2;
  if (mode != 3 && base == 4) base = bytes[length++] & 7; /* a second byte of the address */
  if (mode == 1) length += 1;
  if (mode == 2 || (mode == 0 && base == 5)) length += 4;
  bool shuffles =
      map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 || (opcode >= 0xC4 && opcode <= 0xC6));
  return length + (map == 3 || shuffles);
}

static void read_function(struct reader *reader, const struct symbol *symbol) {
  Elf_Scn *scn = elf_getscn(reader->elf, symbol->section);
  Elf_Data *data = scn == NULL ? NULL : elf_rawdata(scn, NULL);
  if (data == NULL || symbol->offset + symbol->size > data->d_size) return;
  const uint8_t *bytes = (const uint8_t *)data->d_buf + symbol->offset;
  cs_insn *insn = cs_malloc(reader->capstone);
  uint64_t address = symbol->address;
  size_t left = symbol->size;
  while (left > 0) {
    size_t length = vector_length(bytes, left);
    if (length > 0 && length <= left) {
      reader->machine->n_instructions++;
      bytes += length;
      address += length;
      left -= length;
    } else if (cs_disasm_iter(reader->capstone, &bytes, &left, &address, insn)) {
      read_instruction(reader, symbol, insn);
    } else {
      break;
    }
  }
  cs_free(insn, 1);
}

/* ---- Stack ---- */

static int64_t find_depth(struct machine *machine, struct machine_function *function) {
  if (function->frame < 0) function->depth = -1;
  if (function->is_visiting) return -1;
  if (function->depth != 0) return function->depth;
  int64_t deepest = 0;
  function->is_visiting = true;
  for (int i = 0; i < function->n_callees && deepest >= 0; i++) {
    int64_t depth = find_depth(machine, &machine->functions[function->callees[i]]);
    if (depth < 0 || depth > deepest) deepest = depth;
  }
  function->is_visiting = false;
  function->depth = deepest < 0 ? -1 : function->frame + 8 + deepest;
  return function->depth;
}

/* ---- All ---- */

static const char *read_module(struct reader *reader) {
  GElf_Addr bias;
  GElf_Ehdr header;
  reader->elf = dwfl_module_getelf(reader->module, &bias);
  if (reader->elf == NULL || gelf_getehdr(reader->elf, &header) == NULL) return "it is not an ELF file";
  if (header.e_type != ET_REL) return "it is not relocatable: give what the compiler's -c makes";
  if (header.e_machine != EM_X86_64) return "it is not for x86-64";
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &reader->capstone) != CS_ERR_OK) return "there is no disassembler";
  cs_option(reader->capstone, CS_OPT_DETAIL, CS_OPT_ON);
  cs_option(reader->capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
  read_symbols(reader);
  read_fixups(reader);
  for (int i = 0; i < reader->n_symbols; i++) read_function(reader, &reader->symbols[i]);
  for (int i = 0; i < reader->machine->n_functions; i++) find_depth(reader->machine, &reader->machine->functions[i]);
  cs_close(&reader->capstone);
  return NULL;
}

struct machine *machine_read(struct arena *arena, const char *path, const char **why) {
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo,
                                           .section_address = dwfl_offline_section_address};
  struct reader reader = {.arena = arena, .machine = arena_alloc(arena, sizeof *reader.machine)};
  Dwfl *dwfl = dwfl_begin(&callbacks);
  dwfl_report_begin(dwfl);
  errno = 0;
  reader.module = dwfl_report_offline(dwfl, path, path, -1);
  dwfl_report_end(dwfl, NULL, NULL);
  *why = reader.module == NULL ? (errno != 0 ? strerror(errno) : "it is not an object file") : read_module(&reader);
  dwfl_end(dwfl);
  return *why == NULL ? reader.machine : NULL;
}
