/* Decoding a kernel: its statements to instructions, names to registers and addresses, labels to numbers. A function
 * that is called stands where the call is, with registers of its own: none calls itself. */
#include "tests/cuda/standin/ptx/decode.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/bits.h"
#include "tests/cuda/standin/ptx/warp.h"

/* What a name stands for: registers %r0 to %r9 of "%r<10>", one register, or memory. */
struct name {
  const char *text;
  int count; /* of a row of registers; 0: the name is whole */
  unsigned bytes;
  struct slot first;
  const struct variable *memory; /* NULL: registers */
};

struct label {
  const char *name;
  int call; /* of the function that has been put there */
  unsigned at;
};

struct decoder {
  struct kernel *kernel;
  struct arena *arena;
  const struct ptx_statement *now;
  struct {
    struct name *items;
    int count, capacity;
  } names;
  struct {
    struct label *items;
    int count, capacity;
  } labels, jumps;
  struct {
    int *items;
    int count, capacity;
  } scopes; /* how many names there were when each has opened */
  int calls, call;
  bool is_called; /* within a function that is put where it is called */
  uint64_t named; /* which arrays of the block the present instruction names: struct instruction */
};

static _Noreturn void refuse(const struct decoder *d, const char *what, const char *of) {
  fault("ptx: %s: %s '%s' (%s:%d: %.100s)", d->kernel->name, what, of, d->kernel->module->file, d->now->line,
        d->now->text);
}

/* ---- Names ---- */

static struct slot new_register(struct decoder *d, unsigned bytes, unsigned count) {
  struct kernel *k = d->kernel;
  const unsigned size = bytes == PREDICATE ? 4 : bytes * LANES;
  k->register_bytes = (k->register_bytes + size - 1) / size * size;
  const struct slot made = {(int)k->register_bytes, k->n_registers, false};
  k->register_bytes += size * count;
  k->n_registers += count;
  return made;
}

static struct slot constant(struct decoder *d, uint64_t value, unsigned bytes) {
  struct kernel *k = d->kernel;
  if (bytes < 8 && bytes != PREDICATE) value &= (UINT64_C(1) << 8 * bytes) - 1;
  if (bytes == PREDICATE) value = value != 0 ? ALL_LANES : 0;
  for (int i = 0; i < k->constants.count; i++) {
    const struct constant *same = &k->constants.items[i];
    if (same->value == value && same->bytes == bytes) return (struct slot){same->at, 0, false};
  }
  k->constant_bytes += 64 * (int)((bytes * LANES + 63) / 64);
  const struct constant made = {value, bytes, -k->constant_bytes};
  ARENA_PUSH(d->arena, k->constants, made);
  return (struct slot){made.at, 0, false};
}

static void declare_registers(struct decoder *d, const char *text) {
  const unsigned bytes = (unsigned)bytes_of_type(text + strspn(text, " "));
  const char *at = text + 1 + strcspn(text + 1, " ");
  while (*at != '\0') {
    at += strspn(at, " ,");
    const size_t length = strcspn(at, " ,<");
    if (length == 0) break;
    struct name made = {arena_copy(d->arena, at, length), 0, bytes, {0, 0, false}, NULL};
    at += length;
    if (*at == '<') made.count = atoi(at + 1);
    made.first = new_register(d, bytes, made.count > 0 ? (unsigned)made.count : 1);
    ARENA_PUSH(d->arena, d->names, made);
    at += strcspn(at, ",");
  }
}

/* Memory of a thread or of a block, in a function. */
static void declare_memory(struct decoder *d, const char *text) {
  struct variable *made = arena_alloc(d->arena, sizeof *made);
  *made = variable_of(d->arena, text);
  if (made->space == PARAMETER) made->space = LOCAL; /* of a call */
  if (made->space != LOCAL && made->space != SHARED) refuse(d, "no declaration that is known:", text);
  size_t *end = made->space == LOCAL ? &d->kernel->local_bytes : &d->kernel->shared_bytes;
  *end = (*end + made->align - 1) / made->align * made->align;
  made->address = *end;
  *end += made->bytes;
  const struct name name = {made->name, 0, 0, {0, 0, false}, made};
  ARENA_PUSH(d->arena, d->names, name);
}

static void declare(struct decoder *d, const char *text) {
  if (strncmp(text, ".reg ", 5) == 0)
    declare_registers(d, text + 4 + strspn(text + 4, " "));
  else if (strncmp(text, ".pragma", 7) != 0)
    declare_memory(d, text);
}

static const struct name *name_of(const struct decoder *d, const char *text) {
  size_t stem = strlen(text);
  while (stem > 0 && isdigit((unsigned char)text[stem - 1])) stem--;
  const int number = atoi(text + stem);
  for (int i = d->names.count - 1; i >= 0; i--) {
    const struct name *name = &d->names.items[i];
    if (name->count == 0 ? strcmp(name->text, text) == 0
                         : strlen(name->text) == stem && strncmp(name->text, text, stem) == 0 && number < name->count)
      return name;
  }
  return NULL;
}

static const struct variable *memory_of(const struct decoder *d, const char *text) {
  const struct name *name = name_of(d, text);
  if (name != NULL) return name->memory;
  for (int i = 0; i < d->kernel->parameters.count; i++)
    if (strcmp(d->kernel->parameters.items[i].name, text) == 0) return &d->kernel->parameters.items[i];
  const struct variables *all = &d->kernel->module->variables;
  for (int i = 0; i < all->count; i++)
    if (strcmp(all->items[i].name, text) == 0) return &all->items[i];
  return NULL;
}

static const struct {
  const char *name;
  enum special which;
} specials[] = {{"%tid.x", TID_X},     {"%tid.y", TID_Y},       {"%tid.z", TID_Z},       {"%ntid.x", NTID_X},
                {"%ntid.y", NTID_Y},   {"%ntid.z", NTID_Z},     {"%ctaid.x", CTAID_X},   {"%ctaid.y", CTAID_Y},
                {"%ctaid.z", CTAID_Z}, {"%nctaid.x", NCTAID_X}, {"%nctaid.y", NCTAID_Y}, {"%nctaid.z", NCTAID_Z},
                {"%laneid", LANEID},   {"%warpid", WARPID}};

static bool special_of(struct decoder *d, const char *text, struct slot *found) {
  for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
    if (strcmp(specials[i].name, text) != 0) continue;
    const enum special which = specials[i].which;
    if (!d->kernel->has_special[which]) {
      d->kernel->specials[which] = new_register(d, 4, 1);
      d->kernel->has_special[which] = true;
    }
    *found = d->kernel->specials[which];
    return true;
  }
  return false;
}

/* ---- Operands ---- */

/* Takes note of an array of the block. */
static void note_array(struct decoder *d, const struct variable *memory) {
  struct variables *all = &d->kernel->arrays;
  int number = 0;
  if (memory->space != SHARED) return;
  while (number < all->count && all->items[number].address != memory->address) number++;
  if (number == all->count) ARENA_PUSH(d->arena, *all, *memory);
  d->named |= number < 63 ? UINT64_C(1) << number : FROM_ELSEWHERE;
}

static uint64_t number_of(const struct decoder *d, const char *text) {
  char *end;
  uint64_t value;
  if (text[0] == '0' && strchr("fFdD", text[1]) != NULL && text[1] != '\0')
    value = strtoull(text + 2, &end, 16);
  else
    value = *text == '-' ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
  if (*end != '\0' && strcmp(end, "U") != 0) refuse(d, "no number", text);
  return value;
}

/* The text of an operand without blanks at its ends. */
static const char *trimmed(const struct decoder *d, const char *from, size_t length) {
  while (length > 0 && *from == ' ') from++, length--;
  while (length > 0 && from[length - 1] == ' ') length--;
  return arena_copy(d->arena, from, length);
}

/* A register, or a constant of that many bytes; *bytes becomes a register's. */
static struct slot operand(struct decoder *d, const char *text, unsigned *bytes) {
  struct slot found;
  if (*text == '!') {
    found = operand(d, text + 1, bytes);
    found.negated = true;
    return found;
  }
  if (special_of(d, text, &found)) {
    *bytes = 4;
    return found;
  }
  if (isdigit((unsigned char)*text) || *text == '-') return constant(d, number_of(d, text), *bytes);
  if (strcmp(text, "WARP_SZ") == 0) return constant(d, LANES, *bytes);
  const struct name *name = name_of(d, text);
  if (name != NULL && name->memory == NULL) {
    const unsigned size = name->bytes == PREDICATE ? 4 : name->bytes * LANES;
    const unsigned number = name->count > 0 ? (unsigned)atoi(text + strlen(name->text)) : 0;
    *bytes = name->bytes;
    return (struct slot){name->first.at + (int)(number * size), name->first.number + number, false};
  }
  const char *plus = strchr(text, '+');
  const struct variable *memory = memory_of(d, plus == NULL ? text : trimmed(d, text, (size_t)(plus - text)));
  if (memory == NULL) refuse(d, "no operand that is known:", text);
  note_array(d, memory);
  return constant(d, memory->address + (plus == NULL ? 0 : number_of(d, plus + 1)), *bytes);
}

/* [%rd1+16], [name], [name+8], [%rd1] */
static struct slot address(struct decoder *d, struct instruction *in, const char *text) {
  if (in->n_places == 2) refuse(d, "too many addresses in", in->name);
  struct place *place = &in->places[in->n_places++];
  place->operand = in->n_from;
  const char *inner = trimmed(d, text + 1, strcspn(text + 1, "]")), *plus = strchr(inner, '+');
  const char *base = plus == NULL ? inner : trimmed(d, inner, (size_t)(plus - inner));
  if (plus != NULL) place->offset = (int64_t)number_of(d, trimmed(d, plus + 1, strlen(plus + 1)));
  unsigned bytes = 8;
  const struct variable *memory = *base == '%' || isdigit((unsigned char)*base) ? NULL : memory_of(d, base);
  if (memory == NULL) {
    const struct slot found = operand(d, base, &bytes);
    place->is_short = bytes == 4;
    return found;
  }
  if (place->space == PARAMETER || place->space == GENERIC) place->space = memory->space;
  if (place->space != memory->space) refuse(d, "memory of another space:", base);
  place->offset += (int64_t)memory->address;
  note_array(d, memory);
  return constant(d, 0, 8);
}

static void add_to(struct decoder *d, struct instruction *in, const char *text) {
  unsigned bytes = in->form != NULL ? in->form->to : in->bytes;
  if (in->n_to == VECTOR) refuse(d, "too long a vector in", text);
  if (strcmp(text, "_") == 0) { /* nobody wants it */
    in->to[in->n_to] = new_register(d, bytes, 1);
  } else {
    const struct name *name = *text == '%' ? NULL : name_of(d, text);
    if ((*text != '%' && (name == NULL || name->memory != NULL)) || strpbrk(text, "{[") != NULL)
      refuse(d, "no register for a result:", text);
    in->to[in->n_to] = operand(d, text, &bytes);
  }
  in->to_bytes[in->n_to++] = (unsigned char)bytes;
}

static void add_from(struct decoder *d, struct instruction *in, const char *text, unsigned expected) {
  if (in->n_from == OPERANDS * VECTOR) refuse(d, "too many operands in", text);
  unsigned bytes = expected;
  if (*text == '[')
    in->from[in->n_from] = address(d, in, text), bytes = 0;
  else
    in->from[in->n_from] = operand(d, text, &bytes);
  in->from_bytes[in->n_from++] = (unsigned char)bytes;
}

/* The end of the operand that begins there. */
static const char *operand_end(const char *at) {
  int depth = 0;
  for (; *at != '\0' && (depth > 0 || *at != ','); at++)
    depth += (*at == '{' || *at == '(') - (*at == '}' || *at == ')');
  return at;
}

/* A vector's elements, or the two results of %r|%p. */
static void each_element(struct decoder *d, struct instruction *in, const char *text, bool result, unsigned expected) {
  const char *at = *text == '{' ? text + 1 : text;
  for (;;) {
    const size_t length = strcspn(at, *text == '{' ? ",}" : result ? "|" : "");
    const char *element = trimmed(d, at, length);
    if (result)
      add_to(d, in, element);
    else
      add_from(d, in, element, expected);
    at += length;
    if (*at == '\0' || *at == '}') break;
    at++;
  }
}

static void take_operands(struct decoder *d, struct instruction *in, const char *text, bool has_result) {
  int number = 0;
  while (*text != '\0') {
    text += strspn(text, " ");
    const char *end = operand_end(text), *whole = trimmed(d, text, (size_t)(end - text));
    if (has_result && number == 0) {
      each_element(d, in, whole, true, 0);
    } else {
      const int source = number - has_result;
      const unsigned expected = in->form == NULL ? in->bytes : source < OPERANDS ? in->form->from[source] : 0;
      each_element(d, in, whole, false, expected);
    }
    number++;
    text = *end == ',' ? end + 1 : end;
  }
}

/* ---- Instructions ---- */

/* Whether the registers are of the form's types. */
static void check_types(const struct decoder *d, const struct instruction *in) {
  const struct form *form = in->form;
  int sources = 0;
  while (sources < OPERANDS && form->from[sources] != 0) sources++;
  const bool extra = in->combine != 0;
  if (in->n_from != sources + extra || in->n_to < 1 || in->n_to > 2)
    refuse(d, "another number of operands than", in->name);
  if (in->to_bytes[0] != form->to) refuse(d, "a result of another width than", in->name);
  for (int i = 0; i < sources; i++)
    if (in->from_bytes[i] != form->from[i]) refuse(d, "an operand of another width than", in->name);
  if (extra && in->from_bytes[sources] != PREDICATE) refuse(d, "no predicate to combine in", in->name);
}

/* setp.lt.and.f32 is setp.lt.f32, combined. */
static const struct form *form_combined(struct decoder *d, struct instruction *in) {
  static const struct {
    const char *word;
    char sign;
  } words[] = {{".and.", '&'}, {".or.", '|'}, {".xor.", '^'}};
  if (strncmp(in->name, "setp.", 5) != 0) return NULL;
  for (size_t i = 0; i < 3; i++) {
    const char *at = strstr(in->name, words[i].word);
    if (at == NULL) continue;
    in->combine = words[i].sign;
    return form_of(arena_printf(d->arena, "%.*s.%s", (int)(at - in->name), in->name, at + strlen(words[i].word)));
  }
  return NULL;
}

/* What an operation's result has a value by. */
static enum keeps keeps_of(const char *name) {
  if (strncmp(name, "selp.", 5) == 0) return BY_CHOICE;
  if (strcmp(name, "and.pred") == 0) return BY_FALSE;
  return strcmp(name, "or.pred") == 0 ? BY_TRUE : BY_ALL;
}

static void decode_plain(struct decoder *d, struct instruction *in, const char *operands) {
  in->is_plain = true;
  in->keeps = keeps_of(in->name);
  in->opens = bits_rule(in->name);
  if (strncmp(in->name, "mov.b", 5) == 0 && strchr(operands, '{') != NULL) {
    in->run = run_pack;
    in->bytes = (unsigned char)bytes_of_type(in->name + 3);
    take_operands(d, in, operands, true);
    return;
  }
  in->form = form_of(in->name);
  if (in->form == NULL) in->form = form_combined(d, in);
  if (in->form == NULL) refuse(d, "no instruction that is known:", in->name);
  in->run = in->form->run;
  take_operands(d, in, operands, true);
  check_types(d, in);
}

static void push(struct decoder *d, struct instruction in) {
  in.arrays = d->named;
  ARENA_PUSH(d->arena, d->kernel->code, in);
}

static void jump(struct decoder *d, struct instruction in, const char *label, int call) {
  const struct label made = {label, call, (unsigned)d->kernel->code.count};
  in.flow = BRANCH;
  ARENA_PUSH(d->arena, d->jumps, made);
  push(d, in);
}

static void take_statements(struct decoder *d, const struct function *function);

static const struct function *function_of(const struct decoder *d, const char *name) {
  for (int i = 0; i < d->kernel->module->functions.count; i++)
    if (strcmp(d->kernel->module->functions.items[i].name, name) == 0) return &d->kernel->module->functions.items[i];
  return NULL;
}

/* Binds the names in a list of parameters, ".param .b64 a, .param .b64 b", to the memory of what is given, "a, b". */
static void bind(struct decoder *d, const char *formal, const char *given) {
  while (*formal != '\0' && *given != '\0') {
    const size_t length = strcspn(formal, ","), named = strcspn(given, ",");
    if (strcspn(given, " ,") == 0 && named == 0) break;
    const char *text = trimmed(d, formal, length), *name = trimmed(d, given, named);
    if (*name == '\0') break;
    const struct variable *memory = memory_of(d, name);
    if (memory == NULL) refuse(d, "no parameter", name);
    const struct name made = {variable_of(d->arena, text).name, 0, 0, {0, 0, false}, memory};
    ARENA_PUSH(d->arena, d->names, made);
    formal += length + (formal[length] == ',');
    given += named + (given[named] == ',');
  }
}

static const char *in_brackets(const struct decoder *d, const char *text) {
  return text == NULL ? "" : trimmed(d, text + 1, strcspn(text + 1, ")"));
}

/* call (result), name, (given): with parentheses only where there is something. */
static void take_call(struct decoder *d, const char *operands) {
  const char *result = *operands == '(' ? operands : NULL;
  const char *name = result == NULL ? operands : operands + strcspn(operands, ")") + 1;
  name += strspn(name, " ,");
  const char *given = strchr(name, '('), *called = trimmed(d, name, strcspn(name, " ,("));
  const struct function *function = function_of(d, called);
  if (function == NULL) refuse(d, "no function", called);
  if (d->is_called && d->calls > 10000) refuse(d, "a function that calls itself:", called);
  const char *head = strstr(function->head, ".func") + 5;
  head += strspn(head, " ");
  const char *gives = *head == '(' ? head : NULL,
             *takes = strchr(gives == NULL ? head : head + strcspn(head, ")") + 1, '(');
  const int names = d->names.count, outer = d->call;
  const bool was_called = d->is_called;
  if (gives != NULL && result != NULL) bind(d, in_brackets(d, gives), in_brackets(d, result));
  if (takes != NULL && given != NULL) bind(d, in_brackets(d, takes), in_brackets(d, given));
  d->call = ++d->calls;
  d->is_called = true;
  const struct ptx_statement *here = d->now;
  take_statements(d, function);
  const struct label end = {"return", d->call, (unsigned)d->kernel->code.count};
  ARENA_PUSH(d->arena, d->labels, end);
  d->now = here;
  d->call = outer;
  d->is_called = was_called;
  d->names.count = names;
}

static void take_instruction(struct decoder *d, const struct ptx_statement *statement) {
  struct instruction in = {
      .name = statement->name, .line = statement->line, .where = statement->where, .outer = statement->outer};
  const char *name = statement->name, *operands = statement->operands;
  d->named = 0;
  if (statement->is_guarded) {
    unsigned bytes = PREDICATE;
    in.is_guarded = true;
    const char *guard = statement->text + 1;
    in.guard = operand(d, trimmed(d, guard, strcspn(guard, " ")), &bytes);
  }
  if (strcmp(name, "bra") == 0 || strcmp(name, "bra.uni") == 0) {
    jump(d, in, operands, d->call);
    return;
  }
  if (strncmp(name, "call", 4) == 0) {
    if (in.is_guarded) refuse(d, "a guarded", name);
    take_call(d, operands);
    return;
  }
  if (strcmp(name, "ret") == 0 && d->is_called) {
    jump(d, in, "return", d->call);
    return;
  }
  if (strcmp(name, "ret") == 0 || strcmp(name, "ret.uni") == 0 || strcmp(name, "exit") == 0) {
    in.flow = LEAVE;
    push(d, in);
    return;
  }
  if (decode_memory(name, &in) || decode_collective(name, &in) || decode_matrix(name, &in))
    take_operands(d, &in, operands, in.has_result);
  else
    decode_plain(d, &in, operands);
  push(d, in);
}

static void take_statements(struct decoder *d, const struct function *function) {
  for (int i = 0; i < function->body.count; i++) {
    const struct ptx_statement *statement = &function->body.items[i];
    d->now = statement;
    if (statement->kind == PTX_SCOPE) ARENA_PUSH(d->arena, d->scopes, d->names.count);
    if (statement->kind == PTX_SCOPE_END) d->names.count = d->scopes.items[--d->scopes.count];
    if (statement->kind == PTX_DECLARATION) declare(d, statement->text);
    if (statement->kind == PTX_INSTRUCTION) take_instruction(d, statement);
    if (statement->kind != PTX_LABEL) continue;
    const struct label made = {statement->name, d->call, (unsigned)d->kernel->code.count};
    ARENA_PUSH(d->arena, d->labels, made);
  }
}

/* ---- Afterwards ---- */

static void resolve_jumps(struct decoder *d) {
  for (int i = 0; i < d->jumps.count; i++) {
    const struct label *jump = &d->jumps.items[i];
    const struct label *at = NULL;
    for (int l = 0; l < d->labels.count && at == NULL; l++)
      if (d->labels.items[l].call == jump->call && strcmp(d->labels.items[l].name, jump->name) == 0)
        at = &d->labels.items[l];
    if (at == NULL) fault("ptx: %s: no label %s", d->kernel->name, jump->name);
    d->kernel->code.items[jump->at].target = at->at;
  }
}

static void take_parameters(struct kernel *kernel, struct arena *arena) {
  const char *at = strchr(strstr(kernel->function->head, ".entry"), '(');
  const char *end = at == NULL ? NULL : strchr(at, ')');
  while (at != NULL && at < end) {
    at++;
    const size_t length = strcspn(at, ",)");
    const char *text = arena_copy(arena, at, length);
    if (strstr(text, ".param") != NULL) {
      struct variable made = variable_of(arena, text);
      kernel->parameter_bytes = (kernel->parameter_bytes + made.align - 1) / made.align * made.align;
      made.address = kernel->parameter_bytes;
      kernel->parameter_bytes += made.bytes;
      ARENA_PUSH(arena, kernel->parameters, made);
    }
    at += length;
  }
}

void kernel_decode(struct kernel *kernel) {
  struct decoder d = {.kernel = kernel, .arena = kernel->module->arena};
  kernel->n_registers = 1; /* 0 stands for constants */
  kernel->shared_bytes = (kernel->module->shared_bytes + 15) / 16 * 16;
  take_parameters(kernel, d.arena);
  take_statements(&d, kernel->function);
  const struct instruction end = {.flow = LEAVE, .name = "the end"};
  push(&d, end);
  resolve_jumps(&d);
  kernel_derive(kernel, d.arena);
  kernel->is_decoded = true;
}
