/* Sample: the tensors that a model takes, as its function published_inputs says. */
#ifndef ACCEL_MODEL_SAMPLE_H
#define ACCEL_MODEL_SAMPLE_H

#include "gen/ir/tensor.h"
#include "gen/model/model.h"

/* A tensor of a sample. */
struct sample_tensor {
  const char *name;
  struct shape shape;
  bool whole; /* int32, else float32 */
};

struct sample_tensors {
  struct sample_tensor *items;
  int count, capacity;
};

/* Calls the function with the config of `request`; none where the model has no such function. False with an error where
 * it cannot be called, or where what it returns is no list of struct published_input. */
bool model_sample(struct arena *arena, const struct tree *model, const struct model_request *request,
                  struct sample_tensors *inputs, struct diagnostics *diags);

#endif
