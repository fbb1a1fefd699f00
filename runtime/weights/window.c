#include "runtime/weights/window.h"

#include "runtime/process/fail.h"

#include <errno.h>
#include <string.h>

struct window rt_window_open(const struct stored_tensor *tensor, size_t first, size_t size) {
  struct window window = {.bytes = tensor->bytes + first};
  struct problem problem;
  if (tensor->bytes != NULL) return window;
  window.bytes = NULL;
  if (size == 0 || rt_map_part(&window.mapping, tensor->file, tensor->at + first, size, &window.bytes)) return window;
  rt_problem(&problem, "tensor '%.200s': %zu bytes of its file cannot be mapped: %s", tensor->name, size,
             strerror(errno));
  rt_help(&problem, "give the process more memory");
  rt_fail(&problem, 1);
}

void rt_window_close(struct window *window) {
  rt_unmap(&window->mapping);
}
