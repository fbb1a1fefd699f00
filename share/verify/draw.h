/* Random numbers for what `accel-gen verify` gives a program: the same ones in each process. */
#ifndef VERIFY_DRAW_H
#define VERIFY_DRAW_H

#include <stdint.h>

static uint64_t verify_state = 1;

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t verify_draw(void) {
  uint64_t z = verify_state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

#endif
