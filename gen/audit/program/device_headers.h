/* The headers that device code is read with. */
#ifndef ACCEL_AUDIT_PROGRAM_DEVICE_HEADERS_H
#define ACCEL_AUDIT_PROGRAM_DEVICE_HEADERS_H

#include "gen/c/parse.h"

enum { DEVICE_HEADERS = 6 };

extern const struct header device_headers[DEVICE_HEADERS];

#endif
