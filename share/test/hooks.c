/* The hooks of `accel-gen test`: each rank compares what the operations among ranks give with what it computes by
 * itself. The main process writes collectives.txt: a line for each operation, with how many ranks found it wrong, and
 * one for each rank with its machine. */
#define _POSIX_C_SOURCE 200809L
#include <accel/accel.h>
#include <accel/hooks.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 5 };

struct trial {
  struct accel_store *store;
  int rank, count;
  struct accel_value *report; /* a list: how many ranks found each operation wrong */
  FILE *file;
};

static struct accel_value *floats(struct trial *t, int64_t length, const float *values) {
  return accel_make_tensor(t->store, ACCEL_FLOAT32, 1, (int64_t[]){length}, (void *)values);
}

/* What rank r has at a position: small integers, whose sums are exact. */
static float at(int rank, int i) {
  return (float)(100 * rank + i);
}

/* Counts the ranks on which the operation gave another value than was expected; all call it. */
static void compare(struct trial *t, const char *operation, struct accel_value *got, struct accel_value *expected) {
  int64_t is_wrong = got == NULL || !accel_equal(got, expected);
  struct accel_value *own = accel_append(t->store, accel_make_list(t->store), accel_make_integer(t->store, is_wrong));
  struct accel_value *all = accel_gather_object(t->store, own);
  int64_t wrong = all == NULL ? t->count : 0;
  for (int i = 0; all != NULL && i < accel_count(all); i++) wrong += accel_at(all, i)->integer;
  if (all != NULL && accel_count(all) != t->count) wrong = t->count;
  if (t->file != NULL) fprintf(t->file, "%s %lld\n", operation, (long long)wrong);
}

static void try_gather(struct trial *t, struct accel_value *own) {
  float all[t->count * LENGTH];
  for (int i = 0; i < t->count * LENGTH; i++) all[i] = at(i / LENGTH, i % LENGTH);
  compare(t, "gather", accel_gather(t->store, own), floats(t, (int64_t)t->count * LENGTH, all));
}

static void try_reduce(struct trial *t, struct accel_value *own) {
  float sum[LENGTH], mean[LENGTH];
  for (int i = 0; i < LENGTH; i++) {
    sum[i] = 0;
    for (int rank = 0; rank < t->count; rank++) sum[i] += at(rank, i);
    mean[i] = (float)((double)sum[i] / t->count);
  }
  compare(t, "reduce", accel_reduce(t->store, own, ACCEL_SUM, 1), floats(t, LENGTH, sum));
  compare(t, "mean", accel_reduce(t->store, own, ACCEL_MEAN, 1), floats(t, LENGTH, mean));
}

static void try_broadcast(struct trial *t, struct accel_value *own) {
  float last[LENGTH];
  for (int i = 0; i < LENGTH; i++) last[i] = at(t->count - 1, i);
  compare(t, "broadcast", accel_broadcast(t->store, own, t->count - 1), floats(t, LENGTH, last));
}

/* Rank r has r + 1 elements; all are as long as the last rank's, filled up with -1. */
static void try_pad(struct trial *t) {
  float own[t->count], padded[t->count];
  for (int i = 0; i < t->count; i++) {
    own[i] = at(t->rank, i);
    padded[i] = i <= t->rank ? own[i] : -1;
  }
  struct accel_value *value = accel_pad_across_processes(t->store, floats(t, t->rank + 1, own), 0, -1, false);
  compare(t, "pad_across_processes", value, floats(t, t->count, padded));
}

static void try_objects(struct trial *t) {
  struct accel_value *own = accel_make_list(t->store), *expected = accel_make_list(t->store);
  accel_append(t->store, own, accel_make_integer(t->store, t->rank));
  for (int i = 0; i < t->count; i++) accel_append(t->store, expected, accel_make_integer(t->store, i));
  compare(t, "gather_object", accel_gather_object(t->store, own), expected);
}

static void report_machines(struct trial *t) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  struct accel_value *own = accel_append(t->store, accel_make_list(t->store), accel_make_string(t->store, name));
  struct accel_value *all = accel_gather_object(t->store, own);
  for (int i = 0; all != NULL && t->file != NULL && i < accel_count(all); i++)
    fprintf(t->file, "on %s\n", accel_at(all, i)->string.text);
}

void on_start(struct accel_run *run, const struct accel_progress *progress) {
  struct trial t = {.store = accel_store_new(), .rank = accel_process()->index, .count = accel_process()->count};
  float values[LENGTH];
  char path[4096];
  (void)progress;
  snprintf(path, sizeof path, "%s/collectives.txt", accel_project_dir(run));
  if (accel_on_main_process()) t.file = fopen(path, "w");
  for (int i = 0; i < LENGTH; i++) values[i] = at(t.rank, i);
  struct accel_value *own = floats(&t, LENGTH, values);
  try_gather(&t, own);
  try_reduce(&t, own);
  try_broadcast(&t, own);
  try_pad(&t);
  try_objects(&t);
  report_machines(&t);
  if (t.file != NULL) fclose(t.file);
  accel_store_free(t.store);
}
