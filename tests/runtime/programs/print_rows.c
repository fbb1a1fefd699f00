/* Prints rows of a table: print_rows FILE FEATURES CLASSES SPLIT COUNT [LABELS]. CLASSES 0: the label is a value. With
 * LABELS both files are arrays of NumPy. */
#include "include/accel/trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_FEATURES = 16 };

int main(int argc, char **argv) {
  float features[MOST_FEATURES], value;
  int32_t class;
  char *flags[] = {argv[0], "--quiet", NULL};
  if (argc < 6 || argc > 7 || atoi(argv[2]) > MOST_FEATURES) return 2;
  int classes = atoi(argv[3]);
  const struct accel_input inputs[] = {
      {"features", NULL, ACCEL_FLOAT32, atoi(argv[2]), 0, 0, false},
      {"labels", NULL, classes > 0 ? ACCEL_INT32 : ACCEL_FLOAT32, 1, classes, 0, classes > 0}};
  const char *const arrays[] = {NULL, argc == 7 ? argv[6] : NULL};
  struct accel_program program = {
      .name = "print_rows",
      .summary = "",
      .job_digest = "",
      .generator = "",
      .plan = "",
      .steps = 1,
      .seed = 77,
      .data_seed = 77,
      .batch_size = 1,
      .micro_batches = 1,
      .source = {{argc == 6 ? argv[1] : NULL, argc == 6 ? ACCEL_CSV : ACCEL_NPY}, {NULL, ACCEL_CSV}},
      .parts = {{&(struct accel_part){argv[1], arrays, 0}, argc == 7}},
      .eval_fraction = 0.25,
      .eval_iters = atoi(argv[5]), /* batches of one row each */
      .shuffle = true,
      .inputs = inputs,
      .n_inputs = 2,
      .project_dir = ".",
  };
  struct accel_run *run = accel_start(&program, 2, flags);
  enum accel_split split = (enum accel_split)atoi(argv[4]);
  int count = atoi(argv[5]);
  for (int row = 0; row < count; row++) {
    accel_load_input(run, split, row, 1, &inputs[0], features);
    accel_load_input(run, split, row, 1, &inputs[1], classes > 0 ? (void *)&class : &value);
    for (int i = 0; i < inputs[0].width; i++) printf("%.9g,", (double)features[i]);
    printf("%.9g\n", classes > 0 ? (double)class : (double)value);
  }
  return accel_finish(run);
}
