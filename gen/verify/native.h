/* Native: the C that calls a model with the config of a job, to be compiled next to the model. */
#ifndef ACCEL_VERIFY_NATIVE_H
#define ACCEL_VERIFY_NATIVE_H

#include "gen/base/text.h"
#include "gen/c/tree.h"
#include "gen/spec/job.h"
#include "gen/verify/tape/tape.h"
#include "gen/verify/tape/trace.h"

/* The tensor that the data have under a name. */
typedef tensor native_input(const char *name);

/* What the compiled text exports: `native_bind`, which is called first, and `native_model`, which gives the loss. It
 * notes calls of functions whose result holds tensors, if it is compiled with -finstrument-functions, and loops of the
 * word `for`. */
typedef void (*native_function)(void);
typedef void native_bind(native_function find(const char *name), native_note *note);
typedef tensor native_model(scope s, native_input *input);

/* Writes the text for the model in the file `path`, whose tree is there for its names and types alone. False with why
 * in *reason where it cannot be written. */
bool native_write(struct text *text, const struct job *job, const struct tree *model, const char *path,
                  const char **reason);

/* Whether all loops of the model are of the word `for`. */
bool native_notes_loops(const struct tree *model);

/* Whether C leaves the order open in which the model draws random numbers or calls functions that have keys of them:
 * two are in arguments of one call. gen/model takes them from left to right, as clang does. */
bool native_order_is_open(const struct tree *model);

#endif
