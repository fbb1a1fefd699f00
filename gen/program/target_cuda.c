#include "gen/ir/op.h"
#include "gen/program/target.h"

static const char *matmuls(const struct program *program, const char *name) {
  return arena_printf(program->arena, "matmuls   %s, on tensor cores\n", name);
}

static const char *const templates[] = {"devices/gpu", "kernels", NULL};
static const char *const written_out[] = {"biased_attention", NULL};
#define ARCHITECTURES(of) of("80") of("90a") of("100")
#define NAME(name) "sm_" name,
#define FLAG(name) " -gencode arch=compute_" name ",code=sm_" name
static const char *const architectures[] = {ARCHITECTURES(NAME) NULL};
static const char *const sources[] = {"runtime/gpu/", "runtime/cuda/", "include/accel/gpu/", "tools/cuda-toolkit.sh",
                                      NULL};
static const char *const of_ranks[] = {"runtime/nccl/", "runtime/tcp/", NULL};
static const char *const drivers[] = {"/proc/driver/nvidia/version", "/dev/dxg", NULL};

/* Each chunk of a loss adds to the gradient of its matmul's weights, V x C of float32: 8 V C bytes that are read and
 * written, for 6 V C operations a row. 4096 rows are 3,072 operations a byte, ten times what a GPU does in the time of
 * one (H100: 295). 32 MiB is what cuBLASLt's guide asks for on Hopper. The sums are 16 MiB: 256 chunks of the widest
 * rows that are usual. */
const struct target target_cuda = {
    .name = "cuda",
    .matmuls = matmuls,
    .texts = {.templates = templates,
              .count = 2,
              .suffixes = {".c", ".cu"},
              .compiler = "nvcc -std=c++17 -O3" ARCHITECTURES(FLAG),
              .architectures = architectures},
    .build = {.packages = {"accel-runtime-cuda", "accel-runtime-cuda-ranks"},
              .sources = sources,
              .of_ranks = of_ranks,
              .drivers = drivers},
    .memory = {.separate = true, .reads_files = true, .progress_bytes = 256, .partial_sums = 4 << 20},
    .kernels = {.cuda_autocast = true, .adds_rows = true, .lacks = written_out, .traced = true},
    .library = {.parts = 1u << LIBRARY_ATTENTION | 1u << LIBRARY_CONVOLUTION,
                .no_workspace = 1u << LIBRARY_ATTENTION | 1u << LIBRARY_CONVOLUTION,
                .epilogues = EPILOGUE_BIT(EPILOGUE_BIAS) | EPILOGUE_BIT(EPILOGUE_GELU) | EPILOGUE_BIT(EPILOGUE_RELU) |
                             EPILOGUE_BIT(EPILOGUE_DGELU) | EPILOGUE_BIT(EPILOGUE_DRELU) | EPILOGUE_BIT(EPILOGUE_SUM),
                .bits16_to_float32 = true,
                .operand_bytes = 16,
                .bound_rows = 4096,
                .has_algorithms = true,
                .names_algorithms = true,
                .multiplies_fp8 = true,
                .workspace_bytes = 32 << 20},
    .ranks = {.gathers_sums = true, .fixed_sizes = true, .opens_channels = true, .meet_by_environment = true}};
