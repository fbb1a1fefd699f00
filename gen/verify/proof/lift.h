/* Lifting: a function of a program as terms, one for each place that it writes, from the loops of its C.
 *
 * A loop is followed once, with its counter as a variable. What an iteration writes becomes pieces: so many digits of a
 * place, each a variable times bytes, and the term that is there. What it reads of earlier iterations has to be the
 * same place, or a running sum: then it is the sum over the variable. Whatever is not of these forms is not
 * lifted.
 *
 * Two things are assumed, which the audit proves: that threads which share out iterations do not race, and that
 * accesses are inside of their arrays, also where a whole number of the data is an index. */
#ifndef ACCEL_VERIFY_PROOF_LIFT_H
#define ACCEL_VERIFY_PROOF_LIFT_H

#include "gen/c/directives.h"
#include "gen/c/tree.h"
#include "gen/verify/proof/term.h"

struct lift;

/* The directives of a program's text, each at its statement. */
struct lift_directives;
struct lift_directives *lift_directives(struct arena *arena, const struct tree *tree, const char *text);

/* Follows a function. Its arrays are memories 1, 2, ... in the order of its parameters, its numbers the same as
 * memories of one number. The arena that `arena` of the program points to is the memory lift_arena(). What could not be
 * followed: terms_failure(). */
struct lift *lift_function(struct arena *arena, struct terms *terms, const struct tree *tree,
                           struct lift_directives *directives, const struct function *function);
int lift_arena(const struct lift *lift);
const struct term *lift_result(const struct lift *lift); /* what it returns; NULL: nothing */

/* Whether it writes to any of these. */
bool lift_writes(const struct lift *lift);

/* The term at a byte of a memory after it. */
const struct term *lift_content(struct lift *lift, int memory, const struct term *byte);

/* Places of [first, first + size) of a memory that stand for all of them: calls `check` for each term of a byte, until
 * one is refused. False: one was, or some of these bytes are not known to be written. */
bool lift_places(struct lift *lift, int memory, int64_t first, int64_t size,
                 bool (*check)(void *data, const struct term *byte), void *data);

/* Whether `is_known` says so of the first and the last byte of an element of all that is written to a memory of that
 * size. */
bool lift_is_within(struct lift *lift, int memory, int64_t size, bool (*is_known)(void *data, double low, double high),
                    void *data);

#endif
