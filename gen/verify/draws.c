/* What draws random numbers: words under a key, by the rule of docs/runtime.md. Which key a draw of the model has
 * follows from a run of the model before (gen/verify/keys.h). */
#include <math.h>
#include <stdarg.h>

#include "gen/verify/keys.h"
#include "gen/verify/tape/philox.h"
#include "gen/verify/tape/tape.h"

/* The words of a draw. */
struct words {
  uint64_t key;
  uint32_t site;
  bool known; /* false: the run is the one that the keys will follow from */
};

static struct words next_words(const char *function, double of) {
  struct reading *reading = reading_now;
  struct words words = {.known = reading->trace == NULL};
  if (!words.known) {
    const int64_t number = reading->trace->draws++;
    trace_note((struct trace_event){.kind = TRACE_DRAW, .number = number, .of = of});
    return words;
  }
  if (reading->drawn >= reading->n_draws) tape_refuse("%s: one run of the model draws more than another", function);
  const struct draw *draw = &reading->draws[reading->drawn++];
  words.key = reading->key;
  for (int i = 0; i < draw->depth; i++)
    words.key = draw_key(words.key, (uint64_t)draw->calls[i].number, (uint64_t)draw->calls[i].iteration);
  words.site = (uint32_t)draw->site;
  return words;
}

static uint32_t word(const struct words *words, int64_t i) {
  return words->known ? draw_word(words->key, words->site, (uint64_t)i) : UINT32_MAX;
}

/* ---- Dropout ---- */

static void dropout_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  for (int64_t i = 0; i < y->count; i++)
    if (y->places[i] != 0) dx[i] += y->gradient[i] * y->numbers[0];
}

tensor dropout(tensor x, double p) {
  if (!(p >= 0 && p < 1)) tape_refuse("dropout with p = %g", p);
  if (p == 0 || !reading_now->training) return x;
  const struct words words = next_words("dropout", p);
  const double least = round(p * 0x1p32);
  tensor y = tape_like(x);
  y->places = tape_memory(y->count, sizeof *y->places);
  y->numbers[0] = 1 / (1 - p);
  for (int64_t i = 0; i < y->count; i++) {
    y->places[i] = (double)word(&words, i) >= least;
    y->values[i] = y->places[i] != 0 ? x->values[i] * y->numbers[0] : 0;
  }
  return tape_end(y, dropout_backward, 1, x, NULL, NULL);
}

/* ---- Numbers ---- */

static tensor extents_of(int rank, va_list list) {
  int64_t dim[MOST_AXES];
  if (rank > MOST_AXES) tape_refuse("a tensor has more than %d axes", MOST_AXES);
  for (int i = 0; i < rank; i++) dim[i] = va_arg(list, int);
  return tape_new(rank, dim);
}

/* The upper 24 bits of word i. */
static double upper(const struct words *words, int64_t i) {
  return (double)(word(words, i) >> 8);
}

/* By pairs (Box, Muller, Annals of Mathematical Statistics 29, 1958). */
tensor random_normal_of(int rank, ...) {
  va_list list;
  va_start(list, rank);
  tensor y = extents_of(rank, list);
  va_end(list);
  const struct words words = next_words("random_normal", 0);
  for (int64_t i = 0; i < y->count; i++) {
    const int64_t pair = i - i % 2;
    const double far = sqrt(-2 * log((upper(&words, pair) + 1) * 0x1p-24));
    const double angle = 8 * atan(1) * 0x1p-24 * upper(&words, pair + 1);
    y->values[i] = far * (i % 2 == 0 ? cos(angle) : sin(angle));
  }
  return tape_end(y, NULL, 1, NULL, NULL, NULL);
}

tensor random_uniform_of(int rank, ...) {
  va_list list;
  va_start(list, rank);
  tensor y = extents_of(rank, list);
  va_end(list);
  const struct words words = next_words("random_uniform", 0);
  for (int64_t i = 0; i < y->count; i++) y->values[i] = upper(&words, i) * 0x1p-24;
  return y;
}

tensor random_int_of(int bound, int rank, ...) {
  va_list list;
  va_start(list, rank);
  tensor y = extents_of(rank, list);
  va_end(list);
  const struct words words = next_words("random_int", bound);
  y->whole = true;
  for (int64_t i = 0; i < y->count; i++) y->values[i] = (double)((uint64_t)word(&words, i) * (uint64_t)bound >> 32);
  return y;
}
