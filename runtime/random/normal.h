/* Standard normal numbers from random words, fast enough that filling a model's weights is bound by memory. */
#ifndef RUNTIME_RANDOM_NORMAL_H
#define RUNTIME_RANDOM_NORMAL_H

#include <stdint.h>

enum { NORMAL_LANES = 16 };

/* Pairs of independent normals (Box and Muller, "A note on the generation of random normal deviates", Annals of
 * Mathematical Statistics 29, 1958) from pairs of words. Plain float32 arithmetic, no library function but the square
 * root, which IEEE 754 fixes: the same bits on every machine. Error below 1e-6; at most 6.67 from 0. */
void rt_normals(const uint32_t radius_words[NORMAL_LANES], const uint32_t angle_words[NORMAL_LANES],
                float first[NORMAL_LANES], float second[NORMAL_LANES]);

#endif
