#include <accel/model.h>

tensor model(scope s, tensor features) {
  tensor x = buffer(init_sinusoid_grid(s, 1.5, 2), "kept", 4, 6);
  return mean_all(mul(parameter(s, "w", 1), sum_all(x)));
}
