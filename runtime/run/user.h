/* What user code gets, and what it calls for. */
#ifndef RUNTIME_RUN_USER_H
#define RUNTIME_RUN_USER_H

#include "include/accel/hooks.h"

struct user {
  struct accel_progress progress; /* as reported last */
  int64_t at_hand;                /* the step count after the step that it sees */
  int64_t save_at;                /* the step count at which it wants a save; -1: none so far */
  bool trigger;                   /* it set its flag */
  bool has_whole_weights;         /* rank 0 has divided weights whole, as they are now */
};

#endif
