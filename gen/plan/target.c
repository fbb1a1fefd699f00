#include "gen/plan/target.h"

#include "gen/ir/op.h"

static const struct target cpu = {.name = "cpu", .suffixes = {".c"}, .n_texts = 1, .chooses = true};

/* 32 MiB is what cuBLASLt's guide asks for on Hopper. The sums are 16 MiB: 256 chunks of the widest rows that are
 * usual. */
static const struct target cuda = {.name = "cuda",
                                   .casts_as_cuda = true,
                                   .epilogues = EPILOGUE_BIT(EPILOGUE_BIAS) | EPILOGUE_BIT(EPILOGUE_GELU) |
                                                EPILOGUE_BIT(EPILOGUE_RELU) | EPILOGUE_BIT(EPILOGUE_DGELU) |
                                                EPILOGUE_BIT(EPILOGUE_DRELU) | EPILOGUE_BIT(EPILOGUE_SUM),
                                   .suffixes = {".c", ".cu"},
                                   .n_texts = 2,
                                   .progress_bytes = 256,
                                   .workspace_bytes = 32 << 20,
                                   .sums = 4 << 20};

const struct target *target_of(const struct job *job, enum program_kind kind) {
  return kind == PROGRAM_TRAIN && job->devices.kind == DEVICE_CUDA ? &cuda : &cpu;
}

/* The processor at hand stands for the one on which the program will run: trainers are built with -march=native. */
#if defined __x86_64__ && defined __GNUC__
static bool multiplies(enum dtype dtype) {
  __builtin_cpu_init();
  return dtype == DTYPE_BFLOAT16 && __builtin_cpu_supports("avx512bf16");
}
#else
static bool multiplies(enum dtype dtype) {
  (void)dtype;
  return false;
}
#endif

const char *target_products(const struct program *program) {
  struct arena *arena = program->arena;
  if (!dtype_is_low(program->low)) return "";
  const char *name = dtype_name(program->low);
  if (program->target->casts_as_cuda) return arena_printf(arena, "products  %s, on tensor cores\n", name);
  if (program->job->training.deterministic)
    return arena_printf(arena, "products  %s, emulated: deterministic widens blocks to float32\n", name);
  if (multiplies(program->low))
    return arena_printf(arena, "products  %s, native: this processor has AVX512-BF16\n", name);
  return arena_printf(arena, "products  %s, emulated: blocks are widened to float32 on a processor like this one\n",
                      name);
}
