/* The replacement of a part of the command that a build leaves out (tools/configure.sh): the linker takes these
 * functions where the part's own are missing. */
#ifndef ACCEL_WITHOUT_WITHOUT_H
#define ACCEL_WITHOUT_WITHOUT_H

/* A format of what is missing, human-readable, and of the part's name. */
#define WITHOUT_MESSAGE "this accel-gen was built without %s: its WITHOUT named %s (docs/install.md)"

#endif
