/* PNG files of pixels as they are: no compression, which would need a library in each program. */
#ifndef RUNTIME_TRACKING_PNG_H
#define RUNTIME_TRACKING_PNG_H

#include "runtime/tracking/bytes.h"
#include "runtime/tracking/sink.h"

/* Adds a PNG file of the picture (PNG specification, third edition), its deflate stream of stored blocks alone. */
void rt_png_add(struct bytes *to, const struct picture *picture);

#endif
