/* Collectives in flight, for the files that model the functions which start them and wait for them. */
#ifndef ACCEL_AUDIT_INTERP_TRANSFER_H
#define ACCEL_AUDIT_INTERP_TRANSFER_H

#include "gen/audit/interp/external.h"

/* What a call of a function does; the function's value. */
typedef struct value transfer_model(const struct call *call);

/* The model of a function that starts a collective, of one that waits for some; NULL: it does not. */
transfer_model *transfer_start_model(const char *function);
transfer_model *transfer_wait_model(const char *function);

/* Adds what a collective that is being started uses: argument `which`, and `bytes` from there. What it both reads and
 * writes counts as written, as a part of it may belong to no tensor, and be summed all the same. */
void transfer_use(const struct call *call, struct transfer *transfer, int which, int64_t bytes, enum transfer_use use);

/* The collective is in flight from now on, after what it uses is compared with what is in flight already. Returns the
 * call's value. */
struct value transfer_start(const struct call *call, const struct transfer *transfer);

/* Reports a start or a wait whose order is not known: in a loop whose iterations are not followed one by one. */
void transfer_require_order(const struct call *call);

#endif
