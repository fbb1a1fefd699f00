#include "gen/program/stage_parameters.h"

#include <string.h>

bool rank_uses(const struct pipeline *pipeline, int rank, const char *path) {
  const struct parameter_names *own = &pipeline->own[rank];
  for (int i = 0; i < own->count; i++)
    if (strcmp(own->items[i], path) == 0) return true;
  return false;
}
