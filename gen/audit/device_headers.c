/* What device code is read with in the place of the toolkit's headers: the names that kernels use of CUDA C++, and
 * accel_launch as a function that a reader of the tree knows. No toolkit is needed, and none changes what is read. */
#include "gen/audit/device_headers.h"

static const char launch[] = "#ifndef ACCEL_AUDIT_DEVICE\n"
                             "#define ACCEL_AUDIT_DEVICE\n"
                             "#include <math.h>\n"
                             "#include <stddef.h>\n"
                             "#include <stdint.h>\n"
                             "#define __global__\n"
                             "#define __device__\n"
                             "#define __host__\n"
                             "#define __forceinline__ inline\n"
                             "#define __launch_bounds__(...)\n"
                             "#define __grid_constant__\n"
                             "#define __shared__ static\n"
                             "struct accel_index {\n"
                             "  unsigned x, y, z;\n"
                             "};\n"
                             "extern const accel_index threadIdx, blockIdx, blockDim, gridDim;\n"
                             "accel_index dim3(unsigned x);\n"
                             "accel_index dim3(unsigned x, unsigned y);\n"
                             "accel_index dim3(unsigned x, unsigned y, unsigned z);\n"
                             "void __syncthreads();\n"
                             "void __syncwarp(unsigned mask = 0xffffffffu);\n"
                             "template <typename type> type __shfl_sync(unsigned, type, int);\n"
                             "template <typename type> type __shfl_xor_sync(unsigned, type, int);\n"
                             "template <typename type> type __shfl_up_sync(unsigned, type, int);\n"
                             "template <typename type> type __shfl_down_sync(unsigned, type, int);\n"
                             "unsigned __ballot_sync(unsigned, int);\n"
                             "unsigned long long atomicAdd(unsigned long long *, unsigned long long);\n"
                             "int __ffs(unsigned);\n"
                             "int __popc(unsigned);\n"
                             "uint64_t __umul64hi(uint64_t, uint64_t);\n"
                             "uint32_t __umulhi(uint32_t, uint32_t);\n"
                             "template <typename grid, typename block, typename... parameters, typename... types>\n"
                             "void accel_launch(void (*)(parameters...), grid, block, types...);\n"
                             "#endif\n";

static const char bf16[] = "#include <accel/cuda/launch.h>\n"
                           "enum __nv_bfloat16 : unsigned short {};\n"
                           "float __bfloat162float(__nv_bfloat16);\n"
                           "__nv_bfloat16 __float2bfloat16_rn(float);\n";

static const char fp16[] = "#include <accel/cuda/launch.h>\n"
                           "enum __half : unsigned short {};\n"
                           "float __half2float(__half);\n"
                           "__half __float2half_rn(float);\n";

static const char pipeline[] = "#include <accel/cuda/launch.h>\n"
                               "void __pipeline_memcpy_async(void *, const void *, size_t);\n"
                               "void __pipeline_commit();\n"
                               "void __pipeline_wait_prior(int);\n";

/* References as pointers, which are followed. */
static const char mma[] = "#include <accel/cuda/launch.h>\n"
                          "namespace nvcuda {\n"
                          "namespace wmma {\n"
                          "struct row_major;\n"
                          "struct col_major;\n"
                          "struct matrix_a;\n"
                          "struct matrix_b;\n"
                          "struct accumulator;\n"
                          "enum layout_t { mem_row_major, mem_col_major };\n"
                          "namespace precision {\n"
                          "struct tf32;\n"
                          "}\n"
                          "template <typename use, int m, int n, int k, typename type, typename layout = void>\n"
                          "struct fragment {\n"
                          "  static constexpr int num_elements = 8;\n"
                          "  float x[num_elements];\n"
                          "};\n"
                          "float __float_to_tf32(float);\n"
                          "template <typename part, typename number>\n"
                          "void load_part(part *, const number *, unsigned);\n"
                          "template <typename part> void store_part(float *, const part *, unsigned);\n"
                          "template <typename part> void fill_part(part *, float);\n"
                          "template <typename sum, typename left, typename right>\n"
                          "void multiply_parts(sum *, const left *, const right *);\n"
                          "#define load_matrix_sync(to, from, pitch) load_part(&(to), from, pitch)\n"
                          "#define store_matrix_sync(to, from, pitch, layout) store_part(to, &(from), pitch)\n"
                          "#define fill_fragment(to, x) fill_part(&(to), x)\n"
                          "#define mma_sync(d, a, b, c) multiply_parts(&(d), &(a), &(b))\n"
                          "}\n"
                          "}\n";

const struct header device_headers[DEVICE_HEADERS] = {{"accel/cuda/launch.h", launch}, {"cuda_runtime.h", launch},
                                                      {"cuda_bf16.h", bf16},           {"cuda_fp16.h", fp16},
                                                      {"cuda_pipeline.h", pipeline},   {"mma.h", mma}};
