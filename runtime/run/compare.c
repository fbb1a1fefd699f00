#include "runtime/run/compare.h"

#include "runtime/files/checksum.h"
#include "runtime/files/mapping.h"
#include "runtime/process/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must be equal. */
enum { OF_JOB, OF_PROGRAM, OF_TRAINING_DATA, OF_EVALUATION_DATA, DIGESTS };

static uint64_t sum_of_program(void) {
  struct mapping mapping;
  struct problem problem;
  if (!rt_map(&mapping, "/proc/self/exe", "", &problem)) return 0;
  uint64_t sum = rt_checksum_sampled(mapping.bytes, mapping.size, RT_MOST_PIECES);
  rt_unmap(&mapping);
  return sum;
}

/* Of all files of a source. */
static uint64_t sum_of_data(const struct data_files *source) {
  struct checksum all = rt_checksum_start();
  for (size_t i = 0; source->files != NULL && i < source->paths.count; i++) {
    uint64_t sum = rt_data_file_sum(&source->files[i], RT_MOST_PIECES);
    rt_checksum_add(&all, &sum, sizeof sum);
  }
  return rt_checksum_end(&all);
}

/* The first rank that is not as rank 0, and in what. */
static void report_difference(const uint64_t *all, int ranks) {
  static const char *const what[] = {"job", "program", "training data", "evaluation data"};
  struct problem problem;
  for (int rank = 1; rank < ranks; rank++)
    for (int i = 0; i < DIGESTS; i++) {
      if (all[rank * DIGESTS + i] == all[i]) continue;
      rt_problem(&problem, "the %s of rank %d is not that of rank 0", what[i], rank);
      rt_help(&problem, "copy the same files to all machines");
      rt_fail_together(&problem, 1);
    }
}

void rt_compare_ranks(const struct accel_program *program, const struct data *data) {
  int ranks = rt_world()->ranks;
  if (ranks == 1) return;
  uint64_t own[DIGESTS] = {rt_checksum(program->job_digest, strlen(program->job_digest)), sum_of_program(),
                           sum_of_data(&data->source[ACCEL_TRAIN]), sum_of_data(&data->source[ACCEL_EVAL])};
  uint64_t *all = calloc((size_t)ranks, sizeof own);
  struct problem problem;
  rt_problem(&problem, "no memory to compare ranks");
  rt_world_require(all != NULL, &problem, 1);
  rt_world_gather(own, all, sizeof own);
  report_difference(all, ranks);
  free(all);
}
