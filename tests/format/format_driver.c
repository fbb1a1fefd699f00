/* Formats the program on stdin, for tests in other languages. With `moves` as its argument, it prints what went where
 * instead, a line each: where it was, how long it is, the line where it is now. */
#include <stdio.h>
#include <string.h>

#include "gen/format/format.h"

int main(int argc, char **argv) {
  struct arena *arena = arena_new();
  size_t length = 0, capacity = 1 << 20;
  char *text = arena_alloc(arena, capacity);
  for (size_t count; (count = fread(text + length, 1, capacity - length, stdin)) > 0;) {
    length += count;
    if (length < capacity) continue;
    char *larger = arena_alloc(arena, 2 * capacity);
    memcpy(larger, text, length);
    text = larger;
    capacity *= 2;
  }
  const bool moves = argc > 1 && strcmp(argv[1], "moves") == 0;
  const struct format_output output = format_program(arena, text, length, moves);
  for (int i = 0; i < output.count; i++)
    printf("%zu %zu %d\n", output.moves[i].from, output.moves[i].length, output.moves[i].line);
  if (!moves) fwrite(output.text, 1, output.length, stdout);
  arena_free(arena);
  return 0;
}
