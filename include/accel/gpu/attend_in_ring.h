/* Attention to keys and values that go round the ranks along an axis, by rows (attend_by_rows.h): a rank's positions
 * are two chunks of the sequence, the one of its number and the one as far from the end, and a launch is of one chunk
 * of its queries and one of the keys that have come. For C++ that nvcc or hipcc compiles.
 *
 * `shape` has, in addition to what attend_by_rows.h says: chunk, the rows of one, of which there are two in queries and
 * keys; ranks. Where it has a window or starts, what a query sees of a chunk depends on the rank, and no branch does
 * so, which accel-gen audit looks for. Keys have no steps: `held` is [2][batch][groups][keys][columns], keys and then
 * values. Blocks are parts of 64 rows of a chunk, heads and the batch, as there. */
#ifndef ACCEL_GPU_ATTEND_IN_RING_H
#define ACCEL_GPU_ATTEND_IN_RING_H

#include "attend_by_rows.h"

/* Whose keys they are in the step in which those of the rank `step` before have come. */
template <typename shape> __device__ inline size_t accel_giver(size_t rank, size_t step) {
  return (rank + 2 * shape::ranks - step) % shape::ranks;
}

/* Which of a rank's chunks of queries pair `pair` of that step has. A causal mask leaves two pairs, and three of a
 * rank's own keys. */
template <typename shape> __device__ inline size_t accel_chunk_of_queries(size_t rank, size_t step, size_t pair) {
  const size_t later = accel_giver<shape>(rank, step) > rank ? 1 : 0;
  return shape::causal ? (pair == 1 ? later : 1) : pair / 2;
}

/* And which of the chunks of keys, with that one of queries. */
template <typename shape> __device__ inline size_t accel_chunk_of_keys(size_t mine, size_t pair) {
  return shape::causal ? (pair == 0 ? 0 : mine) : pair % 2;
}

/* Whether they are one chunk of the sequence, of which a causal mask leaves half. */
template <typename shape> __device__ inline bool accel_is_one_chunk(size_t step, size_t pair) {
  return shape::causal && step % shape::ranks == 0 && pair > 0;
}

/* The first position of a rank's chunk in the sequence. */
template <typename shape> __device__ inline int32_t accel_begin_of_chunk(size_t rank, size_t which) {
  return (int32_t)((which == 0 ? rank : 2 * shape::ranks - 1 - rank) * shape::chunk);
}

/* The first key of a chunk that query i of another one sees, below 0 and beyond its end, too. at, of_keys: where the
 * two chunks begin. */
template <typename shape>
__device__ inline int32_t accel_first_of_chunk(int32_t at, int32_t of_keys, size_t i, int32_t document) {
  int32_t since = 0;
  if constexpr (shape::window > 0) since = at - of_keys + (int32_t)i - (int32_t)(shape::window - 1);
  if constexpr (shape::by_starts) since = shape::window == 0 || document - of_keys > since ? document - of_keys : since;
  return since;
}

template <typename shape> __device__ inline bool accel_sees_of_chunk(size_t i, size_t j, int32_t since, bool same) {
  return j < shape::chunk && (!same || j <= i) && ((shape::window == 0 && !shape::by_starts) || (int32_t)j >= since);
}

/* Where keys of a chunk begin in what is held, values n further. */
template <typename shape> __device__ inline size_t accel_keys_of_chunk(size_t group, size_t chunk) {
  return ((blockIdx.z * shape::groups + group) * shape::keys + chunk * shape::chunk) * shape::columns;
}

/* ---- Forward, and the backward's part by queries ---- */

/* Adds, of each query, the values of the keys that it sees to sums and their weights to total, times e^-lse, which is
 * the highest score so far. */
template <int share, typename shape, typename type>
__device__ inline void accel_attend_chunk(float *sums, float *lse, float *total, const type *q, const type *held,
                                          const int32_t *starts, size_t rank, size_t step, size_t pair) {
  constexpr int columns = shape::columns;
  constexpr bool hides = shape::window > 0 || shape::by_starts;
  typedef accel_row_part<columns, share> part;
  __shared__ accel_rows<columns, share> keys, values;
  const size_t mine = accel_chunk_of_queries<shape>(rank, step, pair), theirs = accel_chunk_of_keys<shape>(mine, pair);
  const int32_t own = accel_begin_of_chunk<shape>(rank, mine);
  const int32_t of_keys = accel_begin_of_chunk<shape>(accel_giver<shape>(rank, step), theirs);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / share, h = blockIdx.y, b = blockIdx.z;
  const bool there = i < shape::chunk;
  const size_t row = (b * shape::heads + h) * shape::queries + mine * shape::chunk + (there ? i : 0);
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = starts[b * shape::queries + mine * shape::chunk + (there ? i : 0)];
  const int32_t since = accel_first_of_chunk<shape>(own, of_keys, i, begin);
  float query[part::each], result[part::each], highest = lse[row], sum = total[row];
  accel_take_row<columns, share>(query, q + b * shape::q_batch + h * shape::q_head,
                                 (mine * shape::chunk + i) * shape::q_row, there, shape::scale);
  accel_take_row<columns, share>(result, sums, row * columns, there, 1.0f);
  const size_t own_end = ((size_t)blockIdx.x + 1) * 64;
  const size_t last = same && own_end < shape::chunk ? own_end : shape::chunk;
  const type *from = held + accel_keys_of_chunk<shape>(h / (shape::heads / shape::groups), theirs);
  for (size_t first = 0; first < last; first += part::tile) {
    accel_bring_rows(&keys, from, columns, &values, from + shape::held, columns, first, shape::chunk);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const bool sees = there && accel_sees_of_chunk<shape>(i, first + n_key, since, same);
      if (!hides && share == 1 && !sees) continue;
      float scores[4] = {0.0f};
      for (int n = 0; n < part::each; n++)
        scores[n % 4] += query[n] * keys.items[n_key][accel_part_column<columns, share>(n)];
      const float score = accel_join<share>((scores[0] + scores[1]) + (scores[2] + scores[3]));
      if (!hides && share > 1 && !sees) continue;
      const float seen = sees ? score : -3e38f;
      if (hides || seen > highest) {
        const float top = seen > highest ? seen : highest, shrink = accel_exp(highest - top);
        sum *= shrink;
        for (int n = 0; n < part::each; n++) result[n] *= shrink;
        highest = top;
      }
      const float weight = sees ? accel_exp(score - highest) : 0.0f;
      sum += weight;
      accel_add_row<columns, share>(result, weight, values.items[n_key]);
    }
  }
  if (!there) return;
  if (threadIdx.x % share == 0) {
    lse[row] = highest;
    total[row] = sum;
  }
  accel_give_row<false, columns, share>(sums, row * columns, result, 1.0f);
}

/* Adds to sums, the gradient of q, what the keys that a query sees give. */
template <int share, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_chunk_dq(float *sums, const type *q, const type *held, const type *y,
                                             const float *lse, const slope_type *dy, const int32_t *starts, size_t rank,
                                             size_t step, size_t pair) {
  constexpr int columns = shape::columns;
  constexpr bool hides = shape::window > 0 || shape::by_starts;
  typedef accel_row_part<columns, share> part;
  __shared__ accel_rows<columns, share> keys, values;
  const size_t mine = accel_chunk_of_queries<shape>(rank, step, pair), theirs = accel_chunk_of_keys<shape>(mine, pair);
  const int32_t own = accel_begin_of_chunk<shape>(rank, mine);
  const int32_t of_keys = accel_begin_of_chunk<shape>(accel_giver<shape>(rank, step), theirs);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / share, h = blockIdx.y, b = blockIdx.z;
  const bool there = i < shape::chunk;
  const size_t at = mine * shape::chunk + i;
  const size_t row = (b * shape::heads + h) * shape::queries + mine * shape::chunk + (there ? i : 0);
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = starts[b * shape::queries + mine * shape::chunk + (there ? i : 0)];
  const int32_t since = accel_first_of_chunk<shape>(own, of_keys, i, begin);
  float query[part::each], slope[part::each], given[part::each], result[part::each], dot = 0.0f;
  accel_take_row<columns, share>(query, q + b * shape::q_batch + h * shape::q_head, at * shape::q_row, there, 1.0f);
  accel_take_row<columns, share>(slope, dy + b * shape::dy_batch + h * shape::dy_head, at * shape::dy_row, there, 1.0f);
  accel_take_row<columns, share>(given, y + b * shape::y_batch + h * shape::y_head, at * shape::y_row, there, 1.0f);
  accel_take_row<columns, share>(result, sums, row * columns, there, 1.0f);
  for (int n = 0; n < part::each; n++) dot += slope[n] * given[n];
  dot = accel_join<share>(dot);
  const float top = lse[row];
  const size_t own_end = ((size_t)blockIdx.x + 1) * 64;
  const size_t last = same && own_end < shape::chunk ? own_end : shape::chunk;
  const type *from = held + accel_keys_of_chunk<shape>(h / (shape::heads / shape::groups), theirs);
  for (size_t first = 0; first < last; first += part::tile) {
    accel_bring_rows(&keys, from, columns, &values, from + shape::held, columns, first, shape::chunk);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const bool sees = there && accel_sees_of_chunk<shape>(i, first + n_key, since, same);
      if (!hides && share == 1 && !sees) continue;
      float score, product;
      accel_two_dots<columns, share>(&score, &product, query, keys.items[n_key], slope, values.items[n_key]);
      if (!hides && share > 1 && !sees) continue;
      const float p = sees ? accel_exp(shape::scale * score - top) : 0.0f;
      const float ds = p * (product - dot) * shape::scale;
      accel_add_row<columns, share>(result, ds, keys.items[n_key]);
    }
  }
  if (!there) return;
  accel_give_row<false, columns, share>(sums, row * columns, result, 1.0f);
}

/* ---- The backward's part by keys ---- */

/* What queries of a tile have in addition to their rows. */
template <int share, typename shape, typename type>
__device__ inline void
accel_find_ring_numbers(accel_query_numbers<accel_row_part<shape::columns, share>::tile> *numbers,
                        const accel_rows<shape::columns, share> *slopes, const type *y, const float *lse,
                        const int32_t *starts, int32_t own, int32_t of_keys, size_t first) {
  const size_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (size_t n = warp; n < accel_row_part<shape::columns, share>::tile; n += 2 * share) {
    const size_t i = first + n;
    float dot = 0.0f;
    for (size_t c = lane; c < shape::columns && i < shape::chunk; c += 32)
      dot += slopes->items[n][c] * accel_float(y[i * shape::y_row + c]);
    dot = accel_sum<32>(dot);
    if (lane > 0) continue;
    numbers->dots[n] = dot;
    numbers->tops[n] = i < shape::chunk ? lse[i] : 0.0f;
    int32_t begin = 0;
    if constexpr (shape::by_starts) begin = i < shape::chunk ? starts[i] : 0;
    numbers->begins[n] = accel_first_of_chunk<shape>(own, of_keys, i, begin);
  }
  __syncthreads();
}

/* Adds to added, [2][batch][groups][keys][columns], the gradients of keys and values, over the queries of all heads
 * that a key serves. */
template <int share, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_chunk_dkv(float *added, const type *q, const type *held, const type *y,
                                              const float *lse, const slope_type *dy, const int32_t *starts,
                                              size_t rank, size_t step, size_t pair) {
  constexpr int columns = shape::columns;
  typedef accel_row_part<columns, share> part;
  constexpr size_t group = shape::heads / shape::groups;
  __shared__ accel_rows<columns, share> queries, slopes;
  __shared__ accel_query_numbers<part::tile> numbers;
  const size_t mine = accel_chunk_of_queries<shape>(rank, step, pair), theirs = accel_chunk_of_keys<shape>(mine, pair);
  const int32_t own = accel_begin_of_chunk<shape>(rank, mine);
  const int32_t of_keys = accel_begin_of_chunk<shape>(accel_giver<shape>(rank, step), theirs);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t j = (size_t)blockIdx.x * 64 + threadIdx.x / share, shared = blockIdx.y, b = blockIdx.z;
  const bool there = j < shape::chunk;
  const size_t at = accel_keys_of_chunk<shape>(shared, theirs), rows = mine * shape::chunk;
  float key[part::each], value[part::each], key_sum[part::each], value_sum[part::each];
  accel_take_row<columns, share>(key, held + at, j * columns, there, 1.0f);
  accel_take_row<columns, share>(value, held + at + shape::held, j * columns, there, 1.0f);
  accel_take_row<columns, share>(key_sum, added + at, j * columns, there, 1.0f);
  accel_take_row<columns, share>(value_sum, added + at + shape::held, j * columns, there, 1.0f);
  const size_t own_first = same ? (size_t)blockIdx.x * 64 / part::tile * part::tile : 0;
  for (size_t h = shared * group; h < (shared + 1) * group; h++)
    for (size_t first = own_first; first < shape::chunk; first += part::tile) {
      accel_bring_rows(&queries, q + b * shape::q_batch + h * shape::q_head + rows * shape::q_row, shape::q_row,
                       &slopes, dy + b * shape::dy_batch + h * shape::dy_head + rows * shape::dy_row, shape::dy_row,
                       first, shape::chunk);
      accel_find_ring_numbers<share, shape>(&numbers, &slopes,
                                            y + b * shape::y_batch + h * shape::y_head + rows * shape::y_row,
                                            lse + (b * shape::heads + h) * shape::queries + rows,
                                            starts + b * shape::queries + rows, own, of_keys, first);
      for (size_t n_query = 0; n_query < part::tile && first + n_query < shape::chunk; n_query++) {
        const bool sees = there && accel_sees_of_chunk<shape>(first + n_query, j, numbers.begins[n_query], same);
        if (share == 1 && !sees) continue;
        float score, product;
        accel_two_dots<columns, share>(&score, &product, key, queries.items[n_query], value, slopes.items[n_query]);
        if (share > 1 && !sees) continue;
        const float p = accel_exp(shape::scale * score - numbers.tops[n_query]);
        const float ds = p * (product - numbers.dots[n_query]) * shape::scale;
        accel_add_row<columns, share>(key_sum, ds, queries.items[n_query]);
        accel_add_row<columns, share>(value_sum, p, slopes.items[n_query]);
      }
    }
  if (!there) return;
  accel_give_row<false, columns, share>(added + at, j * columns, key_sum, 1.0f);
  accel_give_row<false, columns, share>(added + at + shape::held, j * columns, value_sum, 1.0f);
}

#endif
