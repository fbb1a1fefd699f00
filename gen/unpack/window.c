#include "gen/unpack/window.h"

#include <stdlib.h>
#include <string.h>

/* The window at first. A fuzzer's inputs are small, and are to be longer than that. */
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { LEAST = 16 };
#else
enum { LEAST = 1 << 20 };
#endif

bool window_open(struct window *window, const char *path, const char *file, size_t size, bool as_is,
                 struct problem *problem) {
  *window = (struct window){.bytes = file != NULL ? file : "", .size = size, .is_last = true};
  if (as_is || packed_as(window->bytes, size) == NOT_PACKED) return true;
  window->is_last = false;
  window->size = 0;
  window->unpacker = unpacker_new(path, file, size, problem);
  return window->unpacker != NULL && window_more(window, 0, problem);
}

static bool make_space(struct window *window, size_t kept, struct problem *problem) {
  size_t capacity = window->capacity > 0 ? window->capacity : LEAST;
  while (kept > capacity / 2) capacity *= 2;
  if (capacity == window->capacity) return true;
  char *grown = realloc(window->own, capacity);
  if (grown == NULL) return rt_problem(problem, "no memory to unpack a file");
  window->own = grown;
  window->capacity = capacity;
  return true;
}

bool window_more(struct window *window, size_t dropped, struct problem *problem) {
  size_t kept = window->size - dropped, count;
  if (kept > 0) memmove(window->own, window->own + dropped, kept);
  window->before += dropped;
  window->size = kept;
  if (!make_space(window, kept, problem)) return false;
  window->bytes = window->own;
  if (!unpacker_read(window->unpacker, window->own + kept, window->capacity - kept, &count, problem)) return false;
  window->size += count;
  window->is_last = window->size < window->capacity;
  return true;
}

size_t window_done(const struct window *window, size_t at) {
  return window->unpacker != NULL ? unpacker_done(window->unpacker) : at;
}

void window_close(struct window *window) {
  unpacker_free(window->unpacker);
  free(window->own);
  *window = (struct window){0};
}
