#include "gen/program/target.h"

/* Programs have no numbers of 16 bits (gen/spec/device.c). */
static const char *matmuls(const struct program *program, const char *name) {
  (void)program, (void)name;
  return "";
}

static const char *const templates[] = {"devices/xla", NULL};
static const char *const sources[] = {"runtime/xla/", NULL};
static const char *const of_ranks[] = {NULL};

const struct target target_xla = {
    .name = "xla",
    .matmuls = matmuls,
    .module = ".mlir",
    .texts = {.templates = templates, .count = 1, .suffixes = {".c"}},
    .build = {.packages = {"accel-runtime-xla"}, .sources = sources, .of_ranks = of_ranks},
    .memory = {.separate = true},
    .kernels = {.in_order = true}};
