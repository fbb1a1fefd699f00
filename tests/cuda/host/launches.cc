/* A launch is work of a stream, which the stand-ins (tests/cuda/standin) do when the stream comes to it. */
#include <accel/gpu/launch.h>

/* As standin.h declares it, whose headers of CUDA do not go with those of the host. */
extern "C" void standin_launch(accel_stream stream, const char *name, void (*run)(const void *arguments),
                               const void *arguments, size_t bytes);

void host_launch(enum accel_stream_name stream, const char *call, void (*run)(const void *arguments),
                 const void *arguments, size_t bytes) {
  standin_launch(accel_gpu_stream(stream), call, run, arguments, bytes);
}
