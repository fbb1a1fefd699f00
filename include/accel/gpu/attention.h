/* Attention by cuDNN's graph interface: softmax(scale · Q Kᵀ) V without the matrix of weights in memory (Dao et al.,
 * arXiv:2205.14135), forward and backward. */
#ifndef ACCEL_GPU_ATTENTION_H
#define ACCEL_GPU_ATTENTION_H

#include "../gemm.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a tensor [batch][heads][length][head_size] is: steps in elements; a head's values follow each other. */
struct accel_steps {
  int64_t batch, head, row;
};

struct accel_gpu_attention {
  const char *name;             /* for messages */
  enum accel_element type;      /* BF16 or F16, of all but the row's numbers, which are float32 */
  int64_t batch, heads, groups; /* groups: heads of K and V, a divisor of heads */
  int64_t queries, keys, head_size;
  double scale;
  bool causal;  /* query i sees keys 0 … i */
  bool lengths; /* each sample's queries and keys are as many as two arrays say, the rest is padding */
  struct accel_steps q, k, v, y;
  struct accel_steps d_q, d_k, d_v, d_y;       /* of the backward */
  struct accel_gpu_engine *forward, *backward; /* the runtime's own */
};

/* Makes a forward ready: the first engine of cuDNN's heuristic that fits the plan's workspace. Ends the process with a
 * message that names the attention when there is none, or where this version of cuDNN is known to be wrong: the plan's
 * own kernel serves then. cuDNN 9.0 or later. The engine is the runtime's, until accel_gpu_close. */
void accel_gpu_open_attention(struct accel_gpu_attention *attention);

/* The same of a backward. Besides what the engine takes of the workspace, it takes 4 batch heads queries bytes, and
 * without `deterministic` of the plan 4 batch heads queries head_size more. */
void accel_gpu_open_attention_backward(struct accel_gpu_attention *attention);

/* What attention works on, all on the device. */
struct accel_attention_data {
  const void *q, *k, *v;
  void *y;
  float *lse; /* [batch][heads][queries]: log Σ exp of a row's scores, saved for the backward */
  const int32_t *query_lengths, *key_lengths; /* [batch]; NULL without lengths */
  const void *d_y;
  void *d_q, *d_k, *d_v;
};

/* Puts the forward into `stream`, the compute stream or one that never runs concurrently with it: reads q, k and v, and
 * writes y and lse. */
void accel_gpu_attend(const struct accel_gpu_attention *attention, accel_stream stream,
                      const struct accel_attention_data *data);

/* Puts the backward there: reads the same and y, lse and d_y, and writes d_q, d_k and d_v. */
void accel_gpu_attend_backward(const struct accel_gpu_attention *attention, accel_stream stream,
                               const struct accel_attention_data *data);

#ifdef __cplusplus
}
#endif

#endif
