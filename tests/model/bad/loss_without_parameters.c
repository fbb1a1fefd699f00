#include <accel/model.h>

tensor model(tensor features) {
  return mean_all(features);
}
