/* accel-gen checkpoint: the checkpoints of a run, from outside. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/commands.h"
#include "runtime/checkpoint.h"
#include "runtime/folders.h"
#include "runtime/shards.h"

static const char usage[] =
    "usage: accel-gen checkpoint list DIR             the checkpoints of a project's folder\n"
    "       accel-gen checkpoint show DIR             the files and tensors of one\n"
    "       accel-gen checkpoint verify DIR           whether all its files are as they were written\n"
    "       accel-gen checkpoint merge DIR -o FILE    shards of a model as one safetensors file\n";

static int fail(const struct problem *problem) {
  fprintf(stderr, "accel-gen checkpoint: error: %s\n", problem->what);
  if (problem->help[0] != '\0') fprintf(stderr, "    help: %s\n", problem->help);
  return STATUS_CANNOT;
}

static uint64_t bytes_of(const struct manifest *manifest) {
  uint64_t bytes = 0;
  for (int i = 0; i < manifest->count; i++) bytes += manifest->files[i].sum.size;
  return bytes;
}

/* One line for each, newest last. Returns how many are whole; -1 when the folder cannot be read. */
static int list_in(const char *folder, const char *prefix, struct problem *problem) {
  struct numbers numbers;
  int whole = 0;
  if (!rt_numbers_find(&numbers, folder, prefix, problem)) return -1;
  for (int i = 0; i < numbers.count; i++) {
    char path[4096];
    struct manifest manifest;
    struct problem damage;
    snprintf(path, sizeof path, "%.4000s/%s%" PRId64, folder, prefix, numbers.items[i]);
    if (!rt_checkpoint_verify(path, &manifest, &damage)) {
      printf("%s  damaged: %s\n", path, damage.what);
      continue;
    }
    printf("%s  step %" PRId64 "  %.1f MB\n", path, manifest.step, (double)bytes_of(&manifest) / 1e6);
    rt_manifest_free(&manifest);
    whole++;
  }
  rt_numbers_free(&numbers);
  return whole;
}

static int list(const char *folder) {
  struct problem problem;
  char inner[4096];
  snprintf(inner, sizeof inner, "%.4000s/checkpoints", folder);
  const char *const folders[] = {inner, folder, folder}, *const prefixes[] = {"checkpoint_", "checkpoint_", "step_"};
  int whole = 0;
  for (int i = 0; i < 3; i++) {
    int found = list_in(folders[i], prefixes[i], &problem);
    if (found < 0) return fail(&problem);
    whole += found;
  }
  if (whole > 0) return STATUS_OK;
  fprintf(stderr, "accel-gen checkpoint: error: %s: no whole checkpoint\n", folder);
  return STATUS_CANNOT;
}

static int verify(const char *folder) {
  struct manifest manifest;
  struct problem problem;
  if (!rt_checkpoint_verify(folder, &manifest, &problem)) return fail(&problem);
  printf("%s: step %" PRId64 ", %d files of %.1f MB, all as they were written\n", folder, manifest.step, manifest.count,
         (double)bytes_of(&manifest) / 1e6);
  rt_manifest_free(&manifest);
  return STATUS_OK;
}

static bool is_tensors(const char *name) {
  size_t length = strlen(name), ending = strlen(".safetensors");
  return length > ending && strcmp(name + length - ending, ".safetensors") == 0;
}

static bool show_tensors(const char *folder, const char *name, struct problem *problem) {
  char path[4096], shape[200];
  struct shards shards;
  if (!is_tensors(name)) return true;
  snprintf(path, sizeof path, "%.3800s/%s", folder, name);
  if (!rt_shards_open(&shards, path, "", problem)) return false;
  for (int i = 0; i < shards.n_tensors; i++)
    printf("  %-48s %-5s %s\n", shards.by_name[i]->name, shards.by_name[i]->dtype,
           rt_shape_text(shape, sizeof shape, shards.by_name[i]->rank, shards.by_name[i]->shape));
  rt_shards_close(&shards);
  return true;
}

static int show(const char *folder) {
  struct manifest manifest;
  struct problem problem;
  if (!rt_checkpoint_verify(folder, &manifest, &problem)) return fail(&problem);
  printf("%s: step %" PRId64 "\n", folder, manifest.step);
  bool shown = true;
  for (int i = 0; shown && i < manifest.count; i++) {
    printf("%s  %" PRIu64 " bytes, %016" PRIx64 "\n", manifest.files[i].name, manifest.files[i].sum.size,
           manifest.files[i].sum.xxh64);
    shown = show_tensors(folder, manifest.files[i].name, &problem);
  }
  rt_manifest_free(&manifest);
  return shown ? STATUS_OK : fail(&problem);
}

static bool view_of(const struct stored_tensor *stored, struct tensor_view *view, struct problem *problem) {
  *view = (struct tensor_view){.name = (char *)(uintptr_t)stored->name,
                               .rank = stored->rank,
                               .bytes = (char *)(uintptr_t)stored->bytes,
                               .size = stored->size};
  memcpy(view->shape, stored->shape, sizeof view->shape);
  for (enum accel_dtype dtype = ACCEL_FLOAT32; dtype <= ACCEL_UINT8; dtype++)
    if (strcmp(rt_dtype_name(dtype), stored->dtype) == 0) return view->dtype = dtype, true;
  return rt_problem(problem, "tensor '%s' is of dtype %s, which is not written", stored->name, stored->dtype);
}

static int merge(const char *path, const char *output) {
  struct problem problem;
  struct shards shards;
  if (!rt_shards_open(&shards, path, "give a folder, an index or a file of safetensors", &problem))
    return fail(&problem);
  struct tensor_view *views = calloc((size_t)shards.n_tensors + 1, sizeof *views);
  bool good = views != NULL || rt_problem(&problem, "no memory for the list of tensors");
  for (int i = 0; good && i < shards.n_tensors; i++) good = view_of(shards.by_name[i], &views[i], &problem);
  good = good && rt_safetensors_write(output, BESIDE, views, shards.n_tensors, NULL, &problem);
  if (good) printf("%s: %d tensors of %d files\n", output, shards.n_tensors, shards.count);
  free(views);
  rt_shards_close(&shards);
  return good ? STATUS_OK : fail(&problem);
}

int command_checkpoint(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    fputs(usage, stdout);
    return STATUS_OK;
  }
  if (argc == 3 && strcmp(word, "list") == 0) return list(argv[2]);
  if (argc == 3 && strcmp(word, "show") == 0) return show(argv[2]);
  if (argc == 3 && strcmp(word, "verify") == 0) return verify(argv[2]);
  if (argc == 5 && strcmp(word, "merge") == 0 && strcmp(argv[3], "-o") == 0) return merge(argv[2], argv[4]);
  fputs(usage, stderr);
  return STATUS_BAD_JOB;
}
