/* Work is done when it is put into a stream. */
#include <accel/cuda/launch.h>

void host_launch(const char *, void (*run)(const void *arguments), const void *arguments, size_t) {
  run(arguments);
}
