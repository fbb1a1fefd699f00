/* Functions and instructions of an object: lines by elfutils, instructions by Capstone. */
#include <capstone/capstone.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/machine/instruction.h"
#include "gen/audit/machine/machine.h"

/* What is known of a byte of code. */
enum { BYTE_COVERED = 1, BYTE_STARTS_INSTRUCTION = 2, BYTE_STARTS_FUNCTION = 4 };

enum { MAX_FUNCTIONS = 10000 };

/* A function's code. */
struct code {
  size_t section;
  uint64_t offset, size, address; /* in the section; bytes; in the memory that elfutils pretends */
  int function;                   /* among the machine's */
  uint64_t pushed;                /* the end of the last instruction that stored what a return would take */
};

/* A direct jump or call: where it is and where it goes. */
struct target {
  int from; /* a function */
  uint64_t at;
  size_t section;
  uint64_t offset;
  bool calls;
  struct location where;
};

struct reader {
  struct arena *arena;
  struct machine *machine;
  const struct object_file *object;
  Dwfl_Module *module;
  Elf *elf;
  csh capstone;
  uint8_t **bytes;    /* of each section of code, flags of each of its bytes; NULL: it is none */
  bool *is_operand;   /* of each relocation: an instruction's operand is what it fills in */
  struct code *codes; /* of each function */
  int n_codes, codes_capacity;
  struct {
    struct target *items;
    int count, capacity;
  } targets;
};

static void add_remark(const struct reader *reader, enum remark_kind kind, struct location where, const char *message) {
  struct machine *machine = reader->machine;
  const struct remark remark = {kind, where, message};
  machine->remarks =
      arena_grow(reader->arena, machine->remarks, machine->n_remarks, &machine->remarks_capacity, sizeof remark);
  machine->remarks[machine->n_remarks++] = remark;
}

/* ---- Functions ---- */

/* Where elfutils pretends that a section is; 0 where it does not say. */
static uint64_t address_of(const struct reader *reader, size_t section) {
  GElf_Shdr header;
  Elf_Scn *scn = elf_getscn(reader->elf, section);
  return scn != NULL && gelf_getshdr(scn, &header) != NULL ? header.sh_addr : 0;
}

/* The function that is exactly there: another name of it. -1: there is none. */
static int alias_of(const struct reader *reader, const struct object_symbol *symbol) {
  for (int i = 0; i < reader->n_codes; i++) {
    const struct code *code = &reader->codes[i];
    if (code->section == symbol->section && code->offset == symbol->value && code->size == symbol->size) return i;
  }
  return -1;
}

static void add_function(struct reader *reader, const struct object_symbol *symbol) {
  struct machine *machine = reader->machine;
  const bool in_section = symbol->section != SHN_UNDEF && symbol->section < reader->object->n_sections;
  const struct object_section *section = in_section ? &reader->object->sections[symbol->section] : NULL;
  if (section == NULL || reader->bytes[symbol->section] == NULL || symbol->value >= section->size ||
      symbol->size > section->size - symbol->value) {
    if (symbol->section != SHN_UNDEF)
      add_remark(reader, REMARK_FUNCTION, (struct location){0},
                 arena_printf(reader->arena, "%s is outside of the object's code", symbol->name));
    return;
  }
  if (machine->n_functions == MAX_FUNCTIONS)
    add_remark(reader, REMARK_FUNCTION, (struct location){0}, "it has more functions than the audit reads");
  if (machine->n_functions >= MAX_FUNCTIONS) return;
  if (symbol->size == 0)
    add_remark(reader, REMARK_FUNCTION, (struct location){0},
               arena_printf(reader->arena, "%s has no size", symbol->name));
  const int alias = alias_of(reader, symbol);
  const uint64_t address = address_of(reader, symbol->section) + symbol->value;
  const struct machine_function function = {
      .name = symbol->name, .address = address, .size = symbol->size, .is_alias = alias >= 0};
  machine->functions = arena_grow(reader->arena, machine->functions, machine->n_functions, &machine->functions_capacity,
                                  sizeof function);
  machine->functions[machine->n_functions++] = function;
  const struct code code = {symbol->section, symbol->value, symbol->size, address, machine->n_functions - 1, 0};
  reader->codes = arena_grow(reader->arena, reader->codes, reader->n_codes, &reader->codes_capacity, sizeof code);
  reader->codes[reader->n_codes++] = code;
  reader->bytes[symbol->section][symbol->value] |= BYTE_STARTS_FUNCTION;
}

static void find_functions(struct reader *reader) {
  const struct object_file *object = reader->object;
  reader->bytes = arena_alloc(reader->arena, (object->n_sections + 1) * sizeof *reader->bytes);
  reader->is_operand = arena_alloc(reader->arena, object->n_relocations + 1);
  for (size_t i = 1; i < object->n_sections; i++) {
    const struct object_section *section = &object->sections[i];
    if (section_is_code(section) && section->bytes != NULL)
      reader->bytes[i] = arena_alloc(reader->arena, section->size + 1);
  }
  for (size_t i = 1; i < object->n_symbols; i++)
    if (object->symbols[i].type == STT_FUNC) add_function(reader, &object->symbols[i]);
}

/* The function at an offset of a section; -1 when there is none. */
static int function_at(const struct reader *reader, size_t section, uint64_t offset) {
  for (int i = 0; i < reader->n_codes; i++) {
    const struct code *code = &reader->codes[i];
    if (code->section == section && offset >= code->offset && offset - code->offset < code->size) return code->function;
  }
  return -1;
}

/* ---- Relocations ---- */

/* Where a relocation points to: a section of the object and an offset there. False: out of the object. */
static bool place_of(const struct reader *reader, const struct object_relocation *relocation, size_t *section,
                     uint64_t *offset) {
  const struct object_symbol *symbol = &reader->object->symbols[relocation->symbol];
  *section = symbol->section;
  *offset = symbol->value + (uint64_t)relocation->addend;
  return symbol->section != SHN_UNDEF && symbol->section < reader->object->n_sections;
}

static bool is_through_table(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

/* Whether a relocation fills in exactly this field of an instruction at `offset`. */
static bool fills(const struct object_relocation *relocation, uint64_t offset, struct field field) {
  return field.size > 0 && relocation->offset == offset + field.offset &&
         relocation_size(relocation->type) == field.size;
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

/* Names of files are few: each is kept once. */
static const char *intern(const struct reader *reader, const char *file) {
  const struct machine *machine = reader->machine;
  const char *last = machine->n_lines > 0 ? machine->lines[machine->n_lines - 1].where.file : NULL;
  return last != NULL && strcmp(last, file) == 0 ? last : arena_string(reader->arena, file);
}

static struct location line_of(struct reader *reader, uint64_t address) {
  struct location where = {0};
  Dwarf_Addr bias;
  Dwarf_Line *line;
  if (unit_of(reader, address, &bias, &line) == NULL) return where;
  const char *file = dwarf_linesrc(line, NULL, NULL);
  dwarf_lineno(line, &where.line);
  dwarf_linecol(line, &where.column);
  where.file = file == NULL ? NULL : intern(reader, file);
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

/* An instruction in its function. */
struct site {
  const struct code *code;
  uint64_t offset; /* in the section */
  const cs_insn *insn;
  const struct object_relocation *relocation; /* of an operand; NULL: none */
};

static const char *name_of(const struct reader *reader, const struct code *code) {
  return reader->machine->functions[code->function].name;
}

static void add_target(struct reader *reader, const struct site *site, size_t section, uint64_t offset, bool calls) {
  const struct target target = {site->code->function,
                                site->offset - site->code->offset,
                                section,
                                offset,
                                calls,
                                line_of(reader, site->insn->address)};
  ARENA_PUSH(reader->arena, reader->targets, target);
}

/* What an operand that is an address of code points to. False: it has none in the object. */
static bool target_of(const struct reader *reader, const struct site *site, size_t *section, uint64_t *offset) {
  if (site->relocation != NULL) {
    const uint64_t left = site->offset + site->insn->size - site->relocation->offset;
    if (!place_of(reader, site->relocation, section, offset)) return false;
    *offset += left; /* it is relative to the end of the instruction */
    return true;
  }
  *section = site->code->section;
  *offset = (uint64_t)site->insn->detail->x86.operands[0].imm - site->code->address + site->code->offset;
  return is_direct(site->insn);
}

/* A call, or a jump to another function. */
static void read_call(struct reader *reader, const struct site *site, struct jump jump) {
  const bool through_table = site->relocation != NULL && is_through_table(site->relocation->type);
  size_t section;
  uint64_t offset;
  int callee = -1;
  jump.kind = is_direct(site->insn) || through_table ? JUMP_CALL : JUMP_CALL_INDIRECT;
  if (site->relocation != NULL) {
    const struct object_symbol *symbol = &reader->object->symbols[site->relocation->symbol];
    jump.target = symbol->type == STT_SECTION ? NULL : symbol->name;
    jump.is_external = symbol->section == SHN_UNDEF;
    if (jump.is_external && site->relocation->addend != -4)
      add_remark(reader, REMARK_RELOCATION, jump.where,
                 arena_printf(reader->arena, "%s calls what is %lld bytes after the start of %s", jump.function,
                              (long long)site->relocation->addend + 4, symbol->name));
  }
  if (jump.kind == JUMP_CALL && !jump.is_external && target_of(reader, site, &section, &offset)) {
    callee = function_at(reader, section, offset);
    add_target(reader, site, section, offset, true);
  }
  if (callee >= 0 && jump.target == NULL) jump.target = reader->machine->functions[callee].name;
  add_callee(reader, site->code->function, callee);
  add_jump(reader, jump);
}

/* A jump: conditional ones, and those to an address in a register; a plain one to another function is a call. */
static void read_jump(struct reader *reader, const struct site *site, struct jump jump) {
  const struct code *code = site->code;
  size_t section;
  uint64_t offset;
  if (!is_direct(site->insn)) {
    const bool through_table = site->relocation != NULL && is_through_table(site->relocation->type);
    jump.kind = JUMP_INDIRECT;
    if (through_table)
      read_call(reader, site, jump);
    else
      add_jump(reader, jump);
    return;
  }
  const bool known = target_of(reader, site, &section, &offset);
  const bool inside = known && section == code->section && offset >= code->offset && offset - code->offset < code->size;
  if (inside) add_target(reader, site, section, offset, false);
  if (site->insn->id == X86_INS_JMP) {
    if (!inside) read_call(reader, site, jump);
    return;
  }
  if (!inside && known) add_target(reader, site, section, offset, true);
  if (!known)
    add_remark(reader, REMARK_RELOCATION, jump.where,
               arena_printf(reader->arena, "%s jumps out of the object on a condition", jump.function));
  jump.kind = JUMP_CONDITIONAL;
  jump.is_backward = inside && offset <= site->offset;
  add_jump(reader, jump);
}

/* An address that an instruction takes, or memory that it reaches: of code, only that of an outlined region, which
 * OpenMP's library runs. */
static void read_reference(struct reader *reader, const struct site *site) {
  const struct object_file *object = reader->object;
  const cs_x86 *x86 = &site->insn->detail->x86;
  const char *name = name_of(reader, site->code);
  size_t section = 0;
  uint64_t offset = 0;
  if (site->relocation != NULL && !place_of(reader, site->relocation, &section, &offset)) {
    add_remark(reader, REMARK_RELOCATION, line_of(reader, site->insn->address),
               arena_printf(reader->arena, "%s takes the address of %s", name,
                            object->symbols[site->relocation->symbol].name));
    return;
  }
  if (site->relocation != NULL) {
    const bool relative = site->relocation->type != R_X86_64_32 && site->relocation->type != R_X86_64_32S &&
                          site->relocation->type != R_X86_64_64;
    if (relative) offset += site->offset + site->insn->size - site->relocation->offset;
  } else {
    const cs_x86_op *memory = NULL;
    for (int i = 0; i < x86->op_count; i++)
      if (x86->operands[i].type == X86_OP_MEM && x86->operands[i].mem.base == X86_REG_RIP) memory = &x86->operands[i];
    if (memory == NULL || site->insn->id == X86_INS_NOP) return;
    section = site->code->section;
    offset = site->offset + site->insn->size + (uint64_t)memory->mem.disp;
  }
  if (section >= object->n_sections || !section_is_code(&object->sections[section])) return;
  const int callee = function_at(reader, section, offset);
  const bool starts = callee >= 0 && (reader->bytes[section][offset] & BYTE_STARTS_FUNCTION) != 0;
  if (!starts || site->insn->id != X86_INS_LEA || !machine_is_outlined(reader->machine->functions[callee].name))
    if (!(starts && site->insn->id == X86_INS_MOV && machine_is_outlined(reader->machine->functions[callee].name)))
      add_remark(reader, REMARK_RELOCATION, line_of(reader, site->insn->address),
                 arena_printf(reader->arena, "%s takes the address of code, or reads or writes it", name));
  add_callee(reader, site->code->function, callee);
}

/* Finds the relocation of an instruction's operand; one that changes other bytes of it stays without an operand. */
static const struct object_relocation *relocation_of(struct reader *reader, size_t section, uint64_t offset,
                                                     const struct instruction *instruction) {
  const struct object_file *object = reader->object;
  const struct object_relocation *first = object_relocation(object, section, offset, offset + instruction->length);
  const struct object_relocation *found = NULL, *end = object->relocations + object->n_relocations;
  for (const struct object_relocation *at = first; at != NULL && at < end; at++) {
    if (at->section != section || at->offset >= offset + instruction->length) break;
    const bool good = fills(at, offset, instruction->displacement) || fills(at, offset, instruction->immediate);
    const bool again = at > object->relocations && at[-1].section == section && at[-1].offset == at->offset;
    reader->is_operand[at - object->relocations] = good && !again;
    if (good) found = at;
  }
  return found;
}

/* A return takes the last number of the stack, which must not be one that the function has just put there. */
static void check_return(struct reader *reader, struct code *code, const cs_insn *insn, uint64_t offset) {
  const cs_x86 *x86 = &insn->detail->x86;
  const cs_x86_op *first = &x86->operands[0];
  const bool stores = insn->id == X86_INS_PUSH ||
                      (x86->op_count == 2 && first->type == X86_OP_MEM && first->mem.base == X86_REG_RSP &&
                       first->mem.index == X86_REG_INVALID && first->mem.disp == 0 && insn->id == X86_INS_MOV);
  if (insn->id == X86_INS_RET && code->pushed == offset && offset > code->offset)
    add_remark(reader, REMARK_STACK, line_of(reader, insn->address),
               arena_printf(reader->arena, "%s returns to an address that it has stored", name_of(reader, code)));
  if (insn->id == X86_INS_RET && x86->op_count > 0)
    add_remark(reader, REMARK_STACK, line_of(reader, insn->address),
               arena_printf(reader->arena, "%s takes its caller's numbers from the stack", name_of(reader, code)));
  if (instruction_moves_stack(insn))
    add_remark(reader, REMARK_STACK, line_of(reader, insn->address),
               arena_printf(reader->arena, "%s gives the stack pointer another value", name_of(reader, code)));
  if (stores) code->pushed = offset + insn->size;
}

static void add_line(struct reader *reader, const struct code *code, uint64_t address) {
  struct machine *machine = reader->machine;
  const struct machine_line line = {code->function, line_of(reader, address), address - code->address, 1};
  struct machine_line *last = machine->n_lines > 0 ? &machine->lines[machine->n_lines - 1] : NULL;
  if (last != NULL && last->function == line.function && last->where.line == line.where.line &&
      last->where.file == line.where.file) {
    last->count++;
    return;
  }
  machine->lines = arena_grow(reader->arena, machine->lines, machine->n_lines, &machine->lines_capacity, sizeof line);
  machine->lines[machine->n_lines++] = line;
}

/* What counts for every instruction, also for those that Capstone does not decode. */
static const struct object_relocation *note_instruction(struct reader *reader, const struct code *code, uint64_t offset,
                                                        const struct instruction *instruction) {
  uint8_t *bytes = reader->bytes[code->section];
  const uint64_t address = code->address + (offset - code->offset);
  reader->machine->n_instructions++;
  bytes[offset] |= BYTE_STARTS_INSTRUCTION;
  for (size_t i = 0; i < instruction->length; i++) bytes[offset + i] |= BYTE_COVERED;
  add_line(reader, code, address);
  if (instruction->refused != NULL)
    add_remark(reader, REMARK_INSTRUCTION, line_of(reader, address),
               arena_printf(reader->arena, "%s, in %s", instruction->refused, name_of(reader, code)));
  return relocation_of(reader, code->section, offset, instruction);
}

static bool ends_function(const cs_insn *insn) {
  return insn->id == X86_INS_RET || insn->id == X86_INS_JMP || insn->id == X86_INS_UD2 || insn->id == X86_INS_CALL;
}

static void read_instruction(struct reader *reader, struct code *code, uint64_t offset, const cs_insn *insn) {
  struct machine_function *function = &reader->machine->functions[code->function];
  if (insn->id == 0) { /* bytes that Capstone skipped */
    reader->machine->n_instructions++;
    function->n_undecoded++;
    return;
  }
  const struct instruction instruction = instruction_of(reader->capstone, insn, reader->arena);
  const struct site site = {code, offset, insn, note_instruction(reader, code, offset, &instruction)};
  add_frame(function, insn);
  check_return(reader, code, insn, offset);
  const bool call = cs_insn_group(reader->capstone, insn, CS_GRP_CALL),
             jump = cs_insn_group(reader->capstone, insn, CS_GRP_JUMP);
  if (!call && !jump) {
    read_reference(reader, &site);
    return;
  }
  struct jump found = {.function = function->name, .where = line_of(reader, insn->address)};
  read_callers(reader, insn->address, found.callers);
  if (call)
    read_call(reader, &site, found);
  else
    read_jump(reader, &site, found);
}

/* Data that a vector instruction reaches is no code. */
static void check_vector(struct reader *reader, const struct code *code, const struct object_relocation *relocation) {
  size_t section;
  uint64_t offset;
  if (relocation == NULL) return;
  const bool inside = place_of(reader, relocation, &section, &offset);
  if (!inside || section_is_code(&reader->object->sections[section]))
    add_remark(reader, REMARK_RELOCATION, (struct location){0},
               arena_printf(reader->arena, "%s has numbers from %s", name_of(reader, code),
                            inside ? "code" : reader->object->symbols[relocation->symbol].name));
}

static void read_function(struct reader *reader, struct code *code) {
  const uint8_t *start = reader->object->sections[code->section].bytes, *bytes = start + code->offset;
  cs_insn *insn = cs_malloc(reader->capstone);
  uint64_t address = code->address;
  size_t left = code->size;
  bool ends = false;
  while (left > 0) {
    const uint64_t offset = (uint64_t)(bytes - start);
    struct instruction vector;
    if (reader->bytes[code->section][offset] & BYTE_COVERED) {
      add_remark(reader, REMARK_FUNCTION, (struct location){0},
                 arena_printf(reader->arena, "%s has code in common with another function", name_of(reader, code)));
      break;
    }
    if (instruction_of_vectors(bytes, left, &vector)) {
      check_vector(reader, code, note_instruction(reader, code, offset, &vector));
      bytes += vector.length;
      address += vector.length;
      left -= vector.length;
      ends = false;
    } else if (cs_disasm_iter(reader->capstone, &bytes, &left, &address, insn)) {
      read_instruction(reader, code, offset, insn);
      ends = insn->id != 0 && ends_function(insn);
    } else {
      reader->machine->functions[code->function].n_undecoded += (int)(left < 15 ? left : 15);
      break;
    }
  }
  cs_free(insn, 1);
  if (!ends && code->size > 0)
    add_remark(reader, REMARK_INSTRUCTION, (struct location){0},
               arena_printf(reader->arena, "%s runs past its end", name_of(reader, code)));
}

/* ---- What is between functions, and where jumps go ---- */

/* Between functions there are instructions that do nothing, or traps. */
static bool is_padding(const struct reader *reader, const uint8_t *bytes, size_t left) {
  cs_insn *insn = cs_malloc(reader->capstone);
  uint64_t address = 0;
  bool good = true;
  while (left > 0 && good) {
    const bool trap = *bytes == 0xCC;
    if (trap) {
      bytes++;
      left--;
    } else {
      good = cs_disasm_iter(reader->capstone, &bytes, &left, &address, insn) && insn->id == X86_INS_NOP;
    }
  }
  cs_free(insn, 1);
  return good;
}

static void check_rest(struct reader *reader) {
  for (size_t i = 1; i < reader->object->n_sections; i++) {
    const struct object_section *section = &reader->object->sections[i];
    const uint8_t *flags = reader->bytes[i];
    for (uint64_t at = 0, end; flags != NULL && at < section->size; at = end) {
      const bool covered = flags[at] & BYTE_COVERED;
      for (end = at; end < section->size && (flags[end] & BYTE_COVERED) == covered; end++) continue;
      if (covered || is_padding(reader, section->bytes + at, end - at)) continue;
      add_remark(reader, REMARK_FUNCTION, (struct location){0},
                 arena_printf(reader->arena, "%llu bytes at %llu of %s are code of no function",
                              (unsigned long long)(end - at), (unsigned long long)at, section->name));
    }
  }
}

/* Whether one name is the other's up to a compiler's ending. */
static bool is_same_source(const char *a, const char *b) {
  const size_t length = strcspn(a, ".");
  return length > 0 && length == strcspn(b, ".") && strncmp(a, b, length) == 0;
}

static void check_target(struct reader *reader, const struct target *target) {
  const struct machine_function *functions = reader->machine->functions;
  const uint8_t *bytes = target->section < reader->object->n_sections ? reader->bytes[target->section] : NULL;
  const bool inside = bytes != NULL && target->offset < reader->object->sections[target->section].size;
  const uint8_t flags = inside ? bytes[target->offset] : 0;
  const int to = inside ? function_at(reader, target->section, target->offset) : -1;
  const char *from = functions[target->from].name;
  if ((flags & BYTE_STARTS_INSTRUCTION) == 0 || to < 0)
    add_remark(reader, REMARK_INSTRUCTION, target->where,
               arena_printf(reader->arena, "a jump of %s goes to what is no instruction", from));
  else if (target->calls && (flags & BYTE_STARTS_FUNCTION) == 0 && !is_same_source(from, functions[to].name))
    add_remark(reader, REMARK_INSTRUCTION, target->where,
               arena_printf(reader->arena, "a jump of %s goes into the middle of %s", from, functions[to].name));
}

static bool is_in_code(const struct reader *reader, const struct object_relocation *relocation) {
  size_t section;
  uint64_t offset;
  return place_of(reader, relocation, &section, &offset) && section_is_code(&reader->object->sections[section]);
}

static void check_relocations(struct reader *reader) {
  const struct object_file *object = reader->object;
  for (size_t i = 0; i < object->n_relocations; i++) {
    const struct object_relocation *relocation = &object->relocations[i];
    const struct object_section *section = &object->sections[relocation->section];
    const char *what = NULL;
    if (!section_is_loaded(section)) continue;
    if (relocation_size(relocation->type) == 0)
      what = arena_printf(reader->arena, "is of type %u, which compilers do not use for C", relocation->type);
    else if (relocation->offset > section->size ||
             section->size - relocation->offset < relocation_size(relocation->type))
      what = "reaches beyond it";
    else if (section_is_code(section) && !reader->is_operand[i])
      what = "changes what is no operand of an instruction";
    else if (!section_is_code(section) && strcmp(section->name, ".eh_frame") != 0 && is_in_code(reader, relocation))
      what = "gives data the address of code";
    if (what != NULL)
      add_remark(reader, REMARK_RELOCATION, (struct location){0},
                 arena_printf(reader->arena, "the relocation at %llu of %s %s", (unsigned long long)relocation->offset,
                              section->name, what));
  }
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

static const char *unit_text(const struct reader *reader, Dwarf_Die *unit, unsigned name) {
  Dwarf_Attribute attribute;
  const char *text = unit == NULL ? NULL : dwarf_formstring(dwarf_attr(unit, name, &attribute));
  return text == NULL ? "" : arena_string(reader->arena, text);
}

/* What the compiler says of itself. */
static void read_producer(struct reader *reader) {
  Dwarf_Addr bias;
  Dwarf_Die *unit = dwfl_module_nextcu(reader->module, NULL, &bias);
  reader->machine->producer = unit_text(reader, unit, DW_AT_producer);
  reader->machine->folder = unit_text(reader, unit, DW_AT_comp_dir);
  reader->machine->source = unit_text(reader, unit, DW_AT_name);
}

static const char *read_module(struct reader *reader) {
  GElf_Addr bias;
  reader->elf = dwfl_module_getelf(reader->module, &bias);
  if (reader->elf == NULL) return "it is not an ELF file";
  if (cs_open(CS_ARCH_X86, CS_MODE_64, &reader->capstone) != CS_ERR_OK) return "there is no disassembler";
  cs_option(reader->capstone, CS_OPT_DETAIL, CS_OPT_ON);
  cs_option(reader->capstone, CS_OPT_SKIPDATA, CS_OPT_ON);
  read_producer(reader);
  find_functions(reader);
  for (int i = 0; i < reader->n_codes; i++)
    if (!reader->machine->functions[reader->codes[i].function].is_alias) read_function(reader, &reader->codes[i]);
  for (int i = 0; i < reader->machine->n_functions; i++) find_depth(reader->machine, &reader->machine->functions[i]);
  check_rest(reader);
  for (int i = 0; i < reader->targets.count; i++) check_target(reader, &reader->targets.items[i]);
  check_relocations(reader);
  cs_close(&reader->capstone);
  return NULL;
}

struct machine *machine_read(struct arena *arena, const char *path, const char **why) {
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo,
                                           .section_address = dwfl_offline_section_address};
  struct reader reader = {.arena = arena, .machine = arena_alloc(arena, sizeof *reader.machine)};
  reader.machine->object = reader.object = object_read(arena, path, why);
  if (reader.object == NULL) return NULL;
  Dwfl *dwfl = dwfl_begin(&callbacks);
  dwfl_report_begin(dwfl);
  errno = 0;
  reader.module = dwfl_report_offline(dwfl, path, path, -1);
  dwfl_report_end(dwfl, NULL, NULL);
  *why = reader.module == NULL ? (errno != 0 ? strerror(errno) : "it is not an object file") : read_module(&reader);
  dwfl_end(dwfl);
  return *why == NULL ? reader.machine : NULL;
}
