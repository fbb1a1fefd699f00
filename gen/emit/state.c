/* What outlives a step. */

#include <inttypes.h>
#include <string.h>

#include "gen/emit/emit.h"
#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/layers.h"
#include "gen/program/optimizers.h"
#include "gen/program/precision.h"
#include "gen/program/state.h"
#include "gen/program/streams.h"
#include "gen/spec/keys.h"
#include "runtime/checkpoint/keys.h"

static struct jinja_value slices_value(const struct program *program, const struct state *state) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < state->n_slices; i++) {
    const struct state_slice *slice = &state->slices[i];
    int weight = slice->weight != NULL ? (int)(slice->weight - program->weights->items) : -1;
    if (weight >= 0 && layers_row(program, weight) < 0) continue;
    struct jinja_value value = jinja_map(arena);
    set_comment(arena, value, "name", weight >= 0 ? layers_name(program, weight) : "of no parameter");
    set_int(arena, value, "parameter", weight >= 0 ? layers_row(program, weight) : -1);
    set_int(arena, value, "first", slice->first);
    set_int(arena, value, "stride", layers_slice_stride(program, state, slice));
    jinja_set(arena, value, "shape", shape_value(arena, slice->shape));
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value checkpoint_value(const struct program *program, const struct emit_options *options) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  set_bool(arena, value, "automatic_naming", job->checkpoint.automatic_checkpoint_naming);
  set_real(arena, value, "minutes", job->checkpoint.minutes);
  set_int(arena, value, "iteration", job->checkpoint.iteration);
  set_int(arena, value, "total_limit", job->checkpoint.total_limit);
  set_int(arena, value, "max_shard_bytes", job->checkpoint.max_shard_bytes);
  const bool is_rounded = job->checkpoint.dtype != PRECISION_NO;
  set_text(arena, value, "dtype", is_rounded ? dtype_enumerator(precision_dtype(job->checkpoint.dtype)) : "");
  set_bool(arena, value, "each_node", job->checkpoint.each_node);
  set_bool(arena, value, "by_rank", job->checkpoint.by_rank);
  set_int(arena, value, "copy_bytes", state_copy_bytes(program));
  set_literal(arena, value, "resume", job->checkpoint.resume);
  set_literal(arena, value, "folder_of", job->checkpoint.folder_of);
  set_literal(arena, value, "classes", job->checkpoint.folder_of != NULL ? options->classes : NULL);
  set_literal(arena, value, "config", options->config);
  set_literal(arena, value, "no_config", options->no_config);
  set_bool(arena, value, "saves_on_signal", job->checkpoint.saves_on_signal);
  set_bool(arena, value, "outlives_errors", job->checkpoint.outlives_errors);
  return value;
}

static void push_key(struct arena *arena, struct jinja_value list, const struct job_key *key) {
  struct jinja_value value = jinja_map(arena);
  set_literal(arena, value, "name", key->name);
  set_literal(arena, value, "value", key->value);
  set_bool(arena, value, "may_change", key->may_change);
  jinja_push(arena, list, value);
}

/* A change of the model's C is reported when a run resumes; whether it may is decided by its tensors. */
struct jinja_value keys_value(const struct program *program, const char *model) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), stated = jinja_list(arena), defaults = jinja_list(arena);
  uint64_t fixed = 0;
  int count;
  const struct job_key *keys = job_keys(arena, program->job, &count);
  for (int i = 0; i < count; i++) {
    push_key(arena, keys[i].at_default ? defaults : stated, &keys[i]);
    if (!keys[i].may_change) fixed += rt_key_digest(keys[i].name, keys[i].value);
  }
  push_key(arena, stated, &(struct job_key){.name = MODEL_KEY, .value = model, .may_change = true});
  jinja_set(arena, value, "stated", stated);
  jinja_set(arena, value, "defaults", defaults);
  set_text(arena, value, "fixed_digest", arena_printf(arena, "%016" PRIx64, fixed));
  return value;
}

/* Which states ranks divide, neighbours in the list. */
struct jinja_value sharding_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  int first = 0, count = 0;
  int64_t whole = 0;
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (state->whole == 0) continue;
    if (count++ == 0) first = i;
    whole = state->whole;
  }
  set_int(arena, value, "whole", whole);
  set_int(arena, value, "first_state", first);
  set_int(arena, value, "n_states", count);
  return value;
}

static const char *const types[] = {
    [DTYPE_FLOAT32] = "float", [DTYPE_INT32] = "int32_t", [DTYPE_BFLOAT16] = "uint16_t", [DTYPE_UINT8] = "uint8_t"};

struct jinja_value optimizer_arrays_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    if (strcmp(state->file, "optimizer") != 0) continue;
    struct jinja_value value = jinja_map(arena);
    set_text(arena, value, "name", state->member);
    set_text(arena, value, "type", types[state->dtype]);
    set_bool(arena, value, "on_host", state->on_host);
    jinja_push(arena, list, value);
  }
  return list;
}

/* Of which ranges that ranks divide a state is, and elements of them to a number: struct accel_state_rows. */
static const char *rows_of_state(struct arena *arena, const struct state *state) {
  const int block = state->ranges == RANGES_ALL ? 0 : state->ranges == RANGES_BLOCKS ? (int)STATE_BLOCK : 1;
  const bool coded = state->ranges == RANGES_CODED || state->ranges == RANGES_BLOCKS;
  return arena_printf(arena, "{%s, %d}", coded ? "true" : "false", block);
}

/* The pieces of weights that are updated at once: their first bucket, where they are among the weights in memory and
 * their gradients, and which layer it is, all others being none; how many buckets, and elements. */
static struct jinja_value pieces_value(const struct program *program) {
  const struct program_disk *disk = &program->disk;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)disk->n_pieces + 1) * sizeof *rows);
  for (int i = 0; i < disk->n_pieces; i++) {
    const struct disk_piece *piece = &disk->pieces[i];
    const bool is_layer = piece->unit >= 0;
    const int layer = is_layer ? piece->unit : program->ranks.fsdp_units.count;
    rows[i] = (struct table_row){.name = is_layer ? program->ranks.fsdp_units.items[piece->unit].paths[0]
                                                  : "what stays in memory",
                                 .steps = {piece->first, piece->weights, layer},
                                 .same = {piece->gradients, piece->buckets, piece->count}};
  }
  return table_value(program->arena, rows, disk->n_pieces, 3, 3);
}

struct jinja_value disk_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct program_disk *disk = &program->disk;
  struct jinja_value value = jinja_map(arena), arrays = jinja_list(arena);
  if (disk->n_states == 0) return value;
  for (int i = disk->first_state; i < disk->first_state + disk->n_states; i++) {
    struct jinja_value array = jinja_map(arena);
    set_text(arena, array, "name", program->states.items[i].member);
    set_int(arena, array, "state", i);
    jinja_push(arena, arrays, array);
  }
  jinja_set(arena, value, "arrays", arrays);
  set_int(arena, value, "first_state", disk->first_state);
  set_int(arena, value, "bucket", disk->bucket);
  set_int(arena, value, "buckets", disk->buckets);
  set_int(arena, value, "rest", disk->elements - (disk->buckets - 1) * disk->bucket);
  set_int(arena, value, "bytes", disk->buckets * disk->bucket * dtype_size(DTYPE_FLOAT32));
  set_int(arena, value, "slots", disk->slots);
  set_bool(arena, value, "in_backward", disk->in_backward);
  set_int(arena, value, "ahead", disk->ahead.slots);
  set_int(arena, value, "ahead_turns", disk->ahead.turns);
  set_int(arena, value, "ahead_last", disk->ahead.last);
  set_literal(arena, value, "folder", program->job->parallelism.offload.optimizer_nvme_path);
  set_literal(arena, value, "layers_folder", program->job->parallelism.offload.param_nvme_path);
  set_bool(arena, value, "layers", layers_are_on_disk(program));
  set_int(arena, value, "n_pieces", disk->n_pieces);
  if (disk->n_pieces > 0) jinja_set(arena, value, "pieces", pieces_value(program));
  return value;
}

struct jinja_value states_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    struct jinja_value value = jinja_map(arena);
    set_text(arena, value, "file", state->file);
    set_text(arena, value, "name", state->name);
    set_text(arena, value, "member", state->member);
    set_text(arena, value, "type", types[state->dtype]);
    set_text(arena, value, "dtype", dtype_enumerator(state->dtype));
    set_int(arena, value, "count", state->count);
    set_bool(arena, value, "on_host", state->on_host);
    set_bool(arena, value, "on_disk", state->on_disk);
    set_bool(arena, value, "divided", state->whole > 0);
    set_text(arena, value, "rows", rows_of_state(arena, state));
    jinja_set(arena, value, "slices", slices_value(program, state));
    jinja_push(arena, list, value);
  }
  return list;
}
