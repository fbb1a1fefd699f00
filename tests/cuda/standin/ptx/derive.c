/* What values derive from: a value is computed of all that its operands were, whatever path leads there. */
#include "tests/cuda/standin/ptx/decode.h"

typedef uint64_t found(const struct instruction *in, const uint64_t *registers);

static uint64_t of_operands(const struct instruction *in, const uint64_t *registers) {
  uint64_t all = 0;
  for (int i = 0; i < in->n_from; i++) all |= registers[in->from[i].number];
  return all;
}

static bool is_load(const struct instruction *in) {
  return in->n_places > 0 && in->n_to > 0;
}

/* Which parameters; FROM_ELSEWHERE: 8 bytes from memory. */
static uint64_t by_parameters(const struct instruction *in, const uint64_t *registers) {
  if (!is_load(in)) return of_operands(in, registers);
  if (in->places[0].space == PARAMETER && in->from[in->places[0].operand].number == 0) {
    const int64_t number = in->places[0].offset / 8;
    return number < 63 ? UINT64_C(1) << number : FROM_ELSEWHERE;
  }
  return in->bytes == 8 ? FROM_ELSEWHERE : 0;
}

/* Which arrays of the block. */
static uint64_t by_arrays(const struct instruction *in, const uint64_t *registers) {
  return is_load(in) ? 0 : in->arrays | of_operands(in, registers);
}

static void spread(struct kernel *kernel, uint64_t *registers, found *find) {
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < kernel->code.count; i++) {
      const struct instruction *in = &kernel->code.items[i];
      const uint64_t made = find(in, registers);
      for (int t = 0; t < in->n_to; t++) {
        moved |= (made & ~registers[in->to[t].number]) != 0;
        registers[in->to[t].number] |= made;
      }
    }
  }
}

void kernel_derive(struct kernel *kernel, struct arena *arena) {
  uint64_t *parameters = arena_alloc(arena, kernel->n_registers * sizeof *parameters);
  uint64_t *arrays = arena_alloc(arena, kernel->n_registers * sizeof *arrays);
  spread(kernel, parameters, by_parameters);
  spread(kernel, arrays, by_arrays);
  for (int i = 0; i < kernel->code.count; i++) {
    struct instruction *in = &kernel->code.items[i];
    for (int p = 0; p < in->n_places; p++) {
      const unsigned number = in->from[in->places[p].operand].number;
      in->places[p].derived = parameters[number];
      in->places[p].arrays = number == 0 ? in->arrays : arrays[number];
    }
  }
}
