/* Loops whose step is a function of the module. */
#include <stdio.h>

#include "gen/stablehlo/maker.h"

/* x without a dimension, and with one of this extent. */
static struct shape without(struct shape shape, int axis) {
  for (int i = axis + 1; i < shape.rank; i++) shape.dim[i - 1] = shape.dim[i];
  shape.rank--;
  return shape;
}

static struct shape with(struct shape shape, int axis, int64_t extent) {
  for (int i = shape.rank; i > axis; i--) shape.dim[i] = shape.dim[i - 1];
  shape.dim[axis] = extent;
  shape.rank++;
  return shape;
}

/* ---- A step ---- */

/* New arguments like the items; in `taken`. */
static void take(struct maker *maker, const char *name, const struct hlo *items, int count, struct hlo *taken) {
  for (int i = 0; i < count; i++)
    taken[i] = hlo_new_argument(maker, arena_printf(maker->hlo.arena, "%s_%d", name, i), items[i].shape, items[i].type);
}

/* The function of a step: of its number, what is carried, the rows so far, and the rest. It gives the next of what is
 * carried, and the rows with its own. */
static void write_step(struct maker *maker, const struct hlo_loop *loop, const struct hlo *rows, const char *name,
                       void (*step)(struct stablehlo *hlo, struct hlo_step_operands *at)) {
  struct stablehlo *hlo = &maker->hlo;
  struct hlo_step_operands at;
  struct hlo so_far[HLO_MOST_IN_LOOP], sliced[HLO_MOST_IN_LOOP];
  struct hlo_list given = {0};
  const struct hlo number = hlo_new_argument(maker, "number", (struct shape){0}, HLO_I32);
  take(maker, "carried", loop->carried, loop->n_carried, at.carried);
  take(maker, "rows", rows, loop->n_kept, so_far);
  take(maker, "sliced", loop->sliced, loop->n_sliced, sliced);
  take(maker, "whole", loop->whole, loop->n_whole, at.whole);
  for (int i = 0; i < loop->n_sliced; i++)
    at.rows[i] =
        hlo_reshape(hlo, hlo_slice_at(hlo, sliced[i], loop->axis, number, 1), without(sliced[i].shape, loop->axis));
  step(hlo, &at);
  for (int i = 0; i < loop->n_carried; i++) hlo_list_add(maker, &given, at.carried[i], NULL);
  for (int i = 0; i < loop->n_kept; i++) {
    const struct hlo row = hlo_reshape(hlo, at.kept[i], with(at.kept[i].shape, loop->axis, 1));
    hlo_list_add(maker, &given, hlo_put_at(hlo, so_far[i], row, loop->axis, number), NULL);
  }
  if (!hlo->failed) hlo_print_function(maker, "private", name, &given);
}

/* ---- The loop ---- */

/* What the loop is written of: "%$i_0 = %{4}", "%$i_0", types. */
struct texts {
  struct text begins, names, results, types, others, other_types;
};

static void add_carried(struct stablehlo *hlo, struct texts *texts, struct hlo x, int i, int count) {
  text_printf(&texts->begins, ", %%$carried_%d = %s", i, hlo_name_of(hlo, x));
  text_printf(&texts->names, ", %%$carried_%d", i);
  text_printf(&texts->results, count > 1 ? ", %%$left#%d" : ", %%$left", i);
  text_printf(&texts->types, ", %s", hlo_type_of(hlo, x));
}

static void add_other(struct stablehlo *hlo, struct texts *texts, const struct hlo *items, int count) {
  for (int i = 0; i < count; i++) {
    text_printf(&texts->others, ", %s", hlo_name_of(hlo, items[i]));
    text_printf(&texts->other_types, ", %s", hlo_type_of(hlo, items[i]));
  }
}

/* The loop over `count` tensors that change, as an operation; its item. */
static int write_loop(struct stablehlo *hlo, const struct hlo_loop *loop, struct texts *texts, const char *name,
                      int count) {
  struct arena *arena = hlo->arena;
  const struct shape scalar = {0};
  const char *zero = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number(0), scalar, HLO_I32));
  const char *one = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number(1), scalar, HLO_I32));
  const char *end = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number((double)loop->steps), scalar, HLO_I32));
  const char *last = hlo_name_of(hlo, hlo_tensor(hlo, hlo_number((double)loop->steps - 1), scalar, HLO_I32));
  const char *types = text_string(&texts->types), *after = types + 2; /* without the comma */
  const char *reversed = arena_printf(arena, "      %%$at = stablehlo.subtract %s, %%$i : tensor<i32>\n", last);
  const char *left = count > 1 ? arena_printf(arena, "%%$left:%d", count) : "%$left";
  const char *call = arena_printf(arena, "      %s = func.call @%s(%s%s%s) : (tensor<i32>%s%s) -> (%s)\n", left, name,
                                  loop->backward ? "%$at" : "%$i", text_string(&texts->names),
                                  text_string(&texts->others), types, text_string(&texts->other_types), after);
  const char *text =
      arena_printf(arena,
                   "stablehlo.while(%%$i = %s%s) : tensor<i32>%s\n     cond {\n"
                   "      %%$more = stablehlo.compare LT, %%$i, %s, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
                   "      stablehlo.return %%$more : tensor<i1>\n    } do {\n%s%s"
                   "      %%$next = stablehlo.add %%$i, %s : tensor<i32>\n"
                   "      stablehlo.return %%$next%s : tensor<i32>%s\n    }",
                   zero, text_string(&texts->begins), types, end, loop->backward ? reversed : "", call, one,
                   text_string(&texts->results), types);
  return hlo_add_item(hlo, text, NULL, count + 1);
}

void hlo_run_loop(struct stablehlo *hlo, struct hlo_loop *loop,
                  void (*step)(struct stablehlo *hlo, struct hlo_step_operands *at)) {
  struct maker *maker = hlo_maker(hlo);
  struct arena *arena = hlo->arena;
  struct hlo_function *outer = hlo->function;
  const int count = loop->n_carried + loop->n_kept;
  const char *name = arena_printf(arena, "loop.%s_%d", loop->name, ++maker->n_loops);
  struct texts texts = {text_in(arena), text_in(arena), text_in(arena), text_in(arena), text_in(arena), text_in(arena)};
  struct hlo rows[HLO_MOST_IN_LOOP];
  for (int i = 0; i < loop->n_kept; i++)
    rows[i] = hlo_tensor(hlo, hlo_number(0), with(loop->kept[i].shape, loop->axis, loop->steps), loop->kept[i].type);
  if (hlo->failed) return;
  hlo->function = hlo_new_function(maker);
  write_step(maker, loop, rows, name, step);
  hlo->function = outer;
  for (int i = 0; i < loop->n_carried; i++) add_carried(hlo, &texts, loop->carried[i], i, count);
  for (int i = 0; i < loop->n_kept; i++) add_carried(hlo, &texts, rows[i], loop->n_carried + i, count);
  add_other(hlo, &texts, loop->sliced, loop->n_sliced);
  add_other(hlo, &texts, loop->whole, loop->n_whole);
  const int item = write_loop(hlo, loop, &texts, name, count);
  for (int i = 0; i < loop->n_carried; i++) loop->carried[i].item = item, loop->carried[i].result = 1 + i;
  for (int i = 0; i < loop->n_kept; i++) {
    loop->kept[i] = rows[i];
    loop->kept[i].item = item;
    loop->kept[i].result = 1 + loop->n_carried + i;
  }
}
