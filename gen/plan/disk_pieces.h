/* The pieces in which weights are updated where layers are on a disk: each layer, and neighbours that stay in memory.
 */
#ifndef ACCEL_PLAN_DISK_PIECES_H
#define ACCEL_PLAN_DISK_PIECES_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Elements of a bucket: a multiple of UNIT, so that each state of a bucket is whole pages, and MOST at most. */
enum { DISK_UNIT = 1 << 10, DISK_MOST = 1 << 19 };

/* Fills program->disk's pieces and buckets, the last piece being the one that the backward completes first, and makes
 * each weight's `gradient` its position among the states in the file, in bytes. False, with an error at the job's line,
 * where the backward needs gradients of one layer when it is at the next one. After the layout. */
bool plan_disk_pieces(struct program *program, struct diagnostics *diags);

#endif
