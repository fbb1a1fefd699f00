/* Native: the C that calls a model with the config of a job, to be compiled next to the model. */
#ifndef ACCEL_VERIFY_NATIVE_H
#define ACCEL_VERIFY_NATIVE_H

#include "gen/base/text.h"
#include "gen/c/tree.h"
#include "gen/spec/job.h"
#include "gen/verify/tape/tape.h"

/* The tensor that the data have under a name. */
typedef tensor native_input(const char *name);

/* What the compiled text exports: `native_bind`, which is called first, and `native_model`, which gives the loss. */
typedef void (*native_function)(void);
typedef void native_bind(native_function find(const char *name));
typedef tensor native_model(scope s, native_input *input);

/* Writes the text for the model in the file `path`, whose tree is there for its names and types alone. False with why
 * in *reason where it cannot be written. */
bool native_write(struct text *text, const struct job *job, const struct tree *model, const char *path,
                  const char **reason);

#endif
