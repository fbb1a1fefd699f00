/* For kernels alone: a launch is done when it returns, in whichever stream. */
#include <accel/gpu/launch.h>

void host_launch(enum accel_stream_name, const char *, void (*run)(const void *), const void *arguments, size_t) {
  run(arguments);
}
