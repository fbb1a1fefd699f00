/* The tensors of a file of GGUF: of which tensors of the weights each is made, and how. */
#ifndef ACCEL_COMMANDS_EXPORT_GGUF_TENSORS_H
#define ACCEL_COMMANDS_EXPORT_GGUF_TENSORS_H

#include "gen/commands/export/export.h"

enum gguf_change {
  CHANGE_NONE,
  CHANGE_TRANSPOSE,
  CHANGE_SWAP,
  CHANGE_SWAP_EACH,
  CHANGE_PART,
  CHANGE_PLUS,
  CHANGE_SQUEEZE,
  CHANGE_MINUS_EXP,
  CHANGE_HEADS,
  CHANGE_HEADS_TRANSPOSED
};

/* A tensor to write. Its rows are those of its last axis; those of a vector whose elements change places have one
 * element each. */
struct gguf_tensor {
  const char *name;
  enum gguf_type type;
  int rank;
  int64_t shape[8];
  int64_t rows, width;
  enum gguf_change change;
  int64_t a, b, c;                      /* of the change */
  const struct stored_tensor **sources; /* several: stacked on the first axis */
  int n_sources;
};

struct gguf_tensors {
  struct gguf_tensor *items;
  int count, capacity;
};

/* Finds them by the family's table. False with errors: a tensor that no row has, a row without a tensor, a shape that
 * its change does not fit. */
bool gguf_find_tensors(struct exported *of, enum gguf_type type, struct gguf_tensors *tensors);

/* The factors of Llama 3's angles for heads of `width`, a word of exported_number, as a vector of float32. False where
 * the config has no such numbers. */
bool gguf_rope_factors(const struct exported *of, const char *width, const struct stored_tensor **factors);

/* Bytes of a tensor in the file. */
uint64_t gguf_tensor_bytes(const struct gguf_tensor *tensor);

/* Row `row` of what is written, as float32. */
void gguf_read_row(const struct gguf_tensor *tensor, int64_t row, float *values);

/* Whether a row's numbers have a place in a type: float32 keeps all. */
enum gguf_fit { GGUF_FITS, GGUF_TOO_LARGE, GGUF_NOT_FINITE };

/* The row in the tensor's type, to `bytes`, which are whole only where it fits. */
enum gguf_fit gguf_encode_row(const struct gguf_tensor *tensor, const float *values, uint8_t *bytes);

/* Bytes of a row. */
uint64_t gguf_row_bytes(const struct gguf_tensor *tensor);

#endif
