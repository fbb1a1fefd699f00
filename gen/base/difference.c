#include "gen/base/difference.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "gen/base/hash.h"

struct lines lines_of(struct arena *arena, const char *text, size_t length) {
  struct lines lines = {0};
  size_t most = 1;
  for (size_t i = 0; i < length; i++) most += text[i] == '\n';
  lines.starts = arena_alloc(arena, most * sizeof *lines.starts);
  lines.lengths = arena_alloc(arena, most * sizeof *lines.lengths);
  for (const char *at = text, *end = text + length; at < end;) {
    const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline != NULL ? newline : end;
    lines.starts[lines.count] = at;
    lines.lengths[lines.count++] = (int)(stop - at);
    at = stop + 1;
  }
  return lines;
}

/* ---- Equal lines by one number ---- */

struct name {
  const char *start;
  int length, id; /* id 0: free */
};

struct names {
  struct name *slots; /* open addressing; a power of two */
  size_t size;
  int count;
};

static int number_of(struct names *names, const char *start, int length) {
  const uint64_t hash = hash_bytes(start, (size_t)length);
  for (size_t at = (size_t)hash & (names->size - 1);; at = (at + 1) & (names->size - 1)) {
    struct name *slot = &names->slots[at];
    if (slot->id == 0) {
      *slot = (struct name){start, length, ++names->count};
      return slot->id;
    }
    if (slot->length == length && memcmp(slot->start, start, (size_t)length) == 0) return slot->id;
  }
}

static int *number_lines(struct arena *arena, struct names *names, const struct lines *lines) {
  int *numbers = arena_alloc(arena, ((size_t)lines->count + 1) * sizeof *numbers);
  for (int i = 0; i < lines->count; i++) numbers[i] = number_of(names, lines->starts[i], lines->lengths[i]);
  return numbers;
}

/* ---- Matching ---- */

struct occurrence {
  int in_a, in_b; /* how often */
  int at_a, at_b; /* where */
};

struct matcher {
  struct arena *arena;
  const int *a, *b;
  struct occurrence *seen; /* by number; all zero between calls */
  int *match;
};

/* A part of each side: lines from `a` to before `a_end`, and of the other. */
struct part {
  int a, a_end, b, b_end;
};

enum { LARGEST_TABLE = 1 << 22 };

/* The longest common subsequence by its table of lengths. A part that is too large for one stays unmatched: it has no
 * line that either side has once. */
static void match_by_table(struct matcher *m, struct part part) {
  size_t rows = (size_t)(part.a_end - part.a), columns = (size_t)(part.b_end - part.b), width = columns + 1;
  if (rows == 0 || columns == 0 || rows * columns > LARGEST_TABLE) return;
  int *table = arena_alloc(m->arena, (rows + 1) * width * sizeof *table);
  for (size_t i = rows; i-- > 0;)
    for (size_t k = columns; k-- > 0;) {
      int down = table[(i + 1) * width + k], right = table[i * width + k + 1];
      bool same = m->a[part.a + (int)i] == m->b[part.b + (int)k];
      table[i * width + k] = same ? table[(i + 1) * width + k + 1] + 1 : down > right ? down : right;
    }
  for (size_t i = 0, k = 0; i < rows && k < columns;) {
    if (m->a[part.a + (int)i] == m->b[part.b + (int)k]) {
      m->match[part.a + (int)i++] = part.b + (int)k++;
    } else if (table[(i + 1) * width + k] >= table[i * width + k + 1]) {
      i++;
    } else {
      k++;
    }
  }
}

/* The lines of `a`, in their order, that both sides of the part have once. */
static int find_unique(struct matcher *m, struct part part, struct occurrence *unique) {
  int count = 0;
  for (int i = part.a; i < part.a_end; i++) {
    m->seen[m->a[i]].in_a++;
    m->seen[m->a[i]].at_a = i;
  }
  for (int i = part.b; i < part.b_end; i++) {
    m->seen[m->b[i]].in_b++;
    m->seen[m->b[i]].at_b = i;
  }
  for (int i = part.a; i < part.a_end; i++) {
    const struct occurrence *seen = &m->seen[m->a[i]];
    if (seen->in_a == 1 && seen->in_b == 1) unique[count++] = *seen;
  }
  for (int i = part.a; i < part.a_end; i++) m->seen[m->a[i]] = (struct occurrence){0};
  for (int i = part.b; i < part.b_end; i++) m->seen[m->b[i]] = (struct occurrence){0};
  return count;
}

/* Retains the longest subsequence of them whose indices in `b` increase, too. */
static int longest_increasing(struct matcher *m, struct occurrence *unique, int count) {
  int *tails = arena_alloc(m->arena, ((size_t)count + 1) * sizeof *tails); /* by length: where its best run ends */
  int *before = arena_alloc(m->arena, ((size_t)count + 1) * sizeof *before);
  bool *kept = arena_alloc(m->arena, (size_t)count + 1);
  int longest = 0, out = 0;
  for (int i = 0; i < count; i++) {
    int low = 0, high = longest;
    while (low < high) {
      int middle = (low + high) / 2;
      if (unique[tails[middle]].at_b < unique[i].at_b)
        low = middle + 1;
      else
        high = middle;
    }
    before[i] = low > 0 ? tails[low - 1] : -1;
    tails[low] = i;
    if (low == longest) longest++;
  }
  for (int i = longest > 0 ? tails[longest - 1] : -1; i >= 0; i = before[i]) kept[i] = true;
  for (int i = 0; i < count; i++)
    if (kept[i]) unique[out++] = unique[i];
  return out;
}

static void match_part(struct matcher *m, struct part part) {
  while (part.a < part.a_end && part.b < part.b_end && m->a[part.a] == m->b[part.b]) m->match[part.a++] = part.b++;
  while (part.a < part.a_end && part.b < part.b_end && m->a[part.a_end - 1] == m->b[part.b_end - 1])
    m->match[--part.a_end] = --part.b_end;
  if (part.a == part.a_end || part.b == part.b_end) return;
  struct occurrence *unique = arena_alloc(m->arena, (size_t)(part.a_end - part.a) * sizeof *unique);
  int count = longest_increasing(m, unique, find_unique(m, part, unique));
  if (count == 0) {
    match_by_table(m, part);
    return;
  }
  for (int i = 0; i < count; i++) {
    m->match[unique[i].at_a] = unique[i].at_b;
    match_part(m, (struct part){part.a, unique[i].at_a, part.b, unique[i].at_b});
    part.a = unique[i].at_a + 1;
    part.b = unique[i].at_b + 1;
  }
  match_part(m, part);
}

int *lines_match(struct arena *arena, const struct lines *a, const struct lines *b) {
  struct arena *own = arena_new();
  struct names names = {.size = 16};
  while (names.size < 2 * ((size_t)a->count + (size_t)b->count + 1)) names.size *= 2;
  names.slots = arena_alloc(own, names.size * sizeof *names.slots);
  struct matcher m = {.arena = own, .a = number_lines(own, &names, a), .b = number_lines(own, &names, b)};
  m.seen = arena_alloc(own, ((size_t)names.count + 1) * sizeof *m.seen);
  m.match = arena_alloc(arena, ((size_t)a->count + 1) * sizeof *m.match);
  for (int i = 0; i < a->count; i++) m.match[i] = -1;
  match_part(&m, (struct part){0, a->count, 0, b->count});
  arena_free(own);
  return m.match;
}
