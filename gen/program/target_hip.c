#include "gen/ir/op.h"
#include "gen/program/target.h"

/* Programs have no numbers of 16 bits (gen/spec/device.c). */
static const char *matmuls(const struct program *program, const char *name) {
  (void)program, (void)name;
  return "";
}

static const char *const templates[] = {"devices/gpu", "kernels", NULL};
static const char *const lacks[] = {"grouped_matmul.c.j2", NULL}; /* of CUDA's mma.h */
static const char *const written_out[] = {"biased_attention", NULL};
#define ARCHITECTURE "gfx90a"
static const char *const architectures[] = {ARCHITECTURE, NULL};
static const char *const sources[] = {"runtime/gpu/", "runtime/hip/", "include/accel/gpu/", "tools/hip-toolkit.sh",
                                      NULL};
static const char *const of_ranks[] = {NULL};
static const char *const drivers[] = {"/dev/kfd", NULL};

/* Its epilogues are those that hipBLASLt's "API Reference" has, which has ReLU without what its gradient needs. Numbers
 * of memory and rows are CUDA's (target_cuda.c): none was measured. */
const struct target target_hip = {
    .name = "hip",
    .matmuls = matmuls,
    .texts = {.templates = templates,
              .lacks = lacks,
              .count = 2,
              .suffixes = {".c", ".hip"},
              .compiler = "hipcc -std=c++17 -O3 --offload-arch=" ARCHITECTURE,
              .architectures = architectures},
    .build = {.packages = {"accel-runtime-hip"}, .sources = sources, .of_ranks = of_ranks, .drivers = drivers},
    .memory = {.separate = true, .progress_bytes = 256, .partial_sums = 4 << 20},
    .kernels = {.cuda_autocast = true, .adds_rows = true, .lacks = written_out},
    .library = {.no_workspace = 1u << LIBRARY_ATTENTION | 1u << LIBRARY_CONVOLUTION,
                .epilogues = EPILOGUE_BIT(EPILOGUE_BIAS) | EPILOGUE_BIT(EPILOGUE_GELU) | EPILOGUE_BIT(EPILOGUE_DGELU) |
                             EPILOGUE_BIT(EPILOGUE_SUM),
                .operand_bytes = 16,
                .bound_rows = 4096,
                .has_algorithms = true,
                .workspace_bytes = 32 << 20},
    .ranks = {.meet_by_environment = true}};
