/* Device code: the contents of the PTX of a program's kernels. */
#ifndef ACCEL_DEVICE_CODE_PTX_H
#define ACCEL_DEVICE_CODE_PTX_H

#include "gen/audit/program/claim.h"

/* Reads a PTX file and checks the claims about device code. `text` instead of the file's, or NULL. NULL, with
 * errors in diags, when it cannot be read or is no PTX. */
struct audit *ptx_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags);

#endif
