/* Integers and pointers that are linear in an element of an array of starts: the rows of a group begin at one element
 * and end at the next, so that what a call reaches from the first of them is bounded by the end of the last group. */
#include "gen/audit/interp/external.h"
#include "gen/audit/interp/region.h"

__extension__ typedef __int128 wide;

static const struct linear *make(struct interp *interp, struct linear linear) {
  struct linear *made = arena_alloc(interp->memory, sizeof *made);
  *made = linear;
  return made;
}

const struct linear *interp_linear_element(struct interp *interp, const struct grouping *starts, int64_t element) {
  return make(interp, (struct linear){.starts = starts, .element = element, .factor = 1, .end = -1});
}

/* Whether a value is its interval without wrapping around in its type. */
static bool does_not_wrap(enum operator_kind operation, struct value a, struct value b, struct value value) {
  wide low = operation == OPERATOR_ADD ? (wide)a.low + b.low : (wide)a.low - b.high;
  wide high = operation == OPERATOR_ADD ? (wide)a.high + b.high : (wide)a.high - b.low;
  if (operation == OPERATOR_MULTIPLY) {
    low = (wide)a.low * b.low;
    high = (wide)a.high * b.low;
  }
  return low == value.low && high == value.high;
}

/* a - b where both are elements of one array of starts, b's before a's: none is above the next. */
static bool is_distance(struct value a, struct value b) {
  const struct linear *x = a.linear, *y = b.linear;
  if (x == NULL || y == NULL || x->starts != y->starts || x->element < y->element) return false;
  return x->factor == 1 && y->factor == 1 && x->low == 0 && x->high == 0 && y->low == 0 && y->high == 0;
}

void interp_linear_binary(struct interp *interp, enum operator_kind operation, struct value a, struct value b,
                          struct value *value) {
  if (a.linear == NULL && b.linear == NULL) return;
  if (operation == OPERATOR_SUBTRACT && is_distance(a, b)) {
    uint64_t blame = value->blame | BLAME_ALWAYS;
    *value = value_integer(0, a.high);
    value->origin = a.origin | b.origin;
    value->loops = a.loops | b.loops;
    value->blame = blame;
    value->linear =
        make(interp, (struct linear){b.linear->starts, b.linear->element, -1, a.low, a.high, a.linear->element});
    return;
  }
  if (operation == OPERATOR_MULTIPLY && a.linear == NULL) {
    struct value other = a;
    a = b;
    b = other;
  }
  bool scales = operation == OPERATOR_MULTIPLY && b.low == b.high && b.low >= 0 && a.linear != NULL;
  bool moves = operation == OPERATOR_ADD || operation == OPERATOR_SUBTRACT;
  if ((!scales && !moves) || (a.linear != NULL && b.linear != NULL) || !does_not_wrap(operation, a, b, *value)) return;
  struct linear made = a.linear != NULL ? *a.linear : *b.linear;
  if (!scales) made.end = -1;
  if (scales) {
    made.factor = bounded_multiply(made.factor, b.low);
    made.low = bounded_multiply(made.low, b.low);
    made.high = bounded_multiply(made.high, b.low);
  } else if (a.linear != NULL) {
    made.low = bounded_add(made.low, operation == OPERATOR_ADD ? b.low : -b.high);
    made.high = bounded_add(made.high, operation == OPERATOR_ADD ? b.high : -b.low);
  } else {
    int64_t low = made.low, high = made.high;
    bool adds = operation == OPERATOR_ADD;
    made.factor = adds ? made.factor : -made.factor;
    made.low = bounded_add(a.low, adds ? low : -high);
    made.high = bounded_add(a.high, adds ? high : -low);
  }
  value->linear = make(interp, made);
}

const struct linear *interp_linear_moved(struct interp *interp, struct value at, struct value index, int64_t size,
                                         int sign) {
  if (at.linear != NULL || index.linear == NULL || sign < 0) return NULL;
  struct linear made = *index.linear;
  made.factor = bounded_multiply(made.factor, size);
  made.end = -1;
  made.low = bounded_add(at.low, bounded_multiply(made.low, size));
  made.high = bounded_add(at.high, bounded_multiply(made.high, size));
  return make(interp, made);
}

/* ---- Rows that are written ---- */

/* What is written in part keeps the rest as it was: it counts as read, too. */
static void write_part(struct interp *interp, struct value at, int64_t size, const struct syntax *node) {
  interp_access(interp, at, size, false, node);
  interp_access(interp, at, size, true, node);
}

void interp_end_rows(struct interp *interp, const struct syntax *node) {
  struct row_chain chain = interp->rows;
  interp->rows = (struct row_chain){.object = -1};
  if (chain.object < 0) return;
  struct value at = interp_address(interp, chain.object);
  at.blame = BLAME_ALWAYS;
  write_part(interp, at, chain.to, node);
}

/* Writes bytes that begin at `start`: an array is written as a whole once rows follow each other from its start up to
 * its end. */
static void write_rows(struct interp *interp, struct value at, const struct linear *start, const struct linear *bytes,
                       int64_t size, const struct syntax *node) {
  struct row_chain *chain = &interp->rows;
  bool follows = interp->n_loops == 0 && interp->guards == 0 && at.base == 0 && at.base_width == 0 && start->low == 0 &&
                 start->high == 0 && start->factor > 0 && interp->objects[at.object].kind == OBJECT_PARAMETER;
  bool next = chain->object == at.object && chain->starts == start->starts && chain->element == start->element &&
              chain->factor == start->factor;
  if (!next || !follows) {
    interp_end_rows(interp, node);
    follows = follows && start->element == 0 && start->starts->from_zero;
  }
  if (follows && bytes->end >= 0) {
    int64_t to = bounded_add(at.low, size);
    *chain = (struct row_chain){at.object, start->starts, bytes->end, start->factor, to};
    return;
  }
  if (follows && next && bytes->low == bytes->high) {
    *chain = (struct row_chain){.object = -1};
    at.low = at.high = 0;
    interp_access(interp, at, bytes->high, true, node);
    return;
  }
  interp_end_rows(interp, node);
  write_part(interp, at, size, node);
}

bool external_touch_linear(const struct call *call, int which, const struct linear *bytes, bool is_write) {
  if (which >= call->count || bytes == NULL || call->arguments[which].linear == NULL) return false;
  struct value at = call->arguments[which];
  const struct linear *start = at.linear;
  if (at.kind != VALUE_POINTER || at.object < 0 || !linear_same_element(start, bytes) ||
      start->factor != -bytes->factor)
    return false;
  int64_t end = bounded_add(start->high, bytes->high);
  if (at.low < 0 || end > at.slot_size || end <= at.low) return false;
  at.high = at.low;
  at.linear = NULL;
  at.blame |= BLAME_ALWAYS; /* some of it */
  if (is_write)
    write_rows(call->interp, at, start, bytes, end - at.low, call->node);
  else
    interp_access(call->interp, at, end - at.low, false, call->node);
  return true;
}

void external_touch_rows(const struct call *call, int which, struct matrix matrix, bool is_write) {
  if (matrix.rows.linear != NULL && matrix.rows.low >= 0) {
    struct linear bytes = *matrix.rows.linear;
    int64_t row = bounded_multiply(matrix.step, matrix.size);
    bytes.factor = bounded_multiply(bytes.factor, row);
    bytes.low = bounded_add(bounded_multiply(bytes.low - 1, row), bounded_multiply(matrix.columns, matrix.size));
    bytes.high = bounded_add(bounded_multiply(bytes.high - 1, row), bounded_multiply(matrix.columns, matrix.size));
    if (matrix.columns != matrix.step) bytes.end = -1;
    if (external_touch_linear(call, which, &bytes, is_write)) return;
  }
  if (matrix.rows.kind == VALUE_INTEGER)
    interp_region_rows(call->interp, matrix.rows.high, bounded_multiply(matrix.step, matrix.size),
                       matrix.rows.low == matrix.rows.high);
  external_touch(call, which, external_matrix_bytes(matrix), is_write);
  interp_region_rows(call->interp, 0, 0, false);
}
