/* Any bytes as what comes on a connection: a head, then a greeting; what is accepted is written back the same. */
#include "runtime/tcp/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  uint8_t again[HELLO_SIZE];
  struct problem problem;
  struct frame frame;
  struct hello hello;
  if (size >= FRAME_HEAD && rt_frame_read(bytes, &frame, &problem)) {
    rt_frame_write(&frame, again);
    if (memcmp(again, bytes, FRAME_HEAD) != 0) abort();
    bytes += FRAME_HEAD;
    size -= FRAME_HEAD;
  }
  if (!rt_hello_read(bytes, size, &hello, &problem)) return 0;
  if (hello.rank >= hello.ranks || hello.local_rank >= (hello.local_ranks > 0 ? hello.local_ranks : 0)) abort();
  rt_hello_write(&hello, again);
  if (memcmp(again, bytes, HELLO_SIZE) != 0) abort();
  return 0;
}
