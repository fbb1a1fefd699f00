/* Compiled programs in files: which plugin, how many replicas, the module, a checksum of what the plugin made of it,
 * and that. A file's
 * name is a checksum of the first two, and what is in it says whether it is of these. */
#include "runtime/files/checksum.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/xla/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is before the plugin's own bytes. The caller's to free. */
static char *head_of(const struct xla *xla, const char *module, int replicas, size_t *size) {
  static const char form[] = "accel-xla 3\n%d.%d %s %s, %lld bytes of %lld\n%d replicas\n%zu\n%s\n";
  const struct xla_facts facts = rt_xla_facts(xla);
  const size_t length = strlen(module);
  const int count = snprintf(NULL, 0, form, facts.major, facts.minor, facts.platform, facts.version, xla->size,
                             xla->changed, replicas, length, module);
  char *head = malloc((size_t)count + 1);
  if (head == NULL) return NULL;
  snprintf(head, (size_t)count + 1, form, facts.major, facts.minor, facts.platform, facts.version, xla->size,
           xla->changed, replicas, length, module);
  *size = (size_t)count;
  return head;
}

static bool path_of(const char *head, size_t size, const char *folder, char *path, size_t room) {
  return (size_t)snprintf(path, room, "%s/%016" PRIx64 ".xla", folder, rt_checksum(head, size)) < room;
}

/* The bytes after the head, whose checksum is before them. */
static bool load(struct xla *xla, const struct mapping *file, size_t head, struct xla_program *program) {
  uint64_t sum;
  if (file->size < head + sizeof sum) return false;
  const uint8_t *bytes = file->bytes + head + sizeof sum;
  const size_t size = file->size - head - sizeof sum;
  memcpy(&sum, file->bytes + head, sizeof sum);
  if (sum != rt_checksum(bytes, size)) return false;
  PJRT_Executable_DeserializeAndLoad_Args arguments =
      RT_PJRT(PJRT_Executable_DeserializeAndLoad_Args, .client = xla->client,
              .serialized_executable = (const char *)bytes, .serialized_executable_size = size);
  struct problem ignored;
  const int kept = rt_xla_quiet();
  PJRT_Error *error = xla->api->PJRT_Executable_DeserializeAndLoad(&arguments);
  rt_xla_loud(kept);
  if (!rt_xla_good(xla->api, error, "read a compiled program", &ignored)) return false;
  program->loaded = arguments.loaded_executable;
  return true;
}

bool rt_xla_read_kept(struct xla *xla, const char *module, const char *folder, struct xla_program *program) {
  size_t size;
  char *head = head_of(xla, module, program->replicas, &size), path[4096];
  struct mapping file;
  struct problem ignored;
  bool good = head != NULL && path_of(head, size, folder, path, sizeof path) && rt_map(&file, path, "", &ignored);
  if (good) {
    good = file.size >= size && memcmp(file.bytes, head, size) == 0 && load(xla, &file, size, program);
    rt_unmap(&file);
  }
  free(head);
  return good;
}

static void write_kept(const char *path, const char *head, size_t size, const PJRT_Executable_Serialize_Args *made) {
  const uint64_t sum = rt_checksum(made->serialized_bytes, made->serialized_bytes_size);
  struct writer writer;
  struct problem ignored;
  if (rt_writer_open(&writer, path, BY_RENAME, &ignored) && rt_writer_add(&writer, head, size, &ignored) &&
      rt_writer_add(&writer, &sum, sizeof sum, &ignored) &&
      rt_writer_add(&writer, made->serialized_bytes, made->serialized_bytes_size, &ignored))
    rt_writer_commit(&writer, &ignored);
}

void rt_xla_keep(const struct xla_program *program, const char *module, const char *folder) {
  struct xla *xla = program->xla;
  struct problem ignored;
  size_t size;
  char *head = head_of(xla, module, program->replicas, &size), path[4096];
  PJRT_Executable_Serialize_Args serialize = RT_PJRT(PJRT_Executable_Serialize_Args, .executable = program->executable);
  if (head != NULL && path_of(head, size, folder, path, sizeof path) && rt_make_folders(folder, &ignored) &&
      rt_xla_good(xla->api, xla->api->PJRT_Executable_Serialize(&serialize), "keep the program", &ignored)) {
    write_kept(path, head, size, &serialize);
    serialize.serialized_executable_deleter(serialize.serialized_executable);
  }
  free(head);
}
