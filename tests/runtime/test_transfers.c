/* Reads and writes while a process computes, by a ring and by threads: what shares memory or bytes of the file is in
 * order, what fails ends with a message, and pages go past the system's cache. */
#include "cmocka_all.h"

#include "runtime/files/scratch.h"
#include "runtime/files/transfers.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, BLOCK = 16 * PAGE, BLOCKS = 24, SIZE = BLOCKS * BLOCK };

static char folder[] = "/tmp/accel-transfers-XXXXXX";
static char *memory; /* aligned to pages */
static struct problem problem;

static struct transfer_file file; /* of the test */

static struct transfers *begin(const struct scratch *scratch, enum transfer_way way) {
  file = (struct transfer_file){scratch->file, scratch->direct, folder, "free space"};
  return rt_transfers_open(way, &problem);
}

/* A ring is not there on each machine; threads are. */
static struct transfers *require(const struct scratch *scratch, enum transfer_way way) {
  struct transfers *transfers = begin(scratch, way);
  if (transfers == NULL && way == TRANSFERS_BY_URING) {
    assert_non_null(strstr(problem.what, "no ring for transfers"));
    skip();
  }
  assert_non_null(transfers);
  return transfers;
}

/* Rounds over two slots, each of which goes back to the file before the next block comes to it: each block is counted
 * up as often as there are rounds. shift: bytes by which memory and file miss the pages. */
static void count_up(enum transfer_way way, size_t shift) {
  enum { ROUNDS = 5 };
  struct scratch scratch;
  assert_true(rt_scratch_open(&scratch, folder, SIZE + PAGE, &problem));
  struct transfers *transfers = require(&scratch, way);
  char *slots[] = {memory + shift, memory + BLOCK + PAGE + shift};
  for (int round = 0; round < ROUNDS; round++) {
    for (size_t b = 0; b < 2; b++) rt_transfers_read(transfers, &file, b * BLOCK + shift, slots[b], BLOCK);
    for (size_t b = 0; b < BLOCKS; b++) {
      char *slot = slots[b % 2];
      assert_true(rt_transfers_wait(transfers, slot, BLOCK, &problem));
      for (size_t i = 0; i < BLOCK; i++) slot[i] = (char)(slot[i] + (char)(b + i % 7 + 1));
      rt_transfers_write(transfers, &file, b * BLOCK + shift, slot, BLOCK);
      if (b + 2 < BLOCKS) rt_transfers_read(transfers, &file, (b + 2) * BLOCK + shift, slot, BLOCK);
    }
  }
  assert_true(rt_transfers_wait(transfers, NULL, 0, &problem));
  for (size_t b = 0; b < BLOCKS; b++)
    for (size_t i = 0; i < BLOCK; i++)
      assert_int_equal(scratch.bytes[b * BLOCK + shift + i], (char)(ROUNDS * (b + i % 7 + 1)));
  rt_transfers_close(transfers);
  rt_scratch_close(&scratch);
}

static void ring_keeps_order(void **state) {
  (void)state;
  count_up(TRANSFERS_BY_URING, 0);
  count_up(TRANSFERS_BY_URING, 12);
}

static void threads_keep_order(void **state) {
  (void)state;
  count_up(TRANSFERS_BY_THREADS, 0);
  count_up(TRANSFERS_BY_THREADS, 12);
}

/* Many at once, more than a list of them holds. */
static void all_are_done(enum transfer_way way) {
  struct scratch scratch;
  assert_true(rt_scratch_open(&scratch, folder, SIZE, &problem));
  struct transfers *transfers = require(&scratch, way);
  for (size_t i = 0; i < SIZE; i++) memory[i] = (char)(i * 31 + i / PAGE);
  for (size_t at = 0; at < SIZE; at += PAGE) rt_transfers_write(transfers, &file, at, memory + at, PAGE);
  assert_true(rt_transfers_wait(transfers, memory, SIZE, &problem));
  assert_memory_equal(scratch.bytes, memory, SIZE);
  memset(memory, 0, SIZE);
  for (size_t at = 0; at < SIZE; at += PAGE) rt_transfers_read(transfers, &file, at, memory + at, PAGE);
  assert_true(rt_transfers_wait(transfers, memory, SIZE, &problem));
  assert_memory_equal(scratch.bytes, memory, SIZE);
  rt_transfers_close(transfers);
  rt_scratch_close(&scratch);
}

static void many_at_once(void **state) {
  (void)state;
  all_are_done(TRANSFERS_BY_THREADS);
  all_are_done(TRANSFERS_AS_IS_BEST);
}

/* A write past the limit of the process, and a read past the end: a message, no wait without end. */
static void meet_failures(enum transfer_way way) {
  struct scratch scratch;
  struct rlimit limit, small = {.rlim_cur = BLOCK, .rlim_max = RLIM_INFINITY};
  assert_true(rt_scratch_open(&scratch, folder, SIZE, &problem));
  struct transfers *transfers = require(&scratch, way);
  rt_transfers_read(transfers, &file, SIZE, memory, PAGE);
  assert_false(rt_transfers_wait(transfers, memory, PAGE, &problem));
  assert_non_null(strstr(problem.what, "4096 bytes could not be read"));
  rt_transfers_close(transfers);
  transfers = require(&scratch, way);
  getrlimit(RLIMIT_FSIZE, &limit);
  small.rlim_max = limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &small);
  signal(SIGXFSZ, SIG_IGN);
  for (size_t at = 0; at < SIZE; at += BLOCK) rt_transfers_write(transfers, &file, at, memory + at, BLOCK);
  assert_false(rt_transfers_wait(transfers, memory, SIZE, &problem));
  setrlimit(RLIMIT_FSIZE, &limit);
  assert_non_null(strstr(problem.what, "could not be written: File too large"));
  assert_non_null(strstr(problem.help, "free space"));
  rt_transfers_close(transfers);
  rt_scratch_close(&scratch);
}

static void failures_are_reported(void **state) {
  (void)state;
  meet_failures(TRANSFERS_BY_THREADS);
  meet_failures(TRANSFERS_AS_IS_BEST);
}

/* The file has no name, is full of zeros and gone when it is closed. */
static void scratch_is_nobody_elses(void **state) {
  struct scratch scratch;
  struct stat status;
  char nested[128];
  (void)state;
  snprintf(nested, sizeof nested, "%s/a/b", folder);
  assert_true(rt_scratch_open(&scratch, nested, SIZE, &problem));
  assert_int_equal(fstat(scratch.file, &status), 0);
  assert_int_equal(status.st_nlink, 0);
  assert_true(status.st_blocks * 512 >= SIZE); /* its space is there */
  assert_int_equal(rmdir(nested), 0);          /* nothing is in the folder */
  for (size_t i = 0; i < SIZE; i++) assert_int_equal(scratch.bytes[i], 0);
  rt_scratch_close(&scratch);
  assert_false(rt_scratch_open(&scratch, "/proc/none", SIZE, &problem));
  assert_true(rt_scratch_open(&scratch, nested, SIZE, &problem));
  rt_scratch_close(&scratch);
  assert_false(rt_scratch_open(&scratch, folder, (size_t)1 << 50, &problem));
  assert_true(strstr(problem.what, "does not fit") != NULL || strstr(problem.what, "File too large") != NULL);
}

static int set_up(void **state) {
  (void)state;
  memory = aligned_alloc(PAGE, SIZE);
  return mkdtemp(folder) != NULL && memory != NULL ? 0 : -1;
}

static int tear_down(void **state) {
  char command[128];
  (void)state;
  free(memory);
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ring_keeps_order),
      cmocka_unit_test(threads_keep_order),
      cmocka_unit_test(many_at_once),
      cmocka_unit_test(failures_are_reported),
      cmocka_unit_test(scratch_is_nobody_elses),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
