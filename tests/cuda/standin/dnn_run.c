/* The operations of a graph of cuDNN, one after the other. A virtual tensor is an array of its own; one in memory is
 * read and written where it is. */
#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/dnn.h"

#include "runtime/base/half.h"

#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VIRTUALS = 256 };

/* Where the values of tensors between operations are, by their number, while a graph runs. */
struct running {
  const struct execution *of;
  double *values[VIRTUALS];
};

static size_t width(int type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_INT32 ? 4 : 2;
}

/* Elements from a tensor's first to after its last. */
static int64_t span(const struct tensor *tensor) {
  int64_t last = 0;
  for (int i = 0; i < 4; i++) last += (tensor->length[i] - 1) * tensor->step[i];
  return last + 1;
}

static int given(const struct execution *execution, int64_t id) {
  for (int i = 0; i < execution->n_given; i++)
    if (execution->ids[i] == id) return i;
  fault("cudnnBackendExecute: nothing is given for the tensor %lld", (long long)id);
}

void execution_check(struct execution *execution) {
  for (int i = 0; i < execution->n_operations; i++)
    for (int slot = 0; slot < SLOTS; slot++) {
      const struct tensor *tensor = &execution->operations[i].tensors[slot];
      if (!execution->operations[i].has[slot] || tensor->is_virtual) continue;
      int at = given(execution, tensor->id);
      if (tensor->is_number) {
        float value;
        memcpy(&value, execution->addresses[at], sizeof value);
        execution->numbers[at] = value;
        continue;
      }
      memory_require(execution->addresses[at], (size_t)span(tensor) * width(tensor->type), DEVICE,
                     "cudnnBackendExecute");
      if ((uintptr_t)execution->addresses[at] % (uintptr_t)tensor->alignment != 0)
        fault("cudnnBackendExecute: the tensor %lld is not at a multiple of %lld bytes", (long long)tensor->id,
              (long long)tensor->alignment);
    }
}

static double *values_of(struct running *running, const struct tensor *tensor) {
  double **at = &running->values[tensor->id % VIRTUALS];
  if (*at == NULL) *at = calloc((size_t)span(tensor), sizeof **at);
  if (*at == NULL) fault("no memory");
  return *at;
}

static double rounded(int type, double value) {
  if (type == CUDNN_DATA_BFLOAT16) return rt_widen_bfloat16(rt_narrow_bfloat16((float)value));
  if (type == CUDNN_DATA_HALF) return rt_widen_float16(rt_narrow_float16((float)value));
  return type == CUDNN_DATA_FLOAT ? (double)(float)value : value;
}

double read_at(struct running *running, const struct tensor *tensor, int64_t offset) {
  if (tensor->is_virtual) return values_of(running, tensor)[offset];
  int at = given(running->of, tensor->id);
  if (tensor->is_number) return running->of->numbers[at];
  const char *address = (const char *)running->of->addresses[at] + (size_t)offset * width(tensor->type);
  touch(address, width(tensor->type), false);
  if (tensor->type == CUDNN_DATA_FLOAT) return *(const float *)address;
  if (tensor->type == CUDNN_DATA_INT32) return *(const int32_t *)address;
  uint16_t bits = *(const uint16_t *)address;
  return tensor->type == CUDNN_DATA_BFLOAT16 ? rt_widen_bfloat16(bits) : rt_widen_float16(bits);
}

void write_at(struct running *running, const struct tensor *tensor, int64_t offset, double value) {
  if (tensor->is_virtual) {
    values_of(running, tensor)[offset] = rounded(tensor->type, value);
    return;
  }
  char *address = (char *)running->of->addresses[given(running->of, tensor->id)] + (size_t)offset * width(tensor->type);
  touch(address, width(tensor->type), true);
  if (tensor->type == CUDNN_DATA_FLOAT)
    *(float *)address = (float)value;
  else
    *(uint16_t *)address =
        tensor->type == CUDNN_DATA_BFLOAT16 ? rt_narrow_bfloat16((float)value) : rt_narrow_float16((float)value);
}

/* The element of `tensor` for a position of a larger one: what it has fewer of serves several. */
static int64_t offset_of(const struct tensor *tensor, const int64_t position[4], const int64_t of[4]) {
  int64_t offset = 0;
  for (int i = 0; i < 4; i++) offset += position[i] * tensor->length[i] / of[i] * tensor->step[i];
  return offset;
}

static bool next(int64_t position[4], const int64_t length[4]) {
  for (int i = 3; i >= 0; i--) {
    if (++position[i] < length[i]) return true;
    position[i] = 0;
  }
  return false;
}

static double applied(const struct operation *op, double x, double b, double t, const int64_t position[4]) {
  switch (op->mode) {
  case CUDNN_POINTWISE_ADD:
    return x + b;
  case CUDNN_POINTWISE_SUB:
    return x - b;
  case CUDNN_POINTWISE_MUL:
    return x * b;
  case CUDNN_POINTWISE_DIV:
    return x / b;
  case CUDNN_POINTWISE_EXP:
    return exp(x);
  case CUDNN_POINTWISE_LOG:
    return log(x);
  case CUDNN_POINTWISE_IDENTITY:
    return x;
  case CUDNN_POINTWISE_CMP_GE:
    return x >= b;
  case CUDNN_POINTWISE_CMP_LT:
    return x < b;
  case CUDNN_POINTWISE_LOGICAL_AND:
    return x != 0 && b != 0;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return t != 0 ? x : b;
  case CUDNN_POINTWISE_GEN_INDEX:
    return (double)position[op->axis];
  default:
    fault("a pointwise operation of cuDNN of the mode %d", op->mode);
  }
}

static void run_pointwise(struct running *running, const struct operation *op) {
  const struct tensor *y = &op->tensors[Y];
  int64_t position[4] = {0};
  do {
    double value[SLOTS] = {0};
    for (int slot = X; slot <= T; slot++)
      if (op->has[slot] && op->mode != CUDNN_POINTWISE_GEN_INDEX)
        value[slot] = read_at(running, &op->tensors[slot], offset_of(&op->tensors[slot], position, y->length));
    write_at(running, y, offset_of(y, position, y->length), applied(op, value[X], value[B], value[T], position));
  } while (next(position, y->length));
}

/* Elements of x that share an element of y: along a dimension of which y has one, or fewer. */
static void run_reduction(struct running *running, const struct operation *op) {
  const struct tensor *x = &op->tensors[X], *y = &op->tensors[Y];
  bool sums = op->mode == CUDNN_REDUCE_TENSOR_ADD;
  double *results = malloc((size_t)span(y) * sizeof *results);
  int64_t position[4] = {0};
  if (results == NULL || (!sums && op->mode != CUDNN_REDUCE_TENSOR_MAX)) fault("a reduction of cuDNN");
  for (int64_t i = 0; i < span(y); i++) results[i] = sums ? 0.0 : -INFINITY;
  do {
    double *result = &results[offset_of(y, position, x->length)];
    double value = read_at(running, x, offset_of(x, position, x->length));
    *result = sums ? *result + value : fmax(*result, value);
  } while (next(position, x->length));
  do write_at(running, y, offset_of(y, position, y->length), results[offset_of(y, position, y->length)]);
  while (next(position, y->length));
  free(results);
}

static void run_reshape(struct running *running, const struct operation *op) {
  const struct tensor *x = &op->tensors[X], *y = &op->tensors[Y];
  int64_t position[4] = {0};
  if (span(x) != span(y))
    fault("a reshape of cuDNN from %lld to %lld elements", (long long)span(x), (long long)span(y));
  do {
    int64_t offset = offset_of(y, position, y->length);
    write_at(running, y, offset, read_at(running, x, offset));
  } while (next(position, y->length));
}

static int64_t limit(struct running *running, const struct operation *op, enum slot slot, int64_t batch, int64_t all) {
  if (!op->has[slot]) return all;
  return (int64_t)read_at(running, &op->tensors[slot], batch * op->tensors[slot].step[0]);
}

/* What is beyond the rows and columns that count is 0. Into float32 in memory engines before 9.6 add. */
static void run_matmul(struct running *running, const struct operation *op) {
  const struct tensor *a = &op->tensors[X], *b = &op->tensors[B], *y = &op->tensors[Y];
  int64_t position[4] = {0}, depth = a->length[3];
  bool adds = !y->is_virtual && y->type == CUDNN_DATA_FLOAT && cudnnGetVersion() < 90600;
  if (depth != b->length[2] || a->length[2] != y->length[2] || b->length[3] != y->length[3])
    fault("a matmul of cuDNN: %lld x %lld times %lld x %lld", (long long)a->length[2], (long long)depth,
          (long long)b->length[2], (long long)b->length[3]);
  do {
    int64_t n = limit(running, op, DEPTH, position[0], depth);
    bool counts = position[2] < limit(running, op, ROWS, position[0], y->length[2]) &&
                  position[3] < limit(running, op, COLUMNS, position[0], y->length[3]);
    int64_t of_a =
        position[0] * a->step[0] + position[1] * a->length[1] / y->length[1] * a->step[1] + position[2] * a->step[2];
    int64_t of_b =
        position[0] * b->step[0] + position[1] * b->length[1] / y->length[1] * b->step[1] + position[3] * b->step[3];
    double sum = 0.0;
    for (int64_t k = 0; k < n && counts; k++)
      sum += read_at(running, a, of_a + k * a->step[3]) * read_at(running, b, of_b + k * b->step[2]);
    const int64_t to = offset_of(y, position, y->length);
    write_at(running, y, to, adds ? read_at(running, y, to) + sum : sum);
  } while (next(position, y->length));
}

/* Until 9.15.0 the engines of a gradient, which alone reshapes, want lengths where keys are no multiple of 128. */
static void require_lengths(const struct execution *execution) {
  const struct operation *first = NULL;
  bool is_backward = false;
  for (int i = 0; i < execution->n_operations; i++) {
    const struct operation *op = &execution->operations[i];
    if (op->kind == RESHAPE) is_backward = true;
    if (op->kind == MATMUL && first == NULL) first = op;
  }
  if (is_backward && first != NULL && cudnnGetVersion() <= 91500 && first->tensors[Y].length[3] % 128 != 0 &&
      !first->has[COLUMNS])
    fault("cudnnBackendExecute: a gradient for %lld keys without lengths", (long long)first->tensors[Y].length[3]);
}

void execution_run(const struct execution *execution) {
  static struct running running;
  require_lengths(execution);
  running = (struct running){.of = execution};
  touch(execution->workspace, execution->workspace_bytes, true);
  for (int i = 0; i < execution->n_operations; i++) {
    const struct operation *op = &execution->operations[i];
    if (op->kind == POINTWISE) run_pointwise(&running, op);
    if (op->kind == REDUCTION) run_reduction(&running, op);
    if (op->kind == RESHAPE) run_reshape(&running, op);
    if (op->kind == MATMUL) run_matmul(&running, op);
    if (op->kind == CONVOLUTION) run_convolution(&running, op, execution->engine);
  }
  for (int i = 0; i < VIRTUALS; i++) free(running.values[i]);
}
