/* y = x W^T, x [..., in], or where `straight` y = x W, x [..., out], by a matrix W [out][in] of codes of 4 or 8 bits
 * and their scales, as include/accel/quantized_gemm.h has them. With nested scales there are five inputs, else three. y
 * has the type of x, to which the elements of W are rounded. The matrix is frozen: dx is the product of dy with the
 * same codes, the other way round.
 *
 * int8_matmul is of LLM.int8()'s codes, quantized_matmul of all others (`form`), with `group` elements of a row that
 * share a scale of codes by groups. GGUF's codes are without scales. Where a model is evaluated, the latter is
 * llm_int8_matmul with the attribute `threshold`: bitsandbytes' Linear8bitLt makes the same difference on processors.
 * gguf_matmul is quantized_matmul of Q8_0 or Q4_0, and q8_0_matmul where a model is evaluated. */
#include <math.h>

#include "gen/ops/support/quantized.h"
#include "gen/ops/support/support.h"

enum { X, CODES, ABSMAX, NESTED_ABSMAX, NESTED_OFFSET };

static struct quantized_form form_of(const struct node *node) {
  if (node->kind == &op_int8_matmul) return (struct quantized_form){.codes = CODES_INT8};
  return (struct quantized_form){(enum quantized_codes)node_int(node, "form"), node_int(node, "group")};
}

static int infer(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                 const char **error) {
  const int64_t out = node_int(node, "out"), in = node_int(node, "in");
  const struct quantized_form form = form_of(node);
  const enum quantized_codes codes = form.codes;
  const bool straight = node_int(node, "straight") != 0, nested = node->n_inputs > NESTED_ABSMAX;
  if (!op_check_float(arena, node, X, error) || !op_check_rank(arena, node, X, 2, error) ||
      !op_check_dtype(arena, node, CODES, quantized_dtype(codes), error) ||
      !op_check_shape(arena, node, CODES, quantized_codes(form, out, in), "the codes", error))
    return 0;
  if (quantized_has_scales(codes) &&
      (!op_check_dtype(arena, node, ABSMAX, nested ? DTYPE_UINT8 : DTYPE_FLOAT32, error) ||
       !op_check_shape(arena, node, ABSMAX, quantized_scales(form, out, in), "the scales of the codes", error)))
    return 0;
  if (nested && (!op_check_shape(arena, node, NESTED_ABSMAX, quantized_nested(out, in), "of the scales", error) ||
                 !op_check_shape(arena, node, NESTED_OFFSET, shape_of(1, INT64_C(1)), "of the scales", error)))
    return 0;
  const struct shape x = node->inputs[X]->shape;
  if (op_columns(x) != (straight ? out : in))
    return op_fail(arena, node, error, "%s must have %lld columns", op_operand_text(arena, node, X),
                   (long long)(straight ? out : in));
  return op_result(shapes, dtypes, op_with_extent(x, x.rank - 1, straight ? in : out), node->inputs[X]->dtype);
}

/* The attributes that one of the kinds has and the other has not; returns how many. */
static int own_attributes(const struct node *node, struct attribute *to) {
  const struct quantized_form form = form_of(node);
  to[0] = form.codes == CODES_INT8 ? attribute_real("threshold", node_real(node, "threshold"))
                                   : attribute_int("form", form.codes);
  to[1] = attribute_int("group", form.group);
  return form.codes == CODES_INT8 ? 1 : 2;
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  if (!builder_wants_gradient(builder, node->inputs[X])) return;
  struct attribute attributes[5] = {attribute_int("out", node_int(node, "out")),
                                    attribute_int("in", node_int(node, "in")),
                                    attribute_int("straight", !node_int(node, "straight"))};
  const int count = 3 + own_attributes(node, attributes + 3);
  struct value *inputs[5] = {dy[0]};
  for (int i = CODES; i < node->n_inputs; i++) inputs[i] = node->inputs[i];
  dx[X] = builder_op(builder, node->kind->name, inputs, node->n_inputs, attributes, count);
}

static struct value *evaluated(struct builder *builder, const struct node *node) {
  struct attribute attributes[4] = {attribute_int("out", node_int(node, "out")),
                                    attribute_int("in", node_int(node, "in"))};
  own_attributes(node, attributes + 2);
  return builder_op(builder, "llm_int8_matmul", node->inputs, 3, attributes, 3);
}

static struct value *evaluated_by_blocks(struct builder *builder, const struct node *node) {
  const struct attribute attributes[3] = {attribute_int("out", node_int(node, "out")),
                                          attribute_int("in", node_int(node, "in")),
                                          attribute_int("form", node_int(node, "form"))};
  return builder_op(builder, "q8_0_matmul", node->inputs, 2, attributes, 3);
}

/* ---- The float64 reference ---- */

/* Appendix E of the QLoRA paper, as float32; and FP4's 1 + 2 + 1 bits as bitsandbytes has them. */
static const float nf4[] = {-1.0f,
                            -0.6961928009986877f,
                            -0.5250730514526367f,
                            -0.39491748809814453f,
                            -0.28444138169288635f,
                            -0.18477343022823334f,
                            -0.09105003625154495f,
                            0.0f,
                            0.07958029955625534f,
                            0.16093020141124725f,
                            0.24611230194568634f,
                            0.33791524171829224f,
                            0.44070982933044434f,
                            0.5626170039176941f,
                            0.7229568362236023f,
                            1.0f};

static double fp4_level(int code) {
  static const double magnitudes[] = {0, 1.0 / 192, 2.0 / 3, 1, 1.0 / 3, 1.0 / 2, 1.0 / 6, 1.0 / 4};
  return (code & 8) != 0 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

/* Level `code` of the signed dynamic map: zero at 127, and from both sides of it 1, 2, 4, … levels of equal distance
 * within each power of ten up to 1. */
static double dynamic_level(int code) {
  int at = code < 127 ? 127 - code : code - 127, power = 0;
  if (at == 0) return 0;
  if (at == 128) return 1;
  while (at >= 2 << power) power++;
  const int count = 1 << power;
  const double level = pow(10, power - 6) * (0.1 + 0.9 * (at - count + 0.5) / count);
  return code < 127 ? -level : level;
}

/* ---- Codes of even steps (runtime/base/linear_codes.h) ---- */

/* Element i of the 32 whose codes of 4 bits these are, the first 16 in lower halves. */
static int half_code(const double *bytes, int64_t i) {
  return i < 16 ? (int)bytes[i] & 15 : (int)bytes[i - 16] >> 4;
}

/* Element i of the 256 of a block. */
static double q4_k_element(const double *block, int64_t i) {
  const int part = (int)(i / 32), at = part % 4;
  const int first = (int)block[4 + at], second = (int)block[8 + at], third = (int)block[12 + at];
  const int a = part < 4 ? first & 63 : (third & 15) | (first >> 6) << 4;
  const int b = part < 4 ? second & 63 : third >> 4 | (second >> 6) << 4;
  const int code = (int)block[16 + part / 2 * 32 + i % 32] >> part % 2 * 4 & 15;
  return op_float16_at(block) * a * code - op_float16_at(block + 2) * b;
}

static double linear_element(const struct node *node, const double *const *inputs, int64_t i) {
  const struct quantized_form form = form_of(node);
  const double *codes = inputs[CODES], *block;
  switch (form.codes) {
  case CODES_INT8_GROUPS:
    return codes[i] * inputs[ABSMAX][i / form.group];
  case CODES_INT4_GROUPS:
    block = inputs[ABSMAX] + i / form.group * 2;
    return block[0] * (half_code(codes + i / 32 * 16, i % 32) - 8) + block[1];
  case CODES_Q8_0:
    block = codes + i / 32 * 34;
    return op_float16_at(block) * (int8_t)block[2 + i % 32];
  case CODES_Q4_0:
    block = codes + i / 32 * 18;
    return op_float16_at(block) * (half_code(block + 2, i % 32) - 8);
  default:
    return q4_k_element(codes + i / 256 * 144, i % 256);
  }
}

static double element(const struct node *node, const double *const *inputs, int64_t i) {
  const enum quantized_codes codes = form_of(node).codes;
  if (codes == CODES_INT8) return inputs[CODES][i] * inputs[ABSMAX][i / node_int(node, "in")] / 127;
  if (codes > CODES_INT8) return linear_element(node, inputs, i);
  const int byte = (int)inputs[CODES][i / 2], which = i % 2 == 0 ? byte >> 4 : byte & 15;
  const int64_t block = i / QUANTIZED_BLOCK;
  const double level = codes == CODES_FP4 ? fp4_level(which) : (double)nf4[which];
  if (node->n_inputs <= NESTED_ABSMAX) return level * inputs[ABSMAX][block];
  const double scale = dynamic_level((int)inputs[ABSMAX][block]) * inputs[NESTED_ABSMAX][block / QUANTIZED_NESTED];
  return level * (scale + inputs[NESTED_OFFSET][0]);
}

static void reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  const int64_t out = node_int(node, "out"), in = node_int(node, "in");
  const bool straight = node_int(node, "straight") != 0;
  const int64_t depth = straight ? out : in, columns = straight ? in : out;
  for (int64_t r = 0; r < op_rows(node->inputs[X]->shape); r++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t k = 0; k < depth; k++)
        sum += inputs[X][r * depth + k] * element(node, inputs, straight ? k * in + c : c * in + k);
      outputs[0][r * columns + c] = sum;
    }
}

static double flops(const struct node *node) {
  return 2 * (double)op_rows(node->inputs[X]->shape) * (double)node_int(node, "out") * (double)node_int(node, "in");
}

#define PRODUCT                                                                                                        \
  .class = OP_KERNEL, .template_name = "quantized_matmul",                                                             \
  .input_names = {"x", "codes", "absmax", "nested_absmax", "nested_offset"}, .output_names = {"y"}, .infer = infer,    \
  .gradient = gradient, .sequence.along = op_along_rows, .memory.accumulates = 1,                                      \
  .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16}, .types.by_codes = true, .cost.flops = flops,                   \
  .cost.matmul_flops = flops, .reference.evaluate = reference

const struct op_kind op_quantized_matmul = {PRODUCT, .name = "quantized_matmul"};
const struct op_kind op_int8_matmul = {PRODUCT, .name = "int8_matmul", .evaluation.substitute = evaluated};

const struct op_kind op_gguf_matmul = {PRODUCT, .name = "gguf_matmul", .evaluation.substitute = evaluated_by_blocks};

const struct op_file op_file_quantized_matmul = {
    .name = "quantized_matmul",
    .kinds = (const struct op_kind *const[]){&op_quantized_matmul, &op_int8_matmul, &op_gguf_matmul, NULL},
};
