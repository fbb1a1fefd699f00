#include "gen/stablehlo/exchange.h"

#include "gen/stablehlo/state.h"

/* "dense<[[0, 1, 2]]> : tensor<1x3xi64>": one group, of all devices. */
static const char *groups(struct arena *arena, int devices) {
  struct text text = text_in(arena);
  for (int i = 0; i < devices; i++) text_printf(&text, "%s%d", i > 0 ? ", " : "dense<[[", i);
  text_printf(&text, "]]> : tensor<1x%dxi64>", devices);
  return text_string(&text);
}

/* The function by which elements are added up, after an operation's attributes. */
static const char *adding(struct arena *arena, enum hlo_type type) {
  const char *one = hlo_type_text(arena, (struct shape){0}, type);
  return arena_printf(arena,
                      "({\n    ^bb0(%%$a: %s, %%$b: %s):\n      %%$sum = stablehlo.add %%$a, %%$b : %s\n"
                      "      stablehlo.return %%$sum : %s\n    })",
                      one, one, one, one);
}

void hlo_all_reduce(struct stablehlo *hlo, int devices, struct hlo *tensors, int count) {
  struct arena *arena = hlo->arena;
  struct text names = text_in(arena), types = text_in(arena);
  if (devices == 1 || count == 0) return;
  for (int i = 0; i < count; i++) {
    text_printf(&names, "%s%s", i > 0 ? ", " : "", hlo_name_of(hlo, tensors[i]));
    text_printf(&types, "%s%s", i > 0 ? ", " : "", hlo_type_of(hlo, tensors[i]));
  }
  const char *form = count == 1 ? "\"stablehlo.all_reduce\"(%s) <{replica_groups = %s}> %s : (%s) -> %s"
                                : "\"stablehlo.all_reduce\"(%s) <{replica_groups = %s}> %s : (%s) -> (%s)";
  const char *text = arena_printf(arena, form, text_string(&names), groups(arena, devices),
                                  adding(arena, tensors[0].type), text_string(&types), text_string(&types));
  const int item = hlo_add_item(hlo, text, NULL, count);
  for (int i = 0; i < count; i++) tensors[i].item = item, tensors[i].result = i;
}

struct hlo hlo_of_first_device(struct stablehlo *hlo, int devices, struct hlo x) {
  if (devices == 1) return x;
  const struct shape scalar = {0};
  const struct hlo number =
      hlo_op(hlo, scalar, HLO_UI32, "stablehlo.replica_id : %s", hlo_type_text(hlo->arena, scalar, HLO_UI32));
  const struct hlo first = hlo_compare(hlo, "EQ", hlo_convert(hlo, number, HLO_I32), hlo_number(0));
  struct hlo own = hlo_select(hlo, hlo_broadcast(hlo, first, x.shape), x, hlo_number(0));
  hlo_all_reduce(hlo, devices, &own, 1);
  return own;
}
