/* What layers with parameters have in common. */
#ifndef ACCEL_VERIFY_LAYERS_H
#define ACCEL_VERIFY_LAYERS_H

#include "gen/verify/tape/tape.h"

/* A parameter [count] of ones or zeros, whatever the scope says. */
tensor parameter_fixed(scope s, const char *name, int64_t count, bool one);

/* A buffer of that start: [count], or of rank 0 one number. */
tensor buffer_fixed(scope s, const char *name, int rank, int64_t count, bool one);

/* A parameter that starts as its scope says, or else as given. */
tensor parameter_of_layer(scope s, const char *name, int rank, const int64_t *dim, int start, double a, double b);

/* A bias: of zeros where the scope gives a start, else uniform within the bound. */
tensor bias_of_layer(scope s, int64_t count, double bound);

#endif
