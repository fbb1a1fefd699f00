/* Space: the meshes of a search. */
#ifndef ACCEL_SEARCH_SPACE_H
#define ACCEL_SEARCH_SPACE_H

#include "gen/search/search.h"

/* The divisions of the job that can be planned, into result->divisions: tp, cp, sp and ep alone, up to 64 ranks, and tp
 * within a machine with cp or sp, up to 32 together. As many ranks as divide those of a machine, or fill two, four, ...
 * machines. False with errors in `diags` where not even one rank has a plan. */
bool find_divisions(struct arena *arena, const struct planner *planner, struct search_result *result,
                    struct diagnostics *diags);

/* Every mesh of the job's ranks over these divisions: pp that divides the layers, in each order; dp_shard with each
 * zero_stage; every micro-batch that divides a rank's samples, up to 1024. Those that the model of cost takes to fit
 * become result->candidates, in the order of their time. */
void find_candidates(struct arena *arena, struct search_result *result);

#endif
