/* The ranks of a program. */
#include <ctype.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/layers.h"
#include "gen/program/precision.h"
#include "gen/program/sending.h"
#include "gen/program/sharding.h"
#include "gen/program/streams.h"
#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

const char *axis_name(struct arena *arena, enum axis axis) {
  if (axis == AXES) return "";
  char *name = arena_string(arena, job_axis_names[axis]);
  for (char *c = name; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
  return name;
}

static struct jinja_value axes_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < AXES; i++) {
    struct jinja_value value = jinja_map(arena);
    if (ranks_along(program, (enum axis)i) == 1) continue;
    set_text(arena, value, "name", axis_name(arena, (enum axis)i));
    set_int(arena, value, "length", ranks_along(program, (enum axis)i));
    jinja_push(arena, list, value);
  }
  return list;
}

struct jinja_value axis_names_value(struct arena *arena, struct axes axes) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < axes.count; i++) jinja_push(arena, list, jinja_string(arena, axis_name(arena, axes.items[i])));
  return list;
}

/* Whether ranks add up gradients of what all of them have along one axis more than those of experts. */
static bool sums_along_two(const struct program *program) {
  return !is_sharded(program) && summed_along(program, NULL).count > 1;
}

/* The collectives of elements in memory that begin within the backward, or those of every few steps: the first element,
 * how many. */
static struct jinja_value pieces_value(const struct program *program, bool within) {
  const int n = program->ranks.collectives.count;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)n + 1) * sizeof *rows);
  int count = 0;
  for (int i = 0; i < n; i++) {
    const struct collective *c = &program->ranks.collectives.items[i];
    int64_t length = c->length > 0 ? c->length : c->count;
    if (within ? c->after == NULL : c->every == 0) continue;
    rows[count++] = (struct table_row){.name = c->what, .same = {length, c->then.count > 0}, .steps = {c->first}};
  }
  return table_value(program->arena, rows, count, 1, sums_along_two(program) ? 2 : 1);
}

/* By flat range, whether a rank's part of its sum is sent along the axis of experts, too; none where there are none. */
static struct jinja_value summed_twice_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  const enum axis experts = axis_sharding(program, SHARDED_EXPERTS);
  if (!is_sharded(program) || experts == AXES) return list;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    const struct weight *weight = program->optimizer.flat_ranges.items[i].weight;
    jinja_push(program->arena, list, jinja_int(axes_have(summed_along(program, weight->parameter), experts)));
  }
  return list;
}

/* The units of a program: the flat ranges of each, the first and the end. */
static struct jinja_value units_value(const struct program *program) {
  const int count = program->ranks.fsdp_units.count;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *rows);
  for (int i = 0; i < count; i++) {
    const struct fsdp_unit *unit = &program->ranks.fsdp_units.items[i];
    rows[i] = (struct table_row){.name = unit->paths[0], .steps = {unit->first, unit->end}};
  }
  return table_value(program->arena, rows, count, 2, 0);
}

/* The layers that come from elsewhere: the first byte of each among all weights, where it comes to, its bytes. */
static struct jinja_value streams_value(const struct program *program) {
  const int count = program->streams ? program->ranks.fsdp_units.count : 0;
  struct table_row *rows = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *rows);
  for (int i = 0; i < count; i++) {
    const char *path = program->ranks.fsdp_units.items[i].paths[0];
    rows[i] =
        (struct table_row){.name = path,
                           .steps = {program->ranks.fsdp_units.items[i].offset, weight_offset(program->weights, path)},
                           .same = {streamed_unit_bytes(program, i)}};
  }
  return table_value(program->arena, rows, count, 2, 1);
}

/* The units, and the flat ranges of none. */
static void set_units(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  struct jinja_value others = jinja_list(arena);
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++)
    if (program->optimizer.flat_ranges.items[i].fsdp_unit < 0) jinja_push(arena, others, jinja_int(i));
  jinja_set(arena, value, "fsdp_units", units_value(program));
  jinja_set(arena, value, "resident", others);
  set_int(arena, value, "first_fsdp_unit", program->ranks.first_fsdp_unit);
}

/* Tensors of which each rank has a shard, or its own one (experts): [{row, name, axis, dim, blocks, padding}], row that
 * of the table of tensors. */
static struct jinja_value parts_value(const struct program *program, enum placement_form form) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < program->weights->count; i++) {
    const struct placement placement = program->weights->items[i].parameter->placement;
    struct jinja_value value = jinja_map(arena);
    if (placement.form != form || layers_row(program, i) < 0) continue;
    set_int(arena, value, "row", layers_row(program, i));
    set_comment(arena, value, "name", layers_name(program, i));
    set_text(arena, value, "axis", axis_name(arena, (enum axis)program->weights->items[i].parameter->axis));
    set_int(arena, value, "dim", placement.dim);
    set_int(arena, value, "blocks", placement.blocks);
    set_int(arena, value, "padding", placement.padding);
    set_int(arena, value, "together", program->weights->items[i].parameter->together);
    jinja_push(arena, list, value);
  }
  return list;
}

/* That along which a kernel asks which rank it runs on: as its kind says, or where it finds a rank's rows itself; -1:
 * none. */
static int asked_axis(const struct target *target, const struct node *node) {
  const struct op_ranks *ranks = &node->kind->ranks;
  if (ranks->part_axis != NULL) return ranks->part_axis(node);
  if (ranks->exchanged == NULL || !target->ranks.fixed_sizes) return -1;
  const struct op_exchange exchange = ranks->exchanged(node);
  return exchange.by_data ? exchange.axis : -1;
}

/* The axes along which a kernel asks that. */
static struct jinja_value rank_axes_value(const struct program *program) {
  struct jinja_value list = jinja_list(program->arena);
  bool asked[AXES] = {false};
  for (int i = 0; i < program->kernels.count; i++) {
    const struct node *node = program->kernels.items[i]->node;
    int axis = asked_axis(program->target, node);
    if (axis >= 0 && !asked[axis])
      jinja_push(program->arena, list, jinja_string(program->arena, axis_name(program->arena, (enum axis)axis)));
    if (axis >= 0) asked[axis] = true;
  }
  return list;
}

/* The member of the arena that ranks add up from where it is; "": none. */
static const char *summed_member(const struct program *program) {
  if (!sums_in_arena(program)) return "";
  return shard_has_own_gradients(program) ? "whole_gradients" : "all_gradients";
}

/* What ranks have of weights and gradients, and in which form it is sent. */
static void set_shards(const struct program *program, struct jinja_value value, bool alone) {
  struct arena *arena = program->arena;
  const enum dtype wire = precision_dtype(program->job->parallelism.wire);
  set_bool(arena, value, "sharded", !alone && is_sharded(program));
  set_bool(arena, value, "own_gradients", !alone && shard_has_own_gradients(program));
  set_bool(arena, value, "reduces_each", !alone && gradients_are_split(program));
  set_bool(arena, value, "parts", !alone && weights_are_split(program)); /* of weights on each rank */
  set_bool(arena, value, "receives_separately", !alone && shard_needs_receive_buffer(program));
  set_bool(arena, value, "adds_up", !alone && shard_adds_up(program));
  set_bool(arena, value, "sends_otherwise", !alone && shard_sends_otherwise(program));
  set_text(arena, value, "summed", alone ? "" : summed_member(program));
  set_text(arena, value, "wire", alone || !dtype_is_bits16(wire) ? "" : dtype_enumerator(wire));
  set_text(arena, value, "wire_type", dtype_is_bits16(wire) ? dtype_short_name(wire) : "");
}

/* The axes along which the model is divided, and what is divided along them. */
static void set_divisions(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  set_text(arena, value, "layers", axis_name(arena, axis_sharding(program, SHARDED_LAYERS)));
  set_text(arena, value, "tensors", axis_name(arena, axis_sharding(program, SHARDED_TENSORS)));
  set_text(arena, value, "experts", axis_name(arena, axis_sharding(program, SHARDED_EXPERTS)));
  jinja_set(arena, value, "tensor_parts", parts_value(program, PLACED_SPLIT));
  jinja_set(arena, value, "expert_tensors", parts_value(program, PLACED_EXPERT));
  jinja_set(arena, value, "rank_axes", rank_axes_value(program));
  set_bool(arena, value, "shards_sequences", job_sequence_ranks(program->job) > 1);
}

struct jinja_value mesh_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena);
  bool alone = program->ranks.collectives.count == 0;
  set_int(arena, value, "devices", target_devices(job));
  set_int(arena, value, "processes", alone ? 1 : job->devices.ranks);
  set_int(arena, value, "ranks", alone ? 1 : job_data_ranks(job)); /* that add up gradients */
  set_int(arena, value, "batch_ranks", alone ? 1 : job_batch_ranks(job));
  set_bool(arena, value, "sync_each_batch",
           !alone && job_data_ranks(job) > 1 && job->parallelism.sync_each_batch && job->accumulation.num_steps > 1);
  set_shards(program, value, alone);
  set_divisions(program, value);
  jinja_set(arena, value, "summed_twice", summed_twice_value(program));
  jinja_set(arena, value, "streams", streams_value(program));
  set_bool(arena, value, "streaming", program->streams);
  set_int(arena, value, "from_host", streamed_from_host(program));
  set_int(arena, value, "host_layers", streamed_bytes(program, false));
  set_bool(arena, value, "from_files", largest_read(program) > 0 && !layers_are_on_disk(program));
  set_int(arena, value, "staging", program->target->memory.separate ? largest_read(program) : 0);
  if (program->streams) set_int(arena, value, "first_fsdp_unit", program->ranks.first_fsdp_unit);
  const struct function *backward = program->entry.backward;
  const bool last = backward != NULL && function_sends(backward) && !program->ranks.sends_always;
  set_text(arena, value, "last_backward", last ? sending_name(program, backward) : "");
  if (alone) return value;
  set_units(program, value);
  set_int(arena, value, "data_ranks", job_data_ranks(job));
  set_int(arena, value, "gradients", all_gradients(program));
  set_bool(arena, value, "uses_rank", program->entry.forward != NULL && program->entry.forward->random);
  set_int(arena, value, "partial_gradients", program->ranks.partial_gradients);
  set_partial_gradients(program, value);
  set_int(arena, value, "wire_elements", program->ranks.wire);
  set_bool(arena, value, "sync_batch_norm", job->parallelism.sync_batch_norm);
  set_int(arena, value, "timeout", job->devices.timeout);
  set_bool(arena, value, "numa_affinity", job->devices.numa_affinity);
  jinja_set(arena, value, "axes", axes_value(program));
  jinja_set(arena, value, "data_axes", axis_names_value(arena, program->mesh.batches));
  jinja_set(arena, value, "sums", axis_names_value(arena, summed_along(program, NULL)));
  bool local = job->parallelism.local_steps > 0;
  set_int(arena, value, "local_steps", job->parallelism.local_steps);
  if (!is_sharded(program)) jinja_set(arena, value, "buckets", pieces_value(program, true));
  if (local) jinja_set(arena, value, "averaged", pieces_value(program, false));
  return value;
}
