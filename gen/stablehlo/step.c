/* The module of a step. Its own functions have a dot in their names, which no function of a model has. */
#include "gen/stablehlo/step.h"

#include <string.h>

#include "gen/ir/region.h"
#include "gen/stablehlo/exchange.h"
#include "gen/stablehlo/maker.h"

struct writer {
  struct maker *maker;
  const struct hlo_step *step;
  struct hlo_module *made;
  const struct region *backward;
};

static struct arena *arena_of(const struct writer *writer) {
  return writer->maker->hlo.arena;
}

static const struct region *entry_of(const struct writer *writer) {
  return writer->maker->graph->entry;
}

static const struct hlo_parameters *entry_parameters(const struct writer *writer) {
  return &hlo_interface_of(writer->maker, entry_of(writer))->parameters;
}

/* The position of a weight among the gradients that the backward gives; -1: nothing reaches it. */
static int gradient_of(const struct writer *writer, const struct hlo_weight *weight) {
  return hlo_parameter_index(&hlo_interface_of(writer->maker, writer->backward)->gradients, 0, weight->path);
}

/* Parameters that the model assigns to. */
static const struct hlo_parameters *assigned_of(const struct writer *writer) {
  return &hlo_interface_of(writer->maker, entry_of(writer))->assigned;
}

/* Whether the model draws random numbers. */
static bool draws(const struct writer *writer) {
  return hlo_interface_of(writer->maker, entry_of(writer))->random ||
         hlo_interface_of(writer->maker, writer->backward)->random;
}

/* ---- A call of a function of the module's own ---- */

static void add_type(struct text *text, const char *type) {
  text_printf(text, "%s%s", text->length > 0 ? ", " : "", type);
}

/* Results have these types; their items are filled in. */
static void call(struct writer *writer, const char *name, const struct hlo_list *arguments, struct hlo *results,
                 int count) {
  struct stablehlo *hlo = &writer->maker->hlo;
  struct text names = text_in(hlo->arena), takes = text_in(hlo->arena), gives = text_in(hlo->arena);
  for (int i = 0; i < arguments->count; i++) {
    text_printf(&names, "%s%s", i > 0 ? ", " : "", hlo_name_of(hlo, arguments->items[i].tensor));
    add_type(&takes, hlo_type_of(hlo, arguments->items[i].tensor));
  }
  for (int i = 0; i < count; i++) add_type(&gives, hlo_type_of(hlo, results[i]));
  const char *form = count == 1 ? "call @%s(%s) : (%s) -> %s" : "call @%s(%s) : (%s) -> (%s)";
  const int item = hlo_add_item(
      hlo, arena_printf(hlo->arena, form, name, text_string(&names), text_string(&takes), text_string(&gives)), NULL,
      count);
  for (int i = 0; i < count; i++) results[i].item = item, results[i].result = i;
}

/* ---- A micro-batch ---- */

static const char micro_batch[] = "step.micro_batch";

/* The type of an input as the step takes it: of several micro-batches. */
static struct shape stacked(const struct writer *writer, struct shape shape) {
  struct shape all = shape;
  if (writer->step->micro_steps == 1) return shape;
  all.dim[0] = writer->step->micro_steps;
  for (int i = 0; i < shape.rank; i++) all.dim[i + 1] = shape.dim[i];
  all.rank = shape.rank + 1;
  return all;
}

/* What a micro-batch gives, or several: the loss, and the gradients in the order of the weights, `n_summed` in all;
 * then what is assigned to buffers. */
struct given {
  struct hlo *items;
  int n_summed, count;
};

static struct given result_types(const struct writer *writer) {
  const struct hlo_step *step = writer->step;
  const struct hlo_parameters *assigned = assigned_of(writer);
  struct given given = {
      .items = arena_alloc(arena_of(writer), (size_t)(step->n_weights + assigned->count + 1) * sizeof *given.items)};
  given.items[given.n_summed++] = (struct hlo){.type = HLO_F32};
  for (int i = 0; i < step->n_weights; i++)
    if (gradient_of(writer, &step->weights[i]) >= 0)
      given.items[given.n_summed++] = (struct hlo){.shape = step->weights[i].shape, .type = HLO_F32};
  given.count = given.n_summed;
  for (int i = 0; i < assigned->count; i++) {
    const struct parameter *parameter = assigned->items[i].parameter;
    given.items[given.count++] = (struct hlo){.shape = parameter->shape, .type = (enum hlo_type)parameter->dtype};
  }
  return given;
}

/* The key of a micro-batch's random numbers: of several, which are an argument. */
static void take_key(struct writer *writer, struct hlo index) {
  struct maker *maker = writer->maker;
  if (!draws(writer)) return;
  if (index.item < 0) {
    hlo_take_key(maker, "key");
    return;
  }
  const struct hlo keys = hlo_new_argument(maker, "keys", shape_of(1, (int64_t)writer->step->micro_steps), HLO_I64);
  maker->hlo.function->key = hlo_reshape(&maker->hlo, hlo_slice_at(&maker->hlo, keys, 0, index, 1), (struct shape){0});
}

static void write_micro_batch(struct writer *writer) {
  struct maker *maker = writer->maker;
  struct stablehlo *hlo = &maker->hlo;
  const struct region *entry = entry_of(writer);
  const struct hlo_parameters *parameters = entry_parameters(writer);
  struct hlo_list given = {0};
  struct hlo index = {.item = -1};
  hlo_begin_function(maker, entry);
  if (writer->step->micro_steps > 1) index = hlo_new_argument(maker, "number", (struct shape){0}, HLO_I32);
  maker->parameters = arena_alloc(hlo->arena, ((size_t)parameters->count + 1) * sizeof *maker->parameters);
  for (int i = 0; i < parameters->count; i++) {
    const struct hlo_parameter *item = &parameters->items[i];
    maker->parameters[i] =
        hlo_new_argument(maker, item->path, item->parameter->shape, (enum hlo_type)item->parameter->dtype);
  }
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    struct hlo x = hlo_new_argument(maker, input->name, stacked(writer, input->shape), (enum hlo_type)input->dtype);
    if (index.item >= 0) x = hlo_reshape(hlo, hlo_slice_at(hlo, x, 0, index, 1), input->shape);
    hlo_set_value(hlo, input, x);
  }
  take_key(writer, index);
  const struct hlo *forward = hlo_call_entry(maker, entry, NULL, writer->made);
  const struct hlo *back = hlo_call_entry(maker, writer->backward, forward + entry->results.count, writer->made);
  hlo_list_add(maker, &given, hlo_reshape(hlo, hlo_convert(hlo, forward[0], HLO_F32), (struct shape){0}), NULL);
  for (int i = 0; i < writer->step->n_weights; i++) {
    const int at = gradient_of(writer, &writer->step->weights[i]);
    if (at >= 0) hlo_list_add(maker, &given, back[writer->backward->results.count + at], NULL);
  }
  const struct hlo *assigned = hlo_assigned_by_entry(maker, forward);
  for (int i = 0; i < assigned_of(writer)->count; i++) hlo_list_add(maker, &given, assigned[i], NULL);
  hlo_print_function(maker, "private", micro_batch, &given);
}

/* ---- Micro-batches ---- */

/* "%$sum_3", of the loop's own names. */
static const char *sum_name(struct arena *arena, int i) {
  return arena_printf(arena, "%%$sum_%d", i);
}

/* The position of a parameter of the entry among what it assigns to; -1: it does not. */
static int assigned_at(const struct writer *writer, const struct hlo_parameter *item) {
  return hlo_parameter_index(assigned_of(writer), item->scope, item->path);
}

/* What the loop begins and ends with for each of its sums, and of what a micro-batch leaves to the next one:
 * "%$sum_0 = %{4}", "%$next_0", their types. */
struct loop_texts {
  struct text begins, next, types, body;
};

static void add_sum(struct stablehlo *hlo, struct loop_texts *texts, struct hlo sum, int i, bool of_many) {
  const struct hlo zero = hlo_tensor(hlo, hlo_number(0), sum.shape, HLO_F32);
  const char *type = hlo_type_of(hlo, sum), *got = of_many ? arena_printf(hlo->arena, "#%d", i) : "";
  text_printf(&texts->begins, ", %s = %s", sum_name(hlo->arena, i), hlo_name_of(hlo, zero));
  text_printf(&texts->body, "      %%$next_%d = stablehlo.add %s, %%$got%s : %s\n", i, sum_name(hlo->arena, i), got,
              type);
  text_printf(&texts->next, ", %%$next_%d", i);
  text_printf(&texts->types, ", %s", type);
}

/* What is assigned to a buffer, which is `before` before the step. */
static void add_carried(struct stablehlo *hlo, struct loop_texts *texts, struct hlo before, int i) {
  text_printf(&texts->begins, ", %s = %s", sum_name(hlo->arena, i), hlo_name_of(hlo, before));
  text_printf(&texts->next, ", %%$got#%d", i);
  text_printf(&texts->types, ", %s", hlo_type_of(hlo, before));
}

/* The call of a micro-batch in the loop. The first arguments are the parameters of the entry: what the micro-batch
 * before has left of them, where that is assigned. */
static const char *call_text(struct writer *writer, const struct hlo_list *arguments, const struct given *given) {
  struct stablehlo *hlo = &writer->maker->hlo;
  const struct hlo_parameters *parameters = entry_parameters(writer);
  struct text names = text_in(hlo->arena), takes = text_in(hlo->arena), gives = text_in(hlo->arena);
  const int count = given->count;
  for (int i = 0; i < arguments->count; i++) {
    const int at = i < parameters->count ? assigned_at(writer, &parameters->items[i]) : -1;
    text_printf(&names, ", %s",
                at >= 0 ? sum_name(hlo->arena, given->n_summed + at) : hlo_name_of(hlo, arguments->items[i].tensor));
    text_printf(&takes, ", %s", hlo_type_of(hlo, arguments->items[i].tensor));
  }
  for (int i = 0; i < count; i++) add_type(&gives, hlo_type_of(hlo, given->items[i]));
  const char *form = count == 1 ? "      %%$got = func.call @%s(%%$i%s) : (tensor<i32>%s) -> %s\n"
                                : arena_printf(hlo->arena,
                                               "      %%%%$got:%d = func.call @%%s(%%%%$i%%s) : "
                                               "(tensor<i32>%%s) -> (%%s)\n",
                                               count);
  return arena_printf(hlo->arena, form, micro_batch, text_string(&names), text_string(&takes), text_string(&gives));
}

/* The sums over all micro-batches, one after the other. */
static void loop(struct writer *writer, const struct hlo_list *arguments, struct hlo batches, struct given *given) {
  struct stablehlo *hlo = &writer->maker->hlo;
  const struct hlo_parameters *parameters = entry_parameters(writer), *assigned = assigned_of(writer);
  struct loop_texts texts = {text_in(hlo->arena), text_in(hlo->arena), text_in(hlo->arena), text_in(hlo->arena)};
  const struct shape scalar = {0};
  const char *zero = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number(0), scalar, HLO_I32));
  const char *one = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number(1), scalar, HLO_I32));
  text_puts(&texts.body, call_text(writer, arguments, given));
  for (int i = 0; i < given->n_summed; i++) add_sum(hlo, &texts, given->items[i], i, given->count > 1);
  for (int i = 0; i < assigned->count; i++) {
    const int at = hlo_parameter_index(parameters, assigned->items[i].scope, assigned->items[i].path);
    add_carried(hlo, &texts, arguments->items[at].tensor, given->n_summed + i);
  }
  const char *types = text_string(&texts.types);
  const char *text =
      arena_printf(hlo->arena,
                   "stablehlo.while(%%$i = %s%s) : tensor<i32>%s\n     cond {\n"
                   "      %%$more = stablehlo.compare LT, %%$i, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                   "      stablehlo.return %%$more : tensor<i1>\n    } do {\n%s"
                   "      %%$after = stablehlo.add %%$i, %s : tensor<i32>\n"
                   "      stablehlo.return %%$after%s : tensor<i32>%s\n    }",
                   zero, text_string(&texts.begins), types, hlo_name_of(hlo, batches), text_string(&texts.body), one,
                   text_string(&texts.next), types);
  const int item = hlo_add_item(hlo, text, NULL, given->count + 1);
  for (int i = 0; i < given->count; i++) given->items[i].item = item, given->items[i].result = i + 1;
}

/* The loss and the gradients of the step: those of a micro-batch, or their sums. `weights`: of `main`. */
static struct given run_micro_batches(struct writer *writer, const struct hlo *weights, const struct hlo *inputs,
                                      struct hlo batches, struct hlo key) {
  const struct hlo_parameters *parameters = entry_parameters(writer);
  struct hlo_list arguments = {0};
  for (int i = 0; i < parameters->count; i++)
    for (int k = 0; k < writer->step->n_weights; k++)
      if (strcmp(writer->step->weights[k].path, parameters->items[i].path) == 0)
        hlo_list_add(writer->maker, &arguments, weights[k], NULL);
  for (int i = 0; i < entry_of(writer)->inputs.count; i++) hlo_list_add(writer->maker, &arguments, inputs[i], NULL);
  if (key.item >= 0) hlo_list_add(writer->maker, &arguments, key, NULL);
  struct given given = result_types(writer);
  if (writer->step->micro_steps > 1)
    loop(writer, &arguments, batches, &given);
  else
    call(writer, micro_batch, &arguments, given.items, given.count);
  return given;
}

/* ---- Devices ---- */

/* The loss and the gradients become their sums over all devices; of divided ones, a device's part of that. What is
 * assigned to buffers is the first device's, as processes save that of their first one. */
static void exchange(struct writer *writer, struct given *got) {
  const struct hlo_step *step = writer->step;
  const int devices = step->devices;
  struct stablehlo *hlo = &writer->maker->hlo;
  hlo_all_reduce(hlo, devices, got->items, step->divides_states ? 1 : got->n_summed);
  if (step->divides_states) hlo_reduce_to_parts(hlo, devices, step->bucket, got->items + 1, got->n_summed - 1);
  for (int i = got->n_summed; i < got->count; i++) got->items[i] = hlo_of_first_device(hlo, devices, got->items[i]);
}

/* The weights that the optimizer steps become a device's parts. */
static void take_own_parts(struct writer *writer, struct hlo *arrays) {
  const struct hlo_step *step = writer->step;
  for (int i = 0; i < step->n_weights; i++)
    if (step->weights[i].steps) arrays[i] = hlo_own_part(&writer->maker->hlo, step->devices, arrays[i]);
}

/* They become whole again. */
static void gather_weights(struct writer *writer, struct hlo *arrays) {
  const struct hlo_step *step = writer->step;
  struct arena *arena = arena_of(writer);
  struct hlo *parts = arena_alloc(arena, ((size_t)step->n_weights + 1) * sizeof *parts);
  struct shape *shapes = arena_alloc(arena, ((size_t)step->n_weights + 1) * sizeof *shapes);
  int count = 0;
  for (int i = 0; i < step->n_weights; i++) {
    if (!step->weights[i].steps) continue;
    shapes[count] = step->weights[i].shape;
    parts[count++] = arrays[i];
  }
  hlo_gather_parts(&writer->maker->hlo, step->devices, step->bucket, parts, shapes, count);
  for (int i = 0, k = 0; i < step->n_weights; i++)
    if (step->weights[i].steps) arrays[i] = parts[k++];
}

/* The weights as the model takes them. */
static const struct hlo *whole_weights(struct writer *writer, const struct hlo *arrays) {
  if (!writer->step->divides_weights) return arrays;
  const size_t size = (size_t)writer->step->n_weights * sizeof *arrays;
  struct hlo *weights = arena_alloc(arena_of(writer), size + 1);
  memcpy(weights, arrays, size);
  gather_weights(writer, weights);
  return weights;
}

/* The mean over all micro-batches of their summed losses. `batches`: how many each device has. */
static struct hlo mean_loss(const struct writer *writer, struct hlo sum, struct hlo batches) {
  struct stablehlo *hlo = &writer->maker->hlo;
  const int devices = writer->step->devices;
  if (devices > 1) sum = hlo_div(hlo, sum, hlo_number(devices));
  return writer->step->micro_steps > 1 ? hlo_div(hlo, sum, hlo_convert(hlo, batches, HLO_F32)) : sum;
}

/* ---- The end of a step ---- */

/* The norm of all gradients. Their squares are added up in float64: a float32 loses digits over millions of them. */
static struct hlo norm_of(struct writer *writer, const struct hlo *gradients, int count) {
  struct stablehlo *hlo = &writer->maker->hlo;
  struct hlo sum = hlo_tensor(hlo, hlo_number(0), (struct shape){0}, HLO_F64);
  for (int i = 0; i < count; i++) {
    struct shape axes = {.rank = gradients[i].shape.rank};
    for (int k = 0; k < axes.rank; k++) axes.dim[k] = k;
    const struct hlo wide = hlo_convert(hlo, gradients[i], HLO_F64);
    sum = hlo_add(hlo, sum, hlo_reduce(hlo, "add", hlo_mul(hlo, wide, wide), axes, false));
  }
  if (writer->step->divides_states) hlo_all_reduce(hlo, writer->step->devices, &sum, 1);
  return hlo_unary(hlo, "sqrt", sum);
}

/* ---- The update ---- */

/* "step.update_384x128", of several rules "step.update_tensor_384x128" */
static const char *update_name(const struct writer *writer, const struct hlo_weight *weight) {
  struct text name = text_in(arena_of(writer));
  text_printf(&name, "step.%s", writer->step->rules[weight->rule].name);
  for (int i = 0; i < weight->part.rank; i++)
    text_printf(&name, "%s%lld", i > 0 ? "x" : "_", (long long)weight->part.dim[i]);
  return text_string(&name);
}

/* The states of a weight, by their positions among those of all. */
struct owned {
  int *items;
  int count;
};

static struct owned states_of(const struct writer *writer, int weight) {
  const struct hlo_step *step = writer->step;
  struct owned owned = {arena_alloc(arena_of(writer), ((size_t)step->n_states + 1) * sizeof *owned.items), 0};
  for (int i = 0; i < step->n_states; i++)
    if (step->states[i].weight == weight) owned.items[owned.count++] = i;
  return owned;
}

/* The update of a parameter such as this one, as a function. States of 16 bits are rounded when they leave it. */
static void write_update(struct writer *writer, int of) {
  const struct hlo_step *step = writer->step;
  const struct hlo_weight *weight = &step->weights[of];
  const struct hlo_rule *rule = &step->rules[weight->rule];
  const struct owned owned = states_of(writer, of);
  struct maker *maker = writer->maker;
  struct stablehlo *hlo = &maker->hlo;
  struct hlo *arrays = arena_alloc(hlo->arena, ((size_t)owned.count + 1) * sizeof *arrays);
  struct hlo *numbers = arena_alloc(hlo->arena, ((size_t)rule->n_numbers + 1) * sizeof *numbers);
  const char **names = arena_alloc(hlo->arena, ((size_t)owned.count + 1) * sizeof *names);
  struct hlo_list given = {0};
  struct hlo_update update = {.weight = weight, .numbers = numbers, .arrays = arrays, .names = names};
  hlo_begin_function(maker, entry_of(writer));
  names[update.n_arrays++] = "weights";
  arrays[0] = hlo_new_argument(maker, "weights", weight->part, HLO_F32);
  for (int i = 0; i < owned.count; i++) {
    const struct hlo_state *state = &step->states[owned.items[i]];
    const struct hlo x = hlo_new_argument(maker, state->name, state->shape, (enum hlo_type)state->dtype);
    names[update.n_arrays] = state->name;
    arrays[update.n_arrays++] = hlo_convert(hlo, x, HLO_F32);
  }
  update.gradient = hlo_new_argument(maker, "gradient", weight->part, HLO_F32);
  if (step->scales) update.factor = hlo_new_argument(maker, "factor", (struct shape){0}, HLO_F32);
  for (int i = 0; i < rule->n_numbers; i++)
    numbers[i] = hlo_new_argument(maker, rule->numbers[i], (struct shape){0}, HLO_F32);
  rule->update(rule->context, hlo, &update);
  hlo_list_add(maker, &given, arrays[0], NULL);
  for (int i = 0; i < owned.count; i++)
    hlo_list_add(maker, &given, hlo_convert(hlo, arrays[i + 1], (enum hlo_type)step->states[owned.items[i]].dtype),
                 NULL);
  if (!hlo->failed) hlo_print_function(maker, "private", update_name(writer, weight), &given);
}

static void write_updates(struct writer *writer) {
  const struct hlo_step *step = writer->step;
  for (int i = 0; i < step->n_weights; i++) {
    const struct hlo_weight *weight = &step->weights[i];
    bool known = !weight->steps;
    for (int k = 0; k < i; k++)
      known |= step->weights[k].steps && step->weights[k].rule == weight->rule &&
               shape_equal(step->weights[k].part, weight->part);
    if (!known && !writer->maker->hlo.failed) write_update(writer, i);
  }
}

/* The numbers of each row of a rule, a scalar each. */
static struct hlo *split_numbers(struct writer *writer, const struct hlo_rule *rule, struct hlo numbers) {
  struct stablehlo *hlo = &writer->maker->hlo;
  const int count = rule->n_numbers;
  struct hlo *split = arena_alloc(hlo->arena, ((size_t)(rule->rows * count) + 1) * sizeof *split);
  for (int r = 0; r < rule->rows; r++)
    for (int i = 0; i < count; i++)
      split[r * count + i] =
          hlo_reshape(hlo, hlo_slice(hlo, hlo_slice(hlo, numbers, 0, r, 1), 1, i, 1), (struct shape){0});
  return split;
}

/* A parameter that the optimizer does not step becomes what was assigned to it, and so does its copy among averages. */
static void assign(struct writer *writer, int weight, const struct hlo *assigned, struct hlo *arrays) {
  const struct hlo_step *step = writer->step;
  const struct owned owned = states_of(writer, weight);
  const int at = hlo_parameter_index(assigned_of(writer), 0, step->weights[weight].path);
  if (at < 0) return;
  arrays[weight] = assigned[at];
  for (int i = 0; i < owned.count; i++) arrays[step->n_weights + owned.items[i]] = assigned[at];
}

/* The arrays become their new values: those of the weights, then the states. `numbers`: of each rule. */
static void update_all(struct writer *writer, const struct hlo *gradients, struct hlo factor,
                       struct hlo *const numbers[HLO_RULES], struct hlo *arrays) {
  const struct hlo_step *step = writer->step;
  struct stablehlo *hlo = &writer->maker->hlo;
  struct hlo *own = arena_alloc(hlo->arena, ((size_t)step->n_states + 1) * sizeof *own);
  for (int w = 0; w < step->n_weights; w++) {
    const struct hlo_weight *weight = &step->weights[w];
    const struct hlo_rule *rule = &step->rules[weight->rule];
    struct hlo_list arguments = {0};
    if (!weight->steps) continue;
    const struct owned owned = states_of(writer, w);
    own[0] = arrays[w];
    for (int i = 0; i < owned.count; i++) own[i + 1] = arrays[step->n_weights + owned.items[i]];
    for (int i = 0; i <= owned.count; i++) hlo_list_add(writer->maker, &arguments, own[i], NULL);
    const bool reached = gradient_of(writer, weight) >= 0;
    const struct hlo gradient = reached ? *gradients++ : hlo_tensor(hlo, hlo_number(0), weight->part, HLO_F32);
    hlo_list_add(writer->maker, &arguments, gradient, NULL);
    if (step->scales) hlo_list_add(writer->maker, &arguments, factor, NULL);
    for (int i = 0; i < rule->n_numbers; i++)
      hlo_list_add(writer->maker, &arguments, numbers[weight->rule][weight->row * rule->n_numbers + i], NULL);
    call(writer, update_name(writer, weight), &arguments, own, owned.count + 1);
    arrays[w] = own[0];
    for (int i = 0; i < owned.count; i++) arrays[step->n_weights + owned.items[i]] = own[i + 1];
  }
}

/* ---- main ---- */

static struct hlo take(struct writer *writer, const char *name, struct shape shape, enum hlo_type type) {
  const struct hlo_operand operand = {name, shape, (enum dtype)type};
  ARENA_PUSH(arena_of(writer), writer->made->arguments, operand);
  return hlo_new_argument(writer->maker, name, shape, type);
}

/* One that result `result` takes the memory of. */
static struct hlo take_donated(struct writer *writer, const char *name, struct shape shape, enum dtype dtype,
                               int result) {
  const struct hlo x = take(writer, name, shape, (enum hlo_type)dtype);
  struct hlo_item *item = &writer->maker->hlo.function->items.items[x.item];
  item->type = arena_printf(arena_of(writer), "%s {tf.aliasing_output = %d : i32}", item->type, result);
  return x;
}

static void give(struct writer *writer, struct hlo_list *given, struct hlo x, const char *name) {
  struct arena *arena = arena_of(writer);
  const struct hlo_operand operand = {name, x.shape, (enum dtype)x.type};
  ARENA_PUSH(arena, writer->made->results, operand);
  hlo_list_add(writer->maker, given, x, arena_printf(arena, "jax.result_info = %s", hlo_quoted(arena, name)));
}

/* "moment_1.transformer.wte.weight" */
static const char *state_name(const struct writer *writer, const struct hlo_state *state) {
  return arena_printf(arena_of(writer), "%s.%s", state->name, writer->step->weights[state->weight].path);
}

/* The arrays that outlive the step, each donated to the result that follows the loss and the norm at its place. */
static struct hlo *take_arrays(struct writer *writer) {
  enum { BEFORE = 2 };
  const struct hlo_step *step = writer->step;
  struct hlo *arrays = arena_alloc(arena_of(writer), ((size_t)(step->n_weights + step->n_states) + 1) * sizeof *arrays);
  for (int i = 0; i < step->n_weights; i++) {
    const struct hlo_weight *weight = &step->weights[i];
    const struct shape shape = step->divides_weights ? weight->part : weight->shape;
    arrays[i] = take_donated(writer, weight->path, shape, weight->dtype, BEFORE + i);
  }
  for (int i = 0; i < step->n_states; i++) {
    const struct hlo_state *state = &step->states[i];
    const int at = step->n_weights + i;
    arrays[at] = take_donated(writer, state_name(writer, state), state->shape, state->dtype, BEFORE + at);
  }
  return arrays;
}

static void take_numbers(struct writer *writer, struct hlo *numbers[HLO_RULES]) {
  for (int i = 0; i < HLO_RULES; i++) {
    const struct hlo_rule *rule = &writer->step->rules[i];
    const struct shape shape = shape_of(2, (int64_t)rule->rows, (int64_t)rule->n_numbers);
    if (rule->n_numbers > 0) numbers[i] = split_numbers(writer, rule, take(writer, rule->input, shape, HLO_F32));
  }
}

static void write_main(struct writer *writer) {
  const struct hlo_step *step = writer->step;
  struct maker *maker = writer->maker;
  struct stablehlo *hlo = &maker->hlo;
  const struct region *entry = entry_of(writer);
  struct hlo *inputs = arena_alloc(hlo->arena, ((size_t)entry->inputs.count + 1) * sizeof *inputs);
  struct hlo *numbers[HLO_RULES] = {NULL};
  struct hlo_list given = {0};
  hlo_begin_function(maker, entry);
  struct hlo *arrays = take_arrays(writer);
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    inputs[i] = take(writer, input->name, stacked(writer, input->shape), (enum hlo_type)input->dtype);
  }
  struct hlo batches = {.item = -1};
  if (step->micro_steps > 1) batches = take(writer, "micro_batches", (struct shape){0}, HLO_I32);
  struct hlo key = {.item = -1};
  if (draws(writer)) key = take(writer, "random_keys", stacked(writer, (struct shape){0}), HLO_I64);
  take_numbers(writer, numbers);
  struct given got = run_micro_batches(writer, whole_weights(writer, arrays), inputs, batches, key);
  exchange(writer, &got);
  const struct hlo *sums = got.items, norm = norm_of(writer, sums + 1, got.n_summed - 1);
  const struct hlo factor = step->scales ? step->factor(step->context, hlo, norm) : (struct hlo){.item = -1};
  const struct hlo loss = mean_loss(writer, sums[0], batches);
  if (hlo->failed) return;
  const bool in_parts = step->divides_states && !step->divides_weights;
  if (in_parts) take_own_parts(writer, arrays);
  update_all(writer, sums + 1, factor, numbers, arrays);
  if (in_parts) gather_weights(writer, arrays);
  for (int i = 0; i < step->n_weights; i++)
    if (!step->weights[i].steps) assign(writer, i, sums + got.n_summed, arrays);
  give(writer, &given, loss, "loss");
  give(writer, &given, hlo_convert(hlo, norm, HLO_F32), "grad_norm");
  for (int i = 0; i < step->n_weights; i++) give(writer, &given, arrays[i], step->weights[i].path);
  for (int i = 0; i < step->n_states; i++)
    give(writer, &given, arrays[step->n_weights + i], state_name(writer, &step->states[i]));
  hlo_print_function(maker, "public", "main", &given);
}

bool hlo_make_step(struct arena *arena, const struct graph *graph, const char *name, const struct hlo_step *step,
                   struct hlo_module *made, struct diagnostics *diags) {
  struct maker maker = hlo_begin_module(arena, graph, diags);
  struct text *functions = maker.out, entry = text_in(arena);
  struct writer writer = {&maker, step, made, graph_backward_of(graph, graph->entry)};
  *made = (struct hlo_module){0};
  if (!hlo_write_regions(&maker, graph->entry, writer.backward)) return false;
  write_micro_batch(&writer);
  if (!maker.hlo.failed) write_updates(&writer);
  maker.out = &entry;
  if (!maker.hlo.failed) write_main(&writer);
  if (maker.hlo.failed) return false;
  made->text = hlo_end_module(&maker, name, &entry, functions);
  made->random = draws(&writer);
  return true;
}
