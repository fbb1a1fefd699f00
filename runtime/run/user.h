/* What user code gets, and what it calls for. */
#ifndef RUNTIME_RUN_USER_H
#define RUNTIME_RUN_USER_H

#include "include/accel/hooks.h"

struct user {
  struct accel_progress progress; /* as reported last */
  bool trigger;                   /* it set its flag */
  bool has_whole_weights;         /* rank 0 has divided weights whole, as they are now */
};

#endif
