/* Arguments of calls as templates see them: members of the arena, of what functions save, of weights and gradients. */
#ifndef ACCEL_EMIT_ARGUMENTS_H
#define ACCEL_EMIT_ARGUMENTS_H

#include "gen/emit/values.h"
#include "gen/program/storage.h"

/* The pointer to a function's parameters (or gradients) below one of its scopes. */
const char *holder_name(struct arena *arena, const char *base, int scope);

/* An index first + step * i, modulo something when that is not 0. */
struct jinja_value index_value(struct arena *arena, int64_t first, int64_t step, int64_t modulo);

/* An argument: holder->member[index].member + offset, or the address of such a member; without members so far. */
struct jinja_value argument_value(struct arena *arena, const char *holder, bool address, int64_t offset);

/* The member added to an argument, and its index. */
struct jinja_value add_part(struct arena *arena, struct jinja_value argument, const char *member);

/* The same before all that it has: of the record in which these are. */
struct jinja_value put_part_before(struct arena *arena, struct jinja_value argument, const char *member);
void set_index(struct arena *arena, struct jinja_value part, struct jinja_value index);

/* A member of what a function saves, of its scratch, or of what is in memory of gradients. Sets *part to it. */
struct jinja_value memory_argument(struct arena *arena, const struct storage *storage, bool address,
                                   struct jinja_value *part);

/* What is reached from a scope pointer: a parameter's array, or the address of a structure. `base`: "weights",
 * "gradients", …; `next`: the path in the next iteration of a repeated call, NULL without one. */
struct jinja_value weights_argument(const struct program *program, const struct region *region, const char *base,
                                    int scope, const char *path, const char *next, bool address);

/* A row of the optimizer's table, from that of a scope's first parameter on: holder + first + step * i. */
struct jinja_value row_value(const struct program *program, const struct region *region, int scope, const char *path,
                             const char *next);

/* A parameter of a function, or of its forward. */
const struct parameter *parameter_of(const struct function *function, int index);

/* An operand of a kernel, or of a call that is not repeated. */
struct jinja_value operand_argument(const struct program *program, const struct function *function,
                                    const struct view *view);

/* The copy of a row that an iteration uses: i + ahead. A row of two is used in turn. */
struct jinja_value iteration_argument(struct arena *arena, const struct view *view, int ahead);

#endif
