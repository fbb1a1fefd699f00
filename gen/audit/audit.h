/* The audit of a program: claims about what it does, each with a verdict and the locations that support or contradict
 * it. It rests on the program's C (and on its object code, machine/machine.h) alone, not on a job or on the generator.
 */
#ifndef ACCEL_AUDIT_AUDIT_H
#define ACCEL_AUDIT_AUDIT_H

#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

/* Reads the program and checks every claim. NULL once there are errors in diags: it is no C that compiles. */
struct audit *audit_run(struct arena *arena, const char *file, const struct audit_options *options,
                        struct diagnostics *diags);

/* Reads the program and finds its step path, and checks nothing: each function's role says whether it is in it. */
struct audit *audit_calls(struct arena *arena, const char *file, const struct audit_options *options,
                          struct diagnostics *diags);

/* Reads the program and checks two claims alone: that all compilers read the same text (one-reading), and that it hides
 * nothing from a reader of its C (nothing-hidden). */
struct audit *audit_text(struct arena *arena, const char *file, const struct audit_options *options,
                         struct diagnostics *diags);

#endif
