/* Prints rows of a table: print_rows FILE FEATURES CLASSES SPLIT COUNT [LABELS]. CLASSES 0: the label is a value. With
 * LABELS both files are arrays of NumPy. */
#include "include/accel/trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_FEATURES = 16 };

int main(int argc, char **argv) {
  float features[MOST_FEATURES], values[1];
  int32_t classes[1];
  char *flags[] = {argv[0], NULL};
  if (argc < 6 || argc > 7 || atoi(argv[2]) > MOST_FEATURES) return 2;
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
      .parts = {{&(struct accel_part){argv[1], argc == 7 ? argv[6] : NULL, 0}, argc == 7}},
      .eval_fraction = 0.25,
      .eval_iters = atoi(argv[5]), /* batches of one row each */
      .shuffle = true,
      .features = atoi(argv[2]),
      .classes = atoi(argv[3]),
      .label_is_class = atoi(argv[3]) > 0,
      .project_dir = ".",
  };
  struct accel_run *run = accel_start(&program, 1, flags);
  enum accel_split split = (enum accel_split)atoi(argv[4]);
  int count = atoi(argv[5]);
  for (int row = 0; row < count; row++) {
    if (program.label_is_class)
      accel_load_classes(run, split, row, 1, features, classes);
    else
      accel_load_values(run, split, row, 1, features, values);
    for (int i = 0; i < program.features; i++) printf("%.9g,", (double)features[i]);
    printf("%.9g\n", program.label_is_class ? (double)classes[0] : (double)values[0]);
  }
  return accel_finish(run);
}
