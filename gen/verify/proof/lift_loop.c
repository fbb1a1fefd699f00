/* Loops: followed once, and then what all iterations do. */
#include <math.h>
#include <string.h>

#include "gen/verify/proof/lift_private.h"

/* A loop that counts: from first, n times, by step. */
struct counted {
  int memory;
  const struct term *first;
  double step;
  int64_t n;
};

enum { MOST_UNROLLED = 256 };

/* ---- Its counter ---- */

static bool step_of(const struct syntax *node, const struct variable **variable, double *step) {
  if (node == NULL) return false;
  const struct syntax *target = syntax_bare(node->parts[0]);
  if (target->kind != SYNTAX_VARIABLE) return false;
  *variable = target->variable;
  if (node->kind == SYNTAX_INCREMENT) {
    *step = (double)node->integer;
    return true;
  }
  const struct syntax *by = node->kind == SYNTAX_ASSIGN ? syntax_bare(node->parts[1]) : NULL;
  if (by == NULL || by->kind != SYNTAX_INTEGER || by->integer <= 0) return false;
  *step = node->operation == OPERATOR_ADD ? (double)by->integer : -(double)by->integer;
  return node->operation == OPERATOR_ADD || node->operation == OPERATOR_SUBTRACT;
}

/* The iterations of a loop from `first`, by its condition. False: their number is no constant. */
static bool count(struct lift *lift, const struct syntax *condition, const struct variable *variable,
                  struct counted *loop) {
  if (condition == NULL || condition->kind != SYNTAX_BINARY) return false;
  const struct syntax *left = syntax_bare(condition->parts[0]);
  const bool rises = loop->step > 0;
  const enum operator_kind operation = condition->operation;
  const bool open = operation == (rises ? OPERATOR_LESS : OPERATOR_GREATER);
  const bool closed = operation == (rises ? OPERATOR_LESS_EQUAL : OPERATOR_GREATER_EQUAL);
  double distance;
  if (left->kind != SYNTAX_VARIABLE || left->variable != variable || !(open || closed)) return false;
  if (!rises && !left->variable->type->is_signed) return false; /* it may never end */
  const struct term *end = lift_number(lift, condition->parts[1]);
  if (!term_is_number(term_subtract(lift->terms, end, loop->first), &distance)) return false;
  const double steps = distance / loop->step;
  loop->n = (int64_t)(closed ? floor(steps) + 1 : ceil(steps));
  if (loop->n < 0) loop->n = 0;
  return true;
}

/* ---- What all iterations do ---- */

struct following {
  struct lift *lift;
  const struct directive *directive;
  const struct lift_state *before;
  const struct atom *variable;
  int loop;
  int n_memories; /* that were there before it */
};

static bool is_shared_out(const struct directive *directive) {
  return directive != NULL && (directive->parts & (DIRECTIVE_LOOP | DIRECTIVE_SIMD)) != 0;
}

/* The memory of a name in a reduction. */
static bool is_reduced(const struct following *f, int memory) {
  for (int i = 0; f->directive != NULL && i < f->directive->n_names; i++)
    for (int k = f->lift->now.n_bindings - 1; k >= 0; k--) {
      const struct binding *binding = &f->lift->now.bindings[k];
      if (strcmp(binding->variable->name, f->directive->names[i].name) != 0) continue;
      if (binding->memory == memory && binding->byte == NULL) return true;
      break;
    }
  return false;
}

static const struct atom *carried_in(const struct term *a, int loop) {
  for (int i = 0; i < a->count; i++)
    for (int k = 0; k < a->products[i].count; k++) {
      const struct atom *atom = a->products[i].powers[k].atom;
      if (atom->kind == ATOM_CARRIED && atom->count[0] == loop) return atom;
      const struct atom *inner = atom->arg != NULL ? carried_in(atom->arg, loop) : NULL;
      if (inner != NULL) return inner;
    }
  return NULL;
}

/* Whether no earlier iteration writes a place that an iteration reads, other than itself. `pieces` have the loop's
 * variable as a digit. */
static bool is_own_place(struct following *f, const struct piece *pieces, const struct term *byte) {
  const struct term *values[MOST_DIGITS], *condition;
  for (; pieces != NULL && !lift_has_failed(f->lift); pieces = pieces->below) {
    if (lift_inside(f->lift, pieces, byte, values, &condition) == INSIDE_NEVER) continue;
    bool same = false;
    for (int i = 0; i < pieces->n; i++)
      same = same || (pieces->digits[i].variable == f->variable && term_atom(values[i]) == f->variable);
    if (!same || pieces->over != NULL) return false;
  }
  return !lift_has_failed(f->lift);
}

/* A term with what was there before the loop instead of what earlier iterations left, which they did not write. */
static const struct term *settled(struct following *f, const struct piece *const *made, const struct term *value) {
  struct lift *lift = f->lift;
  for (int rounds = 0; rounds < 1000 && !lift_has_failed(lift); rounds++) {
    const struct atom *atom = carried_in(value, f->loop);
    if (atom == NULL) return value;
    if (term_has_carried(atom->arg, f->loop) || !is_own_place(f, made[atom->which], atom->arg)) {
      lift_fail(lift, "an iteration reads what an earlier one has written");
      break;
    }
    const struct term *before = lift_read_from(lift, &f->before->memories[atom->which], atom->which, atom->arg);
    value = term_with(lift->terms, value, atom, before);
  }
  return value;
}

/* The piece of all iterations that one iteration's piece becomes: its digits. `sums`: its place does not depend on the
 * iteration, or by a number of the data alone. */
static bool spread(struct following *f, struct piece *piece, bool *sums) {
  *sums = true;
  if (!term_has(piece->start, f->variable)) return true;
  if (!lift_add_digits(f->lift, piece, f->variable)) return false;
  for (int i = 0; i < piece->n; i++) *sums = *sums && piece->digits[i].variable != f->variable;
  return true;
}

/* The place of a piece as one iteration has it. */
static const struct term *place_in_iteration(struct lift *lift, const struct piece *piece) {
  const struct term *byte = piece->start;
  for (int i = 0; i < piece->n; i++) {
    const struct digit *digit = &piece->digits[i];
    const struct term *of = digit->data;
    if (digit->variable != NULL) of = term_of_variable(lift->terms, digit->variable);
    byte = term_add(lift->terms, byte, term_scale(lift->terms, of, digit->bytes));
  }
  return byte;
}

/* Values of a place that is the same in all iterations: a running sum, or what the last one leaves. */
static void sum_up(struct following *f, const struct piece *const *made, int memory, struct piece *piece,
                   bool of_data) {
  struct lift *lift = f->lift;
  struct terms *terms = lift->terms;
  const struct term *place = place_in_iteration(lift, piece);
  const struct term *earlier = term_carried(terms, memory, f->loop, place);
  if (is_shared_out(f->directive) && !is_reduced(f, memory)) {
    lift_fail(lift, "threads write the same number");
    return;
  }
  if (term_has(piece->value, term_atom(earlier))) {
    const struct term *more = settled(f, made, term_subtract(terms, piece->value, earlier));
    if (of_data) {
      piece->value = more;
      piece->over = f->variable;
      return;
    }
    const struct term *before = lift_read_from(lift, &f->before->memories[memory], memory, place);
    piece->value = term_add(terms, before, term_sum(terms, more, f->variable));
    return;
  }
  const struct term *last = term_number(terms, (double)f->variable->count[0] - 1);
  if (of_data) lift_fail(lift, "it writes where a number says, and later again");
  if (is_shared_out(f->directive)) lift_fail(lift, "a reduction is no sum");
  piece->value = term_with(terms, settled(f, made, piece->value), f->variable, last);
}

/* Each piece of a memory for all iterations, the newest first; NULL: there is none. */
static const struct piece *spread_pieces(struct following *f, const struct piece *from) {
  struct piece *first = NULL, **end = &first;
  for (; from != NULL && !lift_has_failed(f->lift); from = from->below) {
    bool sums;
    struct piece *copy = arena_alloc(f->lift->arena, sizeof *copy);
    *copy = *from;
    copy->below = NULL;
    if (!spread(f, copy, &sums)) lift_fail(f->lift, "it writes to places that are not followed");
    *end = copy;
    end = (struct piece **)(uintptr_t)&copy->below;
  }
  return first;
}

static void finish_memory(struct following *f, const struct piece *const *made, int memory) {
  struct lift *lift = f->lift;
  const struct piece *in_order[64];
  int n = 0;
  for (const struct piece *at = made[memory]; at != NULL; at = at->below) {
    if (n == 64) lift_fail(lift, "it writes to too many places");
    if (n < 64) in_order[n++] = at;
  }
  lift->now.memories[memory] = f->before->memories[memory];
  if (f->directive != NULL && is_reduced(f, memory) && n != 1) lift_fail(lift, "a reduction is no sum");
  for (int i = n - 1; i >= 0 && !lift_has_failed(lift); i--) {
    struct piece piece = *in_order[i];
    bool varies = false, of_data = false;
    for (int k = 0; k < piece.n; k++) {
      varies = varies || piece.digits[k].variable == f->variable;
      of_data = of_data || (piece.digits[k].variable == NULL && term_has(piece.digits[k].data, f->variable));
    }
    if (piece.over != NULL && !varies) {
      lift_fail(lift, "it adds to places that numbers say, again and again");
    } else if (varies && (piece.over == NULL || !term_has_carried(piece.value, f->loop))) {
      piece.value = settled(f, made, piece.value);
    } else {
      sum_up(f, made, memory, &piece, of_data);
    }
    if (!lift_has_failed(lift)) lift_push(lift, memory, piece);
  }
}

/* Which memories an iteration writes, by following one of them. */
static void find_written(struct lift *lift, const struct syntax *body, const struct counted *loop,
                         const struct atom *variable, const struct lift_state *before, bool written[MOST_MEMORIES]) {
  const int n = lift->n_memories;
  const struct term *at = term_of_variable(lift->terms, variable);
  lift_push(lift, loop->memory,
            (struct piece){.start = term_number(lift->terms, 0),
                           .value = term_add(lift->terms, loop->first, term_scale(lift->terms, at, loop->step))});
  const struct piece *counter = lift->now.memories[loop->memory].top;
  lift_statement(lift, body);
  for (int m = 1; m <= n; m++) written[m] = m != loop->memory && lift->now.memories[m].top != before->memories[m].top;
  if (!lift_has_failed(lift) && lift->now.memories[loop->memory].top != counter)
    lift_fail(lift, "a loop sets its counter");
  if (lift->returned) lift_fail(lift, "it returns from a loop");
}

static void follow(struct lift *lift, const struct syntax *body, const struct directive *directive,
                   const struct counted *loop) {
  struct lift_state *before = arena_alloc(lift->arena, sizeof *before);
  const struct atom *variable = term_atom(term_variable(lift->terms, loop->n));
  struct following f = {lift, directive, before, variable, 0, lift->n_memories};
  const struct piece *made[MOST_MEMORIES] = {NULL};
  bool written[MOST_MEMORIES] = {false};
  *before = lift->now;
  find_written(lift, body, loop, variable, before, written);
  if (lift_has_failed(lift)) return;
  lift->now = *before;
  f.loop = ++lift->n_loops;
  for (int m = 1; m <= f.n_memories; m++)
    if (written[m]) {
      lift->now.memories[m].top = NULL;
      lift->now.memories[m].carried = f.loop;
    }
  bool again[MOST_MEMORIES] = {false};
  find_written(lift, body, loop, variable, before, again);
  for (int m = 1; m <= f.n_memories; m++) /* of those that depend on what was there, a choice is not followed alike */
    if (again[m] && !written[m]) lift_fail(lift, "what an iteration writes depends on earlier ones");
  for (int m = 1; m <= f.n_memories && !lift_has_failed(lift); m++)
    if (written[m]) made[m] = spread_pieces(&f, lift->now.memories[m].top);
  for (int m = 1; m <= f.n_memories && !lift_has_failed(lift); m++)
    if (written[m]) finish_memory(&f, made, m);
}

/* ---- The loop ---- */

/* Iteration by iteration. */
static void unroll(struct lift *lift, const struct syntax *body, const struct counted *loop) {
  for (int64_t i = 0; i < loop->n && !lift_has_failed(lift); i++) {
    const struct term *value = term_add(lift->terms, loop->first, term_number(lift->terms, (double)i * loop->step));
    lift_push(lift, loop->memory, (struct piece){.start = term_number(lift->terms, 0), .value = value});
    lift_statement(lift, body);
    if (lift->returned) lift_fail(lift, "it returns from a loop");
  }
}

/* The directive of the loops inside, of which some are divided as well. */
static const struct directive *inner_directive(struct lift *lift, const struct directive *directive) {
  struct directive *inner = arena_alloc(lift->arena, sizeof *inner);
  if (directive == NULL || directive->collapse <= 1) return NULL;
  *inner = *directive;
  inner->collapse--;
  return inner;
}

static void body_of(struct lift *lift, const struct syntax *body, const struct directive *directive,
                    const struct counted *loop) {
  if (loop->n == 1) {
    unroll(lift, body, loop);
    return;
  }
  struct lift_state *before = arena_alloc(lift->arena, sizeof *before);
  *before = lift->now;
  follow(lift, body, directive, loop);
  if (!lift_has_failed(lift) || is_shared_out(directive) || loop->n > MOST_UNROLLED) return;
  terms_forget_failure(lift->terms);
  lift->now = *before;
  unroll(lift, body, loop);
}

void lift_loop(struct lift *lift, const struct syntax *node, const struct directive *directive) {
  const struct variable *variable;
  struct counted loop = {0};
  const int bindings = lift->now.n_bindings, region = lift->region;
  const struct directive *inner = inner_directive(lift, directive);
  if (node->parts[0] != NULL) lift_statement(lift, node->parts[0]);
  if (lift_has_failed(lift)) return;
  if (!step_of(node->parts[2], &variable, &loop.step) || lift_binding(lift, variable) == NULL) {
    lift_fail(lift, "it has a loop that does not count");
    return;
  }
  const struct term *zero = term_number(lift->terms, 0);
  loop.memory = lift_binding(lift, variable)->memory;
  loop.first = lift_read(lift, loop.memory, zero);
  if (!count(lift, node->parts[1], variable, &loop)) {
    lift_fail(lift, "it has a loop whose iterations are not counted");
    return;
  }
  if (is_shared_out(directive)) lift->region = 0;
  lift->depth++;
  lift->nested++;
  if (inner != NULL && lift_directive(lift, node->parts[3]) == NULL)
    lift_add_directive(lift->directives, node->parts[3], inner);
  if (loop.n > 0) body_of(lift, node->parts[3], directive, &loop);
  lift->depth--;
  lift->nested--;
  lift->region = region;
  const struct term *end = term_add(lift->terms, loop.first, term_number(lift->terms, (double)loop.n * loop.step));
  if (!lift_has_failed(lift)) lift_push(lift, loop.memory, (struct piece){.start = zero, .value = end});
  lift->now.n_bindings = bindings;
}
