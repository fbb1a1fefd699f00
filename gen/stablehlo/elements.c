/* Operations on elements. */
#include <string.h>

#include "gen/stablehlo/state.h"

struct hlo hlo_number(double value) {
  return (struct hlo){.is_number = true, .number = value};
}

struct hlo hlo_tensor(struct stablehlo *hlo, struct hlo x, struct shape shape, enum hlo_type type) {
  if (!x.is_number) return x;
  return hlo_op(hlo, shape, type, "stablehlo.constant dense<%s> : %s", hlo_literal(hlo->arena, x.number, type),
                hlo_type_text(hlo->arena, shape, type));
}

/* Lets operands have one shape and, where one of them is a number, one type. */
static void join(struct stablehlo *hlo, struct hlo *a, struct hlo *b) {
  struct shape shape = a->is_number ? b->shape : a->shape;
  if (!a->is_number && !b->is_number && !shape_broadcast(a->shape, b->shape, &shape))
    hlo_fail(hlo, "its operands do not broadcast");
  const enum hlo_type type = a->is_number ? b->type : a->type;
  if (hlo->failed) return;
  *a = hlo_broadcast(hlo, hlo_tensor(hlo, *a, shape, type), shape);
  *b = hlo_broadcast(hlo, hlo_tensor(hlo, *b, shape, type), shape);
}

struct hlo hlo_unary(struct stablehlo *hlo, const char *operation, struct hlo x) {
  const char *name = hlo_name_of(hlo, x), *type = hlo_type_of(hlo, x);
  if (strcmp(operation, "erf") == 0) return hlo_op(hlo, x.shape, x.type, "chlo.erf %s : %s -> %s", name, type, type);
  return hlo_op(hlo, x.shape, x.type, "stablehlo.%s %s : %s", operation, name, type);
}

struct hlo hlo_binary(struct stablehlo *hlo, const char *operation, struct hlo a, struct hlo b) {
  join(hlo, &a, &b);
  if (hlo->failed) return a;
  return hlo_op(hlo, a.shape, a.type, "stablehlo.%s %s, %s : %s", operation, hlo_name_of(hlo, a), hlo_name_of(hlo, b),
                hlo_type_of(hlo, a));
}

struct hlo hlo_add(struct stablehlo *hlo, struct hlo a, struct hlo b) {
  return hlo_binary(hlo, "add", a, b);
}

struct hlo hlo_sub(struct stablehlo *hlo, struct hlo a, struct hlo b) {
  return hlo_binary(hlo, "subtract", a, b);
}

struct hlo hlo_mul(struct stablehlo *hlo, struct hlo a, struct hlo b) {
  return hlo_binary(hlo, "multiply", a, b);
}

struct hlo hlo_div(struct stablehlo *hlo, struct hlo a, struct hlo b) {
  return hlo_binary(hlo, "divide", a, b);
}

struct hlo hlo_compare(struct stablehlo *hlo, const char *direction, struct hlo a, struct hlo b) {
  join(hlo, &a, &b);
  if (hlo->failed) return a;
  const char *type = hlo_type_of(hlo, a);
  const char *form = hlo_is_whole(a.type) ? "SIGNED" : a.type == HLO_UI8 || a.type == HLO_BOOL ? "UNSIGNED" : "FLOAT";
  return hlo_op(hlo, a.shape, HLO_BOOL, "stablehlo.compare %s, %s, %s, %s : (%s, %s) -> %s", direction,
                hlo_name_of(hlo, a), hlo_name_of(hlo, b), form, type, type,
                hlo_type_text(hlo->arena, a.shape, HLO_BOOL));
}

struct hlo hlo_select(struct stablehlo *hlo, struct hlo condition, struct hlo yes, struct hlo no) {
  if (yes.is_number && no.is_number) yes = hlo_tensor(hlo, yes, condition.shape, HLO_F32);
  join(hlo, &yes, &no);
  if (hlo->failed) return yes;
  struct shape shape;
  if (!shape_broadcast(condition.shape, yes.shape, &shape)) return hlo_fail(hlo, "its operands do not broadcast");
  condition = hlo_broadcast(hlo, condition, shape);
  yes = hlo_broadcast(hlo, yes, shape);
  no = hlo_broadcast(hlo, no, shape);
  return hlo_op(hlo, shape, yes.type, "stablehlo.select %s, %s, %s : %s, %s", hlo_name_of(hlo, condition),
                hlo_name_of(hlo, yes), hlo_name_of(hlo, no), hlo_type_of(hlo, condition), hlo_type_of(hlo, yes));
}

struct hlo hlo_convert(struct stablehlo *hlo, struct hlo x, enum hlo_type type) {
  if (x.is_number || x.type == type) return x;
  return hlo_op(hlo, x.shape, type, "stablehlo.convert %s : (%s) -> %s", hlo_name_of(hlo, x), hlo_type_of(hlo, x),
                hlo_type_text(hlo->arena, x.shape, type));
}
