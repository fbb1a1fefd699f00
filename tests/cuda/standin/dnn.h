/* A graph of cuDNN's operations as plain values. */
#ifndef TESTS_CUDA_DNN_H
#define TESTS_CUDA_DNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPERATIONS = 64, GIVEN = 32 };

struct tensor {
  int64_t id, length[4], step[4];
  int type; /* cudnnDataType_t */
  bool is_virtual, is_number;
};

/* What the tensors of an operation are to it. */
enum slot { X, B, T, Y, ROWS, COLUMNS, DEPTH, SLOTS };

struct operation {
  enum { POINTWISE, REDUCTION, RESHAPE, PRODUCT } kind;
  int mode;
  int64_t axis;
  bool has[SLOTS];
  struct tensor tensors[SLOTS];
};

struct execution {
  struct operation operations[OPERATIONS];
  int n_operations;
  int64_t ids[GIVEN];
  void *addresses[GIVEN];
  double numbers[GIVEN]; /* of tensors that are numbers, as they were when it was put into a stream */
  int n_given;
  void *workspace;
  size_t workspace_bytes;
};

/* A fault where a tensor in memory has no address, lies outside of the device's memory, or is not aligned. Notes
 * numbers. */
void execution_check(struct execution *execution);

/* Computes it. */
void execution_run(const struct execution *execution);

#endif
