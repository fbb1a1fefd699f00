/* A linked program: what the loader of x86-64 Linux does with it, and whether the plain command makes it of the text.
 */
#ifndef ACCEL_AUDIT_MACHINE_LINKED_H
#define ACCEL_AUDIT_MACHINE_LINKED_H

#include "gen/audit/program/claim.h"
#include "gen/audit/program/options.h"

/* Whether the file is an ELF program that is linked, and not an object. False also for a file that cannot be read. */
bool linked_is_program(const char *path);

/* Adds the claims about the linked program options->object. False, with an error in diags, when it is damaged. */
bool linked_check(struct audit *audit, const struct audit_options *options, struct diagnostics *diags);

#endif
