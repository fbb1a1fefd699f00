/* Machine code of a GPU: the contents of nvdisasm's text of a program's kernels. */
#ifndef ACCEL_DEVICE_CODE_SASS_H
#define ACCEL_DEVICE_CODE_SASS_H

#include "gen/audit/program/claim.h"

/* Reads the text of `nvdisasm -g -c` and checks the claims about machine code. `text` instead of the file's, or
 * NULL. NULL, with errors in diags, when it cannot be read or is none. */
struct audit *sass_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags);

#endif
