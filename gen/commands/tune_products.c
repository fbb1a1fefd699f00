/* accel-gen tune of a job for GPUs: which of cuBLASLt's algorithms computes each product fastest. What is measured is
 * the trainer itself, which times them where its products run (runtime/cuda/measure.c); the table names the fastest by
 * its configuration, and the program that is made by the table takes it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/bundle.h"
#include "gen/commands/files.h"
#include "gen/commands/process.h"
#include "gen/commands/tune.h"
#include "gen/ir/op.h"
#include "gen/plan/kernels.h"
#include "gen/plan/parts.h"

static const char format[] = "accel-measured-1";

/* ---- Measuring ---- */

static bool has_gpu(void) {
  return access("/proc/driver/nvidia/version", R_OK) == 0 || access("/dev/dxg", R_OK) == 0;
}

/* Builds the trainer and lets it run a step; the file that it then has written, NULL once a message stands on standard
 * error. */
static const char *measure(const struct options *options, const char *folder) {
  struct arena *arena = options->arena;
  const char *program = arena_printf(arena, "%s/trainer", folder), *file = arena_printf(arena, "%s/measured", folder);
  struct words command = words_in(arena);
  if (!has_gpu()) {
    fprintf(stderr, "accel-gen: no GPU to measure on: run the trainer where one is, with ACCEL_MEASURE=FILE in its "
                    "environment and --steps 1, then accel-gen tune JOB --measured FILE -o TABLE\n");
    return NULL;
  }
  if (!bundle_build(options, arena_printf(arena, "%s/bundle", folder), program)) return NULL;
  words_add(&command, program);
  words_split(&command, "--steps 1 --project-dir");
  words_add(&command, arena_printf(arena, "%s/run", folder));
  setenv("ACCEL_MEASURE", file, 1);
  bool good = process_read(&command) != NULL;
  unsetenv("ACCEL_MEASURE");
  if (good) return file;
  fprintf(stderr, "accel-gen: the trainer that was to be measured did not run\n");
  return NULL;
}

/* ---- The table ---- */

static const struct kernel *kernel_named(const struct program *program, const char *name) {
  for (int i = 0; i < program->n_kernels; i++)
    if (strcmp(program->kernels[i]->name, name) == 0) return program->kernels[i];
  return NULL;
}

/* One product: the first way is the library's own choice. False where it is none of the program's. */
static bool add_product(struct tuning *table, const struct program *program, const char *name, const json_t *ways) {
  const struct kernel *kernel = kernel_named(program, name);
  const int64_t threads = program->job->devices.threads;
  size_t i;
  const json_t *way;
  if (kernel == NULL) return false;
  struct tuned entry = {.subject = choice_subject(program, kernel),
                        .threads = threads > 0 ? threads : table->machine.cores,
                        .flops = op_flops(kernel->node),
                        .bytes = kernel_bytes(kernel)};
  json_array_foreach(ways, i, way) {
    const char *word = json_string_value(json_object_get(way, "way"));
    double seconds = json_number_value(json_object_get(way, "seconds"));
    if (word == NULL || !(seconds > 0)) return false;
    tuning_put(table, &entry, i == 0 ? library_way : arena_string(table->arena, word), seconds);
  }
  return true;
}

/* Products of a loss in chunks are several of one kernel, and stay as they are. */
static int add_products(struct tuning *table, const struct program *program, json_t *products) {
  const char *name;
  json_t *ways;
  int count = 0;
  json_object_foreach(products, name, ways) count += add_product(table, program, name, ways);
  return count;
}

static const char *text_at(struct arena *arena, const json_t *root, const char *key) {
  const char *text = json_string_value(json_object_get(root, key));
  return text != NULL ? arena_string(arena, text) : "";
}

static int read_measured(const struct options *options, const struct travel *travel, const json_t *root,
                         const char *measured, const char *file) {
  struct tuning *fresh = tuning_new(options->arena);
  fresh->machine.processor = text_at(options->arena, root, "device");
  fresh->machine.cores = json_integer_value(json_object_get(root, "cores"));
  fresh->library = text_at(options->arena, root, "library");
  bool good = strcmp(text_at(options->arena, root, "format"), format) == 0 && fresh->machine.cores > 0;
  struct tuning *table = good ? tune_open(options, file, fresh) : fresh;
  if (good && add_products(table, travel->program, json_object_get(root, "products")) > 0)
    return tune_finish(travel, table, file);
  fprintf(stderr,
          "accel-gen: %s holds no measurements of this job's products: its trainer writes it, with "
          "ACCEL_MEASURE=FILE in the environment\n",
          measured);
  return STATUS_BAD_JOB;
}

int tune_products(const struct options *options, const char *file) {
  struct arena *arena = options->arena;
  struct travel travel = {.options = options,
                          .arena = arena,
                          .diags = diagnostics_in(arena),
                          .kind = PROGRAM_TRAIN,
                          .tuning = tuning_new(arena)};
  int status = travel_to_program(&travel);
  if (travel.diags.count > 0) diag_print(&travel.diags, stderr, options->colour);
  if (status != STATUS_OK) return status;
  const char *folder = make_folder(arena);
  if (folder == NULL) return STATUS_CANNOT;
  const char *measured = options->measured != NULL ? options->measured : measure(options, folder);
  json_t *root = measured != NULL ? json_load_file(measured, 0, NULL) : NULL;
  status = measured != NULL ? read_measured(options, &travel, root, measured, file) : STATUS_CANNOT;
  json_decref(root);
  remove_folder(arena, folder);
  return status;
}
