#include "gen/audit/machine/instruction.h"

#include <string.h>

#include "gen/base/text.h"

/* ---- Vectors ---- */

/* What VEX and EVEX say before the opcode. (Intel, Software Developer's Manual 2, 2.3 and 2.7.) */
struct vector_prefix {
  size_t length; /* 0: another instruction */
  unsigned map;  /* of opcodes */
  bool is_evex;
  bool high_reg, high_rm; /* the registers that the next bytes name are of the upper eight, or above */
  unsigned source;        /* another register */
};

static struct vector_prefix read_prefix(const uint8_t *bytes) {
  struct vector_prefix prefix = {0};
  const size_t length = bytes[0] == 0xC5 ? 2 : bytes[0] == 0xC4 ? 3 : bytes[0] == 0x62 ? 4 : 0;
  if (length == 0) return prefix;
  prefix.length = length;
  prefix.is_evex = length == 4;
  prefix.map = length == 2 ? 1 : bytes[1] & (length == 3 ? 0x1F : 0x07);
  prefix.high_reg = (bytes[1] & 0x80) == 0;
  prefix.high_rm = length > 2 && (bytes[1] & 0x20) == 0;
  prefix.source = (~(unsigned)bytes[length == 2 ? 1 : 2] >> 3) & 15;
  return prefix;
}

/* Whether an instruction of these maps has a general register as its result, and this is the stack pointer. */
static bool writes_stack_pointer(const struct vector_prefix *prefix, uint8_t opcode, uint8_t modrm) {
  enum { STACK_POINTER = 4 };
  const bool reg = (modrm >> 3 & 7) == STACK_POINTER && !prefix->high_reg;
  const bool rm = modrm >> 6 == 3 && (modrm & 7) == STACK_POINTER && !prefix->high_rm;
  const bool source = prefix->source == STACK_POINTER;
  static const uint8_t to_reg[] = {0x2C, 0x2D, 0x50, 0x78, 0x79, 0x93, 0xC5, 0xD7};
  switch (prefix->map) {
  case 1:
    return (opcode == 0x7E && rm) || (memchr(to_reg, opcode, sizeof to_reg) != NULL && reg);
  case 2:
    return opcode >= 0xF0 && (reg || source);
  case 3:
    return (opcode == 0xF0 && reg) || (opcode >= 0x14 && opcode <= 0x17 && rm);
  case 5:
    return (opcode == 0x7E && rm) || (memchr(to_reg, opcode, sizeof to_reg) != NULL && reg);
  default:
    return false;
  }
}

static const char *refuse_vector(const struct vector_prefix *prefix, uint8_t opcode, uint8_t modrm) {
  static const uint8_t tiles[] = {0x49, 0x4B, 0x5C, 0x5E, 0x5F, 0x6C};
  if (prefix->map == 1 && !prefix->is_evex && opcode == 0xAE && (modrm >> 3 & 7) != 3)
    return "an instruction changes how numbers are rounded";
  if (prefix->map == 2 && !prefix->is_evex && memchr(tiles, opcode, sizeof tiles) != NULL)
    return "an instruction of tiles is none that compilers make of C";
  if (writes_stack_pointer(prefix, opcode, modrm)) return "an instruction for numbers writes the stack pointer";
  return NULL;
}

bool instruction_of_vectors(const uint8_t *bytes, size_t left, struct instruction *instruction) {
  const struct vector_prefix prefix = left < 8 ? (struct vector_prefix){0} : read_prefix(bytes);
  const bool known = (prefix.map >= 1 && prefix.map <= 3) || (prefix.is_evex && (prefix.map == 5 || prefix.map == 6));
  if (prefix.length == 0 || !known) return false;
  const uint8_t opcode = bytes[prefix.length], modrm = bytes[prefix.length + 1], mode = modrm >> 6;
  *instruction = (struct instruction){.length = prefix.length + 1};
  if (prefix.map == 1 && opcode == 0x77) return true; /* vzeroupper */
  uint8_t base = modrm & 7;
  instruction->length = prefix.length + 2;
  if (mode != 3 && base == 4) base = bytes[instruction->length++] & 7; /* a second byte of the address */
  const size_t size = mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0;
  instruction->displacement = (struct field){instruction->length, size};
  instruction->length += size;
  const bool shuffles =
      prefix.map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xC2 || (opcode >= 0xC4 && opcode <= 0xC6));
  instruction->length += prefix.map == 3 || shuffles;
  instruction->refused = refuse_vector(&prefix, opcode, modrm);
  return instruction->length <= left;
}

/* ---- Others ---- */

/* What compilers make of C's arithmetic, choices, loops and calls, without registers of vectors. */
static const char general[] =
    " mov movabs movzx movsx movsxd movbe lea push pop leave add adc adcx adox sub sbb inc dec neg not and andn or xor "
    "cmp test mul mulx imul div idiv shl sal shr sar shlx shrx sarx rol ror rorx rcl rcr shld shrd bt bts btr btc bsf "
    "bsr bzhi bextr blsi blsr blsmsk pdep pext bswap popcnt lzcnt tzcnt cbw cwde cdqe cwd cdq cqo cmov* set* xchg xadd "
    "cmpxchg call jmp ja jae jb jbe je jne jg jge jl jle jo jno jp jnp js jns jcxz jecxz jrcxz ret nop endbr64 pause "
    "ud2 prefetch* cld movsb movsw movsd movsq stosb stosw stosd stosq lock rep repne "
    "fld* fild fst fstp fist* fadd* fiadd fsub* fisub* fmul* fimul fdiv* fidiv* fxch fchs fabs fcom* fucom* fcmov* "
    "fnstsw fnstcw fsqrt frndint ";

/* What an instruction of these would reach. */
static const struct {
  const char *names, *what;
} refused[] = {
    {" syscall sysenter sysret* sysexit* int int1 int3 into iret* ", "reaches the system"},
    {" in insb insd insw out outsb outsd outsw ", "reaches a port"},
    {" rdtsc rdtscp rdpmc rdrand rdseed cpuid xgetbv rdpid ", "reads a clock, chance, or the machine"},
    {" wrfsbase wrgsbase rdfsbase rdgsbase swapgs lfs lgs lss lds les ", "reaches a thread's segment"},
    {" ldmxcsr fldcw fldenv frstor fxrstor* xrstor* fninit finit fnclex fclex femms emms ",
     "changes how numbers are computed"},
    {" rdmsr wrmsr hlt cli sti lgdt lidt lldt ltr lmsw invd wbinvd invlpg clts ", "is the system's alone"},
    {" ljmp lcall retf retfq ", "goes to another segment"},
    {" xbegin xend xabort xtest ", "begins or ends a transaction"},
    {" popf popfd popfq pushf pushfd pushfq std ", "reads or writes the processor's flags"},
};

static bool is_of_numbers(csh capstone, const cs_insn *insn) {
  static const unsigned groups[] = {X86_GRP_SSE1,  X86_GRP_SSE2, X86_GRP_SSE3, X86_GRP_SSSE3, X86_GRP_SSE41,
                                    X86_GRP_SSE42, X86_GRP_FPU,  X86_GRP_AVX,  X86_GRP_AVX2,  X86_GRP_AVX512,
                                    X86_GRP_BWI,   X86_GRP_DQI,  X86_GRP_CDI,  X86_GRP_VLX,   X86_GRP_NOVLX,
                                    X86_GRP_FMA,   X86_GRP_F16C, X86_GRP_CMOV, X86_GRP_BMI,   X86_GRP_BMI2};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (cs_insn_group(capstone, insn, groups[i])) return true;
  return false;
}

static bool is_stack_pointer(const cs_x86_op *operand) {
  const x86_reg reg = operand->type == X86_OP_REG ? operand->reg : X86_REG_INVALID;
  return reg == X86_REG_RSP || reg == X86_REG_ESP || reg == X86_REG_SP || reg == X86_REG_SPL;
}

bool instruction_moves_stack(const cs_insn *insn) {
  const cs_x86 *x86 = &insn->detail->x86;
  const cs_x86_op *first = &x86->operands[0], *second = &x86->operands[1];
  if (insn->id == X86_INS_XCHG && (is_stack_pointer(first) || is_stack_pointer(second))) return true;
  if (x86->op_count == 0 || !is_stack_pointer(first)) return false;
  switch (insn->id) {
  case X86_INS_PUSH:
  case X86_INS_CMP:
  case X86_INS_TEST:
    return false;
  case X86_INS_ADD:
  case X86_INS_SUB:
  case X86_INS_AND:
    return second->type != X86_OP_IMM;
  case X86_INS_MOV:
    return second->type != X86_OP_REG || second->reg != X86_REG_RBP;
  case X86_INS_LEA:
    return second->type != X86_OP_MEM || second->mem.index != X86_REG_INVALID ||
           (second->mem.base != X86_REG_RSP && second->mem.base != X86_REG_RBP && second->mem.base != X86_REG_R10 &&
            second->mem.base != X86_REG_R13);
  default:
    return true;
  }
}

/* The canary of -fstack-protector is the one thing of a thread's segment that C reads. */
static bool reaches_segment(const cs_insn *insn) {
  enum { CANARY = 0x28, FS = 0x64, GS = 0x65 };
  const cs_x86 *x86 = &insn->detail->x86;
  if (insn->id == X86_INS_NOP || (x86->prefix[1] != FS && x86->prefix[1] != GS)) return false;
  for (int i = 0; i < x86->op_count; i++) {
    const x86_op_mem *at = &x86->operands[i].mem;
    if (x86->operands[i].type == X86_OP_MEM && x86->prefix[1] == FS && at->base == X86_REG_INVALID &&
        at->index == X86_REG_INVALID && at->disp == CANARY && (x86->operands[i].access & CS_AC_WRITE) == 0)
      return false;
  }
  return true;
}

static const char *refuse(csh capstone, const cs_insn *insn, struct arena *arena) {
  const char *name = cs_insn_name(capstone, insn->id);
  if (name == NULL) return "an instruction has no name";
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    if (text_lists(refused[i].names, name, true)) return arena_printf(arena, "'%s' %s", name, refused[i].what);
  if (reaches_segment(insn)) return arena_printf(arena, "'%s' reaches a thread's segment", name);
  if (!text_lists(general, name, true) && !is_of_numbers(capstone, insn))
    return arena_printf(arena, "'%s' is none that compilers make of C", name);
  return NULL;
}

struct instruction instruction_of(csh capstone, const cs_insn *insn, struct arena *arena) {
  const cs_x86_encoding *encoding = &insn->detail->x86.encoding;
  struct instruction instruction = {.length = insn->size, .refused = refuse(capstone, insn, arena)};
  /* One of 2 bytes is Capstone's reading of the prefix 66, which changes no address. */
  const size_t size = encoding->disp_size == 2 ? 4 : encoding->disp_size;
  if (encoding->disp_offset > 0) instruction.displacement = (struct field){encoding->disp_offset, size};
  if (encoding->imm_offset > 0) instruction.immediate = (struct field){encoding->imm_offset, encoding->imm_size};
  return instruction;
}
