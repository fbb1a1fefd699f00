/* Numbers that a model has, for formulas that may have them, too. */
#ifndef ACCEL_VERIFY_TAPE_KNOWN_H
#define ACCEL_VERIFY_TAPE_KNOWN_H

#include <stdint.h>

/* Numbers that a model has, and that formulas of its functions may have: single ones, such as the eps of a norm,
 * tables, draws of random numbers, and the shapes of convolutions: position i of y sees the positions i stride -
 * padding + k dilation of x, in height and width. */
struct known_table {
  int64_t count;
  const double *numbers;
  struct known_table *next;
};

struct known_convolution {
  int64_t batch, groups, x_channels, y_channels;
  int64_t x[2], y[2], kernel[2], stride[2], padding[2], dilation[2];
  struct known_convolution *next;
};

/* A draw of random numbers: its site, and its probability or bound. */
struct known_draw {
  uint32_t site;
  double of;
};

struct known_numbers {
  const double *constants;
  int n_constants;
  const struct known_table *tables;
  const struct known_convolution *convolutions;
  const struct known_draw *draws;
  int n_draws;
};

#endif
