/* Writing: an audit as text for people and as the formats that machines read. */
#ifndef ACCEL_AUDIT_WRITE_H
#define ACCEL_AUDIT_WRITE_H

#include "gen/audit/audit.h"
#include "gen/base/text.h"

/* A line a claim with its evidence, the places that speak against it, and a sum. With `facts`, what the claims list. */
void audit_write_text(const struct audit *audit, bool facts, struct text *out);

#endif
