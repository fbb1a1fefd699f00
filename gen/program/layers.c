#include "gen/program/layers.h"

#include <string.h>

#include "gen/program/state.h"

int layers_row(const struct program *program, int weight) {
  int row = weight;
  for (int i = 0; i < program->layers.count; i++) {
    const struct layers *layers = &program->layers.items[i];
    int start = layers->first;
    while (layers->with_next) layers = &program->layers.items[++i];
    if (weight < start + layers->round) break;
    if (weight < start + layers->round * layers->count) return -1;
    row -= layers->round * (layers->count - 1);
  }
  return row;
}

const struct layers *layers_of(const struct program *program, int weight) {
  for (int i = 0; i < program->layers.count; i++) {
    const struct layers *layers = &program->layers.items[i];
    if (weight >= layers->first && weight < layers->first + layers->rows) return layers;
  }
  return NULL;
}

const char *layers_name(const struct program *program, int weight) {
  const struct layers *layers = layers_of(program, weight);
  const char *path = program->weights->items[weight].path;
  if (layers == NULL) return path;
  const char *after = path + layers->before + strspn(path + layers->before, "0123456789");
  return arena_printf(program->arena, "%.*s%%d%s", layers->before, path, after);
}

int64_t layers_slice_stride(const struct program *program, const struct state *state, const struct state_slice *slice) {
  const struct layers *layers =
      slice->weight != NULL ? layers_of(program, (int)(slice->weight - program->weights->items)) : NULL;
  return layers != NULL ? state_slice_of(program, state, slice->weight + layers->round)->first - slice->first : 0;
}
