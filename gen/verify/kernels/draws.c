/* Formulas of functions that draw random numbers under a key: words w of docs/runtime.md at one of the model's sites.
 */
#include <math.h>

#include "gen/verify/kernels/case.h"
#include "gen/verify/tape/philox.h"

/* The array `name` and the draw of the variant; NULL: the arrays are others. */
static double *drawn(struct kernel_case *c, int variant, int arrays, int64_t *count) {
  double *y = made(c, "y", count);
  return variant < c->known->n_draws && c->kernel->key >= 0 && has_all(c, arrays) ? y : NULL;
}

static void says_site(struct kernel_case *c, const char *what, const struct known_draw *draw) {
  snprintf(c->formula, sizeof c->formula, what, draw->site, draw->of);
  c->fits = true;
}

static bool masked(struct kernel_case *c, int variant) {
  int64_t count, X;
  const double *x = given(c, "x", &X);
  double *y = drawn(c, variant, 2, &count);
  if (variant >= c->known->n_draws) return false;
  const struct known_draw *draw = &c->known->draws[variant];
  if (x == NULL || y == NULL || X != count || !(draw->of > 0 && draw->of < 1)) return true;
  const double least = round(draw->of * 0x1p32);
  for (int64_t i = 0; i < count; i++)
    y[i] = (double)draw_word(c->key, draw->site, (uint64_t)i) < least ? 0 : x[i] / (1 - draw->of);
  says_site(c, "y = x / (1 - p) where word i of site %u is not below p 2^32, else 0; p = %g", draw);
  return true;
}

static double upper(const struct kernel_case *c, uint32_t site, int64_t i) {
  return (double)(draw_word(c->key, site, (uint64_t)i) >> 8);
}

static bool uniform(struct kernel_case *c, int variant) {
  int64_t count;
  double *y = drawn(c, variant, 1, &count);
  if (variant >= c->known->n_draws) return false;
  const struct known_draw *draw = &c->known->draws[variant];
  if (y == NULL) return true;
  for (int64_t i = 0; i < count; i++) y[i] = upper(c, draw->site, i) * 0x1p-24;
  says_site(c, "y = the upper 24 bits of word i of site %u, over 2^24", draw);
  return true;
}

static bool integers(struct kernel_case *c, int variant) {
  int64_t count;
  double *y = drawn(c, variant, 1, &count);
  if (variant >= c->known->n_draws) return false;
  const struct known_draw *draw = &c->known->draws[variant];
  if (y == NULL || draw->of < 1) return true;
  for (int64_t i = 0; i < count; i++)
    y[i] = (double)((uint64_t)draw_word(c->key, draw->site, (uint64_t)i) * (uint64_t)draw->of >> 32);
  says_site(c, "y = word i of site %u times %g, over 2^32", draw);
  return true;
}

static bool normal(struct kernel_case *c, int variant) {
  int64_t count;
  double *y = drawn(c, variant, 1, &count);
  if (variant >= c->known->n_draws) return false;
  const struct known_draw *draw = &c->known->draws[variant];
  if (y == NULL) return true;
  for (int64_t i = 0; i < count; i++) {
    const double far = sqrt(-2 * log((upper(c, draw->site, i - i % 2) + 1) * 0x1p-24));
    const double angle = kernel_rounded(c, 8 * atan(1) * 0x1p-24 * upper(c, draw->site, i - i % 2 + 1));
    y[i] = kernel_rounded(c, far) * (i % 2 == 0 ? cos(angle) : sin(angle));
  }
  says_site(c, "y = normal numbers by pairs, of words i of site %u", draw);
  return true;
}

const struct kernel_named_formula kernel_draw_formulas[] = {
    {"dropout", masked}, {"random_uniform", uniform}, {"random_int", integers}, {"random_normal", normal}, {NULL, NULL},
};
