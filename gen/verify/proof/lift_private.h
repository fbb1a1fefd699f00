/* For the files of lifting alone. */
#ifndef ACCEL_VERIFY_PROOF_LIFT_PRIVATE_H
#define ACCEL_VERIFY_PROOF_LIFT_PRIVATE_H

#include "gen/verify/proof/lift.h"

enum { MOST_DIGITS = 8, MOST_MEMORIES = 400, MOST_BOUND = 400 };

/* A digit of a place: `bytes` times a variable, or times a whole number of the data. */
struct digit {
  double bytes;
  const struct atom *variable; /* NULL: of the data */
  const struct term *data;
};

/* A part of a memory that was written: at start + the digits, the term `value`. With `over`, value is added to what was
 * there, for each value of that variable. */
struct piece {
  const struct term *start;
  int n;
  struct digit digits[MOST_DIGITS]; /* of falling bytes */
  const struct term *value;
  const struct atom *over;
  const struct piece *below;
};

/* A memory: what was written, the newest first, on what was there. */
struct memory {
  const struct piece *top;
  bool given;  /* it had numbers at first, which are read as such */
  int carried; /* it has what an earlier iteration of this loop left; 0: not */
  int depth;   /* of regions where it was declared */
};

/* What a variable stands for: a memory of its own, or an address. */
struct binding {
  const struct variable *variable;
  int memory;
  const struct term *byte; /* of an address; NULL: it is a number or an array of its own */
};

struct lift_state {
  struct memory memories[MOST_MEMORIES];
  struct binding bindings[MOST_BOUND];
  int n_bindings;
};

struct lift {
  struct arena *arena;
  struct terms *terms;
  const struct tree *tree;
  struct lift_directives *directives;
  struct lift_state now;
  const struct variable *statics[MOST_MEMORIES]; /* the static variable that a memory is; NULL: it is another one */
  int n_memories, n_loops, depth, calls;
  int region; /* the depth of a parallel region whose statements all threads run; 0: none, or they share them out */
  int the_arena;
  const struct term *result;
  bool returned;
  const struct early *early; /* what the function at hand may have returned before its end, the newest first */
  int before, nested;        /* memories that were there before it; branches and loops of it that are at hand */
};

/* What a function returns where a condition is 1. */
struct early {
  const struct term *condition, *result;
  const struct early *below;
};

/* A number, or an address: a byte of a memory. */
struct lifted {
  bool is_address;
  int memory;
  const struct term *term;
};

/* Says why it is not lifted. */
void lift_fail(struct lift *lift, const char *why);
bool lift_has_failed(const struct lift *lift);

/* Expressions: a number; 1 where it is not 0; a number or an address; the place of an lvalue. */
const struct term *lift_number(struct lift *lift, const struct syntax *node);
const struct term *lift_truth(struct lift *lift, const struct syntax *node);
struct lifted lift_value(struct lift *lift, const struct syntax *node);
struct lifted lift_place(struct lift *lift, const struct syntax *node);
/* Calls: by the meaning of a function of the library, or by what is in the program's text. */
struct lifted lift_call(struct lift *lift, const struct syntax *node);
bool lift_meaning(struct lift *lift, const struct syntax *node, struct lifted *result);
struct lifted lift_own_call(struct lift *lift, const struct function *function, const struct syntax *node);

/* Statements. */
void lift_statement(struct lift *lift, const struct syntax *node);
void lift_loop(struct lift *lift, const struct syntax *node, const struct directive *directive);
const struct directive *lift_directive(const struct lift *lift, const struct syntax *node);
void lift_add_directive(struct lift_directives *directives, const struct syntax *node,
                        const struct directive *directive);

/* Memory. A new one of `size` bytes for a variable; the binding of a variable; reading and writing. */
int lift_memory(struct lift *lift, bool given);
void lift_bind(struct lift *lift, const struct variable *variable, int memory, const struct term *byte);
const struct binding *lift_binding(const struct lift *lift, const struct variable *variable);
const struct term *lift_read(struct lift *lift, int memory, const struct term *byte);
void lift_write(struct lift *lift, int memory, const struct term *byte, const struct term *value);
/* Writes at start + bytes variable, for all values of the variable. */
void lift_write_all(struct lift *lift, int memory, const struct term *start, double bytes, const struct atom *variable,
                    const struct term *value);
void lift_push(struct lift *lift, int memory, struct piece piece);
const struct term *lift_read_from(struct lift *lift, const struct memory *memory, int number, const struct term *byte);

/* Whether a place is in a piece: the condition for that, and the values of its digits. */
enum inside { INSIDE_NEVER, INSIDE_MAYBE, INSIDE_ALWAYS };
enum inside lift_inside(struct lift *lift, const struct piece *piece, const struct term *byte,
                        const struct term *values[MOST_DIGITS], const struct term **condition);

/* Adds a digit for each product of a place that `variable` is in. False: it is in no such way. */
bool lift_add_digits(struct lift *lift, struct piece *piece, const struct atom *variable);

#endif
