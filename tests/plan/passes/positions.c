/* --set data.sequence_length=8 --set devices.per_node=2 --set parallelism.sp=2 */
#include <accel/model.h>

/* Rows of positions become those of a rank, attention has heads in place of positions, and the loss is a rank's mean.
 */
tensor model(scope s, tensor tokens, tensor targets) {
  tensor x = add(embedding(at(s, "wte"), tokens, 16, 8), parameter(at(s, "wpe"), "weight", 8, 8));
  tensor heads = transpose(reshape(x, dim(x, 0), dim(x, 1), 2, 4), 1, 2);
  tensor y = transpose(attention(heads, heads, heads, CAUSAL), 1, 2);
  return cross_entropy(linear(at(s, "head"), reshape(y, dim(x, 0), dim(x, 1), 8), 16), targets);
}
