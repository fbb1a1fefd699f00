#include "gen/plan/graph/indices.h"

#include <string.h>

#include "gen/ir/op.h"

/* What is asked of an element: to be within 0 and below `below` (0: nothing), or `none`. */
struct demand {
  int64_t below, none;
};

/* Where an element comes from: element `element` of the region's input `input`; -1: it was computed. */
struct origin {
  int input;
  int64_t element;
};

struct analysis {
  struct arena *arena; /* of this pass alone */
  const struct graph *graph;
  struct origin **origins;  /* by value id: of all elements; NULL: not asked yet, or all were computed */
  bool *known;              /* by value id: it was asked */
  struct demand ***demands; /* by region id and input: of all elements; NULL: nothing is asked */
  struct diagnostics *diags;
};

static const struct origin computed = {.input = -1};

static struct origin *fresh_origins(struct analysis *analysis, int64_t count) {
  struct origin *origins = arena_alloc(analysis->arena, (size_t)count * sizeof *origins);
  for (int64_t i = 0; i < count; i++) origins[i] = computed;
  return origins;
}

/* The element that comes after the one at `position`, whose memory is at `*at`, in row-major order. */
static void advance(struct shape shape, const int64_t *strides, int64_t *position, int64_t *at) {
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    *at += strides[axis];
    if (++position[axis] < shape.dim[axis]) return;
    *at -= strides[axis] * shape.dim[axis];
    position[axis] = 0;
  }
}

static const struct origin *origins_of(struct analysis *analysis, const struct value *value);

static struct origin *origins_of_input(struct analysis *analysis, const struct value *value) {
  int64_t count = shape_count(value->shape);
  struct origin *origins = fresh_origins(analysis, count);
  for (int64_t i = 0; i < count; i++) origins[i] = (struct origin){value->index, i};
  return origins;
}

static struct origin *origins_of_view(struct analysis *analysis, const struct value *value) {
  const struct node *node = value->producer;
  const struct origin *from = origins_of(analysis, node->inputs[0]);
  int64_t in[MAX_RANK], out[MAX_RANK] = {0}, position[MAX_RANK] = {0}, at, count = shape_count(value->shape);
  shape_dense_strides(node->inputs[0]->shape, in);
  if (from == NULL || !node->kind->layout.view(node, in, &at, out)) return NULL;
  struct origin *origins = fresh_origins(analysis, count);
  for (int64_t i = 0; i < count; i++, advance(value->shape, out, position, &at)) origins[i] = from[at];
  return origins;
}

static struct origin *origins_of_parts(struct analysis *analysis, const struct value *value) {
  const struct node *node = value->producer;
  struct origin *origins = NULL;
  int64_t out[MAX_RANK], in[MAX_RANK] = {0};
  shape_dense_strides(value->shape, out);
  for (int k = 0; k < node->n_inputs; k++) {
    const struct origin *from = origins_of(analysis, node->inputs[k]);
    int64_t position[MAX_RANK] = {0}, at;
    if (from == NULL || !node->kind->layout.part(node, k, out, &at, in)) continue;
    if (origins == NULL) origins = fresh_origins(analysis, shape_count(value->shape));
    struct shape shape = node->inputs[k]->shape;
    for (int64_t i = 0; i < shape_count(shape); i++, advance(shape, in, position, &at)) origins[at] = from[i];
  }
  return origins;
}

static struct origin *origins_of_result(struct analysis *analysis, const struct value *value) {
  const struct node *node = value->producer;
  const struct origin *inside = origins_of(analysis, node->call->callee->results.items[value->index]);
  if (inside == NULL || node->call->count != 1) return NULL;
  struct origin *origins = fresh_origins(analysis, shape_count(value->shape));
  for (int64_t i = 0; i < shape_count(value->shape); i++) {
    const struct origin *outside = inside[i].input < 0 ? NULL : origins_of(analysis, node->inputs[inside[i].input]);
    if (outside != NULL) origins[i] = outside[inside[i].element];
  }
  return origins;
}

/* Where the elements of a value come from; NULL where all were computed. */
static const struct origin *origins_of(struct analysis *analysis, const struct value *value) {
  struct origin **origins = &analysis->origins[value->id];
  if (analysis->known[value->id]) return *origins;
  analysis->known[value->id] = true;
  const struct node *producer = value->producer;
  if (value->kind == VALUE_INPUT)
    *origins = origins_of_input(analysis, value);
  else if (producer != NULL && producer->call != NULL)
    *origins = origins_of_result(analysis, value);
  else if (producer != NULL && producer->kind->class == OP_VIEW)
    *origins = origins_of_view(analysis, value);
  else if (producer != NULL && producer->kind->class == OP_PARTS)
    *origins = origins_of_parts(analysis, value);
  return *origins;
}

/* Both demands at once. */
static struct demand both_of(struct demand a, struct demand b) {
  if (a.below == 0 || b.below == 0) return a.below == 0 ? b : a;
  return (struct demand){a.below < b.below ? a.below : b.below, a.none == b.none ? a.none : OP_NO_NUMBER};
}

/* Asks something of the element of an input that another one came from. */
static void ask(struct analysis *analysis, const struct region *region, struct origin origin, struct demand demand) {
  if (origin.input < 0) return;
  struct demand **of = &analysis->demands[region->id][origin.input];
  int64_t count = shape_count(region->inputs.items[origin.input]->shape);
  if (*of == NULL) *of = arena_alloc(analysis->arena, (size_t)count * sizeof **of);
  (*of)[origin.element] = both_of((*of)[origin.element], demand);
}

/* What a called function asks of all elements of an argument. */
static bool check_argument(struct analysis *analysis, const struct node *node, const struct value *argument,
                           struct demand demand) {
  int64_t wrong;
  if (demand.below == 0 || op_index_fits(argument, demand.below, demand.none, &wrong)) return true;
  diag_error(analysis->diags, node->where,
             "'%s' takes this as an index within 0 and %lld, and it is %lld at one position",
             node->call->callee->function, (long long)(demand.below - 1), (long long)wrong);
  return false;
}

static bool visit_argument(struct analysis *analysis, const struct node *node, int input) {
  const struct value *argument = node->inputs[input];
  const struct demand *demands = analysis->demands[node->call->callee->id][input];
  if (demands == NULL) return true;
  const struct origin *origins = origins_of(analysis, argument);
  struct demand all = {0, OP_NO_NUMBER};
  for (int64_t i = 0; i < shape_count(argument->shape); i++) {
    all = both_of(all, demands[i]);
    if (origins != NULL && demands[i].below > 0) ask(analysis, node->region, origins[i], demands[i]);
  }
  return check_argument(analysis, node, argument, all);
}

static bool visit_input(struct analysis *analysis, const struct node *node, int input) {
  if (node->call != NULL) return visit_argument(analysis, node, input);
  int64_t limit = node->kind->index.limit != NULL ? node->kind->index.limit(node, input) : 0;
  const struct origin *origins = limit > 0 ? origins_of(analysis, node->inputs[input]) : NULL;
  for (int64_t i = 0; origins != NULL && i < shape_count(node->inputs[input]->shape); i++)
    ask(analysis, node->region, origins[i], (struct demand){limit, op_left_out(node)});
  return true;
}

static bool visit_region(struct analysis *analysis, const struct region *region) {
  analysis->demands[region->id] =
      arena_alloc(analysis->arena, ((size_t)region->inputs.count + 1) * sizeof **analysis->demands);
  for (int i = 0; i < region->nodes.count; i++)
    for (int k = 0; k < region->nodes.items[i]->n_inputs; k++)
      if (!visit_input(analysis, region->nodes.items[i], k)) return false;
  return true;
}

/* ---- What is asked of a row ---- */

/* Adds up what is asked of the elements of an input, of which every sample has input->width. */
static void gather(const struct analysis *analysis, const struct data_input *input, struct demand *numbers) {
  const struct region *entry = analysis->graph->entry;
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *value = entry->inputs.items[i];
    const struct demand *demands = analysis->demands[entry->id][i];
    if (demands == NULL || strcmp(value->name, input->name) != 0) continue;
    for (int64_t k = 0; k < shape_count(value->shape); k++)
      numbers[k % input->width] = both_of(numbers[k % input->width], demands[k]);
  }
}

/* Adjacent numbers of which the same is asked become one entry; `before` are those of the inputs before. */
static void list_numbers(struct program *program, const struct demand *numbers, int64_t count, int64_t before) {
  for (int64_t first = 0, end; first < count; first = end) {
    struct demand demand = numbers[first];
    for (end = first + 1; end < count && memcmp(&numbers[end], &demand, sizeof demand) == 0;) end++;
    struct index_columns run = {before + first, end - first, demand.below,
                                demand.none == OP_NO_NUMBER ? 0 : demand.none};
    if (demand.below > 0) ARENA_PUSH(program->arena, program->data.indices, run);
  }
}

/* The number that a loss leaves out, where all numbers of an int32 input can be it. */
static void find_target(struct program *program, const struct demand *numbers, int64_t count,
                        struct input_demand *input) {
  struct demand all = numbers[0];
  for (int64_t i = 1; i < count; i++) all = both_of(all, numbers[i]);
  if (all.below == 0 || all.none == OP_NO_NUMBER) return;
  input->none = all.none;
  input->is_target = true;
  program->data.no_target = all.none;
}

static void find_numbers(struct analysis *analysis, struct program *program) {
  const struct job *job = program->job;
  int64_t before = 0;
  program->data.inputs = arena_alloc(program->arena, ((size_t)job->data.n_inputs + 1) * sizeof *program->data.inputs);
  for (int i = 0; i < job->data.n_inputs; i++) {
    const struct data_input *input = &job->data.inputs[i];
    struct demand *numbers = arena_alloc(analysis->arena, ((size_t)input->width + 1) * sizeof *numbers);
    gather(analysis, input, numbers);
    if (input->is_integer)
      find_target(program, numbers, input->width, &program->data.inputs[i]);
    else
      list_numbers(program, numbers, input->width, before);
    before += input->width;
  }
}

/* Whether something takes numbers of an int32 value as an index, however they are moved, and leaves none of them out.
 */
static bool is_looked_up(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    bool reads = false;
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      reads = true;
      if (node->call != NULL && is_looked_up(node->call->callee, node->call->callee->inputs.items[k])) return true;
      if (node->call != NULL || node->kind->index.limit == NULL || op_left_out(node) != OP_NO_NUMBER) continue;
      if (node->kind->index.limit(node, k) > 0) return true;
    }
    for (int k = 0; reads && k < node->n_outputs; k++)
      if (node->outputs[k]->dtype == DTYPE_INT32 && is_looked_up(region, node->outputs[k])) return true;
  }
  return false;
}

static void find_looked_up(struct program *program) {
  const struct region *entry = program->graph->entry;
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    if (input->dtype != DTYPE_INT32 || !is_looked_up(entry, input)) continue;
    ARENA_PUSH(program->arena, program->data.looked_up, input->name);
  }
}

bool find_indices(struct program *program, struct diagnostics *diags) {
  const struct graph *graph = program->graph;
  struct analysis analysis = {.arena = arena_new(), .graph = graph, .diags = diags};
  bool good = true;
  analysis.origins = arena_alloc(analysis.arena, ((size_t)graph->next_value + 1) * sizeof *analysis.origins);
  analysis.known = arena_alloc(analysis.arena, (size_t)graph->next_value + 1);
  int ids = 0;
  for (int r = 0; r < graph->n_regions; r++)
    if (graph->regions[r]->id >= ids) ids = graph->regions[r]->id + 1;
  analysis.demands = arena_alloc(analysis.arena, ((size_t)ids + 1) * sizeof *analysis.demands);
  for (int r = 0; good && r < graph->n_regions; r++) good = visit_region(&analysis, graph->regions[r]);
  if (good && job_has_rows(program->job)) find_numbers(&analysis, program);
  if (good) find_looked_up(program);
  arena_free(analysis.arena);
  return good;
}
