/* A graph of cuDNN's operations as plain values. */
#ifndef TESTS_CUDA_DNN_H
#define TESTS_CUDA_DNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPERATIONS = 64, GIVEN = 32 };

struct tensor {
  int64_t id, alignment, length[4], step[4];
  int type; /* cudnnDataType_t */
  bool is_virtual, is_number;
};

/* What the tensors of an operation are to it. */
enum slot { X, B, T, Y, ROWS, COLUMNS, DEPTH, SLOTS };

/* Engines that this library has for convolutions, with the note that each has: what it does otherwise than the last. */
enum engine { DOWN_CONVERTS, REDUCES_LOW, BY_TENSOR_CORES, VARIES, PLAIN };

/* Of a convolution: x, B its weights, y. */
struct windows {
  int64_t stride[2], padding[2], dilation[2];
  double alpha, beta;
  enum slot made;
};

struct operation {
  enum { POINTWISE, REDUCTION, RESHAPE, MATMUL, CONVOLUTION } kind;
  int mode;
  int64_t axis;
  struct windows windows;
  bool has[SLOTS];
  struct tensor tensors[SLOTS];
};

struct execution {
  struct operation operations[OPERATIONS];
  int n_operations;
  enum engine engine;
  int64_t ids[GIVEN];
  void *addresses[GIVEN];
  double numbers[GIVEN]; /* of tensors that are numbers, as they were when it was put into a stream */
  int n_given;
  void *workspace;
  size_t workspace_bytes;
};

/* A fault where a tensor in memory has no address, is outside of the device's memory, or is not aligned. Notes
 * numbers. */
void execution_check(struct execution *execution);

/* Computes it. */
void execution_run(const struct execution *execution);

/* An element of a tensor while a graph runs. */
struct running;
double read_at(struct running *running, const struct tensor *tensor, int64_t offset);
void write_at(struct running *running, const struct tensor *tensor, int64_t offset, double value);

/* A convolution, or one of its gradients, as an engine computes it. */
void run_convolution(struct running *running, const struct operation *op, enum engine engine);

#endif
