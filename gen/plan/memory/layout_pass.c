#include "gen/plan/memory/layout_pass.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/program/target.h"

struct view *view_of(struct program *program, const struct value *value) {
  if (value->id >= program->views.count) {
    int wider = value->id * 2 + 64;
    struct view *grown = arena_alloc(program->arena, (size_t)wider * sizeof *grown);
    if (program->views.count > 0) memcpy(grown, program->views.items, (size_t)program->views.count * sizeof *grown);
    program->views.items = grown;
    program->views.count = wider;
  }
  return &program->views.items[value->id];
}

bool view_is_dense(const struct view *view, struct shape shape) {
  int64_t dense[MAX_RANK];
  shape_dense_strides(shape, dense);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dim[i] > 1 && view->strides[i] != dense[i]) return false;
  return true;
}

struct storage *new_storage(struct layout_pass *pass, enum storage_kind kind, const char *name, enum dtype dtype,
                            int64_t count, int copies) {
  struct storage *storage = arena_alloc(pass->arena, sizeof *storage);
  *storage = (struct storage){.kind = kind,
                              .name = name,
                              .dtype = dtype,
                              .count = count,
                              .copies = copies,
                              .function = pass->function,
                              .first = -1,
                              .last = -1,
                              .slot = -1};
  ARENA_PUSH(pass->arena, pass->function->storages, storage);
  return storage;
}

struct view dense_view(struct storage *storage, int64_t offset, struct shape shape) {
  struct view view = {.storage = storage, .offset = offset};
  shape_dense_strides(shape, view.strides);
  return view;
}

bool is_aligned(const struct layout_pass *pass, const struct view *view) {
  const int64_t bytes = pass->program->target->library.operand_bytes, each = dtype_size(view->storage->dtype);
  if (bytes == 0) return true;
  return view->offset * each % bytes == 0 && (view->storage->copies == 1 || view->storage->count * each % bytes == 0);
}

bool reaches_library(const struct node *node) {
  const struct op_library *library = &node->kind->library;
  return node->kind->class == OP_CALL || library->matmul || library->gemms != NULL || library->epilogues != 0 ||
         library->part != LIBRARY_NONE;
}

struct storage *operand_storage(struct layout_pass *pass, enum storage_kind kind, const struct value *value,
                                int index) {
  struct storage *storage = new_storage(pass, kind, value->name, value->dtype, shape_count(value->shape), 1);
  storage->value = value;
  storage->index = index;
  return storage;
}

static bool is_saved(const struct layout_pass *pass, const struct value *value) {
  return value->id < pass->n_values && pass->saved[value->id];
}

bool needs_saving(const struct layout_pass *pass, const struct value *value) {
  if (is_saved(pass, value)) return true;
  for (int i = 0; i < pass->region->nodes.count; i++) {
    const struct node *node = pass->region->nodes.items[i];
    bool views = node->kind->class == OP_VIEW && node->inputs[0] == value;
    if (views && needs_saving(pass, node->outputs[0])) return true;
  }
  return false;
}

struct view fresh_view(struct layout_pass *pass, const struct value *value) {
  enum storage_kind kind = needs_saving(pass, value) ? STORAGE_SAVED : STORAGE_SCRATCH;
  return dense_view(operand_storage(pass, kind, value, 0), 0, value->shape);
}

bool is_local(const struct layout_pass *pass, const struct value *value) {
  return value->kind == VALUE_RESULT && value->region == pass->region;
}

bool same_view(const struct view *a, const struct view *b, struct shape shape) {
  if (a->storage != b->storage || a->offset != b->offset) return false;
  for (int i = 0; i < shape.rank; i++)
    if (shape.dim[i] > 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

int first_copy(const struct call *call, int copies) {
  return call->forward != NULL ? call->count % copies : 0;
}

int final_copy(const struct call *call, int copies) {
  return call->forward != NULL ? 0 : call->count % copies;
}
