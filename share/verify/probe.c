/* What `accel-gen verify --functions` puts after the text of a trainer: it calls one of the trainer's functions on
 * numbers of its own, and writes down what was in each array before and after. After each array is a page that
 * nobody may touch. */
#include "draw.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { VERIFY_ARRAYS = 12, VERIFY_ROUNDS = 4 };

/* An array of a function: its numbers, what they are, and of whole ones the number that they stay below, and whether
 * -100 is among them, or in which rows they are where documents begin. */
struct verify_array {
  int64_t count;
  int whole, written;
  int64_t below;
  int ignored;
  int64_t row;
};

struct verify_probed {
  void (*call)(void **arrays);
  int n_arrays;
  struct verify_array arrays[VERIFY_ARRAYS];
};

static void *verify_room(int64_t count) {
  enum { PAGE = 65536 };
  const size_t size = ((size_t)count * 4 + 63) / 64 * 64, pages = (size + PAGE - 1) / PAGE * PAGE;
  char *room = mmap(NULL, pages + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED || mprotect(room + pages, PAGE, PROT_NONE) != 0) exit(3);
  return room + pages - size;
}

/* Room for a function to compute in. */
static float *verify_workspace(int64_t count) {
  static float *room;
  if (room == NULL) room = verify_room(count);
  return room;
}

/* Numbers of [-2, 2); small ones; a few, so that many are equal or 0; large ones. */
static float verify_number(int round) {
  static const float few[] = {-3, -1, -0.5f, 0, 0, 0.5f, 1, 3};
  const float drawn = (float)((double)(verify_draw() >> 40) * 0x1p-22 - 2);
  if (round == 2) return few[verify_draw() % 8];
  return round == 1 ? 0.01f * drawn : round == 3 ? 8 * drawn : drawn;
}

static void verify_fill(const struct verify_array *array, void *numbers, int round) {
  for (int64_t i = 0; i < array->count; i++) {
    const int32_t whole = array->whole ? (int32_t)(verify_draw() % (uint64_t)array->below) : 0;
    if (!array->whole)
      ((float *)numbers)[i] = verify_number(round);
    else if (array->row > 0)
      ((int32_t *)numbers)[i] = i % array->row == 0 ? 0
                                : whole % 4 == 0    ? (int32_t)(i % array->row)
                                                    : ((int32_t *)numbers)[i - 1];
    else
      ((int32_t *)numbers)[i] = array->ignored && round > 0 && verify_draw() % 8 == 0 ? -100 : whole;
  }
}

/* The key of random numbers in the run at hand. */
static uint64_t verify_key;

/* Runs a function in all rounds, twice each. 4: the second run gives something else. */
static int verify_probe(const struct verify_probed *probed, const char *path) {
  void *arrays[VERIFY_ARRAYS], *before[VERIFY_ARRAYS], *after[VERIFY_ARRAYS];
  int status = 0;
  for (int i = 0; i < probed->n_arrays; i++) {
    arrays[i] = verify_room(probed->arrays[i].count);
    before[i] = malloc((size_t)probed->arrays[i].count * 4);
    after[i] = malloc((size_t)probed->arrays[i].count * 4);
    if (before[i] == NULL || after[i] == NULL) return 3;
  }
  FILE *file = fopen(path, "wb");
  if (file == NULL) return 3;
  for (int round = 0; round < VERIFY_ROUNDS; round++) {
    verify_key = 0xD1342543DE82EF95u * (uint64_t)(round + 1);
    for (int i = 0; i < probed->n_arrays; i++) {
      verify_fill(&probed->arrays[i], arrays[i], round);
      memcpy(before[i], arrays[i], (size_t)probed->arrays[i].count * 4);
    }
    probed->call(arrays);
    for (int i = 0; i < probed->n_arrays; i++) {
      const size_t size = (size_t)probed->arrays[i].count * 4;
      fwrite(before[i], 1, size, file);
      fwrite(arrays[i], 1, size, file);
      memcpy(after[i], arrays[i], size);
      memcpy(arrays[i], before[i], size);
    }
    probed->call(arrays);
    for (int i = 0; i < probed->n_arrays; i++)
      if (memcmp(arrays[i], after[i], (size_t)probed->arrays[i].count * 4) != 0) status = 4;
  }
  return fclose(file) == 0 ? status : 3;
}
