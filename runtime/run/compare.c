/* Whether all ranks are at the same work. */
#include "runtime/process/world.h"

#include "runtime/data/data.h"
#include "runtime/files/checksum.h"
#include "runtime/files/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What must be equal. */
enum { OF_JOB, OF_PROGRAM, OF_TRAINING_DATA, OF_EVALUATION_DATA, DIGESTS };

/* The whole of small files; of large ones their size and blocks from all over them. */
static uint64_t sum_of(const uint8_t *bytes, size_t size) {
  enum { BLOCK = 4096, BLOCKS = 4096 };
  struct checksum sum = rt_checksum_start();
  size_t stride = size / BLOCKS > BLOCK ? size / BLOCKS : BLOCK;
  rt_checksum_add(&sum, &size, sizeof size);
  for (size_t at = 0; at < size; at += stride) rt_checksum_add(&sum, bytes + at, size - at < BLOCK ? size - at : BLOCK);
  return rt_checksum_end(&sum);
}

static uint64_t sum_of_program(void) {
  struct mapping mapping;
  struct problem problem;
  if (!rt_map(&mapping, "/proc/self/exe", "", &problem)) return 0;
  uint64_t sum = sum_of(mapping.bytes, mapping.size);
  rt_unmap(&mapping);
  return sum;
}

/* Of all files of a source; of a table its numbers, of other files their bytes. */
static uint64_t sum_of_data(const struct data_files *source) {
  struct checksum all = rt_checksum_start();
  for (size_t i = 0; source->files != NULL && i < source->paths.count; i++) {
    const struct data_file *file = &source->files[i];
    size_t numbers = (size_t)file->table.rows * (size_t)file->table.columns * sizeof *file->table.values;
    uint64_t sums[] = {sum_of((const uint8_t *)file->table.values, file->table.values != NULL ? numbers : 0),
                       sum_of(file->mapping.bytes, file->mapping.size), sum_of(file->labels.bytes, file->labels.size)};
    rt_checksum_add(&all, sums, sizeof sums);
  }
  return rt_checksum_end(&all);
}

/* The first rank that is not as rank 0, and in what. */
static void tell_difference(const uint64_t *all, int ranks) {
  static const char *const what[] = {"job", "program", "training data", "evaluation data"};
  struct problem problem;
  for (int rank = 1; rank < ranks; rank++)
    for (int i = 0; i < DIGESTS; i++) {
      if (all[rank * DIGESTS + i] == all[i]) continue;
      rt_problem(&problem, "the %s of rank %d is not that of rank 0", what[i], rank);
      rt_help(&problem, "let all machines have the same files");
      rt_fail_together(&problem, 1);
    }
}

void rt_world_compare(const struct accel_program *program, const struct data *data) {
  int ranks = rt_world()->ranks;
  if (ranks == 1) return;
  uint64_t own[DIGESTS] = {rt_checksum(program->job_digest, strlen(program->job_digest)), sum_of_program(),
                           sum_of_data(&data->source[ACCEL_TRAIN]), sum_of_data(&data->source[ACCEL_EVAL])};
  uint64_t *all = calloc((size_t)ranks, sizeof own);
  struct problem problem;
  rt_problem(&problem, "no memory to compare ranks");
  rt_world_require(all != NULL, &problem, 1);
  rt_world_gather(own, all, sizeof own);
  tell_difference(all, ranks);
  free(all);
}
