#include "gen/plan/layers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/program/adapters.h"
#include "gen/program/state.h"

/* A number within a name: "h." and ".attn.weight" around 3. */
struct numbered {
  size_t before;
  const char *after;
  int number;
};

/* The next number after `from` that is a whole part of a dotted name; false: there is none. */
static bool find_number(const char *path, size_t from, struct numbered *found) {
  for (size_t at = from; path[at] != '\0'; at++) {
    if (!isdigit((unsigned char)path[at]) || (at > 0 && path[at - 1] != '.')) continue;
    size_t digits = strspn(path + at, "0123456789");
    if ((path[at + digits] != '.' && path[at + digits] != '\0') || digits > 6 || (digits > 1 && path[at] == '0'))
      continue;
    *found = (struct numbered){at, path + at + digits, atoi(path + at)};
    return true;
  }
  return false;
}

/* Whether a name is that of another one's number `number`, which is then in `own`. */
static bool is_fellow(const char *path, const char *of, struct numbered at, int number, struct numbered *own) {
  return strncmp(path, of, at.before) == 0 && find_number(path, at.before, own) && own->before == at.before &&
         own->number == number;
}

/* Parameters of layers, as they are compared: the first layer's, and how many layers are to be. */
struct candidate {
  struct numbered at;
  int first, rows, count;
};

static bool same_parameter(const struct program *program, const struct weight *a, const struct weight *b) {
  const struct parameter *p = a->parameter, *q = b->parameter;
  const struct job *job = program->job;
  return shape_equal(p->shape, q->shape) && p->dtype == q->dtype && p->init.kind == q->init.kind &&
         p->init.a == q->init.a && p->init.b == q->init.b && p->buffer == q->buffer && p->passing == q->passing &&
         a->fresh == b->fresh && is_saved_module(job, a->path) == is_saved_module(job, b->path);
}

/* Whether three offsets follow each other as layers do: the first, the second and the third of layer `layer`. */
static bool in_step(int64_t first, int64_t second, int64_t third, int layer) {
  return third - first == (second - first) * layer;
}

static bool slices_in_step(const struct state *state, const struct weight *w[3], int layer) {
  const struct state_slice *s[3];
  for (int i = 0; i < 3; i++) s[i] = state_slice_of(state, w[i]);
  if (s[0] == NULL || s[1] == NULL || s[2] == NULL) return s[0] == s[1] && s[1] == s[2];
  return shape_equal(s[0]->shape, s[2]->shape) && in_step(s[0]->first, s[1]->first, s[2]->first, layer);
}

/* Whether what a parameter has in layer `layer` is where the first two layers let expect it. */
static bool row_is_alike(const struct program *program, const struct candidate *layers, int row, int layer) {
  const struct weight *first = &program->weights->items[layers->first + row],
                      *w[3] = {first, first + layers->rows, first + (ptrdiff_t)layer * layers->rows};
  const char *path = w[2]->path;
  struct numbered own;
  if (!is_fellow(path, first->path, layers->at, layers->at.number + layer, &own) ||
      strcmp(own.after, first->path + (layers->at.after - program->weights->items[layers->first].path)) != 0)
    return false;
  if (!same_parameter(program, first, w[2]) || (first->gradient < 0) != (w[2]->gradient < 0)) return false;
  if (!in_step(first->offset, w[1]->offset, w[2]->offset, layer) ||
      !in_step(first->gradient, w[1]->gradient, w[2]->gradient, layer) ||
      w[1]->offset - first->offset !=
          program->weights->items[layers->first + layers->rows].offset - program->weights->items[layers->first].offset)
    return false;
  for (int i = 0; i < program->states.count; i++)
    if (!slices_in_step(&program->states.items[i], w, layer)) return false;
  return true;
}

static bool layer_is_alike(const struct program *program, const struct candidate *layers, int layer) {
  if (layers->first + (layer + 1) * layers->rows > program->weights->count) return false;
  for (int row = 0; row < layers->rows; row++)
    if (!row_is_alike(program, layers, row, layer)) return false;
  return true;
}

/* The layers whose first parameter this is, by one number of its name. */
static struct candidate candidate_at(const struct program *program, int weight, struct numbered at) {
  struct candidate layers = {.at = at, .first = weight, .count = 1};
  struct numbered own;
  const char *path = program->weights->items[weight].path;
  while (weight + layers.rows < program->weights->count &&
         is_fellow(program->weights->items[weight + layers.rows].path, path, at, at.number, &own))
    layers.rows++;
  while (layer_is_alike(program, &layers, layers.count)) layers.count++;
  return layers;
}

/* The outermost layers that begin with a parameter and are worth a loop. */
static struct candidate find_layers(const struct program *program, int weight) {
  const char *path = program->weights->items[weight].path;
  struct numbered at = {0};
  for (size_t from = 0; strchr(path, '%') == NULL && find_number(path, from, &at); from = at.before + 1) {
    struct candidate layers = candidate_at(program, weight, at);
    if (layers.rows * (layers.count - 1) > 1) return layers;
  }
  return (struct candidate){.rows = 1, .count = 1};
}

void plan_layers(struct program *program) {
  for (int i = 0; i < program->weights->count;) {
    struct candidate found = find_layers(program, i);
    if (found.count > 1) {
      int64_t stride = program->weights->items[i + found.rows].offset - program->weights->items[i].offset;
      struct layers layers = {i, found.rows, found.at.number, found.count, stride, (int)found.at.before};
      ARENA_PUSH(program->arena, program->layers, layers);
    }
    i += found.rows * found.count;
  }
}
