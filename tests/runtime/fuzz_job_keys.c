/* Any bytes as the job.json of a checkpoint: it is refused, or its keys are compared. */
#include "runtime/checkpoint/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char folder[] = "/tmp/accel-keys-XXXXXX", path[64];

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const struct accel_key keys[] = {{"optimizer.lr", "0.001", true}, {"training.seed", "7", false}};
  static const struct accel_program program = {
      .keys = keys, .n_keys = 2, .job_digest = "5e2d", .generator = "accel-gen 0.1.0"};
  struct problem problem;
  char changed[100];
  if (path[0] == '\0') {
    if (mkdtemp(folder) == NULL) abort();
    snprintf(path, sizeof path, "%s/job.json", folder);
  }
  FILE *file = fopen(path, "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
  bool resumes = rt_checkpoint_compare(folder, &program, changed, sizeof changed, &problem);
  if (!resumes && strstr(problem.what, folder) == NULL) __builtin_trap();
  if (resumes && strlen(changed) >= sizeof changed) __builtin_trap();
  return 0;
}
