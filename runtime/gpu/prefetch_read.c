/* Layers that streams read from a file. Programs without such layers are not linked with it, nor with a way to put work
 * of the host into streams. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"
#include "runtime/weights/streamed.h"

#include <stdlib.h>

static struct layer_read *layer_of(struct prefetches *prefetches, size_t first, size_t bytes, char *values) {
  for (struct layer_read *at = prefetches->layers; at != NULL; at = at->next)
    if (at->first == first && at->values == values) return at;
  struct layer_read *made = malloc(sizeof *made);
  if (made == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for the list of layers");
    rt_fail(&problem, 1);
  }
  *made = (struct layer_read){first, bytes, values, prefetches->layers};
  prefetches->layers = made;
  return made;
}

/* In a thread of CUDA's, which may not end the process: whoever waits for the device does (rt_cuda_require_reads). */
static void read_layer(void *data) {
  const struct layer_read *layer = data;
  const struct accel_layer_reader *reader = rt_cuda_device()->program->reader;
  struct problem problem;
  reader->start(layer->first, layer->values, layer->bytes);
  if (!reader->wait(&problem)) rt_cuda_note_failed_read();
}

/* A piece of pinned memory is read into once the copy before the last one has left it, which is before the turn of the
 * last one began. So a layer is read while the one before is copied, and the one before that computes. */
void accel_gpu_prefetch_read(void *to, size_t first, size_t bytes) {
  struct cuda_device *device = rt_cuda_device();
  struct prefetches *prefetches = &device->prefetches;
  accel_stream reading = device->streams[ACCEL_READ];
  if (bytes == 0) return;
  char *values = prefetches->staging + (size_t)(prefetches->reads % RT_PIECES) * prefetches->stride;
  accel_stream copying = rt_cuda_prefetch_begin(device);
  RT_CUDA(cudaStreamWaitEvent(reading, prefetches->reads == 0 ? prefetches->forked : prefetches->begun, 0));
  RT_CUDA(cudaLaunchHostFunc(reading, read_layer, layer_of(prefetches, first, bytes, values)));
  RT_CUDA(cudaEventRecord(prefetches->read, reading));
  RT_CUDA(cudaEventRecord(prefetches->begun, copying));
  RT_CUDA(cudaStreamWaitEvent(copying, prefetches->read, 0));
  rt_cuda_prefetch_copy(device, to, values, bytes);
  prefetches->reads++;
}
