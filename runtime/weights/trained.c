#include "runtime/weights/trained.h"

#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/weights/layers.h"
#include "runtime/weights/shared_file.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/tensor_parts.h"
#include "runtime/weights/weights.h"

#include <omp.h>
#include <stdlib.h>

/* The program with whole tensors, whose only state is the parameters. */
static const struct accel_program *joined(const struct accel_program *program, struct problem *problem) {
  static const struct accel_state weights = {.file = "model", .name = "", .dtype = ACCEL_FLOAT32};
  static struct accel_program own;
  const struct accel_program *all = rt_layers_expand(program, problem);
  if (all == NULL || !rt_divides_tensors(all)) return all;
  own = *all;
  own.states = &weights;
  own.n_states = 1;
  return rt_tensor_parts_join(&own, problem);
}

const struct accel_program *rt_trained_join(const struct accel_program *program) {
  struct problem problem;
  if (rt_mesh_ranks(program) > 1) rt_world_join();
  program = joined(program, &problem);
  if (program == NULL) rt_fail(&problem, 1);
  return program;
}

void rt_trained_divide(const struct accel_program *program) {
  struct problem problem;
  if (rt_mesh_ranks(program) > 1) {
    if (!rt_world_divide(program, &problem)) rt_fail_together(&problem, 2);
    rt_world_set_threads(program);
  } else if (program->threads > 0) {
    omp_set_num_threads(program->threads);
  }
}

/* What a rank has of the weights in memory, of a file that all ranks read. */
static bool fill_own(const struct accel_program *program, const struct weights_file *file, void *weights,
                     struct problem *problem) {
  if (rt_weights_are_shared(file)) return rt_tensor_parts_read(program, file, weights, problem);
  rt_problem(problem, "ranks do not have the same file of weights, of which each reads its parts of layers");
  return rt_help(problem, "put the weights on a file system that all machines share");
}

/* Layers stay in the file, which stays open. */
static bool read_streamed(const struct accel_program *program, const char *path, void *weights,
                          struct problem *problem) {
  struct weights_file file;
  const bool opened = rt_weights_open_trained(&file, program, path, problem), divides = rt_divides_tensors(program);
  if (divides && !opened) rt_weights_are_shared(NULL);
  if (!opened || (divides && !fill_own(program, &file, weights, problem))) return false;
  if (!divides) rt_weights_fill(program, &file, weights);
  return program->reader->begin(program, &file, weights, problem);
}

void rt_trained_read(const struct accel_program *program, const char *path, void *weights) {
  struct problem problem;
  if (rt_streams(program)) {
    rt_world_require(read_streamed(program, path, weights, &problem), &problem, 1);
    return;
  }
  if (!rt_divides_tensors(program)) {
    if (!rt_weights_load_trained(program, path, weights, &problem)) rt_fail(&problem, 1);
    return;
  }
  struct weights_file file;
  bool opened = rt_weights_open_trained(&file, program, path, &problem);
  bool shared = rt_weights_are_shared(opened ? &file : NULL);
  bool read = !shared || rt_tensor_parts_read(program, &file, weights, &problem);
  if (opened) rt_weights_close(&file);
  if (shared) {
    rt_world_require(read, &problem, 1);
    return;
  }
  char *whole = rt_is_main() ? calloc((size_t)program->sharding.whole, sizeof(float)) : NULL;
  bool good =
      !rt_is_main() || whole != NULL || rt_problem(&problem, "no memory for the whole of tensors that ranks divide");
  good = good && (!rt_is_main() || rt_weights_load_trained(program, path, whole, &problem));
  rt_world_require(good, &problem, 1);
  rt_tensor_parts_scatter(program, 0, weights, whole);
  free(whole);
}

void rt_trained_leave(const struct accel_program *program) {
  if (rt_streams(program)) program->reader->end();
  if (rt_mesh_ranks(program) > 1) rt_world_leave();
}
