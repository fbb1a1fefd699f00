/* Meshes: the search of a job with `parallelism: auto`, over the compilation that has its text and its model. */
#ifndef ACCEL_COMMANDS_GENERATE_MESHES_H
#define ACCEL_COMMANDS_GENERATE_MESHES_H

#include "gen/commands/generate/compilation.h"
#include "gen/plan/solve.h"
#include "gen/search/search.h"

enum { MOST_KEYS = 6 };

/* Searches, and sets compilation->searched. Fills keys[MOST_KEYS] with those of the chosen mesh; of a program that does
 * not train, with those of one rank. Their number, 0 with errors where nothing can be generated. */
int find_mesh(struct compilation *compilation, const struct planner *planner, struct job_override *keys);

#endif
