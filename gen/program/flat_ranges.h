/* The ranges in which an optimizer treats weights, found by a weight. */
#ifndef ACCEL_PROGRAM_FLAT_RANGES_H
#define ACCEL_PROGRAM_FLAT_RANGES_H

#include "gen/program/program.h"

/* Adds the range of one weight to optimizer.parts or optimizer.tensors; of a weight that the list has from an earlier
 * stage of a pipeline, both become `shared`, and this one `again`. */
void flat_range_add(struct program *program, struct flat_range_list *list, struct flat_range range);

/* The first range of a weight in such a list, in constant time; NULL: it has none. */
const struct flat_range *flat_range_of(const struct program *program, const struct flat_range_list *list,
                                       const struct weight *weight);

#endif
