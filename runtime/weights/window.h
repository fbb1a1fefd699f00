/* Some bytes of a stored tensor, where its file is mapped and where it is not: then they are mapped for as long as they
 * are needed, so that neither memory nor address space grows with a file. */
#ifndef RUNTIME_WEIGHTS_WINDOW_H
#define RUNTIME_WEIGHTS_WINDOW_H

#include "runtime/files/mapping.h"
#include "runtime/weights/safetensors.h"

struct window {
  const uint8_t *bytes; /* the first one that was asked for */
  struct mapping mapping;
};

/* Bytes [first, first + size) of a tensor. What the system refuses ends the process with a message. */
struct window rt_window_open(const struct stored_tensor *tensor, size_t first, size_t size);
void rt_window_close(struct window *window);

#endif
