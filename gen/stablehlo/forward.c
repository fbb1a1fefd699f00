#include "gen/stablehlo/forward.h"

#include <string.h>

#include "gen/stablehlo/exchange.h"
#include "gen/stablehlo/maker.h"

static struct hlo take(struct maker *maker, struct hlo_operand operand, struct hlo_module *made) {
  ARENA_PUSH(maker->hlo.arena, made->arguments, operand);
  return hlo_new_argument(maker, operand.name, operand.shape, (enum hlo_type)operand.dtype);
}

static bool is_kept(const struct hlo_forward *forward, int weight) {
  return forward->kept != NULL && forward->kept[weight];
}

/* The weights, as the model has them. Those that are kept are donated to the results that follow the others. */
static struct hlo *take_weights(struct maker *maker, const struct hlo_forward *forward, struct hlo_module *made) {
  struct arena *arena = maker->hlo.arena;
  const int n = forward->n_weights;
  int n_given = forward->n_results;
  struct hlo *weights = arena_alloc(arena, ((size_t)n + 1) * sizeof *weights);
  struct shape *shapes = arena_alloc(arena, ((size_t)n + 1) * sizeof *shapes);
  for (int i = 0; i < n; i++) {
    const struct hlo_weight *weight = &forward->weights[i];
    shapes[i] = weight->shape;
    const struct shape taken = forward->devices > 1 ? weight->part : weight->shape;
    weights[i] = take(maker, (struct hlo_operand){weight->path, taken, weight->dtype}, made);
    if (!is_kept(forward, i)) continue;
    struct hlo_item *item = &maker->hlo.function->items.items[weights[i].item];
    item->type = arena_printf(arena, "%s {tf.aliasing_output = %d : i32}", item->type, n_given++);
  }
  if (forward->devices > 1) hlo_gather_parts(&maker->hlo, forward->devices, forward->bucket, weights, shapes, n);
  return weights;
}

/* The position of a value among the entry's results. */
static int result_of(const struct region *entry, const struct value *value) {
  int at = 0;
  while (entry->results.items[at] != value) at++;
  return at;
}

/* `assigned`: what a call of the entry gives after its results. */
static void give_donated(struct maker *maker, const struct hlo_forward *forward, const struct hlo *weights,
                         const struct hlo *assigned, struct hlo_list *given, struct hlo_module *made) {
  struct arena *arena = maker->hlo.arena;
  const struct hlo_parameters *list = &hlo_interface_of(maker, forward->entry)->assigned;
  for (int i = 0; i < forward->n_weights; i++) {
    const struct hlo_weight *weight = &forward->weights[i];
    if (!is_kept(forward, i)) continue;
    const int at = hlo_parameter_index(list, 0, weight->path);
    const struct hlo_operand operand = {weight->path, weight->shape, weight->dtype};
    ARENA_PUSH(arena, made->results, operand);
    hlo_list_add(maker, given, at >= 0 ? assigned[at] : weights[i],
                 arena_printf(arena, "jax.result_info = %s", hlo_quoted(arena, weight->path)));
  }
}

static void write_main(struct maker *maker, const struct hlo_forward *forward, struct hlo_module *made) {
  struct arena *arena = maker->hlo.arena;
  const struct region *entry = forward->entry;
  const struct hlo_parameters *parameters = &hlo_interface_of(maker, entry)->parameters;
  struct hlo_list arguments = {0}, given = {0};
  hlo_begin_function(maker, entry);
  const struct hlo *weights = take_weights(maker, forward, made);
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    hlo_list_add(maker, &arguments, take(maker, (struct hlo_operand){input->name, input->shape, input->dtype}, made),
                 NULL);
  }
  for (int i = 0; i < parameters->count; i++)
    for (int k = 0; k < forward->n_weights; k++)
      if (strcmp(forward->weights[k].path, parameters->items[i].path) == 0)
        hlo_list_add(maker, &arguments, weights[k], NULL);
  made->random = hlo_interface_of(maker, entry)->random;
  if (made->random)
    hlo_list_add(maker, &arguments, take(maker, (struct hlo_operand){"random_keys", {0}, DTYPE_INT64}, made), NULL);
  const struct hlo *results = hlo_write_call(maker, entry, &arguments);
  for (int i = 0; i < forward->n_results; i++) {
    const struct value *value = forward->results[i];
    const struct hlo_operand operand = {value->name, value->shape, value->dtype};
    ARENA_PUSH(arena, made->results, operand);
    hlo_list_add(maker, &given, results[result_of(entry, value)],
                 arena_printf(arena, "jax.result_info = %s", hlo_quoted(arena, value->name)));
  }
  give_donated(maker, forward, weights, results + entry->results.count, &given, made);
  hlo_print_function(maker, "public", "main", &given);
}

bool hlo_make_forward(struct arena *arena, const struct graph *graph, const char *name,
                      const struct hlo_forward *forward, struct hlo_module *made, struct diagnostics *diags) {
  struct maker maker = hlo_begin_module(arena, graph, diags);
  struct text *functions = maker.out, entry = text_in(arena);
  *made = (struct hlo_module){0};
  if (!hlo_write_regions(&maker, forward->entry, NULL)) return false;
  maker.out = &entry;
  write_main(&maker, forward, made);
  made->text = hlo_end_module(&maker, name, &entry, functions);
  return true;
}
