/* Attention without the matrix of scores in memory, in float32: `lanes` threads have a query, or in the backward's
 * second part a key, in registers, and a block of 64 of these brings the other side through shared memory, 32 rows at a
 * time or fewer (Dao, Fu, Ermon, Rudra, Re, arXiv:2205.14135). Every sum has one order. For C++ that nvcc or hipcc
 * compiles.
 *
 * `shape` has what is constant: heads, of keys and values `groups`; queries, keys; columns of a head; window, 0 where
 * there is none; causal; by_starts, whether starts[batch][query] is the first key that a query sees; biased, whether
 * scores have a bias (attend_in_ring.h), and then `rest`, where the second part of lse begins; scale; and of each
 * operand the steps NAME_batch, NAME_head and NAME_row, and of what is written NAME_adds. Blocks are parts of 64 rows,
 * heads and the batch along blockIdx.x, y and z, and have 64 times `lanes` threads. */
#ifndef ACCEL_GPU_ATTEND_BY_ROWS_H
#define ACCEL_GPU_ATTEND_BY_ROWS_H

#include "functions.h"
#include "group.h"

/* ---- Rows ---- */

/* What a thread has of a row: columns, and of how many together; the rows of two operands, with five numbers each, that
 * 48 KiB hold, the shared memory that a kernel has unasked, and the numbers of these rows; and how many columns of a
 * thread pass through that memory at a time, in a line for each of them, as many as a warp's part of it holds. */
template <int columns, int lanes> struct accel_row_part {
  static constexpr int each = (columns + lanes - 1) / lanes, width = each * lanes;
  static constexpr int tile = width <= 188 ? 32 : width <= 380 ? 16 : width <= 764 ? 8 : 4, count = tile * width;
  static constexpr int together = lanes == 1 ? 1 : each % 4 == 0 ? 4 : 1; /* of a thread's columns, neighbours */
  static constexpr int line = 32 + lanes, most = count / lanes / line / together * together;
  static constexpr int passes = most > 0 ? (each + most - 1) / most : each / together;
  static constexpr int passed = (each + passes * together - 1) / (passes * together) * together;
  static constexpr int room = (most > 0 ? count : line * together * lanes) * 2;
};

/* The n-th column of a thread: neighbours by four where they divide its columns. */
template <int columns, int lanes> __device__ inline int accel_part_column(int n) {
  constexpr int each = accel_row_part<columns, lanes>::each;
  const int part = (int)threadIdx.x % lanes;
  return lanes == 1 ? n : each % 4 == 0 ? (n / 4 * lanes + part) * 4 + n % 4 : n * lanes + part;
}

/* The sum over the threads of a row. */
template <int lanes> __device__ inline float accel_sum_of_lanes(float x) {
  if constexpr (lanes > 1) return accel_sum<lanes>(x);
  return x;
}

/* Where shared memory has column c, counted from the first one that passes at a time, of a warp's row: the n-th of each
 * thread in a line, which are so long that neither neighbours in a row nor the threads of a line meet in a bank. */
template <int columns, int lanes> __device__ inline int accel_place(int row, int c) {
  constexpr int together = accel_row_part<columns, lanes>::together;
  const int part = c / together % lanes, n = c / (together * lanes) * together + c % together;
  return n * accel_row_part<columns, lanes>::line + row * lanes + part;
}

/* What a warp has of shared memory that holds rows of two operands. */
template <int columns, int lanes> __device__ inline float *accel_room_of_warp(float *room) {
  typedef accel_row_part<columns, lanes> part;
  return room + threadIdx.x / 32 * (part::passed * part::line);
}

/* to = factor times a thread's columns of its row of a matrix, a block's 64th part of `count` rows so far apart; zeros
 * where it is not there. The lanes of a warp read neighbours, which go to the threads that have them through `room`,
 * which no other warp uses in this way at a time when rows are there. */
template <int columns, int lanes, typename type>
__device__ inline void accel_take_row(float *to, float *room, const type *from, size_t step, size_t count,
                                      float factor) {
  typedef accel_row_part<columns, lanes> part;
  float *const own = accel_room_of_warp<columns, lanes>(room);
  const int lane = (int)threadIdx.x % 32;
  const size_t first = (size_t)blockIdx.x * 64 + threadIdx.x / 32 * (32 / lanes);
#pragma unroll
  for (int begin = 0; begin < part::each; begin += part::passed) {
    const int some = part::each - begin < part::passed ? part::each - begin : part::passed;
    __syncwarp();
#pragma unroll 8
    for (int n = lane; n < some * 32; n += 32) {
      const int row = n / (some * lanes), c = n % (some * lanes), column = begin * lanes + c;
      const bool inside = first + row < count && (part::width == columns || column < columns);
      own[accel_place<columns, lanes>(row, c)] =
          inside ? accel_float(from[(first + row) * step + column]) * factor : 0.0f;
    }
    __syncwarp();
#pragma unroll
    for (int n = 0; n < some; n++) to[begin + n] = own[n * part::line + lane];
  }
}

/* A thread's columns of its row of a matrix, as accel_take_row has them, (+)= from over a divisor. All of a block. */
template <bool add, int columns, int lanes, typename type>
__device__ inline void accel_give_row(type *to, size_t step, size_t count, float *room, const float *from,
                                      float divisor) {
  typedef accel_row_part<columns, lanes> part;
  float *const own = accel_room_of_warp<columns, lanes>(room);
  const int lane = (int)threadIdx.x % 32;
  const size_t first = (size_t)blockIdx.x * 64 + threadIdx.x / 32 * (32 / lanes);
  __syncthreads();
#pragma unroll
  for (int begin = 0; begin < part::each; begin += part::passed) {
    const int some = part::each - begin < part::passed ? part::each - begin : part::passed;
    __syncwarp();
#pragma unroll
    for (int n = 0; n < some; n++) own[n * part::line + lane] = from[begin + n] / divisor;
    __syncwarp();
#pragma unroll 1 /* results fill the registers, and no store is waited for */
    for (int n = lane; n < some * 32; n += 32) {
      const int row = n / (some * lanes), c = n % (some * lanes), column = begin * lanes + c;
      if (first + row < count && (part::width == columns || column < columns))
        accel_write<add>(to + (first + row) * step + column, own[accel_place<columns, lanes>(row, c)]);
    }
  }
}

/* Rows `first` and on of two matrices of `count` rows into shared memory, those of the second after those of the first;
 * zeros after the last. */
template <int columns, int lanes, typename type, typename also_type>
__device__ inline void accel_bring_rows(float *to, const type *from, size_t row, const also_type *also_from,
                                        size_t also_row, size_t first, size_t count) {
  typedef accel_row_part<columns, lanes> part;
  __syncthreads();
  for (size_t n = threadIdx.x; n < part::tile * part::width; n += 64 * lanes) {
    const size_t r = n / part::width, c = n % part::width;
    const bool inside = first + r < count && (part::width == columns || c < columns);
    to[n] = inside ? accel_float(from[(first + r) * row + c]) : 0.0f;
    to[part::count + n] = inside ? accel_float(also_from[(first + r) * also_row + c]) : 0.0f;
  }
  __syncthreads();
}

/* The dot products of two rows of a thread, and of those that it shares them with, with two rows in shared memory. */
template <int columns, int lanes>
__device__ inline void accel_two_dots(float *first, float *second, const float *own_first, const float *row_first,
                                      const float *own_second, const float *row_second) {
  float firsts[2] = {0.0f}, seconds[2] = {0.0f};
  for (int n = 0; n < accel_row_part<columns, lanes>::each; n++) {
    const int c = accel_part_column<columns, lanes>(n);
    firsts[n % 2] += own_first[n] * row_first[c];
    seconds[n % 2] += own_second[n] * row_second[c];
  }
  *first = accel_sum_of_lanes<lanes>(firsts[0] + firsts[1]);
  *second = accel_sum_of_lanes<lanes>(seconds[0] + seconds[1]);
}

/* to += factor times a thread's columns of a row in shared memory. */
template <int columns, int lanes> __device__ inline void accel_add_row(float *to, float factor, const float *row) {
  for (int n = 0; n < accel_row_part<columns, lanes>::each; n++)
    to[n] += factor * row[accel_part_column<columns, lanes>(n)];
}

/* ---- A key and a query ----
 *
 * `hides`: a query that does not see the key adds zeros instead of leaving it out, so that no branch depends on what is
 * seen. */

/* A score with its bias, not below -3e38: what such biases leave of a query's keys is not NaN. */
__device__ inline float accel_with_bias(float score, float bias) {
  const float sum = score + bias;
  return sum < -3e38f ? -3e38f : sum;
}

/* Adds the value of a key to result and its weight to *sum, both times e^-*highest, which is the highest score so far.
 * query: times the scale; bias: where scores have one. */
template <bool hides, bool biased, int columns, int lanes>
__device__ inline void accel_add_value(float *result, float *highest, float *sum, const float *query, const float *key,
                                       const float *value, bool sees, float bias) {
  constexpr int each = accel_row_part<columns, lanes>::each;
  if (!hides && lanes == 1 && !sees) return;
  float scores[4] = {0.0f}; /* four, so that one addition need not wait for the one before */
  for (int n = 0; n < each; n++) scores[n % 4] += query[n] * key[accel_part_column<columns, lanes>(n)];
  const float product = accel_sum_of_lanes<lanes>((scores[0] + scores[1]) + (scores[2] + scores[3]));
  const float score = biased ? accel_with_bias(product, bias) : product;
  if (!hides && lanes > 1 && !sees) return;
  const float seen = !hides || sees ? score : -3e38f;
  if (hides || seen > *highest) {
    const float top = !hides || seen > *highest ? seen : *highest, shrink = accel_exp(*highest - top);
    *sum *= shrink;
    for (int n = 0; n < each; n++) result[n] *= shrink;
    *highest = top;
  }
  const float weight = !hides || sees ? accel_exp(score - *highest) : 0.0f;
  *sum += weight;
  accel_add_row<columns, lanes>(result, weight, value);
}

/* What a row of scores has in addition to its operands: rowsum(dy y); lse, of which `rest` is the second part; and the
 * bias of the key at hand. */
struct accel_row_numbers {
  float dot, top, rest, bias;
};

/* e^(scale q k - lse) */
template <typename shape> __device__ inline float accel_probability(float product, const accel_row_numbers *of) {
  if constexpr (shape::biased)
    return accel_exp(accel_with_bias(shape::scale * product, of->bias) - of->top - of->rest);
  else
    return accel_exp(shape::scale * product - of->top);
}

/* Adds what a key gives to dq: with p = e^(scale q k - lse), scale p (dy v - dot) k. Returns p (dy v - dot), the slope
 * of the score's bias. */
template <bool hides, int lanes, typename shape>
__device__ inline float accel_add_dq(float *result, const float *query, const float *slope, const accel_row_numbers *of,
                                     const float *key, const float *value, bool sees) {
  if (!hides && lanes == 1 && !sees) return 0.0f;
  float score, product;
  accel_two_dots<shape::columns, lanes>(&score, &product, query, key, slope, value);
  if (!hides && lanes > 1 && !sees) return 0.0f;
  const float p = !hides || sees ? accel_probability<shape>(score, of) : 0.0f, added = p * (product - of->dot);
  accel_add_row<shape::columns, lanes>(result, added * shape::scale, key);
  return added;
}

/* Adds what a query gives to dk and dv: scale p (dy v - dot) q and p dy. */
template <int lanes, typename shape>
__device__ inline void accel_add_dkv(float *key_sum, float *value_sum, const float *key, const float *value,
                                     const accel_row_numbers *of, const float *query, const float *slope, bool sees) {
  if (lanes == 1 && !sees) return;
  float score, product;
  accel_two_dots<shape::columns, lanes>(&score, &product, key, query, value, slope);
  if (lanes > 1 && !sees) return;
  const float p = accel_probability<shape>(score, of);
  accel_add_row<shape::columns, lanes>(key_sum, p * (product - of->dot) * shape::scale, query);
  accel_add_row<shape::columns, lanes>(value_sum, p, slope);
}

/* A query's rows of q and dy, and rowsum(dy y): of row `first` + that of a thread, below `count`, in head h of sequence
 * b. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_take_query(float *query, float *slope, float *dot, float *room, const type *q,
                                        const slope_type *dy, const type *y, size_t b, size_t h, size_t first,
                                        size_t count) {
  constexpr int columns = shape::columns, each = accel_row_part<columns, lanes>::each;
  float given[each], sum = 0.0f;
  accel_take_row<columns, lanes>(query, room, q + b * shape::q_batch + h * shape::q_head + first * shape::q_row,
                                 shape::q_row, count, 1.0f);
  accel_take_row<columns, lanes>(slope, room, dy + b * shape::dy_batch + h * shape::dy_head + first * shape::dy_row,
                                 shape::dy_row, count, 1.0f);
  accel_take_row<columns, lanes>(given, room, y + b * shape::y_batch + h * shape::y_head + first * shape::y_row,
                                 shape::y_row, count, 1.0f);
  for (int n = 0; n < each; n++) sum += slope[n] * given[n];
  *dot = accel_sum_of_lanes<lanes>(sum);
}

/* What queries of a tile have in addition to their rows. */
template <int tile> struct accel_query_numbers {
  accel_row_numbers items[tile];
  int32_t begins[tile];
};

/* Those of queries `first` and on of `count`, by warps, from the rows of dy that shared memory has. */
template <int lanes, typename shape, typename type>
__device__ inline void accel_find_numbers(accel_query_numbers<accel_row_part<shape::columns, lanes>::tile> *numbers,
                                          const float *slopes, const type *y, const float *lse, const int32_t *starts,
                                          size_t first, size_t count) {
  const size_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (size_t n = warp; n < accel_row_part<shape::columns, lanes>::tile; n += 2 * lanes) {
    const size_t i = first + n;
    float dot = 0.0f;
    for (size_t c = lane; c < shape::columns && i < count; c += 32)
      dot += slopes[n * accel_row_part<shape::columns, lanes>::width + c] * accel_float(y[i * shape::y_row + c]);
    dot = accel_sum<32>(dot);
    if (lane > 0) continue;
    numbers->items[n].dot = dot;
    numbers->items[n].top = i < count ? lse[i] : 0.0f;
    if constexpr (shape::biased) numbers->items[n].rest = i < count ? lse[shape::rest + i] : 0.0f;
    if constexpr (shape::by_starts) numbers->begins[n] = i < count ? starts[i] : 0;
  }
  __syncthreads();
}

/* ---- What is seen ---- */

/* Whether query i sees key j, the first that it sees being `begin`. */
template <typename shape> __device__ inline bool accel_sees(size_t i, size_t j, int32_t begin) {
  return j < shape::keys && (!shape::causal || j <= i) && (shape::window == 0 || j + shape::window > i) &&
         (!shape::by_starts || (int32_t)j >= begin);
}

/* The first key that one of `count` queries from `first` on sees. */
template <typename shape>
__device__ inline size_t accel_first_seen(const int32_t *starts, size_t batch, size_t first, size_t count) {
  size_t seen = 0;
  if constexpr (shape::by_starts) {
    const size_t most = shape::queries - first;
    seen = (size_t)accel_lowest(starts + batch * shape::queries + first,
                                shape::queries % count == 0 || most > count ? count : most);
  }
  if constexpr (shape::window > 0)
    if (first + 1 > seen + shape::window) seen = first + 1 - shape::window;
  return seen;
}

/* The end of the keys that a block of queries sees. */
template <typename shape> __device__ inline size_t accel_last_seen() {
  const size_t end = ((size_t)blockIdx.x + 1) * 64;
  return shape::causal && end < shape::keys ? end : shape::keys;
}

/* ---- Forward, and the backward's part by queries ---- */

/* y = softmax(scale q k^T) v, lse = ln of the sum of e^scores. */
template <int lanes, typename shape, typename type>
__device__ inline void accel_attend_by_rows(type *y, float *lse, const type *q, const type *k, const type *v,
                                            const int32_t *starts) {
  constexpr int columns = shape::columns;
  typedef accel_row_part<columns, lanes> part;
  __shared__ float room[part::room];
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, h = blockIdx.y, b = blockIdx.z;
  const size_t group = h / (shape::heads / shape::groups);
  const bool there = i < shape::queries;
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = there ? starts[b * shape::queries + i] : 0;
  float query[part::each], result[part::each] = {0.0f}, highest = -INFINITY, sum = 0.0f;
  accel_take_row<columns, lanes>(query, room, q + b * shape::q_batch + h * shape::q_head, shape::q_row, shape::queries,
                                 shape::scale);
  const size_t last = accel_last_seen<shape>();
  const size_t seen = accel_first_seen<shape>(starts, b, (size_t)blockIdx.x * 64, 64);
  for (size_t first = seen / part::tile * part::tile; first < last; first += part::tile) {
    accel_bring_rows<columns, lanes>(room, k + b * shape::k_batch + group * shape::k_head, shape::k_row,
                                     v + b * shape::v_batch + group * shape::v_head, shape::v_row, first, shape::keys);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const float *const brought = room + n_key * part::width;
      const bool sees = there && accel_sees<shape>(i, first + n_key, begin);
      accel_add_value<false, false, columns, lanes>(result, &highest, &sum, query, brought, brought + part::count, sees,
                                                    0.0f);
    }
  }
  if (there && threadIdx.x % lanes == 0) lse[(b * shape::heads + h) * shape::queries + i] = highest + accel_log(sum);
  accel_give_row<shape::y_adds, columns, lanes>(y + b * shape::y_batch + h * shape::y_head, shape::y_row,
                                                shape::queries, room, result, sum);
}

/* With p = e^(scale q k^T - lse) and ds = scale p (dy v^T - rowsum(dy y)): dq = ds k. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_by_rows_dq(type *dq, const type *q, const type *k, const type *v, const type *y,
                                               const float *lse, const slope_type *dy, const int32_t *starts) {
  constexpr int columns = shape::columns;
  typedef accel_row_part<columns, lanes> part;
  __shared__ float room[part::room];
  const size_t i = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, h = blockIdx.y, b = blockIdx.z;
  const size_t group = h / (shape::heads / shape::groups);
  const bool there = i < shape::queries;
  int32_t begin = 0;
  if constexpr (shape::by_starts) begin = there ? starts[b * shape::queries + i] : 0;
  float query[part::each], slope[part::each], result[part::each] = {0.0f};
  accel_row_numbers numbers = {};
  accel_take_query<lanes, shape>(query, slope, &numbers.dot, room, q, dy, y, b, h, 0, shape::queries);
  numbers.top = there ? lse[(b * shape::heads + h) * shape::queries + i] : 0.0f;
  const size_t last = accel_last_seen<shape>();
  const size_t seen = accel_first_seen<shape>(starts, b, (size_t)blockIdx.x * 64, 64);
  for (size_t first = seen / part::tile * part::tile; first < last; first += part::tile) {
    accel_bring_rows<columns, lanes>(room, k + b * shape::k_batch + group * shape::k_head, shape::k_row,
                                     v + b * shape::v_batch + group * shape::v_head, shape::v_row, first, shape::keys);
    for (size_t n_key = 0; n_key < part::tile; n_key++) {
      const float *const brought = room + n_key * part::width;
      const bool sees = there && accel_sees<shape>(i, first + n_key, begin);
      accel_add_dq<false, lanes, shape>(result, query, slope, &numbers, brought, brought + part::count, sees);
    }
  }
  accel_give_row<shape::dq_adds, columns, lanes>(dq + b * shape::dq_batch + h * shape::dq_head, shape::dq_row,
                                                 shape::queries, room, result, 1.0f);
}

/* ---- The backward's part by keys ---- */

/* dk = ds^T q and dv = p^T dy, over the queries of all heads that a key serves. */
template <int lanes, typename shape, typename type, typename slope_type>
__device__ inline void accel_attend_by_rows_dkv(type *dk, type *dv, const type *q, const type *k, const type *v,
                                                const type *y, const float *lse, const slope_type *dy,
                                                const int32_t *starts) {
  constexpr int columns = shape::columns;
  typedef accel_row_part<columns, lanes> part;
  constexpr size_t group = shape::heads / shape::groups;
  __shared__ float room[part::room];
  __shared__ accel_query_numbers<part::tile> numbers;
  const size_t j = (size_t)blockIdx.x * 64 + threadIdx.x / lanes, shared = blockIdx.y, b = blockIdx.z;
  const bool there = j < shape::keys;
  const size_t last = ((size_t)blockIdx.x + 1) * 64; /* after the block's keys */
  const size_t end =
      shape::window > 0 && last + shape::window - 1 < shape::queries ? last + shape::window - 1 : shape::queries;
  float key[part::each], value[part::each], key_sum[part::each] = {0.0f}, value_sum[part::each] = {0.0f};
  accel_take_row<columns, lanes>(key, room, k + b * shape::k_batch + shared * shape::k_head, shape::k_row, shape::keys,
                                 1.0f);
  accel_take_row<columns, lanes>(value, room, v + b * shape::v_batch + shared * shape::v_head, shape::v_row,
                                 shape::keys, 1.0f);
  for (size_t h = shared * group; h < (shared + 1) * group; h++)
    for (size_t first = shape::causal ? (size_t)blockIdx.x * 64 / part::tile * part::tile : 0; first < end;
         first += part::tile) {
      if constexpr (shape::by_starts) {
        const size_t most = shape::queries - first;
        const size_t count = shape::queries % part::tile == 0 || most > part::tile ? part::tile : most;
        if (accel_lowest(starts + b * shape::queries + first, count) >= (int32_t)last)
          continue; /* of later documents */
      }
      accel_bring_rows<columns, lanes>(room, q + b * shape::q_batch + h * shape::q_head, shape::q_row,
                                       dy + b * shape::dy_batch + h * shape::dy_head, shape::dy_row, first,
                                       shape::queries);
      accel_find_numbers<lanes, shape>(&numbers, room + part::count, y + b * shape::y_batch + h * shape::y_head,
                                       lse + (b * shape::heads + h) * shape::queries, starts + b * shape::queries,
                                       first, shape::queries);
      for (size_t n_query = 0; n_query < part::tile && first + n_query < shape::queries; n_query++) {
        const float *const brought = room + n_query * part::width;
        const bool sees =
            there && accel_sees<shape>(first + n_query, j, shape::by_starts ? numbers.begins[n_query] : 0);
        accel_add_dkv<lanes, shape>(key_sum, value_sum, key, value, &numbers.items[n_query], brought,
                                    brought + part::count, sees);
      }
    }
  accel_give_row<shape::dk_adds, columns, lanes>(dk + b * shape::dk_batch + shared * shape::dk_head, shape::dk_row,
                                                 shape::keys, room, key_sum, 1.0f);
  accel_give_row<shape::dv_adds, columns, lanes>(dv + b * shape::dv_batch + shared * shape::dv_head, shape::dv_row,
                                                 shape::keys, room, value_sum, 1.0f);
}

#endif
