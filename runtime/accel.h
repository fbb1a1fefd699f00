/* The runtime that every emitted program links: what a user's own code may include. */
#ifndef ACCEL_H
#define ACCEL_H

#define ACCEL_VERSION "0.1.0"

#endif
