/* The runtime's device, on the processor: accel/cuda/device.h and product.h where every piece of work is done at once.
 * With it a CUDA program runs without a GPU and without CUDA, as an oracle of what its kernels compute. */
#include <accel/cuda/device.h>
#include <accel/cuda/product.h>
#include <stdlib.h>
#include <string.h>

enum { REPORTS = 8 };

static const struct accel_cuda_plan *plan;
static const struct accel_program *program;
static char *arena, *feed, *reports;
static int n_reports;

struct accel_graph {
  void (*record)(void);
};

/* ---- Start and end ---- */

void accel_cuda_open(const struct accel_program *of, const struct accel_cuda_plan *with) {
  program = of;
  plan = with;
  arena = aligned_alloc(4096, (plan->arena_bytes + 4095) / 4096 * 4096);
  memset(arena, 0, plan->arena_bytes);
  feed = malloc(plan->feed_bytes);
  reports = malloc(REPORTS * plan->report_bytes);
}

void accel_cuda_close(void) {
  free(arena);
  free(feed);
  free(reports);
}

void *accel_cuda_arena(void) {
  return arena;
}

accel_stream accel_cuda_stream(enum accel_stream_name name) {
  (void)name;
  return NULL;
}

/* ---- Copies ---- */

static size_t state_bytes(const struct accel_state *state) {
  static const size_t sizes[] = {[ACCEL_FLOAT32] = 4, [ACCEL_FLOAT16] = 2, [ACCEL_BFLOAT16] = 2,
                                 [ACCEL_INT32] = 4,   [ACCEL_INT64] = 8,   [ACCEL_UINT8] = 1};
  return (size_t)state->count * sizes[state->dtype];
}

void accel_cuda_send_states(const struct accel_run *run) {
  const char *host = accel_arena((struct accel_run *)run);
  for (int i = 0; i < program->n_states; i++) {
    const struct accel_state *state = &program->states[i];
    memcpy(arena + state->offset, host + state->offset, state_bytes(state));
  }
}

void accel_cuda_fetch_states(const struct accel_run *run) {
  char *host = accel_arena((struct accel_run *)run);
  for (int i = 0; i < program->n_states; i++) {
    const struct accel_state *state = &program->states[i];
    memcpy(host + state->offset, arena + state->offset, state_bytes(state));
  }
}

void accel_cuda_read(void *host, const void *device, size_t bytes) {
  memcpy(host, device, bytes);
}

void accel_cuda_write(void *device, const void *host, size_t bytes) {
  memcpy(device, host, bytes);
}

void accel_cuda_zero(accel_stream stream, void *device, size_t bytes) {
  (void)stream;
  memset(device, 0, bytes);
}

void accel_cuda_copy(accel_stream stream, void *to, const void *from, size_t bytes) {
  (void)stream;
  memcpy(to, from, bytes);
}

/* ---- Feeds, reports, graphs ---- */

void *accel_cuda_feed_begin(void) {
  return feed;
}

void accel_cuda_feed_send(void) {}

void accel_cuda_feed_take(void) {
  memcpy(arena + plan->feed_offset, feed, plan->feed_bytes);
}

void accel_cuda_report_send(void) {
  memcpy(reports + (size_t)(n_reports++ % REPORTS) * plan->report_bytes, arena + plan->report_offset,
         plan->report_bytes);
}

const void *accel_cuda_report(int age) {
  if (age >= n_reports) return NULL;
  return reports + (size_t)((n_reports - 1 - age) % REPORTS) * plan->report_bytes;
}

struct accel_graph *accel_cuda_capture(const char *name, void (*record)(void)) {
  struct accel_graph *graph = malloc(sizeof *graph);
  (void)name;
  graph->record = record;
  return graph;
}

void accel_cuda_launch(const struct accel_graph *graph) {
  graph->record();
}

/* ---- Products ---- */

static float read_element(const void *from, int64_t at, enum accel_element type) {
  uint16_t half;
  uint32_t bits;
  float x;
  if (type == ACCEL_F32) return ((const float *)from)[at];
  if (type == ACCEL_F16) return (float)((const _Float16 *)from)[at];
  memcpy(&half, (const uint16_t *)from + at, sizeof half);
  bits = (uint32_t)half << 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void write_element(void *to, int64_t at, enum accel_element type, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (type == ACCEL_F32) ((float *)to)[at] = x;
  if (type == ACCEL_F16) ((_Float16 *)to)[at] = (_Float16)x;
  if (type == ACCEL_BF16) ((uint16_t *)to)[at] = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void accel_cuda_open_product(struct accel_cuda_product *product) {
  (void)product;
}

void accel_cuda_multiply(const struct accel_cuda_product *p, accel_stream stream, void *y, const void *a, const void *b,
                         void *bias, void *aux) {
  float *row = malloc((size_t)p->columns * sizeof *row);
  (void)stream;
  (void)bias;
  (void)aux;
  for (int64_t r = 0; r < (p->batch > 0 ? p->batch : 1) * p->rows; r++) {
    const int64_t n = r / p->rows, i = r % p->rows, y_row = n * p->y_step + i * p->y_row;
    memset(row, 0, (size_t)p->columns * sizeof *row);
    for (int64_t d = 0; d < p->depth; d++) {
      const float x = read_element(a, n * p->a_step + i * p->a_row + d * p->a_column, p->type);
      for (int64_t c = 0; c < p->columns; c++)
        row[c] += x * read_element(b, n * p->b_step + d * p->b_row + c * p->b_column, p->type);
    }
    for (int64_t c = 0; c < p->columns; c++)
      write_element(y, y_row + c, p->result, p->accumulate ? read_element(y, y_row + c, p->result) + row[c] : row[c]);
  }
  free(row);
}
