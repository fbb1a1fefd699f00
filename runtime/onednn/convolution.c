#include "include/accel/convolution.h"

#include "runtime/base/problem.h"
#include "runtime/onednn/lines.h"
#include "runtime/onednn/onednn.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>

enum { X, WEIGHTS, Y, OPERANDS };

/* An operand: where the program has it, and the copies that oneDNN works on. */
struct operand {
  dnnl_memory_t plain, working; /* the same where the layout is */
  dnnl_primitive_t reorder;     /* between them; NULL: the same */
  int64_t elements;
  enum accel_element type;    /* in the program */
  bool widened;               /* `plain` is a copy in float32 */
  size_t wide_at, working_at; /* bytes from the start of the workspace */
};

struct accel_prepared {
  dnnl_primitive_t primitive;
  dnnl_memory_t scratchpad;
  struct operand operands[OPERANDS];
  size_t scratchpad_at, bytes;
  char *own; /* instead of a workspace that is too small */
};

static const dnnl_data_type_t types[] = {dnnl_f32, dnnl_bf16, dnnl_f16};

/* What is made, and what of. */
static int made_operand(const struct accel_convolution *c) {
  static const int made[] = {[ACCEL_MAKES_Y] = Y, [ACCEL_MAKES_X] = X, [ACCEL_MAKES_WEIGHTS] = WEIGHTS};
  return made[c->makes];
}

/* ---- Descriptions ---- */

static int dimensions(const struct accel_convolution *c, int operand, dnnl_dims_t shape) {
  int rank = 0;
  if (operand == WEIGHTS) {
    if (c->groups > 1) shape[rank++] = c->groups;
    shape[rank++] = c->y_channels / c->groups;
    shape[rank++] = c->x_channels / c->groups;
  } else {
    shape[rank++] = c->batch;
    shape[rank++] = operand == X ? c->x_channels : c->y_channels;
  }
  const int64_t *extents = operand == X ? c->x : operand == Y ? c->y : c->kernel;
  for (int i = 0; i < 2; i++) shape[rank++] = extents[i];
  return rank;
}

static dnnl_status_t describe(const struct accel_convolution *c, int operand, dnnl_data_type_t type, bool plain,
                              rt_description *to) {
  dnnl_dims_t shape;
  int rank = dimensions(c, operand, shape);
  dnnl_format_tag_t rows = rank == 5 ? dnnl_abcde : dnnl_abcd;
  return rt_describe_as(to, rank, shape, type, plain ? rows : dnnl_format_tag_any);
}

/* The way that oneDNN has for a convolution of these operands. `forward`: the same that makes y, or NULL. */
static dnnl_status_t choose(const struct accel_convolution *c, enum accel_made makes, const rt_description *operands,
                            dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t forward,
                            dnnl_primitive_desc_t *to) {
  dnnl_engine_t engine = rt_onednn_engine();
  dnnl_dims_t stride, between, padding;
  for (int i = 0; i < 2; i++) {
    stride[i] = c->stride[i];
    between[i] = c->dilation[i] - 1; /* oneDNN counts the positions left out */
    padding[i] = c->padding[i];
  }
  rt_described x = rt_described_by(&operands[X]), weights = rt_described_by(&operands[WEIGHTS]);
  rt_described y = rt_described_by(&operands[Y]);
  const dnnl_alg_kind_t direct = dnnl_convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  if (makes == ACCEL_MAKES_Y)
    return dnnl_convolution_forward_primitive_desc_create(to, engine, dnnl_forward_training, direct, x, weights, NULL,
                                                          y, stride, between, padding, padding, attributes);
  if (makes == ACCEL_MAKES_X)
    return dnnl_convolution_backward_data_primitive_desc_create(to, engine, direct, x, weights, y, stride, between,
                                                                padding, padding, forward, attributes);
  return dnnl_convolution_backward_weights_primitive_desc_create(to, engine, direct, x, weights, NULL, y, stride,
                                                                 between, padding, padding, forward, attributes);
#else
  dnnl_convolution_desc_t d;
  dnnl_status_t made;
  if (makes == ACCEL_MAKES_Y)
    made = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, direct, x, weights, NULL, y, stride,
                                                      between, padding, padding);
  else if (makes == ACCEL_MAKES_X)
    made =
        dnnl_dilated_convolution_backward_data_desc_init(&d, direct, x, weights, y, stride, between, padding, padding);
  else
    made = dnnl_dilated_convolution_backward_weights_desc_init(&d, direct, x, weights, NULL, y, stride, between,
                                                               padding, padding);
  return made != dnnl_success ? made : dnnl_primitive_desc_create(to, &d, attributes, engine, forward);
#endif
}

/* Over operands of one type, what is made of another; NULL when oneDNN has no way, or only its portable one and `fast`
 * is asked for. */
static dnnl_primitive_desc_t chosen(const struct accel_convolution *c, dnnl_data_type_t type, dnnl_data_type_t result,
                                    bool fast) {
  rt_description operands[OPERANDS];
  dnnl_primitive_attr_t attributes;
  dnnl_primitive_desc_t forward = NULL, found = NULL;
  if (dnnl_primitive_attr_create(&attributes) != dnnl_success) return NULL;
  dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  for (int i = 0; i < OPERANDS; i++) describe(c, i, i == made_operand(c) ? result : type, false, &operands[i]);
  bool good = choose(c, ACCEL_MAKES_Y, operands, attributes, NULL, &forward) == dnnl_success;
  if (good && c->makes == ACCEL_MAKES_Y)
    found = forward;
  else if (choose(c, c->makes, operands, attributes, good ? forward : NULL, &found) != dnnl_success)
    found = NULL;
  const char *name = "ref";
  if (found != NULL) dnnl_primitive_desc_query(found, dnnl_query_impl_info_str, 0, (void *)&name);
  if (found != NULL && fast && strncmp(name, "ref", 3) == 0) {
    dnnl_primitive_desc_destroy(found);
    found = NULL;
  }
  if (good && c->makes != ACCEL_MAKES_Y) dnnl_primitive_desc_destroy(forward);
  dnnl_primitive_attr_destroy(attributes);
  for (int i = 0; i < OPERANDS; i++) rt_forget(&operands[i]);
  return found;
}

/* ---- Preparing ---- */

/* Where the next piece of the workspace begins. */
static size_t take(struct accel_prepared *to, size_t bytes) {
  size_t at = to->bytes;
  to->bytes += (bytes + 63) / 64 * 64;
  return at;
}

static rt_described layout_of(const struct accel_convolution *c, dnnl_primitive_desc_t from, int operand) {
  bool made = operand == made_operand(c);
  const dnnl_query_t read[] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md};
  const dnnl_query_t gradient[] = {dnnl_query_diff_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md};
  bool is_gradient = c->makes != ACCEL_MAKES_Y && (made || operand == Y);
  return dnnl_primitive_desc_query_md(from, is_gradient ? gradient[operand] : read[operand], 0);
}

static dnnl_status_t make_reorder(dnnl_primitive_t *to, rt_described from, rt_described into, bool adds) {
  dnnl_engine_t engine = rt_onednn_engine();
  dnnl_primitive_attr_t attributes;
  dnnl_post_ops_t sums;
  dnnl_primitive_desc_t found;
  dnnl_status_t status = dnnl_primitive_attr_create(&attributes);
  if (status != dnnl_success) return status;
  status = dnnl_post_ops_create(&sums);
  if (status == dnnl_success && adds) status = rt_add_sum(sums);
  if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attributes, sums);
  if (status == dnnl_success)
    status = dnnl_reorder_primitive_desc_create(&found, from, engine, into, engine, attributes);
  if (status == dnnl_success) {
    status = dnnl_primitive_create(to, found);
    dnnl_primitive_desc_destroy(found);
  }
  dnnl_post_ops_destroy(sums);
  dnnl_primitive_attr_destroy(attributes);
  return status;
}

/* wide: oneDNN works in float32 whatever the program has. */
static dnnl_status_t prepare_operand(const struct accel_convolution *c, struct accel_prepared *to, int index,
                                     rt_described working, bool wide) {
  struct operand *operand = &to->operands[index];
  bool made = index == made_operand(c);
  dnnl_dims_t shape;
  int rank = dimensions(c, index, shape);
  operand->elements = 1;
  for (int i = 0; i < rank; i++) operand->elements *= shape[i];
  operand->type = made ? c->result : c->type;
  operand->widened = wide && operand->type != ACCEL_F32;
  if (operand->widened) operand->wide_at = take(to, (size_t)operand->elements * sizeof(float));
  rt_description plain;
  dnnl_status_t status = describe(c, index, operand->widened ? dnnl_f32 : types[operand->type], true, &plain);
  if (status != dnnl_success) return status;
  bool adds = made && c->accumulate && !operand->widened;
  status = rt_make_memory(&operand->plain, rt_described_by(&plain));
  operand->working = operand->plain;
  if (status == dnnl_success && (adds || !dnnl_memory_desc_equal(rt_described_by(&plain), working))) {
    operand->working_at = take(to, dnnl_memory_desc_get_size(working));
    status = rt_make_memory(&operand->working, working);
    if (status == dnnl_success && made)
      status = make_reorder(&operand->reorder, working, rt_described_by(&plain), adds);
    else if (status == dnnl_success)
      status = make_reorder(&operand->reorder, rt_described_by(&plain), working, false);
  }
  rt_forget(&plain);
  return status;
}

static dnnl_status_t prepare(const struct accel_convolution *c, struct accel_prepared *to, dnnl_primitive_desc_t way,
                             bool wide) {
  dnnl_status_t status = dnnl_success;
  for (int i = 0; i < OPERANDS && status == dnnl_success; i++)
    status = prepare_operand(c, to, i, layout_of(c, way, i), wide);
  if (status == dnnl_success) status = dnnl_primitive_create(&to->primitive, way);
  rt_described scratchpad = dnnl_primitive_desc_query_md(way, dnnl_query_scratchpad_md, 0);
  to->scratchpad_at = take(to, dnnl_memory_desc_get_size(scratchpad));
  return status != dnnl_success ? status : rt_make_memory(&to->scratchpad, scratchpad);
}

static void fail(const char *what) {
  struct problem problem;
  rt_problem(&problem, "a convolution cannot start: %s", what);
  rt_fail(&problem, 1);
}

bool accel_open_convolution(struct accel_convolution *c) {
  int threads = c->one_thread ? rt_set_threads(1) : 0;
  dnnl_primitive_desc_t way = chosen(c, types[c->type], types[c->result], c->type != ACCEL_F32);
  bool native = way != NULL;
  if (!native) way = chosen(c, dnnl_f32, dnnl_f32, false);
  struct accel_prepared *made = way != NULL ? calloc(1, sizeof *made) : NULL;
  if (made == NULL || prepare(c, made, way, !native) != dnnl_success) fail("oneDNN has no way to compute it");
  dnnl_primitive_desc_destroy(way);
  if (made->bytes > (size_t)c->workspace * sizeof(float)) {
    made->own = aligned_alloc(64, made->bytes);
    if (made->own == NULL) fail("out of memory");
  }
  c->prepared = made;
  if (c->one_thread) rt_set_threads(threads);
  return native;
}

/* ---- Running ---- */

static void reorder(const struct operand *operand, dnnl_memory_t from, dnnl_memory_t to) {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
  rt_onednn_note(dnnl_primitive_execute(operand->reorder, rt_onednn_stream(), 2, arguments));
}

/* Where oneDNN finds an operand, the program's at `plain`. */
static void bind_operand(const struct operand *operand, void *plain, char *workspace) {
  rt_onednn_note(dnnl_memory_set_data_handle(operand->plain, operand->widened ? workspace + operand->wide_at : plain));
  if (operand->reorder != NULL)
    rt_onednn_note(dnnl_memory_set_data_handle(operand->working, workspace + operand->working_at));
}

enum { CHUNK = 1 << 14 }; /* elements that a thread converts at a time */

static int64_t chunk_at(const struct operand *operand, int64_t first) {
  return operand->elements - first < CHUNK ? operand->elements - first : CHUNK;
}

static void give(const struct operand *operand, const void *plain, char *workspace) {
  bind_operand(operand, (void *)(uintptr_t)plain, workspace);
  float *wide = (float *)(workspace + operand->wide_at);
  if (operand->widened)
#pragma omp parallel for
    for (int64_t i = 0; i < operand->elements; i += CHUNK)
      rt_widen_lines(operand->type, wide + i, 0, (const uint16_t *)plain + i, 0, 1, chunk_at(operand, i));
  if (operand->reorder != NULL) reorder(operand, operand->plain, operand->working);
}

static void receive(const struct operand *operand, void *plain, char *workspace, bool accumulate) {
  if (operand->reorder != NULL) reorder(operand, operand->working, operand->plain);
  const float *wide = (const float *)(workspace + operand->wide_at);
  if (operand->widened)
#pragma omp parallel for
    for (int64_t i = 0; i < operand->elements; i += CHUNK)
      rt_store_lines(operand->type, accumulate, (uint16_t *)plain + i, 0, wide + i, 0, 1, chunk_at(operand, i));
}

void accel_convolve(const struct accel_convolution *c, void *to, const void *a, const void *b, float *given) {
  const struct accel_prepared *made = c->prepared;
  char *workspace = made->own != NULL ? made->own : (char *)given;
  int result = made_operand(c), first = c->makes == ACCEL_MAKES_Y ? X : Y;
  int second = c->makes == ACCEL_MAKES_WEIGHTS ? X : WEIGHTS;
  int threads = c->one_thread ? rt_set_threads(1) : 0;
  give(&made->operands[first], a, workspace);
  give(&made->operands[second], b, workspace);
  bind_operand(&made->operands[result], to, workspace);
  rt_onednn_note(dnnl_memory_set_data_handle(made->scratchpad, workspace + made->scratchpad_at));
  const int read[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  const int gradient[] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
  dnnl_exec_arg_t arguments[OPERANDS + 1] = {{DNNL_ARG_SCRATCHPAD, made->scratchpad}};
  for (int i = 0; i < OPERANDS; i++) {
    bool is_gradient = c->makes != ACCEL_MAKES_Y && (i == result || i == Y);
    arguments[i + 1] = (dnnl_exec_arg_t){is_gradient ? gradient[i] : read[i], made->operands[i].working};
  }
  rt_onednn_note(dnnl_primitive_execute(made->primitive, rt_onednn_stream(), OPERANDS + 1, arguments));
  receive(&made->operands[result], to, workspace, c->accumulate);
  if (c->one_thread) rt_set_threads(threads);
}
