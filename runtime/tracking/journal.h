/* A file that a run appends to, of whole entries. What a full disk takes of them is taken back, and they wait for the
 * next attempt; what is after the step that a run resumes from is cut off. */
#ifndef RUNTIME_TRACKING_JOURNAL_H
#define RUNTIME_TRACKING_JOURNAL_H

#include "runtime/base/problem.h"
#include "runtime/tracking/bytes.h"

struct journal {
  char path[4096];
  int file;             /* -1: it is opened for each write, as there are many of its kind */
  int64_t whole;        /* its bytes: whole entries */
  struct bytes waiting; /* entries that it does not have yet */
};

/* Finds the bytes of the whole entries before the first one of a step above `keep`, or of the run's end. False: the
 * entry behind them is damaged, and others follow, which would be lost. */
typedef bool journal_cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole);

/* Opens the file, which is a regular one; a run that resumes follows a link. Below 0, `keep` makes a new one: another
 * file of that name, which may be linked elsewhere, is left as it is and loses the name. A damaged file is left as it
 * is. */
bool rt_journal_open(struct journal *journal, const char *path, int64_t keep, journal_cut *cut,
                     struct problem *problem);

/* From here on the file is open while it is written to, and not in between. */
bool rt_journal_rest(struct journal *journal, struct problem *problem);

/* Lets an entry wait, and frees it. */
void rt_journal_add(struct journal *journal, struct bytes *entry);

/* Writes what waits; without memory for some of it nothing is written. */
bool rt_journal_flush(struct journal *journal, struct problem *problem);

/* Writes what waits, and frees the journal. */
bool rt_journal_close(struct journal *journal, struct problem *problem);

/* The whole lines before the first one whose first number, after `before`, is above `keep`. */
int64_t rt_cut_lines(const uint8_t *bytes, size_t size, const char *before, int64_t keep);

/* Whether an entry that is broken up to `end` is the last one, as a process leaves it that is killed while it writes.
 * Zeros may follow, which some file systems leave when the power fails. */
bool rt_is_last(const uint8_t *bytes, size_t size, size_t end);

#endif
