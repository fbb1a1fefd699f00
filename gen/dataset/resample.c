#include "gen/dataset/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weights are whole numbers of this many bits of fraction, so that 8 bits times a sum of weights fit 32 bits. */
enum { FRACTION = 22 };

/* For each number of a side of the result: those of the other image that it is a mean of. */
struct filter {
  int count, most; /* of the result; of weights of each at most */
  int *first, *length;
  int32_t *weights; /* [count][most] */
};

static void filter_free(struct filter *filter) {
  free(filter->first);
  free(filter->length);
  free(filter->weights);
}

/* The weights of number i, whose middle is at `center` of the other image. `wide`: its pixels for one of the result. */
static void weigh(struct filter *filter, int i, double center, double wide, int size, double *weights) {
  double support = wide, sum = 0;
  int first = (int)(center - support + 0.5), end = (int)(center + support + 0.5);
  if (first < 0) first = 0;
  if (end > size) end = size;
  int length = end - first;
  for (int k = 0; k < length; k++) {
    double distance = fabs((k + first - center + 0.5) * (1.0 / wide));
    weights[k] = distance < 1.0 ? 1.0 - distance : 0.0;
    sum += weights[k];
  }
  for (int k = 0; k < length; k++) {
    double weight = sum != 0.0 ? weights[k] / sum : weights[k];
    filter->weights[(size_t)i * (size_t)filter->most + (size_t)k] = (int32_t)(0.5 + weight * (1 << FRACTION));
  }
  filter->first[i] = first;
  filter->length[i] = length;
}

/* The filter from the part from `begin` to `end` of a side of `size` to a side of `count`. False without memory. */
static bool filter_make(struct filter *filter, int size, float begin, float end, int count) {
  double scale = (double)(end - begin) / count, wide = scale < 1.0 ? 1.0 : scale;
  *filter = (struct filter){.count = count, .most = (int)ceil(wide) * 2 + 1};
  double *weights = malloc((size_t)filter->most * sizeof *weights);
  filter->first = malloc((size_t)count * sizeof *filter->first);
  filter->length = malloc((size_t)count * sizeof *filter->length);
  filter->weights = malloc((size_t)count * (size_t)filter->most * sizeof *filter->weights);
  bool good = weights != NULL && filter->first != NULL && filter->length != NULL && filter->weights != NULL;
  for (int i = 0; good && i < count; i++) weigh(filter, i, begin + (i + 0.5) * scale, wide, size, weights);
  free(weights);
  return good;
}

static uint8_t rounded(int32_t sum) {
  int32_t value = sum >> FRACTION;
  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* A row of the result from a row of the other image. */
static void filter_row(const struct filter *filter, const uint8_t *from, int channels, uint8_t *to) {
  for (int x = 0; x < filter->count; x++) {
    const uint8_t *pixels = from + (size_t)filter->first[x] * (size_t)channels;
    const int32_t *weights = filter->weights + (size_t)x * (size_t)filter->most;
    for (int c = 0; c < channels; c++) {
      int32_t sum = 1 << (FRACTION - 1);
      for (int k = 0; k < filter->length[x]; k++) sum += pixels[k * channels + c] * weights[k];
      *to++ = rounded(sum);
    }
  }
}

/* Row y of the result from rows of the other image, the first of which is row `above` there. */
static void filter_column(const struct filter *filter, const uint8_t *from, int above, size_t row, int y, uint8_t *to) {
  const uint8_t *rows = from + (size_t)(filter->first[y] - above) * row;
  const int32_t *weights = filter->weights + (size_t)y * (size_t)filter->most;
  for (size_t i = 0; i < row; i++) {
    int32_t sum = 1 << (FRACTION - 1);
    for (int k = 0; k < filter->length[y]; k++) sum += rows[(size_t)k * row + i] * weights[k];
    to[i] = rounded(sum);
  }
}

/* Both ways; the rows that are needed are made one after another. */
static bool filter_both(const struct filter *across, const struct filter *down, const struct image *from,
                        const struct image *to) {
  size_t row = (size_t)to->width * (size_t)to->channels, from_row = (size_t)from->width * (size_t)from->channels;
  int above = down->first[0], last = down->first[to->height - 1] + down->length[to->height - 1];
  uint8_t *narrow = malloc((size_t)(last - above) * row);
  if (narrow == NULL) return false;
  for (int y = above; y < last; y++)
    filter_row(across, from->pixels + (size_t)y * from_row, from->channels, narrow + (size_t)(y - above) * row);
  for (int y = 0; y < to->height; y++) filter_column(down, narrow, above, row, y, to->pixels + (size_t)y * row);
  free(narrow);
  return true;
}

bool resample(const struct image *from, struct box box, const struct image *to) {
  struct filter across = {0}, down = {0};
  bool good = filter_make(&across, from->width, box.left, box.right, to->width) &&
              filter_make(&down, from->height, box.top, box.bottom, to->height) &&
              filter_both(&across, &down, from, to);
  filter_free(&across);
  filter_free(&down);
  return good;
}
