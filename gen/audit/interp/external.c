/* Calls of functions from outside: what each does to memory. */
#include <string.h>

#include "gen/audit/interp/external.h"
#include "gen/audit/interp/region.h"
#include "gen/audit/program/externals.h"

/* ---- Accesses ---- */

void external_touch(const struct call *call, int which, int64_t bytes, bool is_write) {
  struct value at = which < call->count ? call->arguments[which] : value_unknown_pointer(0);
  struct interp *interp = call->interp;
  if (bytes <= 0) return;
  bool known = at.kind == VALUE_POINTER && at.object >= 0 && at.slot_size >= 0;
  if (known && at.low >= 0 && bounded_add(at.high, bytes) <= at.slot_size) {
    interp_access(interp, at, bytes, is_write, call->node);
    struct value *whole = &interp->states[at.object].value; /* a record's: what its members come from */
    if (is_write && interp->objects[at.object].kind == OBJECT_LOCAL && whole->kind == VALUE_NUMBER)
      whole->origin |= ORIGIN_UNTRACKED;
    return;
  }
  const char *name = call->node->function->name;
  uint64_t imprecision = interp_imprecision(interp, at) | call->imprecision;
  bool certain = known && imprecision == 0;
  if (at.origin & ORIGIN_REPORTED) return;
  if (!known && is_write) interp_unknown_write(interp);
  if (!known && interp->in_step_path && interp->untracked == NULL)
    interp->untracked = which < call->count ? call->node->parts[which + 1] : call->node;
  if (!known)
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, imprecision,
                "what is passed as argument %d of %s is not known", which + 1, name);
  else if (at.origin & ORIGIN_DATA && at.high > INT32_MAX)
    interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, imprecision,
                "%s: nothing bounds the index into %s", name, interp_slot_name(interp, at));
  else
    interp_fail(interp, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, call->node, imprecision,
                "%s %s %lld bytes of %s; it has %lld from there", name, is_write ? "writes" : "reads", (long long)bytes,
                interp_slot_name(interp, at), (long long)(at.high > at.slot_size ? 0 : at.slot_size - at.high));
  if (!known || at.low < 0 || at.low >= at.slot_size) return;
  if (bytes > at.slot_size - at.low) bytes = at.slot_size - at.low; /* what is inside is accessed all the same */
  if (at.high > at.slot_size - bytes) at.high = at.slot_size - bytes;
  interp_access(interp, at, bytes, is_write, call->node);
}

void external_require_noalias(const struct call *call, int a, int b) {
  interp_require_noalias(call->interp, call->node, call->node->function->name, call->arguments[a], call->arguments[b]);
}

int64_t external_max(const struct call *call, int which) {
  if (which >= call->count || call->arguments[which].kind != VALUE_INTEGER) return VALUE_MAX;
  return call->arguments[which].high;
}

/* Whether an object holds what its initial value gives, always. */
static bool is_constant(const struct object *object) {
  return object->kind == OBJECT_STATIC && object->variable != NULL && object->variable->is_constant;
}

/* The initial value of a scalar at an offset of an object; NULL: it is not named, and 0. */
static const struct syntax *initial_at(const struct interp *interp, const struct object *object, int64_t offset) {
  struct constants constants = constants_of(interp->memory, object->variable);
  const struct syntax *value = NULL;
  for (int i = 0; i < constants.count; i++)
    if (constants.items[i].offset == offset) value = constants.items[i].value;
  return value;
}

/* The integer in a member of the record of this type that is at an offset of an object; -1 when it is not known. */
static int64_t integer_of(const struct interp *interp, const struct object *object, const struct type *record,
                          int64_t offset, const char *name, int64_t index) {
  int at = type_member(record, name);
  if (at < 0) return -1;
  const struct member *member = &record->members[at];
  int64_t number = 0, size = member->type->kind == TYPE_ARRAY ? member->type->element->size : 0;
  const struct syntax *value = initial_at(interp, object, offset + member->offset + index * size);
  return value == NULL || constant_integer(value, &number) ? number : -1;
}

int64_t external_member(const struct interp *interp, const struct object *object, const char *name, int64_t index) {
  return integer_of(interp, object, object->type, 0, name, index);
}

int64_t external_disk_bytes(const struct interp *interp, struct value state) {
  const struct object *config = interp->config;
  const int at = config == NULL ? -1 : type_member(config->type, "disk");
  if (at < 0 || !value_is_one(state)) return -1;
  const struct member *disk = &config->type->members[at];
  const int64_t first = integer_of(interp, config, disk->type, disk->offset, "first", 0);
  const int64_t count = integer_of(interp, config, disk->type, disk->offset, "count", 0);
  if (first < 0 || state.low < first || state.low >= bounded_add(first, count)) return -1;
  return integer_of(interp, config, disk->type, disk->offset, "bytes", 0);
}

void external_members(const struct interp *interp, const struct object *object, const char *name, int64_t *integers,
                      int count) {
  struct constants constants = constants_of(interp->memory, object->variable);
  int member = type_member(object->type, name);
  for (int i = 0; i < count; i++) integers[i] = 0;
  for (int j = 0; member >= 0 && j < constants.count; j++) {
    int64_t at = constants.items[j].offset - object->type->members[member].offset;
    if (at >= 0 && at % 8 == 0 && at / 8 < count) constant_integer(constants.items[j].value, &integers[at / 8]);
  }
}

static const char *enumerator_of(const struct interp *interp, const struct object *object, const struct type *record,
                                 int64_t offset, const char *name) {
  int member = type_member(record, name);
  const struct type *type = member >= 0 ? record->members[member].type : &type_int;
  int64_t value = integer_of(interp, object, record, offset, name, 0);
  for (int i = 0; i < type->n_enumerators; i++)
    if (type->enumerators[i].value == value) return type->enumerators[i].name;
  return "";
}

const char *external_enumerator(const struct interp *interp, const struct object *object, const char *name) {
  return enumerator_of(interp, object, object->type, 0, name);
}

/* ---- The C library ---- */

/* The integers that a pointer points to; of a constant table, all of its integers. */
static struct content integers_at(struct interp *interp, struct value at) {
  if (at.kind != VALUE_POINTER || at.object < 0) return (struct content){0};
  const struct object *object = &interp->objects[at.object];
  bool table = object->kind == OBJECT_STATIC && object->variable->is_constant && object->variable->initial != NULL &&
               object->type->kind == TYPE_ARRAY && object->type->element->kind == TYPE_INTEGER;
  if (!table) return interp_content(interp, at);
  struct constants constants = constants_of(interp->memory, object->variable);
  struct content all = {.known = true};
  if (constants.count == object->type->count && !constant_integer(constants.items[0].value, &all.low)) return all;
  all.high = all.low;
  for (int i = 0; i < constants.count; i++) {
    int64_t number;
    if (!constant_integer(constants.items[i].value, &number)) return (struct content){0};
    if (number < all.low) all.low = number;
    if (number > all.high) all.high = number;
  }
  return all;
}

/* Whether a copy is of a whole array to one of the same size. */
static bool are_whole(const struct call *call) {
  for (int i = 0; i < 2; i++) {
    struct value at = call->arguments[i], bytes = call->arguments[2];
    bool whole = at.kind == VALUE_POINTER && at.object >= 0 && at.base == 0 && at.base_width == 0 && at.low == 0 &&
                 at.high == 0 && bytes.kind == VALUE_INTEGER && bytes.low == bytes.high &&
                 bytes.low == call->interp->objects[at.object].size;
    if (!whole) return false;
  }
  return true;
}

static struct value copy_bytes(const struct call *call) {
  external_touch(call, 1, external_max(call, 2), false);
  struct value to = call->arguments[0];
  struct content content = integers_at(call->interp, call->arguments[1]);
  if (!are_whole(call) || call->interp->n_loops > 0) content.grouping = NULL;
  call->interp->incoming = content;
  external_touch(call, 0, external_max(call, 2), true);
  call->interp->incoming = (struct content){0};
  bool whole = to.kind == VALUE_POINTER && to.object == call->interp->arena_object && to.base_width == 0 &&
               to.low == to.high && external_max(call, 2) <= to.slot_size - to.low;
  if (whole && content.known) interp_set_content(call->interp, to, external_max(call, 2), content);
  return call->arguments[0];
}

static struct value set_bytes(const struct call *call) {
  if (!external_touch_linear(call, 0, call->arguments[2].linear, true))
    external_touch(call, 0, external_max(call, 2), true);
  struct value zero = call->arguments[1];
  struct content content = {value_is_null(zero), true, 0, 0, NULL};
  struct value at = call->arguments[0], bytes = call->arguments[2];
  bool one = at.kind == VALUE_POINTER && at.base_width == 0 && at.low == at.high && bytes.low == bytes.high;
  if (one && external_max(call, 2) < VALUE_MAX)
    interp_set_content(call->interp, call->arguments[0], external_max(call, 2), content);
  return call->arguments[0];
}

/* ---- The runtime ---- */

/* A number of the program's description; -1 when it is not known. */
static int64_t described(const struct interp *interp, const char *name) {
  return interp->config == NULL ? -1 : external_member(interp, interp->config, name, 0);
}

static struct value start_run(const struct call *call) {
  struct value at = call->arguments[0];
  if (at.kind == VALUE_POINTER && at.object >= 0 && is_constant(&call->interp->objects[at.object]) &&
      call->interp->objects[at.object].type->kind == TYPE_RECORD)
    call->interp->config = &call->interp->objects[at.object];
  return value_unknown_pointer(ORIGIN_CONFIG);
}

static struct value give_rank(const struct call *call) {
  return value_of_type(call->node->type, ORIGIN_CONFIG | ORIGIN_RANK);
}

/* Along one axis of the grid. */
static struct value give_rank_along(const struct call *call) {
  struct value rank = give_rank(call);
  int64_t ranks = call->count > 1 ? external_ranks(call->interp, call->arguments[1]) : VALUE_MAX;
  if (ranks == VALUE_MAX) return rank;
  if (ranks > 1 && ranks <= MAX_STAGES && interp_is_stage_axis(call->node->parts[2], call->arguments[1])) {
    call->interp->n_stages = (int)ranks;
    struct value stage = value_integer(call->interp->stage, call->interp->stage);
    stage.origin = ORIGIN_STAGE;
    return stage;
  }
  rank.low = 0;
  rank.high = ranks - 1;
  return rank;
}

static struct value give_arena(const struct call *call) {
  struct interp *interp = call->interp;
  if (interp->device != NULL) return interp_mirror(interp, described(interp, "arena_bytes"));
  interp->objects[interp->arena_object].size = described(interp, "arena_bytes");
  return interp_address(interp, interp->arena_object);
}

static struct value fill_weights(const struct call *call) {
  external_touch(call, 1, described(call->interp, "weights_bytes"), true);
  return value_number(0);
}

/* Whether the batch has no such array. */
static bool is_left_out(const struct call *call, int which) {
  return which < call->count && value_is_null(call->arguments[which]);
}

static void fill_below(const struct call *call, int which, int64_t count, int64_t least, int64_t below) {
  int64_t bytes = bounded_multiply(count, 4);
  if (is_left_out(call, which)) return;
  external_touch(call, which, bytes, true);
  if (which >= call->count || call->arguments[which].kind != VALUE_POINTER) return;
  struct value at = call->arguments[which];
  if (at.object < 0 || at.low < 0 || at.low >= at.slot_size) return; /* reported already */
  if (bytes > at.slot_size - at.low) bytes = at.slot_size - at.low;
  interp_set_content(call->interp, at, bytes, (struct content){below > 0, true, least, below - 1, NULL});
}

static void fill_integers(const struct call *call, int which, int64_t count, int64_t least, const char *limit) {
  fill_below(call, which, count, least, described(call->interp, limit));
}

/* The smallest value of a target: the one that means no target. */
static int64_t least_target(const struct call *call) {
  int64_t none = described(call->interp, "no_target");
  return none < 0 ? none : 0;
}

static struct value load_sequences(const struct call *call) {
  int64_t count = bounded_multiply(external_max(call, 3), described(call->interp, "sequence_length"));
  fill_integers(call, 4, count, 0, "vocabulary");
  fill_integers(call, 5, count, least_target(call), "vocabulary");
  return value_number(0);
}

/* Starts of documents, and positions within them, are positions in the sequence. */
static struct value load_documents(const struct call *call) {
  int64_t count = bounded_multiply(external_max(call, 3), described(call->interp, "sequence_length"));
  for (int i = 6; i < 8; i++) fill_integers(call, i, count, 0, "sequence_length");
  return load_sequences(call);
}

/* Targets are tokens, or ACCEL_NO_TARGET. */
static struct value load_masked(const struct call *call) {
  int64_t count = bounded_multiply(external_max(call, 3), described(call->interp, "sequence_length"));
  fill_integers(call, 4, count, 0, "vocabulary");
  fill_integers(call, 5, count, -100, "vocabulary");
  return value_number(0);
}

/* A row of the table of inputs in the program's description. */
struct input_row {
  const struct object *table; /* NULL: it is not known */
  int64_t offset;
};

static struct input_row input_row(const struct call *call) {
  const struct interp *interp = call->interp;
  struct value at = call->arguments[4];
  if (at.kind != VALUE_POINTER || at.object < 0 || at.low != at.high || at.base_width != 0 || interp->config == NULL)
    return (struct input_row){0};
  const struct object *table = &interp->objects[at.object];
  int inputs = type_member(interp->config->type, "inputs");
  const struct syntax *initial =
      inputs < 0 ? NULL : initial_at(interp, interp->config, interp->config->type->members[inputs].offset);
  bool is_table = is_constant(table) && table->type->kind == TYPE_ARRAY && initial != NULL &&
                  initial->kind == SYNTAX_VARIABLE && initial->variable == table->variable;
  int64_t offset = at.base + at.low, size = is_table ? table->type->element->size : 1;
  bool is_row = is_table && offset % size == 0 && offset / size < described(interp, "n_inputs");
  return is_row ? (struct input_row){table, offset} : (struct input_row){0};
}

static struct value load_unknown_input(const struct call *call) {
  const struct value to = call->arguments[5];
  interp_fail(call->interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, 0,
              "which of the program's inputs '%s' is, is not known", interp_spell(call->interp, call->node->parts[5]));
  if (to.kind == VALUE_POINTER && to.slot_size > to.high) external_touch(call, 5, to.slot_size - to.high, true);
  return value_number(0);
}

/* accel_load_input: what the input's description says of its numbers. The runtime compares integers alone with it. */
static struct value load_input(const struct call *call) {
  const struct interp *interp = call->interp;
  const struct input_row row = input_row(call);
  if (row.table == NULL) return load_unknown_input(call);
  const struct type *type = row.table->type->element;
  int64_t below = integer_of(interp, row.table, type, row.offset, "below", 0);
  int64_t none = integer_of(interp, row.table, type, row.offset, "none", 0);
  int64_t width = integer_of(interp, row.table, type, row.offset, "width", 0);
  int64_t count = width < 0 ? VALUE_MAX : bounded_multiply(external_max(call, 3), width);
  bool integers = strcmp(enumerator_of(interp, row.table, type, row.offset, "dtype"), "ACCEL_INT32") == 0;
  if (integers && below > 0)
    fill_below(call, 5, count, none < 0 ? none : 0, none < below ? below : none + 1);
  else
    external_touch(call, 5, bounded_multiply(count, 4), true);
  return value_number(0);
}

static struct value generation_window(const struct call *call) {
  int64_t length = described(call->interp, "sequence_length");
  fill_integers(call, 1, length, 0, "vocabulary");
  return value_integer(-1, length - 1);
}

static struct value generation_source(const struct call *call) {
  external_touch(call, 1, bounded_multiply(external_max(call, 2), 4), true);
  return value_number(0);
}

static struct value generation_positions(const struct call *call) {
  int64_t length = external_max(call, 1), most = external_max(call, 2);
  fill_integers(call, 3, most, 0, "vocabulary");
  fill_below(call, 4, 1, 0, length < INT32_MAX ? length : INT64_C(1) << 31);
  return value_integer(0, most);
}

/* __ffs(x): the index of the lowest set bit, from 1; 0 where there is none. */
static struct value find_bit(const struct call *call) {
  struct value value = value_integer(0, 32);
  if (call->arguments[0].kind == VALUE_INTEGER && (call->arguments[0].low > 0 || call->arguments[0].high < 0))
    value.low = 1;
  value.origin = call->arguments[0].origin;
  value.blame = BLAME_ALWAYS;
  return value;
}

/* __popc(x): how many bits are set. */
static struct value count_bits(const struct call *call) {
  struct value value = value_integer(0, 32);
  value.origin = call->arguments[0].origin;
  value.blame = BLAME_ALWAYS;
  return value;
}

static const struct {
  const char *name;
  struct value (*run)(const struct call *call);
} models[] = {
    {"__ffs", find_bit},
    {"__popc", count_bits},
    {"__pipeline_memcpy_async", copy_bytes},
    {"memcpy", copy_bytes},
    {"memmove", copy_bytes},
    {"memset", set_bytes},
    {"dnnl_sgemm", external_multiply},
    {"dnnl_gemm_bf16bf16f32", external_multiply},
    {"dnnl_gemm_f16f16f32", external_multiply},
    {"accel_multiply", external_multiply_described},
    {"accel_multiply_quantized", external_multiply_quantized},
    {"accel_multiply_int8", external_multiply_int8},
    {"accel_multiply_q8_0", external_multiply_q8_0},
    {"accel_gemv", external_gemv},
    {"accel_convolve", external_convolve_described},
    {"accel_start", start_run},
    {"accel_evaluation_start", start_run},
    {"accel_generation_start", start_run},
    {"accel_rank", give_rank},
    {"accel_rank_along", give_rank_along},
    {"accel_generation_rank_along", give_rank_along},
    {"accel_arena", give_arena},
    {"accel_generation_arena", give_arena},
    {"accel_fill_weights", fill_weights},
    {"accel_evaluation_weights", fill_weights},
    {"accel_generation_weights", fill_weights},
    {"accel_load_sequences", load_sequences},
    {"accel_load_masked", load_masked},
    {"accel_load_documents", load_documents},
    {"accel_load_input", load_input},
    {"accel_generation_source", generation_source},
    {"accel_generation_window", generation_window},
    {"accel_generation_positions", generation_positions},
};

/* It may read any part of what a pointer to constants points to. */
static void may_read(const struct call *call, struct value at) {
  int64_t to = bounded_add(bounded_add(at.base, at.base_width), at.slot_size);
  at.blame |= BLAME_ALWAYS;
  interp_check_race(call->interp, at, at.base + at.low, to, false, call->node);
}

/* A function without a model: it may write all that it gets a pointer to, but for constants. */
static struct value call_unknown(const struct call *call) {
  enum effect effect = external_effect(call->node->function->name);
  bool agreed = external_is_uniform(call->node->function->name);
  unsigned origin = effect == EFFECT_ARITHMETIC ? 0 : agreed || effect == EFFECT_BATCH ? ORIGIN_STEP : ORIGIN_CONFIG;
  if (effect == EFFECT_COLLECTIVE) interp_collective(call->interp, call->node, call->arguments, call->count);
  for (int i = 0; i < call->count; i++) {
    struct value at = call->arguments[i];
    if (!agreed || at.kind != VALUE_POINTER) origin |= at.origin;
    const struct syntax *argument = call->node->parts[i + 1];
    bool writable = argument->type->kind == TYPE_POINTER && !argument->type->points_to_constant;
    if (at.kind != VALUE_POINTER || at.object < 0 || at.slot_size < 0 || at.low < 0) continue;
    if (at.low >= at.slot_size) continue;
    if (!writable) may_read(call, at);
    if (!writable) continue;
    external_touch(call, i, at.slot_size - at.high, true);
    interp_set_content(call->interp, at, at.slot_size - at.low, (struct content){0});
  }
  return value_of_type(call->node->type, origin);
}

struct value interp_external(struct interp *interp, struct syntax *node, const struct value *arguments, int count) {
  struct call call = {interp, node, arguments, count, 0};
  interp_record_external(interp, node, arguments, count);
  for (int i = 0; i < count; i++)
    if (arguments[i].kind == VALUE_INTEGER && arguments[i].low != arguments[i].high)
      call.imprecision |= arguments[i].loops;
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
    if (strcmp(models[i].name, node->function->name) == 0) return models[i].run(&call);
  struct value result;
  if (strncmp(node->function->name, "__syncthreads", strlen("__syncthreads")) == 0) interp_grid_barrier(interp, node);
  if (external_meets_lanes(node->function->name)) interp_grid_meet_lanes(interp);
  if (interp_region_thread(interp, node, &result)) return result;
  if (interp_transfer_external(&call, &result) || interp_exchange_external(&call, &result) ||
      interp_device_external(&call, &result))
    return result;
  return call_unknown(&call);
}
