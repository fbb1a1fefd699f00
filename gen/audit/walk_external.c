/* Calls of functions from outside: what each does to memory. */
#include <string.h>

#include "gen/audit/externals.h"
#include "gen/audit/walk.h"

struct call {
  struct walk *walk;
  struct syntax *node;
  const struct value *arguments;
  int count;
  uint64_t doubt; /* loops that make the sizes at hand ranges */
};

/* ---- Accesses ---- */

/* `bytes` bytes behind an argument are read or written. */
static void touch(const struct call *call, int which, int64_t bytes, bool is_write) {
  struct value at = which < call->count ? call->arguments[which] : value_unknown_pointer(0);
  struct walk *walk = call->walk;
  if (bytes <= 0) return;
  bool known = at.kind == VALUE_POINTER && at.object >= 0 && at.span >= 0;
  if (known && at.low >= 0 && bounded_add(at.high, bytes) <= at.span) {
    walk_access(walk, at, bytes, is_write, call->node);
    struct value *whole = &walk->states[at.object].value; /* a record's: what its members come from */
    if (is_write && walk->objects[at.object].kind == OBJECT_LOCAL && whole->kind == VALUE_NUMBER)
      whole->origin |= ORIGIN_UNFOLLOWED;
    return;
  }
  const char *name = call->node->function->name;
  uint64_t doubt = walk_doubt(walk, at) | call->doubt;
  bool certain = known && doubt == 0;
  if (at.origin & ORIGIN_TOLD) return;
  if (!known && is_write) walk_stray(walk);
  if (!known && walk->hot && walk->lost == NULL) walk->lost = call->node->parts[which + 1];
  if (!known)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, doubt,
              "what is passed as argument %d of %s is not known", which + 1, name);
  else if (at.origin & ORIGIN_DATA && at.high > INT32_MAX)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, doubt,
              "%s: nothing bounds the number that chooses a place of %s", name, walk_slot_name(walk, at));
  else
    walk_fail(walk, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, call->node, doubt,
              "%s %s %lld bytes of %s; it has %lld from there", name, is_write ? "writes" : "reads", (long long)bytes,
              walk_slot_name(walk, at), (long long)(at.high > at.span ? 0 : at.span - at.high));
  if (!known || at.low < 0 || at.low >= at.span) return;
  if (bytes > at.span - at.low) bytes = at.span - at.low; /* what lies inside is accessed all the same */
  if (at.high > at.span - bytes) at.high = at.span - bytes;
  walk_access(walk, at, bytes, is_write, call->node);
}

static int64_t most(const struct call *call, int which) {
  if (which >= call->count || call->arguments[which].kind != VALUE_INTEGER) return VALUE_MOST;
  return call->arguments[which].high;
}

/* ---- The C library ---- */

static struct value copy_bytes(const struct call *call) {
  touch(call, 1, most(call, 2), false);
  call->walk->incoming = walk_content(call->walk, call->arguments[1]);
  touch(call, 0, most(call, 2), true);
  call->walk->incoming = (struct content){0};
  return call->arguments[0];
}

static struct value set_bytes(const struct call *call) {
  touch(call, 0, most(call, 2), true);
  struct value zero = call->arguments[1];
  struct content content = {value_is_null(zero), true, 0, 0};
  if (call->arguments[0].kind == VALUE_POINTER && most(call, 2) < VALUE_MOST)
    walk_set_content(call->walk, call->arguments[0], most(call, 2), content);
  return call->arguments[0];
}

/* ---- Matrix products ---- */

/* The bytes that rows x columns elements take whose rows are `step` elements apart. */
static int64_t matrix_bytes(int64_t rows, int64_t columns, int64_t step, int64_t size) {
  if (rows <= 0 || columns <= 0) return 0;
  return bounded_multiply(bounded_add(bounded_multiply(rows - 1, step), columns), size);
}

static int64_t pointed_size(const struct call *call, int which) {
  const struct syntax *argument = call->node->parts[which + 1];
  while (argument->kind == SYNTAX_CAST && argument->type->kind != TYPE_POINTER) argument = argument->parts[0];
  const struct type *type = argument->type;
  return (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY) && type->element->size > 0 ? type->element->size : 4;
}

/* a and b must lie apart: remembered for the kernel's callers when both are its parameters. */
static void keep_apart(const struct call *call, int a, int b) {
  struct walk *walk = call->walk;
  struct value x = call->arguments[a], y = call->arguments[b];
  if (x.object < 0 || y.object < 0) return;
  if (walk->objects[x.object].kind == OBJECT_PARAMETER && walk->objects[y.object].kind == OBJECT_PARAMETER) {
    walk->states[x.object].apart |= (uint64_t)1 << (y.object - walk->first_parameter);
    return;
  }
  if (x.object == y.object && x.base + x.low < y.base + y.span && y.base + y.low < x.base + x.span)
    walk_fail(walk, FAILURE_OVERLAP, VERDICT_BROKEN, call->node, 0, "%s writes over what it reads: %s",
              call->node->function->name, walk_slot_name(walk, x));
}

/* gemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), row by row. */
static struct value multiply(const struct call *call) {
  if (call->count != 13) return value_number(ORIGIN_DATA);
  bool a_lies = most(call, 0) == 'T' || most(call, 0) == 't', b_lies = most(call, 1) == 'T' || most(call, 1) == 't';
  int64_t m = most(call, 2), n = most(call, 3), k = most(call, 4);
  touch(call, 6,
        a_lies ? matrix_bytes(k, m, most(call, 7), pointed_size(call, 6))
               : matrix_bytes(m, k, most(call, 7), pointed_size(call, 6)),
        false);
  touch(call, 8,
        b_lies ? matrix_bytes(n, k, most(call, 9), pointed_size(call, 8))
               : matrix_bytes(k, n, most(call, 9), pointed_size(call, 8)),
        false);
  int64_t bytes = matrix_bytes(m, n, most(call, 12), pointed_size(call, 11));
  struct value beta = call->arguments[10];
  if (!beta.is_known || beta.real != 0.0) touch(call, 11, bytes, false);
  touch(call, 11, bytes, true);
  if (most(call, 7) < (a_lies ? m : k) || most(call, 9) < (b_lies ? k : n) || most(call, 12) < n)
    walk_fail(call->walk, FAILURE_BOUNDS, VERDICT_BROKEN, call->node, 0, "rows of %s reach into the next ones",
              call->node->function->name);
  keep_apart(call, 11, 6);
  keep_apart(call, 11, 8);
  return value_of_type(call->node->type, ORIGIN_DATA);
}

/* The integer that a member of a constant record says; -1 when it is not known. `index` of an array member. */
static int64_t member_of(const struct walk *walk, const struct object *object, const char *name, int64_t index) {
  const struct type *type = object->type;
  struct constants constants = constants_of(walk->memory, object->variable);
  for (int i = 0; i < type->n_members; i++) {
    const struct member *member = &type->members[i];
    if (strcmp(member->name, name) != 0) continue;
    int64_t number = 0, size = member->type->kind == TYPE_ARRAY ? member->type->element->size : 0;
    for (int j = 0; j < constants.count; j++)
      if (constants.items[j].offset == member->offset + index * size &&
          !constant_integer(constants.items[j].value, &number))
        return -1;
    return number;
  }
  return -1;
}

/* The bytes that a matrix of a batch takes: rows and columns are `row` and `column` elements apart. */
static int64_t batch_bytes(const struct walk *walk, const struct object *product, int64_t rows, int64_t row,
                           int64_t columns, int64_t column, const char *step, int64_t size) {
  int64_t last = bounded_add(bounded_multiply(rows - 1, row), bounded_multiply(columns - 1, column));
  for (int64_t i = 0; i < member_of(walk, product, "batch_rank", 0); i++)
    last = bounded_add(last,
                       bounded_multiply(member_of(walk, product, "batch", i) - 1, member_of(walk, product, step, i)));
  return bounded_multiply(bounded_add(last, 1), size);
}

/* The constant record that says what a call of a matrix library does: its first argument. NULL, with what is wrong
 * said, when it is not known. */
static const struct object *described_first(const struct call *call) {
  struct walk *walk = call->walk;
  struct value at = call->arguments[0];
  bool known = at.kind == VALUE_POINTER && at.object >= 0 && walk->objects[at.object].kind == OBJECT_LASTING &&
               walk->objects[at.object].type->kind == TYPE_RECORD && !walk->objects[at.object].is_set_hot;
  if (known) return &walk->objects[at.object];
  walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, 0, "which product this is, is not known");
  return NULL;
}

/* accel_multiply(product, y, a, b) of accel/product.h. */
static struct value multiply_described(const struct call *call) {
  struct walk *walk = call->walk;
  const struct object *product = described_first(call);
  if (product == NULL) return value_number(ORIGIN_DATA);
  int64_t rows = member_of(walk, product, "rows", 0), columns = member_of(walk, product, "columns", 0);
  int64_t depth = member_of(walk, product, "depth", 0);
  int64_t size = member_of(walk, product, "type", 0) == 0 ? 4 : 2;
  int64_t y_size = member_of(walk, product, "result", 0) == 0 ? 4 : 2;
  touch(call, 2,
        batch_bytes(walk, product, rows, member_of(walk, product, "a_row", 0), depth,
                    member_of(walk, product, "a_column", 0), "a_step", size),
        false);
  touch(call, 3,
        batch_bytes(walk, product, depth, member_of(walk, product, "b_row", 0), columns,
                    member_of(walk, product, "b_column", 0), "b_step", size),
        false);
  int64_t bytes = batch_bytes(walk, product, rows, member_of(walk, product, "y_row", 0), columns, 1, "y_step", y_size);
  if (member_of(walk, product, "accumulate", 0) != 0) touch(call, 1, bytes, false);
  touch(call, 1, bytes, true);
  keep_apart(call, 1, 2);
  keep_apart(call, 1, 3);
  return value_number(ORIGIN_DATA);
}

/* The product of a convolution's members and of the pairs among them, times the size of an element. */
static int64_t convolved_bytes(const struct walk *walk, const struct object *record, const char *first,
                               const char *second, const char *pair, int64_t size) {
  int64_t bytes = bounded_multiply(member_of(walk, record, first, 0), member_of(walk, record, second, 0));
  for (int i = 0; i < 2; i++) bytes = bounded_multiply(bytes, member_of(walk, record, pair, i));
  return bounded_multiply(bytes, size);
}

/* accel_convolve(convolution, to, a, b, room) of accel/convolution.h. */
static struct value convolve_described(const struct call *call) {
  struct walk *walk = call->walk;
  const struct object *record = described_first(call);
  if (record == NULL) return value_number(ORIGIN_DATA);
  int64_t makes = member_of(walk, record, "makes", 0), groups = member_of(walk, record, "groups", 0);
  int64_t size = member_of(walk, record, "type", 0) == 0 ? 4 : 2;
  int64_t result = member_of(walk, record, "result", 0) == 0 ? 4 : 2;
  enum { MAKES_Y, MAKES_X, MAKES_WEIGHTS };
  int64_t x = convolved_bytes(walk, record, "batch", "x_channels", "x", makes == MAKES_X ? result : size);
  int64_t y = convolved_bytes(walk, record, "batch", "y_channels", "y", makes == MAKES_Y ? result : size);
  int64_t weights =
      convolved_bytes(walk, record, "x_channels", "y_channels", "kernel", makes == MAKES_WEIGHTS ? result : size);
  if (groups > 0) weights /= groups;
  int64_t made = makes == MAKES_Y ? y : makes == MAKES_X ? x : weights;
  touch(call, 2, makes == MAKES_Y ? x : y, false);
  touch(call, 3, makes == MAKES_WEIGHTS ? x : weights, false);
  if (member_of(walk, record, "accumulate", 0) != 0) touch(call, 1, made, false);
  touch(call, 1, made, true);
  touch(call, 4, bounded_multiply(member_of(walk, record, "room", 0), 4), true);
  for (int i = 2; i < 4; i++) {
    keep_apart(call, 1, i);
    keep_apart(call, 4, i);
  }
  keep_apart(call, 1, 4);
  return value_number(ORIGIN_DATA);
}

/* ---- The runtime ---- */

/* A number of the program's description; -1 when it is not known. */
static int64_t described(const struct walk *walk, const char *name) {
  return walk->config == NULL ? -1 : member_of(walk, walk->config, name, 0);
}

static struct value start_run(const struct call *call) {
  struct value at = call->arguments[0];
  if (at.kind == VALUE_POINTER && at.object >= 0 && call->walk->objects[at.object].kind == OBJECT_LASTING &&
      call->walk->objects[at.object].type->kind == TYPE_RECORD)
    call->walk->config = &call->walk->objects[at.object];
  return value_unknown_pointer(ORIGIN_CONFIG);
}

static struct value tell_rank(const struct call *call) {
  return value_of_type(call->node->type, ORIGIN_CONFIG | ORIGIN_RANK);
}

static struct value give_arena(const struct call *call) {
  struct walk *walk = call->walk;
  walk->objects[walk->arena_object].size = described(walk, "arena_bytes");
  return walk_address(walk, walk->arena_object);
}

static struct value fill_weights(const struct call *call) {
  touch(call, 1, described(call->walk, "weights_bytes"), true);
  return value_number(0);
}

static void fill_integers(const struct call *call, int which, int64_t count, int64_t least, const char *limit) {
  int64_t below = described(call->walk, limit), bytes = bounded_multiply(count, 4);
  touch(call, which, bytes, true);
  if (which >= call->count || call->arguments[which].kind != VALUE_POINTER) return;
  struct value at = call->arguments[which];
  if (bytes > at.span - at.low) bytes = at.span - at.low;
  walk_set_content(call->walk, at, bytes, (struct content){below > 0, true, least, below - 1});
}

/* The least that a target can be: what stands where there is none. */
static int64_t least_target(const struct call *call) {
  int64_t none = described(call->walk, "no_target");
  return none < 0 ? none : 0;
}

static struct value load_windows(const struct call *call) {
  int64_t count = bounded_multiply(most(call, 3), described(call->walk, "sequence_length"));
  fill_integers(call, 4, count, 0, "vocabulary");
  fill_integers(call, 5, count, least_target(call), "vocabulary");
  return value_number(0);
}

/* Where documents begin, and how far places are from there, is told in windows' places. */
static struct value load_documents(const struct call *call) {
  int64_t count = bounded_multiply(most(call, 3), described(call->walk, "sequence_length"));
  for (int i = 6; i < 8; i++)
    if (call->arguments[i].kind == VALUE_POINTER) fill_integers(call, i, count, 0, "sequence_length");
  return load_windows(call);
}

/* Targets are tokens, or ACCEL_NO_TARGET. */
static struct value load_masked(const struct call *call) {
  int64_t count = bounded_multiply(most(call, 3), described(call->walk, "sequence_length"));
  fill_integers(call, 4, count, 0, "vocabulary");
  fill_integers(call, 5, count, -100, "vocabulary");
  return value_number(0);
}

static struct value load_classes(const struct call *call) {
  touch(call, 4, bounded_multiply(bounded_multiply(most(call, 3), described(call->walk, "features")), 4), true);
  fill_integers(call, 5, most(call, 3), least_target(call), "classes");
  return value_number(0);
}

static struct value load_values(const struct call *call) {
  touch(call, 4, bounded_multiply(bounded_multiply(most(call, 3), described(call->walk, "features")), 4), true);
  touch(call, 5, bounded_multiply(most(call, 3), 4), true);
  return value_number(0);
}

static struct value generation_window(const struct call *call) {
  int64_t length = described(call->walk, "sequence_length");
  fill_integers(call, 1, length, 0, "vocabulary");
  return value_integer(-1, length - 1);
}

static const struct {
  const char *name;
  struct value (*run)(const struct call *call);
} models[] = {
    {"memcpy", copy_bytes},
    {"memmove", copy_bytes},
    {"memset", set_bytes},
    {"dnnl_sgemm", multiply},
    {"dnnl_gemm_bf16bf16f32", multiply},
    {"dnnl_gemm_f16f16f32", multiply},
    {"accel_multiply", multiply_described},
    {"accel_convolve", convolve_described},
    {"accel_start", start_run},
    {"accel_generation_start", start_run},
    {"accel_rank", tell_rank},
    {"accel_arena", give_arena},
    {"accel_generation_arena", give_arena},
    {"accel_fill_weights", fill_weights},
    {"accel_generation_weights", fill_weights},
    {"accel_load_windows", load_windows},
    {"accel_load_masked", load_masked},
    {"accel_load_documents", load_documents},
    {"accel_load_classes", load_classes},
    {"accel_load_values", load_values},
    {"accel_generation_window", generation_window},
};

/* A function without a model: it may write all that it gets a pointer to, but for constants. */
static struct value call_unknown(const struct call *call) {
  enum effect effect = external_effect(call->node->function->name);
  unsigned origin = effect == EFFECT_ARITHMETIC ? 0 : effect == EFFECT_BATCH ? ORIGIN_STEP : ORIGIN_CONFIG;
  if (effect == EFFECT_COLLECTIVE) walk_collective(call->walk, call->node, call->arguments, call->count);
  for (int i = 0; i < call->count; i++) {
    struct value at = call->arguments[i];
    origin |= at.origin;
    const struct syntax *argument = call->node->parts[i + 1];
    bool writable = argument->type->kind == TYPE_POINTER && !argument->type->points_to_constant;
    if (at.kind != VALUE_POINTER || at.object < 0 || !writable || at.span < 0 || at.low < 0) continue;
    if (at.low < at.span) touch(call, i, at.span - at.high, true);
    walk_set_content(call->walk, at, at.span - at.low, (struct content){0});
  }
  return value_of_type(call->node->type, origin);
}

struct value walk_external(struct walk *walk, struct syntax *node, const struct value *arguments, int count) {
  struct call call = {walk, node, arguments, count, 0};
  for (int i = 0; i < count; i++)
    if (arguments[i].kind == VALUE_INTEGER && arguments[i].low != arguments[i].high) call.doubt |= arguments[i].loops;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp(models[i].name, node->function->name) == 0) return models[i].run(&call);
  return call_unknown(&call);
}

/* ---- The arena ---- */

/* Members of the arena that the table of states names keep their values from step to step: the whole member, as a
 * state may be cut into slices. */
static void mark_state(struct walk *walk, const struct type *arena, int64_t offset) {
  for (int i = 0; i < arena->n_members; i++) {
    const struct member *member = &arena->members[i];
    if (offset >= member->offset && offset < member->offset + member->type->size)
      map_write(walk->memory, &walk->map, member->offset, member->offset + member->type->size, NULL);
  }
}

static void mark_states(struct walk *walk, const struct type *arena) {
  const struct variable *states = tree_variable(walk->tree, "states");
  if (states == NULL || states->type->kind != TYPE_ARRAY || states->type->element->kind != TYPE_RECORD) return;
  const struct type *entry = states->type->element;
  struct constants constants = constants_of(walk->memory, states);
  for (int i = 0; i < entry->n_members; i++) {
    if (strcmp(entry->members[i].name, "offset") != 0) continue;
    for (int j = 0; j < constants.count; j++) {
      int64_t offset;
      if (constants.items[j].offset % entry->size == entry->members[i].offset &&
          constant_integer(constants.items[j].value, &offset))
        mark_state(walk, arena, offset);
    }
  }
}

bool walk_set_arena(struct walk *walk, const struct type *type, const struct syntax *node) {
  struct object *arena = &walk->objects[walk->arena_object];
  if (arena->type != NULL || type->kind != TYPE_RECORD) return false;
  bool hot = walk->hot;
  walk->hot = true; /* the hot loop rests on it */
  if (arena->size < 0)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, node, 0, "how large the arena is, is not known");
  else if (arena->size < type->size)
    walk_fail(walk, FAILURE_BOUNDS, VERDICT_BROKEN, node, 0, "the arena has %lld bytes, its type %lld",
              (long long)arena->size, (long long)type->size);
  walk->hot = hot;
  arena->type = type;
  arena->size = type->size;
  map_add_padding(walk->memory, &walk->map, type, 0);
  mark_states(walk, type);
  return true;
}
