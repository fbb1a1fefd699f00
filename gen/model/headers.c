#include "gen/model/headers.h"

#include <assert.h>
#include <string.h>

#include "gen/base/embedded.h"
#include "gen/base/text.h"
#include "gen/model/evaluate.h"

static const char stdbool_text[] = "#ifndef __bool_true_false_are_defined\n"
                                   "#define bool _Bool\n"
                                   "#define true 1\n"
                                   "#define false 0\n"
                                   "#define __bool_true_false_are_defined 1\n"
                                   "#endif\n";

static const char assert_text[] =
    "#ifndef ACCEL_ASSERT_H\n"
    "#define ACCEL_ASSERT_H\n"
    "_Noreturn void __assert_fail(const char *, const char *, unsigned, const char *);\n"
    "#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, \"\", 0, \"\"))\n"
    "#define static_assert _Static_assert\n"
    "#endif\n";

static const char string_text[] = "#ifndef ACCEL_STRING_H\n"
                                  "#define ACCEL_STRING_H\n"
                                  "int strcmp(const char *, const char *);\n"
                                  "#endif\n";

static const char math_constants[] = "#define M_E 2.7182818284590452354\n"
                                     "#define M_LOG2E 1.4426950408889634074\n"
                                     "#define M_LOG10E 0.43429448190325182765\n"
                                     "#define M_LN2 0.69314718055994530942\n"
                                     "#define M_LN10 2.30258509299404568402\n"
                                     "#define M_PI 3.14159265358979323846\n"
                                     "#define M_PI_2 1.57079632679489661923\n"
                                     "#define M_PI_4 0.78539816339744830962\n"
                                     "#define M_1_PI 0.31830988618379067154\n"
                                     "#define M_2_PI 0.63661977236758134308\n"
                                     "#define M_2_SQRTPI 1.12837916709551257390\n"
                                     "#define M_SQRT2 1.41421356237309504880\n"
                                     "#define M_SQRT1_2 0.70710678118654752440\n";

/* Exactly the functions that the reader evaluates, in double and in float. */
static const char *math_text(struct arena *arena) {
  struct text text = text_in(arena);
  text_puts(&text, "#ifndef ACCEL_MATH_H\n#define ACCEL_MATH_H\n");
  text_puts(&text, math_constants);
  for (int i = 0; i < native_count; i++) {
    const char *name = natives[i].name;
    if (natives[i].unary != NULL) text_printf(&text, "double %s(double);\nfloat %sf(float);\n", name, name);
    if (natives[i].binary != NULL)
      text_printf(&text, "double %s(double, double);\nfloat %sf(float, float);\n", name, name);
  }
  text_puts(&text, "#endif\n");
  return text_string(&text);
}

void model_headers(struct arena *arena, struct header headers[HEADER_COUNT]) {
  const struct header all[] = {
      {"accel/model.h", embedded_source("include/accel/model.h")},
      {"accel/images.h", embedded_source("include/accel/images.h")},
      {"accel/losses.h", embedded_source("include/accel/losses.h")},
      {"stdbool.h", stdbool_text},
      {"assert.h", assert_text},
      {"string.h", string_text},
      {"math.h", math_text(arena)},
  };
  static_assert(sizeof all / sizeof *all == HEADER_COUNT, "as model_headers says");
  memcpy(headers, all, sizeof all);
}
