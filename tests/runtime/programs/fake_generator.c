/* What an emitted generator does with the runtime, around fake_trainer's model. */
#include "include/accel/generator.h"

#include <stdlib.h>

enum { LENGTH = 32, VOCABULARY = 256 };

static const struct accel_tensor tensors[] = {{"bias", 0, 1, {VOCABULARY}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32}};

int main(int argc, char **argv) {
  const char *vocabulary = getenv("FAKE_VOCABULARY");
  struct accel_program program = {
      .name = "fake",
      .summary = "1 layer, 256 parameters, float32",
      .job_digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
      .generator = "accel-gen 0.1.0",
      .plan = "model     fake: 256 parameters",
      .seed = 1337,
      .tensors = tensors,
      .n_tensors = 1,
      .start = {.ignored = (const char *const[]){"*"}, .n_ignored = 1},
      .weights_bytes = VOCABULARY * sizeof(float),
      .arena_bytes = VOCABULARY * sizeof(float),
      .sequence_length = LENGTH,
      .vocabulary = vocabulary != NULL ? atoi(vocabulary) : VOCABULARY,
      .project_dir = "runs/fake",
  };
  int32_t tokens[LENGTH];
  struct accel_generation *run = accel_generation_start(&program, argc, argv);
  float *bias = accel_generation_arena(run);
  accel_generation_weights(run, bias);
  while (accel_generation_window(run, tokens) >= 0) accel_generation_next(run, bias, program.vocabulary);
  return accel_generation_finish(run);
}
