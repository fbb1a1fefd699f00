#include "gen/plan/groups.h"

#include <stdlib.h>
#include <string.h>

static int least(int a, int b) {
  return a < b ? a : b;
}

/* The characters to put in, take out or change so that the name matches. */
static int distance(struct arena *arena, const char *match, const char *name) {
  size_t length = strlen(name);
  int *costs =
      arena_alloc(arena, (length + 1) * sizeof *costs); /* of the match so far, by length of the name's start */
  for (size_t j = 0; j <= length; j++) costs[j] = (int)j;
  for (; *match != '\0'; match++) {
    int corner = costs[0];
    bool any = *match == '*';
    if (!any) costs[0]++;
    for (size_t j = 1; j <= length; j++) {
      int above = costs[j], same = *match == '?' || *match == name[j - 1];
      costs[j] = any ? least(above, costs[j - 1]) : least(corner + !same, least(above, costs[j - 1]) + 1);
      corner = above;
    }
  }
  return costs[length];
}

bool name_matches(const char *match, const char *name) {
  const char *star = NULL, *behind = NULL; /* the newest *, and how far its text reaches */
  while (*name != '\0') {
    if (*match == '*') {
      star = match++;
      behind = name;
    } else if (*match == '?' || *match == *name) {
      match++;
      name++;
    } else if (star != NULL) {
      match = star + 1;
      name = ++behind;
    } else {
      return false;
    }
  }
  while (*match == '*') match++;
  return *match == '\0';
}

static const char *nearest_name(const struct program *program, const char *match) {
  const char *nearest = NULL;
  int lowest = 0;
  for (int i = 0; i < program->n_weights; i++) {
    int cost = distance(program->arena, match, program->weights[i].path);
    if (nearest != NULL && cost >= lowest) continue;
    nearest = program->weights[i].path;
    lowest = cost;
  }
  return nearest;
}

/* The first group that a parameter's name matches; -1 for none. */
static int group_of(const struct job *job, const char *name) {
  for (int g = 0; g < job->optimizer.n_groups; g++)
    if (name_matches(job->optimizer.groups[g].match, name)) return g;
  return -1;
}

static bool check_group(const struct program *program, int g, struct diagnostics *diags) {
  const struct param_group *group = &program->job->optimizer.groups[g];
  int before = -1;
  for (int i = 0; i < program->n_weights; i++) {
    if (!name_matches(group->match, program->weights[i].path)) continue;
    before = group_of(program->job, program->weights[i].path);
    if (before == g) return true;
  }
  if (before < 0) {
    diag_error(diags, group->where, "'%s' matches the name of no parameter", group->match);
    diag_help(diags, "the nearest one is '%s'", nearest_name(program, group->match));
  } else {
    diag_error(diags, group->where, "all parameters that '%s' matches belong to groups before it", group->match);
    diag_note(diags, program->job->optimizer.groups[before].where, "such a group stands here");
  }
  return false;
}

static int by_offset(const void *left, const void *right) {
  const struct weight *a = *(const struct weight *const *)left, *b = *(const struct weight *const *)right;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The weights in the order in which they lie. */
static const struct weight **sorted_weights(const struct program *program) {
  const struct weight **sorted = arena_alloc(program->arena, ((size_t)program->n_weights + 1) * sizeof *sorted);
  for (int i = 0; i < program->n_weights; i++) sorted[i] = &program->weights[i];
  qsort(sorted, (size_t)program->n_weights, sizeof *sorted, by_offset);
  return sorted;
}

/* A parameter's span reaches up to the next one: what lies between them is zero and stays so. */
static void add_weight(struct program *program, const struct weight *weight, int64_t end) {
  int64_t size = dtype_size(DTYPE_FLOAT32);
  int g = group_of(program->job, weight->path);
  const struct param_group *group = g < 0 ? NULL : &program->job->optimizer.groups[g];
  struct span span = {weight->path, weight->offset / size, end / size, group != NULL ? group->lr_scale : 1,
                      group != NULL ? group->weight_decay : program->job->optimizer.weight_decay};
  struct span *last = program->n_spans > 0 ? &program->spans[program->n_spans - 1] : NULL;
  if (last != NULL && last->lr_scale == span.lr_scale && last->weight_decay == span.weight_decay)
    last->end = span.end;
  else
    program->spans[program->n_spans++] = span;
}

bool plan_groups(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  bool good = true;
  if (program->kind != PROGRAM_TRAIN || job->optimizer.n_groups == 0) return true;
  for (int g = 0; g < job->optimizer.n_groups; g++) good = check_group(program, g, diags) && good;
  const struct weight **sorted = sorted_weights(program);
  program->spans = arena_alloc(program->arena, ((size_t)program->n_weights + 1) * sizeof *program->spans);
  for (int i = 0; i < program->n_weights; i++)
    add_weight(program, sorted[i],
               i + 1 < program->n_weights ? sorted[i + 1]->offset : program->structs[program->n_structs - 1]->bytes);
  return good;
}
