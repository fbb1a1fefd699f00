/* Prints rows of a table: print_rows FILE FEATURES CLASSES SPLIT COUNT. CLASSES 0: the label is a value. */
#include "runtime/trainer.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_FEATURES = 16 };

int main(int argc, char **argv) {
  char *flags[] = {argv[0], NULL};
  if (argc != 6 || atoi(argv[2]) > MOST_FEATURES) return 2;
  struct accel_program program = {
      .name = "print_rows",
      .summary = "",
      .job_digest = "",
      .generator = "",
      .plan = "",
      .steps = 1,
      .seed = 77,
      .samples_per_step = 1,
      .source = {{argv[1], ACCEL_CSV}, {NULL, ACCEL_CSV}},
      .eval_fraction = 0.25,
      .shuffle = true,
      .features = atoi(argv[2]),
      .classes = atoi(argv[3]),
      .label_is_class = atoi(argv[3]) > 0,
      .project_dir = ".",
  };
  struct accel_run *run = accel_start(&program, 1, flags);
  for (int position = 0; position < atoi(argv[5]); position++) {
    float features[MOST_FEATURES], value = 0;
    int32_t class = 0;
    if (program.label_is_class)
      accel_load_classes(run, (enum accel_split)atoi(argv[4]), position, 1, features, &class);
    else
      accel_load_values(run, (enum accel_split)atoi(argv[4]), position, 1, features, &value);
    for (int i = 0; i < program.features; i++) printf("%.9g,", (double)features[i]);
    printf("%.9g\n", program.label_is_class ? (double)class : (double)value);
  }
  return accel_finish(run);
}
