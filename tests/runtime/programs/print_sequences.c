/* Prints the first token of each sequence: print_sequences FILE LENGTH SHUFFLE SPLIT COUNT. With a nanoGPT file whose
 * token at i is i, that is where the sequence begins. */
#include "include/accel/trainer.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  static int32_t tokens[4096], targets[4096];
  char *flags[] = {argv[0], "--quiet", NULL};
  if (argc != 6) return 2;
  struct accel_program program = {
      .name = "print_sequences",
      .summary = "",
      .job_digest = "",
      .generator = "",
      .plan = "",
      .steps = 1,
      .seed = 0x123456789abcdef,
      .data_seed = 0x123456789abcdef,
      .batch_size = 1,
      .micro_batches = 1,
      .source = {{argv[1], ACCEL_NANOGPT}, {NULL, ACCEL_NANOGPT}},
      .eval_fraction = 0.1,
      .eval_iters = atoi(argv[5]), /* batches of one sample each */
      .shuffle = atoi(argv[3]) != 0,
      .sequence_length = atoi(argv[2]),
      .project_dir = ".",
  };
  struct accel_run *run = accel_start(&program, 2, flags);
  for (int position = 0; position < atoi(argv[5]); position++) {
    accel_load_sequences(run, (enum accel_split)atoi(argv[4]), position, 1, tokens, targets);
    for (int i = 0; i < program.sequence_length; i++)
      if (tokens[i] != tokens[0] + i || targets[i] != tokens[i] + 1) return 3;
    printf("%d\n", tokens[0]);
  }
  return accel_finish(run);
}
