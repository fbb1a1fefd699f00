/* Products by weights in the layout of oneDNN's primitive: each weight is packed once, where it is first met, and again
 * when weights have changed. */
#ifndef RUNTIME_ONEDNN_PACKED_H
#define RUNTIME_ONEDNN_PACKED_H

#include "runtime/product.h"

/* Makes a product ready that states how many weights it has; NULL where that is none, oneDNN has no layout of its own,
 * or what accel_keep_packed gave has no room for it. */
struct accel_packed *rt_open_packed(const struct accel_product *product);

/* accel_multiply by it; false, and nothing is done: b is one weight more than were stated. */
bool rt_multiply_packed(const struct accel_product *product, void *y, const void *a, const void *b);

#endif
