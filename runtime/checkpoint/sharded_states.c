#include "runtime/checkpoint/sharded_states.h"

#include "runtime/base/dtype.h"
#include "runtime/process/world.h"
#include "runtime/weights/sharded_rows.h"
#include "runtime/weights/tensor_parts.h"
#include "runtime/weights/tensors.h"

#include <stdlib.h>
#include <string.h>

bool rt_is_sharded(const struct accel_program *program, int state) {
  return rt_rows_divide(program, state);
}

bool rt_leaves_sharded(const struct accel_program *program) {
  for (int i = 0; i < program->n_states; i++)
    if (program->states[i].name[0] == '\0' && rt_is_sharded(program, i)) return true;
  return false;
}

static bool is_among(const struct accel_program *program, int state, enum state_set states) {
  return states == STATES_ALL || program->states[state].name[0] == '\0';
}

bool rt_sharded_open(const struct accel_program *program, char *const *own, char **arrays, enum state_set states,
                     struct problem *problem) {
  for (int i = 0; i < program->n_states; i++) {
    const struct accel_state *state = &program->states[i];
    if (!is_among(program, i, states)) continue;
    if (!rt_is_sharded(program, i))
      arrays[i] = own[i];
    else if (rt_is_main() && arrays[i] == NULL)
      arrays[i] = calloc((size_t)program->sharding.whole, rt_dtype_size(state->dtype));
    if (rt_is_main() && arrays[i] == NULL)
      return rt_problem(problem, "no memory for the whole of '%s' of all ranks, %lld elements", state->name,
                        (long long)program->sharding.whole);
  }
  return true;
}

void rt_sharded_close(const struct accel_program *program, char **arrays) {
  for (int i = 0; arrays != NULL && i < program->n_states; i++) {
    if (!rt_is_sharded(program, i)) continue;
    free(arrays[i]);
    arrays[i] = NULL;
  }
}

void rt_sharded_collect_state(const struct accel_program *program, int which, char *const *own, char *whole) {
  if (rt_divides_tensors(program)) {
    rt_tensor_parts_collect(program, which, own, whole);
    return;
  }
  if (rt_rows_leave_rest(program, which) && whole != NULL) memcpy(whole, own[0], program->weights_bytes);
  rt_rows_collect(program, which, 0, own[which], 0, (size_t)program->sharding.whole, whole);
}

void rt_sharded_collect(const struct accel_program *program, char *const *own, char *const *arrays,
                        enum state_set states) {
  for (int i = 0; i < program->n_states; i++) {
    if (!rt_is_sharded(program, i) || !is_among(program, i, states)) continue;
    rt_sharded_collect_state(program, i, own, arrays[i]);
  }
}

/* Row `k` of a state, and what all ranks have of it. */
static size_t row_bytes(const struct accel_program *program, int state, int k, struct accel_row *row) {
  if (!rt_rows_have(program, state, k, row)) return 0;
  const size_t count = row->shard_size * ((size_t)program->mesh[ACCEL_DP_SHARD] - 1) + row->last;
  return count * rt_dtype_size(program->states[state].dtype);
}

void rt_sharded_scatter(const struct accel_program *program, int which, char *own, const char *whole) {
  size_t size = rt_dtype_size(program->states[which].dtype);
  size_t shards = (size_t)program->mesh[ACCEL_DP_SHARD], shard = (size_t)rt_rank_along(program, ACCEL_DP_SHARD);
  size_t most = 1;
  struct accel_row row;
  if (rt_divides_tensors(program)) {
    rt_tensor_parts_scatter(program, which, own, whole);
    return;
  }
  for (int k = 0; k < program->sharding.n_rows; k++) {
    size_t bytes = row_bytes(program, which, k, &row);
    most = bytes > most ? bytes : most;
  }
  char *all = malloc(most);
  struct problem problem;
  rt_problem(&problem, "no memory for %zu bytes of '%s'", most, program->states[which].name);
  rt_world_require(all != NULL, &problem, 1);
  for (int k = 0; k < program->sharding.n_rows; k++) {
    size_t bytes = row_bytes(program, which, k, &row);
    if (bytes == 0) continue;
    if (whole != NULL) memcpy(all, whole + row.first * size, bytes);
    rt_world_broadcast(all, bytes);
    memcpy(own + row.own * size, all + shard * row.shard_size * size,
           (shard + 1 < shards ? row.shard_size : row.last) * size);
  }
  free(all);
}
