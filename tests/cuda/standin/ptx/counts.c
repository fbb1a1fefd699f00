#include "tests/cuda/standin/ptx/counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/standin/core.h"

enum { SECTOR = 32, BANKS = 32, WORD = 4 };

static struct kernel **kernels;
static int n_kernels;

static const char *last_part(const char *path) {
  const char *slash = path == NULL ? NULL : strrchr(path, '/');
  return slash != NULL ? slash + 1 : path == NULL ? "" : path;
}

static const char *space_name(const struct instruction *of) {
  static const char *const names[] = {"generic", "global", "shared", "local", "const", "param"};
  return of->n_places > 0 ? names[of->places[0].space] : "-";
}

/* Lines of columns between tabulators: "kernel" with the launches, blocks and threads of one, "instruction" with the
 * members of its counts, in their order. */
static void write_counts(void) {
  FILE *file = fopen(getenv("STANDIN_COUNTS"), "a"); /* ranks one after the other */
  if (file == NULL) return;
  for (int k = 0; k < n_kernels; k++) {
    const struct kernel *kernel = kernels[k];
    fprintf(file, "kernel\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", kernel->name, kernel->launches, kernel->blocks,
            kernel->threads);
    for (int i = 0; i < kernel->code.count; i++) {
      const struct instruction *in = &kernel->code.items[i];
      const struct count *c = &kernel->counts[i];
      if (c->warps == 0) continue;
      fprintf(file, "instruction\t%s\t%s\t%s\t%d\t%s:%d\t%s:%d", kernel->name, in->name, space_name(in), in->line,
              last_part(in->where.file), in->where.line, last_part(in->outer.file), in->outer.line);
      fprintf(file, "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
              c->warps, c->lanes, c->diverged, c->requests, c->bytes, c->pieces, c->least);
    }
  }
  fclose(file);
}

static void begin(struct kernel *kernel) {
  if (n_kernels == 0) atexit(write_counts);
  kernels = realloc(kernels, ((size_t)n_kernels + 1) * sizeof(struct kernel *));
  kernel->counts = calloc((size_t)kernel->code.count, sizeof *kernel->counts);
  if (kernels == NULL || kernel->counts == NULL) fault("no memory");
  kernels[n_kernels++] = kernel;
}

void counts_launch(struct launch *launch) {
  struct kernel *kernel = launch->kernel;
  const char *path = getenv("STANDIN_COUNTS");
  if (path == NULL || *path == '\0') return;
  if (kernel->counts == NULL) begin(kernel);
  const uint64_t blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
  kernel->launches++;
  kernel->blocks += blocks;
  kernel->threads += blocks * launch->block[0] * launch->block[1] * launch->block[2];
}

/* Adds a number to those that differ. */
static void add_different(uint64_t *numbers, unsigned *count, uint64_t number) {
  for (unsigned i = *count; i > 0; i--)
    if (numbers[i - 1] == number) return;
  numbers[(*count)++] = number;
}

static void count_sectors(const struct warp *warp, struct count *count, const uint64_t *addresses, unsigned bytes) {
  uint64_t sectors[2 * LANES], different[LANES];
  unsigned n_sectors = 0, n_different = 0;
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    add_different(sectors, &n_sectors, addresses[i] / SECTOR);
    add_different(sectors, &n_sectors, (addresses[i] + bytes - 1) / SECTOR);
    add_different(different, &n_different, addresses[i]);
  }
  count->pieces += n_sectors;
  count->least += (n_different * bytes + SECTOR - 1) / SECTOR;
}

/* Banks are of words of 4 bytes, and give one of them at a time, to all lanes that ask for it. Lanes that ask for 8 or
 * 16 bytes take turns in halves or quarters of a warp (CUDA C++ programming guide, shared memory). */
static void count_turns(const struct warp *warp, struct count *count, const uint64_t *addresses, unsigned bytes) {
  const int lanes = bytes <= WORD ? LANES : LANES * WORD / (int)bytes;
  for (int first = 0; first < LANES; first += lanes) {
    uint64_t words[LANES * VECTOR];
    unsigned n_words = 0, of_bank[BANKS] = {0}, most = 0;
    for (int i = first; i < first + lanes; i++)
      for (unsigned b = 0; b < bytes && (warp->active >> i & 1) != 0; b += WORD)
        add_different(words, &n_words, (addresses[i] + b) / WORD);
    for (unsigned w = 0; w < n_words; w++) {
      const unsigned asked = ++of_bank[words[w] % BANKS];
      if (asked > most) most = asked;
    }
    count->pieces += most;
    count->least += (n_words + BANKS - 1) / BANKS;
  }
}

void counts_access(const struct warp *warp, const struct instruction *of, enum space space, const uint64_t *addresses,
                   unsigned bytes) {
  struct count *count = count_of(warp->block->launch->kernel, of);
  if (count == NULL || warp->active == 0) return;
  count->requests++;
  count->bytes += bytes * (unsigned)__builtin_popcount(warp->active);
  if (space == GLOBAL) count_sectors(warp, count, addresses, bytes);
  if (space == SHARED) count_turns(warp, count, addresses, bytes);
}
