#include "runtime/weights/sharded_rows.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"

#include <string.h>

/* Elements of a rank: where they begin among those that are asked for, and in the rank's array. */
struct common {
  size_t at, own, count;
};

void rt_rows_of(const struct accel_program *program, int rank, int *first, int *end) {
  const struct accel_sharding *sharding = &program->sharding;
  *first = 0;
  *end = sharding->n_rows;
  if (sharding->stage_rows == NULL) return;
  int stage = rank / rt_stride_along(program, ACCEL_PP) % program->mesh[ACCEL_PP];
  *first = (int)sharding->stage_rows[stage];
  *end = (int)sharding->stage_rows[stage + 1];
}

static bool meets(const struct accel_program *program, const struct accel_row *row, size_t first, size_t count) {
  size_t end = row->first + row->shard_size * (size_t)(program->mesh[ACCEL_DP_SHARD] - 1) + row->last;
  return row->first < first + count && first < end;
}

/* What shard `shard` of a row has of `count` elements from `first` on. */
static struct common common_of(const struct accel_program *program, const struct accel_row *row, int shard,
                               size_t first, size_t count) {
  size_t begin = row->first + (size_t)shard * row->shard_size, low = begin > first ? begin : first;
  size_t end = begin + (shard + 1 < program->mesh[ACCEL_DP_SHARD] ? row->shard_size : row->last);
  if (first + count < end) end = first + count;
  if (end <= low) return (struct common){0};
  return (struct common){low - first, row->own + (low - begin), end - low};
}

bool rt_rows_divide(const struct accel_program *program, int state) {
  const struct accel_sharding *sharding = &program->sharding;
  return state >= sharding->first_state && state < sharding->first_state + sharding->n_states;
}

bool rt_rows_have(const struct accel_program *program, int state, int k, struct accel_row *row) {
  const struct accel_sharding *sharding = &program->sharding;
  *row = sharding->rows[k];
  if (sharding->row_states == NULL || sharding->state_rows[state].block == 0) return true;
  const struct accel_state_rows *of = &sharding->state_rows[state];
  if (sharding->row_states[k].coded != of->coded) return false;
  row->own = sharding->row_states[k].states / of->block;
  row->shard_size /= of->block;
  row->last = (row->last + of->block - 1) / of->block;
  return true;
}

bool rt_rows_meet(const struct accel_program *program, int rank, size_t first, size_t count) {
  int begin, end;
  rt_rows_of(program, rank, &begin, &end);
  for (int k = begin; k < end; k++)
    if (meets(program, &program->sharding.rows[k], first, count)) return true;
  return false;
}

bool rt_rows_leave_rest(const struct accel_program *program, int state) {
  return rt_rows_divide(program, state) && !rt_rows_divide(program, 0) && program->states[state].name[0] == '\0';
}

void rt_rows_collect(const struct accel_program *program, int state, int from, const char *own, size_t first,
                     size_t count, char *to) {
  size_t size = rt_dtype_size(program->states[state].dtype);
  if (!rt_rows_divide(program, state)) {
    rt_world_bring(from, own + first * size, to, count * size);
    return;
  }
  int begin, end;
  rt_rows_of(program, from, &begin, &end);
  for (int k = begin; k < end; k++) {
    struct accel_row row;
    const bool here = rt_rows_have(program, state, k, &row) && meets(program, &row, first, count);
    int shards = here ? program->mesh[ACCEL_DP_SHARD] : 0;
    for (int shard = 0; shard < shards; shard++) {
      struct common common = common_of(program, &row, shard, first, count);
      if (common.count > 0)
        rt_world_bring(from + shard * rt_stride_along(program, ACCEL_DP_SHARD), own + common.own * size,
                       to != NULL ? to + common.at * size : NULL, common.count * size);
    }
  }
}

void rt_rows_take(const struct accel_program *program, int state, char *own, size_t first, size_t count,
                  const char *all) {
  size_t size = rt_dtype_size(program->states[state].dtype);
  int shard = rt_rank_along(program, ACCEL_DP_SHARD);
  if (!rt_rows_divide(program, state)) {
    memcpy(own + first * size, all, count * size);
    return;
  }
  int begin, end;
  rt_rows_of(program, rt_world()->rank, &begin, &end);
  for (int k = begin; k < end; k++) {
    struct accel_row row;
    if (!rt_rows_have(program, state, k, &row)) continue;
    struct common common = common_of(program, &row, shard, first, count);
    if (common.count > 0) memcpy(own + common.own * size, all + common.at * size, common.count * size);
  }
}
