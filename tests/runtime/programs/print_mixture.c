/* Prints the first token of each window of several nanoGPT files: print_mixture LENGTH SHUFFLE SPLIT COUNT, then a path
 * and a weight for each part. When every file's tokens rise by 1 from one of their own, that is which file and where.
 */
#include "include/accel/trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_PARTS = 16 };

int main(int argc, char **argv) {
  static int32_t tokens[4096], targets[4096];
  struct accel_part parts[MOST_PARTS];
  char *flags[] = {argv[0], "--quiet", NULL};
  if (argc < 7 || argc > 5 + 2 * MOST_PARTS || argc % 2 == 0) return 2;
  int count = (argc - 5) / 2;
  for (int i = 0; i < count; i++) parts[i] = (struct accel_part){argv[5 + 2 * i], NULL, atof(argv[6 + 2 * i])};
  struct accel_program program = {
      .name = "print_mixture",
      .summary = "",
      .job_digest = "",
      .generator = "",
      .plan = "",
      .steps = 1,
      .data_seed = 7,
      .batch_size = 1,
      .micro_batches = 1,
      .source = {{NULL, ACCEL_NANOGPT}, {NULL, ACCEL_NANOGPT}},
      .parts = {{parts, count}},
      .eval_fraction = 0.1,
      .eval_iters = atoi(argv[4]), /* batches of one sample each */
      .shuffle = atoi(argv[2]) != 0,
      .sequence_length = atoi(argv[1]),
      .project_dir = ".",
  };
  struct accel_run *run = accel_start(&program, 2, flags);
  for (int position = 0; position < atoi(argv[4]); position++) {
    accel_load_sequences(run, (enum accel_split)atoi(argv[3]), position, 1, tokens, targets);
    printf("%d\n", tokens[0]);
  }
  return accel_finish(run);
}
