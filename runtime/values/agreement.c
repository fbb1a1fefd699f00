#include "runtime/values/agreement.h"

#include "include/accel/operations.h"
#include "runtime/base/problem.h"
#include "runtime/files/checksum.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/values/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rt_operation_name(enum operation operation) {
  static const char *const names[] = {
      "accel_gather",
      "accel_gather_object",
      "accel_reduce",
      "accel_broadcast",
      "accel_broadcast_object_list",
      "accel_pad_across_processes",
      "accel_wait_for_everyone",
      "accel_check_trigger",
      "accel_register_for_checkpointing",
      "accel_load_file",
      "accel_collect_weights",
      "accel_write in order",
      "accel_processes_end",
  };
  return names[operation];
}

/* What a rank says of itself. */
struct word {
  int32_t operation, failed;
  uint64_t sum; /* of the text */
};

/* The text that rank `from` has. */
static const char *text_of(struct accel_store *store, enum operation operation, const char *own, int from) {
  const char *name = rt_operation_name(operation);
  uint64_t size = own != NULL ? strlen(own) : 0;
  rt_user_broadcast(&size, sizeof size, from, name);
  char *text = rt_store_take(store, (size_t)size + 1);
  struct problem problem;
  rt_problem(&problem, "%s: no memory for a message", name);
  if (text == NULL) rt_fail(&problem, 1);
  if (rt_world()->rank == from && own != NULL) memcpy(text, own, size);
  rt_user_broadcast(text, (size_t)size, from, name);
  return text;
}

static bool is_alike(const struct word *a, const struct word *b) {
  return a->operation == b->operation && a->sum == b->sum;
}

/* The rank that is as most ranks are; of several such the first. */
static int usual(const struct word *words, int ranks) {
  int best = 0, most = 0;
  for (int i = 0; i < ranks; i++) {
    int count = 0;
    for (int k = 0; k < ranks; k++) count += is_alike(&words[i], &words[k]);
    if (count > most) best = i, most = count;
  }
  return best;
}

static bool report_failure(struct accel_store *store, enum operation operation, int from) {
  const char *own = accel_store_error(store), *text = text_of(store, operation, own, from);
  rt_store_fail(store, "%s: rank %d had failed before: %s", rt_operation_name(operation), from, text);
  return false;
}

static bool report_difference(struct accel_store *store, const struct word *words, enum operation operation,
                              const char *of, int ranks) {
  int as = usual(words, ranks), other = 0;
  while (is_alike(&words[other], &words[as])) other++;
  if (words[other].operation != words[as].operation) {
    rt_store_fail(store, "rank %d is at %s while rank %d is at %s", other, rt_operation_name(words[other].operation),
                  as, rt_operation_name(words[as].operation));
    return false;
  }
  const char *that = text_of(store, operation, of, other), *this = text_of(store, operation, of, as);
  rt_store_fail(store, "%s: rank %d has %s, but rank %d has %s", rt_operation_name(operation), other, that, as, this);
  return false;
}

/* `first`: the first rank that is at this operation. */
static bool agree(struct accel_store *store, enum operation operation, const char *of, int *first) {
  int ranks = rt_world()->ranks, failed = 0;
  *first = 0;
  if (ranks == 1) return of != NULL;
  struct word own = {(int32_t)operation, of == NULL, of != NULL ? rt_checksum(of, strlen(of)) : 0};
  struct word *words = calloc((size_t)ranks, sizeof *words);
  struct problem problem;
  rt_problem(&problem, "%s: no memory to compare ranks", rt_operation_name(operation));
  if (words == NULL) rt_fail(&problem, 1);
  rt_user_gather(&own, words, sizeof own, rt_operation_name(operation));
  while (failed < ranks && !words[failed].failed) failed++;
  while (words[*first].operation != own.operation) ++*first;
  bool alike = true;
  for (int i = 1; i < ranks; i++) alike = alike && is_alike(&words[i], &words[0]);
  bool good = failed < ranks ? report_failure(store, operation, failed)
                             : alike || report_difference(store, words, operation, of, ranks);
  free(words);
  return good;
}

bool rt_agree(struct accel_store *store, enum operation operation, const char *of) {
  int first;
  return agree(store, operation, of, &first);
}

void rt_meet(enum operation operation, const char *of) {
  struct problem problem;
  int first;
  if (rt_world()->ranks == 1) return;
  struct accel_store *store = accel_store_new();
  rt_problem(&problem, "%s: no memory to compare ranks", rt_operation_name(operation));
  if (store == NULL) rt_fail(&problem, 1);
  bool good = agree(store, operation, of, &first);
  if (!good) rt_problem(&problem, "%s", accel_store_error(store));
  accel_store_free(store);
  if (good) return;
  if (first == rt_world()->rank) rt_fail(&problem, 1);
  rt_world_await_end(1);
}

/* ---- How a value is built ---- */

static struct accel_value *without_lengths(struct accel_store *store, struct accel_value *information, void *context) {
  char text[64];
  (void)context;
  snprintf(text, sizeof text, "%s of %d dimensions", accel_dtype_name(information->tensor.dtype),
           information->tensor.rank);
  return accel_make_string(store, text);
}

static bool is_information(const struct accel_value *value) {
  return value->kind == ACCEL_INFORMATION;
}

static struct accel_value *same(struct accel_store *store, struct accel_value *leaf, void *context) {
  (void)store, (void)context;
  return leaf;
}

const char *rt_build_of(struct accel_store *store, struct accel_value *value, const char *with, bool lengths) {
  struct accel_value *tensors = accel_recursively_apply(store, same, value, NULL, NULL, true);
  struct accel_value *build = accel_get_data_structure(store, tensors);
  if (!lengths) build = accel_recursively_apply(store, without_lengths, build, NULL, is_information, false);
  const char *text = build != NULL ? accel_show(store, build) : NULL;
  size_t size = text != NULL ? strlen(with) + strlen(text) + 1 : 0;
  char *whole = text != NULL ? rt_store_take(store, size) : NULL;
  if (whole != NULL) snprintf(whole, size, "%s%s", with, text);
  return whole;
}
