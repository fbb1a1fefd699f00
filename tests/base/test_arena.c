/* Arenas: those that a process shares with a fork, and those that are reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/base/arena.h"

/* The status of a fork that fills `arena` with `count` pieces of 1000 bytes; the last one says so in *last. */
static int fill(struct arena *arena, int count, char **last) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < count; i++) *last = arena_alloc(arena, 1000);
    strcpy(*last, "the last one");
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void what_a_fork_writes_joins_an_arena(void **state) {
  (void)state;
  struct arena *arena = arena_new(), *shared = arena_shared(1 << 20);
  assert_non_null(shared);
  char **last = arena_alloc(shared, sizeof *last);
  assert_int_equal(fill(shared, 100, last), 0);
  assert_string_equal(*last, "the last one");
  char *before = arena_string(arena, "before");
  arena_join(arena, shared);
  char *after = arena_string(arena, "after");
  assert_string_equal(*last, "the last one");
  assert_string_equal(before, "before");
  assert_string_equal(after, "after");
  for (int i = 0; i < 1000; i++) ((char *)arena_alloc(arena, 9000))[8999] = 1; /* it continues in memory of its own */
  assert_string_equal(*last, "the last one");
  arena_free(arena);
}

static void a_fork_ends_where_it_is_full(void **state) {
  (void)state;
  struct arena *shared = arena_shared(1 << 20);
  char **last = arena_alloc(shared, sizeof *last);
  assert_int_equal(fill(shared, 2000, last), ARENA_FULL);
  arena_free(shared);
}

static void an_empty_one_joins(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  arena_join(arena, arena_shared(1 << 20));
  arena_join(arena, arena_shared(1));
  assert_string_equal(arena_string(arena, "after"), "after");
  arena_free(arena);
}

static void a_reset_one_is_zero_again(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  const char *first = NULL;
  for (int pass = 0; pass < 3; pass++) {
    for (int i = 0; i < 2000; i++) { /* several blocks, and one that is larger than usual */
      size_t size = i == 1000 ? (size_t)9 << 20 : 9000;
      char *piece = arena_alloc(arena, size);
      if (i == 0 && first != NULL) assert_ptr_equal(piece, first);
      if (i == 0) first = piece;
      assert_true(piece[0] == 0 && memcmp(piece, piece + 1, size - 1) == 0);
      memset(piece, 1, size);
    }
    arena_reset(arena);
    arena_reset(arena);
    first = arena_alloc(arena, 1);
    arena_reset(arena);
  }
  arena_free(arena);
}

static void what_is_given_back_is_zero_again(void **state) {
  (void)state;
  struct arena *arena = arena_new();
  char *before = arena_string(arena, "before");
  const struct arena_mark outer = arena_mark(arena);
  char *first = arena_alloc(arena, 1000);
  for (int pass = 0; pass < 3; pass++) {
    const struct arena_mark inner = arena_mark(arena);
    for (int i = 0; i < 2000; i++) { /* several blocks, and one that is larger than usual */
      size_t size = i == 1000 ? (size_t)9 << 20 : 9000;
      char *piece = arena_alloc(arena, size);
      assert_true(piece[0] == 0 && memcmp(piece, piece + 1, size - 1) == 0);
      memset(piece, 1, size);
    }
    arena_release(arena, inner);
    arena_release(arena, inner);
    memset(first, 2, 1000);
  }
  arena_release(arena, outer);
  assert_ptr_equal(arena_alloc(arena, 1000), first);
  assert_true(first[0] == 0 && memcmp(first, first + 1, 999) == 0);
  assert_string_equal(before, "before");
  arena_free(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_a_fork_writes_joins_an_arena),
      cmocka_unit_test(a_fork_ends_where_it_is_full),
      cmocka_unit_test(an_empty_one_joins),
      cmocka_unit_test(a_reset_one_is_zero_again),
      cmocka_unit_test(what_is_given_back_is_zero_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
