/* What draws random numbers: which ones a program draws follows from where its calls are, not from a formula of the
 * function, so the second reading has none. */
#include "gen/verify/tape/tape.h"

tensor dropout(tensor x, double p) {
  if (p != 0) tape_refuse("dropout with p = %g: the second reading has no masks; verify the job with p = 0", p);
  return x;
}

_Noreturn static void refuse_draw(const char *function) {
  tape_refuse("%s: the second reading draws no random numbers", function);
}

tensor random_normal_of(int rank, ...) {
  (void)rank;
  refuse_draw("random_normal");
}

tensor random_uniform_of(int rank, ...) {
  (void)rank;
  refuse_draw("random_uniform");
}

tensor random_int_of(int bound, int rank, ...) {
  (void)bound, (void)rank;
  refuse_draw("random_int");
}
