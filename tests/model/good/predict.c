// entry: predict
/* An entry that is not a loss, split over two files. */
#include "parts/tower.h"

tensor predict(scope s, tensor features) {
  return softmax(tower(s, features, WIDTH, DEPTH));
}
