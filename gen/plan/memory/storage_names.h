/* Names of memory, where the value that it was laid out for has none of the model's. */
#ifndef ACCEL_PLAN_MEMORY_STORAGE_NAMES_H
#define ACCEL_PLAN_MEMORY_STORAGE_NAMES_H

#include "gen/program/program.h"

/* Memory of a value that the model has no variable for is called after a view of it, or what it is a view of, that the
 * model has one for: the result of an attention, not of the reshape that only sees it in another way. */
void name_storages(struct program *program);

#endif
