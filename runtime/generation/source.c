#include "runtime/generation/source.h"

#include "runtime/data/npy.h"
#include "runtime/files/mapping.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "[80][3000]" of an array. */
static void shape_text(const struct npy *npy, char *text, size_t size) {
  size_t length = 0;
  text[0] = '\0';
  for (int i = 0; i < npy->rank && length < size; i++)
    length += (size_t)snprintf(text + length, size - length, "[%" PRId64 "]", npy->shape[i]);
}

static bool read_array(const struct accel_program *program, const char *path, const struct mapping *mapping,
                       float **elements, int64_t *count, struct problem *problem) {
  static const char row[] = "[1]";
  struct npy npy;
  char shape[256];
  const char *whole = program->source_shape, *without = whole + sizeof row - 1;
  if (!rt_npy_find(&npy, path, mapping->bytes, mapping->size, problem)) return false;
  shape_text(&npy, shape, sizeof shape);
  if (npy.type != NPY_F4 || (strcmp(shape, whole) != 0 && strcmp(shape, without) != 0)) {
    rt_problem(problem, "%s: the array is %s%s, and '%s' is float32 %s", path, npy.type == NPY_F4 ? "float32 " : "",
               shape, program->source_name, without);
    return rt_help(problem, "save one row of it with numpy.save, as float32");
  }
  *count = npy.count;
  *elements = malloc((size_t)npy.count * sizeof **elements + 1);
  if (*elements == NULL) return rt_problem(problem, "no memory for %s", path);
  rt_npy_read(npy.type, npy.elements, 0, npy.count, *elements);
  return true;
}

bool rt_source_read(const struct accel_program *program, const char *path, float **elements, int64_t *count,
                    struct problem *problem) {
  struct mapping mapping;
  *elements = NULL;
  if (!rt_map(&mapping, path, "name a .npy file with --input", problem)) return false;
  const bool good = read_array(program, path, &mapping, elements, count, problem);
  rt_unmap(&mapping);
  return good;
}

/* The path of a file in the folder of the weights, which are a file of it or itself. False: it is too long. */
static bool join_weights(char *path, size_t size, const char *weights, const char *name) {
  struct stat status;
  const char *slash = strrchr(weights, '/');
  const bool is_folder = stat(weights, &status) == 0 && S_ISDIR(status.st_mode);
  const size_t length = is_folder ? strlen(weights) : slash != NULL ? (size_t)(slash - weights) : 0;
  const char *between = is_folder || slash != NULL ? "/" : "";
  const int written = snprintf(path, size, "%.*s%s%s", (int)length, weights, between, name);
  return written >= 0 && (size_t)written < size;
}

bool rt_source_rules(struct generation_rules *rules, const struct accel_program *program, const char *weights,
                     struct problem *problem) {
  enum { MOST = 16 << 20 };
  char path[4096];
  struct mapping mapping;
  *rules = (struct generation_rules){.start = -1};
  if (!join_weights(path, sizeof path, weights, "generation_config.json") || access(path, F_OK) != 0) return true;
  if (!rt_map(&mapping, path, "check its rights, or remove it", problem)) return false;
  const char *text = (const char *)mapping.bytes;
  const bool good = mapping.size <= MOST ? rt_rules_read(rules, path, text, mapping.size, program->vocabulary, problem)
                                         : rt_problem(problem, "%s: the file is larger than %d bytes", path, MOST);
  rt_unmap(&mapping);
  return good;
}
