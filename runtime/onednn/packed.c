#include "runtime/onednn/packed.h"

#include "runtime/onednn/blocks.h"
#include "runtime/onednn/gemm.h"
#include "runtime/onednn/onednn.h"

#include <omp.h>
#include <stdlib.h>

struct weight {
  const void *plain; /* NULL: the slot is free */
  void *slot;
  dnnl_memory_t working;
  int64_t packed_in; /* the epoch */
};

/* Rows of y, which one thread makes, so that they are in its cache as rows are that kernels divide among threads. */
struct part {
  dnnl_memory_t a, y, scratchpad;
  void *work; /* the scratchpad's bytes; NULL: none */
};

struct accel_packed {
  dnnl_primitive_t primitive;
  bool by_blocks;           /* weights are packed by rt_pack_blocks */
  dnnl_primitive_t reorder; /* or by this, */
  dnnl_memory_t plain;      /* from here; where none is packed, the matrix as it is */
  int parts;                /* of as many rows each */
  struct part *part;
  struct weight *weights; /* NULL: none is packed */
};

/* What is left of the program's storage; weights change between epochs. */
static char *storage;
static size_t room_left;
static int64_t epoch = 1;

void accel_keep_packed(void *given, int64_t bytes) {
  storage = given;
  room_left = (size_t)bytes;
}

void accel_forget_packed(void) {
  epoch++;
}

/* ---- Opening ---- */

static size_t whole_lines(rt_described description) {
  return (dnnl_memory_desc_get_size(description) + 63) / 64 * 64;
}

static dnnl_status_t make_reorder(dnnl_primitive_t *to, rt_described from, rt_described into) {
  dnnl_engine_t engine = rt_onednn_engine();
  dnnl_primitive_desc_t found;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(&found, from, engine, into, engine, NULL);
  if (status != dnnl_success) return status;
  status = dnnl_primitive_create(to, found);
  dnnl_primitive_desc_destroy(found);
  return status;
}

/* Slots for the weights, of the program's storage. */
static bool open_weights(struct accel_packed *to, const struct accel_gemm *p, rt_described plain,
                         rt_described working) {
  const size_t bytes = whole_lines(working), count = (size_t)p->weights;
  if (bytes > room_left / count) return false;
  to->by_blocks = rt_has_blocks(p, working);
  bool good = to->by_blocks || (make_reorder(&to->reorder, plain, working) == dnnl_success &&
                                rt_make_memory(&to->plain, plain) == dnnl_success);
  for (size_t i = 0; i < count && good; i++) {
    struct weight *weight = &to->weights[i];
    weight->slot = storage + i * bytes;
    good = dnnl_memory_create(&weight->working, working, rt_onednn_engine(), weight->slot) == dnnl_success;
  }
  if (!good) return false;
  storage += count * bytes;
  room_left -= count * bytes;
  return true;
}

static bool open_part(struct part *to, const rt_description matrices[3], rt_described scratchpad) {
  const size_t bytes = whole_lines(scratchpad);
  to->work = bytes > 0 ? aligned_alloc(64, bytes) : NULL;
  return (to->work != NULL || bytes == 0) && rt_make_memory(&to->a, rt_described_by(&matrices[0])) == dnnl_success &&
         rt_make_memory(&to->y, rt_described_by(&matrices[2])) == dnnl_success &&
         dnnl_memory_create(&to->scratchpad, scratchpad, rt_onednn_engine(), to->work) == dnnl_success;
}

/* matrices: of a part, with a weight that is packed in any layout. */
static bool open_packed(struct accel_packed *to, const struct accel_gemm *p, const rt_description matrices[3],
                        rt_described plain) {
  const int threads = rt_set_threads(to->parts > 1 ? 1 : omp_get_max_threads());
  dnnl_primitive_desc_t found = rt_choose_gemm(p, matrices, dnnl_scratchpad_mode_user);
  rt_set_threads(threads);
  if (found == NULL) return false;
  const rt_described working = dnnl_primitive_desc_query_md(found, dnnl_query_weights_md, 0);
  const rt_described scratchpad = dnnl_primitive_desc_query_md(found, dnnl_query_scratchpad_md, 0);
  bool good = dnnl_primitive_create(&to->primitive, found) == dnnl_success;
  for (int i = 0; i < to->parts && good; i++) good = open_part(&to->part[i], matrices, scratchpad);
  if (to->weights == NULL)
    good = good && rt_make_memory(&to->plain, plain) == dnnl_success;
  else
    good = good && !dnnl_memory_desc_equal(plain, working) && open_weights(to, p, plain, working);
  dnnl_primitive_desc_destroy(found);
  return good;
}

/* Gives back one that could not be opened whole. It took nothing of the program's storage. */
static void free_packed(struct accel_packed *packed, int64_t weights) {
  for (int i = 0; packed->part != NULL && i < packed->parts; i++) {
    dnnl_memory_destroy(packed->part[i].a);
    dnnl_memory_destroy(packed->part[i].y);
    dnnl_memory_destroy(packed->part[i].scratchpad);
    free(packed->part[i].work);
  }
  for (int64_t i = 0; packed->weights != NULL && i < weights; i++) dnnl_memory_destroy(packed->weights[i].working);
  dnnl_memory_destroy(packed->plain);
  dnnl_primitive_destroy(packed->reorder);
  dnnl_primitive_destroy(packed->primitive);
  free(packed->part);
  free(packed->weights);
  free(packed);
}

static struct accel_packed *new_packed(int64_t weights, int parts) {
  struct accel_packed *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->parts = parts;
  made->part = calloc((size_t)parts, sizeof *made->part);
  made->weights = weights > 0 ? calloc((size_t)weights, sizeof *made->weights) : NULL;
  if (made->part != NULL && (made->weights != NULL || weights == 0)) return made;
  free_packed(made, weights);
  return NULL;
}

struct accel_packed *rt_open_packed(const struct accel_gemm *gemm) {
  const int threads = omp_get_max_threads(), parts = gemm->rows % threads == 0 ? threads : 1;
  const dnnl_dims_t shape = {gemm->depth, gemm->columns};
  const bool packs = gemm->weights > 0;
  const bool by_rows = gemm->in_parts && gemm->result != ACCEL_F32 && gemm->batch_rank == 0 && parts > 1;
  struct accel_gemm part = *gemm;
  rt_description matrices[3], plain = {0};
  part.rows /= parts;
  if (!(packs || by_rows) || rt_describe_gemm(&part, matrices) != dnnl_success) return NULL;
  dnnl_status_t described = dnnl_success;
  if (packs) {
    plain = matrices[1];
    matrices[1] = (rt_description){0}; /* so that each is forgotten once, whatever fails */
    described = rt_describe_as(&matrices[1], 2, shape, rt_gemm_types[gemm->type], dnnl_format_tag_any);
  }
  struct accel_packed *made = described == dnnl_success ? new_packed(gemm->weights, parts) : NULL;
  if (made != NULL && !open_packed(made, &part, matrices, rt_described_by(packs ? &plain : &matrices[1]))) {
    free_packed(made, gemm->weights);
    made = NULL;
  }
  rt_forget(&plain);
  for (int m = 0; m < 3; m++) rt_forget(&matrices[m]);
  return made;
}

/* ---- Multiplying ---- */

/* The weight's slot, or a free one; NULL where there is neither. */
static struct weight *find(const struct accel_packed *packed, int64_t count, const void *weight) {
  for (int64_t i = 0; i < count; i++)
    if (packed->weights[i].plain == weight || packed->weights[i].plain == NULL) return &packed->weights[i];
  return NULL;
}

static void reorder(const struct accel_packed *packed, dnnl_memory_t to, const void *from) {
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, packed->plain}, {DNNL_ARG_TO, to}};
  rt_onednn_note(dnnl_memory_set_data_handle(packed->plain, (void *)(uintptr_t)from));
  rt_onednn_note(dnnl_primitive_execute(packed->reorder, rt_onednn_stream(), 2, arguments));
}

static void pack(const struct accel_gemm *gemm, struct weight *at, const void *weight) {
  if (gemm->packed->by_blocks)
    rt_pack_blocks(gemm, at->slot, weight);
  else
    reorder(gemm->packed, at->working, weight);
  at->plain = weight;
  at->packed_in = epoch;
}

static void multiply_part(const struct accel_gemm *p, int index, char *y, const char *a, dnnl_memory_t weight) {
  const struct accel_packed *packed = p->packed;
  const struct part *part = &packed->part[index];
  const int64_t first = p->rows / packed->parts * index, size = p->type == ACCEL_F32 ? 4 : 2;
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, part->a},
                                       {DNNL_ARG_WEIGHTS, weight},
                                       {DNNL_ARG_DST, part->y},
                                       {DNNL_ARG_SCRATCHPAD, part->scratchpad}};
  rt_onednn_note(dnnl_memory_set_data_handle(part->a, (void *)(uintptr_t)(a + first * p->a_row * size)));
  rt_onednn_note(dnnl_memory_set_data_handle(part->y, y + first * p->y_row * (p->result == ACCEL_F32 ? 4 : 2)));
  rt_onednn_note(dnnl_primitive_execute(packed->primitive, rt_onednn_stream(), 4, arguments));
}

/* The matrix as the primitive reads it; NULL where it is one weight more than there are slots. */
static dnnl_memory_t ready(const struct accel_gemm *gemm, const void *b) {
  const struct accel_packed *packed = gemm->packed;
  if (packed->weights == NULL) {
    rt_onednn_note(dnnl_memory_set_data_handle(packed->plain, (void *)(uintptr_t)b));
    return packed->plain;
  }
  struct weight *weight = find(packed, gemm->weights, b);
  if (weight == NULL) return NULL;
  if (weight->packed_in != epoch) pack(gemm, weight, b);
  return weight->working;
}

bool rt_multiply_packed(const struct accel_gemm *gemm, void *y, const void *a, const void *b) {
  const struct accel_packed *packed = gemm->packed;
  const dnnl_memory_t matrix = ready(gemm, b);
  if (matrix == NULL) return false;
#pragma omp parallel for schedule(static) if (packed->parts > 1)
  for (int i = 0; i < packed->parts; i++) multiply_part(gemm, i, y, a, matrix);
  return true;
}
