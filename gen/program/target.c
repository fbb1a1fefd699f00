#include "gen/program/target.h"

#include "gen/ir/op.h"
#include "gen/program/processor.h"

static const char *const cpu_templates[] = {"devices/cpu", "kernels", NULL};

static const struct target cpu = {.name = "cpu",
                                  .templates = cpu_templates,
                                  .suffixes = {".c"},
                                  .n_texts = 1,
                                  .has_variants = true,
                                  .sequential = true,
                                  .shares = true,
                                  .receives_apart = true};

static const char *const architectures[] = {"80", "90a", "100", NULL};

/* Each chunk of a loss adds to the gradient of its matmul's weights, V x C of float32: 8 V C bytes that are read and
 * written, for 6 V C operations a row. 4096 rows are 3,072 operations a byte, ten times what a GPU does in the time of
 * one (H100: 295). 32 MiB is what cuBLASLt's guide asks for on Hopper. The sums are 16 MiB: 256 chunks of the widest
 * rows that are usual. */
static const char *const cuda_templates[] = {"devices/cuda", "kernels", NULL};
static const struct target cuda = {.name = "cuda",
                                   .templates = cuda_templates,
                                   .casts_as_cuda = true,
                                   .epilogues = EPILOGUE_BIT(EPILOGUE_BIAS) | EPILOGUE_BIT(EPILOGUE_GELU) |
                                                EPILOGUE_BIT(EPILOGUE_RELU) | EPILOGUE_BIT(EPILOGUE_DGELU) |
                                                EPILOGUE_BIT(EPILOGUE_DRELU) | EPILOGUE_BIT(EPILOGUE_SUM),
                                   .takes_sums = true,
                                   .library_chooses = true,
                                   .bits16_chunks = true,
                                   .chunk_rows = 4096,
                                   .operand_bytes = 16,
                                   .suffixes = {".c", ".cu"},
                                   .n_texts = 2,
                                   .compiler = "nvcc -std=c++17 -O3",
                                   .architectures = architectures,
                                   .gathers = true,
                                   .traces = true,
                                   .progress_bytes = 256,
                                   .workspace_bytes = 32 << 20,
                                   .sums = 4 << 20};

const struct target *target_of(const struct job *job) {
  return job->devices.kind == DEVICE_CUDA ? &cuda : &cpu;
}

/* Whether matmuls of bfloat16 are instructions, where a program for the machine at hand is compiled on it. */
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

const char *target_matmuls(const struct program *program) {
  struct arena *arena = program->arena;
  if (!dtype_is_bits16(program->bits16)) return "";
  const char *name = dtype_name(program->bits16);
  if (program->target->casts_as_cuda) return arena_printf(arena, "matmuls   %s, on tensor cores\n", name);
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
