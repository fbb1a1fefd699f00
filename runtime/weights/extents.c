#include "runtime/weights/extents.h"

#include "runtime/weights/bitsandbytes.h"
#include "runtime/weights/tensor_parts.h"

#include <stdlib.h>

/* Bytes between two extents that are read with them: fewer than it costs to begin another read. */
enum { GAP = 1 << 16 };

static const struct stored_tensor *stored_of(const struct weights_file *weights, const struct extent *extent) {
  return weights->matched[extent->tensor]->tensor;
}

static size_t element_of(const struct weights_file *weights, const struct extent *extent) {
  return rt_stored_size(stored_of(weights, extent)->dtype);
}

/* ---- Finding ---- */

/* The file that has a parameter as the program wants it, but for the width of floats; -1: none. */
static int file_of(const struct accel_program *program, const struct weights_file *weights,
                   const struct extent_file *files, int n_files, int tensor) {
  if (rt_divides_tensors(program)) return -1;
  const struct named_tensor *found = weights->matched[tensor];
  int file = n_files - 1;
  if (found == NULL || found->tensor->bytes != NULL) return -1;
  if (rt_is_quantized_here(program, weights, tensor) || rt_is_layout_state(found->tensor->name)) return -1;
  while (file >= 0 && files[file].file != found->tensor->file) file--;
  return file;
}

static int by_place(const void *a, const void *b) {
  const struct extent *left = a, *right = b;
  if (left->file != right->file) return left->file < right->file ? -1 : 1;
  return left->at < right->at ? -1 : left->at > right->at;
}

bool rt_extents_find(struct extents *extents, const struct accel_program *program, const struct weights_file *weights,
                     const struct extent_file *files, int n_files, size_t first, size_t bytes,
                     struct problem *problem) {
  const struct accel_program *own = rt_rank_program(program);
  const size_t most = (size_t)own->n_tensors + 1;
  *extents =
      (struct extents){.items = calloc(most, sizeof *extents->items), .others = calloc(most, sizeof *extents->others)};
  if (extents->items == NULL || extents->others == NULL) return rt_problem(problem, "no memory for the list of layers");
  for (int i = 0; i < own->n_tensors; i++) {
    const size_t offset = own->tensors[i].offset;
    if (offset < first || offset >= first + bytes) continue;
    const int file = file_of(program, weights, files, n_files, i);
    if (file < 0) {
      extents->others[extents->n_others++] = i;
    } else if (weights->matched[i]->tensor->size > 0) {
      const struct stored_tensor *stored = weights->matched[i]->tensor;
      extents->items[extents->count++] = (struct extent){file, i, stored->at, stored->size};
    }
  }
  qsort(extents->items, (size_t)extents->count, sizeof *extents->items, by_place);
  return true;
}

void rt_extents_free(struct extents *extents) {
  free(extents->items);
  free(extents->others);
  *extents = (struct extents){0};
}

/* ---- Blocks ---- */

/* Where a block that begins at a byte of a file ends at most: at a multiple of its size, so that the system can map it
 * by large pages, and so far away that an element fits. */
static size_t limit_after(size_t at) {
  return ((at + EXTENT_PAGE) / EXTENT_BLOCK + 1) * EXTENT_BLOCK;
}

/* Goes on to the next extent if a block that ends at byte `end` of the file can have some of it too. */
static bool can_continue(const struct extents *extents, const struct weights_file *weights, const struct block *block,
                         struct extent_place place, size_t end, size_t limit) {
  const struct extent *next = &extents->items[place.extent];
  return place.extent < extents->count && next->file == block->file && next->at - end <= GAP &&
         next->at + element_of(weights, next) <= limit;
}

/* The end of a block's part of an extent, of whole elements. */
static size_t end_of(const struct weights_file *weights, const struct extent *extent, size_t limit) {
  const size_t element = element_of(weights, extent);
  if (extent->at + extent->bytes <= limit) return extent->at + extent->bytes;
  return extent->at + (limit - extent->at) / element * element;
}

bool rt_block_next(const struct extents *extents, const struct weights_file *weights, const struct extent_file *files,
                   struct extent_place *place, struct block *block) {
  if (place->extent >= extents->count) return false;
  const struct extent *extent = &extents->items[place->extent];
  const size_t limit = limit_after(extent->at + place->done);
  size_t end;
  *block = (struct block){
      .file = extent->file, .first = (extent->at + place->done) / EXTENT_PAGE * EXTENT_PAGE, .from = *place};
  do {
    extent = &extents->items[place->extent];
    end = end_of(weights, extent, limit);
    place->done = end - extent->at;
    if (place->done < extent->bytes) break;
    *place = (struct extent_place){place->extent + 1, 0};
  } while (can_continue(extents, weights, block, *place, end, limit));
  block->to = *place;
  block->bytes = (end - block->first + EXTENT_PAGE - 1) / EXTENT_PAGE * EXTENT_PAGE;
  if (block->first + block->bytes > files[block->file].size) block->bytes = files[block->file].size - block->first;
  return true;
}

void rt_block_convert(const struct block *block, const struct extents *extents, const struct accel_program *program,
                      const struct weights_file *weights, const uint8_t *bytes, size_t first, char *values) {
  struct extent_place place = block->from;
  while (place.extent < block->to.extent || (place.extent == block->to.extent && place.done < block->to.done)) {
    const struct extent *extent = &extents->items[place.extent];
    const struct accel_tensor *tensor = &program->tensors[extent->tensor];
    const size_t end = place.extent == block->to.extent ? block->to.done : extent->bytes;
    const size_t size = element_of(weights, extent);
    const size_t wide = size < sizeof(float) && tensor->dtype == ACCEL_FLOAT32 ? sizeof(float) : size;
    rt_weights_convert((float *)(values + (tensor->offset - first) + place.done / size * wide),
                       stored_of(weights, extent)->dtype, bytes + (extent->at + place.done - block->first),
                       (int64_t)((end - place.done) / size));
    place = (struct extent_place){place.extent + 1, 0};
  }
}
