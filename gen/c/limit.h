/* Limits: what reading one source may take, whatever it contains. Sources come from strangers, and libclang has no
 * bounds of its own, so that it runs in a process that ends at these. */
#ifndef ACCEL_C_LIMIT_H
#define ACCEL_C_LIMIT_H

enum {
  PARSE_SECONDS = 10,       /* of a processor */
  PARSE_IDLE_SECONDS = 4,   /* in which nothing is done, as when a file that is included is a pipe without a writer */
  PARSE_MEMORY = 768 << 20, /* bytes of libclang and of what it reads */
  PARSE_TREE = 256 << 20,   /* bytes of the tree that is made of it */
  PARSE_STACK = 96 << 20,   /* bytes; Linux leaves 128 MiB of addresses free below a process's first stack */
  PARSE_DEEPEST = 800       /* expressions and statements inside each other */
};

#endif
