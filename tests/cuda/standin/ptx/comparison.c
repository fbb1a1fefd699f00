/* Comparisons (PTX ISA, 9.7.6). */
#include "tests/cuda/standin/ptx/lanes.h"

/* The result, combined with a predicate where the instruction has one, and for the second destination its opposite. */
static void keep_comparison(struct warp *warp, const struct instruction *of, u32 made) {
  u32 opposite = ~made;
  if (of->combine != 0) {
    const u32 other = predicate(warp, of->from[2]);
    made = of->combine == '&' ? made & other : of->combine == '|' ? made | other : made ^ other;
    opposite = of->combine == '&' ? opposite & other : of->combine == '|' ? opposite | other : opposite ^ other;
  }
  keep_predicate(warp, of->to[0], made);
  if (of->n_to > 1) keep_predicate(warp, of->to[1], opposite);
}

#define DEFINE_COMPARISON(name, type, ...)                                                                             \
  static void run_##name(struct warp *warp, const struct instruction *of) {                                            \
    u32 made = 0;                                                                                                      \
    GIVEN(type, a, 0)                                                                                                  \
    GIVEN(type, b, 1)                                                                                                  \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      const type a = as[i], b = bs[i];                                                                                 \
      made |= (u32)(__VA_ARGS__) << i;                                                                                 \
    }                                                                                                                  \
    keep_comparison(warp, of, made);                                                                                   \
  }
#define ROW_COMPARISON(name, type, ...) {#name, run_##name, PREDICATE, {sizeof(type), sizeof(type)}},

#define OF_WHOLE(OF, word, type)                                                                                       \
  OF(setp_eq_##word, type, a == b)                                                                                     \
  OF(setp_ne_##word, type, a != b)                                                                                     \
  OF(setp_lt_##word, type, a < b)                                                                                      \
  OF(setp_le_##word, type, a <= b)                                                                                     \
  OF(setp_gt_##word, type, a > b)                                                                                      \
  OF(setp_ge_##word, type, a >= b)
#define OF_BITS(OF, word, type)                                                                                        \
  OF(setp_eq_##word, type, a == b)                                                                                     \
  OF(setp_ne_##word, type, a != b)
/* Those with u are true where one of both is no number. */
#define OF_FLOAT(OF, type)                                                                                             \
  OF(setp_eq_##type, type, a == b)                                                                                     \
  OF(setp_ne_##type, type, a<b || a> b)                                                                                \
  OF(setp_lt_##type, type, a < b)                                                                                      \
  OF(setp_le_##type, type, a <= b)                                                                                     \
  OF(setp_gt_##type, type, a > b)                                                                                      \
  OF(setp_ge_##type, type, a >= b)                                                                                     \
  OF(setp_equ_##type, type, !(a < b || a > b))                                                                         \
  OF(setp_neu_##type, type, !(a == b))                                                                                 \
  OF(setp_ltu_##type, type, !(a >= b))                                                                                 \
  OF(setp_leu_##type, type, !(a > b))                                                                                  \
  OF(setp_gtu_##type, type, !(a <= b))                                                                                 \
  OF(setp_geu_##type, type, !(a < b))                                                                                  \
  OF(setp_num_##type, type, a == a && b == b)                                                                          \
  OF(setp_nan_##type, type, a != a || b != b)
#define COMPARISONS(OF)                                                                                                \
  OF_WHOLE(OF, u16, u16)                                                                                               \
  OF_WHOLE(OF, s16, s16)                                                                                               \
  OF_WHOLE(OF, u32, u32)                                                                                               \
  OF_WHOLE(OF, s32, s32)                                                                                               \
  OF_WHOLE(OF, u64, u64)                                                                                               \
  OF_WHOLE(OF, s64, s64)                                                                                               \
  OF_BITS(OF, b16, u16)                                                                                                \
  OF_BITS(OF, b32, u32)                                                                                                \
  OF_BITS(OF, b64, u64)                                                                                                \
  OF_FLOAT(OF, f32)                                                                                                    \
  OF_FLOAT(OF, f64)
COMPARISONS(DEFINE_COMPARISON)

static const struct form rows[] = {COMPARISONS(ROW_COMPARISON)};
const struct forms comparison_forms = {rows, sizeof rows / sizeof *rows};
