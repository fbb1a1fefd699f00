#include "runtime/weights/torch_file.h"
#include "runtime/files/zip.h"

#include "runtime/weights/pickle.h"

#include <stdlib.h>
#include <string.h>

/* Before 1.6 a file was several pickles in a row, the first of which is a number. */
static const uint8_t legacy[] = {0x80, 0x02, 0x8a, 0x0a};

static const char pickle_name[] = "data.pkl";

static const char cure[] =
    "convert it: python -c \"import torch; from safetensors.torch import save_file; save_file({k: "
    "v.contiguous().clone() "
    "for k, v in torch.load('pytorch_model.bin', weights_only=True).items()}, 'model.safetensors')\"";

struct archive {
  struct safetensors *file;
  const char *path;
  struct zip zip;
  const uint8_t *prefix; /* of the names of its files */
  size_t prefix_length;
  size_t budget; /* bytes that copies may take */
  struct problem *problem;
};

bool rt_torch_is(const uint8_t *bytes, size_t size) {
  return rt_zip_is(bytes, size) || (size >= sizeof legacy && memcmp(bytes, legacy, sizeof legacy) == 0);
}

/* Memory that belongs to the file. */
static void *hold(struct archive *archive, size_t size) {
  struct owned_memory *memory = size <= archive->budget ? malloc(sizeof *memory + size) : NULL;
  if (memory == NULL) {
    rt_problem(archive->problem, "%s: copies of its tensors would take more than the file, or memory is short",
               archive->path);
    return NULL;
  }
  archive->budget -= size;
  memory->next = archive->file->memory;
  archive->file->memory = memory;
  return memory->bytes;
}

/* ---- Its files ---- */

static const struct zip_entry *find_file(const struct archive *archive, const char *folder, const char *name,
                                         size_t length) {
  char path[1024];
  const size_t of_folder = strlen(folder);
  if (archive->prefix_length + of_folder + length > sizeof path) return NULL;
  memcpy(path, archive->prefix, archive->prefix_length);
  memcpy(path + archive->prefix_length, folder, of_folder);
  memcpy(path + archive->prefix_length + of_folder, name, length);
  return rt_zip_find(&archive->zip, path, archive->prefix_length + of_folder + length);
}

static const struct zip_entry *find_pickle(struct archive *archive) {
  const size_t length = strlen(pickle_name);
  for (int i = 0; i < archive->zip.count; i++) {
    const struct zip_entry *entry = &archive->zip.entries[i];
    if (entry->length < length || memcmp(entry->name + entry->length - length, pickle_name, length) != 0) continue;
    archive->prefix = entry->name;
    archive->prefix_length = entry->length - length;
    return entry;
  }
  rt_problem(archive->problem, "%s: the archive has no %s, so torch.save did not write it", archive->path, pickle_name);
  return NULL;
}

static bool check_order(const struct archive *archive) {
  const struct zip_entry *order = find_file(archive, "", "byteorder", strlen("byteorder"));
  if (order == NULL || (order->size == 6 && memcmp(order->bytes, "little", 6) == 0)) return true;
  return rt_problem(archive->problem, "%s: its numbers are not little-endian", archive->path);
}

/* ---- Tensors ---- */

static bool bad(const struct archive *archive, const struct stored_tensor *tensor, const char *what) {
  return rt_problem(archive->problem, "%s: tensor '%.200s' %s", archive->path, tensor->name, what);
}

/* The elements of a shape, and the one after the last that it has in its storage, by strides. False: they are more than
 * the storage has. */
static bool extent_of(const struct pickled_tensor *tensor, int64_t *count, int64_t *end) {
  int64_t last = tensor->offset;
  *count = 1;
  for (int i = 0; i < tensor->rank; i++)
    if (tensor->shape[i] == 0) *count = 0;
  *end = 0;
  if (*count == 0) return true;
  for (int i = 0; i < tensor->rank; i++) {
    const int64_t further = tensor->shape[i] - 1;
    if (*count > tensor->count / tensor->shape[i]) return false;
    *count *= tensor->shape[i];
    if (last >= tensor->count || (further > 0 && tensor->strides[i] > (tensor->count - last) / further)) return false;
    last += further * tensor->strides[i];
  }
  *end = last + 1;
  return last < tensor->count;
}

static bool is_contiguous(const struct pickled_tensor *tensor) {
  int64_t stride = 1;
  for (int i = tensor->rank - 1; i >= 0; i--) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != stride) return false;
    stride *= tensor->shape[i];
  }
  return true;
}

/* Elements by strides, one after the other. */
static void gather(uint8_t *to, const uint8_t *from, const struct pickled_tensor *tensor, int64_t count, size_t width) {
  int64_t index[8] = {0}, at = 0;
  for (int64_t n = 0; n < count; n++) {
    memcpy(to + (size_t)n * width, from + (size_t)at * width, width);
    for (int i = tensor->rank - 1; i >= 0; i--) {
      at += tensor->strides[i];
      if (++index[i] < tensor->shape[i]) break;
      at -= index[i] * tensor->strides[i];
      index[i] = 0;
    }
  }
}

static bool add_bytes(struct archive *archive, const struct pickled_tensor *from, struct stored_tensor *tensor) {
  const size_t width = rt_stored_size(from->dtype);
  const struct zip_entry *storage = find_file(archive, "data/", from->key, from->key_length);
  int64_t count, end;
  if (!extent_of(from, &count, &end)) return bad(archive, tensor, "repeats elements of its storage, or leaves it");
  if (storage == NULL || (uint64_t)end > storage->size / width)
    return bad(archive, tensor, "has a storage that the archive does not have whole");
  const uint8_t *first = storage->bytes + (count > 0 ? (size_t)from->offset * width : 0);
  tensor->size = (size_t)count * width;
  tensor->bytes = first;
  if (count == 0 || is_contiguous(from)) return true;
  uint8_t *copy = hold(archive, tensor->size);
  if (copy == NULL) return false;
  gather(copy, first, from, count, width);
  tensor->bytes = copy;
  return true;
}

static bool add_tensor(struct archive *archive, const struct pickled_tensor *from) {
  struct stored_tensor *tensor = &archive->file->tensors[archive->file->count];
  char *name = hold(archive, from->name_length + 1);
  if (name == NULL) return false;
  memcpy(name, from->name, from->name_length);
  name[from->name_length] = '\0';
  *tensor = (struct stored_tensor){.name = name, .rank = from->rank};
  memcpy(tensor->dtype, from->dtype, strlen(from->dtype) + 1);
  memcpy(tensor->shape, from->shape, sizeof tensor->shape);
  if (strlen(name) != from->name_length) return bad(archive, tensor, "has a NUL in its name");
  if (!add_bytes(archive, from, tensor)) return false;
  archive->file->count++;
  return true;
}

static bool add_tensors(struct archive *archive, const struct pickled *pickled) {
  archive->file->tensors = calloc((size_t)pickled->count + 1, sizeof *archive->file->tensors);
  if (archive->file->tensors == NULL)
    return rt_problem(archive->problem, "%s: no memory for the list of tensors", archive->path);
  for (int i = 0; i < pickled->count; i++)
    if (!add_tensor(archive, &pickled->tensors[i])) return false;
  return true;
}

static bool read_archive(struct archive *archive) {
  struct pickled pickled;
  const struct zip_entry *entry = find_pickle(archive);
  if (entry == NULL || !check_order(archive) ||
      !rt_pickle_read(&pickled, archive->path, entry->bytes, entry->size, archive->problem))
    return false;
  const bool added = add_tensors(archive, &pickled);
  rt_pickled_free(&pickled);
  return added;
}

bool rt_torch_read(struct safetensors *file, const char *path, const uint8_t *bytes, size_t size,
                   struct problem *problem) {
  struct archive archive = {.file = file, .path = path, .budget = size, .problem = problem};
  *file = (struct safetensors){0};
  bool read = false;
  if (!rt_zip_is(bytes, size))
    rt_problem(problem, "%s: is of torch.save before PyTorch 1.6, which is not read", path);
  else if (rt_zip_read(&archive.zip, path, bytes, size, problem))
    read = read_archive(&archive);
  rt_zip_free(&archive.zip);
  if (read) return true;
  rt_safetensors_free(file);
  return rt_help(problem, "%s", cure);
}
