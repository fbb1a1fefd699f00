#include "gen/plan/kernels/update.h"

#include <string.h>

#include "gen/program/choose.h"
#include "gen/program/parts.h"

void choose_update(struct program *program) {
  enum { SHARED_FROM = 1 << 12 };
  static const char *const few[] = {"one", "all"}, *const many[] = {"all", "one"};
  const char *const *variants = program->figures.bytes.gradients / dtype_size(DTYPE_FLOAT32) < SHARED_FROM ? few : many;
  if (update_is_short(program))
    program->optimizer.one_sweeps =
        strcmp(choose(program, update_subject(program), "threads", variants, 2), "one") == 0;
}
