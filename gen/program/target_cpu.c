#include "gen/program/processor.h"
#include "gen/program/target.h"

/* Whether matmuls of bfloat16 are instructions, where a program for the current machine is compiled on it. */
#if defined __x86_64__ && defined __GNUC__
static bool machine_multiplies(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16");
}
#else
static bool machine_multiplies(void) {
  return false;
}
#endif

static bool multiplies(const struct processor *processor, enum dtype dtype) {
  bool named = processor->lanes > 0;
  return dtype == DTYPE_BFLOAT16 && (named ? processor->multiplies : machine_multiplies());
}

static const char *matmuls(const struct program *program, const char *name) {
  struct arena *arena = program->arena;
  if (program->job->training.deterministic)
    return arena_printf(arena, "matmuls   %s, emulated: deterministic widens blocks to float32\n", name);
  const struct processor *processor = processor_of(program->job);
  const char *whose =
      processor->lanes > 0 ? arena_printf(arena, "a processor with %s", processor->title) : "this processor";
  if (multiplies(processor, program->bits16))
    return arena_printf(arena, "matmuls   %s, native: %s has AVX512-BF16\n", name, whose);
  return arena_printf(arena, "matmuls   %s, emulated: %s does not multiply it, blocks are widened to float32\n", name,
                      whose);
}

static const char *const templates[] = {"devices/cpu", "kernels", NULL};
static const char *const sources[] = {"runtime/onednn/", NULL};
static const char *const of_ranks[] = {"runtime/mpi/", NULL};

const struct target target_cpu = {
    .name = "cpu",
    .matmuls = matmuls,
    .is_host = true,
    .texts = {.templates = templates, .count = 1, .suffixes = {".c"}},
    .build = {.packages = {"accel-runtime", "accel-runtime-mpi"}, .sources = sources, .of_ranks = of_ranks},
    .kernels = {.in_order = true, .has_variants = true, .forks = true},
    .library = {.packs = true},
    .ranks = {.shared_memory = true, .receives_separately = true}};
