/* The version of accel-gen, of its runtime and of all that is installed with them; it is written here alone.
 * docs/versions.md says what its numbers mean. */
#ifndef ACCEL_VERSION_H
#define ACCEL_VERSION_H

#define ACCEL_VERSION "0.2.0"

#endif
