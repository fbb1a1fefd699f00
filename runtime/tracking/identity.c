#include "runtime/tracking/identity.h"

#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool draw(char id[33], struct problem *problem) {
  uint8_t bytes[16];
  const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool good = file >= 0 && read(file, bytes, sizeof bytes) == sizeof bytes;
  if (!good) rt_problem(problem, "/dev/urandom: cannot be read: %s", strerror(errno));
  for (size_t i = 0; good && i < sizeof bytes; i++) snprintf(id + 2 * i, 3, "%02x", bytes[i]);
  if (file >= 0) close(file);
  return good;
}

/* An id goes into names of files, and the time of the beginning too, so nothing else is taken. */
bool rt_identity_read(const char *bytes, size_t size, char id[33], double *began) {
  static const double most = 253402300800; /* the year 10000 */
  json_t *json = size > 0 ? json_loadb(bytes, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
  const char *text = json_string_value(json_object_get(json, "id"));
  const json_t *time = json_object_get(json, "began");
  const bool good = text != NULL && strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32 &&
                    json_is_real(time) && json_real_value(time) >= 0 && json_real_value(time) < most;
  if (good) memcpy(id, text, 33);
  if (good) *began = json_real_value(time);
  json_decref(json);
  return good;
}

/* Without the right id, a run that resumes would leave what it is to continue. */
static bool read_file(const char *path, char id[33], double *began, struct problem *problem) {
  enum { MOST = 4096 };
  static const char cure[] = "remove it: for the tools of tracking.log_with the run is then a new one";
  struct mapping mapping;
  if (!rt_map(&mapping, path, cure, problem)) return false;
  const bool good = mapping.size <= MOST && rt_identity_read((const char *)mapping.bytes, mapping.size, id, began);
  rt_unmap(&mapping);
  if (good) return true;
  rt_problem(problem, "%s: is damaged: it has no 'id' of 32 digits and no time 'began'", path);
  return rt_help(problem, "%s", cure);
}

bool rt_identity_find(struct tracked *tracked, struct problem *problem) {
  char path[4096];
  if (!rt_join(path, sizeof path, tracked->project_dir, "tracking.json", problem)) return false;
  const bool found = access(path, F_OK) == 0;
  if (found && !read_file(path, tracked->id, &tracked->began, problem)) return false;
  if (found && tracked->keep >= 0) return true;
  if (found) memcpy(tracked->previous_id, tracked->id, sizeof tracked->id);
  tracked->began = tracked->now;
  return draw(tracked->id, problem);
}

bool rt_identity_write(const struct tracked *tracked, struct problem *problem) {
  char path[4096], text[128];
  const int size = snprintf(text, sizeof text, "{\"id\": \"%s\", \"began\": %.6f}\n", tracked->id, tracked->began);
  return rt_join(path, sizeof path, tracked->project_dir, "tracking.json", problem) &&
         rt_write_file(path, BY_RENAME, text, (size_t)size, NULL, problem);
}
