/* A module while it is made. */
#ifndef ACCEL_STABLEHLO_STATE_H
#define ACCEL_STABLEHLO_STATE_H

#include "gen/base/text.h"
#include "gen/stablehlo/stablehlo.h"

/* An operation of a function, or an argument of it, which has a type instead of a text. In the text, "%{N}" stands for
 * item N. */
struct hlo_item {
  const char *text, *type;
  const char *name; /* NULL: its number */
  struct location where;
  int results;
  bool used;
};

/* The function that is being written. */
struct hlo_function {
  struct {
    struct hlo_item *items;
    int count, capacity;
  } items;
  struct hlo *values; /* by id of a graph's value; item -1: it is not there */
  struct hlo key;     /* of its random numbers, int64; item -1: it draws none */
};

struct stablehlo {
  struct arena *arena;
  struct diagnostics *diags;
  struct hlo_function *function;
  const struct node *node; /* of which a rule is asked */
  bool failed;
};

/* Whether its numbers are whole and have a sign. */
static inline bool hlo_is_whole(enum hlo_type type) {
  return type == HLO_I32 || type == HLO_I64 || type == HLO_I8;
}

/* "tensor<12x64xf32>" */
const char *hlo_type_text(struct arena *arena, struct shape shape, enum hlo_type type);
/* "0, 2, 1" */
const char *hlo_numbers(struct arena *arena, struct shape list);

/* The type of a tensor as such a text, and "%{N}" or "%{N}#1". */
const char *hlo_type_of(const struct stablehlo *hlo, struct hlo x);
const char *hlo_name_of(const struct stablehlo *hlo, struct hlo x);

/* A number as MLIR has it in a constant. */
const char *hlo_literal(struct arena *arena, double value, enum hlo_type type);

/* A string in quotes. */
const char *hlo_quoted(struct arena *arena, const char *string);

/* The operation with this text, one that is there already or a new one, at the node's line; its first result. */
struct hlo hlo_op(struct stablehlo *hlo, struct shape shape, enum hlo_type type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A tensor that is no number: a constant, for a number. */
struct hlo hlo_tensor(struct stablehlo *hlo, struct hlo x, struct shape shape, enum hlo_type type);

/* What a value of the graph is in the function. */
struct hlo hlo_value(const struct stablehlo *hlo, const struct value *value);
void hlo_set_value(struct stablehlo *hlo, const struct value *value, struct hlo tensor);

/* A new item, with `results` results; its number. */
int hlo_add_item(struct stablehlo *hlo, const char *text, const char *name, int results);

#endif
