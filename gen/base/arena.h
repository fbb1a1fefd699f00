/* Arena: memory that is allocated piece by piece and freed as a whole.
 *
 * The generator works on one job and ends; nothing in it is freed one by one. Every structure of a stage
 * lives in the arena that the caller handed in, so ownership is one sentence: the arena owns it. */
#ifndef ACCEL_BASE_ARENA_H
#define ACCEL_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

/* A new, empty arena. Ends the process with a message when the system has no memory: a generator cannot continue. */
struct arena *arena_new(void);

/* A new arena of at most `size` bytes, which a process and its forks share: what one of them writes there, each sees at
 * the same address. arena_alloc ends the process, with status ARENA_FULL, when there is no space left. NULL, and
 * why in errno, when the system has no memory for it. */
struct arena *arena_shared(size_t size);
enum { ARENA_FULL = 99 };

/* Makes the memory of a shared arena part of `arena`, and gives back what of it was not used; `shared` is freed. */
void arena_join(struct arena *arena, struct arena *shared);

/* Gives all memory of the arena back; every pointer from it is dead. NULL is allowed. */
void arena_free(struct arena *arena);

/* Takes all memory of the arena back for its next use; every pointer from it is dead. It keeps one block at most, so a
 * loop that resets an arena in each pass takes no memory from the system but for a pass that needs more. Not for a
 * shared arena. */
void arena_reset(struct arena *arena);

/* How far an arena is used, to give back what is allocated after this point. */
struct arena_mark {
  const void *block;
  size_t used;
};
struct arena_mark arena_mark(const struct arena *arena);

/* Takes back what was allocated since the mark, which is of this arena and not older than one that was released; every
 * pointer to it is dead. The arena keeps one block for what is allocated next. Not for a shared arena. */
void arena_release(struct arena *arena, struct arena_mark mark);

/* `size` bytes, zeroed, aligned for any type. Never NULL. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy of `count` bytes followed by a NUL. */
char *arena_copy(struct arena *arena, const void *bytes, size_t count);

/* A copy of a C string. */
char *arena_string(struct arena *arena, const char *text);

/* printf into the arena. */
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* Capacity for one more item in a growing array: returns `items`, or a copy twice as large when count == *capacity.
 * The old copy stays in the arena. Use through ARENA_PUSH. */
void *arena_grow(struct arena *arena, void *items, int count, int *capacity, size_t item_size);

/* ARENA_PUSH(arena, list, item): `list` is an lvalue of any struct with members items, count, capacity. */
#define ARENA_PUSH(arena, list, item)                                                                                  \
  ((list).items = arena_grow((arena), (list).items, (list).count, &(list).capacity, sizeof *(list).items),             \
   (list).items[(list).count++] = (item))

#endif
