#include "gen/report/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double axis_at(const struct chart_axis *axis, double number) {
  if (axis->log) return log10(number / axis->least) / log10(axis->most / axis->least);
  return (number - axis->least) / (axis->most - axis->least);
}

/* Without zeros at the end of its decimals. */
static void shorten(char *text) {
  if (strchr(text, '.') == NULL) return;
  size_t length = strlen(text);
  while (text[length - 1] == '0') length--;
  if (text[length - 1] == '.') length--;
  text[length] = '\0';
}

/* 1.2e-07 as 1.2e-7. */
static void write_power(char label[TICK_LABEL], double number, int digits) {
  char text[TICK_LABEL];
  snprintf(text, sizeof text, "%.*e", digits, number);
  char *power = strchr(text, 'e');
  *power++ = '\0';
  shorten(text);
  const bool below = *power == '-';
  power += strspn(power, "+-0");
  snprintf(label, TICK_LABEL, "%.20se%s%.6s", text, below ? "-" : "", *power != '\0' ? power : "0");
}

static int digits_between(double of, double unit) {
  const double digits = floor(log10(of)) - floor(log10(unit) + 1e-9);
  return digits < 0 ? 0 : digits > 9 ? 9 : (int)digits;
}

void axis_label(char label[TICK_LABEL], double number, double unit, double largest) {
  static const struct {
    double from, by;
    const char *letter;
  } scales[] = {{1e9, 1e9, "G"}, {1e6, 1e6, "M"}, {1e4, 1e3, "k"}, {1e-3, 1, ""}};
  const double size = fabs(number);
  if (size < unit / 1e6 || size == 0) {
    snprintf(label, TICK_LABEL, "0");
    return;
  }
  if (largest >= 1e15 || largest < 1e-3) {
    write_power(label, number, digits_between(size, unit));
    return;
  }
  int i = 0;
  while (largest < scales[i].from) i++;
  const double decimals = ceil(-log10(unit / scales[i].by) - 1e-9);
  snprintf(label, TICK_LABEL, "%.*f", decimals < 0 ? 0 : decimals > 9 ? 9 : (int)decimals, number / scales[i].by);
  shorten(label);
  strncat(label, scales[i].letter, TICK_LABEL - strlen(label) - 1);
}

static void add_tick(struct chart_axis *axis, double value, double unit, double largest) {
  if (axis->n_ticks == MOST_TICKS) return;
  struct tick *tick = &axis->ticks[axis->n_ticks++];
  *tick = (struct tick){.value = value, .at = fmin(1, fmax(0, axis_at(axis, value)))};
  axis_label(tick->label, value, unit, largest);
}

/* The least of 1, 2 and 5 times a power of ten that is not below `least`. */
static double round_up(double least) {
  const double power = pow(10, floor(log10(least)));
  const double of = least / power;
  return (of <= 1.000001 ? 1 : of <= 2.000001 ? 2 : of <= 5.000001 ? 5 : 10) * power;
}

static void add_linear(struct chart_axis *axis, int about) {
  const double unit = round_up((axis->most - axis->least) / about);
  for (double i = ceil(axis->least / unit - 1e-6); i * unit <= axis->most + 1e-6 * unit; i++)
    add_tick(axis, i * unit, unit, fmax(fabs(axis->least), fabs(axis->most)));
}

/* Powers of ten; between them twice and five times each where there are few. */
static void add_powers(struct chart_axis *axis, int about) {
  const double from = floor(log10(axis->least)), to = ceil(log10(axis->most));
  const double stride = ceil((to - from) / about);
  static const double within[] = {1, 2, 5};
  const int count = to - from <= 3 ? 3 : 1;
  for (double power = stride * ceil(from / stride); power <= to; power += stride)
    for (int i = 0; i < count; i++) {
      const double value = within[i] * pow(10, power);
      if (value >= axis->least * 0.999999 && value <= axis->most * 1.000001) add_tick(axis, value, value, value);
    }
}

/* Numbers that are equal, or nearly, get some range around them. */
static void widen(struct chart_axis *axis) {
  const double size = fmax(fabs(axis->least), fabs(axis->most));
  if (axis->most - axis->least > 1e-9 * size) return;
  const double half = size > 0 ? 0.1 * size : 1;
  axis->least -= half;
  axis->most += half;
}

struct chart_axis axis_of(double least, double most, int about, bool log) {
  struct chart_axis axis = {.least = least, .most = most, .log = log};
  widen(&axis);
  if (log && axis.most / axis.least < 1.5) {
    axis.least /= 1.25;
    axis.most *= 1.25;
  }
  if (log) add_powers(&axis, about);
  if (axis.n_ticks < 2) {
    axis.n_ticks = 0;
    add_linear(&axis, about);
  }
  return axis;
}
