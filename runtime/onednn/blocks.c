#include "runtime/onednn/blocks.h"

#include "runtime/onednn/lines.h"

#include <string.h>

enum { WORDS = 16, COLUMNS = 64 };

/* One block of words, and what it is made from: words in rows that are along the depth, or elements of 16 bits in rows
 * along the columns. */
struct block {
  uint32_t *to;
  const uint16_t *from;
  int64_t words, columns; /* that there are; the others are zeros */
  int64_t step;           /* elements from row to row */
};

static bool is_whole(const struct block *b) {
  return b->words == WORDS && b->columns == COLUMNS;
}

static void transpose(const struct block *b) {
  if (!is_whole(b)) memset(b->to, 0, WORDS * COLUMNS * sizeof *b->to);
  for (int64_t n = 0; n < b->columns; n++) {
    uint32_t row[WORDS];
    memcpy(row, b->from + n * b->step, (size_t)b->words * sizeof *row);
    for (int64_t k = 0; k < b->words; k++) b->to[k * COLUMNS + n] = row[k];
  }
}

/* depth: how many elements of a word's two there are, of all words. */
static void pair(const struct block *b, int64_t depth) {
  if (!is_whole(b) || depth < 2 * WORDS) memset(b->to, 0, WORDS * COLUMNS * sizeof *b->to);
  for (int64_t k = 0; k < depth / 2; k++) {
    const uint16_t *low = b->from + 2 * k * b->step, *high = low + b->step;
    uint32_t *to = b->to + k * COLUMNS;
#pragma omp simd
    for (int64_t n = 0; n < b->columns; n++) to[n] = low[n] | (uint32_t)high[n] << 16;
  }
  for (int64_t n = 0; n < b->columns && depth % 2 == 1; n++)
    b->to[depth / 2 * COLUMNS + n] = b->from[(depth - 1) * b->step + n];
}

bool rt_has_blocks(const struct accel_gemm *p, rt_described working) {
  const bool low = p->type != ACCEL_F32;
  const dnnl_dims_t shape = {p->depth, p->columns};
  rt_description blocks;
  if (p->b_row == 1 ? low && (p->depth % 2 != 0 || p->b_column % 2 != 0) : !low) return false;
  if (rt_describe_as(&blocks, 2, shape, low ? dnnl_bf16 : dnnl_f32, low ? dnnl_BA16a64b2a : dnnl_BA16a64b) !=
      dnnl_success)
    return false;
  bool same = p->type != ACCEL_F16 && dnnl_memory_desc_equal(rt_described_by(&blocks), working);
  rt_forget(&blocks);
  return same;
}

void rt_pack_blocks(const struct accel_gemm *p, void *to, const void *from) {
  const int64_t size = p->type == ACCEL_F32 ? 2 : 1; /* of an element, in halves of a word */
  const int64_t deep = 2 / size * WORDS;             /* elements of a block along the depth */
  const int64_t down = (p->depth + deep - 1) / deep, across = (p->columns + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for
  for (int64_t i = 0; i < down * across; i++) {
    const int64_t k = i % down * deep, n = i / down * COLUMNS, depth = rt_least(deep, p->depth - k);
    const struct block block = {.to = (uint32_t *)to + i * WORDS * COLUMNS,
                                .from = (const uint16_t *)from + (k * p->b_row + n * p->b_column) * size,
                                .words = (depth * size + 1) / 2,
                                .columns = rt_least(COLUMNS, p->columns - n),
                                .step = (p->b_row == 1 ? p->b_column : p->b_row) * size};
    if (p->b_row == 1)
      transpose(&block);
    else
      pair(&block, depth);
  }
}
