#include "gen/plan/memory/direct.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/plan/memory/deferred.h"
#include "gen/program/target.h"

/* Whether the producer can write output `index` there. */
static bool can_write(const struct layout_pass *pass, const struct node *node, int index, struct shape shape,
                      const struct view *view) {
  if (node->kind->class == OP_ELEMENTWISE) return true;
  if (reaches_library(node) && !is_aligned(pass, view)) return false;
  if (view_is_dense(view, shape)) return true;
  return node->kind->class == OP_KERNEL && node->kind->layout.accepts != NULL &&
         node->kind->layout.accepts(node, true, index, view->strides);
}

static bool can_accumulate(const struct node *node, int index) {
  return node->kind->class == OP_ELEMENTWISE || (node->kind->class == OP_KERNEL && node->kind->layout.part != NULL) ||
         (node->kind->class == OP_KERNEL && node->kind->memory.accumulates >> op_described(node->kind, index) & 1);
}

/* Makes the producer of `value` write to `view`, through views of its result; false, with nothing changed, when it
 * cannot. */
static bool direct(struct layout_pass *pass, const struct value *value, struct view view, bool accumulate) {
  if (!is_local(pass, value) || view_of(pass->program, value)->storage != NULL) return false;
  bool temporary = view.storage->kind != STORAGE_SAVED;
  if (temporary && needs_saving(pass, value)) return false;
  const struct node *node = value->producer;
  if (node->kind->class == OP_VIEW) {
    struct view below = {.storage = view.storage, .offset = view.offset};
    if (node->kind->layout.unview == NULL || !node->kind->layout.unview(node, view.strides, below.strides))
      return false;
    if (!direct(pass, node->inputs[0], below, accumulate)) return false;
  } else {
    if (node->kind->class == OP_CALL && node->call->count > 1) return false;
    if (!can_write(pass, node, value->index, value->shape, &view)) return false;
    if (accumulate && !can_accumulate(node, value->index)) return false;
    if (accumulate) pass->accumulate[value->id] = true;
  }
  *view_of(pass->program, value) = view;
  return true;
}

/* Makes the producer of `value` write it densely, to memory of the value's own; false, with nothing changed, when it
 * cannot. */
static bool direct_dense(struct layout_pass *pass, const struct value *value) {
  struct storage probe = {.kind = needs_saving(pass, value) ? STORAGE_SAVED : STORAGE_SCRATCH};
  if (!direct(pass, value, dense_view(&probe, 0, value->shape), false)) return false;
  struct storage *storage = fresh_view(pass, value).storage;
  for (const struct value *below = value;; below = below->producer->inputs[0]) { /* views, down to the producer */
    view_of(pass->program, below)->storage = storage;
    if (!value_is_view(below)) return true;
  }
}

/* Whether a value is used only where it is wanted, nor does what it is a view of. */
static bool is_wanted_once(const struct layout_pass *pass, const struct value *value) {
  for (;; value = value->producer->inputs[0]) {
    if (pass->uses[value->id] > 1) return false;
    if (!value_is_view(value)) return true;
  }
}

static void direct_results(struct layout_pass *pass) {
  struct region *region = pass->region;
  for (int i = 0; i < region->results.count; i++) {
    const struct value *value = region->results.items[i];
    struct storage *storage = operand_storage(pass, STORAGE_RESULT, value, i);
    if (!is_local(pass, value) || view_of(pass->program, value)->storage != NULL)
      storage->name = arena_printf(pass->arena, "%s_result_%d", value->name, i); /* it has its own name elsewhere */
    direct(pass, value, dense_view(storage, 0, value->shape), false);
  }
  for (int i = 0; i < region->gradients.count; i++) {
    const struct parameter_gradient *gradient = &region->gradients.items[i];
    if (region->forward->parameters.items[gradient->parameter].in_backward) {
      direct_dense(pass, gradient->value);
      continue;
    }
    struct storage *storage = operand_storage(pass, STORAGE_GRADIENT, gradient->value, gradient->parameter);
    bool changes = gradient->accumulate || gradient->shared; /* others must not read it there */
    if (changes && !is_wanted_once(pass, gradient->value)) continue;
    if (gradient->meets) continue; /* a kernel's results are separate */
    direct(pass, gradient->value, dense_view(storage, 0, gradient->value->shape), gradient->accumulate);
  }
}

/* Whether strides can say the value when its producer writes densely. */
static bool comes_free(struct layout_pass *pass, const struct value *value, int64_t *strides) {
  const struct view *view = view_of(pass->program, value);
  if (view->storage != NULL) {
    memcpy(strides, view->strides, sizeof view->strides);
    return true;
  }
  shape_dense_strides(value->shape, strides);
  if (!is_local(pass, value) || !value_is_view(value)) return true;
  int64_t below[MAX_RANK], offset;
  return comes_free(pass, value->producer->inputs[0], below) &&
         value->producer->kind->layout.view(value->producer, below, &offset, strides);
}

/* A view that would need a copy: better its producer writes in the layout of the view, if it can. */
static void direct_view(struct layout_pass *pass, const struct node *node) {
  const struct value *value = node->outputs[0];
  int64_t strides[MAX_RANK];
  if (view_of(pass->program, value)->storage != NULL || comes_free(pass, value, strides)) return;
  direct_dense(pass, value);
}

static void direct_parts(struct layout_pass *pass, const struct node *node) {
  const struct value *whole = node->outputs[0];
  struct view *view = view_of(pass->program, whole);
  if (view->storage == NULL) {
    struct view fresh = fresh_view(pass, whole);
    view = view_of(pass->program, whole);
    *view = fresh;
  }
  struct view target = *view;
  for (int i = 0; i < node->n_inputs; i++) {
    struct view part = {.storage = target.storage};
    if (!node->kind->layout.part(node, i, target.strides, &part.offset, part.strides)) continue;
    part.offset += target.offset;
    direct(pass, node->inputs[i], part, false);
  }
}

/* ---- Repeated calls: carried values are in a row of copies ---- */

static int n_copies(const struct call *call, bool saves) {
  return saves ? call->count + 1 : 2;
}

/* Elements from one copy to the next: each begins where the device's library takes operands. */
static int64_t copy_elements(const struct layout_pass *pass, const struct value *formal) {
  const int64_t size = shape_count(formal->shape), bytes = pass->program->target->library.operand_bytes;
  const int64_t step = bytes / dtype_size(formal->dtype);
  return step > 1 ? (size + step - 1) / step * step : size;
}

/* What iterations left in a row, as one value: from the first copy on, or from the second one if it is what they left
 * `after` them. */
static struct view history_view(struct storage *row, struct shape shape, bool after) {
  struct view view = dense_view(row, after ? row->count : 0, shape);
  view.strides[0] = row->count;
  return view;
}

static bool has_storage(const struct function *function, const char *name) {
  for (int i = 0; i < function->storages.count; i++)
    if (strcmp(function->storages.items[i]->name, name) == 0) return true;
  return false;
}

/* Parts of one loop have one number. */
static const char *row_name(struct layout_pass *pass, const struct node *node, const struct value *formal) {
  const struct call *call = node->call;
  const char *name = arena_printf(pass->arena, "%s_of_%s", formal->name, call->callee->name);
  if (call->number > 0) name = arena_printf(pass->arena, "%s_%d", name, call->number);
  return has_storage(pass->function, name) ? arena_printf(pass->arena, "%s_from_%d", name, call->first) : name;
}

/* Whether a node reads its inputs, or what it runs reads them, when all that is not deferred has run. */
static bool reads_later(const struct layout_pass *pass, const struct node *node) {
  return node->deferred || (node->call != NULL && function_of(pass->program, node->call->callee)->deferred != NULL);
}

/* Whether nothing after position `end` of the region, nor later than that, reads the value, or a view of it. */
static bool read_up_to(const struct layout_pass *pass, const struct value *value, int end) {
  int reads = 0;
  for (int i = 0; i <= end; i++) {
    const struct node *node = pass->region->nodes.items[i];
    for (int k = 0; k < node->n_inputs; k++) {
      if (node->inputs[k] != value) continue;
      if (node->kind->class == OP_VIEW && !read_up_to(pass, node->outputs[0], end)) return false;
      if (i < end && node->kind->class != OP_VIEW && reads_later(pass, node)) return false;
      reads++;
    }
  }
  return reads == pass->uses[value->id];
}

/* Whether a call is the last to read the memory of its input, and reads it once. */
static bool read_last(const struct layout_pass *pass, const struct node *call, int input) {
  const struct value *whole = viewed_value(call->inputs[input]);
  for (int i = 0; i < call->n_inputs; i++)
    if (i != input && viewed_value(call->inputs[i]) == whole) return false;
  return read_up_to(pass, whole, region_position(call));
}

/* Where a row stores what iterations left, its first copy is free after the loop: a value that is history_value is
 * there. */
static void direct_after(struct layout_pass *pass, const struct node *call, struct storage *row) {
  for (int i = region_position(call) + 1; i < pass->region->nodes.count; i++) {
    const struct node *node = pass->region->nodes.items[i];
    for (int k = 0; k < node->n_outputs; k++) {
      const struct value *value = node->outputs[k];
      if (value->dtype != row->dtype || shape_count(value->shape) != row->count || !needs_saving(pass, value)) continue;
      if (direct(pass, value, dense_view(row, 0, value->shape), false)) return;
    }
  }
}

/* Whether what a callee defers reads a carried input of each iteration, or what became of it. */
static bool is_read_later(const struct layout_pass *pass, const struct call *call, int input) {
  const struct function *deferred = function_of(pass->program, call->callee)->deferred;
  return deferred != NULL &&
         (reads_operand(deferred, STORAGE_INPUT, input) || reads_operand(deferred, STORAGE_RESULT, call->carry[input]));
}

static void direct_carries(struct layout_pass *pass, struct node *node) {
  const struct call *call = node->call;
  for (int i = 0; i < call->callee->inputs.count; i++) {
    if (call->count == 1 || call->carry[i] < 0) continue;
    const struct value *formal = call->callee->inputs.items[i];
    int history = history_index(call, i);
    bool later = is_read_later(pass, call, i);
    int copies = n_copies(call, history >= 0 || later);
    int64_t size = copy_elements(pass, formal);
    struct value *history_value = history >= 0 ? node->outputs[call->callee->results.count + history] : NULL;
    const char *name = history_value != NULL ? history_value->name : row_name(pass, node, formal);
    struct storage *row =
        new_storage(pass, history_value != NULL && needs_saving(pass, history_value) ? STORAGE_SAVED : STORAGE_SCRATCH,
                    name, formal->dtype, size, copies);
    row->value = history_value;
    row->carrier = node;
    row->carried_input = i;
    bool after = history_value != NULL && call->after != NULL && call->after[history];
    if (history_value != NULL) *view_of(pass->program, history_value) = history_view(row, history_value->shape, after);
    if (after && row->kind == STORAGE_SAVED && read_last(pass, node, i)) direct_after(pass, node, row);
    const struct value *result = node->outputs[call->carry[i]];
    if (history_value == NULL && needs_saving(pass, result) && view_of(pass->program, result)->storage == NULL) {
      struct view own = fresh_view(pass, result);
      *view_of(pass->program, result) = own;
    }
    /* A short row is written over: what others read as well, or later, is copied into it. */
    if (history_value != NULL || later || read_last(pass, node, i))
      direct(pass, node->inputs[i], dense_view(row, first_copy(call, copies) * size, formal->shape), false);
  }
}

void direct_values(struct layout_pass *pass) {
  direct_results(pass);
  for (int i = pass->region->nodes.count - 1; i >= 0; i--) {
    struct node *node = pass->region->nodes.items[i];
    switch (node->kind->class) {
    case OP_PARTS:
      direct_parts(pass, node);
      break;
    case OP_VIEW:
      direct_view(pass, node);
      break;
    case OP_CALL:
      direct_carries(pass, node);
      break;
    case OP_ELEMENTWISE:
    case OP_KERNEL:
      break;
    }
  }
}
