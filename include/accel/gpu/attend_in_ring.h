/* Attention to keys and values that go round the ranks along an axis, by rows (attend_by_rows.h): a rank's positions
 * are two chunks of the sequence, the one of its number and the one as far from the end, and a launch is of one chunk
 * of its queries and one of the keys that have come. For C++ that nvcc or hipcc compiles.
 *
 * `shape` has, in addition to what attend_by_rows.h says: chunk, the rows of one, of which there are two in queries and
 * keys; ranks; values, where values begin in `ring`. Where it has a window or starts, what a query sees of a chunk
 * depends on the rank, and no branch does so, which accel-gen audit looks for. Keys have no steps: `ring` is
 * [2][batch][groups][keys][columns], keys and then values. Blocks are parts of 64 rows of a chunk, heads and the batch,
 * as there.
 *
 * A bias has a rank's queries and the keys of all ranks, in the sequence's order: bias_batch, bias_head, bias_row and
 * bias_key are its steps, 0 where one number serves all. Its gradient is added up over the batch in `samples` of it at
 * a time, which are one block's: bias_sums is [batch / samples][heads][queries][all keys]. */
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

/* Which chunks of a rank's queries and of the keys a pair has, and where these begin in the sequence. */
struct accel_chunk_pair {
  size_t mine, theirs;
  int32_t begin, begin_of_keys;
};

template <typename shape>
__device__ inline void accel_find_chunks(accel_chunk_pair *chunks, size_t rank, size_t step, size_t pair) {
  chunks->mine = accel_chunk_of_queries<shape>(rank, step, pair);
  chunks->theirs = accel_chunk_of_keys<shape>(chunks->mine, pair);
  chunks->begin = accel_begin_of_chunk<shape>(rank, chunks->mine);
  chunks->begin_of_keys = accel_begin_of_chunk<shape>(accel_giver<shape>(rank, step), chunks->theirs);
}

/* The first key of the one chunk that query i of the other one sees, below 0 and beyond its end, too. */
template <typename shape>
__device__ inline int32_t accel_first_of_chunk(const accel_chunk_pair *chunks, size_t i, int32_t document) {
  const int32_t of_keys = chunks->begin_of_keys;
  int32_t since = 0;
  if constexpr (shape::window > 0) since = chunks->begin - of_keys + (int32_t)i - (int32_t)(shape::window - 1);
  if constexpr (shape::by_starts) since = shape::window == 0 || document - of_keys > since ? document - of_keys : since;
  return since;
}

template <typename shape> __device__ inline bool accel_sees_of_chunk(size_t i, size_t j, int32_t since, bool same) {
  return j < shape::chunk && (!same || j <= i) && ((shape::window == 0 && !shape::by_starts) || (int32_t)j >= since);
}

/* Where keys of a chunk begin in the ring's buffer, values `values` elements further. */
template <typename shape> __device__ inline size_t accel_keys_of_chunk(size_t b, size_t group, size_t chunk) {
  return ((b * shape::groups + group) * shape::keys + chunk * shape::chunk) * shape::columns;
}

/* The bias of query i and key j of two chunks that begin at that row and column, or of the first ones where there are
 * no such; 0 where scores have none. */
template <typename shape, typename type>
__device__ inline float accel_bias_of_chunks(const type *bias, size_t b, size_t h, size_t row, size_t column, size_t i,
                                             size_t j) {
  if constexpr (shape::biased) {
    const size_t query = row + (i < shape::chunk ? i : 0), key = column + (j < shape::chunk ? j : 0);
    return accel_float(
        bias[b * shape::bias_batch + h * shape::bias_head + query * shape::bias_row + key * shape::bias_key]);
  }
  return 0.0f;
}

/* ---- Forward, and the backward's part by queries ---- */

/* Adds, of each query, the values of the keys that it sees to sums and their weights to total, times e^-lse, which is
 * the highest score so far. */
template <int lanes, typename shape, typename type>
__device__ inline void accel_attend_chunk(float *sums, float *lse, float *total, const type *q, const type *ring,
                                          const int32_t *starts, const type *bias, size_t rank, size_t step,
                                          size_t pair) {
  constexpr int columns = shape::columns;
  constexpr bool hides = shape::window > 0 || shape::by_starts;
  typedef accel_row_part<columns, lanes> part;
  __shared__ float room[part::room];
  accel_chunk_pair chunks = {};
  accel_find_chunks<shape>(&chunks, rank, step, pair);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t mine = chunks.mine, theirs = chunks.theirs, column = (size_t)chunks.begin_of_keys;
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, h = blockIdx.y, b = blockIdx.z;
  const bool there = i < shape::chunk;
  const size_t first_query = (b * shape::heads + h) * shape::queries + mine * shape::chunk;
  const size_t row = first_query + (there ? i : 0);
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = starts[b * shape::queries + mine * shape::chunk + (there ? i : 0)];
  const int32_t since = accel_first_of_chunk<shape>(&chunks, i, begin);
  float query[part::each], result[part::each], highest = lse[row], sum = total[row];
  accel_take_row<columns, lanes>(query, room,
                                 q + b * shape::q_batch + h * shape::q_head + mine * shape::chunk * shape::q_row,
                                 shape::q_row, shape::chunk, shape::scale);
  accel_take_row<columns, lanes>(result, room, sums + first_query * columns, columns, shape::chunk, 1.0f);
  const size_t own_end = ((size_t)blockIdx.x + 1) * 64;
  const size_t last = same && own_end < shape::chunk ? own_end : shape::chunk;
  const type *from = ring + accel_keys_of_chunk<shape>(b, h / (shape::heads / shape::groups), theirs);
  for (size_t first = 0; first < last; first += part::tile) {
    accel_bring_rows<columns, lanes>(room, from, columns, from + shape::values, columns, first, shape::chunk);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const float *const brought = room + n_key * part::width;
      const bool sees = there && accel_sees_of_chunk<shape>(i, first + n_key, since, same);
      accel_add_value<hides, shape::biased, columns, lanes>(
          result, &highest, &sum, query, brought, brought + part::count, sees,
          accel_bias_of_chunks<shape>(bias, b, h, mine * shape::chunk, column, i, first + n_key));
    }
  }
  if (there && threadIdx.x % lanes == 0) {
    lse[row] = highest;
    total[row] = sum;
  }
  accel_give_row<false, columns, lanes>(sums + first_query * columns, columns, shape::chunk, room, result, 1.0f);
}

/* Adds to sums, the gradient of q, what the keys that a query of sample b sees give, and to bias_sums, unless it is
 * NULL, the slopes of their bias. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_sample_dq(float *sums, float *bias_sums, const type *q, const type *ring,
                                              const type *y, const float *lse, const slope_type *dy,
                                              const int32_t *starts, const type *bias, size_t rank, size_t step,
                                              size_t pair, size_t b) {
  constexpr int columns = shape::columns;
  constexpr bool hides = shape::window > 0 || shape::by_starts;
  typedef accel_row_part<columns, lanes> part;
  __shared__ float room[part::room];
  accel_chunk_pair chunks = {};
  accel_find_chunks<shape>(&chunks, rank, step, pair);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t mine = chunks.mine, theirs = chunks.theirs, column = (size_t)chunks.begin_of_keys;
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, h = blockIdx.y;
  const bool there = i < shape::chunk;
  const size_t first_query = (b * shape::heads + h) * shape::queries + mine * shape::chunk;
  const size_t row = first_query + (there ? i : 0);
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = starts[b * shape::queries + mine * shape::chunk + (there ? i : 0)];
  const int32_t since = accel_first_of_chunk<shape>(&chunks, i, begin);
  float query[part::each], slope[part::each], result[part::each];
  accel_row_numbers numbers = {};
  accel_take_query<lanes, shape>(query, slope, &numbers.dot, room, q, dy, y, b, h, mine * shape::chunk, shape::chunk);
  accel_take_row<columns, lanes>(result, room, sums + first_query * columns, columns, shape::chunk, 1.0f);
  numbers.top = lse[row];
  if constexpr (shape::biased) numbers.rest = lse[shape::rest + row];
  const size_t own_end = ((size_t)blockIdx.x + 1) * 64;
  const size_t last = same && own_end < shape::chunk ? own_end : shape::chunk;
  const type *from = ring + accel_keys_of_chunk<shape>(b, h / (shape::heads / shape::groups), theirs);
  for (size_t first = 0; first < last; first += part::tile) {
    accel_bring_rows<columns, lanes>(room, from, columns, from + shape::values, columns, first, shape::chunk);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const float *const brought = room + n_key * part::width;
      const size_t j = first + n_key;
      const bool sees = there && accel_sees_of_chunk<shape>(i, j, since, same);
      numbers.bias = accel_bias_of_chunks<shape>(bias, b, h, mine * shape::chunk, column, i, j);
      const float added =
          accel_add_dq<hides, lanes, shape>(result, query, slope, &numbers, brought, brought + part::count, sees);
      if constexpr (shape::samples > 0)
        if (there && j < shape::chunk && threadIdx.x % lanes == 0)
          bias_sums[((b / shape::samples * shape::heads + h) * shape::queries + mine * shape::chunk + i) *
                        shape::all_keys +
                    column + j] += added;
    }
  }
  accel_give_row<false, columns, lanes>(sums + first_query * columns, columns, shape::chunk, room, result, 1.0f);
}

/* The same of the samples of a block: one, or where the bias is learnt, those whose slopes are added up. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_chunk_dq(float *sums, float *bias_sums, const type *q, const type *ring,
                                             const type *y, const float *lse, const slope_type *dy,
                                             const int32_t *starts, const type *bias, size_t rank, size_t step,
                                             size_t pair) {
  constexpr size_t samples = shape::samples > 0 ? shape::samples : 1;
  for (size_t n = 0; n < samples; n++)
    accel_attend_sample_dq<lanes, shape>(sums, bias_sums, q, ring, y, lse, dy, starts, bias, rank, step, pair,
                                         blockIdx.z * samples + n);
}

/* Element i of the bias's gradient, [count], of which bias_sums has so many parts. */
template <size_t count, size_t parts> __device__ inline float accel_sum_of_parts(const float *bias_sums, size_t i) {
  float sum = 0.0f;
  for (size_t part = 0; part < parts; part++) sum += bias_sums[part * count + i];
  return sum;
}

/* ---- The backward's part by keys ---- */

/* Adds to added, [2][batch][groups][keys][columns], the gradients of keys and values, over the queries of all heads
 * that a key serves. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_chunk_dkv(float *added, const type *q, const type *ring, const type *y,
                                              const float *lse, const slope_type *dy, const int32_t *starts,
                                              const type *bias, size_t rank, size_t step, size_t pair) {
  constexpr int columns = shape::columns;
  typedef accel_row_part<columns, lanes> part;
  constexpr size_t group = shape::heads / shape::groups;
  __shared__ float room[part::room];
  __shared__ accel_query_numbers<part::tile> numbers;
  accel_chunk_pair chunks = {};
  accel_find_chunks<shape>(&chunks, rank, step, pair);
  const bool same = accel_is_one_chunk<shape>(step, pair);
  const size_t mine = chunks.mine, theirs = chunks.theirs, column = (size_t)chunks.begin_of_keys;
  const size_t j = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, shared = blockIdx.y, b = blockIdx.z;
  const bool there = j < shape::chunk;
  const size_t at = accel_keys_of_chunk<shape>(b, shared, theirs), rows = mine * shape::chunk;
  float key[part::each], value[part::each], key_sum[part::each], value_sum[part::each];
  accel_take_row<columns, lanes>(key, room, ring + at, columns, shape::chunk, 1.0f);
  accel_take_row<columns, lanes>(value, room, ring + at + shape::values, columns, shape::chunk, 1.0f);
  accel_take_row<columns, lanes>(key_sum, room, added + at, columns, shape::chunk, 1.0f);
  accel_take_row<columns, lanes>(value_sum, room, added + at + shape::values, columns, shape::chunk, 1.0f);
  const size_t own_first = same ? (size_t)blockIdx.x * 64 / part::tile * part::tile : 0;
  for (size_t h = shared * group; h < (shared + 1) * group; h++)
    for (size_t first = own_first; first < shape::chunk; first += part::tile) {
      accel_bring_rows<columns, lanes>(
          room, q + b * shape::q_batch + h * shape::q_head + rows * shape::q_row, shape::q_row,
          dy + b * shape::dy_batch + h * shape::dy_head + rows * shape::dy_row, shape::dy_row, first, shape::chunk);
      accel_find_numbers<lanes, shape>(&numbers, room + part::count,
                                       y + b * shape::y_batch + h * shape::y_head + rows * shape::y_row,
                                       lse + (b * shape::heads + h) * shape::queries + rows,
                                       starts + b * shape::queries + rows, first, shape::chunk);
      for (size_t n_query = 0; n_query < part::tile && first + n_query < shape::chunk; n_query++) {
        const float *const brought = room + n_query * part::width;
        const size_t i = first + n_query;
        const int32_t begin = shape::by_starts ? numbers.begins[n_query] : 0;
        const int32_t since = accel_first_of_chunk<shape>(&chunks, i, begin);
        accel_row_numbers own = numbers.items[n_query];
        own.bias = accel_bias_of_chunks<shape>(bias, b, h, rows, column, i, j);
        accel_add_dkv<lanes, shape>(key_sum, value_sum, key, value, &own, brought, brought + part::count,
                                    there && accel_sees_of_chunk<shape>(i, j, since, same));
      }
    }
  accel_give_row<false, columns, lanes>(added + at, columns, shape::chunk, room, key_sum, 1.0f);
  accel_give_row<false, columns, lanes>(added + at + shape::values, columns, shape::chunk, room, value_sum, 1.0f);
}

#endif
