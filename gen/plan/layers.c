#include "gen/plan/layers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "gen/plan/ranks/fsdp_layers.h"
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
static bool is_of_other_layer(const char *path, const char *of, struct numbered at, int number, struct numbered *own) {
  return strncmp(path, of, at.before) == 0 && find_number(path, at.before, own) && own->before == at.before &&
         own->number == number;
}

enum { MOST_KINDS = 4 };

/* Layers of one kind: the first one's parameters, and the number in their names. */
struct kind {
  struct numbered at;
  int first, rows;
};

/* Layers as they are compared: the kinds that alternate, the parameters of a round of them, and how many rounds. */
struct candidate {
  struct kind kinds[MOST_KINDS];
  int n_kinds, round, count;
};

/* Where a weight comes from before each use: 0: it is there; 1: the host; 2: a disk. */
static int streamed_from(const struct program *program, const struct weight *weight) {
  const int unit = program->streams ? fsdp_unit_of(program, weight) : -1;
  return unit < 0 ? 0 : 1 + program->ranks.fsdp_units.items[unit].on_disk;
}

static bool same_parameter(const struct program *program, const struct weight *a, const struct weight *b) {
  const struct parameter *p = a->parameter, *q = b->parameter;
  const struct job *job = program->job;
  return shape_equal(p->shape, q->shape) && p->dtype == q->dtype && p->init.kind == q->init.kind &&
         p->init.a == q->init.a && p->init.b == q->init.b && p->buffer == q->buffer &&
         p->value->differentiable == q->value->differentiable && p->passing == q->passing && a->fresh == b->fresh &&
         is_saved_module(job, a->path) == is_saved_module(job, b->path) &&
         streamed_from(program, a) == streamed_from(program, b);
}

/* Whether three offsets follow each other as layers do: the first, the second and the third of layer `layer`. */
static bool in_step(int64_t first, int64_t second, int64_t third, int layer) {
  return third - first == (second - first) * layer;
}

static bool slices_in_step(const struct program *program, const struct state *state, const struct weight *w[3],
                           int layer) {
  const struct state_slice *s[3];
  for (int i = 0; i < 3; i++) s[i] = state_slice_of(program, state, w[i]);
  if (s[0] == NULL || s[1] == NULL || s[2] == NULL) return s[0] == s[1] && s[1] == s[2];
  return shape_equal(s[0]->shape, s[2]->shape) && in_step(s[0]->first, s[1]->first, s[2]->first, layer);
}

/* Whether what a parameter has in layer `layer` is where the first two layers let expect it. */
static bool row_is_alike(const struct program *program, const struct candidate *layers, const struct kind *kind,
                         int row, int layer) {
  const struct weight *begin = &program->weights->items[kind->first], *first = begin + row,
                      *w[3] = {first, first + layers->round, first + (ptrdiff_t)layer * layers->round};
  struct numbered own;
  if (!is_of_other_layer(w[2]->path, first->path, kind->at, kind->at.number + layer, &own) ||
      strcmp(own.after, first->path + (kind->at.after - begin->path)) != 0)
    return false;
  if (!same_parameter(program, first, w[2]) || (first->gradient < 0) != (w[2]->gradient < 0)) return false;
  if (!in_step(first->offset, w[1]->offset, w[2]->offset, layer) ||
      !in_step(first->gradient, w[1]->gradient, w[2]->gradient, layer) ||
      w[1]->offset - first->offset != begin[layers->round].offset - begin->offset)
    return false;
  for (int i = 0; i < program->states.count; i++)
    if (!slices_in_step(program, &program->states.items[i], w, layer)) return false;
  return true;
}

static bool layer_is_alike(const struct program *program, const struct candidate *layers, int layer) {
  if (layers->kinds[0].first + (layer + 1) * layers->round > program->weights->count) return false;
  for (int i = 0; i < layers->n_kinds; i++)
    for (int row = 0; row < layers->kinds[i].rows; row++)
      if (!row_is_alike(program, layers, &layers->kinds[i], row, layer)) return false;
  return true;
}

/* The nth number of a parameter's name. */
static bool nth_number(const struct program *program, int weight, int n, struct numbered *at) {
  const char *path = weight < program->weights->count ? program->weights->items[weight].path : "%";
  bool found = strchr(path, '%') == NULL && find_number(path, 0, at);
  while (found && n-- > 0) found = find_number(path, at->before + 1, at);
  return found;
}

/* The kind whose first layer begins with a parameter, by the nth number of its name. */
static bool find_kind(const struct program *program, int weight, int n, struct kind *kind) {
  struct numbered own;
  *kind = (struct kind){.first = weight, .rows = 1};
  if (!nth_number(program, weight, n, &kind->at)) return false;
  const char *path = program->weights->items[weight].path;
  while (weight + kind->rows < program->weights->count &&
         is_of_other_layer(program->weights->items[weight + kind->rows].path, path, kind->at, kind->at.number, &own))
    kind->rows++;
  return true;
}

/* The layers whose first parameter this is, by the nth number of its name: of as few kinds as there can be. */
static struct candidate candidate_at(const struct program *program, int weight, int n) {
  struct candidate layers = {.count = 1};
  while (layers.count == 1 && layers.n_kinds < MOST_KINDS &&
         find_kind(program, weight + layers.round, n, &layers.kinds[layers.n_kinds])) {
    layers.round += layers.kinds[layers.n_kinds++].rows;
    while (layer_is_alike(program, &layers, layers.count)) layers.count++;
  }
  return layers;
}

/* The outermost layers that begin with a parameter and are worth a loop. */
static struct candidate find_layers(const struct program *program, int weight) {
  struct numbered at;
  for (int n = 0; nth_number(program, weight, n, &at); n++) {
    struct candidate layers = candidate_at(program, weight, n);
    if (layers.round * (layers.count - 1) > 1) return layers;
  }
  return (struct candidate){.round = 1, .count = 1};
}

static void add_layers(struct program *program, const struct candidate *found) {
  for (int i = 0; i < found->n_kinds; i++) {
    const struct kind *kind = &found->kinds[i];
    const struct weight *first = &program->weights->items[kind->first];
    struct layers layers = {.first = kind->first,
                            .rows = kind->rows,
                            .from = kind->at.number,
                            .count = found->count,
                            .stride = first[found->round].offset - first->offset,
                            .before = (int)kind->at.before,
                            .round = found->round,
                            .with_next = i + 1 < found->n_kinds};
    ARENA_PUSH(program->arena, program->layers, layers);
  }
}

void plan_layers(struct program *program) {
  for (int i = 0; i < program->weights->count;) {
    struct candidate found = find_layers(program, i);
    if (found.count > 1) add_layers(program, &found);
    i += found.round * found.count;
  }
}
